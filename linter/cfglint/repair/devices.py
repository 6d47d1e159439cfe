"""The list of GPUs of a command, where a repair moves it to fewer processes, or to more.

A list with numbers that the machine does not have leaves the processes without a GPU, however few they are,
and so does one that is shorter than they are many.
So CUDA_VISIBLE_DEVICES becomes the first GPUs that no other command of the script keeps for itself, and
accelerate's ``gpu_ids``, of which it makes that list, the same.
"""

from __future__ import annotations

from cfglint.document.shell.processes import VISIBLE, below
from cfglint.lang.types import is_number
from cfglint.repair.beside import taken_beside
from cfglint.repair.invert import Written
from cfglint.repair.patch import Change, Patch
from cfglint.repair.price import regroups
from cfglint.repair.together import combined
from cfglint.repair.write import Writer
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Trials

_OWN = "gpus.here"
_VISIBLE = ("launch", "visible_gpus")
# accelerate's flag goes before its file's key (rules/launch.rules: DOC125); the last is in that file itself.
_FLAGS = ("launch", "flags")
_IDS = ((*_FLAGS, "gpu_ids"), (*_FLAGS, "config_file", "gpu_ids"), ("gpu_ids",))


def with_devices(
    patch: Patch | None, repair: Repair, watched: Sequence[Judged], trials: Trials
) -> Patch | None:
    """Return a patch that gives a command's processes GPUs that are there, one for each.

    None where it has more of them than its list, and no room for a longer one.
    """
    facts = combined(repair.options) or {}
    there = watched[0].values["gpu.per_node"] if len(watched) == 1 and regroups(facts) else None
    if patch is None or not isinstance(there, int):
        return patch
    document = watched[0].subject.document
    old_number, number = watched[0].values[_OWN], trials.values(watched[0], facts)[_OWN]
    if not (is_number(number) and is_number(old_number) and number != old_number):
        return patch
    node = below(document.root, *_VISIBLE)
    if node is None:
        return _with_ids(patch, repair, watched[0], trials, min(int(number), there))
    old = document.file.text[node.start : node.end] if node.start >= 0 else ""
    numbers = [int(word) for word in old.split(",") if word.isdecimal()]
    spare = max(len(numbers) - int(old_number), 0)  # an engine may run on one that no process has
    new = min(int(number) + spare, there)
    taken = taken_beside(watched[0])[0]
    free = [number for number in range(there) if number not in taken][:new]
    able = len(free) == new and not any(start < node.end and node.start < end for start, end in patch.spans)
    if number > old_number:
        if not numbers or len(numbers) >= new:
            return patch
        kept: Patch | None = None
    else:
        lies = bool(numbers) and max(numbers) < there and not taken.intersection(numbers)
        able, kept = able and not lies and len(numbers) >= max(new, old.count(",") + 1), patch
    if not able:
        return kept
    told = ",".join(map(str, free))
    change = Change(Edit(node.start, node.end, told), f"{VISIBLE} to {told}", VISIBLE, old)
    wider = Patch([*patch.changes, change])
    return wider if len(document.file.documents) == 1 or trials.spares(wider.edits) else patch


def _with_ids(patch: Patch, repair: Repair, judged: Judged, trials: Trials, new: int) -> Patch:
    """Return a patch with accelerate's own list of GPUs, where that names some that are not there."""
    view, there = judged.subject.view, judged.values["gpu.per_node"]
    own = judged.subject.framework == "accelerate"
    path = next((each for each in _IDS if view.has(each) and (len(each) > 1 or own)), None)
    numbers = [] if path is None else str(view.get(path)).split(",")
    if path is None or not isinstance(there, int) or not all(word.strip().isdecimal() for word in numbers):
        return patch
    if len(numbers) == new and max(map(int, numbers)) < there:
        return patch
    taken = taken_beside(judged)[0]
    free = [str(number) for number in range(there) if number not in taken][:new]
    if len(free) < new:
        return patch
    # A variable with the list may have other readers, so that it stays one.
    plain = new == there and not own and not view.has(_IDS[0])
    told = Written(path if own else _IDS[0], "all" if plain else ",".join(free))
    writer = Writer(judged.subject, trials.run.finder.origins(judged))
    written = [*repair.written, told]
    whole = writer.patch(written)
    if whole is None:
        return patch
    keys = {change.key for change in whole.changes}
    wider = Patch([*whole.changes, *(change for change in patch.changes if change.key not in keys)])
    alone = len(judged.subject.document.file.documents) == 1
    return wider if alone or trials.spares(wider.edits) else patch
