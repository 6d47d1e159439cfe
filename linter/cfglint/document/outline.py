"""The keys that a text names where it does not parse: enough to tell what it was meant to be.

Nothing is judged by an outline. It is read line by line, so that one mistake hides one line.
"""

from __future__ import annotations

import re

from cfglint.document.reading import read_text
from cfglint.document.tree import Entry, Mapping, Scalar
from cfglint.errors import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.tree import File

_MOST_LINES = 4  # that are left out
_MOST_KEYS = 200  # that are compared with known ones
_NEAR = 0.85
_DEEPEST = 20  # of tables in each other
_MOST = 2**18  # characters; what a file is for stands in its first lines
_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<items>(?:-[ \t]+)*)(?P<open>[{\[,]*[ \t]*)"
    r"(?P<quote>[\"']?)(?P<key>[A-Za-z_][\w.@/-]*)(?P=quote)?[ \t]*(?P<sign>[:=]?)[ \t]*(?P<value>[^\r\n#]*)"
)
_TABLE = re.compile(r"[ \t]*\[+[ \t]*(?P<path>[\w.\"-]+)[ \t]*\]*")
_TOKEN = re.compile(
    r"\"(?P<text>(?:[^\"\\\n]|\\.)*)(?:\"(?:\s*(?P<colon>:))?|(?=[\n\\])|\Z)|(?P<mark>[{}])|(?P<word>[\w.+-]+)"
)
# What a program fills in before anything reads the text.
# Jinja, ERB, and a value such as {your_folder}/name, for people to fill in.
_TEMPLATE = re.compile(r"\{\{|\{%|<%|:[ \t]+\{\w+\}[^\s,}#]")
# A JSON value that is a bare name: `"train_batch_size": BATCH_SIZE` or `$BATCH_SIZE`.
_BLANK = re.compile(r"\$?\{?[A-Z][A-Z0-9_]{2,}\}?|\$\{?\w+\}?")


def outline(text: str, form: str) -> Mapping:
    """Return the keys of a text of the form json, toml or yaml, each with its value as far as it is plain."""
    text = text[:_MOST].replace("\0", "")
    root = Mapping(0, flow=False)
    if form == "json":
        _in_braces(text, root)
    else:
        _in_lines(text, root, tables=form == "toml")
    return root


def _respelled(root: Mapping, names: set[str]) -> Mapping:
    entries = {
        (nearest(key, names, most=1, cutoff=_NEAR) or [key])[0] if key not in names else key: entry
        for key, entry in list(root.entries.items())[:_MOST_KEYS]
    }
    return Mapping(0, flow=False, entries=entries)


def without_mistakes(file: File) -> File | None:
    """Return a file without the lines at which it does not parse; None where that are too many."""
    text = file.text
    for _ in range(_MOST_LINES):
        errors = [document.error for document in file.documents if document.error is not None]
        if not errors:
            return file
        at = min(errors[0].offset or 0, len(text))
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        if not text[start:].strip():
            return None  # what was opened is never closed
        text = text[:start] + (text[end + 1 :] if end >= 0 else "")
        file = read_text(text, file.path)
    return None


def variants(root: Mapping, known: Iterable[str]) -> Iterator[Mapping]:
    """Yield an outline, then what may have been meant: other spellings, sections alone, other indentation."""
    yield root
    yield _respelled(root, set(known))
    entries = root.entries.items()
    yield Mapping(0, flow=False, entries={k: e for k, e in entries if isinstance(e.value, Mapping)})
    flat: dict[str, Entry] = {}
    waiting = [root]
    while waiting:
        for key, entry in waiting.pop(0).entries.items():
            flat.setdefault(key, entry)
            if isinstance(entry.value, Mapping):
                waiting.append(entry.value)
    yield Mapping(0, flow=False, entries=flat)


def is_template(text: str, at: int) -> bool:
    """Whether a mistake at ``at`` is what a template has in a program's place."""
    if _BLANK.match(text, at) and text[:at].rstrip().endswith(":"):
        return True
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return _TEMPLATE.search(text, max(0, start - 200), len(text) if end < 0 else end) is not None


def _in_lines(text: str, root: Mapping, *, tables: bool) -> None:
    above: list[tuple[int, Mapping]] = [(-1, root)]
    for line in text.splitlines():
        if tables and (table := _TABLE.match(line)) is not None:
            above = [(-1, _at(root, table["path"].replace('"', "").split(".", _DEEPEST)[:_DEEPEST]))]
            continue
        found = _LINE.match(line)
        if found is None or (found["sign"] == "" and found["value"]):
            continue  # words, or a comment
        indent = len(found["indent"].expandtabs(2)) + len(found["items"])
        while len(above) > 1 and above[-1][0] >= indent:
            above.pop()
        value = found["value"].strip().strip("\"'")
        parent = above[-1][1]
        if value:
            _set(parent, found["key"], value, found.start("key"))
            if value[0] in "{[":
                for part in value.replace(",", "\n").replace("{", "\n").split("\n"):
                    inner = _LINE.match(part)
                    if inner is None:
                        continue
                    _set(_at(parent, [found["key"]]), inner["key"], inner["value"].strip(" }]\"'"), 0)
        else:
            above.append((indent, _at(parent, [found["key"]])))


def _in_braces(text: str, root: Mapping) -> None:
    above, key = [root], ""
    for found in _TOKEN.finditer(text):
        if found["mark"] == "{":
            above.append(_at(above[-1], [key]) if key else above[-1])
            key = ""
        elif found["mark"] == "}":
            above = above[:-1] or [root]
        elif found["colon"]:
            key = found["text"]
            _set(above[-1], key, "", found.start())
        elif key:
            _set(above[-1], key, found["text"] or found["word"] or "", found.start())
            key = ""


def _set(mapping: Mapping, key: str, value: str, at: int) -> None:
    if key not in mapping.entries:
        mapping.entries[key] = Entry(Scalar(key, at, at), Scalar(value, at, at))


def _at(mapping: Mapping, path: list[str]) -> Mapping:
    """Return the mapping at a path, made where it is not there."""
    for key in path:
        entry = mapping.entries.get(key)
        inner = entry.value if entry is not None else None
        if not isinstance(inner, Mapping):
            inner = Mapping(0, flow=False)
            mapping.entries[key] = Entry(Scalar(key, 0, 0), inner)
        mapping = inner
    return mapping
