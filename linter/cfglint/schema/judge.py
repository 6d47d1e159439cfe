"""Holds a document against a framework's table: unknown keys, values of another kind, values that cannot be.

Judging runs for every file of a framework that has a schema. What a problem is called (what was wanted, which
key was probably meant, where it stands) is found afterwards.
"""

from __future__ import annotations

from contextlib import suppress

from cfglint import record
from cfglint.document.scalars import resolve
from cfglint.document.tree import Alias, Computed, Mapping, Missing, Scalar, Sequence
from cfglint.document.view import BudgetError, MappingView
from cfglint.errors import did_you_mean
from cfglint.schema.table import ANY, BOOL, EVERYTHING, FLOAT, INT, LIST, MAP, NONE, NULL, NUMBER, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cfglint.document.tree import Path
    from cfglint.document.view import View
    from cfglint.schema.table import Node, Table

_KIND = {bool: BOOL, int: INT, float: FLOAT, str: TEXT, type(None): NULL}
_DEEPEST = 60
_MOST = 2_000  # problems of one document
_SHORT = 5  # letters; in a shorter name, two differences are another word
_LONGEST_LIST = 240  # characters of the members that a message lists


class Problem(record.Record):
    """What is wrong at ``path``: an unknown ``key``, an unfit ``kind``, or a ``value`` that cannot be."""

    what: str
    path: Path
    node: Node
    value: object = None


def problems(table: Table, view: View, *, strict: bool = False, skip: tuple[str, ...] = ()) -> list[Problem]:
    """Return what is wrong with a document.

    ``strict``: as JSON Schema has it, without the loader's conversions. ``skip`` are keys at the top that are
    none of the framework's.
    """
    root = view.root
    if root.__class__ is not Mapping:
        return []
    judge = _Judge(view, table.nodes, None if strict else table.loader)
    view.refill()
    with suppress(BudgetError, RecursionError):  # the file stands for more values than are followed
        judge.mapping(root, (), table.nodes[0], skip)
    return judge.problems


class _Judge:
    def __init__(self, view: View, nodes: tuple[Node, ...], loader: str | None) -> None:
        self.view = view
        self.dialect = view.dialect
        self.interpolates = view.dialect.interpolates
        self.nodes = nodes
        self.loader = loader
        self.problems: list[Problem] = []

    def mapping(self, mapping: Mapping, path: Path, node: Node, skip: tuple[str, ...] = ()) -> None:
        keys, others, nodes = node[3] or (), node[4], self.nodes
        dialect, interpolates = self.dialect, self.interpolates
        entries = mapping.entries if not mapping.merges else self.view.entries(mapping)
        for name, entry in entries.items():
            if name in keys:
                inner = nodes[keys[name]]  # type: ignore[call-overload]
            elif others == NONE:
                if name not in skip:
                    self.note("key", (*path, name), node)
                continue
            elif others == ANY:
                if node[6] and self.loader is not None:
                    self.note("key", (*path, name), node)
                continue
            else:
                inner = nodes[others]
            value = entry.value
            own = value.__class__
            if own is Scalar and not (interpolates and ("$" in value.text or value.text == "???")):  # type: ignore[union-attr]
                plain = resolve(value, dialect)  # type: ignore[arg-type]
                kind = _KIND.get(plain.__class__, 0)
                if not inner[0] & kind or (inner[2] is not None and kind & NUMBER):
                    self.scalar(plain, kind, (*path, name), inner)
            elif own is Mapping and inner[0] & MAP:
                if (inner[3] is not None or inner[4] != ANY) and len(path) < _DEEPEST:
                    self.mapping(value, (*path, name), inner)  # type: ignore[arg-type]
            elif inner[0] != EVERYTHING or inner[3] is not None:
                self.value(value, (*path, name), inner)

    def value(self, value: Any, path: Path, node: Node) -> None:
        """Judge what stands at a path, wherever it is defined."""
        if len(path) > _DEEPEST:
            return
        value = self._followed(value, path)
        if value is None:
            self.scalar(None, NULL, path, node)
        elif isinstance(value, Mapping):
            if node[0] & MAP:
                self.mapping(value, path, node)
            else:
                self.converted(value, path, node)
        elif isinstance(value, (Sequence, list)):
            self.sequence(value, path, node)
        elif not isinstance(value, Missing):
            plain = resolve(value, self.dialect) if isinstance(value, Scalar) else value
            if not (isinstance(plain, Missing) or (plain == "???" and self.interpolates)):
                self.scalar(plain, _KIND.get(plain.__class__, 0), path, node)

    def _followed(self, value: Any, path: Path) -> Any:
        """Return what a node stands for."""
        if value.__class__ is Alias:
            self.view.spend(1)
            value = value.target
        if value.__class__ is not Mapping and value.__class__ is not Sequence:
            value, _ = self.view.follow(value, path)
            if value.__class__ is Alias:
                value = value.target
        if value.__class__ is Computed:
            value = value.value
            if isinstance(value, MappingView):
                value, _ = self.view.follow(*self.view.place(value.path))
        return value

    def sequence(self, value: Sequence | list[object], path: Path, node: Node) -> None:
        """Judge a list, as the file has it or put together."""
        if not node[0] & LIST:
            self.converted(value, path, node)
        elif node[5] != ANY:
            items = value.items if isinstance(value, Sequence) else value
            inner = self.nodes[node[5]]
            for i, item in enumerate(items):
                self.view.spend(1)
                self.value(item, (*path, i), inner)

    def scalar(self, value: object, kind: int, path: Path, node: Node) -> None:
        """Judge a known value: as it is, else as the loader turns it into what is wanted."""
        if not kind:
            return  # not a value that the file tells
        if kind == FLOAT and node[0] & NUMBER == INT and value.is_integer():  # type: ignore[attr-defined]
            if self.loader is not None:
                self.converted(value, path, node)
                return
            kind = INT  # 1.0, to JSON Schema
        if node[0] & kind:
            if kind & NUMBER and node[2] is not None and not within(value, node[2]):
                self.note("value", path, node, value)
            return
        if node[1] is not None and member(value, node[1]):
            return
        self.converted(value, path, node)

    def converted(self, value: object, path: Path, node: Node) -> None:
        """Judge what the loader makes of a value that does not fit as it is."""
        if self.loader:
            from cfglint.schema.convert import CONVERT, NO

            result = CONVERT[self.loader](value, node[0], node)
            if result is not NO:
                if node[2] is not None and type(result) in (int, float) and not within(result, node[2]):
                    self.note("value", path, node, value)
                return
        self.note("value" if node[1] and not node[0] & ~NULL else "kind", path, node, value)

    def note(self, what: str, path: Path, node: Node, value: object = None) -> None:
        if len(self.problems) < _MOST:
            self.problems.append(Problem(what, path, node, value))


def member(value: object, members: tuple[object, ...]) -> bool:
    """Whether a value is one of those listed; a truth is no number."""
    return any(value == listed and (type(value) is bool) == (type(listed) is bool) for listed in members)


def within(value: Any, limits: Any) -> bool:
    """Whether a number lies in its range."""
    least, greatest, above, below = limits
    return not (
        (least is not None and value < least)
        or (greatest is not None and value > greatest)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
    )


# ── words ──────────────────────────────────────────────────────────────────────────────────────────────────
def wanted(node: Node) -> str:
    """Say what a value has to be."""
    kinds, members, limits, *_ = node
    parts = []
    if kinds & NUMBER:
        parts.append(("a whole number" if kinds & NUMBER == INT else "a number") + _range(limits))
    if kinds & BOOL:
        parts.append("true or false")
    parts += [word for bit, word in ((TEXT, "a text"), (LIST, "a list"), (MAP, "a mapping")) if kinds & bit]
    if members is not None:
        shown = [_member(member) for member in members if member is not None]
        text = ", ".join(shown)
        while len(text) > _LONGEST_LIST:
            shown.pop()
            text = f"{', '.join(shown)} and {sum(m is not None for m in members) - len(shown)} others"
        parts.append(f"one of {text}" if len(shown) > 1 else text)
        kinds |= NULL * (None in members)
    if kinds & NULL and parts:
        parts.append("null")
    return " or ".join(parts) or "null"


def _member(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(limits: tuple[float | None, ...] | None) -> str:
    if limits is None:
        return ""
    least, greatest, above, below = limits
    low = f"at least {least:g}" if least is not None else f"above {above:g}" if above is not None else ""
    high = (
        f"at most {greatest:g}" if greatest is not None else f"below {below:g}" if below is not None else ""
    )
    if least is not None and greatest is not None:
        return f" from {least:g} to {greatest:g}"
    return " " + " and ".join(part for part in (low, high) if part)


def shown(value: object) -> str:
    """Say what stands there."""
    if isinstance(value, str):
        return f'the text "{value if len(value) <= 60 else value[:59] + "…"}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return str(value)
    return "a mapping" if isinstance(value, Mapping) else "a list"


def near(problem: Problem) -> str:
    """Return ``"; did you mean …?"`` for an unknown key, or for a text that is no member.

    A key of which more than a third is different is no help.
    """
    if problem.what == "key":
        name = str(problem.path[-1])
        most = max(2, len(name) // 3)
        return did_you_mean(
            name, [key for key in problem.node[3] or () if _distance(_plain(name), _plain(key)) <= most]
        )
    members = [member for member in problem.node[1] or () if isinstance(member, str)]
    return did_you_mean(problem.value, members) if isinstance(problem.value, str) else ""


def elsewhere(problem: Problem, table: Table) -> str:
    """Say which section has the key, where the one it stands in has not."""
    name = problem.path[-1]
    root = table.nodes[0][3] or {}
    holders = [key for key, number in root.items() if name in (table.nodes[number][3] or ())]
    if name in root and len(problem.path) > 1:
        return "; it is a key of the top level"
    if not 0 < len(holders) < 3:
        return ""
    return f"; {' and '.join(holders)} {'has' if len(holders) == 1 else 'have'} it"


def meant(problem: Problem, view: View) -> str | None:
    """Return the one key that an unknown one was surely meant to be; None where none or several may be."""
    name, keys = str(problem.path[-1]), problem.node[3] or ()
    plain = _plain(name)
    letters, shortest, longest = set(plain), len(plain) - 2, len(plain) + 2
    apart = {
        key: _distance(plain, _plain(key))
        for key in keys
        if shortest <= len(key) <= longest
        and len(letters.symmetric_difference(_plain(key))) <= 4
        and _alike(plain, _plain(key))
    }
    least = min(apart.values(), default=9)
    best = [key for key, distance in apart.items() if distance == least]
    if name.startswith(("_", ".")):  # what other keys read through an anchor
        return None
    if len({_plain(key) for key in best}) != 1 or least > (1 if len(name) <= _SHORT else 2):
        return None
    if _plain(best[0]) in {_plain(key) for key in view.keys(problem.path[:-1]) if key != name}:
        return None
    alike = [key for key in best if ("-" in key) == ("-" in name)]  # of two spellings, the file's own
    return (alike or best)[0]


def _alike(name: str, key: str) -> bool:
    """Whether two changes may suffice, by the letters alone: most names are told apart without more."""
    return sum(abs(name.count(letter) - key.count(letter)) for letter in {*name, *key}) <= 4


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def _distance(one: str, other: str) -> int:
    """Return how many letters differ, are missing, too many, or change places with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i] + [0] * len(other)
        for j, there in enumerate(other, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def unique(problems: Iterable[Problem], view: View) -> list[tuple[Problem, tuple[int, int]]]:
    """Return the problems with their spans; what several keys read from one place is told once."""
    places: dict[tuple[str, int, int], tuple[Problem, tuple[int, int]]] = {}
    for problem in problems:
        span = place(problem, view)
        places.setdefault((problem.what, *span), (problem, span))
    return list(places.values())


def place(problem: Problem, view: View) -> tuple[int, int]:
    """Return the span that a problem stands at: the key, or the value where it is a scalar."""
    from cfglint.document.trace import Trace

    trace = Trace(view, problem.path)
    block = problem.value.__class__ is Mapping or not trace.present or trace.node is None
    return trace.key_span if problem.what == "key" or block else trace.span
