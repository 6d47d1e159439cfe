"""Edits that take keys away, each with its value, and no other byte. Flags of a script: shell/edits.py.

A mapping that would be left without any key goes, too, with the key that it is at: in YAML, ``a:`` alone is
a null. Where that cannot be, or where the text around a key is not plain, there is no edit.
"""

from __future__ import annotations

from cfglint.document.edits import descend
from cfglint.document.tree import Alias, Document, Entry, Mapping, Node, Path, Scalar, Sequence, walk
from cfglint.document.yaml import line_end
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_TEXT = ("yaml", "json", "toml")
_BREAKS = "\n\r\x85\u2028\u2029"


def remove_keys(document: Document, paths: Iterable[Path]) -> tuple[Edit, ...] | None:
    """Return the edits that take away all keys ``paths``; None where one of them cannot be taken away.

    The file as it is must have them, on their own: not through an alias, a reference or a merge.
    """
    wanted = list(dict.fromkeys(paths))
    if document.error is not None or not wanted:
        return None
    if document.format == "shell":
        from cfglint.document.shell.edits import remove

        each = [remove(document, path) for path in wanted]
        return None if None in each else joined(edit for edit in each if edit is not None)
    if document.format not in _OF_TEXT:
        return None
    names = _by_mapping(document, wanted)
    edits: list[Edit] = []
    for mapping, gone in names or ():
        own = _without(document, mapping, gone)
        if own is None:
            return None
        edits += own
    return joined(edits) if names else None


def outside(insertion: Edit, removal: Edit, text: str) -> Edit:
    """Return a line that is put below one that goes, below the line before it."""
    start = removal.start - 1
    inside = removal.start <= insertion.start == insertion.end <= removal.end
    if inside and start > 0 and text[start] == "\n" and insertion.new.startswith("\n"):
        return Edit(start, start, insertion.new)
    return insertion


def _by_mapping(document: Document, paths: Iterable[Path]) -> list[tuple[Mapping, set[str]]] | None:
    """Return the mappings that lose keys, with those; one that would lose all of them goes itself."""
    gone: dict[Path, set[str]] = {}
    for path in paths:
        nodes = descend(document.root, path)
        holder, name = (nodes[-2], path[-1]) if len(nodes) == len(path) + 1 > 1 else (None, None)
        if not isinstance(holder, Mapping) or not isinstance(name, str) or _is_named(nodes[-1]):
            return None
        gone.setdefault(path[:-1], set()).add(name)
    for at in sorted(gone, key=len, reverse=True):
        mapping = descend(document.root, at)[-1]
        if not isinstance(mapping, Mapping):
            return None
        if len(gone[at]) < len(mapping.entries) or mapping.merges:
            continue
        # A table of TOML need not be in one place.
        if not at or not isinstance(at[-1], str) or document.format == "toml" or _is_named(mapping):
            return None
        del gone[at]
        above = gone.setdefault(at[:-1], set())
        above.add(at[-1])
        if len(above) == len(_entries(document, at[:-1])):
            return None  # it takes more than one mapping along
    inner = [at for at in gone if any(at[i] in gone.get(at[:i], ()) for i in range(len(at)))]
    for at in inner:  # that go with what they are in
        del gone[at]
    return [(descend(document.root, at)[-1], names) for at, names in gone.items()]  # type: ignore[misc]


def _entries(document: Document, at: Path) -> dict[str, Entry]:
    node = descend(document.root, at)[-1]
    return node.entries if isinstance(node, Mapping) else {}


def _is_named(node: Node) -> bool:
    """Whether an alias may stand for a node, or for something in it."""
    return any(not isinstance(each, Alias) and each.anchor is not None for each in walk(node))


def _without(document: Document, mapping: Mapping, names: set[str]) -> list[Edit] | None:
    """Return the edits that take some of the entries of a mapping away."""
    text = document.file.text
    entries = sorted(mapping.entries.values(), key=lambda entry: entry.key.start)
    gone = [entry.key.text in names for entry in entries]
    if not document.owns(mapping.start, mapping.end) or not all(0 <= e.key.start <= _end(e) for e in entries):
        return None
    if text[mapping.start : mapping.start + 1] == "{":
        return _of_flow(text, mapping, entries, gone)
    if mapping.flow:
        return None  # the pair of `[key: value]`
    if document.format == "toml":
        return _of_table(text, [entry for entry, is_gone in zip(entries, gone, strict=True) if is_gone])
    edits = []
    for i, entry in enumerate(entries):
        if gone[i]:
            after = entries[i + 1] if i + 1 < len(entries) and not gone[i + 1] else None
            edit = _of_block(text, entry, after)
            if edit is None:
                return None
            edits.append(edit)
    return edits


def _end(entry: Entry) -> int:
    """Return where the text of an entry ends."""
    node = entry.value
    while isinstance(node, (Mapping, Sequence)) and not node.flow:
        if isinstance(node, Mapping):
            children = [each.value for each in node.entries.values()] + node.merges
        else:
            children = node.items
        if not children:
            break
        node = max(children, key=lambda child: child.end)
    return max(entry.key.end, entry.value.end, node.end)


def _ends_in_block(entry: Entry) -> bool:
    """Whether what is left of a literal's last lines is not plain."""
    return any(isinstance(each, Scalar) and each.style in ("|", ">") for each in walk(entry.value))


def _of_flow(text: str, mapping: Mapping, entries: list[Entry], gone: list[bool]) -> list[Edit] | None:
    """Take entries from between braces, each run of them with one comma."""
    if text[mapping.end - 1 : mapping.end] != "}" or mapping.merges or all(gone):
        return None
    ends = [_end(entry) for entry in entries]
    for i in range(1, len(entries)):
        if (gone[i - 1] or gone[i]) and text[ends[i - 1] : entries[i].key.start].strip() != ",":
            return None  # a comment, or what is not written as usual
    edits = []
    i = 0
    while i < len(entries):
        if not gone[i]:
            i += 1
            continue
        first = i
        while i < len(entries) and gone[i]:
            i += 1
        if i < len(entries):
            edits.append(Edit(entries[first].key.start, entries[i].key.start, ""))
        else:
            edits.append(Edit(ends[first - 1], ends[-1], ""))
    return edits


def _of_block(text: str, entry: Entry, after: Entry | None) -> Edit | None:
    """Take the lines of an entry away; where it begins an item of a list, the next entry takes its place."""
    start, stop = entry.key.start, _end(entry)
    line, end = _line_start(text, start), line_end(text, stop)
    rest = text[stop:end].strip().removeprefix(":").strip()
    if (rest and not rest.startswith("#")) or _ends_in_block(entry):
        return None
    lead = text[line:start]
    if not lead.strip(" "):
        return _lines(text, line, end)
    between = "" if after is None else text[end : after.key.start]
    if lead.strip(" -") or not lead.rstrip(" ").endswith("-") or between.strip() or not between:
        return None
    assert after is not None
    return Edit(start, after.key.start, "")


def _of_table(text: str, entries: list[Entry]) -> list[Edit] | None:
    """Take the lines of statements of TOML away."""
    from cfglint.document.toml import Scanner

    scanner = Scanner(text)
    scanner.run()
    starts = {statement.start: statement for each in scanner.sections for statement in each.statements}
    edits = []
    for entry in entries:
        statement = starts.get(entry.key.start)
        if statement is None or len(statement.names) != 1 or text[statement.end - 1] in "\n\r":
            return None
        line, end = _line_start(text, statement.start), line_end(text, statement.end)
        rest = text[statement.end : end].strip()
        if text[line : statement.start].strip(" \t") or (rest and not rest.startswith("#")):
            return None
        edits.append(_lines(text, line, end))
    return edits


def _line_start(text: str, at: int) -> int:
    return 1 + max(text.rfind(mark, 0, at) for mark in _BREAKS)


def _lines(text: str, start: int, end: int) -> Edit:
    """Take whole lines away; of the last ones that no line break ends, the one before."""
    if end < len(text):
        return Edit(start, end + (2 if text[end : end + 2] == "\r\n" else 1), "")
    if start:
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    return Edit(start, end, "")


def joined(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return removals of which none touches another."""
    joined: list[Edit] = []
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        if joined and edit.start <= joined[-1].end:
            joined[-1] = Edit(joined[-1].start, max(joined[-1].end, edit.end), "")
        else:
            joined.append(edit)
    return tuple(joined)
