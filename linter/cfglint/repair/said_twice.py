"""A script's own number of GPUs, where a repair moves processes that are said elsewhere.

``num_gpus=8`` may be but what the script computes steps or a batch with, while accelerate's file or the
command has the number of processes. The two stay equal: what is computed from it goes along.
"""

from __future__ import annotations

import re

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

_OWN, _STEPS = "gpus.here", "grad_accum"
_NAMED = r"(?:(?:n|num|nb|total)_?)?gpus(?:_per_node)?|gpu_?(?:num|count)|n_?proc(?:_per_node)?|world_size"
_SET = re.compile(rf"(?mi)^[ \t]*(?:export[ \t]+)?({_NAMED})=[\"']?([0-9]+)[\"']?[ \t]*(?:#.*)?$")


def with_variable(
    patch: Patch | None, repair: Repair, watched: Sequence[Judged], trials: Trials
) -> Patch | None:
    """Return a patch that moves the one variable with the old number along, where the script reads it."""
    facts = combined(repair.options) or {}
    if patch is None or patch.outside or len(watched) != 1 or not regroups(facts) or _STEPS in facts:
        return patch
    document = watched[0].subject.document
    old, new = watched[0].values[_OWN], trials.values(watched[0], facts)[_OWN]
    if document.format != "shell" or not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return patch
    text = document.file.text
    found = [each for each in _SET.finditer(text) if int(each[2]) == old and _is_read(text, each)]
    if new >= old or new != int(new) or len(found) != 1:
        return patch
    name, (start, end) = found[0][1], found[0].span(2)
    if any(a < end and start < b for a, b in patch.spans):
        return patch
    change = Change(Edit(start, end, str(int(new))), f"{name} to {int(new)}", name, found[0][2])
    wider = Patch([*patch.changes, change])
    return wider if len(document.file.documents) == 1 or trials.spares(wider.edits) else patch


def _is_read(text: str, found: re.Match[str]) -> bool:
    """Whether a variable is set once, and read afterwards."""
    name = re.escape(found[1])
    once = len(re.findall(rf"(?m)\b{name}=", text)) == 1
    return once and re.search(rf"\$\{{?{name}\b|[(*/ ]{name}[)*/ ]", text[found.end() :]) is not None
