"""The fit as Markdown, for a comment on a pull request."""

from __future__ import annotations

from cfglint.features.fit.matrix import Grid
from cfglint.features.fit.words import (
    counts,
    estimate,
    gib,
    headline,
    headroom,
    label,
    names,
    peaks,
    remedies,
    remedy,
    spread,
)
from cfglint.report.markdown import escaped
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.memory import Fit

_SIGNS = {"fits": "✅ fits", "tight": "⚠️ tight", "oom": "❌ oom", "unknown": "❔ unknown"}


def as_markdown(fit: Fit) -> str:
    """Return a headline, the table, the parts to unfold, and the sentences."""
    lines = [f"**{escaped(headline(fit))}**: GiB on the fullest GPU", ""]
    varied = any(row.varied for row in fit.rows)
    lines += _matrix(fit) if varied else _table(fit)
    for one, targets in remedies(fit.rows):
        where = f" on {escaped(', '.join(targets))}" if len(fit.rows) > 1 else ""
        lines += ["", f"**Fix**{where} ({label(one)}): {escaped(remedy(one))}"]
    said = counts(fit)
    if said:
        lines += ["", f"{escaped(said)}."]
    if not varied:
        lines += _parts(fit)
    if fit.wanted:
        lines += ["", "Not known:", ""]
        lines += [
            f"- {escaped(names(missing))}: {escaped(shown(missing.about))}; give {escaped(missing.advice)}"
            for missing in fit.wanted
        ]
    return "\n".join(lines) + "\n"


def _rows(head: Sequence[str], right: Sequence[bool], body: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---:' if flush else '---' for flush in right)}|"
    for cells in body:
        yield f"| {' | '.join(cells)} |"


def _table(fit: Fit) -> list[str]:
    body = [
        [
            escaped(shown(row.target)),
            "?" if row.capacity is None else gib(row.capacity),
            spread(row.need),
            headroom(row),
            _SIGNS[row.verdict],
        ]
        for row in fit.rows
    ]
    head = ("GPU", "capacity", "need", "headroom", "verdict")
    return list(_rows(head, (False, True, True, True, False), body))


def _matrix(fit: Fit) -> list[str]:
    grid = Grid(fit.rows)
    heads, columns = grid.heads(), grid.columns()
    body = [
        [escaped(head[i + 1]) for head in heads]
        + [f"{_SIGNS[rows[i].verdict]} {spread(rows[i].need)}" for _, rows in columns]
        for i in range(len(heads[0]) - 1)
    ]
    head = [escaped(h[0]) for h in heads] + [escaped(title) for title, _ in columns]
    return list(_rows(head, [not grid.turned] * len(heads) + [True] * len(columns), body))


def _parts(fit: Fit) -> list[str]:
    told = fit.told
    body = [
        [part, *(spread(dict(row.parts)[part]) for row in told)]
        for part, _ in told[0].parts
        if any(dict(row.parts)[part].high > 0 for row in told)
    ]
    body.append(["**need**", *(f"**{spread(row.need)}**" for row in told)])
    lines = ["", "<details><summary>Memory by part</summary>", ""]
    lines += _rows(
        ["part", *(escaped(shown(row.target)) for row in told)], [False] + [True] * len(told), body
    )
    notes = [*peaks(told), *map(estimate, fit.estimates)]
    lines += ["", *(f"- {escaped(note)}" for note in notes)] if notes else []
    return [*lines, "", "</details>"]
