"""``torchx run dist.ddp -j 2x8 --script FILE -- ARGUMENTS`` as the command of torchrun that it starts."""

from __future__ import annotations

from cfglint.document.shell.words import Piece, Word, values_of


def as_torchrun(words: list[Word]) -> list[Word]:
    """Return the words after ``torchrun``; none where another component runs, or its program is not known.

    ``-j`` is nodes and processes on each, one number is processes, and 1x2 holds where it is absent
    (torchx/components/dist.py: ddp, parse_nnodes).
    """
    end = next((i for i, word in enumerate(words) if word.text == "--"), len(words))
    own, rest = words[:end], words[end + 1 :]
    script, module = (next(values_of(own, flags), None) for flags in (("--script",), ("-m", "--m")))
    program = script or module
    if program is None or all(word.text != "dist.ddp" for word in own):
        return []
    started = [program] if script is not None else [_word("-m", program), program]
    asked = next(values_of(own, ("-j", "--j")), None)
    if asked is None:
        return [_word("--nproc_per_node", program), _word("2", program), *started, *rest]
    nodes, x, _ = (asked.text or "").partition("x")
    options = [_word("--nproc_per_node", asked), asked.from_(len(nodes) + 1) if x else asked]
    if asked.text is None:
        options += [_word("--nnodes", asked), asked]
    elif x:
        many = Word((asked.pieces[0].cut(0, len(nodes)),), asked.start, asked.end)
        whole = len(asked.pieces) == 1
        options += [_word("--nnodes", asked), many if whole else _word(nodes, asked)]
    return [*options, *started, *rest]


def _word(text: str, at: Word) -> Word:
    return Word((Piece(text, -1, -1),), at.start, at.end)
