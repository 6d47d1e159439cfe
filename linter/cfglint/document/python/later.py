"""Which keys a program with a config of Hydra's may read later, in branches that nobody knows.

Where it surely stops is stops.py's. This tells what else is missing once the first keys are there: what a
validation reads that comes after some steps. What may be caught is not gone through.
"""

from __future__ import annotations

import ast
from contextlib import suppress

from cfglint.document.python.reckon import OverError
from cfglint.document.python.stops import ON, Walk
from cfglint.document.python.surely import ABSENT, UNKNOWN, Known, Part, written_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.reckon import Frame, Keys


class Later(Walk):
    """All that may run of a program; ``absent`` has a place for each key that is read and not there."""

    absent: dict[str, str]
    _set: set[Keys]
    _gone: set[ast.AST]

    def keys(self) -> dict[str, str]:
        """Return the keys that may be read, and where; none where a config is laid over another."""
        self.absent, self._set, self._gone = {}, set(), set()
        with suppress(OverError, RecursionError):
            self.start()
        laid_over = any(written_over(file.text) for file, _ in self.files.values())
        return {} if laid_over else self.absent

    def enters(self, node: ast.FunctionDef) -> bool:
        """Go through each function once where it may be called."""
        before = node in self._gone
        if self.guessing:
            self._gone.add(node)
        return not self.guessing or not before

    def unknown(self, node: ast.stmt, frame: Frame) -> str:
        """Go through what may run; what it sets is not known then, and it goes on behind."""
        result = frame.result
        self.guessing += 1
        try:
            for body in _bodies(node):
                try:
                    self.block(body, frame)
                except OverError:
                    if self.left < 0:
                        raise
        finally:
            self.guessing -= 1
        frame.result = result if frame.result is result else UNKNOWN
        self.forget(node, frame)
        return ON

    def assign(self, target: ast.expr, value: object, frame: Frame) -> None:
        """Note which keys the program sets itself."""
        super().assign(target, value, frame)
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            owner = self.value(target.value, frame)
            own = target.attr if isinstance(target, ast.Attribute) else None
            name = self.value(target.slice, frame) if isinstance(target, ast.Subscript) else Known(own)
            if isinstance(owner, Part) and isinstance(name, Known):
                self._set.add((*owner.path, str(name.value)))

    def key(self, path: Keys, node: ast.AST, frame: Frame) -> object:
        """Note a key that is not there where it is read."""
        found = super().key(path, node, frame)
        if self.asked[path] is ABSENT and path not in self._set:
            place = f"{frame.file.path}:{node.lineno}"  # type: ignore[attr-defined]
            self.absent.setdefault(".".join(path), place)
        return found

    def halt(self, node: ast.AST, frame: Frame, *, key: str = "", raised: str = "") -> None:
        """Go on: a key is noted as it is read, and what is raised ends only its branch."""


def _bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(node, (ast.If, ast.For, ast.While)):
        return [node.body, node.orelse]
    return []
