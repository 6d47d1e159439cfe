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
cfglint: what will break or be wasted in a GPU training config, with the arithmetic, and the fix

  cfglint check [PATH…]    lint; PATH a file, a folder or - (default: .)
  cfglint fix [PATH…]      apply fixes   [--diff] [--unsafe] [--annotate] [--output FILE]
  cfglint fit PATH         per GPU: fits / tight / oom / unknown, memory by part, cheapest fix  [--gpu all]
  cfglint compare A B      what differs, in words and with both keys; memory of each, what the change does
  cfglint plan PATH        what reaches an effective batch on N GPUs: memory, time, the row to take  [--write]
  cfglint explain CODE     a rule, its reason and its source; with PATH, how it comes out on that file
  cfglint diagnose LOG…    why memory ran out, by the log of a job   [--config PATH]: and the fix
  cfglint verify [PATH]    what the processes on this machine's GPUs hold, beside what was predicted
  cfglint hardware         what NVML reports here [--json]: a sheet to commit and lint against
  cfglint gpus [NAME]      the GPUs that cfglint knows
  cfglint rules            the rules
  cfglint frameworks       the frameworks that it recognises; with PATH…, what each file is taken for, and why
  cfglint schema NAME      the JSON Schema of a framework's keys, for editors   [--list]
  cfglint test [RULES…]    run the rules' own examples, and find rules that are at odds
  cfglint init             write settings, the pre-commit entry and the CI workflow

Each takes --help. Exit status: 0 nothing at or above --fail-on (default: error), 1 findings, 2 the command,
the settings, a rule file or an unreadable PATH is wrong.
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
        raise UsageError(f"a command comes first: cfglint check {name} …; see cfglint --help")
    if files.exists(name):
        raise UsageError(f"no command is named {name!r}; to lint it: cfglint check {name}")
    near = did_you_mean(name, COMMANDS) or f"; known are {', '.join(COMMANDS)}"
    raise UsageError(f"no command is named {name!r}{near}")


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
        line = f"error: the output cannot be written: {files.why(error)}"
    else:
        from cfglint.cli.foreign import mixed

        line = mixed() or bug(error)
    print(f"cfglint: {line}", file=sys.stderr)


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

    if isinstance(error, RulesError) and len(error.complaints) > 1:
        # Each with its place, as editors jump to it.
        print(error, file=sys.stderr)
        count = len(error.complaints)
        print(f"cfglint: error: the rules do not load: {count:,} mistakes, shown above", file=sys.stderr)
        return
    print(f"cfglint: error: {error}", file=sys.stderr)
