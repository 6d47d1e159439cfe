"""The page of a diagnosis: who held what, then what fixes it; and its JSON. Memory in GiB of 2^30 bytes."""

from __future__ import annotations

from cfglint.engine.memory import GIB
from cfglint.features.diagnose import messages
from cfglint.features.diagnose.attribution import ENGINE, OTHER, TRAINER, Holder
from cfglint.features.diagnose.attribution import gib as sized
from cfglint.features.diagnose.log import WHEN
from cfglint.record import Record, replace
from cfglint.report import Style, written
from cfglint.report.blocks import (
    DASH,
    INF,
    Blank,
    Cell,
    Column,
    Diff,
    Markup,
    Paragraph,
    Table,
    item,
    kind_of,
    many,
    spread,
    title_of,
)
from cfglint.report.encode import encode, of_fix
from cfglint.report.order import Lines
from cfglint.report.verdicts import said
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from cfglint.features.diagnose.compute import Diagnosis, Failure, Judgement, Prediction, Repair
    from cfglint.features.diagnose.messages import Incident
    from cfglint.findings import Span
    from cfglint.report.blocks import Block

SYMBOLS = f"{DASH}—"
_NARROWEST = 40  # cells of a line
_REPEATS = 5  # later failures that are told
_FINDINGS = 3  # of those that no fix fixes
_LEVELS = {"error": "red", "warning": "yellow", "info": "cyan"}


def render_diagnosis(diagnosis: Diagnosis, form: str, style: Style) -> str:
    """Return ``diagnosis`` in ``form``, ending in a line break."""
    style = replace(style, width=style.width and max(style.width, _NARROWEST), loose=True)
    return written(form, style, lambda style: page(diagnosis, style), lambda: as_data(diagnosis))


def page(diagnosis: Diagnosis, style: Style) -> Iterator[Block]:
    """Yield the sentence first, then the account, then what fixes it."""
    failure, judgement = diagnosis.failures[0], diagnosis.judgement
    text = _safe if style.markdown else shown
    yield Paragraph(text(headline(failure)), "bold", rest="", md="**{}**")
    place = _where(failure.first)
    yield Paragraph(Markup(place.replace("`", "")) if style.markdown else place, "dim", rest="", md="`{}`")
    yield from (Paragraph(text(line), "dim", md="- {}", joined=True) for line in _ranks(failure))
    if failure.repeats and not style.markdown:
        yield Paragraph(f"the message came {many(failure.repeats, 'more time')}", "dim", rest="")
    if failure.holders:
        yield Blank()
        yield _table(failure, judgement, style)
    inside = _inside(failure)
    if inside:
        yield Blank()
        yield from (item(text(line), "dim") for line in inside)
    if judgement is not None:
        yield Blank()
        yield from _judgement(judgement, style)
    if failure.advice and (judgement is None or not judgement.repairs):
        yield Blank()
        yield from (_led("try:", "green", text(line), md="- {}") for line in failure.advice)
    later = [f"{_where(failure.first)}: {headline(failure)}" for failure in diagnosis.failures[1:]]
    if later:
        yield Paragraph("Again:") if style.markdown else Blank()
    for line in later if style.markdown else later[:_REPEATS]:
        yield _led("again:", "dim", text(line), md="- {}")
    if len(later) > _REPEATS and not style.markdown:
        yield Paragraph(f"and {len(later) - _REPEATS} more", rest="")


def _led(lead: str, color: str, text: str, rest: str | None = None, *, md: str = "{}") -> Paragraph:
    """Return a sentence after a coloured word; its lines are below each other, indented by ``rest``."""
    return Paragraph(text, "", f"{lead} ", color, " " * (len(lead) + 1) if rest is None else rest, md)


_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_|<[]#@"})


def _safe(text: str) -> Markup:
    """Return a text as Markdown; with fewer escapes than others need, since it is of our own words."""
    return Markup(shown(text).translate(_SPECIAL))


def _judgement(judgement: Judgement, style: Style) -> Iterator[Block]:
    text = _safe if style.markdown else shown
    yield Paragraph(text(f"{judgement.path}: {judgement.chosen}"), "dim")
    if judgement.corrections and not style.markdown:
        roles = " and ".join(correction.name.partition(".")[0] for correction in judgement.corrections)
        yield Paragraph(f"measured numbers replace the estimates of {roles}", "dim")
    for i, repair in enumerate(judgement.repairs):
        fix = repair.fix
        lead, color, word = ("or", "cyan", "Or") if i else ("fix", "green", "**Fix**")
        yield _led(
            f"{lead} ({kind_of(fix)}):",
            color,
            text(title_of(fix)),
            "  ",
            md=f"{word} ({fix.applicability}): {{}}",
        )
        yield Paragraph(text(_after(repair)), lead="  ", md="<br>{}")
    if judgement.repairs:
        diff = judgement.repairs[0].diff
        yield Blank()
        lines = diff.rstrip("\n").split("\n")
        yield Diff(lines if style.markdown else [shown(line) for line in diff.splitlines()])
    elif not style.markdown:
        yield from _unmended(judgement)


def _unmended(judgement: Judgement) -> Iterator[Block]:
    """Yield what is found, and what to make of it, where no fix fixes it."""
    for finding in judgement.findings[:_FINDINGS]:
        color = _LEVELS[finding.level]
        yield _led(f"{finding.level} {finding.code}:", color, shown(finding.message), "  ")
    if judgement.verdict != "fits":
        yield Paragraph(
            "no proven fix in the config alone; cfglint check says what prevents one",
            rest="",
        )
    elif not judgement.findings:
        numbers = "the measured numbers" if judgement.corrections else "the estimates"
        yield Paragraph(f"by {numbers} this config fits: is it the one that ran?", rest="")


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────
def _table(failure: Failure, judgement: Judgement | None, style: Style) -> Block:
    rows = _rows(failure, judgement)
    if style.markdown:
        lines = (f"| {' | '.join(map(_safe, row))} |" for row in rows)
        return Paragraph(Markup("\n".join(("| GiB | held | to be held | |", "|---|---:|---:|---|", *lines))))
    names, amounts, estimates, remarks = zip(*rows, strict=True)
    columns = [Column("GiB", names, left=True), Column("held", amounts)]
    if judgement is not None:
        columns.append(Column("to be held", estimates))
    return Table([*columns, Column("", [Cell([(r, "dim")]) for r in remarks], left=True, below=True)])


def _rows(failure: Failure, judgement: Judgement | None) -> list[tuple[str, str, str, str]]:
    """Return who, held, predicted and a remark, for each process; then what was free, and the whole."""
    rows = []
    for holder in failure.holders:
        process = f", process {holder.pid}" if holder.pid is not None and holder.role != OTHER else ""
        held = "?" if holder.held is None else _bare(holder.held)
        prediction = judgement.predictions.get(holder.role) if judgement is not None else None
        estimate = "" if prediction is None else spread(prediction.span).replace(DASH, f" {DASH} ")
        rows.append((_called(holder) + process, held, estimate, _remark(holder, prediction)))
    for name, size in (("free", failure.first.free), ("capacity", failure.first.capacity)):
        if size is not None:
            rows.append((name, _bare(size), "", ""))
    return rows


def _remark(holder: Holder, prediction: Prediction | None) -> str:
    """Say what a process needed or held beside what was predicted of it."""
    if holder.died and holder.needed is not None:
        least = f"needed {_bare(holder.needed)} or more"
        return least if prediction is None else f"{least}{_at_death(holder.needed, prediction.span)}"
    if holder.held is None:
        return "not reported by the driver"
    if prediction is None:
        return ""
    low, high = prediction.span.low * GIB, prediction.span.high * GIB
    if prediction.needs and high == INF:
        return "no estimate: needs " + ", ".join(map(shown, prediction.needs[:3]))
    if holder.held < low - GIB / 200:
        return f"{_bare(low - holder.held)} less than the estimate"
    above = holder.held > high + GIB / 200
    return f"{_bare(holder.held - high)} above the estimate" if above else "within the estimate"


def _at_death(needed: int, estimate: Span) -> str:
    """Say where the least that a process needed lies; nothing where the estimate has no bounds."""
    if estimate.high == INF:
        return ""
    if needed < estimate.low * GIB:
        return "; died before its peak"
    return f": {'within' if needed <= estimate.high * GIB else 'more than'} the estimate"


def _bare(value: float) -> str:
    """Return bytes in GiB, without the unit."""
    return f"{value / GIB:.2f}"


def _called(holder: Holder) -> str:
    """Return a process as sentences call it."""
    return f"process {holder.pid}" if holder.role == OTHER and holder.pid is not None else holder.name


# ── the sentences ───────────────────────────────────────────────────────────────────────────────────────
def headline(failure: Failure) -> str:
    """Return what happened, in one sentence."""
    words = _HEADLINES.get(failure.first.kind)
    if words is None:
        return _torch(failure)
    return words if isinstance(words, str) else words(failure.first)


def _torch(failure: Failure) -> str:
    incident = failure.first
    asked = f" while asking for {sized(incident.asked)} more" if incident.asked else ""
    when = _when(incident)
    if incident.capacity is None:
        return f"PyTorch ran out of GPU memory{asked}{when}; the message is cut off"
    size = sized(incident.capacity)
    others = [(_called(h), h.held) for h in failure.holders if not h.died and h.held]
    parts = [f"{name} held {_bare(size)}" for name, size in others[:3]]
    if len(others) > 3:
        parts.append(f"{len(others) - 3} others {_bare(sum(size for _, size in others[3:]))}")
    died = next((holder for holder in failure.holders if holder.died), None)
    if died is None:
        parts.append(f"PyTorch ran out of memory{asked}{when}")
    else:
        alone = "" if others else "alone on it, "
        amount = f" with {_bare(died.held)}" if died.held is not None else ""
        parts.append(f"{alone}{died.name} died{amount}{asked}{when}")
    gpu = f"GPU {incident.gpu} ({size})" if incident.gpu is not None else size
    return f"{gpu}: {', '.join(parts)}"


def _when(incident: Incident) -> str:
    return f", {WHEN[incident.moment]}" if incident.moment is not None else ""


def _vllm_free(incident: Incident) -> str:
    capacity, free = sized(incident.capacity or 0), sized(incident.free or 0)
    asked = f"{sized(incident.asked or 0)} ({incident.fraction:g} of {capacity})"
    return f"vLLM did not start: it wanted {asked}, and {free} were free"


def _vllm_length(incident: Incident) -> str:
    if incident.kv_needed is None or incident.kv_available is None:
        holds = f"its KV cache holds {incident.tokens_that_fit:,} tokens"
        return f"vLLM did not start: {holds}, one request may have {incident.tokens:,}"
    takes = f"one request of {incident.tokens:,} tokens takes {sized(incident.kv_needed)} of KV cache"
    return f"vLLM did not start: {takes}, and there are {sized(incident.kv_available)}"


def _sglang(incident: Incident) -> str:
    share = f"{incident.fraction:g}" if incident.fraction else "mem_fraction_static"
    return f"SGLang did not start: within {share} of the GPU, the weights leave nothing for the KV cache"


def _cuda(incident: Incident) -> str:
    return f"{incident.library} ran out of GPU memory{_when(incident)}; the message does not say what held it"


def _host(incident: Incident) -> str:
    asked = f" while asking for {sized(incident.asked)}" if incident.asked else ""
    return f"the machine's own memory ran out{asked}, not the GPU's"


_HEADLINES: dict[str, str | Callable[[Incident], str]] = {
    messages.CUDA: _cuda,
    messages.SGLANG_POOL: _sglang,
    messages.VLLM_FREE: _vllm_free,
    messages.VLLM_LENGTH: _vllm_length,
    messages.HOST: _host,
    messages.VLLM_POOL: (
        "vLLM did not start: weights and a prefill step leave nothing of its share for the KV cache"
    ),
    messages.KILLED: (
        "a process was killed from outside (signal 9), usually because the machine's own memory ran out"
    ),
}


def _where(incident: Incident) -> str:
    """Return where it is: ``train.log:231 [rank0]``."""
    source = f" [{shown(incident.source)}]" if incident.source else ""
    return f"{shown(incident.at)}{source}"


def _inside(failure: Failure) -> list[str]:
    """Return what PyTorch told of the process that died, and from what roles were read."""
    incident = failure.first
    lines = []
    if incident.allocated is not None:
        pools = f" ({sized(incident.pools)} of it in CUDA graphs' pools)" if incident.pools else ""
        cached = f", and cached {sized(incident.cached)} that it could not use" if incident.cached else ""
        lines.append(f"PyTorch had allocated {sized(incident.allocated)}{pools}{cached}")
    roles = [holder for holder in failure.holders if holder.role in (ENGINE, TRAINER)]
    lines += [f"{_called(holder)}: {shown(holder.why)}" for holder in roles if holder.why]
    if incident.where:
        lines.append(f"from the log: {shown(incident.where[:160])}")
    return lines


def _ranks(failure: Failure) -> list[str]:
    """Return one line for each further rank of the failure."""
    lines = []
    for incident in failure.incidents[1:]:
        gpu = f"GPU {incident.gpu}" if incident.gpu is not None else "a GPU"
        own = next((process.held for process in incident.processes if process.own), None)
        amount = f" with {_bare(own)}" if own is not None else ""
        asked = f" asking for {sized(incident.asked)}" if incident.asked else ""
        lines.append(f"also on {gpu}{amount}{asked}: {_where(incident)}")
    return lines


def _after(repair: Repair) -> str:
    """Return what the processes need with a fix, and whether that fits; what they hold is more."""
    parts = []
    for part in repair.parts:
        before, after = spread(part.before_gib), spread(part.after_gib)
        parts.append(f"{part.role} {before} -> {after}" if before != after else f"{part.role} {after}")
    row = repair.after
    capacity = f" of {row.capacity_gib:.2f} GiB" if row.capacity_gib is not None else ""
    return f"need: {', '.join(parts)}; together {spread(row.need_gib)}{capacity}, {said(row)}"


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────
_MEMORY = {
    "capacity", "free", "asked", "allocated", "cached", "pools", "kv_needed", "kv_available", "held",
    "needed",
}  # fmt: skip
# A fix as the report of check tells it; what it does to the memory is in `parts`.
_OF_FIX = ("id", "applicability", "certainty", "title", "effect", "edits")


def as_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as ``schemas/diagnosis.schema.json`` describes it."""
    judgement = diagnosis.judgement
    predictions = judgement.predictions if judgement is not None else {}
    failures = [
        _failure_data(failure, predictions if i == 0 else {}) for i, failure in enumerate(diagnosis.failures)
    ]
    config = _judgement_data(judgement) if judgement is not None else None
    return {"version": 1, "failures": failures, "config": config}


def _account(record: Record) -> dict[str, Any]:
    """Return what a log told: memory in GiB, null for what it did not say."""
    data: dict[str, Any] = {}
    for name, value in encode(record, omit=("processes", "library"), places=None).items():
        if name in _MEMORY:
            data[f"{name}_gib"] = None if value is None else round(value / GIB, 4)
        else:
            data[name] = None if value == "" else value
    return data


def _failure_data(failure: Failure, predictions: dict[str, Prediction]) -> dict[str, Any]:
    spans = {role: prediction.span for role, prediction in predictions.items()}
    return {
        "message": headline(failure),
        "incidents": [_account(incident) for incident in failure.incidents],
        "processes": [
            {**_account(holder), "predicted_gib": encode(spans.get(holder.role))}
            for holder in failure.holders
        ],
        "advice": list(failure.advice),
        "repeated": failure.repeats,
    }


def _judgement_data(judgement: Judgement) -> dict[str, Any]:
    data: dict[str, Any] = encode(judgement, omit=("text", "predictions", "findings", "repairs"))
    lines = Lines({judgement.path: judgement.text})
    return {
        **data,
        "findings": [{"code": f.code, "level": f.level, "message": f.message} for f in judgement.findings],
        "repairs": [_repair_data(lines, judgement.path, repair) for repair in judgement.repairs],
    }


def _repair_data(lines: Lines, path: str, repair: Repair) -> dict[str, Any]:
    rows = {"before": repair.before, "after": repair.after}
    return {
        "code": repair.finding.code,
        **{key: value for key, value in of_fix(lines, path, repair.fix).items() if key in _OF_FIX},
        "parts": encode(repair.parts),
        "need_gib": {when: encode(row.need_gib) for when, row in rows.items()},
        "verdict": {when: row.verdict for when, row in rows.items()},
        "diff": repair.diff,
    }
