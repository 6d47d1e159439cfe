"""A view's values are those of the real loader; OmegaConf itself is the reference."""

from __future__ import annotations

import glob
import os

import pytest
import yaml

from cfglint.document.reading import read, read_text
from cfglint.document.scalars import JSON, OMEGACONF, PYYAML
from cfglint.document.trace import Trace, find_defects
from cfglint.document.tree import ABSENT, ALL, Missing
from cfglint.document.view import MappingView, View
from cfglint.errors import UsageError
from viewed import path, same, value, view

SHARED = os.environ.get("CFGLINT_SHARED")
shared = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED is unset: no corpus to read")


TREE = """\
base: &b {x: 1, y: 2}
more: &m {y: 20, z: 30}
d:
  <<: [*b, *m]
  y: 3
n: *b
items: [{a: 1}, {a: 2}, {c: 3}]
deep: [[1, 2], [3]]
nothing:
"""


class TestGet:
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("base.x", 1),
            ("d.x", 1),
            ("d.y", 3),
            ("d.z", 30),
            ("n.y", 2),
            ("items.1.a", 2),
            ("items.-1.c", 3),
            ("items.3", ABSENT),
            ("items.a", ABSENT),
            ("base.0", ABSENT),
            ("base.x.y", ABSENT),
            ("nothing", None),
            ("nothing.x", ABSENT),
            ("zz", ABSENT),
            ("zz.a.b", ABSENT),
            ("items.*.a", [1, 2]),
            ("items.*.zz", []),
            ("zz.*", ABSENT),
            ("base.*", [1, 2]),
            ("deep.*.*", [1, 2, 3]),
            ("deep.*", [[1, 2], [3]]),
            ("deep", [[1, 2], [3]]),
        ],
    )
    @pytest.mark.parametrize("dialect", [PYYAML, OMEGACONF])
    def test_value(self, where, expected, dialect):
        got = value(TREE, where, dialect=dialect)
        assert same(got, expected) if expected is not ABSENT else got is ABSENT

    def test_merges_are_pyyamls(self):
        loaded = yaml.safe_load(TREE)
        record = value(TREE, "d")
        assert isinstance(record, MappingView)
        assert {k: record.get(k) for k in record.keys()} == loaded["d"]  # noqa: SIM118 (no dict)

    def test_a_record_goes_on(self):
        top = value(TREE, "")
        assert top.keys() == ["base", "more", "d", "n", "items", "deep", "nothing"]
        assert top.get("base").get("x") == 1
        assert top.get("zz") is ABSENT

    @pytest.mark.parametrize(
        ("where", "expected"),
        [("nothing", True), ("zz", False), ("d.z", True), ("items.0", True), ("items.*.c", True)],
    )
    def test_has(self, where, expected):
        assert view(TREE).has(path(where)) is expected

    def test_absent_is_falsy_and_says_so(self):
        assert not ABSENT
        assert repr(ABSENT) == "ABSENT"

    def test_json(self):
        document = read_text('{"a": [1, 1e-5, "$x"]}', "c.JSON").documents[0]
        assert View(document, JSON).get(("a",)) == [1, 1e-5, "$x"]

    def test_an_empty_document(self):
        assert value("", "a") is ABSENT
        assert view("").has(("a",)) is False

    def test_without_interpolation_a_reference_is_filled_in_elsewhere(self):
        assert value("a: ${b}\nb: ???\n", "a", dialect=PYYAML).kind == "template"
        assert value("a: $b${c}\nb: ???\n", "a", dialect=PYYAML) == "$b${c}"
        assert value("a: ${b}\nb: ???\n", "b", dialect=PYYAML) == "???"

    def test_a_repeated_get_is_fast(self):
        seen = view("a: {b: {c: ${d}}}\nd: 5\n")
        seen.get(("a", "b", "c"))
        for _ in range(10_000):
            seen.get(("a", "b", "c"))


class TestOverrides:
    @pytest.mark.parametrize(
        ("override", "where", "expected"),
        [
            ("base.x=5", "base.x", 5),
            ("base.x=5", "n.x", 1),
            ("base.x=1e-5", "base.x", 1e-5),
            ("+new.deep.key=yes", "new.deep.key", True),
            ("++base.x=null", "base.x", None),
            ("base.x=", "base.x", None),
            ("base.x=[1, 2]", "base.x", [1, 2]),
            ("base={q: 1}", "base.q", 1),
            ("base={q: 1}", "base.x", ABSENT),
            ("base.x='1'", "base.x", "1"),
            ("base.x=a=b", "base.x", "a=b"),
            ("base.x=${d.y}", "base.x", 3),
            ("d.z=5", "d.z", 5),
            ("n.x=9", "base.x", 1),
            ("n.x=9", "n.x", 9),
            ("items.0.a=9", "items.0.a", 9),
            ("items[1].a=9", "items.1.a", 9),
            ("base.x.y=1", "base.x.y", 1),
            ("~base.x", "base.x", ABSENT),
            ("~d.z", "d.z", ABSENT),
            ("~d.z", "d.x", 1),
            ("~zz.y", "zz", ABSENT),
            ("~items.0", "items.0.a", 2),
        ],
    )
    def test_value(self, override, where, expected):
        got = value(TREE, where, override)
        assert same(got, expected) if expected is not ABSENT else got is ABSENT

    def test_they_add_up_and_leave_the_document_alone(self):
        document = read_text(TREE, "c.yaml").documents[0]
        seen = View(document, OMEGACONF, ["a={x: 1}", "a.y=2", "base.x=7", "base.x=8"])
        assert [seen.get(path(p)) for p in ("a.x", "a.y", "base.x", "base.y")] == [1, 2, 8, 2]
        assert View(document, OMEGACONF).get(("base", "x")) == 1
        assert View(document, OMEGACONF).get(("a",)) is ABSENT

    def test_references_see_them(self):
        assert value("a: 1\nb: ${a}\n", "b", "a=2") == 2

    @pytest.mark.parametrize(
        "override", ["", "a", "=1", "a..b=1", "a=[1", "a={", "a=b: c: d", "items.9.a=1", "~"]
    )
    def test_malformed(self, override):
        with pytest.raises(UsageError, match="--set"):
            view(TREE, override)


class TestTrace:
    def spelled(self, text, where, *overrides, dialect=OMEGACONF):
        seen = view(text, *overrides, dialect=dialect)
        found = Trace(seen, path(where))
        return found, text[slice(*found.span)]

    def test_a_plain_value(self):
        text = "a:\n  b: 1  # c\n"
        found, spelling = self.spelled(text, "a.b")
        assert (spelling, found.present, found.editable, found.steps) == ("1", True, True, [])
        assert text[slice(*found.key_span)] == "b"

    def test_through_a_reference_an_alias_and_a_merge(self):
        text = "base: &b {x: 1}\nd:\n  <<: *b\ne: ${d}\nf: *b\ng: ${e.x}\n"
        found, spelling = self.spelled(text, "g")
        assert spelling == "1"
        assert [(s.kind, text[s.start : s.end]) for s in found.steps] == [
            ("interpolation", "${e.x}"),
            ("interpolation", "${d}"),
            ("merge", "*b"),
        ]
        assert found.editable
        assert set(found.shared) == {"base.x", "d.x", "e.x", "f.x"}
        found, spelling = self.spelled(text, "f.x")
        assert ([s.kind for s in found.steps], spelling) == (["alias"], "1")

    def test_what_reads_a_definition(self):
        text = "a: 1\nb: ${a}\nc: p/${a}\nd: ${b}\n"
        assert set(Trace(view(text), ("a",)).shared) == {"b", "c", "d"}
        assert Trace(view("a: 1\nb: 2\n"), ("a",)).shared == ()

    def test_an_own_key_wins_over_a_shared_one(self):
        text = "base: &b {x: 1, y: 2}\nd:\n  <<: *b\n  x: 5\n"
        assert Trace(view(text), ("base", "x")).shared == ()
        assert Trace(view(text), ("base", "y")).shared == ("d.y",)

    @pytest.mark.parametrize("text", ["a: x${b}\nb: 1\n", "a: ${oc.env:X,1}\n", "a: ${zz}\n", "a: |\n  x\n"])
    def test_what_is_put_together_is_not_editable(self, text):
        found, spelling = self.spelled(text, "a")
        assert (found.present, found.editable) == (True, False)
        assert spelling == text.partition(": ")[2].partition("\nb")[0].rstrip("\n") + (
            "\n" if "|" in text else ""
        )

    def test_an_empty_mapping_as_a_default(self):
        seen = view("a: ${oc.select:zz,{}}\nb: ${oc.select:a,1}\n")
        assert [seen.get((k,)).keys() for k in "ab"] == [[], []]
        assert not Trace(seen, ("b",)).editable

    def test_an_override_is_named(self):
        for override in ("a.b=2", "a={b: 2}", "a.c.b=2"):
            found = Trace(view("a: {b: 1}\n", override), ("a", "c", "b") if "c.b" in override else ("a", "b"))
            assert [(s.kind, s.text) for s in found.steps][:1] == [("override", f"--set {override}")]
            assert not found.editable

    @pytest.mark.parametrize(
        ("where", "key"), [("a.b.zz", "b"), ("a.zz.y", "a"), ("zz", ""), ("a.l.5", "l"), ("a.l.0.q", "l")]
    )
    def test_an_absent_key_stands_at_its_nearest_present_parent(self, where, key):
        found, spelling = self.spelled("x: 1\na:\n  b: {c: 1}\n  l: [{p: 1}]\n", where)
        assert (found.present, found.node, spelling) == (False, None, key)


class TestDefects:
    def test_all_kinds(self):
        text = (
            "a: 1\na: 2\nb: ${zz.x}\nc: ???\nd: 1e-5\ne: ${oc.env:NOPE}\nf: 'p ${gconf.n}'\n"
            "gconfig: {n: 1}\ng: ${\nh: ${oc.select:zz}\ni: ${oc.select:zz,${nope}}\n"
        )
        found = find_defects(view(text))
        assert [(d.key, text[d.start : d.end]) for d in found["duplicate_keys"]] == [("a", "a")]
        assert text[slice(*found["duplicate_keys"][0].related)] == "a"
        assert [(d.key, text[d.start : d.end]) for d in found["unresolved"]] == [
            ("b", "${zz.x}"),
            ("f", "${gconf.n}"),
            ("g", "${"),
            ("i", "${nope}"),
        ]
        assert "gconfig.n" in found["unresolved"][1].note
        assert [d.key for d in found["missing"]] == ["c"]
        assert found["float_strings"] == []
        assert "e" not in {d.key for defects in found.values() for d in defects}, "it may be set elsewhere"
        assert [d.key for d in find_defects(view(text, dialect=PYYAML))["float_strings"]] == ["d"]
        assert find_defects(view(text, dialect=PYYAML))["unresolved"] == []

    def test_nested_duplicates_have_their_path(self):
        text = "a:\n- b: 1\n  b: 2\n  b: 3\n"
        assert [d.key for d in find_defects(view(text))["duplicate_keys"]] == ["a[0].b", "a[0].b"]

    def test_hydras_defaults_are_its_own(self):
        assert find_defects(view("defaults:\n- x: ${engine}_actor\n"))["unresolved"] == []


class TestHostile:
    LAUGHS = "\n".join(
        ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 14)]
    )

    def test_a_billion_laughs(self):
        seen = view(self.LAUGHS)
        assert seen.get(("a13",)).kind == "budget"
        assert isinstance(seen.get(("a13", *[ALL] * 13)), (Missing, list))
        assert seen.get(("a0",)) == ["x", "x"]
        find_defects(seen)
        assert Trace(seen, ("a13", 0, 0)).present
        _ = Trace(seen, ("a0", 0)).shared

    def test_a_billion_laughs_in_references(self):
        lines = ["a0: xxxxxxxxxx"] + [f"a{i}: '{''.join([f'${{a{i - 1}}}'] * 9)}'" for i in range(1, 40)]
        seen = view("\n".join(lines))
        assert isinstance(seen.get(("a39",)), Missing)
        find_defects(seen)

    def test_a_billion_laughs_in_merges(self):
        lines = ["a0: &a0 {x: 1}"] + [
            f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)
        ]
        assert value("\n".join(lines), "a29.x") == 1

    @pytest.mark.parametrize(
        "text",
        [
            "a: &a [*a]\n",
            "a: &a {b: *a}\n",
            "a: &a\n  <<: *a\n  b: 1\n",
            "a: &a {b: '${a.b.b}'}\n",
            "a:\n  <<: &y [*y]\n",
            "<<: &y\n- *y\n- <<: *y\n",
            "\n".join(f"k{i}: ${{k{i + 1}}}" for i in range(3000)),
            "\n".join(f"k{i}: ${{k{i + 1}}}" for i in reversed(range(3000))),
            "a: " + "${a." * 3000 + "}" * 3000,
            "a: ${" + "a." * 40_000 + "b}",
            "a: " + "${x}" * 20_000,
            "a: ${" + "." * 5000 + "x}",
            "a: ${f:" + "[" * 3000 + "]" * 3000 + "}",
            "a: " + "\\" * 50_000 + "${b}",
            "a: " + "x" * 1_000_000,
            "\n".join(f"k{i}: " + "${f:" * 40 + f"${{k{i + 1}}}" + "}" * 40 for i in range(100)),
            "\n".join(f"k{i}: " + "${oc.select:a," * 40 + f"${{k{i + 1}}}" + "}" * 40 for i in range(100)),
        ],
    )
    def test_nothing_crashes(self, text):
        seen = view(text)
        for where in (("a",), ("k0",), ("k2999",), ("a", "b", "b", "b"), ("a", ALL, ALL), ("a", 0, 0, 0)):
            seen.get(where)
            seen.has(where)
            _ = Trace(seen, where).shared
        find_defects(seen)


class TestReading:
    @pytest.mark.parametrize(
        ("data", "offset", "words"),
        [
            (b"a: \xff\n", 3, "byte 3"),
            ("é: ".encode() + b"\xe9\n", 3, "byte 4"),
            (b"\xef\xbb\xbfa: \xff", 3, "byte 6"),
            ("a: 1".encode("utf-16"), 0, "UTF-16"),
            ("a: 1".encode("utf-16-le"), 1, "NUL"),
            (b"a: 1\x00", 4, "NUL"),
            (b"x" * (16 * 1024 * 1024 + 1), None, "larger"),
        ],
    )
    def test_what_is_no_text(self, data, offset, words):
        file = read(data, "c.yaml")
        error = file.documents[-1].error
        assert (error.offset, words in str(error)) == (offset, True)
        if offset is not None:
            file.lines.position(offset)

    def test_a_byte_order_mark_and_line_ends_are_kept(self):
        data = b"\xef\xbb\xbfa: 1\r\nb: 2\r\n"
        file = read(data, "c.yml")
        assert (file.bom, file.text, file.format) == (True, "a: 1\r\nb: 2\r\n", "yaml")
        assert file.encode(file.text) == data
        assert file.documents[0].root.entries["b"].key.start == 6
        assert file.lines.position(6) == (2, 1)

    def test_the_suffix_chooses_the_format(self):
        assert read(b'{"a": "\\ud83d\\ude00"}', "ds.json").documents[0].root.entries["a"].value.text == "😀"
        assert read_text("a: 1", "<stdin>").format == "yaml"


@shared
def test_no_file_of_the_corpus_crashes():
    for file in sorted(glob.glob(os.path.join(SHARED, "corpus", "**", "*.*"), recursive=True)):
        if not file.endswith((".yaml", ".yml", ".json")):
            continue
        with open(file, "rb") as stream:
            data = stream.read()
        for document in read(data, file).documents:
            for dialect in (PYYAML, OMEGACONF):
                find_defects(View(document, dialect))
