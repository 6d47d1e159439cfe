"""Functions that return a config of torchtitan's: what is read is what Python makes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cfglint.document.edits import brings, insert_key, replace_value
from cfglint.document.reading import Library, read, read_text
from cfglint.document.scalars import PYTHON
from cfglint.document.tree import Missing, Several, child, target
from cfglint.document.view import MappingView, View
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import needs_of
from cfglint.text import apply_edits

HEAD = """
import copy
from dataclasses import fields, replace
from torchtitan.components.optimizer import default_adamw
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer

def base() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B", attn_backend="flex"),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192, steps=1000),
        activation_checkpoint=SelectiveAC.Config(),
    )
"""
# Stands in for torchtitan: every call of it makes an object that keeps what it is given, and what is set.
STUBS = """
import dataclasses, json, sys, types
class Made:
    def __init__(self, name="", words=(), named=(), **more):
        self.__dict__.update(_name=name, _words=list(words), _named={**dict(named), **more})
    def __getattr__(self, key):
        if key.startswith("__"): raise AttributeError(key)
        return self._named.setdefault(key, Made())
    def __setattr__(self, key, value): self._named[key] = value
    def __deepcopy__(self, memo):
        import copy
        return Made(self._name, self._words, copy.deepcopy(self._named, memo))
class Stub:
    def __init__(self, name): self.name = name
    def __getattr__(self, key): return Stub(f"{self.name}.{key}")
    def __call__(self, *words, **named): return Made(self.name, words, named)
class Module(types.ModuleType):
    __path__ = []
    def __getattr__(self, key):
        if key.startswith("__"): raise AttributeError(key)
        return Stub(f"{self.__name__}.{key}")
for name in ("", ".trainer", ".config", ".models", ".models.llama3", ".components", ".components.optimizer",
             ".distributed", ".distributed.activation_checkpoint"):
    sys.modules["torchtitan" + name] = Module("torchtitan" + name)
real, names = dataclasses.replace, dataclasses.fields
dataclasses.replace = lambda x, **new: Made(x._name, x._words, {**x._named, **new})
dataclasses.fields = lambda x: [types.SimpleNamespace(name=name) for name in x._named]
def plain(value):
    if isinstance(value, Made):
        found = {key: plain(inner) for key, inner in value._named.items()}
        if value._words: found["flavor"] = value._words[0]
        return {key: inner for key, inner in found.items() if inner != {}} | (
            {"class": value._name.removesuffix(".Config").rpartition(".")[2]} if value._name else {})
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
names = {}
exec(compile(sys.stdin.read(), "program", "exec"), names)
own = [f.__code__ for f in names.values() if isinstance(f, types.FunctionType)]
own = [code.co_name for code in own if code.co_filename == "program" and not code.co_argcount]
print(json.dumps({name: plain(names[name]()) for name in own if not name.startswith("_")}))
"""


def made(program: str) -> dict[str, dict[str, object]]:
    """Return what the functions of a program return when they really run, with stubs for torchtitan."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            STUBS,
        ],
        input=program,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def functions(program: str, files: dict[str, str] | None = None):
    """Return the documents of a program by their functions; ``files`` are others of the repository."""
    documents = read_text(program, "config_registry.py", scripts=(files or {}).get).documents
    return {seen(document, "python", "function"): document for document in documents}


def seen(document, *path):
    """Return a value as the frameworks' blocks see it; ``?`` is what is not known."""
    view = View(document, PYTHON)
    value = view.get(path)
    if isinstance(value, Missing):
        return "?"
    if isinstance(value, MappingView):
        return {key: seen(document, *path, key) for key in view.keys(path)}
    return ["?" if isinstance(x, Missing) else x for x in value] if isinstance(value, list) else value


PROGRAMS = {
    "attributes": """
def f():
    config = base()
    config.training.steps = 5
    config.parallelism.tensor_parallel_degree = 4
    config.compile.enable = True
    return config
""",
    "sections": """
def f() -> Trainer.Config:
    config = base()
    config.parallelism = ParallelismConfig(pipeline_parallel_degree=2)
    config.parallelism.context_parallel_degree = 2
    config.activation_checkpoint = None
    config.optimizer = default_adamw(lr=3e-4)
    config.model_spec = model_registry("70B")
    return config
""",
    "replace": """
def f():
    config = base()
    return replace(config, training=replace(config.training, steps=7), activation_checkpoint=FullAC.Config())

def g():
    first = base()
    second = copy.deepcopy(first)
    second.training.steps = 3
    return first
""",
    "helpers": """
def _with(flavor, *, steps=20) -> Trainer.Config:
    config = base()
    config.model_spec = model_registry(flavor)
    config.training.steps = steps
    return config

def f():
    return _with("1B")

def g():
    return _with("3B", steps=2 * 30)

def slow(config):
    config.compile.enable = False

def h():
    config = _with("8B")
    slow(config)
    return config
""",
    "fields": """
class Mine(Trainer.Config if False else object):
    pass

def _again(config):
    d = {f.name: getattr(config, f.name) for f in fields(config)}
    d["training"] = replace(config.training, steps=9)
    ac = d.get("activation_checkpoint")
    if ac is not None:
        d["activation_checkpoint"] = FullAC.Config()
    d.pop("model_spec")
    return Trainer.Config(**d)

def f():
    config = base()
    config.model_spec = model_registry("8B")
    config = _again(config)
    config.model_spec = model_registry("70B")
    return config
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_read_is_what_python_makes(name):
    program = HEAD + PROGRAMS[name]
    real, read_of = made(program), functions(program)
    real = {key: value for key, value in real.items() if isinstance(value, dict)}
    assert real.keys() == read_of.keys()
    for key, values in real.items():
        document = read_of[key]
        assert not document.unread
        for section, value in values.items():
            if section == "class":
                continue
            got = seen(document, section)
            if section == "model_spec":
                got = {k: v for k, v in got.items() if k not in ("name", "class")} | {"class": value["class"]}
            assert got == value, (key, section)


UNKNOWN = [
    "config = base()\n    for key in keys():\n        setattr(config.training, key, 1)",
    "import os\n    config = base()\n    if os.environ.get('X'):\n        config.training.steps = 1",
    "from my_team import tune\n    config = base()\n    tune(config)",
    "from my_team import tune\n    config = base()\n    tune(config.training)",
    "from my_team import steps\n    config = base()\n    config.training.steps = steps",
    "config = base()\n    config.training.steps *= 2",
    "from my_team import training\n    config = base()\n    config.training = training()",
]


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_is_not_simple_is_unknown(body):
    document = functions(HEAD + f"\ndef f() -> Trainer.Config:\n    {body}\n    return config\n")["f"]
    assert seen(document, "training", "steps") == "?"


@pytest.mark.parametrize(
    ("kind", "steps"), [("SelectiveAC.Config", 7), ("FullAC.Config", "?"), ("object", "?")]
)
def test_what_a_class_makes_is_its_instance(kind, steps):
    body = f"    config = base()\n    if isinstance(config.activation_checkpoint, {kind}):\n"
    program = (
        f"{HEAD}\ndef f() -> Trainer.Config:\n{body}        config.training.steps = 7\n    return config\n"
    )
    assert seen(functions(program)["f"], "training", "steps") == steps


def test_a_changed_model_is_not_the_flavor():
    document = functions(
        HEAD + "\ndef f():\n    c = base()\n    c.model_spec.model.dim = 64\n    return c\n"
    )["f"]
    assert seen(document, "model_spec", "flavor") == "?"
    assert seen(document, "model_spec", "name") == "llama3"


@pytest.mark.parametrize(
    "program",
    [
        "from my.trainer import Trainer\n\ndef f() -> Trainer.Config:\n    return Trainer.Config(training=1)\n",  # noqa: E501
        HEAD.replace("from torchtitan.", "from another."),
        HEAD.replace("def base()", "def _base()"),
        HEAD.replace("def base()", "def base(steps)"),
        HEAD.replace("def base()", "class Base:\n  def base()").replace("    return", "      return"),
        "from torchtitan.config import TrainingConfig\n\ndef f():\n    return TrainingConfig(steps=1)\n",
        HEAD.replace("torchtitan.trainer", "torchtitan.experiments.rl.controller"),
    ],
)
def test_other_functions_are_not_taken(program):
    assert not functions(program)


# ── several files ──────────────────────────────────────────────────────────────────────────────────────────
TEAM = """
from team.base import eight
from torchtitan.trainer import Trainer

def f() -> Trainer.Config:
    config = eight(steps=50)
    config.parallelism.tensor_parallel_degree = 2
    return config
"""
BASE = (
    HEAD.replace("from torchtitan.models.llama3", "from .models")
    .replace("def base()", "def eight(*, steps=10)")
    .replace("steps=1000", "steps=steps")
)
SPECS = (
    "def model_registry(flavor, attn_backend='sdpa'):\n    return ModelSpec(name='qwen3', flavor=flavor)\n"
)


def test_a_function_of_another_file_is_read_at_its_call():
    document = functions(TEAM, {"team/base.py": BASE, "team/models/__init__.py": SPECS})["f"]
    assert seen(document, "training") == {
        "num_tokens_per_microbatch_per_dp_rank": 16384,
        "steps": 50,
        "class": "TrainingConfig",
    }
    assert seen(document, "model_spec", "name") == "qwen3"
    assert seen(document, "model_spec", "attn_backend") == "flex"
    node = target(child(child(document.root, "training"), "num_tokens_per_microbatch_per_dp_rank"))
    assert TEAM[node.start : node.end] == "eight(steps=50)"
    assert replace_value(document, node, 8192, PYTHON) is None
    assert insert_key(document, ("training", "disable_cuda_graphs"), True, PYTHON) is None


def test_a_function_that_is_not_here_is_unknown():
    document = functions(TEAM)["f"]
    assert seen(document, "training", "steps") == "?"
    assert seen(document, "parallelism", "tensor_parallel_degree") == 2
    assert seen(document, "parallelism", "pipeline_parallel_degree") == "?"


def test_literals_are_edited_in_place_for_all_configs_that_read_them():
    program = HEAD + "\ndef f():\n    config = base()\n    config.compile.enable = True\n    return config\n"
    found = functions(program)
    own = target(child(child(found["f"].root, "compile"), "enable"))
    edit = replace_value(found["f"], own, False, PYTHON)
    assert "config.compile.enable = False" in apply_edits(program, [edit])
    for document in found.values():
        shared = target(child(child(document.root, "training"), "steps"))
        assert isinstance(shared, Several)
        assert "steps=5)" in apply_edits(program, [replace_value(document, shared, 5, PYTHON)])
        assert document.sites["training",].several
    alone = functions(HEAD)["base"]
    new = insert_key(alone, ("training", "dtype"), "bfloat16", PYTHON)
    assert 'steps=1000, dtype="bfloat16")' in apply_edits(HEAD, [new])


POLICY = """
def g():
    config = base()
    config.activation_checkpoint = SelectiveAC.Config()
    config.training = TrainingConfig(num_tokens_per_microbatch_per_dp_rank=4 * 4096, steps=2 * 3)
    return config
"""


def test_a_product_keeps_its_factor_and_a_class_brings_its_import():
    program = HEAD.replace("import FullAC, SelectiveAC", "import SelectiveAC") + POLICY
    document = functions(program)["g"]
    tokens = target(child(child(document.root, "training"), "num_tokens_per_microbatch_per_dp_rank"))
    assert tokens.text == "16384"
    assert "rank=2 * 4096," in apply_edits(program, [replace_value(document, tokens, 8192, PYTHON)])
    steps = target(child(child(document.root, "training"), "steps"))
    assert replace_value(document, steps, 8, PYTHON) is None
    policy = target(child(child(document.root, "activation_checkpoint"), "class"))
    edit = replace_value(document, policy, "FullAC", PYTHON)
    text = apply_edits(program, [edit, brings(document, edit)])
    assert "import FullAC, SelectiveAC" in text
    assert "config.activation_checkpoint = FullAC.Config()" in text


# ── a launch over a function ───────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def pack():
    return load()


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("", "max_steps", 1000),
        ("--training.steps 7", "max_steps", 7),
        ("", "torchtitan_config.micro", 16384),
        ("", "model_path", "meta-llama/Llama-3.1-8B"),
        ("", "gradient_checkpointing", "selective"),
        ("activation-checkpoint:full", "gradient_checkpointing", "full"),
        ("--parallelism.tensor_parallel_degree=4", "train_tp", 4),
        ("", "train_tp", 1),
        ("--compile.enable", "compile", True),
    ],
)
@pytest.mark.parametrize("module", ["llama3", "torchtitan.models.llama3"])
def test_flags_lie_over_the_function(pack, module, flags, name, value):
    files = {"torchtitan/models/llama3/config_registry.py": HEAD.encode()}
    run = Run(pack, library=Library(files.get))
    text = f"torchrun --nproc_per_node=8 -m torchtitan.train --module {module} --config base {flags}\n"
    (subject,) = run.subjects(read(text.encode(), "train.sh"), judge_broken=False)
    assert subject.framework == "torchtitan_config"
    assert run.judged(subject)[0].values[name] == value


def test_the_memory_of_a_traced_step_is_a_range(pack):
    traced = "torchtitan.experiments.graph_trainer.trainer import GraphTrainer as Trainer"
    needs = []
    whole = HEAD.replace("        training=", "        optimizer=default_adamw(lr=1e-3),\n        training=")
    for program in (whole, whole.replace("torchtitan.trainer import Trainer", traced)):
        run = Run(pack, [parse_target("h100-sxm:8")])
        (subject,) = run.subjects(read_text(program, "config_registry.py"), judge_broken=True)
        total = run.judged(subject)[0].values["need.total"]
        assert not needs_of(total)
        needs.append(total)
    plain, graph = needs
    assert graph.lo < plain.lo
    assert plain.hi < graph.hi


_WRAPPED = """
def f():
    config = base()
    spec = config.model_spec
    {change}
    names = {{f.name: getattr(spec.model, f.name) for f in fields(spec.model)}}
    config.model_spec = replace(spec, model=type(spec.model)(**names))
    return config
"""


@pytest.mark.parametrize(("change", "flavor"), [("pass", "8B"), ("spec.model.n_layers = 2", "?")])
def test_a_model_with_the_same_fields_in_another_class_keeps_its_flavor(change: str, flavor: str) -> None:
    program = HEAD + _WRAPPED.format(change=change)
    assert seen(functions(program)["f"], "model_spec", "flavor") == flavor
