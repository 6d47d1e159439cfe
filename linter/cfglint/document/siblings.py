"""What the configs beside the one that Hydra reads have where it has nothing: the same program reads them."""

from __future__ import annotations

import os

from cfglint.document.shell.processes import below
from cfglint.document.tree import Mapping, Scalar
from cfglint.files import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.layers import Layers
    from cfglint.document.reading import Library
    from cfglint.document.tree import File, Node

_MOST = 20  # files of a folder
_OPEN = ("", "~", "null", "???")


def siblings(layers: Layers | None, library: Library | None, reader: str) -> list[File]:
    """Return the YAML files beside a launch's config, then those of the package of the ``reader`` of a key.

    None of a large folder.
    """
    source = next((each for each in layers.files if not each.hung), None) if layers is not None else None
    if source is None or library is None:
        return []
    own, above = source.file.path, os.path.dirname(reader)
    folders = (
        os.path.dirname(own),
        *(os.path.join(each, "config") for each in (above, os.path.dirname(above))),
    )
    paths = (path for folder in dict.fromkeys(map(os.path.normpath, folders)) for path in _in(folder))
    found = {os.path.abspath(path): library.file(path, own) for path in paths}
    return [file for path, file in found.items() if file is not None and path != os.path.abspath(own)]


def _in(folder: str) -> list[str]:
    _, _, names, _ = next(walk(folder), ("", [], [], []))
    names = [name for name in sorted(names) if name.endswith((".yaml", ".yml"))]
    return [os.path.join(folder, name) for name in names] if len(names) <= _MOST else []


def said(files: Sequence[File], path: tuple[str, ...]) -> tuple[Node, str] | None:
    """Return what some files have at a key, and the first of them; None where they do not say the same."""
    found = [(node, file.path) for file in files if (node := _at(file, path)) is not None]
    if not found or any(isinstance(node, Mapping) for node, _ in found):
        return found[0] if found and all(isinstance(node, Mapping) for node, _ in found) else None
    texts = {node.text for node, _ in found if isinstance(node, Scalar)}
    plain = all(isinstance(node, Scalar) and node.text not in _OPEN for node, _ in found)
    return found[0] if plain and len(texts) == 1 and "${" not in next(iter(texts)) else None


def _at(file: File, path: tuple[str, ...]) -> Node | None:
    return below(file.documents[0].root, *path) if len(file.documents) == 1 else None
