"""Why a document is recognised as a framework's, how certain that is, what else it may be; and the page.

`recognise` (judge.py) decides; this tells what it rests on, and only ``cfglint frameworks PATH`` asks it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from cfglint.document.trace import Trace
from cfglint.document.tree import Document, dotted
from cfglint.document.tree import Mapping as Tree
from cfglint.document.view import View
from cfglint.engine.describe import show_value
from cfglint.engine.evaluation_scope import Bound
from cfglint.engine.judge import values_for
from cfglint.engine.subject import dialect_of, names_bases
from cfglint.facts import Values
from cfglint.lang import tree as t
from cfglint.lang.show import show
from cfglint.lang.values import Interval, Open, Unknown, needs_of
from cfglint.record import Value, replace
from cfglint.report.blocks import Line, Paragraph, few
from cfglint.schema.table import Table, table
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from cfglint.engine.run import Run
    from cfglint.facts import Steps
    from cfglint.lang.symbols import Symbols
    from cfglint.report.blocks import Block, Piece

    # What a condition lacks: groups of keys, one of each is wanted, and the keys that forbid it.
    Lack: TypeAlias = tuple[list[tuple[str, ...]], list[Steps]]

CERTAIN, LIKELY = "certain", "likely"
_DEEP = 20  # lets within lets
_NEAREST = 3
_FAR = 2  # signs that the nearest lack at most
_HEAD = "  {:<9} "
_DIFFERENCES = 3  # shown without --verbose
_KEYS = 8


class Key(Value):
    """A key that tells; ``line`` is None where it is in another file, or in none."""

    key: str
    line: int | None


class Difference(Value):
    """A fact that two frameworks read differently in one document."""

    name: str
    as_taken: str
    as_this: str


class Claim(Value):
    """A framework that claims a document: how many of its conditions hold, and the keys in them.

    ``differs`` says what would come out differently, were the document its, and ``matters`` whether anything
    would.
    """

    framework: str
    signs: int
    keys: tuple[Key, ...]
    matters: bool = False
    differs: tuple[Difference, ...] = ()


class Near(Value):
    """A framework that would claim a document with a little more: ``keys`` it has.

    ``lacks`` holds groups of keys, one of each is wanted; ``against`` are keys that speak against it.
    """

    framework: str
    keys: tuple[Key, ...]
    lacks: tuple[tuple[str, ...], ...]
    against: tuple[Key, ...]


class Recognition(Value):
    """The framework of one document, by the names of ``schemas/recognition.schema.json``.

    ``by`` is content, flag, settings or nothing; ``glob`` the settings'. ``sure`` and ``why`` are set where
    its content told, ``also`` are the other frameworks that claim it.
    """

    path: str
    line: int
    framework: str | None
    by: str
    glob: str | None
    sure: str | None
    why: str
    error: str | None
    keys: tuple[Key, ...]
    also: tuple[Claim, ...]
    nearest: tuple[Near, ...]


def recognition(
    run: Run, document: Document, named: str | None, by: str, glob: str | None, *, near: bool = True
) -> Recognition:
    """Return a document's framework, and why; ``named`` is what flags or settings say.

    ``near`` asks what a document that nobody claims lacks, which takes longer than all else.
    """
    recognised = run.recognise(document)
    claims = list(_claims(run, document, composed=bool(document.over or document.program)))
    if recognised is not None and not claims and names_bases(document):
        claims = list(_claims(run, document, composed=True))
    taken = named or recognised
    own = next((claim for claim in claims if claim.framework == taken), None)
    others = sorted((c for c in claims if c.framework != taken), key=lambda c: (-c.signs, c.framework))
    also = tuple(_measured(run, document, taken, claim) for claim in others) if taken else ()
    sure, why = _sure(taken, own, also) if named is None and own is not None else (None, "")
    return Recognition(
        document.file.path,
        document.file.lines.position(document.start)[0],
        taken,
        by if named is not None else "content" if recognised is not None else "nothing",
        glob,
        sure,
        why,
        None if document.error is None else str(document.error),
        own.keys if own is not None else (),
        also,
        tuple(_nearest(run, document)) if near and taken is None and not claims else (),
    )


# ── who claims it ──────────────────────────────────────────────────────────────────────────────────────────
def _claims(run: Run, document: Document, *, composed: bool) -> Iterator[Claim]:
    for name, signs, values in run.claims(document, composed=composed):
        if signs and values is not None:
            asked = _Asked(run, values)
            paths = [p for condition in _detects(run, name) for p in asked.telling(condition)]
            yield Claim(name, signs, asked.keys(paths))


def _detects(run: Run, name: str) -> list[t.Expr]:
    return [condition for condition, _ in _signs(run.finder.symbols, name)]


@cache
def _signs(symbols: Symbols, name: str) -> list[tuple[t.Expr, frozenset[str | int]]]:
    """Return the conditions that a framework is recognised by, each with the first parts of its keys."""
    entries = (entry for node in symbols.frameworks[name] for entry in node.entries)
    conditions = [entry.condition for entry in entries if isinstance(entry, t.Detect)]
    return [(each, frozenset(path[0] for path in _paths_of(symbols.lets, each))) for each in conditions]


def _paths_of(lets: Mapping[str, t.Let], node: t.Expr, depth: int = 0) -> list[Steps]:
    """Return the keys that an expression reads, through lets."""
    parts = list(t.walk(node))
    paths = [part.steps for part in parts if isinstance(part, t.Path)]
    for part in parts if depth < _DEEP else ():
        if isinstance(part, t.Name) and part.name in lets:
            paths += _paths_of(lets, lets[part.name].body, depth + 1)
    return paths


def _measured(run: Run, document: Document, taken: str, claim: Claim) -> Claim:
    """Return a rival with what it would read differently; both see the file alone, without a target."""
    evaluator = run.finder.evaluator
    here, there = (values_for(run.subject_of(document, name), {}) for name in (taken, claim.framework))
    frameworks = run.pack.frameworks
    names = sorted({*frameworks[taken]["bind"], *frameworks[claim.framework]["bind"]} & run.pack.facts.keys())
    differs = []
    for name in names:
        if name.startswith("framework."):
            continue
        mine, theirs = here[name], there[name]
        if _known(mine) and _known(theirs) and mine != theirs:
            kind = evaluator.type_of(name)
            differs.append(Difference(name, show_value(mine, kind), show_value(theirs, kind)))
    return replace(claim, matters=bool(differs), differs=tuple(differs))


def _known(value: object) -> bool:
    return not needs_of(value) and not isinstance(value, (Interval, Open, Unknown))


def _sure(taken: str | None, own: Claim, also: tuple[Claim, ...]) -> tuple[str, str]:
    matter = [claim for claim in also if claim.matters]
    if matter:
        names = " and ".join(claim.framework for claim in matter)
        alike = all(claim.signs == own.signs for claim in matter)
        return LIKELY, f"{names} claims it as well" + (
            ", with as many matching keys: the first by name is used"
            if alike
            else ", with fewer matching keys"
        )
    if any(key.key.startswith("launch.") for key in own.keys):
        return CERTAIN, "recognised by its program"
    if len(own.keys) > 1:
        return CERTAIN, f"{len(own.keys)} matching keys"
    others = _others_with(taken, own.keys[0].key.split(".")) if own.keys else []
    if own.keys and not others:
        return CERTAIN, "one matching key, which no other framework has"
    return LIKELY, f"one matching key, which {', '.join(others[:_NEAREST])} also have" if others else ""


def _others_with(taken: str | None, key: list[str]) -> list[str]:
    """Return the other frameworks that have a key, by their schemas."""
    from cfglint import files

    names = []
    for path in files.shipped_contents("schemas", ".schema.json"):
        name = path.rpartition("/")[2].partition(".")[0]
        keys = table(name) if path.startswith("frameworks/") and name != taken else None
        if keys is not None and _has(keys, key):
            names.append(name)
    return sorted(names)


def _has(schema: Table, key: list[str]) -> bool:
    node = 0
    for part in key:
        keys = schema.nodes[node][3] if node >= 0 else None
        if keys is None or part not in keys:
            return False
        node = keys[part]
    return True


# ── who nearly claims it ───────────────────────────────────────────────────────────────────────────────────
def _nearest(run: Run, document: Document) -> Iterator[Near]:
    """Yield what a document that nobody claims lacks the least of."""
    candidates: list[tuple[int, int, str, Near]] = []
    root = document.root
    own = {*root.entries} if isinstance(root, Tree) and not (root.merges or run.overrides) else None
    for name, framework in run.pack.frameworks.items():
        if framework["sections"] or (document.format == "yaml" and framework["dialect"] == "toml"):
            continue
        signs = [
            c for c, heads in _signs(run.finder.symbols, name) if own is None or not own.isdisjoint(heads)
        ]
        if not signs:
            continue  # as most files: it has none of the keys
        asked = _Asked(
            run, Values(run.pack, View(document, dialect_of(run.pack, name, document), run.overrides))
        )
        for condition in signs:
            lacks, against = asked.lacking(condition)
            if any(key.startswith("launch.") for group in lacks for key in group):
                continue  # another program: no key makes it one
            has = asked.keys(p for p in asked.telling(condition, partly=True) if p[0] != "launch")
            if has and 0 < len(lacks) + len(against) <= _FAR:
                near = Near(name, has, tuple(lacks), asked.keys(against))
                candidates.append((len(lacks) + len(against), -len(has), name, near))
    names: set[str] = set()
    for *_, name, near in sorted(candidates, key=lambda row: row[:3]):
        if name not in names and len(names) < _NEAREST:
            names.add(name)
            yield near


class _Asked:
    """What conditions of `detect` come to on one document, and the keys that they come to it by."""

    def __init__(self, run: Run, values: Values) -> None:
        self.lets = run.finder.symbols.lets
        self.values = values
        self.bound = Bound(run.finder.evaluator, values)

    def holds(self, node: t.Expr) -> bool:
        return self.bound.truth(node) is True

    def telling(self, node: t.Expr, depth: int = 0, *, partly: bool = False) -> list[Steps]:
        """Return the keys that a condition is true by; ``partly``, those of its parts that are true."""
        if isinstance(node, t.Not) or not (partly or self.holds(node)):
            return []
        match node:
            case t.Junction(_, operands):
                return [path for part in operands for path in self.telling(part, depth, partly=partly)]
            case t.Name(name) if name in self.lets and depth < _DEEP:
                return self.telling(self.lets[name].body, depth + 1, partly=partly)
            case t.If(condition, then, otherwise):
                return self.telling(then if self.holds(condition) else otherwise, depth, partly=partly)
        return (
            [path for path in _paths_of(self.lets, node) if self.values.has(path) is True]
            if self.holds(node)
            else []
        )

    def lacking(self, node: t.Expr, depth: int = 0) -> Lack:
        """Return what a condition needs to be true: of each group one key; and the keys that forbid it."""
        if self.holds(node):
            return [], []
        match node:
            case t.Junction(kind, operands):
                parts = [self.lacking(part, depth) for part in operands]
                if kind != "and":
                    return _least_of(parts)
                groups = dict.fromkeys(group for lacks, _ in parts for group in lacks)
                return list(groups), [key for _, against in parts for key in against]
            case t.Not(operand):
                return [], self.telling(operand) or list(_paths_of(self.lets, operand))[:1]
            case t.Name(name) if name in self.lets and depth < _DEEP:
                return self.lacking(self.lets[name].body, depth + 1)
            case t.Has(t.Path(steps)):
                missing = dotted(steps)
            case _:
                absent = [path for path in _paths_of(self.lets, node) if self.values.has(path) is False]
                missing = dotted(absent[0]) if absent else show(node).replace("$.", "")
        return [(missing,)], []

    def keys(self, paths: Iterable[Steps]) -> tuple[Key, ...]:
        """Return keys with their lines, each once, in the file's order."""
        keys = {dotted(path): Key(dotted(path), self._line(path)) for path in paths}
        return tuple(sorted(keys.values(), key=lambda key: (key.line or 0, key.key)))

    def _line(self, path: Steps) -> int | None:
        view = self.values.view
        trace = Trace(view, path) if view is not None else None
        if trace is None or not trace.present or trace.source is not None or path[0] == "launch":
            return None
        return trace.file.lines.position(trace.key_span[0])[0]


def _least_of(ways: list[Lack]) -> Lack:
    """Return the way that lacks the least; where one key each would do, they are one group."""
    least = min(len(lacks) + len(against) for lacks, against in ways)
    plain = [lacks[0] for lacks, against in ways if len(lacks) == 1 and not against]
    if least == 1 and plain:
        return [tuple(dict.fromkeys(key for group in plain for key in group))], []
    return next(way for way in ways if len(way[0]) + len(way[1]) == least)


# ── the page ───────────────────────────────────────────────────────────────────────────────────────────────
def page(recognitions: Sequence[Recognition], hidden: int, *, verbose: bool) -> Iterator[Block]:
    """Yield a paragraph for each document, and how many there are; ``hidden`` files are nobody's."""
    for recognition in recognitions:
        yield _head(recognition)
        for label, text in _lines(recognition, verbose=verbose):
            lead = _HEAD.format(label)
            yield Paragraph(text, lead=lead, rest=" " * len(lead))
    yield Paragraph(_summary(recognitions, hidden))


def _head(recognition: Recognition) -> Line:
    where = shown(recognition.path) + (f":{recognition.line}" if recognition.line > 1 else "")
    head: list[Piece] = [(f"{where}: ", "bold")]
    if recognition.framework is None:
        return Line([*head, ("no framework", "yellow")])
    head.append((recognition.framework, "bold"))
    if recognition.sure is not None:
        head += [(", ", ""), (recognition.sure, "green" if recognition.sure == "certain" else "yellow")]
        head.append((f" ({recognition.why})" if recognition.why else "", "dim"))
    elif recognition.by == "flag":
        head.append((", set by --framework", ""))
    else:
        glob = f" of {shown(recognition.glob)}" if recognition.glob else ""
        head.append((f", set in the settings{glob}", ""))
    return Line(head)


def _lines(recognition: Recognition, *, verbose: bool) -> Iterator[tuple[str, str]]:
    if recognition.error is not None:
        yield "broken", shown(recognition.error)
    if recognition.keys:
        yield "matched", _keys(recognition.keys, verbose=verbose)
    for claim in recognition.also:
        yield "also", _claim(claim, verbose=verbose)
    for near in recognition.nearest:
        yield "nearest", _near(near)


def _keys(keys: Sequence[Key], *, verbose: bool = True) -> str:
    return few([_key(key) for key in keys], len(keys) if verbose else _KEYS)


def _key(key: Key) -> str:
    if key.key.startswith("launch."):
        return "the program it starts"
    return key.key + (f" (line {key.line})" if key.line is not None else "")


def _claim(claim: Claim, *, verbose: bool) -> str:
    signs = f"{claim.framework}, by {_keys(claim.keys, verbose=verbose)}" if claim.keys else claim.framework
    if not claim.matters:
        return f"{signs}; it makes no difference: both read the same values"
    differs = [f"{d.name} {d.as_taken} or {d.as_this}" for d in claim.differs]
    return f"{signs}; it makes a difference: {few(differs, len(differs) if verbose else _DIFFERENCES)}"


def _near(near: Near) -> str:
    parts = []
    if near.lacks:
        parts.append("lacks " + ", and ".join(" or ".join(map(shown, group)) for group in near.lacks))
    if near.against:
        parts.append(f"{_keys(near.against)} {'rule' if len(near.against) > 1 else 'rules'} it out")
    return f"{near.framework}: has {_keys(near.keys)}; {'; '.join(parts)}"


def _summary(recognitions: Sequence[Recognition], hidden: int) -> str:
    counts = Counter(r.framework for r in recognitions if r.framework is not None)
    unknown = len(recognitions) - counts.total()
    parts = [f"{number} {name}" for name, number in sorted(counts.items(), key=lambda i: (-i[1], i[0]))]
    parts += [f"{unknown} not recognised"] if unknown else []
    text = f"{len(recognitions)} document{'s' * (len(recognitions) != 1)}"
    text += ": " + ", ".join(parts) if parts else ""
    skipped = f"; {hidden} more file{'s' * (hidden != 1)} not recognised; --verbose lists them"
    return text + (skipped if hidden else "")
