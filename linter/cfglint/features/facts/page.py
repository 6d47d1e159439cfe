"""The page of what was read: what a job says, what its framework adds, what is not known; and its JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cfglint.lang.types import is_number
from cfglint.report.blocks import Blank, Line, Paragraph, many
from cfglint.report.encode import encode
from cfglint.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cfglint.features.facts.compute import Fact, Job, Unread
    from cfglint.report.blocks import Block, Piece

_NAME, _VALUE = 26, 26  # cells of the columns, at most
_HEAD = "  {:<9} "
_FIGURES = (
    ("model.layers", "{} layers"),
    ("model.hidden", "hidden {}"),
    ("model.experts", "{} experts"),
)


def as_data(jobs: Sequence[Job], unread: Sequence[Unread]) -> dict[str, Any]:
    """Return what `--format json` prints."""
    return {
        "version": 1,
        "jobs": encode(jobs, omit=("text", "certain"), places=None),
        "unread": encode(unread),
    }


def page(jobs: Sequence[Job], unread: Sequence[Unread], *, verbose: bool) -> Iterator[Block]:
    """Yield a section for each job, then the launches that were not read, and how many there are of both."""
    for job in jobs:
        yield from _job(job, verbose=verbose)
        yield Blank()
    for launch in unread:
        lead = f"{shown(launch.path)}:{launch.line}: "
        yield Paragraph(f"not read: {shown(launch.why)}", lead=lead, lead_style="bold")
    if unread:
        yield Blank()
    missed = f"; {many(len(unread), 'launch')} not read".replace("launchs", "launches") if unread else ""
    yield Paragraph(f"{many(len(jobs), 'job')} read{missed}")


def _job(job: Job, *, verbose: bool) -> Iterator[Block]:
    yield _head(job)
    if job.program is not None:
        yield Paragraph(f"{shown(job.launcher or '')} starts {shown(job.program)}".lstrip(), lead="  ")
    own = {name: fact for name, fact in job.facts.items() if _told(name, fact, verbose=verbose)}
    yield from _table(job, own)
    if not verbose:
        rest = [f"{name} {shown(fact.text)}" for name, fact in job.facts.items() if fact.kind == "default"]
        yield from _labelled("defaults", ", ".join(rest))
    yield from _unknown(job)
    yield from _labelled("ignored", shown(", ".join(job.ignored)))


def _head(job: Job) -> Line:
    head: list[Piece] = [(f"{shown(job.path)}:{job.line}: ", "bold"), (job.framework, "bold")]
    if job.sure is not None:
        head += [(", ", ""), (job.sure, "green" if job.sure == "certain" else "yellow")]
        head.append((f" ({job.because})" if job.because else "", "dim"))
    else:
        head.append((", as named", ""))
    return Line([*head, (f" [{shown(job.target)}]" if job.target else "", "magenta")])


def _told(name: str, fact: Fact, *, verbose: bool) -> bool:
    """Whether a fact has a line of its own: what the job or the target says, or follows from what it says."""
    if verbose:
        return True
    if fact.kind == "derived":
        return ":" in fact.source and fact.value not in (False, 0)
    return fact.kind == "file" or name in ("gpu.name", "gpu.count", "gpu.vram")


def _table(job: Job, facts: dict[str, Fact]) -> Iterator[Block]:
    figures = _figures(job)
    name_width = min(max(map(len, facts), default=0), _NAME)
    values = [len(shown(fact.text)) for fact in facts.values()]
    value_width = max((width for width in values if width <= _VALUE), default=0)
    for name, fact in facts.items():
        lead = f"  {name:<{name_width}}  {shown(fact.text):<{value_width}}  "
        source = shown(fact.source).replace(f"{shown(job.path)}:", "line ").removeprefix("derived ")
        if name == "model_path" and figures:
            source += f" ({figures})"
        yield Paragraph(source, "dim", lead=lead, rest=" " * (name_width + value_width + 6))


def _figures(job: Job) -> str:
    """Say how large a model is that the table knows."""
    parameters = job.facts.get("model.params")
    if parameters is None:
        return ""
    bounds = parameters.value if isinstance(parameters.value, list) else [parameters.value]
    size = "–".join(f"{bound / 1e9:.2f}" for bound in bounds if is_number(bound)) + "B parameters"
    rest = [form.format(fact.text) for name, form in _FIGURES if (fact := job.facts.get(name)) and fact.value]
    return ", ".join([size, *rest])


def _labelled(label: str, text: str) -> Iterator[Block]:
    if text:
        lead = _HEAD.format(label)
        yield Paragraph(text, lead=lead, lead_style="dim", rest=" " * len(lead))


def _unknown(job: Job) -> Iterator[Block]:
    """Yield what is not known: a line for each thing to type."""
    by_answer: dict[str, list[str]] = {}
    counts = Counter(unknown.why for unknown in job.unknown.values())
    for name, unknown in job.unknown.items():
        several = counts[unknown.why] > 1 and unknown.give.startswith("--set")
        by_answer.setdefault(unknown.why if several else unknown.give or unknown.why, []).append(name)
    for answer, names in by_answer.items():
        unknown = job.unknown[names[0]]
        if len(names) > 1 and answer == unknown.why and unknown.give:
            yield from _labelled("unknown", shown(f"{', '.join(names)}: {answer} → --set KEY=VALUE"))
            continue
        why = f": {unknown.why}" if len(names) == 1 else f": {answer}" if not unknown.give else ""
        give = f" → {unknown.give}" if unknown.give else ""
        yield from _labelled("unknown", shown(f"{', '.join(names)}{why}{give}"))
