"""Interpolation: every value is OmegaConf's own, on hand-made, random and real documents."""

from __future__ import annotations

import glob
import os
import warnings

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf import __version__ as omegaconf_version

from cfglint.document.reading import read_text
from cfglint.document.resolvers import resolved
from cfglint.document.scalars import OMEGACONF
from cfglint.document.trace import find_defects
from cfglint.document.tree import File, Missing
from cfglint.document.view import MappingView, View
from cfglint.document.yaml import parse_yaml
from tiers import tried
from viewed import path, same, value, view

SHARED = os.environ.get("CFGLINT_SHARED")
NEWER = pytest.mark.skipif(
    omegaconf_version < "2.4", reason="omegaconf 2.3, which hydra-core brings, does not count from the end"
)
shared = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED is unset: no corpus to read")


INTERPOLATED = """\
a: 1
f: 1e-5
t: text
l: [10, {k: v}]
m: {x: 1, rel: "${.x}", up: "${..a}", deep: {up: "${...t}", own: "${..x}"}}
"""


class TestInterpolation:
    @pytest.mark.parametrize(
        "text",
        [
            "${a}",
            "${f}",
            "p/${t}/${a}",
            "${l[0]}",
            "${l.0}",
            "${l[1].k}",
            pytest.param("${l[-1].k}", marks=NEWER),
            "${m.rel}",
            "${m.up}",
            "${m.deep.up}",
            "${m.deep.own}",
            "${ a }",
            "${m[x]}",
            "${[m].x}",
            "${m.${k}}",
            "${oc.env:SET}",
            "${oc.env:UNSET,7}",
            "${oc.env:UNSET,null}",
            "${oc.env:UNSET,'a b'}",
            "${oc.select:zz}",
            "${oc.select:zz,7}",
            "${oc.select:zz,1e-5}",
            "${oc.select:zz,a b}",
            "${oc.select:zz,${a}}",
            "${oc.select:a,7}",
            "${oc.select:zz,true}",
            "${oc.select:zz,null}",
            "${oc.select:zz,[1, a]}",
            "${oc.select:zz,[]}",
            "${oc.select:zz,'${t}!'}",
            "${oc.select:zz,1_000}",
            "${oc.select:zz,.5}",
            "${oc.select:zz,inf}",
            "${oc.select:zz,a:b/c.d}",
            "${oc.select:m.x}",
            "${oc.select:'m.x'}",
            "${oc.select:mand,3}",
            "${oc.select:.a}",
            r"\${a}",
            r"\\${a}",
            r"\\\${a}",
            r"x\y${a}",
            "${a}$",
            "$${a}",
            "${a}}",
            "cost $5 ${a}",
            "{${a}}",
            "${oc.env:UNSET,${oc.env:SET}}",
            "${oc.env:${name}}",
            "${oc.env:UNSET,a${a}b}",
            r"${oc.env:UNSET,a\,b}",
        ],
    )
    def test_value_is_omegaconfs(self, text):
        whole = (
            INTERPOLATED + "k: x\nmand: ???\nname: SET\nv: " + yaml.dump(text, default_style="'", width=1000)
        )
        environ = {"SET": "from env"}
        os.environ["SET"] = "from env"
        expected = OmegaConf.create(whole).v
        if isinstance(expected, ListConfig):
            expected = OmegaConf.to_container(expected)
        assert same(value(whole, "v", environ=environ), expected)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("${zz}", "absent"),
            ("${a.b}", "absent"),
            ("${l.9}", "absent"),
            ("${....a}", "absent"),
            ("${v}", "cycle"),
            ("x${v}", "cycle"),
            ("${mand}", "missing"),
            ("${mand.x}", "missing"),
            ("a/${mand}", "missing"),
            ("${oc.env:UNSET}", "env"),
            ("${mul:2,3}", "resolver"),
            ("${oc.decode:1}", "resolver"),
            ("${", "malformed"),
            ("${}", "malformed"),
            ("${a", "malformed"),
            ("${a b}", "malformed"),
            ("${oc.env:'x}", "malformed"),
            ("x ${m}", "malformed"),
        ],
    )
    def test_what_cannot_be_known_is_missing(self, text, kind):
        whole = INTERPOLATED + "mand: ???\nv: " + yaml.dump(text, default_style="'")
        got = value(whole, "v", environ={})
        assert isinstance(got, Missing)
        assert got.kind == kind
        if text != "x ${m}":
            with pytest.raises(Exception, match=r"."):
                _ = OmegaConf.create(whole).v

    def test_the_names_that_are_needed(self):
        assert value("a: ${oc.env:X}\n", "a").needs == ("env.X",)
        assert value("a: p/${b}\nb: ${oc.env:X}\n", "a").needs == ("env.X",)
        assert value("a: ${b.c}\nb:\n  c: ???\n", "a").needs == ("b.c",)
        assert "mul" in value("a: ${mul:1,2}\n", "a").why

    def test_a_cycle_names_its_way(self):
        text = "a: ${b}\nb: x${c}\nc: ${a}\nd: ${a}\n"
        assert value(text, "a").why == "interpolation cycle a -> b -> c -> a"
        assert [d.key for d in find_defects(view(text))["cycles"]] == ["a"]

    def test_a_reference_to_a_parent(self):
        assert value("a: {b: '${a}'}\n", "a.b").kind == "cycle"
        assert value("a: {b: '${a.c}', c: 1}\n", "a.b") == 1

    def test_a_mapping_is_entered_through_references(self):
        text = "a: {x: {y: 1}}\nb: ${a}\nc: ${b.x}\nd: ${c.y}\nl: ['${a}']\n"
        seen = view(text)
        assert [seen.get(path(p)) for p in ("b.x.y", "c.y", "d", "l.0.x.y")] == [1, 1, 1, 1]
        assert seen.get(("b",)).keys() == ["x"]

    def test_relative_references_in_an_alias_start_at_its_use(self):
        text = "p: {x: 1, i: &i {v: '${..x}'}}\nq: {x: 2, i: *i}\nr: {x: 3, j: '${p.i}'}\n"
        conf = OmegaConf.create(text)
        for where in ("p.i.v", "q.i.v", "r.j.v"):
            assert value(text, where) == OmegaConf.select(conf, where)


KEYS = st.sampled_from(["a", "b", "c", "d"])
TARGETS = st.lists(KEYS | st.sampled_from(["0", "1"]), min_size=1, max_size=3).map(".".join)
REFERENCES = st.builds(
    lambda dots, target: f"${{{dots}{target}}}", st.sampled_from(["", "", ".", "..", "..."]), TARGETS
)
CALLS = st.builds(
    lambda name, key, default: f"${{{name}:{key}{default}}}",
    st.sampled_from(["oc.select", "oc.env"]),
    TARGETS,
    st.sampled_from(["", ",1", ",null", ",x y", ",'q'", ",${a}", ",1e3", ",[1, b]"]),
)
LEAVES = (
    st.sampled_from([1, 2.5, True, None, "t", "???", "1e-5", r"\${a}"])
    | REFERENCES
    | REFERENCES
    | CALLS
    | st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "p/", "\\\\"]),
        REFERENCES,
        st.sampled_from(["", "/q"]) | REFERENCES,
    )
)
DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES,
        lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3),
        max_leaves=8,
    ),
    min_size=1,
    max_size=4,
)


def compare(seen, conf, where):
    """Compare every value below ``conf`` with ours; return how many there were."""
    count = 0
    waiting = [(where, conf)]
    while waiting:
        where, conf = waiting.pop()
        for key in list(conf.keys()) if isinstance(conf, DictConfig) else range(len(conf)):
            inner = (*where, key)
            if len(inner) > 12:
                continue
            ours = seen.get(inner)
            count += 1
            try:
                theirs = conf[key]
            except Exception as error:  # noqa: BLE001 (each kind of refusal counts)
                if "is not a container" in str(error):
                    continue  # a path through a scalar: OmegaConf refuses some of those, we take the default
                if not isinstance(ours, Missing):
                    pytest.fail(f"{inner}: {ours!r}, and OmegaConf says {error}")
                continue
            if isinstance(ours, Missing) and ("list or mapping" in ours.why or ours.kind == "cycle"):
                assert isinstance(theirs, (str, DictConfig, ListConfig))
                continue  # OmegaConf writes it out as Python would; no config means that
            if isinstance(theirs, DictConfig):
                assert isinstance(ours, MappingView), (inner, ours, theirs)
                assert ours.keys() == [str(k) for k in theirs], inner
                waiting.append((inner, theirs))
            elif isinstance(theirs, ListConfig):
                assert isinstance(ours, list), (inner, ours, theirs)
                assert len(ours) == len(theirs)
                waiting.append((inner, theirs))
            else:
                assert same(ours, theirs), (inner, ours, theirs)
    return count


@settings(deadline=None, max_examples=tried(500), derandomize=True)
@given(DOCUMENTS)
def test_random_documents_are_omegaconfs(tree):
    text = yaml.dump(tree, width=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        conf = OmegaConf.create(text)
        compare(view(text, environ=dict(os.environ)), conf, ())


def register(name, function):
    """Register a resolver by the name that both 2.3 and 2.4 have for that; 2.4 warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        OmegaConf.register_new_resolver(name, function, replace=True)


def evaluated(text):
    return eval(text)


def larger(one, other):
    return max(one, other)


OMEGACONF_FOLDERS = ["areal", "areal_nexthybrid", "llamafactory", "torchtune", "verl"]


@pytest.fixture
def own_resolvers():
    """What a test registers is registered for it alone."""
    yield
    OmegaConf.clear_resolvers()


@shared
@pytest.mark.usefixtures("own_resolvers")
@pytest.mark.parametrize("folder", OMEGACONF_FOLDERS)
def test_every_value_of_the_corpus_is_omegaconfs(folder, monkeypatch):
    """Each file by itself, as OmegaConf reads it: no value differs, and no file is left out."""
    monkeypatch.setenv("WANDB_API_KEY", "key")
    register("eval", evaluated)  # as torchtune's recipe does
    paths = sorted(
        path
        for suffix in ("yaml", "yml")
        for path in glob.glob(os.path.join(SHARED, "corpus", folder, "**", f"*.{suffix}"), recursive=True)
    )
    assert len(paths) > 3
    count = 0
    for file in paths:
        with open(file, "rb") as stream:
            data = stream.read()
        whole = File(file, data.decode(), "yaml", bom=False)  # also what is a launch, and no config
        documents = parse_yaml(whole.text)
        for document in documents:
            document.file = whole
        try:
            conf = OmegaConf.create(data.decode())
        except yaml.YAMLError:
            assert len(documents) > 1 or documents[0].error is not None or documents[0].duplicates
            continue
        seen = View(documents[0], OMEGACONF, environ=dict(os.environ), resolvers=["eval"])
        if isinstance(conf, DictConfig):
            count += compare(seen, conf, ())
        for defect in find_defects(seen)["unresolved"]:
            if not defect.key.startswith("defaults["):
                assert OmegaConf.select(conf, defect.key, throw_on_resolution_failure=False) is None, defect
    assert count > 100


SUMS = st.recursive(
    st.integers(0, 40).map(str) | st.sampled_from(["2.5", "1e3", "0.5", ".25", "10."]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" + ", "-", " * ", "/", "//", " % ", "**"]), inner).map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=tried(500), derandomize=True)
@given(SUMS)
def test_sums_of_eval_are_pythons(text):
    ours = resolved("eval", [text])
    try:
        theirs = eval(text)
    except (ArithmeticError, OverflowError):
        assert isinstance(ours, Missing)
        return
    if isinstance(ours, Missing):
        huge = isinstance(theirs, complex) or abs(theirs) >= 2**63 or "**" in text
        assert huge, (text, ours)
        return
    assert same(ours, theirs), (text, ours, theirs)


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "a", "1 if 2 else 3", "[1]", "1 2", "", "(1", "0x10", "~1", "1 < 2", "(" * 50],
)
def test_what_is_no_sum_is_unknown(text):
    assert isinstance(resolved("eval", [text]), Missing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${mul:${a}, 3}", 12),
        ("${mul:${mul:${a},2},${b}}", 20.0),
        ("${add:${a},-1}", 3),
        ("${sub:1,${a}}", -3),
        ("${div:${a},2}", 2.0),
        ("${max:${a},${b}}", 4),
        ("${max:${c.up},1}", 5),
        ("${eval:'${a} * ${b} + 1'}", 11.0),
    ],
)
@pytest.mark.usefixtures("own_resolvers")
def test_resolvers_that_frameworks_register(text, expected):
    """NeMo-RL's (nemo_rl/utils/config.py) and torchtune's, beside the real ones."""
    real = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b, "max": larger, "eval": evaluated,
    }  # fmt: skip
    for name, function in real.items():
        register(name, function)
    whole = "a: 4\nb: 2.5\nc: {x: 1, up: '${add:${..a},${.x}}'}\nv: " + yaml.dump(
        text, default_style="'", width=1000
    )
    seen = View(read_text(whole, "c.yaml").documents[0], OMEGACONF, resolvers=tuple(real))
    assert same(seen.get(("v",)), expected)
    assert same(OmegaConf.create(whole).v, expected)


@pytest.mark.parametrize(
    "text", ["${mul:a,2}", "${div:1,0}", "${mul:1}", "${mul:${zz},2}", "${eval:${a}}", "${other:1,2}"]
)
def test_a_resolver_that_fails_gives_nothing(text):
    whole = "a: 4\nv: " + text + "\n"
    seen = View(read_text(whole, "c.yaml").documents[0], OMEGACONF, resolvers=("mul", "div", "eval"))
    assert isinstance(seen.get(("v",)), Missing)
