"""What a framework makes of a document and the files that it names: one tree.

``over`` (a launch's ``--config``) lies beneath the flags; ``composes parents`` is NeMo-RL's inheritance
(``defaults`` names files by their paths), ``composes hydra`` Hydra's defaults list; ``file $.key`` hangs a
file at the key.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from functools import partial

from cfglint.budget import spend
from cfglint.document.absent import is_absent
from cfglint.document.layers import BY_SET, Layers, Source, Trouble, Way, read_override
from cfglint.document.reading import Library, read_text, same, sections
from cfglint.document.scalars import OMEGACONF, resolve
from cfglint.document.shell.processes import text_at
from cfglint.document.shell.substituted import ends_of
from cfglint.document.tree import (
    SCRIPTS,
    Document,
    Entry,
    File,
    FunctionRef,
    HydraRef,
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    Unresolved,
    child,
    effective,
    target,
)
from cfglint.files import is_there
from cfglint.record import Record, field
from cfglint.text import Edit, OutsideEdit, apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Sequence as Listed


MAX_CHAIN = 20
_FILES = (".json", ".yaml", ".yml", ".toml")
_NAMED = (*_FILES, ".conf")  # as open-instruct calls DeepSpeed's (scripts/train/olmo2/*.sh)


def compose(
    document: Document,
    library: Library | None,
    way: Way,
    overrides: Listed[str] = (),
    *,
    defaults: bool = True,
) -> tuple[Layers | None, Listed[str]]:
    """Return a document with its other files (None: it has none), and the overrides left to apply.

    ``defaults`` says whether those of a command's program count: they are no sign of a framework.
    """
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
    if document.program is not None:
        from cfglint.document.follow import lay  # few programs are here

        layers = layers or Layers(document.root)
        lay(layers, document, overrides, defaults=defaults)
    if way.files and library is not None:
        layers = _hang(layers, document, library, way.files, overrides)
    return layers, overrides


def _names_bases(root: Node | None) -> bool:
    return isinstance(root, Mapping) and "defaults" in root.entries


def _comes_along(node: Scalar, way: Way) -> bool:
    """Whether a config that Hydra looks for comes with the framework."""
    name = os.path.basename(node.text).rpartition(".")[0]
    return any(fnmatchcase(name, pattern) for pattern in way.knows)


def _over_named(document: Document, library: Library | None, way: Way) -> Layers:
    """Return a document over the files of its ``over``: of several, a later one's keys win."""
    layers = Layers(document.root)
    beneath: Node | None = None
    own = document.root
    for node in document.over:
        if isinstance(node, FunctionRef):
            beneath = _under_function(layers, document, library, node) or beneath
            continue
        sought = isinstance(node, HydraRef)
        if (sought and way.composes != "hydra") or node.text.endswith(SCRIPTS):
            continue  # a script is no config
        names = node.places if isinstance(node, HydraRef) else _names_of(document, node)
        file = _first(document, library, names)
        if file is None:
            if sought and _comes_along(node, way):
                continue
            layers.unread[()] = node.text
            if not sought and library is not None and library.outside(document.file.path, node.text):
                layers.refuse(node, "--config", node.text)
            continue
        source = Source(file, node, "--config-name" if sought else "--config")
        root = layers.enter(source)
        if root is None:
            layers.unread[()] = node.text
            beneath = layers.lay(_mesh(layers, document, library, source), beneath)
            continue
        layers.based = True
        if way.composes == "parents" and _names_bases(root):
            root = _Family(layers, library, way).over_parents(root, file, source, (file.path,))
        elif way.composes == "hydra" and _names_bases(root):
            from cfglint.document.hydra import compose_hydra, compose_under

            if isinstance(node, HydraRef) and isinstance(own, Mapping):
                own = compose_under(layers, library, way, source, own, node.choices)
            else:
                compose_hydra(layers, file.documents[0], library, way, (), source)
            root = layers.root
        beneath = layers.lay(root, beneath) if root is not None else beneath
    layers.root = layers.lay(own, beneath)
    if way.composes == "hydra" and all(isinstance(node, HydraRef) for node in document.over):
        layers.beneath = beneath
    return layers


def _names_of(document: Document, node: Scalar) -> tuple[str, ...]:
    """Return what a config may be called that a command names: ``tune run`` takes names of torchtune's own.

    See torchtune/_cli/run.py: _get_config, torchtune/_recipe_registry.py.
    """
    if text_at(document.root, "launch", "suite") != "torchtune" or node.text.endswith((".yaml", ".yml")):
        return (node.text,)
    return node.text, f"recipes/configs/{node.text}.yaml"


def _mesh(layers: Layers, document: Document, library: Library | None, source: Source) -> Mapping | None:
    """Return what a config in Python says of the processes that share a model or a sequence."""
    file = source.file
    if library is None or file.format != "program":
        return None
    key = f"{document.file.path}:{file.path}:mesh"
    if key not in library.programs:
        from cfglint.document.python.meshes import mesh_of  # few commands name one

        library.programs[key] = mesh_of(file.text, document.file.text)
    found: Mapping | None = library.programs[key]
    if found is not None:
        layers.adopt(found, source)
        layers.files.append(source)
    return found


def _under_function(
    layers: Layers, document: Document, library: Library | None, node: FunctionRef
) -> Node | None:
    """Return the config that a function of a program returns; None where its file is not here."""
    file = _first(document, library, node.places)
    if file is None or library is None or file.format != "program":
        return None
    key = f"{file.path}:{node.text}"
    if key not in library.programs:
        from cfglint.document.python.configs import config_of  # few commands name one

        library.programs[key] = config_of(file.text, node.text, partial(library.script, file.path))
    made: Document | None = library.programs[key]
    if made is None or made.root is None:
        return None
    source = Source(file, node, "--config")
    layers.files.append(source)
    layers.adopt(made.root, source)
    layers.unread |= made.unread or {}
    layers.based = True
    return made.root


def _first(document: Document, library: Library | None, names: Listed[str]) -> File | None:
    """Return the first of some files that is here."""
    files = (_found(document, library, name) for name in names if library is not None)
    return next((file for file in files if file is not None), None)


def _found(document: Document, library: Library, name: str) -> File | None:
    """Return a file that a document names; a command names it as its working folder sees it."""
    path, file = document.file.path, None
    if document.folder and not os.path.isabs(name):
        file = library.find(path, os.path.join(document.folder, name))
    return file or library.find(path, name)


# ── NeMo-RL's inheritance ──────────────────────────────────────────────────────────────────────────────────
class _Family(Record):
    """A file and those that its ``defaults`` names, and theirs; ``absent`` says that one is not here.

    ``whole`` has what each parent comes to, by its path: however often it is named, it is composed once.
    """

    layers: Layers
    library: Library | None
    way: Way
    absent: bool = False
    whole: dict[str, Node | None] = field(factory=dict)

    def over_parents(
        self, root: Node | None, file: File, by: Source | None, chain: tuple[str, ...]
    ) -> Node | None:
        """Return a file's tree over those of its parents, seen from its folder; the last one's keys win.

        After nemo_rl/utils/config.py: load_config_with_inheritance.
        """
        if not isinstance(root, Mapping) or "defaults" not in root.entries:
            return root
        named = target(root.entries["defaults"].value)
        own = self.layers.without(root, "defaults")
        base: Node | None = None
        for item in named.items if isinstance(named, Sequence) else [named]:
            node = target(item)
            if isinstance(node, Scalar):
                parent = self._parent(node, file, by, chain or (file.path,))
                base = base if parent is None else _merged(self.layers, base, parent)
        whole = _merged(self.layers, base, own)
        if by is None and self.absent and isinstance(whole, Mapping):
            whole.entries["defaults"] = root.entries["defaults"]  # the framework's rules ask which it is
        return whole

    def _parent(self, node: Scalar, file: File, by: Source | None, chain: tuple[str, ...]) -> Node | None:
        layers = self.layers
        parent = self.library.beside(file.path, node.text) if self.library is not None else None
        if parent is None:
            if self.library is not None and self.library.outside(file.path, node.text):
                layers.refuse(node, "defaults", node.text, by)
            elif self.library is not None and file.path not in ("", "<stdin>"):
                note = f"{node.text} was not found next to {file.path}"
                layers.troubles.append(Trouble("missing", node, "defaults", note, by))
            self.absent = True
            if not any(fnmatchcase(node.text, pattern) for pattern in self.way.knows):
                layers.unread[()] = node.text
            return None
        if any(same(parent.path, path) for path in chain) or len(chain) >= MAX_CHAIN:
            note = f"cyclic includes: {' -> '.join((*chain, parent.path))}"
            layers.troubles.append(Trouble("cycle", node, "defaults", note, by))
            return None
        if parent.path not in self.whole:
            source = Source(parent, node, "defaults", by)
            root = layers.enter(source)
            if root is not None:
                root = self.over_parents(root, parent, source, (*chain, parent.path))
            self.whole[parent.path] = root
        return self.whole[parent.path]


def _merged(layers: Layers, base: Node | None, upper: Node) -> Node:
    """Lay a file over its base; a section with ``_override_: true`` takes the base's place whole."""
    if not isinstance(upper, Mapping):
        return upper
    below = base if isinstance(base, Mapping) else layers.like(None)
    sections = {
        name: (entry.key, section)
        for name, entry in effective(upper).items()
        if isinstance(section := target(entry.value), Mapping) and _replaces(section)
    }
    if sections:
        upper, below = layers.like(upper, dict(effective(upper))), layers.without(below, *sections)
        for name, (key, section) in sections.items():
            upper.entries[name] = Entry(key, layers.without(section, "_override_"))
    return layers.lay(upper, below) or upper


def _replaces(section: Mapping) -> bool:
    marker = child(section, "_override_")
    return isinstance(marker, Scalar) and bool(resolve(marker, OMEGACONF))


# ── a file at a key ────────────────────────────────────────────────────────────────────────────────────────
def _hang(
    layers: Layers | None,
    document: Document,
    library: Library,
    files: Listed[tuple[Path, str]],
    overrides: Listed[str],
) -> Layers | None:
    """Hang the files that a document names, or an override, at their keys."""
    held = layers or Layers(document.root)
    held.read = {text: read_override(text) for text in overrides}
    for steps, dialect in files:
        node = _scalar_at(held.overlaid(steps), steps, held.hung)
        if node is None or "${" in node.text:
            continue
        typed = node.origin is not None and node.origin.removeprefix(BY_SET) in library.typed
        if not node.text.endswith(_NAMED) and not (typed and os.sep in node.text):
            continue
        key, by = ".".join(map(str, steps)), held.sources.get(id(node))
        file = _at_key(document, library, node, by, typed=typed)
        if file is None and not typed and library.outside(document.file.path, node.text):
            held.refuse(node, key, node.text, by)
        elif file is None and node.origin is not None:
            sought = ", ".join(library.sought(document.file.path, node.text))
            held.lost = f"{node.origin}: no such file; looked for {sought}"
        elif (
            file is None
            and document.program is not None
            and node.text.endswith(_FILES)
            and is_absent(document, library, node.text)
        ):
            held.troubles.append(Trouble("missing", node, key, f"{node.text} is not in the repository", by))
        if file is None or same(file.path, document.file.path):
            continue
        root = held.enter(Source(file, node, key, by, hung=True), dialect)
        if root is not None:
            held.hung[id(node)] = root
    return held if held.files or held.troubles or held.lost else layers


def _at_key(
    document: Document, library: Library, node: Scalar, by: Source | None, *, typed: bool
) -> File | None:
    """Return the file that a scalar names, be it in the document, in a file of it, or in an override."""
    if typed:
        return library.named(document.file.path, node.text)
    file = _found(document, library, node.text)
    if file is None and by is not None:
        file = library.find(by.file.path, node.text)
    return file or _in_checkout(document, library, node.text)


def _in_checkout(document: Document, library: Library, name: str) -> File | None:
    """Return the file that a command names in the folder where its project lies on another machine.

    Of ``/home/me/project/conf/ds.json``, which is not here, ``conf/ds.json`` tells which one it is.
    """
    if document.format != "shell" or not os.path.isabs(name) or is_there(name):
        return None
    here = document.file.path
    places = (place for end in ends_of(name, ()) for place in library.around(here, end))
    return next((file for place in places if (file := library.file(place, here)) is not None), None)


def _scalar_at(node: Node | None, steps: Path, hung: dict[int, Node]) -> Scalar | None:
    """Return the text at a key, also of a file that is below another key (``hung``)."""
    for step in steps:
        node = target(node)
        node = child(hung.get(id(node), node), step) if isinstance(step, str) else None
    node = target(node)
    return node if isinstance(node, Scalar) and not isinstance(node, Unresolved) else None


def edited(document: Document, edits: Iterable[Edit]) -> Document | None:
    """Return a document after edits of its file; None where it cannot be found in it any more."""
    from cfglint.document.trial import Known  # it starts processes, and this is seldom needed

    before, edits = document.file, list(edits)
    spend(2 * len(before.text), "texts after a fix")
    outside = [edit for edit in edits if isinstance(edit, OutsideEdit)]
    own = [edit for edit in edits if not isinstance(edit, OutsideEdit)] if outside else edits
    scripts = _scripts_with(before, outside) if outside else before.scripts
    with Known():
        file = read_text(apply_edits(before.text, own), before.path, bom=before.bom, scripts=scripts)
    if len(file.documents) != len(before.documents):
        return None
    again = file.documents[document.index]
    again.taken_by(document.loader)
    if again.error is not None:
        return None
    if document.key is None:
        return again
    return next((part for part in sections(again) if part.key.text == document.key.text), None)  # type: ignore[union-attr]


def _scripts_with(file: File, outside: Iterable[OutsideEdit]) -> Callable[[str], str | None]:
    """Return what gives the texts of scripts that a script runs, with edits of these."""
    edits: dict[str, list[OutsideEdit]] = {}
    for edit in outside:
        edits.setdefault(edit.text, []).append(edit)

    def script(name: str) -> str | None:
        text = file.scripts(name) if file.scripts is not None else None
        return text if text is None or text not in edits else apply_edits(text, edits[text])

    return script
