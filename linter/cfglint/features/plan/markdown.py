"""The plan as Markdown, for a comment on a pull request."""

from __future__ import annotations

from cfglint.features.fit.words import _SIGNS, _rows, spread
from cfglint.features.plan.page import _axes
from cfglint.features.plan.words import (
    between,
    fewest,
    headline,
    left_out,
    matter,
    missing,
    notes,
    now,
    recommended,
    scale,
    settings,
    title,
    work_scale,
)
from cfglint.report.markdown import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.features.plan.ranking import Plan, Planned


def as_markdown(plans: Sequence[Plan], *, every: bool) -> str:
    """Return for each plan a headline, for each batch a table and the row to take."""
    lines: list[str] = []
    for plan in plans:
        lines += [f"**{escaped(headline(plan))}**", "", escaped(settings(plan))]
        if plan.now is not None:
            lines += ["", escaped(now(plan))]
        for one in plan.batches:
            lines += ["", f"**{escaped(title(one, plan))}**", ""]
            lines += _table(one, every=every)
            said = [*missing(one.batch), *([fewest(one)] if fewest(one) else []), *recommended(one)]
            lines += ["", *(f"- {escaped(line)}" for line in said)]
        told = notes(plan)
        hidden = 0 if every else left_out(plan)
        if hidden:
            told.append(f"{hidden} more rows with --all")
        lines += ["", *(f"{escaped(line)}  " for line in told), ""] if told else [""]
    return "\n".join(lines).rstrip() + "\n"


def _table(one: Planned, *, every: bool) -> Iterator[str]:
    rows = list(one.batch.rows) if every else matter(one)
    if not rows:
        return
    best = one.advice.best
    columns = [["", *("**→**" if best is not None and row.number == best.number else "" for row in rows)]]
    columns += _axes(rows)
    columns.append(["need, GiB", *(spread(row.need_gib) for row in rows)])
    columns.append(["verdict", *(_SIGNS[row.verdict] + (" (now)" if row.now else "") for row in rows)])
    for name, spans in (("step", [row.step for row in rows]), ("epoch", [row.epoch for row in rows])):
        if any(spans):
            unit, worth = scale(spans)
            columns.append([f"{name}, {unit}", *(between(span, worth) for span in spans)])
    if any(row.work for row in rows):
        unit, _, worth = work_scale(rows)
        columns.append([unit, *(between(row.work, worth) for row in rows)])
    head, *body = ([column[i] for column in columns] for i in range(len(rows) + 1))
    yield from _rows(head, [name not in ("", "ckpt", "verdict") for name in head], body)
