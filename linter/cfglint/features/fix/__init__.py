"""``cfglint fix``: derive, prove and write fixes; ``--diff`` only shows them."""

from __future__ import annotations

import sys

from cfglint import files
from cfglint.api import check_file
from cfglint.command import free, inputs, options, output, parse, setup, switch, text
from cfglint.command.setup import Outcome, outcomes
from cfglint.errors import UsageError
from cfglint.findings import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.run import Run
    from cfglint.repair.apply import Repaired

_UNJUDGED = ("CFG001", "CFG023")  # what says that a file was not judged


class FixOptions(options.Options):
    """The flags of ``fix``."""

    command = "fix"
    about = "Fix configs: change only the values that have to change, and prove each fix by linting again."
    offers = ("diff", "unsafe", "accept_may", "annotate", "output", "fix_level", *options.SHARED)

    paths: list[str] = free("PATH", options.PATHS, many=True, default=["."])
    diff: bool = switch(
        "print a unified diff instead of writing; exit with 1 if it is not empty", group="fixes"
    )
    unsafe: bool = switch("also apply fixes that may change the training's results", group="fixes")
    accept_may: bool = switch(
        "also apply fixes that may not be enough, if no certain one exists", group="fixes"
    )
    output: str | None = text(
        "write the fixed copy to FILE and leave the original alone", "FILE", group="fixes"
    )


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parse(FixOptions, arguments))
    if args.output is not None:
        if args.diff:
            raise UsageError("--diff shows what --output would write: choose one of them")
        if len(args.paths) != 1 or (args.paths[0] != "-" and files.is_folder(args.paths[0])):
            raise UsageError("--output takes exactly one PATH, a file")
    run = setup.run(args)
    output.announce(run.report.notices, args)
    wrong: list[str] = []
    paths = list(inputs.find(args.paths, args.boundary, wrong.append))
    diffs: list[str] = []
    for outcome in outcomes(run, args, paths, _fix):
        diffs.append(outcome.diff)
        error = outcome.error or _written(outcome, args)
        if error is not None:
            wrong.append(error)
    output.complain(wrong)
    if args.diff:
        data = "".join(diffs).encode("utf-8", "surrogateescape")
        if args.output_file is not None:
            args.boundary.check(args.output_file, given=True)
            files.write(args.output_file, data)
        else:
            output.put(data)
        unjudged = [finding for finding in run.report.findings if finding.code in _UNJUDGED]
        if unjudged or run.report.unjudged:
            run.report.findings, run.report.undecided = unjudged, []
            args.output_file, args.format = None, "concise"
            output.emit_report(run.report, args, to=sys.stderr)
        elif run.report.findings and not any(diffs):  # what it would take more than was asked for
            from cfglint.report.order import counts, grouped

            output.announce([counts(run.report, grouped(run.report.findings))], args)
        return 2 if wrong else int(bool(unjudged) or any(diffs))
    status = 2 if wrong else output.failed(run.report, args)
    # Where stdout has the fixed text, the report goes where notices go.
    stream = sys.stderr if "-" in args.paths and args.output is None else sys.stdout
    sys.stdout.flush()
    output.emit_report(run.report, args, bad=bool(wrong), to=stream)
    return status


def _fix(run: Run, args: FixOptions, path: str, named: bool, outcome: Outcome) -> None:
    explicit = named and not args.skip_unknown
    file, content = inputs.load(path, args.boundary, named=named)
    outcome.before = content
    if not run.subjects(file, judge_broken=explicit or inputs.was_recognised(run, file)):
        if explicit:
            raise UsageError(inputs.unknown(path, inputs.SKIP))
        outcome.skipped = inputs.why_unknown(file, inputs.launches_missed(run, file, judged=False))
        if path == "-" or args.output is not None:
            outcome.content = content  # a filter gives back what it does not know
        return
    outcome.in_part = inputs.why_in_part(inputs.launches_missed(run, file, judged=True))
    from cfglint.budget import TOO_LONG
    from cfglint.document.reading import read_text
    from cfglint.repair.apply import repair

    least = args.fix_level or "warning"
    result = repair(
        run, file, unsafe=args.unsafe, least=least, notes=args.annotate, accept_may=args.accept_may
    )
    changed = result.text != file.text and (named or not files.is_link(path))  # it is fixed where it is
    if args.diff:
        if changed:
            outcome.diff = output.patch(path, file, result.text)
        asked_all = changed or (args.unsafe and args.accept_may)
        if not asked_all or result.over or any(document.error is not None for document in file.documents):
            check_file(run, file)
        if result.over:
            outcome.applied = [f"{path}: {TOO_LONG}; there may be more to fix"]
        return
    # An unchanged file is given back by its bytes: one that is not UTF-8 has a text that stands for it only.
    if changed or path == "-" or args.output is not None:
        outcome.content = file.encode(result.text) if changed else content
    outcome.applied = _lines(result, args.output or file.path, marked=args.annotate) if changed else []
    run.fixes = 0
    check_file(
        run, read_text(result.text, file.path, bom=file.bom, scripts=file.scripts) if changed else file
    )


def _lines(result: Repaired, path: str, *, marked: bool) -> list[str]:
    from cfglint.report.blocks import doubt_of
    from cfglint.report.outcome import results_told

    lines = []
    for finding, fix in result.applied:
        sure = "" if fix.certainty == "sure" else f", {doubt_of(fix)}"
        untrue = [] if marked else [f"a comment beside it still says {each.says}" for each in fix.stale]
        told = "; ".join(filter(None, (fix.effect, results_told(fix.results), *untrue)))
        end = f": {told}" if told else ""
        lines.append(f"{path}: {fix.title} ({fix.applicability}{sure}, {finding.code}){end}")
    return lines


def _written(outcome: Outcome, args: FixOptions) -> str | None:
    """Write a file's new content and say what was done; returns what went wrong."""
    if outcome.content is not None:
        to = args.output or outcome.path
        if to == "-":
            output.put(outcome.content)
        else:
            try:
                args.boundary.check(to, given=True)
                over = outcome.before if files.is_same(to, outcome.path) else None
                names = files.write(to, outcome.content, over=over)
            except UsageError as error:
                outcome.report = Report()  # which is about what the file would be
                return str(error)
            if names > 1:
                told = f"{to}: has {names} names (hard links), and the new text is in all"
                output.announce([told], args)
    output.announce(outcome.applied, args)
    return None
