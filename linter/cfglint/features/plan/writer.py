"""Writes a row of a plan into a config: facts back to keys, one after the other, and proof.

What no key gives, or a key gives in a way that cannot be read backwards, is left to whoever launches the
job: it is told, and taken as given in the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.compose import edited
from cfglint.document.tree import dotted
from cfglint.engine.describe import Origins
from cfglint.engine.judge import values_for
from cfglint.engine.rows import row_of
from cfglint.lang import tree as t
from cfglint.record import Value
from cfglint.repair.invert import Written, invert
from cfglint.repair.write import Writer, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps, Values
    from cfglint.features.plan.compute import Planner, PlanRow

_PASSES = 3  # a key that was written may move a fact that came before it
_FIRST = ("num_gpus", "train_gpus", "train_dp", "dp_shard")  # what the others may follow from


class KeyChange(Value):
    """A key that was set, its old value (None: it was not there) and the new one."""

    key: str
    old: str | None
    new: str


class Taken(Value):
    """A config with a row in it.

    ``launch`` are the facts that are not the file's to say. ``broken`` are rules that held before and do
    not any more. ``proven`` is false where the text does not come to the row.
    """

    text: str
    changes: tuple[KeyChange, ...]
    launch: dict[str, object]
    broken: tuple[str, ...]
    proven: bool


def take(run: Run, subject: Subject, planner: Planner, row: PlanRow) -> Taken:
    """Write a row's facts into the text of a subject, and prove that they came to be."""
    return _Writer(run, subject, planner, row).taken()


class _Writer:
    def __init__(self, run: Run, subject: Subject, planner: Planner, row: PlanRow) -> None:
        self.run = run
        self.before = self.subject = subject
        self.row = row
        self.given = {**planner.given, **planner.hardware(row.choice.gpus)}
        facts = dict(row.facts)
        facts.pop("train_backend", None)  # follows from the stage
        first = [(name, facts.pop(name)) for name in _FIRST if name in facts]
        facts["effective_batch_size"] = row.choice.batch
        self.wanted = [*first, *facts.items()]
        self.launch: dict[str, object] = {}
        self.changes: dict[Steps, KeyChange] = {}

    def taken(self) -> Taken:
        for _ in range(_PASSES):
            changed = [self.settle(name, value) for name, value in self.wanted]
            if not any(changed):
                break
        for name in list(self.launch):
            value = self.launch.pop(name)
            if not self.holds():
                self.launch[name] = value
        text, changes = self.subject.document.file.text, tuple(self.changes.values())
        return Taken(text, changes, self.launch, tuple(self.broken()), self.proven())

    def values(self) -> Values:
        """Return the facts of the text as it now is."""
        return values_for(self.subject, {**self.given, **self.launch})

    def holds(self) -> bool:
        values = self.values()
        return all((values[name] == value) is True for name, value in self.wanted)

    def proven(self) -> bool:
        """Whether the text comes to the row: its facts, and the memory that follows from them."""
        return self.holds() and row_of(self.values(), self.run.targets[0]).need_gib == self.row.need_gib

    def settle(self, name: str, value: object) -> bool:
        """Make a fact worth a value; returns whether something changed."""
        if name in self.launch or (self.values()[name] == value) is True:  # it may be open
            return False
        for fact, worth in self.ways(name, value):
            written = self.inverted(fact, worth)
            if written is not None and self.write(written):
                return True
        self.launch[name] = value
        return True

    def ways(self, name: str, value: object) -> Iterator[tuple[str, object]]:
        """Yield the facts that may give a fact its value: the GPUs of a job are often told per machine."""
        values = self.values()
        nodes = values["num_nodes"]
        if name == "num_gpus" and isinstance(value, int) and isinstance(nodes, (int, float)) and nodes >= 1:
            origins = self.origins(values)
            own, per_node = origins.of("num_gpus"), origins.of("gpus_per_node")
            if own.kind != "file" and per_node.kind == "file" and value % nodes == 0:
                yield "gpus_per_node", int(value // nodes)
        yield name, value

    def origins(self, values: Values) -> Origins:
        return Origins(self.run.finder.symbols, values, {}, self.subject.framework)

    def inverted(self, name: str, value: object) -> Written | None:
        values = self.values()
        binding = self.origins(values).of(name).binding
        if binding is None:
            if not values.named or name in values.bindings or name not in self.run.pack.facts:
                return None
            binding = t.Binding(name, t.Path(tuple(name.split("."))))  # a key of the fact's own name
        paths = t.paths_in(binding.source)
        old = self.subject.view.get(paths[0]) if paths else None
        return invert(binding.source, value, self.run.finder.evaluator.type_of(name), old)

    def write(self, written: Written) -> bool:
        """Put a value into the text; False where that is not possible."""
        writer = Writer(self.subject, self.origins(self.values()))
        patch = writer.patch([written])
        if patch is None or patch.outside:  # another file says it
            return False
        (change,) = patch.changes
        again = edited(self.subject.document, [change.edit])
        if again is None:
            return False
        self.subject = self.run.subject(again, self.subject.framework)
        first = self.changes.get(written.path)
        old = change.old if first is None else first.old
        self.changes[written.path] = KeyChange(dotted(written.path), old, shown(written.value))
        return True

    def broken(self) -> Iterator[str]:
        """Yield the rules that the new text breaks and the old one did not."""
        before, after = (
            [v.rule.code for judged in self.run.judged(subject) for v in judged.verdicts if v.truth is False]
            for subject in (self.before, self.subject)
        )
        yield from (code for code in dict.fromkeys(after) if code not in before)
