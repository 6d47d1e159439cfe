"""How much memory a job takes on a target, and the verdict: whether that fits.

The numbers come from the rules: ``need.total`` holds the one-sided 99 % bounds, which the verdict rests on,
``need.likely`` the 90 % interval, which people are shown. A rule on memory that is broken, such as an engine
that cannot start, makes the verdict ``oom`` as well.
"""

from __future__ import annotations

from cfglint.document.tree import dotted
from cfglint.engine.cases import cases_of
from cfglint.engine.judge import decides
from cfglint.findings import Memory, MemoryCase, Span, question
from cfglint.lang.types import digits, is_number, show_number
from cfglint.lang.values import INF, NOTHING, UNRULED, Interval, needs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.cases import Case
    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

GIB = 2**30
TOTAL, LIKELY = "need.total", "need.likely"
LACKING, HERE = "gpus.lacking", "gpus.here"  # whether the job is on more GPUs of a machine than there are
VERDICTS = ("fits", "tight", "oom", "unknown")
_TOKENS = "micro.tokens"
_ASSUMED = "lengths.assumed"
_WIDE = 1.5
_MODEL = ("model_path", "model_config")
_FIRST = ("model_path", "model_config", "task")  # what most else follows from


def bounds_of(value: object) -> tuple[float, float] | None:
    """Return the bounds of a number or a range; None for what is neither."""
    if isinstance(value, Interval):
        return value.lo, value.hi
    return (value, value) if is_number(value) else None


def span_of(value: object) -> Span:
    """Return a memory in bytes as a Span in GiB; an unknown one is anything from 0."""
    bounds = bounds_of(value)
    return Span(0, INF) if bounds is None else Span(*(max(bound, 0) / GIB for bound in bounds))


def verdict_of(bound: Span, capacity: Span) -> str:
    """Return ``fits`` (the upper bound is within the capacity), ``oom`` (the lower is not) or ``tight``."""
    if bound.high <= capacity.low:
        return "fits"
    return "oom" if bound.low > capacity.high else "tight"


def memory_of(judged: Judged, target: str) -> Memory:
    """Return what a judged document needs on its target."""
    return in_all(judged.values, target, cases_of(judged, TOTAL))[0]


def in_all(values: Values, target: str, found: list[Case]) -> tuple[Memory, frozenset[str]]:
    """Return the memory in all cases together, and the facts that would settle what is not judged.

    Not judged are a job on more GPUs than the target has, one that leaves open what no list of cases covers,
    and a model that is known by its name alone.
    """
    told = [_case(each) for each in found]
    needs = needs_of(values["gpu.vram"]).union(*(needs_of(case.values[TOTAL]) for case in found))
    capacity = span_of(values["gpu.vram"])
    verdict = _together([case.verdict for case in told])
    if verdict == "oom" and found[0].released:
        verdict = "tight"  # the package here may have other defaults
    ask = None
    here = values[HERE]
    if values[LACKING] is True and is_number(here) and verdict != "oom":
        verdict, needs = "unknown", frozenset(("gpu.count",))
        ask = f"add :{digits(here)} to --gpu"
    elif found[0].values["model.named"] is True:
        verdict, ask = "unknown", question("model_path")
        needs |= {"model_path"}
    elif verdict == "unknown":
        ask = asked(values, needs)
    elif len({case.verdict for case in told}) > 1:
        ask = asked(values, found[0].chosen)
    elif verdict == "tight" and _is_wide(found[0].values[_TOKENS]) and found[0].values[_ASSUMED] is not True:
        ask = values.pack.asks.get(_TOKENS)
    elif found[0].gpus is not None:
        ask = question("gpu.count")
    if verdict in ("fits", "tight"):
        assumed = [values.pack.asks[_ASSUMED]] if found[0].values[_ASSUMED] is True else []
        released = [f"with the defaults of {values['framework.name']}'s release"] if found[0].released else []
        ask = "; ".join(filter(None, (ask, *assumed, *released))) or None
    memory = Memory(
        target,
        capacity.low if capacity.high < INF else None,
        _hull(case.need_gib for case in told),
        _hull(case.bound_gib for case in told),
        verdict,
        tuple(told) if len(told) > 1 else (),
        found[0].gpus,
        ask,
    )
    return memory, needs if verdict == "unknown" else NOTHING


def _is_wide(value: object) -> bool:
    """Whether a number is a range of which nobody can say where in it a run will be."""
    bounds = bounds_of(value)
    return bounds is not None and bounds[1] > _WIDE * bounds[0]


def _case(case: Case) -> MemoryCase:
    """Return what one case of a job comes to."""
    values = case.values
    bound = span_of(values[TOTAL])
    verdict = verdict_of(bound, span_of(values["gpu.vram"]))
    scope = values.get("framework.name"), values.version
    rules = [rule for rule in values.pack.rules if decides(rule) and rule.covers(*scope)]  # type: ignore[arg-type]
    broken = [rule.test(values) for rule in rules]
    if any(truth is False for truth in broken):
        verdict = "oom"
    elif verdict == "tight" and (needs_of(values[TOTAL]) or needs_of(values["gpu.vram"])):
        verdict = "unknown"
    elif verdict == "fits" and any(_may_not_hold(truth) for truth in broken):
        verdict = "tight"
    given = {name: shown_fact(values.pack, name, value) for name, value in case.chosen.items()}
    return MemoryCase(given, verdict, span_of(values[LIKELY]), bound)


def _may_not_hold(truth: object) -> bool:
    return truth is not True and truth is not None and not needs_of(truth)


def shown_fact(pack: Pack, name: str, value: object) -> str:
    """Return a fact's value as text."""
    return show_number(value, pack.measures[name][0]) if is_number(value) else str(value)


def _together(verdicts: Sequence[str]) -> str:
    """Return the verdict on cases of which nobody says which it is."""
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "unknown" if "unknown" in verdicts else "tight"


def _hull(spans: Iterable[Span]) -> Span:
    every = list(spans)
    return Span(min(span.low for span in every), max(span.high for span in every))


def asked(values: Values, names: Iterable[str]) -> str | None:
    """Return the one thing to type that settles most of what is missing; None where nothing can be typed."""
    for name in sorted(names, key=lambda name: (" " not in name, name not in _FIRST, name)):
        if " " in name:  # the rules have no case for a value
            return f"cfglint does not model {name.removeprefix(UNRULED)}"
        told = question(name)
        if name in _MODEL and "model_path" not in values.bindings and not values.named:
            return "the file that starts the job says which model it is"
        if told == name:
            key = key_of(name, values)
            told = values.pack.asks.get(name) or (f"add --set {key}=VALUE" if key else "")
        if told:
            return told
    return next((f"nothing says {name}" for name in sorted(names)), None)


def key_of(name: str, values: Values) -> str:
    """Return the key that a missing fact is read from; empty where there is none."""
    if name.startswith("$."):
        return name[2:]
    paths = (path for alternative in values.possible(name) for path in alternative[4])
    key = next((path for path in paths if path[0] != "launch"), None)
    return dotted(key) if key is not None else ""
