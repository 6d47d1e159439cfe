"""Whether a program hands its flags to the PPOConfig of TRL before v0.12, which divides its batch.

That is ``exact_div(batch_size, mini_batch_size * gradient_accumulation_steps)``
(trl/trainer/ppo_config.py:217-222 @v0.11.4); that of today has other fields, and its trainer no ``step``.
"""

from __future__ import annotations

import re

from cfglint.document.python.values import Flag, Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.modules import Linked

_STEPS = re.compile(r"\w*trainer\w*\.step\(")
_OLD = {
    "ppo_epochs",
    "steps",
    "optimize_cuda_cache",
    "early_stopping",
    "target_kl",
    "init_kl_coef",
    "log_with",
}
_BATCH, _MINI, _PASSES = "batch_size", "mini_batch_size", "gradient_accumulation_steps"


def batch_of_ppo(program: Linked) -> dict[str, str]:
    """Return what is noted of a command with such flags: ``old_ppo``, and the sizes that are no flags.

    A mini-batch that is not known counts as 1: the passes have to divide the batch in any case.
    """
    made = [
        call for call in program.calls.values() if call.kind.startswith("trl.") and call.name == "PPOConfig"
    ]
    if len(made) != 1:
        return {}
    (config,) = made
    if _OLD.isdisjoint(config.items) and not any(map(_STEPS.search, program.texts())):
        return {}
    if "parsed" in config.calls:
        return {"old_ppo": "true"}
    sizes = {name: _size(config.get(name), name) for name in (_BATCH, _MINI, _PASSES)}
    if sizes[_PASSES] != "" or sizes[_BATCH] is None:
        return {}
    mini = "1" if sizes[_MINI] is None or "forward_batch_size" in config.items else sizes[_MINI]
    said = {"ppo_batch": sizes[_BATCH], "ppo_mini": mini}
    return {"old_ppo": "true", **{key: size for key, size in said.items() if size}}


def _size(value: object, name: str) -> str | None:
    """Return a number that a program has itself; empty for the flag of that name, None for anything else."""
    if isinstance(value, Flag):
        return "" if value.name == name else None
    return str(value.value) if isinstance(value, Literal) and type(value.value) is int else None
