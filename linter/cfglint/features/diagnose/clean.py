r"""Takes from a log's lines what is not the program's: colours, and the prefixes of whoever passed them on.

Prefixes are those of docker compose (``trainer-1  | ``), of timestamps, torchrun (``[rank0]:``), mpirun, srun
(``3: ``), ray (``(TrainActor pid=123)``), of vLLM's and SGLang's loggers, and of Python's levels. They stack:
``2025-11-22T16:40:43.207Z [rank0]: (Worker pid=7) ERROR …``.
"""

from __future__ import annotations

import re

_CODES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_TIME = r"(?:\d{1,2}:\d\d:\d\d(?:[.,:]\d+)?)"
_DATE = r"(?:\d{4}[-/]?\d\d[-/]?\d\d|\d\d[-/]\d\d(?:[-/]\d{2,4})?)"
_PREFIX = re.compile(
    "|".join(
        (
            r"[\w./-]{1,80}\s{0,20}\|\s",  # docker compose
            rf"\[?{_DATE}[T \-]+{_TIME}(?:Z|[+-]\d\d:?\d\d)?(?:\s+[TDPE]P\d+)*\]?:?(?=\s|$)",
            rf"\[{_TIME}\]",
            r"\[(?P<rank>(?:default|rank|trainer|worker|r)[ _:]?\d{1,5})\]:?",
            r"\[(?:\d+,)?(?P<mpi>\d{1,5})\]<(?:stdout|stderr)>:?",
            r"\((?P<actor>[\w.:<>-]{0,80}\s?pid=\d{1,10})(?:, ip=[\w.:]+)?\)",
            r"(?P<srun>\d{1,4}): ",
            r"(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)(?::|\s+(?=\d\d-\d\d |\[))",
            r"\[[\w./ -]{1,60}\.(?:py|cpp|cc):\d+\]:?",
            r"[E>](?:\s{2,}|\s(?=File|\w*Error))",  # pytest and quotes
            r"[│|](?=\s)",  # rich's boxes
        )
    )
)  # fmt: skip
_SPACE = str.maketrans("", "", " \t\r\n\v\f\x00\x85\xa0\u200b\u2028\u2029")
_MOST = 12  # prefixes of one line


def clean(raw: bytes) -> tuple[str, str]:
    """Return the part of the prefix that tells sources apart, and the line without prefixes and colours."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _CODES.sub("", text)
    text = text.strip()
    sources = []
    for _ in range(_MOST):
        found = _PREFIX.match(text)
        if found is None or not found.end():
            break
        sources += [part.strip() for part in found.groups() if part]
        if text[found.end() - 2 : found.end() - 1] == "|" or found.group().rstrip().endswith("|"):
            name = found.group().rstrip(" |")
            sources += [name] if name and name != "│" else []
        text = text[found.end() :].lstrip()
    if text.endswith("│"):
        text = text[:-1].rstrip()
    return " ".join(sources), text


def squeezed(text: str) -> str:
    """Return ``text`` without blanks: as a message reads wherever it was wrapped."""
    return text.translate(_SPACE)
