"""The facts of one document on one target, by the vocabulary's names, computed when a rule asks.

A name is looked up where it was given (an example, the target, a facts file), then in the framework's
bindings as far as their keys are present, then in the bindings' defaults, then as a let; what is left is
missing, and says so wherever it is used. `engine/describe.py` tells afterwards where a value came from.
"""

from __future__ import annotations

from cfglint.document.foreign import is_own
from cfglint.document.tree import ABSENT, ALL, Missing
from cfglint.lang.runtime import as_bool, as_list, as_member, as_number, as_text
from cfglint.lang.values import NOTHING, Interval, Open, Unknown, hull, needs_of
from cfglint.lang.versions import NEWEST
from cfglint.schema.dated import last_told
from cfglint.vendored import default_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from cfglint.document.view import View
    from cfglint.lang.pack import Pack, Packed, Spec

    Steps: TypeAlias = tuple[str | int, ...]
    # source, when, default, null, the paths that the source reads, whether it is one key's value, which still
    # needs its type (and has no function)
    Alternative: TypeAlias = tuple[
        Callable[[Any], Any] | None,
        Callable[[Any], Any] | None,
        Callable[[Any], Any] | None,
        Callable[[Any], Any] | None,
        tuple[Steps, ...],
        bool,
    ]
    Way: TypeAlias = tuple[Callable[["Values"], object], object]
    Tables: TypeAlias = Mapping[str, Callable[[str | float], Mapping[str, object] | None]]

_ANY_SPEC: Spec = ("any", 1, -float("inf"), float("inf"), None)
_LARGE = 2**63
_CONVERTERS: dict[str, Callable[[object], object]] = {"bool": as_bool, "text": as_text, "list": as_list}
NO_KEYS = ("document", "framework")  # what is said of the file; no file says it of itself


def missing(name: str, spec: Spec, needs: frozenset[str] = NOTHING) -> object:
    """Return the value of a fact that nobody gives: its type's range, resting on ``needs`` or its name."""
    needs = needs or frozenset((name,))
    kind = spec[0]
    if kind == "number":
        return Interval(spec[2], spec[3], needs)
    return Open(needs) if kind == "bool" else Unknown(needs)


def convert(name: str, value: object, spec: Spec) -> object:
    """Return a value of the file as a value of the fact's type, in base units; missing where it cannot be."""
    kind, factor, low, high, spellings = spec
    own = type(value)
    if (own is str and kind == "text") or (own is bool and kind == "bool"):
        return value
    result = value
    if kind == "number":
        number = value if own is int and -_LARGE < value < _LARGE else as_number(value)  # type: ignore[operator]
        result = number if factor == 1 else number * factor  # type: ignore[operator]
        if type(result) is int or type(result) is float:
            return result if low <= result <= high else missing(name, spec)
    elif kind == "enum":
        result = as_member(value, spellings or {})
    elif kind in _CONVERTERS:
        result = _CONVERTERS[kind](value)
    if not needs_of(result):
        return result
    return _in_part(missing(name, spec), getattr(result, "tail", ""))


def stated(pack: Pack, name: str, value: object) -> object:
    """Return a value that a file gives under the fact's own name, in base units.

    ABSENT for null, unless that is a member's spelling; missing where it is not a value of the type.
    """
    kind, *_, spellings = spec = pack.facts[name]
    if value is None and "null" not in (spellings or ()):
        return ABSENT
    if type(value) is Missing:
        return missing(name, spec, frozenset(value.needs))
    if kind == "list" and isinstance(value, str):
        return [value]
    if kind == "number":
        return _stated_number(pack, name, value)
    return convert(name, value, spec)


def _stated_number(pack: Pack, name: str, value: object) -> object:
    _, _, low, high, _ = spec = pack.facts[name]
    result = convert(name, value, spec)
    if isinstance(value, str) and needs_of(result):
        if value.lower() in ("none", "null"):
            return ABSENT
        from cfglint.lang.types import measured

        number = measured(value, pack.measures[name][0])
        result = result if number is None else number
    if isinstance(result, Interval) or not low <= result <= high:  # type: ignore[operator]
        return missing(name, spec)
    if pack.measures[name][1]:
        return int(result) if result == int(result) else missing(name, spec)  # type: ignore[call-overload]
    return result


class Values(dict[str, object]):
    """Memoised facts. ``tables`` are the registries' look-ups (a row by its key)."""

    __slots__ = (
        "_context",
        "_program",
        "_rows",
        "_ways",
        "bindings",
        "cases",
        "document",
        "framework",
        "given",
        "lets",
        "named",
        "own",
        "pack",
        "tables",
        "version",
        "view",
    )

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
        self.framework = framework
        self._rows: dict[str, Mapping[str, object] | frozenset[str]] = {}
        rules = pack.frameworks.get(framework) if framework is not None else None
        self.bindings: Mapping[str, tuple[Alternative, ...]] = rules["bind"] if rules else {}
        self.lets: Mapping[str, Packed] = rules["lets"] if rules else {}
        named = rules is not None and rules["keys"] is not None
        # The flags of a command are its program's own words, whatever they are called.
        document = getattr(view, "document", None)  # an example's keys are of none
        self.named = named and (document is None or document.format != "shell")
        self.given = given if given is not None else {}
        self._program = framework if self.named or not named else f"{framework} flags"
        self._take_as(own=rules is None or is_own(framework or "", rules, document, view))
        self.tables = tables if tables is not None else {}
        self.document: Callable[[str], object] | None = None
        self.cases: list[Any] | None = None  # once they are asked for (engine/cases.py)
        if framework is not None:
            self["framework.name"] = framework
            self["framework.dialect"] = rules["dialect"].partition("_")[0] if rules else "pyyaml"
            self["framework.composes"] = (rules["composes"] if rules else "") or "nothing"
        if rules is not None and version is None:
            version = self._version_told(rules["versions"])
        self.version = version or NEWEST
        self["framework.version"] = self.version
        self._context = (pack, view, framework, version, self.given, self.tables)

    def _take_as(self, *, own: bool) -> None:
        """See the framework's own program, or another one, whose defaults are unknown."""
        self.own = own
        ways = self._program if own else f"{self._program} of another program"
        self._ways: dict[str, Way] = self.pack.ways.setdefault(ways, {})

    def again(self, kind: type[Values]) -> Values:
        """Return the same facts as another kind of them, with nothing computed yet."""
        fresh: Values = kind(*self._context)
        fresh._take_as(own=self.own)
        fresh.document = self.document
        return fresh

    def but(self, more: Mapping[str, object], *, own: bool | None = None, seen: View | None = None) -> Values:
        """Return facts with nothing computed yet, where ``more`` is given; ``own``: see `_take_as`."""
        pack, view, framework, version, before, tables = self._context
        fresh = Values(pack, seen or view, framework, version, {**before, **more}, tables)
        fresh._take_as(own=self.own if own is None else own)
        fresh.document = self.document
        return fresh

    def _version_told(
        self, versions: tuple[tuple[tuple[int, ...], Callable[[Any], Any] | None], ...]
    ) -> tuple[float, ...]:
        told: tuple[float, ...] = NEWEST
        for numbers, test in versions:
            if test is None or test(self) is True:
                told = numbers
                break
        most = None if self.view is None else last_told(self.framework, self.view)
        return told if most is None else min(told, most)

    # ── the names ──────────────────────────────────────────────────────────────────────────────────────
    def __missing__(self, name: str) -> object:
        way, blank = self._ways.get(name) or self._way(name)
        value = self.given[name] if name in self.given else way(self)
        if value is ABSENT:
            value = blank
        self[name] = value
        return value

    def __init_subclass__(cls) -> None:
        if cls.find is not Values.find and cls.__missing__ is Values.__missing__:
            cls.__missing__ = cls._missing_by_find  # type: ignore[method-assign]

    def _missing_by_find(self, name: str) -> object:
        spec = self.pack.facts.get(name, _ANY_SPEC)
        value = self.find(name, spec)
        if value is ABSENT:
            value = missing(name, spec)
        self[name] = value
        return value

    def find(self, name: str, _spec: Spec) -> object:
        """Compute a name's value; ABSENT where nothing gives it. A subclass may have its own."""
        if name in self.given:
            return self.given[name]
        return (self._ways.get(name) or self._way(name))[0](self)

    def _way(self, name: str) -> Way:
        """Find out once for all files of a framework what computes a name, and what it is worth without."""
        let = self.lets.get(name) or self.pack.lets.get(name)
        if let is not None and not self.named and name not in self.bindings:
            way: Way = let.unpacked(), None
        else:
            way = self._found_by(name), missing(name, self.pack.facts.get(name, _ANY_SPEC))
        self._ways[name] = way
        return way

    def _found_by(self, name: str) -> Callable[[Values], object]:
        """Return what computes a name that is not given."""
        pack = self.pack
        spec = pack.facts.get(name, _ANY_SPEC)
        way = self._derived_by(name, spec)
        alternatives = self.bindings.get(name)
        if alternatives is not None:
            if not self.own:
                alternatives = _unknown_defaults(alternatives, missing(name, spec))
            return _bound_by(name, alternatives, spec, way)
        if not self.named:
            return way

        def stated_or_derived(values: Values) -> object:
            path = values.key_of(name)
            return way(values) if path is None else stated(pack, name, values.view.get(path))  # type: ignore[union-attr]

        return stated_or_derived

    def _derived_by(self, name: str, spec: Spec) -> Callable[[Values], object]:
        """Return what computes a name that the file does not give."""
        let = self.lets.get(name) or self.pack.lets.get(name)
        if let is not None:
            return let.unpacked()
        prefix, dot, rest = name.partition(".")
        if dot and prefix == "document":
            return lambda values: values.document(rest) if values.document is not None else ABSENT
        if dot and prefix in self.pack.registries:
            return lambda values: values.looked_up(name, prefix, rest, spec)
        return _nothing

    def key_of(self, name: str) -> Steps | None:
        """Return the key of the fact's own name, where such a key gives the fact; None where none does."""
        if not self.named or name in self.bindings or self.view is None:
            return None
        steps = tuple(name.split("."))
        if name not in self.pack.facts or steps[0] in NO_KEYS:
            return None
        for path in dict.fromkeys((steps, (name,))):
            if self.view.has(path) and stated(self.pack, name, self.view.get(path)) is not ABSENT:
                return path
        return None

    def looked_up(self, name: str, prefix: str, column: str, spec: Spec) -> object:
        """Return a registry's figure for ``name``: the column of the first key whose row is known."""
        _, keys = self.pack.registries[prefix]
        if name in keys:
            return ABSENT
        row = self._rows.get(prefix)
        if row is None:
            row = self._rows[prefix] = self._row(prefix)
        if isinstance(row, frozenset):
            return missing(name, spec, row) if row else ABSENT
        value = row.get(column)
        return ABSENT if value is None else convert(name, value, spec)

    def _row(self, prefix: str) -> Mapping[str, object] | frozenset[str]:
        """Return a registry's row, by the first of its keys that is known and in the table.

        Where there is none, return the names that would settle it: if no key is known, what the path needs;
        if the table lacks what is known, the first key, which may describe any model.
        """
        table, keys = self.pack.registries[prefix]
        if prefix != "model" and keys[0].endswith(
            "model_path"
        ):  # a role's; a rule cannot ask "the same unknown"
            own = self.pack.registries["model"][1][0]
            if not needs_of(self[own]) and self[keys[0]] is self["model_path"]:  # the policy's, from a file
                return self._row("model")
        find = self.tables.get(table)
        stated = False
        for key in keys if find is not None else ():
            wanted = self[key]
            if type(wanted) is Unknown and wanted.tail:
                wanted = "\u2026/" + wanted.tail.lstrip("/")
            if type(wanted) in (str, int, float):
                stated = True
                try:
                    row = find(wanted)  # type: ignore[misc, arg-type]
                except AttributeError:  # a table of texts alone, asked for a number
                    if isinstance(wanted, str):
                        raise
                    row = None
                if row is not None:
                    return row
        if stated:
            return frozenset(keys[:1]) if len(keys) > 1 else NOTHING
        asked = next((key for key in keys if key.endswith("path")), keys[-1])
        return needs_of(self[asked]) or frozenset((asked,))

    def bound(
        self,
        name: str,
        alternatives: tuple[Alternative, ...],
        spec: Spec,
        otherwise: Callable[[Values], object],
    ) -> object:
        """Return what the bindings give that are in force, or may be; else, or if none may, ``otherwise``."""
        chosen = self.alternatives_in_force(alternatives)
        if not chosen:
            return otherwise(self)
        if len(chosen) == 1 and chosen[0][1] is True:
            return self.alternative_value(name, chosen[0][0], spec)
        needs = NOTHING.union(*(needs_of(truth) for _, truth in chosen))
        values = [self.alternative_value(name, alternative, spec) for alternative, _ in chosen]
        if not any(truth is True for _, truth in chosen):
            derived = otherwise(self)  # none of them may be meant: the engine may be another one
            values.append(missing(name, spec) if derived is ABSENT else derived)
        return hull(values, needs)

    def possible(self, name: str) -> list[Alternative]:
        """Return the bindings that may give a name in a file like this one, all where none does."""
        every = list(self.bindings.get(name, ()))
        return [each for each in every if each[1] is None or each[1](self) is not False] or every

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
        return _gives(self.view, alternative[4])

    def alternative_value(self, name: str, alternative: Alternative, spec: Spec) -> object:
        """Return what one binding gives, in base units."""
        source, _, default, null, paths, _ = alternative
        if not self._present(alternative):
            blank = missing(name, spec)
            if default is None or self.own:
                return blank if default is None else default(self)
            return default_of(self.view, lambda: default(self), paths, blank)
        if len(paths) == 1 and self.view is not None and self.view.get(paths[0]) is None:
            return null(self) if null is not None else missing(name, spec)
        if source is None:  # a key by itself
            return convert(name, self.key(paths[0]), spec)
        value = source(self)
        return value if len(paths) != 1 or is_within(value, spec) else missing(name, spec)

    # ── the file, as rules see it ──────────────────────────────────────────────────────────────────────
    def key(self, steps: Steps) -> object:
        """Return the value at a path; Unknown, resting on the path, where there is none."""
        path = tuple(ALL if step == "*" else step for step in steps) if "*" in steps else steps
        value = self.view.get(path) if self.view is not None else ABSENT
        if value is ABSENT:
            return Unknown(frozenset((_path(steps),)))
        if type(value) is Missing:
            return Unknown(frozenset(value.needs or (_path(steps),)), value.tail)
        return value

    def has(self, steps: Steps) -> bool | Open:
        """Whether the file has a key, whatever its value; open where a file that may have it is not here."""
        view = self.view
        if view is None:
            return False
        if view.unread is not None:
            name = view.awaits(steps)
            if name is not None:
                return Open(frozenset((name,)))
        present = view.has(steps)
        if present and steps in view.unsettled:  # below a reference that leads nowhere
            return Open(frozenset(view.unsettled[steps]))
        return present


def _gives(view: View | None, paths: tuple[Steps, ...]) -> bool:
    """Whether a file has what a binding reads."""
    return not paths or (view is not None and any(view.has(path) for path in paths))


def _in_part(blank: object, tail: str) -> object:
    return Unknown(blank.needs, tail) if tail and isinstance(blank, Unknown) else blank


def is_within(value: object, spec: Spec) -> bool:
    """Whether a fact may have a value; a number outside of its range says nothing."""
    return type(value) not in (int, float) or spec[2] <= value <= spec[3]  # type: ignore[operator]


def _nothing(_values: Values) -> object:
    return ABSENT


def _unknown_defaults(alternatives: tuple[Alternative, ...], blank: object) -> tuple[Alternative, ...]:
    """Return bindings as another program has them: only defaults that it leaves out are known."""

    def known(
        default: Callable[[Values], object] | None, paths: tuple[Steps, ...]
    ) -> Callable[[Values], object] | None:
        def worth(values: Values) -> object:
            return (
                blank if default is None else default_of(values.view, lambda: default(values), paths, blank)
            )

        return None if default is None else worth

    return tuple((a, b, known(c, paths), d, paths, e) for a, b, c, d, paths, e in alternatives)


def _bound_by(
    name: str, alternatives: tuple[Alternative, ...], spec: Spec, otherwise: Callable[[Values], object]
) -> Callable[[Values], object]:
    """Return what computes a bound name: `Values.bound`, made short for where every ``when`` is decided."""
    blank = missing(name, spec)
    listed = any("*" in path for *_, paths, _ in alternatives for path in paths)

    def bound(values: Values) -> object:
        fallback = None
        view = values.view
        for source, when, default, null, paths, _ in alternatives:
            truth = True if when is None else when(values)
            if truth is False:
                continue
            if truth is not True:
                return undecided(values)
            if len(paths) == 1:
                value = ABSENT if view is None else view.get(paths[0])
                if value is None:
                    return blank if null is None else null(values)
                if value is not ABSENT:
                    if source is not None:
                        result = source(values)
                        return result if is_within(result, spec) else blank
                    known = type(value) is not Missing
                    return convert(name, value, spec) if known else _in_part(blank, value.tail)  # type: ignore[attr-defined]
            elif _gives(view, paths):
                return source(values)  # type: ignore[misc]
            if fallback is None:
                fallback = default
        return otherwise(values) if fallback is None else fallback(values)

    def undecided(values: Values) -> object:
        value = values.bound(name, alternatives, spec, otherwise)
        return otherwise(values) if value is ABSENT else value

    return undecided if listed else bound


def _path(steps: Steps) -> str:
    return "$" + "".join(f"[{s}]" if isinstance(s, int) or s == "*" else f".{s}" for s in steps)
