"""One mistake, one finding: a rule of its own and the framework's schema may speak of the same key.

Which of them stays is told by place and target, never by code. A rule's own words are the better ones, unless
the schema knows which key was meant: its rename can be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.trace import Trace
from cfglint.engine.judge import BY_SCHEMA
from cfglint.findings import LEVELS
from cfglint.lang import tree as t
from cfglint.lang.build import paths_in
from cfglint.schema.judge import meant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.find import Finder, Found
    from cfglint.engine.subject import Mistake, Subject

_LISTS = {f"document.{kind}": kind for kind in (*BY_SCHEMA, "misfits")}


def once(found: Sequence[Found], finder: Finder, targets: int) -> list[Found]:
    """Return the findings of a subject without those that say again what another says of the same key."""
    subject = found[0][0].subject
    less: set[int] = set()
    by_schema = {id(one): mistake for one in found if (mistake := _mistake(one, finder)) is not None}
    for one in found:
        mistake = by_schema.get(id(one))
        if mistake is None:
            continue
        spans = _spans(mistake, subject)
        others = [
            other
            for other in found
            if id(other) not in by_schema
            and (other[2].place.start, other[2].place.end) in spans
            and not other[2].possible
            and LEVELS.index(other[2].level) >= LEVELS.index(one[2].level)
            and _alone(other, spans, finder)
        ]
        everywhere = {other[2].target for other in others}
        if others and (None in everywhere or len(everywhere) == targets):
            problem = mistake.problem
            renamed = problem is not None and problem.what == "key" and bool(meant(problem, subject.view))
            less.update(map(id, others if renamed else [one]))
    return [one for one in found if id(one) not in less]


def _mistake(one: Found, finder: Finder) -> Mistake | None:
    """Return what the schema found, where a finding tells that."""
    judged, verdict, finding = one
    needed = finder.symbols.rules[verdict.rule.code].requirement
    if not (isinstance(needed, t.Quantifier) and isinstance(needed.source, t.Name)):
        return None
    mistakes = (judged.subject.checked or {}).get(_LISTS.get(needed.source.name, ""), ())
    place = (finding.place.start, finding.place.end)
    return next((m for m in mistakes if (m.start, m.end) == place and m.problem is not None), None)


def _spans(mistake: Mistake, subject: Subject) -> set[tuple[int, int]]:
    """Return where a finding about the same key would stand: at the key, or at its value."""
    trace = Trace(subject.view, mistake.problem.path)  # type: ignore[union-attr]
    own = {trace.span, trace.key_span} if trace.present and trace.source is None else set()
    return {(mistake.start, mistake.end), *own}


def _alone(other: Found, spans: set[tuple[int, int]], finder: Finder) -> bool:
    """Whether a rule speaks of one key, and not of how it goes with others."""
    return spans.issuperset(_rests(other, finder))


def _rests(other: Found, finder: Finder) -> Iterator[tuple[int, int]]:
    judged, verdict, _ = other
    origins = finder.origins(judged)
    needed = finder.symbols.rules[verdict.rule.code].requirement
    named = dict.fromkeys(leaf for name in origins.names_in(needed) for leaf in (name, *origins.leaves(name)))
    paths = [path for name in named if origins.of(name).kind == "file" for path in origins.of(name).paths]
    for path in (*paths, *paths_in(needed)):
        trace = origins.trace(path)
        if trace is not None and trace.present:
            yield trace.span if trace.source is None else (-1, -1)
