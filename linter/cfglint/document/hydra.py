"""Hydra's composition: the files of a defaults list, in its order, each at its package, under the overrides.

After hydra/_internal/defaults_list.py of 1.3, by its rules from ``version_base`` 1.2 on. A file that is not
here, and is none that the framework brings, leaves what it would say unknown.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from cfglint.budget import spend
from cfglint.document.defaults import Default, header_of, items_of, several
from cfglint.document.layers import Layers, Source, Trouble, Way
from cfglint.document.omega import MalformedError, Reference, parse
from cfglint.document.reading import Library, read_text, same
from cfglint.document.tree import Document, Entry, File, Mapping, Node, Scalar, Sequence, child, target
from cfglint.errors import OverBudgetError
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence as Listed


MAX_DEPTH = 20
MAX_ITEMS = 500
_MOST_FOLDERS = 16  # that a config adds to the search path
_LOOK = 30  # steps of looking for a file in one folder


# ── composition ────────────────────────────────────────────────────────────────────────────────────────────
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
    whole: Node | None = None
    for item, tree in composer.primary(root):
        whole = layers.lay(composer.at_package(item, tree), whole)
    left = [text for text in left if text[:1] != "~" or text[1:].partition("=")[0] not in composer.deleted]
    if isinstance(whole, Mapping):
        composed = layers.without(whole, "hydra")
        if composer.brought:
            composed.entries["defaults"] = Entry(root.entries["defaults"].key, composer.brought_bases(root))
        whole = composed
    layers.root = whole
    return left


def compose_under(
    layers: Layers,
    library: Library | None,
    way: Way,
    by: Source,
    flags: Mapping,
    choices: Listed[tuple[str, str | None]],
) -> Mapping:
    """Compose the config that a command names (``by``), with the groups that its overrides choose.

    Returns the overrides that set values. What a choice that is not known would bring stays open.
    """
    document = by.file.documents[0]
    root = document.root
    assert isinstance(root, Mapping)
    items = items_of(root.entries["defaults"].value, by)
    listed = {item.group.removeprefix("/") for item in items if item.group is not None}
    chosen: dict[str, str] = {}
    for key, name in choices:
        bare = key.lstrip("+~")
        if key.startswith("~") and name == "":
            chosen[key] = bare
        elif name is not None:
            chosen[f"{key.removeprefix('++')}={name}"] = bare
        elif bare.partition("@")[0] in listed or "@" in bare:
            chosen[f"~{bare}"] = bare
            layers.unread[()] = bare
    left = compose_hydra(layers, document, library, way, tuple(chosen), by)
    for text, key in chosen.items():
        if text not in left:
            flags = _without(layers, flags, key.replace("/", ".").split("."))
    return flags


def _without(layers: Layers, flags: Mapping, path: list[str]) -> Mapping:
    """Return overrides without one that chose a group; what is set below that stays."""
    entry = flags.entries.get(path[0])
    if entry is None or (len(path) == 1 and isinstance(entry.value, Mapping)):
        return flags
    rest = layers.like(flags, dict(flags.entries))
    inner = _without(layers, entry.value, path[1:]) if isinstance(entry.value, Mapping) else None
    if inner is not None and inner.entries:
        rest.entries[path[0]] = Entry(entry.key, inner)
    else:
        del rest.entries[path[0]]
    return rest


class _Composer(Record):
    """Walks the lists, and lays the files over each other."""

    layers: Layers
    file: File
    library: Library | None
    way: Way
    by: Source | None
    brought: list[Default] = field(factory=list)  # what comes with the framework, and is not here
    search: list[str] = field(factory=list)  # folders; the first is the config's own, or one above it
    chosen: dict[str, Default] = field(factory=dict)  # by override key: the first to say so wins
    choices: dict[str, str] = field(factory=dict)
    deletions: dict[str, str | None] = field(factory=dict)
    deleted: set[str] = field(factory=set)
    appended: list[Default] = field(factory=list)
    full: bool = False  # more files than are followed

    def __post_init__(self) -> None:
        self.search.append(os.path.dirname(self.file.path))

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
            if not grouped and sign != "~" and equals and self.file_at(f"{group}/{name}") is None:
                left.append(text)
                continue
            if not grouped and sign == "~":
                left.append(text)  # a group that only another file lists, or a key: `primary` finds out
            node = Scalar(name, 0, 0, origin=f"--set {text}")
            item = Default(group, several(name), node, None, package or None)
            if sign == "~":
                self.deletions[key] = name if equals else None
            elif sign == "+":
                self.appended.append(item)
            else:
                self.chosen[key] = item
        return left

    # ── files ──────────────────────────────────────────────────────────────────────────────────────────
    def file_at(self, path: str) -> File | None:
        """Return the file of a config path in the first folder of the search path that has it."""
        if self.library is None or not path or "${" in path:
            return None
        spend(_LOOK * len(self.search), "files looked for")
        name = path if path.endswith((".yaml", ".yml")) else f"{path}.yaml"
        files = (self.library.file(os.path.join(folder, name), self.file.path) for folder in self.search)
        return next((file for file in files if file is not None), None)

    def _outside(self, path: str) -> bool:
        return self.library is not None and self.library.outside(self.file.path, os.path.abspath(path))

    def _look_above(self, items: list[Default]) -> str:
        """Find the config folder: the config's own, or one above that has what the list names from the top.

        Returns the group that the config then is in.
        """
        absolute = [
            d for d in items if (d.group or str(d.value)).startswith("/") and isinstance(d.value, str)
        ]
        if self.library is None or not absolute or any(self._from_top(d) for d in absolute):
            return ""
        folder = self.search[0]
        for at in self.library.above(folder):
            self.search[0] = at if os.path.isabs(self.file.path) else os.path.relpath(at)
            if any(self._from_top(d) for d in absolute):
                inside = os.path.relpath(os.path.abspath(folder), at)
                return inside.replace(os.sep, "/")
        self.search[0] = folder
        return ""

    def _from_top(self, item: Default) -> File | None:
        path = f"{item.group}/{item.value}" if item.group is not None else str(item.value)
        return self.file_at(path.removeprefix("/"))

    # ── the tree ───────────────────────────────────────────────────────────────────────────────────────
    def primary(self, root: Mapping) -> list[tuple[Default, Node]]:
        """Return what the config's own list comes to."""
        self._add_search_path(root)
        items = items_of(root.entries["defaults"].value, self.by)
        group = self._look_above(items)
        name = os.path.basename(self.file.path).rpartition(".")[0]
        first = Default(None, f"{group}/{name}" if group else name, Scalar(name, 0, 0), self.by, None)
        first.header = header_of(self.file.text)
        return self._list(first, root, items, 0, appended=self.appended)

    def _add_search_path(self, root: Mapping) -> None:
        listed = target(child(child(root, "hydra"), "searchpath"))
        items = listed.items if isinstance(listed, Sequence) else []
        if len(items) > _MOST_FOLDERS:
            raise OverBudgetError(
                f"hydra.searchpath has {len(items):,} folders, more than {_MOST_FOLDERS}: it was not judged"
            )
        for item in items:
            if isinstance(item, Scalar) and item.text.startswith("file://") and "${" not in item.text:
                folder = item.text.removeprefix("file://")
                around = list(self.library.around(self.file.path, folder)) if self.library is not None else []
                # A relative one is seen from where the job starts: the top of the project, most often.
                folders = [folder] if os.path.isabs(folder) else [*around[1:], folder]
                self.search += folders
                if all(self._outside(os.path.join(each, "any.yaml")) for each in folders):
                    self.layers.refuse(item, "hydra.searchpath", folder)

    def _list(
        self,
        parent: Default,
        root: Mapping,
        items: list[Default],
        depth: int,
        *,
        fixed: bool = False,
        appended: Listed[Default] = (),
    ) -> list[tuple[Default, Node]]:
        """Return what a file's list comes to, in the order of merging; ``fixed``: it may override nothing."""
        whole = [*items, *appended]
        plain = any(not item.override for item in whole)
        if plain and not any(item.is_self for item in whole):
            whole.insert(len(items), Default(None, "_self_", parent.node, parent.by, None))
        self._place(whole, parent, fixed=fixed)
        own = (parent, self.layers.without(root, "defaults"))
        if not plain:
            return [own]
        parts: list[list[tuple[Default, Node]] | Default] = []
        # From the end, as Hydra does: what a later item's files override holds for the earlier ones.
        for item in reversed(whole):
            if item.is_self:
                parts.append([own])
            elif not item.override:
                parts += self._item(item, depth, fixed=fixed)
        for i, part in enumerate(parts):
            if isinstance(part, Default):  # a name that rests on other choices: now these are made
                part.value = self._resolved(part)
                parts[i] = self._file(part, depth + 1, fixed=True)
        return [each for part in reversed(parts) if isinstance(part, list) for each in part]

    def _place(self, items: list[Default], parent: Default, *, fixed: bool) -> None:
        """Say of the items where they are listed, and take the choices of those that override."""
        base, package = parent.group_path, parent.final_package()
        for item in items:
            if not item.is_self:
                item.under(base, package)
                if item.override and not fixed:
                    self.chosen.setdefault(item.key, item)

    def _item(self, item: Default, depth: int, *, fixed: bool) -> list[list[tuple[Default, Node]] | Default]:
        choice = self.chosen.get(item.key) if item.group is not None else None
        if choice is not None:
            item.value, item.node = choice.value, choice.node
        if isinstance(item.value, list):
            several = []
            for name in reversed(item.value):
                single = Default(
                    None, f"{item.group}/{name}", item.node, item.by, item.package, item.optional
                )
                single.under(item.base, item.parent)
                several.append(self._file(single, depth + 1, fixed=fixed))
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
        file = self.file_at(item.path)
        if self._too_deep(item, file, depth):
            return []
        if file is not None:
            return self._entered(item, file, depth, fixed=fixed)
        self._absent(item)
        return []

    def _too_deep(self, item: Default, file: File | None, depth: int) -> bool:
        circle = [] if file is None else _circle(file, item.by)
        if circle:
            note = f"cyclic defaults: {' -> '.join(circle)}"
        elif depth > MAX_DEPTH or len(self.layers.files) > MAX_ITEMS:
            if self.full:
                return True  # which was said
            self.full = True
            note = f"too many files at {item.path}"
        else:
            return False
        self.layers.troubles.append(Trouble("cycle", item.node, "defaults", note, item.by))
        return True

    def _entered(self, item: Default, file: File, depth: int, *, fixed: bool) -> list[tuple[Default, Node]]:
        item.header = header_of(file.text)
        if id(file.documents[0].root) in self.layers.sources:
            spend(len(file.text) // 4, "files read again")
            file = read_text(file.text, file.path)  # a second use of the file has nodes of its own
        source = Source(file, item.node, "defaults", item.by)
        root = self.layers.enter(source)
        if root is None:
            self._unread(item)
        if not isinstance(root, Mapping):
            return []
        named = root.entries.get("defaults")
        if named is None:
            return [(item, root)]
        return self._list(item, root, items_of(named.value, source), depth, fixed=fixed)

    def _absent(self, item: Default) -> None:
        if item.optional or item.group_path.startswith("hydra"):
            return
        if any(fnmatchcase(item.path, pattern) for pattern in self.way.knows):
            self.brought.append(item)
            return
        self._unread(item)

    def brought_bases(self, root: Mapping) -> Node:
        """Return the list that a framework's rules ask for the base, whose keys are its defaults anyway.

        That is the config's own list; where a file below names the base, a list of that base alone.
        """
        if any(item.by is self.by for item in self.brought):
            return root.entries["defaults"].value
        bases = Sequence(0, flow=True)
        for item in self.brought:
            if item.group is None:
                base = Scalar(item.path, item.node.start, item.node.end)
                if item.by is not None:
                    self.layers.adopt(base, item.by)
                bases.items.append(base)
        return bases

    def _unread(self, item: Default) -> None:
        name = f"{item.path.lstrip('/')}.yaml"
        if self._outside(os.path.join(self.search[0], name)):
            self.layers.refuse(item.node, "defaults", name, item.by)
        package = item.final_package()
        self.layers.unread[tuple(package.split(".")) if package else ()] = f"{item.path}.yaml"

    def _resolved(self, item: Default) -> str | None:
        """Return a name with the choices put in for ``${group}``."""
        assert isinstance(item.value, str)
        try:
            parts = parse(item.value)
        except MalformedError:
            return item.value
        names = [part if isinstance(part, str) else self._choice(part) for part in parts]
        return "".join(map(str, names)) if None not in names else item.value

    def _choice(self, part: object) -> str | None:
        return self.choices.get(".".join(map(str, part.keys))) if isinstance(part, Reference) else None

    def at_package(self, item: Default, root: Node) -> Node:
        """Return a file's tree below the keys of its package."""
        package = item.final_package()
        for part in reversed(package.split(".") if package else []):
            start, end = item.node.start, item.node.end
            entry = Entry(Scalar(part, start, end, '"'), root)
            holder = Mapping(start, flow=True, end=end, entries={part: entry})
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
