"""What ``cfglint diagnose`` says of logs, beyond the pages that test_pages.py expects."""

import json
from pathlib import Path

import jsonschema
import pytest

from golden import Page
from tiers import sampled

HERE = Path(__file__).parent
CASES = sorted((HERE / "logs").glob("*.log"))
FLAGS = {log: flags for _, log, *flags in Page(HERE / "logs" / "pages.md").shown}
SCHEMA = json.loads((HERE.parent / "schemas" / "diagnosis.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_json_is_as_the_schema_says(case, terminal):
    if case.stem == "nothing":
        pytest.skip("no failure, no report")
    flags = list(FLAGS[case.name])
    if "--format" in flags:
        at = flags.index("--format")
        del flags[at : at + 2]
    if "--width" in flags:
        flags = []
    _, text = terminal.run("diagnose", case.parent, [case.name, *flags, "--format", "json"])
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert text.isascii()


@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize("case", sampled(CASES), ids=lambda p: p.stem)
def test_forms_at_any_width(case, form, terminal):
    config = ["--config", "../../examples/grpo_one_gpu.yaml", "--gpu", "a40"]
    terminal.run("diagnose", case.parent, [case.name, *config, "--format", form])
    _, page = terminal.run("diagnose", case.parent, [case.name, "--format", form, "--ascii"])
    assert page.isascii()


def test_the_repair_fits_the_measured_numbers(terminal):
    """What the A40 run measured, with the proposed share: engine and trainer fit the GPU."""
    case = HERE / "logs" / "one_gpu.log"
    flags = list(FLAGS[case.name])
    _, text = terminal.run("diagnose", case.parent, [case.name, *flags, "--format", "json"])
    found = json.loads(text)
    held = {p["role"]: p["held_gib"] for p in found["failures"][0]["processes"]}
    assert held == {"engine": 36.34, "trainer": 8.05}
    config = found["config"]
    assert config["corrections"][0]["source"] == "measured in one_gpu.log:7"
    best = config["repairs"][0]
    (edit,) = (edit for edit in best["edits"] if "." in edit["text"])
    share, old = float(edit["text"]), 0.8
    assert best["verdict"]["after"] == "fits"
    engine = held["engine"] - (old - share) * 44.42  # a share less is memory less
    low, high = next(part["after_gib"] for part in best["parts"] if part["role"] == "engine")
    assert low - 0.5 <= engine <= high + 0.5
    trainer = next(part["after_gib"] for part in best["parts"] if part["role"] == "trainer")
    assert share * 44.42 + trainer[1] <= 44.42
    assert high + trainer[1] <= 44.42
    assert trainer[1] <= next(part["before_gib"] for part in best["parts"] if part["role"] == "trainer")[1]


def test_a_death_above_the_estimate_lifts_it(tmp_path, terminal):
    log = tmp_path / "t.log"
    text = (HERE / "logs" / "one_gpu.log").read_text(encoding="utf-8")
    log.write_text(
        text.replace("36.34", "22.30")
        .replace("has 8.05 GiB", "has 21.90 GiB")
        .replace("48.00 MiB", "1.10 GiB"),
        encoding="utf-8",
    )
    config = HERE.parent / "examples" / "grpo_one_gpu.yaml"
    flags = [
        "--config",
        str(config),
        "--gpu",
        "a40",
        "--set",
        "sglang.mem_fraction_static=0.5",
        "--format",
        "json",
    ]
    _, page = terminal.run("diagnose", log.parent, [log.name, *flags])
    found = json.loads(page)["config"]
    trainer = next(c for c in found["corrections"] if c["name"] == "trainer.correction")
    assert trainer["gib"][0] > 0
    assert found["need_gib"][0] == pytest.approx(22.30 + 21.90 + 1.10, abs=0.02)
    assert found["verdict"] == "oom"
