"""A pack: rules in a folder with a name, a version and a description, and pages of configs that test them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_RULES = """pack acme-policy v1.2 "what the platform team asks of a job"

rule ACM101 rate-too-high error for trl {
  has($.learning_rate) -> $.learning_rate <= 0.5
  say "learning_rate is {$.learning_rate}"
}
"""
_MORE = "rule ACM102 small-gpu warning for trl {\n  seq_len > 100 -> gpu.vram >= 30\n}\n"
_CONFIG = "model_name_or_path: a/b\ndataset_name: trl-lib/ultrafeedback_binarized\nbeta: 0.1\n"


def _fence(name: str, text: str) -> str:
    return f"\n```yaml {name}\n{text}```\n"


def _console(words: str, text: str = "") -> str:
    return f"\n```console\n$ cfglint check {words}\n{text}```\n"


@pytest.fixture
def pack(folder: Path) -> Path:
    """A folder with a pack of two rules in two files, and an empty folder for its pages."""
    (folder / "acme" / "tests").mkdir(parents=True)
    (folder / "acme" / "a.rules").write_text(_RULES)
    (folder / "acme" / "b.rules").write_text(_MORE)
    return folder / "acme"


def test_rules_and_explain_say_the_pack(cfglint, pack: Path) -> None:
    listed = cfglint("rules", "--rules", "acme").stdout.splitlines()
    assert listed[0].split() == ["code", "level", "for", "name", "pack"]
    assert [line.split()[-2:] for line in listed if line.startswith("ACM")] == [["acme-policy", "v1.2"]] * 2
    assert not [line for line in listed if "acme-policy" in line and not line.startswith("ACM")]
    told = cfglint("explain", "ACM102", "--rules", "acme").stdout
    assert told.startswith(
        "ACM102 small-gpu (warning), defined at acme/b.rules:1\n"
        "pack acme-policy v1.2: what the platform team asks of a job\n"
    )
    assert "pack" not in cfglint("explain", "MEM101", "--rules", "acme").stdout.splitlines()[1]
    assert cfglint("rules").stdout.splitlines()[0].split() == ["code", "level", "for", "name"]
    (pack / "b.rules").write_text('pack other v1 "another"\n' + _MORE)
    assert "pack other v1: another" in cfglint("explain", "ACM102", "--rules", "acme").stdout
    (pack / "a.rules").write_text('pack again v1 "x"\n' + _RULES)
    done = cfglint("rules", "--rules", "acme")
    assert (done.returncode, "a file is of one pack" in done.stderr) == (2, True)


def test_pages(cfglint, pack: Path) -> None:
    page = pack / "tests" / "ACM101.md"
    high, low = _fence("bad_high.yaml", _CONFIG + "learning_rate: 2.0\n"), _fence("ok_low.yaml", _CONFIG)
    page.write_text("# ACM101 rate-too-high\n" + high + low)
    done = cfglint("test", "acme")
    assert (done.returncode, done.stdout) == (0, "0 examples and 2 cases, 0 wrong\n")
    page.write_text(
        "# ACM101 rate-too-high\n"
        + high.replace("2.0", "0.2")
        + low.replace("beta", "learning_rate: 9\nbeta")
    )
    done = cfglint("test", "acme")
    assert done.returncode == 1
    assert done.stdout == (
        "acme/tests/ACM101.md:10: ok_low.yaml: ACM101 finds something at line 3: learning_rate is 9\n"
        "acme/tests/ACM101.md:3: bad_high.yaml: ACM101 finds nothing\n"
        "0 examples and 2 cases, 2 wrong\n"
    )


def test_flags_and_files_beside_a_case(cfglint, pack: Path) -> None:
    page = pack / "tests" / "ACM102.md"
    case = _fence("bad_small.yaml", _CONFIG + "max_length: 1024\n")
    page.write_text("# ACM102 small-gpu\n" + case)
    done = cfglint("test", "acme")
    assert "bad_small.yaml: ACM102 finds nothing because gpu.vram is missing" in done.stdout
    page.write_text("# ACM102 small-gpu\n" + case + _console("bad_small.yaml --select ACM102 --gpu rtx-4090"))
    assert cfglint("test", "acme").returncode == 0
    assert cfglint("test", "acme", "--update").returncode == 0
    told = page.read_text()
    assert ": warning ACM102 small-gpu [rtx-4090]\n" in told
    assert cfglint("test", "acme").returncode == 0
    page.write_text(told.replace("warning ACM102", "error ACM102"))
    done = cfglint("test", "acme")
    assert done.returncode == 1
    (old,) = [line for line in done.stdout.splitlines() if line.startswith("  -bad_small.yaml:")]
    assert old.endswith(": error ACM102 small-gpu [rtx-4090]")
    assert old.replace("-bad", "+bad").replace("error", "warning") in done.stdout
    page.unlink()
    (pack / "b.rules").write_text("rule ACM103 stage error for trl {\n  zero_stage == 2\n}\n")
    beside = '\n```json deepspeed/one.json\n{"zero_optimization": {"stage": 3}}\n```\n'
    case = _fence("bad_stage.yaml", _CONFIG + "deepspeed: deepspeed/one.json\n")
    (pack / "tests" / "ACM103.md").write_text("# ACM103 stage\n" + case + beside)
    done = cfglint("test", "acme")
    assert (done.returncode, done.stdout) == (0, "0 examples and 1 case, 0 wrong\n")


@pytest.mark.parametrize(
    ("name", "text", "status", "told"),
    [
        ("ACM109", _fence("bad_x.yaml", _CONFIG), 1, "ACM109.md:1: no rule of these has the code ACM109"),
        ("ACM101", _fence("x.yaml", _CONFIG), 2, "ACM101.md:2: x.yaml: a case is named bad_… or ok_…"),
        ("ACM101", "\n```yaml\na: 1\n```\n", 2, "ACM101.md:2: a fence names its file"),
        ("ACM101", _console("bad_x.yaml"), 2, "ACM101.md: unknown file 'bad_x.yaml'"),
        (
            "ACM101",
            "\n```console\n$ ls\n```\n",
            2,
            "ACM101.md:2: a console fence begins with $ cfglint check NAME",
        ),
        (
            "ACM101",
            _fence("bad_x.yaml", "a: 1\n"),
            1,
            (
                "bad_x.yaml: no framework recognises it: give it a console fence with "
                "$ cfglint check bad_x.yaml --select ACM101 --framework NAME"
            ),
        ),
        (
            "ACM101",
            _fence("bad_x.yaml", "a: 1\n") + _console("bad_x.yaml --gpu nosuch"),
            1,
            "bad_x.yaml: unknown GPU 'nosuch'",
        ),
    ],
)
def test_what_is_wrong_with_a_page(cfglint, pack: Path, name: str, text: str, status: int, told: str) -> None:
    (pack / "tests" / f"{name}.md").write_text(text)
    done = cfglint("test", "acme")
    assert done.returncode == status
    assert told in done.stdout + done.stderr


def test_settings_name_a_folder(cfglint, pack: Path) -> None:
    (pack.parent / "pyproject.toml").write_text('[tool.cfglint]\nrules = ["acme"]\nselect = ["ACM"]\n')
    (pack.parent / "c.yaml").write_text(_CONFIG + "learning_rate: 2.0\n")
    done = cfglint("check", "c.yaml", "--no-detect")
    assert done.returncode == 1
    assert "c.yaml:4:16: error ACM101 rate-too-high" in done.stdout
