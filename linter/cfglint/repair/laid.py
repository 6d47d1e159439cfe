"""A document as it is read with some numbers and truths in it, without a text that has them."""

from __future__ import annotations

from cfglint.document.edits import spell
from cfglint.document.tree import dotted
from cfglint.document.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.repair.invert import Written
    from cfglint.repair.write import Writer

_TOLD = ("launch", "python")  # by which a document says what the text around its keys does


def laid_over(writer: Writer, values: Iterable[Written]) -> View | None:
    """Return the document with some values laid over it; None where a text that has them may differ.

    It may where a key's value is written elsewhere, read by other keys, or makes other files be read. What
    is in a file that a key names, no edit of this one has.
    """
    view, texts = writer.subject.view, []
    for written in values:
        path, value = written.path, written.value
        hung = view.hangs(path) is not None
        kinds = (bool, int, float, str) if hung else (bool, int, float)
        if not isinstance(value, kinds) or not all(map(_is_plain, path)):
            return None
        texts.append(f"{dotted(path)}={spell(value, None, view.dialect)}")
        if hung:
            continue
        definition = writer.definition(path)
        elsewhere = definition.several or definition.shared or definition.holder not in ("", dotted(path))
        if elsewhere or path[0] in _TOLD:
            return None
    own = view.document, view.dialect, (*view.overrides, *texts), view.environ, view.layers
    return View(*own, view.beneath, view.resolvers)


def _is_plain(step: object) -> bool:
    return isinstance(step, str) and step.replace("-", "_").isidentifier()
