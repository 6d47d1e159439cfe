"""What a framework makes of the files that a config names: one tree, by that framework's own way.

``over`` (a launch's ``--config``) lies beneath the flags; ``composes parents`` is NeMo-RL's inheritance
(``defaults`` names files by their paths), ``composes hydra`` Hydra's defaults list; ``file $.key`` hangs a
file at the key.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from cfglint.document.layers import Layers, Source, Trouble, enter
from cfglint.document.library import same
from cfglint.document.scalars import OMEGACONF, resolve
from cfglint.document.tree import Alias, Mapping, Scalar, Sequence, Sought, Unread, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    from cfglint.document.document import Document, File
    from cfglint.document.library import Library
    from cfglint.document.tree import Node

    Steps = tuple[str | int, ...]

MAX_CHAIN = 20
_FILES = (".json", ".yaml", ".yml", ".toml")


class Way:
    """How a framework's files make one config: ``composes`` is ``""``, ``parents`` or ``hydra``.

    ``files`` are the keys that name a file each; ``knows`` are the files, as defaults lists name them, that
    come with the framework: where they are not here, absent keys are what its bindings say of them.
    """

    __slots__ = ("composes", "files", "knows")

    def __init__(self, composes: str = "", files: Listed[Steps] = (), knows: Listed[str] = ()) -> None:
        self.composes = composes
        self.files = tuple(files)
        self.knows = tuple(knows)


def compose(
    document: Document, library: Library | None, way: Way, overrides: Listed[str] = ()
) -> tuple[Layers | None, Listed[str]]:
    """Return a document with its other files (None: it has none), and the overrides left to apply."""
    layers: Layers | None = None
    if document.over:
        layers = _over_named(document, library, way)
    elif way.composes and _names_bases(document.root):
        layers = Layers(document.root)
        if way.composes == "hydra":
            from cfglint.document.hydra import compose_hydra

            overrides = compose_hydra(layers, document, library, way, overrides)
        else:
            layers.root = _Family(layers, library, way).over_parents(document.root, document.file, None, ())
    if way.files and library is not None:
        layers = _hang(layers, document, library, way.files)
    return layers, overrides


def _names_bases(root: Node | None) -> bool:
    return isinstance(root, Mapping) and "defaults" in root.entries


def _over_named(document: Document, library: Library | None, way: Way) -> Layers:
    """Return a document over the files of its ``over``: of several, a later one's keys win."""
    layers = Layers(document.root)
    beneath: Node | None = None
    own = document.root
    for node in document.over:
        sought = isinstance(node, Sought)
        if sought and way.composes != "hydra":
            continue
        names = node.places if isinstance(node, Sought) else (node.text,)
        file = _first(document, library, names)
        if file is None:
            if not sought:  # Hydra's, where it is not here, is what the framework brings
                layers.unread[()] = node.text
            continue
        source = Source(file, node, "--config-name" if sought else "--config")
        root = enter(layers, source)
        if root is None:
            layers.unread[()] = node.text
            continue
        if way.composes == "parents" and _names_bases(root):
            root = _Family(layers, library, way).over_parents(root, file, source, (file.path,))
        elif way.composes == "hydra" and _names_bases(root):
            from cfglint.document.hydra import compose_hydra, compose_under

            if isinstance(node, Sought) and isinstance(own, Mapping):
                own = compose_under(layers, file.documents[0], library, way, source, own, node.choices)
            else:
                compose_hydra(layers, file.documents[0], library, way, (), source)
            root = layers.root
        beneath = layers.lay(root, beneath) if root is not None else beneath
    layers.root = layers.lay(own, beneath)
    return layers


def _first(document: Document, library: Library | None, names: Listed[str]) -> File | None:
    """Return the first of some files that is here."""
    for name in names if library is not None else ():
        found = library.find(document.file.path, name)  # type: ignore[union-attr]
        if found is not None:
            return found
    return None


# ── NeMo-RL's inheritance ──────────────────────────────────────────────────────────────────────────────────
class _Family:
    """A file and those that its ``defaults`` names, and theirs; ``absent`` says that one is not here."""

    __slots__ = ("absent", "layers", "library", "way")

    def __init__(self, layers: Layers, library: Library | None, way: Way) -> None:
        self.layers = layers
        self.library = library
        self.way = way
        self.absent = False

    def over_parents(
        self, root: Node | None, file: File, by: Source | None, chain: tuple[str, ...]
    ) -> Node | None:
        """Return a file's tree over those of its parents, seen from its folder; the last one's keys win.

        After nemo_rl/utils/config.py: load_config_with_inheritance.
        """
        if not isinstance(root, Mapping) or "defaults" not in root.entries:
            return root
        named = root.entries["defaults"].value
        own = self.layers.like(root)
        own.entries = {name: entry for name, entry in effective(root).items() if name != "defaults"}
        target = named.target if isinstance(named, Alias) else named
        base: Node | None = None
        for item in target.items if isinstance(target, Sequence) else [target]:
            node = item.target if isinstance(item, Alias) else item
            if isinstance(node, Scalar):
                parent = self._parent(node, file, by, chain or (file.path,))
                base = base if parent is None else _merged(self.layers, base, parent)
        whole = _merged(self.layers, base, own)
        if by is None and self.absent and isinstance(whole, Mapping):
            whole.entries["defaults"] = root.entries["defaults"]  # the framework's rules ask which it is
        return whole

    def _parent(self, node: Scalar, file: File, by: Source | None, chain: tuple[str, ...]) -> Node | None:
        layers = self.layers
        found = self.library.beside(file.path, node.text) if self.library is not None else None
        if found is None:
            if self.library is not None and file.path not in ("", "<stdin>"):
                note = f"{node.text} is not beside {file.path}"
                layers.troubles.append(Trouble("missing", node, "defaults", note, by))
            self.absent = True
            if not any(fnmatchcase(node.text, known) for known in self.way.knows):
                layers.unread[()] = node.text
            return None
        if any(same(found.path, path) for path in chain) or len(chain) >= MAX_CHAIN:
            note = f"the files lead in a circle: {' -> '.join((*chain, found.path))}"
            layers.troubles.append(Trouble("cycle", node, "defaults", note, by))
            return None
        source = Source(found, node, "defaults", by)
        root = enter(layers, source)
        return None if root is None else self.over_parents(root, found, source, (*chain, found.path))


def _merged(layers: Layers, base: Node | None, upper: Node) -> Node:
    """Lay a file over its base; a section with ``_override_: true`` takes the base's place whole."""
    below = base if isinstance(base, Mapping) else layers.like(None)
    if not isinstance(upper, Mapping):
        return upper
    marked = [name for name, entry in effective(upper).items() if _replaces(entry.value)]
    if marked:
        above, rest = layers.like(upper), layers.like(below)
        above.entries = dict(effective(upper))
        rest.entries = {name: entry for name, entry in effective(below).items() if name not in marked}
        for name in marked:
            entry = above.entries[name]
            section = entry.value.target if isinstance(entry.value, Alias) else entry.value
            assert isinstance(section, Mapping)
            plain = layers.like(section)
            plain.entries = {key: each for key, each in effective(section).items() if key != "_override_"}
            above.entries[name] = entry.__class__(entry.key, plain)
        upper, below = above, rest
    found = layers.lay(upper, below)
    assert found is not None
    return found


def _replaces(node: Node) -> bool:
    section = node.target if isinstance(node, Alias) else node
    if not isinstance(section, Mapping):
        return False
    marker = effective(section).get("_override_")
    value = marker.value if marker is not None else None
    return isinstance(value, Scalar) and bool(resolve(value, OMEGACONF))


# ── a file at a key ────────────────────────────────────────────────────────────────────────────────────────
def _hang(layers: Layers | None, document: Document, library: Library, files: Listed[Steps]) -> Layers | None:
    for steps in files:
        node = _scalar_at(document.root if layers is None else layers.root, steps)
        if node is None or not node.text.endswith(_FILES) or "${" in node.text:
            continue
        by = layers.sources.get(id(node)) if layers is not None else None
        found = library.find(document.file.path, node.text)
        if found is None and by is not None:
            found = library.find(by.file.path, node.text)
        if found is None or same(found.path, document.file.path):
            continue
        if layers is None:
            layers = Layers(document.root)
        root = enter(layers, Source(found, node, ".".join(map(str, steps)), by, hung=True))
        if root is not None:
            layers.hung[id(node)] = root
    return layers


def _scalar_at(node: Node | None, steps: Steps) -> Scalar | None:
    for step in steps:
        if isinstance(node, Alias):
            node = node.target
        entry = effective(node).get(step) if isinstance(node, Mapping) and isinstance(step, str) else None
        if entry is None:
            return None
        node = entry.value
    if isinstance(node, Alias):
        node = node.target
    return node if isinstance(node, Scalar) and not isinstance(node, Unread) else None
