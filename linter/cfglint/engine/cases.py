"""A job in each of the ways that it leaves open: the launcher that nobody names, a precision, a ZeRO stage.

The rules' lets named ``cases.…`` list all values that a fact may have where a job leaves it open, the
likeliest first. The memory is computed for each: where all agree, the answer does not need the fact.

A program of the framework's own package that lies in the repository may have other defaults than the release.
They are taken to be the same, which the case says.

A GPU without a number, for a config that asks for none, is as many GPUs as the config's own parallelism
takes: one, as a rule (``gpus.least``).
"""

from __future__ import annotations

from cfglint.facts import Values, convert
from cfglint.lang.types import is_number
from cfglint.lang.values import needs_of
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.engine.subject import Judged

_PREFIX = "cases."
_COUNTS = ("gpus_per_node", "num_gpus", "num_nodes", "gpu.count")
_LEAST = "gpus.least"
_MOST = 16  # cases of one job; what is open beyond them stays open


class Case(Record):
    """The facts of a job where some that it leaves open have one of their values.

    ``chosen`` are those of which another case has another value; ``gpus`` is the number of GPUs that was
    taken where neither the target nor the config says one; ``released`` says that defaults are the release's.
    """

    values: Values
    chosen: dict[str, object] = field(factory=dict)
    gpus: int | None = None
    released: bool = False


def cases(values: Values, total: str) -> list[Case]:
    """Return the cases of the number ``total``, the likeliest first; one where nothing is left open."""
    first = Case(values)
    if not needs_of(values[total]):
        return [first]
    if not values.own and values.view is not None and values.view.document.vendored:
        values = values.but({}, own=True)
        first = Case(values, released=True)
    if _is_uncounted(values, total):
        least = values[_LEAST]
        gpus = int(least) if is_number(least) else 1
        given = {"gpu.count": gpus, "gpu.per_node": gpus, "gpu.nodes": 1}
        first = Case(values.but(given), {}, gpus, first.released)
    waiting, done = [first], list[Case]()
    while waiting:
        case = waiting.pop(0)
        split = None if len(waiting) + len(done) >= _MOST else _split(case, total)
        if split is None:
            done.append(case)
        else:
            waiting[:0] = split
    return done


def cases_of(judged: Judged, total: str) -> list[Case]:
    """Return the cases of a judged subject, found out once."""
    if judged.cases is None:
        judged.cases = cases(judged.values, total)
    return judged.cases


def _is_uncounted(values: Values, total: str) -> bool:
    return "gpu.count" not in values.given and not needs_of(values[total]).isdisjoint(_COUNTS)


def _split(case: Case, total: str) -> list[Case] | None:
    """Return a case with each value of the first fact that it leaves open and that has a list of them."""
    values = case.values
    for name, several in _listed(values, needs_of(values[total])):
        given = [convert(name, value, values.pack.facts[name]) for value in several]
        return [
            Case(values.but({name: value}), {**case.chosen, name: value}, case.gpus, case.released)
            for value in given
        ]
    return None


def _listed(values: Values, names: Iterable[str]) -> Iterator[tuple[str, list[object]]]:
    for name in sorted(names):
        if _PREFIX + name in values.pack.lets and name not in values.given:
            several = values[_PREFIX + name]
            if isinstance(several, list) and several:
                yield name, several
