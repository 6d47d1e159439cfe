"""How near cfglint's memory estimates come to PyTorch's own accounting and to what people measured.

    python benchmarks/accuracy.py [--oracle] [--side fit|check] [--rows] [--write] [--check] [--accept]

Prints PyTorch's own accounting, and for the check side of the published rows what the intervals hold, which
verdicts are wrong, and what public estimators say of the same rows. ``--oracle`` stops after the first,
``--side`` takes another side (benchmarks/accuracy_split.py), ``--rows`` prints each row, ``--write``
puts the tables into docs/accuracy.md. ``--check`` exits 1 where a number falls behind
benchmarks/data/baseline.yaml, or one more definite verdict is wrong than it lists; ``--accept`` writes that
file anew. docs/accuracy.md says how rows are read.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import yaml

from accuracy_classes import per_gpu
from accuracy_judge import Peak, Run, peaks, runs
from accuracy_oracle import judge_oracle
from accuracy_page import class_table, rival_table, verdict_table, write
from accuracy_rows import DATA, host, rows
from accuracy_score import percent, print_table, print_wants
from accuracy_split import CHECK, FIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accuracy_oracle import Results

BASELINE = DATA / "baseline.yaml"
COVERED, WIDTH = (0.85, 0.95), 0.30  # of need_gib, on rows whose facts are all given
NOTE = """# What benchmarks/accuracy.py --check holds both sides against, written by --accept: targets, or
# where they are not reached what was, and the rows whose definite verdict is wrong.
"""
Floor = dict[str, Any]  # what a side must not fall behind: covered, width, wrong


def reached(some: Sequence[Peak], ended: Sequence[Run]) -> Floor:
    """Return what a side reaches: the targets, or else the numbers up to which it is not worse."""
    covered, width = _held(some)
    return {
        "covered": min(COVERED[0], math.floor(100 * covered) / 100),
        "width": max(WIDTH, math.ceil(100 * width) / 100),
        "wrong": sorted(one.row["id"] for one in ended if one.wrong),
    }


def _held(some: Sequence[Peak]) -> tuple[float, float]:
    given = [one for one in some if one.given and one.need is not None]
    covered = sum(bool(one.need) for one in given) / max(1, len(given))
    return covered, statistics.median([one.width for one in given] or [0.0])


def judge_peaks(some: Sequence[Peak], floor: Floor) -> Results:
    """Hold the intervals against what was reached before."""
    covered, width = _held(some)
    wanted = f"wanted: {percent(COVERED[0], digits=0)} to {percent(COVERED[1], digits=0)}"
    least, most = floor["covered"], floor["width"]
    text = f"need_gib holds {percent(covered)} >= {percent(least, digits=0)} ({wanted})"
    return [
        (text, covered >= least),
        (f"median width {percent(width)} <= {percent(most, digits=0)} (wanted: 30 %)", width <= most),
    ]


def judge_runs(some: Sequence[Run], known: Sequence[str]) -> Results:
    """Hold the verdicts against those that are known to be wrong."""
    wrong = sorted(one.row["id"] for one in some if one.wrong)
    fresh = [name for name in wrong if name not in known]
    new = f", new: {', '.join(fresh)}" if fresh else ""
    return [(f"wrong definite verdicts {len(wrong)} <= {len(known)}{new}", len(wrong) <= len(known))]


def show(judged: Sequence[Peak], ended: Sequence[Run]) -> None:
    """Print each row, its numbers for one GPU."""
    for one in judged:
        low, high = per_gpu(one.row)
        if not one.judged:
            print(f"  ?    {low:7.2f}..{high:<7.2f} wants {', '.join(one.wants)}  {one.row['id']}")
            continue
        mark = "in" if one.held else "over" if one.low > high else "under"
        need = {None: "-", True: "in", False: "out"}[one.need]
        print(
            f"  {mark:<5}{low:7.2f}..{high:<7.2f} {one.low:7.2f}..{one.high:<7.2f} "
            f"{percent(one.error, signed=True):>8} need {need:<4}{' '.join(one.path):<22}{one.row['id']}"
        )
    for run in ended:
        mark = "WRONG" if run.wrong else ""
        print(f"  {run.ended:<5}{run.verdict:<8}{mark:<6}{run.row['id']}  {', '.join(run.wants)}")


def hosts() -> None:
    """Print the verdicts on machines that ran out of their own memory, or did not."""
    found = Counter((row["result"], host(row)[0]) for row in rows("outcomes") if row["device"] == "host")
    print("machines' own memory: " + ", ".join(f"{r} called {v} {n}" for (r, v), n in found.items()) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("oracle", "rows", "write", "check", "accept"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--side", choices=(FIT, CHECK), default=CHECK)
    args = parser.parse_args()
    results = judge_oracle(args.rows)
    if not args.oracle:
        judged, ended = peaks(args.side), runs(args.side)
        others = peaks(args.side, ready=False)
        tables = [class_table(judged), verdict_table(ended), rival_table(judged, ended)]
        for head, lines in tables:
            print_table(head, lines)
        left_out = Counter(want for one in judged for want in one.wants)
        print_wants("no interval for want of", left_out)
        known = [one for one in others if one.judged]
        held = sum(bool(one.held) for one in known)
        print(f"rows that leave something out: {len(others)}, {len(known)} judged, {held} inside\n")
        hosts()
        if args.rows:
            show([*judged, *others], ended)
        if args.accept:
            floors = {side: reached(peaks(side), runs(side)) for side in (FIT, CHECK)}
            BASELINE.write_text(NOTE + yaml.safe_dump(floors, sort_keys=False), encoding="utf-8")
        floor = yaml.safe_load(BASELINE.read_text(encoding="utf-8"))[args.side]
        results += judge_peaks(judged, floor) + judge_runs(ended, floor["wrong"])
        if args.write:
            write(tables)
    print("== targets ==\n")
    for text, met in results:
        print(f"{'met   ' if met else 'MISSED'}  {text}")
    return int(args.check and not all(met for _, met in results))


if __name__ == "__main__":
    sys.exit(main())
