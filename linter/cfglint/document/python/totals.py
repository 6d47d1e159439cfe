"""Which flag is the batch of all processes, of a program that works out its accumulation from it.

``args.global_batch_size // (args.micro_batch_size * world_size)`` (rioyokotalab/llm-recipes
src/llama_recipes/finetuning.py:70), ``batch_size // micro_batch_size`` that is divided by the processes
where there are several (tloen/alpaca-lora finetune.py:93-102), ``gradient_accumulation_steps //=
ddp_world_size`` (karpathy/nanoGPT train.py:94), a loop of passes over the parts of a share
(Alpha-VLLM/LLaMA2-Accessory Large-DiT-ImageNet/train.py:223, :405). With fewer processes, each makes more
passes by itself.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.record import Value, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.python.modules import Modules
    from cfglint.document.python.source import Code
    from cfglint.document.tree import File

_CHARACTERS = 200  # that cost a step
_PASSES = re.compile(r"(?i)grad\w*accum|accum\w*(?:steps?|grad|iters?)|grad_acc_?(?:steps?)?\Z")
_DIVIDES = re.compile(r"(?i)accum|grad_acc|micro_?batch")
_PROCESSES = re.compile(r"(?i)(?:ddp_|dist_|get_)?world_?size\Z|num_processes\Z")
_REPLICAS = re.compile(r"(?i)(?:get_)?(?:dp|data_parallel)_(?:world_)?size\Z")
_SPREAD = re.compile(r"(?i)\b(?:ddp|\w*distributed\w*|world_?size|multi_gpu|num_processes)\b")
_ALONE = re.compile(r"(?i)\bnot\b|world_?size\s*(?:==|<|<=)\s*1\b")
_ENVIRONMENT = re.compile(r"""(?:os\.)?(?:environ(?:\.get\(|\[)|getenv\()['"]WORLD_SIZE['"][^()]*[])]\Z""")
_LOOP = " "  # in the place of a name of passes
_BATCH, _LOADERS = "batch_size", ("DataLoader", "BatchSampler")
_STEPS = ("step", "zero_grad")  # what ends a step
_BY_STEPS = 3  # words of a range
_SAME = ("int", "float", "max")  # of a share that is no less than one


class Share(Value):
    """A product of flags, by their names, and of how many processes or replicas, over other flags.

    ``name`` is that of the passes that are this, which a command may set itself.
    """

    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    processes: int = 0
    replicas: int = 0
    name: str = field(default="", compare=False)
    numbers: tuple[tuple[str, int], ...] = field(default=(), compare=False)  # constants of the file


def total_of(program: File, project: Modules) -> Share | None:
    """Return how a program's passes follow from a flag; None where they do not, or in several ways."""
    for files in ([program], project.files(program)[1:]):
        found = {share for file in files for share in _shares(file, project)}
        if found:
            (share, *others) = found
            return None if others else share
    return None


def _shares(file: File, project: Modules) -> Iterator[Share]:
    """Yield the passes of a file's functions, and of itself, that are shared out over the processes."""
    spend(len(file.text) // _CHARACTERS, PYTHON)
    if not _DIVIDES.search(file.text):
        return
    code = project.code(file)
    if code is None:
        return
    scope = _Scope({}, {})
    yield from scope.read(code.body)
    for node in code.nodes():
        if isinstance(node, ast.FunctionDef):
            yield from _Scope(dict(scope.names), dict(scope.numbers)).read(node.body)


def shares_of(code: Code, argument: str) -> Iterator[tuple[ast.Call, Share | None]]:
    """Yield the calls of a file with an argument of that name, and what it is."""
    for scope in _scopes(code, argument):
        yield from scope.calls


def loads_passes(program: File, project: Modules) -> bool:
    """Whether a loader takes what a process has in all its passes: so does what is made of that, as answers.

    ``local_batch_size = micro * passes * minibatches`` (vwxyzjn/summarize_from_feedback_details ppo.py:166).
    """
    made, taken = set[str](), set[str]()
    for file in project.files(program):
        code = project.code(file) if _BATCH in file.text and _DIVIDES.search(file.text) else None
        for scope in _scopes(code, _BATCH) if code is not None else ():
            made |= {name.rpartition(".")[2] for name, share in scope.names.items() if _has_passes(share)}
            shares = [share for call, share in scope.calls if _name(call).endswith(_LOADERS)]
            if any(map(_has_passes, shares)):
                return True
            taken |= {flag for share in shares if share is not None for flag in share.above}
    return not made.isdisjoint(taken)


def _has_passes(share: Share | None) -> bool:
    """Whether a number is a product of others, of which one is the passes."""
    if share is None or share.below or share.processes or share.replicas or len(share.above) == 1:
        return False
    return any(map(_PASSES.match, share.above))


def every_of(code: Code) -> Iterator[tuple[ast.expr, Share | None]]:
    """Yield of how many something happens at each, where a file asks ``step % steps == 0``."""
    for scope in _scopes(code):
        yield from scope.every


def _scopes(code: Code, argument: str = "") -> Iterator[_Scope]:
    """Yield a file's own names, and those of each of its functions."""
    top = _Scope({}, {}, argument)
    top.read(code.body)
    yield top
    for node in code.nodes():
        if isinstance(node, ast.FunctionDef):
            scope = _Scope(dict(top.names), {}, argument)
            scope.read(node.body)
            yield scope


class _Scope:
    """The names of a function, as far as each is a flag, or made of some; None for anything else."""

    def __init__(self, names: dict[str, Share | None], numbers: dict[str, int], asked: str = "") -> None:
        self.names, self.numbers, self.asked = names, numbers, asked
        self.calls: list[tuple[ast.Call, Share | None]] = []
        self.every: list[tuple[ast.expr, Share | None]] = []

    def read(self, body: Sequence[ast.stmt]) -> list[Share]:
        """Return the last share of each of the passes that are set."""
        passes: dict[str, Share | None] = {}
        self._go(body, passes)
        numbers = tuple(self.numbers.items())
        found = [(name, share) for name, share in passes.items() if share is not None and _is_shared(share)]
        return [replace(share, name=name, numbers=numbers) for name, share in found]

    def _go(self, body: Sequence[ast.stmt], passes: dict[str, Share | None]) -> None:
        for node in body:
            spend(1, PYTHON)
            if isinstance(node, ast.If):
                self._ask(node.test)
                for branch in _branches(node):
                    self._go(branch, passes)
            elif isinstance(node, (ast.With, ast.Try, ast.For, ast.While)):
                if isinstance(node, ast.For) and (times := _times(node)) is not None:
                    passes[_LOOP] = self.share(times)
                self._go(node.body, passes)
            elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._set(node, passes)

    def _set(self, node: ast.stmt, passes: dict[str, Share | None]) -> None:
        self._ask(node)
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        for call in calls:
            asked = [each.value for each in call.keywords if each.arg == self.asked]
            if self.asked == _BATCH and _name(call).endswith(_LOADERS):
                asked += call.args[1:2]  # behind the samples
            self.calls += [(call, self.share(value)) for value in asked]
        for each in (each for call in calls for each in call.keywords):
            if _PASSES.match(each.arg or "") and _is_shared(share := self.share(each.value)):
                passes[each.arg or ""] = share
        target, value = _assigned(node)
        if target is not None and value is not None:
            name = ast.unparse(target)
            last = name.rpartition(".")[2]
            self.names[name] = share = Share((last,)) if _is_number(value) else self.share(value)
            if isinstance(value, ast.Constant) and type(value.value) is int:
                self.numbers[last] = value.value
            if _PASSES.match(last):
                passes[last] = share

    def _ask(self, node: ast.AST) -> None:
        """Note of how many something happens at each."""
        for test in ast.walk(node):
            rest = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
            if isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mod):
                self.every.append((rest.right, self.share(rest.right)))

    def share(self, node: ast.expr) -> Share | None:
        """Return what an expression is; None for anything but flags, processes, their products and shares."""
        name = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name in self.names and not _whole(node):
            return self.names[name]
        if isinstance(node, ast.BinOp):
            return _joined(node.op, self.share(node.left), self.share(node.right))
        if isinstance(node, ast.IfExp) and _SPREAD.search(ast.unparse(node.test)):
            return self.share(node.body)
        return self._inner(node) if isinstance(node, ast.Call) else _leaf(node)

    def _inner(self, node: ast.Call) -> Share | None:
        """Return what a call gives: the processes, or what it makes a whole number of."""
        if _whole(node):
            return _whole(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = [each for each in node.args if not (isinstance(each, ast.Constant) and each.value == 1)]
        return self.share(given[0]) if name in _SAME and len(given) == 1 and not node.keywords else None


def _assigned(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Return what a statement sets, and to what."""
    if isinstance(node, ast.AugAssign):
        return node.target, ast.BinOp(node.target, node.op, node.value)
    if isinstance(node, ast.Assign):
        return node.targets[0], node.value
    return (node.target, node.value) if isinstance(node, ast.AnnAssign) else (None, None)


def _times(node: ast.For) -> ast.expr | None:
    """Return how often a loop makes a pass; None for one that makes none, or takes steps by itself.

    ``range((whole - 1) // part + 1)`` takes the last part, too, as does ``range(0, whole, part)``.
    """
    called = node.iter if isinstance(node.iter, ast.Call) else None
    name = called.func.id if called is not None and isinstance(called.func, ast.Name) else ""
    does = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    if called is None or name != "range" or "backward" not in does or not does.isdisjoint(_STEPS):
        return None
    if len(called.args) == _BY_STEPS:
        return ast.BinOp(called.args[1], ast.FloorDiv(), called.args[2])
    (times,) = called.args if len(called.args) == 1 else (None,)
    if isinstance(times, ast.BinOp) and isinstance(times.op, ast.Add) and _is_one(times.right):
        share = times.left
        if isinstance(share, ast.BinOp) and isinstance(share.left, ast.BinOp) and _is_one(share.left.right):
            return ast.BinOp(share.left.left, share.op, share.right)
    return times


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _branches(node: ast.If) -> list[list[ast.stmt]]:
    """Return the branches that may be taken where several processes run."""
    test = ast.unparse(node.test)
    if not _SPREAD.search(test):
        return [node.body, node.orelse]
    return [node.orelse if _ALONE.search(test) else node.body]


def _is_number(node: ast.expr) -> bool:
    """Whether a value is a number as it stands: a constant of a file, which a config may be laid over."""
    return all(isinstance(each, (ast.Constant, ast.BinOp, ast.operator)) for each in ast.walk(node))


def _leaf(node: ast.expr) -> Share | None:
    """Return the flag, or the number of processes, that a name or an item stands for."""
    found = _whole(node)
    if found is not None:
        return found
    if isinstance(node, ast.Name):
        return Share((node.id,))
    if isinstance(node, ast.Attribute):
        return Share((node.attr,))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return Share((node.slice.value,)) if isinstance(node.slice.value, str) else None
    return None


def _whole(node: ast.expr) -> Share | None:
    """Return the processes, or the replicas, by the name of what is asked for them."""
    name = _name(node)
    if _PROCESSES.match(name) or _ENVIRONMENT.search(ast.unparse(node)):
        return Share(processes=1)
    return Share(replicas=1) if _REPLICAS.match(name) else None


def _name(node: ast.expr) -> str:
    """Return the last part of a name, or of what is called."""
    called = node.func if isinstance(node, ast.Call) else node
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _joined(sign: ast.operator, left: Share | None, right: Share | None) -> Share | None:
    """Return a product or a quotient."""
    if left is None or right is None or not isinstance(sign, (ast.Mult, ast.FloorDiv, ast.Div)):
        return None
    if not isinstance(sign, ast.Mult):
        right = Share(right.below, right.above, -right.processes, -right.replicas)
    above, below = [*left.above, *right.above], [*left.below, *right.below]
    for each in list(above):
        if each in below:
            above.remove(each)
            below.remove(each)
    processes, replicas = left.processes + right.processes, left.replicas + right.replicas
    return Share(tuple(above), tuple(below), processes, replicas)


def _is_shared(share: Share | None) -> bool:
    """Whether passes are a flag's, shared out over the processes once."""
    return share is not None and len(share.above) == 1 and share.processes + share.replicas == -1
