"""`cfglint frameworks PATH`: what tells, how sure it is, who else claims it and whether that matters."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.features.catalogue.recognition import page, recognition
from cfglint.lang.pack import load
from cfglint.report import Style
from cfglint.report.encode import as_json, encode
from cfglint.report.forms import as_text
from golden import page_of

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = json.loads((ROOT / "schemas" / "recognition.schema.json").read_text("utf-8"))
FOLDERS = [ROOT / folder for folder in ("tests/fit", "tests/plan", "tests/compare", "examples")]
OWN = """
framework mine {{
  dialect pyyaml
  detect has($.base_model) and has($.sequence_len)
  generates <- false
  engine.starts_first <- false
  {binding}
}}
"""
AXOLOTL = "base_model: a/b\nsequence_len: 512\nmicro_batch_size: {}\n"


def told(text, path="c.yaml", rules=None, **settings):
    run = Run(load(rules), **settings)
    return recognition(run, read_text(text, path).documents[0], settings.get("framework"), "flag", None)


def keys(found):
    return [(key.key, key.line) for key in found]


def test_several_keys_make_it_certain():
    found = told("micro_batch_size: 2\nsequence_len: 8\nbase_model: a\n")
    assert (found.framework, found.by, found.sure, found.why) == (
        "axolotl",
        "content",
        "certain",
        "2 matching keys",
    )
    assert keys(found.keys) == [("micro_batch_size", 1), ("base_model", 3)]
    assert found.also == found.nearest == ()


def test_one_key_is_certain_if_no_other_framework_has_it():
    found = told("model: {_component_: torchtune.models.gemma.gemma_2b}\n")
    assert (found.framework, found.sure) == ("torchtune", "certain")
    assert found.why == "one matching key, which no other framework has"
    assert keys(found.keys) == [("model._component_", 1)]
    found = told("mem-fraction-static: 0.5\n", rules={"a.rules": ""})
    assert (found.framework, found.sure) == ("sglang", "certain")


def test_one_key_that_others_have_is_likely():
    own = "framework mine {\n  dialect pyyaml\n  detect has($.learning_rate)\n}\n"
    found = told("learning_rate: 1.0\n", rules={"a.rules": own})
    assert (found.framework, found.sure) == ("mine", "likely")
    assert found.why.startswith("one matching key, which ")
    assert "axolotl" in found.why


def test_a_program_is_certain():
    found = told("#!/bin/bash\naxolotl train c.yaml\n", "a.sh")
    assert (found.framework, found.sure, found.why) == ("axolotl", "certain", "recognised by its program")
    assert keys(found.keys) == [("launch.suite", None)]


@pytest.mark.parametrize(
    ("micro", "matters"),
    [(4, ()), (2, (("micro_batch_size", "2", "4"),))],
)
def test_who_else_claims_it_and_whether_that_matters(micro, matters):
    rules = {"a.rules": OWN.format(binding="micro_batch_size <- 4\n  save_limit <- 4")}
    found = told(AXOLOTL.format(micro), rules=rules)
    assert found.framework == "axolotl"
    (rival,) = found.also
    assert (rival.framework, rival.signs) == ("mine", 1)
    assert keys(rival.keys) == [("base_model", 1), ("sequence_len", 2)]
    assert tuple((d.name, d.as_taken, d.as_this) for d in rival.differs) == matters
    assert found.sure == ("likely" if matters else "certain")
    text = as_text(page([found], 0, verbose=False), Style())
    assert ("it makes a difference: micro_batch_size 2 or 4" in text) == bool(matters)
    assert ("it makes no difference" in text) != bool(matters)


def test_more_signs_win_over_the_name():
    rules = {"a.rules": OWN.format(binding="detect has($.micro_batch_size)")}
    found = told(AXOLOTL.format(2), rules=rules)
    assert found.framework == "mine"
    assert found.also[0].framework == "axolotl"
    assert found.why != ""


NEAREST = [
    (
        "model: a\ntensor_parallel_size: 2\n",
        "vllm",
        ["model"],
        [["gpu_memory_utilization", "max_model_len"]],
        [],
    ),
    ("output_dir: a\n", "transformers", ["output_dir"], None, []),
    (
        "base_model: a\nmicro_batch: 2\n",
        "axolotl",
        ["base_model"],
        [["micro_batch_size"]],
        [],
    ),
    (
        "model: {name: a, flavor: 8B}\ntraining: {batch_size: 2}\n",
        "torchtitan",
        ["model.flavor", "training"],
        [],
        ["training.batch_size"],
    ),
]


@pytest.mark.parametrize(("text", "name", "has", "lacks", "against"), NEAREST)
def test_what_is_nearest(text, name, has, lacks, against):
    path = "c.yaml"
    if name == "torchtitan":
        text, path = '[model]\nname = "a"\nflavor = "8B"\n[training]\nbatch_size = 2\n', "c.toml"
    found = told(text, path)
    assert (found.framework, found.by, found.sure) == (None, "nothing", None)
    near = next(one for one in found.nearest if one.framework == name)
    assert [key for key, _ in keys(near.keys)] == has
    assert lacks is None or [list(group) for group in near.lacks] == lacks
    assert [key for key, _ in keys(near.against)] == against
    assert f"nearest   {name}: has " in as_text(page([found], 0, verbose=False), Style())


def test_the_nearest_is_claimed_once_it_has_what_it_lacks():
    """What is said to be missing is what was missing."""
    for text, name, _, lacks, _ in NEAREST:
        if lacks:
            more = "".join(f"{group[0]}: 1\n" for group in lacks)
            assert told(text + more).framework == name


def test_nothing_is_near_nothing():
    assert told("a: 1\n").nearest == ()
    assert told("- 1\n").nearest == ()
    found = told("a: [1\n")
    assert found.error is not None
    assert "broken    " in as_text(page([found], 0, verbose=False), Style())


def test_a_flag_goes_before_the_content():
    found = told(AXOLOTL.format(2), framework="trl")
    assert (found.framework, found.by, found.sure) == ("trl", "flag", None)
    assert [claim.framework for claim in found.also] == ["axolotl"]
    assert "trl, set by --framework" in as_text(page([found], 0, verbose=False), Style())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    run = Run(load())
    found = []
    cases = tmp_path_factory.mktemp("cases")
    for rule in run.pack.rules:
        page_of(rule.code).write_files(cases / rule.code)
    for path in sorted(path for folder in (cases, *FOLDERS) for path in folder.rglob("*")):
        if path.suffix not in (".yaml", ".yml", ".json", ".toml", ".sh", ".sbatch"):
            continue
        try:
            file = read_text(path.read_text("utf-8"), str(path))
        except UnicodeDecodeError:
            continue
        found += [(document, recognition(run, document, None, "", None)) for document in file.documents]
    assert len(found) > 100
    return run, found


def test_it_says_what_check_takes_files_for(whole):
    run, found = whole
    for document, one in found:
        assert one.framework == Run(run.pack).recognise(document), one.path
        assert (one.sure is None) == (one.framework is None), one.path
        assert bool(one.keys) == (one.framework is not None) or one.framework == "sb3", one.path


def test_keys_stand_where_it_says(whole):
    for document, one in whole[1]:
        if document.format != "yaml" or "&" in document.file.text:
            continue
        lines = document.file.text.splitlines()
        for key in one.keys:
            if key.line is not None:
                assert key.key.rpartition(".")[2].strip('"') in lines[key.line - 1], (one.path, key)


def test_json_is_what_the_schema_says(whole):
    own = {"a.rules": OWN.format(binding="micro_batch_size <- 4\n  save_limit <- 4")}
    more = [told(AXOLOTL.format(2), rules=own), told("a: [1\n"), told(AXOLOTL.format(2), framework="trl")]
    text = as_json({"version": 1, "documents": encode([*(one for _, one in whole[1]), *more])})
    assert text.isascii()
    data = json.loads(text)
    Draft202012Validator(SCHEMA).validate(data)
    assert data["documents"][-3]["also"][0]["differs"] == [
        {"name": "micro_batch_size", "as_taken": "2", "as_this": "4"}
    ]


def test_the_text_keeps_within_its_width(whole):
    text = as_text(page([one for _, one in whole[1]], 3, verbose=True), Style(width=80))
    long = [line for line in text.splitlines() if len(line) > 80 and line.startswith(" ")]
    assert long == []
    assert "\n" + " " * 12 in text, "nothing had to be wrapped"


def test_through_the_command(cfglint, folder):
    (folder / "a.yaml").write_text(AXOLOTL.format(2))
    (folder / "b.yaml").write_text("output_dir: x\n")
    done = cfglint("frameworks", ".")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "a.yaml: axolotl, certain (2 matching keys)\n"
        "  matched   base_model (line 1), micro_batch_size (line 3)\n"
        "1 document: 1 axolotl; 1 more file not recognised; --verbose lists them\n"
    )
    done = cfglint("frameworks", "b.yaml")
    assert done.returncode == 1
    assert done.stdout.startswith("b.yaml: no framework\n  nearest   ")
    (folder / "cfglint.toml").write_text('[frameworks]\n"b.*" = "trl"\n')
    done = cfglint("frameworks", "b.yaml", "--format", "json")
    assert done.returncode == 0
    (one,) = json.loads(done.stdout)["documents"]
    assert (one["framework"], one["by"], one["glob"], one["sure"]) == ("trl", "settings", "b.*", None)
    done = cfglint("frameworks", "b.yaml", "--framework", "verl")
    assert done.stdout.startswith("b.yaml: verl, set by --framework\n")
    done = cfglint("frameworks", "nowhere.yaml", "a.yaml")
    assert done.returncode == 2
    assert "nowhere.yaml: no such file or folder" in done.stderr
    assert "a.yaml: axolotl" in done.stdout
    done = cfglint("frameworks", "a.yaml", "--framework", "axolotle")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown framework 'axolotle'; did you mean 'axolotl'?" in done.stderr
    done = cfglint("frameworks", "--format", "json")
    assert done.returncode == 2
    assert "cfglint frameworks PATH --format json" in done.stderr
    done = cfglint("frameworks")
    assert done.returncode == 0
    assert done.stdout.startswith("name ")


def test_what_is_not_shown_is_not_looked_for(folder, monkeypatch, capsys):
    """What a file lacks costs more than all else, and most files of a folder are no framework's."""
    asked = []
    monkeypatch.setattr("cfglint.features.catalogue.recognition._nearest", lambda *_: asked.append(1) or ())
    for number in range(3):
        (folder / f"{number}.yaml").write_text("output_dir: x\n")
    monkeypatch.chdir(folder)
    assert main(["frameworks", "."]) == 0
    assert not asked
    assert main(["frameworks", ".", "--verbose"]) == 0
    assert len(asked) == 3
    assert "3 more" not in capsys.readouterr().out.splitlines()[-1]


def test_a_file_without_any_of_the_keys_is_asked_no_condition(monkeypatch):
    """Each condition is evaluated on its own, so that only those are tried that a file's keys may meet."""
    tried = []
    monkeypatch.setattr("cfglint.features.catalogue.recognition._Asked.lacking", lambda *a: tried.append(a))
    assert told("a: 1\nb: {c: 2}\n").nearest == ()
    assert not tried


@pytest.mark.parametrize(
    ("program", "framework"),
    [("pretrain_gpt.py", "megatron"), ("../analyze_data.py", None), ("tools/preprocess_data.py", None)],
)
def test_a_program_that_reads_data_alone_is_no_training(program, framework):
    flags = (
        "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --micro-batch-size 8"
    )
    found = told(f"python {program} {flags} --global-batch-size 8 --train-iters 10 --lr 1e-4\n", "a.sh")
    assert found.framework == framework
