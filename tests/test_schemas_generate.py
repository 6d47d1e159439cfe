"""What schemas/generate reads from a framework's sources, on a small framework of our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "schemas" / "generate"

CONSTANTS = """
KINDS = ["slow", "fast"]
KIB = 1 << 10
"""
ENUMS = """
from enum import Enum

class Mode(str, Enum):
    ON = "on"
    OFF = "off"
"""
CONFIG = '''
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, Union

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from toy.constants import KIB, KINDS
from .enums import Mode

Alias = Union[int, str]


@dataclass
class Base:
    seed: int = 1
    _private: int = 0


@dataclass
class Inner(Base):
    """Says something that no schema repeats."""

    lr: float = field(default=1e-5, metadata={"help": "a sentence"})
    kind: str = field(default="slow", metadata={"choices": KINDS})
    mode: Mode = Mode.ON
    either: Alias = 3
    betas: list[float] = field(default_factory=list)
    computed: int = field(init=False)
    rank: int | None = None
    untold: "SomewhereElse" = None
    level: str = "low"
    share: float = 0.5

    def __post_init__(self):
        if self.rank is not None and self.rank < 0:
            raise ValueError
        if self.level not in ["low", "high"]:
            raise ValueError("which level?")
        if not 0 < self.share <= 1:
            raise ValueError


@dataclass
class Root:
    inner: Inner = field(default_factory=Inner)
    other: Optional[Inner] = None
    free: dict = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    buffer: int = 4 * KIB
    choice: Literal["a", "b", 3] | None = "a"


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    workers: int = Field(2, ge=1, le=8, alias="num_workers")
    ratio: Annotated[float, Field(gt=0)] = 0.5
    loose: Annotated[int, BeforeValidator(str)] = 1
    parsed: int = 1

    @field_validator("parsed", mode="before")
    def read(cls, value):
        return int(value)


class Open(BaseModel):
    model_config = {"extra": "allow"}
    x: int = 1
'''
FLAGS = """
import argparse
from toy.config import Root
from toy.constants import KINDS

parser = argparse.ArgumentParser()
parser.add_argument("--micro-batch", type=int, default=4)
parser.add_argument("--adam.kind", choices=KINDS, default=None)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--names", type=str, nargs="+")
for part in ("actor", "critic"):
    parser.add_argument(f"--{part}.lr", type=float)
root_kwargs = get_kwargs(Root)
parser.add_argument("--buffer", **root_kwargs["buffer"])
"""


LEARNER = """
from typing import Callable

class Learner:
    def __init__(
        self,
        name: str,
        rate: float = 0.1,
        schedule: Callable = None,
        most: int | None = None,
        *,
        only: bool = False,
    ):
        pass

def prepared(params):
    steps = int(params["steps"])
    envs = params.get("envs", 1)
    if "noise" in params.keys() and "." in params["steps"]:
        other["kept"] = wrapped(params, "wrapper")
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy").mkdir()
    texts = {"constants": CONSTANTS, "enums": ENUMS, "config": CONFIG, "flags": FLAGS, "learner": LEARNER}
    for name, text in texts.items():
        (folder / "toy" / f"{name}.py").write_text(text)
    sys.path.insert(0, str(FOLDER))
    try:
        import loose
        import merge
        import python
        import shapes
        import sources
        import unions

        package = python.Package(sources.Tree(str(folder), "1", "1"))
        yield package, shapes, merge, loose, unions
    finally:
        sys.path.remove(str(FOLDER))


def record(toy, name, **style):
    package, shapes, *_ = toy
    shaper = shapes.Shaper(package, shapes.Style(**style))
    module = package.module("toy/config.py")
    return shaper.record(module, module.classes[name]), shaper.defs


def test_a_dataclass(toy):
    schema, defs = record(toy, "Root")
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "inner": {"$ref": "#/$defs/Inner"},
        "other": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Inner"}], "default": None},
        "free": {"type": "object", "default": {}},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
        "buffer": {"type": "integer", "default": 4096},
        "choice": {"enum": ["a", "b", 3, None], "default": "a"},
    }
    assert defs["Inner"]["properties"] == {
        "seed": {"type": "integer", "default": 1},
        "lr": {"type": "number", "default": 1e-5},
        "kind": {"enum": ["slow", "fast"], "x-cfglint": {"values": "named"}, "default": "slow"},
        "mode": {"enum": ["on", "off"], "default": "on"},
        "either": {"type": ["integer", "string"], "default": 3},
        "betas": {"type": "array", "items": {"type": "number"}, "default": []},
        "rank": {"type": ["null", "integer"], "default": None},  # `rank < 0` holds under a condition alone
        "untold": {"default": None},
        "level": {"enum": ["low", "high"], "default": "low"},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5},
    }
    assert "sentence" not in str(schema) + str(defs)


def test_a_pydantic_model(toy):
    _, shapes, *_ = toy
    schema, _ = record(toy, "Model", extra=shapes.pydantic_extra("ignored"))
    workers = {"type": "integer", "minimum": 1, "maximum": 8, "default": 2}
    assert schema == {
        "type": "object",
        "properties": {
            "workers": workers,
            "num_workers": workers,
            "ratio": {"type": "number", "exclusiveMinimum": 0, "default": 0.5},
            "loose": {"default": 1},
            "parsed": {},
        },
        "additionalProperties": False,
    }
    assert "additionalProperties" not in record(toy, "Open", extra=shapes.pydantic_extra(None))[0]


def test_flags(toy):
    package, _, _, loose, _ = toy
    schema = loose.nested(loose.flags(package, package.module("toy/flags.py")))
    section = {"type": "object", "additionalProperties": False}
    lr = {**section, "properties": {"lr": {"type": "number"}}}
    assert schema["properties"] == {
        "micro_batch": {"type": "integer", "default": 4},
        "adam": {**section, "properties": {"kind": {"enum": ["slow", "fast", None], "default": None}}},
        "bf16": {"type": "boolean"},
        "names": {"type": ["string", "array"], "items": {"type": "string"}},
        "actor": lr,
        "critic": lr,
        "buffer": {"type": "integer", "default": 4096},
    }


def test_arguments_of_a_constructor_and_keys_taken_out_of_a_mapping(toy):
    package, shapes, _, loose, _ = toy
    shaper = shapes.Shaper(package, shapes.Style())
    module = package.module("toy/learner.py")
    made = loose.arguments(shaper, module, "Learner")["properties"]
    assert made["rate"] == {"type": "number", "default": 0.1}
    assert made["schedule"] == {"default": None}  # a type that is not told
    assert made["most"] == {"type": ["null", "integer"], "default": None}
    assert made["name"] == {"type": "string"}
    assert made["only"] == {"type": "boolean", "default": False}
    assert loose.arguments(shaper, module, "Nobody")["properties"] == {}
    assert loose.taken(package, module, "params") == {"steps", "envs", "wrapper", "noise"}


def test_flags_as_a_program_calls_them(toy):
    *_, loose, _ = toy
    found = [(["a-b", "c"], {"type": "integer"}), (["a-b"], {"type": "string"})]
    flat = loose.flat(iter(found))["properties"]
    assert sorted(flat) == ["a_b", "c"]
    assert flat["a_b"]["type"] == ["integer", "string"]


def test_versions_become_one(toy):
    _, _, merge, *_ = toy
    versions = [
        ("v1", {"r": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2}, "old": {}}}}),
        (
            "v2",
            {"r": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "default": 3}}}},
        ),
        (
            "v3",
            {
                "r": {
                    "type": "object",
                    "properties": {"a": {"type": ["null", "integer"]}, "new": {"type": "boolean"}},
                }
            },
        ),
    ]
    root, defs = merge.one_of(versions, "r")
    assert root["properties"] == {
        "a": {"type": ["null", "integer"]},
        "old": {"$comment": "until v1"},
        "new": {"type": "boolean", "$comment": "since v3"},
    }
    assert defs == {}


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([{"type": "integer"}, {"type": "number"}], {"type": "number"}),
        ([{"enum": ["a"]}, {"type": "string"}], {"type": "string"}),
        ([{"enum": ["a"]}, {"enum": ["b"]}, {"type": "null"}], {"enum": ["a", "b", None]}),
        (
            [{"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 1}],
            {"type": "integer", "minimum": 1},
        ),
        ([{"type": "integer", "minimum": 1}, {"type": "integer"}], {"type": "integer"}),
        ([{"type": "boolean"}, {}], {}),
        ([{"$ref": "#/$defs/A"}, {"type": "object"}], {"type": "object"}),
    ],
)
def test_a_union_takes_all_that_one_takes(toy, parts, whole):
    assert toy[-1].union(parts) == whole


def test_the_script_says_what_it_needs(tmp_path):
    command = [sys.executable, str(FOLDER), "areal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--from areal=DIR" in done.stderr
    done = subprocess.run(
        [*command, "--from", f"areal={tmp_path}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "holds neither a git directory nor the wheel" in done.stderr
    done = subprocess.run([*command, "--from"], capture_output=True, text=True, check=False)
    assert done.returncode == 2


def test_the_release_that_keys_came_with(toy):
    from since import dates, keys_of

    root = {
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]}}
    }
    defs = {"A": {"properties": {"x": {}, "again": {"$ref": "#/$defs/A"}}}}
    keys = set(keys_of(root, defs))
    assert keys == {"a", "a.x", "a.again", "b", "b.x", "b.again"}
    versions = [("v0.2", {"a"}), ("v0.3.0.post1", {"a", "a.x"}), ("v0.4.0", {"b", "b.x"}), ("1dda039b", keys)]
    told = {"0.3.0": ["a.x"], "0.4.0": ["b"], "0.4.0+": ["a.again", "b.again"]}
    assert dates(versions) == {"x-since": told, "x-until": {}}
    assert dates([("v0.2", {"a", "a.x", "c"}), ("v0.3", {"c"})])["x-until"] == {"0.2": ["a"]}
    assert dates([("1dda039b", {"a"}), ("v0.2", {"b"})]) == {}
