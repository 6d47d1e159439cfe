"""Hydra's defaults lists: what real Hydra composes, we compose; what is not here stays unknown."""

from __future__ import annotations

import os
import warnings

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, ListConfig

from cfglint.command.inputs import second
from cfglint.document.compose import compose
from cfglint.document.layers import Way
from cfglint.document.reading import Library, read_text
from cfglint.document.scalars import OMEGACONF
from cfglint.document.trace import Trace
from cfglint.document.tree import ABSENT, Missing
from cfglint.document.view import View
from tiers import tried

try:
    import hydra
except ImportError:  # it holds omegaconf back to 2.3
    hydra = None
real = pytest.mark.skipif(hydra is None, reason="hydra-core is not installed: nothing to compare with")
HYDRA = Way("hydra")


def ours(files, *overrides, name="config", way=HYDRA, prefix="conf/"):
    """Return a view of the primary config and its layers; ``files`` go by their path in the config folder."""
    read = {f"{prefix}{path}.yaml": text.encode() for path, text in files.items()}
    document = read_text(files[name], f"{prefix}{name}.yaml").documents[0]
    layers, left = compose(document, Library(read.get), way, overrides)
    return View(document, OMEGACONF, left, {}, layers), layers


def plain(seen, path=()):
    """Return all that a view says, as plain data."""
    return {key: plain_value(seen, (*path, key)) for key in seen.keys(path)}


def plain_value(seen, path):
    value = seen.get(path)
    if isinstance(value, list):
        return [plain_value(seen, (*path, i)) for i in range(len(value))]
    if isinstance(value, Missing):
        return "???"
    return plain(seen, path) if seen.keys(path) or type(value).__name__ == "MappingView" else value


def theirs(folder, files, overrides, name="config"):
    """Return what Hydra composes; None where it refuses."""
    for path, text in files.items():
        place = folder / f"{path}.yaml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with initialize_config_dir(config_dir=str(folder), version_base="1.2"):
            conf = hydra_compose(config_name=name, overrides=list(overrides))
    return flat(conf)


def flat(conf):
    if isinstance(conf, DictConfig):
        return {str(key): flat(child(conf, key)) for key in conf}
    if isinstance(conf, ListConfig):
        return [flat(child(conf, i)) for i in range(len(conf))]
    return conf


def child(conf, key):
    try:
        return conf[key]
    except Exception:  # noqa: BLE001 (what OmegaConf cannot resolve, we do not know)
        return "???"


TABLE = [
    pytest.param(
        {"config": "a: 1\ndefaults: [db: mysql]\n", "db/mysql": "host: x\n"},
        [],
        {"db": {"host": "x"}, "a": 1},
        id="group",
    ),
    pytest.param(
        {"config": "defaults: [db: mysql, _self_]\ndb: {host: own}\n", "db/mysql": "host: x\nport: 1\n"},
        [],
        {"db": {"host": "own", "port": 1}},
        id="self-last",
    ),
    pytest.param(
        {"config": "defaults: [_self_, db: mysql]\ndb: {host: own, n: 2}\n", "db/mysql": "host: x\n"},
        [],
        {"db": {"host": "x", "n": 2}},
        id="self-first",
    ),
    pytest.param(
        {"config": "defaults: [base]\nb: 2\n", "base": "a: 1\nb: 1\nc: {x: 1}\n"},
        [],
        {"a": 1, "b": 2, "c": {"x": 1}},
        id="base",
    ),
    pytest.param(
        {"config": "defaults: [db@src: mysql, db@dst.deep: pg]\n", "db/mysql": "h: m\n", "db/pg": "h: p\n"},
        [],
        {"src": {"h": "m"}, "dst": {"deep": {"h": "p"}}},
        id="packages",
    ),
    pytest.param(
        {"config": "defaults: [db@a: x, db@b: x]\n", "db/x": "v: 1\nw: ${.v}\n"},
        [],
        {"a": {"v": 1, "w": 1}, "b": {"v": 1, "w": 1}},
        id="one-file-twice",
    ),
    pytest.param(
        {"config": "defaults: [exp: one]\na: 1\n", "exp/one": "# @package _global_\na: 2\n"},
        [],
        {"a": 1},
        id="global-header",
    ),
    pytest.param(
        {"config": "defaults: [_self_, exp: one]\n", "exp/one": "# @package x.y\na: 2\n"},
        [],
        {"x": {"y": {"a": 2}}},
        id="header",
    ),
    pytest.param(
        {"config": "defaults: [db: mysql]\n", "db/mysql": "h: m\n", "db/pg": "h: p\n"},
        ["db=pg"],
        {"db": {"h": "p"}},
        id="choice",
    ),
    pytest.param({"config": "defaults: [db: mysql]\n", "db/mysql": "h: m\n"}, ["~db"], {}, id="deleted"),
    pytest.param(
        {"config": "defaults: [_self_]\na: 1\n", "db/pg": "h: p\n"},
        ["+db=pg"],
        {"a": 1, "db": {"h": "p"}},
        id="appended",
    ),
    pytest.param(
        {"config": "defaults: [db: mysql]\n", "db/mysql": "h: m\n"},
        ["db.h=z", "+db.n=1"],
        {"db": {"h": "z", "n": 1}},
        id="values",
    ),
    pytest.param(
        {"config": "defaults: [db: mysql, override db: pg]\n", "db/mysql": "h: m\n", "db/pg": "h: p\n"},
        [],
        {"db": {"h": "p"}},
        id="override",
    ),
    pytest.param(
        {
            "config": "defaults: [db: mysql, exp: one]\n",
            "db/mysql": "h: m\n",
            "db/pg": "h: p\n",
            "exp/one": "# @package _global_\ndefaults: [override /db: pg]\nx: 1\n",
        },
        [],
        {"db": {"h": "p"}, "x": 1},
        id="override-from-below",
    ),
    pytest.param({"config": "defaults: [optional db: nowhere, _self_]\na: 1\n"}, [], {"a": 1}, id="optional"),
    pytest.param({"config": "defaults: [db: null, _self_]\na: 1\n"}, [], {"a": 1}, id="none"),
    pytest.param(
        {
            "config": "defaults: [engine: fast, db: '${engine}_db']\n",
            "engine/fast": "e: 1\n",
            "db/fast_db": "h: f\n",
        },
        [],
        {"engine": {"e": 1}, "db": {"h": "f"}},
        id="interpolated-name",
    ),
    pytest.param(
        {"config": "defaults: [db: [a, b]]\n", "db/a": "x: 1\ny: 1\n", "db/b": "y: 2\n"},
        [],
        {"db": {"x": 1, "y": 2}},
        id="several",
    ),
    pytest.param(
        {
            "config": "defaults: [model/net: big]\n",
            "model/net/big": "defaults: [layer: wide]\nn: 1\n",
            "model/net/layer/wide": "w: 9\n",
        },
        [],
        {"model": {"net": {"layer": {"w": 9}, "n": 1}}},
        id="nested-groups",
    ),
    pytest.param(
        {
            "config": "defaults: [db: a]\n",
            "db/a": "defaults: [base, /top, _self_]\nx: 1\n",
            "db/base": "x: 0\ny: 0\n",
            "top": "t: 1\n",
        },
        [],
        {"db": {"x": 1, "y": 0, "t": 1}},
        id="base-in-a-group",
    ),
    pytest.param(
        {"config": "defaults: [base]\nb: ???\n", "base": "b: 3\nc: ???\n"},
        [],
        {"b": 3, "c": "???"},
        id="mandatory",
    ),
    pytest.param(
        {"config": "defaults: [base]\nm: null\n", "base": "m: {x: 1}\nn: {}\n"},
        [],
        {"m": None, "n": {}},
        id="null-over-a-mapping",
    ),
    pytest.param(
        {"config": "defaults: [_self_]\na: 1\n", "db/a": "h: 1\n"},
        ["+db=a", "~db"],
        {"a": 1},
        id="appended-and-deleted",
    ),
    pytest.param({"config": "defaults: [db@_here_: a]\n", "db/a": "x: 1\n"}, [], {"x": 1}, id="here"),
]


@pytest.mark.parametrize(("files", "overrides", "expected"), TABLE)
def test_what_a_list_composes(files, overrides, expected):
    seen, layers = ours(files, *overrides)
    assert plain(seen) == expected
    assert not layers.unread


@real
@pytest.mark.parametrize(("files", "overrides", "expected"), TABLE)
def test_hydra_composes_the_same(files, overrides, expected, tmp_path):
    assert theirs(tmp_path, files, overrides) == expected


GROUPS = ["db", "net", "net/opt"]
NAMES = ["a", "b"]
CONTENT = st.dictionaries(
    st.sampled_from(["x", "y", "db", "net"]),
    st.integers(0, 9)
    | st.none()
    | st.just("???")
    | st.dictionaries(st.sampled_from(["x", "z", "opt"]), st.integers(0, 9), max_size=2),
    max_size=3,
)
ITEM = st.one_of(
    st.just("_self_"),
    st.builds(
        lambda g, p, n, w: {f"{w}{g}{p}": n},
        st.sampled_from(GROUPS),
        st.sampled_from(["", "", "", "@p", "@_global_", "@_here_", "@p.q"]),
        st.sampled_from([*NAMES, None]),
        st.sampled_from(["", "", "optional "]),
    ),
    st.builds(
        lambda g, ns: {g: ns},
        st.sampled_from(GROUPS[:2]),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
    ),
    st.builds(
        lambda n, p: f"{n}{p}", st.sampled_from(["base", "/db/a", "db/b"]), st.sampled_from(["", "", "@p"])
    ),
    st.just({"net": "${db}"}),
)
OVERRIDE = st.builds(
    lambda g, n: {f"override {g}": n}, st.sampled_from(["/db", "/net", "/db@p"]), st.sampled_from(NAMES)
)
HEADER = st.sampled_from(["", "", "", "# @package _global_\n", "# @package p\n", "# @package r.s\n"])
COMMAND = st.sampled_from(
    [
        "db=a",
        "db=b",
        "net=b",
        "+db=a",
        "+net@n=b",
        "~db",
        "~net=a",
        "db@p=b",
        "++x=3",
        "+w.v=[1,2]",
        "+db.zz=3",
    ]
)


def a_file(items, overrides, content, header=""):
    head = {"defaults": [*items, *overrides]} if items or overrides else {}
    return header + yaml.dump({**head, **content})


PROJECTS = st.fixed_dictionaries(
    {
        "config": st.builds(
            a_file,
            st.lists(ITEM, min_size=1, max_size=4, unique_by=str),
            st.lists(OVERRIDE, max_size=1),
            CONTENT,
        ),
        "base": st.builds(a_file, st.lists(ITEM, max_size=1), st.just([]), CONTENT, HEADER),
        "db/a": st.builds(a_file, st.just([]), st.just([]), CONTENT, HEADER),
        "db/b": st.builds(
            a_file,
            st.lists(st.sampled_from(["a", "_self_", {"opt": "a"}, "/base2"]), max_size=2, unique_by=str),
            st.just([]),
            CONTENT,
            HEADER,
        ),
        "net/a": st.builds(
            a_file,
            st.lists(
                st.sampled_from([{"opt": "a"}, {"opt@o": "b"}, "_self_", {"/db@d": "a"}]),
                max_size=2,
                unique_by=str,
            ),
            st.lists(OVERRIDE, max_size=1),
            CONTENT,
            HEADER,
        ),
        "net/b": st.builds(a_file, st.just([]), st.just([]), CONTENT, HEADER),
        "net/opt/a": st.builds(a_file, st.just([]), st.just([]), CONTENT),
        "net/opt/b": st.builds(a_file, st.just([]), st.just([]), CONTENT, HEADER),
        "db/opt/a": st.builds(a_file, st.just([]), st.just([]), CONTENT),
        "base2": st.builds(a_file, st.just([]), st.just([]), CONTENT, HEADER),
    }
)


@real
def test_random_projects_are_hydras(tmp_path):
    """Whatever Hydra accepts, comes to the same here, value by value."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    compared = 0

    @settings(
        deadline=None,
        max_examples=tried(150),
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(PROJECTS, st.lists(COMMAND, max_size=1))
    def each(files, overrides):
        nonlocal compared
        try:
            expected = theirs(tmp_path, files, overrides)
        except (HydraException, OmegaConfBaseException, ValueError, AssertionError, RecursionError):
            return  # a project that Hydra refuses has no values
        seen, _ = ours(files, *overrides)
        assert plain(seen) == expected
        compared += 1

    each()
    assert compared > tried(150) // 8


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.sampled_from(["", "_self_", "a", "/", "@", "a@", "@b", "a/b@_here_", "${x}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "", "@", "override a", "optional /b@_group_.c", "x y z"]), inner, max_size=2
        )
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=tried(300), derandomize=True)
@given(
    ODD,
    ODD,
    st.lists(st.sampled_from(["a=b", "+a=a", "~a", "+=", "a@b=[", "~", "++a/b=c", "a=[x,]"]), max_size=2),
)
def test_no_list_is_too_odd(one, two, overrides):
    """Whatever stands there, something comes of it: no mistake of a user's is an error of ours."""
    files = {
        "config": yaml.dump({"defaults": one, "x": 1}),
        "a": yaml.dump({"defaults": two}),
        "a/b": yaml.dump(two),
    }
    document = read_text(files["config"], "conf/config.yaml").documents[0]
    library = Library({f"conf/{name}.yaml": text.encode() for name, text in files.items()}.get)
    for way in (HYDRA, Way("parents")):
        layers, left = compose(document, library, way, overrides)
        plain(View(document, OMEGACONF, [], None, layers))
        assert set(left) <= set(overrides)


class TestNotHere:
    def test_what_a_group_would_say_is_unknown(self):
        seen, layers = ours({"config": "defaults: [db: mysql, _self_]\na: 1\ndb: {h: 1}\n"})
        assert seen.get(("a",)) == 1
        assert seen.get(("db", "h")) == 1
        assert seen.get(("db", "port")).needs == ("db/mysql.yaml",)
        assert seen.get(("other",)) is ABSENT
        assert layers.unread == {("db",): "db/mysql.yaml"}

    def test_what_a_base_would_say_is_unknown(self):
        seen, _ = ours({"config": "defaults: [their_base, _self_]\na: {b: 1}\n"})
        assert isinstance(seen.get(("c",)), Missing)
        assert isinstance(seen.get(("a", "c")), Missing)
        assert seen.awaits(("c", "d")) == "their_base.yaml"

    def test_a_base_that_comes_with_the_framework_says_its_defaults(self):
        way = Way("hydra", knows=["ppo_*", "actor/*"])
        seen, layers = ours({"config": "defaults: [ppo_trainer, _self_]\na: 1\n"}, way=way)
        assert not layers.unread
        assert seen.get(("c",)) is ABSENT
        assert seen.get(("defaults", 0)) == "ppo_trainer"  # its rules ask which

    def test_without_a_disk_all_is_unknown(self):
        document = read_text("defaults: [base]\na: 1\n", "c.yaml").documents[0]
        layers, _ = compose(document, None, HYDRA)
        seen = View(document, OMEGACONF, [], None, layers)
        assert seen.get(("a",)) == 1
        assert isinstance(seen.get(("b",)), Missing)

    def test_a_circle_is_told(self):
        _, layers = ours(
            {"config": "defaults: [base]\n", "base": "defaults: [other]\n", "other": "defaults: [base]\n"}
        )
        assert [t.kind for t in layers.troubles] == ["cycle"]
        assert (
            layers.troubles[0].note == "cyclic defaults: conf/base.yaml -> conf/other.yaml -> conf/base.yaml"
        )

    def test_a_file_that_does_not_parse_is_told(self):
        _, layers = ours({"config": "defaults: [db: a]\n", "db/a": "x: [\n"})
        assert [(t.kind, t.by) for t in layers.troubles] == [("broken", None)]
        assert layers.unread == {("db",): "db/a.yaml"}


class TestPlaces:
    FILES = {  # noqa: RUF012 (read alone)
        "config": "defaults:\n  - db: mysql\nx: ${db.port}\n",
        "db/mysql": "defaults: [base]\nhost: h\n",
        "db/base": "port: 3306\n",
    }

    def test_a_value_tells_the_way_to_its_file(self):
        seen, _ = ours(self.FILES)
        assert Trace(seen, ("db", "host")).where == "conf/db/mysql.yaml:2 through defaults at line 2"
        found = Trace(seen, ("db", "port"))
        assert (
            found.where == "conf/db/base.yaml:1 through defaults at conf/db/mysql.yaml:1, defaults at line 2"
        )
        assert seen.document.file.text[slice(*found.own_span)] == "mysql"
        assert found.overrides
        assert Trace(seen, ("x",)).where.startswith("conf/db/base.yaml:1 through ${db.port}")

    def test_a_choice_on_the_command_line_is_told(self):
        files = {**self.FILES, "db/pg": "port: 5432\n"}
        seen, _ = ours(files, "db=pg")
        assert seen.get(("x",)) == 5432
        assert Trace(seen, ("db", "port")).where == "conf/db/pg.yaml:1 through --set db=pg"

    def test_search_paths_of_files_are_followed(self, tmp_path):
        (tmp_path / "more" / "db").mkdir(parents=True)
        (tmp_path / "more" / "db" / "a.yaml").write_text("x: 1\n")
        text = f"defaults: [db: a]\nhydra: {{searchpath: ['file://{tmp_path}/more', 'pkg://x.y']}}\n"
        document = read_text(text, str(tmp_path / "conf" / "c.yaml")).documents[0]

        layers, _ = compose(document, Library(second), HYDRA)
        seen = View(document, OMEGACONF, [], None, layers)
        assert plain(seen) == {"db": {"x": 1}}

    def test_the_config_folder_may_be_above(self):
        files = {
            "conf/exp/one.yaml": b"# @package _global_\ndefaults: [/db: a, _self_]\ny: 2\n",
            "conf/db/a.yaml": b"x: 1\n",
            ".git/HEAD": b"",
        }
        here = {os.path.abspath(path): data for path, data in files.items()}
        document = read_text(files["conf/exp/one.yaml"].decode(), "conf/exp/one.yaml").documents[0]
        layers, _ = compose(document, Library(lambda p: here.get(os.path.abspath(p))), HYDRA)
        assert plain(View(document, OMEGACONF, [], None, layers)) == {"db": {"x": 1}, "y": 2}
