"""Settings: ``[tool.cfglint]`` of the nearest pyproject.toml, or the nearest cfglint.toml, going upwards.

What ``load`` gives for ``frameworks`` is the file that it stands in, and the table.
"""

from __future__ import annotations

import os

from cfglint import files
from cfglint.errors import UsageError, did_you_mean
from cfglint.findings import LEVELS
from cfglint.report import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FAIL_ON = ("error", "warning", "info", "never")

# The flags that settings stand in for, and ``detect = false`` for --no-detect; schemas/settings.schema.json
# says the same to editors, and a test compares the two.
LISTS = ("gpu", "rules", "rule", "select", "ignore", "set")
TEXTS = ("hardware", "framework", "model-config")
CHOICES = {"format": FORMATS, "fail-on": FAIL_ON, "fix-level": LEVELS}
SWITCHES = ("detect", "skip-unknown", "annotate", "online")
NUMBERS = ("jobs",)
TABLES = ("frameworks",)  # no flag takes one
KNOWN = (*LISTS, *TEXTS, *CHOICES, *SWITCHES, *NUMBERS, *TABLES)
_PATHS = ("rules", "hardware", "model-config")  # relative to the settings file


def find(start: str) -> tuple[str, dict[str, Any]] | None:
    """Return the path and table of the settings that hold in the folder ``start``, None without any."""
    at = os.path.abspath(start)
    while True:
        for name in ("cfglint.toml", "pyproject.toml"):
            path = os.path.join(at, name)
            text = _read(path)
            if text is None or (name == "pyproject.toml" and not _may_speak_of_us(text)):
                continue
            table = _table(path, text)
            if table is not None:
                return path, table
        parent = os.path.dirname(at)
        if parent == at:
            return None
        at = parent


def load(start: str) -> dict[str, Any]:
    """Return the settings that hold in the folder ``start``; paths in them are relative to their file."""
    found = find(start)
    if found is None:
        return {}
    path, table = found
    return {key: _checked(path, key, value) for key, value in table.items()}


def _may_speak_of_us(text: str) -> bool:
    """Whether parsing a pyproject.toml may be worth it: that costs more than linting a file."""
    squeezed = text.replace(" ", "").replace('"', "")
    return "cfglint" in text and ("tool.cfglint" in squeezed or "[tool]" in squeezed)


def _read(path: str) -> str | None:
    try:
        return files.read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {files.why(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: TOML is UTF-8 text, and this is not") from None


def _table(path: str, text: str) -> dict[str, Any] | None:
    """Return the settings of a file, None where it has no table for cfglint."""
    from cfglint.command.toml import TomlError, loads

    try:
        table: Any = loads(text)
    except TomlError as error:
        raise UsageError(f"{path}: {error}") from None
    if os.path.basename(path) == "pyproject.toml":
        tool = table.get("tool")
        table = tool.get("cfglint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: tool.cfglint is a table: write [tool.cfglint], and keys below it")
    return table


def _checked(path: str, key: str, value: Any) -> Any:
    if key not in KNOWN:
        near = did_you_mean(key, KNOWN) or f"; known are {', '.join(KNOWN)}"
        raise UsageError(f"{path}: no setting is named {key!r}{near}")
    if key in LISTS:
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list) or not all(isinstance(v, str) for v in several):
            raise UsageError(f"{path}: {key} is a text or a list of texts")
        return [_placed(path, v) for v in several] if key in _PATHS else several
    if key in SWITCHES:
        if not isinstance(value, bool):
            raise UsageError(f"{path}: {key} is true or false")
        return value
    if key in NUMBERS:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(f"{path}: {key} is a number from 1 on")
        return value
    if key in TABLES:
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise UsageError(f'{path}: {key} is a table of globs and names: {{ "old/*.yaml" = "areal" }}')
        return path, value
    if not isinstance(value, str):
        raise UsageError(f"{path}: {key} is a text")
    if key in CHOICES and value not in CHOICES[key]:
        near = did_you_mean(value, CHOICES[key])
        raise UsageError(f"{path}: {key} is one of {', '.join(CHOICES[key])}, not {value!r}{near}")
    return _placed(path, value) if key in _PATHS else value


def _placed(path: str, value: str) -> str:
    """Return a path of the settings file as seen from here."""
    return value if os.path.isabs(value) else os.path.relpath(os.path.join(os.path.dirname(path), value))
