"""What a launcher in front of a command asks a cluster for, where a repair moves the job to fewer GPUs.

``gantry run --gpus 8 --replicas 4 -- torchrun …`` starts the command on so many machines, whatever the
command itself says: such numbers move along, as far as they ask for more than there is. So does what a script
tells Ray of its machine: ``ray start --head --num-gpus 8``. Ray believes it, and gives out GPUs that are not
there (ray @008e15e: python/ray/_private/resource_spec.py, resolve).
"""

from __future__ import annotations

from cfglint.document.shell.nested import base
from cfglint.document.shell.words import values_of
from cfglint.document.trace import Trace
from cfglint.repair.patch import Change
from cfglint.text import Edit, small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.engine.subject import Judged
    from cfglint.repair.invert import Written

# By the launcher: the flags of a machine's GPUs, and of the machines.
# https://github.com/allenai/beaker-gantry/blob/v2.1.0/gantry/commands/run.py (--gpus, --replicas)
_ASKS = {"gantry": (("--gpus",), ("--replicas",))}

_RAY, _RAY_HAS = ("ray", "start"), ("--num-gpus", "--num_gpus")


def asked_in_front(judged: Judged, written: Iterable[Written] = ()) -> Iterator[Change]:
    """Yield the change of each number that asks for more than a target has, where the file says it.

    What is ``written`` anyway moves with that.
    """
    document, values = judged.subject.document, judged.values
    words = [*document.outer, *document.words]
    flags = _ASKS.get(base(words[0])) if words else None
    there = (values["gpu.per_node"], values["gpu.nodes"])
    if flags is None or judged.target is None:
        return
    for names, most in zip(flags, there, strict=True):
        word = next(values_of(words, names), None)
        placed = [piece for piece in word.pieces if piece.text] if word is not None else []
        number = small_number(placed[0].text) if len(placed) == 1 and placed[0].verbatim else None
        new = most if isinstance(most, int) else 1
        moved = {Trace(judged.subject.view, each.path).span for each in written}
        if number is not None and number > new and (placed[0].start, placed[0].end) not in moved:
            edit = Edit(placed[0].start, placed[0].end, str(new))
            yield Change(edit, f"{names[0]} to {new}", names[0], str(number))


def told_to_ray(judged: Judged) -> Iterator[Change]:
    """Yield the change of each number of GPUs that a script's ``ray start`` is told and a target has not."""
    document, most = judged.subject.document, judged.values["gpu.per_node"]
    if judged.target is None or not isinstance(most, int) or document.format != "shell":
        return
    text, seen = document.file.text, set[int]()
    for command in document.behind[0]:
        words = command.words
        if len(words) < len(_RAY) or (base(words[0]), words[1].spelled) != _RAY:
            continue
        for word in values_of(words, _RAY_HAS):
            placed = [piece for piece in word.pieces if piece.text]
            start, end = (placed[0].start, placed[0].end) if len(placed) == 1 else (-1, -1)
            here = word.start <= start < end <= word.end  # a variable may have other readers
            number = small_number(text[start:end]) if here else None
            if number is not None and number > most and start not in seen:
                told = "" if seen else f"ray start's {_RAY_HAS[0]} to {most}"  # once, of several nodes
                seen.add(start)
                yield Change(Edit(start, end, str(most)), told, _RAY_HAS[0], text[start:end])
