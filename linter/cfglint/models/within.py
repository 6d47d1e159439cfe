"""A known model within a name: ``internvl2_5_2b_finetune``, ``out/qwen2.5-7b-stage1``, ``llava-qwen2-7b``.

Words are compared, whatever separates them. A point counts: 2.7b is not 2-7b.
"""

from __future__ import annotations

import re
from functools import cache

from cfglint.lang.values import interval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    Row: TypeAlias = Mapping[str, object]
    Models: TypeAlias = Callable[[], Mapping[str, Row]]
    Words: TypeAlias = tuple[tuple[str, str], ...]  # what separates a word from the one before, and the word

_WORD = re.compile(r"([^a-z0-9]*)([a-z]+|[0-9]+)")
_SIZED = re.compile(r"\d[bm](?![a-z0-9])")
# What makes another model of one: parts that are taken out or put in, or a smaller one that learns from it.
_OTHER = re.compile(
    r"(?<![a-z])(pruned?|sheared|distill?(ed)?|draft|eagle|medusa|moe|upcycled?|minitron|student|mini|tiny"
    r"|vl|vlm|omni|vision|audio|voxtral|llava|multimodal|reward|ocr"
    r"|pro|deep|wide|slim|lite|expanded|aqlm|quip|exl2|hqq|bitnet)(?![a-z])"  # LLaMA-Pro has more layers
)
_SEES = re.compile(r"(internvl|llava)")
_TOWER = 1.3  # times the language model's parameters: InternVL-Chat-V1.5 has 6 billion beside 20
# The largest towers, with what joins them to the text: InternViT-6B, and SigLIP's 0.43 billion.
_LARGEST = {"internvl": 6.5e9, "llava": 0.7e9}
_PIECES = 3  # of a path that are looked at, from its end


def _words(text: str) -> Words:
    return tuple((before, word) for before, word in _WORD.findall(text.lower()))


@cache
def _known(models: Models) -> dict[tuple[str, ...], list[tuple[Words, Row]]]:
    found: dict[tuple[str, ...], list[tuple[Words, Row]]] = {}
    for name, row in models().items():
        words = _words(name)
        if _SIZED.search(name) and words[0][1].isalpha() and len(words) > 2:
            found.setdefault(tuple(word for _, word in words), []).append((words, row))
    return found


def within(path: str, models: Models) -> Row | None:
    """Return the figures of the known model that begins the last folder's name which tells a size.

    ``models`` gives the known ones by their names without an owner, and is asked for them but once.
    Of a model that sees, a name may tell the language model alone: ``internvl_chat_v1_5_internlm2_1_8b``.
    """
    pieces = [piece for piece in re.split(r"[/\\\\]", path.lower()) if piece]
    piece = next((piece for piece in reversed(pieces[-_PIECES:]) if _SIZED.search(piece)), "")
    words = _words(piece)
    rows, rest = _longest(words, models)
    sees = _SEES.match(piece)
    if rows or sees is None:
        return rows[0] if len(rows) == 1 and not _OTHER.search(rest) else None
    inside = [row for at in range(1, len(words)) if words[at][0] for row in _longest(words[at:], models)[0]]
    if len(inside) != 1:
        return None
    low = inside[0]["params"]
    assert isinstance(low, int)
    whole = interval(low, round(min(low * _TOWER, low + _LARGEST[sees[0]])))
    return {**inside[0], "params": whole, "active_params": whole}


def _longest(words: Words, models: Models) -> tuple[list[Row], str]:
    """Return the models that the most of some words begin with, and what follows."""
    for end in range(len(words), 2, -1):
        rows = [
            row for known, row in _known(models).get(_plain(words[:end]), ()) if _alike(words[:end], known)
        ]
        if rows and (end == len(words) or words[end][0]):
            return rows, "".join(before + word for before, word in words[end:])
    return [], ""


def _plain(words: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(word for _, word in words)


def _alike(words: Words, known: Words) -> bool:
    """Whether a point stands where a known name has one, or a line, and the size is a word of its own."""
    if not words[-2][0]:
        return False
    pairs = zip(words, known, strict=True)
    return all(
        ("." in own) <= (other in (".", "_")) and (other != "." or own) for (own, _), (other, _) in pairs
    )
