"""Other commands of a script that start as many processes as one that a fix moves to fewer GPUs.

They stop on those GPUs for the same reason. What no framework reads (an evaluation after the training) moves
along, and so does the same training in another branch of the script. Another one has a finding of its own,
which also keeps its batch, and is only told of.
"""

from __future__ import annotations

from cfglint.document.shell.processes import below, whole
from cfglint.document.tree import Scalar
from cfglint.record import Value
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.tree import Document
    from cfglint.repair.patch import Change
    from cfglint.repair.trials import Trials

_MACHINES = ("nodes", "num_machines")
_COUNTS = ("processes_per_node", "processes")


class Alike(Value):
    """The edits of commands that move along, and how many others have to be moved by fixes of their own."""

    edits: tuple[Edit, ...] = ()
    left: int = 0

    def titled(self, title: str) -> str:
        """Return what a fix does, with the other commands."""
        number = len(self.edits)
        return f"{title}, and as many in {number} more command{'s' * (number > 1)}" if number else title

    def effect(self) -> str:
        """Say what is left to do; nothing where nothing is."""
        several = self.left > 1
        what = f"{self.left} more trainings" if several else "another training"
        return f"{what} of the script start{'s' * (not several)} too many as well" if self.left else ""


def alike(trials: Trials, changes: Sequence[Change]) -> Alike:
    """Return the commands that start too many processes where some changes are made to one beside them."""
    document = trials.subject.document
    new = min((number for change in changes if (number := _fewer(change)) is not None), default=None)
    if document.format != "shell" or new is None or len(document.file.documents) < 2:
        return Alike()
    read = [subject.document for subject in trials.run.but().subjects(document.file, judge_broken=False)]
    moved = {(change.edit.start, change.edit.end) for change in changes}
    edits: dict[tuple[int, int], Edit] = {}
    left = set()
    for other, node in _counted(document):
        span = node.start, node.end
        if span in moved or (whole(node) or 0) <= new or span in edits:
            continue
        own = any(each.start == other.start for each in read)
        if own and not (len(changes) == 1 and _flags(other) == _flags(document)):
            left.add(span)
        elif document.file.text[node.start : node.end] == node.text:
            edits[span] = Edit(*span, str(new))
    return Alike(tuple(edits.values()), len(left))


def _flags(document: Document) -> list[str]:
    """Return the words of a command."""
    return [word.spelled for word in document.words]


def _fewer(change: Change) -> int | None:
    """Return to how many processes a change takes a command, where that is fewer."""
    old, new = (text.strip("\"' ") for text in (change.old or "", change.edit.new))
    counts = change.key.startswith("launch.") and not change.key.endswith(_MACHINES)
    numbers = counts and old.isdecimal() and new.isdecimal()
    return int(new) if numbers and int(new) < int(old) else None


def _counted(document: Document) -> Iterator[tuple[Document, Scalar]]:
    """Yield the other commands of a script with where their numbers of processes are written."""
    for other in document.file.documents:
        if other.start == document.start or other.root is None:
            continue
        nodes = (below(other.root, "launch", name) for name in _COUNTS)
        node = next((each for each in nodes if type(each) is Scalar and whole(each) is not None), None)
        if node is not None and node.start >= 0:
            yield other, node
