"""Says what each GPU holds of the longest sequence where fewer share it, and nobody knows the memory."""

from __future__ import annotations

from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang.types import is_number
from cfglint.lang.values import INF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values

_SHARING = ("sp", "cp")
# Of Llama 2 and of Qwen2, between which most models lie. https://huggingface.co/meta-llama/Llama-2-7b-hf and
# https://huggingface.co/Qwen/Qwen2-7B, config.json: vocab_size
_VOCABULARIES = (32_000, 152_064)
_BF16 = 2  # bytes: the least that they take
_MUCH = 0.25  # of a GPU
_KEPT = 2  # times the logits: their gradient is there beside them
_WHOLE_LOSS = ("none", "off", "false", False)


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


def too_long(before: Values, after: Values) -> str:
    """Say that fewer GPUs share a sequence than can, where nobody knows the memory; nothing where they may.

    The logits and their gradient are counted, by the larger vocabulary where the model is not known.
    """
    need, vram, old = bounds_of(after["need.total"]), bounds_of(after["gpu.vram"]), _ways(before)
    share, ways = share_told(before, after), _ways(after)
    if not share or (need is not None and need[1] < INF) or vram is None or old is None or ways is None:
        return ""
    sizes, longest = _vocabularies(after), after["seq_len"]
    taken = _KEPT * _BF16 * sizes[-1] * longest / ways[1] if sizes and is_number(longest) else 0
    if taken <= vram[1] or after["fused_loss"] not in _WHOLE_LOSS:
        return ""
    least = f"at least {old[0]:.0f}" if old[0] < old[1] else f"{old[1]:.0f}"
    more = f"take as many GPUs as share it now ({least}), or larger ones"
    return f"fewer GPUs cannot share a sequence: {share}, and their gradient as much again; {more}"


def _vocabularies(values: Values) -> tuple[float, ...]:
    """Return what a GPU may have logits of: the model's, else usual ones; nothing where it is not known."""
    known, ways = values["model.vocab"], bounds_of(values["train_tp"])
    split = ways is not None and ways[1] > 1  # a vocabulary may be, too
    if split or values["trains"] is not True or values["generates"] is True:
        return ()
    return (known,) if is_number(known) else _VOCABULARIES


def _logits(values: Values, tokens: float) -> str:
    """Return what the logits of so many tokens take, in words, where that may be much of a GPU."""
    vram, sizes = bounds_of(values["gpu.vram"]), _vocabularies(values)
    taken = [_BF16 * size * tokens / GIB for size in sizes]
    if vram is None or not taken or taken[-1] * GIB < _MUCH * vram[1]:
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
