"""Commands of a script that have a GPU of their own each, by number: a server or a worker for every GPU."""

from __future__ import annotations

import re

from cfglint.document.shell.handed import tell_sizes
from cfglint.document.shell.processes import VISIBLE, whole
from cfglint.document.shell.programs import given_before
from cfglint.document.tree import Composite, Entry, Mapping, Scalar, child
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.shell.words import Command

_IN_TURN = re.compile(
    r"for[ \t]+(?P<name>\w+)[ \t]+in[ \t]+(?:(?P<listed>[0-9]{1,3}(?:[ \t]+[0-9]{1,3})+)"
    r"|\{(?P<first>[0-9]{1,3})\.\.(?P<last>[0-9]{1,3})\}"
    r"|\$\(seq[ \t]+(?P<from>[0-9]{1,3})[ \t]+(?P<to>[0-9]{1,3})\))"
    r"[ \t]*[;\n].*?\b" + VISIBLE + r"=[\"']?\$\{?(?P=name)\b",
    re.DOTALL,
)
_NUMBERS = re.compile(  # for gpu in 0 1 2, in {0..7}, in $(seq …); for ((gpu=0; …
    r"for[ \t]*(?:(\w+)[ \t]+in[ \t]+(?:[0-9]|\{[0-9]|[$`]\(?seq\b)[^,;\n]*[;\n]|\(\([ \t]*(\w+)[ \t]*=)"
)
_SHELLS = re.compile(r"(?:^|/)(?:ba|da|z)?sh\Z|\.sh\Z|\A-")  # what runs another script on this machine
_ASKING = ("curl", "wget")
_HERE = re.compile(
    r"""["']?(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(?!8265\b)[0-9]+(?:/|["']?\Z)"""
)
_WORKERS = 3  # GPUs with a command of their own


def pinned_in_turn(loop: str) -> tuple[int, ...]:
    """Return the GPUs that a loop over numbers gives its commands, one in each round."""
    found = _IN_TURN.match(loop)
    if found is None:
        return ()
    if found["listed"]:
        return tuple(map(int, found["listed"].split()))
    first, last = found["first"] or found["from"], found["last"] or found["to"]
    return tuple(range(int(first), int(last) + 1))


def has_one_each(loop: str) -> bool:
    """Whether a loop gives its commands one GPU in each round, whatever the number of rounds."""
    numbers = _NUMBERS.match(loop)
    name = numbers and (numbers[1] or numbers[2])
    return bool(name and re.search(rf"\b{VISIBLE}=[\"']?\$\{{?{name}\}}?[\"']?\s", loop))


def worked_on(commands: Sequence[Command]) -> list[tuple[int, ...]]:
    """Return the GPUs that each command has for itself: of ``CUDA_VISIBLE_DEVICES=3 cmd``, 3."""
    worked = []
    for command in commands:
        pieces = command.environment.get(VISIBLE) or ()
        own = (
            None if any(piece.unknown for piece in pieces) else small_number("".join(p.text for p in pieces))
        )
        gpus = command.turns or (() if own is None else (own,))
        worked.append(gpus if all(_SHELLS.search(word.spelled) for word in command.outer) else ())
    return worked


def tell_gpus(heads: Sequence[tuple[int, Mapping]], commands: Sequence[Command]) -> None:
    """Say of commands what a script says of GPUs beside them."""
    tell_workers(heads, commands)
    tell_kept(heads, commands)
    tell_sizes(heads, commands)


def tell_workers(heads: Sequence[tuple[int, Mapping]], commands: Sequence[Command]) -> None:
    """Say of commands how many GPUs a machine has that has those of the script's workers."""
    worked = worked_on(commands)
    for at, head in heads:
        others = {max(gpus): n for n, gpus in enumerate(worked) if gpus and n != at}
        if len({gpu for n in others.values() for gpu in worked[n]}) < _WORKERS:
            continue
        name, last = head.entries["name"], commands[others[max(others)]].words[0]
        start, end = (last.start, last.end) if last.start >= 0 else (name.value.start, name.value.end)
        head.entries["workers_gpus"] = Entry(name.key, Composite(str(max(others) + 1), start, end))


def tell_kept(heads: Sequence[tuple[int, Mapping]], commands: Sequence[Command]) -> None:
    """Say of commands which GPUs others have that go on in the background: a server's, by number.

    Commands that all go on so keep theirs where no two have the same. Where the script asks a server of this
    machine that another one started, it has the first GPUs, which a command's own list leaves out.
    """
    listed = {n: numbers for n, command in enumerate(commands) if (numbers := _listed(command))}
    kept = {n: numbers for n, numbers in listed.items() if commands[n].beside}
    apart = len(set().union(*kept.values())) == sum(map(len, kept.values()))
    for at, head in heads:
        others = {n: numbers for n, numbers in kept.items() if n != at}
        if not kept and (left := _left_out(head)) > 0 and (asked := _asked(commands[:at])) is not None:
            others = {asked: frozenset(range(left))}
            head.entries["kept_server"] = Entry(head.entries["name"].key, Composite("true", -1, -1))
        if not others or (at in kept and not apart):
            continue
        taken = sorted(set().union(*others.values()))
        name, first = head.entries["name"], commands[min(others)].words[0]
        place = (first.start, first.end) if first.start >= 0 else (name.value.start, name.value.end)
        head.entries["kept_gpus"] = Entry(name.key, Scalar(",".join(map(str, taken)), *place, '"'))
        if "kept_server" in head.entries or not listed.get(at, frozenset(taken)).intersection(taken):
            head.entries["kept_number"] = Entry(name.key, Composite(str(len(taken)), *place))


def _left_out(head: Mapping) -> int:
    """Return how many GPUs a command's list leaves out, before the last that it has."""
    least, own = (whole(child(head, name)) for name in ("visible_least", "visible_gpus"))
    return (least or 0) - (own or 0)


def _asked(commands: Sequence[Command]) -> int | None:
    """Return the first command that asks whether a server of this machine is there; not Ray's own page."""
    for n, command in enumerate(commands):
        words = [word.spelled for word in command.words]
        if words and words[0] in _ASKING and any(map(_HERE.match, words)):
            return n
    return None


def _listed(command: Command) -> frozenset[int]:
    """Return the GPUs that a command is given by number; none where that is not known."""
    before = given_before(command.words, VISIBLE)
    pieces = command.environment.get(VISIBLE) or () if before is None else before.pieces
    text = "" if any(piece.unknown for piece in pieces) else "".join(piece.text for piece in pieces)
    numbers = [small_number(word) for word in text.split(",")] if text else []
    known = frozenset(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else frozenset()
