"""The facts of one document on one target, by the vocabulary's names, computed when a rule asks.

A name is looked up where it was given (an example, the target, a facts file), then in the framework's
bindings as far as their keys are present, then in the bindings' defaults, then as a let; what is left is
missing, and says so wherever it is used. `origin.py` tells afterwards where a value came from.
"""

from __future__ import annotations

from cfglint.document.scalars import Missing
from cfglint.document.view import ABSENT, ALL
from cfglint.dsl.runtime import as_bool, as_list, as_member, as_number, as_text
from cfglint.dsl.values import NOTHING, Interval, Open, Unknown, hull, needs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from cfglint.document.view import View
    from cfglint.dsl.pack import Pack

    Steps: TypeAlias = tuple[str | int, ...]
    # source, when, default, null, the paths that the source reads, whether its value still wants its type
    Alternative: TypeAlias = tuple[
        Callable[[Any], Any] | None,
        Callable[[Any], Any] | None,
        Callable[[Any], Any] | None,
        Callable[[Any], Any] | None,
        tuple[Steps, ...],
        bool,
    ]
    Spec: TypeAlias = tuple[str, float, float, float, Mapping[str, str] | None]
    Tables: TypeAlias = Mapping[str, Callable[[str], Mapping[str, object] | None]]

NEWEST = (float("inf"),)
_ANY_SPEC: Spec = ("any", 1, -float("inf"), float("inf"), None)


def missing(name: str, spec: Spec) -> object:
    """Return the value of a fact that nobody gives: its type's whole range, resting on its name."""
    needs = frozenset((name,))
    kind = spec[0]
    if kind == "number":
        return Interval(spec[2], spec[3], needs)
    return Open(needs) if kind == "bool" else Unknown(needs)


def convert(name: str, value: object, spec: Spec) -> object:
    """Return a value of the file as a value of the fact's type, in base units; missing where it cannot be."""
    kind, factor, _, _, spellings = spec
    result: object
    if kind == "number":
        result = as_number(value)
        if factor != 1:
            result = result * factor
    elif kind == "bool":
        result = as_bool(value)
    elif kind == "enum":
        result = as_member(value, spellings or {})
    elif kind == "text":
        result = as_text(value)
    elif kind == "list":
        result = as_list(value)
    else:
        result = value
    return missing(name, spec) if needs_of(result) else result


class Values(dict[str, object]):
    """Memoised facts. ``tables`` are the registries' look-ups (a row by its key)."""

    __slots__ = ("_context", "bindings", "document", "given", "lets", "pack", "tables", "version", "view")

    def __init__(
        self,
        pack: Pack,
        view: View | None = None,
        framework: str | None = None,
        version: tuple[float, ...] | None = None,
        given: Mapping[str, object] | None = None,
        tables: Tables | None = None,
    ) -> None:
        super().__init__()
        self.pack = pack
        self.view = view
        rules = pack.frameworks.get(framework) if framework is not None else None
        self.bindings: Mapping[str, tuple[Alternative, ...]] = rules["bind"] if rules else {}
        self.lets: Mapping[str, Callable[[Any], Any]] = rules["lets"] if rules else {}
        self.given = given if given is not None else {}
        self.tables = tables if tables is not None else {}
        self.document: Callable[[str], list[object]] | None = None
        if framework is not None:
            self["framework.name"] = framework
            self["framework.dialect"] = rules["dialect"] if rules else "pyyaml"
        if rules is not None and version is None:
            version = self._version_told(rules["versions"])
        self.version = version or NEWEST
        self["framework.version"] = self.version
        self._context = (pack, view, framework, version, self.given, self.tables)

    def again(self) -> Values:
        """Return the same facts with nothing computed yet."""
        other = Values(*self._context)
        other.document = self.document
        return other

    def _version_told(
        self, versions: tuple[tuple[tuple[int, ...], Callable[[Any], Any] | None], ...]
    ) -> tuple[float, ...]:
        for numbers, test in versions:
            if test is None or test(self) is True:
                return numbers
        return NEWEST

    # ── the names ──────────────────────────────────────────────────────────────────────────────────────
    def __missing__(self, name: str) -> object:
        spec = self.pack.facts.get(name, _ANY_SPEC)
        self[name] = missing(name, spec)  # seen by whatever asks for the name again while it is computed
        value = self.find(name, spec)
        if value is ABSENT:
            return self[name]
        self[name] = value
        return value

    def find(self, name: str, spec: Spec) -> object:
        """Compute a name's value; ABSENT where nothing gives it."""
        if name in self.given:
            return self.given[name]
        alternatives = self.bindings.get(name)
        if alternatives is not None:
            value = self._bound(name, alternatives, spec)
            if value is not ABSENT:
                return value
        let = self.lets.get(name) or self.pack.lets.get(name)
        if let is not None:
            return let(self)
        prefix, dot, rest = name.partition(".")
        if dot and prefix == "document" and self.document is not None:
            return self.document(rest)
        if dot and prefix in self.pack.registries:
            return self._looked_up(name, prefix, rest, spec)
        return ABSENT

    def _looked_up(self, name: str, prefix: str, column: str, spec: Spec) -> object:
        table, key = self.pack.registries[prefix]
        wanted = self[key]
        find = self.tables.get(table)
        if find is None or not isinstance(wanted, str):
            return Unknown(needs_of(wanted)) if spec[0] == "text" and needs_of(wanted) else ABSENT
        row = find(wanted)
        value = row.get(column) if row is not None else None
        return ABSENT if value is None else convert(name, value, spec)

    def _bound(self, name: str, alternatives: tuple[Alternative, ...], spec: Spec) -> object:
        chosen = self.alternatives_in_force(alternatives)
        if not chosen:
            return ABSENT
        if len(chosen) == 1 and chosen[0][1] is True:
            return self.alternative_value(name, chosen[0][0], spec)
        needs = NOTHING.union(*(needs_of(truth) for _, truth in chosen))
        values = [self.alternative_value(name, alternative, spec) for alternative, _ in chosen]
        if not any(truth is True for _, truth in chosen):
            values.append(missing(name, spec))  # none of them may be meant: the engine may be another one
        return hull(values, needs)

    def alternatives_in_force(self, alternatives: tuple[Alternative, ...]) -> list[tuple[Alternative, Any]]:
        """Return the bindings that give the name its value, each with the truth of its ``when``.

        The first whose key is present and whose ``when`` is true decides alone; bindings before it whose
        ``when`` is open may be meant too. Where no key is present, the same holds of the defaults.
        """
        open_ones: list[tuple[Alternative, Any]] = []
        defaults: list[tuple[Alternative, Any]] = []
        settled = False
        for alternative in alternatives:
            when = alternative[1]
            truth = True if when is None else when(self)
            if truth is False:
                continue
            if self._present(alternative):
                open_ones.append((alternative, truth))
                if truth is True:
                    return open_ones
            elif alternative[2] is not None and not settled:
                defaults.append((alternative, truth))
                settled = truth is True
        return open_ones + defaults

    def _present(self, alternative: Alternative) -> bool:
        paths = alternative[4]
        if not paths:
            return True
        view = self.view
        return view is not None and any(view.has(path) for path in paths)

    def alternative_value(self, name: str, alternative: Alternative, spec: Spec) -> object:
        """Return what one binding gives, in base units."""
        source, _, default, null, paths, raw = alternative
        if not self._present(alternative):
            return default(self) if default is not None else missing(name, spec)
        if len(paths) == 1 and self.view is not None and self.view.get(paths[0]) is None:
            return null(self) if null is not None else missing(name, spec)
        assert source is not None
        value = source(self)
        return convert(name, value, spec) if raw else value

    # ── the file, as rules see it ──────────────────────────────────────────────────────────────────────
    def key(self, steps: Steps) -> object:
        """Return the value at a path; Unknown, resting on the path, where there is none."""
        path = tuple(ALL if step == "*" else step for step in steps) if "*" in steps else steps
        value = self.view.get(path) if self.view is not None else ABSENT
        if value is ABSENT:
            return Unknown(frozenset((_path(steps),)))
        if type(value) is Missing:
            return Unknown(frozenset(value.needs or (_path(steps),)))
        return value

    def has(self, steps: Steps) -> bool:
        """Whether the file has a key, whatever its value."""
        return self.view is not None and self.view.has(steps)


def _path(steps: Steps) -> str:
    return "$" + "".join(f"[{s}]" if isinstance(s, int) or s == "*" else f".{s}" for s in steps)
