"""What differs between two configs, in the vocabulary's words: settings, what follows from them, and effects.

A setting is a fact that a key, a framework's default or the framework itself gives; what is computed from
settings is told apart, so that one changed key is one difference. Nothing is said of a change but what the
knobs say, what the rules compute, and ratios of what both configs state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.document.tree import dotted
from cfglint.engine.describe import Evaluator, Origins, show_value
from cfglint.engine.knobs import Effect, alters_results, effects
from cfglint.features.compare.raw_keys import Key, spelled
from cfglint.lang.units import DURATION, MEMORY
from cfglint.lang.values import Interval, Open, Unknown, needs_of, parts
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfglint.engine.memory import FitRow
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps
    from cfglint.hardware.target import Target
    from cfglint.lang.symbols import Symbols
    from cfglint.lang.types import Type

_NOT_OURS = ("gpu", "framework", "document", "host")  # facts of the machine and of the file as such
_OWN = "own settings of"  # the group of what no section of the vocabulary holds
_TOPOLOGY = "topology"  # how many GPUs there are is worth saying twice
_FURTHER = "further names"
_SETTING = ("file", "default", "target")


@dataclass(frozen=True, slots=True)
class Side:
    """A fact in one of the configs. ``kind`` is file, default, fixed (by the framework), derived, target,
    registry or missing; ``key`` and ``line`` say where in the file, ``source`` says it in words."""

    shown: str
    kind: str
    source: str
    key: str = ""
    line: int | None = None

    @property
    def known(self) -> bool:
        """Whether the config gives the fact."""
        return self.kind != "missing"


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that the two configs give different values. ``ratio`` is B's by A's, where both are numbers.

    ``alters`` says that such a change is known to change the training's results. ``uses`` are the names that
    a derived fact is computed from; ``own`` marks a name that only one framework has.
    """

    name: str
    about: str
    group: str
    a: Side
    b: Side
    effects: tuple[Effect, ...] = ()
    alters: bool = False
    ratio: float | None = None
    uses: tuple[str, ...] = ()
    own: bool = False

    @property
    def by_default(self) -> bool:
        """Whether only one side knows the fact, and its file does not say it."""
        known = [side for side in (self.a, self.b) if side.known]
        return len(known) == 1 and known[0].kind != "file"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quantity of which B has ``value`` times A's; ``because`` are the names that it comes from."""

    what: str
    value: float
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding by its code: what a config has somewhere, however often."""

    code: str
    name: str
    level: str


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two configs: who it is for, what it needs on each target, what is found in it.

    ``unread`` counts those of its ``keys`` that no name of the vocabulary stands for.
    """

    path: str
    framework: str | None
    model: str | None
    rows: tuple[FitRow, ...] = ()
    found: tuple[Found, ...] = ()
    keys: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is said of two configs. ``every`` says that the targets are the whole catalogue."""

    a: Half
    b: Half
    settings: tuple[Difference, ...]
    derived: tuple[Difference, ...]
    keys: tuple[Key, ...]
    ratios: tuple[Ratio, ...]
    every: bool = False

    @property
    def same(self) -> bool:
        """Whether nothing differs that a file says."""
        return not (self.settings or self.derived or self.keys)

    @property
    def alike(self) -> bool:
        """Whether both are for one framework, so that their keys can be compared by name."""
        return self.a.framework == self.b.framework


class Reading:
    """One config's facts with their origins."""

    def __init__(self, run: Run, subject: Subject, target: Target | None, evaluator: Evaluator) -> None:
        judged = run.on(target, subject)
        self.subject = subject
        self.symbols = evaluator.symbols
        self.values = judged.values
        self.origins = Origins(self.symbols, self.values, judged.sources, subject.framework)

    def side(self, name: str, kind: Type) -> Side:
        """Return a fact as this config gives it."""
        value = self.values[name]
        if _unknown(value):
            return Side("", "missing", "not known")
        origin = self.origins.of(name)
        shown = show_value(value, kind)
        view, binding = self.values.view, origin.binding
        written = [p for p in origin.paths if view is not None and "*" not in p and view.has(p)]
        if origin.kind == "file":
            path = written[0] if written else None
            null = binding.null if binding is not None and view is not None and path is not None else None
            if null is not None and view is not None and view.get(path or ()) is None:
                if self.origins.names_in(null):  # null stands for what other facts come to
                    return Side(shown, "derived", origin.source, dotted(path or ()), self._line(path))
                return Side(shown, "default", f"null, {origin.source}", dotted(path or ()), self._line(path))
            return Side(shown, "file", origin.source, dotted(path) if path else "", self._line(path))
        if origin.kind == "default":
            key = dotted(origin.paths[0]) if origin.paths and binding is not None else ""
            kind_of = (
                "derived" if binding is not None and self.origins.names_in(binding.default) else "default"
            )
            return Side(shown, kind_of, origin.source, key)
        if origin.kind == "derived" and not origin.uses and not written:
            return Side(shown, "fixed", f"set by {self.subject.framework or 'the rules'}")
        return Side(shown, origin.kind, origin.source)

    def _line(self, path: Steps | None) -> int | None:
        trace = self.origins.trace(path) if path is not None else None
        if trace is None or not trace.present or any(step.kind == "override" for step in trace.steps):
            return None
        return self.subject.document.file.lines.position(trace.own_span[0])[0]

    def reference(self, name: str) -> str:
        """Return the text of the reference (``${…}``) that a fact's key is, nothing where it is none."""
        path = next(iter(self.origins.of(name).paths), None)
        view = self.values.view
        return spelled(view, path) if view is not None and path is not None else ""

    def read(self, name: str) -> tuple[Steps, ...]:
        """Return the keys that a fact's value is read from."""
        return self.origins.of(name).paths


def _unknown(value: object) -> bool:
    return isinstance(value, (Interval, Open, Unknown)) and bool(needs_of(value))


def alike(one: object, other: object) -> bool:
    """Whether two values are worth the same; what is not known differs from nothing that is not known."""
    if _unknown(one) or _unknown(other):
        return _unknown(one) and _unknown(other)
    if isinstance(one, Interval) or isinstance(other, Interval):
        numbers = isinstance(one, (int, float, Interval)) and isinstance(other, (int, float, Interval))
        return numbers and parts(one)[:2] == parts(other)[:2]  # type: ignore[arg-type]
    return one == other


def differences(
    a: Reading, b: Reading, sections: Mapping[str, str]
) -> tuple[list[Difference], list[Difference]]:
    """Return the settings that differ, and what follows from settings and differs too.

    ``sections`` gives the part of the vocabulary that a name belongs to.
    """
    evaluator = Evaluator(a.symbols)
    found = [d for name in _names(a, b) if (d := _difference(a, b, name, evaluator, sections)) is not None]
    # What one framework fixes differs within it only because something else does.
    kinds = _SETTING if a.subject.framework == b.subject.framework else (*_SETTING, "fixed")
    said = [d for d in found if d.a.kind in kinds or d.b.kind in kinds]
    # What both files refer to by the same words is told where it is defined.
    follows = {d.name for d in said if (text := a.reference(d.name)) and text == b.reference(d.name)}
    settings = [d for d in said if d.name not in follows]
    derived = [d for d in found if d.name in follows or d not in said]
    settings = list(_once(a, b, settings))
    return settings, list(_worth_telling(derived, settings, evaluator))


def _names(a: Reading, b: Reading) -> Iterator[str]:
    """Yield the names that both configs can speak of."""
    symbols = a.symbols
    frameworks = {a.subject.framework, b.subject.framework}
    for name in symbols.facts:
        prefix, dot, _ = name.partition(".")
        if dot and prefix in _NOT_OURS:
            continue
        if dot and prefix in symbols.frameworks and frameworks != {prefix}:
            continue
        if dot and f"{prefix}.present" in symbols.facts and not name.endswith(".present"):
            there = [reading.values[f"{prefix}.present"] for reading in (a, b)]
            if all(one is False for one in there):
                continue  # a model that neither job has
        yield name


def _difference(
    a: Reading, b: Reading, name: str, evaluator: Evaluator, sections: Mapping[str, str]
) -> Difference | None:
    one, other = a.values[name], b.values[name]
    if alike(one, other):
        return None
    kind = evaluator.type_of(name)
    symbols = a.symbols
    kind = _one_unit(one, other, kind)
    sides = a.side(name, kind), b.side(name, kind)
    prefix, dot, _ = name.partition(".")
    own = bool(dot) and prefix in symbols.frameworks
    knob = symbols.knobs.get(name)
    # Of two different jobs, or of a value that is picked at run time, a knob's words may not be true.
    both = all(side.known for side in sides) and "auto" not in (one, other)
    both = both and alike(a.values["task"], b.values["task"])
    told = tuple(effects(knob, one, other, kind)) if knob is not None and both else ()
    kept = knob is None or knob.keeping is None or alike(a.values[knob.keeping], b.values[knob.keeping])
    uses = dict.fromkeys((*a.origins.of(name).uses, *b.origins.of(name).uses))
    return Difference(
        name,
        symbols.facts[name].about,
        sections.get(name) or (f"{_OWN} {prefix}" if own else _FURTHER),
        *sides,
        told,
        both and knob is not None and (not kept or alters_results(knob, one, other, kind)),
        _ratio(one, other),
        tuple(uses),
        own,
    )


def _one_unit(one: object, other: object, kind: Type) -> Type:
    """Return a duration's type with seconds as its unit, where else one side would be in hours."""
    if kind.dimension != DURATION or kind.unit not in (None, "s"):
        return kind
    units = {show_value(value, kind).rpartition(" ")[2] for value in (one, other) if not _unknown(value)}
    return replace(kind, unit="min") if units == {"s", "h"} else kind


def _ratio(one: object, other: object) -> float | None:
    if isinstance(one, bool) or isinstance(other, bool):
        return None
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)) or one <= 0 or other <= 0:
        return None
    return other / one


def _once(a: Reading, b: Reading, found: Sequence[Difference]) -> Iterator[Difference]:
    """Leave out a framework's own name for a key that a name of the vocabulary is read from as well."""
    shared = {(a.read(d.name), b.read(d.name)) for d in found if not d.own}
    for one in found:
        paths = a.read(one.name), b.read(one.name)
        if not (one.own and any(paths) and paths in shared):
            yield one


def _worth_telling(
    derived: Sequence[Difference],
    settings: Sequence[Difference],
    evaluator: Evaluator,
) -> Iterator[Difference]:
    """Leave out what only repeats another name, memory (it has its table), and most figures of models."""
    told = {d.name: (d.a.shown, d.b.shown) for d in settings}
    for one in derived:
        registry = "registry" in (one.a.kind, one.b.kind)
        if registry and not one.name.endswith(".params"):
            continue
        if evaluator.type_of(one.name).dimension == MEMORY or not (one.a.known and one.b.known):
            continue
        repeats = (one.a.shown, one.b.shown) in [told[name] for name in one.uses if name in told]
        if one.a.shown == one.b.shown or (repeats and one.group != _TOPOLOGY):
            continue
        told[one.name] = one.a.shown, one.b.shown
        yield one


# ── ratios ──────────────────────────────────────────────────────────────────────────────────────────────
def ratios(a: Reading, b: Reading) -> list[Ratio]:
    """Return how many times A's optimizer work B does, as far as both configs state it.

    How many samples the data holds is in no config: steps are compared for the same data.
    """
    if not alike(a.values["task"], b.values["task"]):
        return []
    samples = _ratio(a.values["samples_per_step"], b.values["samples_per_step"])
    epochs = _ratio(a.values["num_epochs"], b.values["num_epochs"])
    found = []
    if samples is not None and samples != 1:
        found.append(Ratio("steps per epoch", 1 / samples, ("samples_per_step",)))
    if epochs is None or _limited(a) or _limited(b):
        return found
    if samples is not None and (samples != 1 or epochs != 1):
        moved = {"num_epochs": epochs, "samples_per_step": samples}
        because = tuple(name for name, ratio in moved.items() if ratio != 1)
        found.append(Ratio("steps in the whole run", epochs / samples, because))
    if epochs != 1:
        found.append(Ratio("samples in the whole run", epochs, ("num_epochs",)))
    return found


def _limited(reading: Reading) -> bool:
    """Whether something else than the epochs may end the run."""
    most = reading.values["max_steps"]
    return not _unknown(most) and not (isinstance(most, (int, float)) and most <= 0)


def sections(symbols: Symbols, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the part of its file that each fact stands in: the files' own ``# ── title ───`` lines."""
    heads: dict[str, list[tuple[int, str]]] = {}
    for path, text in texts.items():
        found = heads.setdefault(path, [])
        for count, line in enumerate(text.split("\n"), 1):
            if line.startswith("# ── "):
                found.append((count, line[len("# ── ") :].rstrip("─ ").partition(":")[0].strip()))
    told: dict[str, str] = {}
    for name in symbols.facts:
        path, _, number = symbols.where.get(f"fact {name}", "").rpartition(":")
        titles = [title for at, title in heads.get(path, ()) if number and at < int(number)]
        if titles:
            told[name] = titles[-1]
    return told
