"""What an hour of a GPU costs: the dated sheet that comes with cfglint, or the user's own (``--prices``)."""

from __future__ import annotations

from functools import cache

from cfglint import files
from cfglint.cache import cached
from cfglint.errors import UsageError
from cfglint.hardware.catalogue import gpus
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "prices.yaml"
SHAPE = "prices1"


class Prices(Record):
    """US dollars for an hour of one GPU, by its canonical name; ``source`` says where they are from."""

    hourly: dict[str, float]
    source: str


@cache
def shipped() -> Prices:
    """Return the sheet that comes with cfglint."""
    text = files.shipped_text("hardware", FILE)
    content: Any = cached(SHAPE, {FILE: text}, lambda: _read(text, FILE))
    hourly, source = content
    return Prices(hourly, source)


def own(path: str) -> Prices:
    """Return a sheet of the user's. Raises UsageError where it cannot be read, or is none."""
    try:
        text = files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = files.why(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path}: cannot be read: {why}") from None
    hourly, _ = _read(text, path)
    return Prices(hourly, path)


def _read(text: str, path: str) -> tuple[dict[str, float], str]:
    import yaml

    try:
        content: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: no sheet of prices: {error}") from None
    rows = content.get("prices") if isinstance(content, dict) else None
    if not isinstance(rows, dict):
        raise UsageError(f"{path}: no sheet of prices; write prices: {{h100-sxm: 2.99, a100-80gb-sxm: 1.49}}")
    known = {gpu.name for gpu in gpus()}
    hourly: dict[str, float] = {}
    days = []
    for name, row in rows.items():
        usd = row.get("usd") if isinstance(row, dict) else row
        if name not in known:
            raise UsageError(f"{path}: no GPU is named {name!r}; `cfglint gpus` lists them")
        if isinstance(usd, bool) or not isinstance(usd, (int, float)) or not usd > 0:
            raise UsageError(f"{path}: {name}: no price: write US dollars per hour, such as 2.99")
        hourly[name] = float(usd)
        days += [str(row["read"])] if isinstance(row, dict) and "read" in row else []
    return hourly, f"prices read {min(days)} to {max(days)}" if days else path
