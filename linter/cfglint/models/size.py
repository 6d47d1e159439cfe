"""What the size in a model's name, or a number of parameters, tells of it: bounds, by models that are known.

``org/foo-7B-sft`` has about seven billion parameters, and the shape of the models of that size.
"""

from __future__ import annotations

import re
from math import ceil, floor

from cfglint.lang.values import NOTHING, Open, hull, interval, parts
from cfglint.models import EXPERTS, SHAPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from cfglint.lang.values import Number

# 8x7B, 30B, 1.5b, 1_6b, 7b1, 500M; a letter may stand before it only as the end of a word (llama7b).
_SIZE = re.compile(
    r"(?:(?<![A-Za-z0-9._])|(?<=[^0-9A-Za-z][vV][0-9]_)|(?<=[0-9A-Za-z]_)|(?<=[A-Za-z]{3}))"
    r"(?:(?P<times>\d{1,3})[xX])?(?P<whole>\d{1,4})(?:[._](?P<part>\d{1,3}))?"
    r"(?P<unit>[bBmM])(?P<tail>\d)?(?![A-Za-z0-9])"
)
_ACTIVE = re.compile(r"(?<![A-Za-z0-9])[aA](\d{1,3}(?:\.\d{1,3})?)[bB](?![A-Za-z0-9])")
_BITS = re.compile(
    r"(?<![A-Za-z0-9])(awq|gptq|int4|int8|fp8|nf4|w4a16|w8a8|w8a16|4-?bit|8-?bit)(?![A-Za-z0-9])"
)

# What names leave out: a size is rounded, and often counts no embeddings, which weigh most in small models.
_BELOW = 0.15
_ABOVE = ((1e9, 0.30), (1.4e9, 0.70), (4e9, 0.40), (10e9, 0.25), (float("inf"), 0.15))
_WIDER = 0.30  # models whose shapes are taken as like
_OF_EXPERTS = (0.7, 1.0)  # experts share their attention: 8x7B has 46.7 billion
_OF_ACTIVE = (1.0, 2.2)  # and a token passes two of them

_LIKE_LLAMA = ("llama", "mistral", "qwen2")


def by_name(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, object] | None:
    """Return the figures that a name or a path tells, None for one that has no size."""
    for piece in reversed(name.replace("\\", "/").split("/")):
        for size in _SIZE.finditer(piece):
            count = _count(size)
            if not 5e6 <= count <= 5e12:
                continue
            times = int(size["times"] or 0)
            active = _ACTIVE.search(piece)
            figures = _figures(*_sizes(count, times, active), list(rows))
            figures["quantized_bits"] = _bits(name)
            return figures
    return None


def by_number(count: float, rows: Iterable[Mapping[str, Any]]) -> dict[str, object] | None:
    """Return the figures of a dense model with ``count`` parameters."""
    if not 1 <= count < 2**60:
        return None
    count = int(count)
    return _figures(count, count, list(rows), moe=False)


def _count(size: re.Match[str]) -> float:
    part = size["part"] or size["tail"] or "0"
    number = float(f"{size['whole']}.{part}")
    return number * (1e9 if size["unit"] in "bB" else 1e6)


def margins(size: float) -> tuple[float, float]:
    """Return how far a model may be below and above the size in its name, as shares of it."""
    return _BELOW, next(above for bound, above in _ABOVE if size < bound)


def _spread(size: float) -> Number:
    below, above = margins(size)
    return interval(floor(size * (1 - below)), ceil(size * (1 + above)))


def _sizes(count: float, times: int, active: re.Match[str] | None) -> tuple[Number, Number]:
    """Return the bounds of all parameters, and of those that one token passes through."""
    if times > 1:
        low, high = _OF_EXPERTS
        some, more = _OF_ACTIVE
        total = count * times
        return (
            interval(floor(total * low), ceil(total * high)),
            interval(floor(count * some), ceil(count * more)),
        )
    if active is not None and float(active[1]) * 1e9 < count:
        return _spread(count), _spread(float(active[1]) * 1e9)
    return _spread(count), _spread(count)


def _bits(name: str) -> int:
    marks = _BITS.findall(name.lower())
    return (8 if any("8" in word for word in marks) else 4) if marks else 0


def _figures(
    total: Number, active: Number, rows: Sequence[Mapping[str, Any]], *, moe: bool | None = None
) -> dict[str, object]:
    if moe is None:
        moe = parts(active) != parts(total)
    alike = _alike(total, [row for row in rows if bool(row["experts"]) is moe])
    figures: dict[str, object] = {"params": total, "active_params": active, "quantized_bits": 0}
    for column in (*SHAPE, *EXPERTS, "latent_dim"):
        figures[column] = hull([row[column] for row in alike]) if moe or column in SHAPE else 0
    tied = {row["tied"] for row in alike}
    figures["tied"] = tied.pop() if len(tied) == 1 else Open(NOTHING)
    llama = all(row["family"] in _LIKE_LLAMA for row in alike)
    figures["family"] = "llama" if llama else "unknown"
    return figures


def _alike(total: Number, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the models of about this size; with fewer than two shapes, the next ones below and above too."""
    low, high, _ = parts(total)
    bottom, top = low * (1 - _WIDER), high * (1 + _WIDER)
    alike = [row for row in rows if bottom <= row["params"] <= top]
    if len({tuple(row[column] for column in SHAPE) for row in alike}) > 1:
        return alike
    smaller = [row for row in rows if row["params"] < bottom]
    larger = [row for row in rows if row["params"] > top]
    alike += [max(smaller, key=_params)] if smaller else []
    return alike + ([min(larger, key=_params)] if larger else [])


def _params(row: Mapping[str, Any]) -> float:
    return float(row["params"])
