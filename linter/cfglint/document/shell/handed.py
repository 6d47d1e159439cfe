"""Sizes that a script exports to its program: how many GPUs share a model, or how many there are."""

from __future__ import annotations

import re

from cfglint.document.tree import Composite, Entry, Mapping, Scalar
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.shell.words import Command

SIZES = "sizes"
_SIZE = re.compile(
    r"(?:\A|\w_)(?:(?:TP|PP|CP)(?:_SIZE|_DEGREE)?"
    r"|(?:TENSOR|PIPELINE|CONTEXT)(?:_MODEL)?_PARALLEL(?:ISM)?(?:_SIZE|_DEGREE)?"
    r"|N(?:UM_?|_)?GPUS?|GPUS|GPU_COUNT)\Z"
)


def tell_sizes(heads: Sequence[tuple[int, Mapping]], commands: Sequence[Command]) -> None:
    """Say of commands which sizes are exported to them that are not the values of flags of theirs, too."""
    for at, head in heads:
        command, name = commands[at], head.entries["name"]
        read = {
            (word.pieces[-1].start, word.pieces[-1].end)
            for word in command.words
            if len(word.pieces) == 1 or (word.pieces and word.pieces[-2].text.endswith("="))
        }
        entries = {}
        for variable, value in {**command.exported, **command.environment}.items():
            if not _SIZE.search(variable) or not isinstance(value, tuple):
                continue
            known = not any(piece.unknown or piece.maybe for piece in value)
            number = small_number("".join(piece.text for piece in value)) if known else None
            if number is not None and not any((piece.start, piece.end) in read for piece in value):
                spot = name.value.start, name.value.end
                entries[variable] = Entry(Scalar(variable, *spot, '"'), Composite(str(number), *spot))
        if entries:
            here = Mapping(name.value.start, flow=True, end=name.value.end, entries=entries)
            head.entries[SIZES] = Entry(name.key, here)
