"""Models by id, by path, from the Hub's cache and online; what is found first, and at what cost."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from cfglint import files
from cfglint.errors import UsageError
from cfglint.lang.values import Interval
from cfglint.models import COLUMNS
from cfglint.models.hf_config import kept, ready
from cfglint.models.registry import (
    CACHED,
    CATALOGUE,
    FETCHED,
    NAMED,
    TABLES,
    Models,
    catalogue,
    find,
    near,
)
from cfglint.models.size import active_params, params

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "gpt2", "phi", "phi3", "olmo2")
FAMILIES += ("mixtral", "qwen3_moe")
QWEN = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
PARAMS = 494_032_768

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = (ROOT / "examples" / "grpo_one_gpu.yaml").read_text("utf-8")
NAMELESS = "my-org/policy"


def written(folder, config=QWEN):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return folder


def cached(home, name=NAMELESS, config=QWEN, revision="abc123"):
    base = home / ("models--" + name.replace("/", "--"))
    (base / "refs").mkdir(parents=True)
    (base / "refs" / "main").write_text(revision)
    written(base / "snapshots" / revision, config)
    return home


@pytest.fixture
def quiet(tmp_path):
    """An environment whose caches are empty."""
    return {"HOME": str(tmp_path / "home"), "HF_HOME": str(tmp_path / "hf")}


@pytest.mark.parametrize("id_", [i for i, row in catalogue().items() if row["family"] in FAMILIES])
def test_the_catalogue_is_as_the_closed_form_counts(id_):
    row = catalogue()[id_]
    if "-vl-" in id_:  # its tower for images comes on top
        return
    assert params(row["family"], row) == row["params"]
    assert active_params(row["family"], row) == row["active_params"]


def test_a_row_has_every_column():
    for id_, row in catalogue().items():
        assert set(COLUMNS) <= set(row), id_
        assert (row["active_params"] == row["params"]) is (row["experts"] == 0)
    assert find(" Qwen/qwen2.5-0.5b/ ")["params"] == PARAMS
    assert TABLES["models"] is find
    assert find.source_of("Qwen/Qwen2.5-0.5B") == CATALOGUE


def test_without_the_disk_a_path_is_a_name(tmp_path, monkeypatch):
    written(tmp_path / "policy")
    monkeypatch.chdir(tmp_path)
    assert find(str(tmp_path / "policy")) is None
    assert near(TABLES, str(tmp_path), str(tmp_path))["models"] is find


def test_paths(tmp_path, quiet, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "runs" / "policy")
    written(tmp_path / "home" / "policy")
    models = Models([str(tmp_path / "runs")], environ=quiet)
    for key in (
        "policy",
        "./policy",
        "policy/",
        "policy/config.json",
        "~/policy",
        str(tmp_path / "home/policy"),
    ):
        assert models(key)["params"] == PARAMS, key
        assert models.source_of(key).startswith("config.json of "), key
    assert models.source_of("policy") == "config.json of runs/policy", "as seen from here"
    assert models("elsewhere") is None
    assert models("runs/policy") is None, "this folder was not named"
    assert models(str(tmp_path / "gone" / "foo-7B"))["family"] == "unknown"
    for odd in ("\0", "a\0b", "x" * 5000, "..", "/", "~", "~nobody/x", "s3://bucket/policy"):
        assert models(odd) is None, odd


def test_the_folder_of_the_config_comes_first(tmp_path, quiet):
    written(tmp_path / "one" / "policy", {**QWEN, "num_hidden_layers": 1})
    written(tmp_path / "two" / "policy", {**QWEN, "num_hidden_layers": 2})
    written(tmp_path / "here" / "policy", {**QWEN, "num_hidden_layers": 3})
    known = {"models": Models([str(tmp_path / "here")], environ=quiet)}
    assert known["models"]("policy")["layers"] == 3
    for _ in range(2):
        for name, layers in (("one", 1), ("two", 2), ("none", 3)):
            known = near(known, str(tmp_path / name), str(tmp_path / name))
            assert known["models"]("policy")["layers"] == layers, "whatever was looked at before"


def test_what_is_in_the_catalogue_asks_no_disk(tmp_path, monkeypatch, quiet):
    find("Qwen/Qwen2.5-0.5B")
    models = Models([str(tmp_path)], environ=quiet)
    asked = []
    monkeypatch.setattr(files, "is_file", lambda path: asked.append(path) or False)
    monkeypatch.setattr("builtins.open", lambda path, *_, **__: asked.append(path) or 1 / 0)
    assert models("Qwen/Qwen2.5-0.5B")["params"] == PARAMS
    assert models.source_of("Qwen/Qwen2.5-0.5B") == CATALOGUE
    assert not asked
    assert models("/ckpt/foo-7B")
    assert models("/ckpt/foo-7B")
    assert asked == ["/ckpt/foo-7B/config.json"], "one stat, once"


@pytest.mark.parametrize(
    ("environ", "at"),
    [
        ({"HF_HUB_CACHE": "{}/a", "HF_HOME": "{}/b"}, "a"),
        ({"HUGGINGFACE_HUB_CACHE": "{}/a", "HF_HOME": "{}/b"}, "a"),
        ({"HF_HOME": "{}/b", "HOME": "{}"}, "b/hub"),
        ({"HF_HOME": "~/b", "HOME": "{}"}, "b/hub"),
        ({"XDG_CACHE_HOME": "{}/x", "HOME": "{}"}, "x/huggingface/hub"),
        ({"HOME": "{}"}, ".cache/huggingface/hub"),
        ({"HOME": "{}", "HF_HOME": ""}, ".cache/huggingface/hub"),
    ],
)
def test_the_cache_of_the_hub(tmp_path, environ, at):
    cached(tmp_path / at)
    models = Models(environ={key: value.format(tmp_path) for key, value in environ.items()})
    assert models(NAMELESS)["params"] == PARAMS
    assert models.source_of(NAMELESS) == CACHED
    assert models("my-org/other") is None


def test_a_cache_that_is_not_whole(tmp_path):
    cached(tmp_path)
    environ = {"HF_HUB_CACHE": str(tmp_path)}
    (tmp_path / "models--my-org--policy" / "snapshots" / "abc123" / "config.json").unlink()
    assert Models(environ=environ)(NAMELESS) is None
    (tmp_path / "models--my-org--policy" / "refs" / "main").write_bytes(b"\xff")
    assert Models(environ=environ)(NAMELESS) is None
    for name in ("", ".", "..", "../x", "a/b/c", "/abs/path", "a b", "c:\\x"):
        assert kept(name, environ) is None


def test_a_config_that_cannot_be_used_is_told_once_and_its_name_tells(tmp_path, quiet):
    written(tmp_path / "foo-7B", "{")
    told = []
    models = Models([str(tmp_path)], environ=quiet, tell=told.append)
    for _ in range(2):
        assert isinstance(models("foo-7B")["params"], Interval)
        assert models.near(str(tmp_path), str(tmp_path)).source_of("foo-7B") == NAMED
    (line,) = told
    assert "foo-7B/config.json:1:2: not JSON" in line
    assert line.endswith("; until then its size is read from its name")
    assert Models([str(tmp_path)], environ=quiet)("foo-7B"), "and nobody has to listen"


@pytest.fixture
def the_hub(monkeypatch):
    """A stand-in for huggingface_hub: what ``give`` returns or raises."""
    module = types.ModuleType("huggingface_hub")
    asked = []

    def download(name, file):
        asked.append((name, file))
        return module.give(name)

    module.hf_hub_download = download
    errors = types.ModuleType("huggingface_hub.errors")
    errors.LocalEntryNotFoundError = module.Unreachable = type("LocalEntryNotFoundError", (OSError,), {})
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)
    module.asked = asked
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


def test_online(tmp_path, quiet, the_hub):
    path = str(written(tmp_path / "got") / "config.json")
    the_hub.give = lambda _: path
    models = Models(online=True, environ=quiet)
    for _ in range(2):
        assert models(NAMELESS)["params"] == PARAMS
        assert models.source_of(NAMELESS) == FETCHED
    assert the_hub.asked == [(NAMELESS, "config.json")], "once"
    assert models("Qwen/Qwen2.5-0.5B")
    assert models("/gone/foo-7B")
    assert models("s3://bucket/foo-7B")
    assert len(the_hub.asked) == 1, "what is known, and what is no id, is not asked for"
    assert Models(environ=quiet)(NAMELESS) is None, "nothing goes out unasked"
    assert len(the_hub.asked) == 1


def test_online_without_an_answer(quiet, the_hub):
    def refuse(_):
        raise OSError("401 Client Error\nlog in")

    the_hub.give = refuse
    told = []
    models = Models(online=True, environ=quiet, tell=told.append)
    assert models.source_of("my-org/foo-7B") == NAMED
    assert told == ["my-org/foo-7B: the Hugging Face Hub gives no config.json: 401 Client Error"]


def test_a_hub_that_is_out_of_reach_is_asked_once(quiet, the_hub, tmp_path):
    def give(_):
        raise the_hub.Unreachable

    the_hub.give = give
    told = []
    models = Models(online=True, environ=quiet, tell=told.append)
    for name in ("my-org/foo-7B", "my-org/foo-8B", NAMELESS):
        models(name)
        models.near(str(tmp_path), str(tmp_path))(name)
    assert len(the_hub.asked) == len(told) == 1
    assert told[0].endswith("it cannot be reached; check the connection, or run without --online")


def test_online_wants_a_package(monkeypatch, quiet):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError, match=r"pip install 'cfglint-gpu\[online\]'"):
        Models(online=True, environ=quiet)(NAMELESS)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="huggingface_hub, which is not installed"):
        ready()


# ── the command ─────────────────────────────────────────────────────────────────────────────────────────────
NONE = {"HF_HOME": "/nowhere", "HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": ""}


@pytest.fixture
def job(folder):
    """A config in a folder of its own, and a way to name its model."""

    def write(model):
        (folder / "conf").mkdir(exist_ok=True)
        path = folder / "conf" / "grpo.yaml"
        path.write_text(EXAMPLE.replace("Qwen/Qwen2.5-0.5B-Instruct", model))
        return path

    return write


def facts(cfglint, path, *flags, **more):
    done = cfglint("check", path, "--gpu", "a40", "--format", "json", *flags, env=NONE, **more)
    assert done.returncode in (0, 1), done.stderr
    found = {}
    for finding in json.loads(done.stdout)["findings"]:
        found |= {fact["name"]: fact for fact in finding["facts"]}
    return found, done


def test_a_finding_says_that_it_rests_on_the_size_in_a_name(cfglint, job):
    found, _ = facts(cfglint, job("my-org/foo-0.5B"))
    assert found["model.params"]["source"] == "the size in its name"
    assert found["model.vocab"]["source"] == "the size in its name"
    found, _ = facts(cfglint, job("Qwen/Qwen2.5-0.5B-Instruct"))
    assert found["model.params"]["source"] == "catalogue"


def test_a_path_is_seen_from_the_config_first(cfglint, job, folder):
    written(folder / "conf" / "policy")
    found, _ = facts(cfglint, job("./policy"))
    assert found["model.params"]["source"] == "config.json of conf/policy"
    found, _ = facts(cfglint, job("policy"), "--jobs", "2")
    assert found["model.params"]["source"] == "config.json of conf/policy"


def test_model_config_describes_the_model(cfglint, job, folder):
    written(folder / "ckpt")
    path = job("my-org/foo-7B")
    for given in ("ckpt", "ckpt/config.json", folder / "ckpt"):
        found, _ = facts(cfglint, path, "--model-config", given)
        assert found["model.params"]["source"].startswith("config.json of ckpt")
    for command in (["fit"], ["explain", "MEM101"], ["fix", "--diff"]):
        done = cfglint(*command, path, "--gpu", "a40", "--model-config", "ckpt", env=NONE)
        same = cfglint(*command, job("Qwen/Qwen2.5-0.5B"), "--gpu", "a40", env=NONE)
        path = job("my-org/foo-7B")
        assert done.returncode in (0, 1), done.stderr
        if command == ["fit"]:
            assert done.stdout.splitlines()[1:] == same.stdout.splitlines()[1:]
    alone = cfglint("check", path, "--model-config", "ckpt", env=NONE)
    assert alone.returncode in (0, 1), "without a target too"
    (folder / "cfglint.toml").write_text('model-config = "ckpt"\n')
    assert facts(cfglint, path)[0]["model.params"]["source"] == "config.json of ckpt"


@pytest.mark.parametrize("command", [["check"], ["fix"], ["fit"], ["explain", "MEM101"]])
def test_a_wrong_model_config_is_a_usage_error(cfglint, job, folder, command):
    path = job("my-org/foo-7B")
    done = cfglint(*command, path, "--model-config", "none", env=NONE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none: no such file or folder; --model-config takes a config.json" in done.stderr
    written(folder / "ckpt", "{")
    done = cfglint(*command, path, "--model-config", "ckpt", env=NONE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ckpt/config.json:1:2: not JSON" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_stands_beside_and_is_broken_is_told(cfglint, job, folder):
    written(folder / "conf" / "foo-7B", "{}")
    found, done = facts(cfglint, job("./foo-7B"))
    assert "foo-7B/config.json: missing hidden_size" in done.stderr
    assert done.stderr.count("missing") == 1
    assert found["model.params"]["source"] == "the size in its name"
    assert "lacks" not in facts(cfglint, job("./foo-7B"), "--quiet")[1].stderr


def test_online_says_what_it_wants(cfglint, job, folder):
    path = job("my-org/policy")
    (folder / "shadow").mkdir()
    script = (
        "import sys; sys.modules['huggingface_hub'] = None; import importlib.util as u; f = u.find_spec\n"
    )
    script += "u.find_spec = lambda name, *a: None if name == 'huggingface_hub' else f(name, *a)\n"
    script += "from cfglint.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", script, "check", path, "--online", "--no-detect"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "linter"), **NONE},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"pip install 'cfglint-gpu[online]'" in done.stderr


def test_a_clean_check_imports_none_of_it(job):
    path = job("Qwen/Qwen2.5-0.5B-Instruct")
    script = "import sys; from cfglint.cli import main; main(sys.argv[1:])\n"
    script += (
        "print([m for m in sys.modules if m.startswith('cfglint.models.') or m == 'json'], file=sys.stderr)"
    )
    flags = ["check", path, "--no-detect", "--select", "MEM"]
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, flags)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "linter"), **NONE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "['cfglint.models.registry']" in done.stderr, done.stderr


def test_a_copy_has_the_bits_of_the_checkpoint_that_it_is_called_after():
    """Of all Kimi-K2 the one that thinks is published in 4 bits, the others in 8."""
    models = Models(disk=False)
    for name, bits in (
        ("/data/Kimi-K2-Thinking/", 4),
        ("/data/Kimi-K2-Instruct", 8),
        ("/data/Kimi-K2-Thinking-bf16", 0),
        ("moonshotai/Kimi-K2-Thinking", 4),
    ):
        assert models(name)["quantized_bits"] == bits


@pytest.mark.parametrize(
    ("path", "like"),
    [
        ("./out/qwen2.5-7b-stage1", "Qwen/Qwen2.5-7B"),
        ("./out/llama3-8b-dpo/checkpoint-500", "meta-llama/Meta-Llama-3-8B"),
        ("./work/internvl2_5_2b_internlm2_5_1_8b_stage1", "OpenGVLab/InternVL2_5-2B"),
    ],
)
def test_a_folder_is_called_after_its_model(path, like):
    found, known = find(path), find(like)
    assert (found["params"], found["hidden"], found["layers"]) == (
        known["params"], known["hidden"], known["layers"],
    )  # fmt: skip


@pytest.mark.parametrize("path", ["./out/llama-2.7b-sft", "./out/qwen2.5-7b-vl", "./out/Sheared-LLaMA-2.7B"])
def test_a_folder_of_another_model_tells_a_size(path):
    assert find.source_of(path) == NAMED


def test_the_language_model_of_one_that_sees():
    found = find("./work/internvl_chat_v1_5_internlm2_1_8b_pretrain")
    assert found["hidden"] == 2048
    assert found["params"].lo == find("internlm/internlm2-1_8b")["params"]
