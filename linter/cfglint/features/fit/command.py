"""``cfglint fit``: on each GPU, whether a config fits, the memory by part, and the cheapest fix."""

from __future__ import annotations

from cfglint.command import inputs, options, output, setup
from cfglint.command.flags import SAME, form, free, parse, switch, text, texts
from cfglint.engine.judge import values_for
from cfglint.engine.memory import Fit, FitRow, fit_rows, given_by
from cfglint.features.fit.estimates import estimates
from cfglint.features.fit.page import FORMATS, render_fit
from cfglint.features.fit.sweep import Case, cases, read_axis
from cfglint.hardware.target import Target, all_targets, parse_target
from cfglint.record import replace
from cfglint.report.blocks import DASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.tree import File
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject

SYMBOLS = f"█░│{DASH}"  # what pages show where they can
FAIL_ON = ("tight", "oom", "never")


class CatalogueOptions(options.Options):
    """The flags of what may look at all GPUs that cfglint knows."""

    gpu: list[str] = texts(
        "a GPU to judge for, `all` for the whole catalogue; without :N, as many as the config asks for",
        "NAME[:N[xNODES]]",
        group="hardware",
        setting=SAME,
    )
    quiet: bool = switch("no notices", short="q", group="output")


class FitOptions(CatalogueOptions):
    """The flags of ``fit``."""

    command = "fit"
    about = (
        "Whether a config fits: the memory on the fullest GPU of each target, by part, and the cheapest fix."
    )
    offers = (
        *options.MODEL,
        *("vary", "fixes", "format", "output_file", "fail_on", "quiet", "no_color"),
    )
    also = ("rule",)  # a fix may not break a rule that the settings give

    path: str = free("PATH", "a config, - for stdin", needed=True)
    vary: list[str] = texts(
        "rows for several values of a fact or key, such as micro_batch_size=1,2,4",
        "NAME=V1,V2",
        group="rows",
    )
    fixes: bool = switch(
        "look for fixes also with --gpu all and --vary, where that takes its time", group="rows"
    )
    format: str | None = form(FORMATS)
    fail_on: str | None = text(
        "exit with 1 where a target is oom, or already where one is tight (default: never)",
        "VERDICT",
        choices=FAIL_ON,
        group="output",
    )


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parse(FitOptions, arguments))
    every, found, notices = _targets(args)
    file = inputs.named(args.path)
    every, found = _asked(args, file, every, found, notices)
    base = _run(args, found)
    subject = _subject(base, args.path, notices, file)
    chosen = cases(base.pack, subject, [read_axis(axis) for axis in args.vary])
    rows = [row for case in chosen for row in _rows(base, subject, case, fixes=_looks_for_fixes(args, every))]
    fit = _told(base, subject, chosen[0], tuple(rows), every=every)
    if args.format not in ("json", "svg"):
        fit = _explained(base, subject, chosen[0], fit)
    output.announce(notices, args)
    content = subject.document.file.text
    output.emit(lambda style: render_fit(fit, args.format or "text", content, style), args, SYMBOLS)
    return int(any(row.verdict in _failing(args.fail_on) for row in rows))


def _targets(args: CatalogueOptions) -> tuple[bool, list[Target], list[str]]:
    """Return whether the catalogue was taken, the targets, and what there is to say about them."""
    named = [name for name in args.gpu if _all(name) is None]
    counts = [count for name in args.gpu if (count := _all(name)) is not None]
    found, notices = setup.targets(replace(args, gpu=named, no_detect=args.no_detect or bool(counts)))
    every = bool(counts) or not found
    if not found and not counts:
        notices.append("no target: judged for the whole catalogue; name GPUs with --gpu")
        counts = [""]
    for count in counts:
        found += _catalogue(count)
    return every, list({target.name: target for target in found}.values()), notices


def _all(name: str) -> str | None:
    """Return ``:8`` of ``all:8``, None for the name of a GPU."""
    word, colon, count = name.strip().partition(":")
    return colon + count if word.strip().lower() == "all" else None


def _catalogue(count: str) -> list[Target]:
    """Return all GPUs, the smallest first; instances of a GPU that is cut up are named, or left out."""
    whole = [t for t in all_targets() if not t.facts["gpu.mig"][0]]
    if count:
        whole = [parse_target(target.name + count) for target in whole]
    return sorted(whole, key=lambda t: (t.vram_gib is None, t.vram_gib or 0, t.name))


def _run(args: options.Options, found: list[Target]) -> Run:
    path = setup.model_config(args)
    if path is not None:
        found = [_with_model(target, path) for target in found]
    return setup.run(args, found).but(named=True)  # what the job asks for is among them


def _with_model(target: Target, path: str) -> Target:
    facts = {**target.facts, "model_config": (path, "--model-config")}
    return Target(target.name, target.gpu, facts, count=target.count, nodes=target.nodes)


def _asked(
    args: FitOptions, file: File, every: bool, found: list[Target], notices: list[str]
) -> tuple[bool, list[Target]]:
    """Return the GPUs that a job asks for itself, where none were named."""
    job = next((document.job for document in file.documents if document.job is not None), None)
    if job is None or args.gpu or args.hardware:
        return every, found
    from cfglint.hardware.target import declared

    asked = [target for target in declared(job) if target.vram_gib is not None]
    if not asked:
        return every, found
    names = " and ".join(target.name for target in asked)
    notices[:] = [f"judged for what the job asks for, {names}; name others with --gpu"]
    notices += [notice for target in asked for notice in target.notices]
    return False, asked


def _subject(run: Run, path: str, notices: list[str], file: File | None = None) -> Subject:
    """Return the first document of the file that a framework recognises. Raises UsageError."""
    file = file or inputs.named(path)
    subjects = inputs.recognised(run, file, path)
    if len(subjects) > 1:
        notices.append(f"{file.path}: {len(subjects)} documents are recognised; judged is the first")
    return subjects[0]


def _looks_for_fixes(args: FitOptions, every: bool) -> bool:
    return args.fixes or not (every or args.vary)


def _for(base: Run, case: Case, targets: Sequence[Target]) -> Run:
    """Return the run of a case: its targets give the case's facts, its overrides come last."""
    varied = [name for name, _ in case.facts]
    return base.but(
        targets=[case.target(target) for target in targets],
        overrides=(*base.overrides, *case.overrides),
        given={name: fact for name, fact in base.given.items() if name not in varied},
    )


def _rows(base: Run, subject: Subject, case: Case, *, fixes: bool) -> list[FitRow]:
    run = _for(base, case, base.targets)
    if case.overrides:
        subject = run.subject(subject.document, subject.framework)
    rows = list(fit_rows(run, subject, case.varied))
    if not fixes or all(row.verdict in ("fits", "unknown") for row in rows):
        return rows
    from cfglint.features.fit.remedy import remedy

    return [
        replace(row, fix=remedy(_for(base, case, [target]), subject, row))
        for row, target in zip(rows, base.targets, strict=True)
    ]


def _told(base: Run, subject: Subject, case: Case, rows: tuple[FitRow, ...], *, every: bool) -> Fit:
    values = values_for(subject, given_by(case.target(base.targets[0])))
    model = values["model_path"]
    known = model if isinstance(model, str) else None
    return Fit(subject.document.file.path, subject.framework, known, rows, every=every)


def _explained(base: Run, subject: Subject, case: Case, fit: Fit) -> Fit:
    """Return a fit with what makes its need a range, or leaves it unknown."""
    # A figure that the catalogue lacks is of interest where that GPU was asked for.
    needs = sorted({n for row in fit.rows for n in row.needs if not (fit.every and n.startswith("gpu."))})
    if needs:
        from cfglint.features.fit.wanted import (
            wanted,  # the rules' trees: as slow to load as all else together
        )

        values = values_for(subject, given_by(case.target(base.targets[0])))
        fit = replace(fit, wanted=wanted(base.pack, values, subject.framework, needs))
    row = fit.telling[0]
    if row.varied or row.needs or not 0 < row.need_gib.width < float("inf"):
        return fit
    target = next(case.target(t) for t in base.targets if t.name == row.target)
    return replace(fit, estimates=estimates(subject, target, brief=fit.every))


def _failing(fail_on: str | None) -> tuple[str, ...]:
    return {"tight": ("tight", "oom"), "oom": ("oom",)}.get(fail_on or "", ())
