"""``cfglint facts PATH…``: what was read of each job, from where, and what would tell the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.budget import BUDGET, Alarm
from cfglint.command import form, free, inputs, options, output, parse, setup, switch, text
from cfglint.errors import OverBudgetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.tree import File
    from cfglint.engine.run import Run
    from cfglint.features.facts.compute import Job, Unread


_LENGTHS = ("data", "tokenizer", "field")


class FactsOptions(options.Options):
    """The flags of ``facts``."""

    command = "facts"
    about = (
        "Show what was read of each job: its program, every fact with its place, what is unknown and what to "
        "type to tell it."
    )
    offers = (
        *(flag for flag in options.MODEL if flag != "lengths"),
        *_LENGTHS,
        "format",
        "output_file",
        "quiet",
        "verbose",
        "no_color",
    )

    paths: list[str] = free("PATH", "files or folders, - for stdin", many=True)
    data: str | None = text(
        "write a sheet of how long the samples of DATA are (JSON lines, JSON, Parquet, or the log of a run), "
        "for --lengths of the other commands",
        "DATA",
        name="lengths",
        group="data",
    )
    tokenizer: str | None = text(
        "count with this tokenizer.json, or the one in a folder (default: a range, by bytes)",
        "PATH",
        group="data",
    )
    field: str | None = text(
        "the field that is trained on (default: text, messages, or prompt and answer)", "NAME", group="data"
    )
    format: str | None = form(("text", "json"))
    verbose: bool = switch("also list defaults and what is derived", short="v", group="output")


def main(arguments: list[str]) -> int:
    """Print what was read; 1 where a named file holds no job, 2 where one cannot be read."""
    args = options.merged(parse(FactsOptions, arguments))
    if args.data is not None:
        from cfglint.features.facts.lengths import sheet

        written = sheet(args.data, args.tokenizer, args.field)
        output.emit(lambda _: written, args)
        return 0
    if not args.paths:
        raise UsageError("cfglint facts needs PATH; see cfglint facts --help")
    run = setup.run(args)
    output.announce(run.report.notices, args)
    wrong: list[str] = []
    jobs: list[Job] = []
    unread: list[Unread] = []
    empty = False
    for path, named in inputs.find(args.paths, args.boundary, wrong.append):
        try:
            with BUDGET, Alarm():
                file, _ = inputs.load(path, args.boundary, named=named)
                own = list(_jobs(run, file))
                missed = list(_unread(run, file, judged=bool(own)))
        except inputs.Skipped:
            continue
        except (OverBudgetError, UsageError) as error:
            wrong.append(str(error) if isinstance(error, UsageError) else f"{path}: {error}")
            continue
        jobs += own
        unread += missed
        empty = empty or (named and not own)
    output.complain(wrong)
    from cfglint.features.facts.page import as_data, page

    output.emit_page(args, lambda _: page(jobs, unread, verbose=args.verbose), lambda: as_data(jobs, unread))
    return 2 if wrong else int(empty)


def _jobs(run: Run, file: File) -> Iterator[Job]:
    """Yield what was read of the jobs of a file, on each target."""
    from cfglint.features.catalogue.recognition import recognition
    from cfglint.features.facts.compute import job_of

    named, _ = run.named_for(file.path)
    for subject in run.subjects(file, judge_broken=False):
        if subject.document.error is not None or subject.framework is None:
            continue
        sure, why = None, ""
        if named is None:
            known = recognition(run, subject.document.whole, None, "", None)
            sure, why = known.sure, known.why
        for judged in run.judged(subject):
            yield job_of(run, judged, sure, why)


def _unread(run: Run, file: File, *, judged: bool) -> Iterator[Unread]:
    """Yield the launches of a file that no job is made of."""
    from cfglint.features.facts.compute import Unread

    for place, why in inputs.unread(run, file, inputs.launches_missed(run, file, judged=judged)):
        yield Unread(file.path, file.lines.position(min(place, len(file.text)))[0], why)
