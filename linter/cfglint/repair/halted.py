"""What lets a program go on that stops at its config: keys that it misses, or what people have to change."""

from __future__ import annotations

from cfglint.document.shell.edits import insert, spelled
from cfglint.engine.halts import STOPS, halts_by
from cfglint.findings import Fix
from cfglint.repair.workers_told import WORKERS, leave_out
from cfglint.repair.write import shown
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.document.view import View
    from cfglint.engine.halt import Missing
    from cfglint.engine.subject import Judged
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal, Trials
    from cfglint.schema.table import Mistake

HALTED = "CFG034"


def added(judged: Judged) -> Fix | None:
    """Return what adds the keys that a program misses, as configs beside its own have them all."""
    stops: list[Mistake] = judged.values[STOPS]  # type: ignore[assignment]
    told = stops[0].missing if len(stops) == 1 else ()
    unheard = " and ".join(each.key for each in told if each.later and not each.file)
    missing = [each for each in told if each.file or not each.later]
    words = [f"{each.key}={spelled(each.value)}" for each in missing if each.file and spelled(each.value)]
    if not words or len(words) < len(missing) or any("," in word for word in words):
        return None
    first = insert(judged.subject.document, tuple(missing[0].key.split(".")), missing[0].value)
    gap, found, _ = first.new.partition(words[0]) if first is not None else ("", "", "")
    if first is None or not found or gap.strip(" \t\\\r\n") or first.start != first.end:
        return None
    given = [f"+{word}" for word in words]
    files = " and ".join(dict.fromkeys(each.file for each in missing))
    then = f"; {unheard}, which may be read later, no other config here has" if unheard else ""
    return Fix(
        0,
        f"add {', '.join(given[:-1])} and {given[-1]}" if given[1:] else f"add {given[0]}",
        (Edit(first.start, first.end, "".join(gap + each for each in given)),),
        applicability="unsafe",
        effect=f"as in {files}; whether the job wants the same is not known{then}",
        risk="optimization",
        notes=(f"cfglint: added ({HALTED})",),
    )


def would_halt(trials: Trials, option: Option, read: Callable[[Option], View | None]) -> bool:
    """Whether a program that goes on would stop at what an option writes."""
    told = {each.path: each.value for each in option.written}
    return trials.may_halt and halts_by(trials.subject, told, lambda: read(option))


def by_hand(goal: Goal) -> str:
    """Say what people have to change that no key of the file moves; nothing of other rules."""
    if goal.code == WORKERS:
        return leave_out(goal.judged)
    return of_a_stop(goal.judged) if goal.code == HALTED else ""


def of_a_stop(judged: Judged) -> str:
    """Say which keys decide that a program stops, whose values only people know."""
    told = []
    stops: list[Mistake] = judged.values[STOPS]  # type: ignore[assignment]
    for stop in stops:
        if not stop.key:
            by = f"what the job is about decides: change {stop.note.replace(' and ', ' or ')} by hand"
            told.append("; ".join((by, *(_with(each) for each in stop.missing))))
            continue
        asked = [each.key for each in stop.missing if not each.file]
        has = _as_others(stop)
        plural = "values" if asked[1:] else "value"
        own = f"only people know which {plural} {' and '.join(asked)} should have: write "
        own += f"{' '.join(f'+{key}=…' for key in asked)} there"
        able = [each for each in stop.missing if not each.file and each.value is not None]
        own += "".join(f" ({_with(each)})" for each in able)
        told += [f"{own}{has and f', and {has}'}" if asked else f"write {has}"]
    return "; ".join(told)


def _with(way: Missing) -> str:
    """Say what becomes of a program with another value of a key."""
    then = f"it stops at {way.file}" if way.file else "the program goes on"
    return f"with {way.key} {shown(way.value)}, {then}"


def _as_others(stop: Mistake) -> str:
    """Return the words that other files would give a command, and those files."""
    there = [each for each in stop.missing if each.file]
    words = " ".join(f"+{each.key}={shown(each.value)}" for each in there)
    return f"{words} as in {' and '.join(dict.fromkeys(each.file for each in there))}" if there else ""
