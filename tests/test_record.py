"""Records: fields once, slots, ``__init__`` at first use."""

import pickle

import pytest

from cfglint.record import Record, Value, field, fields, replace


class Place(Record):
    path: str
    notes: list = field(factory=list)
    seen: bool = field(default=False, init=False)


class Span(Value):
    where: tuple = field(default=(0, 0), compare=False, kw_only=True)


class Number(Span):
    value: float
    unit: str | None = None


class Counted(Record):
    total: int

    def __init__(self, items):
        self.total = len(items)


class Deep(Place):
    depth: int = 3

    def __post_init__(self):
        self.seen = self.depth > 1


class Linked(Record):
    name: str
    whole: "Linked" = field(init=False)


def test_a_field_without_a_default_may_be_set_later():
    part = Linked("x")
    assert not hasattr(part, "whole")
    part.whole = part
    assert part.whole is part
    assert "whole" not in repr(Linked("y"))


def test_fields_come_in_order_and_by_name():
    assert fields(Deep) == ("path", "notes", "seen", "depth")
    deep = Deep("a", ["x"], 1)
    assert (deep.path, deep.notes, deep.depth, deep.seen) == ("a", ["x"], 1, False)
    assert Deep("a").seen
    assert Number(1.0, where=(3, 4)).where == (3, 4)
    assert Counted([1, 2]).total == 2


def test_each_record_makes_its_own_default():
    one, two = Place("a"), Place("a")
    one.notes.append("x")
    assert two.notes == []
    assert one != two


def test_values_are_compared_by_what_counts():
    assert Number(1.0, where=(3, 4)) == Number(1.0)
    assert len({Number(1.0, where=(3, 4)), Number(1.0)}) == 1
    assert Number(1.0) != Number(1.0, "GiB")
    assert repr(Number(1.0, "GiB", where=(3, 4))) == "Number(value=1.0, unit='GiB')"


@pytest.mark.parametrize("record", [Number(1.0, "GiB", where=(3, 4)), Span(where=(1, 2))])
def test_copies_keep_every_field(record):
    for copy in (pickle.loads(pickle.dumps(record)), replace(record)):
        assert copy == record
        assert copy.where == record.where
    assert replace(record, where=(5, 6)).where == (5, 6)


def test_what_is_wrong_is_said_by_python():
    with pytest.raises(TypeError, match="path"):
        Place()
    with pytest.raises(AttributeError):
        Place("a").other = 1
    with pytest.raises(TypeError):
        Place("a", [], True)


def test_an_init_of_ones_own_may_call_its_base():
    class House(Record):
        street: str

    class Home(House):
        def __init__(self) -> None:
            super().__init__("Elm")

    assert [Home().street, Home().street] == ["Elm", "Elm"]
