"""What a repair needs of its framework that an older version of it, which may be the one at hand, lacks."""

from __future__ import annotations

from cfglint.engine.ages import older
from cfglint.engine.judge import values_for
from cfglint.lang.versions import spelled
from cfglint.record import replace
from cfglint.repair.consumer import Consumer
from cfglint.repair.invert import ABSENT
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cfglint.engine.subject import Judged
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Writer
    from cfglint.text import Edit


def for_a_newer(option: Option, writer: Writer) -> None:
    """Say of an option which release its keys came with, where nobody knows whether that is there."""
    added = (each.path for each in option.written if each.value is not ABSENT)
    reader = Consumer(writer.subject, writer.origins.symbols)
    newer = [one for path in added if (one := reader.came(path)) is not None]
    if newer:
        last = max(newer, key=lambda one: one.release)
        option.risk = worse(option.risk, "numerics")
        option.effects.append(f"needs {last.package} >= {spelled(last.release)}")


def refused_by(trials: Trials, edits: tuple[Edit, ...], watched: Collection[Judged]) -> str:
    """Say which older release, which may be the one at hand, stops at a repair; nothing where none does."""
    for old, new in zip(trials.judgements, trials.judged_after(edits) or (), strict=False):
        if old not in watched:
            continue
        for version in older(old):
            before = set(_stops(trials, old, version))
            after = (code for code in _stops(trials, new, version) if code not in before)
            if (code := next(after, None)) is not None:
                name = trials.run.finder.symbols.rules[code].name
                return f"{old.subject.framework} {spelled(version)} would stop at it: {code} ({name})"
    return ""


def _stops(trials: Trials, judged: Judged, version: tuple[float, ...]) -> Iterator[str]:
    """Yield the errors of a document in a version, but for those that rest on an estimate."""
    subject = replace(judged.subject, version=version)
    values = values_for(subject, judged.values.given)
    for rule in trials.run.rules(subject, values):
        if rule.level == "error" and not rule.code.startswith("MEM") and rule.test(values) is False:
            yield rule.code
