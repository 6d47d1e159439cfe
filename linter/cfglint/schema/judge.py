"""Holds a document against a framework's schema: unknown keys, values of another kind, values that cannot be.

Judging runs for every file of a framework that has a schema; what a problem is called is found afterwards
(wording.py).
"""

from __future__ import annotations

from cfglint.document.scalars import PYTHON, SHELL, resolve
from cfglint.document.tree import Alias, Computed, Mapping, Missing, Path, Scalar, Sequence, over_budget
from cfglint.document.view import BudgetError, MappingView, View
from cfglint.record import Record, field
from cfglint.schema.table import (
    ANY,
    EVERYTHING,
    FLOAT,
    INT,
    KIND,
    LIST,
    MAP,
    NONE,
    NULL,
    NUMBER,
    Mistake,
    Problem,
    Table,
    table,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from cfglint.schema.table import Node

_DEEPEST = 60
_MOST = 500  # problems of one document
_CLASSES = ("subclass", "newer")  # the marks of sections whose other keys may be of another class
_AS_FLAGS = "versions"  # the mark of a schema whose keys are a command line's
BY_SCHEMA = ("refused_keys", "ignored_keys", "refused_values", "doubtful_values", "misfits")


def mistakes(framework: str | None, view: View) -> dict[str, list[Mistake]]:
    """Return what a framework's schema finds wrong with a document, by the lists of `BY_SCHEMA`.

    Nothing where no schema is shipped for it.
    """
    noted: dict[str, list[Mistake]] | None = view.memo.get("schema")
    if noted is None:
        schema = None if framework is None else table(framework)
        wrong = [] if schema is None else _problems_of(schema, view)
        noted = {}
        if schema is not None and wrong:
            from cfglint.schema import wording

            noted = wording.noted(wrong, schema, view)
        view.memo["schema"] = noted
    return noted


def _problems_of(schema: Table, view: View) -> list[Problem]:
    """Return what is wrong with a document; of a launch script's flags, another program's may be its own."""
    if view.dialect is PYTHON:  # which version of a class a program has is not in its file
        return []
    if view.dialect is not SHELL:
        wrong = problems(schema, view)
        if view.document.vendored:
            return [each for each in wrong if each.what != "key"]
        # The keys of a server's file become flags, which argparse takes by their beginnings too.
        return [each for each in wrong if each.node[6] != _AS_FLAGS or not _begins_another(each)]
    if not _starts_own_program(schema, view):
        return []
    wrong = problems(schema, view, skip=("launch",))
    if view.document.vendored:  # what neither the release nor the package here knows
        return [each for each in wrong if each.what == "key"]
    return [problem for problem in wrong if problem.what != "key" or not _begins_another(problem)]


def _starts_own_program(schema: Table, view: View) -> bool:
    from fnmatch import fnmatchcase

    started = [view.get(("launch", key)) for key in ("program", "module")]
    return any(
        isinstance(program, str) and fnmatchcase(program, pattern)
        for program in started
        for pattern in schema.programs
    )


def _begins_another(problem: Problem) -> bool:
    """Whether argparse takes a flag for the one that it begins."""
    name = str(problem.path[-1])
    return any(key.startswith(name) for key in problem.node[3] or ())


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
    try:
        judge.mapping(root, (), table.nodes[0], skip)
    except (BudgetError, RecursionError):
        view.overrun = over_budget().why
    return judge.problems


def flags_of(framework: str | None) -> Collection[str]:
    """Return the flags of a framework whose schema is that of a command line; none of another one."""
    schema = None if framework is None else table(framework)
    return () if schema is None or schema.nodes[0][6] != _AS_FLAGS else schema.nodes[0][3] or ()


def keys_of(framework: str | None) -> Collection[str]:
    """Return the keys that a framework's schema names at the top of a file."""
    schema = None if framework is None else table(framework)
    return () if schema is None else schema.nodes[0][3] or ()


def knows(framework: str | None, path: Path) -> bool:
    """Whether a framework's schema names a key."""
    schema = None if framework is None else table(framework)
    return schema is not None and schema.at(path) is not None


def closed(framework: str | None, view: View, path: Path) -> bool:
    """Whether a framework's schema refuses a key, as far as it knows: it names all keys of a section.

    A class of the job's own may have others, which a file says that has them already; so may other classes
    of the framework's, where keys of theirs say that they read the file.
    """
    schema = None if framework is None else table(framework)
    if schema is None:
        return False
    if schema.unless:
        from cfglint.schema.wording import extended

        if extended(schema, view):
            return False
    for i, part in enumerate(path):
        node = schema.at(path[:i])
        if node is None:
            return False
        own = isinstance(part, str) and part != "*"
        if own and node[3] is not None and part not in node[3] and node[4] < 0:
            return node[4] == NONE or node[6] in _CLASSES
    return False


def takes(framework: str | None, view: View, path: Path, value: object) -> bool:
    """Whether a framework takes a value at a key, as it is or converted; yes where no schema says."""
    schema = None if framework is None else table(framework)
    node = None if schema is None else schema.at(path)
    if schema is None or node is None:
        return True
    judge = _Judge(view, schema.nodes, schema.loader)
    judge.scalar(value, KIND.get(value.__class__, 0), path, node)
    return not judge.problems


class _Judge(Record):
    view: View
    nodes: tuple[Node, ...]
    loader: str | None
    problems: list[Problem] = field(factory=list)

    def mapping(self, mapping: Mapping, path: Path, node: Node, skip: tuple[str, ...] = ()) -> None:
        keys, others, nodes = node[3] or (), node[4], self.nodes
        dialect, interpolates = self.view.dialect, self.view.dialect.interpolates
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
            if own is Scalar and not ("${" in value.text or (interpolates and value.text == "???")):  # type: ignore[union-attr]
                plain = resolve(value, dialect)  # type: ignore[arg-type]
                kind = KIND.get(plain.__class__, 0)
                if not inner[0] & kind or (inner[2] is not None and kind & NUMBER):
                    self.scalar(plain, kind, (*path, name), inner)
            elif own is Mapping and inner[0] & MAP:
                if (inner[3] is not None or inner[4] != ANY) and len(path) < _DEEPEST:
                    self.mapping(value, (*path, name), inner)  # type: ignore[arg-type]
            elif inner[0] != EVERYTHING or inner[3] is not None:
                self.value(value, (*path, name), inner)

    def value(self, value: Any, path: Path, node: Node) -> None:
        """Judge what is at a path, wherever it is defined."""
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
            dialect = self.view.dialect
            plain = resolve(value, dialect) if isinstance(value, Scalar) else value
            if not (isinstance(plain, Missing) or (plain == "???" and dialect.interpolates)):
                self.scalar(plain, KIND.get(plain.__class__, 0), path, node)

    def _followed(self, value: Any, path: Path) -> Any:
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

            result = CONVERT[self.loader](value, node[0], node[1])
            if result is not NO:
                if node[2] is not None and type(result) in (int, float) and not within(result, node[2]):
                    self.note("value", path, node, value)
                return
        self.note("value" if node[1] and not node[0] & ~NULL else "kind", path, node, value)

    def note(self, what: str, path: Path, node: Node, value: object = None) -> None:
        if len(self.problems) < _MOST:
            self.problems.append(Problem(what, path, node, value))


def member(value: object, members: tuple[object, ...]) -> bool:
    """Whether a value is one of those listed; a truth is not a number."""
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
