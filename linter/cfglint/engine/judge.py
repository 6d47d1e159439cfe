"""Which framework a document is for, and which rules it breaks on a target.

Runs for every file, so it stays lean: no trees, no sources, no places (see find.py).
"""

from __future__ import annotations

from cfglint.document.scalars import JSON, OMEGACONF, PYYAML, SHELL, TOML
from cfglint.document.tree import Mapping as Tree
from cfglint.document.tree import Scalar
from cfglint.document.view import View, dotted
from cfglint.facts import Values
from cfglint.lang.runtime import as_number
from cfglint.lang.values import NOTHING, needs_of
from cfglint.schema.judge import problems
from cfglint.schema.table import table, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from cfglint.document.document import Document
    from cfglint.document.layers import Layers, Trouble
    from cfglint.document.library import Library
    from cfglint.document.scalars import Dialect
    from cfglint.facts import Steps, Tables
    from cfglint.lang.pack import CompiledRule, Pack
    from cfglint.schema.judge import Problem

BY_SCHEMA = ("refused_keys", "ignored_keys", "refused_values", "doubtful_values")
_COMPOSED = ("dialect", "composes", "files", "knows", "resolvers")  # what a view of files rests on
DIALECTS: dict[str, Dialect] = {
    "pyyaml": PYYAML,
    "omegaconf": OMEGACONF,
    "json": JSON,
    "hjson": JSON,
    "toml": TOML,
}


class Subject:
    """A document as one framework sees it; ``framework`` is None where none recognises it."""

    __slots__ = ("checked", "document", "framework", "version", "view")

    def __init__(
        self, document: Document, view: View, framework: str | None, version: tuple[float, ...] | None
    ) -> None:
        self.checked: dict[str, list[Mistake]] | None = None  # against the framework's schema (keyed.py)
        self.document = document
        self.view = view
        self.framework = framework
        self.version = version


class Verdict:
    """A rule that does not hold: ``truth`` is False, or Open (possible without ``needs``, else undecided)."""

    __slots__ = ("needs", "rule", "truth")

    def __init__(self, rule: CompiledRule, truth: object) -> None:
        self.rule = rule
        self.truth = truth
        self.needs: frozenset[str] = needs_of(truth)


def dialect_of(pack: Pack, framework: str | None, document: Document) -> Dialect:
    """Return how the framework's loader reads scalars."""
    form = document.format
    if form != "yaml":
        return JSON if form == "json" else TOML if form == "toml" else SHELL
    return DIALECTS[pack.frameworks[framework]["dialect"]] if framework is not None else PYYAML


def _names_files(document: Document, block: Mapping[str, Any]) -> bool:
    """Whether a document has a key that names a file to its framework."""
    root = document.root
    if not isinstance(root, Tree):
        return False
    return (block["composes"] and "defaults" in root.entries) or any(
        steps[0] in root.entries for steps in block["files"]
    )


def view_of(
    pack: Pack,
    framework: str | None,
    document: Document,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    library: Library | None = None,
) -> View:
    """Return a document's values as a framework's loader sees them, with those of its other files."""
    dialect = dialect_of(pack, framework, document)
    block = pack.frameworks[framework] if framework is not None else None
    layers: Layers | None = None
    if document.over or (block is not None and _names_files(document, block)):
        from cfglint.document.compose import Way, compose  # most files are one file

        way = Way() if block is None else Way(block["composes"], block["files"], block["knows"])
        layers, overrides = compose(document, library, way, overrides)
    if block is None:
        return View(document, dialect, overrides, environ, layers, PYYAML)
    return View(document, dialect, overrides, environ, layers, DIALECTS[block["dialect"]], block["resolvers"])


def recognise(
    pack: Pack,
    document: Document,
    overrides: Sequence[str] = (),
    library: Library | None = None,
    *,
    whole: bool | None = None,
) -> str | None:
    """Return the framework that a document is written for, by its content alone, else None.

    Of several that claim it, the one with the most signs wins; then the first by name. Where none does, and
    the document names bases, what they make together is asked (``whole``).
    """
    best: tuple[int, str] | None = None
    composed = bool(document.over) if whole is None else whole
    for name, signs, _ in claims(pack, document, overrides, library, composed=composed):
        if signs and (best is None or signs > best[0] or (signs == best[0] and name < best[1])):
            best = (signs, name)
    if best is not None:
        return best[1]
    if names_bases(document) and library is not None and not composed:
        return recognise(pack, document, overrides, library, whole=True)
    return None


def names_bases(document: Document) -> bool:
    """Whether a document has a list of others that it is laid over."""
    return isinstance(document.root, Tree) and "defaults" in document.root.entries


def claims(
    pack: Pack, document: Document, overrides: Sequence[str], library: Library | None, *, composed: bool
) -> Iterator[tuple[str, int, Values | None]]:
    """Yield the frameworks that may claim a document, how many of their signs it has, and what they see.

    Those whose sections are jobs see parts of it, and so have no values here.
    """
    views: dict[object, Values] = {}
    form = document.format
    root = document.root
    plain = isinstance(root, Tree) and not root.merges and not overrides and not composed
    keys = frozenset(root.entries) if isinstance(root, Tree) else NOTHING
    for name, framework in pack.frameworks.items():
        if form == "yaml" and framework["dialect"] == "toml":
            continue  # its loader reads TOML, and perhaps JSON
        if framework["sections"]:
            tests = [test for _, test in framework["detect"]]
            yield name, _in_sections(pack, tests, document, dialect_of(pack, name, document)), None
        else:
            asked = [
                test
                for needed, test in framework["detect"]
                if needed is None or not plain or not keys.isdisjoint(needed)
            ]
            if not asked:
                continue
            dialect = dialect_of(pack, name, document)
            key: object = tuple(framework[part] for part in _COMPOSED) if composed else dialect
            values = views.get(key)
            if values is None:
                if composed:
                    view = view_of(pack, name, document, overrides, None, library)
                else:
                    view = View(document, dialect, overrides)
                values = views[key] = Values(pack, view)
            yield name, sum(test(values) is True for test in asked), values


def _in_sections(
    pack: Pack, tests: Iterable[Callable[[Values], object]], document: Document, dialect: Dialect
) -> int:
    """Return the most signs that a section of a document has."""
    root = document.root
    if root is None or document.error is not None or not hasattr(root, "entries"):
        return 0
    for entry in root.entries.values():  # most files have a scalar there, and soon
        if entry.value.__class__ is Scalar:
            return 0
        break
    parts = (Values(pack, View(part, dialect)) for part in document.sections())
    return max((sum(test(values) is True for test in tests) for values in parts), default=0)


def subject_of(
    pack: Pack,
    document: Document,
    framework: str | None,
    version: tuple[float, ...] | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    library: Library | None = None,
) -> Subject:
    """Return the document as ``framework`` sees it; ``library`` has the files that it names."""
    view = view_of(pack, framework, document, overrides, environ, library)
    return Subject(document, view, framework, version)


def values_for(
    pack: Pack, subject: Subject, given: Mapping[str, object], tables: Tables | None = None
) -> Values:
    """Return the facts of a subject; ``given`` are the target's."""
    values = Values(pack, subject.view, subject.framework, subject.version, given, tables)
    values.document = _defects(pack, subject)
    return values


def _defects(pack: Pack, subject: Subject) -> Callable[[str], list[object]]:
    def defects(kind: str) -> list[object]:
        error = subject.document.error
        if kind == "syntax_errors":
            return [] if error is None else [Mistake(str(error), error.offset or 0, error.offset or 0)]
        if kind == "other_files":
            layers = subject.view.layers
            return [] if layers is None else [_trouble(one) for one in layers.troubles]
        if kind == "misfits":
            return list(_misfits(pack, subject))
        if kind == "unknown_names":
            return list(_unknown_names(pack, subject))
        if kind in BY_SCHEMA:
            return list(_by_schema(subject, kind))
        return list(getattr(subject.view.defects(), kind, ()))

    return defects


def _trouble(one: Trouble) -> Mistake:
    """Return what is wrong with a file that another names, at the place of the config where that begins."""
    node = one.node if one.by is None else one.by.first.node
    return Mistake(one.note, node.start, node.end, key=one.key, text=one.kind)


def _misfits(pack: Pack, subject: Subject) -> Iterator[Mistake]:
    """Yield what is of another kind than the framework's schema says.

    Where that has no type for a key, the texts that stand where the binding wants a number; where the facts'
    names are keys, also what is no value of its fact's type.
    """
    if subject.framework is None:
        return
    framework = pack.frameworks[subject.framework]
    if framework["keys"] is not None and subject.document.format != "shell":
        from cfglint.engine.keys import misfits

        yield from misfits(pack, subject)
    if table(subject.framework) is not None:
        yield from _by_schema(subject, "misfits")
    for path in _number_paths(pack, subject.framework):
        value = subject.view.get(path)
        if isinstance(value, str) and needs_of(as_number(value)):
            trace = subject.view.trace(path)
            yield Mistake("a number", *trace.own_span, key=dotted(path), text=f'the text "{value}"')


def _by_schema(subject: Subject, kind: str) -> list[Mistake]:
    """Return the mistakes of one kind that the framework's schema finds; none where it has no schema."""
    if subject.checked is None:
        found = None if subject.framework is None else table(subject.framework)
        subject.checked = {}
        if found is not None:
            own = subject.view.dialect is not SHELL
            wrong = problems(found, subject.view) if own else ()
            if wrong or not own:
                from cfglint.engine import schema_findings as keyed

                keyed.note(wrong if own else keyed.of_script(found, subject), found, subject)
    return subject.checked.get(kind, [])


def _number_paths(pack: Pack, framework: str) -> tuple[Steps, ...]:
    """Return the keys that a framework's bindings read as numbers, without those that its schema types."""
    paths = pack.number_paths.get(framework)
    if paths is None:
        schema = table(framework)
        paths = pack.number_paths[framework] = tuple(
            dict.fromkeys(
                alternative[4][0]
                for name, alternatives in pack.frameworks[framework]["bind"].items()
                if name in pack.facts
                and pack.facts[name][0] == "number"  # a binding may give a let's name too
                for alternative in alternatives
                if alternative[5]
                and alternative[4]
                and (schema is None or not typed(schema, alternative[4][0]))
            )
        )
    return paths


def _unknown_names(pack: Pack, subject: Subject) -> Iterator[Mistake]:
    """Yield the keys that are no fact's name, where the facts' names are keys."""
    if subject.framework is None or subject.document.format == "shell":
        return  # flags are the program's own words
    if pack.frameworks[subject.framework]["keys"] is not None:
        from cfglint.engine.keys import unknown_names

        yield from unknown_names(pack, subject)


class Mistake:
    """A mistake in the file, in the shape of the document's own defects."""

    __slots__ = ("end", "key", "kind", "note", "problem", "related", "start", "text")

    def __init__(
        self, note: str, start: int, end: int, key: str = "", text: str = "", kind: str = ""
    ) -> None:
        self.kind = kind
        self.problem: Problem | None = None  # what the schema's judge found
        self.key = key
        self.text = text
        self.note = note
        self.start = start
        self.end = end
        self.related = None


def rules_for(
    pack: Pack, framework: str | None, version: tuple[float, ...], selected: Callable[[str], bool]
) -> list[CompiledRule]:
    """Return the rules that speak of a framework in a version and are selected."""
    return [rule for rule in pack.rules if rule.covers(framework, version) and selected(rule.code)]


def judge(rules: Iterable[CompiledRule], values: Values) -> list[Verdict]:
    """Return the rules that do not simply hold."""
    found = []
    for rule in rules:
        truth = rule.test(values)
        if truth is not True and truth is not None:
            found.append(Verdict(rule, truth))
    return found


def needs_shown(verdict: Verdict) -> tuple[str, ...]:
    """Return what an undecided rule wants, sorted."""
    return tuple(sorted(verdict.needs or NOTHING))
