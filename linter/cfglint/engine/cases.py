"""A job with values for what it leaves open: each that it may have, or the usual one.

The rules' lets named ``cases.…`` list all values that a fact may have where a job leaves it open, the
likeliest first. The memory is computed for each: where all agree, the answer does not need the fact.
A fact that is a range where it is open has its list in ``widening.…``: its values are cases only where they
differ much.

Those named ``usual.…`` are the most sparing of the usual values (all GPUs share the states, the shortest
samples). What does not fit even so, with the framework's own defaults, is worth a warning, never an error:
the finding names what was assumed.

A program of the framework's own package that lies in the repository may have other defaults than the release.
They are taken to be the same for the memory and the verdict, which says so; no finding rests on them. So are
the defaults of a program's own flags, where nothing says how it is started.

A GPU without a number, for a config that asks for none, is as many GPUs as the config's own parallelism
takes: one, as a rule (``gpus.least``).
"""

from __future__ import annotations

from cfglint.engine.judge import decides
from cfglint.engine.subject import Case, Judged, Verdict
from cfglint.facts import Values, convert
from cfglint.lang.types import is_number
from cfglint.lang.values import INF, Interval, Unknown, needs_of
from cfglint.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.lang.pack import CompiledRule

TOTAL = "need.total"  # the number that cases are told apart by
_EVERY, _USUAL, _WIDE = "cases.", "usual.", "widening."
_COUNTS = ("gpus_per_node", "num_gpus", "num_nodes", "train_gpus", "gpu.count")
_LEAST = "gpus.least"
_MOST = 16  # cases of one job; what is open beyond them stays open
_WIDENS = 1.5  # the need by this factor, or the values of a ``widening.…`` make no cases
_SOURCE = "assumed"


# ── all cases of what is open ──────────────────────────────────────────────────────────────────────────────
def cases_of(values: Values) -> list[Case]:
    """Return the cases of a job, found out once: the likeliest first; one where nothing is left open."""
    if values.cases is None:
        values.cases = sorted(_cases(Case(values)), key=_unlikely)
    return values.cases


def _cases(first: Case) -> Iterator[Case]:
    values = first.values
    if needs_of(values[TOTAL]):
        first = _by_defaults(values) or first
    if _is_uncounted(first.values):
        least = first.values[_LEAST]
        gpus = int(least) if is_number(least) else 1
        given = {"gpu.count": gpus, "gpu.per_node": gpus, "gpu.nodes": 1}
        first = replace(first, values=first.values.but(given), gpus=gpus)
    waiting, done = [first], 0
    while waiting:
        case = waiting.pop(0)
        split = None if len(waiting) + done >= _MOST else _split(case)
        if split is None:
            done += 1
            yield case
        else:
            waiting[:0] = split


def _by_defaults(values: Values) -> Case | None:
    """Return a job with the defaults of its framework's release, or of its program's flags."""
    if _is_vendored(values):
        return Case(values.but({}, own=True), defaults=f"{values['framework.name']}'s release")
    view = values.view
    asked = view.document.asked if view is not None and not view.layers else None
    if view is None or asked is None:
        return None
    given = dict(map(_flag, view.overrides))
    document = asked(given)
    if document is None:
        return None
    others = " other" * bool(given)
    return Case(
        values.but({}, seen=replace(view, document=document)), defaults=f"the program's{others} flags"
    )


def _flag(text: str) -> tuple[str, object]:
    """Return what an override says of a flag that has its name."""
    from cfglint.document.layers import read_override  # few runs override anything
    from cfglint.document.scalars import PYYAML, resolve
    from cfglint.document.tree import Scalar

    override = read_override(text)
    node = override.value
    return ".".join(map(str, override.keys)), resolve(node, PYYAML) if isinstance(node, Scalar) else None


def _is_vendored(values: Values) -> bool:
    return not values.own and values.view is not None and values.view.document.vendored


def _is_uncounted(values: Values) -> bool:
    return "gpu.count" not in values.given and not needs_of(values[TOTAL]).isdisjoint(_COUNTS)


def _split(case: Case) -> list[Case] | None:
    """Return a case with each value of the first fact that it leaves open and that has a list of them."""
    values = case.values
    needs = needs_of(values[TOTAL])
    for name in sorted(needs - values.given.keys()):
        several = listed(name, values, (_EVERY,))
        if several is None:
            continue
        given = [convert(name, value, values.pack.facts[name]) for value in several]
        if name in _COUNTS:  # as many as the target has, for want of a number
            count = values["gpu.count"]
            return [replace(case, values=values.but({name: given[0]}), gpus=int(count))]  # type: ignore[call-overload]
        return [replace(case, values=values.but({name: v}), chosen={**case.chosen, name: v}) for v in given]
    return _where_wide(case, needs)


def _where_wide(case: Case, needs: frozenset[str]) -> list[Case] | None:
    """Return a case with each value that differs in memory of a fact that is a range where it is open.

    Where all of them differ little, that fact stays a range.
    """
    for name in _ranged(case.values):
        several = listed(name, case.values, (_WIDE,))
        if several is None or name in case.values.given or needs.isdisjoint(needs_of(case.values[name])):
            continue
        found: dict[str, Case] = {}
        for value in several:
            values = case.values.but({name: value})
            found.setdefault(
                repr(values[TOTAL]), replace(case, values=values, chosen={**case.chosen, name: value})
            )
        tops = [highest(each.values[TOTAL]) for each in found.values()]
        if max(tops) > _WIDENS * min(tops):
            return list(found.values())
        return [replace(case, values=case.values.but({name: Unknown()}))]
    return None


def _unlikely(case: Case) -> tuple[int, ...]:
    """Return how unlikely a case's values of such facts are: 0 for the likeliest, or for no cases."""
    several = [(name, listed(name, case.values, (_WIDE,))) for name in _ranged(case.values)]
    return tuple(
        values.index(case.chosen[name]) if values and name in case.chosen else 0 for name, values in several
    )


def _ranged(values: Values) -> list[str]:
    return [let.removeprefix(_WIDE) for let in values.pack.lets_from(_WIDE)]


def highest(value: object) -> float:
    """Return the upper bound of a number or a range."""
    return value.hi if isinstance(value, Interval) else value if is_number(value) else INF


def listed(name: str, values: Values, prefixes: Sequence[str] = (_EVERY, _WIDE)) -> list[object] | None:
    """Return the values that the rules list for a fact; None without a list, or where it is not known."""
    for prefix in prefixes:
        several = values[prefix + name] if prefix + name in values.pack.lets else None
        if isinstance(several, list) and several and not any(map(needs_of, several)):
            return several
    return None


# ── the usual case ─────────────────────────────────────────────────────────────────────────────────────────
def _usual(judged: Judged) -> list[Case]:
    """Return the case in which all that is open is as usual; none where that says nothing."""
    values = judged.values
    if needs_of(values["gpu.vram"]) or not _says_what_it_trains(judged):
        return []
    assumed: dict[str, object] = {}
    for let in values.pack.lets:
        name = let.removeprefix(_USUAL)
        if name != let and needs_of(values[name]) and not needs_of(values[let]):
            assumed[name] = convert(name, values[let], values.pack.facts[name])
    return [Case(values.but(assumed, own=not _is_vendored(values)), assumed, usual=True)]


def _says_what_it_trains(judged: Judged) -> bool:
    """Whether a program would say that it trains an adapter: one of people's own may, without a flag."""
    values, rank = judged.values, judged.values["lora_rank"]
    block = values.pack.frameworks.get(judged.subject.framework or "")
    if isinstance(rank, (int, float)) and rank > 0:
        return True
    return block is not None and not block["last"] and (values.own or bool(block["composes"]))


# ── the rules, asked again ─────────────────────────────────────────────────────────────────────────────────
def asked_again(judged: Judged) -> Judged | None:
    """Return a subject in a case that breaks open memory rules: the likeliest, if all cases break some.

    Otherwise that is the usual case; None where it breaks none either.
    """
    rules = [v.rule for v in judged.verdicts if v.needs and decides(v.rule)]
    if not rules:
        return None
    every = [c for c in cases_of(judged.values) if c.values is not judged.values and not c.defaults]
    return _breaking(judged, rules, every) or _breaking(judged, rules, _usual(judged))


def _breaking(judged: Judged, rules: Sequence[CompiledRule], found: Sequence[Case]) -> Judged | None:
    """Return a subject in the first of some cases, with the rules broken there, if each breaks some."""
    broken = [
        [v for rule in rules if _counts(v := Verdict(rule, rule.test(case.values)), case)] for case in found
    ]
    if not broken or not all(broken):
        return None
    again = _in_case(judged, found[0])
    again.verdicts = broken[0]
    return again


def _in_case(judged: Judged, case: Case) -> Judged:
    values, chosen = case.values, case.chosen
    added = values.given.keys() - judged.values.given.keys()
    sources = {**judged.sources, **dict.fromkeys(added, _SOURCE)}
    again = Judged(judged.subject, judged.target, values, sources)
    again.case = replace(case, chosen={name: chosen[name] for name in chosen if name in values})
    return again


def in_cases(judged: Judged, rule: CompiledRule) -> list[Judged]:
    """Return a subject in each of its cases, as its memory is judged, where a memory rule is open without."""
    if judged.target is None or not decides(rule) or not needs_of(rule.test(judged.values)):
        return [judged]
    found = cases_of(judged.values)
    return [judged if case.values is judged.values else _in_case(judged, case) for case in found]


def _counts(verdict: Verdict, case: Case) -> bool:
    """Whether a rule does not hold, or may not; for that, what engine and trainer need is too wide."""
    if case.usual and case.values["generates"] is False:
        return may_not_hold(verdict.truth)
    return verdict.truth is False


def may_not_hold(truth: object) -> bool:
    """Whether a rule is broken, or may be though nothing is missing."""
    return truth is not True and truth is not None and not needs_of(truth)
