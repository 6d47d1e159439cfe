"""The configs that a command's words make a program read: Hydra's, or a function of a registry."""

from __future__ import annotations

import os
import re

from cfglint.document.shell.words import BESIDE, HERE, Word, uncertain, values_of
from cfglint.document.tree import FunctionRef, HydraRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.programs import Start

HYDRA = ("--config-name", "-cn")
_HYDRA_PATH = ("--config-path", "-cp")
_HYDRA_FOLDER = ("--config-dir", "-cd")
_TITAN = re.compile(r"torchtitan(?:[./]\w+)*[./]train(?:\.py)?\Z")
_PACKAGE = re.compile(r"\w+(?:/\w+)*\Z")
_CHOICE = re.compile(r"((?:\+\+|\+|~)?[A-Za-z_][\w/-]*(?:@[\w.:-]+)?)(=|\Z)")
# Where people start a job is where its files are looked for anyway.
_HERE = (HERE, BESIDE)


def sought(start: Start) -> tuple[HydraRef, ...]:
    """Return the file that Hydra would read, without a place where its folder is not known.

    ``--config-path`` is seen from the folder of the program's own file, ``--config-dir`` from the working
    folder (Hydra 1.3: hydra/_internal/utils.py: compute_search_path_dir).
    """
    name = _last(start.rest, HYDRA)
    if name is None or not name.text:
        return ()
    file = name.text if name.text.endswith((".yaml", ".yml")) else f"{name.text}.yaml"
    places: list[str] = []
    for word, beside in (
        (_last(start.rest, _HYDRA_PATH), _home(start)),
        (_last(start.rest, _HYDRA_FOLDER), ""),
    ):
        if word is None:
            continue
        folder = word.text or ""
        package = folder.removeprefix("pkg://") if folder.startswith("pkg://") else ""
        at = package.replace(".", "/") or (os.path.join(beside, folder) if folder else _from_here(word))
        if at:
            places.append(os.path.normpath(os.path.join(at, file)))
    choices = tuple(_choices(start.rest))
    return (
        HydraRef(places[0] if places else file, name.start, name.end, places=tuple(places), choices=choices),
    )


def hydra_beside(start: Start, beside: str, folder: str | None, name: str | None) -> HydraRef | None:
    """Return the file that a program reads which names its config itself; None where that is not known.

    What the command says of either goes before the ``folder`` and the ``name`` that the program has; the
    folder is seen from ``beside``, the program's own.
    """
    words = [_last(start.rest, flags) for flags in (_HYDRA_PATH, HYDRA)]
    folder = folder if words[0] is None else words[0].text
    name = name if words[1] is None else words[1].text
    if not folder or not name or "://" in folder or (words[0] is not None and words[1] is not None):
        return None
    file = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    place = os.path.normpath(os.path.join(beside, folder, file))
    named = words[1] or start.name
    return HydraRef(place, named.start, named.end, places=(place,), choices=tuple(_choices(start.rest)))


def registered(start: Start) -> tuple[FunctionRef, ...]:
    """Return the function that ``--module llama3 --config llama3_8b`` names, for torchtitan's own program.

    After torchtitan/config/manager.py:80-160 @b5bcd76: a module of its models or experiments, else any
    package that has a ``config_registry``, or that module itself.
    """
    module, name = (_last(start.rest, (flag,)) for flag in ("--module", "--config"))
    if module is None or name is None or not _TITAN.match(start.name.spelled):
        return ()
    path, function = (module.text or "").replace(".", "/"), name.text or ""
    if not _PACKAGE.match(path) or not function.isidentifier():
        return ()
    folders = ("torchtitan/models/", "torchtitan/experiments/", "torchtitan/experiments/rl/examples/", "")
    places = [f"{folder}{path}/config_registry.py" for folder in folders]
    return (FunctionRef(function, name.start, name.end, places=(*places, f"{path}.py")),)


def _choices(words: list[Word]) -> list[tuple[str, str | None]]:
    """Return the overrides whose key may be a group's: ``db=pg``, ``db@at.package=pg``, ``~db``."""
    choices: list[tuple[str, str | None]] = []
    for word in words:
        match = _CHOICE.match(word.spelled)
        if match is None or (word.pieces and word.pieces[0].unknown):
            continue
        key = match[1]
        if match[2]:
            choices.append((key, word.from_(match.end()).text))
        elif key.startswith("~") and word.text == key:
            choices.append((key, ""))
    return choices


def _home(start: Start) -> str:
    """Return the folder of the program's own file, as its name says."""
    name = start.name.spelled
    return name.rpartition(".")[0].replace(".", "/") if start.module else os.path.dirname(name)


def _from_here(word: Word) -> str:
    """Return what follows ``$PWD/``."""
    if not word.pieces:
        return ""
    first, *rest = word.pieces
    if first.unknown not in _HERE or uncertain(rest):
        return ""
    text = "".join(piece.text for piece in rest)
    return text.lstrip("/") if text.startswith("/") else ""


def _last(words: list[Word], flags: tuple[str, ...]) -> Word | None:
    """Return the last value of a flag, which must surely be there."""
    sure = [word for word in words if "=" in word.spelled or word.spelled not in flags or word.text]
    values = list(values_of(sure, flags))
    return values[-1] if values else None
