"""What a view's values are made of: places, computed values, and the marks for what is not there."""

from __future__ import annotations

from cfglint.document.scalars import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from cfglint.document.tree import Node
    from cfglint.document.view import View

    Path: TypeAlias = tuple[str | int | "All", ...]

DEEPEST_PATH = 200


class All:
    """In a path: every item of a list, every value of a mapping."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ALL"


class Absent:
    """Nothing stands at the path."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ALL = All()
ABSENT = Absent()


class Value:
    """A computed value in a node's place: a text put together, an environment variable, or a Missing."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class BudgetError(Exception):
    """The document stands for more values than anyone writes."""


if TYPE_CHECKING:
    Place: TypeAlias = tuple[Node | Value | None, Path]


def dotted(path: Path) -> str:
    """Return ``a.b[0].c``."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, str):
            parts.append(f".{part}" if parts else part)
        else:
            parts.append("[*]" if isinstance(part, All) else f"[{part}]")
    return "".join(parts)


class Record:
    """A mapping seen through a view."""

    __slots__ = ("path", "view")

    def __init__(self, view: View, path: Path) -> None:
        self.view = view
        self.path = path

    def get(self, name: str) -> object:
        """Return the value under ``name``."""
        return self.view.get((*self.path, name))

    def keys(self) -> list[str]:
        """Return the keys, merged ones behind the mapping's own."""
        return self.view.keys(self.path)

    def __repr__(self) -> str:
        return f"Record({dotted(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.view is other.view and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)


def index_of(part: object) -> int | None:
    """Return the number that a key of a reference spells, where it is one."""
    if isinstance(part, str) and len(part) < 10 and part.isascii() and part.removeprefix("-").isdigit():
        return int(part)
    return None


def mandatory(at: Path) -> Missing:
    """Return what ``???`` is."""
    return Missing((dotted(at),), f"{dotted(at)} is '???': to be set by the user", "missing")


def over_budget() -> Missing:
    """Return what is left where a document stands for too many values."""
    return Missing((), "the file's aliases and references stand for more values than are followed", "budget")
