"""Writes new values of facts into a document: what has to be where, who else reads that, the edits.

What has to be there is found by reading the framework's bindings backwards (`invert`).
"""

from __future__ import annotations

from cfglint.document.compose import edited
from cfglint.document.edits import brings, insert_key, replace_value, spell
from cfglint.document.items import EVERY, add_item, insert
from cfglint.document.removal import outside, remove_keys
from cfglint.document.shell.edits import insert_last, insert_there
from cfglint.document.shell.edits import spelled as plain
from cfglint.document.shell.processes import first_numbers, list_of_numbers
from cfglint.document.spoken import spoken
from cfglint.document.trace import Trace, definition_path
from cfglint.document.tree import Composite, Scalar, Sequence, Several, dotted, walk
from cfglint.engine.describe import Evaluator, Origins
from cfglint.engine.entries import facts_in, reads_in, ties_in, writes_in
from cfglint.engine.evaluation_scope import substitute
from cfglint.engine.knobs import literal, tidy
from cfglint.lang import tree as t
from cfglint.lang.types import Type, is_number
from cfglint.lang.values import Interval, Open, Unknown
from cfglint.record import Record, field, replace
from cfglint.repair.choose import Chooser
from cfglint.repair.consumer import Consumer
from cfglint.repair.invert import ABSENT, Written, invert
from cfglint.repair.patch import Change, Patch, asked_by, joined, list_called, over, told_where
from cfglint.repair.product import change_of_a_factor, change_of_a_variable, factors_of, readers_of
from cfglint.schema.judge import takes
from cfglint.text import Edit, OutsideEdit, apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from cfglint.document.tree import Document
    from cfglint.document.view import View
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps, Values

_SWITCH = ("true", "false", "on", "off")


# ── where it is written, and the edits ─────────────────────────────────────────────────────────────────
class Definition(Record):
    """Where a value is written; ``key`` tells definitions apart, ``shared`` also read it.

    ``holder`` is the key that it is at, where that is another one. ``editable`` is false where no edit of
    this file can change it (an override, an environment variable). ``several`` commands of a script read it.
    It may be the product of other definitions, the ``factors``.
    """

    key: object
    editable: bool
    shared: tuple[str, ...] = ()
    holder: str = ""
    several: bool = False
    factors: tuple[object, ...] = ()


class Way(Record):
    """All that has to be in the file for a fact to be worth a value.

    ``plain``: it is at the key that this fact alone is read from. What is not has to be read back.
    """

    keys: list[Written]
    plain: bool = False


def _told(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that a user knows: not those that say what a command launches."""
    return tuple(key for key in keys if not key.startswith("launch."))


class Writer(Record):
    """Writes facts of one document, as its framework's bindings read them."""

    subject: Subject
    origins: Origins
    _definitions: dict[Steps, Definition] = field(factory=dict, init=False)
    _consumer: Consumer = field(init=False)
    _evaluator: Evaluator | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Find out who reads the document."""
        self._consumer = Consumer(self.subject, self.origins.symbols)

    def beside(self, values: Values) -> Writer:
        """Return what writes facts where others are worth something else."""
        own = self.origins
        other = Writer(self.subject, Origins(own.symbols, values, own.sources, own.framework))
        other._consumer, other._evaluator = self._consumer, self._evaluates
        return other

    def writes(self, name: str, value: object, spelling: object = None) -> Way | None:
        """Return all that has to be in the file for a fact to be worth ``value``, None where nobody knows.

        What the framework's block says (``write …``) goes before its bindings, read backwards.
        """
        kind = self.origins.symbols.types[name]
        for entry in self.stated(name):
            if entry.value is None or literal(entry.value, kind) == value:
                keys = self._keys(entry, value)
                if keys:
                    return Way(keys)
        own = self.written(name, value, spelling)
        if own is not None:
            return Way([own], plain=self.read_from([own.path]) == [name])
        keys = self._chooser.of(name, value, spelling)
        return None if keys is None else Way(keys)

    @property
    def _chooser(self) -> Chooser:
        return Chooser(self.origins, self._evaluates, self._consumer)

    @property
    def _evaluates(self) -> Evaluator:
        if self._evaluator is None:
            self._evaluator = Evaluator(self.origins.symbols, self.origins.own_lets)
        return self._evaluator

    def stated(self, name: str) -> list[t.Write]:
        """Return what the framework says of how a fact is written."""
        return writes_in(self.origins.blocks).get(name, [])

    def _keys(self, entry: t.Write, value: object) -> list[Written] | None:
        """Return what is not in the file yet of what an entry states; None where it does not apply.

        A key whose value is computed from what it says is not added where it is not there.
        """
        values = self.origins.values
        if entry.when is not None and self._worth(entry.when, values) is not True:
            return None
        moved = values.but({entry.name: value})
        keys = [
            self._stated(path.steps, ABSENT if node is None else self._worth(node, moved))
            for path, node in entry.keys
            if node is None or path.steps not in t.paths_in(node) or self.subject.view.has(path.steps)
        ]
        consumer = self._consumer
        for key in keys:
            if key.value is ABSENT:
                continue
            known = not isinstance(key.value, (Interval, Open, Unknown))
            if not known or not consumer.takes(key.path, key.value):
                return None
            added = key.path[0] == "launch" and not self.subject.view.has(key.path)
            if added and self._change(key) is None:  # a launcher that has no flag for it
                return None
        return [key for key in keys if not self._says(key)]

    def _stated(self, path: Steps, value: object) -> Written:
        """Return what an entry asks of a key; TOML has no null: such a key is not there."""
        gone = value is None and self.subject.view.dialect.name == "toml"
        return Written(path, ABSENT if gone else value)

    def _worth(self, node: t.Expr, values: Values) -> object:
        if isinstance(node, t.ListOf):
            return [self._worth(item, values) for item in node.items]
        worth = self._evaluates(node, values)[0]
        return tidy(worth) if is_number(worth) else worth

    def _says(self, written: Written) -> bool:
        """Whether the file says already what has to be there."""
        view, path = self.subject.view, written.path
        if written.value is ABSENT:
            return not view.has(path)
        if path[-1] == EVERY:
            items = view.get(path[:-1])
            return isinstance(items, list) and written.value in items
        if written.value is False and self._consumer.is_switch(path):
            return True  # a flag that is not there
        now = view.get(path)
        alike = type(now) is type(written.value) or {type(now), type(written.value)} == {int, float}
        return view.has(path) is True and alike and now == written.value

    def read_from(self, paths: Iterable[Steps]) -> list[str]:
        """Return the facts that a binding of the framework reads from some keys, or below them."""
        reads = reads_in(self.origins.blocks)
        return list(dict.fromkeys(name for path in paths for name in reads.get(path, ())))

    def written(self, name: str, value: object, spelling: object = None) -> Written | None:
        """Return what has to be in the file for a fact to be worth ``value`` (in base units)."""
        origin = self.origins.of(name)
        if origin.binding is None:
            return None
        kind = self.origins.symbols.types[name]
        old = self.subject.view.get(origin.paths[0]) if origin.paths else None
        # Where a default is true or false, the key is a switch, and takes no third word.
        defaults = (binding.default for binding in self.origins.bindings.get(name, ()))
        switch = next((d.value for d in defaults if isinstance(d, t.Truth)), None) if kind.members else None
        if switch is not None and not isinstance(old, (str, int)):
            old = switch
        source = self._unfolded(origin.binding.source)
        written = invert(source, value, kind, old, spelling, self.origins.values)
        if switch is not None and written is not None and str(written.value).lower() not in _SWITCH:
            return None
        return None if written is None else self._taken(self._in_style(name, written), value, kind)

    def _in_style(self, name: str, written: Written) -> Written:
        """Write a flag that is not there as the command's others are: flat, or with dots; not Hydra's."""
        reader, values = self._consumer, self.origins.values
        if not reader.flags or reader.of_hydra or self.subject.view.has(written.path):
            return written
        bindings = self.origins.bindings.get(name, ())
        sources = [b.source for b in bindings if b.when is None or self._worth(b.when, values) is not False]
        paths = [source.steps for source in sources if isinstance(source, t.Path)]
        if written.path not in paths:
            return written
        return Written(min([written.path, *paths], key=reader.strangeness), written.value)

    def _taken(self, written: Written, member: object, kind: Type) -> Written | None:
        """Return what writes a member in a spelling that the framework takes: true, where full is none."""
        words = [word for word, name in kind.spellings if name == member]
        for value in (
            written.value,
            *({"true": True, "false": False, "null": None}.get(w, w) for w in words),
        ):
            if self._consumer.takes(written.path, value):
                return Written(written.path, value)
        return None

    def _unfolded(self, source: t.Expr) -> t.Expr:
        """Return the body of a function, or of a table's column, in place of its call."""
        functions = self.origins.symbols.functions
        if not isinstance(source, t.Call) or source.function not in functions:
            return source
        function = functions[source.function]
        return substitute(function.body, dict(zip(function.parameters, source.arguments, strict=True)))

    def definition(self, path: Steps) -> Definition:
        """Return where the value at a path is written."""
        if path not in self._definitions:
            self._definitions[path] = self._definition(path)
        return self._definitions[path]

    def place(self, written: Written) -> tuple[object, object]:
        """Return what a value is written to, with the value; items of a list are apart from each other."""
        key = self.definition(written.path).key
        return (key, written.value) if written.path[-1:] != (EVERY,) else ((key, written.value), True)

    def _definition(self, path: Steps) -> Definition:
        view = self.subject.view
        if path[-1:] == (EVERY,):
            trace = Trace(view, path[:-1])
            lists = isinstance(trace.node, Sequence) and trace.source is None
            return Definition((path, "one more"), editable=lists or not trace.present)
        trace, takes_flags = Trace(view, path), self._consumer.reads_flags(path)
        if not trace.present:
            site = (view.document.sites or {}).get(path[:-1])
            shared = site is not None and site.several
            return Definition(path, view.hangs(path) is None and takes_flags, several=shared)
        there = _said_there(trace)
        editable = trace.editable or (trace.overrides and takes_flags) or there is not None
        place = definition_path(view, trace.node) if trace.node is not None else None
        holder = dotted(place) if place is not None else ""
        several = isinstance(trace.node, Several)
        if there is not None:
            several = any(node.there == there for node in _said_by_others(view.document))
        shared = tuple(dict.fromkeys((*trace.shared, *(r for r in readers_of(trace) if r != dotted(path)))))
        factors = tuple(map(id, factors_of(trace)))
        return Definition(id(trace.node), editable, shared, holder, several=several, factors=factors)

    def home(self, path: Steps) -> Steps:
        """Return the key at which the value of another one is defined in this file; else that key itself."""
        trace = Trace(self.subject.view, path)
        if not trace.present or trace.node is None or trace.source is not None or trace.overrides:
            return path
        place = definition_path(self.subject.view, trace.node) or path
        return tuple(s for s in place if isinstance(s, (str, int)))  # a definition is in one place

    def facts_at(self, key: str) -> list[str]:
        """Return the facts that are read from a key as it is."""
        names = facts_in(self.origins.blocks).get(key, ())
        return [name for name in names if key in map(dotted, self.origins.of(name).paths)]

    def tied(self, name: str) -> list[Steps]:
        """Return the keys that the framework moves together with a fact's own."""
        return ties_in(self.origins.blocks).get(name, [])

    def patch(self, values: Iterable[Written]) -> Patch | None:
        """Return the edits for some values, None where one of them cannot be written into this file."""
        patch, values = Patch(), list(values)
        gone = [written.path for written in values if written.value is ABSENT]
        for written in values:
            if written.value is ABSENT:
                continue
            change = self._of_a_factor(written, values) or self._change(written)
            if change is None:
                return None
            if isinstance(change.edit, OutsideEdit) and change.edit not in patch.edits:
                patch.changes.append(change)
                continue
            if change.edit.new == change.old or change.edit in patch.edits:  # a factor stays; two keys of one
                continue
            if any(before.start == before.end == change.edit.start for before in patch.edits):
                if not self._beside(patch, written, change):
                    return None
                continue
            patch.changes.append(change)
            brought = brings(self.subject.document, change.edit)
            if brought is not None and brought not in patch.edits:
                patch.changes.append(Change(brought, "", ""))
        removals = self._removals(gone) if gone else []
        for removal in removals or ():
            edits = [outside(c.edit, removal.edit, self.subject.document.file.text) for c in patch.changes]
            patch.changes = [replace(c, edit=e) for c, e in zip(patch.changes, edits, strict=True)]
        if removals is None or any(
            removal.edit.start <= edit.end and edit.start <= removal.edit.end
            for removal in removals
            for edit in patch.edits
        ):
            return None
        patch.changes += removals
        return patch

    def _removals(self, paths: list[Steps]) -> list[Change] | None:
        """Return the edits that take keys away; None where one has more than a value of its own."""
        view, document = self.subject.view, self.subject.document
        starts = []
        for path in paths:
            trace = Trace(view, path)
            own = trace.editable and trace.at == path and not trace.steps and not trace.shared
            if trace.node is None or not own:
                return None
            starts.append((trace.node.start, spoken(path)))
        edits = remove_keys(document, paths)
        if edits is None:
            return None
        keys = [[key for at, key in starts if edit.start <= at <= edit.end] for edit in edits]
        return [
            Change(edit, ", ".join(names), names[0], removed=True)
            for edit, names in zip(edits, keys, strict=True)
            if names
        ]

    def _beside(self, patch: Patch, written: Written, change: Change) -> bool:
        """Take in a key for which earlier edits make the place; whether that can be done."""
        at, view = change.edit.start, self.subject.view
        before = [change for change in patch.changes if change.edit.start == change.edit.end == at]
        again = edited(self.subject.document, [change.edit for change in before])
        said, word = self._consumer.said(written.path), self._consumer.word(written.path, written.value)
        new = None if again is None else insert(again, said, word, view.dialect)
        if new is None:
            return False
        start = at
        for first in before:
            end = start + len(first.edit.new)
            if start <= new.start <= new.end <= end and (new.start, new.end) != (end, end):
                text = apply_edits(first.edit.new, [Edit(new.start - start, new.end - start, new.new)])
                both = replace(first, edit=Edit(at, at, text), title=f"{first.title}, {change.title}")
                patch.changes[patch.changes.index(first)] = both
                return True
            start = end
        patch.changes.append(replace(change, edit=Edit(at, at, new.new)))
        return new.start == new.end == start

    def _change(self, written: Written) -> Change | None:
        view, document = self.subject.view, self.subject.document
        if written.path[-1:] == (EVERY,):
            return self._item(written.path[:-1], written.value)
        trace = Trace(view, written.path)
        value = written.value
        title = f"{spoken(written.path)} to {shown(value)}"
        old: str | None = None
        there = _said_there(trace)
        if there is not None and not trace.editable:
            return self._outside(written, trace, there)
        if trace.overrides and trace.source is not None:
            named = tuple(s for s in trace.at if isinstance(s, (str, int)))
            path: Steps = (trace.flag,) if trace.flag else named
            edit = insert_key(document, path, self._consumer.word(path, value), view.dialect)
            edit = edit or (insert_there(document, path, value) if document.format == "shell" else None)
            title += "" if (alone := self._consumer.config_for(written.path, trace)) else over(trace)
            edit = edit or (insert_last(document, path, value) if alone else None)  # told, and so proven
        elif trace.present:
            node = trace.node
            if not trace.editable or not isinstance(node, (Scalar, Sequence)):
                return None
            if isinstance(node, Scalar) and node.style in ("'", '"') and not isinstance(value, str):
                # A number in quotes stays in quotes where its loader converts it.
                quoted = spell(value, None, view.dialect)
                if takes(self.subject.framework, view, written.path, quoted):
                    value = quoted
            edit = replace_value(document, node, self._consumer.word(written.path, value), view.dialect)
            old = document.file.text[node.start : node.end]
            asked = asked_by(written.path, document.file.text, node.start)
            title = f"{asked} to {shown(value)}" if asked else title
            if isinstance(node, Composite) and node.counts and edit is not None:
                title = f"{list_called(written.path, document.file.text, node.start)} to {edit.new}"
            elif isinstance(node, Composite) and node.ending[0] >= 0 and edit and isinstance(value, str):
                within = old[: edit.start - node.start] if node.start <= edit.start < node.end else ""
                within = within if within and "\n" not in within else "…"
                title = f"{spoken(written.path)} to {within}{edit.new}"
        else:
            edit = self._insertion(written)
            if edit is not None and written.path[0] == "launch":
                flag = next((word for word in edit.new.split() if word.startswith("-")), spoken(written.path))
                title = f"{flag.partition('=')[0]} to {shown(value)}"
        config, read = self._consumer.config_for(written.path, trace, old), _told(trace.shared)
        return None if edit is None else Change(edit, title, written.key, old, read, config=config)

    def _insertion(self, written: Written) -> Edit | None:
        """Return the edit that adds a key that is not there, where what reads it surely has it."""
        consumer, document = self._consumer, self.subject.document
        if not consumer.may_be_given(written.path):
            return None
        said, word = consumer.said(written.path), consumer.word(written.path, written.value)
        edit = insert_key(document, said, word, self.subject.view.dialect)
        return insert_there(document, said, written.value) if edit is None and consumer.flags else edit

    def _of_a_factor(self, written: Written, values: Iterable[Written]) -> Change | None:
        """Return the change of the factor that makes a product another number, where one may vary."""
        trace = Trace(self.subject.view, written.path)
        if not factors_of(trace):
            return change_of_a_variable(trace, written)
        return change_of_a_factor(trace, written, {self.definition(w.path).key: w.value for w in values})

    def _outside(self, written: Written, trace: Trace, there: tuple[str, str, int]) -> Change | None:
        """Return the edit of the script that this one runs, where that says a value."""
        (name, text, start), node = there, trace.node
        word = plain(self._consumer.word(written.path, written.value))
        assert isinstance(node, Composite)  # _said_there
        old, key = node.text, definition_path(self.subject.view, node) or written.path
        title = f"{spoken(key)} to {shown(written.value)}"
        if node.counts and isinstance(written.value, int):
            old, word = list_of_numbers(text, start), first_numbers(written.value)
            title = f"{list_called(written.path, text, start)} to {word}"
        if word is None or not text.startswith(old, start):
            return None
        edit = OutsideEdit(start, start + len(old), word, name, text)
        return Change(edit, title, written.key, old, _told(trace.shared))

    def _item(self, path: Steps, value: object) -> Change | None:
        """Return the edit that puts one more item into a list, or makes the list."""
        view, document = self.subject.view, self.subject.document
        trace = Trace(view, path)
        edit = None
        if not trace.present:
            edit = insert_key(document, path, [value], view.dialect)
        elif isinstance(trace.node, Sequence) and trace.source is None:
            edit = add_item(document, trace.node, value, view.dialect)
        return None if edit is None else Change(edit, f"{spoken(path)} to hold {shown(value)}", dotted(path))


def _said_there(trace: Trace) -> tuple[str, str, int] | None:
    """Return which other script says a value of a command, and where; None where none does."""
    node = trace.node
    own = isinstance(node, Composite) and not trace.computed and trace.source is None
    return node.there if own and isinstance(node, Composite) else None


def _said_by_others(document: Document) -> Iterator[Composite]:
    """Yield what other scripts say of a file's other commands."""
    for other in document.file.documents:
        if other.index != document.index and other.root is not None:
            yield from (node for node in walk(other.root) if isinstance(node, Composite) and node.there)


def titled(values: Collection[Written], view: View, beside: Iterable[str] = ()) -> str:
    """Say what would be set, where no edit can do it; a key of another file, with that file.

    What is set ``beside`` it comes last.
    """
    gone: list[str] = []
    titles: dict[str, list[str]] = {}  # by file
    named = {written.path: written.value for written in values}
    for written in values:
        if written.value is ABSENT:
            gone.append(spoken(written.path))
            continue
        hung, trace = view.hangs(written.path), Trace(view, written.path)
        written_there = trace.present and trace.source is not None and trace.source.key != "program"
        beneath = trace.file.path if written_there else ""  # a program's own default is said on its command
        key, file = (written.path, beneath) if hung is None else (hung[1], hung[0].file.path)
        if hung is not None:  # the file that is used by then
            file = str(named.get(written.path[: -len(hung[1])], file))
        if (said := _said_there(trace)) is not None:
            key, file = definition_path(view, trace.node) or key, said[0]  # type: ignore[arg-type]
        titles.setdefault(file, []).append(f"{spoken(key)} to {shown(written.value)}")
    of_own = [*dict.fromkeys(titles.pop("", [])), *beside]
    within = [
        f"{', '.join(dict.fromkeys(each))} in {told_where(file, view)}" for file, each in titles.items()
    ]
    return joined([*within, *of_own], gone)


def shown(value: object) -> str:
    """Return a value as YAML says it."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is ABSENT:
        return "absent"
    return "null" if value is None else str(value)
