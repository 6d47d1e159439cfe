"""How near the memory model comes to PyTorch's own accounting of real training steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from accuracy_rows import GIB, oracle_estimate, oracle_rows
from accuracy_score import errors_cells, median, off, percent, print_table, print_wants, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIAN, WORST = 0.005, 0.05  # on models that were not used to write the formulas

Results = list[tuple[str, bool]]  # a target, with what was reached, and whether it is met


def mode(config: Mapping[str, Any]) -> str:
    """Return what a step does, in a few words."""
    kind = "lora" if config.get("lora_rank") else "full"
    shard = " sharded" if config.get("dp_shard", 1) not in (0, 1) or config.get("zero_stage") else ""
    return f"{kind}{shard}, checkpoints {config.get('gradient_checkpointing', 'none')}"


def judge_oracle(show: bool) -> Results:
    """Compare trainer.allocated with the peaks of real steps."""
    found: list[tuple[float, dict[str, Any], float]] = []
    wants: Counter[str] = Counter()
    failures = 0
    groups: dict[str, dict[str, list[float]]] = {"family": defaultdict(list), "mode": defaultdict(list)}
    for row in oracle_rows():
        if "failure" in row:
            failures += 1
            continue
        values, told = oracle_estimate(row)
        if told.wants:
            wants.update(told.wants)
            continue
        peak = row["peak_bytes"] / GIB
        error = off(told.middle, (peak, peak))
        found.append((error, row, told.middle))
        family = values["model.family"]
        for kind, name in (("family", str(family)), ("mode", mode(row["config"]))):
            groups[kind][f"{row['set']}: {name}"].append(error)
    sets = {name: [error for error, row, _ in found if row["set"] == name] for name in ("fit", "holdout")}
    print(f"== PyTorch's own accounting: {len(found)} steps, {failures} could not be run ==\n")
    head = ["", "steps", "median error", "worst"]
    print_table(head, [[name, *errors_cells(errors)] for name, errors in sets.items()])
    for kind, by in groups.items():
        print_table([kind, *head[1:]], [[name, *errors_cells(errors)] for name, errors in sorted(by.items())])
    print_wants("not a point, for want of", wants)
    ranked = sorted(found, key=lambda one: -abs(one[0]))
    for error, row, told_gib in ranked if show else ranked[:10]:
        peak = row["peak_bytes"] / GIB
        said = f"{told_gib:9.3f} GiB for {peak:9.3f} at {row.get('moment')}"
        print(f"{percent(error, signed=True):>9}  {row['set']:<8} {said}  {row['config']}")
    print()
    holdout = sets["holdout"]
    if not holdout:
        return [("holdout: no steps", False)]
    return [
        (
            f"holdout median {percent(median(holdout))} <= {percent(MEDIAN)}",
            median(holdout) <= MEDIAN,
        ),
        (
            f"holdout worst {percent(worst(holdout))} <= {percent(WORST)}",
            abs(worst(holdout)) <= WORST,
        ),
    ]
