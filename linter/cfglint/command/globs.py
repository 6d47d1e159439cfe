"""Frameworks by path: what ``frameworks`` of the settings says of each file."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Named: TypeAlias = tuple[str, tuple[float, ...] | None]  # a framework, and its version if one is named


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
        found = self.glob_of(path)
        return None if found is None else found[1]
