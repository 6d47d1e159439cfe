"""Hydra's composition: the files of a defaults list, in its order, each at its package, under the overrides.

After hydra/_internal/defaults_list.py of 1.3, by its rules from ``version_base`` 1.2 on. A file that is not
here, and is none that the framework brings, leaves what it would say unknown.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from cfglint.document.document import read_text
from cfglint.document.hydra_list import Default, header_of, items_of
from cfglint.document.interpolation import MalformedError, Reference, parse
from cfglint.document.layers import Source, Trouble, enter
from cfglint.document.library import same
from cfglint.document.tree import Alias, Entry, Mapping, Scalar, Sequence, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    from cfglint.document.compose import Way
    from cfglint.document.document import Document, File
    from cfglint.document.layers import Layers
    from cfglint.document.library import Library
    from cfglint.document.tree import Node

MAX_DEPTH = 20
MAX_ITEMS = 500


def compose_hydra(
    layers: Layers,
    document: Document,
    library: Library | None,
    way: Way,
    overrides: Listed[str],
    by: Source | None = None,
) -> Listed[str]:
    """Give ``layers`` the composed tree; returns the overrides that choose no group.

    ``by`` is how the document's own file came in, where a launch names it.
    """
    root = document.root
    assert isinstance(root, Mapping)
    composer = _Composer(layers, document.file, library, way, by)
    left = composer.take(overrides, items_of(root.entries["defaults"].value, by))
    composer.primary(root)
    left = [text for text in left if text[:1] != "~" or text[1:].partition("=")[0] not in composer.deleted]
    whole = composer.merged()
    if isinstance(whole, Mapping):
        composed = layers.like(whole)
        composed.entries = {name: entry for name, entry in effective(whole).items() if name != "hydra"}
        if composer.known:
            composed.entries["defaults"] = Entry(root.entries["defaults"].key, composer.known_bases(root))
        whole = composed
    layers.root = whole
    return left


def compose_under(
    layers: Layers,
    document: Document,
    library: Library | None,
    way: Way,
    by: Source,
    flags: Mapping,
    choices: Listed[tuple[str, str | None]],
) -> Mapping:
    """Compose the config that a command names, with the groups that its overrides choose.

    Returns the overrides that set values. What a choice that is not known would bring stays open.
    """
    root = document.root
    assert isinstance(root, Mapping)
    items = items_of(root.entries["defaults"].value, by)
    listed = {item.group.removeprefix("/") for item in items if item.group is not None}
    said: dict[str, str] = {}
    for key, name in choices:
        bare = key.lstrip("+~")
        if key.startswith("~") and name == "":
            said[key] = bare
        elif name is not None:
            said[f"{key.removeprefix('++')}={name}"] = bare
        elif bare.partition("@")[0] in listed or "@" in bare:
            said[f"~{bare}"] = bare
            layers.unread[()] = bare
    left = compose_hydra(layers, document, library, way, tuple(said), by)
    for text, key in said.items():
        if text not in left:
            flags = _without(layers, flags, key.replace("/", ".").split("."))
    return flags


def _without(layers: Layers, flags: Mapping, path: list[str]) -> Mapping:
    """Return overrides without one that chose a group; what is set below that stays."""
    entry = flags.entries.get(path[0])
    if entry is None or (len(path) == 1 and isinstance(entry.value, Mapping)):
        return flags
    rest = layers.like(flags)
    rest.entries = dict(flags.entries)
    inner = _without(layers, entry.value, path[1:]) if isinstance(entry.value, Mapping) else None
    if inner is not None and inner.entries:
        rest.entries[path[0]] = Entry(entry.key, inner)
    else:
        del rest.entries[path[0]]
    return rest


class _Choice:
    """What an override on the command line chooses for a group."""

    __slots__ = ("node", "value")

    def __init__(self, value: str | list[str] | None, node: Scalar) -> None:
        self.value = value
        self.node = node


class _Composer:
    def __init__(
        self, layers: Layers, file: File, library: Library | None, way: Way, by: Source | None
    ) -> None:
        self.by = by
        self.layers = layers
        self.file = file
        self.library = library
        self.way = way
        self.known: list[Default] = []  # what comes with the framework, and is not here
        self.folder = os.path.dirname(file.path)
        self.search = [self.folder]
        self.chosen: dict[str, _Choice] = {}  # by override key: the first to say so wins
        self.choices: dict[str, str] = {}
        self.deletions: dict[str, str | None] = {}
        self.deleted: set[str] = set()
        self.appended: list[Default] = []
        self.result: list[tuple[Default, Node]] = []

    # ── overrides ──────────────────────────────────────────────────────────────────────────────────────
    def take(self, overrides: Listed[str], items: list[Default]) -> list[str]:
        """Take the overrides that choose a group, and return the others."""
        listed = {item.group.removeprefix("/") for item in items if item.group is not None}
        left = []
        for text in overrides:
            sign = text[: len(text) - len(text.lstrip("+~"))]
            key, equals, value = text[len(sign) :].partition("=")
            group, at, package = key.partition("@")
            name = value.strip()
            grouped = bool(at) or "/" in group or group in listed
            if not grouped and sign != "~" and equals and self.found(f"{group}/{name}") is None:
                left.append(text)
                continue
            if not grouped and sign == "~":
                left.append(text)  # a group that only another file lists, or a key: `primary` finds out
            node = Scalar(name, 0, 0, origin=f"--set {text}")
            if sign == "~":
                self.deletions[key] = name if equals else None
            elif sign == "+":
                added = Default(group, _several(name), node, None, package or None)
                added.append = True
                self.appended.append(added)
            else:
                self.chosen[key] = _Choice(_several(name), node)
        return left

    # ── files ──────────────────────────────────────────────────────────────────────────────────────────
    def found(self, path: str) -> File | None:
        """Return the file of a config path in the first folder of the search path that has it."""
        if self.library is None or not path or "${" in path:
            return None
        name = path if path.endswith((".yaml", ".yml")) else f"{path}.yaml"
        for folder in self.search:
            file = self.library.file(os.path.join(folder, name))
            if file is not None:
                return file
        return None

    def _look_above(self, items: list[Default]) -> str:
        """Find the config folder: the config's own, or one above that has what the list names from the top.

        Returns the group that the config then is in.
        """
        absolute = [
            d for d in items if (d.group or str(d.value)).startswith("/") and isinstance(d.value, str)
        ]
        if self.library is None or not absolute or any(self._from_top(d) for d in absolute):
            return ""
        top = self.library.root(self.folder)
        at = os.path.abspath(self.folder)
        while top is not None and at != top:
            at = os.path.dirname(at)
            self.search[0] = at if os.path.isabs(self.file.path) else os.path.relpath(at)
            if any(self._from_top(d) for d in absolute):
                inside = os.path.relpath(os.path.abspath(self.folder), at)
                return inside.replace(os.sep, "/")
        self.search[0] = self.folder
        return ""

    def _from_top(self, item: Default) -> File | None:
        path = f"{item.group}/{item.value}" if item.group is not None else str(item.value)
        return self.found(path.removeprefix("/"))

    # ── the tree ───────────────────────────────────────────────────────────────────────────────────────
    def primary(self, root: Mapping) -> None:
        """Walk the config's own list."""
        self._add_search_path(root)
        items = items_of(root.entries["defaults"].value, self.by)
        group = self._look_above(items)
        name = os.path.basename(self.file.path).rpartition(".")[0]
        first = Default(None, f"{group}/{name}" if group else name, Scalar(name, 0, 0), self.by, None)
        first.header = header_of(self.file.text)
        self.result += self._list(first, root, items, 0, fixed=False, primary=True)

    def _add_search_path(self, root: Mapping) -> None:
        node: Node | None = root
        for key in ("hydra", "searchpath"):
            entry = effective(node).get(key) if isinstance(node, Mapping) else None
            node = None if entry is None else entry.value
            node = node.target if isinstance(node, Alias) else node
        for item in node.items if isinstance(node, Sequence) else []:
            if isinstance(item, Scalar) and item.text.startswith("file://") and "${" not in item.text:
                self.search.append(item.text.removeprefix("file://"))

    def _list(
        self,
        parent: Default,
        root: Mapping,
        items: list[Default],
        depth: int,
        *,
        fixed: bool,
        primary: bool = False,
    ) -> list[tuple[Default, Node]]:
        """Return what a file's list comes to, in the order of merging; ``fixed``: it may override nothing."""
        base, package = parent.group_path, parent.final_package()
        if primary:
            items = [*items, *self.appended]
        if not any(item.is_self for item in items) and any(not item.override for item in items):
            at = len(items) - len(self.appended) if primary else len(items)
            items.insert(at, Default(None, "_self_", parent.node, parent.by, None))
        for item in items:
            if not item.is_self:
                item.under(base, package)
                if item.override and not fixed and item.key not in self.chosen:
                    self.chosen[item.key] = _Choice(item.value, item.node)
        own = (parent, _without_defaults(self.layers, root))
        parts: list[list[tuple[Default, Node]] | Default] = []
        # From the end, as Hydra does: what a later item's files override holds for the earlier ones.
        for item in reversed(items):
            if item.is_self:
                parts.append([own])
            elif not item.override:
                parts += self._item(item, depth, fixed=fixed)
        for i, part in enumerate(parts):
            if isinstance(part, Default):  # a name that rests on other choices: now these are made
                part.value = self._resolved(part)
                parts[i] = self._file(part, depth + 1, fixed=True)
        if not any(not item.override for item in items):
            return [own]
        return [each for part in reversed(parts) if isinstance(part, list) for each in part]

    def _item(self, item: Default, depth: int, *, fixed: bool) -> list[list[tuple[Default, Node]] | Default]:
        choice = self.chosen.get(item.key) if item.group is not None else None
        if choice is not None:
            item.value, item.node = choice.value, choice.node
        if isinstance(item.value, list):
            several = []
            for name in reversed(item.value):
                one = Default(None, f"{item.group}/{name}", item.node, item.by, item.package)
                one.optional = item.optional
                one.under(item.base, item.parent)
                several.append(self._file(one, depth + 1, fixed=fixed))
            return [*several]
        if isinstance(item.value, str) and "${" in item.value:
            return [item]
        return [self._file(item, depth + 1, fixed=fixed)]

    def _file(self, item: Default, depth: int, *, fixed: bool) -> list[tuple[Default, Node]]:
        """Return what an item's file and those of its own list come to."""
        if item.group is not None:
            if item.key in self.deletions and self.deletions[item.key] in (None, item.name):
                self.deleted.add(item.key)
                return []
            if item.name is not None:
                self.choices.setdefault(item.key, item.name)
        if item.name is None or item.name == "???":
            return []
        file = self.found(item.path)
        circle = [] if file is None else _circle(file, item.by)
        if circle or depth > MAX_DEPTH or len(self.layers.files) > MAX_ITEMS:
            way = " -> ".join(circle)
            note = f"the files lead in a circle: {way}" if circle else f"too many files at {item.path}"
            self.layers.troubles.append(Trouble("cycle", item.node, "defaults", note, item.by))
            return []
        if file is None:
            self._absent(item)
            return []
        item.header = header_of(file.text)
        if (
            file.documents
            and file.documents[0].root is not None
            and id(file.documents[0].root) in self.layers.sources
        ):
            file = read_text(file.text, file.path)  # a second use of the file has nodes of its own
        source = Source(file, item.node, "defaults", item.by)
        root = enter(self.layers, source)
        if root is None:
            self._unread(item)
            return []
        if not isinstance(root, Mapping):
            return []
        named = root.entries.get("defaults")
        if named is None:
            return [(item, root)]
        inner = items_of(named.value, source)
        return self._list(item, root, inner, depth, fixed=fixed)

    def _absent(self, item: Default) -> None:
        if item.optional or item.group_path.startswith("hydra"):
            return
        if any(fnmatchcase(item.path, known) for known in self.way.knows):
            self.known.append(item)
            return
        self._unread(item)

    def known_bases(self, root: Mapping) -> Node:
        """Return the list that a framework's rules ask for the base, whose keys are its defaults anyway.

        That is the config's own list; where a file below names the base, a list of that base alone.
        """
        if any(item.by is self.by for item in self.known):
            return root.entries["defaults"].value
        found = Sequence(0, flow=True)
        for item in self.known:
            if item.group is None:
                base = Scalar(item.path, item.node.start, item.node.end)
                if item.by is not None:
                    self.layers.adopt(base, item.by)
                found.items.append(base)
        return found

    def _unread(self, item: Default) -> None:
        package = item.final_package()
        self.layers.unread[tuple(package.split(".")) if package else ()] = f"{item.path}.yaml"

    def _resolved(self, item: Default) -> str | None:
        """Return a name with the choices put in for ``${group}``."""
        assert isinstance(item.value, str)
        try:
            parts = parse(item.value)
        except MalformedError:
            return item.value
        held = []
        for part in parts:
            if isinstance(part, str):
                held.append(part)
                continue
            key = ".".join(map(str, part.keys)) if isinstance(part, Reference) else ""
            value = self.choices.get(key)
            if value is None:
                return item.value
            held.append(value)
        return "".join(held)

    # ── the config ─────────────────────────────────────────────────────────────────────────────────────
    def merged(self) -> Node | None:
        """Lay all files over each other, each at its package."""
        whole: Node | None = None
        for item, root in self.result:
            whole = self.layers.lay(self._at_package(item, root), whole)
        return whole

    def _at_package(self, item: Default, root: Node) -> Node:
        package = item.final_package()
        for part in reversed(package.split(".") if package else []):
            holder = Mapping(item.node.start, flow=True)
            holder.end = item.node.end
            key = Scalar(part, item.node.start, item.node.end, '"')
            holder.entries[part] = Entry(key, root)
            self.layers.own(holder, item.by)
            root = holder
        return root


def _circle(file: File, by: Source | None) -> list[str]:
    """Return the files from ``file`` back to itself, where one that lists it is itself listed by it."""
    names = [file.path]
    while by is not None:
        names.insert(0, by.file.path)
        if same(by.file.path, file.path):
            return names
        by = by.by
    return []


def _without_defaults(layers: Layers, root: Mapping) -> Mapping:
    own = layers.like(root)
    own.entries = {name: entry for name, entry in effective(root).items() if name != "defaults"}
    return own


def _several(value: str) -> str | list[str] | None:
    if value.startswith("[") and value.endswith("]"):
        return [name.strip() for name in value[1:-1].split(",") if name.strip()]
    return None if value in ("null", "") else value
