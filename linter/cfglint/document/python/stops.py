"""Where a program with a config of Hydra's surely stops: it reads an absent key, or raises by its values.

Only what runs in any case is gone through: statements in their order, functions that are called, branches
whose condition the config settles, and the first round of the training loop. Where it may have returned
before, it is over.
"""

from __future__ import annotations

import ast

from cfglint.budget import spend
from cfglint.document.python.reckon import DEEPEST, Frame, OverError, Reckoner, is_private
from cfglint.document.python.source import PYTHON
from cfglint.document.python.surely import (
    BATCHES,
    UNKNOWN,
    Known,
    Part,
    Task,
    calls,
    is_named,
    leaves,
    message_of,
    names_of,
    set_elsewhere,
    stored,
    written_over,
)
from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.python.modules import Modules
    from cfglint.document.python.reckon import Ask, Keys, Names
    from cfglint.document.tree import File

_MOST = 3000  # statements
_FILES = 40  # in which a key may be set
ON, _LEFT, _NEXT, _LOST = "on", "left", "next", "lost"


class Stop(Value):
    """Where a program stops: ``place`` is FILE:LINE; at a ``key`` that is not there, or by what it raises.

    ``causes`` are the keys whose values lead there, ``wanted`` other values that they are compared with.
    """

    place: str
    key: str = ""
    raised: str = ""
    causes: tuple[str, ...] = ()
    wanted: tuple[tuple[str, object], ...] = ()


class _StopError(Exception):
    def __init__(self, stop: Stop, functions: set[str]) -> None:
        self.stop, self.functions = stop, functions  # that are gone through as it stops


class _Question(Record):
    """What a walk asks next, and where each answer leads: to another question, or to how the walk ends."""

    path: Keys
    then: dict[object, _Question | _End] = field(factory=dict)


class _End(Value):
    """How a walk ends."""

    stop: Stop | None


class Stops(Record):
    """The stops of a program, each found once for what its config answers.

    A walk asks the same as another one up to an answer that differs: the questions form a tree.
    """

    program: File
    modules: Modules
    _first: dict[object, _Question | _End] = field(factory=dict, init=False)

    def find(self, ask: Ask) -> Stop | None:
        """Return where the program surely stops with a config."""
        node = self._first.get(None)
        while isinstance(node, _Question):
            node = node.then.get(_plain(ask(node.path)))
        if node is None:
            walk = Walk(self.program, self.modules, ask)
            node = _End(walk.stop())
            self._note(walk.asked, node)
        return node.stop

    def _note(self, asked: dict[Keys, object], end: _End) -> None:
        """Note where the answers to a walk's questions lead."""
        then, answer = self._first, None
        for path, found in asked.items():
            if not is_private(path):
                question = then.setdefault(answer, _Question(path))
                assert isinstance(question, _Question), "a walk that asked the same ended here"
                assert question.path == path, "a walk that heard the same asks the same"
                then, answer = question.then, _plain(found)
        then[answer] = end


def _plain(answer: object) -> object:
    """Return what tells answers apart: 1 and true are two."""
    return (type(answer.value), answer.value) if isinstance(answer, Known) else answer


class Walk(Reckoner):
    """What surely runs of a program, in its order."""

    left = _MOST

    def stop(self) -> Stop | None:
        """Return where the program stops, from its function with ``@hydra.main`` on."""
        try:
            self.start()
        except _StopError as error:
            keys = {each.rpartition(".")[2] for each in (error.stop.key, *error.stop.causes) if each}
            return None if self._may_set(keys | error.functions) else error.stop
        except (OverError, RecursionError):
            pass
        return None

    def start(self) -> None:
        """Go through the program's function with ``@hydra.main``."""
        names = self.names(self.program).values()
        mains = [each for each in names if isinstance(each, Task) and _is_main(each.node)]
        if len(mains) == 1 and mains[0].node.args.args:
            self.follow(mains[0], [Part(())], {})

    def _may_set(self, keys: set[str]) -> bool:
        """Whether a file that was read or is imported may set one of the keys, or replace a function."""
        texts = {file.path: file.text for file, _ in self.files.values()}
        if any(written_over(text) for text in texts.values()):
            return True
        for file, _ in list(self.files.values()):
            for name in set_elsewhere(file.text):
                other = self.modules.imported(file, name) if len(texts) < _FILES else None
                if other is not None:
                    texts[other.path] = other.text
        spend(sum(map(len, texts.values())) // 2000, PYTHON)
        return any(stored(text) & keys for text in texts.values())

    # ── statements ─────────────────────────────────────────────────────────────────────────────────────
    def follow(self, task: Task, given: Sequence[object], named: dict[str, object] | None) -> object:
        """Go through a function with its arguments; returns what it gives."""
        node = task.node
        plain = all(_is_main_or_remote(each) for each in node.decorator_list)
        if not plain or self.modules.traits(node).yields:
            return UNKNOWN
        if len(self.active) >= DEEPEST or node in self.active or not self.enters(node):
            return UNKNOWN
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args]
        names: Names = {each.arg: UNKNOWN for each in (*every, *arguments.kwonlyargs)}
        names |= {each.arg: UNKNOWN for each in (arguments.vararg, arguments.kwarg) if each is not None}
        frame = Frame(task.file, names, task.owner)
        for argument, default in zip(reversed(every), reversed(arguments.defaults), strict=False):
            names[argument.arg] = self.value(default, frame) if named is not None else UNKNOWN
        places = [argument.arg for argument in every]
        values = [task.owner, *given] if task.owner is not None else list(given)
        names |= dict(zip(places, values, strict=False))
        names |= {name: value for name, value in (named or {}).items() if name in names}
        self.active.append(node)
        try:
            self.block(node.body, frame)
        finally:
            self.active.pop()
        return frame.result

    def enters(self, _: ast.FunctionDef) -> bool:
        """Whether to go through a function that is called here."""
        return not self.guessing

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> str:
        """Go through statements in their order; returns how they end."""
        for node in body:
            self.left -= 1
            if self.left < 0:
                raise OverError
            flow = getattr(self, f"_{node.__class__.__name__.lower()}", self.unknown)(node, frame)
            if flow != ON:
                return str(flow)
        return ON

    def unknown(self, node: ast.stmt, frame: Frame) -> str:
        """Pass over what may run or not: what it sets is not known, and whether it leaves."""
        self.forget(node, frame)
        if not self.modules.traits(node).leaves:
            return ON
        self.guessing += 1
        try:
            may_leave = leaves([node], lambda test: self.truth(test, frame))
        finally:
            self.guessing -= 1
        if may_leave == "exit":
            raise OverError
        return _LOST if may_leave else ON

    def forget(self, node: ast.stmt, frame: Frame) -> None:
        """Take what statements may set for not known."""
        held = self.modules.traits(node)
        for each in held.targets:
            self.assign(each, UNKNOWN, frame)
        frame.names.update(dict.fromkeys(held.names, UNKNOWN))

    def _expr(self, node: ast.Expr, frame: Frame) -> str:
        self.value(node.value, frame)
        return ON

    def _assign(self, node: ast.Assign, frame: Frame) -> str:
        value = self.value(node.value, frame)
        for each in node.targets:
            self.assign(each, value, frame)
        return ON

    def _annassign(self, node: ast.AnnAssign, frame: Frame) -> str:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame)
        return ON

    def _augassign(self, node: ast.AugAssign, frame: Frame) -> str:
        self.value(node.value, frame)
        self.assign(node.target, UNKNOWN, frame)
        return ON

    def _return(self, node: ast.Return, frame: Frame) -> str:
        frame.result = self.value(node.value, frame) if node.value is not None else Known(None)
        return _LEFT

    def _continue(self, _: ast.stmt, __: Frame) -> str:
        return _NEXT

    _break = _continue

    def _pass(self, _: ast.stmt, __: Frame) -> str:
        return ON

    def _import(self, node: ast.Import, frame: Frame) -> str:
        frame.names.update({each.asname or each.name.partition(".")[0]: UNKNOWN for each in node.names})
        return ON

    def _importfrom(self, node: ast.ImportFrom, frame: Frame) -> str:
        frame.names.update(names_of([node], frame.file))
        return ON

    def _functiondef(self, node: ast.FunctionDef, frame: Frame) -> str:
        frame.names[node.name] = UNKNOWN  # it sees the names around it
        return ON

    def _if(self, node: ast.If, frame: Frame) -> str:
        before = len(self.read)
        truth = self.truth(node.test, frame)
        read, self.read[before:] = self.read[before:], []
        if truth is None:
            return self.unknown(node, frame)
        self.causes.append(read)
        try:
            return self.block(node.body if truth else node.orelse, frame)
        finally:
            self.causes.pop()

    def _for(self, node: ast.For, frame: Frame) -> str:
        if not self._begins(node.iter, frame):
            return self.unknown(node, frame)
        self.assign(node.target, UNKNOWN, frame)
        flow = self.block(node.body, frame)
        after = self.unknown(node, frame)
        return _LEFT if flow == _LEFT else _LOST if flow == _LOST else after

    def _begins(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a loop surely has a first round: of some epochs, or over what a job trains on."""
        if isinstance(node, ast.Call) and is_named(node.func, "range") and len(node.args) == 1:
            count = self.value(node.args[0], frame)
            return isinstance(count, Known) and isinstance(count.value, int) and count.value > 0
        value = self.value(node, frame)
        if isinstance(node, ast.Call) and is_named(node.func, "enumerate") and node.args:
            value = self.value(node.args[0], frame)
        return value is BATCHES

    def _while(self, node: ast.While, frame: Frame) -> str:
        self.value(node.test, frame)
        return self.unknown(node, frame)

    def _with(self, node: ast.With, frame: Frame) -> str:
        for item in node.items:
            self.value(item.context_expr, frame)
            if any("suppress" in each or "raises" in each for each in calls(item.context_expr)):
                return self.unknown(node, frame)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, UNKNOWN, frame)
        return self.block(node.body, frame)

    def _try(self, node: ast.Try, frame: Frame) -> str:
        if node.handlers:
            return self.unknown(node, frame)
        return self.block([*node.body, *node.finalbody], frame)

    def _assert(self, node: ast.Assert, frame: Frame) -> str:
        before = len(self.read)
        truth = self.truth(node.test, frame)
        read, self.read[before:] = self.read[before:], []
        if truth is False:
            self.causes += [read] if read else []
            self.halt(node, frame, raised=f"AssertionError{self._said(node.msg, frame)}")
        return ON

    def _raise(self, node: ast.Raise, frame: Frame) -> str:
        name, message = message_of(node.exc)
        if "Exit" in name or "Interrupt" in name or "StopIteration" in name or not name:
            raise OverError
        self.halt(node, frame, raised=name + self._said(message, frame))
        return _LEFT

    def _said(self, node: ast.expr | None, frame: Frame) -> str:
        value = None if node is None else self.value(node, frame)
        return f": {value.value}" if isinstance(value, Known) and isinstance(value.value, str) else ""

    def halt(self, node: ast.AST, frame: Frame, *, key: str = "", raised: str = "") -> None:
        """Stop here, unless nobody knows whether the program comes here."""
        if self.guessing:
            return
        causes = dict.fromkeys(each for read in self.causes for each in read)
        if raised and not (self.causes and self.causes[-1]):
            raise OverError  # no value of the config leads there
        place = f"{frame.file.path}:{node.lineno}"  # type: ignore[attr-defined]
        functions = {getattr(each, "name", "") for each in self.active}
        wanted = dict.fromkeys((each, value) for each in causes for value in self.wanted.get(each, ()))
        told = (tuple(causes), tuple(wanted)) if raised else ()
        raise _StopError(Stop(place, key, raised, *told), functions)


def _is_main(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Call) and is_named(each.func, "hydra.main") for each in node.decorator_list
    )


def _is_main_or_remote(node: ast.expr) -> bool:
    made = node.func if isinstance(node, ast.Call) else node
    return is_named(made, "hydra.main") or is_named(made, "ray.remote")
