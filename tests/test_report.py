"""The report forms, from hand-made Reports: golden texts, the JSON schema, what is imported."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from cfglint.findings import Finding, Fix, Place, Related, Report, TargetInfo, Undecided, UsedFact
from cfglint.report import FORMATS, render
from cfglint.text import Edit

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "schemas" / "report.schema.json").read_text("utf-8"))

GRPO = """\
# AReaL, one GPU
sglang:
  mem_fraction_static: 0.8  # of 44 GiB
  context_length: 32768
actor:
  path: Qwen/Qwen2.5-1.5B-Instruct
  gradient_checkpointing: false
gconfig:
  max_new_tokens: 1024
"""


def place(text, value, path="grpo.yaml", nth=0):
    start = -1
    for _ in range(nth + 1):
        start = text.index(value, start + 1)
    return Place(path, start, start + len(value))


def replaced(where, new, number=1, title="", **more):
    edits = (Edit(where.start, where.end, new),)
    return Fix(number, title or f"set it to {new}", edits, **{"applicability": "safe", **more})


def report(*findings, text=GRPO, path="grpo.yaml", files=1, skipped=0, undecided=()):
    made = Report()
    made.findings = list(findings)
    made.texts = {path: text}
    made.files, made.skipped = files, skipped
    made.undecided = list(undecided)
    return made


def starved(target="a40", **more):
    where = place(GRPO, "0.8")
    fix = replaced(
        where,
        "0.5",
        title="set sglang.mem_fraction_static to 0.5",
        effect="smaller KV cache: lower rollout throughput",
    )
    tokens = replaced(
        place(GRPO, "1024"),
        "512",
        2,
        "set gconfig.max_new_tokens to 512",
        applicability="unsafe",
        effect="shorter answers",
    )
    bigger = Fix(3, "an l40s would do", (), applicability="display")
    return Finding(
        where, "MEM101", "server-starves-trainer", "error", "error",
        "the engine keeps 36.3 GiB of 44.42 GiB; the trainer needs 15 GiB and 8.1 GiB is left",
        **{
            "target": target,
            "arithmetic": "0.8 × 44.42 GiB + 0.8 GiB = 36.3 GiB; 36.3 GiB + 15 GiB > 44.42 GiB",
            "why": "Both processes live on one GPU: what the engine reserves, the trainer cannot have.",
            "see": "https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html",
            "facts": (
                UsedFact("gpu.vram", "44.42 GiB", "catalogue"),
                UsedFact("mem_fraction", "0.8", "line 3"),
            ),
            "fix": fix,
            "alternatives": (tokens, bigger),
            **more,
        },
    )  # fmt: skip


def simple(where, message="it is wrong", level="error", **more):
    return Finding(where, "CFG009", "wrong", level, more.pop("rule_level", level), message, **more)


def full():
    made = report(
        starved("rtx-5090"),
        starved("a40"),
        simple(
            place(GRPO, "false"), "may be too slow", "warning", rule_level="error", possible=True,
            fix=replaced(
                place(GRPO, "false"), "true", 4, "set actor.gradient_checkpointing to true", certainty="may"
            ),
            related=(Related(place(GRPO, "0.8"), "shares the GPU with this"),),
        ),
        simple(
            place(GRPO, "32768"), "longer than needed", "info",
            fix=replaced(place(GRPO, "32768"), "2048", 5),
        ),
        files=3, skipped=5,
        undecided=[
            Undecided("grpo.yaml", None, "PAR001", ("num_gpus",)),
            Undecided("grpo.yaml", "a40", "MEM205", ("num_gpus", "model.params")),
            Undecided("b.yaml", "a40", "MEM205", ("model.params", "model.params")),
        ],
    )  # fmt: skip
    made.targets = [
        TargetInfo("a40", "NVIDIA A40", 1, 44.42),
        TargetInfo("rtx-5090", "NVIDIA GeForce RTX 5090", None, None),
    ]
    made.notices = ["judged for two targets"]
    return made


TEXT = """\
grpo.yaml:3:24: error MEM101 server-starves-trainer [a40, rtx-5090]
3 |   mem_fraction_static: 0.8  # of 44 GiB
  |                        ^^^
  the engine keeps 36.3 GiB of 44.42 GiB; the trainer needs 15 GiB and 8.1 GiB
    is left
  = 0.8 × 44.42 GiB + 0.8 GiB = 36.3 GiB; 36.3 GiB + 15 GiB > 44.42 GiB
  fix (safe): set sglang.mem_fraction_static to 0.5 — smaller KV cache: lower
    rollout throughput
3 -   mem_fraction_static: 0.8  # of 44 GiB
3 +   mem_fraction_static: 0.5  # of 44 GiB
  or (unsafe): set gconfig.max_new_tokens to 512 — shorter answers (+1 more)

grpo.yaml:4:19: info CFG009 wrong
4 |   context_length: 32768
  |                   ^^^^^
  longer than needed
  fix (safe): set it to 2048
4 -   context_length: 32768
4 +   context_length: 2048

grpo.yaml:7:27: warning CFG009 wrong (may)
7 |   gradient_checkpointing: false
  |                           ^^^^^
  may be too slow
  fix (safe, may not be enough): set actor.gradient_checkpointing to true
7 -   gradient_checkpointing: false
7 +   gradient_checkpointing: true
  also: grpo.yaml:3:24 shares the GPU with this

not checked: 2 rules in 2 files; how many GPUs? add :N to --gpu; which model?
    add --model-config PATH; --verbose lists them
1 error, 1 warning, 1 info in 3 files (5 skipped); 1 fixable with cfglint fix, 1
  more with --accept-may, 1 more with --fix-level info
"""

VERBOSE = """\
grpo.yaml:3:24: error MEM101 server-starves-trainer [a40]
3 |   mem_fraction_static: 0.8  # of 44 GiB
  |                        ^^^
  the engine keeps 36.3 GiB of 44.42 GiB; the trainer needs 15 GiB and 8.1 GiB
    is left
  = 0.8 × 44.42 GiB + 0.8 GiB = 36.3 GiB; 36.3 GiB + 15 GiB > 44.42 GiB
  why: Both processes live on one GPU: what the engine reserves, the trainer
    cannot have.
  see: https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html
  facts: gpu.vram 44.42 GiB (catalogue); mem_fraction 0.8 (line 3)
  fix (safe): set sglang.mem_fraction_static to 0.5 — smaller KV cache: lower
    rollout throughput
3 -   mem_fraction_static: 0.8  # of 44 GiB
3 +   mem_fraction_static: 0.5  # of 44 GiB
  or (unsafe): set gconfig.max_new_tokens to 512 — shorter answers
  or: an l40s would do

not checked: 2 rules; how many GPUs? add :N to --gpu; which model? add
    --model-config PATH
  grpo.yaml: PAR001 needs num_gpus
  grpo.yaml: MEM205 needs model.params, num_gpus [a40]
1 error in 1 file; 1 fixable with cfglint fix
"""

CONCISE = """\
grpo.yaml:3:24: error MEM101 the engine keeps 36.3 GiB of 44.42 GiB; the trainer needs 15 GiB and 8.1 GiB is \
left [a40, rtx-5090]
grpo.yaml:4:19: info CFG009 longer than needed
grpo.yaml:7:27: warning CFG009 (may) may be too slow
"""

GITHUB = """\
::error file=grpo.yaml,line=3,endLine=3,col=24,endColumn=27,title=MEM101 server-starves-trainer::\
the engine keeps 36.3 GiB of 44.42 GiB; the trainer needs 15 GiB and 8.1 GiB is left [a40, rtx-5090]\
%0A= 0.8 × 44.42 GiB + 0.8 GiB = 36.3 GiB; 36.3 GiB + 15 GiB > 44.42 GiB\
%0Afix (safe): set sglang.mem_fraction_static to 0.5 — smaller KV cache: lower rollout throughput
::notice file=grpo.yaml,line=4,endLine=4,col=19,endColumn=24,title=CFG009 wrong::longer than needed\
%0Afix (safe): set it to 2048
::warning file=grpo.yaml,line=7,endLine=7,col=27,endColumn=32,title=CFG009 wrong (may)::may be too slow\
%0Afix (safe): set actor.gradient_checkpointing to true
"""
CLOSING = TEXT[TEXT.index("not checked: ") :].replace("\n    ", " ").replace("\n  ", " ")


def test_text():
    assert render(full(), "text") == TEXT


def test_text_verbose():
    undecided = full().undecided[:2]
    assert render(report(starved(), undecided=undecided), "text", verbose=True) == VERBOSE


def test_concise():
    assert render(full(), "concise", width=40) == CONCISE + CLOSING


def test_github():
    assert render(full(), "github") == GITHUB + CLOSING


def test_color_changes_nothing_but_color():
    colored = render(full(), "text", color=True)
    assert "\x1b[1;31merror MEM101\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == TEXT


def test_environment_plays_no_part(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "20")
    assert "\x1b[1;31m" in render(full(), "text", color=True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert render(full(), "text") == TEXT


@pytest.mark.parametrize("width", [40, 80, 200])
def test_widths(width):
    made = full()
    made.findings.append(
        simple(place(GRPO, "Qwen/Qwen2.5-1.5B-Instruct"), "no such model " * 20, target="a40")
    )
    rows = render(made, "text", width=width).splitlines()
    for row in rows:
        greppable = ("grpo.yaml:", "  error ", "  warning ", "  info ", "not checked:", "2 errors")
        if not row.startswith(greppable):  # such lines are never broken
            assert cell_len(row) <= width, row
    if width == 200:
        assert sum("36.3 GiB; 36.3" in row for row in rows) == 1


def test_no_width_is_no_wrapping():
    rows = render(full(), "text", width=0).splitlines()
    assert "  " + starved().message in rows


def test_finding_takes_about_eight_lines():
    at_width = render(report(starved()), "text", width=120)
    assert at_width.split("\n\n")[0].count("\n") + 1 <= 9


# --- what is said for several targets


def test_other_message_is_another_finding():
    made = report(starved("a40"), starved("l4"))
    made.findings[1].message = "other"
    assert render(made, "concise").count("MEM101") == 2
    assert "2 errors in 1 file; 2 fixable" in render(made, "concise")


def test_fixes_that_differ_name_their_targets():
    where = place(GRPO, "0.8")
    made = report(
        starved("a40", fix=replaced(where, "0.5"), alternatives=(), arithmetic="1 > 2"),
        starved(
            "l4", fix=replaced(where, "0.3", applicability="unsafe"), alternatives=(), arithmetic="= 1 > 3"
        ),
        starved("t4", fix=None, alternatives=(), arithmetic="1 > 2"),
    )
    text = render(made, "text")
    assert "  = 1 > 2 [a40, t4]\n  = 1 > 3 [l4]\n" in text
    assert "fix (safe) [a40]: set it to 0.5\n3 -" in text
    assert "fix (unsafe) [l4]: set it to 0.3\n3 -" in text
    assert text.endswith("1 error in 1 file; 1 fixable with cfglint fix\n")
    github = render(made, "github")
    assert (
        "%0A= 1 > 2 [a40, t4]%0A= 1 > 3 [l4]%0Afix (safe) [a40]: set it to 0.5%0Afix (unsafe) [l4]" in github
    )


def test_one_repair_is_shown_once():
    where = place(GRPO, "0.8")
    made = report(starved(alternatives=()), simple(place(GRPO, "32768"), fix=starved().fix))
    text = render(made, "text", width=0)
    assert text.count("3 +   mem_fraction_static: 0.5") == 1
    assert "fix (safe): set sglang.mem_fraction_static to 0.5, the same as at grpo.yaml:3:24\n" in text
    assert where.start == made.findings[0].place.start


# --- fixes


def test_fix_shown_only():
    fix = Fix(1, "use bf16", (), applicability="display", effect="what the GPU can do")
    text = render(report(simple(place(GRPO, "0.8"), fix=fix)), "text")
    assert "  fix (display-only): use bf16 — what the GPU can do\n\n1 error in 1 file\n" in text


def test_no_fix_but_alternatives():
    made = report(starved(fix=None))
    text = render(made, "text")
    assert "  try (unsafe): set gconfig.max_new_tokens to 512 — shorter answers (+1 more)\n" in text
    assert text.endswith("1 error in 1 file\n")


@pytest.mark.parametrize(
    ("level", "more", "said"),
    [
        ("error", {}, "; 1 fixable with cfglint fix"),
        ("error", {"applicability": "unsafe"}, "; 1 fixable with cfglint fix --unsafe"),
        (
            "error",
            {"applicability": "unsafe", "certainty": "may"},
            "; 1 fixable with cfglint fix --unsafe --accept-may",
        ),
        ("info", {}, "; 1 fixable with cfglint fix --fix-level info"),
        ("error", {"applicability": "display"}, ""),
    ],
)
def test_what_a_fix_takes(level, more, said):
    where = place(GRPO, "0.8")
    text = render(report(simple(where, level=level, fix=replaced(where, "1", **more))), "text")
    assert text.endswith(f"1 {level} in 1 file{said}\n")


# --- what nobody may smuggle in


def test_markup_and_control_characters():
    where = place(GRPO, "0.8")
    evil = "[red]x[/red] \x1b]0;title\x07 \u202e\r\nline :rocket: [link=http://x]"
    finding = simple(where, evil, target="[bold]t", arithmetic=evil, why=evil, see=evil)
    finding.facts = (UsedFact(evil, evil, evil),)
    finding.fix = Fix(1, evil, (), applicability="display", effect=evil)
    finding.related = (Related(where, evil),)
    made = report(finding, undecided=[Undecided("grpo.yaml", evil, "X", (evil,))])
    for form in FORMATS:
        for color in (False, True):
            out = render(made, form, color=color, verbose=True)
            assert "\x1b]" not in out
            assert not {"\x07", "\u202e", "\r"} & set(out), form
    text = render(made, "text", width=0)
    assert "  [red]x[/red] \\x1b]0;title\\x07 \\u202e\n  line :rocket: [link=http://x]\n" in text
    assert "wrong [[bold]t]" in text
    assert render(made, "concise").count("\n") == 3
    assert render(made, "github").count("\n") == 3


def test_github_escapes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    finding = simple(Place("a:b,c%.yaml", 0, 1), "50 %: a, b\r\nc")
    finding.name = "odd, name: 5%"
    out = render(report(finding, text="x: 1\n", path="a:b,c%.yaml"), "github").splitlines()[0]
    assert out == (
        "::error file=a%3Ab%2Cc%25.yaml,line=1,endLine=1,col=1,endColumn=2,title=CFG009 odd%2C name%3A 5%25"
        "::50 %25: a, b%0Ac"
    )


def test_github_paths_start_at_the_repository(monkeypatch, tmp_path):
    inner = tmp_path / "train"
    inner.mkdir()
    monkeypatch.chdir(inner)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    for given_path, told in (
        ("c.yaml", "train/c.yaml"),
        ("../c.yaml", "c.yaml"),
        (str(tmp_path / "c.yaml"), "c.yaml"),
        ("/elsewhere/c.yaml", "/elsewhere/c.yaml"),
    ):
        out = render(report(simple(Place(given_path, 0, 1)), path=given_path), "github")
        assert out.startswith(f"::error file={told},line=1,")


def test_github_spans_and_stdin():
    text = "a:\n  b: 1\n  c: 2\nd: 3\n"
    made = report(simple(place(text, "b: 1\n  c: 2\n", "x")), text=text, path="x")
    assert ",line=2,endLine=3,title=" in render(made, "github")
    made = report(simple(place(text, "b: 1\n", "x")), text=text, path="x")
    assert ",line=2,endLine=2,col=3,endColumn=7,title=" in render(made, "github")
    made = report(simple(Place("-", 0, 1)), text=text, path="-")
    assert render(made, "github").startswith("::error title=CFG009 wrong::it is wrong\n")


# --- JSON


def check_schema(made):
    data = json.loads(render(made, "json"))
    Draft202012Validator(SCHEMA).validate(data)
    return data


def test_schema_is_sound():
    Draft202012Validator.check_schema(SCHEMA)


SUMMARY = {
    "files": 3,
    "jobs": 0,
    "unread": None,
    "skipped": 5,
    "unjudged": {},
    "error": 2,
    "warning": 1,
    "info": 1,
    "undecided": 3,
}


def test_json():
    data = check_schema(full())
    assert data["version"] == 1
    assert data["targets"][0] == {"name": "a40", "gpu": "NVIDIA A40", "count": 1, "vram_gib": 44.42}
    assert [(f["code"], f["target"]) for f in data["findings"]] == [
        ("MEM101", "a40"), ("MEM101", "rtx-5090"), ("CFG009", None), ("CFG009", None),
    ]  # fmt: skip
    first = data["findings"][0]
    assert first["start"] == {"offset": GRPO.index("0.8"), "line": 3, "column": 24}
    assert first["end"] == {"offset": GRPO.index("0.8") + 3, "line": 3, "column": 27}
    assert first["facts"][0] == {"name": "gpu.vram", "value": "44.42 GiB", "source": "catalogue"}
    assert first["fix"] == {
        "id": 1, "applicability": "safe", "certainty": "sure",
        "title": "set sglang.mem_fraction_static to 0.5",
        "effect": "smaller KV cache: lower rollout throughput",
        "cost": 0, "risk": "none", "step_percent": None, "target": None,
        "memory": [], "results": [], "next": [], "stale": [],
        "edits": [{"path": "grpo.yaml", "start": first["start"], "end": first["end"], "text": "0.5"}],
    }  # fmt: skip
    assert [a["id"] for a in first["alternatives"]] == [2, 3]
    assert data["findings"][-1]["related"][0]["start"]["line"] == 3
    assert (data["findings"][-1]["level"], data["findings"][-1]["rule_level"]) == ("warning", "error")
    assert data["undecided"] == [
        {"path": "b.yaml", "target": "a40", "code": "MEM205", "needs": ["model.params"]},
        {"path": "grpo.yaml", "target": None, "code": "PAR001", "needs": ["num_gpus"]},
        {"path": "grpo.yaml", "target": "a40", "code": "MEM205", "needs": ["model.params", "num_gpus"]},
    ]
    assert data["notices"] == ["judged for two targets"]
    assert data["summary"] == SUMMARY


def test_json_is_stable_and_ascii():
    made = full()
    told = render(made, "json")
    assert told.isascii()
    made.findings.reverse()
    made.undecided.reverse()
    assert render(made, "json") == told
    assert render(made, "text") == TEXT


@pytest.mark.parametrize("change", [{"extra": 1}, {"version": 2}, {"findings": None}, {"summary": {}}])
def test_schema_is_strict(change):
    data = {**json.loads(render(full(), "json")), **change}
    assert not Draft202012Validator(SCHEMA).is_valid(data)


def test_schema_describes_all_that_the_design_names():
    data = check_schema(full())
    finding = data["findings"][0]
    for known, told in (
        ("finding", finding),
        ("fix", finding["fix"]),
        ("edit", finding["fix"]["edits"][0]),
        ("position", finding["start"]),
    ):
        assert set(SCHEMA["$defs"][known]["properties"]) == set(told)


def test_json_of_a_clean_run():
    assert check_schema(report())["findings"] == []


def test_columns_count_code_points():
    text = "a: 1\r\n名🚀: x\r\n"
    finding = check_schema(report(simple(place(text, "x", "c")), text=text, path="c"))["findings"][0]
    assert finding["start"] == {"offset": 10, "line": 2, "column": 5}
