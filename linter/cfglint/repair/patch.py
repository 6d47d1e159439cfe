"""The edits that make a repair, and what they do in words."""

from __future__ import annotations

import re

from cfglint.document.rewritten import maker_of
from cfglint.record import Record, field
from cfglint.text import OutsideEdit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.trace import Trace
    from cfglint.document.view import View
    from cfglint.facts import Steps
    from cfglint.text import Edit

_VARIABLE = re.compile(r"(?:^|[\s;])(\w+)=\(?[\"']?(?:localhost:)?\Z")  # what is set to a list of GPUs
# What a number of processes or machines is said by: a variable, maybe with a default, or a launcher's flag.
_NAMED = re.compile(r"(?:^|[\s;&(])(?:(\w+)=[\"']?(?:\$\{\w+:?-)?|(--?[A-Za-z][\w-]*)(?:=|[ \t]+)[\"']?)\Z")
_NUMBERS = (("processes",), ("processes_per_node",), ("nodes",))


class Change(Record):
    """An edit, what it does in words, its key, the old text that it replaces, and other keys that read it.

    One that is ``removed`` is no longer there. ``config`` is the file that has to say it where the command of
    the edit takes nothing more: the edit then only shows what comes of it.
    """

    edit: Edit
    title: str
    key: str
    old: str | None = None
    readers: tuple[str, ...] = ()
    removed: bool = False
    config: str = ""

    @property
    def file(self) -> str:
        """The other file that has to be edited; empty for the document's own."""
        return self.config or (self.edit.file if isinstance(self.edit, OutsideEdit) else "")


class Patch(Record):
    """The edits that make a repair."""

    changes: list[Change] = field(factory=list)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the document."""
        return tuple(change.edit for change in self.changes)

    @property
    def own(self) -> list[Change]:
        """The changes of the document's own file, where no other one has to be edited."""
        return [] if self.outside else self.changes

    @property
    def spans(self) -> set[tuple[int, int]]:
        """Where the document's own file is edited."""
        return {(edit.start, edit.end) for edit in self.edits if not isinstance(edit, OutsideEdit)}

    @property
    def outside(self) -> bool:
        """Whether another file has to be edited, too: what is proven, and only shown."""
        return any(change.file for change in self.changes)

    @property
    def title(self) -> str:
        """What the patch does, with the other keys that read what it changes."""
        told = [change for change in self.changes if change.title]
        if len(told) == 1 and not told[0].removed and not told[0].file:
            (only,) = told
            return f"set {only.title}" + (f", which {_reading(only.readers)} too" if only.readers else "")
        files: dict[str, list[Change]] = {}
        for change in told:
            if not change.removed:
                files.setdefault(change.file, []).append(change)
        own = files.pop("", [])
        within = [f"{', '.join(map(_with_readers, there))} in {_place(there)}" for there in files.values()]
        titles = [*within, *map(_with_readers, own)]
        gone = [name for change in told if change.removed for name in change.title.split(", ")]
        return joined(titles, gone)


def _with_readers(change: Change) -> str:
    return change.title + (f" ({_reading(change.readers)} it too)" if change.readers else "")


def _place(changes: list[Change]) -> str:
    """Return the other script that some changes are in; with the line of a single one."""
    edit = changes[0].edit
    if len(changes) > 1 or not isinstance(edit, OutsideEdit):
        return changes[0].file
    line = edit.text.count("\n", 0, edit.start) + 1
    return f"{changes[0].file}:{line}"


def joined(titles: list[str], gone: list[str]) -> str:
    """Return in words what is set and what is removed."""
    parts = [f"{verb} {_listed(each)}" for verb, each in (("set", titles), ("remove", gone)) if each]
    return ", and ".join(parts)


def _listed(texts: list[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _reading(readers: tuple[str, ...]) -> str:
    named = ", ".join(readers[:3]) + (" and others" if len(readers) > 3 else "")
    return f"{named} read{'s' * (len(readers) == 1)}"


def list_called(path: Steps, text: str, at: int) -> str:
    """Return what a list of GPUs is called: the variable that has it, or where it is said."""
    if path[-1] in ("visible_gpus", "visible_least"):
        return "CUDA_VISIBLE_DEVICES"
    before = text[text.rfind("\n", 0, at) + 1 : at]
    variable = _VARIABLE.search(before)
    included = "include" in path or before.endswith(":")
    return variable[1] if variable else "the GPUs of --include" if included else "the script's list of GPUs"


def asked_by(path: Steps, text: str, at: int) -> str:
    """Return by what a script says a value: an option of its job (``#SBATCH --nodes``); else nothing.

    Of a number of processes or machines, also the variable, or the flag of a launcher.
    """
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if line.startswith("#SBATCH"):
        return line.strip().rstrip("= ")
    named = _NAMED.search(line) if path[0] == "launch" and path[1:] in _NUMBERS else None
    return named[1] or named[2] if named is not None else ""


def over(trace: Trace) -> str:
    """Say what a value goes over; nothing of a program's own default, which nobody wrote."""
    place, _, _ = trace.where.partition(" through ")
    return "" if trace.file.path.endswith(".py") else f" (over {place})"


def told_where(file: str, view: View) -> str:
    """Return where keys of another file are to be changed: in the program that writes it, if one does."""
    made = maker_of(view.document, file) if view.document.format == "shell" else ""
    return f"{made} (which writes {file.rpartition('/')[2]} anew)" if made else file
