"""What a repair is to reach, and the moves that reach it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cfglint.lang import tree as t
from cfglint.lang.build import walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule
    from cfglint.repair.options import Option
    from cfglint.repair.trials import Trials

Price: TypeAlias = tuple[float, int, int, float, int]

DIGITS = 6  # of a weight: sums of floats are compared
_BOUNDS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Goal:
    """A requirement that is to hold on a target."""

    one: Judged
    compiled: CompiledRule
    rule: t.Rule
    gaps: tuple[t.Expr, ...]
    bounds: bool
    held: bool
    switches: frozenset[str]

    @classmethod
    def of(cls, one: Judged, compiled: CompiledRule, rule: t.Rule, *, held: bool = False) -> Goal:
        """Return the goal that a rule holds on a target; ``held`` says that it does so now."""
        bounds = _only_bounds(rule.requirement)
        switches = frozenset(switches_of(rule.condition))
        return cls(one, compiled, rule, tuple(_gaps(rule.requirement)), bounds, held, switches)

    def truth(self, trials: Trials, values: Values, moved: Collection[str] = ()) -> object:
        """Return the truth of the rule; one that is merely switched off counts by its requirement.

        A repair makes the requirement hold, or moves a name that the condition itself asks for (an engine
        that sleeps starves nobody). Changing a value so that the condition happens not to hold (logits are
        no longer half of the need, because something else grew) mends nothing.
        """
        truth = self.compiled.test(values)
        if truth is not None:
            return truth
        if self.held or not self.switches.isdisjoint(moved):
            return True
        return trials.run.finder.evaluator(self.rule.requirement, values)[0]


@dataclass(frozen=True, slots=True)
class Found:
    """Moves that together reach the goals; ``sure`` is false where they only may."""

    options: tuple[Option, ...]
    sure: bool = True

    @property
    def cost(self) -> float:
        """What the moves cost together."""
        return round(sum(option.cost for option in self.options), DIGITS)

    @property
    def weight(self) -> float:
        """The cost, in which what may change results counts before all else."""
        return round(sum(option.weight for option in self.options), DIGITS)

    @property
    def unsafe(self) -> bool:
        """Whether results may change."""
        return any(option.unsafe for option in self.options)

    @property
    def writable(self) -> bool:
        """Whether edits of the file can do it."""
        return all(option.writable for option in self.options)

    @property
    def knobs(self) -> frozenset[str]:
        """The knobs that are moved."""
        return frozenset(option.knob for option in self.options)

    @property
    def price(self) -> Price:
        """What repairs are compared by: the weight, then fewer and safer edits, then the nearest values."""
        edits = len({key for option in self.options for key, _ in option.places})
        return (
            self.weight, edits, sum(option.unsafe for option in self.options),
            sum(option.steps for option in self.options), sum(not option.asked for option in self.options),
        )  # fmt: skip


def switches_of(condition: t.Expr | None) -> Iterator[str]:
    """Yield the names that a condition asks for: ``a``, ``not a`` or ``a == b`` among what must all hold."""
    match condition:
        case t.Junction("and", operands):
            for operand in operands:
                yield from switches_of(operand)
        case t.Name(name) | t.Not(t.Name(name)):
            yield name
        case t.Compare():
            yield from (side.name for side in condition.operands if isinstance(side, t.Name))
        case t.Member(item=t.Name(name)):
            yield name


def _gaps(requirement: t.Expr) -> Iterator[t.Expr]:
    """Yield what is at most 0 where a bound of the requirement holds."""
    for node in walk(requirement):
        if isinstance(node, t.Compare) and len(node.operands) == 2 and node.operators[0] in _BOUNDS:
            small, large = node.operands if node.operators[0][0] == "<" else reversed(node.operands)
            yield t.Sum((("+", small), ("-", large)))


def _only_bounds(node: t.Expr) -> bool:
    """Whether an expression consists of bounds alone."""
    if isinstance(node, t.Junction):
        return all(map(_only_bounds, node.operands))
    return isinstance(node, t.Compare) and len(node.operands) == 2 and node.operators[0] in _BOUNDS
