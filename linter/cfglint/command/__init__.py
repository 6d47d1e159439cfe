"""What every command shares. This module: flags declared as a record, their parsing, and the help.

    class Options(Arguments):
        command = "check"
        about = "Lint configs."
        paths: list[str] = free("PATH", "files or folders", many=True, default=["."])
        gpu: list[str] = texts("a GPU", "NAME", group="hardware")
        fail_on: str | None = text("from this level on", "LEVEL", choices=LEVELS)
        quiet: bool = switch("errors only", short="q")

argparse would do, at 5 ms of start-up: a fifth of what a clean run may use in all. Flags may come before,
between and after paths, take their value as ``--gpu a40`` or ``--gpu=a40``, and are never guessed from a
part.
"""

from __future__ import annotations

import sys

from cfglint import files
from cfglint.errors import UsageError, did_you_mean
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, ClassVar, TypeVar

    A = TypeVar("A", bound="Arguments")

PAGES = ("text", "json", "markdown")  # the forms of most features' pages
SWITCH, TEXT, LIST, NUMBER, TABLE = "switch", "text", "list", "number", "table"
# What a flag is in the settings: the same, a path relative to their file, or its opposite (--no-detect).
SAME, PATH, OPPOSITE = "same", "path", "opposite"


class Flag(Record):
    """One flag: ``group`` heads it in the help; ``setting`` is empty where settings have no such key."""

    kind: str
    about: str
    metavar: str = ""
    group: str = "options"
    short: str = ""
    choices: Sequence[str] = ()
    several: bool = False  # with commas between them
    setting: str = ""
    name: str = ""  # where it is not the field's

    def empty(self) -> object:
        """Return its value where it is not given."""
        return False if self.kind == SWITCH else [] if self.kind == LIST else None

    def wrong(self, value: str) -> str | None:
        """Return what of a value is none of the choices; None where all is well."""
        words = value.split(",") if self.several else [value]
        return next((word for word in words if word not in self.choices), None)

    def read(self, value: str, spelled: str) -> str | int:
        """Return what ``value`` means; ``spelled`` is the flag as the user wrote it. Raises UsageError."""
        wrong = self.wrong(value) if self.choices else None
        if wrong is not None:
            near = did_you_mean(wrong, self.choices)
            raise UsageError(f"{spelled} takes {', '.join(self.choices)}, not {wrong!r}{near}")
        if self.kind != NUMBER:
            return value
        if not (value.isascii() and value.isdigit() and len(value) <= 9 and int(value) > 0):
            raise UsageError(f"{spelled} takes a whole number, 1 or more, not {value!r}")
        return int(value)


class Free(Record):
    """What stands free of flags: one text, or ``many``; ``default`` where there are none."""

    metavar: str
    about: str
    many: bool = False
    needed: bool = False
    default: Sequence[str] = ()
    counted: bool = False  # the metavar itself says how many

    @property
    def shown(self) -> str:
        """The metavar as the help has it."""
        return f"{self.metavar}…" if self.many and not self.counted else self.metavar


# Each of these returns a flag, and tells type checkers what its field will hold.
def switch(about: str, **rest: Any) -> bool:
    """Declare a flag without a value."""
    return Flag(SWITCH, about, **rest)  # type: ignore[return-value]


def text(about: str, metavar: str, **rest: Any) -> str | None:
    """Declare a flag with a value."""
    return Flag(TEXT, about, metavar, **rest)  # type: ignore[return-value]


def form(choices: Sequence[str], **rest: Any) -> str | None:
    """Declare ``--format``."""
    about = f"one of {', '.join(choices)} (default: text)"
    return text(about, "FORM", choices=choices, group="output", **rest)


def texts(about: str, metavar: str, **rest: Any) -> list[str]:
    """Declare a flag that may be given several times."""
    return Flag(LIST, about, metavar, **rest)  # type: ignore[return-value]


def number(about: str, metavar: str, **rest: Any) -> int | None:
    """Declare a flag whose value is a number from 1 on."""
    return Flag(NUMBER, about, metavar, **rest)  # type: ignore[return-value]


def table() -> tuple[str, dict[str, str]] | None:
    """Declare what settings alone can say: a table of texts, and before it the file in which it is."""
    return Flag(TABLE, "", setting=SAME)  # type: ignore[return-value]


def free(metavar: str, about: str, **rest: Any) -> Any:
    """Declare what stands free of flags; see Free."""
    return Free(metavar, about, **rest)


class Arguments(Record):
    """The values of a command line; a command's record has the flags as its fields.

    ``offers`` names the fields that have a flag, in the order of the help; by default all.
    """

    command: ClassVar[str]
    about: ClassVar[str]
    offers: ClassVar[tuple[str, ...]] = ()


def flags(kind: type[Arguments]) -> Iterator[tuple[str, Flag]]:
    """Yield all fields of a record that are flags or settings."""
    for field, spec in kind.fields_.items():
        if type(spec.default) is Flag:
            yield field, spec.default


def offered(kind: type[Arguments]) -> Iterator[tuple[str, str, Flag]]:
    """Yield the fields that a command has flags for, the names of these, and the flags."""
    declared = dict(flags(kind))
    for field in kind.offers or declared:
        flag = declared[field]
        yield field, flag.name or field.replace("_", "-"), flag


def _free(kind: type[Arguments]) -> tuple[str, Free] | None:
    declared = ((field, spec.default) for field, spec in kind.fields_.items())
    return next(((field, place) for field, place in declared if type(place) is Free), None)


def free_words(options: Arguments) -> list[str]:
    """Return what stands free of flags, or stands there by default."""
    field, _ = _free(type(options)) or ("", None)
    words = getattr(options, field) if field else None
    return [words] if isinstance(words, str) else list(words or ())


def parse(kind: type[A], arguments: Sequence[str]) -> A:
    """Return what ``arguments`` come to; ``--help`` prints the help and ends. Raises UsageError."""
    options = object.__new__(kind)
    for field, spec in kind.fields_.items():
        if spec.factory is not None:
            setattr(options, field, spec.factory())
    for field, flag in flags(kind):
        setattr(options, field, flag.empty())
    by_name = {}
    for field, name, flag in offered(kind):
        by_name[f"--{name}"] = field, flag
        if flag.short:
            by_name[f"-{flag.short}"] = field, flag
    free_words: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        if word == "--":
            free_words += reversed(rest)
            break
        if word.startswith("-") and word != "-" and files.is_taken(word):
            # A hook appends names of files, and somebody may have named one `--settings=x`.
            raise UsageError(f"{word} is the name of a file here: write ./{word} for it, or remove it")
        if word == "-" or not word.startswith("-"):
            free_words.append(word)
        elif word in ("-h", "--help"):
            sys.stdout.write(help_of(kind))
            raise SystemExit(0)
        else:
            _store(options, word, rest, by_name)
    _place(options, free_words)
    return options


def _store(options: Arguments, word: str, rest: list[str], by_name: dict[str, tuple[str, Flag]]) -> None:
    """Read one flag, and its value from the words that are left."""
    name, equals, value = word.partition("=")
    field, flag = by_name.get(name) or _unknown(options.command, name, rest, by_name)
    if flag.kind == SWITCH:
        if equals:
            raise UsageError(f"{name} takes no value; see cfglint {options.command} --help")
        setattr(options, field, True)
        return
    if not equals:
        if not rest or rest[-1].partition("=")[0] in by_name:
            raise UsageError(f"{name} needs {flag.metavar}; see cfglint {options.command} --help")
        value = rest.pop()
    meaning = flag.read(value, name)
    if flag.kind == LIST:
        getattr(options, field).append(meaning)
    else:
        setattr(options, field, meaning)


def _unknown(
    command: str, name: str, rest: list[str], by_name: dict[str, tuple[str, Flag]]
) -> tuple[str, Flag]:
    """Take a word apart that stands for several short flags. Raises UsageError."""
    if not name.startswith("--") and len(name) > 2 and f"-{name[1]}" in by_name:
        first = by_name[f"-{name[1]}"]
        if first[1].kind == SWITCH:  # -qv is -q -v
            rest.append(f"-{name[2:]}")
            return first
    near = did_you_mean(name, by_name) or f"; see cfglint {command} --help"
    raise UsageError(f"cfglint {command} has no flag {name}{near}")


def _place(options: Arguments, words: list[str]) -> None:
    """Store what stands free of flags."""
    command = options.command
    declared = _free(type(options))
    if declared is None:
        if words:
            raise UsageError(f"cfglint {command} takes no {words[0]!r}; see cfglint {command} --help")
        return
    field, place = declared
    if "" in words:
        raise UsageError(f"empty {place.metavar}: is a shell variable unset?")
    if not words and place.needed and not place.counted:
        raise UsageError(f"cfglint {command} needs {place.metavar}; see cfglint {command} --help")
    if place.many:
        setattr(options, field, words or list(place.default))
        return
    if len(words) > 1:
        raise UsageError(f"cfglint {command} takes one {place.metavar}, and {words[1]!r} is a second one")
    setattr(options, field, words[0] if words else None)


def help_of(kind: type[Arguments]) -> str:
    """Return the help: usage, what the command does, every flag."""
    usage = f"usage: cfglint {kind.command}"
    groups: dict[str, list[tuple[str, str]]] = {}
    _, place = _free(kind) or ("", None)
    if place is not None:
        usage += f" {place.shown}" if place.needed else f" [{place.shown}]"
        groups[""] = [(f"{place.metavar}…" if place.many else place.metavar, place.about)]
    for _, name, flag in offered(kind):
        spelled = f"-{flag.short}, --{name}" if flag.short else f"--{name}"
        about = f"{flag.about}; repeatable" if flag.kind == LIST else flag.about
        groups.setdefault(flag.group, []).append((f"{spelled} {flag.metavar}".rstrip(), about))
    lines = [f"{usage} [options]" if any(offered(kind)) else usage, "", kind.about]
    for title, rows in groups.items():
        lines += ["", *([f"{title}:"] if title else [])]
        for left, right in rows:
            lines += _row(left, right)
    page = "\n".join(lines) + "\n"
    return page.replace(f"{place.metavar}…", place.shown) if place is not None else page


def _row(left: str, right: str) -> list[str]:
    import textwrap

    wrapped = textwrap.wrap(right, 76) or [""]
    first, rest = (f"  {left:<30} {wrapped[0]}", wrapped[1:]) if len(left) < 31 else (f"  {left}", wrapped)
    return [first.rstrip(), *(" " * 33 + line for line in rest)]
