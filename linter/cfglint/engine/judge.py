"""The facts of a subject, what is wrong with its text, and the rules that it breaks.

Runs for every file, so it stays lean: no trees, no sources, no places of numbers (see find.py).
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.launcher import refused_flags
from cfglint.document.shell.ends import ends_early
from cfglint.document.tree import Mapping as Tree
from cfglint.document.tree import Missing, Scalar, dotted, nodes_with_paths
from cfglint.document.view import MappingView
from cfglint.engine.halts import halts
from cfglint.engine.said import said
from cfglint.engine.subject import Verdict
from cfglint.errors import did_you_mean, nearest
from cfglint.facts import NO_KEYS, Values, is_within, stated
from cfglint.lang.runtime import as_number
from cfglint.lang.values import INF, needs_of
from cfglint.schema.judge import BY_SCHEMA, mistakes
from cfglint.schema.table import ANY, Mistake, Problem, typed

_MEMORY = "MEM"  # the rules that compare memories
_OF_MACHINES = ("host-", "disk-")  # those of them that are about a machine's own memory or disk
_RULE = 10  # steps, on an average
_MANY_OPTIONS, _EMPTY = 80, ("", "~", "null")  # no config that people run sets as many
_MOST_NAMED = 5  # of the keys that are left to a launch
# A text in a number's place, for people to replace: TO_BE_FILLED, <nodes>, {{ nodes }}, TODO, your nodes.
_BLANK = re.compile(
    r"\"(?:[Yy]our\b[^\"]*|[A-Z0-9]+(?:_[A-Z0-9]+)+|<[^<>]*>|\{\{?[^{}]*\}\}?|TODO|FIXME|X{3,})\""
)
IMPOSSIBLE = "CFG027"  # the rule on numbers that cannot be
_NO_NODE = (ANY, None, None, None, ANY, ANY, "")  # of a schema
_LEAST_PERCENT, _MOST_PERCENT = 5, 100  # 60 in a fraction's place is 60 %; what 1.5 means, nobody knows
_SPELT_ALIKE = 0.8  # of two names without a common word, for one to be the other misspelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

    from cfglint.document.trace import Trace
    from cfglint.document.tree import Path
    from cfglint.document.view import View
    from cfglint.engine.subject import Subject
    from cfglint.facts import Alternative, Steps
    from cfglint.findings import Finding
    from cfglint.lang.pack import CompiledRule, Pack, Spec
    from cfglint.lang.tree import Rule

    Ranged = tuple[str, Spec, Steps, Alternative]


def values_for(subject: Subject, given: Mapping[str, object]) -> Values:
    """Return the facts of a subject; ``given`` are the target's, and go before those that are stated."""
    if subject.stated:
        given = {**{name: value for name, (value, _) in subject.stated.items()}, **given}
    context = subject.pack, subject.view, subject.framework, subject.version
    values = Values(*context, given, subject.tables)
    spare = {name: value for name, (value, _) in subject.spare.items() if needs_of(values[name])}
    if spare:
        values = Values(*context, {**spare, **given}, subject.tables)

    def document(kind: str) -> object:
        told = said(subject, kind)
        return _mistakes(subject, kind, given) if told is None else told

    values.document = document
    return values


def is_job(subject: Subject, values: Values) -> bool:
    """Whether a document is all that a job needs; a base config leaves some of it to the launch."""
    bound = "framework.complete" in values.bindings
    if _lists_options(subject.document.root) or _program_of(subject):
        return False
    return subject.is_launch or not bound or values["framework.complete"] is not False


def _program_of(subject: Subject) -> str:
    """Return the program that has a file for its defaults; empty where the file is a job's own."""
    base_of = subject.document.base_of
    return "" if base_of is None else base_of()


def _lists_options(root: object) -> bool:
    """Whether a file lists what could be set, as references of all options do, mostly without values."""
    if not isinstance(root, Tree) or len(root.entries) < _MANY_OPTIONS:
        return False
    values = [entry.value for entry in root.entries.values()]
    empty = sum(isinstance(value, Scalar) and value.text in _EMPTY for value in values)
    return 2 * empty > len(values)


def decides(rule: CompiledRule | Rule) -> bool:
    """Whether a rule decides if a job runs out of a GPU's memory."""
    return rule.level == "error" and is_of_gpus(rule)


def is_of_gpus(rule: CompiledRule | Rule | Finding) -> bool:
    """Whether a rule, or what it found, is about the memory of GPUs, and not that of machines."""
    return rule.code.startswith(_MEMORY) and not rule.name.startswith(_OF_MACHINES)


def key_of(name: str, values: Values) -> str:
    """Return the key that a missing fact is read from; empty where there is none."""
    if name.startswith("$."):
        return name[2:]
    paths = (path for alternative in values.possible(name) for path in alternative[4])
    key = next((path for path in paths if path[0] != "launch"), None)
    return dotted(key) if key is not None else ""


def judge(rules: Iterable[CompiledRule], values: Values) -> list[Verdict]:
    """Return the rules that do not simply hold."""
    rules = list(rules)
    spend(_RULE * len(rules), "rules")
    verdicts = []
    for rule in rules:
        truth = rule.test(values)
        if truth is not True and truth is not None:
            verdicts.append(Verdict(rule, truth))
    return verdicts


# ── what is wrong with a document, by the lists that the CFG rules read ─────────────────────────────────────
def _mistakes(subject: Subject, kind: str, given: Mapping[str, object]) -> list[Any]:
    if kind == "impossible_values":
        return list(_impossible_values(subject, given))
    if kind in _KINDS:
        return list(_KINDS[kind](subject))
    if kind in ("started_with", "trained_with", "steered_by", "decided_by", "composed_by"):
        return [] if subject.document.started is None else list(subject.document.started(kind))
    if kind in BY_SCHEMA:
        return mistakes(subject.framework, subject.view).get(kind, [])
    if not (subject.view.suspects() or subject.document.duplicates):
        return []  # as most documents: what looks for the words is not even imported
    from cfglint.document.trace import find_defects

    return list(find_defects(subject.view).get(kind, ()))


def _syntax_errors(subject: Subject) -> Iterator[Mistake]:
    error = subject.document.error
    if error is not None:
        yield Mistake(str(error), error.offset or 0, error.offset or 0)


def _missing(subject: Subject) -> Iterator[Mistake]:
    """Yield what neither a launch nor the files that its program reads set."""
    view = subject.view
    if ends_early(subject.document) is not None or view.get(("launch", "unread")):
        return  # what follows, or cannot be read, may set it
    for path, node in nodes_with_paths(view.root) if subject.is_launch and view.interpolates else ():
        if node.__class__ is Scalar and node.text == "???" and not view.is_off(path):
            yield Mistake("", *_traced(subject, path).own_span, key=dotted(path))
    if subject.is_launch:
        yield from (mistake for mistake in _of_another_kind(subject) if _BLANK.search(mistake.text))


def _left_open(subject: Subject) -> Iterator[Mistake]:
    """Yield what a config file leaves to the launch, all of it at one place."""
    if subject.is_launch or subject.framework is None:
        return
    unset: list[Any] = [mistake for mistake in _of_another_kind(subject) if _BLANK.search(mistake.text)]
    if subject.view.suspects():
        from cfglint.document.trace import find_defects  # most files give all

        unset += find_defects(subject.view).get("missing", [])
    keys = [defect.key for defect in unset]
    more = f", … ({len(keys)} in all)" if len(keys) > _MOST_NAMED else ""
    wants = _wants(subject)
    named = [", ".join(keys[:_MOST_NAMED]) + more] * bool(keys) + [wants] * bool(wants)
    if named:
        at = subject.document.start
        span = (unset[0].start, unset[0].end) if keys else (at, at)
        yield Mistake("; ".join(named), *span)


def _wants(subject: Subject) -> str:
    """Return what a framework's base config leaves to the launch beside ???; empty for a whole one."""
    wants = []
    if "framework.complete" in subject.pack.frameworks[subject.framework or ""]["bind"]:
        values = values_for(subject, {})
        base = values["framework.complete"] is False or _lists_options(subject.document.root)
        wants = [str(values["framework.wants"])] * base
    if program := _program_of(subject):
        wants.append(f"what makes a job of the defaults of {program}, whose launchers are judged")
    return "; ".join(wants)


def _lost_lines(subject: Subject) -> Iterator[Mistake]:
    lost = ends_early(subject.document)
    if lost is not None:
        yield Mistake(lost.note, lost.start, lost.end, key=lost.first, text=lost.cure)


def _strange_flags(subject: Subject) -> Iterator[Mistake]:
    """Yield the flags that a launcher or its program stops at, with what may have been meant."""
    if not subject.is_launch or subject.document.format != "shell":
        return
    for one in refused_flags(subject.document):
        yield Mistake(one.meant, one.start, one.end, key=one.name, text=one.command)
    strange = subject.document.strange
    for flag in strange() if strange is not None else ():
        yield Mistake(flag.meant, flag.start, flag.end, key=flag.name, text=flag.program, kind=flag.job)


def _refused_overrides(subject: Subject) -> Iterator[Mistake]:
    """Yield the overrides of a command that Hydra refuses, as its config has the key, or has not."""
    layers = subject.view.layers
    if subject.is_launch and layers is not None and layers.beneath is not None:
        from cfglint.document.overrides import refused_overrides  # few commands are Hydra's

        for each in refused_overrides(subject.document, layers):
            yield Mistake(each.told, each.start, each.end, key=each.key, kind=each.kind, text=each.section)


def _overruns(subject: Subject) -> Iterator[Mistake]:
    """Yield why a document was not judged, or not to the end."""
    document = subject.document
    note = document.overrun or subject.view.overrun
    if note:
        yield Mistake(note, document.start, document.start)


def _other_frameworks(subject: Subject) -> Iterator[Mistake]:
    """Yield the other frameworks that a document may be written for, where nobody said which it is."""
    whole = subject.document.whole
    if whole.claimed:
        yield Mistake(" and ".join(whole.claimed), whole.start, whole.start)


def _other_files(subject: Subject) -> Iterator[Mistake]:
    """Yield what is wrong with files that another names, at the place of the config where that begins."""
    layers = subject.view.layers
    for trouble in layers.troubles if layers is not None else ():
        node = trouble.node if trouble.by is None else trouble.by.first.node
        yield Mistake(trouble.note, node.start, node.end, key=trouble.key, text=trouble.kind)
    asked = subject.document.lost if subject.is_launch else None
    if asked is not None and (lost := asked()) is not None:
        told = f"the program {lost.text} is not in the repository"
        yield Mistake(told, lost.start, lost.end, text="program")


def _misfits(subject: Subject) -> Iterator[Mistake]:
    """Yield what is of another kind than is read, without what somebody is still to fill in."""
    return (mistake for mistake in _of_another_kind(subject) if not _BLANK.search(mistake.text))


def _of_another_kind(subject: Subject) -> list[Mistake]:
    """Return what `_odd_values` finds, which two lists are made of."""
    noted: list[Mistake] | None = subject.view.memo.get("odd values")
    if noted is None:
        noted = subject.view.memo["odd values"] = list(_odd_values(subject))
    return noted


def _odd_values(subject: Subject) -> Iterator[Mistake]:
    """Yield what is of another kind than the framework's schema says.

    Where that has no type for a key, the texts that are where the binding needs a number; where the facts'
    names are keys, also what is not a value of its fact's type.
    """
    if subject.framework is None:
        return
    if _names_are_keys(subject):
        yield from _unfit_facts(subject)
    yield from mistakes(subject.framework, subject.view).get("misfits", ())
    for path in _number_paths(subject.pack, subject.framework):
        value = subject.view.get(path)
        if isinstance(value, str) and needs_of(as_number(value)):
            yield Mistake(
                "a number", *_traced(subject, path).own_span, key=dotted(path), text=f'the string "{value}"'
            )


def _traced(subject: Subject, path: Path) -> Trace:
    from cfglint.document.trace import Trace  # there is something to tell

    return Trace(subject.view, path)


def _number_paths(pack: Pack, framework: str) -> tuple[Steps, ...]:
    """Return the keys that a framework's bindings read as numbers, without those that its schema types."""
    paths = pack.number_paths.get(framework)
    if paths is None:
        paths = pack.number_paths[framework] = tuple(
            dict.fromkeys(
                alternative[4][0]
                for name, alternatives in pack.frameworks[framework]["bind"].items()
                if name in pack.facts
                and pack.facts[name][0] == "number"  # a binding may give a let's name too
                for alternative in alternatives
                if alternative[5] and alternative[4] and not typed(framework, alternative[4][0])
            )
        )
    return paths


# ── numbers that cannot be ─────────────────────────────────────────────────────────────────────────────────
def _impossible_values(subject: Subject, given: Mapping[str, object]) -> Iterator[Mistake]:
    """Yield the numbers of a document that are outside of the range of the fact that they give, each once.

    Nothing is computed from such a number (facts.py takes it for missing). ``kind`` of a mistake is the fact,
    ``text`` the number. Only the binding that is in force counts: what
    a framework does not read does no harm.
    """
    if subject.framework is None:
        return
    told: set[Steps] = set()
    values: Values | None = None  # most files have no such number
    for name, spec, path, alternative in _ranged(subject.pack, subject.framework):
        value = as_number(subject.view.get(path)) if path not in told else None
        if type(value) is not int and type(value) is not float:
            continue
        own, when = alternative[5], alternative[1]
        if is_within(value * spec[1], spec) if own else value >= 0 and (value <= 1 or spec[3] == INF):
            continue
        values = values_for(subject, given) if values is None else values
        if when is not None and when(values) is not True:
            continue
        if not own and is_within(alternative[0](values), spec):  # type: ignore[misc]
            continue
        told.add(path)
        yield _out_of_range(subject, name, path, value)


def meant_number(pack: Pack, name: str, value: float) -> tuple[float, bool] | None:
    """Return the number that was probably meant, and whether that is sure; None where nobody can tell."""
    spec = pack.facts[name]
    if spec[3] == 1 and _LEAST_PERCENT <= value <= _MOST_PERCENT:
        return value / 100, True
    return (-value, False) if value < -1 and is_within(-value * spec[1], spec) else None


def _ranged(pack: Pack, framework: str) -> tuple[Ranged, ...]:
    """Return the keys that a framework's bindings read as numbers of a range, with the bindings."""
    found: tuple[Ranged, ...] | None = pack.ranged.get(framework)
    if found is None:
        found = pack.ranged[framework] = tuple(
            (name, spec, alternative[4][0], alternative)
            for name, alternatives in pack.frameworks[framework]["bind"].items()
            if (spec := pack.facts.get(name)) and spec[0] == "number" and spec[2] > -INF
            for alternative in alternatives
            if len(alternative[4]) == 1 and "*" not in alternative[4][0]
        )
    return found


def _out_of_range(subject: Subject, name: str, path: Steps, value: float) -> Mistake:
    from cfglint.lang.types import digits

    _, factor, low, high, _ = subject.pack.facts[name]
    limits = f"{digits(low / factor)} or more"
    if high < INF:
        limits = f"from {digits(low / factor)} to {digits(high / factor)}"
    probably = meant_number(subject.pack, name, value)
    note = limits if probably is None else f"{limits}: {digits(probably[0], 6)} meant?"
    problem = Problem("value", path, _NO_NODE, value)
    span = _traced(subject, path).own_span
    return Mistake(note, *span, key=dotted(path), text=f"{value:g}", kind=name, problem=problem)


# ── files whose keys are the facts' own names ──────────────────────────────────────────────────────────────
def _names_are_keys(subject: Subject) -> bool:
    """Whether the keys are facts; flags are the program's own words."""
    if subject.framework is None or subject.document.format == "shell":
        return False
    return subject.pack.frameworks[subject.framework]["keys"] is not None


def _unfit_facts(subject: Subject) -> Iterator[Mistake]:
    """Yield what is not a value of its fact's type; no rule would look at it."""
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
    """Yield the keys that are not a fact's name, nor read by the framework's block."""
    if not _names_are_keys(subject):
        return
    pack = subject.pack
    read = pack.frameworks[subject.framework or ""]["keys"]
    own: Collection[Steps] | None = None  # looked for where there is something to tell
    for path in _keys(pack, subject.view, ()):
        name = ".".join(path)
        if _is_fact(pack, name) or any(path[: len(steps)] == steps[: len(path)] for steps in read):
            continue
        own = pack.keys_of_own(subject.framework) if own is None else own
        if any(path[: len(steps)] == steps[: len(path)] for steps in own):
            continue
        near = did_you_mean(
            name, [fact for fact in pack.facts if _is_fact(pack, fact) and _alike(name, fact)]
        )
        note = near or f"; rules/vocabulary.rules lists the names, and a rule of yours reads $.{name}"
        yield Mistake(note, *_traced(subject, path).key_span, key=name)


def _alike(name: str, fact: str) -> bool:
    """Whether a name and a fact share a word, or are alike but for how words are joined."""
    first, second = (text.lower().replace(".", "_").split("_") for text in (name, fact))
    return not set(first).isdisjoint(second) or bool(
        nearest("".join(first), ["".join(second)], cutoff=_SPELT_ALIKE)
    )


def _is_fact(pack: Pack, name: str) -> bool:
    return name in pack.facts and name.partition(".")[0] not in NO_KEYS


def _keys(pack: Pack, view: View, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of a file; a mapping by its own keys where it is the first part of names."""
    for key in view.keys(path):
        inner = (*path, key)
        start = ".".join(inner) + "."
        if isinstance(view.get(inner), MappingView) and any(fact.startswith(start) for fact in pack.facts):
            yield from _keys(pack, view, inner)
        else:
            yield inner


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'the string "{value}"'
    if isinstance(value, MappingView):
        return "a mapping"
    from cfglint.schema.wording import shown

    return shown(value)


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
    "other_frameworks": _other_frameworks,
    "overruns": _overruns,
    "left_open": _left_open,
    "lost_lines": _lost_lines,
    "missing": _missing,
    "misfits": _misfits,
    "strange_flags": _strange_flags,
    "refused_overrides": _refused_overrides,
    "stops": halts,
    "unknown_names": _unknown_names,
}
