"""How a program's own switch puts adapters on, where its code shows that it does.

``if training_args.lora_enable: model = get_peft_model(model, LoraConfig(r=training_args.lora_r, …))``: the
flag, the rank and the layers are read, and which flag holds the frozen weights in 4 bits. A switch that no
branch reads, that the code refuses beside others, or whose layers are not told, is none; nor is one of a
program that trains more than the adapters, and then saves them alone.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.document.python.values import Items, Literal
from cfglint.record import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.document.python.modules import Modules
    from cfglint.document.python.values import Flag
    from cfglint.document.tree import File

ALL_LINEAR = "all-linear"
_MAKES = ("LoraConfig", "get_peft_model")
_FINDS = re.compile(r"(?i)find_all_linear\w*")  # qlora.py's, and its copies: all but the head
# Without a hook, a checkpointed layer of frozen weights has no input that asks for a gradient.
_HOOKS = re.compile(
    r"\benable_input_require_grads\b|\bmake_inputs_require_grad\b|\bprepare_model_for_\w*bit\w*_training\b"
)
_IN_4_BITS = re.compile(r"\bload_in_4bit\s*=\s*\(?\w+\.(\w+)\s*(==\s*4\b)?\s*[,)\n]")
_QUANTIZES = "BitsAndBytesConfig("
_PASSED_ON = re.compile(r"\bpeft_config\s*=\s*get_peft_config\(")
_SAVES = re.compile(r"save|get_peft_\w*state")
_SAVES_ALL = re.compile(r"(?m)^[^#\n]*\.save_checkpoint\(")  # DeepSpeed's: all that is trained
_CHARACTERS = 2000  # that cost a step


class Adapters(Value):
    """The ``switch`` is a flag of the program; ``rank`` is a number, or a flag that says it.

    ``targets`` are layers, or a flag that lists them. ``saves`` says that tables are trained, too; ``bits``
    is the flag that loads weights in 4 bits, ``numbered`` that it is given as their number. What is
    ``unsharded`` stops with ZeRO-3. ``within`` a model, its other parts are saved, too.
    """

    switch: str
    rank: int | str
    targets: tuple[str, ...] | str
    saves: bool = False
    bits: str = ""
    numbered: bool = False
    unsharded: bool = False
    within: bool = False

    def told(self, flags: Mapping[str, Flag]) -> dict[str, tuple[str, ...]]:
        """Return what the rules know of it, by name; nothing where its flags are not the parser's."""
        switch = flags.get(self.switch)
        off = switch.default.value if switch is not None and isinstance(switch.default, Literal) else True
        ranks = type(off) is int and self.rank == self.switch
        rank = self.rank if isinstance(self.rank, int) else _worth(flags, self.rank)
        targets = self.targets if isinstance(self.targets, tuple) else _worth(flags, self.targets)
        layers = (targets,) if isinstance(targets, str) else targets
        if off or not isinstance(layers, tuple) or not layers or not (ranks or type(rank) is int):
            return {}
        told = {"adapter_ranks" if ranks else "adapter_switch": (self.switch,), "adapter_targets": layers}
        told |= {} if ranks else {"adapter_rank": (str(rank),)}
        if self.bits in flags:
            told |= {"adapter_bits": (self.bits,)} | (
                {"adapter_bits_numbered": ("true",)} if self.numbered else {}
            )
        told |= {"adapter_saves": ("true",)} if self.saves else {}
        return told | ({"adapter_unsharded": ("true",)} if self.unsharded else {})


def adapters_of(program: File, project: Modules) -> Adapters | None:
    """Return the switch of the file nearest to a program that has one; None where it has none, or several."""
    files = project.files(program)
    spend(sum(len(file.text) for file in files) // _CHARACTERS, PYTHON)
    makers = [file for file in files if "LoraConfig(" in file.text]
    for file in files if makers else ():
        nodes = _nodes(file, project) if "lora" in file.text else []
        found = set(_switches(nodes, makers, project))
        if found:
            one = found.pop()
            refused = _refused(nodes, one.switch)
            if found or "always" in refused or not any(_HOOKS.search(each.text) for each in (file, *makers)):
                return None
            if not one.within and _trains_more(nodes) and not _keeps_more(files, one.switch, project):
                return None
            bits = _IN_4_BITS.search(file.text) if _QUANTIZES in file.text else None
            numbered = bits is not None and bits[2] is not None
            one = replace(one, unsharded="sharded" in refused, numbered=numbered)
            return one if bits is None else replace(one, bits=bits[1])
    return None


def takes_peft_config(program: File, project: Modules) -> bool:
    """Whether a program hands the adapters of TRL's own arguments to its trainer."""
    return any(_PASSED_ON.search(file.text) for file in project.files(program))


def _nodes(file: File, project: Modules) -> list[ast.AST]:
    code = project.code(file)
    nodes = code.nodes() if code is not None else []
    spend(len(nodes), PYTHON)
    return nodes


def _worth(flags: Mapping[str, Flag], name: str) -> object:
    """Return the default of a flag: a number, a text, or texts; None for another."""
    value = flags[name].default if name in flags else None
    if isinstance(value, Items):
        texts = [each.value for each in value.items if isinstance(each, Literal)]
        return tuple(map(str, texts)) if len(texts) == len(value.items) else None
    return value.value if isinstance(value, Literal) else None


def _switches(nodes: list[ast.AST], makers: list[File], project: Modules) -> Iterator[Adapters]:
    """Yield the switches whose branch makes adapters, there or in a method that it calls."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    for node in nodes:
        if not isinstance(node, ast.If) or not (switch := _flag(node.test)):
            continue
        inner = [each for body in node.body for each in ast.walk(body)]
        calls = [each for each in inner if isinstance(each, ast.Call)]
        configs = [call for call in calls if _called(call) == "LoraConfig"]
        if len(configs) == 1 and _calls(calls, "get_peft_model"):
            around = next((each for each in functions if node in ast.walk(each)), None)
            yield from _made(switch, configs[0], inner, around, {})
        elif not configs:
            yield from _of_method(switch, calls, makers, project)


def _of_method(
    switch: str, calls: list[ast.Call], makers: list[File], project: Modules
) -> Iterator[Adapters]:
    """Yield what a method of the project makes that a branch calls (``model.wrap_llm_lora(r=…)``)."""
    wanted = {
        name: call for call in calls if "lora" in (name := _called(call)).lower() and name not in _MAKES
    }
    for file in makers if wanted else ():
        for node in _nodes(file, project):
            if isinstance(node, ast.FunctionDef) and node.name in wanted:
                given = {each.arg: each.value for each in wanted[node.name].keywords if each.arg}
                inner = list(ast.walk(node))
                configs = [
                    each for each in inner if isinstance(each, ast.Call) and _called(each) == "LoraConfig"
                ]
                if len(configs) == 1:
                    for one in _made(switch, configs[0], inner, node, given):
                        yield replace(one, within=True)


def _made(
    switch: str,
    config: ast.Call,
    inner: list[ast.AST],
    around: ast.FunctionDef | None,
    given: dict[str, ast.expr],
) -> Iterator[Adapters]:
    """Yield the adapters of a config whose rank and layers are told."""
    asked = {each.arg: each.value for each in config.keywords if each.arg}
    rank: object = _number_or_flag(_handed(asked.get("r", asked.get("rank")), given))
    nodes = [*inner, *(ast.walk(around) if around is not None else ())]
    targets = _targets(_handed(asked.get("target_modules"), given), nodes)
    saves = asked.get("modules_to_save")
    if isinstance(rank, (int, str)) and rank and targets:
        yield Adapters(switch, rank, targets, saves=saves is not None and not _is_none(saves))


def _handed(node: ast.expr | None, given: dict[str, ast.expr]) -> ast.expr | None:
    """Return what a parameter is given, else the expression as it is."""
    return given.get(node.id, node) if isinstance(node, ast.Name) else node


def _number_or_flag(node: ast.expr | None) -> int | str | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return _flag(node) or None if node is not None else None


def _targets(node: ast.expr | None, nodes: list[ast.AST]) -> tuple[str, ...] | str:
    """Return the layers that get adapters, or the flag that lists them; empty where they are not told."""
    match node:
        case ast.List() | ast.Tuple():
            words = tuple(each.value for each in node.elts if isinstance(each, ast.Constant))
            return tuple(str(word) for word in words) if len(words) == len(node.elts) else ""
        case ast.Constant(value=str(text)):
            return (text,)
        case ast.Call() if _FINDS.fullmatch(_called(node)) and len(node.args) + len(node.keywords) == 1:
            return (ALL_LINEAR,)
        case ast.Attribute(attr=name):
            return name
        case ast.Name(id=name):
            values = [each.value for each in nodes if isinstance(each, ast.Assign) and _assigns(each, name)]
            found = {_targets(value, []) for value in values}
            lists = [each for each in found if isinstance(each, tuple)]
            # Of an architecture each: what no layer is called, gets none.
            return (
                tuple(sorted({word for each in lists for word in each})) if len(lists) == len(found) else ""
            )
    return ""


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in node.targets)


def _refused(nodes: list[ast.AST], switch: str) -> set[str]:
    """Return when the code stops where a switch is on: with ``sharded`` weights, or ``always``."""
    found = set()
    for node in nodes:
        stops = isinstance(node, ast.If) and any(isinstance(each, ast.Raise) for each in node.body)
        negated = isinstance(node, ast.Assert) and isinstance(node.test, ast.UnaryOp)
        if isinstance(node, (ast.If, ast.Assert)) and (stops or negated):
            asked = [each for each in ast.walk(node.test) if isinstance(each, (ast.Name, ast.Attribute))]
            if switch in map(_flag, asked):
                found.add("sharded" if any("zero3" in _flag(each) for each in asked) else "always")
    return found


def _trains_more(nodes: list[ast.AST]) -> bool:
    """Whether code sets weights of its choice to be trained; a hook for the inputs sets none."""
    hooks = [each for each in nodes if isinstance(each, ast.FunctionDef) and _HOOKS.search(each.name)]
    inputs = {id(each) for hook in hooks for each in ast.walk(hook)}
    return any(_unfreezes(node) for node in nodes if id(node) not in inputs)


def _unfreezes(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=True)):
            return True
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[] | [ast.Constant(value=True)]):
            return True
    return False


def _keeps_more(files: list[File], switch: str, project: Modules) -> bool:
    """Whether a program saves what it trains besides: where the switch is on, or all of its states.

    A Trainer saves of a PeftModel the adapters alone (transformers/trainer.py: _save).
    """
    for file in files:
        if _SAVES_ALL.search(file.text):
            return True
        for node in _nodes(file, project) if switch in file.text else ():
            if isinstance(node, ast.If) and _flag(node.test) == switch:
                inner = [each for body in node.body for each in ast.walk(body)]
                if any(isinstance(each, ast.Call) and _SAVES.search(_called(each)) for each in inner):
                    return True
    return False


def _flag(node: ast.AST) -> str:
    """Return the name that a condition asks: a field, or a field above zero; empty for another condition."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
            return _flag(left)
        case ast.BoolOp(op=ast.And(), values=values):
            others = [each for each in values if not _is_a_check(each)]
            return _flag(others[0]) if len(others) == 1 else ""
    return ""


def _is_a_check(node: ast.expr) -> bool:
    """Whether a condition is that a model has no adapters yet."""
    return (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Call)
    )


def _called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _calls(calls: list[ast.Call], name: str) -> bool:
    return any(_called(each) == name for each in calls)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
