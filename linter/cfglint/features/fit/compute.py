"""What a config needs on each target, for values that vary, why that is a range, and what would fix it."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from cfglint.budget import BUDGET, Searching
from cfglint.document.tree import ABSENT, split_key
from cfglint.engine.asks import answer
from cfglint.engine.estimates import Estimate, estimates
from cfglint.engine.memory import HERE, LACKING, LIKELY, VERDICTS, shown_fact
from cfglint.engine.rows import FEW, Fit, FitRow, Remedy, Wanted, fit_rows
from cfglint.errors import UsageError, did_you_mean
from cfglint.facts import Values, stated
from cfglint.findings import Fix
from cfglint.lang.types import show_number, text_of
from cfglint.lang.values import INF, UNRULED, Interval, needs_of
from cfglint.record import Value, replace
from cfglint.text import small_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cfglint.document.view import View
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.hardware.target import Target
    from cfglint.lang.pack import Pack
    from cfglint.repair.solve import Solver

_DEEPEST = 6  # levels of keys that a misspelled name is compared with
_MEMORY_RULES = "MEM"


def fit_of(base: Run, subject: Subject, chosen: Sequence[Variant], *, every: bool, fixes: bool) -> Fit:
    """Return what a document needs in each variant on each target, a whole catalogue if ``every``."""
    rows = tuple(row for variant in chosen for row in _rows(base, subject, variant, fixes=fixes))
    run = chosen[0].run(base)
    model = text_of(run.on(run.targets[0], subject).values["model_path"])
    return Fit(subject.document.file.path, subject.framework, model, rows, every=every)


def _rows(base: Run, subject: Subject, variant: Variant, *, fixes: bool) -> list[FitRow]:
    run = variant.run(base)
    if variant.overrides:
        subject = run.subject(subject.document, subject.framework)
    brief = variant.varied or len(run.targets) > FEW
    rows = list(fit_rows(run, subject, variant.varied, "brief" if brief else "told"))
    if not fixes or all(row.verdict in ("fits", "unknown") for row in rows):
        return rows
    return [
        replace(row, fix=remedy(variant.run(base.but(targets=[target])), subject, row))
        for row, target in zip(rows, base.targets, strict=True)
    ]


def explained(base: Run, subject: Subject, variant: Variant, fit: Fit) -> Fit:
    """Return a fit with what makes its need a range, or leaves it unknown."""
    run = variant.run(base)
    # A figure that the catalogue lacks is of interest where that GPU was asked for.
    needs = sorted({n for row in fit.rows for n in row.needs if not (fit.every and n.startswith("gpu."))})
    if needs:
        values = run.on(run.targets[0], subject).values
        fit = replace(fit, wanted=wanted(values, needs))
    row = fit.telling[0]
    if row.varied or row.needs or not 0 < row.need_gib.width < INF:
        return fit
    target = next(target for target in run.targets if target.name == row.target)
    values = run.on(target, subject).values
    return replace(fit, estimates=widened(subject, values, brief=fit.every))


# ── --vary NAME=V1,V2: other values of a fact, or of a key of the file ───────────────────────────────────
class Axis(Value):
    """A name and the values that it takes, as they were written."""

    name: str
    values: tuple[str, ...]


class Variant(Value):
    """One choice of values: facts to give beside the target's own, and overrides of the file."""

    varied: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, object], ...]
    overrides: tuple[str, ...]

    def target(self, target: Target) -> Target:
        """Return ``target`` with this variant's facts beside its own."""
        own = {name: (value, "--vary") for name, value in self.facts}
        return replace(target, facts={**target.facts, **own}) if own else target

    def run(self, base: Run) -> Run:
        """Return ``base`` with targets that give this variant's facts, its overrides last."""
        varied = [name for name, _ in self.facts]
        return base.but(
            targets=[self.target(target) for target in base.targets],
            overrides=(*base.overrides, *self.overrides),
            given={name: fact for name, fact in base.given.items() if name not in varied},
        )


def read_axis(text: str) -> Axis:
    """Read ``NAME=V1,V2``. Raises UsageError."""
    name, _, values = text.partition("=")
    several = tuple(dict.fromkeys(value.strip() for value in values.split(",")))
    if not name.strip() or not all(several):
        raise UsageError(
            f"--vary {text}: write NAME=V1,V2, such as --vary micro_batch_size=1,2,4, without empty values"
        )
    return Axis(name.strip(), several)


def variants(pack: Pack, subject: Subject, axes: Sequence[Axis]) -> list[Variant]:
    """Return every choice of values of all axes, the last axis moving first. Raises UsageError."""
    twice = next((a.name for i, a in enumerate(axes) if a.name in {b.name for b in axes[:i]}), None)
    if twice is not None:
        raise UsageError(f"--vary {twice} is given twice; write all values in one: --vary {twice}=V1,V2")
    choices = product(*([(axis.name, text) for text in axis.values] for axis in axes))
    return [
        Variant(
            choice,
            tuple((name, _fact(pack, name, text)) for name, text in choice if name in pack.facts),
            tuple(_override(pack, subject, name, text) for name, text in choice if name not in pack.facts),
        )
        for choice in choices
    ]


def _fact(pack: Pack, name: str, text: str) -> object:
    kind, spellings = pack.facts[name][0], pack.facts[name][4]
    value = stated(pack, name, text)
    if value is ABSENT or needs_of(value):
        takes = {"number": "a number in its range", "bool": "true or false"}.get(kind, f"a {kind}")
        if spellings:
            takes = f"one of {', '.join(dict.fromkeys(spellings.values()))}"
        near = did_you_mean(text, spellings or ())
        raise UsageError(f"--vary {name}={text}: {name} takes {takes}, not {text!r}{near}")
    return value


def _override(pack: Pack, subject: Subject, name: str, text: str) -> str:
    steps = tuple(key if (number := small_number(key)) is None else number for key in split_key(name))
    if not subject.view.has(steps):
        near = did_you_mean(name, (*pack.facts, *_keys(subject.view, ())))
        raise UsageError(f"--vary {name}: unknown name, and no key of the file{near}")
    return f"{name}={text}"


def _keys(view: View, path: tuple[str, ...]) -> Iterator[str]:
    for key in view.keys(path):
        yield ".".join((*path, key))
        if len(path) < _DEEPEST:
            yield from _keys(view, (*path, key))


# ── why a need is a range: the estimates that widen it ───────────────────────────────────────────────────
def widened(subject: Subject, values: Values, *, brief: bool) -> tuple[Estimate, ...]:
    """Return the estimates that widen the need, the widest first.

    ``brief`` leaves out what only the rules' trees tell, which take as long to load as all else together.
    """
    pack = subject.pack
    widest = estimates(values, lambda facts: facts[LIKELY])
    if brief:
        return tuple(_in_brief(pack, widest))
    from cfglint.engine.describe import Evaluator, Origins
    from cfglint.engine.ranges import told

    symbols = pack.symbols()
    return tuple(told(Evaluator(symbols), Origins(symbols, values, {}, subject.framework), widest))


def _in_brief(pack: Pack, widest: Sequence[tuple[str, Interval, float]]) -> Iterator[Estimate]:
    for name, value, gain in widest:
        measure = pack.measures.get(name)
        yield Estimate(name, "" if measure is None else show_number(value, measure[0]), "", gain)


_FIRST = ("model_path", "task")  # what most else follows from


# ── the facts that a need misses ─────────────────────────────────────────────────────────────────────────
def wanted(values: Values, needs: Iterable[str]) -> tuple[Wanted, ...]:
    """Say what missing facts are and what would give them; those with one answer are listed together."""
    symbols = values.pack.symbols()
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(needs, key=lambda name: (name not in _FIRST, name)):
        told, prefix = answer(name, values), name.partition(".")[0]
        about = told.why
        if name == "model_config" or prefix in symbols.registries:
            about = _figures(values, prefix if prefix in symbols.registries else "model")
        elif name in symbols.facts and about.startswith("nothing says"):
            about = symbols.facts[name].about
        elif name == "gpu.count" and values[LACKING] is True:
            here, there, nodes = (
                shown_fact(values.pack, "gpu.count", values[each]) for each in (HERE, name, "num_nodes")
            )
            about = f"the job is on {here} GPUs of a machine, but there are {there}"
            if here == there:
                about = f"the job is on {here} GPUs of {nodes} machines, but there are {there}"
                here = f"{here}x{nodes}"
            told = replace(told, do=f"use --gpu NAME:{here}")
        groups.setdefault((about, told.do), []).append(name.removeprefix("$.").removeprefix(UNRULED))
    return tuple(Wanted(tuple(names), about, do) for (about, do), names in groups.items())


def _figures(values: Values, prefix: str) -> str:
    about = "figures of the model" if prefix == "model" else f"figures of the {prefix}'s model"
    path = values["model_path" if prefix == "model" else f"{prefix}.model_path"]
    return f"{about} {path} that cfglint does not have" if isinstance(path, str) else about


# ── the cheapest fix that lets a config fit where it does not, or may not ────────────────────────────────
def remedy(run: Run, subject: Subject, row: FitRow) -> Remedy | None:
    """Return the fix that helps most on the one target of ``run``; of those that help alike, the first.

    It fixes the memory rules that the config breaks there, all together where that can be. The fix was proven
    on the rules; here it must also change the row's verdict for the better. Where the search takes too long,
    what it found by then counts.
    """
    if row.verdict not in ("tight", "oom"):
        return None
    from cfglint.repair.solve import solving

    ways: list[Remedy] = []
    with BUDGET, Searching(), solving(run, run.judged(subject)) as solver:
        for fix in _fixes(solver):
            after = _after(solver, fix)
            if after is not None and VERDICTS.index(after.verdict) < VERDICTS.index(row.verdict):
                ways.append(Remedy(fix, after.need_gib, after.verdict))
                if after.verdict == "fits":
                    break
    return min(ways, key=lambda way: VERDICTS.index(way.verdict), default=None)


def _fixes(solver: Solver) -> Iterator[Fix]:
    from cfglint.repair.allowed import ANY
    from cfglint.repair.fixes import fix_of
    from cfglint.repair.proposals import mend
    from cfglint.repair.trials import Group, to_mend

    (judgement,) = solver.trials.judgements
    broken = [v for v in judgement.verdicts if v.rule.code.startswith(_MEMORY_RULES) and to_mend(v)]
    groups = [Group(v.rule.code, solver.goals(v.rule.code), error=True) for v in broken]
    repairs = mend(solver, groups, (ANY,)).each()
    fixes = [
        fix_of(repair, solver.trials, judgement) for repair in repairs if repair.applicability != "display"
    ]
    if len(fixes) > 1:
        yield _joined(fixes)
    yield from fixes
    for group in groups:
        if any(v.rule.code == group.code and v.truth is False for v in judgement.verdicts):
            nearest = solver.nearest(group.goals, ANY)
            if nearest is not None and nearest.applicability != "display":
                yield fix_of(nearest, solver.trials, judgement)


def _joined(fixes: Sequence[Fix]) -> Fix:
    """Return fixes of different rules as one."""
    unsafe = any(fix.applicability == "unsafe" for fix in fixes)
    return Fix(
        0, " and ".join(fix.title for fix in fixes),
        tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits)),
        applicability="unsafe" if unsafe else "safe",
        effect="; ".join(dict.fromkeys(fix.effect for fix in fixes if fix.effect)),
        notes=tuple(note for fix in fixes for note in fix.notes),
        stale=tuple(dict.fromkeys(each for fix in fixes for each in fix.stale)),
    )  # fmt: skip


def _after(solver: Solver, fix: Fix) -> FitRow | None:
    """Return the row of the text that the fix leaves behind."""
    after = solver.trials.judged_after(fix.edits)
    return None if after is None else next(fit_rows(solver.trials.run, after[0].subject), None)
