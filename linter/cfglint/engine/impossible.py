"""Numbers of a file that cannot be: outside of the range of the fact that they give.

Nothing is computed from such a number (facts.py takes it for missing); a rule says so once, at its key.
"""

from __future__ import annotations

from cfglint.document.tree import dotted
from cfglint.facts import is_within
from cfglint.lang.runtime import as_number
from cfglint.lang.values import INF
from cfglint.schema.table import ANY, Mistake, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.engine.subject import Subject
    from cfglint.facts import Alternative, Steps, Values
    from cfglint.lang.pack import Pack, Spec

    Read = tuple[str, Spec, Steps, Alternative]

CODE = "CFG027"  # of the rule
_NO_NODE = (ANY, None, None, None, ANY, ANY, "")  # of a schema
_LEAST_PERCENT, _MOST_PERCENT = 5, 100  # 60 in a fraction's place is 60 %; what 1.5 means, nobody knows


def impossible(subject: Subject, facts: Callable[[], Values]) -> Iterator[Mistake]:
    """Yield the numbers of a document that its ``facts`` cannot have, each once.

    ``kind`` of a mistake is the fact, ``text`` the number. Only the binding that is in force counts: what a
    framework does not read does no harm.
    """
    if subject.framework is None:
        return
    told: set[Steps] = set()
    values: Values | None = None  # most files have no such number
    for name, spec, path, alternative in _read(subject.pack, subject.framework):
        value = as_number(subject.view.get(path)) if path not in told else None
        if type(value) is not int and type(value) is not float:
            continue
        own, when = alternative[5], alternative[1]
        if is_within(value * spec[1], spec) if own else value >= 0 and (value <= 1 or spec[3] == INF):
            continue
        values = facts() if values is None else values
        if when is not None and when(values) is not True:
            continue
        if not own and is_within(alternative[0](values), spec):  # type: ignore[misc]
            continue
        told.add(path)
        yield _mistake(subject, name, path, value)


def meant(pack: Pack, name: str, value: float) -> tuple[float, bool] | None:
    """Return the number that was probably meant, and whether that is sure; None where nobody can tell."""
    spec = pack.facts[name]
    if spec[3] == 1 and _LEAST_PERCENT <= value <= _MOST_PERCENT:
        return value / 100, True
    return (-value, False) if value < -1 and is_within(-value * spec[1], spec) else None


def _read(pack: Pack, framework: str) -> tuple[Read, ...]:
    """Return the keys that a framework's bindings read as numbers of a range, with the bindings."""
    found: tuple[Read, ...] | None = pack.ranged.get(framework)
    if found is None:
        found = pack.ranged[framework] = tuple(
            (name, spec, alternative[4][0], alternative)
            for name, alternatives in pack.frameworks[framework]["bind"].items()
            if (spec := pack.facts.get(name)) and spec[0] == "number" and spec[2] > -INF
            for alternative in alternatives
            if len(alternative[4]) == 1 and "*" not in alternative[4][0]
        )
    return found


def _mistake(subject: Subject, name: str, path: Steps, value: float) -> Mistake:
    from cfglint.document.trace import Trace  # there is something to tell
    from cfglint.lang.types import digits

    _, factor, low, high, _ = subject.pack.facts[name]
    limits = f"{digits(low / factor)} or more"
    if high < INF:
        limits = f"from {digits(low / factor)} to {digits(high / factor)}"
    probably = meant(subject.pack, name, value)
    note = limits if probably is None else f"{limits}: {digits(probably[0], 6)} meant?"
    span = Trace(subject.view, path).own_span
    problem = Problem("value", path, _NO_NODE, value)
    return Mistake(note, *span, key=dotted(path), text=f"{value:g}", kind=name, problem=problem)
