"""A diagnosis for an issue on GitHub."""

from __future__ import annotations

from cfglint.features.diagnose import words
from cfglint.features.diagnose.page import after
from cfglint.features.fit.words import DASH
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.features.diagnose.compute import Diagnosis


def _safe(text: str) -> str:
    out = shown(text)
    for mark in ("\\", "`", "*", "_", "|", "<", "[", "]", "#", "@"):
        out = out.replace(mark, f"\\{mark}")
    return out


def as_markdown(found: Diagnosis) -> str:
    """Return headline, table and fix as markdown."""
    told = found.told[0]
    lines = [
        f"**{_safe(words.headline(told))}**",
        "",
        f"`{words.where(told.failure.first).replace('`', '')}`",
    ]
    lines += [f"- {_safe(line)}" for line in words.ranks(told)]
    table = words.rows(told, found.judgement)
    if table:
        lines += ["", "| GiB | held | predicted | |", "|---|---:|---:|---|"]
        lines += [f"| {' | '.join(map(_safe, row))} |" for row in table]
    inner = words.inside(told)
    if inner:
        lines += ["", *(f"- {_safe(line)}" for line in inner)]
    if found.judgement is not None:
        lines += ["", _safe(f"{found.judgement.path}: {found.judgement.chosen}")]
        for i, repair in enumerate(found.judgement.repairs):
            effect = f" \u2014 {repair.fix.effect}" if repair.fix.effect else ""
            word = "**Fix**" if i == 0 else "Or"
            lines += ["", f"{word} ({repair.fix.applicability}): {_safe(repair.fix.title + effect)}"]
            lines += [f"<br>{_safe(line)}" for line in after(repair, DASH)]
        if found.judgement.repairs:
            diff = found.judgement.repairs[0].diff
            fence = "`" * 3
            while fence in diff:
                fence += "`"
            lines += ["", f"{fence}diff", diff.rstrip("\n"), fence]
    if told.advice and (found.judgement is None or not found.judgement.repairs):
        lines += ["", *(f"- {_safe(line)}" for line in told.advice)]
    later = words.again(found)
    if later:
        lines += ["", "Again:", "", *(f"- {_safe(line)}" for line in later)]
    return "\n".join(lines) + "\n"
