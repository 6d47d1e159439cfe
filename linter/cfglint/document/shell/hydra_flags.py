"""Where the config is that a Hydra application is told to read: ``--config-path DIR --config-name NAME``."""

from __future__ import annotations

import os
import re

from cfglint.document.shell.programs import HYDRA
from cfglint.document.tree import Sought

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.programs import Start
    from cfglint.document.shell.words import Word

_PATH = ("--config-path", "-cp")
_FOLDER = ("--config-dir", "-cd")
# Where people start a job is where its files are looked for anyway.
_HERE = ("PWD", "the output of $(pwd)", "the output of `pwd`")
_CHOICE = re.compile(r"((?:\+\+|\+|~)?[A-Za-z_][\w/-]*(?:@[\w.:-]+)?)(=|\Z)")


def sought(start: Start) -> tuple[Sought, ...]:
    """Return the file that Hydra would read; nothing where a part of its name is not known.

    ``--config-path`` is seen from the folder of the program's own file, ``--config-dir`` from the working
    folder (Hydra 1.3: hydra/_internal/utils.py: compute_search_path_dir).
    """
    name = _given(start.rest, HYDRA)
    if name is None or not name.text:
        return ()
    file = name.text if name.text.endswith((".yaml", ".yml")) else f"{name.text}.yaml"
    places: list[str] = []
    for word, beside in ((_given(start.rest, _PATH), _home(start)), (_given(start.rest, _FOLDER), "")):
        folder = _folder(word) if word is not None else None
        if folder is not None:
            package = folder.removeprefix("pkg://") if folder.startswith("pkg://") else ""
            at = package.replace(".", "/") if package else os.path.join(beside, folder)
            places.append(os.path.normpath(os.path.join(at, file)))
        elif word is not None and (at := _from_here(word)):
            places.append(os.path.normpath(os.path.join(at, file)))
    if not places:
        return ()
    return (
        Sought(places[0], name.start, name.end, places=tuple(places), choices=tuple(_choices(start.rest))),
    )


def _choices(words: list[Word]) -> list[tuple[str, str | None]]:
    """Return the overrides whose key may be a group's: ``db=pg``, ``db@at.package=pg``, ``~db``."""
    found: list[tuple[str, str | None]] = []
    for word in words:
        match = _CHOICE.match(word.spelled)
        if match is None or (word.pieces and word.pieces[0].unknown):
            continue
        key = match[1]
        if match[2]:
            found.append((key, word.from_(match.end()).text))
        elif key.startswith("~") and word.text == key:
            found.append((key, ""))
    return found


def _home(start: Start) -> str:
    """Return the folder of the program's own file, as its name tells."""
    name = start.name.spelled
    return name.rpartition(".")[0].replace(".", "/") if start.module else os.path.dirname(name)


def _folder(word: Word) -> str | None:
    return word.text or None


def _from_here(word: Word) -> str:
    """Return what stands behind ``$PWD/``."""
    first, *rest = word.pieces
    if first.unknown not in _HERE or any(piece.unknown or piece.maybe for piece in rest):
        return ""
    text = "".join(piece.text for piece in rest)
    return text.lstrip("/") if text.startswith("/") else ""


def _given(words: list[Word], flags: tuple[str, ...]) -> Word | None:
    """Return the last value of a flag."""
    found = None
    for at, word in enumerate(words):
        for flag in flags:
            if word.text == flag and at + 1 < len(words):
                found = words[at + 1]
            elif word.spelled.startswith(f"{flag}="):
                found = word.from_(len(flag) + 1)
    return found
