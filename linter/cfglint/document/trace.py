"""Where a value is defined and who else reads it, and what is wrong with a document as such.

Only what has something to tell imports this: a `View` notices by itself that nothing is wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress

from cfglint.document.omega import Argument, Call, Evaluator, MalformedError, Part, Reference, parse
from cfglint.document.spoken import spoken
from cfglint.document.tree import (
    ALL,
    MAX_REFERENCES,
    Alias,
    Composite,
    Computed,
    Entry,
    File,
    Mapping,
    Missing,
    Node,
    Path,
    Place,
    Scalar,
    Sequence,
    Unresolved,
    dotted,
    effective,
    nodes_with_paths,
    split_key,
    target,
)
from cfglint.document.view import BudgetError, MappingView, View
from cfglint.errors import did_you_mean
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.layers import Source

_WITH_NAMES = ("shell", "python", "notebook")
_MOST_REFERENCES = 500
_DEEPEST = 50
_MOST_KEYS = 500  # that a misspelled reference is compared with
_MOST_NEAR = 50  # misspelled references of one document

_VARIABLE = re.compile(r"\$\{[A-Z][A-Z0-9_]*\}")


class Step(Record):
    """One step from use to definition: an ``interpolation``, ``alias``, ``merge`` or ``override``."""

    kind: str
    start: int
    end: int
    text: str


class Trace(Record):
    """Where the value at ``path`` is defined (``at``, ``node``, ``span``), and the way there.

    Where nothing is there, ``present`` is false and ``span`` is that of the nearest present parent's key.
    ``editable``: the definition is a scalar that the file spells out on its own. ``source`` is None where the
    definition is in the document's own file, else how the other file came in that ``span`` points into.
    A path with ALL is traced up to there.
    """

    view: View
    path: Path
    at: Path = field(default=(), init=False)
    node: Node | None = field(default=None, init=False)
    span: tuple[int, int] = field(default=(0, 0), init=False)
    key_span: tuple[int, int] = field(default=(0, 0), init=False)
    steps: list[Step] = field(factory=list, init=False)
    computed: bool = field(default=False, init=False)
    source: Source | None = field(default=None, init=False)
    key_source: Source | None = field(default=None, init=False)
    _depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        view = self.view
        self.key_span = (view.document.start, view.document.start)
        view.refill()
        try:
            path = self.path[: self.path.index(ALL)] if ALL in self.path else self.path
            self.node, self.at = self._walk(path)  # type: ignore[assignment] # never Computed
        except (BudgetError, RecursionError):
            self.node = None
        node = self.node
        if node is None:
            self.span, self.source = self.key_span, self.key_source
        else:
            self.span, self.source = (node.start, node.end), view.source(node)

    # ── what is asked of it ────────────────────────────────────────────────────────────────────────────────
    @property
    def present(self) -> bool:
        """Whether something is at the path."""
        return self.node is not None

    @property
    def editable(self) -> bool:
        """Whether the file spells the value out on its own, where an edit can change it."""
        node = self.node
        if isinstance(node, Sequence):
            return self._is_said_in_words(node)
        return (
            isinstance(node, Scalar)
            and not self.computed
            and not isinstance(node, Unresolved)
            and (not isinstance(node, Composite) or node.editable)
            and node.origin is None
            and self.source is None
            and node.style not in ("|", ">")
            and self.view.document.owns(node.start, node.end)
        )

    def _is_said_in_words(self, node: Sequence) -> bool:
        """Whether a list is the words behind a command's flag, which nothing else reads."""
        document = self.view.document
        if document.format != "shell" or document.listed or self.computed or self.source is not None:
            return False
        words = [item.text for item in node.items if type(item) is Scalar]
        plain = len(words) == len(node.items) and document.file.text[node.start : node.end].split() == words
        read = any(references(self.view, item) for item in node.items) if plain else True
        return not read and document.owns(node.start, node.end)

    @property
    def file(self) -> File:
        """The file that ``span`` points into."""
        return self.view.document.file if self.source is None else self.source.file

    @property
    def own_span(self) -> tuple[int, int]:
        """Where the document's own file has the value, or names the file that has it."""
        if self.source is None:
            return self.span
        node = self.source.first.node
        if node.origin is not None:  # chosen on the command line
            return self.view.document.start, self.view.document.start
        return node.start, node.end

    @property
    def overrides(self) -> bool:
        """Whether the document can say another value at ``at``, over the file beneath that has this one."""
        return (
            self.source is not None
            and (not self.source.hung or bool(self.flag))
            and isinstance(self.node, Scalar)
            and not self.computed
            and all(isinstance(part, str) for part in self.at)
        )

    @property
    def flag(self) -> str:
        """The flag of a command's program whose default the value is; empty where it is none."""
        return self.node.flag if isinstance(self.node, Composite) else ""

    @property
    def shared(self) -> tuple[str, ...]:
        """Other paths whose value comes from the same definition."""
        if self.node is None:
            return ()
        definition = definition_path(self.view, self.node)
        paths = [] if definition is None else [dotted(definition)]
        paths += references(self.view, self.node)
        return tuple(path for path in paths if path != dotted(self.path))

    @property
    def where(self) -> str:
        """Where the value stands: ``line 3 through ${a.b}``, ``ds.json:4 through deepspeed at line 12``."""
        override = next((step.text for step in self.steps if step.kind == "override"), None)
        if override is not None:
            return override
        name = None if self.present else self.view.awaits(self.path)
        if name is not None:
            return f"{name} is not here"
        line = self.file.lines.position(self.span[0])[0]
        place = f"line {line}" if self.source is None else f"{self.file.path}:{line}"
        via = [step.text for step in self.steps if step.kind in ("interpolation", "alias", "merge")][:1]
        source = self.source
        while source is not None:
            if source.node.origin is not None:
                via.append(source.node.origin)
                break
            file = self.view.document.file if source.by is None else source.by.file
            line = file.lines.position(source.node.start)[0]
            place_of = f"line {line}" if source.by is None else f"{file.path}:{line}"
            via.append(f"{spoken(tuple(split_key(source.key)))} at {place_of}")
            source = source.by
        return f"{place} through {', '.join(via)}" if via else place

    # ── the way down, as `View.place` goes it ──────────────────────────────────────────────────────────
    def _walk(self, path: Path) -> Place:
        """Go down ``path`` from the root, writing down each step."""
        node, at = self.view.place(path, self)
        return self.follow(None if isinstance(node, Computed) else node, at)

    def alias(self, node: Alias) -> None:
        """Write an alias down."""
        if self.view.document.format not in _WITH_NAMES:  # there, one variable that two flags read
            self.steps.append(Step("alias", node.start, node.end, f"*{node.name}"))

    def enter(self, mapping: Mapping, part: str, entry: Entry) -> None:
        """Write down the merges through which a mapping has an entry, and the override that set it."""
        view = self.view
        seen: set[int] = set()
        while part not in mapping.entries and id(mapping) not in seen:
            seen.add(id(mapping))
            for value in _merge_sources(mapping):
                merged = target(value)
                if isinstance(merged, Mapping) and id(merged) not in seen and part in effective(merged):
                    text = f"<<: *{value.name}" if isinstance(value, Alias) else "<<"
                    self.steps.append(Step("merge", value.start, value.end, text))
                    mapping = merged
                    break
        value = entry.value
        origin = value.origin if isinstance(value, Scalar) else view.origins.get(id(value))
        self.key_source = view.source(entry.key)
        self.key_span = (entry.key.start, entry.key.end)
        if origin is not None:
            start = view.document.start
            self.steps.append(Step("override", start, start, origin))
            self.key_source = None
            if entry.key.origin:
                self.key_span = (start, start)

    def follow(self, node: Node | Computed | None, at: Path) -> Place:
        """Follow a reference to its definition; what is put together from parts is its own definition."""
        view = self.view
        if not isinstance(node, Scalar) or not view.interpolates or "${" not in node.text:
            return node, at
        end, path = view.follow(node, at)
        self.steps.append(Step("interpolation", node.start, node.end, node.text))
        if end is None or isinstance(end, Computed) or path == at or self._depth >= MAX_REFERENCES:
            self.computed = True
            return node, at
        try:
            parts = parse(node.text)
        except MalformedError:
            parts = ()
        if len(parts) == 1 and isinstance(parts[0], Reference):
            named = Evaluator(view, at).path_of(parts[0])
            if isinstance(named, Missing):
                self.computed = True
                return node, at
            path = named
        self._depth += 1
        place = self._walk(path)
        self._depth -= 1
        return place


def _merge_sources(node: Mapping) -> list[Node]:
    sources: list[Node] = []
    for value in node.merges:
        merged = target(value)
        sources.extend(merged.items if isinstance(merged, Sequence) else [value])
    return sources


# ── who reads a definition ─────────────────────────────────────────────────────────────────────────────────
def references(view: View, node: Node) -> tuple[str, ...]:
    """Return the paths whose value comes from ``node``, besides that of its definition."""
    view.refill()
    try:
        return _references(view, node)
    except (BudgetError, RecursionError):
        return ()


def _references(view: View, node: Node) -> tuple[str, ...]:
    if "uses" not in view.memo:
        view.memo["uses"] = _collect(view)
    uses: dict[int, list[Path]] = view.memo["uses"]
    own = definition_path(view, node)
    readers: dict[Path, None] = dict.fromkeys(uses.get(id(node), ()))
    waiting = [*([] if own is None else [own]), *readers]
    while waiting and len(readers) < _MOST_REFERENCES:
        # Whoever reads a mapping or list around a path reads what is in it, unless its own key wins there.
        path = waiting.pop()
        for depth in range(len(path) + 1):
            around, _ = view.place(path[:depth])
            for use in uses.get(id(around), ()):
                reader = (*use, *path[depth:])
                if reader in readers or reader == own or len(reader) > _DEEPEST:
                    continue
                if view.follow(*view.place(reader))[0] is node:
                    readers[reader] = None
                    waiting.append(reader)
    return tuple(dotted(path) for path in readers if path != own)


def definition_path(view: View, node: Node) -> Path | None:
    """Return the path at which the file writes ``node``."""
    if "places" not in view.memo:
        view.memo["places"] = {id(written): path for path, written in reversed(nodes_with_paths(view.root))}
    places: dict[int, Path] = view.memo["places"]
    return places.get(id(node))


def _collect(view: View) -> dict[int, list[Path]]:
    """Return, by the id of a definition, the paths that read it through a reference, an alias or a merge."""
    uses: dict[int, list[Path]] = {}
    for path, node in nodes_with_paths(view.root):
        for read in _read_by(view, node, path):
            uses.setdefault(id(read), []).append(path)
    return uses


def _read_by(view: View, node: Node, path: Path) -> list[object]:
    if isinstance(node, Alias):
        return [node.target]
    if isinstance(node, Mapping):
        return [target(source) for source in _merge_sources(node)]
    if isinstance(node, Composite):
        return [*node.reads]
    if isinstance(node, Scalar) and view.interpolates and "${" in node.text:
        return _referred(view, node, path)
    return []


def _referred(view: View, node: Scalar, path: Path) -> list[object]:
    try:
        parts = parse(node.text)
    except MalformedError:
        return []
    if not view.refill():
        return []
    whole, _ = view.follow(node, path)
    reads: list[object] = [] if whole is None or isinstance(whole, Computed) else [whole]
    for reference in _references_in(parts):
        read, _ = Evaluator(view, path).reference_place(reference)
        if isinstance(read, Scalar) and read is not whole:
            reads.append(read)
    return reads


# ── defects ────────────────────────────────────────────────────────────────────────────────────────────────
class Defect(Record):
    """One defect of the value at ``key``; ``related`` is a second span, such as the first of two keys."""

    key: str
    text: str
    start: int
    end: int
    note: str = ""
    related: tuple[int, int] | None = None


def find_defects(view: View) -> dict[str, list[Defect]]:
    """Return the defects of a document by the names of their lists, each in the file's order."""
    defects: dict[str, list[Defect]] | None = view.memo.get("defects")
    if defects is None:
        defects = view.memo["defects"] = defaultdict(list)
        circles: set[frozenset[str]] = set()  # each is reported once, however many keys it runs through
        for path, node, cyclic in view.suspects():
            with suppress(BudgetError, RecursionError):
                for kind, defect in _defects_of(view, path, node, cyclic=cyclic):
                    if kind == "cycles":
                        around = frozenset(defect.note.rpartition("cycle ")[2].split(" -> "))
                        if around in circles:
                            continue
                        circles.add(around)
                    defects[kind].append(defect)
        if view.document.duplicates:
            defects["duplicate_keys"] = _duplicates(view)
    return defects


def _defects_of(view: View, path: Path, node: Scalar, *, cyclic: bool) -> Iterator[tuple[str, Defect]]:
    """Yield what is wrong with a scalar, and the name of its list."""
    key, text, span = dotted(path), node.text, (node.start, node.end)
    if view.interpolates and text == "???":
        if not view.is_off(path):
            yield "missing", Defect(key, text, *span)
    elif not view.interpolates or "${" not in text:
        yield "float_strings", Defect(key, text, *span)
    elif view.refill():
        place, _ = view.follow(node, path)
        try:
            parts = parse(text)
        except MalformedError as error:
            yield "unresolved", Defect(key, text, *span, str(error))
            return
        value = place.value if isinstance(place, Computed) else None
        if isinstance(value, Missing) and (cyclic or (value.kind == "cycle" and "parent" in value.why)):
            yield "cycles", Defect(key, text, *span, value.why)
            return
        if len(path) > 1 and path[0] == "defaults" and isinstance(path[1], int):
            return  # Hydra resolves its defaults list against its command line, not against this file
        for reference in _references_in(parts):
            whole = reference.start == 0 and reference.end == len(text)
            note = _leads_nowhere(view, reference, path, whole=whole)
            if note is not None:
                part = text[reference.start : reference.end]
                yield (
                    "placeholders" if _VARIABLE.fullmatch(part) else "unresolved",
                    Defect(key, part, *_part_span(view, node, part), note),
                )


def _references_in(parts: tuple[Part, ...]) -> list[Reference]:
    """Return all references in ``parts``, those inside arguments and keys too."""
    references: list[Reference] = []
    waiting: list[Part | Argument] = list(parts)
    for part in waiting:  # grows on the way
        if isinstance(part, Reference):
            references.append(part)
            waiting.extend(part.keys)
        elif isinstance(part, Call):
            waiting.extend(part.arguments)
        elif isinstance(part, Argument):
            waiting.extend(part.parts)
            waiting.extend(part.items)
    return references


def _leads_nowhere(view: View, reference: Reference, path: Path, *, whole: bool) -> str | None:
    """Say why a reference leads nowhere; None where it leads somewhere, or that is not known.

    One that is the ``whole`` value may mean a section.
    """
    place, _ = Evaluator(view, path).reference_place(reference)
    wanted = Evaluator(view, path).path_of(reference)
    if isinstance(wanted, Missing):
        return wanted.why if wanted.kind == "absent" else None
    value = place.value if isinstance(place, Computed) else None
    if isinstance(value, Missing) and value.kind == "absent" and view.place(wanted)[0] is None:
        if wanted[0] not in view.keys(()) and any(view.has(wanted[n:]) for n in range(1, len(wanted) - 1)):
            return None  # another file takes this one in below those keys
        near = near_keys(view, wanted, sections=whole) or ": define it, or write out what it stands for"
        return f"{dotted(wanted)} is not in the file{near}"
    return None


def _part_span(view: View, node: Scalar, text: str) -> tuple[int, int]:
    """Return the span of a part where the source spells it once, else that of the whole value."""
    source = view.document.file.text
    at = source.find(text, node.start, node.end) if node.origin is None else -1
    if at < 0 or source.find(text, at + 1, node.end) >= 0:
        return node.start, node.end
    return at, at + len(text)


def near_keys(view: View, wanted: Path, *, sections: bool = True) -> str:
    """Return ``"; did you mean a.b?"`` for a key that is not there; nothing where none is like it.

    With ``sections``, those are meant, too.
    """
    names: list[str] = []
    asked = view.memo["near"] = view.memo.get("near", 0) + 1
    if asked > _MOST_NEAR:
        return ""
    for depth in range(len(wanted) - 1, -1, -1):
        parent = wanted[:depth]
        keys = view.keys(parent)
        if keys:
            paths = [(*parent, key, *wanted[depth + 1 :]) for key in keys[:_MOST_KEYS] if len(key) < 200]
            there = (path for path in paths if view.has(path))
            meant = (path for path in there if sections or not isinstance(view.get(path), MappingView))
            names = [dotted(path) for path in meant]
            break
    return did_you_mean(dotted(wanted), names)


def _rest(view: View, key: Scalar) -> str:
    """Return what stands behind a key on its line."""
    text = view.document.file.text
    end = text.find("\n", key.end)
    return text[key.end : end if end >= 0 else len(text)].partition(" #")[0].strip(": \t\r")


def _duplicates(view: View) -> list[Defect]:
    paths = {
        id(entry.key): (*path, name)
        for path, node in nodes_with_paths(view.root)
        if isinstance(node, Mapping)
        for name, entry in node.entries.items()
    }
    last_of: dict[int, Scalar] = {}
    for key, first in reversed(view.document.duplicates):
        last_of[id(first)] = last_of.get(id(key), key)
    defects = []
    for key, first in view.document.duplicates:
        if not view.interpolates and _rest(view, key) == _rest(view, first) != "":
            continue  # the same value twice, which OmegaConf alone minds
        path = dotted(paths.get(id(last_of[id(first)]), (key.text,)))
        note = "PyYAML keeps the last one; OmegaConf refuses the file"
        defects.append(Defect(path, key.text, key.start, key.end, note, (first.start, first.end)))
    return defects
