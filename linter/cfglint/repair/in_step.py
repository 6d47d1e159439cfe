"""Accumulation steps of a script's other commands, where a repair moves the processes that all of them read.

A script that trains in one of several ways has a command for each, and one variable for their GPUs. More
steps in one of them keep that one's batch alone: each of the others gets as many times its own.
"""

from __future__ import annotations

from cfglint.document.compose import edited
from cfglint.document.tree import Scalar, walk
from cfglint.lang.types import is_number
from cfglint.record import replace
from cfglint.repair.others import AS_WELL, NEED_OTHERS
from cfglint.repair.patch import Change, Patch
from cfglint.repair.tracks import worse
from cfglint.repair.write import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged, Subject
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Trials
    from cfglint.text import Edit

_STEPS, _BATCH = "grad_accum", "effective_batch_size"
_MOST = 20  # commands of a script


def in_step(
    patch: Patch | None, repair: Repair, watched: Sequence[Judged], trials: Trials
) -> tuple[Patch | None, Repair]:
    """Return a patch that keeps other commands' batches, too; its repair is a risk where none does."""
    option = next((each for each in repair.options if each.unbalanced), None)
    if option is None:
        return patch, repair
    able = patch is not None and not patch.outside and len(watched) == 1 and _STEPS in option.exchanged
    changes = _changes(patch, watched[0], trials) if able and patch is not None else []
    if changes:
        effects = [AS_WELL if each == NEED_OTHERS else each for each in option.effects]
        new = replace(option, unbalanced=False, effects=effects)
    else:
        new = replace(option, unbalanced=False, risk=worse(option.risk, "optimization"))
    repair = replace(repair, options=tuple(new if each is option else each for each in repair.options))
    if patch is None or not changes:
        return patch, repair
    number = len(changes)
    told = f"those of {number} more command{'s' * (number > 1)} to as many times their own"
    return Patch([*patch.changes, replace(changes[0], title=told), *changes[1:]]), repair


def _changes(patch: Patch, judged: Judged, trials: Trials) -> list[Change]:
    """Return the changes of the commands that read what a patch moves; none where a batch may not stay."""
    file, own = judged.subject.document.file, judged.subject.document.index
    read = {each.document.index: each for each in trials.run.but().subjects(file, judge_broken=False)}
    changes: list[Change] = []
    readers: list[Subject] = []
    for document in file.documents:
        nodes = () if document.root is None or document.index == own else walk(document.root)
        if patch.spans.isdisjoint((node.start, node.end) for node in nodes if isinstance(node, Scalar)):
            continue
        subject = read.get(document.index)
        change = (
            None
            if subject is None or len(readers) >= _MOST
            else _change(patch.edits, subject, judged, trials)
        )
        if subject is None or change is None:
            return []
        readers.append(subject)
        changes += change
    edits = (*patch.edits, *(change.edit for change in changes))
    kept = all(
        _batch(subject, edits, judged, trials) == _batch(subject, (), judged, trials) for subject in readers
    )
    return changes if kept else []


def _change(edits: Sequence[Edit], subject: Subject, judged: Judged, trials: Trials) -> list[Change] | None:
    """Return the change of a command's own steps after some edits; None where its batch is not known."""
    before, after = (_batch(subject, each, judged, trials) for each in ((), edits))
    mine = trials.run.on(judged.target, subject)
    steps = mine.values[_STEPS]
    if not (is_number(before) and is_number(after) and is_number(steps)) or not after:
        return None
    new = steps * before / after
    if new == steps:
        return []
    writer = Writer(subject, trials.run.finder.origins(mine))
    way = writer.writes(_STEPS, int(new)) if new == int(new) else None
    more = None if way is None else writer.patch(way.keys)
    return None if more is None else [replace(change, title="") for change in more.changes]


def _batch(subject: Subject, edits: Sequence[Edit], judged: Judged, trials: Trials) -> object:
    """Return the effective batch of a command after some edits."""
    again = edited(subject.document, edits) if edits else None
    if edits and again is None:
        return None
    one = trials.run.subject(again, subject.framework) if again is not None else subject
    return trials.run.on(judged.target, one).values[_BATCH]
