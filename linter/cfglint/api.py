"""The Python interface: lint or fix a text, without touching the disk or printing anything."""

from __future__ import annotations

from contextlib import suppress

from cfglint.budget import BUDGET
from cfglint.document.reading import read_text, unread
from cfglint.engine.run import Run
from cfglint.errors import OverBudgetError, UsageError
from cfglint.hardware.target import Target, parse_target
from cfglint.lang.pack import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from cfglint.document.reading import Reader
    from cfglint.document.tree import File
    from cfglint.engine.find import Found
    from cfglint.engine.subject import Judged
    from cfglint.findings import Report

    Hardware: TypeAlias = str | Target | Sequence[str | Target]

PREFIXES = ("CFG", "MEM", "PAR", "BAT", "PRC", "ENG", "PRF", "RUN", "DOC", "CLI", "USR")


def selector(select: Sequence[str], ignore: Sequence[str], codes: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for codes: those that ``select`` names (all, if empty) without those of ``ignore``.

    Both take codes and prefixes. Raises UsageError for one that matches no rule.
    """
    for wanted in (*select, *ignore):
        if wanted not in PREFIXES and not any(code.startswith(wanted) for code in codes):
            from cfglint.errors import did_you_mean

            near = did_you_mean(wanted, (*PREFIXES, *codes))
            raise UsageError(f"unknown rule code {wanted!r}{near or '; list them: cfglint rules'}")
    chosen, left_out = tuple(select), tuple(ignore)
    if not chosen and not left_out:
        return lambda _: True
    return lambda code: (
        (not chosen or code.startswith(chosen)) and not (left_out and code.startswith(left_out))
    )


def _run(
    hardware: Hardware | None,
    rules: Mapping[str, str] | None,
    framework: str | None,
    overrides: Sequence[str],
    read: Reader | None,
) -> Run:
    if hardware is None:
        hardware = []
    elif isinstance(hardware, (str, Target)):
        hardware = [hardware]
    targets = [parse_target(name) if isinstance(name, str) else name for name in hardware]
    pack = load(rules)
    if framework is not None and framework not in pack.frameworks:
        raise UsageError(f"unknown framework {framework!r}; known: {', '.join(pack.frameworks)}")
    library = None
    if read is not None:
        from cfglint.document.reading import Library

        library = Library(read)
    return Run(pack, targets, framework=framework, overrides=overrides, library=library)


def check_file(run: Run, file: File, *, explicit: bool = True) -> bool:
    """Check a file, attach fixes and add to the run's report; return False if no framework recognises it."""
    return run.add(file, explicit=explicit, mend=_attach)


def _attach(run: Run, judgements: Sequence[Judged], found: Sequence[Found]) -> None:
    from cfglint.repair.attach import attach  # not before there is something to fix

    attach(run, judgements, found)


def check_text(  # noqa: PLR0913 (keywords of the public interface)
    text: str,
    *,
    path: str,
    hardware: Hardware | None = None,
    rules: Mapping[str, str] | None = None,
    framework: str | None = None,
    overrides: Sequence[str] = (),
    read: Reader | None = None,
) -> Report:
    """Return the report on ``text``, linted as the file ``path`` (its suffix determines the format).

    ``hardware`` is a GPU name like ``"rtx-4090:8"``, a Target, several of either, or None. ``rules`` holds
    further rule files, texts by path. ``read`` gives the bytes of the files that a config names (None for
    what is not a file); without it, their values are missing. Raises CfglintError for an unknown name and
    for a rule that does not load.
    """
    run = _run(hardware, rules, framework, overrides, read)
    _check(run, text, path)
    return run.report


def _check(run: Run, text: str, path: str) -> None:
    with BUDGET:
        try:
            file = read_text(text, path)
        except OverBudgetError as why:
            run.overran(unread(b"", path, str(why)), str(why))
        else:
            check_file(run, file)


def fix_text(  # noqa: PLR0913 (keywords of the public interface)
    text: str,
    *,
    path: str,
    hardware: Hardware | None = None,
    rules: Mapping[str, str] | None = None,
    framework: str | None = None,
    overrides: Sequence[str] = (),
    unsafe: bool = False,
    least: str = "warning",
    read: Reader | None = None,
) -> tuple[str, Report]:
    """Return ``text`` with its fixes applied, and the report on the result.

    ``least`` is the lowest level that is fixed (``info``, ``warning``, ``error``); ``unsafe`` allows fixes
    that may change training results. The rest is as for `check_text`, errors included.
    """
    from cfglint.repair.apply import repair

    run = _run(hardware, rules, framework, overrides, read)
    fixed = text
    with BUDGET, suppress(OverBudgetError):  # then the report says so
        fixed = repair(run, read_text(text, path), unsafe=unsafe, least=least, notes=False).text
    _check(run, fixed, path)
    return fixed, run.report
