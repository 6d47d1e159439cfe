"""Turns a broken rule into a finding: where it is, what it says, which numbers it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from cfglint.document.spoken import spoken
from cfglint.document.trace import Trace
from cfglint.document.tree import Mapping, Sequence, dotted
from cfglint.engine.arithmetic import arithmetic
from cfglint.engine.certainty import by_age, doubt
from cfglint.engine.describe import Evaluator, Origins, names_of, paths_of, show_value, traces
from cfglint.engine.judge import decides, is_of_gpus
from cfglint.engine.likelihood import as_shown, at_worst, is_likely
from cfglint.engine.message import message
from cfglint.findings import LEVELS, Finding, Place, Related, UsedFact, called
from cfglint.lang import tree as t
from cfglint.lang.show import show
from cfglint.lang.tree import paths_in
from cfglint.lang.types import ANY, MEMORY
from cfglint.lang.values import needs_of
from cfglint.record import Record
from cfglint.schema.judge import BY_SCHEMA, mistakes
from cfglint.schema.wording import meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Mapping as Lookup

    from cfglint.engine.subject import Case, Judged, Subject, Verdict
    from cfglint.facts import Steps
    from cfglint.lang.pack import Pack
    from cfglint.schema.table import Mistake

    Span: TypeAlias = tuple[int, int]

# The version of a framework is no number that a finding rests on, and what people wrote is too long to print.
_UNTOLD = ("framework.", "document.head", "document.program")
_GIVEN = ("file", "target", "registry")
_MOST_ITEMS = 200  # findings of one rule in one file; a file with more has one cause
_MEMORY = "MEM"  # the rules that compare memories
_NUMBERS = "impossible_values"
_LISTS = {f"document.{kind}": kind for kind in (*BY_SCHEMA, _NUMBERS)}


class _Spot(Record):
    """Where a finding stands, the span that belongs to it, and the item of a list that it speaks of."""

    span: Span
    related: Span | None = None
    variables: Lookup[str, object] | None = None


class Found(Record):
    """A finding, with the judgement and the verdict that it tells of; its words come last (`Finder.tell`)."""

    judged: Judged
    verdict: Verdict
    finding: Finding
    spot: _Spot


class Finder:
    """Makes findings of one run; the trees are loaded once."""

    def __init__(self, pack: Pack) -> None:
        self.symbols = pack.symbols()
        self.evaluator = Evaluator(self.symbols)

    def origins(self, judged: Judged) -> Origins:
        """Return the origins of a judged subject's facts, found out once."""
        if judged.origins is None:
            judged.origins = Origins(self.symbols, judged.values, judged.sources, judged.subject.framework)
        return judged.origins

    def findings(self, verdict: Verdict, judged: Judged, target: str | None) -> Iterator[Found]:
        """Yield what a verdict comes to: one finding, or one for each item of the list it is about.

        A memory that may be too large, and probably is not, is no finding: the job's verdict is tight.
        """
        rule = self.symbols.rules[verdict.rule.code]
        case = judged.case
        possible = verdict.truth is not False or (case is not None and case.usual)
        if possible and decides(verdict.rule) and not self._is_likely(rule, self.origins(judged)):
            return
        aged = by_age(verdict, judged) if rule.level == "error" and not possible else (0, "")
        for spot in self._spots(rule, judged):
            finding = self._finding(rule, judged, spot, possible=possible, aged=aged, target=target)
            yield Found(judged, verdict, finding, spot)

    def _spots(self, rule: t.Rule, judged: Judged) -> Iterator[_Spot]:
        origins, needed = self.origins(judged), rule.requirement
        if isinstance(needed, t.Quantifier) and needed.kind == "all":
            items, _ = self.evaluator(needed.source, judged.values)
            if isinstance(items, list):
                yield from self._items(needed, items, origins)
                return
        yield _Spot(_place(rule, origins))

    def _items(self, needed: t.Quantifier, items: list[object], origins: Origins) -> Iterator[_Spot]:
        """Yield where the items of a list stand that a requirement does not hold of."""
        left = _MOST_ITEMS
        for item in items:
            variables = {needed.variable: item}
            if self.evaluator(needed.body, origins.values, variables)[0] is True:
                continue
            if not left:
                return
            left -= 1
            spot = self._field_spot(item, needed, origins, variables)
            yield spot or _item_spot(item, needed.source, origins, variables)

    def _field_spot(
        self, item: object, needed: t.Quantifier, origins: Origins, variables: Lookup[str, object]
    ) -> _Spot | None:
        """Return where an item's first field stands that breaks a requirement, or a part of an ``and``.

        A requirement that is not made of such parts must be about one field.
        """
        path, body = getattr(item, "path", None), needed.body
        if not isinstance(path, tuple):
            return None
        for part in body.operands if isinstance(body, t.Junction) and body.operator == "and" else (body,):
            if self.evaluator(part, origins.values, variables)[0] is not False:
                continue
            names = [node.name for node in t.walk(part) if isinstance(node, t.Name)]
            if part is body and len({name for name in names if name.startswith(f"{needed.variable}.")}) > 1:
                continue
            for name in names:
                item_name, _, field = name.partition(".")
                trace = origins.trace((*path, *field.split("."))) if item_name == needed.variable else None
                if trace is not None and trace.present:
                    return _Spot(trace.own_span, None, variables)
        return None

    def _finding(
        self,
        rule: t.Rule,
        judged: Judged,
        spot: _Spot,
        *,
        possible: bool,
        aged: tuple[int, str],
        target: str | None,
    ) -> Finding:
        """Return a finding without what it says."""
        origins = self.origins(judged)
        lower, other = doubt(rule, judged, origins, _lists(rule))
        if possible:
            lower = max(lower, 1) + (not decides(rule) and not self._is_likely(rule, origins))
        if aged[0]:
            lower, possible, other = max(lower, aged[0]), True, f"{other} {aged[1]}".strip()
        return Finding(
            Place(judged.subject.document.file.path, *spot.span),
            rule.code,
            rule.name,
            LEVELS[max(0, LEVELS.index(rule.level) - lower)],
            rule.level,
            "",
            possible=possible,
            target=target,
            why=f"{rule.why} {other}".strip(),
            see="; ".join(rule.see),
        )

    def tell(self, found: Found) -> None:
        """Have a finding say what is wrong, with which numbers, and where they come from."""
        judged, spot, finding = found.judged, found.spot, found.finding
        rule, origins, path = self.symbols.rules[finding.code], self.origins(judged), finding.place.path
        text = message(rule, self.evaluator, origins, spot.variables)
        sums: list[str] = []
        if spot.variables is None:
            sums = arithmetic(rule.requirement, self.evaluator, origins, text)
        if not text:
            because = f" (because {show(rule.condition)})" if rule.condition is not None else ""
            text = (sums[0] if sums else f"{show(rule.requirement)} does not hold") + because
            sums = sums[1:]
        if judged.case is not None:
            text += _assumption(judged.case, judged.subject, self.evaluator)
        related = [] if spot.related is None else [Related(Place(path, *spot.related), "first defined here")]
        related += _elsewhere(rule, origins)
        if rule.code.startswith("DOC"):  # two numbers that disagree: the other one
            related += _beside(rule, origins, spot)
        finding.message, finding.arithmetic = text, "\n".join(sums)
        finding.facts, finding.related = tuple(self._facts(rule, origins)), tuple(related)
        if rule.code.startswith(_MEMORY):
            finding.range_reason = self._range_reason(rule, judged)

    def _is_likely(self, rule: t.Rule, origins: Origins) -> bool:
        memory = rule.code.startswith(_MEMORY)
        return not memory or is_likely(rule.requirement, self.evaluator, origins.values)

    def _range_reason(self, rule: t.Rule, judged: Judged) -> str:
        from cfglint.engine.ranges import reason  # most findings are not about memory

        return reason(rule.requirement, self.evaluator, self.origins(judged))

    def _facts(self, rule: t.Rule, origins: Origins) -> Iterator[UsedFact]:
        """Yield what the rule names, then the values of file and target that those were computed from."""
        named = dict.fromkeys((*origins.names_in(rule.requirement), *origins.names_in(rule.condition)))
        wanted = dict(named)
        again, seen = origins.values.but({}), as_shown(origins.values)
        for name in named:
            again[name]  # a value that the computation passed by did not move it, and is not listed
            leaves = (leaf for leaf in origins.leaves(name) if leaf in again and not leaf.startswith(_UNTOLD))
            wanted |= dict.fromkeys(leaf for leaf in leaves if origins.of(leaf).kind in _GIVEN)
        for name in wanted:
            value, kind = origins.values[name], self.evaluator.type_of(name)
            if kind.kind == "list" or (name not in named and needs_of(value)):
                continue
            if value != "":  # a key that the file does not have, where that says something
                source = origins.of(name).source
                if seen is not None and kind.dimension == MEMORY and at_worst(value, seen[name]) is not None:
                    source += ", 99 % bounds"
                yield UsedFact(name, show_value(value, kind), source)

    # ── one mistake, one finding ───────────────────────────────────────────────────────────────────────
    def once(self, found: list[Found], targets: int) -> list[Found]:
        """Return the findings of a subject without those that say again what another says of the same key.

        A rule of its own and the framework's schema may speak of the same key. Which of them stays is told
        by place and target, never by code. A rule's own words are the better ones, unless the schema knows
        which key was meant: its rename can be done.
        """

        def rank(mistake: Mistake | None) -> int:  # the schema's words, those on a fact's range, a rule's own
            return 2 if mistake is None else int(mistake.kind in self.symbols.facts)

        mistakes = [self._mistake(each) for each in found]
        dropped: set[int] = set()
        for i, mistake in enumerate(mistakes):
            if mistake is None or mistake.problem is None:
                continue
            finding, view = found[i].finding, found[i].judged.subject.view
            trace = Trace(view, mistake.problem.path)
            # A finding about the same key is at the key, or at its value.
            own = {trace.span, trace.key_span} if trace.present and trace.source is None else set()
            spans = {(mistake.start, mistake.end), *own}
            rivals = [
                k
                for k, rival in enumerate(found)
                if (rank(mistakes[k]) > rank(mistake))
                and (rival.finding.place.start, rival.finding.place.end) in spans
                and not rival.finding.possible
                and LEVELS.index(rival.finding.level) >= LEVELS.index(finding.level)
                and spans.issuperset(self._rests_on(rival))
            ]
            covered = {found[k].finding.target for k in rivals}
            if rivals and (None in covered or len(covered) == targets):
                renamed = mistake.problem.what == "key" and meant(mistake.problem, view)
                dropped.update(rivals if renamed else [i])
        return _surest([each for i, each in enumerate(found) if i not in dropped])

    def _mistake(self, found: Found) -> Mistake | None:
        """Return what the schema found, where a finding tells that."""
        kind = _LISTS.get(_lists(self.symbols.rules[found.finding.code]))
        if kind is None:
            return None
        subject, place = found.judged.subject, (found.finding.place.start, found.finding.place.end)
        noted = list(mistakes(subject.framework, subject.view).get(kind, ()))
        if kind == _NUMBERS:
            noted = list(found.judged.values[f"document.{kind}"])  # type: ignore[call-overload]
        return next((m for m in noted if (m.start, m.end) == place and m.problem is not None), None)

    def _rests_on(self, found: Found) -> Iterator[Span]:
        """Yield where the keys stand that a rule speaks of; a place in another file is none of this one's."""
        origins, needed = self.origins(found.judged), self.symbols.rules[found.finding.code].requirement
        named = origins.with_leaves(origins.names_in(needed))
        paths = [path for name in named if origins.of(name).kind == "file" for path in origins.of(name).paths]
        for path in (*paths, *paths_in(needed)):
            trace = origins.trace(path)
            if trace is not None and trace.present:
                yield trace.span if trace.source is None else (-1, -1)


def process_of(finding: Finding) -> str:
    """Return the rules that say of the same process that it lacks memory, MEM1 or MEM2; nothing of others.

    A machine whose own memory is too small (MEM109) is another trouble than its GPUs'.
    """
    memory = finding.rule_level == "error" and is_of_gpus(finding)
    return finding.code[: len(_MEMORY) + 1] if memory else ""


def _surest(found: list[Found]) -> list[Found]:
    """Return findings with one at most of those that say a process may not have the memory that it needs.

    The trainer's rules are MEM1xx, the engine's MEM2xx. The first sure finding of either, or else the most
    harmful, stands for all.
    """
    best: dict[tuple[str, str | None], tuple[int, int]] = {}
    ranked: list[tuple[tuple[str, str | None], tuple[int, int]] | None] = []
    for i, each in enumerate(found):
        finding = each.finding
        process = process_of(finding), finding.target
        rank = -LEVELS.index(finding.level) - (not finding.possible), i
        ranked.append((process, rank) if process[0] else None)
        if process[0]:
            best[process] = min(rank, best.get(process, rank))
    return [
        each for each, place in zip(found, ranked, strict=True) if place is None or best[place[0]] == place[1]
    ]


def _lists(rule: t.Rule) -> str:
    """Return the list whose items a rule speaks of; empty where it is about something else."""
    needed = rule.requirement
    source = needed.source if isinstance(needed, t.Quantifier) else None
    return source.name if isinstance(source, t.Name) else ""


def _assumption(case: Case, subject: Subject, evaluator: Evaluator) -> str:
    """Say what a finding takes for granted that nothing says."""
    taken = [f"{name} {show_value(case.values[name], evaluator.type_of(name))}" for name in case.chosen]
    every, told = "", "" if case.usual else " and ".join(map(called, case.chosen))
    if told:
        every, taken = f". This holds for every {told}", []
    if not case.usual:
        return every
    taken = taken or [f"the defaults of {subject.framework}"]
    return f"{every}. Assumed, since nothing says it: {', '.join(taken)}"


# ── where a finding stands ─────────────────────────────────────────────────────────────────────────────────
def _item_spot(item: Any, source: t.Expr, origins: Origins, variables: Lookup[str, object]) -> _Spot:
    """Return where an item of a list stands; where nothing says that, the list does."""
    start = getattr(item, "start", None)
    if isinstance(start, int):
        return _Spot((start, item.end), item.related, variables)
    path = getattr(item, "path", None)
    trace = origins.trace(path) if isinstance(path, tuple) else None
    if trace is None:
        listed = next(iter(paths_in(source)), None)
        if listed is not None:
            trace = origins.trace(listed[: listed.index("*")] if "*" in listed else listed)
    return _Spot(trace.own_span if trace is not None else (0, 0), None, variables)


def _place(rule: t.Rule, origins: Origins) -> Span:
    """Return the span that a finding is on: the value that is most likely to be changed.

    Where the requirement's keys are all absent, that is the nearest parent of the first of them.
    """
    view = origins.values.view
    if view is None:
        return (0, 0)
    absent: Span | None = None
    for paths in _candidates(rule, origins):
        for trace in traces(paths, origins):
            if trace.source is not None:
                absent = absent or trace.own_span
            elif trace.present and not any(step.kind == "override" for step in trace.steps):
                # A block of lines is named by its key.
                block = isinstance(trace.node, (Mapping, Sequence)) and not trace.node.flow
                return trace.key_span if block else trace.span
            else:
                absent = absent or trace.span
        if absent is not None:
            break
    document = view.document
    if absent is not None and absent != (document.start, document.start):
        return absent
    if document.key is not None:
        return (document.key.start, document.key.end)
    start = document.start if document.root is None else document.root.start  # not the comment above it
    return (start, start)


def _candidates(rule: t.Rule, origins: Origins) -> Iterator[Iterable[Steps]]:
    """Yield groups of paths, those that say most about the rule first."""
    knobs = origins.symbols.knobs
    if isinstance(rule.at, t.Path):
        yield [rule.at.steps]
    elif rule.at is not None:
        yield paths_of([rule.at.name], origins)
    for node in (rule.requirement, rule.condition):
        names = origins.names_in(node)
        leaves = [leaf for name in names for leaf in origins.leaves(name)]
        direct = [name for name in names if origins.of(name).kind == "file"]
        yield paths_of([name for name in names if name in knobs], origins)
        yield paths_of([*direct, *(leaf for leaf in leaves if leaf in knobs), *leaves], origins)
        if node is not None:
            yield paths_in(node)


def _elsewhere(rule: t.Rule, origins: Origins) -> Iterator[Related]:
    """Yield the places in other files that the rule's numbers come from."""
    view = origins.values.view
    if view is None or view.sources is None:
        return
    places: set[tuple[str, int]] = set()
    for name in names_of(rule, origins):
        for trace in traces(origins.of(name).paths, origins):
            if not trace.present or trace.source is None:
                continue
            place = trace.file.path, trace.span[0]
            if place not in places:
                places.add(place)
                hangs = trace.view.hangs(trace.at)
                key = dotted(trace.at if hangs is None else hangs[1])  # in the file that it is in
                yield Related(Place(trace.file.path, *trace.span), f"{key} is set here")


def _beside(rule: t.Rule, origins: Origins, spot: _Spot) -> Iterator[Related]:
    """Yield where the file has the other keys of a requirement."""
    for path in paths_in(rule.requirement):
        trace = origins.trace(path)
        if trace is None or not trace.present or trace.source is not None or trace.span[1] < 0:
            continue
        if trace.span != spot.span:
            key = spoken(path)
            value = show_value(trace.view.get(path), ANY)
            yield Related(Place(trace.file.path, *trace.span), f"{key} is {value} here")
