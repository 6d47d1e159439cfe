"""What a name of a program stands for, as far as its source says."""

from __future__ import annotations

from cfglint.budget import spend
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from typing import TypeAlias

    # The text of another file of the repository, by its path; None where it is not there.
    Modules: TypeAlias = Callable[[str], str | None]

Span = tuple[int, int]


_PARSED: dict[str, type] = {"int": int, "float": float}


class Literal(Record):
    """A number, text, truth or None; ``reads`` are the definitions that it is put together from.

    ``whole``: what stands at the span is the value's own spelling. ``used`` is where a name stands for it.
    """

    value: object
    span: Span
    whole: bool = False
    reads: tuple[Literal, ...] = ()


class Unknown(Record):
    """A value that the source does not say, and why."""

    why: str
    span: Span = (0, 0)


class Symbol(Record):
    """Something that is imported or built in, by its full name: ``trl.SFTConfig``."""

    name: str


class Items(Record):
    """A list, a tuple or a set."""

    items: list[object]
    span: Span


class Flag(Record):
    """An argument of the program: its name, what it is worth where nobody gives it.

    None is not known, as of a flag that must be given. ``kind`` is what its words become: ``switch`` for a
    flag without words, a type's name, empty where that is not known; ``choices`` are the words that it takes.
    ``options`` are its words on the command, where a parser is given them: argparse takes no other spelling.
    """

    name: str
    default: object
    span: Span
    kind: str = ""
    choices: tuple[object, ...] = ()
    options: tuple[str, ...] = ()

    def accepts(self, value: object) -> bool:
        """Whether the flag can be given so that it is worth a value."""
        if self.kind == "switch":
            return isinstance(value, bool)
        if self.choices and value not in self.choices and str(value) not in self.choices:
            return False
        if self.kind == "bool" and value is False:  # bool("False") is true
            return False
        return self.kind not in _PARSED or _parses(_PARSED[self.kind], value)


def _parses(kind: type, value: object) -> bool:
    try:
        kind(str(value))
    except ValueError:
        return False
    return not isinstance(value, bool)


class Object(Record):
    """What a call makes: an instance of a class, a dictionary, or whatever a function returns.

    ``kind`` is the full name of what is called, ``items`` its keyword arguments or entries, each with the
    span of its key. ``rest`` says why there may be others than these, and is empty where there are none.
    ``branch`` is where in the program it was made: what another branch does to it may not happen.
    ``elsewhere`` says that no call at its place has its arguments: another file does, or it is a copy.
    """

    kind: str
    span: Span
    items: dict[str, tuple[Span, object]] = field(factory=dict)
    positional: list[object] = field(factory=list)
    rest: str = ""
    branch: tuple[int, ...] = ()
    cls: Class | None = None
    calls: set[str] = field(factory=set)  # its methods that are called, with a "?" where they may not be
    last: Span | None = None  # its last argument
    spaced: bool = False  # blanks stand around the "=" of its arguments
    elsewhere: bool = False

    def get(self, name: str) -> object:
        """Return the value of an argument; None where it is not given."""
        found = self.items.get(name)
        return None if found is None else found[1]

    @property
    def name(self) -> str:
        """The last part of its kind."""
        return self.kind.rpartition(".")[2]


class Function(Record):
    """A function of the program, with the names that it sees."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope


class Class(Record):
    """A class of the program: its bases, and the values of its fields in their order."""

    name: str
    bases: list[object]
    fields: dict[str, tuple[Span, object]]
    order: list[str]
    makes_itself: bool = False  # it has an ``__init__`` of its own

    def family(self) -> list[Class | Symbol]:
        """Return it, its bases and theirs, each once, those of the program before they are gone into."""
        found: dict[int, Class | Symbol] = {}
        waiting: list[object] = [self]
        for kind in waiting:  # grows on the way
            if isinstance(kind, (Class, Symbol)) and id(kind) not in found:
                found[id(kind)] = kind
                waiting += kind.bases if isinstance(kind, Class) else []
        return list(found.values())

    def known_base(self) -> str:
        """Return the full name of the first base that is not of the program, empty where there is none."""
        return next((kind.name for kind in self.family() if isinstance(kind, Symbol)), "")

    def all_fields(self) -> dict[str, tuple[Span, object]]:
        """Return its fields with those of its bases, the bases' first."""
        fields: dict[str, tuple[Span, object]] = {}
        for kind in reversed(self.family()):
            if isinstance(kind, Class):
                spend(1 + len(kind.fields) // 4, "values of the program")
                fields |= kind.fields
        return fields


class Scope(Record):
    """The names of a function or the module; ``names`` are looked up in ``outer``, too."""

    names: dict[str, object]
    outer: Scope | None = None

    def find(self, name: str) -> object:
        """Return what a name stands for; None where nothing of the program sets it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


SOMETIMES = "only some branches of the program set it"


_DEEPEST = 6  # objects in each other that are compared


def joined(first: object, second: object, depth: int = 0) -> object:
    """Return what is known of a value that is one of two."""
    if first is second:
        return first
    spend(1, "values of the program")
    if isinstance(first, Literal) and isinstance(second, Literal):
        if type(first.value) is type(second.value) and first.value == second.value:
            return Literal(first.value, first.span)
    elif isinstance(first, Symbol) and isinstance(second, Symbol):
        if first.name == second.name or _are_own_trainers(first, second):
            return first
    elif isinstance(first, Object) and isinstance(second, Object) and _alike(first, second, depth):
        return _joined_objects(first, second, depth + 1)
    return Unknown(SOMETIMES, getattr(first, "span", (0, 0)))


def _are_own_trainers(first: Symbol, second: Symbol) -> bool:
    """Whether two names are trainers of one module of somebody's own, which no library tells apart."""
    one, two = first.name.rpartition("."), second.name.rpartition(".")
    own = one[0] == two[0] and one[0].partition(".")[0] not in {"", "transformers", "trl", "unsloth"}
    return own and "Trainer" in one[2] and "Trainer" in two[2]


def _alike(first: Object, second: Object, depth: int) -> bool:
    return first.kind == second.kind and depth < _DEEPEST


def _joined_objects(first: Object, second: Object, depth: int) -> Object:
    items: dict[str, tuple[Span, object]] = {}
    for name in {**first.items, **second.items}:
        one, two = first.items.get(name), second.items.get(name)
        if one is None or two is None:
            span = (one or two or ((0, 0), None))[0]
            items[name] = span, Unknown(SOMETIMES, span)
        else:
            items[name] = one[0], joined(one[1], two[1], depth)
    calls = first.calls | second.calls
    count = len(first.positional) == len(second.positional)
    positional = [joined(a, b, depth) for a, b in zip(first.positional, second.positional, strict=False)]
    return Object(
        first.kind,
        first.span,
        items,
        positional if count else [],
        first.rest or second.rest or ("" if count else "arguments"),
        first.branch,
        first.cls if first.cls is second.cls else None,
        {name if name in first.calls & second.calls else f"{name.rstrip('?')}?" for name in calls},
        elsewhere=first.elsewhere or second.elsewhere,
    )
