"""The diagnosis of a log: each failure with its processes and, with a config, the prediction and a fix.

Measured memory takes the place of the estimates: facts by which the rules' numbers come out as measured.
"""

from __future__ import annotations

import os
from collections import Counter

from cfglint.api import check_file
from cfglint.document.compose import edited
from cfglint.engine.memory import GIB, VERDICTS, bounds_of, span_of
from cfglint.engine.rows import FitRow, fit_rows
from cfglint.errors import UsageError
from cfglint.features.diagnose.attribution import (
    ENGINE,
    TRAINER,
    Holder,
    Share,
    advice,
    failures,
    gpu_of,
    holders,
    share_of,
)
from cfglint.findings import LEVELS, Finding, Fix, Span
from cfglint.hardware.target import Target, parse_target
from cfglint.lang.types import is_number, text_of
from cfglint.lang.values import INF, interval, needs_of
from cfglint.record import Value, replace
from cfglint.report.changes import unified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.facts import Values
    from cfglint.features.diagnose.log import Log
    from cfglint.features.diagnose.messages import Incident
    from cfglint.lang.values import Number

    Corrections = dict[str, tuple[Number, str]]  # facts with their sources

_ROLES = ((ENGINE, "generates"), (TRAINER, "trains"))  # with the fact that says whether a job has it
# The trainer's with the allocator's cache, which is no need; a fix is told by what is needed.
_PREDICTED = {ENGINE: "engine.estimate", TRAINER: "trainer.seen"}
_NEEDED = {ENGINE: "engine.memory", TRAINER: "trainer.likely"}
_REPAIRS = 2


class Failure(Value):
    """A failure: the incidents of its ranks, the processes of the first, and what its numbers advise."""

    incidents: Sequence[Incident]
    holders: tuple[Holder, ...]
    advice: tuple[str, ...]
    repeats: int = 0  # how often the same message was printed besides

    @property
    def first(self) -> Incident:
        """The incident that is reported in full."""
        return self.incidents[0]


class Prediction(Value):
    """What the rules say of a role before anything was measured; ``needs`` are the facts that they lack."""

    span: Span
    needs: tuple[str, ...]


class PartChange(Value):
    """What engine or trainer takes before a fix and after it."""

    role: str
    before_gib: Span
    after_gib: Span


class Repair(Value):
    """A fix of the config, proven on the measured numbers: the need before and after, and the patch."""

    finding: Finding
    fix: Fix
    before: FitRow
    after: FitRow
    parts: tuple[PartChange, ...]
    diff: str


class Correction(Value):
    """What a role takes beside its estimate by what was measured: a fact, GiB, and where it was measured."""

    name: str
    gib: Span
    source: str


class Judgement(Value):
    """A config beside the log: what was predicted, what was put in its place, and what fixes it."""

    path: str
    text: str
    target: str
    gpu: str
    chosen: str
    predictions: dict[str, Prediction]  # by role
    corrections: tuple[Correction, ...]
    need_gib: Span
    verdict: str
    findings: tuple[Finding, ...]
    repairs: tuple[Repair, ...]


class Diagnosis(Value):
    """All failures of the logs, the first in full, and the config's part where one was given."""

    failures: tuple[Failure, ...]
    judgement: Judgement | None = None


class Job(Value):
    """The config of the job as it was given, and the one target of its run with how that was chosen."""

    path: str
    run: Run
    subject: Subject
    target: Target
    chosen: str


def target_of(log: Log, name: str | None) -> tuple[Target, str]:
    """Return the target of a log's first failure, by its name or by its memory, and how it was chosen.

    Raises UsageError where neither is told.
    """
    first = failures(log.incidents)[0][0]
    capacity = first.capacity
    if not name:
        if capacity is None:
            raise UsageError(
                f"{first.at}: the message does not state the GPU's memory; name the GPU with --gpu"
            )
        return gpu_of(capacity, first.at, log.products)
    target = parse_target(name)
    chosen = f"checked for {target.name} (--gpu)"
    if capacity is not None and target.vram_gib is not None:
        gib = capacity / GIB
        if abs(target.vram_gib - gib) > 0.02 * target.vram_gib:
            chosen += f"; the log's GPU has {gib:.2f} GiB, that one {target.vram_gib:.2f}"
    return target, chosen


def diagnosis(log: Log, job: Job | None = None) -> Diagnosis:
    """Return what a log says, and with the job's config what fixes it."""
    groups = failures(log.incidents)
    prints = Counter(log.incidents)
    if job is None:
        return Diagnosis(
            tuple(_failure(log, group, share_of(log, group[0]), prints[group[0]]) for group in groups)
        )
    values = job.run.on(job.target, job.subject).values
    share, trains = _configured_share(values, job.path), values["trains"] is True
    accounts = tuple(
        _failure(log, group, share or share_of(log, group[0]), prints[group[0]], trains=trains)
        for group in groups
    )
    return Diagnosis(accounts, _judgement(job, accounts, values))


def _failure(
    log: Log, group: Sequence[Incident], share: Share | None, prints: int, *, trains: bool = False
) -> Failure:
    first = group[0]
    held = holders(first, share, trains=trains)
    return Failure(group, held, tuple(advice(first, held, share, log)), prints - 1)


def _configured_share(values: Values, path: str) -> Share | None:
    """Return the share that a config gives its engine, None where that is not known."""
    fraction, engine = values["mem_fraction"], values["rollout_engine"]
    if values["generates"] is False or not is_number(fraction):
        return None
    return Share(float(fraction), text_of(engine), os.path.basename(path))


# ── measured numbers ────────────────────────────────────────────────────────────────────────────────────
def predictions(values: Values) -> dict[str, Prediction]:
    """Return what the driver would show of engine and trainer; of a role that the job has."""
    estimates = {role: values[_PREDICTED[role]] for role, fact in _ROLES if values[fact] is not False}
    return {role: Prediction(span_of(e), tuple(sorted(needs_of(e)))) for role, e in estimates.items()}


def corrections(values: Values, failed: Iterable[Failure]) -> Corrections:
    """Return `engine.correction` and `trainer.correction` as facts with their sources.

    What a living engine held is what it holds; what a process held when it died and what it asked for is the
    least that it needs, and the estimate above that stands. Nothing is returned where the estimate has no
    bounds.
    """
    facts: Corrections = {}
    for holder, at in ((holder, failure.first.at) for failure in failed for holder in failure.holders):
        if holder.role not in (ENGINE, TRAINER) or holder.held is None:
            continue
        name = f"{holder.role}.correction"
        low, high = _bounds(values[f"{holder.role}.estimate"])
        need = holder.needed if holder.died and holder.needed is not None else holder.held
        if high == INF or (holder.role == TRAINER and need <= low):
            continue  # a trainer that died before its peak: the estimate stands
        correction: Number = need - low
        if holder.role == ENGINE and holder.died:
            correction = interval(max(0, need - low), max(high, need) - low)
        if name not in facts or _bounds(facts[name][0])[0] < _bounds(correction)[0]:
            facts[name] = (correction, f"measured in {at}")  # of several deaths the one that needed most
    return facts


def _bounds(value: object) -> tuple[float, float]:
    return bounds_of(value) or (0, INF)


# ── the config ──────────────────────────────────────────────────────────────────────────────────────────
def _judgement(job: Job, failed: Iterable[Failure], values: Values) -> Judgement:
    target, subject = job.target, job.subject
    facts = corrections(values, failed)
    run = job.run.but(targets=[replace(target, facts={**target.facts, **facts})], named=True)
    findings = _findings(run, subject)
    row = next(fit_rows(run, subject))
    file = subject.document.file
    return Judgement(
        file.path,
        file.text,
        target.name,
        target.gpu,
        job.chosen,
        predictions(values),
        tuple(
            Correction(name, Span(*(bound / GIB for bound in _bounds(value))), source)
            for name, (value, source) in sorted(facts.items())
        ),
        row.need_gib,
        row.verdict,
        tuple(findings),
        tuple(_repairs(run, subject, findings)),
    )


def _findings(run: Run, subject: Subject) -> list[Finding]:
    """Return what the rules find about memory, the worst first, with the fixes that were derived."""
    check_file(run, subject.document.file)
    findings = [f for f in run.report.findings if f.code.startswith("MEM")]
    return sorted(findings, key=lambda f: (-LEVELS.index(f.level), f.possible))


def _repairs(run: Run, subject: Subject, findings: list[Finding]) -> list[Repair]:
    """Return the fixes that make the config fit, or fit better: each once, the best of them."""
    fixes: dict[object, tuple[Finding, Fix]] = {}
    for finding in findings:
        for fix in (finding.fix, *finding.alternatives):
            if fix is not None and fix.edits:
                fixes.setdefault(fix.edits, (finding, fix))
    tried = (_repair(run, subject, finding, fix) for finding, fix in fixes.values())
    repairs = [repair for repair in tried if repair is not None and _helps(repair)]
    repairs.sort(
        key=lambda r: (r.after.verdict != "fits", r.fix.certainty != "sure", r.fix.applicability != "safe")
    )
    return repairs[:_REPAIRS]


def _helps(repair: Repair) -> bool:
    before, after = (VERDICTS.index(row.verdict) for row in (repair.before, repair.after))
    # An engine that does not start for want of memory breaks a rule though all of it would fit.
    return after < before or (after == before == 0 and repair.finding.level == "error")


def _repair(run: Run, subject: Subject, finding: Finding, fix: Fix) -> Repair | None:
    """Return what a fix comes to, None where its result is not this document any more."""
    again = edited(subject.document, fix.edits)
    if again is None:
        return None
    both = (subject, run.subject(again, subject.framework))
    before, after = (next(fit_rows(run, version)) for version in both)
    (target,) = run.targets
    old, new = (run.on(target, version).values for version in both)
    changes = tuple(
        PartChange(role, *(span_of(values[_NEEDED[role]]) for values in (old, new)))
        for role, fact in _ROLES
        if old[fact] is not False
    )
    file = subject.document.file
    diff = unified(file.path, file.text, again.file.text)
    return Repair(finding, fix, before, after, changes, diff)
