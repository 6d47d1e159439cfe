"""What is to hold in a document, what becomes of its rules with other values, and the proof of a repair.

One evaluation notes what every fact and every rule rests on (engine/dependencies.py). A trial takes over what
does not rest on the facts that move and computes the rest, and only the rules that rest on them are judged
again. All findings of a document share the trials, each of which is computed once. Nothing counts as a fix
before it was proven: its edits are applied to the text, which is parsed and linted again.
"""

from __future__ import annotations

from cfglint.budget import spend
from cfglint.document.compose import edited
from cfglint.engine.halts import goes_on
from cfglint.engine.judge import judge, values_for
from cfglint.engine.memory import LACKING, bounds_of
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.lang.values import INF, Interval, Open, Unknown, needs_of
from cfglint.record import Record, field
from cfglint.repair import aside
from cfglint.repair.base import GPUS, SOME_GPUS, Base
from cfglint.repair.estimate import may_fit
from cfglint.repair.invert import ABSENT, Written
from cfglint.repair.tracks import UNSOLVABLE
from cfglint.repair.write import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject, Verdict
    from cfglint.facts import Steps, Values
    from cfglint.lang.pack import CompiledRule
    from cfglint.repair.along import Progress
    from cfglint.repair.base import Facts, Key
    from cfglint.repair.tracks import Option, Track
    from cfglint.text import Edit

_TRIALS = "values that a fix could take"
_TRIAL, _NAME = 50, 20  # steps: of a trial, and of each name that it computes
_ROUNDING = 1e-9  # of a number that a text says in a unit
_BOUNDS = ("<", "<=", ">", ">=")
_UNTESTED = object()
_ALL_MEMORY = "MEM"
MEMORY = "MEM1"  # the rules about what a GPU must hold; MEM2 are about an engine's own share


def key_of(facts: Facts) -> Key:
    """Return what tells facts apart; 1, 1.0 and true are three, and a missing one is known by its text."""
    return tuple(
        (name, type(value), repr(value) if isinstance(value, (Interval, Open, Unknown, list)) else value)
        for name, value in sorted(facts.items())
    )


def is_hint(rule: CompiledRule) -> bool:
    """Whether a rule only tells of hardware that could do more; what fits is not made larger for that."""
    return rule.level == "info" and rule.code.startswith("PRF")


def to_mend(verdict: Verdict) -> bool:
    """Whether there is something to fix: a rule that is broken, or possible; not one that is undecided."""
    return verdict.truth is False or not verdict.needs


def is_possible(truth: object) -> bool:
    """Whether a rule may hold, and only an estimate leaves that open."""
    return truth is not False and truth is not None and not needs_of(truth)


class Trials(Record):
    """The trials of one document, on all targets that it was judged on. ``count`` is how many there were.

    ``_edited`` keeps what became of edited texts, so that the same edits are judged once.
    """

    run: Run
    judgements: tuple[Judged, ...]
    count: int = field(default=0, init=False)
    keys: dict[str, Steps] = field(factory=dict, init=False)  # those that moves speak of, by their names
    hosted: dict[str, Option] = field(factory=dict, init=False)  # moves that no host holds, by knob
    tracks: dict[tuple[Judged, str, object], list[Track]] = field(factory=dict, init=False)  # by knob, too
    progress: dict[tuple[object, ...], dict[Key, Progress]] = field(factory=dict, init=False)  # by goals
    _last: Collection[str] = field(
        default=(), init=False
    )  # the facts of the last trial, of which so many were taken over
    _kept: int = field(default=0, init=False)
    _rewritten: dict[tuple[str, ...], Subject | None] = field(factory=dict, init=False)
    _edited: dict[tuple[Edit, ...], Sequence[Judged] | None] = field(factory=dict, init=False)
    _bases: dict[Judged, Base] = field(factory=dict, init=False)
    _of: dict[int, tuple[Base, Facts]] = field(factory=dict, init=False)  # what facts are a trial of, by id
    _numbered: dict[int, tuple[Values, list[Values], set[str]]] = field(factory=dict, init=False)
    _hidden: dict[tuple[Judged, str], bool] = field(factory=dict, init=False)
    _goes_on: bool | None = field(default=None, init=False)

    def forget(self) -> None:
        """Let go of all trials."""
        for kept in (self.tracks, self.progress, self._bases, self._of, self._numbered, self._edited):
            kept.clear()

    @property
    def subject(self) -> Subject:
        """The document as its framework sees it."""
        return self.judgements[0].subject

    @property
    def may_halt(self) -> bool:
        """Whether the program of the job goes on, and may stop where keys say something else."""
        if self._goes_on is None:
            self._goes_on = goes_on(self.subject)
        return self._goes_on

    def base(self, judged: Judged) -> Base:
        """Return one target's facts and rules as they stand."""
        base = self._bases.get(judged)
        if base is None:
            base = self._bases[judged] = Base(self.run, judged)
            self._of[id(judged.values)] = base, {}
        return base

    def touches(self, goal: Goal, names: Iterable[str]) -> bool:
        """Whether a goal's rule rests on some facts, as things stand."""
        return goal.compiled in self.base(goal.judged).moved(names).rules

    def values(self, judged: Judged, facts: Facts) -> Values:
        """Return the facts on a target with some of them replaced."""
        base = self.base(judged)
        key = key_of(facts)
        values = base.trials.get(key)
        if values is None:
            self.count += 1
            spend(_TRIAL + _NAME * (len(self._last) - self._kept), _TRIALS)
            subject = self.rewritten(judged, facts) or base.subject
            named = {name: value for name, value in facts.items() if name not in self.keys}
            values = values_for(subject, {**base.given, **named})
            values.update(base.moved(facts).kept)
            base.trials[key] = self._last = values
            self._of[id(values)] = base, facts
            self._kept = len(values)
        return values

    def on_some_numbers(self, values: Values, rule: CompiledRule) -> list[Values]:
        """Return facts on one and on eight GPUs, to judge a rule there: what did not move is taken over."""
        known = self._numbered.get(id(values))
        if known is None:
            known = values, [values.but(number) for number in SOME_GPUS], set()
            self._numbered[id(values)] = known
        _, each, codes = known
        if rule.code not in codes and id(values) in self._of:
            codes.add(rule.code)
            base, facts = self._of[id(values)]
            for one, stand in zip(each, base.on_some_numbers(), strict=True):
                stand.note(rule.code, rule.test)
                one.update(stand.kept(facts))
        return each

    def truth(self, rule: CompiledRule, values: Values, truth: object = _UNTESTED) -> object:
        """Return a rule's truth; without a number of GPUs, what holds on one and on eight, holds."""
        truth = rule.test(values) if truth is _UNTESTED else truth
        needs = needs_of(truth) if not isinstance(truth, bool) else frozenset()
        if not needs or not needs <= GPUS:
            return truth
        truths = [rule.test(one) for one in self.on_some_numbers(values, rule)]
        return True if all(each is True or each is None for each in truths) else truth

    def rewritten(self, judged: Judged, facts: Facts) -> Subject | None:
        """Return the document with other values at its keys; None without keys, or where no edit does it."""
        written = tuple(Written(self.keys[name], value) for name, value in facts.items() if name in self.keys)
        if not written:
            return None
        key = tuple(map(repr, written))
        if key not in self._rewritten:
            writer = Writer(judged.subject, self.run.finder.origins(judged))
            patch = writer.patch(written)
            again = None if patch is None else edited(self.subject.document, patch.edits)
            framework = self.subject.framework
            self._rewritten[key] = None if again is None else self.run.subject(again, framework)
        return self._rewritten[key]

    def harmed(
        self, judged: Judged, facts: Facts, *, surely: bool = False, infos: bool = True
    ) -> list[CompiledRule]:
        """Return the rules that held on a target and are broken or open there with these facts.

        With ``surely`` those that are only possible do not count, without ``infos`` no rules of thumb. Of a
        key that is taken away, a warning need not know what it said.
        """
        gone = ABSENT in facts.values()
        base, values = self.base(judged), self.values(judged, facts)
        harmed = []
        rules = base.moved(facts).rules
        spend(3 * len(rules), _TRIALS)
        for rule in rules:
            truth = self.truth(rule, values)
            if truth is True or truth is None or is_hint(rule) or (rule.level == "info" and not infos):
                continue
            if surely and truth is not False and not needs_of(truth):
                continue
            if gone and truth is not False and rule.level != "error":
                continue
            was = base.before.get(rule.code)
            if was is None and needs_of(truth) and self.hidden(judged, rule.code):
                continue
            if was is None and needs_of(truth) and needs_of(rule.test(judged.values)):
                continue  # nobody knew before, and nothing was said of it, as another mistake comes first
            if was is None and needs_of(truth) and self._nobody_knew(judged, values, rule.code):
                continue
            if was is None or (truth is False and was.truth is not False):
                harmed.append(rule)
        return harmed

    def _nobody_knew(self, judged: Judged, values: Values, code: str) -> bool:
        """Whether a rule is open after some moves about which nobody knew enough before.

        What a part of the memory came to on GPUs that are not there says nothing of the whole job.
        """
        whole = (bounds_of(each["trainer.memory"]) for each in (judged.values, values))
        endless = all(size is None or size[1] == INF for size in whole)
        part = code.startswith(MEMORY) and judged.values[LACKING] is True and endless
        return part or self._asks_as_before(judged, values, code)

    def _asks_as_before(self, judged: Judged, values: Values, code: str) -> bool:
        """Whether nobody knows that a rule is about the job at all, after some moves as before them."""
        rule, truth = self.run.finder.symbols.rules[code], self.run.finder.evaluator
        try:
            return any(
                needs_of(truth(one, judged.values)[0]) and needs_of(truth(one, values)[0])
                for one in _conjuncts(rule.condition)
            )
        except UNSOLVABLE:
            return False

    def hidden(self, judged: Judged, code: str) -> bool:
        """Whether a rule says nothing on a target because another failure comes first, and is broken there.

        Nothing has room in a cache that there is no memory for. Once there is, nobody knows whether it is
        enough where nobody knew before.
        """
        key = judged, code
        if key not in self._hidden:
            rule = self.run.finder.symbols.rules[code]
            truth, values = self.run.finder.evaluator, judged.values
            failing = [one for one in _conjuncts(rule.condition) if truth(one, values)[0] is not True]
            bounds = bool(failing) and all(isinstance(one, t.Compare) and _is_bound(one) for one in failing)
            try:
                self._hidden[key] = bounds and truth(rule.requirement, values)[0] is False
            except UNSOLVABLE:
                self._hidden[key] = False
        return self._hidden[key]

    def short(self, judged: Judged, facts: Facts, *, served: bool = False) -> list[CompiledRule]:
        """Return the rules about a GPU's memory that do not hold for certain with these facts.

        With ``served``, of a server also those about its share.
        """
        values = self.values(judged, facts)
        codes = _ALL_MEMORY if served and values["trains"] is False else MEMORY
        rules = (rule for rule in self.base(judged).rules if rule.code.startswith(codes))
        return [rule for rule in rules if rule.test(values) not in (True, None)]

    def is_serious(self, codes: Iterable[str]) -> bool:
        """Whether one of some rules is more than a rule of thumb, which then stands in no one's way."""
        rules = self.run.finder.symbols.rules
        return any(rules[code].level != "info" for code in codes)

    def judged_after(self, edits: tuple[Edit, ...]) -> Sequence[Judged] | None:
        """Return the edited document, judged; None where it does not parse."""
        if edits not in self._edited:
            again = edited(self.subject.document, edits)
            self._edited[edits] = (
                self.run.judged(self.run.subject(again, self.subject.framework))
                if again is not None
                else None
            )
        return self._edited[edits]

    def proven(
        self,
        mended: Collection[tuple[Judged, str]],
        watched: Collection[Judged],
        edits: tuple[Edit, ...],
        *,
        sure: bool,
        removes: bool = False,
    ) -> bool:
        """Whether the edited text breaks none of the rules ``mended``, and on ``watched`` no other that held.

        ``mended`` has a judgement and a rule's code. A repair that is not ``sure`` may leave its rules
        possible, no longer certain to break.
        """
        against = self.against(mended, watched, edits, sure=sure)
        if against is None:
            return False
        codes = {code for _, code in mended}
        warnings = ("warning", "info") if removes else ()
        return all(
            v.rule.level in warnings and v.truth is not False and v.rule.code not in codes for v in against
        )

    def reads(self, facts: Facts, watched: Collection[Judged], edits: tuple[Edit, ...]) -> bool:
        """Whether facts are what they were to be in the edited text."""
        after = self.judged_after(edits) or ()
        own = {name: value for name, value in facts.items() if name not in self.keys}
        return all(
            _is_near(new.values[name], value)
            for old, new in zip(self.judgements, after, strict=False)
            if old in watched
            for name, value in own.items()
        )

    def spares(self, edits: tuple[Edit, ...]) -> bool:
        """Whether edits break nothing in the other documents of the file that held."""
        return next(aside.broken(self.run, self.subject.document, edits), None) is None

    def broken_beside(self, edits: tuple[Edit, ...]) -> str:
        """Say what edits break in another document of the file that held; nothing where they do not."""
        return aside.told(self.run, self.subject.document, edits)

    def broken_elsewhere(self, edits: tuple[Edit, ...]) -> str:
        """Say what edits break in a config of another file that builds on this one."""
        return aside.told_elsewhere(self.run, self.subject.document, edits)

    def recognised(self, edits: tuple[Edit, ...]) -> bool:
        """Whether a document without some keys is still known to be its framework's."""
        again = edited(self.subject.document, edits)
        if again is None:
            return False
        subjects = self.run.but().subjects(again.file, judge_broken=False)
        return any(
            each.framework == self.subject.framework and each.document.index == again.index
            for each in subjects
        )

    def against(
        self,
        mended: Collection[tuple[Judged, str]],
        watched: Collection[Judged],
        edits: tuple[Edit, ...],
        *,
        sure: bool,
    ) -> Iterator[Verdict] | None:
        """Return what disproves a repair (see `proven`); None where the edited text does not parse."""
        after = self.judged_after(edits)
        return None if after is None else self._against(after, mended, watched, sure=sure)

    def _against(
        self,
        after: Sequence[Judged],
        mended: Collection[tuple[Judged, str]],
        watched: Collection[Judged],
        *,
        sure: bool,
    ) -> Iterator[Verdict]:
        infos = not self.is_serious(code for _, code in mended)
        for old, new in zip(self.judgements, after, strict=True):
            if old not in watched:
                continue
            before = self.base(old).before
            aside = judge(self.run.aside(new.subject, new.values), new.values)
            for verdict in (*new.verdicts, *aside):
                code = verdict.rule.code
                if not sure and (old, code) not in mended and may_fit(verdict.rule, new.values):
                    continue
                hint = is_hint(verdict.rule) or (verdict.rule.level == "info" and not infos)
                if hint and (old, code) not in mended:
                    continue
                if self.truth(verdict.rule, new.values, verdict.truth) is True:
                    continue
                newly = code not in before or (verdict.truth is False and before[code].truth is not False)
                hidden = code not in before and verdict.needs and self.hidden(old, code)
                unknown = code not in before and verdict.needs and self._nobody_knew(old, new.values, code)
                if hidden or unknown:
                    newly = False
                newly = newly and (sure or verdict.truth is False or bool(verdict.needs))
                asks = bool(verdict.needs) and not may_fit(verdict.rule, new.values)
                left = (old, code) in mended and (sure or verdict.truth is False or asks)
                if newly or left:
                    yield verdict


def counts_gpus(needed: object) -> bool:
    """Whether what is needed rests on a number of GPUs that nobody says."""
    return not needs_of(needed).isdisjoint(GPUS)


def on_some_numbers(values: Values, needed: object) -> list[Values]:
    """Return facts on one and on eight GPUs, where what is needed rests on a number that nobody says."""
    return [values.but(number) for number in SOME_GPUS] if counts_gpus(needed) else [values]


class Goal(Record):
    """A requirement that is to hold on a target; ``held`` says that it does so now.

    ``gaps`` are at most 0 where its bounds hold, ``bounds`` says that it is made of bounds alone, and
    ``switches`` are the names that the rule's condition asks for.
    """

    judged: Judged
    compiled: CompiledRule
    rule: t.Rule
    held: bool = False
    gaps: tuple[t.Expr, ...] = field(default=(), init=False)
    bounds: bool = field(default=False, init=False)
    switches: frozenset[str] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        """Take the rule apart."""
        self.gaps = tuple(_gaps(self.rule.requirement))
        self.bounds = _only_bounds(self.rule.requirement)
        self.switches = frozenset(switches_of(self.rule.condition))

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.compiled.code

    @property
    def broken(self) -> bool:
        """Whether the rule certainly does not hold now."""
        return any(v.truth is False for v in self.judged.verdicts if v.rule.code == self.code)

    def truth(self, trials: Trials, values: Values, moved: Collection[str] = ()) -> object:
        """Return the truth of the rule; one that is merely switched off counts by its requirement.

        A repair makes the requirement hold, or moves a name that the condition itself asks for (an engine
        that sleeps starves nobody). Changing a value so that the condition happens not to hold (logits are
        no longer half of the need, because something else grew) fixes nothing.
        """
        truth = trials.truth(self.compiled, values)
        if truth is not None:
            return truth
        if self.held or not self.switches.isdisjoint(moved):
            return True
        return trials.run.finder.evaluator(self.rule.requirement, values)[0]


class Group(Record):
    """The goals of one rule on the targets of a document; ``error`` says that it is sure to break."""

    code: str
    goals: tuple[Goal, ...]
    error: bool


def _is_near(value: object, wanted: object) -> bool:
    if is_number(value) and is_number(wanted):
        return abs(value - wanted) <= _ROUNDING * abs(wanted)
    return value is wanted or (value == wanted) is True


def switches_of(condition: t.Expr | None) -> Iterator[str]:
    """Yield the names that a condition asks for: ``a``, ``not a`` or ``a == b`` among what must all hold."""
    match condition:
        case t.Junction("and", operands):
            for operand in operands:
                yield from switches_of(operand)
        case t.Name(name) | t.Not(t.Name(name)):
            yield name
        case t.Compare():
            yield from (side.name for side in condition.operands if isinstance(side, t.Name))
        case t.Member(item=t.Name(name)):
            yield name


def _conjuncts(condition: t.Expr | None) -> Iterator[t.Expr]:
    """Yield what must all hold for a condition to."""
    match condition:
        case t.Junction("and", operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case None:
            return
        case _:
            yield condition


def _gaps(requirement: t.Expr) -> Iterator[t.Expr]:
    """Yield what is at most 0 where a bound of the requirement holds."""
    for node in t.walk(requirement):
        if isinstance(node, t.Compare) and _is_bound(node):
            small, large = node.operands if node.operators[0][0] == "<" else reversed(node.operands)
            yield t.Sum((("+", small), ("-", large)))


def _only_bounds(node: t.Expr) -> bool:
    """Whether an expression consists of bounds alone."""
    if isinstance(node, t.Junction):
        return all(map(_only_bounds, node.operands))
    return isinstance(node, t.Compare) and _is_bound(node)


def _is_bound(node: t.Compare) -> bool:
    return len(node.operands) == 2 and node.operators[0] in _BOUNDS
