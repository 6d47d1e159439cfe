"""Versions of frameworks: what is developed towards a release lies before it, and on neither side of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfglint.lang.versions import NEWEST, holds, spelled, towards

releases = (
    st.lists(st.integers(0, 30), min_size=1, max_size=3).map(tuple).filter(lambda v: any(v) and v[-1] != 0)
)


@given(releases, releases)
def test_what_is_developed_lies_between_releases(release, other):
    version = towards(release)
    assert version < release
    assert (other < release) == (other < version), "after all releases before its own"
    assert spelled(version) == f"{spelled(release)}.dev"
    assert holds(version, ">=", other) == (other < release)
    assert holds(version, "<", other) == (other > release)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=="])
def test_what_is_developed_is_on_neither_side_of_its_release(operator):
    assert not holds(towards((0, 4)), operator, (0, 4))
    assert holds(towards((0, 4)), "!=", (0, 4))


@given(releases)
def test_nothing_is_newer_than_the_newest(release):
    assert holds(NEWEST, ">", release)
    assert not holds(NEWEST, "<=", release)
    assert spelled(NEWEST) == ""
