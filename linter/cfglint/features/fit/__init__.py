"""``cfglint fit``: on each GPU, whether a config fits, the memory by part, and the cheapest fix."""

from __future__ import annotations

from cfglint.command import (
    PAGES,
    SAME,
    form,
    free,
    inputs,
    options,
    output,
    parse,
    setup,
    switch,
    text,
    texts,
)
from cfglint.features.fit.compute import explained, fit_of, read_axis, variants
from cfglint.features.fit.page import as_data, page
from cfglint.hardware.target import Target, all_targets, parse_target
from cfglint.record import replace
from cfglint.report import Style, written
from cfglint.report.blocks import DASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import File
    from cfglint.engine.rows import Fit
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject

SYMBOLS = f"█░│{DASH}"  # what pages show where they can


class CatalogueOptions(options.Options):
    """The flags of what may look at all GPUs that cfglint knows."""

    gpu: list[str] = texts(
        "compute for this GPU, or all of the catalogue: N per machine on NODES machines (default: as many as "
        "the config asks for)",
        "NAME[:N[xNODES]]",
        group="hardware",
        setting=SAME,
    )
    quiet: bool = switch("no notices", short="q", group="output")


class FitOptions(CatalogueOptions):
    """The flags of ``fit``."""

    command = "fit"
    about = (
        "Does a config fit? The memory on the most loaded GPU of each target, by part, and the cheapest fix."
    )
    offers = (*options.MODEL, *("vary", "fixes", "format", "output_file", "fail_on", "quiet", "no_color"))
    also = ("rule",)  # a fix may not break a rule that the settings give

    path: str = free("PATH", "a config, - for stdin", needed=True)
    vary: list[str] = texts(
        "try several values of a setting or a key, such as micro_batch_size=1,2,4", "NAME=V1,V2", group="rows"
    )
    fixes: bool = switch("search for fixes with --gpu all and --vary too (slow)", group="rows")
    format: str | None = form((*PAGES, "svg"))
    fail_on: str | None = text(
        "exit with 1 if a target is oom (or tight, with --fail-on tight; default: never)",
        "VERDICT",
        choices=("tight", "oom", "never"),
        group="output",
    )


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parse(FitOptions, arguments))
    every, targets, notices = targets_of(args)
    file = inputs.named(args.path, args.boundary)
    every, targets = _asked(args, file, every, targets, notices)
    base = run_for(args, targets)
    subject = subject_of(base, file, args.path, notices)
    chosen = variants(base.pack, subject, [read_axis(axis) for axis in args.vary])
    fit = fit_of(base, subject, chosen, every=every, fixes=args.fixes or not (every or args.vary))
    if args.format not in ("json", "svg"):
        fit = explained(base, subject, chosen[0], fit)
    output.announce(notices, args)
    content = subject.document.file.text
    output.emit(lambda style: render_fit(fit, args.format or "text", content, style), args, SYMBOLS)
    failing = {"tight": ("tight", "oom"), "oom": ("oom",)}.get(args.fail_on or "", ())
    return int(any(row.verdict in failing for row in fit.rows))


def render_fit(fit: Fit, form: str, content: str, style: Style) -> str:
    """Return ``fit`` in ``form``, ending in a line break; ``content`` is the config that it is about."""
    if form == "svg":
        from cfglint.features.fit.svg import as_svg

        return as_svg(fit)
    return written(form, style, lambda style: page(fit, style), lambda: as_data(fit, content))


def targets_of(args: CatalogueOptions) -> tuple[bool, list[Target], list[str]]:
    """Return whether the catalogue was taken, the targets, and notes on them."""
    names = setup.gpu_names(args.gpu)
    named = [name for name in names if _all(name) is None]
    counts = [count for name in names if (count := _all(name)) is not None]
    targets, notices = setup.targets(replace(args, gpu=named, no_detect=args.no_detect or bool(counts)))
    if not targets and not counts:
        notices.append("no GPU named: showing the whole catalogue; choose with --gpu")
        counts = [""]
    for count in counts:
        targets += _catalogue(count)
    return bool(counts), list({target.name: target for target in targets}.values()), notices


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


def run_for(args: options.Options, targets: list[Target]) -> Run:
    """Return a run whose targets are all that the job may ask for."""
    return setup.run(args, targets).but(named=True)


def _asked(
    args: FitOptions, file: File, every: bool, targets: list[Target], notices: list[str]
) -> tuple[bool, list[Target]]:
    """Return the GPUs that a job asks for itself, where none were named."""
    job = next((document.job for document in file.documents if document.job is not None), None)
    if job is None or args.gpu or args.hardware:
        return every, targets
    from cfglint.hardware.host import declared

    asked = [target for target in declared(job) if target.vram_gib is not None]
    if not asked:
        return every, targets
    names = " and ".join(target.name for target in asked)
    notices[:] = [f"using the GPUs that the job asks for, {names}; choose others with --gpu"]
    notices += [notice for target in asked for notice in target.notices]
    return False, asked


def subject_of(run: Run, file: File, path: str, notices: list[str]) -> Subject:
    """Return the first document of the file that a framework recognises. Raises UsageError."""
    subjects = inputs.recognised(run, file, path)
    if len(subjects) > 1:
        notices.append(f"{file.path}: {len(subjects)} documents recognised; using the first")
    return subjects[0]
