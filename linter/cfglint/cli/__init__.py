"""The command line: finds the command, runs it, and turns what goes wrong into one line and a status.

What it needs is imported when it runs: another package may have replaced a module, and `main` says so.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.errors import CfglintError

# Each command's line starts with its name, and its function is `main` in the feature of that name.
_HELP = """\
cfglint checks GPU training configs before you run them: what will break or waste money, and how to fix it.

  cfglint check [PATH…]    check files, folders or - (default: .)
  cfglint fix [PATH…]      apply fixes   [--diff] [--unsafe] [--annotate] [--output FILE]
  cfglint fit PATH         memory by part, verdict (fits, tight, oom) and cheapest fix per GPU  [--gpu all]
  cfglint compare A B      which settings differ, the memory of each config, what the change does
  cfglint plan PATH        combinations that make an effective batch: memory, time, the best one  [--write]
  cfglint explain CODE     a rule, its reason and its source; with PATH, its arithmetic on that file
  cfglint facts PATH…      what was read of each job, from where, and what would tell the rest
  cfglint diagnose LOG…    find out from a job's log why memory ran out; with --config, a fix
  cfglint run -- COMMAND   judge a launch on this machine, then start it, or exit with 1   [--force]
  cfglint verify [PATH]    memory of each process on this machine's GPUs, next to the prediction
  cfglint hardware         this machine's GPUs  [--json]: write a sheet for --hardware
  cfglint gpus [NAME]      list the GPUs in the catalogue
  cfglint rules            list the rules
  cfglint frameworks       list the frameworks; with PATH…, the framework of each file, and why
  cfglint schema NAME      the JSON Schema of a framework's keys, for editors   [--list]
  cfglint test [RULES…]    run the examples in rule files, and find rules that contradict each other
  cfglint init             write settings, the pre-commit entry and the CI workflow

Each command has --help. Exit status: 0 no finding at or above --fail-on (default: error), 1 findings,
2 error in the command line, the settings or a rule file, or a PATH that cannot be read.
"""
COMMANDS = tuple(line.split()[1] for line in _HELP.splitlines() if line.startswith("  cfglint "))
_CATALOGUE = ("hardware", "gpus", "rules", "frameworks", "schema")  # small ones, in one module


def _command(name: str) -> Callable[[list[str]], int]:
    """Return the function that runs a command, its module imported. Raises UsageError."""
    from cfglint import files
    from cfglint.errors import UsageError, did_you_mean

    if name in COMMANDS:
        feature, function = ("catalogue", name) if name in _CATALOGUE else (name, "main")
        module = __import__(f"cfglint.features.{feature}", fromlist=[function])
        run: Callable[[list[str]], int] = getattr(module, function)
        return run
    if name.startswith("-"):
        raise UsageError(f"put the command first: cfglint check {name} …; see cfglint --help")
    if files.exists(name):
        raise UsageError(f"unknown command {name!r}; to check that file: cfglint check {name}")
    near = did_you_mean(name, COMMANDS) or f"; known: {', '.join(COMMANDS)}"
    raise UsageError(f"unknown command {name!r}{near}")


def main(argv: list[str] | None = None) -> int:
    """Run cfglint on ``argv``, or as the command of this process; returns the exit status."""
    if argv is not None:
        return _guarded(argv)
    # A tenth of a clean run would go into looking for garbage among what was just loaded: look rarely, and
    # not at all when the process ends.
    gc.set_threshold(100_000, 50, 100)
    status = _guarded(sys.argv[1:])
    gc.freeze()
    return status


def _guarded(arguments: list[str]) -> int:
    try:
        from cfglint import about, errors, files  # noqa: F401 (all that is needed to say what goes wrong)
    except ImportError:
        from cfglint.cli.foreign import mixed

        problem = mixed()
        if problem is None:
            raise
        print(f"cfglint: {problem}", file=sys.stderr)
        return 2
    _open_streams()
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the report has read enough
        _give_up_stdout()
        return 1
    except errors.CfglintError as error:
        _complain(error)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if "CFGLINT_TRACEBACK" in os.environ:
            raise
        _apologise(error)
        return 2
    return status


def _apologise(error: Exception) -> None:
    from cfglint import files
    from cfglint.errors import bug

    if isinstance(error, OSError) and error.filename is None:
        # A file of the user has its name, and its own message before it comes here; this is stdout.
        _give_up_stdout()
        line = f"error: cannot write the output: {files.why(error)}"
    else:
        from cfglint.cli.foreign import mixed

        line = mixed() or bug(error)
    _say(line)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(_HELP)
        return 0
    if arguments[0] in ("-V", "--version", "version"):
        from cfglint import about
        from cfglint.cli.foreign import mixed

        print(f"cfglint {about.VERSION}")
        problem = mixed()
        if problem is not None:
            print(f"cfglint: {problem}", file=sys.stderr)
        return 0 if problem is None else 2
    return _command(arguments[0])(arguments[1:])


def _open_streams() -> None:
    """Make stdout and stderr take any text; where the caller closed one, what is written to it is dropped."""
    from cfglint import files

    if sys.stdout is None:
        sys.stdout = files.nowhere()
    if sys.stderr is None:
        sys.stderr = files.nowhere()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """Let the interpreter's last flush go nowhere, or it would complain once more."""
    from cfglint import files

    try:
        with files.nowhere() as sink:
            os.dup2(sink.fileno(), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _complain(error: CfglintError) -> None:
    from cfglint.errors import RulesError
    from cfglint.text import harmless, shown

    if isinstance(error, RulesError) and len(error.complaints) > 1:
        # Each with its place, as editors jump to it.
        print(*(harmless(shown(line)) for line in error.lines()), sep="\n", file=sys.stderr)
        _say(f"error: the rules do not load: {len(error.complaints):,} errors, shown above")
        return
    _say(f"error: {error}")


def _say(line: str) -> None:
    from cfglint.text import shown, without_marks

    print(f"cfglint: {without_marks(shown(line))}", file=sys.stderr)
