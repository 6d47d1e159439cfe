"""Flags that a command cuts short: argparse takes the beginning of one, where no other begins so."""

from __future__ import annotations

from cfglint.document.tree import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from cfglint.document.tree import Node


def spell_out(root: Node | None, flags: Collection[str], *, all_known: bool) -> None:
    """Put flags that are cut short under their whole names.

    Where not all flags are known, one that ends with a word may be another one, and the others stay under
    their short names too: they may be arguments of a class that is not here.
    """
    if not isinstance(root, Mapping):
        return
    for name in [name for name in root.entries if name not in flags and name != "launch"]:
        meant = [flag for flag in flags if flag.startswith(name) and (all_known or flag[len(name)].isalnum())]
        if len(meant) == 1 and meant[0] not in root.entries:
            root.entries[meant[0]] = root.entries.pop(name) if all_known else root.entries[name]
