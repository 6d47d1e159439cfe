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
    nearest_even,
    partners_of,
)
from cfglint.repair.price import lays_out, regroups
from cfglint.repair.results import is_same
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.engine.subject import Judged
    from cfglint.lang import tree as t
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Writer

_STEPS, _MICRO = "grad_accum", "micro_batch_size"
_IN_GROUPS = ("grpo", "ppo")  # tasks in which a micro-batch also says how answers are grouped
_NOT_KEPT = "the effective batch cannot stay as it is on so many GPUs"
_SHRINKS = "the batch shrinks, unless the program accumulates more"
_MOST = 16  # times the micro-batch before
_ROOMY = 0.25  # of a GPU, which weights and gradients may take where no more is known
_LEAST_BYTES = 4  # of both, for a weight, shared out among all GPUs
_LARGER = 4  # times the micro-batch before, where nobody knows the memory


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
        if way is not None and writer.patch(way.keys) is not None:
            option.facts[partner] = value
            option.written += way.keys
            break
    option.risk = worse(option.risk, "optimization")
    option.effects.append(_NOT_KEPT if is_number(judged.values[_STEPS]) else _SHRINKS)
    return True


def _grows(
    trials: Trials, judged: Judged, writer: Writer, knob: t.Knob, option: Option, ratio: tuple[object, object]
) -> bool:
    """Keep the batch by a larger micro-batch, if that may fit."""
    if _MICRO in option.facts or not regroups(option.facts) or judged.values["task"] in _IN_GROUPS:
        return False
    for new in _larger(judged, ratio):
        ways = [writer.writes(name, value) for name, value in new.items()]
        keys = [key for way in ways if way is not None for key in way.keys]
        if None in ways or writer.patch(keys) is None:
            continue
        facts = {**option.facts, **new, **exchanged_for(judged, _MICRO, new[_MICRO])}
        kept = is_same(knob.keeping or "", judged.values, trials.values(judged, facts))
        if kept and _may_grow(trials, judged, facts) and is_even(trials, judged, facts):
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
    if not isinstance(whole, int) or not is_number(old):
        return
    if not is_number(steps):
        yield {_MICRO: whole}
        return
    for new in range(int(old) + 1, min(whole, _MOST * int(old)) + 1):
        if whole == new * steps:
            yield {_MICRO: new}
        elif whole % new == 0 and not judged.subject.view.has(PASSES_APART):
            yield {_MICRO: new, _STEPS: whole // new}


def _may_grow(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether each GPU may take a larger micro-batch: it fits, or nobody knows and it is not much larger."""
    after, old, new = trials.values(judged, facts), judged.values[_MICRO], facts[_MICRO]
    need, vram = bounds_of(after["need.likely"]), bounds_of(after["gpu.vram"])
    if not (is_number(new) and is_number(old) and new > old):
        return False
    if need is None or vram is None or need[1] == INF:
        size, gpus = bounds_of(after["model.params"]), after["gpu.count"]
        kept = _LEAST_BYTES * size[0] / gpus if size and is_number(gpus) and gpus else 0
        return new <= _LARGER * old and (vram is None or kept <= _ROOMY * vram[0])
    return need[1] <= vram[0]
