"""What people say of a document, beside what it sets: its name, its comments, and its program's words."""

from __future__ import annotations

from itertools import takewhile

from cfglint.document.tree import Mapping as Tree
from cfglint.document.tree import Scalar, target
from cfglint.schema.judge import keys_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Subject

_LONGEST_HEAD = 4000  # characters of a comment that a file starts with
_SHELVED = "sibling_"
_ON = ("true", "yes", "on", "1")
_SWITCH = "use_"


def said(subject: Subject, kind: str) -> object:
    """Return a file's name, its program or the comment that it starts with; None for a list of mistakes."""
    document = subject.document
    if kind == "name":
        return document.file.path.rpartition("/")[2]
    if kind == "program":
        return _program(subject)
    if kind.startswith(_SHELVED):
        others = document.shelved() if document.shelved is not None else {}
        return others.get(kind.removeprefix(_SHELVED), "")
    if kind not in ("head", "opening"):
        return _own_optimizer(subject) if kind == "own_optimizer" else None
    start = 0 if kind == "opening" else document.start
    lines = document.file.text[start : start + _LONGEST_HEAD].splitlines()
    return "\n".join(takewhile(lambda line: not line.strip() or line.lstrip()[0] == "#", lines))


def _program(subject: Subject) -> str:
    document = subject.document
    if document.program is not None:
        return str(document.program.file.text)
    return "" if document.namesake is None or subject.is_launch else document.namesake()


def _own_optimizer(subject: Subject) -> str:
    """Return a switch that is on and makes an optimizer in the project's copy of the framework.

    No release has it. Where no code here reads it, it may, too.
    """
    root, known = subject.view.root, keys_of(subject.framework)
    for name, entry in root.entries.items() if isinstance(root, Tree) and known else ():
        value = target(entry.value)
        on = isinstance(value, Scalar) and value.text.lower() in _ON
        if on and name.startswith(_SWITCH) and name not in known:
            makes = subject.document.makes_optimizer
            if makes is None or makes(name) is not False:
                return name
    return ""
