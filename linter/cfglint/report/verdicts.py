"""The verdict on each job and target in words, rounded for people: the first lines of a report."""

from __future__ import annotations

from cfglint.findings import called, lean
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.findings import Job, Memory, MemoryCase, Span

_INF = float("inf")
_WORDS = {"fits": "fits", "tight": "tight", "oom": "out of memory", "unknown": "not judged"}
_LEANS = {"fits": "probably fits", "oom": "probably out of memory"}
ORDER = ("oom", "tight", "unknown", "fits")  # the most harmful first
_WIDE = 2  # a range by more than this factor says nothing
_VAST = 4  # by more than this one, its upper end says nothing
_CASES = 3  # told one by one, without --verbose


def rounded(gib: float) -> str:
    """Return ``7.3`` or ``108``; ``?`` where nothing bounds it."""
    return "?" if gib == _INF else f"{gib:.1f}" if gib < 9.95 else f"{gib:.0f}"


def span(gib: Span) -> str:
    """Return ``108-165``, or one number where both ends round to it."""
    low, high = rounded(gib.low), rounded(gib.high)
    return high if low == high else f"{low}\u2013{high}"


def most(gib: Span) -> str:
    """Return ``28-40 GiB``, or ``up to 193 GiB`` where the range is too wide to say more."""
    if gib.high == _INF:
        return "not known"
    return f"up to {rounded(gib.high)} GiB" if gib.high > _WIDE * gib.low else f"{span(gib)} GiB"


def said(memory: Memory) -> str:
    """Return a verdict for a table: ``fits``, ``tight``, ``tight, probably oom``, ``oom``, ``not judged``."""
    if memory.verdict == "unknown":
        return _WORDS["unknown"]
    leans = lean(memory.verdict, memory.need_gib, memory.bound_gib, memory.capacity_gib)
    return f"{memory.verdict}, probably {leans}" if leans else memory.verdict


def about(job: Job) -> str:
    """Return ``a.yaml · trl · Qwen/Qwen2.5-7B``."""
    return " \u00b7 ".join(shown(part) for part in (job.path, job.framework, job.model) if part)


def verdict(memory: Memory) -> str:
    """Return ``OUT OF MEMORY: 108-165 GiB needed per GPU, 23.5 there``, or what to type."""
    if memory.verdict == "unknown":
        return f"memory not judged{_why(memory)}"
    ask = f". {_sentence(memory.ask)}" if memory.ask else ""
    if differ(memory):
        return f"{by_case(memory)}, of {capacity(memory)}{ask}"
    word = "OUT OF MEMORY" if memory.verdict == "oom" else _word(memory, memory.verdict, ", {}")
    more = f"; {memory.ask}" if memory.ask and memory.gpus is None else ""
    counted = (
        f" ({'; '.join(filter(None, (_counted(memory), memory.ask)))})" if memory.gpus is not None else ""
    )
    return f"{word}{_each(memory)}: {_numbers(memory)}{counted}{more}"


def note(memory: Memory) -> str:
    """Return what holds of a verdict and a need beside them: the cases, or the number of GPUs; or nothing."""
    if memory.verdict == "unknown":
        return ""
    cases = by_case(memory) if differ(memory) else _each(memory).strip()
    return "; ".join(filter(None, (cases, _counted(memory) if memory.gpus is not None else "")))


def differ(memory: Memory) -> bool:
    """Whether a job fits, or probably fits, in some of its cases only."""
    return len({_word(memory, case.verdict, "{}", case) for case in memory.cases}) > 1


def told(memory: Memory, *, verbose: bool = False) -> list[str]:
    """Return a verdict, and a line for each case where they differ; few if not verbose."""
    if memory.verdict == "unknown" or not memory.cases or not (verbose or differ(memory)):
        return [verdict(memory)]
    head = verdict(memory)
    if differ(memory):
        head = f"depends on the {_names(memory)}{f'. {_sentence(memory.ask)}' if memory.ask else ''}"
    cases = memory.cases if verbose or len(memory.cases) == _CASES + 1 else memory.cases[:_CASES]
    width = max(len(case_of(case)) for case in cases)
    lines = [_case(memory, case, width) for case in cases]
    rest = memory.cases[len(cases) :]
    return [head, *lines, *([f"and {len(rest)} more, {_worst(rest)}: -v shows them"] if rest else ())]


def _worst(cases: Sequence[MemoryCase]) -> str:
    """Return ``all of which fit``, or of the most harmful verdict ``2 of them out of memory``."""
    worst = min((case.verdict for case in cases), key=ORDER.index)
    number = sum(case.verdict == worst for case in cases)
    if worst == "fits":
        return "all of which fit" if number > 1 else "which fits"
    return f"{'all' if number == len(cases) else number} of them {_WORDS[worst]}"


def _case(memory: Memory, case: MemoryCase, width: int) -> str:
    need = f": {span(case.need_gib)} of {capacity(memory)}" if case.need_gib.high < _INF else ""
    return f"{case_of(case):<{width}}  {_word(memory, case.verdict, ', {}', case)}{need}"


def _each(memory: Memory) -> str:
    """Return `` with each launcher (zero3, zero2)`` where all cases come to one verdict."""
    told = []
    for name in memory.cases[0].given if memory.cases else ():
        values = dict.fromkeys(shown(case.given[name]) for case in memory.cases if name in case.given)
        told.append(f"{shown(called(name))} ({', '.join(values)})")
    return f" with each {' and '.join(told)}" if told else ""


def _names(memory: Memory) -> str:
    *names, last = [shown(called(name)) for name in (memory.cases[0].given if memory.cases else ())] or [""]
    return f"{', '.join(names)} and {last}" if names else last


def case_of(case: MemoryCase) -> str:
    """Return what a case is told by: ``zero3``."""
    return " ".join(shown(value) for value in case.given.values())


def _word(memory: Memory, verdict: str, form: str, case: MemoryCase | None = None) -> str:
    """Return a verdict in words, with what it leans to in the ``form`` of an addition."""
    of = memory if case is None else case
    leans = lean(verdict, of.need_gib, of.bound_gib, memory.capacity_gib)
    return _WORDS[verdict] + (form.format(_LEANS[leans]) if leans else "")


def _numbers(memory: Memory) -> str:
    need, bound, whole = memory.need_gib, memory.bound_gib, memory.capacity_gib
    if memory.verdict == "tight" and whole is not None and bound.high <= whole and not memory.ask:
        return f"{span(need)} of {capacity(memory)}, but the inference engine may not start"
    if memory.verdict == "oom":
        if whole is not None and bound.high <= whole:
            return f"the inference engine cannot start with {span(need)} of {capacity(memory)}"
        least = need.high > _VAST * need.low
        if least and whole is not None and bound.low <= whole:
            return f"the inference engine cannot start on {capacity(memory)}"
        needed = f"at least {rounded(need.low)}" if least else span(need)
        return f"{needed} GiB needed per GPU, {capacity(memory, '')} there"
    worst = whole is not None and memory.verdict == "tight" and need.high <= whole < bound.high
    more = f" (at worst {rounded(bound.high)})" if worst else ""
    return f"{span(need)}{more} of {capacity(memory)}"


def capacity(memory: Memory, unit: str = " GiB") -> str:
    """Return what the target's GPU has: ``44.4 GiB``."""
    return "?" if memory.capacity_gib is None else f"{memory.capacity_gib:.1f}{unit}"


def _counted(memory: Memory) -> str:
    return f"on {memory.gpus} GPU{'s' * (memory.gpus != 1)}"


def _why(memory: Memory) -> str:
    need = memory.need_gib
    bounded = need.high < _INF and need.high <= _WIDE * need.low
    about = f"; about {span(need)} of {capacity(memory)}" if bounded else ""
    return f": {memory.ask}{about}" if memory.ask else about.replace(";", ":", 1)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def by_case(memory: Memory) -> str:
    """Return ``depends on the launcher: fits with zero3 (13-18), out of memory with multi_gpu (98-110)``."""
    groups: dict[str, list[str]] = {}
    most = len(memory.cases) if len(memory.cases) == _CASES + 1 else _CASES
    for case in memory.cases[:most]:
        need = f" ({span(case.need_gib)})" if case.need_gib.high < _INF else ""
        word = _word(memory, case.verdict, " ({})", case)
        groups.setdefault(word, []).append(case_of(case) + need)
    listed = ", ".join(f"{word} with {' or '.join(each)}" for word, each in groups.items())
    more = f", and {len(memory.cases) - most} more cases" if memory.cases[most:] else ""
    return f"depends on the {_names(memory)}: {listed}{more}"


def tally(jobs: Iterable[Job]) -> str:
    """Return ``2 jobs: 1 out of memory, 1 fits``; a job counts by its worst target."""
    worst: dict[tuple[str, int], str] = {}
    for job in jobs:
        key = job.path, job.start
        worst[key] = min(worst.get(key, "fits"), job.memory.verdict, key=ORDER.index)
    parts = [(word, sum(each == word for each in worst.values())) for word in ORDER]
    listed = ", ".join(f"{n} {'fit' if word == 'fits' and n > 1 else _WORDS[word]}" for word, n in parts if n)
    return f"{len(worst)} job{'s' * (len(worst) != 1)}: {listed}"


def grouped(jobs: Iterable[Job]) -> list[list[Job]]:
    """Return the jobs, each with all its targets, in the order of files and lines."""
    groups: dict[tuple[str, int], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.path, job.start), []).append(job)
    return [groups[key] for key in sorted(groups)]


def block(jobs: Sequence[Job], *, verbose: bool = False) -> list[str]:
    """Return the lines on one job: what it is, and the verdict for each target."""
    first = jobs[0]
    if len(jobs) == 1:
        target = f" \u00b7 {shown(first.memory.target)}" if first.memory.target else ""
        head, *cases = told(first.memory, verbose=verbose)
        return [f"{about(first)}{target}", f"  {head}", *(f"    {line}" for line in cases)]
    width = max(len(shown(job.memory.target)) for job in jobs)
    return [about(first), *(f"  {shown(j.memory.target):<{width}}  {verdict(j.memory)}" for j in jobs)]
