"""The words that a program and the modules of its project declare as arguments, wherever its parser is made.

They are found by text: what is imported is followed from file to file, and each may declare some, by
``add_argument`` or as fields of a class.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.document.tree import File

_MOST = 80  # files of a program
_PARTS = 12  # of what a line imports, that may be modules
_IMPORTED = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w., ]+))",
    re.MULTILINE,
)
_FLAG = re.compile(r"""["']--?([A-Za-z][\w.-]*)["']""")
_FIELD = re.compile(r"^[ \t]+([A-Za-z_]\w*)[ \t]*:[ \t]*[A-Za-z\"'][^\n]*$", re.MULTILINE)
_LIBRARY = re.compile(
    r"^[ \t]*from[ \t]+(?:transformers|trl)\b[\w.]*[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE
)
_FILLED = re.compile(r"(?:class[ \t]+\w+|\w*Parser)\(+([^)=]*)")  # a class's bases, what a parser fills


def declared(start: File, imported: Callable[[File, str], File | None]) -> tuple[frozenset[str], bool]:
    """Return the words, and whether a class of transformers' arguments adds its own."""
    words: set[str] = set()
    trains = False
    waiting, seen = [start], {start.path}
    while waiting and len(seen) <= _MOST:
        file = waiting.pop(0)
        text = file.text
        words.update(word.replace("-", "_") for word in _FLAG.findall(text))
        words.update(_FIELD.findall(text))
        trains = trains or _fills_library(text)
        for name in _names(text):
            found = imported(file, name)
            if found is not None and found.path not in seen:
                seen.add(found.path)
                waiting.append(found)
    return frozenset(words), trains


def _fills_library(text: str) -> bool:
    """Whether arguments of transformers or TRL are a base, or among the classes that a parser fills."""
    filled = " ".join(_FILLED.findall(text))
    named = re.findall(r"\w+(?:Arguments|Config)\b", " ".join(_LIBRARY.findall(text)))
    by_module = re.search(r"\b(?:transformers|trl)\.\w+(?:Arguments|Config)\b", filled) is not None
    return by_module or not set(named).isdisjoint(re.findall(r"\w+", filled))


def _names(text: str) -> list[str]:
    """Return the modules that a file imports, and what may be modules of them."""
    names: dict[str, None] = {}
    for holder, parts, plain in _IMPORTED.findall(text):
        if holder:
            names[holder] = None
            inner, dot = re.findall(r"[A-Za-z_]\w*", parts), "" if holder.endswith(".") else "."
            names.update((f"{holder}{dot}{part}", None) for part in inner[:_PARTS])
        names.update((each, None) for each in re.findall(r"[\w.]+", plain))
    return list(names)
