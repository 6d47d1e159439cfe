"""What a framework's blocks come to, as the source of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.tree import walk
from cfglint.record import Record, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Block(Record):
    """What a framework's blocks, of every layer, come to; what stands first goes first."""

    settings: dict[str, list[str]] = field(factory=dict)  # the words of each, in order
    detect: list[str] = field(factory=list)
    versions: list[str] = field(factory=list)
    bindings: dict[str, list[str]] = field(factory=dict)
    lets: dict[str, str] = field(factory=dict)
    files: list[tuple[tuple[str | int, ...], str]] = field(factory=list)

    def head(self, nodes: Sequence[t.Framework]) -> str:
        """Return the source of what every run needs."""
        entries = [entry for node in nodes for entry in node.entries]
        keys = None  # those that a framework reads beside the facts' names
        if any(isinstance(entry, t.NamesAreKeys) for entry in entries):
            keys = tuple(dict.fromkeys(path.steps for path in walk(tuple(nodes)) if isinstance(path, t.Path)))
        (dialect, *_), (composes, *_) = (
            self.settings.get(key, [usual]) for key, usual in (("dialect", "pyyaml"), ("composes", ""))
        )
        checked = next((entry.version.numbers for entry in entries if isinstance(entry, t.Checked)), ())
        return (
            f"{{'dialect': {dialect!r}, 'detect': {tuple_of(self.detect)}, "
            f"'keys': {keys!r}, 'composes': {composes!r}, 'files': {tuple(self.files)!r}, "
            f"'last': {'claims' in self.settings}, 'checked': {checked!r}, "
            f"'knows': {tuple(self.settings.get('knows', ()))!r}, "
            f"'packages': {tuple(self.settings.get('packages', ()))!r}, "
            f"'programs': {tuple(self.settings.get('programs', ()))!r}, "
            f"'extends': {tuple(self.settings.get('extends', ()))!r}, "
            f"'classes': {tuple(' '.join(self.settings.get('classes', ())).split())!r}, "
            f"'home': {next(iter(self.settings.get('home', ())), '')!r}, "
            f"'resolvers': {tuple(sorted(set(self.settings.get('resolvers', ()))))!r}, "
            f"'sections': {any(isinstance(entry, t.SectionsAreJobs) for entry in entries)}}}"
        )

    def rest(self) -> str:
        """Return the source of what only a file of the framework needs."""
        bound = dict_of({name: tuple_of(each) for name, each in self.bindings.items()})
        return f"{{'versions': {tuple_of(self.versions)}, 'bind': {bound}, 'lets': {dict_of(self.lets)}}}"


def tuple_of(sources: Iterable[str]) -> str:
    """Return the source of a tuple."""
    return f"({''.join(source + ', ' for source in sources)})"


def dict_of(sources: Mapping[str, str]) -> str:
    """Return the source of a mapping."""
    return f"{{{', '.join(f'{key!r}: {source}' for key, source in sources.items())}}}"
