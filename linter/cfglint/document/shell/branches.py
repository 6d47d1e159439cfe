"""Branches and loops of a script: which way it goes where its tests say so, and what its ways agree in."""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.shell.conditions import Tests
from cfglint.document.shell.expand import Expander
from cfglint.document.shell.processes import VISIBLE
from cfglint.document.shell.source import SCRIPT, Source
from cfglint.document.shell.words import Array, Pieces, meet, unknown
from cfglint.document.shell.workers import has_one_each, pinned_in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from cfglint.document.shell.variables import Variables
    from cfglint.document.shell.words import Command

LEAVING = ("exit", "return", "break", "continue")
READERS = ("read", "mapfile", "readarray", "getopts", "let", "printf")
_STARTS = re.compile(r"\b(?:sbatch|srun|torchrun|accelerate|deepspeed)\b")
_ROUNDS = 100  # of a loop over known arguments
_COUNTED = ("for_statement", "c_style_for_statement")  # loops that may give each round its own GPU


class Exit(Exception):  # noqa: N818 (a signal: nothing went wrong)
    """The way through the script ends here."""


class Leave(Exit):
    """The way through a loop ends here; ``ends`` says that the loop does, too (``break``)."""

    def __init__(self, *, ends: bool) -> None:
        super().__init__()
        self.ends = ends


class Branches:
    """What a walk through a script needs to take branches and loops; `Runner` adds the commands."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.commands: list[Command] = []
        self._source = Source(())
        self._rounds = 0  # of loops that are followed
        self._may_leave = False  # a branch that may be taken leaves the loop
        self._open: list[str] = []  # the scripts that are being read
        self._locals: dict[str, Pieces | Array | None] | None = None  # of a function, with what they hide

    def _run(self, node: Any, depth: int) -> None:
        raise NotImplementedError

    def _expander(self) -> Expander:
        return Expander(self._source, self.variables)

    def _decided(self, conditions: list[Any], changed: Callable[[], set[str]]) -> bool | None:
        """Return whether a condition holds; None where that is not known.

        What the environment may set is only taken to be empty if that is ``changed`` then, its default, and
        nothing else that was set before: a cluster gives all that a branch sets, or nothing.
        """
        tests = Tests(self._expander())
        held = tests.verdict(conditions[0]) if len(conditions) == 1 else None
        if held is not None and tests.unset:
            names = changed()
            others = {name for name in names - tests.unset if name in self.variables}
            return held if names & tests.unset and not others else None
        return held

    def _changed(self, bodies: list[list[Any]]) -> Callable[[], set[str]]:
        """Return what finds out, once and if it is asked, which variables some bodies may set."""
        found: list[set[str]] = []

        def names() -> set[str]:
            if not found:
                found.append({name for body in bodies for node in body for name in self._assigned(node)})
            return found[0]

        return names

    def _leave(self, how: str, *, in_call: bool) -> None:
        """End the way that this is on; bash complains of a return outside of a call, and goes on.

        So does a ``break`` of a loop that is not followed.
        """
        if how in ("break", "continue"):
            if self._rounds:
                raise Leave(ends=how == "break")
        elif how == "exit" or in_call:
            raise Exit

    # ── ways ───────────────────────────────────────────────────────────────────────────────────────────
    def _hide(self, names: Iterable[str]) -> None:
        for name in names:
            self.variables[name] = (unknown(name),)

    def _apart(self, nodes: Iterable[Any], depth: int, *, beside: bool = False) -> None:
        """Run what has variables of its own, and in the background if it is ``beside`` the rest."""
        before, met = self.variables.begin(), len(self.commands)
        try:
            for node in nodes:
                self._run(node, depth + 1)
        except Exit:
            pass
        self.variables.undo(before)
        for command in self.commands[met:]:
            command.beside = command.beside or beside

    def _ways(
        self, ways: list[list[Any]], depth: int, taken: list[bool] | None = None, tested: Iterable[Any] = ()
    ) -> None:
        """Run each of some ways on its own, and go on with what those agree in that may be taken.

        Where all of these end the script, it goes on with the others: somebody wrote what follows. A way that
        is not taken is one for other values of what is ``tested``, and none where the caller says them.
        """
        told = taken is not None and not all(taken) and self._told(tested)
        after: list[tuple[bool, dict[str, Pieces | Array | None]]] = []
        for number, way in enumerate(ways):
            before = self.variables.begin()
            live = taken is None or taken[number]
            if not live and told:
                continue
            if not live:
                self._hide(self._read_by(tested))
            try:
                for node in way:
                    self._run(node, depth + 1)
            except Leave:
                changed = self.variables.undo(before)
                if live and taken is not None and sum(taken) == 1:
                    self.variables.restore(changed)
                    raise
                self._may_leave |= live
                after.append((live, changed))
            except Exit:
                self.variables.undo(before)
            else:
                after.append((live, self.variables.undo(before)))
        if not after:
            raise Exit
        self._meet([way for live, way in after if live] or [way for _, way in after])

    def _told(self, tested: Iterable[Any]) -> bool:
        """Whether tests ask for nothing but what a function or another script is given, or sets itself."""
        if not (self._open or self._locals is not None):
            return False
        kinds = ("variable_name", "special_variable_name")
        found = (inner for node in tested for inner in walk_nodes(node) if inner.type in kinds)
        return all(self._is_told(self._source.text_of(inner)) for inner in found)

    def _is_told(self, name: str) -> bool:
        if not name.isidentifier():
            return isinstance(self.variables.get("@"), Array)
        return name in (self._locals or ()) or bool(self._open and name in self.variables)

    def _meet(self, ways: list[dict[str, Pieces | Array | None]]) -> None:
        """Go on with what some ways agree in, each given by what it changes."""
        changes: dict[str, list[tuple[int, Pieces | Array | None]]] = {}
        for number, way in enumerate(ways):
            for name, value in way.items():
                changes.setdefault(name, []).append((number, value))
        for name, changed in changes.items():
            values = [value for _, value in changed]
            if len(changed) < len(ways):  # the others leave it as it was; the first of them counts for all
                first = next((i for i, (number, _) in enumerate(changed) if number != i), len(changed))
                values.insert(first, self.variables.get(name))
            spend(len(values), SCRIPT)
            if not all(value is values[0] for value in values):
                self.variables[name] = meet(values, name)
            elif values[0] is not None:
                self.variables[name] = values[0]
            else:
                del self.variables[name]

    def _look_within(self, value: Any, depth: int) -> None:
        """Look at what a substitution starts: ``id=$(sbatch --parsable job.sh)``."""
        for node in (value, *value.named_children):
            if node.type == "command_substitution" and _STARTS.search(self._source.text_of(node)):
                self._apart(node.named_children, depth)

    # ── statements ─────────────────────────────────────────────────────────────────────────────────────
    def take_list(self, node: Any, depth: int) -> None:
        """Run ``A && B`` and ``A || B``."""
        first, *others = node.named_children
        self._run(first, depth + 1)
        sign = next((child.type for child in node.children if child.type in ("&&", "||")), "")
        held = self._decided([first], self._changed([others]))
        for child in others:
            taken = None if held is None else [held == (sign == "&&"), held != (sign == "&&")]
            self._ways([[child], []], depth, taken, [first])

    def take_subshell(self, node: Any, depth: int) -> None:
        """Run ``( … )``."""
        self._apart(node.named_children, depth)

    def take_if(self, node: Any, depth: int) -> None:
        """Run ``if``, ``elif``, ``else``."""
        conditions = node.children_by_field_name("condition")
        tested = {child.id for child in conditions}
        for condition in conditions:
            if condition.is_named:
                self._run(condition, depth + 1)
        ways: list[list[Any]] = [[]]
        asked = [[condition for condition in conditions if condition.is_named]]
        otherwise = False
        for child in node.named_children:
            if child.type == "elif_clause":
                tests, body = _clause(child)
                ways.append(body)
                asked.append(tests)
            elif child.type == "else_clause":
                otherwise = True
                ways.append(list(child.named_children))
            elif child.type != "comment" and child.id not in tested:
                ways[0].append(child)
        if not otherwise:
            ways.append([])
        changed = self._changed(ways)
        live = _live([*(self._decided(tests, changed) for tests in asked), True])
        self._ways(ways, depth, live, [test for tests in asked for test in tests])

    def take_case(self, node: Any, depth: int) -> None:
        """Run what a word of ``case`` leads to."""
        ways: list[list[Any]] = []
        taken: list[bool | None] = []
        word = node.child_by_field_name("value")
        tests = Tests(self._expander())
        for item in node.named_children:
            if item.type != "case_item":
                continue
            values = item.children_by_field_name("value")
            tested = {value.id for value in values}
            ways.append([c for c in item.named_children if c.id not in tested and c.type != "comment"])
            taken.append(tests.matches(word, values) if word is not None else None)
        if tests.unset:
            taken = [None if way is False else way for way in taken]
        self._ways([*ways, []], depth, _live([*taken, True]), [word] if word is not None else ())

    # ── loops ──────────────────────────────────────────────────────────────────────────────────────────
    def take_loop(self, node: Any, depth: int) -> None:
        """Run a loop's body once, with what it changes unknown; as often as it runs where that is known."""
        body = node.child_by_field_name("body")
        variable = node.child_by_field_name("variable")
        if body is None:
            return
        if variable is not None and self._once(node, self._source.text_of(variable), body, depth):
            return
        for condition in node.children_by_field_name("condition"):
            if condition.is_named:  # `while ! torchrun …; do sleep 1; done`
                self._apart([condition], depth)
        names = self._assigned(node)
        if variable is not None:
            names.add(self._source.text_of(variable))
        before, met = self.variables.begin(), len(self.commands)
        try:
            ended = node.type == "while_statement" and self._while(node, body, depth)
        except Exit:
            self.variables.restore(self.variables.undo(before))
            raise
        changed = self.variables.undo(before)
        if ended:
            self.variables.restore(changed)
            return
        del self.commands[met:]
        self._hide(names)
        self._apart([body], depth)
        text = self._source.text_of(node) if node.type in _COUNTED else ""
        turns, alone = pinned_in_turn(text), has_one_each(text)
        for command in self.commands[met:]:
            command.repeated = True
            if VISIBLE in command.environment:
                command.turns, command.alone = turns or command.turns, alone or command.alone
        self._hide(names)

    def _once(self, node: Any, variable: str, body: Any, depth: int) -> bool:
        """Run a ``for`` that goes over one known word, or over none; returns whether that was all."""
        if node.type != "for_statement" or node.children[0].type != "for":
            return False
        values = node.children_by_field_name("value")
        if not values and "@" not in self.variables:
            words = []  # over the arguments
        elif len(values) == 1:
            words = self._expander().words(values[0])
            arguments = self._source.text_of(values[0]).strip('"') in ("$@", "$*", "${@}", "${*}")
            if not words and not (arguments and "@" not in self.variables):
                return False
        else:
            return False
        if not words:
            self._dead(body, variable, depth)
            return True
        if len(words) > 1 or words[0].text is None:
            return False
        self.variables[variable] = words[0].pieces
        if self._round(body, depth) is None:
            self._hide(self._assigned(body))
        return True

    def _while(self, node: Any, body: Any, depth: int) -> bool:
        """Run a loop over known arguments, or one that does not run; returns whether that was all."""
        if node.children[0].type != "while":
            return False
        conditions = [child for child in node.children_by_field_name("condition") if child.is_named]
        text = " ".join(map(self._source.text_of, conditions))
        for number in range(_ROUNDS):
            held = self._decided(conditions, set)
            if held is False:
                if not number:
                    self._dead(body, "", depth)
                return True
            if held is None or "@" not in self.variables or "$" not in text:
                return False
            arguments = self.variables["@"]
            left = self._round(body, depth)
            if left:
                return True
            if left is None or self.variables.get("@") == arguments:
                return False  # nothing that is known here ends it
        return False

    def _round(self, body: Any, depth: int) -> bool | None:
        """Run a loop's body once; returns whether it leaves the loop, None where that is not known."""
        self._rounds += 1
        before, self._may_leave = self._may_leave, False
        ends = False
        try:
            self._run(body, depth + 1)
        except Leave as left:
            ends = left.ends
        finally:
            self._rounds -= 1
            unclear, self._may_leave = self._may_leave, before
        return None if unclear else ends

    def _dead(self, body: Any, variable: str, depth: int) -> None:
        """Look at what a loop would run if it ran; nothing of it counts."""
        before = self.variables.begin()
        self._hide([*self._assigned(body), *([variable] if variable else [])])
        self._apart([body], depth)
        self.variables.undo(before)

    def _read_by(self, nodes: Iterable[Any]) -> set[str]:
        """Return the variables that some tests read."""
        found = (inner for node in nodes for inner in walk_nodes(node) if inner.type == "variable_name")
        return {self._source.text_of(inner) for inner in found}

    def _assigned(self, node: Any) -> set[str]:
        """Return the variables that a loop may set."""
        text_of = self._source.text_of
        names: set[str] = set()
        for inner in walk_nodes(node):
            children = inner.named_children
            if inner.type == "variable_assignment":
                names.add(text_of(inner.children[0]).partition("[")[0])
            elif inner.type == "compound_statement" and inner.children and inner.children[0].type == "((":
                names.update(text_of(child) for child in children if child.type == "variable_name")
            elif inner.type == "command" and children:
                name = text_of(children[0])
                if name in READERS:
                    names.update(text_of(word).partition("=")[0] for word in children[1:])
                elif name in ("shift", "set") and "@" in self.variables:
                    names.add("@")
                elif name in ("cd", "pushd", "popd"):
                    names.add("PWD")
        return names


def walk_nodes(node: Any) -> Iterator[Any]:
    """Yield a node and all below it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.named_children)


def _clause(node: Any) -> tuple[list[Any], list[Any]]:
    """Return the condition and the body of an ``elif``."""
    before = True
    tests: list[Any] = []
    body: list[Any] = []
    for child in node.children:
        if child.type == "then":
            before = False
        elif child.is_named and child.type != "comment":
            (tests if before else body).append(child)
    return tests, body


def _live(taken: list[bool | None]) -> list[bool]:
    """Return which ways may be taken: those up to the first that surely is."""
    live: list[bool] = []
    decided = False
    for way in taken:
        live.append(not decided and way is not False)
        decided = decided or way is True
    return live
