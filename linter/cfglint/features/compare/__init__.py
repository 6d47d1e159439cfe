"""``cfglint compare A B``: what differs between two configs, the memory of each, and what the change does."""

from __future__ import annotations

from cfglint.command import PAGES, form, free, inputs, options, output, parse, setup, switch, texts
from cfglint.errors import UsageError
from cfglint.features.compare.compute import compared
from cfglint.features.compare.page import as_data, page
from cfglint.features.fit import SYMBOLS, CatalogueOptions, run_for, subject_of, targets_of


class CompareOptions(CatalogueOptions):
    """The flags of ``compare``."""

    command = "compare"
    about = (
        "Compare two configs: which settings differ, the memory of each on every GPU, and what the change "
        "does."
    )
    offers = (
        *("gpu", "hardware", "no_detect", "sides", "set", "rules", "model_config", "online", "format"),
        *("output_file", "exit_code", "quiet", "verbose", "no_color"),
    )
    also = ("framework", "select", "ignore")

    paths: list[str] = free(
        "A B", "two configs, of the same framework or not; - for stdin", many=True, counted=True, needed=True
    )
    sides: list[str] = texts(
        "the files' framework (default: recognised from their keys); give it twice for A and then B",
        "NAME[==VERSION]",
        group="rules",
        name="framework",
    )
    format: str | None = form(PAGES)
    exit_code: bool = switch("exit with 1 if something differs, like git diff", group="output")
    verbose: bool = switch("also list all keys, all derived values and sources", short="v", group="output")


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = _args(arguments)
    every, targets, notices = targets_of(args)
    run_a = run_for(args, targets)
    args.framework = args.sides[-1] if args.sides else args.framework
    framework, version = setup.framework(args, run_a.pack)
    run_b = run_a.but(framework=framework, version=version)
    a, b = (
        subject_of(run, inputs.named(path, args.boundary), path, notices)
        for run, path in zip((run_a, run_b), args.paths, strict=True)
    )
    comparison = compared(run_a, run_b, a, b, every=every)
    output.announce(notices, args)
    output.emit_page(
        args,
        lambda style: page(comparison, style, verbose=args.verbose),
        lambda: as_data(comparison),
        SYMBOLS,
    )
    return int(args.exit_code and not comparison.same)


def _args(arguments: list[str]) -> CompareOptions:
    args = parse(CompareOptions, arguments)
    if len(args.paths) < 2:
        raise UsageError("cfglint compare needs two configs, A and B; see cfglint compare --help")
    if len(args.paths) > 2:
        raise UsageError(f"cfglint compare takes two configs; {args.paths[2]!r} is a third")
    if args.paths == ["-", "-"]:
        raise UsageError("cfglint compare reads one config from stdin, not both")
    if len(args.sides) > 2:
        raise UsageError("--framework is given once for both configs, or twice: first A's, then B's")
    args.framework = args.sides[0] if args.sides else None
    return options.merged(args)
