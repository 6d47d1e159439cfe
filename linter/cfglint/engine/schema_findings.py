"""A document held against its framework's schema: the mistakes, by the list that a CFG rule reads."""

from __future__ import annotations

from cfglint.schema.judge import problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.judge import Subject
    from cfglint.schema.judge import Problem
    from cfglint.schema.table import Table


def of_script(table: Table, subject: Subject) -> list[Problem]:
    """Return what is wrong with a launch script's flags; another program's may be its own."""
    if not _own_program(table, subject):
        return []
    found = problems(table, subject.view, skip=("launch",))
    return [one for one in found if one.what != "key" or not _begins_another(one)]


def _begins_another(problem: Problem) -> bool:
    """Whether argparse takes a flag for the one that it begins."""
    name = str(problem.path[-1])
    return any(key.startswith(name) for key in problem.node[3] or ())


_MAYBE = ("section", "subclass", "own", "versions")
_FATE = {
    "refused": "",
    "section": "",
    "ignored": ": it has no effect",
    "subclass": ": the run stops, unless a class of your own defines it",
    "own": ": it has no effect, unless code of your own reads it",
    "versions": ": the server stops at it, unless it is of another version",
}


def _extended(table: Table, subject: Subject) -> bool:
    """Whether the file says that other classes than the framework's own take keys from it."""
    from fnmatch import fnmatchcase

    for key, pattern in table[3]:
        path = tuple(key.split("."))
        if pattern == "*" and subject.view.has(path):
            return True
        value = subject.view.get(path)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (str, int)) and fnmatchcase(str(one), pattern.lstrip("!")) != (
                pattern[0] == "!"
            ):
                return True
    return False


def _own_program(table: Table, subject: Subject) -> bool:
    from fnmatch import fnmatchcase

    started = [subject.view.get(("launch", key)) for key in ("program", "module")]
    return any(isinstance(one, str) and fnmatchcase(one, known) for one in started for known in table[2])


def note(found: Sequence[Problem], table: Table, subject: Subject) -> None:
    """Write down what is wrong with a document's keys and values, each kind in the file's order."""
    from cfglint.engine.judge import Mistake
    from cfglint.schema import words

    checked = subject.checked
    assert checked is not None
    view = subject.view
    known = {id(one): words.meant(one, view) for one in found if one.what == "key"}
    # What is probably the job's own is left out; a slip of the pen looks like a key that is there.
    told = [p for p in found if p.what != "key" or p.node[6] not in _MAYBE or known[id(p)] is not None]
    told = [p for p in told if p.what != "key" or p.node[6] != "ignored" or view.get(p.path) is not None]
    if any(one.what == "key" for one in told) and _extended(table, subject):
        told = [one for one in told if one.what != "key"]
    for problem, span in words.unique(told, view):
        key = words.shown(problem.path)
        mark = problem.node[6]
        if problem.what == "key":
            kind = "refused_keys" if mark in ("refused", "section") else "ignored_keys"
            meant = known[id(problem)]
            near = f"; did you mean {meant!r}?" if meant else words.near(problem)
            note = _FATE[mark] + (near or words.elsewhere(problem, table))
            mistake = Mistake(note, *span, key=key, text=mark)
        else:
            kind = "misfits"
            if problem.what == "value":
                kind = "doubtful_values" if mark == "named" else "refused_values"
            note = words.wanted(problem.node) + words.near(problem)
            mistake = Mistake(note, *span, key=key, text=words.told(problem.value), kind="refused")
        mistake.problem = problem
        checked.setdefault(kind, []).append(mistake)
