"""A program that a command starts, where its file is here (see follow.py)."""

from __future__ import annotations

from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from cfglint.document.python.loaders import Sizes
    from cfglint.document.python.modules import Linked
    from cfglint.document.python.samplers import Drawn
    from cfglint.document.python.totals import Share
    from cfglint.document.python.values import Object, Span
    from cfglint.document.tree import File, Scalar

_FEW = 3  # flags, from which on they tell whose they are
_STALE = 8


class Started(Record):
    """A program that a command starts: its ``file``, and the ``node`` of the command that names it.

    ``trainer`` are the arguments and the trainer that it makes, where that is one. ``general`` is the program
    whatever flags it is given, and ``told`` with overrides of those that decide which branches it takes.
    ``plain`` are trainers that are transformers', or made of them.
    ``sets`` are the keys that it sets itself, and where; ``share`` is how its passes follow from a total,
    ``drawn`` what its groups of samples go with, and ``sizes`` which flags its own loop has them from.
    """

    file: File
    node: Scalar
    program: Linked
    trainer: tuple[Object | None, Object | None] | None = field(default=None)
    general: Linked | None = field(default=None)
    plain: bool = field(default=False)
    sets: dict[str, Span] = field(factory=dict)
    share: Share | None = field(default=None)
    drawn: tuple[Drawn, ...] = field(default=())
    sizes: Sizes | None = field(default=None)
    told: dict[tuple[str, ...], Started] = field(factory=dict, init=False)

    def takes(self, key: str) -> bool:
        """Whether a flag of the command is one that the program reads, as far as that is known."""
        return self.trainer is None or key in self.program.flags or self.parsed

    def accepts(self, key: str, value: object, given: Collection[str]) -> bool | None:
        """Whether the program takes a flag with a value; None where its arguments are not known.

        Where the flags that are ``given`` are words of its own project, so is any other that it takes, but
        for those of transformers' arguments. One in eight may be left from an older version.
        """
        flag = self.program.flags.get(key)
        if flag is not None:
            return flag.accepts(value)
        if self.program.parsers == {"whole"}:
            return False
        plain = self.program.plain_flags(given)
        if plain is not None:
            return key in plain
        words, trains = self.program.declared()
        if key in words:
            return True
        strange = sum(each not in words for each in given)
        return None if trains or len(given) < _FEW or strange > len(given) // _STALE else False

    def spelled(self, key: str, *, dashes: bool) -> str:
        """Return a flag as the program's parser has it; with ``dashes`` where nobody knows."""
        options = self.program.options(key)
        usual = f"--{key.replace('_', '-') if dashes else key}"
        return usual if not options or usual in options else max(options, key=len)

    def rests_on(self, key: str) -> bool:
        """Whether a flag decides which branches the program takes."""
        return key in self.program.wondered

    @property
    def fills_plain(self) -> bool:
        """Whether its parsers take what its own classes and transformers' arguments declare, and no more."""
        return "plain" in self.program.parsers and "open" not in self.program.parsers

    @property
    def parsed(self) -> bool:
        """Whether the trainer's arguments are the flags themselves, as HfArgumentParser makes them."""
        arguments = self.trainer[0] if self.trainer is not None else None
        return arguments is not None and "parsed" in arguments.calls
