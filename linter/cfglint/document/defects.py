"""What is wrong with a document as such, whatever it configures; the CFG rules report it."""

from __future__ import annotations

from cfglint.document.evaluate import path_of, reference_place
from cfglint.document.interpolation import MalformedError, parse
from cfglint.document.places import BudgetError, Value, dotted
from cfglint.document.scalars import Missing, is_float_like_string
from cfglint.document.trace import nodes_with_paths, references_in
from cfglint.document.tree import Mapping, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.interpolation import Reference
    from cfglint.document.places import Path
    from cfglint.document.tree import Node
    from cfglint.document.view import View


class Defect:
    """One defect of the value at ``key``; ``related`` is a second span, such as the first of two keys."""

    __slots__ = ("end", "key", "kind", "note", "related", "start", "text")

    def __init__(
        self,
        kind: str,
        key: str,
        text: str,
        *,
        span: tuple[int, int],
        note: str = "",
        related: tuple[int, int] | None = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.text = text
        self.start, self.end = span
        self.note = note
        self.related = related

    def __repr__(self) -> str:
        return f"Defect({self.kind!r}, {self.key!r}, {self.text!r}, {self.note!r})"


class Defects:
    """The defects of a document, by kind, each in the file's order."""

    __slots__ = ("cycles", "duplicate_keys", "float_strings", "missing", "told", "unresolved", "unset_env")

    def __init__(self) -> None:
        self.duplicate_keys: list[Defect] = []
        self.unresolved: list[Defect] = []
        self.cycles: list[Defect] = []
        self.told: set[frozenset[str]] = set()
        self.missing: list[Defect] = []
        self.float_strings: list[Defect] = []
        self.unset_env: list[Defect] = []


def find_defects(view: View) -> Defects:
    """Walk the document once, each node as often as it is written."""
    defects = Defects()
    interpolates = view.interpolates
    nodes = nodes_with_paths(view.root)
    for path, node in nodes:
        if node.__class__ is not Scalar or view.source(node) is not None:
            continue  # what is wrong in another file is said of that one
        text = node.text
        if interpolates and text == "???":
            defects.missing.append(Defect("missing", dotted(path), text, span=(node.start, node.end)))
        elif interpolates and "${" in text:
            try:
                if view.refill():
                    _check_interpolation(view, defects, path, node)
            except (BudgetError, RecursionError):
                continue
        elif not node.style and is_float_like_string(node, view.dialect):
            defects.float_strings.append(
                Defect("float_string", dotted(path), text, span=(node.start, node.end))
            )
    if view.document.duplicates:
        _duplicates(view, defects, nodes)
    return defects


def _check_interpolation(view: View, defects: Defects, path: Path, node: Scalar) -> None:
    key = dotted(path)
    span = (node.start, node.end)
    place, _ = view.follow(node, path)
    try:
        parts = parse(node.text)
    except MalformedError as error:
        defects.unresolved.append(Defect("malformed", key, node.text, span=span, note=str(error)))
        return
    if not isinstance(place, Value):
        return  # the common case: it leads somewhere
    value = place.value
    if isinstance(value, Missing):
        if path in view.cyclic or (value.kind == "cycle" and "parent" in value.why):
            around = frozenset(value.why.rpartition("cycle ")[2].split(" -> "))
            if around not in defects.told:  # once, however many keys it runs through
                defects.told.add(around)
                defects.cycles.append(Defect("cycle", key, node.text, span=span, note=value.why))
            return
        if value.kind == "env":
            defects.unset_env.append(Defect("unset_env", key, node.text, span=span, note=value.why))
    if len(path) > 1 and path[0] == "defaults" and isinstance(path[1], int):
        return  # Hydra resolves its defaults list against its command line, not against this file
    for reference in references_in(parts):
        target, _ = reference_place(view, reference, path)
        found = target.value if isinstance(target, Value) else None
        wanted = path_of(view, reference, path)
        if isinstance(wanted, Missing):
            if wanted.kind != "absent":
                continue
            note = wanted.why
        elif isinstance(found, Missing) and found.kind == "absent" and view.place(wanted)[0] is None:
            note = _nearest(view, wanted)
        else:
            continue
        text = node.text[reference.start : reference.end]
        defects.unresolved.append(
            Defect("unresolved", key, text, span=_part_span(view, node, reference), note=note)
        )


def _part_span(view: View, node: Scalar, reference: Reference) -> tuple[int, int]:
    """Return the span of the reference where the source spells it once, else that of the whole value."""
    if node.origin is not None:
        return node.start, node.end
    text = node.text[reference.start : reference.end]
    source = view.document.file.text
    at = source.find(text, node.start, node.end)
    if at < 0 or source.find(text, at + 1, node.end) >= 0:
        return node.start, node.end
    return at, at + len(text)


def _nearest(view: View, wanted: Path) -> str:
    """Name the existing key that looks most like the one that is not there."""
    from cfglint.errors import did_you_mean

    name = dotted(wanted)
    known: list[str] = []
    for depth in range(len(wanted) - 1, -1, -1):
        parent = wanted[:depth]
        keys = view.keys(parent)
        if keys:
            paths = [(*parent, key, *wanted[depth + 1 :]) for key in keys[:500] if len(key) < 200]
            known = [dotted(path) for path in paths if view.has(path)]
            break
    return f"{name} is not in the file{did_you_mean(name, known)}"


def _duplicates(view: View, defects: Defects, nodes: list[tuple[Path, Node]]) -> None:
    paths: dict[int, Path] = {}
    for path, node in nodes:
        if isinstance(node, Mapping):
            for name, entry in node.entries.items():
                paths[id(entry.key)] = (*path, name)
    later = {id(first): key for key, first in view.document.duplicates}
    for key, first in view.document.duplicates:
        last = key
        while id(last) in later:
            last = later[id(last)]
        path = paths.get(id(last), (key.text,))
        defects.duplicate_keys.append(
            Defect(
                "duplicate_key",
                dotted(path),
                key.text,
                span=(key.start, key.end),
                note="the last one holds to PyYAML; OmegaConf refuses the file",
                related=(first.start, first.end),
            )
        )
