"""``cfglint compare A B``: what differs between two configs, the memory of each, and what the change does."""

from __future__ import annotations

from cfglint.command import options, output
from cfglint.command.flags import LIST, TEXT, Args, Flag, Parser
from cfglint.errors import UsageError
from cfglint.features.compare.render import FORMATS, render_comparison
from cfglint.features.fit.command import FLAGS as FIT_FLAGS
from cfglint.features.fit.command import SYMBOLS, _run, _subject, _targets

TYPE_CHECKING = False

_WORDS = "A B"
_FIT = {flag.name: flag for flag in FIT_FLAGS}
_SHARED = {flag.name: flag for flag in options.SHARED}
FLAGS = (
    *(_FIT[name] for name in ("gpu", "hardware", "no-detect")),
    Flag(
        "framework",
        "what the files are for, instead of recognising it; given twice, first A's and then B's",
        kind=LIST,
        metavar="NAME[==VERSION]",
        group="rules",
    ),
    *(_FIT[name] for name in ("set", "rules", "model-config", "online")),
    Flag(
        "format",
        f"one of {', '.join(FORMATS)} (default: text)",
        kind=TEXT,
        metavar="FORM",
        choices=FORMATS,
        group="output",
    ),
    _SHARED["output-file"],
    Flag("exit-code", "exit with 1 where something differs, as git diff does", group="output"),
    Flag("quiet", "no notices", short="q", group="output"),
    Flag("verbose", "all keys, all that follows, and sources", short="v", group="output"),
    _SHARED["no-color"],
)


class _Parser(Parser):
    """A parser whose help says that there are two paths."""

    def help(self) -> str:
        return super().help().replace(f"{_WORDS}…", _WORDS)


def parser() -> Parser:
    """Return the flags of ``compare``."""
    about = (
        "What differs between two configs, in words and with both keys; the memory of each on every target, "
        "and what the change does."
    )
    return _Parser(
        "compare",
        about,
        FLAGS,
        positional=("paths", _WORDS, "two configs, of one framework or of two; - for stdin"),
        many=True,
        needed=True,
    )


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = _args(arguments)
    names = _frameworks(args)
    every, found, notices = _targets(args)
    args.framework = names[0]
    runs = [_run(args, found)]
    args.framework = names[1]
    framework, version = options.framework(args, runs[0].pack)
    runs.append(runs[0].but(framework=framework, version=version))
    subjects = []
    for run, path in zip(runs, args.paths, strict=True):
        args.path = path
        subjects.append(_subject(run, args, notices))
    from cfglint.features.compare.sides import compared

    comparison = compared(runs[0], runs[1], *subjects, every=every)
    output.announce(notices, args)
    form, verbose = args.format or "text", bool(args.verbose)
    output.emit(lambda style: render_comparison(comparison, form, style, verbose=verbose), args, SYMBOLS)
    return int(bool(args.exit_code) and not comparison.same)


def _args(arguments: list[str]) -> Args:
    args = parser().parse_args(arguments)
    if len(args.paths) < 2:
        raise UsageError("cfglint compare wants two configs, A and B; see cfglint compare --help")
    if len(args.paths) > 2:
        raise UsageError(f"cfglint compare takes two configs, and {args.paths[2]!r} is a third one")
    if args.paths == ["-", "-"]:
        raise UsageError("cfglint compare reads one config from stdin, not both")
    if len(args.framework or ()) > 2:
        raise UsageError("--framework is given once for both configs, or twice: first A's, then B's")
    form = args.format
    args.rule = args.select = args.ignore = None
    args = options.merged(args)
    args.format = form  # the settings' form is one of reports
    args.rule = None
    return args


def _frameworks(args: Args) -> tuple[str | None, str | None]:
    """Return the framework of each config, where the flags or the settings name one."""
    named = args.framework
    if named is None or isinstance(named, str):  # the settings have one
        return named, named
    return named[0], named[-1]
