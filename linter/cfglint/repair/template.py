"""More GPUs for a config whose parallel sizes are all one: a launch is meant to set them.

Such a job takes all of its memory from one GPU, whatever the machine has. What it takes where its states are
shared is told with the flag and the cheapest machine that holds it.
"""

from __future__ import annotations

from cfglint.document.spoken import spoken
from cfglint.findings import Fix
from cfglint.hardware.catalogue import gpu as gpu_named
from cfglint.hardware.prices import shipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.hardware import Market
    from cfglint.repair.solve import Solver

_TEMPLATE = "launch.template"  # the rules' let that says so
_EACH = 8  # GPUs of a machine that clouds rent
_SHARED, _SPREAD = "dp_shard", "ep"


def shared_at_launch(solver: Solver, market: Market, judged: Judged) -> Fix | None:
    """Return which sizes a launch has to set for a job to fit, and where; None if it is no template."""
    if judged.values[_TEMPLATE] is not True or judged.target is None:
        return None
    for may in (False, True):
        for hourly, name, moves in _ways(market, judged):
            memory = market.memory_on(gpu_named(name), _EACH, moves, may=may)
            if memory is None:
                continue
            origins = solver.writer(judged).origins
            flags = " and ".join(f"{_key(origins.key(fact))} {value}" for fact, value in moves.items())
            need = (
                f"{memory.need_gib.low:.0f}–{memory.need_gib.high:.0f} of {memory.capacity_gib or 0:.1f} GiB"
            )
            fits = ", where it may fit" if may else ""
            title = (
                f"start it as {_EACH} processes with {flags}, on {name}:{_EACH}{fits} ({need}, about "
                f"${hourly:.2f} an hour): its parallel sizes are all 1 here. Each process adds its own batch"
            )
            return Fix(0, title, (), applicability="display", target=judged.target.name)
    return None


def _key(name: str) -> str:
    return spoken(tuple(name.split(".")))


def _ways(market: Market, judged: Judged) -> Iterator[tuple[float, str, Mapping[str, object]]]:
    """Yield GPUs with what a machine of them costs, the cheapest first, and the sizes to set there."""
    sheet = (market.trials.run.prices or shipped()).hourly
    for usd, name in sorted((usd, name) for name, usd in sheet.items()):
        gpu = gpu_named(name)
        if gpu.vendor == judged.values.given.get("gpu.vendor") and market.is_no_step_down(gpu):
            both = {_SHARED: -1, _SPREAD: _EACH}
            ways = [market.values_on(gpu, _EACH, moves) for moves in ({_SHARED: -1}, both)]
            few, more = (_broken(judged, values) for values in ways)
            yield usd * _EACH, name, both if more < few else {_SHARED: -1}


def _broken(judged: Judged, values: Values) -> int:
    """Return how many rules are broken there of those that are about more than memory."""
    rules = (v.rule for v in judged.verdicts if v.rule.level != "info" and not v.rule.code.startswith("MEM"))
    return sum(rule.test(values) is False for rule in rules)
