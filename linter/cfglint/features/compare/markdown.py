"""The comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from cfglint.features.compare import words
from cfglint.features.fit.words import _SIGNS, _rows, spread
from cfglint.report.markdown import escaped
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.memory import FitRow
    from cfglint.features.compare.compute import Comparison, Difference


def as_markdown(comparison: Comparison, *, verbose: bool = False) -> str:
    """Return what matters, the settings as a table, and memory and keys to unfold."""
    lines = [f"**A** {escaped(words.who(comparison.a))}", f"**B** {escaped(words.who(comparison.b))}", ""]
    lines[0] += "<br>"
    said = [words.differing(comparison), *words.fitting(comparison), *words.costs(comparison)]
    said += words.arithmetic(comparison.ratios)
    lines += [f"- {escaped(line)}" for line in said]
    lines += _settings(words.told(comparison))
    lines += _derived([d for d in comparison.derived if verbose or not d.own])
    lines += _memory(comparison)
    lines += _keys(comparison, verbose=verbose)
    found = words.findings(comparison)
    lines += ["", *(f"- {escaped(line)}" for line in found)] if found else []
    return "\n".join(lines) + "\n"


def _settings(found: Sequence[Difference]) -> list[str]:
    if not found:
        return []
    body = []
    for _, together in words.groups(found):
        for one in together:
            about = "; ".join(words.effects(one))
            links = "".join(f" [source]({s})" for s in words.sources(one) if s.startswith("https://"))
            body.append(
                [
                    f"`{shown(one.name)}`<br>{escaped(shown(one.about))}",
                    escaped(words.value(one.a)),
                    escaped(words.value(one.b)),
                    escaped(words.where(one)),
                    escaped(about) + links,
                ]
            )
    head = ("setting", "A", "B", "where", "what the change does")
    return ["", *_rows(head, (False, True, True, False, False), body)]


def _derived(found: Sequence[Difference]) -> list[str]:
    if not found:
        return []
    body = [
        [
            f"`{shown(one.name)}`",
            escaped(words.value(one.a)),
            escaped(words.value(one.b)),
            "" if one.ratio is None else words.factor(one.ratio),
            escaped(shown(one.about)),
        ]
        for one in found
    ]
    head = ("what follows", "A", "B", "B / A", "")
    return ["", *_rows(head, (False, True, True, True, False), body)]


def _memory(comparison: Comparison) -> list[str]:
    pairs = words.pairs(comparison)
    if comparison.every:
        pairs = words.telling(pairs)
    lines = ["", "<details><summary>Memory by part, GiB on the fullest GPU</summary>"]
    for one, other in pairs:
        lines += ["", *_table(one, other)]
    return [*lines, "", "</details>"]


def _table(one: FitRow, other: FitRow) -> list[str]:
    body = [
        [part, spread(span), spread(other.parts[part]), words.change(span, other.parts[part])]
        for part, span in one.parts.items()
        if span.high > 0 or other.parts[part].high > 0
    ]
    need = [spread(one.need_gib), spread(other.need_gib), words.change(one.need_gib, other.need_gib)]
    body.append(["**need**", *(f"**{cell}**" for cell in need)])
    body.append(["verdict", _SIGNS[one.verdict], _SIGNS[other.verdict], ""])
    head = (escaped(shown(one.target)), "A", "B", "B - A")
    return list(_rows(head, (False, True, True, True), body))


def _keys(comparison: Comparison, *, verbose: bool) -> list[str]:
    if not comparison.alike:
        return [
            "",
            *(f"- {escaped(words.unread(h, n))}" for n, h in (("A", comparison.a), ("B", comparison.b))),
        ]
    found, left = words.listed(comparison.keys, verbose=verbose)
    if not found:
        return []
    lines = ["", "<details><summary>Other keys that differ</summary>", ""]
    lines += _rows(("key", "A", "B"), (False, False, False), [[escaped(c) for c in line] for line in found])
    lines += ["", f"and {left} more"] if left else []
    return [*lines, "", "</details>"]
