"""How many processes share a model or a sequence by a config in Python that a command names.

Such a config is run, not read: ``TrainerConfig(sp_size=4, fsdp_cfg=FSDPConfig(tp_size=2))``, as XTuner has it
(InternLM/xtuner xtuner/v1/train/trainer.py:1105-1129, xtuner/v1/model/moe/moe.py:1428-1460 @b934f46), or
``parallel = dict(tensor=dict(size=2), pipeline=dict(size=2))`` (InternLM/InternEvo
internlm/core/context/parallel_context.py:426-441,500-524 @c628a8c). Their programs stop where the processes
are no multiple of what that comes to, or where the batch over all of them does not come out even (XTuner's
v1/train/trainer.py:1028-1037, v1/datasets/sampler.py:74).
"""

from __future__ import annotations

import ast
from math import lcm, prod

from cfglint.document.python.run import Program
from cfglint.document.python.source import read_python
from cfglint.document.python.values import Literal, Object
from cfglint.document.tree import Composite, Entry, Mapping, Scalar, Unresolved
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.python.source import Code
    from cfglint.document.python.values import Span

_SIZES = {
    **dict.fromkeys(("tp_size", "tensor_parallel_size", "tensor_model_parallel_size"), "tensor"),
    **dict.fromkeys(("pp_size", "pipeline_parallel_size", "pipeline_model_parallel_size"), "pipeline"),
    **dict.fromkeys(("cp_size", "context_parallel_size"), "context"),
    **dict.fromkeys(("sp_size", "sequence_parallel_size"), "sequence"),
    **dict.fromkeys(("ep_size", "expert_parallel_size", "expert_model_parallel_size"), "expert"),
    "expert_tp_size": "expert tensor",
    "hsdp_sharding_size": "shard",
    "global_batch_size": "batch",
}
_SECTION = "parallel"
_SECTIONS = ("tensor", "pipeline", "weight", "zero1")  # of which the last shards what the others leave
# Sizes of one grid, whose product divides all processes.
_GRIDS = (
    ("tensor", "pipeline", "context", "sequence"),
    ("expert", "expert tensor", "pipeline"),
    ("weight", "pipeline"),
    ("shard",),
)
_APART = "isp"  # InternEvo's mode of a tensor whose weights are shared by another number
_BATCH = "batch"  # over all processes but those that share a model or a sequence
_BATCHES = "xtuner"  # of other programs nobody knows whether they stop or leave samples out
_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
_OTHERS = ("rollout", "infer", "generat", "serv", "engine")  # have GPUs by sizes of their own


class Size(Value):
    """A size that a config sets: what it is of, its name and place, and its number, where that is known."""

    kind: str
    name: str
    span: Span
    worth: object

    @property
    def number(self) -> int | None:
        """The number of processes that share; 1 where there is no such group."""
        number = self.worth.value if isinstance(self.worth, Literal) else self.worth
        if number is None or type(number) is int:
            return max(1, number or 1)
        return None


class _Config(Program):
    """A config that is gone through; ``script`` starts it, and may set its environment."""

    def __init__(self, code: Code, script: str) -> None:
        super().__init__(code)
        self.script = script
        self.sizes: list[Size] = []

    def made(self, made: Object, node: ast.Call) -> object:
        """Return what a call makes; of a variable that the script does not name, the default."""
        name, *default = made.positional or [None]
        if made.kind in _ENVIRONMENT and default and isinstance(name, Literal):
            return default[0] if str(name.value) not in self.script else self.unknown(str(name.value), node)
        self._note(made)
        return super().made(made, node)

    def _dict(self, node: ast.Dict) -> object:
        made = super()._dict(node)
        assert isinstance(made, Object)
        self._note(made)
        return made

    def attribute(self, value: Object, name: str, node: ast.AST) -> object:
        """Return a field of an object; a size that nobody sets is that of its class, which is 1."""
        unset = name in _SIZES and name not in value.items and value.cls is None
        return Literal(1, self.code.span(node)) if unset else super().attribute(value, name, node)

    def _note(self, made: Object) -> None:
        if not any(word in made.name.lower() for word in _OTHERS):
            self.sizes += [
                Size(_SIZES[key], key, *found) for key, found in made.items.items() if key in _SIZES
            ]

    def _store(self, target: ast.expr, value: object) -> None:
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in _SIZES:
            self.sizes.append(Size(_SIZES[name], name, self.code.span(target), value))
        super()._store(target, value)

    def sections(self) -> Iterator[Size]:
        """Yield the sizes of ``parallel``; each section is a number, or has one."""
        parallel = self.scope.names.get(_SECTION)
        if not isinstance(parallel, Object) or parallel.kind != "dict":
            return
        for kind in _SECTIONS:
            span, size = parallel.items.get(kind, ((0, 0), None))
            if isinstance(size, Object) and size.kind == "dict":
                span, size = size.items.get("size", (span, None))
            yield Size(kind, f"{_SECTION}.{kind}", span, size)

    def mode(self) -> object:
        """Return the mode of the tensor's section."""
        parallel = self.scope.names.get(_SECTION)
        tensor = parallel.get(_SECTIONS[0]) if isinstance(parallel, Object) else None
        mode = tensor.get("mode") if isinstance(tensor, Object) else None
        return mode.value if isinstance(mode, Literal) else None


def mesh_of(text: str, script: str) -> Mapping | None:
    """Return what is said below ``launch`` of a config's mesh; None where it says nothing of one."""
    code = read_python(text, notebook=False)
    if code is None:
        return None
    config = _Config(code, script)
    config.start()
    sizes = [each for each in (*config.sizes, *config.sections()) if each.number != 1]
    if _BATCHES not in config.imports:
        sizes = [each for each in sizes if each.kind != _BATCH]
    if not sizes:
        return None
    mesh = Mapping(sizes[0].span[0], flow=True, end=sizes[0].span[1])
    groups, batches = ([each for each in sizes if (each.kind == _BATCH) is batch] for batch in (False, True))
    _put(mesh, "processes", groups or sizes, _known(groups, lambda numbers: _shared(numbers, config.mode())))
    _put(mesh, "group", groups or sizes, _known(groups, lambda numbers: _product(numbers, _GRIDS[0])))
    words = " and ".join(dict.fromkeys(f"{each.name} {each.number}" for each in groups))
    _put(mesh, "sizes", groups or sizes, words)
    if batches:
        _put(mesh, _BATCH, batches, _known(batches, lambda numbers: numbers[_BATCH]))
    launch, root = (Mapping(mesh.start, flow=True, end=mesh.end) for _ in range(2))
    launch.entries["mesh"] = Entry(Scalar("mesh", mesh.start, mesh.end, '"'), mesh)
    root.entries["launch"] = Entry(Scalar("launch", mesh.start, mesh.end, '"'), launch)
    return root


def _put(mesh: Mapping, key: str, by: list[Size], value: int | str | None) -> None:
    """Enter what some sizes come to, at the place of the first."""
    start, end = by[0].span
    names = ", ".join(dict.fromkeys(each.name for each in by))
    node: Scalar = Unresolved(names, start, end, why=f"the config computes {names}")
    if value is not None:
        node = Composite(str(value), start, end, '"' if isinstance(value, str) else "")
    mesh.entries[key] = Entry(Scalar(key, start, end, '"'), node)


def _known(sizes: list[Size], asks: Callable[[dict[str, int]], int]) -> int | None:
    """Return what is asked of sizes; None where one is not known, or set to several numbers."""
    numbers = {each.kind: each.number for each in sizes}
    known = {kind: number for kind, number in numbers.items() if number is not None}
    alike = all(each.number == numbers[each.kind] for each in sizes)
    return asks(known) if alike and len(known) == len(numbers) else None


def _shared(numbers: dict[str, int], mode: object) -> int:
    """Return the number of which all processes are a multiple."""
    sharded = "weight" if mode == _APART else "tensor"  # whose copies zero1 shards
    return lcm(*(_product(numbers, (*grid, "zero1") if sharded in grid else grid) for grid in _GRIDS))


def _product(numbers: dict[str, int], kinds: tuple[str, ...]) -> int:
    return prod(numbers.get(kind, 1) for kind in kinds)
