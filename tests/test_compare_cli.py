"""``cfglint compare`` through the real command: what it prints where, how it exits, and what JSON says."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "compare"
SHORT, LONG, A40, OWN = (CASES / f"{name}.yaml" for name in ("short", "long", "long_a40", "own"))
SCHEMA = json.loads((ROOT / "schemas" / "compare.schema.json").read_text("utf-8"))
GPU = ("--gpu", "a40")


@pytest.fixture
def compare(cfglint):
    def run(*words, **more):
        return cfglint("compare", *words, "--no-detect", **more)

    return run


def settings_of(done):
    return {one["name"]: one for one in json.loads(done.stdout)["settings"]}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((SHORT, LONG, *GPU), 0),
        ((SHORT, LONG, *GPU, "--exit-code"), 1),
        ((SHORT, SHORT, *GPU, "--exit-code"), 0),
        (
            (SHORT, LONG, *GPU, "--exit-code", "--set", "total_train_epochs=4", "--set", "experiment_name=x"),
            0,
        ),
        ((LONG, A40, *GPU, "--exit-code", "--format", "json"), 1),
    ],
)
def test_status(compare, words, status):
    done = compare(*words)
    assert done.returncode == status
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "cfglint compare needs two configs, A and B"),
        (["grpo.yaml"], "cfglint compare needs two configs, A and B"),
        (["a.yaml", "b.yaml", "c.yaml"], "takes two configs; 'c.yaml' is a third"),
        (["-", "-"], "reads one config from stdin, not both"),
        (["grpo.yaml", "nowhere.yaml"], "nowhere.yaml: no such file or folder"),
        (
            ["grpo.yaml", "odd.yaml"],
            "odd.yaml: no framework recognises this file; name one with --framework NAME (",
        ),
        (["grpo.yaml", "broken.yaml"], "broken.yaml:2:"),
        (["grpo.yaml", "grpo.yaml", "--gpu", "a4"], "unknown GPU 'a4'; did you mean"),
        (["grpo.yaml", "grpo.yaml", "--format", "sarif"], "--format takes text, json, markdown, not 'sarif'"),
        (["grpo.yaml", "grpo.yaml", "--framework", "verll"], "unknown framework 'verll'"),
        (["grpo.yaml", "grpo.yaml", *["--framework", "areal"] * 3], "given once for both configs, or twice"),
        (["grpo.yaml", "grpo.yaml", "--fail-on", "error"], "cfglint compare has no flag --fail-on"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(compare, config, words, said):
    (config.parent / "odd.yaml").write_text("a: 1\n")
    (config.parent / "broken.yaml").write_text("actor:\n  path: [1\n")
    done = compare(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize("words", [(*GPU,), ("--gpu", "all"), ("--gpu", "rtx-4090:8", "--gpu", "h200")])
@pytest.mark.parametrize(
    ("one", "other"), [(SHORT, LONG), (LONG, A40), (A40, OWN), (OWN, OWN)], ids=lambda p: p.stem
)
def test_json_follows_its_schema(compare, one, other, words):
    done = compare(one, other, *words, "--format", "json")
    assert done.returncode == 0
    assert done.stdout.isascii()
    data = json.loads(done.stdout)
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(data)
    assert data["same"] == (one == other)
    assert ("smallest" in data["a"]) == ("all" in words)


def test_json_says_where_each_value_is(compare):
    found = settings_of(compare(LONG, A40, *GPU, "--format", "json"))
    fraction = found["mem_fraction"]
    assert (fraction["a"]["value"], fraction["b"]["value"]) == ("0.8", "0.5")
    for side, path in (("a", LONG), ("b", A40)):
        line = path.read_text().split("\n")[fraction[side]["line"] - 1]
        assert line.startswith(f"  mem_fraction_static: {fraction[side]['value']}")
    assert fraction["a"]["key"] == "sglang.mem_fraction_static"
    timeout = found["request_timeout"]
    assert (timeout["a"]["kind"], timeout["b"]["kind"]) == ("file", "default")
    assert "cli_args.py" in timeout["b"]["source"]
    assert timeout["b"]["line"] is None


def test_what_a_reference_brings_along_is_no_setting_of_its_own(compare):
    data = json.loads(compare(LONG, A40, *GPU, "--format", "json").stdout)
    names = {one["name"] for one in data["settings"]}
    assert "rollout_batch_size" in names
    assert "areal.consumer_batch_size" not in names  # ${train_dataset.batch_size} in both
    assert "areal.consumer_batch_size" in {one["name"] for one in data["derived"]}
    keys = {one["key"] for one in data["keys"]}
    assert not keys & {
        "ref.mb_spec.max_tokens_per_mb",
        "rollout.consumer_batch_size",
        "train_dataset.batch_size",
    }
    assert {"stats_logger.wandb.wandb_api_key", "perf_tracer.session_tracer.enabled"} <= keys


def test_an_override_counts_for_both(compare):
    found = settings_of(
        compare(LONG, A40, *GPU, "--format", "json", "--set", "sglang.mem_fraction_static=0.6")
    )
    assert "mem_fraction" not in found
    assert "max_new_tokens" in found


def test_effects_are_told_in_the_direction_that_they_have(compare):
    there = settings_of(compare(LONG, A40, *GPU, "--format", "json"))["gradient_checkpointing"]
    (effect,) = there["effects"]
    assert (effect["from"], effect["to"]) == ("a", "b")
    assert not there["alters_results"]
    done = compare(A40, LONG, *GPU)
    assert f"    B to A: {effect['text']}\n" in done.stdout


def test_ratios_are_those_of_the_files(compare):
    ratios = {
        r["what"]: r["b_by_a"]
        for r in json.loads(compare(SHORT, A40, *GPU, "--format", "json").stdout)["ratios"]
    }
    assert ratios == {"steps per epoch": 2, "steps in the whole run": 6, "samples in the whole run": 3}
    limited = compare(SHORT, A40, *GPU, "--format", "json", "--set", "total_train_steps=100")
    assert [r["what"] for r in json.loads(limited.stdout)["ratios"]] == ["steps per epoch"]


def test_the_memory_is_that_of_fit(compare, cfglint):
    data = json.loads(compare(LONG, A40, *GPU, "--gpu", "h200", "--format", "json").stdout)
    for side, path in (("a", LONG), ("b", A40)):
        rows = json.loads(
            cfglint("fit", path, "--no-detect", *GPU, "--gpu", "h200", "--format", "json").stdout
        )["rows"]
        for row, target in zip(rows, data["targets"], strict=True):
            assert target["target"] == row["target"]
            assert {k: row[k] for k in target[side]} == target[side]


def test_the_findings_are_those_of_check(compare, cfglint):
    data = json.loads(compare(SHORT, A40, *GPU, "--format", "json").stdout)
    for side, path in (("a", SHORT), ("b", A40)):
        report = json.loads(cfglint("check", path, *GPU, "--format", "json").stdout)
        assert {(f["code"], f["level"]) for f in report["findings"]} == {
            (f["code"], f["level"]) for f in data[side]["findings"]
        }


def test_no_gpu_is_judged_for_all_of_them_and_says_so(compare):
    done = compare(SHORT, A40)
    assert done.stderr == "cfglint: no GPU named: showing the whole catalogue; choose with --gpu\n"
    assert "B fits on " in done.stdout
    assert compare(SHORT, A40, "--quiet").stderr == ""


def test_one_of_them_from_stdin(compare):
    done = compare("-", A40, *GPU, "--format", "json", stdin=SHORT.read_bytes())
    assert json.loads(done.stdout)["a"]["path"] == "<stdin>"


def test_a_framework_for_each(compare, folder):
    text = OWN.read_text().replace("cfglint: facts\n", "")
    (folder / "plain.yaml").write_text(text)
    done = compare(
        LONG, "plain.yaml", *GPU, "--framework", "areal", "--framework", "facts", "--format", "json"
    )
    data = json.loads(done.stdout)
    assert (data["a"]["framework"], data["b"]["framework"]) == ("areal", "facts")
    assert data["keys"] == []


def test_output_file_and_a_terminal_that_knows_no_blocks(compare, folder):
    done = compare(LONG, A40, *GPU, "--output-file", "page.txt")
    assert (done.stdout, done.stderr) == ("", "")
    page = (folder / "page.txt").read_text("utf-8")
    assert "what differs" in page
    plain = compare(LONG, A40, *GPU, env=[("PYTHONIOENCODING", "ascii"), ("LC_ALL", "C")])
    assert plain.stdout.isascii()
    assert "\\u" not in plain.stdout


def test_markup_in_values_is_shown_as_it_is(compare, folder):
    (folder / "odd.yaml").write_text(SHORT.read_text().replace("gsm8k-1hour", '"@you <b>|[x](y)`\\e[31m"'))
    done = compare(SHORT, "odd.yaml", *GPU, "--format", "markdown")
    assert "@you" not in done.stdout
    assert "\\<b\\>\\|" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x1b" not in compare(SHORT, "odd.yaml", *GPU).stdout


def test_the_settings_keep_their_format(compare, folder):
    (folder / "cfglint.toml").write_text('gpu = ["a40"]\nformat = "concise"\nframework = "areal"\n')
    done = compare(SHORT, LONG)
    assert (done.returncode, done.stderr) == (0, "")
    assert "a40 (44.42 GiB)" in done.stdout


@pytest.mark.parametrize(
    ("setting", "kept"), [('ignore = ["MEM101"]', ["PAR116"]), ('select = ["MEM"]', ["MEM101"])]
)
def test_the_settings_say_which_findings_count(compare, folder, setting, kept):
    before = json.loads(compare(SHORT, LONG, *GPU, "--format", "json").stdout)["a"]["findings"]
    assert [found["code"] for found in before] == ["MEM101", "PAR116"]
    (folder / "cfglint.toml").write_text(setting + "\n")
    after = json.loads(compare(SHORT, LONG, *GPU, "--format", "json").stdout)["a"]["findings"]
    assert [found["code"] for found in after] == kept


def test_help_names_both_paths_and_the_flags(cfglint):
    page = cfglint("compare", "--help").stdout
    assert page.startswith("usage: cfglint compare A B [options]\n")
    for flag in ("--gpu", "--framework", "--set", "--exit-code", "--verbose", "--format", "--model-config"):
        assert flag in page
    assert "cfglint compare A B" in cfglint().stdout
