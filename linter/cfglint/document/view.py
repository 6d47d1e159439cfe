"""The values of a document as the loader sees them: aliases, merges, ``${…}`` and overrides applied.

A place is a node and the path at which it is defined, since relative interpolation starts from there.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.scalars import JSON, PYTHON, TOML, Dialect, is_float_like_string, resolve, typed
from cfglint.document.tree import (
    ABSENT,
    ALL,
    DEEPEST_PATH,
    MAX_REFERENCES,
    Alias,
    All,
    Computed,
    Document,
    Entry,
    Mapping,
    Missing,
    Node,
    Off,
    Path,
    Place,
    Scalar,
    Sequence,
    dotted,
    effective,
    mandatory,
    missing,
    nodes_with_paths,
    number_in,
    over_budget,
    plain_reference,
)
from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import collections.abc
    from typing import Any, Protocol

    from cfglint.document.layers import Layers, Source

    class Walker(Protocol):
        """Who is told of the way to a place, as a `Trace` is."""

        def enter(self, mapping: Any, part: Any, entry: Entry) -> None:
            """Note that the way to a value goes through a mapping's entry."""
            ...

        def alias(self, node: Alias) -> None:
            """Note that the way to a value goes through an alias."""
            ...

        def follow(self, node: Node | Computed | None, at: Path) -> Place:
            """Return what a node stands for, and note the steps that lead there."""
            ...


# What following aliases and references may cost, so that ten lines cannot mean a billion values: in one
# call, in all, and in a call when that is spent.
_CALL_BUDGET = 20_000
_WHOLE_BUDGET = 300_000
_LEAST_BUDGET = 1_000
_ENV = "${oc.env:"
_SWITCHES = ("enable", "enabled")
# All of a value: what `envsubst` or a program of one's own fills in where the loader interpolates nothing.
PLACEHOLDER = re.compile(r"\$\{[A-Za-z_][\w.:]*\}\Z")
# What stands beside a trainer's arguments in the tree of a program, which `**options` cannot set.
_NO_ARGUMENTS = frozenset((
    "launch", "python", "accelerate_config", "from_pretrained", "get_peft_model", "LoraConfig",
    "BitsAndBytesConfig", "prepare_model_for_kbit_training",
))  # fmt: skip
_BY_FORM = {"json": JSON, "toml": TOML, "python": PYTHON, "notebook": PYTHON, "program": PYTHON}


class BudgetError(Exception):
    """The document stands for more values than anyone writes."""


class MappingView(Value):
    """A mapping seen through a view."""

    view: View
    path: Path

    def get(self, name: str) -> object:
        """Return the value under ``name``."""
        return self.view.get((*self.path, name))

    def keys(self) -> list[str]:
        """Return the keys, merged ones after the mapping's own."""
        return self.view.keys(self.path)

    def __repr__(self) -> str:
        return f"MappingView({dotted(self.path)!r})"


def _by_default(path: Path, why: str) -> bool:
    """Whether what may set absent keys is taken to leave their defaults, where somebody vouches for it."""
    loads = path[0] in ("from_pretrained", "prepare_model_for_kbit_training") if path else False
    return loads and why != "the model's precision"


class View(Record):
    """One document under one dialect, with overrides and an environment (None: no variable is known).

    ``layers`` are the other files that it is composed of; ``beneath`` is how the YAML ones of them are read,
    where the document itself is of another form. ``resolvers`` are those that the framework registers.
    ``memo`` keeps what tracing and looking for defects find out once.
    """

    document: Document
    dialect: Dialect
    overrides: collections.abc.Sequence[str] = ()
    environ: collections.abc.Mapping[str, str] | None = None
    layers: Layers | None = None
    beneath: Dialect | None = None
    resolvers: collections.abc.Sequence[str] = ()
    root: Node | None = field(default=None, init=False)
    origins: dict[int, str] = field(factory=dict, init=False)
    interpolates: bool = field(default=False, init=False)
    sources: dict[int, Source] | None = field(default=None, init=False)
    hung: dict[int, Node] | None = field(default=None, init=False)
    unread: dict[Path, str] | None = field(default=None, init=False)
    # What is wanted for paths below a reference that leads nowhere.
    unsettled: dict[Path, tuple[str, ...]] = field(factory=dict, init=False)
    cyclic: set[Path] = field(factory=set, init=False)
    memo: dict[str, Any] = field(factory=dict, init=False)
    overrun: str = field(default="", init=False)  # why some values are not known that the file has
    _values: dict[Path, object] = field(factory=dict, init=False)
    _present: dict[Path, bool] = field(factory=dict, init=False)
    _followed: dict[Path, Place] = field(factory=dict, init=False)
    _merged: dict[int, dict[str, Entry]] = field(factory=dict, init=False)
    _active: list[Path] = field(factory=list, init=False)
    _given: int = field(default=_CALL_BUDGET, init=False)
    _left: int = field(default=_CALL_BUDGET, init=False)
    _whole: int = field(default=_WHOLE_BUDGET, init=False)

    def __post_init__(self) -> None:
        layers = self.layers
        self.root = self.document.root
        self.interpolates = self.dialect.interpolates
        self.unread = self.document.unread
        if layers is not None:
            self.root = layers.root
            self.sources = layers.sources
            self.hung = layers.hung or None
            self.unread = {**(self.unread or {}), **layers.unread} or None
            self.interpolates = self.interpolates or (self.beneath or self.dialect).interpolates
        if self.unread is not None and self.document.vouched:
            self.unread = {
                path: why for path, why in self.unread.items() if not _by_default(path, why)
            } or None
        if self.overrides:
            from cfglint.document.layers import Overlay, read_override

            overlay = Overlay(self.root, self.hung or {})
            read = layers.read if layers is not None else {}
            for text in self.overrides:
                overlay.apply(read.get(text) or read_override(text))
            self.root = overlay.root
            self.origins = overlay.origins
            if self.sources is not None:
                self.sources = overlay.sources(self.sources)

    # ── what is asked of a view ────────────────────────────────────────────────────────────────────────────
    def get(self, path: Path) -> object:
        """Return the value at ``path``: native, a list, a MappingView, ABSENT or Missing."""
        try:
            return self._values[path]
        except KeyError:
            pass
        self.refill()
        try:
            value = self._get(path)
        except (BudgetError, RecursionError):
            value = over_budget()
            self.overrun = value.why
        self._values[path] = value
        return value

    def has(self, path: Path) -> bool:
        """Return whether something is at ``path``, be it null or of unknown value."""
        present = self._present.get(path)
        if present is None:
            self.refill()
            try:
                node = None if ALL in path else self.place(path)[0]
                there = node is not None and node.__class__ is not Off
                present = bool(self.get(path)) if ALL in path else there
                if node.__class__ is Computed and isinstance(node.value, Missing):
                    self.unsettled[path] = node.value.needs
            except (BudgetError, RecursionError):
                present = True
            self._present[path] = present
        return present

    def looked_up(self) -> collections.abc.Iterable[Path]:
        """Return all paths that somebody has asked for."""
        return {**self._values, **self._present}

    def awaits(self, path: Path) -> str | None:
        """Return the file that is not here and may have the key at ``path``, which no other file has."""
        if self.unread is None or ALL in path:
            return None
        self.refill()
        try:
            value = getattr(self.place(path)[0], "value", None)
        except (BudgetError, RecursionError):
            return None
        return value.needs[0] if isinstance(value, Missing) and value.kind == "unread" else None

    def hangs(self, path: Path) -> tuple[Source, Path] | None:
        """Return the file that hangs on the way to ``path``, and the path in it; None where none does."""
        for depth in range(1, len(path)) if self.hung is not None else ():
            root = self.hanging(self.place(path[:depth])[0])
            source = None if root is None else self.source(root)
            if source is not None:
                return source, path[depth:]
        return None

    def keys(self, path: Path) -> list[str]:
        """Return the keys of the mapping at ``path``; none where there is no mapping."""
        self.refill()
        try:
            node, _ = self.follow(*self.place(path))
        except (BudgetError, RecursionError):
            return []
        node = self.hanging(node) or node
        return list(self.entries(node)) if isinstance(node, Mapping) else []

    # ── budget ─────────────────────────────────────────────────────────────────────────────────────────────
    def refill(self) -> bool:
        """Begin a call: book what the last one used, give this its own budget; false where all is used up."""
        self._whole -= self._given - max(self._left, 0)
        self._given = self._left = _CALL_BUDGET if self._whole > 0 else _LEAST_BUDGET
        return self._whole > 0

    def spend(self, cost: int) -> None:
        """Take ``cost`` from the budget; raises BudgetError where nothing is left."""
        self._left -= cost
        spend(cost, "references and aliases")
        if self._left < 0:
            raise BudgetError

    # ── places ─────────────────────────────────────────────────────────────────────────────────────────────
    def entries(self, mapping: Mapping) -> dict[str, Entry]:
        """Return the entries of ``mapping`` with what it merges."""
        if not mapping.merges:
            return mapping.entries
        entries = self._merged.get(id(mapping))
        if entries is None:
            entries = self._merged[id(mapping)] = effective(mapping)
            self.spend(len(entries))
        return entries

    def hanging(self, node: object) -> Node | None:
        """Return the root of the file that hangs at a node."""
        return None if self.hung is None else self.hung.get(id(node))

    def place(self, path: Path, walker: Walker | None = None) -> Place:
        """Return the node at ``path`` and its own path; a reference at the very end is not followed.

        The node is None where nothing is there, a Computed with a Missing where that is not known. A
        ``walker`` is told of each step, and follows references in its own way.
        """
        node: Any = self.root
        at: Path = ()
        for part in path:
            kind = node.__class__
            if kind is Scalar:
                node, at = (walker or self).follow(node, at)
                kind = node.__class__
            if kind is Mapping:
                entries = node.entries if not node.merges else self.entries(node)
                entry = entries.get(part)  # type: ignore[arg-type] # a number finds nothing
                if entry is None:
                    return None if self.unread is None else self._elsewhere((*at, part)), at
                if walker is not None:
                    walker.enter(node, part, entry)
                node = entry.value
                at = (*at, part)
            elif kind is Sequence:
                index = number_in(node.items, part)
                if index is None:
                    return None, at
                node = node.items[index]
                at = (*at, index)
            else:
                node, at = self._inside(node, part, at, walker)
                if node is None or (node.__class__ is Computed and isinstance(node.value, Missing)):
                    return node, at
            if node.__class__ is Alias:
                if walker is not None:
                    walker.alias(node)
                node = node.target
        return node, at

    def _inside(self, node: Any, part: str | int | All, at: Path, walker: Walker | None) -> Place:
        """Step into a computed list, or a scalar that names a file."""
        if node.__class__ is Computed:
            value: Any = node.value
            if isinstance(value, Missing):
                return node, at
            if isinstance(value, MappingView) and isinstance(part, str):
                return self.place((*value.path, part))  # such a mapping is one of the file
            index = number_in(value, part) if isinstance(value, list) else None
            return (None, at) if index is None else (Computed(value[index]), (*at, index))
        if node.__class__ is Scalar and node.text == "???" and self.interpolates:
            return Computed(mandatory(at)), at
        root = self.hanging(node)
        entry = self.entries(root).get(part) if isinstance(root, Mapping) else None  # type: ignore[arg-type]
        if entry is None:
            return None, at
        if walker is not None:
            walker.enter(root, part, entry)
        return entry.value, (*at, part)

    def _elsewhere(self, path: Path) -> Computed | None:
        """Return what an absent key is where a file that may define it is not here."""
        for prefix, name in (self.unread or {}).items():
            if not prefix and path[0] == "launch" and self.document.format == "shell":
                continue  # what a command says of itself, no config of its program does
            if not prefix and path[0] in _NO_ARGUMENTS and self.document.unread is not None:
                continue
            shorter = min(len(prefix), len(path))
            if prefix[:shorter] == path[:shorter]:
                why = "is a program" if name.endswith(".py") else "was not found"
                return Computed(Missing((name,), f"{name}, which may set it, {why}", "unread"))
        return None

    def source(self, node: object) -> Source | None:
        """Return how the file of ``node`` came in; None for the document's own."""
        return None if self.sources is None else self.sources.get(id(node))

    def dialect_of(self, node: Node) -> Dialect:
        """Return how the file of ``node`` is read."""
        source = self.source(node)
        if source is None:
            return self.dialect
        form = source.file.format
        return _BY_FORM.get(form) or self.beneath or self.dialect

    def follow(self, node: Node | Computed | None, at: Path) -> Place:
        """Return where a reference leads in the end; any other place leads to itself."""
        if node.__class__ is not Scalar or "${" not in node.text:
            return node, at
        if not self.interpolates:
            unfilled = PLACEHOLDER.match(node.text)
            return (missing(f"{node.text} is filled in elsewhere", "template") if unfilled else node), at
        place = self._followed.get(at)
        if place is not None:
            return place
        active, text = self._active, node.text
        if at in active:
            circle = [*active[active.index(at) :], at]
            self.cyclic.update(circle)
            names = " -> ".join(dotted(p) for p in circle)
            return missing(f"interpolation cycle {names}", "cycle"), at
        if len(active) >= MAX_REFERENCES:
            return missing(f"more than {MAX_REFERENCES} references in a chain", "budget"), at
        self.spend(1)
        active.append(at)
        try:
            keys, name = plain_reference(text), text[len(_ENV) : -1]
            if keys is not None:
                place = self.lead((*keys,), at)
            elif text == f"{_ENV}{name}}}" and name.isidentifier() and typed(name) == name:
                place = Computed(self.variable(name)), at
            else:
                from cfglint.document.omega import Evaluator

                place = Evaluator(self, at).evaluate(text)
        finally:
            active.pop()
        self._followed[at] = place
        return place

    def is_off(self, path: Path) -> bool:
        """Whether what is at a path is in a section that says ``enable: false``, so that nobody reads it."""
        above = (path[:depth] for depth in range(1, len(path)))
        return any(self.get((*section, switch)) is False for section in above for switch in _SWITCHES)

    def variable(self, name: str) -> object:
        """Return the value of an environment variable."""
        if self.environ is not None and name in self.environ:
            return self.environ[name]
        return Missing((f"env.{name}",), f"the environment variable {name} is not set", "env")

    def lead(self, path: Path, at: Path) -> Place:
        """Return where a reference at ``at`` to a path leads in the end."""
        node, end = self.place(path)
        if node is None:
            return missing(f"{dotted(path)} is not in the file", "absent"), at
        node, end = self.follow(node, end)
        if isinstance(node, (Mapping, Sequence)) and at[: len(end)] == end:
            return missing(f"{dotted(at)} refers to its own parent", "cycle"), at
        return node, end

    def suspects(self) -> list[tuple[Path, Scalar, bool]]:
        """Return the scalars that something may be wrong with, and whether each is on a circle; see `trace`.

        Every file is looked through for these: most have none, and then nothing more is imported.
        """
        suspects: list[tuple[Path, Scalar, bool]] | None = self.memo.get("suspects")
        if suspects is None:
            suspects = self.memo["suspects"] = []
            for path, node in nodes_with_paths(self.root):
                if node.__class__ is Scalar and self.source(node) is None and self._suspicious(path, node):
                    suspects.append((path, node, path in self.cyclic))
        return suspects

    def _suspicious(self, path: Path, node: Scalar) -> bool:
        """Whether a scalar is still to be set, leads nowhere, or is a number to people alone."""
        if self.interpolates and node.text == "???":
            return True
        if not self.interpolates or "${" not in node.text:
            return is_float_like_string(node, self.dialect)
        try:
            end = self.follow(node, path)[0] if self.refill() else None
        except (BudgetError, RecursionError):
            return False
        if not isinstance(end, Computed):
            return False  # as most: it leads somewhere, or that is not known
        missing = isinstance(end.value, Missing)
        if missing and (path in self.cyclic or end.value.kind in ("absent", "malformed", "cycle")):  # type: ignore[attr-defined]
            return True
        # Of several, one may hide what is wrong with the next, and so may a list or mapping in an argument.
        several = node.text.count("${")
        return several > 1 and (missing or "[" in node.text or node.text.count("{") > several)

    # ── values ─────────────────────────────────────────────────────────────────────────────────────────────
    def _get(self, path: Path) -> object:
        if ALL in path:
            return self._expand(path)
        node, at = self.place(path)
        if node is None:
            return ABSENT
        node, at = self.follow(node, at)
        return self.value(node, at, path)

    def value(self, node: Any, at: Path, path: Path, depth: int = 0) -> object:
        """Return the value of a place; ``path`` is the one that was asked for."""
        kind = node.__class__
        if kind is Scalar:
            value = resolve(node, self.dialect if self.sources is None else self.dialect_of(node))
            return mandatory(at) if value == "???" and self.interpolates else value
        if kind is Computed:
            return node.value
        if kind is Mapping:
            return MappingView(self, path)
        if kind is not Sequence:  # the scalars of a script, or of a program
            return resolve(node, self.dialect if self.sources is None else self.dialect_of(node))
        if depth >= MAX_REFERENCES:
            return Missing((), f"lists nested more than {MAX_REFERENCES} deep", "budget")
        values: list[object] = []
        self.spend(len(node.items))
        for i, item in enumerate(node.items):
            inner = item.target if item.__class__ is Alias else item
            inner, inner_at = self.follow(inner, (*at, i))
            values.append(self.value(inner, inner_at, (*path, i), depth + 1))
        return values

    def _expand(self, path: Path) -> object:
        where = path.index(ALL)
        prefix, rest = path[:where], path[where + 1 :]
        node, _ = self.follow(*self.place(prefix))
        if isinstance(node, Computed) and isinstance(node.value, Missing):
            return node.value
        holder = node if isinstance(node, (Mapping, Sequence)) else self.hanging(node)
        names: collections.abc.Iterable[str | int]
        if isinstance(holder, Mapping):
            names = self.entries(holder)
        elif isinstance(holder, Sequence) and holder is node:
            names = range(len(holder.items))
        else:
            return ABSENT
        if len(path) > DEEPEST_PATH:
            return over_budget()
        values: list[object] = []
        for name in names:
            self.spend(1)
            value = self._get((*prefix, name, *rest))
            if value is ABSENT:
                continue
            if isinstance(value, list) and ALL in rest:
                self.spend(len(value))
                values.extend(value)
            else:
                values.append(value)
        return values
