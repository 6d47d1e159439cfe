"""Configs of other files that build on one of a program: what an edit of it makes of them."""

from __future__ import annotations

import os
import re
from functools import partial

from cfglint.document.candidates import may_return_configs
from cfglint.document.reading import read_text
from cfglint.document.tree import Scalar, walk
from cfglint.text import OutsideEdit, apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.reading import Library
    from cfglint.document.tree import Document
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.text import Edit

_MOST = 8  # files: a model's configs are built on by a few


def built_anew(run: Run, own: Document, edits: tuple[Edit, ...]) -> Iterator[tuple[Subject, Subject]]:
    """Yield the documents of other files that edits of a program change: as they are, and after the edits."""
    library, changed = run.library, [edit for edit in edits if not isinstance(edit, OutsideEdit)]
    if library is None or not changed:
        return
    text = apply_edits(own.file.text, changed)
    for path, code in _importers(library, own):
        script = partial(library.script, path)

        def after(name: str, script: partial[str | None] = script) -> str | None:
            found = script(name)
            return text if found == own.file.text else found

        old = run.subjects(read_text(code, path, scripts=script), judge_broken=False)
        new = run.subjects(read_text(code, path, scripts=after), judge_broken=False)
        if len(old) == len(new):
            yield from ((a, b) for a, b in zip(old, new, strict=True) if _texts(a) != _texts(b))


def _importers(library: Library, own: Document) -> list[tuple[str, str]]:
    """Return the files of the project that import the one of a document, and may return configs."""
    if own.file.format != "python" or own.sites is None or library.project is None:
        return []
    here, name = os.path.split(os.path.splitext(os.path.abspath(own.file.path))[0])
    module = rf"(?:[\w.]*\b{re.escape(os.path.basename(here))})?\.{re.escape(name)}"
    imports = re.compile(rf"(?m)^(?:from[ ]+{module}[ ]+import\b|import[ ]+[\w.]*{module}\b)")
    found = []
    for path, code in library.project.told(own.file.path, (".py",)):
        itself = os.path.abspath(path) == os.path.abspath(own.file.path)
        if not itself and name in code and may_return_configs(code) and imports.search(code):
            found.append((path, code))
    return found[:_MOST]


def _texts(subject: Subject) -> list[str]:
    """Return what a document says, in its order."""
    return [node.text for node in walk(subject.document.root) if isinstance(node, Scalar)]
