"""The facts of a subject, what is wrong with its text, and the rules that it breaks.

Runs for every file, so it stays lean: no trees, no sources, no places of numbers (see find.py).
"""

from __future__ import annotations

from cfglint.document.scalars import SHELL
from cfglint.document.tree import Missing, dotted
from cfglint.document.view import MappingView
from cfglint.engine.subject import Mistake, Verdict
from cfglint.errors import did_you_mean
from cfglint.facts import NO_KEYS, Values, stated
from cfglint.lang.runtime import as_number
from cfglint.lang.values import INF, needs_of
from cfglint.schema import judge as schema_judge
from cfglint.schema.table import table, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from cfglint.document.trace import Trace
    from cfglint.document.tree import Path
    from cfglint.document.view import View
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps
    from cfglint.lang.pack import CompiledRule, Pack
    from cfglint.schema.judge import Problem
    from cfglint.schema.table import Table

BY_SCHEMA = ("refused_keys", "ignored_keys", "refused_values", "doubtful_values")
_MAYBE = ("section", "subclass", "own", "versions")
_FATE = {
    "refused": "",
    "section": "",
    "ignored": ": it has no effect",
    "subclass": ": the run stops, unless a class of your own defines it",
    "own": ": it has no effect, unless code of your own reads it",
    "versions": ": the server stops at it, unless it is of another version",
}


def values_for(subject: Subject, given: Mapping[str, object]) -> Values:
    """Return the facts of a subject; ``given`` are the target's."""
    values = Values(subject.pack, subject.view, subject.framework, subject.version, given, subject.tables)
    values.document = lambda kind: _mistakes(subject, kind)
    return values


def judge(rules: Iterable[CompiledRule], values: Values) -> list[Verdict]:
    """Return the rules that do not simply hold."""
    verdicts = []
    for rule in rules:
        truth = rule.test(values)
        if truth is not True and truth is not None:
            verdicts.append(Verdict(rule, truth))
    return verdicts


# ── what is wrong with a document, by the lists that the CFG rules read ─────────────────────────────────────
def _mistakes(subject: Subject, kind: str) -> list[Any]:
    if kind in BY_SCHEMA:
        return list(_by_schema(subject, kind))
    if kind in _KINDS:
        return list(_KINDS[kind](subject))
    if not (subject.view.suspects() or subject.document.duplicates):
        return []  # as most documents: what looks for the words is not even imported
    from cfglint.document.trace import find_defects

    return list(getattr(find_defects(subject.view), kind, ()))


def _syntax_errors(subject: Subject) -> Iterator[Mistake]:
    error = subject.document.error
    if error is not None:
        yield Mistake(str(error), error.offset or 0, error.offset or 0)


def _other_files(subject: Subject) -> Iterator[Mistake]:
    """Yield what is wrong with files that another names, at the place of the config where that begins."""
    layers = subject.view.layers
    for trouble in layers.troubles if layers is not None else ():
        node = trouble.node if trouble.by is None else trouble.by.first.node
        yield Mistake(trouble.note, node.start, node.end, key=trouble.key, text=trouble.kind)


def _misfits(subject: Subject) -> Iterator[Mistake]:
    """Yield what is of another kind than the framework's schema says.

    Where that has no type for a key, the texts that stand where the binding wants a number; where the facts'
    names are keys, also what is no value of its fact's type.
    """
    if subject.framework is None:
        return
    if _names_are_keys(subject):
        yield from _unfit_facts(subject)
    if table(subject.framework) is not None:
        yield from _by_schema(subject, "misfits")
    for path in _number_paths(subject.pack, subject.framework):
        value = subject.view.get(path)
        if isinstance(value, str) and needs_of(as_number(value)):
            yield Mistake(
                "a number", *_traced(subject, path).own_span, key=dotted(path), text=f'the text "{value}"'
            )


def _traced(subject: Subject, path: Path) -> Trace:
    from cfglint.document.trace import Trace  # there is something to tell

    return Trace(subject.view, path)


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


# ── by the framework's schema ──────────────────────────────────────────────────────────────────────────────
def _by_schema(subject: Subject, kind: str) -> list[Mistake]:
    """Return the mistakes of one kind that the framework's schema finds; none where it has no schema."""
    if subject.checked is None:
        schema = None if subject.framework is None else table(subject.framework)
        subject.checked = {}
        wrong = _problems(schema, subject) if schema is not None else ()
        if schema is not None and wrong:
            subject.checked = _noted(wrong, schema, subject)
    return subject.checked.get(kind, [])


def _problems(schema: Table, subject: Subject) -> list[Problem]:
    """Return what is wrong with a document; of a launch script's flags, another program's may be its own."""
    if subject.view.dialect is not SHELL:
        return schema_judge.problems(schema, subject.view)
    if not _starts_own_program(schema, subject):
        return []
    wrong = schema_judge.problems(schema, subject.view, skip=("launch",))
    return [problem for problem in wrong if problem.what != "key" or not _begins_another(problem)]


def _starts_own_program(schema: Table, subject: Subject) -> bool:
    from fnmatch import fnmatchcase

    started = [subject.view.get(("launch", key)) for key in ("program", "module")]
    return any(
        isinstance(program, str) and fnmatchcase(program, pattern)
        for program in started
        for pattern in schema.programs
    )


def _begins_another(problem: Problem) -> bool:
    """Whether argparse takes a flag for the one that it begins."""
    name = str(problem.path[-1])
    return any(key.startswith(name) for key in problem.node[3] or ())


def _noted(wrong: Sequence[Problem], schema: Table, subject: Subject) -> dict[str, list[Mistake]]:
    """Return what is wrong with a document's keys and values, each kind in the file's order."""
    view = subject.view
    meant = {id(problem): schema_judge.meant(problem, view) for problem in wrong if problem.what == "key"}

    def counts(problem: Problem) -> bool:
        """Whether a problem is told: what is probably the job's own is left out."""
        if problem.what != "key":
            return True
        mark = problem.node[6]  # a slip of the pen looks like a key that is there
        slip = mark not in _MAYBE or meant[id(problem)] is not None
        return slip and (mark != "ignored" or view.get(problem.path) is not None)

    counted = [problem for problem in wrong if counts(problem)]
    if any(problem.what == "key" for problem in counted) and _extended(schema, subject):
        counted = [problem for problem in counted if problem.what != "key"]
    by_kind: dict[str, list[Mistake]] = {}
    for problem, span in schema_judge.unique(counted, view):
        key = dotted(problem.path)
        mark = problem.node[6]
        if problem.what == "key":
            kind = "refused_keys" if mark in ("refused", "section") else "ignored_keys"
            likely = meant[id(problem)]
            near = f"; did you mean {likely!r}?" if likely else schema_judge.near(problem)
            note = _FATE[mark] + (near or schema_judge.elsewhere(problem, schema))
            mistake = Mistake(note, *span, key, mark, problem=problem)
        else:
            kind = "misfits"
            if problem.what == "value":
                kind = "doubtful_values" if mark == "named" else "refused_values"
            note = schema_judge.wanted(problem.node) + schema_judge.near(problem)
            mistake = Mistake(note, *span, key, schema_judge.shown(problem.value), "refused", problem)
        by_kind.setdefault(kind, []).append(mistake)
    return by_kind


def _extended(schema: Table, subject: Subject) -> bool:
    """Whether the file says that other classes than the framework's own take keys from it."""
    from fnmatch import fnmatchcase

    for key, pattern in schema.unless:
        path = tuple(key.split("."))
        if pattern == "*" and subject.view.has(path):
            return True
        value = subject.view.get(path)
        wanted, pattern_text = pattern[0] != "!", pattern.lstrip("!")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (str, int)) and fnmatchcase(str(item), pattern_text) == wanted:
                return True
    return False


# ── files whose keys are the facts' own names ──────────────────────────────────────────────────────────────
def _names_are_keys(subject: Subject) -> bool:
    """Whether the keys are facts; flags are the program's own words."""
    if subject.framework is None or subject.document.format == "shell":
        return False
    return subject.pack.frameworks[subject.framework]["keys"] is not None


def _unfit_facts(subject: Subject) -> Iterator[Mistake]:
    """Yield what is no value of its fact's type; no rule would look at it."""
    pack, view = subject.pack, subject.view
    bound = pack.frameworks[subject.framework or ""]["bind"]
    for path in _keys(pack, view, ()):
        name = ".".join(path)
        if not _is_fact(pack, name) or name in bound:
            continue
        value = view.get(path)
        if type(value) is not Missing and needs_of(stated(pack, name, value)):
            span = _traced(subject, path).span
            yield Mistake(_wanted(pack, name, value), *span, key=dotted(path), text=_shown(value))


def _unknown_names(subject: Subject) -> Iterator[Mistake]:
    """Yield the keys that are no fact's name, nor read by the framework's block."""
    if not _names_are_keys(subject):
        return
    pack = subject.pack
    read = pack.frameworks[subject.framework or ""]["keys"]
    for path in _keys(pack, subject.view, ()):
        name = ".".join(path)
        if _is_fact(pack, name) or any(path[: len(steps)] == steps[: len(path)] for steps in read):
            continue
        near = did_you_mean(name, [fact for fact in pack.facts if _is_fact(pack, fact)])
        note = near or "; rules/vocabulary.rules lists them"
        yield Mistake(note, *_traced(subject, path).key_span, key=name)


def _is_fact(pack: Pack, name: str) -> bool:
    return name in pack.facts and name.partition(".")[0] not in NO_KEYS


def _keys(pack: Pack, view: View, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of a file; those of a mapping for it where it stands for the first part of names."""
    for key in view.keys(path):
        inner = (*path, key)
        name = ".".join(inner)
        leads_on = any(fact.startswith(f"{name}.") for fact in pack.facts)
        if leads_on and isinstance(view.get(inner), MappingView):
            yield from _keys(pack, view, inner)
        else:
            yield inner


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'the text "{value}"'
    return "a mapping" if isinstance(value, MappingView) else schema_judge.shown(value)


def _wanted(pack: Pack, name: str, value: object) -> str:
    """Say what a fact's value has to be, and which member was probably meant."""
    from cfglint.lang.types import PLAIN, describe, digits

    kind, factor, low, high, spellings = pack.facts[name]
    if spellings is not None:
        near = did_you_mean(value, spellings) if isinstance(value, str) else ""
        return f"one of {', '.join(dict.fromkeys(spellings.values()))}{near}"
    if kind != "number":
        return "true or false" if kind == "bool" else f"a {kind}"
    dimension, whole = pack.measures[name]
    sort = "a whole number" if whole else describe(dimension).replace("plain ", "")
    if low == -INF or (low == 0 and dimension != PLAIN):
        return sort
    upper = f" to {digits(high / factor)}" if high < INF else ""
    return f"{sort} from {digits(low / factor)}{upper}"


_KINDS = {
    "syntax_errors": _syntax_errors,
    "other_files": _other_files,
    "misfits": _misfits,
    "unknown_names": _unknown_names,
}
