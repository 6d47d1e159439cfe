"""Draws repairs from folders of configs for judges: by a seed, the same number from each suite and GPU.

    python benchmarks/exercise.py FOLDER... --seed N [--each 8] [--gpu NAME]... [--but FOLDER]... > sheet.md

A suite is a folder on the command line; what it keeps for its own tests is no job, and not drawn. Each entry
shows what a user sees of a finding: the first proposal with memory, time and results, the edit, the others,
and what is said beside it of the file. A finding without a proposal is drawn like the others. A GPU without
a number stands for as many as the file asks for. A file with the bytes of one that was looked at before, or
that lies in a ``--but`` folder, is a copy, and not drawn.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linter"))

from cfglint.budget import BUDGET
from cfglint.cli import main as cfglint
from cfglint.errors import OverBudgetError
from cfglint.repair.attach import attach
from cfglint.report.changes import unified
from cfglint.report.outcome import price_told, results_told
from cfglint.text import apply_edits
from folders import paths_of, read, run_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.tree import File
    from cfglint.engine.find import Found
    from cfglint.engine.run import Run
    from cfglint.findings import Fix

GPUS = ("rtx-4090", "rtx-3090:2", "a40", "l40s:4", "a100-40gb:8", "h100-sxm:8")


def drawn(run: Run, file: File, sampler: random.Random) -> tuple[Found, str, list[Found]] | None:
    """Return a finding that has a proposal or is an error, the text with its edits, and the file's others."""
    chosen, others = None, []
    for subject in run.subjects(file, judge_broken=False):
        judgements = run.judged(subject)
        found = [each for each in run.findings(judgements) if each.finding.level != "info"]
        if not found:
            continue
        with BUDGET:
            attach(run, judgements, found)
        first = [each for each in found if each.finding.fix is not None or each.finding.level == "error"]
        if first and chosen is None:
            chosen = sampler.choice(first)
        others += found
    if chosen is None:
        return None
    fix = chosen.finding.fix
    text = file.text if fix is None else apply_edits(file.text, list(fix.edits))
    return chosen, text, [other for other in others if other is not chosen]


def proposal(fix: Fix) -> str:
    """Return a proposal on one line."""
    sure = "" if fix.certainty == "sure" else ", may not be enough"
    price = price_told(fix)
    effect, told = (f"; {fix.effect}" if fix.effect else ""), (f" ({price})" if price else "")
    return f"({fix.applicability}{sure}): {fix.title}{effect}{told}"


def beside(each: Found, others: list[Found]) -> Iterator[str]:
    """Yield a line for each other repair of the file, and for each finding without one."""
    seen = {each.finding.fix.edits} if each.finding.fix is not None else set()
    for finding in (other.finding for other in others):
        fix = finding.fix
        if fix is not None and fix.edits and fix.edits not in seen:
            seen.add(fix.edits)
            yield f"beside it, {finding.level} {finding.code} ({finding.name}) is mended: {proposal(fix)}"
        elif fix is None:
            yield f"beside it, {finding.level} {finding.code}: {finding.message}"


def around(path: str, gpu: str) -> Iterator[str]:
    """Yield what `cfglint check` says beside a file's findings: the verdict, and what was not checked."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        cfglint(["check", path, "--no-detect", "--gpu", gpu])
    lines = printed.getvalue().splitlines()
    found = next((i for i, line in enumerate(lines) if line.startswith(f"{path}:")), 0)
    yield from (f"> {line.strip()}" for line in lines[:found] if line.startswith("  "))
    yield from (f"> {line}" for line in lines[found:] if line.startswith("not checked:"))


def entry(title: str, file: File, each: Found, text: str, besides: list[Found]) -> Iterator[str]:
    """Yield the lines of a drawn repair."""
    finding, fix = each.finding, each.finding.fix
    line = file.text.count("\n", 0, finding.place.start) + 1
    yield f"## {title}"
    yield f"{finding.level} {finding.code} {finding.name}, line {line}: {finding.message}"
    others = [f"or {proposal(other)}" for other in finding.alternatives]
    if fix is None:
        yield f"no fix: {finding.unfixed or 'nothing in the file could be moved'}"
        yield from (*others, *beside(each, besides))
        return
    yield f"proposal {proposal(fix)}"
    if not fix.memory:
        yield "  memory: not judged"
    if fix.results:
        yield f"  results: {results_told(fix.results)}"
    if text != file.text:
        yield "```diff"
        yield from unified("file", file.text, text).splitlines()[2:40]
        yield "```"
    yield from (*others, *beside(each, besides))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, default=8, help="repairs of a suite")
    parser.add_argument("--gpu", action="append", default=[])
    parser.add_argument("--but", action="append", default=[], help="a folder of which copies are not drawn")
    args = parser.parse_args()
    known = {file.text for _, file in read(args.but, paths_of(args.but))}
    number = 0
    kinds: Counter[str] = Counter()
    for folder in args.folder:
        runs = {gpu: run_of(folder, gpu) for gpu in args.gpu or GPUS}
        sampler = random.Random(f"{args.seed} {os.path.basename(folder.rstrip('/'))}")
        paths = [path for path in paths_of([folder]) if "tests" not in path.split(os.sep)]
        sampler.shuffle(paths)
        here = 0
        for path, file in read([folder], paths):
            if here == args.each:
                break
            if file.text in known:
                continue
            known.add(file.text)
            gpu = sampler.choice(list(runs))
            try:
                one = drawn(runs[gpu], file, sampler)
            except OverBudgetError as error:
                print(f"{path}: {error}", file=sys.stderr)
                continue
            if one is None:
                continue
            here += 1
            number += 1
            each, text, besides = one
            fix = each.finding.fix
            other = each.finding.alternatives
            kinds[fix.applicability if fix is not None else "other hardware" if other else "none"] += 1
            place = os.path.relpath(path, os.path.dirname(folder.rstrip("/")))
            many = "" if ":" in gpu else " (as many as the file asks for)"
            title = f"{number}. {place} on {gpu}{many}"
            told = (*entry(title, file, each, text, besides), *around(path, gpu))
            print("\n".join(told), end="\n\n")
    print(f"{number} drawn: " + ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
