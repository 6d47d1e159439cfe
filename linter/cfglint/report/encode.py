"""Records as JSON, by the names of their own fields."""

from __future__ import annotations

import json

from cfglint.engine.memory import Span
from cfglint.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

INF = float("inf")
PLACES = 4  # of a GiB: a tenth of a MiB


def as_json(data: object) -> str:
    """Return the text of a JSON document; ASCII only, so that no locale and no terminal can spoil it."""
    return json.dumps(data, indent=2) + "\n"


def encode(value: object, *, omit: Collection[str] = (), places: int = PLACES) -> Any:
    """Return what JSON has for a value: records by their fields, but for those in ``omit`` at any depth.

    Numbers are rounded to ``places``; what nothing bounds is null, a span the list of its bounds.
    """
    if isinstance(value, float):
        return round(value, places) if abs(value) < INF else None
    if isinstance(value, Span):
        return [encode(bound, places=places) for bound in (value.low, value.high)]
    if isinstance(value, dict):
        return {key: encode(each, omit=omit, places=places) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(each, omit=omit, places=places) for each in value]
    if isinstance(value, Record):
        names = (name for name in fields(value) if name not in omit)
        return {name: encode(getattr(value, name), omit=omit, places=places) for name in names}
    return value


def picked(record: object, names: Iterable[str], *, places: int = PLACES) -> dict[str, Any]:
    """Return what JSON has for some fields or properties of a record."""
    return {name: encode(getattr(record, name), places=places) for name in names}
