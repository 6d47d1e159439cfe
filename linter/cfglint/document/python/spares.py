"""What a program's code spares of a full fine-tune, and which switches of its own stand before that.

``if args.use_freeze: freeze_tower(model)`` freezes nothing where the command does not give the switch. What
freezes weights, puts adapters on, quantizes, or sends states to the host under other conditions than a
switch that is off by default, or under none, may do so whatever the command says. A function runs where its
name is met, in any file of the program.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_SPARES = re.compile(
    r"requires_grad|LoraConfig|get_peft_model|BitsAndBytesConfig|load_in_[48]bit|offload|Adam|Adafactor"
    r"|GaLore|Lion"
)
_CALLED = re.compile(
    r"LoraConfig|\w*get_peft_model|BitsAndBytesConfig|\w*CPUAdam|Adam\w*8bit|Adafactor|GaLore\w*|Lion"
)
_GIVEN = re.compile(r"offload(?!_to_cpu)\w*|load_in_[48]bit")
_SEES = re.compile(r"(?i)vision|visual|(?<![a-z])vit(?![a-z])|image_(?:encoder|tower)")
_SPEAKS = re.compile(r"(?i)text|language|(?<![a-z])(?:llm|lm|backbone|decoder)(?![a-z])|connector|projector")
_HOSTS = ("offload_params", "CPUOffload")  # FSDP's (torch/distributed/fsdp/api.py: CPUOffload)
_MOST_WAYS = 24  # in which a function may be reached
_ANYHOW: frozenset[frozenset[str]] = frozenset((frozenset(),))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Spared(Value):
    """What is spared where all ``switches`` are on; of ``sight``, a vision tower alone is frozen.

    What ``hosts`` sends the weights to the host, with all that goes with them.
    """

    switches: frozenset[str]
    sight: bool
    hosts: bool = False


class _Place(Value):
    """Where something stands: in a function, or in none, under conditions and in loops."""

    function: str = ""
    tests: tuple[ast.expr, ...] = ()
    loops: tuple[str, ...] = ()


class _Code(Record):
    """The files of a program: its switches, what spares something, and where each name is met."""

    switches: set[str] = field(factory=set)
    sparing: list[tuple[_Place, str]] = field(factory=list)
    met: dict[str, list[_Place]] = field(factory=dict)
    fields: dict[str, list[_Place]] = field(factory=dict)
    methods: set[str] = field(factory=set)
    _ways: dict[str, frozenset[frozenset[str]]] = field(factory=dict, init=False)

    def read(self, node: ast.AST, place: _Place, *, method: bool = False) -> None:
        """Go through a node and what is in it."""
        if isinstance(node, _FUNCTIONS):
            self.methods |= {node.name} if method else set()
            place = _Place(node.name)
        elif isinstance(node, ast.For):
            place = _Place(place.function, place.tests, (*place.loops, ast.unparse(node.iter)))
        self._note(node, place)
        for name, value in ast.iter_fields(node):
            tested = isinstance(node, (ast.If, ast.IfExp)) and name == "body"
            inner = _Place(place.function, (*place.tests, node.test), place.loops) if tested else place  # type: ignore[attr-defined]
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    self.read(each, inner, method=isinstance(node, ast.ClassDef))

    def _note(self, node: ast.AST, place: _Place) -> None:
        if isinstance(node, ast.Name):
            self.met.setdefault(node.id, []).append(place)
        elif isinstance(node, ast.Attribute):  # of args.freeze_tower, a field has the name of a function
            self.fields.setdefault(node.attr, []).append(place)
        elif isinstance(node, ast.alias) and node.asname:  # it is met by another name
            self.met.setdefault(node.name, []).append(_Place())
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_off(node.value):
            self.switches.add(node.target.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.met.setdefault(node.func.attr, []).append(place)
        if isinstance(node, ast.Call) and _last(node.func) == "add_argument":
            given = {each.arg: each.value for each in node.keywords}
            if _is(given.get("action"), "store_true") or _is(given.get("default"), False):
                words = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
                self.switches |= {word.lstrip("-").replace("-", "_") for word in words if word[:2] == "--"}
        if about := _spares(node):
            self.sparing.append((place, about))

    def ways(self, function: str) -> frozenset[frozenset[str]]:
        """Return the sets of switches after which a function runs: an empty one where it may run anyhow."""
        if function and function not in self._ways:
            self._ways.update(self._reached(function))
        return self._ways[function] if function else _ANYHOW

    def _reached(self, function: str) -> dict[str, frozenset[frozenset[str]]]:
        """Return the ways of a function and of all that lead to it; those that call each other add none."""
        above: dict[str, list[_Place]] = {}
        waiting = [function]
        while waiting:
            name = waiting.pop()
            if name and name not in above:
                own = name in self.methods
                above[name] = self.met.get(name, []) + (self.fields.get(name, []) if own else [])
                waiting += [place.function for place in above[name]]
        anyhow = {
            name
            for name, places in above.items()
            if len(places) > _MOST_WAYS or (not places and name in self.methods)
        }
        found = {name: _ANYHOW if name in anyhow else frozenset() for name in above}
        while True:
            spend(sum(map(len, above.values())), PYTHON)
            after = {
                name: found[name] | self._through(places, found) if name not in anyhow else _ANYHOW
                for name, places in above.items()
            }
            after = {name: _fewest(ways) for name, ways in after.items()}
            if after == found:
                return found
            found = after

    def _through(
        self, places: list[_Place], found: dict[str, frozenset[frozenset[str]]]
    ) -> frozenset[frozenset[str]]:
        """Return the sets of switches after which one of some places is reached, as far as that is found."""
        each = ((self.asked(at.tests), found[at.function] if at.function else _ANYHOW) for at in places)
        return frozenset(own | way for own, ways in each for way in ways)

    def asked(self, tests: tuple[ast.expr, ...]) -> frozenset[str]:
        """Return the switches that have to be on for some conditions to hold."""
        return frozenset(name for test in tests for name in _conjoined(test) if name in self.switches)


def _fewest(ways: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
    """Return the ways of which no other asks for less; of too many, that it may run anyhow."""
    least = frozenset(way for way in ways if not any(other < way for other in ways))
    return least if len(least) <= _MOST_WAYS else _ANYHOW


def spared(program: File, project: Modules) -> tuple[Spared, ...]:
    """Return what a program spares, each with the switches that stand before it."""
    files = project.files(program)
    spend(sum(len(file.text) for file in files) // 100, PYTHON)
    if not any(_SPARES.search(file.text) for file in files):
        return ()
    code = _Code()
    for file in files:
        parsed = project.code(file)
        for body in parsed.body if parsed is not None else ():
            code.read(body, _Place())
    found = set()
    for place, about in code.sparing:
        own = code.asked(place.tests)
        for way in code.ways(place.function):
            words = (place.function, about, *place.loops[-1:], *own)
            sees = about.endswith("requires_grad") and any(map(_SEES.search, words))
            hosts = about in _HOSTS
            found.add(Spared(own | way, sees and not any(map(_SPEAKS.search, words)), hosts))
    return tuple(found)


def what_is_spared(found: tuple[Spared, ...], on: Callable[[str], bool]) -> str:
    """Return ``nothing``, or ``sight`` of a frozen vision tower; empty where there may be more."""
    acting = [each for each in found if all(map(on, each.switches))]
    return "nothing" if not acting else "sight" if all(each.sight for each in acting) else ""


def switch_to_host(found: tuple[Spared, ...], on: Callable[[str], bool]) -> str:
    """Return the one switch that sends the weights to the host, where it is off; empty without one."""
    switches = {
        switch for each in found if each.hosts and len(each.switches) == 1 for switch in each.switches
    }
    return next((switch for switch in switches if not on(switch)), "") if len(switches) == 1 else ""


def _spares(node: ast.AST) -> str:
    """Return what a statement or call is about that spares something; empty for another one."""
    if isinstance(node, ast.Call):
        return _called(node)
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad") as target], value=value):
            return "" if _is(value, True) else ast.unparse(target)
        case ast.keyword(arg=str(name), value=value) if _GIVEN.fullmatch(name) and _is(value, True):
            return name
        case ast.Assign(targets=[target], value=value) if _GIVEN.fullmatch(_last(target)):
            return _last(target) if _is(value, True) else ""
    return ""


def _called(node: ast.Call) -> str:
    """Return what a call is about that spares something; empty for another one."""
    name = _last(node.func)
    if name == "requires_grad_":
        return "" if not node.args or _is(node.args[0], True) else ast.unparse(node.func).removesuffix("_")
    return name if _CALLED.fullmatch(name) or (name == "CPUOffload" and node.args) else ""


def _conjoined(test: ast.expr) -> Iterator[str]:
    """Yield the names that are true where a condition holds."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for each in test.values:
            yield from _conjoined(each)
    elif isinstance(test, (ast.Name, ast.Attribute)):
        yield _last(test)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and _is(test.comparators[0], True):
        yield _last(test.left) if isinstance(test.ops[0], (ast.Is, ast.Eq)) else ""


def _is_off(value: ast.expr | None) -> bool:
    """Whether the default of a field is false: ``False``, ``field(default=False)``."""
    if isinstance(value, ast.Call) and _last(value.func) == "field":
        return any(each.arg == "default" and _is(each.value, False) for each in value.keywords)
    return _is(value, False)


def _is(node: ast.expr | None, value: object) -> bool:
    return (
        isinstance(node, ast.Constant) and node.value is value
        if isinstance(value, bool)
        else (isinstance(node, ast.Constant) and node.value == value)
    )


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
