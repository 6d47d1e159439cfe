"""The memory of a job by part on each of several targets: the rows of ``fit``, ``compare`` and ``plan``.

What the numbers rest on is mostly the same on every target, so it is computed once: the first target's facts
note which of them asked for something that the target gave, and the other targets take over the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.cases import cases_of
from cfglint.engine.dependencies import settled, watched
from cfglint.engine.judge import values_for
from cfglint.engine.memory import memory_of, span_of
from cfglint.findings import Memory, Span
from cfglint.lang.types import text_of
from cfglint.lang.values import Interval
from cfglint.record import Value, field, fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cfglint.engine.estimates import Estimate
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.facts import Values
    from cfglint.findings import Fix
    from cfglint.hardware.target import Target

_NONE = Span(0, 0)
FEW = 6  # targets whose verdicts are sentences; more of them are a table
PARTS = ("engine", "weights", "gradients", "optimizer", "activations", "logits", "overhead")


class Trainer(Value):
    """The trainer's own peak in GiB: what PyTorch allocates, at which moment, and what it reserves."""

    allocated_gib: Span
    moment: str | None
    reserved_gib: Span

    @property
    def reserves(self) -> Span:
        """What is reserved, which is measured apart, and no less than what is allocated."""
        low = max(self.reserved_gib.low, self.allocated_gib.low)
        return Span(low, max(self.reserved_gib.high, low))


class Remedy(Value):
    """A proven fix, and what the config needs on the row's target once it is applied."""

    fix: Fix
    need_gib: Span
    verdict: str


class Turns(Value):
    """What engine and trainer take in GiB while the one works and the other sleeps, the engine first."""

    generating: tuple[Span, Span]
    training: tuple[Span, Span]

    @property
    def generates(self) -> bool:
        """Whether generation is the phase that takes more, of which the parts are."""
        return self.together(*self.generating).high > self.together(*self.training).high

    @property
    def larger(self) -> Span:
        """What that phase takes."""
        return self.together(*(self.generating if self.generates else self.training))

    @staticmethod
    def together(one: Span, other: Span) -> Span:
        """Return what both take together."""
        return Span(one.low + other.low, one.high + other.high)


class FitRow(Memory):
    """The memory of a job on one target by part; ``varied`` are names and values that were asked for.

    The parts are those of the likeliest case. ``host_gib`` is what the job takes of one machine's memory,
    ``disk_gib`` its checkpoints on all machines. ``needs`` are the facts that would settle what is not
    judged.
    The JSON of a fit has the fields under these names, in this order.
    """

    parts: dict[str, Span] = field(kw_only=True)
    trainer: Trainer | None = field(kw_only=True)
    turns: Turns | None = field(default=None, kw_only=True)
    host_gib: Span = field(default=_NONE, kw_only=True)
    disk_gib: Span = field(default=_NONE, kw_only=True)
    needs: tuple[str, ...] = field(default=(), kw_only=True)
    fix: Remedy | None = field(default=None, kw_only=True)
    varied: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)

    @property
    def need_of_parts(self) -> Span:
        """The need in the case whose parts these are."""
        return self.cases[0].need_gib if self.cases else self.need_gib

    @property
    def headroom(self) -> Span | None:
        """What the need leaves of the capacity, in GiB; negative if it is short. None without a capacity."""
        if self.capacity_gib is None:
            return None
        return Span(self.capacity_gib - self.need_gib.high, self.capacity_gib - self.need_gib.low)


class Wanted(Value):
    """Missing facts: their names, what they are, and what to type to set them."""

    names: tuple[str, ...]
    about: str
    advice: str


class Fit(Value):
    """The memory of one document on all targets; ``every`` means the targets are the whole catalogue."""

    path: str
    framework: str | None
    model: str | None
    rows: tuple[FitRow, ...]
    estimates: tuple[Estimate, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    every: bool = field(default=False, kw_only=True)

    @property
    def telling(self) -> tuple[FitRow, ...]:
        """The rows whose parts are worth a look: of a whole catalogue those on either side of the limit."""
        if not self.every:
            return self.rows
        best = next((row for row in self.rows if row.verdict == "fits"), None)
        worst = next((row for row in reversed(self.rows) if row.verdict in ("tight", "oom")), None)
        return tuple(row for row in (worst, best) if row is not None) or self.rows[-1:]


def smallest(rows: Iterable[FitRow]) -> FitRow | None:
    """Return the row of the smallest GPU that the config certainly fits on, None without one."""
    fitting = [row for row in rows if row.verdict == "fits" and row.capacity_gib is not None]
    return min(fitting, key=lambda row: row.capacity_gib or 0, default=None)


def given_by(target: Target) -> dict[str, object]:
    """Return the facts that a target gives."""
    return {name: fact[0] for name, fact in target.facts.items()}


def fit_rows(
    run: Run, subject: Subject, varied: tuple[tuple[str, str], ...] = (), narrow: str = "told"
) -> Iterator[FitRow]:
    """Yield what a document needs on each target of a run."""
    given = [{name: fact[0] for name, fact in {**t.facts, **run.given}.items()} for t in run.targets]
    if not given:
        return
    first = watched(subject, given[0])
    questions: dict[frozenset[str], str | None] = {}
    yield row_of(first, run.targets[0], varied, narrow, questions)
    alike = first.without(first.resting_on(_differing(given)))
    versioned = settled(subject, first)
    for target, facts in zip(run.targets[1:], given[1:], strict=True):
        values = values_for(versioned, facts)
        values.update(alike)
        yield row_of(values, target, varied, narrow, questions)


def _differing(given: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the names that are not worth the same in all of ``given``."""
    for name in {name for facts in given for name in facts}:
        if any(name not in facts or not _same(facts[name], given[0].get(name)) for facts in given):
            yield name


def _same(a: object, b: object) -> bool:
    """Whether two given values are the same; ranges where they are one object, as comparing is open."""
    return a is b or (not isinstance(a, Interval) and not isinstance(b, Interval) and a == b)


def row_of(
    values: Values,
    target: Target,
    varied: tuple[tuple[str, str], ...] = (),
    narrow: str = "",
    questions: dict[frozenset[str], str | None] | None = None,
) -> FitRow:
    """Return what the facts of a document come to on the target that they were computed with, by part.

    ``questions`` keeps what to type, by what is missing: other targets that lack the same ask the same.
    """
    memory, needs = memory_of(values, target, narrow=narrow, questions=questions)
    first = cases_of(values)[0].values
    return FitRow(
        *(getattr(memory, name) for name in fields(memory)),
        parts={part: span_of(first[f"need.{part}"]) for part in PARTS},
        trainer=_trainer(first),
        turns=_turns(first),
        host_gib=span_of(first["need.host"]),
        disk_gib=span_of(first["need.disk"]),
        needs=tuple(sorted(needs)),
        varied=varied,
    )


def _trainer(values: Values) -> Trainer | None:
    if values["trains"] is False:
        return None
    allocated, reserved = span_of(values["trainer.allocated"]), span_of(values["trainer.reserved"])
    return Trainer(allocated, text_of(values["trainer.moment"]), reserved)


def _turns(values: Values) -> Turns | None:
    """Return the two phases of a job whose engine sleeps while the trainer works."""
    if values["need.in_turns"] is not True:
        return None
    names = ("engine.memory", "trainer.asleep"), ("engine.asleep", "trainer.likely")
    generating, training = ((span_of(values[a]), span_of(values[b])) for a, b in names)
    return Turns(generating, training)
