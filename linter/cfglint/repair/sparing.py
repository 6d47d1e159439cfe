"""Whether a repair leaves the other documents of a file as they are judged."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.repair.found import Repair
    from cfglint.repair.patch import Patch
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Writer


def are_spared(trials: Trials, writer: Writer, repair: Repair, patch: Patch | None) -> bool:
    """Whether a repair breaks nothing in other documents; of one that is not written, what could be."""
    if not any(option.several for option in repair.options):
        return True
    patches = [patch] if patch is not None else [writer.patch(each.written) for each in repair.options]
    edits = dict.fromkeys(edit for each in patches if each is not None for edit in each.edits)
    return not edits or trials.spares(tuple(edits))
