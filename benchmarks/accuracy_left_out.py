"""What a row's estimate is with errors that its own group did not measure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from accuracy_classes import Path, path_of
from accuracy_rows import values_of
from accuracy_split import group_of
from calibrate import errors_measured, families, limits_measured
from calibrate_terms import Term, by_class, of_class, stretch, widest
from cfglint.lang.values import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.facts import Values

_ERRORS = lru_cache(errors_measured)
_LIMITS = lru_cache(limits_measured)


def values_left_out(row: Mapping[str, Any]) -> Values:
    """Return a row's values, with the errors of its class as all groups but its own measured them."""
    values, group = values_of(row), group_of(row)
    path = path_of(values)
    if path is None or not any(one.group == group for some in _ERRORS().values() for _, one in some):
        return values
    if values["model.family"] not in _families(group):
        path = ()
    need, varies = _term("need", group, path), values["shapes_vary"]
    given: dict[str, object] = {
        "error.likely": Interval(*need.likely),
        "error.bound": Interval(*need.bound),
        "error.allocated": Interval(*_term("allocated", group, path).likely),
    }
    if isinstance(varies, bool):
        given["error.reserved"] = Interval(*_term("varying" if varies else "reserved", group, path).likely)
    return values.but(given)


@lru_cache
def _families(group: str) -> list[str]:
    return families(row for some in _ERRORS().values() for row, one in some if one.group != group)


def _term(statistic: str, group: str, path: Path) -> Term:
    """Return the error of a class without a group; of all classes where the path is empty."""
    own = _measured(statistic, group)
    return of_class(path, own) if path else widest(own.values())


@lru_cache
def _measured(statistic: str, group: str) -> dict[Path, Term]:
    some = [one for _, one in _ERRORS()[statistic] if one.group != group]
    limits = [one for one in _LIMITS() if one.group != group] if statistic == "need" else ()
    return by_class(some, limits, _stretch(statistic))


@lru_cache
def _stretch(statistic: str) -> float:
    return stretch([one for _, one in _ERRORS()[statistic]])
