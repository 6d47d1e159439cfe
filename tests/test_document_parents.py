"""NeMo-RL's inheritance: `defaults` names files by their paths, and its loader is the reference."""

from __future__ import annotations

import os

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, ListConfig, OmegaConf

from cfglint.document.compose import compose
from cfglint.document.layers import Way
from cfglint.document.reading import Library, read_text
from cfglint.document.scalars import OMEGACONF
from cfglint.document.trace import Trace
from cfglint.document.tree import ABSENT, Missing
from cfglint.document.view import View
from tiers import tried

PARENTS = Way("parents")
BASE = """\
policy:
  size: 8
  tp: 2
  batch: ${mul:${.size}, ${.tp}}
  optim: {name: adamw, kwargs: {lr: 1e-5}}
cluster: {nodes: 1}
"""


def ours(files, path="c.yaml", overrides=()):
    """Return a view of one of several files, and its layers."""
    document = read_text(files[path], path).documents[0]
    library = Library({name: text.encode() for name, text in files.items()}.get)
    layers, left = compose(document, library, PARENTS, overrides)
    return View(document, OMEGACONF, left, {}, layers, OMEGACONF, ("mul", "max")), layers


def theirs(files, path="c.yaml"):
    """Load as nemo_rl/utils/config.py does: parents first, in their order, each over the one before."""
    conf = OmegaConf.create(files[path])
    if "defaults" not in conf:
        return conf
    named = conf.pop("defaults")
    names = [named] if isinstance(named, str) else list(named)
    base = OmegaConf.create({})
    for name in names:
        base = over(base, theirs(files, os.path.normpath(os.path.join(os.path.dirname(path), name))))
    return over(base, conf)


def over(base, conf):
    for key in list(conf):
        if OmegaConf.is_missing(conf, key):
            continue
        if isinstance(conf[key], DictConfig) and conf[key].get("_override_", False):
            conf[key].pop("_override_")
            base.pop(key, None)
    return OmegaConf.merge(base, conf)


def plain(seen, path=()):
    """Return all that a view says, as plain data."""
    value = seen.get(path) if path else None
    if isinstance(value, list):
        return [plain(seen, (*path, i)) for i in range(len(value))]
    if isinstance(value, Missing):
        return "???"
    if not path or type(value).__name__ == "MappingView":
        return {key: plain(seen, (*path, key)) for key in seen.keys(path)}
    return value


def flat(conf):
    if isinstance(conf, DictConfig):
        return {k: "???" if OmegaConf.is_missing(conf, k) else flat(conf[k]) for k in conf}
    return [flat(item) for item in conf] if isinstance(conf, ListConfig) else conf


def test_a_child_is_laid_over_its_parent():
    files = {
        "c.yaml": "defaults: base/b.yaml\npolicy: {size: 4, optim: {kwargs: {wd: 0}}}\n",
        "base/b.yaml": BASE,
    }
    seen, _ = ours(files)
    assert plain(seen) == {
        "policy": {
            "size": 4,
            "tp": 2,
            "batch": 8,
            "optim": {"name": "adamw", "kwargs": {"lr": 1e-5, "wd": 0}},
        },
        "cluster": {"nodes": 1},
    }  # fmt: skip
    assert not seen.has(("defaults",))


def test_of_several_parents_the_last_wins():
    files = {"c.yaml": "defaults: [a.yaml, b.yaml]\n", "a.yaml": "x: 1\ny: 1\n", "b.yaml": "x: 2\n"}
    assert plain(ours(files)[0]) == {"x": 2, "y": 1}


def test_a_section_may_take_the_place_of_the_parents():
    files = {"c.yaml": "defaults: b.yaml\npolicy: {_override_: true, size: 1}\n", "b.yaml": BASE}
    assert plain(ours(files)[0]) == {"policy": {"size": 1}, "cluster": {"nodes": 1}}


def test_paths_start_at_the_file_that_names_them():
    files = {
        "a/c.yaml": "defaults: ../b/d.yaml\n",
        "b/d.yaml": "defaults: e.yaml\ny: 1\n",
        "b/e.yaml": "x: 1\n",
    }
    seen, _ = ours(files, "a/c.yaml")
    assert plain(seen) == {"x": 1, "y": 1}
    assert Trace(seen, ("x",)).where == "b/e.yaml:1 through defaults at b/d.yaml:1, defaults at line 1"


def test_a_parent_that_is_not_there_is_told_and_its_keys_are_unknown():
    seen, layers = ours({"c.yaml": "defaults: gone.yaml\npolicy: {size: 1}\n"})
    assert [(t.kind, t.note) for t in layers.troubles] == [
        ("missing", "gone.yaml was not found next to c.yaml")
    ]
    assert seen.get(("policy", "size")) == 1
    assert isinstance(seen.get(("policy", "tp")), Missing)
    assert seen.awaits(("cluster",)) == "gone.yaml"


def test_without_a_disk_nothing_is_wrong():
    document = read_text("defaults: gone.yaml\na: 1\n", "c.yaml").documents[0]
    layers, _ = compose(document, None, PARENTS)
    assert not layers.troubles
    assert isinstance(View(document, OMEGACONF, [], None, layers).get(("b",)), Missing)


def test_a_text_from_stdin_has_no_folder_to_miss_a_file_in():
    document = read_text("defaults: gone.yaml\n", "<stdin>").documents[0]
    layers, _ = compose(document, Library({}.get), PARENTS)
    assert not layers.troubles


@pytest.mark.parametrize("other", ["c.yaml", "./c.yaml", "d.yaml"])
def test_a_circle_is_told(other):
    files = {"c.yaml": f"defaults: {other}\n", "d.yaml": "defaults: e.yaml\n", "e.yaml": "defaults: d.yaml\n"}
    _, layers = ours(files)
    assert [t.kind for t in layers.troubles] == ["cycle"]
    assert layers.troubles[0].note.startswith("cyclic includes: c.yaml -> ")


def test_a_file_without_parents_is_itself():
    seen, layers = ours({"c.yaml": BASE})
    assert layers is None
    assert seen.get(("policy", "batch")) == 16
    assert seen.get(("nothing",)) is ABSENT


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.integers(0, 9) | st.none() | st.just("???") | st.lists(st.integers(0, 3), max_size=2)
SECTION = st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=5)
CONTENT = st.dictionaries(KEYS, SECTION, max_size=3)
MARKED = st.builds(
    lambda content, key: (
        {**content, key: {**content[key], "_override_": True}}
        if isinstance(content.get(key), dict)
        else content
    ),
    CONTENT,
    KEYS,
)
NAMED = st.lists(st.sampled_from(["p.yaml", "d/q.yaml"]), max_size=2)


@settings(deadline=None, max_examples=tried(400), derandomize=True)
@given(NAMED, CONTENT | MARKED, CONTENT | MARKED, CONTENT | MARKED, CONTENT)
def test_random_families_are_nemo_rls(named, child, one, two, root):
    def text(content, names):
        defaults = {} if not names else {"defaults": names[0] if len(names) == 1 else names}
        return yaml.dump({**defaults, **content}, sort_keys=False)

    files = {
        "c.yaml": text(child, named),
        "p.yaml": text(one, ["d/r.yaml"]),
        "d/q.yaml": text(two, ["r.yaml"]),
        "d/r.yaml": text(root, []),
    }
    try:
        expected = flat(theirs(files))
    except TypeError:  # a mapping over a list, or the other way round: OmegaConf stops
        return
    seen, _ = ours(files)
    assert plain(seen) == expected
