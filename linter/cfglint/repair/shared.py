"""Says what each GPU holds of the longest sequence where fewer share it, and nobody knows the memory."""

from __future__ import annotations

from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values

_SHARING = ("sp", "cp")
# Of Llama 2 and of Qwen2, between which most models lie. https://huggingface.co/meta-llama/Llama-2-7b-hf and
# https://huggingface.co/Qwen/Qwen2-7B, config.json: vocab_size
_VOCABULARIES = (32_000, 152_064)
_BF16 = 2  # bytes: the least that they take
_MUCH = 0.25  # of a GPU


def share_told(before: Values, after: Values) -> str:
    """Return how many tokens of a sequence a GPU holds, in words; nothing where it is as many as before."""
    length, longest = before["seq_len"], after["seq_len"]
    old, new = _ways(before), _ways(after)
    if not is_number(length) or not is_number(longest) or old is None or new is None or new[1] >= old[1]:
        return ""
    told = f"of the longest sequence ({longest:,} tokens) each GPU then holds"
    logits = _logits(after, longest / new[1])
    if new[0] < new[1]:
        return f"{told} at least {longest / new[1]:,.0f}{logits}"
    return f"{told} {longest / new[1]:,.0f} instead of {length / old[1]:,.0f}{logits}"


def _logits(values: Values, tokens: float) -> str:
    """Return what the logits of so many tokens take, in words, where that may be much of a GPU."""
    vram, known, ways = bounds_of(values["gpu.vram"]), values["model.vocab"], bounds_of(values["train_tp"])
    split = ways is not None and ways[1] > 1  # a vocabulary may be, too
    if vram is None or split or values["trains"] is not True or values["generates"] is True:
        return ""
    sizes = (known,) if is_number(known) else _VOCABULARIES
    taken = [_BF16 * size * tokens / GIB for size in sizes]
    if taken[-1] * GIB < _MUCH * vram[1]:
        return ""
    each = " or ".join(
        f"{gib:.3g} GiB (a vocabulary of {size:,})" for size, gib in zip(sizes, taken, strict=True)
    )
    of = f"{each} of {vram[1] / GIB:.1f}"
    return f"; unless the program computes its loss in chunks, their logits alone take {of}"


def _ways(values: Values) -> tuple[float, float] | None:
    """Return over how few and how many GPUs a sequence is split."""
    least = most = 1.0
    for name in _SHARING:
        known = bounds_of(values[name])
        if known is None:
            return None
        least, most = least * known[0], most * known[1]
    return least, most
