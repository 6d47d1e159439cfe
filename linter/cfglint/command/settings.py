"""Finds settings: ``[tool.cfglint]`` of the nearest pyproject.toml, or the nearest cfglint.toml, upwards.

``ByPath`` is what their ``frameworks`` say of each file.
"""

from __future__ import annotations

import os
import re
import sys

from cfglint import files
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Named: TypeAlias = tuple[str, tuple[float, ...] | None]  # a framework, and its version if one is named


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
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    except ValueError:  # a limit of Python's own
        raise UsageError(f"{path}: a number in it has too many digits") from None
    except RecursionError:
        raise UsageError(f"{path}: lists or tables in it are nested too deeply") from None
    if os.path.basename(path) == "pyproject.toml":
        tool = table.get("tool")
        table = tool.get("cfglint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: tool.cfglint is a table: write [tool.cfglint], and keys below it")
    return table


def placed(path: str, value: str) -> str:
    """Return a path of the settings file as seen from here."""
    return value if os.path.isabs(value) else os.path.relpath(os.path.join(os.path.dirname(path), value))


# ── frameworks by path ─────────────────────────────────────────────────────────────────────────────────────
def pattern(glob: str) -> re.Pattern[str]:
    """Return what the paths of a glob look like; ``*`` and ``?`` stay within a folder, ``**`` does not."""
    out = ""
    i = 0
    while i < len(glob):
        if glob.startswith("**/", i) and (i == 0 or glob[i - 1] == "/"):
            out += "(?:.*/)?"
            i += 3
        elif glob.startswith("**", i):
            out += ".*"
            i += 2
        elif glob[i] == "[" and (end := glob.find("]", i + 2)) > 0:
            inner = glob[i + 1 : end].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
            out += f"(?!/)[{'^' + inner[1:] if inner[0] == '!' else inner}]"
            i = end + 1
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(glob[i]) or re.escape(glob[i])
            i += 1
    return re.compile(out, re.DOTALL)


class ByPath:
    """The frameworks of files by globs, relative to the settings' folder; the last that fits wins."""

    def __init__(self, settings: str, named: Sequence[tuple[str, Named]]) -> None:
        self.settings = settings
        self._folder = os.path.dirname(os.path.abspath(settings))
        self._named = [(glob, pattern(glob.removeprefix("./")), meant) for glob, meant in reversed(named)]

    def glob_of(self, path: str) -> tuple[str, Named] | None:
        """Return the glob that holds for a file, and what it names; None where none does."""
        if path.startswith("<"):  # stdin is nowhere
            return None
        try:
            relative = os.path.relpath(path, self._folder).replace(os.sep, "/")
        except ValueError:  # another drive
            return None
        return next(((glob, meant) for glob, like, meant in self._named if like.fullmatch(relative)), None)

    def __call__(self, path: str) -> Named | None:
        _, named = self.glob_of(path) or ("", None)
        return named
