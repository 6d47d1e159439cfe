"""Writes new values of facts into a document: what has to stand where, who else reads that, the edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cfglint.document.edits import annotate, insert_key, replace_value
from cfglint.document.scalars import spell
from cfglint.document.trace import Trace, definition_path
from cfglint.document.tree import Scalar, dotted
from cfglint.lang import tree as t
from cfglint.repair.inverse import invert

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.view import View
    from cfglint.engine.describe import Origins
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps
    from cfglint.lang.symbols import Symbols
    from cfglint.repair.inverse import Written
    from cfglint.text import Edit


_SWITCH = ("true", "false", "on", "off")


@dataclass(frozen=True, slots=True)
class Definition:
    """Where the value at ``path`` is written; ``key`` tells definitions apart, ``shared`` also read it.

    ``holder`` is the key that it stands at, where that is another one.

    ``editable`` is false where no edit of this file can change it (an override, an environment variable).
    """

    path: Steps
    key: object
    editable: bool
    shared: tuple[str, ...] = ()
    holder: str = ""


@dataclass(slots=True)
class Patch:
    """Edits of one document, what each of them does in words, and the old text that it replaces."""

    edits: list[Edit] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    old: list[str | None] = field(default_factory=list)
    readers: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What the patch does, with the other keys that read what it changes."""
        if len(self.titles) == 1:
            return f"set {self.titles[0]}" + (
                f", which {_reading(self.readers[0])} too" if self.readers[0] else ""
            )
        return _joined(
            [
                title + (f" ({_reading(readers)} it too)" if readers else "")
                for title, readers in zip(self.titles, self.readers, strict=True)
            ]
        )


class Writer:
    """Writes facts of one document, as its framework's bindings read them."""

    def __init__(self, symbols: Symbols, subject: Subject, origins: Origins) -> None:
        self.symbols = symbols
        self.subject = subject
        self.origins = origins
        self._definitions: dict[Steps, Definition] = {}
        self._by_path: dict[str, list[str]] | None = None
        self._ties: dict[str, list[Steps]] | None = None

    def written(self, name: str, value: object, spelling: object = None) -> Written | None:
        """Return what has to stand in the file for a fact to be worth ``value`` (in base units)."""
        origin = self.origins.of(name)
        if origin.binding is None:
            return None
        kind = self.symbols.types[name]
        spelled = self.subject.view.get(origin.paths[0]) if origin.paths else None
        # Where a default is true or false, the key is a switch, and takes no third word.
        defaults = (binding.default for binding in self.origins.bindings.get(name, ()))
        switch = next((d.value for d in defaults if isinstance(d, t.Truth)), None) if kind.members else None
        if switch is not None and not isinstance(spelled, (str, int)):
            spelled = switch
        found = invert(origin.binding.source, value, kind, spelled, spelling, self.origins.values)
        if switch is not None and found is not None and str(found.value).lower() not in _SWITCH:
            return None
        return found

    def definition(self, path: Steps) -> Definition:
        """Return where the value at a path is written."""
        found = self._definitions.get(path)
        if found is None:
            trace = Trace(self.subject.view, path)
            if trace.present:
                editable = (trace.editable and isinstance(trace.node, Scalar)) or trace.overrides
                place = definition_path(self.subject.view, trace.node) if trace.node is not None else None
                holder = dotted(place) if place is not None else ""
                found = Definition(path, id(trace.node), editable, trace.shared, holder)
            else:
                found = Definition(path, path, editable=self.subject.view.hangs(path) is None)
            self._definitions[path] = found
        return found

    def facts_at(self, path: str) -> list[str]:
        """Return the facts that are read from a key as it is."""
        if self._by_path is None:
            self._by_path = {}
            for name, bindings in self.origins.bindings.items():
                for binding in bindings:
                    if isinstance(binding.source, t.Path):
                        self._by_path.setdefault(dotted(binding.source.steps), []).append(name)
        names = dict.fromkeys(self._by_path.get(path, ()))
        return [name for name in names if path in map(dotted, self.origins.of(name).paths)]

    def tied(self, name: str) -> list[Steps]:
        """Return the keys that the framework moves together with a fact's own."""
        if self._ties is None:
            self._ties = {}
            for block in self.symbols.frameworks.get(self.subject.framework or "", ()):
                for entry in block.entries:
                    if isinstance(entry, t.Tie):
                        self._ties.setdefault(entry.name, []).append(entry.path.steps)
        return self._ties.get(name, [])

    def patch(self, values: Iterable[Written]) -> Patch | None:
        """Return the edits for some values, None where one of them cannot be written into this file."""
        patch = Patch()
        for written in values:
            if not self._add(patch, written):
                return None
        return patch

    def _add(self, patch: Patch, written: Written) -> bool:
        view, document = self.subject.view, self.subject.document
        trace = Trace(view, written.path)
        old: str | None = None
        readers: tuple[str, ...] = ()
        over = ""
        if trace.overrides and trace.source is not None:
            edit = insert_key(document, trace.at, written.value, view.dialect)
            readers = tuple(trace.shared)
            over = f" (over {trace.where.partition(' through ')[0]})"
        elif trace.present:
            if not trace.editable or not isinstance(trace.node, Scalar):
                return False
            value = written.value
            if trace.node.style in ("'", '"') and not isinstance(value, str):
                # A number in quotes stays in quotes: its loader converts it.
                value = spell(value, None, view.dialect)
            edit = replace_value(document, trace.node, value, view.dialect)
            old = document.file.text[trace.node.start : trace.node.end]
            readers = tuple(trace.shared)
        else:
            edit = insert_key(document, written.path, written.value, view.dialect)
        if edit is None:
            return False
        if edit in patch.edits:  # two keys of one definition
            return True
        patch.edits.append(edit)
        patch.old.append(old)
        patch.readers.append(readers)
        patch.titles.append(f"{dotted(written.path)} to {shown(written.value)}{over}")
        return True


def _reading(readers: tuple[str, ...]) -> str:
    named = ", ".join(readers[:3]) + (" and others" if len(readers) > 3 else "")
    return f"{named} read{'s' * (len(readers) == 1)}"


def titled(values: Iterable[Written], view: View) -> str:
    """Say what would be set, where no edit can do it; a key of another file, with that file."""
    titles = []
    for written in values:
        elsewhere = view.hangs(written.path)
        key, file = (written.path, "") if elsewhere is None else (elsewhere[1], elsewhere[0].file.path)
        titles.append(f"{dotted(key)} to {shown(written.value)}{f' in {file}' if file else ''}")
    return _joined(titles)


def comments(subject: Subject, edits: Iterable[Edit], notes: Iterable[str]) -> Iterator[Edit]:
    """Yield the edits that append a comment to each edited line."""
    for edit, note in zip(edits, notes, strict=True):
        comment = annotate(subject.document, edit, note)
        if comment is not None:
            yield comment


def _joined(titles: list[str]) -> str:
    if len(titles) < 3:
        return "set " + " and ".join(titles)
    return "set " + ", ".join(titles[:-1]) + " and " + titles[-1]


def shown(value: object) -> str:
    """Return a value as YAML says it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
