"""What a job comes to where what it leaves open is as it usually is: the rules' lets named ``usual.…``.

A rule about memory that unknown facts leave undecided is asked once more, with the most sparing of the usual
values (all GPUs share the states, the shortest samples) and with the framework's own defaults. What does not
fit even so is worth a warning, never an error: the finding names what was assumed.
"""

from __future__ import annotations

from cfglint.engine.cases import cases_of
from cfglint.engine.judge import decides
from cfglint.engine.memory import TOTAL
from cfglint.engine.subject import Judged, Verdict
from cfglint.facts import Values, convert
from cfglint.lang.values import needs_of

_PREFIX = "usual."
_SOURCE = "assumed"


def is_open(verdict: Verdict) -> bool:
    """Whether a verdict is one that unknown facts leave undecided, of a rule about too little memory."""
    return verdict.truth is not False and bool(verdict.needs)


def in_all_cases(judged: Judged) -> Judged | None:
    """Return a subject with the memory rules that it breaks whichever value its open facts have.

    None where there are no cases, or where some of them break none.
    """
    values = judged.values
    open_rules = [v.rule for v in judged.verdicts if is_open(v) and decides(v.rule)]
    found = cases_of(judged, TOTAL) if open_rules else []
    if not found or found[0].values is values:
        return None
    broken = [[rule for rule in open_rules if rule.test(case.values) is False] for case in found]
    if not all(broken):
        return None
    again = Judged(
        judged.subject,
        judged.target,
        found[0].values,
        {**judged.sources, **dict.fromkeys(found[0].values.given.keys() - values.given.keys(), _SOURCE)},
        [Verdict(rule, False) for rule in broken[0]],
    )
    again.assumed, again.whichever = tuple(found[0].chosen), True
    return again


def as_usual(judged: Judged) -> Judged | None:
    """Return a subject with what is usual for what it leaves open, and the memory rules that it breaks then.

    None where there is nothing to assume, or where the rules hold or stay open.
    """
    values = judged.values
    rules = [v.rule for v in judged.verdicts if is_open(v) and decides(v.rule)]
    if not rules or needs_of(values["gpu.vram"]) or not _says_what_it_trains(judged):
        return None
    assumed = _assumed(values)
    usual = values.but(assumed, own=True)
    verdicts = [
        verdict for verdict in (Verdict(rule, rule.test(usual)) for rule in rules) if _counts(verdict, usual)
    ]
    if not verdicts:
        return None
    sources = {**judged.sources, **dict.fromkeys(assumed, _SOURCE)}
    again = Judged(judged.subject, judged.target, usual, sources, verdicts)
    again.assumed = tuple(name for name in assumed if name in usual)
    return again


def _says_what_it_trains(judged: Judged) -> bool:
    """Whether a program would say that it trains an adapter: one of people's own may, without a flag."""
    values, rank = judged.values, judged.values["lora_rank"]
    block = values.pack.frameworks.get(judged.subject.framework or "")
    if isinstance(rank, (int, float)) and rank > 0:
        return True
    return block is not None and not block["last"] and (values.own or bool(block["composes"]))


def _assumed(values: Values) -> dict[str, object]:
    """Return what is usual for the facts that are unknown."""
    assumed: dict[str, object] = {}
    for let in values.pack.lets:
        name = let.removeprefix(_PREFIX)
        if name != let and needs_of(values[name]) and not needs_of(values[let]):
            assumed[name] = convert(name, values[let], values.pack.facts[name])
    return assumed


def _counts(verdict: Verdict, values: Values) -> bool:
    """Whether a rule does not hold, or may not; for that, what engine and trainer need is too wide."""
    truth = verdict.truth
    if truth is False or values["generates"] is not False:
        return truth is False
    return truth is not True and truth is not None and not verdict.needs
