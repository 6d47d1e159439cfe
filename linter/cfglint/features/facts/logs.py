"""Lengths of prompts and answers that a run printed: each step's metrics, as verl, TRL and SkyRL log them."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBER = rb"['\"]?\s*[:=]\s*(?:np\.\w+\(|tensor\()?['\"]?(\d{1,9}(?:\.\d{1,12})?)"
# verl trainer/ppo/metric_utils.py:573-590, trl grpo_trainer.py:2232-2234, skyrl generators/utils.py:457.
_SAYINGS = (
    ("answer", rb"response_length/(mean|max)" + _NUMBER),
    ("prompt", rb"prompt_length/(mean|max)" + _NUMBER),
    ("answer", rb"completions/(mean|max)_length" + _NUMBER),
    ("answer", rb"generate/(avg|max)_num_tokens" + _NUMBER),
)
_PATTERNS = tuple((what, re.compile(words)) for what, words in _SAYINGS)
_LONGEST = 1 << 16  # characters of a line that are kept for the next piece


class Metrics:
    """What the steps of a run said: the mean and the longest of each, of prompts and of answers."""

    def __init__(self) -> None:
        self.means: dict[str, list[float]] = {"prompt": [], "answer": []}
        self.longest: dict[str, list[float]] = {"prompt": [], "answer": []}

    def figures(self, what: str) -> str:
        """Return figures for a sheet; nothing where no step said how long the longest was.

        Half of the samples are about as long as the mean, and most steps have one that is as long as the
        median of the longest.
        """
        means, longest = self.means[what], self.longest[what]
        if not longest:
            return ""
        half = f"p50: {round(median(means))}, " if means else ""
        return f"{{{half}p99: {round(median(longest))}, max: {round(max(longest))}}}"


def metrics(chunks: Iterable[bytes]) -> Metrics:
    """Return what a log says, which is read piece by piece."""
    found = Metrics()
    for piece in _lines(chunks):
        for what, pattern in _PATTERNS:
            for match in pattern.finditer(piece):
                kept = found.longest if match[1] == b"max" else found.means
                kept[what].append(float(match[2]))
    return found


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces that end with a line."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        end = data.rfind(b"\n") + 1
        yield data[:end]
        rest = data[end:][-_LONGEST:]
    yield rest
