"""How near cfglint's memory estimates come to PyTorch's own accounting and to what people measured.

    python benchmarks/accuracy.py [--oracle] [--published] [--outcomes] [--rows] [--split] [--check]

Without a selection all three are judged. ``--rows`` prints every row, ``--split`` the published rows in two
halves (one to calibrate on, one held out), ``--check`` exits 1 where a target is missed. docs/accuracy.md
says how rows are read and which are left out.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from accuracy_rivals import NAMES, rivals
from accuracy_rows import (
    GIB,
    Estimate,
    estimate,
    host,
    oracle_estimate,
    oracle_rows,
    outcome,
    published,
    rows,
    verdict,
)
from accuracy_rows import values_of as values_of_row
from accuracy_score import (
    ABSTENTIONS,
    SCORE_HEAD,
    Score,
    grouped,
    median,
    off,
    percent,
    print_table,
    print_wants,
    score_cells,
    worst,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What the memory model promises.
ORACLE_MEDIAN, ORACLE_WORST = 0.005, 0.05
COVERAGE, WIDTH = 0.90, 0.30
RECALL, RECALL_ERROR, FALSE_ERRORS = 0.90, 0.60, 0.03

Results = list[tuple[str, bool]]  # a target, with what was reached, and whether it is met


# ── PyTorch's own accounting ───────────────────────────────────────────────────────────────────────────
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
    print_table(head, [[name, *_errors(errors)] for name, errors in sets.items()])
    for kind, by in groups.items():
        print_table([kind, *head[1:]], [[name, *_errors(errors)] for name, errors in sorted(by.items())])
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
            f"holdout median {percent(median(holdout))} <= {percent(ORACLE_MEDIAN)}",
            median(holdout) <= ORACLE_MEDIAN,
        ),
        (
            f"holdout worst {percent(worst(holdout))} <= {percent(ORACLE_WORST)}",
            abs(worst(holdout)) <= ORACLE_WORST,
        ),
    ]


def _errors(errors: Sequence[float]) -> list[str]:
    return [str(len(errors)), percent(median(errors)), percent(worst(errors), signed=True)]


# ── what people measured ───────────────────────────────────────────────────────────────────────────────
def source(row: Mapping[str, Any]) -> str:
    """Return a row's source and statistic; numbers of different statistics are never pooled."""
    likely = f", likely {row['likely']}" if "likely" in row else ""
    what = "" if row["of"] == "trainer" else f" of {row['of']}"
    return f"{row['framework']}: {row['statistic']}{likely}{what}"


def judge_published(show: bool, split: bool) -> Results:
    """Compare intervals with the published peaks, source by source."""
    every = [row for row in rows("published") if row["peak_gib"] is not None]
    told = {row["id"]: published(row) for row in every}
    ready = [row for row in every if row["estimator_ready"]]
    print(f"== published peaks: {len(ready)} rows that state what an estimate needs, of {len(every)} ==\n")
    halves = {"": ready}
    if split:
        halves = {
            name: [row for row in ready if zlib.crc32(row["id"].encode()) % 2 == odd]
            for odd, name in enumerate(("to calibrate on", "held out"))
        }
    for name, half in halves.items():
        if name:
            print(name)
        _scores(half, told)
    _rival_errors(ready)
    print("the other rows, for what they are worth (sequences shorter than seq_len must come out higher)")
    _scores([row for row in every if not row["estimator_ready"]], told)
    if show:
        for row in every:
            _show(row, told[row["id"]])
    total = _score(ready, told)
    width = median(total.widths)
    judged = f"{total.judged} of {total.n} judged, abstentions beyond {ABSTENTIONS:.0%} are misses"
    covered = f"published: coverage {percent(total.coverage)} >= {COVERAGE:.0%} ({judged})"
    return [
        (covered, total.coverage >= COVERAGE),
        (f"published: median width {percent(width)} <= {WIDTH:.0%}", bool(total.judged) and width <= WIDTH),
    ]


def _score(some: Sequence[Mapping[str, Any]], told: Mapping[str, Estimate]) -> Score:
    score = Score()
    for row in some:
        score.add(told[row["id"]], row["peak_gib"])
    return score


def _scores(some: Sequence[Mapping[str, Any]], told: Mapping[str, Estimate]) -> None:
    lines = []
    wants: Counter[str] = Counter()
    for name, group in grouped(some, source).items():
        score = _score(group, told)
        wants += score.wants
        lines.append([name, *score_cells(score)])
    if lines:
        print_table(["source: statistic", *SCORE_HEAD], lines)
    print_wants("abstained for want of", wants)


def _rival_errors(some: Sequence[Mapping[str, Any]]) -> None:
    """Print the errors of what people ask today, of full fine-tuning and with adapters."""
    lines = []
    for kind, adapters in (("full fine-tuning", False), ("adapters", True)):
        errors: dict[str, list[float]] = {name: [] for name in ("cfglint", *NAMES)}
        chosen = [row for row in some if bool(row["facts"].get("lora_rank")) is adapters]
        for row in chosen:
            gpus = row["gpus"] if row["scope"] == "sum_over_gpus" else 1
            answers: dict[str, Estimate | None] = {"cfglint": published(row), **rivals(row)}
            for name, answer in answers.items():
                if answer is not None and not answer.wants:
                    factor = 1 if name == "cfglint" else gpus
                    errors[name].append(off(answer.times(factor).middle, row["peak_gib"]))
        for name, one in errors.items():
            lines.append([f"{kind}: {name}", str(len(chosen)), *_errors(one)])
    print_table(["estimator", "rows", "answers", "median error", "worst"], lines)


def _show(row: Mapping[str, Any], told: Estimate) -> None:
    lo, hi = row["peak_gib"]
    mark = "ready" if row["estimator_ready"] else "     "
    if told.wants:
        print(f"{mark}  ?    {lo:7.2f}..{hi:<7.2f} wants {', '.join(told.wants)}  {row['id']}")
        return
    covers = "in" if told.lo <= hi and told.hi >= lo else "over" if told.lo > hi else "under"
    error = percent(off(told.middle, (lo, hi)), signed=True)
    print(f"{mark}  {covers:<5}{lo:7.2f}..{hi:<7.2f} {told.lo:7.2f}..{told.hi:<7.2f} {error:>9}  {row['id']}")


# ── what ran and what died ─────────────────────────────────────────────────────────────────────────────
def judge_outcomes(show: bool) -> Results:
    """Count out-of-memory runs that are found, and runs that worked and are called an error."""
    every = rows("outcomes")
    on_gpu = [row for row in every if row["device"] == "gpu" and not row.get("opinion")]
    said = {row["id"]: outcome(row) for row in on_gpu if row["gpu"] or "gpu.vram" in row["facts"]}
    died = [row for row in on_gpu if row["result"] == "oom" and row["id"] in said]
    stated = [row for row in died if row["states_what_is_needed"]]
    unstated = [row for row in died if not row["states_what_is_needed"]]
    fitted = [row for row in on_gpu if row["result"] == "fits" and row["id"] in said]
    measured = [row for row in rows("published") if row["ran"] and row["gpu"] and not row.get("outside")]
    said |= {row["id"]: outcome(row) for row in measured}
    print(f"== outcomes: {len(stated)} out-of-memory runs that state what is needed ==\n")
    lines = [
        [name, *_verdicts(group, said)]
        for name, group in (
            ("ran out, states what is needed", stated),
            ("ran out, leaves something out", unstated),
            ("fitted", fitted),
            ("fitted, its GPU is named", [row for row in fitted if not row.get("gpu_inferred")]),
            ("measured", measured),
            (
                "measured, sequences were full",
                [row for row in measured if row.get("seq_reached") is not False],
            ),
        )
    ]
    print_table(["runs", "rows", "error", "may", "fits", "unknown"], lines)
    print_wants("unknown for want of", Counter(want for row in stated for want in said[row["id"]][1]))
    _rival_verdicts(stated, [*fitted, *measured])
    _hosts([row for row in every if row["device"] == "host"], show)
    if show:
        for row in (*died, *fitted, *measured):
            answer, wants = said[row["id"]]
            print(f"{row.get('result', 'ran'):<5}{answer:<8}{row['id']}  {', '.join(wants)}")
        print()
    found = Counter(said[row["id"]][0] for row in stated)
    ran = [*fitted, *measured]
    recall = (found["error"] + found["may"]) / max(1, len(stated))
    sure = found["error"] / max(1, len(stated))
    false = sum(said[row["id"]][0] == "error" for row in ran) / max(1, len(ran))
    return [
        (f"out of memory found as error or may {percent(recall)} >= {RECALL:.0%}", recall >= RECALL),
        (f"out of memory found as error {percent(sure)} >= {RECALL_ERROR:.0%}", sure >= RECALL_ERROR),
        (f"runs that worked called error {percent(false)} <= {FALSE_ERRORS:.0%}", false <= FALSE_ERRORS),
    ]


def _verdicts(
    some: Sequence[Mapping[str, Any]], said: Mapping[str, tuple[str, tuple[str, ...]]]
) -> list[str]:
    found = Counter(said[row["id"]][0] for row in some)
    return [str(len(some)), *(str(found[one]) for one in ("error", "may", "fits", "unknown"))]


def _rival_verdicts(stated: Sequence[Mapping[str, Any]], ran: Sequence[Mapping[str, Any]]) -> None:
    """Print what today's estimators would have said: error where their number is above the capacity."""
    lines = []
    for name in NAMES:
        cells = [name]
        for group in (stated, ran):
            found: Counter[str] = Counter()
            for row in group:
                answer = rivals(row)[name]
                capacity = estimate(values_of_row(row), "gpu.vram")
                found["unknown" if answer is None else verdict(answer, capacity)] += 1
            cells += [str(len(group)), str(found["error"]), str(found["unknown"])]
        lines.append(cells)
    head = ["estimator", "ran out", "called error", "no answer", "ran", "called error", "no answer"]
    print_table(head, lines)


def _hosts(some: Sequence[Mapping[str, Any]], show: bool) -> None:
    found = Counter((row["result"], host(row)[0]) for row in some)
    print(
        f"machines' own memory, {len(some)} runs: "
        + ", ".join(f"{r} called {v} {n}" for (r, v), n in found.items())
    )
    for row in some if show else ():
        print(f"  {row['result']:<5}{host(row)[0]:<8}{row['id']}  {', '.join(host(row)[1])}")
    print()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("oracle", "published", "outcomes", "rows", "split", "check"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    all_three = not (args.oracle or args.published or args.outcomes)
    results: Results = []
    if args.oracle or all_three:
        results += judge_oracle(args.rows)
    if args.published or all_three:
        results += judge_published(args.rows, args.split)
    if args.outcomes or all_three:
        results += judge_outcomes(args.rows)
    print("== targets ==\n")
    for text, met in results:
        print(f"{'met   ' if met else 'MISSED'}  {text}")
    return int(args.check and not all(met for _, met in results))


if __name__ == "__main__":
    sys.exit(main())
