"""A rule's message: texts, and expressions in braces; ``{{`` and ``}}`` stand for the braces themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.lang import tree as t

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
Parts: TypeAlias = "tuple[tuple[str | t.Expr, int], ...]"  # each with its offset
_known: dict[str, Parts] = {}


class MessageError(ValueError):
    """A message is malformed, at an offset of its text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def template(text: str) -> tuple[str | t.Expr, ...]:
    """Split a message into its texts and the expressions in its braces. Raises MessageError for a bad one."""
    return tuple(part for part, _ in placed(text))


def placed(text: str) -> Parts:
    """Do what `template` does, and tell where each part begins."""
    if text not in _known:
        _known[text] = tuple(_split(text))
    return _known[text]


def remember(messages: Mapping[str, Parts]) -> None:
    """Take in messages that were split before, so that reporting needs no parser."""
    _known.update(messages)


def _split(text: str) -> list[tuple[str | t.Expr, int]]:
    from cfglint.lang.parse import expression
    from cfglint.lang.transform import RuleTextError

    parts: list[tuple[str | t.Expr, int]] = []
    at = 0
    for hole in _PART.finditer(text):
        parts.append((text[at : hole.start()], at))
        at = hole.end()
        if hole[0] in ("{{", "}}"):
            parts.append((hole[0][0], hole.start()))
        elif hole[1] is None:
            raise MessageError(
                f"this {hole[0]} has no partner; a brace itself is written {hole[0] * 2}", hole.start()
            )
        else:
            try:
                parts.append((expression(hole[1]), hole.start() + 1))
            except RuleTextError as mistake:
                raise MessageError(str(mistake), hole.start() + 1 + mistake.offset) from None
    parts.append((text[at:], at))
    return parts


def offset_in(quoted: str, offset: int) -> int:
    r"""Return where character ``offset`` of a text stands in its spelling with quotes and escapes."""
    at = 1
    for _ in range(offset):
        at += 2 if quoted[at : at + 1] == "\\" else 1
    return at
