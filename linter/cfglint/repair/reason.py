"""Why a finding has no fix: the words for people, and beside them what decides on what is said next."""

from __future__ import annotations

from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.repair.tracks import Option


class Reason(Record):
    """Why a finding has no fix; without a text, nothing is known."""

    text: str = ""
    way: bool = False  # values are named that satisfy the rule, and what stands against them
    breaks: bool = False  # with them a rule breaks for certain, or can no longer be judged
    by_hand: bool = False  # people have to change what would help
    riddle: bool = False  # the search showed nothing that would
    vain: bool = False  # a number comes first that shows that the job cannot run there
    unsure: bool = False  # nobody can tell whether the job fits
    further: bool = False  # what could be moved besides is named
    moves: tuple[Option, ...] = ()  # all that are named, of which memory is what stands against them
