"""The one way to declare a record: annotated fields, and nothing written twice.

    class Place(Record):
        path: str
        start: int
        notes: list[str] = field(factory=list)             # a fresh one for each record
        seen: bool = field(default=False, init=False)      # ``__init__`` does not take it

A ``Record`` gets slots, an ``__init__`` that takes its fields in order or by name (its bases' first, those
that are ``kw_only`` last), a ``repr``, pickling by its fields, and patterns (``case Place(path)``). Two
records are equal where they are the same object. A ``Value`` is compared and hashed by its fields, and mypy
lets nobody assign to them.

A class that needs more writes its own ``__init__`` and still gets the slots; ``__post_init__`` runs at the
end of ours. What is annotated as ``ClassVar`` is not a field. ``__init__`` is written for classes of which
more than a few records are made: a class costs next to nothing at start-up, where a dataclass takes 0.5 ms.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from typing_extensions import dataclass_transform

    R = TypeVar("R", bound="Record")
    V = TypeVar("V")
    T = TypeVar("T")
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Mark what type checkers read as a dataclass."""
        return lambda kind: kind


_ABSENT: Any = object()
_REMEMBERED = 50_000  # values of which a function's result is remembered
_FEW = 24  # records of a class that are made without an ``__init__`` of its own: writing one costs 0.1 ms


class _Field:
    """What follows a field's ``=``."""

    __slots__ = ("compare", "default", "factory", "init", "kw_only")

    def __init__(self, default: object, factory: Callable[[], object] | None, *flags: bool) -> None:
        self.default = default
        self.factory = factory
        self.init, self.compare, self.kw_only = flags


_PLAIN = _Field(_ABSENT, None, True, True, False)


def field(
    *,
    default: Any = _ABSENT,
    factory: Callable[[], Any] | None = None,
    init: bool = True,
    compare: bool = True,
    kw_only: bool = False,
) -> Any:
    """Return what a field is but for its type: as in dataclasses, with ``factory`` for their longer name."""
    return _Field(default, factory, init, compare, kw_only)


@dataclass_transform(field_specifiers=(field,))
class _RecordType(type):
    """Turns annotations into slots, and writes ``__init__`` once more than a few records are made."""

    fields_: dict[str, _Field]
    made_: int

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RecordType:
        """Take the defaults out of the body, where slots may not have them."""
        own = {}
        for known, spelled in body.get("__annotations__", {}).items():
            if "ClassVar" in str(spelled):
                continue
            default = body.pop(known, _PLAIN)
            own[known] = default if type(default) is _Field else _Field(default, None, True, True, False)
        body["__slots__"] = tuple(own)
        inherited = [base.fields_ for base in bases if isinstance(base, _RecordType) and base.fields_]
        body["fields_"] = {n: f for known in inherited for n, f in known.items()} | own if inherited else own
        if own and "__init__" not in body:
            body["__init__"] = _first_init
            body["made_"] = 0
        return super().__new__(mcs, name, bases, body)

    @property
    def __match_args__(cls) -> tuple[str, ...]:
        """What patterns take in order, as ``__init__`` does."""
        return tuple(n for n, known in cls.fields_.items() if known.init and not known.kw_only)


def _first_init(self: Record, *values: Any, **named: Any) -> None:
    kind: Any = next(c for c in type(self).__mro__ if c.__dict__.get("__init__") is _first_init)
    kind.made_ += 1
    if kind.made_ > _FEW or not _filled(self, kind, values, named):
        kind.__init__ = _init_of(kind)
        kind.__init__(self, *values, **named)


def _filled(record: Record, kind: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Set a record's fields; False where the arguments are wrong, which a real ``__init__`` says best."""
    rest = iter(values)
    taken = 0
    for name, known in kind.fields_.items():
        value = next(rest, _ABSENT) if known.init and not known.kw_only else _ABSENT
        if known.init and name in named:
            if value is not _ABSENT:
                return False
            value = named[name]
            taken += 1
        if value is _ABSENT:
            value = known.default if known.factory is None else known.factory()
        if value is not _ABSENT:
            setattr(record, name, value)
        elif known.init:
            return False
    if taken < len(named) or next(rest, _ABSENT) is not _ABSENT:
        return False
    if hasattr(record, "__post_init__"):
        record.__post_init__()
    return True


def _init_of(kind: Any) -> Any:
    """Write the ``__init__`` that one would write by hand."""
    scope: dict[str, Any] = {"_absent": _ABSENT}
    taken: list[str] = ["self"]
    by_name: list[str] = []
    lines: list[str] = []
    for name, known in kind.fields_.items():
        value, default = name, ""
        if known.factory is not None:
            scope[f"_make_{name}"] = known.factory
            default = "=_absent"
            value = f"_make_{name}() if {name} is _absent else {name}" if known.init else f"_make_{name}()"
        elif known.default is not _ABSENT:
            scope[f"_default_{name}"] = known.default
            default = f"=_default_{name}"
            value = name if known.init else f"_default_{name}"
        if known.init:
            (by_name if known.kw_only else taken).append(name + default)
        if known.init or value != name:  # else it is set later
            lines.append(f" self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()")
    parameters = ", ".join([*taken, "*", *by_name] if by_name else taken)
    exec(f"def __init__({parameters}):\n" + "\n".join(lines), scope)  # noqa: S102 (names of our own fields)
    return scope["__init__"]


class Record(metaclass=_RecordType):
    """A record that is itself; see the module's docstring."""

    def __repr__(self) -> str:
        """Show the fields that take part in comparison."""
        known = type(self).fields_.items()
        told = (f"{n}={getattr(self, n)!r}" for n, f in known if f.compare and hasattr(self, n))
        return f"{type(self).__qualname__}({', '.join(told)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as a class and its fields."""
        kind = type(self)
        return _loaded, (kind, *[getattr(self, name) for name in kind.fields_])


def _loaded(kind: type[Record], *values: object) -> Record:
    record = object.__new__(kind)
    for name, value in zip(kind.fields_, values):  # noqa: B905 (hot; as many as there were)
        setattr(record, name, value)
    return record


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _ValueType(_RecordType):
    """The type of records whose fields stay as they are; ``compared_`` reads those that are compared."""

    compared_: Callable[[Any], tuple[object, ...]]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RecordType:
        """Make what reads the compared fields, in C: trees are hashed a million times."""
        kind: Any = super().__new__(mcs, name, bases, body)
        names = [name for name, known in kind.fields_.items() if known.compare]
        kind.compared_ = attrgetter(*names) if len(names) > 1 else _one_of(*names)
        return kind  # type: ignore[no-any-return]


def _one_of(name: str = "__class__") -> Callable[[Any], tuple[object, ...]]:
    """Return what reads one field as a tuple, which ``attrgetter`` does from two fields on."""
    read = attrgetter(name)
    return lambda record: (read(record),)


class Value(Record, metaclass=_ValueType):
    """A record that is what its fields are."""

    def __eq__(self, other: object) -> bool:
        """Compare the fields of two records of one class."""
        if self is other:
            return True
        kind = type(self)
        return kind is type(other) and kind.compared_(self) == kind.compared_(other)

    def __hash__(self) -> int:
        """Hash the fields."""
        return hash(type(self).compared_(self))


def fields(record: Record | type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(record.fields_ if isinstance(record, type) else type(record).fields_)


def replace(record: R, **changes: object) -> R:
    """Return a record like this one but for some fields."""
    kind = type(record)
    values = {n: getattr(record, n) for n, known in kind.fields_.items() if known.init}
    return kind(**{**values, **changes})


def remembered(read: Callable[[V], T]) -> Callable[[V], T]:
    """Remember what a function returns, by identity: to hash a tree takes as long as to walk it."""
    known: dict[int, tuple[V, T]] = {}

    def recall(value: V) -> T:
        found = known.get(id(value))
        if found is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[id(value)] = (value, read(value))  # held: its id stays its own
        return found[1]

    return recall
