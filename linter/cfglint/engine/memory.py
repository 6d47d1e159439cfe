"""How much memory a job takes on a target, and the verdict: whether that fits.

The numbers come from the rules: ``need.total`` holds the one-sided 99 % bounds, which the verdict rests on,
``need.likely`` the 90 % interval, which people are shown. A rule on memory that is broken, such as an engine
that cannot start, makes the verdict ``oom`` as well.
"""

from __future__ import annotations

from cfglint.engine.asks import asked, count_question, more_gpus
from cfglint.engine.cases import TOTAL, cases_of, may_not_hold
from cfglint.engine.judge import decides
from cfglint.engine.together import asked_together
from cfglint.findings import Memory, MemoryCase, Span, lean, question
from cfglint.lang.types import is_number, show_number
from cfglint.lang.values import INF, NOTHING, Interval, needs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.subject import Case
    from cfglint.facts import Values
    from cfglint.hardware.target import Target
    from cfglint.lang.pack import CompiledRule, Pack

GIB = 2**30
LIKELY = "need.likely"
LACKING, HERE = "gpus.lacking", "gpus.here"  # whether the job is on more GPUs of a machine than there are
VERDICTS = ("fits", "tight", "oom", "unknown")
_ANYTHING = Span(0, INF)
_NO_START = "the inference engine may not start"
_NEITHER = "it neither trains nor generates, and only that is modelled"
_ASSUMED = ("lengths.assumed", "prompts.assumed")


def bounds_of(value: object) -> tuple[float, float] | None:
    """Return the bounds of a number or a range; None for what is neither."""
    if isinstance(value, Interval):
        return value.lo, value.hi
    return (value, value) if is_number(value) else None


def span_of(value: object) -> Span:
    """Return a memory in bytes as a Span in GiB; an unknown one is anything from 0."""
    bounds = bounds_of(value)
    return _ANYTHING if bounds is None else Span(*(max(bound, 0) / GIB for bound in bounds))


def verdict_of(bound: Span, capacity: Span) -> str:
    """Return ``fits`` (the upper bound is within the capacity), ``oom`` (the lower is not) or ``tight``."""
    if bound.high <= capacity.low:
        return "fits"
    return "oom" if bound.low > capacity.high else "tight"


def memory_of(
    values: Values,
    target: Target,
    *,
    narrow: str = "told",
    questions: dict[frozenset[str], str | None] | None = None,
    asks: bool = True,
) -> tuple[Memory, frozenset[str]]:
    """Return the memory in all cases together, and the facts that would settle what is not judged.

    Not judged are a job on more GPUs than the target has, one that leaves open what no list of cases covers,
    and a model that is known by its name alone. What would narrow a tight one is ``told``, ``brief``, or not.
    ``questions`` keeps what to type, by what is missing: a question is as good on the next target. Without
    ``asks`` none is put together, which takes longer than the verdict.
    """
    if values["trains"] is False and values["generates"] is False:
        return Memory(target.name, _capacity(values), _ANYTHING, _ANYTHING, "unknown", ask=_NEITHER), NOTHING
    found = cases_of(values)
    first, told = found[0], [_case(case) for case in found]
    needs = needs_of(values["gpu.vram"]).union(*(needs_of(case.values[TOTAL]) for case in found))
    if values["trains"] is False:
        needs = needs.union(*(needs_of(rule.test(values)) for rule in _deciding(values)))
    top = _capacity(values)
    verdict = _together([case.verdict for case in told])
    if verdict == "oom" and first.defaults:
        verdict = "tight"  # the package here may have other defaults, or flags be given
    ask = None
    here = values[HERE]
    if values[LACKING] is True and is_number(here) and verdict != "oom":
        verdict, needs = "unknown", frozenset(("gpu.count",))
        ask = more_gpus(target, here, values)
    elif first.values["model.named"] is True:
        verdict, ask = "unknown", question("model_path")
        needs |= {"model_path"}
    elif not asks:
        pass
    elif verdict == "unknown":
        questions = {} if questions is None else questions
        if needs not in questions:
            questions[needs] = asked_together(values, needs)
        ask = questions[needs]
    else:
        ask = _narrower(values, first, told, verdict, narrow)
    if verdict in ("fits", "tight"):
        ask = "; ".join(filter(None, (ask, *_assumed(first, values)))) or None
    memory = Memory(
        target.name,
        top,
        _hull(case.need_gib for case in told),
        _hull(case.bound_gib for case in told),
        verdict,
        tuple(told) if len(told) > 1 else (),
        first.gpus,
        ask,
    )
    return memory, needs if verdict == "unknown" else NOTHING


def _narrower(
    values: Values, first: Case, told: Sequence[MemoryCase], verdict: str, narrow: str
) -> str | None:
    """Return what would narrow a verdict, or tell the cases apart that come to another one."""
    top = _capacity(values)
    if len({(case.verdict, lean(case.verdict, case.need_gib, case.bound_gib, top)) for case in told}) > 1:
        return asked(values, first.chosen)
    if verdict == "tight" and narrow:
        narrower = _narrowing(first.values, narrow)
        if narrower is not None:
            return narrower
    return count_question(values) if first.gpus is not None and "gpu.count" not in values.given else None


def _assumed(first: Case, values: Values) -> list[str]:
    """Return what a verdict takes for granted."""
    assumed = [values.pack.asks[name] for name in _ASSUMED if first.values[name] is True]
    whose = first.defaults or (values["framework.name"] if is_vouched(values) else None)
    return [*assumed, f"with the defaults of {whose}"] if whose else assumed


def _capacity(values: Values) -> float | None:
    capacity = span_of(values["gpu.vram"])
    return capacity.low if capacity.high < INF else None


def is_vouched(values: Values) -> bool:
    """Whether a program has a framework's defaults because somebody says so."""
    document = values.view.document if values.view is not None else None
    return document is not None and document.vouched and document.foreign


def _narrowing(values: Values, narrow: str) -> str | None:
    if span_of(values[TOTAL]).high <= span_of(values["gpu.vram"]).low:
        return _NO_START if narrow == "brief" else _doubt(values)
    from cfglint.engine.narrow import narrowing  # most jobs are not tight

    return narrowing(values, brief=narrow == "brief")


def _doubt(values: Values) -> str | None:
    """Return what the rule says by which a job is tight though its need fits: the engine may not start."""
    from cfglint.engine.describe import Evaluator, Origins
    from cfglint.engine.message import message

    doubtful = next((rule for rule in _deciding(values) if may_not_hold(rule.test(values))), None)
    if doubtful is None:
        return None
    symbols, framework = values.pack.symbols(), values["framework.name"]
    origins = Origins(symbols, values, {}, framework if isinstance(framework, str) else None)
    return message(symbols.rules[doubtful.code], Evaluator(symbols), origins) or None


def _case(case: Case) -> MemoryCase:
    """Return what one case of a job comes to."""
    values = case.values
    bound = span_of(values[TOTAL])
    verdict = verdict_of(bound, span_of(values["gpu.vram"]))
    broken = [rule.test(values) for rule in _deciding(values)]
    if any(truth is False for truth in broken):
        verdict = "oom"
    elif verdict == "tight" and (needs_of(values[TOTAL]) or needs_of(values["gpu.vram"])):
        verdict = "unknown"
    elif verdict == "fits" and any(may_not_hold(truth) for truth in broken):
        verdict = "tight"
    elif verdict == "fits" and values["trains"] is False and any(map(needs_of, broken)):
        verdict = "unknown"  # whether the server starts
    given = {name: shown_fact(values.pack, name, value) for name, value in case.chosen.items()}
    return MemoryCase(given, verdict, span_of(values[LIKELY]), bound)


def _deciding(values: Values) -> list[CompiledRule]:
    """Return the rules on memory that apply to a job."""
    scope, pack = (values.get("framework.name"), values.version), values.pack
    pack.deciding = pack.deciding or [rule for rule in pack.rules if decides(rule)]
    return [rule for rule in pack.deciding if rule.covers(*scope)]  # type: ignore[arg-type]


def shown_fact(pack: Pack, name: str, value: object) -> str:
    """Return a fact's value as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return show_number(value, pack.measures[name][0]) if is_number(value) else str(value)


def case_text(pack: Pack, case: Case | None) -> tuple[str, ...]:
    """Return in words what is assumed in a case of a job; empty where that is nothing."""
    if case is None:
        return ()
    said = [f"{name} {shown_fact(pack, name, value)}" for name, value in case.chosen.items()]
    said += [f"the defaults of {case.defaults}"] * bool(case.defaults)
    return (", ".join(said),) if said else ()


def _together(verdicts: Sequence[str]) -> str:
    """Return the verdict on cases of which nobody says which it is."""
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "unknown" if "unknown" in verdicts else "tight"


def _hull(spans: Iterable[Span]) -> Span:
    every = list(spans)
    return Span(min(span.low for span in every), max(span.high for span in every))
