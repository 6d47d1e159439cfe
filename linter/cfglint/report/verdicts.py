"""The verdict on each job and target in words, rounded for people: the first lines of a report."""

from __future__ import annotations

from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.findings import Job, Memory, MemoryCase, Span

_INF = float("inf")
_WORDS = {"fits": "fits", "tight": "tight", "oom": "out of memory", "unknown": "not judged"}
ORDER = ("oom", "tight", "unknown", "fits")  # the most harmful first
_WIDE = 2  # a range by more than this factor says nothing


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


def about(job: Job) -> str:
    """Return ``a.yaml · trl · Qwen/Qwen2.5-7B``."""
    return " \u00b7 ".join(shown(part) for part in (job.path, job.framework, job.model) if part)


def verdict(memory: Memory) -> str:
    """Return ``OUT OF MEMORY with every launcher: 108-165 GiB needed, 23.5 there``, or what to type."""
    if memory.verdict == "unknown":
        return f"memory not judged{_why(memory)}"
    word = {"oom": "OUT OF MEMORY", "tight": "tight"}.get(memory.verdict, "fits")
    cases = memory.cases
    if len({case.verdict for case in cases}) > 1:
        names = " and ".join(_name(name) for name in cases[0].given)
        asked = f". {_sentence(memory.ask)}" if memory.ask else ""
        return f"depends on the {names}: {_by_case(cases)}, of {capacity(memory)}{asked}"
    every = f" with every {' and '.join(_name(name) for name in cases[0].given)}" if cases else ""
    more = f"; {memory.ask}" if memory.ask and memory.gpus is None else ""
    return f"{word}{every}: {_numbers(memory)}{_counted(memory)}{more}"


def _numbers(memory: Memory) -> str:
    need, bound, whole = memory.need_gib, memory.bound_gib, memory.capacity_gib
    if memory.verdict == "tight" and whole is not None and bound.high <= whole:
        return "the inference engine may not start"
    if memory.verdict == "oom":
        if whole is not None and bound.high <= whole:
            return "the inference engine cannot start"
        return f"{span(need)} GiB needed per GPU, {capacity(memory, '')} there"
    worst = whole is not None and memory.verdict == "tight" and need.high <= whole < bound.high
    more = f" (at worst {rounded(bound.high)})" if worst else ""
    return f"{span(need)}{more} of {capacity(memory)}"


def capacity(memory: Memory, unit: str = " GiB") -> str:
    """Return what the target's GPU has: ``44.4 GiB``."""
    return "?" if memory.capacity_gib is None else f"{memory.capacity_gib:.1f}{unit}"


def _counted(memory: Memory) -> str:
    if memory.gpus is None:
        return ""
    return f" (on {memory.gpus} GPU{'s' * (memory.gpus != 1)}; {memory.ask})"


def _why(memory: Memory) -> str:
    need = memory.need_gib
    told = need.high < _INF and need.high <= _WIDE * need.low
    about = f"; about {span(need)} of {capacity(memory)}" if told else ""
    return f": {memory.ask}{about}" if memory.ask else about.replace(";", ":", 1)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name(name: str) -> str:
    return shown(name.rpartition(".")[2].replace("_", " "))


def _by_case(cases: Sequence[MemoryCase]) -> str:
    """Return ``fits with zero3 (13-18), out of memory with multi_gpu (98-110)``, as the cases come."""
    groups: dict[str, list[str]] = {}
    for case in cases:
        values = " ".join(shown(value) for value in case.given.values())
        need = f" ({span(case.need_gib)})" if case.need_gib.high < _INF else ""
        groups.setdefault(case.verdict, []).append(values + need)
    return ", ".join(f"{_WORDS[word]} with {' or '.join(each)}" for word, each in groups.items())


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


def block(jobs: Sequence[Job]) -> list[str]:
    """Return the lines on one job: what it is, and the verdict for each target."""
    first = jobs[0]
    if len(jobs) == 1:
        target = f" \u00b7 {shown(first.memory.target)}" if first.memory.target else ""
        return [f"{about(first)}{target}", f"  {verdict(first.memory)}"]
    width = max(len(shown(job.memory.target)) for job in jobs)
    return [about(first), *(f"  {shown(j.memory.target):<{width}}  {verdict(j.memory)}" for j in jobs)]
