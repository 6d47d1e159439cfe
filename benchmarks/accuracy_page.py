"""The tables of docs/accuracy.md, and how they get there."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from accuracy_classes import per_gpu
from accuracy_judge import WRONG, Peak, Run, groups
from accuracy_rivals import NAMES, rivals
from accuracy_rows import ROOT, estimate, values_of, verdict
from accuracy_score import median, off, percent, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE = ROOT / "docs" / "accuracy.md"
MARKS = "<!-- written by benchmarks/accuracy.py --write -->\n", "<!-- end -->\n"
NEAR = 0.15

Table = tuple[list[str], list[list[str]]]  # head and lines


Judged = TypeVar("Judged", Peak, Run)


def _by_class(some: Iterable[Judged]) -> list[tuple[str, list[Judged]]]:
    found: dict[str, list[Judged]] = {}
    for one in sorted(some, key=lambda one: one.path):
        found.setdefault(" ".join(one.path), []).append(one)
    lines = list(found.items())
    lines.append(("all", [one for members in found.values() for one in members]))
    return lines


def class_table(some: Sequence[Peak]) -> Table:
    """Return what the intervals hold: of rows whose facts are all given by class, of the others in sum."""
    head = ["rows whose facts are all given", "rows", "groups", "own statistic", "need_gib", "bounds"]
    head += ["median error", "median width"]
    given = [one for one in some if one.given]
    lines = [_peak_line(name, members) for name, members in _by_class(given)]
    others = [one for one in some if one.judged and not one.given]
    lines.append(_peak_line("with facts left open", others))
    none = [one for one in some if not one.judged]
    lines.append(["no interval", str(len(none)), str(groups(none)), "-", "-", "-", "-", "-"])
    return head, lines


def _peak_line(name: str, some: Sequence[Peak]) -> list[str]:
    if not some:
        return [name, "0", "0", "-", "-", "-", "-", "-"]
    return [
        name,
        str(len(some)),
        str(groups(list(some))),
        share(one.held for one in some),
        share(one.need for one in some),
        share(one.bound for one in some),
        percent(median(one.error for one in some)),
        percent(statistics.median(one.width for one in some)),
    ]


def verdict_table(some: Sequence[Run]) -> Table:
    """Return the verdicts by class: of runs that ran, and of those that died."""
    head = ["runs", "ran", "fits", "tight", "oom", "not judged", "died", "fits", "tight", "oom", "not judged"]
    lines = []
    for name, members in _by_class(some):
        cells = [name]
        for how in ("fits", "oom"):
            found = Counter(one.verdict for one in members if one.ended == how)
            cells += [str(found.total()), *(str(found[one]) for one in ("fits", "tight", "oom", "unknown"))]
        lines.append(cells)
    return head, lines


def rival_table(judged: Sequence[Peak], ended: Sequence[Run]) -> Table:
    """Return what others say of the same rows: errors of peaks, and verdicts where a number is a verdict."""
    head = [
        "estimator",
        "answers",
        "error, full",
        "with adapters",
        "within 15 %",
        "definite verdicts",
        "wrong",
    ]
    some = [one for one in judged if one.judged]
    definite = [one for one in ended if one.definite]
    wrong = sum(one.wrong for one in definite)
    errors = [(one, one.error) for one in some]
    lines = [["cfglint", *_errors(errors), f"{len(definite)} of {len(ended)}", str(wrong)]]
    asked = [*(one.row for one in judged), *(run.row for run in ended)]
    told = {row["id"]: rivals(row) for row in asked}
    for name in NAMES:
        answers = [(one, told[one.row["id"]][name]) for one in some]
        errors = [
            (one, off(answer.middle, per_gpu(one.row))) for one, answer in answers if answer is not None
        ]
        said = []
        for run in ended:
            answer, capacity = told[run.row["id"]][name], estimate(values_of(run.row), "gpu.vram")
            if answer is not None and not capacity.wants:
                said.append((run.ended, verdict(answer, capacity)))
        false = sum(pair in WRONG for pair in said)
        lines.append([name, *_errors(errors), f"{len(said)} of {len(ended)}", str(false)])
    return head, lines


def _errors(errors: Sequence[tuple[Peak, float]]) -> list[str]:
    full = [error for one, error in errors if one.row["facts"].get("lora_rank") is None]
    adapters = [error for one, error in errors if one.row["facts"].get("lora_rank") is not None]
    near = sum(abs(error) <= NEAR for _, error in errors) / max(1, len(errors))
    return [str(len(errors)), percent(median(full)), percent(median(adapters)), percent(near, digits=0)]


def markdown(table: Table) -> str:
    """Return a table in Markdown."""
    head, lines = table
    marks = ["---", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, marks, *lines))


def write(tables: Sequence[Table]) -> None:
    """Put the tables between the page's marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    written = "\n".join(markdown(table) for table in tables)
    PAGE.write_text(f"{before}{MARKS[0]}\n{written}\n{MARKS[1]}{after}", encoding="utf-8")
