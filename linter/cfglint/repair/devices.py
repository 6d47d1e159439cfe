"""The list of GPUs of a command (CUDA_VISIBLE_DEVICES), where a repair moves it to fewer processes.

A list with numbers that the machine does not have leaves the processes without a GPU, however few they are.
So it becomes the first GPUs that no other command of the script keeps for itself.
"""

from __future__ import annotations

from cfglint.document.shell.processes import VISIBLE, below
from cfglint.lang.types import is_number
from cfglint.repair.beside import taken_beside
from cfglint.repair.patch import Change, Patch
from cfglint.repair.price import regroups
from cfglint.repair.together import combined
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Trials

_OWN = "launched.here"
_VISIBLE = ("launch", "visible_gpus")


def with_devices(
    patch: Patch | None, repair: Repair, watched: Sequence[Judged], trials: Trials
) -> Patch | None:
    """Return a patch that gives a command's fewer processes GPUs that are there, one for each."""
    facts = combined(repair.options) or {}
    if patch is None or len(watched) != 1 or not regroups(facts):
        return patch
    document, there = watched[0].subject.document, watched[0].values["gpu.per_node"]
    old_number, number = watched[0].values[_OWN], trials.values(watched[0], facts)[_OWN]
    if not is_number(number) or not is_number(old_number) or number >= old_number:
        return patch
    node = below(document.root, *_VISIBLE)
    old = document.file.text[node.start : node.end] if node is not None and node.start >= 0 else ""
    numbers = [int(word) for word in old.split(",") if word.isdecimal()]
    spare = max(len(numbers) - int(old_number), 0)  # an engine may run on one that no process has
    new = min(int(number) + spare, there) if isinstance(there, int) else 0
    if node is None or len(numbers) < max(new, old.count(",") + 1) or not isinstance(there, int):
        return patch
    taken = taken_beside(watched[0])[0]
    free = [number for number in range(there) if number not in taken][:new]
    if (max(numbers) < there and not taken.intersection(numbers)) or len(free) < new:
        return patch
    if any(start < node.end and node.start < end for start, end in patch.spans):
        return patch
    told = ",".join(map(str, free))
    change = Change(Edit(node.start, node.end, told), f"{VISIBLE} to {told}", VISIBLE, old)
    wider = Patch([*patch.changes, change])
    return wider if len(document.file.documents) == 1 or trials.spares(wider.edits) else patch
