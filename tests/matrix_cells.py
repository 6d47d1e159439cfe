"""The cells of the matrix of repairs: a job of a framework, in a form, a knob of it, a state, a value.

Frameworks and knobs are the rules' own, the jobs are those of ``matrix/bases.md``.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cfglint.document.compose import edited
from cfglint.document.edits import insert_key, replace_value
from cfglint.document.reading import read_text
from cfglint.document.trace import Trace
from cfglint.document.tree import Scalar, dotted
from cfglint.engine.describe import Origins
from cfglint.engine.judge import values_for
from cfglint.engine.knobs import literal
from cfglint.engine.run import Run
from cfglint.lang import tree as t
from cfglint.lang.pack import load
from cfglint.lang.types import is_number
from cfglint.lang.values import needs_of
from cfglint.repair.write import Writer
from cfglint.schema.judge import problems, takes
from cfglint.schema.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.subject import Subject

FOLDER = Path(__file__).parent / "matrix"
_FENCE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASES = _FENCE.findall((FOLDER / "bases.md").read_text())
_ANCHORED, _OTHER = "anchored_value", "aliased_value"
_POD = """apiVersion: v1
kind: Pod
metadata: {{name: job}}
spec:
  containers:
    - name: main
      command:
{words}"""


@cache
def run() -> Run:
    """Return a run that reads and judges nothing."""
    return Run(load(), selected=lambda _: False)


def forms() -> Iterator[tuple[str, str, str]]:
    """Yield the jobs: name, form, text; a script also as the words of a pod."""
    for name, text in BASES:
        stem, _, suffix = name.rpartition(".")
        if suffix != "sh":
            yield name, "config" if suffix != "py" else "program", text
            continue
        words = shlex.split(text.replace("\\\n", " "))
        yield name, "script", text
        if "=" not in words[0]:
            listed = "".join(f'        - "{word}"\n' for word in words)
            yield f"{stem}_pod.yaml", "pod", _POD.format(words=listed)


def subject_of(name: str, text: str) -> Subject | None:
    """Return the job of a text, as its framework sees it."""
    subjects = run().subjects(read_text(text, name), judge_broken=True)
    return next((each for each in subjects if each.framework is not None), None)


class Cell(NamedTuple):
    """A knob asked for a value in a state of a job.

    The outcome is ``written``, ``no way``, ``not read back`` (which no fix proposes), or what is wrong.
    """

    job: str
    framework: str
    form: str
    knob: str
    state: str
    value: object
    outcome: str
    text: str
    keys: tuple[str, ...] = ()


def asked(knob: t.Knob, kind: Any) -> list[object]:
    """Return values to ask a knob for: those that it lists, or two that it may take; of a switch, both."""
    if kind.kind == "bool":
        return [True, False]
    if knob.domain == "values":
        return [literal(node, kind) for node in knob.values]
    if kind.kind != "number":
        return []
    if knob.domain == "step":
        low, high, step = (kind.worth(n) for n in (knob.low, knob.high, knob.step))
        return [round(low + step, 6), round(min(low + 4 * step, high), 6)]
    least = kind.worth(knob.low) if knob.low is not None and knob.domain == "halving" else 1
    return [least * 2, least * 4]


def told(value: object, wanted: object) -> bool:
    """Whether a fact is worth what was asked."""
    if needs_of(value):
        return False
    if is_number(value) and is_number(wanted):
        return abs(value - wanted) <= 1e-6 * abs(wanted)
    return type(value) is type(wanted) and value == wanted


class Matrix:
    """The cells of one job."""

    def __init__(self, name: str, form: str, text: str) -> None:
        self.name, self.form, self.text = name, form, text
        subject = subject_of(name, text)
        assert subject is not None, f"{name} is of no framework"
        self.framework: str = subject.framework  # type: ignore[assignment]
        self.subject = subject

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of all knobs that the framework binds."""
        symbols = run().finder.symbols
        blocks = symbols.frameworks[self.framework]
        named = {e.name for block in blocks for e in block.entries if isinstance(e, (t.Binding, t.Write))}
        for name, knob in symbols.knobs.items():
            if name in named:
                yield from self.of(knob, asked(knob, symbols.types[name]))

    def of(self, knob: t.Knob, values: list[object]) -> Iterator[Cell]:
        """Yield the cells of a knob: from the job as it is, from each value to the others, from states."""
        texts: dict[object, str] = {}
        for value in values:
            yield from self.cell(knob, "as it is", self.text, value, texts)
        for before, text in list(texts.items()):
            for value in values:
                if value != before:
                    yield from self.cell(knob, f"{before}", text, value, {})
        for value in values:
            for state, text in self.states(knob, value):
                yield from self.cell(knob, state, text, value, {})

    def states(self, knob: t.Knob, value: object) -> Iterator[tuple[str, str]]:
        """Yield the job with another value at the knob's key: false, null, or one that an anchor gives."""
        subject = self.subject
        way = writer(subject).writes(knob.name, value)
        if self.form not in ("config", "program") or way is None:
            return
        path, document, dialect = way.keys[0].path, subject.document, subject.view.dialect
        trace = Trace(subject.view, path)
        for state, other in (("false", False), ("null", None)):
            if isinstance(trace.node, Scalar):
                edit = replace_value(document, trace.node, other, dialect)
            else:
                edit = insert_key(document, path, other, dialect)
            again = None if edit is None else edited(document, [edit])
            if again is not None:
                yield state, again.file.text
        if document.format != "yaml" or trace.present:
            return
        first = insert_key(document, (*path[:-1], "zz"), _ANCHORED, dialect)
        again = None if first is None else edited(document, [first])
        second = None if again is None else insert_key(again, path, _OTHER, dialect)
        if second is not None:
            old = {True: "false", False: "true"}.get(value, "null") if isinstance(value, bool) else "null"
            text = edited(again, [second]).file.text
            yield "at an anchor", text.replace(_ANCHORED, f"&zz {old}").replace(_OTHER, "*zz")

    def cell(
        self, knob: t.Knob, state: str, text: str, value: object, texts: dict[object, str]
    ) -> Iterator[Cell]:
        """Yield the cell of a value in a text that says another; what was written goes to ``texts``."""
        subject = subject_of(self.name, text)
        if subject is None or subject.framework != self.framework:
            return
        if told(values_for(subject, {})[knob.name], value):
            return
        outcome, after, keys = self.tried(subject, knob.name, value)
        if outcome == "written":
            texts[value] = after
        yield Cell(self.name, self.framework, self.form, knob.name, state, value, outcome, after, keys)

    def tried(self, subject: Subject, name: str, value: object) -> tuple[str, str, tuple[str, ...]]:
        """Ask for a value: what comes of it, the text that has it, the keys that were written."""
        own = writer(subject)
        way = own.writes(name, value)
        patch = own.patch(way.keys) if way is not None else None
        if way is None or patch is None:
            return "no way", "", ()
        keys = tuple(written.key for written in way.keys)
        again = edited(subject.document, patch.edits)
        if again is None:
            return f"the text does not parse: {patch.title}", "", keys
        text = again.file.text
        after = subject_of(self.name, text)
        if after is None or after.framework != subject.framework:
            return f"another framework: {patch.title}", text, keys
        if not told(values_for(after, {})[name], value):
            return "not read back", text, keys
        refused = [w.key for w in way.keys if not takes(self.framework, after.view, w.path, w.value)]
        refused += sorted(mistaken(after) - mistaken(subject))
        return (f"the schema refuses {refused}: {patch.title}" if refused else "written"), text, keys


def mistaken(subject: Subject) -> set[str]:
    """Return the keys at which a framework's schema finds something wrong."""
    schema = table(subject.framework or "")
    found = [] if schema is None else problems(schema, subject.view, skip=("launch",))
    return {dotted(each.path) for each in found if each.node[6] != "own"}


def writer(subject: Subject) -> Writer:
    """Return what writes facts of a job."""
    values = values_for(subject, {})
    return Writer(subject, Origins(run().finder.symbols, values, {}, subject.framework))
