"""What differs between two configs, in the vocabulary's words: settings, what follows from them, and effects.

A setting is a fact that a key, a framework's default or the framework itself gives; what is computed from
settings is told apart, so that one changed key is one difference. Nothing is said of a change but what the
knobs say, what the rules compute, and ratios of what both configs state.
"""

from __future__ import annotations

from functools import partial

from cfglint.engine.describe import Evaluator, show_value
from cfglint.engine.knobs import Between, Effect, alters_results, effects
from cfglint.engine.rows import FitRow, fit_rows, smallest
from cfglint.engine.run import Run, unsuppressed
from cfglint.features.compare.reading import (
    FactSide,
    Key,
    Reading,
    alike,
    covered,
    is_unknown,
    keys,
    leaves,
    read_by,
    reading,
)
from cfglint.findings import LEVELS
from cfglint.lang.pack import shipped_rules
from cfglint.lang.types import DURATION, MEMORY, Type, is_number, text_of
from cfglint.record import Value, replace
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfglint.engine.subject import Subject
    from cfglint.facts import Values
    from cfglint.lang import tree as t
    from cfglint.lang.symbols import Symbols

_NOT_OURS = ("gpu", "framework", "document", "host")  # facts of the machine and of the file as such
_BATCH = "results.batch"  # the effective batch, which has a name of its own
_OWN = "own settings of"  # the group of what no section of the vocabulary holds
_TOPOLOGY = "topology"  # how many GPUs there are is worth saying twice
_FURTHER = "further names"
_SETTING = ("file", "default", "target")


class Difference(Value):
    """A fact that the two configs give different values. ``b_by_a`` is the ratio, where both are numbers.

    ``alters_results`` says that such a change is known to change the training's results. ``uses`` are the
    names that a derived fact is computed from; ``own`` marks a name that only one framework has.
    """

    name: str
    about: str
    group: str
    a: FactSide
    b: FactSide
    b_by_a: float | None
    alters_results: bool
    effects: tuple[Effect, ...]
    uses: tuple[str, ...]
    own: bool

    @property
    def both_known(self) -> bool:
        """Whether both configs give the fact."""
        return self.a.value is not None and self.b.value is not None

    @property
    def by_default(self) -> bool:
        """Whether only one side knows the fact, and its file does not say it."""
        return not self.both_known and "file" not in (self.a.kind, self.b.kind)

    @property
    def where(self) -> str:
        """Which keys of the files give the fact."""
        a, b = self.a, self.b
        if a.key and a.key == b.key:
            return f"{shown(a.key)}: A {a.at}, B {b.at}"
        if a.kind == b.kind != "file" and a.source == b.source and a.key == b.key:
            return shown(a.source)
        return f"A {a.place}; B {b.place}"

    @property
    def way(self) -> str:
        """The way whose effects are told: to B, else back to A, since then B is without them."""
        ways = {effect.to for effect in self.effects}
        return next((to for to in ("b", "a") if to in ways), "")

    @property
    def told_effects(self) -> list[Effect]:
        """The effects of that way."""
        return [effect for effect in self.effects if effect.to == self.way]


class Ratio(Value):
    """A quantity of which B has ``b_by_a`` times A's; ``because`` are the names that it comes from."""

    what: str
    b_by_a: float
    because: tuple[str, ...]


class FoundRule(Value):
    """A finding by its code: what a config has somewhere, however often."""

    code: str
    name: str
    level: str


class CompareSide(Value):
    """One of the two configs: who it is for, what it needs on each target, what is found in it.

    ``unread`` counts those of its ``keys`` that no name of the vocabulary stands for.
    """

    path: str
    framework: str | None
    model: str | None
    keys: int
    unread: int
    findings: tuple[FoundRule, ...]
    rows: tuple[FitRow, ...]

    @property
    def smallest(self) -> FitRow | None:
        """The smallest GPU that the config surely fits on."""
        return smallest(self.rows)


class Comparison(Value):
    """All that is said of two configs. ``every`` says that the targets are the whole catalogue."""

    a: CompareSide
    b: CompareSide
    settings: tuple[Difference, ...]
    derived: tuple[Difference, ...]
    keys: tuple[Key, ...]
    ratios: tuple[Ratio, ...]
    every: bool

    @property
    def sides(self) -> tuple[tuple[str, CompareSide], ...]:
        """Both configs with the letters that stand for them."""
        return ("A", self.a), ("B", self.b)

    @property
    def same(self) -> bool:
        """Whether nothing differs that a file says."""
        return not (self.settings or self.derived or self.keys)

    @property
    def alike(self) -> bool:
        """Whether both are for one framework, so that their keys can be compared by name."""
        return self.a.framework == self.b.framework

    @property
    def stated(self) -> list[Difference]:
        """The settings that a file of the two says, or that both know, by the vocabulary's sections."""
        groups: dict[str, list[Difference]] = {}
        for setting in self.settings:
            if not setting.by_default:
                groups.setdefault(setting.group, []).append(setting)
        return [setting for members in groups.values() for setting in members]

    @property
    def pairs(self) -> list[tuple[FitRow, FitRow]]:
        """Both rows of each target."""
        return list(zip(self.a.rows, self.b.rows, strict=True))

    @property
    def telling(self) -> list[tuple[FitRow, FitRow]]:
        """The rows whose parts are worth a look: of a catalogue the GPU that tells the two apart.

        Else it is the smallest that both fit on.
        """
        if not self.every:
            return self.pairs
        apart = [(a, b) for a, b in self.pairs if a.verdict != b.verdict and "fits" in (a.verdict, b.verdict)]
        fitting = [(a, b) for a, b in self.pairs if a.verdict == b.verdict == "fits"]
        return (apart or fitting or self.pairs)[:1]


def compared(run_a: Run, run_b: Run, a: Subject, b: Subject, *, every: bool = False) -> Comparison:
    """Compare two subjects, each of its own run (which knows its folder); the targets are the same.

    ``every`` says that the targets are the whole catalogue: then no GPU plays a part but in the memory.
    """
    evaluator = run_a.finder.evaluator
    target = run_a.targets[0] if run_a.targets and not every else None
    left, right = reading(run_a, a, target), reading(run_b, b, target)
    settings, derived = _differences(left, right, evaluator)
    covering = {path for d in settings for side in (left, right) for path in side.read(d.name)}
    differing = keys(a.view, b.view, covering) if a.framework == b.framework else []
    return Comparison(
        _side(run_a, left, every=every),
        _side(run_b, right, every=every),
        tuple(settings),
        tuple(derived),
        tuple(differing),
        tuple(ratios(left.values, right.values)),
        every,
    )


def _side(run: Run, of: Reading, *, every: bool) -> CompareSide:
    subject = of.subject
    paths = list(leaves(subject.view))
    read = read_by(of.symbols, subject.framework)
    named = of.values.key_of
    unread = [p for p in paths if not covered(p, read) and named(".".join(map(str, p))) is None]
    return CompareSide(
        subject.document.file.path,
        subject.framework,
        text_of(of.values["model_path"]),
        len(paths),
        len(unread),
        _findings(run, subject, every=every),
        tuple(fit_rows(run, subject)),
    )


def _findings(run: Run, subject: Subject, *, every: bool) -> tuple[FoundRule, ...]:
    """Return what is found on the targets, each code once at its worst; suppressed findings do not count."""
    alone = run.but(targets=() if every else run.targets)
    findings = [found.finding for found in alone.findings(alone.judged(subject))]
    kept = unsuppressed(findings, subject.document.file, subject.document)
    worst: dict[str, FoundRule] = {}
    for finding in sorted(kept, key=lambda f: (-LEVELS.index(f.level), f.code)):
        worst.setdefault(finding.code, FoundRule(finding.code, finding.name, finding.level))
    return tuple(worst.values())


# ── differences ─────────────────────────────────────────────────────────────────────────────────────────
def _differences(a: Reading, b: Reading, evaluator: Evaluator) -> tuple[list[Difference], list[Difference]]:
    """Return the settings that differ, and what follows from settings and differs too."""
    groups = sections(a.symbols, shipped_rules())
    differing = [
        _difference(a, b, name, evaluator, groups.get(name))
        for name in _names(a, b)
        if not alike(a.values[name], b.values[name])
    ]
    # What one framework fixes differs within it only because something else does.
    kinds = _SETTING if a.subject.framework == b.subject.framework else (*_SETTING, "fixed")
    # What both files refer to by the same words is told where it is defined.
    stated = {
        d.name
        for d in differing
        if (d.a.kind in kinds or d.b.kind in kinds)
        and not ((text := a.reference(d.name)) and text == b.reference(d.name))
    }
    settings = list(_once(a, b, [d for d in differing if d.name in stated]))
    derived = [d for d in differing if d.name not in stated]
    return settings, list(_worth_telling(derived, settings, evaluator))


def _names(a: Reading, b: Reading) -> Iterator[str]:
    """Yield the names that both configs can speak of."""
    symbols = a.symbols
    frameworks = {a.subject.framework, b.subject.framework}
    for name in symbols.facts:
        prefix, dot, _ = name.partition(".")
        if dot and (prefix in _NOT_OURS or (prefix in symbols.frameworks and frameworks != {prefix})):
            continue
        if name == _BATCH:
            continue
        present = f"{prefix}.present"
        optional = bool(dot) and present in symbols.facts and name != present
        if optional and a.values[present] is False and b.values[present] is False:
            continue  # of a model that neither job has
        yield name


def _truth(evaluator: Evaluator, side: Reading, condition: t.Expr) -> object:
    return evaluator(condition, side.values)[0]


def _difference(a: Reading, b: Reading, name: str, evaluator: Evaluator, group: str | None) -> Difference:
    values = a.values[name], b.values[name]
    symbols = a.symbols
    kind = _one_unit(values, evaluator.type_of(name))
    left, right = a.fact(name, kind), b.fact(name, kind)
    prefix, dot, _ = name.partition(".")
    own = bool(dot) and prefix in symbols.frameworks
    knob = symbols.knobs.get(name)
    consequences: tuple[Effect, ...] = ()
    alters = False
    # Of two different jobs, or of a value that is picked at run time, a knob's words may not be true.
    both_known = left.value is not None and right.value is not None and "auto" not in values
    if knob is not None and both_known and alike(a.values["task"], b.values["task"]):
        change = Between(knob, *values, kind, *(partial(_truth, evaluator, side) for side in (a, b)))
        consequences = tuple(effects(change))
        kept = knob.keeping is None or alike(a.values[knob.keeping], b.values[knob.keeping])
        alters = not kept or alters_results(change)
    return Difference(
        name,
        symbols.facts[name].about,
        group or (f"{_OWN} {prefix}" if own else _FURTHER),
        left,
        right,
        _ratio(*values),
        alters,
        consequences,
        tuple(dict.fromkeys((*a.origins.of(name).uses, *b.origins.of(name).uses))),
        own,
    )


def _one_unit(values: tuple[object, object], kind: Type) -> Type:
    """Return a duration's type with minutes as its unit, where one side would be in seconds, one in hours."""
    if kind.dimension != DURATION or kind.unit not in (None, "s"):
        return kind
    units = {show_value(value, kind).rpartition(" ")[2] for value in values if not is_unknown(value)}
    return replace(kind, unit="min") if units == {"s", "h"} else kind


def _ratio(a: object, b: object) -> float | None:
    return b / a if is_number(a) and is_number(b) and a > 0 and b > 0 else None


def _once(a: Reading, b: Reading, settings: Sequence[Difference]) -> Iterator[Difference]:
    """Leave out a framework's own name for a key that a name of the vocabulary is read from as well."""
    shared = {(a.read(d.name), b.read(d.name)) for d in settings if not d.own}
    for setting in settings:
        paths = a.read(setting.name), b.read(setting.name)
        if not (setting.own and any(paths) and paths in shared):
            yield setting


def _worth_telling(
    derived: Sequence[Difference], settings: Sequence[Difference], evaluator: Evaluator
) -> Iterator[Difference]:
    """Leave out what only repeats another name, memory (it has its table), and most figures of models."""
    pairs = {d.name: (d.a.value, d.b.value) for d in settings}
    for d in derived:
        pair = d.a.value, d.b.value
        figure = "registry" in (d.a.kind, d.b.kind) and not d.name.endswith(".params")
        memory = evaluator.type_of(d.name).dimension == MEMORY
        if figure or memory or not d.both_known or d.a.value == d.b.value:
            continue
        if d.group == _TOPOLOGY or pair not in [pairs[name] for name in d.uses if name in pairs]:
            pairs[d.name] = pair
            yield d


def ratios(a: Values, b: Values) -> Iterator[Ratio]:
    """Yield how many times A's optimizer work B does, as far as both configs state it.

    How many samples the data holds is in no config: steps are compared for the same data.
    """
    if not alike(a["task"], b["task"]):
        return
    samples = _ratio(a["samples_per_step"], b["samples_per_step"])
    epochs = _ratio(a["num_epochs"], b["num_epochs"])
    if samples is not None and samples != 1:
        yield Ratio("steps per epoch", 1 / samples, ("samples_per_step",))
    if epochs is None or _limited(a) or _limited(b):
        return
    if samples is not None and (samples != 1 or epochs != 1):
        moved = {"num_epochs": epochs, "samples_per_step": samples}
        because = tuple(name for name, ratio in moved.items() if ratio != 1)
        yield Ratio("steps in the whole run", epochs / samples, because)
    if epochs != 1:
        yield Ratio("samples in the whole run", epochs, ("num_epochs",))


def _limited(values: Values) -> bool:
    """Whether something else than the epochs may end the run."""
    most = values["max_steps"]
    return not is_unknown(most) and not (isinstance(most, (int, float)) and most <= 0)


def sections(symbols: Symbols, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the part of its file that each fact is in: the files' own ``# ── title ───`` lines."""
    titles: dict[str, dict[int, str]] = {path: {} for path in texts}
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("# ── "):
                titles[path][number] = line.removeprefix("# ── ").rstrip("─ ").partition(":")[0].strip()
    groups: dict[str, str] = {}
    for name in symbols.facts:
        path, _, place = symbols.where.get(f"fact {name}", "").rpartition(":")
        above = [title for at, title in titles.get(path, {}).items() if place and at < int(place)]
        if above:
            groups[name] = above[-1]
    return groups
