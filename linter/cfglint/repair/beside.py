"""How many GPUs the commands of a script take that run at the same time."""

from __future__ import annotations

from cfglint.document.shell.processes import below, whole
from cfglint.document.tree import Scalar
from cfglint.lang.types import is_number
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cfglint.document.tree import Document
    from cfglint.engine.subject import Judged
    from cfglint.repair.trials import Trials

_BESIDE = ("launch", "beside")
_KEPT = ("launch", "kept_gpus")
_VISIBLE, _RUNNING = ("launch", "visible_gpus"), ("launch", "running")


class _Part(Value):
    """The GPUs of one command; ``least`` is the number of which its list has the last."""

    number: int
    least: int
    running: bool


def gpus_together(trials: Trials, judged: Judged) -> int | None:
    """Return the GPUs of all commands that run beside this one, with its own: 0 where none does.

    None where one of them has a number that is not known.
    """
    if judged.subject.view.has(_BESIDE) is not True:
        return 0
    run, file = trials.run.but(), judged.subject.document.file
    subjects = run.subjects(file, judge_broken=False)
    launched = [document for document in file.documents if below(document.root, "launch") is not None]
    parts = []
    for subject in subjects:
        values = run.on(judged.target, subject).values
        part = _part(subject.document, values["num_gpus"])
        if part is None:
            return None
        parts.append(part)
    return _total(parts) if len(parts) == len(launched) else None


def taken_beside(judged: Judged) -> tuple[set[int], int]:
    """Return the GPUs that other commands keep while this one runs, and the line of the first of them."""
    document = judged.subject.document
    node = below(document.root, *_KEPT)
    if not isinstance(node, Scalar):
        return set(), 0
    return {int(word) for word in node.text.split(",")}, document.file.lines.position(node.start)[0]


def is_taken(judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether facts move a command to the first GPUs, which one beside it has."""
    least = facts.get("$.launch.visible_least")
    return isinstance(least, int) and not taken_beside(judged)[0].isdisjoint(range(least))


def _part(document: Document, own: object) -> _Part | None:
    """Return what a command takes: the GPUs of its list, or those that it needs."""
    running = below(document.root, *_RUNNING) is not None
    node = below(document.root, *_VISIBLE)
    listed = _listed(document, node.start, node.end) if node is not None else []
    number = (whole(node) or 0) if listed else own
    if (running and document.repeated) or not is_number(number) or number != int(number):
        return None
    return _Part(int(number), max(listed, default=-1) + 1, running)


def _listed(document: Document, start: int, end: int) -> list[int]:
    """Return the numbers of a list of GPUs, nothing where it is none."""
    words = document.file.text[start:end].strip("\"' ").split(",") if 0 <= start < end else []
    return [int(word) for word in words] if all(word.strip().isdecimal() for word in words) else []


def _total(parts: Sequence[_Part]) -> int:
    def most(some: Iterable[_Part]) -> int:
        return max((part.number for part in some), default=0)

    running = [part for part in parts if part.running]
    together = sum(part.number for part in running) + most(part for part in parts if not part.running)
    return max(together, *(part.least for part in parts))
