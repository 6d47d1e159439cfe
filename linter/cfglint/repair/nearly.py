"""Fewer GPUs, whose batch no accumulation keeps: a larger micro-batch does, or the nearest batch is taken."""

from __future__ import annotations

from cfglint.engine.memory import bounds_of
from cfglint.lang.types import is_number
from cfglint.lang.values import INF, Interval, Open, Unknown
from cfglint.repair.exchange import (
    PASSES_APART,
    exchanged_for,
    in_proportion,
    is_even,
    may_grow,
    nearest_even,
    partners_of,
)
from cfglint.repair.price import lays_out, regroups
from cfglint.repair.results import is_same
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.subject import Judged
    from cfglint.lang import tree as t
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Writer

_STEPS, _MICRO = "grad_accum", "micro_batch_size"
_IN_GROUPS = ("grpo", "ppo")  # tasks in which a micro-batch also says how answers are grouped
_NOT_KEPT = "the effective batch cannot stay as it is on so many GPUs"
_UNTRIED = "the effective batch shrinks: whether a larger micro-batch, which would keep it, fits is not known"
_SHRINKS = "the batch shrinks, unless the program accumulates more"
_MOST = 16  # times the micro-batch before


def nearly_keeps(
    trials: Trials, judged: Judged, writer: Writer, knob: t.Knob, option: Option, ratio: tuple[object, object]
) -> bool:
    """Keep the batch on fewer GPUs, or come as near as whole numbers can, which is never safe."""
    if judged.values["gpus.short"] is not True:
        return False
    if judged.values["evaluates"] is True:  # which has no batch to keep
        return True
    if _grows(trials, judged, writer, knob, option, ratio):
        return True
    # The processes that go along may keep it, where nobody states its parts.
    if not regroups(option.facts):
        option.risk = worse(option.risk, "optimization")
        return lays_out(option.facts) and isinstance(judged.values[_STEPS], (Interval, Open, Unknown))
    for partner in partners_of(judged, knob)[0]:
        value = nearest_even(trials, judged, partner, ratio, option.facts)
        way = writer.writes(partner, value) if value is not None else None
        if partner == _MICRO and not may_grow(trials, judged, {**option.facts, partner: value}):
            continue
        if way is not None and writer.patch(way.keys) is not None:
            option.facts[partner] = value
            option.written += way.keys
            break
    option.risk = worse(option.risk, "optimization")
    option.effects.append(_why_not_kept(judged, option, ratio))
    return True


def _why_not_kept(judged: Judged, option: Option, ratio: tuple[object, object]) -> str:
    """Say why a batch does not stay as it is: no whole numbers keep it, or nobody knows whether they fit."""
    if not is_number(judged.values[_STEPS]):
        return _SHRINKS
    need, open_to = bounds_of(judged.values["need.likely"]), judged.values["task"] not in _IN_GROUPS
    unknown = need is None or need[1] == INF or judged.values["model.named"] is True
    untried = open_to and unknown and not {_MICRO, _STEPS} & set(option.facts)
    return _UNTRIED if untried and any(_larger(judged, ratio)) else _NOT_KEPT


def _grows(
    trials: Trials, judged: Judged, writer: Writer, knob: t.Knob, option: Option, ratio: tuple[object, object]
) -> bool:
    """Keep the batch by a larger micro-batch, if that fits."""
    if _MICRO in option.facts or not regroups(option.facts) or judged.values["task"] in _IN_GROUPS:
        return False
    for new in _larger(judged, ratio):
        ways = [writer.writes(name, value) for name, value in new.items()]
        keys = [key for way in ways if way is not None for key in way.keys]
        if None in ways or writer.patch(keys) is None:
            continue
        facts = {**option.facts, **new, **exchanged_for(judged, _MICRO, new[_MICRO])}
        kept = is_same(knob.keeping or "", judged.values, trials.values(judged, facts))
        if kept and may_grow(trials, judged, facts) and is_even(trials, judged, facts):
            option.facts = facts
            option.written += keys
            for name, way in zip(new, ways, strict=True):
                paths = {written.path for written in way.keys} if way is not None else set()
                option.exchanged[name] = judged.values[name], paths
            option.effects.append("each GPU takes more at a time, which keeps the effective batch")
            return True
    return False


def _larger(judged: Judged, ratio: tuple[object, object]) -> Iterator[dict[str, int]]:
    """Yield what each GPU takes at a time, and in how many steps where these change: the smallest first."""
    old, steps = judged.values[_MICRO], judged.values[_STEPS]
    whole = in_proportion(*ratio, old * steps if is_number(old) and is_number(steps) else old)
    if not isinstance(whole, int) or not is_number(old) or whole <= old:
        return
    if not is_number(steps):
        yield {_MICRO: whole}
        return
    for new in range(int(old) + 1, min(whole, _MOST * int(old)) + 1):
        if whole == new * steps:
            yield {_MICRO: new}
        elif whole % new == 0 and not judged.subject.view.has(PASSES_APART):
            yield {_MICRO: new, _STEPS: whole // new}
