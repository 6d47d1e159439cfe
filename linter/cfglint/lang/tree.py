"""The syntax tree of rule files: frozen values that compare by meaning, not by where they stand.

``span`` is a pair of offsets into the rule file and takes no part in comparison, so that
``parse(show(tree)) == tree``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Span: TypeAlias = tuple[int, int]
NO_SPAN: Span = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spanned:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as a class and its slots: three times as fast to load as what dataclasses do."""
        kind: Any = type(self)
        return _loaded, (kind, *[getattr(self, name) for name in _slots(kind)])


@cache
def _slots(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


@cache
def _setters(kind: type) -> tuple[Callable[[object, object], None], ...]:
    return tuple(getattr(kind, name).__set__ for name in _slots(kind))


def _loaded(kind: type, *values: object) -> object:
    node: object = object.__new__(kind)
    for put, value in zip(_setters(kind), values):  # noqa: B905 (hot; as many as there were)
        put(node, value)
    return node


# ── expressions ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Number(_Spanned):
    """``44.4 GiB``; ``value`` is as written, in ``unit``."""

    value: float
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Text(_Spanned):
    """``"sglang"``."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth(_Spanned):
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Null(_Spanned):
    """``null``: a key that is present without a value."""


@dataclass(frozen=True, slots=True)
class Version(_Spanned):
    """``v0.4.1``, without zeros at its end."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Name(_Spanned):
    """``gpu.vram``: a fact, a let, a bound variable's field, or an enum's member."""

    name: str


@dataclass(frozen=True, slots=True)
class Path(_Spanned):
    """``$.servers[*].port``: a key of the file; ``"*"`` in ``steps`` stands for every item."""

    steps: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Has(_Spanned):
    """``has($.actor.path)``."""

    path: Path


@dataclass(frozen=True, slots=True)
class Not(_Spanned):
    """``not x``."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Junction(_Spanned):
    """``a and b and c`` or ``a or b``."""

    operator: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Negative(_Spanned):
    """``-x``."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Sum(_Spanned):
    """``a + b - c``: pairs of ``"+"`` or ``"-"`` and a term; the first sign is ``"+"``."""

    terms: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Product(_Spanned):
    """``a * b / c mod d``, from left to right; the first operator is ``"*"``."""

    factors: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Compare(_Spanned):
    """``a < b <= c``: the operands and the operators between them."""

    operands: tuple[Expr, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range(_Spanned):
    """``0.3 .. 0.95``: an interval, or a bound of ``in``."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class ListOf(_Spanned):
    """``[1, 2, 4]``."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class RecordOf(_Spanned):
    """``{key: "lr", line: 3}``, in examples only."""

    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Member(_Spanned):
    """``x in 1..8`` or ``x not in [a, b]``."""

    item: Expr
    container: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(_Spanned):
    """``name like "*Qwen*"``."""

    subject: Expr
    pattern: Text
    negated: bool = False


@dataclass(frozen=True, slots=True)
class If(_Spanned):
    """``if c then a else b``."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Choice(_Spanned):
    """``match x { adamw: 8 B, sgd or none: 0 B, else: 12 B }``."""

    subject: Expr
    arms: tuple[tuple[tuple[Expr, ...], Expr], ...]
    other: Expr | None


@dataclass(frozen=True, slots=True)
class Call(_Spanned):
    """``max(a, b)`` or a let with parameters."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Quantifier(_Spanned):
    """``all x in $.servers: x.port > 0``; kinds all, any, sum, count, min, max."""

    kind: str
    variable: str
    source: Expr
    body: Expr


Expr: TypeAlias = (
    Number | Text | Truth | Null | Version | Name | Path | Has | Not | Junction | Negative | Sum | Product
    | Compare | Range | ListOf | RecordOf | Member | Like | If | Choice | Call | Quantifier
)  # fmt: skip


# ── statements ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TypeOf(_Spanned):
    """``memory in MiB``, ``count 1..8``, ``list``, ``one of bf16 or bfloat16, fp16``.

    ``members`` holds, per member, its name and the other spellings that configs use for it.
    """

    name: str
    members: tuple[tuple[str, ...], ...] = ()
    unit: str | None = None
    low: Number | None = None
    high: Number | None = None


@dataclass(frozen=True, slots=True)
class Fact(_Spanned):
    """``fact gpu.vram: memory "usable memory of one GPU"``."""

    name: str
    type: TypeOf
    about: str = ""


@dataclass(frozen=True, slots=True)
class Move(_Spanned):
    """What moving a knob costs: ``down costs 1 per step quality unsafe "shorter answers" see "…"``.

    ``kind`` is what is lost (time, throughput, quality, memory, host memory), ``low`` and ``high`` how much
    of it, as a share of one, where the source ``see`` tells. ``cost`` is for the whole move, for each step of
    the domain, or ``per_halving`` (or doubling) of the value. ``to sdpa or eager costs 3`` is what coming to
    one of these values costs. Of several that fit, the first one counts whose condition ``when`` holds.
    """

    direction: str
    cost: float
    per_step: bool = False
    unsafe: bool = False
    effect: str = ""
    kind: str = ""
    low: float | None = None
    high: float | None = None
    see: str = ""
    per_halving: bool = False
    to: tuple[Expr, ...] = ()
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class Knob(_Spanned):
    """What a repair may change; ``domain`` is ``step``, ``halving``, ``doubling``, ``values`` or ``any``.

    While the knob moves, what is named by ``keeping`` stays: one of ``partners`` moves in exchange.
    """

    name: str
    domain: str
    low: Number | None
    high: Number | None
    step: Number | None
    values: tuple[Expr, ...]
    keeping: str | None
    moves: tuple[Move, ...]
    partners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Let(_Spanned):
    """``let x = …`` or ``let f(a, b) = …``."""

    name: str
    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Role(_Spanned):
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


@dataclass(frozen=True, slots=True)
class Registry(_Spanned):
    """``registry model from models by model_config, model_path``: facts ``model.*`` come from a table."""

    prefix: str
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Binding(_Spanned):
    """``mem_fraction <- $.sglang.mem_fraction_static when … default 0.9 "cli_args.py:1771" null -> 0.88``."""

    name: str
    source: Expr
    when: Expr | None = None
    default: Expr | None = None
    citation: str = ""
    null: Expr | None = None


@dataclass(frozen=True, slots=True)
class Setting(_Spanned):
    """A framework's ``dialect omegaconf``, ``about "…"``, ``composes hydra``, ``resolvers "mul div"``, …"""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class NamesAreKeys(_Spanned):
    """A framework's ``names are keys``: a fact that no binding gives is read from the key of its name."""


@dataclass(frozen=True, slots=True)
class SectionsAreJobs(_Spanned):
    """A framework's ``sections are jobs``: each mapping at the top of a file is a job of its own."""


@dataclass(frozen=True, slots=True)
class Detect(_Spanned):
    """``detect EXPR``: one way to recognise the framework."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Since(_Spanned):
    """``version v0.4.1 when has($.allocation_mode)``: how a file tells the version it was written for."""

    version: Version
    when: Expr | None


@dataclass(frozen=True, slots=True)
class Tie(_Spanned):
    """``tied max_tokens_per_microbatch with $.ref.mb_spec.max_tokens_per_mb``: keys that move as one."""

    name: str
    path: Path
    citation: str = ""


@dataclass(frozen=True, slots=True)
class NamesFile(_Spanned):
    """``file $.deepspeed``: the key's text names a file, whose keys stand below it."""

    path: Path


@dataclass(frozen=True, slots=True)
class Framework(_Spanned):
    """``framework areal { … }``."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Scope(_Spanned):
    """``for areal >= v1.0.3``: the framework, and the versions, that a rule speaks of."""

    framework: str
    operators: tuple[tuple[str, Version], ...] = ()


@dataclass(frozen=True, slots=True)
class Example(_Spanned):
    """``bad { colocated: true, mem_fraction: 0.8 }``; kinds bad, may, good, open."""

    kind: str
    given: tuple[tuple[Name | Path, Expr], ...]


@dataclass(frozen=True, slots=True)
class Rule(_Spanned):
    """A rule; ``condition`` is None where it always applies, ``said_at`` is the span of its message.

    ``next`` is what to try outside the file if the job still fails after a repair.
    """

    code: str
    name: str
    level: str
    scope: tuple[Scope, ...]
    condition: Expr | None
    requirement: Expr
    say: str = ""
    why: str = ""
    see: tuple[str, ...] = ()
    at: Name | Path | None = None
    examples: tuple[Example, ...] = ()
    said_at: Span = field(default=NO_SPAN, compare=False, repr=False)
    next: tuple[str, ...] = ()


Entry: TypeAlias = Binding | Setting | NamesAreKeys | SectionsAreJobs | Detect | Since | Tie | NamesFile | Let
Statement: TypeAlias = Fact | Knob | Let | Role | Registry | Framework | Rule


def walk(node: Any) -> Iterator[Any]:
    """Yield a tree's nodes, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(reversed(current))
        elif hasattr(current, "__dataclass_fields__"):
            yield current
            stack.extend(getattr(current, name) for name in reversed(current.__dataclass_fields__))


def paths_in(node: Expr) -> tuple[tuple[str | int, ...], ...]:
    """Return the paths that an expression reads, without those it only asks for by ``has``."""
    inside_has = {id(n.path) for n in walk(node) if isinstance(n, Has)}
    return tuple(
        dict.fromkeys(n.steps for n in walk(node) if isinstance(n, Path) and id(n) not in inside_has)
    )
