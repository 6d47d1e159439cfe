"""What was seen of a run, given by ``--set observed.NAME=VALUE``: facts of every file, not keys of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.overrides import read_override
from cfglint.document.scalars import PYYAML, resolve
from cfglint.document.tree import Scalar
from cfglint.document.view import ABSENT
from cfglint.errors import UsageError, did_you_mean
from cfglint.facts import stated
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.lang.pack import Pack

PREFIX = "observed."


def parted(pack: Pack, overrides: Sequence[str]) -> tuple[tuple[str, ...], dict[str, tuple[object, str]]]:
    """Return the overrides that are for the file, and the observations with their source."""
    kept: list[str] = []
    seen: dict[str, tuple[object, str]] = {}
    for text in overrides:
        if text.lstrip("+").startswith(PREFIX):
            name, value = _observation(pack, text)
            seen[name] = value, f"--set {text}"
        else:
            kept.append(text)
    return tuple(kept), seen


def _observation(pack: Pack, text: str) -> tuple[str, object]:
    override = read_override(text)
    name = ".".join(override.keys)
    if name not in pack.facts:
        known = [fact for fact in pack.facts if fact.startswith(PREFIX)]
        raise UsageError(f"--set {text}: nothing observed is named {name!r}{did_you_mean(name, known)}")
    node = override.value
    value = stated(pack, name, resolve(node, PYYAML)) if isinstance(node, Scalar) else ABSENT
    if value is ABSENT or needs_of(value):
        share = pack.facts[name][3] == 1
        wanted = "a share, such as 8% or 0.08" if share else "a number, such as 4500"
        raise UsageError(f"--set {text}: {name} is {wanted}")
    return name, value
