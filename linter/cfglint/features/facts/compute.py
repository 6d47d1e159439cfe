"""What was read of a job: its facts with their places, what is not known and what would tell it.

A fact is told where the framework's block binds it or a rule asked for it while the job was judged. Results
of the memory model (their names have a dot) are none: `fit` and `explain` show those.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cfglint.document.tree import Missing, dotted
from cfglint.engine.asks import answer
from cfglint.engine.describe import show_value
from cfglint.features.compare.reading import covered, is_unknown, leaves
from cfglint.lang.tree import Name, Path, Setting, walk
from cfglint.lang.types import PLAIN
from cfglint.lang.values import UNRULED, Interval, needs_of
from cfglint.lang.versions import spelled
from cfglint.record import Value
from cfglint.schema.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.trace import Trace
    from cfglint.engine.describe import Origin, Origins
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps
    from cfglint.lang.symbols import Symbols
    from cfglint.lang.types import Type

_PLACES = 3  # that a derived value is said to come from
_STEPS = ("in_flight", "moment_bytes")  # of the memory model, whose other names have a dot
_NOT_JOB = ("framework", "document", "observed")


class Fact(Value):
    """A known value, as a facts file would have it, and its text.

    ``kind`` is file (a file or a flag says it), derived (from what they say), default (of the framework),
    fixed (by the framework, or assumed), target or registry.
    """

    value: object
    source: str
    kind: str
    text: str


class Unknown(Value):
    """Why a fact is not known, and what to type to tell it; nothing where no flag does."""

    why: str
    give: str


class Job(Value):
    """One job on one target, or without one, by the names of ``schemas/facts.schema.json``.

    ``sure`` is how certain the framework is, with the reason; nothing where a flag or settings name it.
    ``ignored`` are the flags and keys that neither the framework nor a rule reads.
    """

    path: str
    line: int
    target: str | None
    framework: str
    sure: str | None
    because: str
    program: str | None
    launcher: str | None
    facts: dict[str, Fact]
    unknown: dict[str, Unknown]
    ignored: tuple[str, ...]


class Unread(Value):
    """A launch that was seen and not read."""

    path: str
    line: int
    why: str


def job_of(run: Run, judged: Judged, sure: str | None, because: str) -> Job:
    """Return what was read of a judged document."""
    subject = judged.subject
    document, view = subject.document, subject.view
    reader = _Reader(run, judged)
    launch = {
        name: value if isinstance(value := view.get(("launch", name)), str) else None
        for name in ("program", "launcher")
    }
    return Job(
        document.file.path,
        document.file.lines.position(document.start)[0],
        judged.name,
        subject.framework or "",
        sure,
        because,
        launch["program"],
        launch["launcher"],
        {**reader.version(), **dict(reader.facts())},
        dict(reader.unknown()),
        tuple(reader.ignored()),
    )


class _Reader:
    """Tells the facts of one document on one target."""

    def __init__(self, run: Run, judged: Judged) -> None:
        self.run = run
        self.judged = judged
        self.values = judged.values
        self.view = judged.subject.view
        self.document = judged.subject.document
        self.framework = judged.subject.framework or ""
        self.symbols: Symbols = run.finder.symbols
        self.origins: Origins = run.finder.origins(judged)
        self.names = list(self._names())

    def _names(self) -> Iterator[str]:
        """Yield the names to tell, in the vocabulary's order."""
        asked = set(self.values)
        for name in self.symbols.facts:
            prefix, dot, _ = name.partition(".")
            if prefix in _NOT_JOB or (
                dot and prefix not in {*self.symbols.roles, *self.symbols.registries, "gpu"}
            ):
                continue
            stated = name in self.origins.bindings or self.values.key_of(name) is not None
            if stated or (name in asked and name not in _STEPS):
                yield name

    def version(self) -> dict[str, Fact]:
        """Return the framework's version where a flag or a file tells it, or the keys of the job."""
        subject = self.judged.subject
        text = spelled(self.values.version)
        if not text or (subject.version is None and subject.version_source):  # a package that does not say it
            return {}
        source = subject.version_source or (
            "--framework" if subject.version is not None else "told by its keys"
        )
        kind = "file" if subject.version_source else "fixed" if subject.version is not None else "derived"
        return {"framework.version": Fact(text, source, kind, text)}

    # ── what is known ──────────────────────────────────────────────────────────────────────────────────
    def facts(self) -> Iterator[tuple[str, Fact]]:
        """Yield the known facts; of a role that the job does not have, only that."""
        for name in self.names:
            value = self.values[name]
            role, dot, rest = name.partition(".")
            if dot and rest != "present" and self._absent(role, name):
                continue
            if is_unknown(value) or isinstance(value, Missing):
                continue
            kind = self.run.finder.evaluator.type_of(name)
            yield name, Fact(_plain(value, kind), *self._source(name), show_value(value, kind))

    def _absent(self, role: str, name: str) -> bool:
        """Whether a fact is of a role that the job does not have, or may not have and says nothing of."""
        if role not in self.symbols.roles:
            return False
        present = self.values[f"{role}.present"]
        return present is False or (present is not True and self.origins.of(name).kind != "file")

    def _source(self, name: str) -> tuple[str, str]:
        """Say where a value comes from, and of which kind that is."""
        origin = self.origins.of(name)
        if origin.kind == "file" and origin.paths:
            present = next((path for path in origin.paths if self.view.has(path)), origin.paths[0])
            return self._place(self.origins.trace(present)) or origin.source, "file"
        if origin.kind == "derived":
            return self._derived(name, origin)
        return origin.source, origin.kind

    def _place(self, trace: Trace | None) -> str:
        """Return ``train.sh:12``; nothing where a path has no place of its own."""
        if trace is None:
            return ""
        where = trace.where
        return f"{trace.file.path}:{where.removeprefix('line ')}" if where.startswith("line ") else where

    def _derived(self, name: str, origin: Origin) -> tuple[str, str]:
        """Say what a value is derived from: places in files if there are some, else names."""
        places: dict[str, None] = {}
        for leaf in self.origins.leaves(name):
            for path in self.origins.of(leaf).paths:
                if self.view.has(path) and (place := self._place(self.origins.trace(path))):
                    places[place] = None
        if places:
            return f"derived from {', '.join(list(places)[:_PLACES])}", "derived"
        uses = [use for use in origin.uses if use in self.symbols.facts and "." not in use]
        if uses:
            return f"derived from {', '.join(uses[:_PLACES])}", "derived"
        if origin.binding is not None and origin.binding.when is not None:
            return f"default of {self.framework}", "default"
        if name in self.values.bindings or name in self.origins.own_lets:
            return f"fixed by {self.framework}", "fixed"
        return f"assumed ({self.symbols.where.get(f'let {name}', 'the vocabulary')})", "fixed"

    # ── what is not ────────────────────────────────────────────────────────────────────────────────────
    def unknown(self) -> Iterator[tuple[str, Unknown]]:
        """Yield what rules wait for, and what the file gives in a way that cannot be read."""
        wanted = dict.fromkeys(
            need
            for verdict in self.judged.verdicts
            if verdict.truth is not False
            for need in sorted(verdict.needs)
        )
        for name in self.names:
            if needs_of(self.values[name]) and self._unreadable(name) is not None:
                wanted.setdefault(name, None)
        first = {name: at for at, name in enumerate(self.symbols.facts)}
        for name in sorted(wanted, key=lambda name: first.get(name, len(first))):
            yield name.removeprefix(UNRULED), self._lack(name)

    def _unreadable(self, name: str) -> Missing | None:
        """Return why a key that is there has no value."""
        if name.startswith("$."):
            found = self.view.get(tuple(name[2:].split(".")))
            return found if isinstance(found, Missing) and found.kind != "absent" else None
        paths = (path for binding in self.origins.bindings.get(name, ()) for path in _paths(binding.source))
        for path in paths:
            value = self.view.get(path) if "*" not in path else None
            if isinstance(value, Missing) and value.kind != "absent":
                return value
        return None

    def _lack(self, name: str) -> Unknown:
        """Return why a name that is wanted has no value, and what to type."""
        told, missing = answer(name, self.values), self._unreadable(name)
        give = told.do.removeprefix("add ") if told.do.startswith("add ") else ""
        if missing is not None:
            return Unknown(missing.why, give)
        if not told.key:
            return Unknown(told.why, give)
        defaults = (binding.default for binding in self.origins.bindings.get(name, ()))
        if not self.values.own and any(default is not None for default in defaults):
            return Unknown("not given, and the program has defaults of its own", give)
        return Unknown(f"not given, and no default is known: {told.why}", give)

    # ── what nothing reads ─────────────────────────────────────────────────────────────────────────────
    def ignored(self) -> Iterator[str]:
        """Yield the flags and keys that neither the framework's schema nor its block nor a rule knows."""
        read, above, starred = _read(self.symbols, self.framework)
        schema = table(self.framework)
        for path in leaves(self.view):
            known = path in above or any(path[:length] in read for length in range(1, len(path) + 1))
            if path[0] == "launch" or known or covered(path, starred):
                continue
            if path[-1] == "class" and self.document.format == "python":
                continue  # no program can say it: it is how configs.py names a section's class
            if schema is None or not _in_schema(schema.nodes, path):
                yield self._spelled(path)

    def _spelled(self, path: Steps) -> str:
        """Return a key as it is written: of a command, its flag."""
        if self.document.format != "shell":
            return dotted(path)
        trace = self.origins.trace(path)
        if trace is None or trace.source is not None:
            return dotted(path)
        written = trace.file.text[slice(*trace.key_span)].partition("=")[0]
        # A program that hands a flag on has its name at another place.
        return written if written.startswith("-") or trace.key_span == (0, 0) else f"--{dotted(path)}"


def _plain(value: object, kind: Type) -> object:
    """Return a value as JSON has it, and a facts file: with its unit, where it has one."""
    if isinstance(value, Interval):
        return [_plain(bound, kind) for bound in (value.lo, value.hi)]
    if isinstance(value, float) and value == int(value) and kind.dimension == PLAIN:
        return int(value)
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and kind.dimension not in (None, PLAIN)
    ):
        return show_value(value, kind)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return list(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _paths(node: object) -> list[Steps]:
    return [part.steps for part in walk(node) if isinstance(part, Path)]


def _in_schema(nodes: tuple[tuple[object, ...], ...], path: Steps) -> bool:
    """Whether a schema knows a key, or takes any."""
    number = 0
    for part in path:
        _, _, _, keys, others, item, mark = nodes[number]
        named = isinstance(part, str)
        step = keys.get(part, others) if named and isinstance(keys, dict) else others if named else item
        if not isinstance(step, int) or step < 0:
            return step == -1 and not mark
        number = step
    return True


@cache
def _read(symbols: Symbols, framework: str) -> tuple[frozenset[Steps], frozenset[Steps], tuple[Steps, ...]]:
    """Return the keys that a framework's block reads, or a rule on it, themselves or through lets.

    Those above them and those with ``*`` come apart.
    """
    waiting: list[object] = [
        entry
        for node in symbols.frameworks.get(framework, ())
        for entry in node.entries
        if not isinstance(entry, Setting)
    ]
    waiting += [
        (rule.condition, rule.requirement)
        for rule in symbols.rules.values()
        if not rule.scope or any(scope.framework == framework for scope in rule.scope)
    ]
    read: set[Steps] = set()
    seen: set[str] = set()
    for node in waiting:  # grows on the way
        for part in walk(node):
            if isinstance(part, Path):
                read.add(part.steps)
            name = part.name if isinstance(part, Name) else getattr(part, "function", None)
            if name is not None and name not in seen:
                seen.add(name)
                waiting += [
                    let.body
                    for let in (symbols.lets.get(name), symbols.functions.get(name))
                    if let is not None
                ]
    above = frozenset(path[:length] for path in read for length in range(1, len(path)))
    plain = frozenset(path for path in read if "*" not in path)
    return plain, above, tuple(path for path in read if "*" in path)
