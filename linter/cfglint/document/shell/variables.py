"""The variables of a script on its way: what a branch or a function changes can be taken back."""

from __future__ import annotations

from cfglint.budget import spend
from cfglint.document.shell.source import SCRIPT
from cfglint.document.shell.words import Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.document.shell.words import Pieces


class Variables(dict[str, "Pieces | Array"]):
    """The variables of a script, which can be set back: what a branch costs is what it changes."""

    __slots__ = ("_changed", "_snapshot")

    def __init__(self, variables: Mapping[str, Pieces | Array]) -> None:
        super().__init__(variables)
        self._changed: dict[str, Pieces | Array | None] = {}  # with what each was worth; None: nothing
        self._snapshot: dict[str, Pieces | Array] | None = None

    def __setitem__(self, name: str, value: Pieces | Array) -> None:
        if name not in self._changed:
            self._changed[name] = self.get(name)
        self._snapshot = None
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        if name in self:
            self._changed.setdefault(name, self[name])
            self._snapshot = None
            super().__delitem__(name)

    def restore(self, values: dict[str, Pieces | Array | None]) -> None:
        """Give variables the values that they had; None is none."""
        for name, value in values.items():
            if value is None:
                del self[name]
            else:
                self[name] = value

    def set(self, values: Mapping[str, Pieces | Array]) -> None:
        """Set several variables."""
        for name, value in values.items():
            self[name] = value

    def begin(self) -> dict[str, Pieces | Array | None]:
        """Begin a way that may be taken back; returns what `undo` needs."""
        before, self._changed = self._changed, {}
        return before

    def undo(self, before: dict[str, Pieces | Array | None]) -> dict[str, Pieces | Array | None]:
        """Set back what changed since `begin`; returns what it had become."""
        changes = self._changed
        changed = {name: self.get(name) for name in changes}
        self.restore(changes)
        self._changed = before
        return changed

    def snapshot(self) -> dict[str, Pieces | Array]:
        """Return all variables as they are now."""
        if self._snapshot is None:
            spend(len(self), SCRIPT)
            self._snapshot = dict(self)
        return self._snapshot


def added(old: Pieces | Array, new: Pieces | Array) -> Pieces | Array:
    """Return what ``+=`` makes of a variable."""
    spend(1 + (len(old.items) if isinstance(old, Array) else len(old)) // 16, SCRIPT)
    if isinstance(old, Array) and isinstance(new, Array):
        return Array([*old.items, *new.items])
    if isinstance(old, Array):
        return Array([(*(old.items[0] if old.items else ()), *new), *old.items[1:]])  # type: ignore[misc]
    if isinstance(new, Array):
        return Array([old, *new.items] if old else new.items)
    return (*old, *new)
