"""Moves that are made up for by the same partner: together they are made up for once more."""

from hypothesis import given
from hypothesis import strategies as st

from cfglint.repair.found import Repair
from cfglint.repair.invert import Written
from cfglint.repair.together import combined
from cfglint.repair.tracks import Option

STEPS = ("accumulation",)
OLD = 8


def moved(knob: str, value: object, partner: int, *, spelled: int = 1) -> Option:
    """Return a knob that is moved, with the accumulation that keeps the batch, written times ``spelled``."""
    written = [Written((knob,), value), Written(STEPS, partner * spelled)]
    return Option(
        knob, 1, False, {knob: value, "grad_accum": partner}, written, 1.0, "none", [""],
        places=[(each.path, each.value) for each in written],
        exchanged={"grad_accum": (OLD, {STEPS})},
    )  # fmt: skip


def steps_of(repair: Repair) -> set[object]:
    return {each.value for each in repair.written if each.path == STEPS}


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 4))
def test_two_moves_multiply_what_makes_up_for_them(first: int, second: int, spelled: int) -> None:
    options = (
        moved("micro_batch_size", 1, OLD * first, spelled=spelled),
        moved("train_gpus", 2, OLD * second, spelled=spelled),
    )
    facts = combined(options)
    assert facts == {"micro_batch_size": 1, "train_gpus": 2, "grad_accum": OLD * first * second}
    assert steps_of(Repair(options)) == {OLD * first * second * spelled}


def test_what_happens_to_be_worth_as_much_stays() -> None:
    options = moved("micro_batch_size", 1, 32), moved("$.launch.processes_per_node", 2, OLD * 2)
    options[1].facts["$.launch.flags.nproc_per_node"] = OLD * 2  # as many as there are steps then
    options[1].facts["$.steps"], options[1].followers = OLD * 2, {"$.steps"}
    facts = combined(options)
    assert facts is not None
    assert facts["$.launch.flags.nproc_per_node"] == OLD * 2
    assert facts["$.steps"] == facts["grad_accum"] == 64


def test_one_move_alone_is_as_it_was() -> None:
    alone = moved("micro_batch_size", 1, 32)
    assert combined([alone]) == {"micro_batch_size": 1, "grad_accum": 32}
    assert steps_of(Repair((alone,))) == {32}


def test_a_part_of_a_step_is_none() -> None:
    options = moved("micro_batch_size", 16, 1), moved("train_gpus", 16, 4)  # 8 / 8 / 2 steps
    assert combined(options) is None


def test_the_partner_itself_may_be_moved_by_one_alone() -> None:
    own = Option(
        "grad_accum", 1, False, {"grad_accum": 4}, [Written(STEPS, 4)], 1.0, "none", [""], [(STEPS, 4)]
    )
    assert combined([own, moved("micro_batch_size", 1, 32)]) is None
