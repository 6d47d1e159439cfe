"""Puts a comparison together: settings, keys, the memory of each config on every target, and its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.describe import Evaluator
from cfglint.engine.memory import fit_rows
from cfglint.engine.run import unsuppressed
from cfglint.features.compare.compute import Comparison, Found, Half, Reading, differences, ratios, sections
from cfglint.features.compare.raw_keys import covered, keys, leaves, read_by
from cfglint.lang.pack import shipped_rules

if TYPE_CHECKING:
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject

_LEVELS = ("error", "warning", "info")


def compared(run_a: Run, run_b: Run, a: Subject, b: Subject, *, every: bool = False) -> Comparison:
    """Compare two subjects, each of its own run (which knows its folder); the targets are the same.

    ``every`` says that the targets are the whole catalogue: then no GPU plays a part but in the memory.
    """
    evaluator = Evaluator(run_a.pack.symbols())
    target = run_a.targets[0] if run_a.targets and not every else None
    one, other = Reading(run_a, a, target, evaluator), Reading(run_b, b, target, evaluator)
    settings, derived = differences(one, other, sections(evaluator.symbols, shipped_rules()))
    told = {path for d in settings for reading in (one, other) for path in reading.read(d.name)}
    found = keys(a.view, b.view, told) if a.framework == b.framework else []
    return Comparison(
        _half(run_a, one, every=every),
        _half(run_b, other, every=every),
        tuple(settings),
        tuple(derived),
        tuple(found),
        tuple(ratios(one, other)),
        every=every,
    )


def _half(run: Run, reading: Reading, *, every: bool) -> Half:
    subject = reading.subject
    model = reading.values["model_path"]
    paths = list(leaves(subject.view))
    read = read_by(reading.symbols, subject.framework)
    named = reading.values.key_of
    unread = [p for p in paths if not covered(p, read) and named(".".join(map(str, p))) is None]
    return Half(
        subject.document.file.path,
        subject.framework,
        model if isinstance(model, str) else None,
        tuple(fit_rows(run, subject)),
        _findings(run, subject, every=every),
        len(paths),
        len(unread),
    )


def _findings(run: Run, subject: Subject, *, every: bool) -> tuple[Found, ...]:
    """Return what is found on the targets, each code once at its worst; suppressed findings do not count."""
    alone = run.but(targets=() if every else run.targets)
    findings = [finding for *_, finding in alone.findings(alone.judged(subject))]
    worst: dict[str, Found] = {}
    for one in unsuppressed(findings, subject.document.file, subject.document):
        known = worst.get(one.code)
        if known is None or _LEVELS.index(one.level) < _LEVELS.index(known.level):
            worst[one.code] = Found(one.code, one.name, one.level)
    return tuple(sorted(worst.values(), key=lambda f: (_LEVELS.index(f.level), f.code)))
