"""Reads the sheet of ``--lengths``: how long the samples of a data set are, as ``cfglint facts`` wrote it."""

from __future__ import annotations

import re

from cfglint import files
from cfglint.errors import UsageError, did_you_mean
from cfglint.lang.values import Interval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.lang.pack import Pack

_PREFIX = "observed."
_RANGE = re.compile(r"(\d{1,12})\.\.(\d{1,12})\Z")


def lengths(path: str, pack: Pack) -> dict[str, tuple[object, str]]:
    """Return the facts of a sheet, with their source. Raises UsageError."""
    from cfglint.document.reading import read_text
    from cfglint.document.scalars import PYYAML
    from cfglint.document.view import View

    try:
        document = read_text(files.read_text(path, pipe=True), "lengths.yaml").documents[0]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{path}: cannot read the sheet of lengths: {why.lower()}") from None
    view = View(document, PYYAML)
    if document.error is not None or view.get(("cfglint",)) != "lengths":
        advice = f"cfglint facts --lengths {path} --output-file lengths.yaml"
        raise UsageError(f"{path}: it is no sheet of lengths; {advice} makes one of a data set")
    found: dict[str, tuple[object, str]] = {}
    for part in view.keys(()):
        if part in ("cfglint", "data"):
            continue
        for figure in view.keys((part,)):
            name, value = f"{_PREFIX}{part}_{figure}", _number(view.get((part, figure)))
            if name not in pack.facts or value is None:
                near = did_you_mean(name, [fact for fact in pack.facts if fact.startswith(_PREFIX)])
                wrong = "is no number of tokens" if name in pack.facts else f"is not known{near}"
                raise UsageError(f"{path}: {part}.{figure} {wrong}")
            found[name] = value, f"sheet {path}"
    return found


def _number(value: object) -> object:
    """Return a number of tokens, or a range of them; None for anything else."""
    if isinstance(value, str) and (ends := _RANGE.match(value)):
        return Interval(int(ends[1]), int(ends[2]))
    return value if type(value) is int and value >= 0 else None
