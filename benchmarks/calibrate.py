"""Write rules/accuracy.rules: how far the memory estimates are from what was measured, by class.

    python benchmarks/calibrate.py [--dry] [--rows] [--anew]

Reads the rows of groups that no formula was written with (benchmarks/accuracy_split.py), whose facts make the
estimate a point, or nearly. Prints, for each statistic, what the intervals would
cover of a group of rows if they were fitted without it. ``--dry`` writes nothing, ``--rows`` prints every
row's error, ``--anew`` first puts neutral terms into a file that does not compile, such as after a merge.
"""

from __future__ import annotations

import argparse
import math
import statistics
import textwrap
from itertools import product
from typing import TYPE_CHECKING, Any

from accuracy_classes import (
    KINDS,
    POINTS,
    WORDS,
    Path,
    implied,
    is_given,
    path_of,
    per_gpu,
    statistic_of,
)
from accuracy_rows import ROOT, estimate, facts_of, oracle_rows, values_of
from accuracy_score import percent, print_table
from accuracy_split import CHECK, FIT, group_of, on
from calibrate_terms import ANY, PAIR, Limit, Residual, Term, by_class, of_class, stretch, widest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

OUTPUT = ROOT / "rules" / "accuracy.rules"
STATISTICS = ("need", "allocated", "reserved", "varying")
STATED = "gpt"  # Megatron's own model: its flags state the shape, as those of its measured runs did
UNSEEN = "unseen-"  # begins the id of a row that was read for a check (benchmarks/collect/unseenread.py)
LEFT = 0.02  # of a number at least, beside what is sure of it
BEYOND = 0.01  # of a capacity: what died needed more, and what ran did not
FULL = 0.92  # of the GPU: above that the allocator gives its cache back, and reserved bytes say little


# ── rows ──
def errors_of(row: Mapping[str, Any]) -> Iterator[tuple[str, Residual]]:
    """Yield a published row's errors, of each statistic that it says something of."""
    values = values_of(row)
    path, capacity = path_of(values), estimate(values, "gpu.vram")
    nearly_full = not capacity.wants and per_gpu(row)[0] > FULL * capacity.lo
    if path is None or (statistic_of(row) != "allocated" and nearly_full):
        return
    for statistic, peak in implied(row, values):
        told = estimate(values, POINTS[statistic])
        if is_given(told):
            sure = estimate(values, "error.sure").lo
            ends = _error(peak[1], told.lo, sure), _error(peak[0], told.hi, sure)
            unseen = row["id"].startswith(UNSEEN)
            one = Residual(*ends, group_of(row), path, 1 - sure / told.middle, unseen)
            yield statistic, one


def _error(measured: float, told: float, sure: float) -> float:
    return math.log(max(measured - sure, LEFT * measured) / max(told - sure, LEFT * told))


def errors_measured() -> dict[str, list[tuple[Mapping[str, Any], Residual]]]:
    """Return all errors of the rows that formulas were not written with, by statistic.

    Where a project published allocated bytes, its reserved ones imply none: they say less.
    """
    found: dict[str, list[tuple[Mapping[str, Any], Residual]]] = {name: [] for name in STATISTICS}
    rows_ = [
        row
        for side in (FIT, CHECK)
        for row in on(side, "published")
        if row["estimator_ready"] and row["peak_gib"] is not None
    ]
    allocated = {group_of(row) for row in rows_ if statistic_of(row) == "allocated"}
    for row in rows_:
        for statistic, one in errors_of(row):
            less = statistic in ("need", "allocated") and statistic_of(row) != "allocated"
            if not (less and one.group in allocated):
                found[statistic].append((row, one))
    return found


def limits_measured() -> list[Limit]:
    """Return what the ends of runs say of the need: of those that state what is needed."""
    found: list[Limit] = []
    for row in (*on(FIT, "outcomes"), *on(CHECK, "outcomes")):
        stated = row["states_what_is_needed"] if row["result"] == "oom" else row["result"] == "fits"
        if (
            row["device"] != "gpu"
            or row.get("opinion")
            or row.get("outside")
            or not stated
            or row["confidence"] != "high"
        ):
            continue
        values = values_of(row)
        told, capacity, path = (
            estimate(values, "trainer.estimate"),
            estimate(values, "gpu.vram"),
            path_of(values),
        )
        if path is None or capacity.wants or not is_given(told) or values["generates"] is not False:
            continue
        sure = estimate(values, "error.sure").lo
        low, high = _error(capacity.lo, told.hi, sure) + BEYOND, _error(capacity.hi, told.lo, sure) - BEYOND
        died, group = row["result"] == "oom", group_of(row)
        found.append(Limit(path, most=low, group=group) if died else Limit(path, least=high, group=group))
    return found


# ── what the intervals cover of groups that they have not seen ──
def validated(some: Sequence[Residual]) -> tuple[float, float, float]:
    """Return coverage of the 90 % interval, of both bounds, and the median width, by leaving groups out."""
    likely = bound = 0
    widths: list[float] = []
    wider = stretch(some)
    for group in sorted({one.group for one in some}):
        mine = [one for one in some if one.group == group]
        own = by_class([one for one in some if one.group != group], (), wider)
        for one in mine:
            term = of_class(one.path, own)
            likely += _holds(term.likely, one)
            bound += _holds(term.bound, one)
            ends = [1 - one.share + one.share * factor for factor in term.likely]
            widths.append(2 * (ends[1] - ends[0]) / (ends[0] + ends[1]))
    return likely / len(some), bound / len(some), statistics.median(widths)


def _holds(factors: tuple[float, float], one: Residual) -> bool:
    return math.log(factors[0]) <= one.below and one.above <= math.log(factors[1])


# ── the file ──
HEAD = """# How far estimates of rules/memory were from what was measured, by class. Written by
# benchmarks/calibrate.py; do not edit. Factors on an estimate: `likely` holds 90 % of runs, and each end of
# `bound` is passed by one in 100. Where nobody measured a class, the one above it counts; what is like
# nothing that was measured has no rows, and the widest terms."""
UNMEASURED = "not measured"
NEUTRAL = 'let error.class = "all"\nlet error.rows = 0\n' + "".join(
    f"let error.{name} = 0.5 .. 2\n" for name in ("likely", "bound", "allocated", "reserved")
)
NAMES = """let error.rows = error.of_need.rows(error.class)
let error.groups = error.of_need.groups(error.class)
let error.likely = error.of_need.likely(error.class)
let error.bound = error.of_need.bound(error.class)
let error.allocated = error.of_allocated.likely(error.class)
let error.reserved = if shapes_vary then error.of_varying.likely(error.class)
  else error.of_reserved.likely(error.class)"""


def families(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the families of models that were measured: by people, or by PyTorch's own accounting."""
    steps = {row["config"]["model_path"] for row in oracle_rows() if "failure" not in row}
    values = [
        *(facts_of({"model_path": model}) for model in sorted(steps)),
        *(values_of(row) for row in found),
    ]
    measured = {family for one in values if isinstance(family := one["model.family"], str)} - {"unknown"}
    return sorted(measured | {STATED})


def classes_of(measured: Iterable[Path]) -> list[Path]:
    """Return the classes that get a name, the most special first: those with rows and those above them.

    All pairs of a code, and experts or not, are among them.
    """
    found = {path[:length] for path in measured for length in range(PAIR + 1, len(path) + 1)}
    found |= set(product({path[0] for path in found}, KINDS))
    return sorted(found, key=lambda path: (-len(path), path))


def written(found: Mapping[str, Mapping[Path, Term]], classes: Sequence[Path], known: Sequence[str]) -> str:
    """Return the text of accuracy.rules."""
    names = ", ".join(f'"{family}"' for family in known)
    lines = [HEAD, *textwrap.wrap(f"let error.families = [{names}]", 118, subsequent_indent="  "), ""]
    lines.append(f'let error.class = if model.family not in error.families then "{UNMEASURED}"')
    lines += [textwrap.indent(f"else {_chosen((), classes)}", "  "), ""]
    for statistic, terms_ in found.items():
        needed = statistic == "need"
        lines.append(
            f"table error.of_{statistic}: {'rows, groups, likely, bound' if needed else 'likely'} {{"
        )
        lines += [f'  "{" ".join(path)}": {_cells(terms_[path], whole=needed)}' for path in sorted(classes)]
        lines += [f"  else: {_cells(widest(terms_.values()), whole=needed)}", "}"]
    return "\n".join([*lines, "", NAMES]) + "\n"


def _chosen(above: Path, classes: Sequence[Path]) -> str:
    """Return what chooses the most special class below one, or itself: a match in a match."""
    name = f'"{" ".join(above) if above in classes else UNMEASURED}"'
    depth = len(above)
    words = sorted({path[depth] for path in classes if path[:depth] == above and len(path) > depth})
    if not words:
        return name
    arms = [f'"{word}": {_chosen((*above, word), classes)}' for word in words]
    return f"match {WORDS[depth]} {{\n{textwrap.indent(chr(10).join([*arms, f'else: {name}']), '  ')}\n}}"


def _cells(term: Term, *, whole: bool) -> str:
    likely = f"{term.likely[0]:.3f} .. {term.likely[1]:.3f}"
    if not whole:
        return likely
    return f"{term.rows}, {term.groups}, {likely}, {term.bound[0]:.3f} .. {term.bound[1]:.3f}"


def text_of(errors: Mapping[str, Sequence[tuple[Mapping[str, Any], Residual]]]) -> str:
    """Return what the errors come to: the text of accuracy.rules."""
    measured = {one.path for some in errors.values() for _, one in some}
    classes = classes_of(measured | {(ANY, *path[1:]) for path in measured})
    limits = limits_measured()
    found = {}
    for name, some in errors.items():
        rows_ = [one for _, one in some]
        own = by_class(rows_, limits if name == "need" else (), stretch(rows_))
        found[name] = {path: of_class(path, own) for path in classes}
    known = families(row for some in errors.values() for row, _ in some)
    return written(found, classes, known)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--anew", action="store_true")
    args = parser.parse_args()
    if args.anew:
        OUTPUT.write_text(NEUTRAL, encoding="utf-8")
    errors = errors_measured()
    lines = []
    for statistic, some in errors.items():
        rows_ = [one for _, one in some]
        likely, bound, width = validated(rows_)
        groups = str(len({one.group for one in rows_}))
        lines.append([statistic, str(len(rows_)), groups, percent(likely), percent(bound), percent(width)])
        for row, one in some if args.rows else ():
            print(f"{statistic:10} {one.below:+.3f} {one.above:+.3f}  {' '.join(one.path):40} {row['id']}")
    print_table(["statistic", "rows", "groups", "in 90 %", "in bounds", "median width"], lines)
    if not args.dry:
        OUTPUT.write_text(text_of(errors), encoding="utf-8")


if __name__ == "__main__":
    main()
