"""The items of a defaults list of Hydra's, as texts spell them."""

from __future__ import annotations

import re

from cfglint.document.tree import Mapping, Node, Scalar, Sequence, target
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.layers import Source

_GLOBAL = "_global_"
_HEADER_CHARACTERS = 512


class Default(Record):
    """One item: ``_self_``, a config by its path, or a group with a name (or several, or None for none).

    ``node`` spells it, in the file that ``by`` brought in (None: the config itself).
    """

    group: str | None
    value: str | list[str] | None
    node: Scalar
    by: Source | None
    package: str | None
    optional: bool = False
    override: bool = False
    header: str | None = None
    base: str = ""  # the group that the list's file is in
    parent: str = ""  # the package that the list's file goes to

    def __post_init__(self) -> None:
        self.package = "" if self.package == "_here_" else self.package

    @property
    def is_self(self) -> bool:
        """Whether the entry is ``_self_``: the place of the file itself in its defaults list."""
        return self.group is None and self.value == "_self_"

    @property
    def name(self) -> str | None:
        """The config's name, without its group."""
        if isinstance(self.value, list) or self.value is None:
            return None
        return self.value if self.group is not None else self.value.rpartition("/")[2]

    def under(self, base: str, parent: str) -> None:
        """Say which file lists the item: the group that this is in, and its package."""
        self.base, self.parent = base, parent
        if self.package is not None and "_group_" in self.package:
            self.package = f"{_GLOBAL}.{self.package.replace('_group_', self.group_path.replace('/', '.'))}"

    @property
    def _relative(self) -> str:
        whole = self.group if self.group is not None else str(self.value).rpartition("/")[0]
        return whole.removeprefix("/")

    @property
    def group_path(self) -> str:
        """The group's path from the config folder."""
        absolute = (self.group if self.group is not None else str(self.value)).startswith("/")
        if absolute or not self.base:
            return self._relative
        return f"{self.base}/{self._relative}" if self._relative else self.base

    @property
    def path(self) -> str:
        """The config's path from the config folder, without its suffix."""
        group = self.group_path
        return f"{group}/{self.name}" if group else str(self.name)

    def final_package(self, *, header: bool = True) -> str:
        """Return the key that the config's content goes to; empty for the top."""
        package = self.package
        if package is None and header:
            package = self.header
        if package is None:
            package = self._relative.replace("/", ".")
        whole = package if not self.parent else f"{self.parent}.{package}" if package else self.parent
        at = whole.rfind(_GLOBAL)
        return whole if at < 0 else whole[at + len(_GLOBAL) + 1 :]

    @property
    def key(self) -> str:
        """The key by which an override means this item: ``group`` or ``group@package``."""
        group, package = self.group_path, self.final_package(header=False)
        return group if group.replace("/", ".") == package else f"{group}@{package or _GLOBAL}"


def items_of(named: Node, by: Source | None) -> list[Default]:
    """Return the items of a list as they are written."""
    listed = target(named)
    items = []
    for node in map(target, listed.items if isinstance(listed, Sequence) else []):
        if isinstance(node, Scalar):
            path, _, package = node.text.partition("@")
            items.append(Default(None, path, node, by, package or None))
        elif isinstance(node, Mapping) and len(node.entries) == 1:
            ((text, entry),) = node.entries.items()
            items.append(_grouped(text, entry.key, target(entry.value), by))
    return items


def _grouped(text: str, key: Scalar, value: Node | None, by: Source | None) -> Default:
    head, _, package = text.partition("@")
    *words, group = head.split(" ")
    chosen: str | list[str] | None = None
    node = key
    if isinstance(value, Sequence):
        chosen = [item.text for item in value.items if isinstance(item, Scalar)]
    elif isinstance(value, Scalar):
        null = not value.style and value.text in ("", "~", "null", "Null", "NULL")
        chosen = None if null else value.text
        node = key if null else value
    package = package.partition(":")[0]
    return Default(group, chosen, node, by, package or None, "optional" in words, "override" in words)


def header_of(text: str) -> str | None:
    """Return the package that a file's ``# @package`` comment names, made absolute; None without one."""
    for line in text[:_HEADER_CHARACTERS].splitlines():
        words = line.strip().lstrip("#").split()
        if not line.strip():
            continue
        if re.match(r"\s*#\s*@", line) is None:
            return None
        if len(words) == 2 and words[0] == "@package":
            package = words[1]
            return package if f"{package}.".startswith(f"{_GLOBAL}.") else f"{_GLOBAL}.{package}"
    return None


def several(value: str) -> str | list[str] | None:
    """Return what an override chooses: a name, several, or None for none."""
    if value.startswith("[") and value.endswith("]"):
        return [name.strip() for name in value[1:-1].split(",") if name.strip()]
    return None if value in ("null", "") else value
