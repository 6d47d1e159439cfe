"""Where a command's words go: notices to stderr, pages and patches to stdout or ``--output-file``."""

from __future__ import annotations

import os
import sys

from cfglint import files
from cfglint.findings import LEVELS
from cfglint.report import Style, render, written
from cfglint.text import harmless, shown, without_marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

    from cfglint.command.options import Options
    from cfglint.document.tree import File
    from cfglint.findings import Report
    from cfglint.report import Page


_MOST_NAMED = 10  # files that were not judged
_FAILING = {"tight": ("tight", "oom"), "not-judged": ("unknown",)}  # verdicts by the words of --fail-on


def say(line: str) -> None:
    """Print a notice where it does not mix with the report; it is one line, whatever it quotes."""
    print(f"cfglint: {without_marks(shown(line))}", file=sys.stderr)


def tell(text: object = "") -> None:
    """Print lines that a command has to say; they may quote anything."""
    for line in str(text).split("\n"):
        print(harmless(shown(line)))


def announce(notices: Iterable[str], args: Options) -> None:
    """Print notes on the targets and the file."""
    if not args.quiet:
        for notice in notices:
            say(notice)


def complain(errors: Iterable[str]) -> None:
    """Print errors, the same one once."""
    for line in dict.fromkeys(errors):
        say(f"error: {line}")


# ── pages ──────────────────────────────────────────────────────────────────────────────────────────────────
def emit(page: Callable[[Style], str], args: Options, symbols: str = "", *, to: TextIO | None = None) -> None:
    """Print a page, or write it to ``--output-file``; ``symbols`` are what it would like to show."""
    if args.output_file is not None:
        args.boundary.check(args.output_file, given=True)
        files.write(args.output_file, _safe(page(Style()), args).encode("utf-8", "backslashreplace"))
        return
    stream = sys.stdout if to is None else to
    stream.write(_safe(page(terminal(stream, symbols, color=not args.no_color)), args))


def _safe(text: str, args: Options) -> str:
    return without_marks(text) if args.format == "github" else harmless(text)


def emit_page(args: Options, page: Page, data: Callable[[], object], symbols: str = "") -> None:
    """Print what a feature has to say, in the form of ``--format``."""
    emit(lambda style: written(args.format or "text", style, page, data), args, symbols)


def terminal(stream: TextIO, symbols: str, *, color: bool) -> Style:
    """Return what a stream shows: colours and lines of a width on a terminal, and whether all ``symbols``."""
    if not stream.isatty():
        return Style(unicode=_takes(stream, symbols))
    color = color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        width = os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        width = 80
    return Style(color=color, width=width, unicode=_takes(stream, symbols))


def _takes(stream: TextIO, symbols: str) -> bool:
    try:
        symbols.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def emit_report(report: Report, args: Options, *, bad: bool = False, to: TextIO | None = None) -> None:
    """Print the report, or write it to ``--output-file``; ``bad`` says that errors were printed before."""
    form = args.format or "text"
    for_people = form in ("text", "concise")
    if bad and not report.files and for_people:
        return
    if args.quiet:
        report.findings = [f for f in report.findings if f.level == "error"]
        report.undecided = []
        if not report.findings and for_people:
            return

    def page(style: Style) -> str:
        return render(report, form, color=style.color, width=style.width, verbose=args.verbose)

    emit(page, args, to=to)


def failed(report: Report, args: Options) -> int:
    """Return 1 if the report holds something at or above ``--fail-on``, else 0."""
    words = (args.fail_on or "error").split(",")
    failing = {verdict for word, verdicts in _FAILING.items() if word in words for verdict in verdicts}
    if any(job.memory.verdict in failing for job in report.jobs):
        return 1
    if "skipped" in words and report.unjudged:
        if not args.verbose:
            named = sorted(path for paths in report.unjudged.values() for path in paths)
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            say(f"not judged: {', '.join(named[:_MOST_NAMED])}{more}; --verbose says why")
        return 1
    if "never" in words:
        return 0
    least = min((LEVELS.index(word) for word in words if word in LEVELS), default=LEVELS.index("error"))
    return int(any(LEVELS.index(finding.level) >= least for finding in report.findings))


# ── files and patches ──────────────────────────────────────────────────────────────────────────────────────
def put(data: bytes) -> None:
    """Print bytes as they are: a file is no longer the same with other line ends or escapes."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
    else:  # a stream of text stands in for it
        sys.stdout.write(data.decode("utf-8", "surrogateescape"))


def patch(path: str, file: File, text: str) -> str:
    """Return the patch that gives a file a new text, for git to apply from here."""
    from cfglint.report.changes import unified

    bom = "\ufeff" if file.bom else ""
    name = "stdin.yaml" if path == "-" else os.path.relpath(path)
    if name.startswith(os.pardir):
        name = os.path.abspath(path)  # git takes no path that leads out of its tree; from / this one applies
    return unified(name.replace(os.sep, "/"), bom + file.text, bom + text)
