"""Where a value is defined, and the way there from where it is used; walked only for findings."""

from __future__ import annotations

from cfglint.document.evaluate import path_of, reference_place
from cfglint.document.interpolation import MAX_DEPTH, Call, MalformedError, Reference, parse
from cfglint.document.places import ALL, BudgetError, Value, dotted
from cfglint.document.scalars import Missing
from cfglint.document.tree import Alias, Built, Mapping, Scalar, Sequence, Unread, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.document import File
    from cfglint.document.interpolation import Parts
    from cfglint.document.layers import Source
    from cfglint.document.places import Path
    from cfglint.document.tree import Node
    from cfglint.document.view import View


_MOST_REFERENCES = 500
_DEEPEST = 50


class Step:
    """One step from use to definition: an ``interpolation``, ``alias``, ``merge`` or ``override``."""

    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, kind: str, start: int, end: int, text: str) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.text = text

    def __repr__(self) -> str:
        return f"Step({self.kind!r}, {self.start}, {self.end}, {self.text!r})"


class Trace:
    """Where the value at ``path`` is defined (``at``, ``node``, ``span``).

    Where nothing is there, ``present`` is false and ``span`` is that of the nearest present parent's key.
    ``editable``: the definition is a scalar that the file spells out on its own. ``source`` is None where the
    definition stands in the document's own file, else how the other file came in that ``span`` points into.
    """

    __slots__ = (
        "at",
        "computed",
        "editable",
        "key_source",
        "key_span",
        "node",
        "path",
        "present",
        "source",
        "span",
        "steps",
        "view",
    )

    def __init__(self, view: View, path: Path) -> None:
        start = view.document.start
        self.view = view
        self.path = path
        self.at: Path = ()
        self.present = True
        self.node: Node | None = None
        self.span: tuple[int, int] = (start, start)
        self.key_span: tuple[int, int] = (start, start)
        self.steps: list[Step] = []
        self.computed = False
        self.editable = False
        self.source: Source | None = None
        self.key_source: Source | None = None

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
            self.present
            and self.source is not None
            and not self.source.hung
            and isinstance(self.node, Scalar)
            and not self.computed
            and all(isinstance(part, str) for part in self.at)
        )

    @property
    def told(self) -> str:
        """Where the value stands, in words."""
        return told(self)

    @property
    def shared(self) -> tuple[str, ...]:
        """Other paths whose value comes from the same definition."""
        if self.node is None:
            return ()
        own = dotted(self.path)
        definition = definition_path(self.view, self.node)
        paths = [] if definition is None else [dotted(definition)]
        paths += self.view.references(self.node)
        return tuple(path for path in paths if path != own)


def trace(view: View, path: Path) -> Trace:
    """Return where the value at ``path`` is defined; a path with ALL is traced up to there."""
    found = Trace(view, path)
    if ALL in path:
        path = path[: path.index(ALL)]
    try:
        _walk(found, path, 0)
    except (BudgetError, RecursionError):
        found.node = None
    node = found.node
    if node is not None:
        found.span = (node.start, node.end)
        found.source = view.source(node)
        found.editable = (
            isinstance(node, Scalar)
            and not found.computed
            and (not isinstance(node, (Built, Unread)) or (isinstance(node, Built) and node.cut >= 0))
            and node.origin is None
            and found.source is None
            and node.style not in ("|", ">")
            and view.document.owns(node.start, node.end)
        )
    else:
        found.present = False
        found.span = found.key_span
        found.source = found.key_source
    return found


def _walk(found: Trace, path: Path, depth: int) -> None:
    """Go down ``path`` from the root, writing down each step."""
    view = found.view
    node: Node | None = view.root
    found.at = ()
    for part in path:
        node = _follow(found, node, depth)
        if isinstance(node, Mapping):
            node = _enter(found, node, part)
        elif isinstance(node, Sequence):
            index = part if isinstance(part, int) else _number(part)
            count = len(node.items)
            if index is None or not -count <= index < count:
                node = None
            else:
                found.at = (*found.at, index % count)
                node = node.items[index]
        elif view.hung is not None and id(node) in view.hung:
            held = view.hung[id(node)]
            node = _enter(found, held, part) if isinstance(held, Mapping) else None
        else:
            node = None
        if isinstance(node, Alias):
            if view.document.format != "shell":  # there, one variable that two flags read
                found.steps.append(Step("alias", node.start, node.end, f"*{node.name}"))
            node = node.target
        if node is None:
            found.node = None
            return
    found.node = _follow(found, node, depth)


def _number(part: object) -> int | None:
    try:
        return int(str(part))
    except ValueError:
        return None


def _enter(found: Trace, node: Mapping, part: object) -> Node | None:
    view = found.view
    if not isinstance(part, str) or part not in view.entries(node):
        return None
    seen: set[int] = set()
    while part not in node.entries and id(node) not in seen:
        seen.add(id(node))
        for value in _merge_sources(node):
            target = value.target if isinstance(value, Alias) else value
            if isinstance(target, Mapping) and id(target) not in seen and part in effective(target):
                text = f"<<: *{value.name}" if isinstance(value, Alias) else "<<"
                found.steps.append(Step("merge", value.start, value.end, text))
                node = target
                break
    entry = node.entries.get(part)
    if entry is None:
        return None
    found.at = (*found.at, part)
    value = entry.value
    origin = value.origin if isinstance(value, Scalar) else view.origins.get(id(value))
    if origin is not None:
        start = view.document.start
        found.steps.append(Step("override", start, start, origin))
        found.key_span = (start, start) if entry.key.origin else (entry.key.start, entry.key.end)
        found.key_source = None
    else:
        found.key_source = view.source(entry.key)
        found.key_span = (entry.key.start, entry.key.end)
    return value


def _merge_sources(node: Mapping) -> list[Node]:
    sources: list[Node] = []
    for value in node.merges:
        target = value.target if isinstance(value, Alias) else value
        if isinstance(target, Sequence):
            sources.extend(target.items)
        else:
            sources.append(value)
    return sources


def _follow(found: Trace, node: Node | None, depth: int) -> Node | None:
    """Follow a reference to its definition; what is put together from parts is its own definition."""
    view = found.view
    if not isinstance(node, Scalar) or not view.interpolates or "${" not in node.text:
        return node
    at = found.at
    target, target_at = view.follow(node, at)
    found.steps.append(Step("interpolation", node.start, node.end, node.text))
    if target is None or isinstance(target, Value) or target_at == at or depth >= MAX_DEPTH:
        found.computed = True
        return node
    path: Path | Missing = target_at
    try:
        parts = parse(node.text)
    except MalformedError:
        parts = ()
    if len(parts) == 1 and isinstance(parts[0], Reference):
        path = path_of(view, parts[0], at)
    if isinstance(path, Missing):
        found.computed = True
        return node
    _walk(found, path, depth + 1)
    return found.node


def told(found: Trace) -> str:
    """Say where a value stands: ``line 3 through ${a.b}``, ``ds.json:4 through deepspeed at line 12``."""
    override = next((step.text for step in found.steps if step.kind == "override"), None)
    if override is not None:
        return override
    if not found.present:
        name = found.view.awaits(found.path)
        if name is not None:
            return f"{name} is not here"
    line = found.file.lines.position(found.span[0])[0]
    place = f"line {line}" if found.source is None else f"{found.file.path}:{line}"
    via = [step.text for step in found.steps if step.kind in ("interpolation", "alias", "merge")][:1]
    source = found.source
    while source is not None:
        if source.node.origin is not None:
            via.append(source.node.origin)
            break
        path = "" if source.by is None else f"{source.by.file.path}:"
        holder = found.view.document.file if source.by is None else source.by.file
        line = holder.lines.position(source.node.start)[0]
        via.append(f"{source.key} at {path}{line}" if path else f"{source.key} at line {line}")
        source = source.by
    return f"{place} through {', '.join(via)}" if via else place


def references(view: View, node: Node) -> tuple[str, ...]:
    """Return the paths whose value comes from ``node``, besides that of its definition."""
    try:
        return _references(view, node)
    except (BudgetError, RecursionError):
        return ()


def _references(view: View, node: Node) -> tuple[str, ...]:
    if view.uses is None:
        view.uses = _collect(view)
    uses = view.uses
    own = definition_path(view, node)
    direct = [] if own is None else [own]
    found: dict[Path, None] = dict.fromkeys(uses.get(id(node), ()))
    waiting = [*direct, *found]
    while waiting and len(found) < _MOST_REFERENCES:
        # Whoever reads a mapping or list around a path reads what is in it, unless its own key wins there.
        path = waiting.pop()
        for depth in range(len(path) + 1):
            around, _ = view.place(path[:depth])
            for use in uses.get(id(around), ()):
                other = (*use, *path[depth:])
                if other in found or other == own or len(other) > _DEEPEST:
                    continue
                if view.follow(*view.place(other))[0] is node:
                    found[other] = None
                    waiting.append(other)
    return tuple(dotted(path) for path in found if path != own)


def definition_path(view: View, node: Node) -> Path | None:
    """Return the path at which the file writes ``node``."""
    for path, found in nodes_with_paths(view.root):
        if found is node:
            return path
    return None


def nodes_with_paths(root: Node | None) -> list[tuple[Path, Node]]:
    """Return every node with the path of its definition, in the file's order; aliases are not entered."""
    found: list[tuple[Path, Node]] = []
    waiting: list[tuple[Path, Node]] = [] if root is None else [((), root)]
    while waiting:
        path, node = waiting.pop()
        found.append((path, node))
        if isinstance(node, Mapping):
            waiting.extend(reversed([((*path, k), e.value) for k, e in node.entries.items()]))
            waiting.extend((path, merge) for merge in node.merges if not isinstance(merge, Alias))
        elif isinstance(node, Sequence):
            waiting.extend(reversed([((*path, i), item) for i, item in enumerate(node.items)]))
    return found


def references_in(parts: Parts) -> list[Reference]:
    """Return all references in ``parts``, those inside arguments and keys too."""
    found: list[Reference] = []
    waiting: list[object] = list(parts)
    for part in waiting:  # grows on the way
        if isinstance(part, Reference):
            found.append(part)
            waiting.extend(part.keys)
        elif isinstance(part, Call):
            waiting.extend(part.arguments)
        elif not isinstance(part, str):
            waiting.extend(getattr(part, "parts", ()))
            waiting.extend(getattr(part, "items", ()))
    return found


def _collect(view: View) -> dict[int, list[Path]]:
    """Return, by the id of a definition, the paths that read it through a reference, an alias or a merge."""
    uses: dict[int, list[Path]] = {}
    for path, node in nodes_with_paths(view.root):
        if isinstance(node, Alias):
            uses.setdefault(id(node.target), []).append(path)
        elif isinstance(node, Mapping):
            for source in _merge_sources(node):
                target = source.target if isinstance(source, Alias) else source
                uses.setdefault(id(target), []).append(path)
        elif isinstance(node, Built):
            for part in node.reads:
                uses.setdefault(id(part), []).append(path)
        elif isinstance(node, Scalar) and view.interpolates and "${" in node.text:
            try:
                parts = parse(node.text)
            except MalformedError:
                continue
            if not view.refill():
                continue
            whole, _ = view.follow(node, path)
            if not isinstance(whole, Value) and whole is not None:
                uses.setdefault(id(whole), []).append(path)
            for reference in references_in(parts):
                read, _ = reference_place(view, reference, path)
                if isinstance(read, Scalar) and read is not whole:
                    uses.setdefault(id(read), []).append(path)
    return uses
