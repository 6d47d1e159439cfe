"""Amounts of memory as logs spell them, in bytes."""

from __future__ import annotations

_UNITS = {
    "bytes": 1, "byte": 1, "B": 1,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
    # Both engines divide by powers of two and write GB (sglang common.py, vllm mem_utils.py).
    "KB": 2**10, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40,
}  # fmt: skip
NUMBER = r"(\d{1,20}(?:\.\d{1,9})?)"
UNIT = r"(bytes|byte|[KMGTP]iB|[kKMGT]B|B)"
AMOUNT = NUMBER + UNIT
GB = NUMBER + r"G(?:i)?B"
_ABSURD = 2**62  # 2^64 - 1 is NVML's "not available"; no machine has this much


def amount(number: str, unit: str) -> int | None:
    """Return bytes; None for NVML's mark of what it does not know."""
    value = float(number) * _UNITS[unit]
    return round(value) if value < _ABSURD else None
