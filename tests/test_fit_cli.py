"""``cfglint fit`` through the real command: what it prints where, and how it exits."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "fit"
CONFIG = CASES / "one_gpu.yaml"
SCHEMA = json.loads((ROOT / "schemas" / "fit.schema.json").read_text("utf-8"))


@pytest.fixture
def fit(cfglint):
    def run(*flags, path=CONFIG, rules=True, **more):
        own = ["--rules", CASES / "need.rules"] if rules else []
        return cfglint("fit", path, "--no-detect", *own, *flags, **more)

    return run


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--gpu", "rtx-4090"], 0),
        (["--gpu", "rtx-4090", "--fail-on", "oom"], 1),
        (["--gpu", "rtx-4090", "--fail-on", "tight"], 1),
        (["--gpu", "rtx-4090", "--fail-on", "never"], 0),
        (["--gpu", "a40", "--fail-on", "oom"], 0),
        (["--gpu", "a40", "--fail-on", "tight"], 1),
        (["--gpu", "h200", "--fail-on", "tight"], 0),
        (["--gpu", "h200", "--gpu", "rtx-4090", "--fail-on", "oom"], 1),
        (["--gpu", "h200", "--vary", "mem_fraction=0.5,1.0", "--fail-on", "oom"], 1),
    ],
)
def test_status(fit, flags, status):
    done = fit(*flags, "--format", "json")
    assert done.returncode == status
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit"], "cfglint fit needs PATH"),
        (["fit", "a.yaml", "b.yaml"], "cfglint fit takes one PATH, and 'b.yaml' is a second one"),
        (["fit", "nowhere.yaml"], "nowhere.yaml: no such file or folder"),
        (["fit", "."], ".: cannot be read: is a directory"),
        (
            ["fit", "odd.yaml"],
            "odd.yaml: no framework recognises this file; name one with --framework NAME (",
        ),
        (["fit", "broken.yaml"], "broken.yaml:2:"),
        (["fit", "grpo.yaml", "--gpu", "a4"], "unknown GPU 'a4'; did you mean"),
        (["fit", "grpo.yaml", "--gpu", "all:x"], "no number of GPUs after the colon"),
        (["fit", "grpo.yaml", "--fail-on", "error"], "--fail-on takes tight, oom, never, not 'error'"),
        (
            ["fit", "grpo.yaml", "--format", "concise"],
            "--format takes text, json, markdown, svg, not 'concise'",
        ),
        (
            ["fit", "grpo.yaml", "--vary", "batch_siez=4"],
            "--vary batch_siez: unknown name, and no key of the file",
        ),
        (["fit", "grpo.yaml", "--vary", "mem_fraction"], "write NAME=V1,V2"),
        (
            ["fit", "grpo.yaml", "--model-config", "no.json"],
            "no.json: no such file or folder; --model-config",
        ),
        (["fit", "grpo.yaml", "--select", "MEM"], "cfglint fit has no flag --select"),
        (["fti", "grpo.yaml"], "unknown command 'fti'; did you mean"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(cfglint, config, words, said):
    (config.parent / "odd.yaml").write_text("a: 1\n")
    (config.parent / "broken.yaml").write_text("actor:\n  path: [1\n")
    done = cfglint(*words, "--no-detect")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("cfglint: error: ")
    assert said in done.stderr


def test_no_gpu_is_judged_for_all_of_them_and_says_so(fit):
    done = fit()
    assert done.stderr == "cfglint: no GPU named: showing the whole catalogue; choose with --gpu\n"
    assert "the smallest that fits is" in done.stdout
    assert len(done.stdout.splitlines()) > 80
    quiet = fit("--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout == done.stdout
    assert fit("--gpu", "all").stdout == done.stdout


def test_an_alias_says_what_it_was_taken_for(fit):
    assert "h100 is ambiguous: using h100-pcie" in fit("--gpu", "h100").stderr


def test_a_path_that_is_stdin(fit):
    done = fit("--gpu", "a40", "--format", "json", path="-", stdin=CONFIG.read_bytes())
    assert json.loads(done.stdout)["path"] == "<stdin>"


def test_of_several_documents_the_first(fit, folder):
    text = CONFIG.read_text()
    (folder / "two.yaml").write_text(f"{text}\n---\n{text}")
    done = fit("--gpu", "a40", "--format", "json", path="two.yaml")
    assert done.stderr == "cfglint: two.yaml: 2 documents recognised; using the first\n"
    assert len(json.loads(done.stdout)["rows"]) == 1


def test_settings_give_targets_and_rules_and_keep_their_format(fit, folder):
    (folder / "need.rules").write_bytes((CASES / "need.rules").read_bytes())
    settings = 'gpu = ["a40", "h200"]\nrules = ["need.rules"]\nformat = "concise"\nfail-on = "warning"\n'
    (folder / "cfglint.toml").write_text(settings)
    done = fit(rules=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 fits, 1 tight" in done.stdout


@pytest.mark.parametrize(
    "flags",
    [
        ["--gpu", "a40", "--gpu", "rtx-4090:8"],
        ["--gpu", "a40,rtx-4090:8"],
        ["--gpu", "all"],
        ["--gpu", "a40", "--vary", "mem_fraction=0.4,0.8", "--vary", "dtype=bf16,fp32"],
        ["--gpu", "a40", "--set", "actor.path=somebody/own-model"],
    ],
)
@pytest.mark.parametrize("rules", [True, False], ids=["own model", "shipped model"])
def test_json_follows_its_schema(fit, flags, rules):
    done = fit(*flags, "--format", "json", rules=rules)
    assert done.returncode == 0
    data = json.loads(done.stdout)
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(data)
    assert done.stdout.isascii()


def test_json_says_what_was_varied_and_where_the_fix_goes(fit):
    flags = ["--gpu", "rtx-4090", "--vary", "mem_fraction=0.4,0.8", "--fixes", "--format", "json"]
    low, high = json.loads(fit(*flags).stdout)["rows"]
    assert (low["varied"], high["varied"]) == ({"mem_fraction": 0.4}, {"mem_fraction": 0.8})
    assert low["verdict"] == "fits"
    assert high["verdict"] == "oom"
    (row,) = json.loads(fit("--gpu", "rtx-4090", "--format", "json").stdout)["rows"]
    fixed = CONFIG.read_text()
    for edit in sorted(row["fix"]["edits"], key=lambda edit: -edit["start"]["offset"]):
        fixed = fixed[: edit["start"]["offset"]] + edit["text"] + fixed[edit["end"]["offset"] :]
    done = fit("--gpu", "rtx-4090", "--format", "json", path="-", stdin=fixed.encode())
    (after,) = json.loads(done.stdout)["rows"]
    assert after["verdict"] == row["fix"]["then"]["verdict"] == "fits"
    assert after["need_gib"] == row["fix"]["then"]["need_gib"]


@pytest.mark.parametrize("gpus", [["a40", "t4", "h200"], ["all"]])
def test_svg_is_well_formed_and_stands_alone(fit, folder, gpus):
    text = CONFIG.read_text().replace("actor:", "actor:", 1)
    (folder / "a<b>&'\".yaml").write_text(text)
    done = fit(*(f for g in gpus for f in ("--gpu", g)), "--format", "svg", path="a<b>&'\".yaml")
    root = ET.fromstring(done.stdout)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    spoken = "".join(root.itertext())
    assert "a<b>&'\".yaml" in spoken
    assert "capacity" in spoken
    assert "prefers-color-scheme: dark" in spoken
    assert "href" not in done.stdout
    assert "url(" not in done.stdout
    box = [float(n) for n in root.attrib["viewBox"].split()]
    for shape in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, width = float(shape.attrib.get("x", 0)), float(shape.attrib["width"])
        assert 0 <= x <= x + width <= box[2]
        assert 0 <= float(shape.attrib.get("y", 0)) <= box[3]


def test_output_file(fit, folder):
    done = fit("--gpu", "a40", "--output-file", "fit.txt")
    assert (done.stdout, done.stderr) == ("", "")
    assert "█" in (folder / "fit.txt").read_text("utf-8")


def test_a_terminal_that_knows_no_blocks_gets_letters(fit):
    done = fit("--gpu", "a40", "--gpu", "rtx-4090", env=[("PYTHONIOENCODING", "ascii"), ("LC_ALL", "C")])
    assert done.stdout.isascii()
    assert "\\u" not in done.stdout
    assert "E####" in done.stdout


def test_help_names_the_flags(cfglint):
    page = cfglint("fit", "--help").stdout
    for flag in (
        "--gpu",
        "--hardware",
        "--framework",
        "--set",
        "--rules",
        "--model-config",
        "--vary",
        "--fail-on",
    ):
        assert flag in page
    assert "cfglint fit PATH" in cfglint().stdout


HEAVY = {
    "rich.console",
    "lark",
    "jsonschema",
    "pynvml",
    "pickle",
    "cfglint.lang.tree",
    "cfglint.repair.solve",
}


def test_the_whole_catalogue_is_judged_without_what_is_slow_to_load(fit):
    flags = ["--gpu", "all", "--set", "sglang.mem_fraction_static=0.4"]
    fit(*flags)  # fills the cache
    done = fit(*flags, env=[("PYTHONPROFILEIMPORTTIME", "1")])
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "cfglint.engine.memory" in loaded
    assert not HEAVY & loaded
