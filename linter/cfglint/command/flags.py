"""Reads a command's flags from a table, and prints its help from the same table.

argparse would do, at 5 ms of start-up: a fifth of what a clean run may use in all. Flags may stand before,
between and after paths, take their value as ``--gpu a40`` or ``--gpu=a40``, and are never guessed from a
part.
"""

from __future__ import annotations

import sys

from cfglint.errors import UsageError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SWITCH, TEXT, LIST, NUMBER = "switch", "text", "list", "number"


class Flag:
    """One flag: ``kind`` is SWITCH, TEXT, LIST (repeatable) or NUMBER; ``group`` heads it in the help."""

    __slots__ = ("about", "choices", "group", "kind", "metavar", "name", "short")

    def __init__(
        self,
        name: str,
        about: str,
        *,
        kind: str = SWITCH,
        metavar: str = "",
        choices: Sequence[str] = (),
        short: str = "",
        group: str = "options",
    ) -> None:
        self.name = name
        self.about = about
        self.kind = kind
        self.metavar = metavar
        self.choices = choices
        self.short = short
        self.group = group

    def read(self, value: str, said: str) -> str | int:
        """Return what ``value`` means; ``said`` is the flag as the user spelled it. Raises UsageError."""
        if self.choices and value not in self.choices:
            near = did_you_mean(value, self.choices)
            raise UsageError(f"{said} takes {', '.join(self.choices)}, not {value!r}{near}")
        if self.kind != NUMBER:
            return value
        if not (value.isascii() and value.isdigit() and len(value) <= 9 and int(value) > 0):
            raise UsageError(f"{said} takes a number from 1 on, not {value!r}")
        return int(value)


class Args:
    """The values of a command line by name, ``--fail-on`` as ``fail_on``; None or False without it."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class Parser:
    """Reads the arguments of one command.

    ``positional`` is the name, metavar and help of what stands free, ``many`` of them or one.
    """

    def __init__(
        self,
        command: str,
        about: str,
        flags: Sequence[Flag],
        *,
        positional: tuple[str, str, str] | None = None,
        many: bool = False,
        needed: bool = False,
        default: Sequence[str] = (),
    ) -> None:
        self.command = command
        self.about = about
        self.flags = tuple(flags)
        self.positional = positional
        self.many = many
        self.needed = needed
        self.default = list(default)

    def parse_args(self, arguments: Sequence[str]) -> Args:
        """Return the values of ``arguments``; ``--help`` prints the help and ends. Raises UsageError."""
        args = Args()
        by_name = {f"--{flag.name}": flag for flag in self.flags}
        by_name.update({f"-{flag.short}": flag for flag in self.flags if flag.short})
        for flag in self.flags:
            setattr(args, flag.name.replace("-", "_"), False if flag.kind == SWITCH else None)
        free: list[str] = []
        rest = list(reversed(arguments))
        while rest:
            word = rest.pop()
            if word == "--":
                free += reversed(rest)
                break
            if word == "-" or not word.startswith("-"):
                free.append(word)
                continue
            if word in ("-h", "--help"):
                sys.stdout.write(self.help())
                raise SystemExit(0)
            name, equals, value = word.partition("=")
            flag = by_name.get(name) or self._unknown(name, by_name, rest)
            if flag.kind == SWITCH:
                if equals:
                    raise UsageError(f"{name} takes no value; see cfglint {self.command} --help")
                setattr(args, flag.name.replace("-", "_"), True)
                continue
            if not equals:
                if not rest or rest[-1].partition("=")[0] in by_name:
                    raise UsageError(f"{name} wants {flag.metavar}; see cfglint {self.command} --help")
                value = rest.pop()
            self._store(args, flag, flag.read(value, name))
        self._place(args, free)
        return args

    def _unknown(self, name: str, by_name: dict[str, Flag], rest: list[str]) -> Flag:
        if not name.startswith("--") and len(name) > 2 and f"-{name[1]}" in by_name:
            first = by_name[f"-{name[1]}"]
            if first.kind == SWITCH:  # -qv is -q -v
                rest.append(f"-{name[2:]}")
                return first
        near = did_you_mean(name, by_name) or f"; see cfglint {self.command} --help"
        raise UsageError(f"cfglint {self.command} knows no flag {name}{near}")

    @staticmethod
    def _store(args: Args, flag: Flag, value: str | int) -> None:
        name = flag.name.replace("-", "_")
        if flag.kind == LIST:
            if getattr(args, name) is None:
                setattr(args, name, [])
            getattr(args, name).append(value)
        else:
            setattr(args, name, value)

    def _place(self, args: Args, free: list[str]) -> None:
        if self.positional is None:
            if free:
                raise UsageError(
                    f"cfglint {self.command} takes no {free[0]!r}; see cfglint {self.command} --help"
                )
            return
        name, metavar, _ = self.positional
        if "" in free:
            raise UsageError(f"an empty {metavar}; is a variable of the shell not set?")
        if self.many:
            setattr(args, name, free or list(self.default))
            return
        if len(free) > 1:
            raise UsageError(f"cfglint {self.command} takes one {metavar}, and {free[1]!r} is a second one")
        if not free and self.needed:
            raise UsageError(f"cfglint {self.command} wants {metavar}; see cfglint {self.command} --help")
        setattr(args, name, free[0] if free else None)

    def help(self) -> str:
        """Return the help: usage, what the command does, every flag."""
        usage = f"usage: cfglint {self.command}"
        groups: dict[str, list[tuple[str, str]]] = {}
        if self.positional is not None:
            _, metavar, about = self.positional
            shown = f"{metavar}…" if self.many else metavar
            usage += f" {shown}" if self.needed else f" [{shown}]"
            groups[""] = [(shown, about)]
        for flag in self.flags:
            spelled = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
            about = f"{flag.about}; repeatable" if flag.kind == LIST else flag.about
            groups.setdefault(flag.group, []).append((f"{spelled} {flag.metavar}".rstrip(), about))
        lines = [f"{usage} [options]" if self.flags else usage, "", self.about]
        for title, rows in groups.items():
            lines += ["", *([f"{title}:"] if title else [])]
            for left, right in rows:
                lines += _row(left, right)
        return "\n".join(lines) + "\n"


def _row(left: str, right: str) -> list[str]:
    import textwrap

    wrapped = textwrap.wrap(right, 76) or [""]
    first, rest = (f"  {left:<30} {wrapped[0]}", wrapped[1:]) if len(left) < 31 else (f"  {left}", wrapped)
    return [first.rstrip(), *(" " * 33 + line for line in rest)]
