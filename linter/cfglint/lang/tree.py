"""The syntax tree of rule files: frozen values that compare by meaning, not by where they stand.

``span`` is a pair of offsets into the rule file and takes no part in comparison, so that
``parse(show(tree)) == tree``.
"""

from __future__ import annotations

from cfglint.record import Value, field, remembered, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Span: TypeAlias = tuple[int, int]

NO_SPAN: Span = (0, 0)
LISTS = "lists"  # of a table: whether one of its rows is for a value; `x in table NAME` is NAME.lists(x)
KEY = "key"  # the function of messages: {key(fact)} is the key that a fact is read from


class Node(Value):
    """A part of a rule file."""

    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)


# ── expressions ────────────────────────────────────────────────────────────────────────────────────────────


class Number(Node):
    """``44.4 GiB``; ``value`` is as written, in ``unit``."""

    value: float
    unit: str | None = None


class Text(Node):
    """``"sglang"``."""

    value: str


class Truth(Node):
    """``true`` or ``false``."""

    value: bool


class Null(Node):
    """``null``: a key that is present without a value."""


class Version(Node):
    """``v0.4.1``, without zeros at its end."""

    numbers: tuple[int, ...]


class Name(Node):
    """``gpu.vram``: a fact, a let, a bound variable's field, or an enum's member."""

    name: str


class Path(Node):
    """``$.servers[*].port``: a key of the file; ``"*"`` in ``steps`` stands for every item."""

    steps: tuple[str | int, ...]


class Has(Node):
    """``has($.actor.path)``."""

    path: Path


class Not(Node):
    """``not x``."""

    operand: Expr


class Junction(Node):
    """``a and b and c`` or ``a or b``."""

    operator: str
    operands: tuple[Expr, ...]


class Negative(Node):
    """``-x``."""

    operand: Expr


class Sum(Node):
    """``a + b - c``: pairs of ``"+"`` or ``"-"`` and a term; the first sign is ``"+"``."""

    terms: tuple[tuple[str, Expr], ...]


class Product(Node):
    """``a * b / c mod d``, from left to right; the first operator is ``"*"``."""

    factors: tuple[tuple[str, Expr], ...]


class Compare(Node):
    """``a < b <= c``: the operands and the operators between them."""

    operands: tuple[Expr, ...]
    operators: tuple[str, ...]


class Range(Node):
    """``0.3 .. 0.95``: an interval, or a bound of ``in``."""

    low: Expr
    high: Expr


class ListOf(Node):
    """``[1, 2, 4]``."""

    items: tuple[Expr, ...]


class RecordOf(Node):
    """``{key: "lr", line: 3}``, in examples only."""

    fields: tuple[tuple[str, Expr], ...]


class Member(Node):
    """``x in 1..8`` or ``x not in [a, b]``."""

    item: Expr
    container: Expr
    negated: bool = False


class Like(Node):
    """``name like "*Qwen*"``."""

    subject: Expr
    pattern: Text
    negated: bool = False


class If(Node):
    """``if c then a else b``."""

    condition: Expr
    then: Expr
    other: Expr


class Choice(Node):
    """``match x { adamw: 8 B, sgd or none: 0 B, else: 12 B }``."""

    subject: Expr
    arms: tuple[tuple[tuple[Expr, ...], Expr], ...]
    other: Expr | None


class Call(Node):
    """``max(a, b)`` or a let with parameters."""

    function: str
    arguments: tuple[Expr, ...]


class Quantifier(Node):
    """``all x in $.servers: x.port > 0``; kinds all, any, sum, count, min, max."""

    kind: str
    variable: str
    source: Expr
    body: Expr


# ── statements ─────────────────────────────────────────────────────────────────────────────────────────────


class TypeOf(Node):
    """``memory in MiB``, ``count 1..8``, ``list``, ``one of bf16 or bfloat16, fp16``.

    ``members`` holds, per member, its name and the other spellings that configs use for it.
    """

    name: str
    members: tuple[tuple[str, ...], ...] = ()
    unit: str | None = None
    low: Number | None = None
    high: Number | None = None


class Fact(Node):
    """``fact gpu.vram: memory "usable memory of one GPU" asks "which GPU? add --gpu NAME"``.

    ``asks`` is the question to whoever can settle it, with what to type.
    """

    name: str
    type: TypeOf
    about: str = ""
    asks: str = ""


class Move(Node):
    """What moving a knob costs: ``down costs 1 per step quality unsafe "shorter answers" see "…"``.

    ``kind`` is what is lost (time, throughput, quality, memory, host memory), ``low`` and ``high`` how much
    of it, as a share of one, where the source ``see`` tells. ``cost`` is for the whole move, for each step of
    the domain, or ``per_halving`` (or doubling) of the value. ``to sdpa or eager costs 3`` is what coming to
    one of these values costs. Of several that fit, the first one counts whose condition ``when`` holds now,
    and whose condition ``leaving`` holds after the move.
    ``risk`` says what an ``unsafe`` move puts at risk: numerics, optimization or data.
    """

    direction: str = "any"
    cost: float = 0.0
    per_step: bool = False
    unsafe: bool = False
    risk: str = "optimization"
    effect: str = ""
    kind: str = ""
    low: float | None = None
    high: float | None = None
    see: str = ""
    per_halving: bool = False
    to: tuple[Expr, ...] = ()
    when: Expr | None = None
    leaving: Expr | None = None


class Knob(Node):
    """What a repair may change; ``domain`` is ``step``, ``halving``, ``doubling``, ``values`` or ``any``.

    While the knob moves, what is named by ``keeping`` stays: one of ``partners`` moves in exchange. A
    ``name`` such as ``$.launch.processes`` is that of a key.
    """

    name: str
    domain: str
    low: Number | None = None
    high: Number | None = None
    step: Number | None = None
    values: tuple[Expr, ...] = ()
    keeping: str | None = None
    moves: tuple[Move, ...] = ()
    partners: tuple[str, ...] = ()


class Let(Node):
    """``let x = …`` or ``let f(a, b) = …``."""

    name: str
    parameters: tuple[str, ...]
    body: Expr


class Role(Node):
    """``role critic when uses_critic { params: critic.params }``: a model that a job holds."""

    name: str
    when: Expr | None
    fields: tuple[tuple[str, Expr], ...]

    def lets(self) -> Iterator[Let]:
        """Yield the lets that the fields stand for; ``params: critic.params`` is there already."""
        for key, value in self.fields:
            name = f"{self.name}.{key}"
            if value != Name(name):
                yield Let(name, (), value, span=value.span)


class Registry(Node):
    """``registry model from models by model_config, model_path``: facts ``model.*`` come from a table."""

    prefix: str
    table: str
    keys: tuple[str, ...]


class Binding(Node):
    """``mem_fraction <- $.sglang.mem_fraction_static when … default 0.9 "cli_args.py:1771" null -> 0.88``."""

    name: str
    source: Expr
    when: Expr | None = None
    default: Expr | None = None
    citation: str = ""
    null: Expr | None = None


class Setting(Node):
    """A framework's ``dialect omegaconf``, ``about "…"``, ``programs "trl.*"`` or ``resolvers "mul div"``."""

    key: str
    value: str


class NamesAreKeys(Node):
    """A framework's ``names are keys``: a fact that no binding gives is read from the key of its name."""


class SectionsAreJobs(Node):
    """A framework's ``sections are jobs``: each mapping at the top of a file is a job of its own."""


class Detect(Node):
    """``detect EXPR``: one way to recognise the framework."""

    condition: Expr


class Checked(Node):
    """A framework's ``checked from v0.9``: the oldest version that its errors were checked against."""

    version: Version


class Since(Node):
    """``version v0.4.1 when has($.allocation_mode)``: how a file tells the version it was written for."""

    version: Version
    when: Expr | None = None


class Tie(Node):
    """``tied max_tokens_per_microbatch with $.ref.mb_spec.max_tokens_per_mb``: keys that move as one."""

    name: str
    path: Path
    citation: str = ""


class Write(Node):
    """``write remat full as $.granularity: "full", $.method: "uniform" when megatron``: what makes it so.

    ``value`` is None for any value; ``keys`` are keys with what has to be there, on the fact's new value:
    None for ``not $.key``, which must not be there.
    """

    name: str
    value: Expr | None
    keys: tuple[tuple[Path, Expr | None], ...]
    when: Expr | None = None
    citation: str = ""


class NamesFile(Node):
    """``file $.deepspeed by hjson``: the key's text names a file, whose keys stand below it.

    ``dialect`` is how the file is read where its suffix does not say all; empty where it does.
    """

    path: Path
    dialect: str = ""


class Pack(Node):
    """``pack acme-policy v1.2 "what the platform team asks of a job"``: what the rules of a folder are."""

    name: str
    version: Version
    about: str


class Framework(Node):
    """``framework areal { … }``."""

    name: str
    entries: tuple[Entry, ...]


class Scope(Node):
    """``for areal >= v1.0.3``: the framework, and the versions, that a rule speaks of."""

    framework: str
    operators: tuple[tuple[str, Version], ...] = ()


class Example(Node):
    """``bad { colocated: true, mem_fraction: 0.8 }``; kinds bad, may, good, open.

    What is ``given`` to all, and what ``but`` takes over from the first example, stands in each.
    """

    kind: str
    given: tuple[tuple[Name | Path, Expr], ...]


class Say(Node):
    """``say when cp > 1 "{cp} ranks"``: a message in parts, and where it fits (None: anywhere)."""

    when: Expr | None
    parts: tuple[str | Expr, ...]


class Rule(Node):
    """A rule; ``condition`` is None where it always applies. Of its messages, the first that fits counts.

    ``next`` is what to try outside the file if the job still fails after a repair.
    """

    code: str
    name: str
    level: str
    scope: tuple[Scope, ...]
    condition: Expr | None
    requirement: Expr
    says: tuple[Say, ...] = ()
    why: str = ""
    see: tuple[str, ...] = ()
    at: Name | Path | None = None
    examples: tuple[Example, ...] = ()
    next: tuple[str, ...] = ()


if TYPE_CHECKING:
    Expr: TypeAlias = (
        Number | Text | Truth | Null | Version | Name | Path | Has | Not | Junction | Negative | Sum | Product
        | Compare | Range | ListOf | RecordOf | Member | Like | If | Choice | Call | Quantifier
    )  # fmt: skip
    Entry: TypeAlias = (
        Binding
        | Setting
        | NamesAreKeys
        | SectionsAreJobs
        | Detect
        | Since
        | Checked
        | Tie
        | Write
        | NamesFile
        | Let
    )
    Statement: TypeAlias = Pack | Fact | Knob | Let | Role | Registry | Framework | Rule


def parts(node: Node | tuple[object, ...]) -> Iterator[Any]:
    """Yield the nodes directly inside of a node, or of a tuple."""
    for part in type(node).compared_(node) if isinstance(node, Node) else node:
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            yield from parts(part)


def conjuncts(node: Expr) -> list[Expr]:
    """Return the parts of an ``and`` of any depth; what is none is its own only part."""
    if isinstance(node, Junction) and node.operator == "and":
        return [part for operand in node.operands for part in conjuncts(operand)]
    return [node]


def walk(node: object) -> Iterator[Any]:
    """Yield the nodes of a tree, or of tuples of trees, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Node):
            yield current
            current = type(current).compared_(current)  # all but spans
        if isinstance(current, tuple):
            stack += current[::-1]


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tree with every part replaced that ``change`` gives something else for."""
    if isinstance(node, tuple):
        return tuple(rebuilt(part, change) for part in node)
    if not isinstance(node, Node):
        return node
    changed = change(node)
    if changed is not None:
        return changed
    return replace(node, **{name: rebuilt(getattr(node, name), change) for name in type(node).fields_})


@remembered
def paths_in(node: Node) -> tuple[tuple[str | int, ...], ...]:
    """Return the paths that an expression reads, without those it only asks for by ``has``."""
    nodes = list(walk(node))
    inside_has = {id(n.path) for n in nodes if isinstance(n, Has)}
    return tuple(dict.fromkeys(n.steps for n in nodes if isinstance(n, Path) and id(n) not in inside_has))


@remembered
def references_in(node: Node) -> tuple[Name | Call | Quantifier, ...]:
    """Return the names, calls and quantifiers of an expression, in its order."""
    return tuple(n for n in walk(node) if isinstance(n, (Name, Call, Quantifier)))
