"""What a program makes of what it imports, and which arguments it takes from its command line.

Parsers are argparse's, transformers' HfArgumentParser and TRL's TrlParser (dataclasses), tyro and fire.
"""

from __future__ import annotations

import ast

from cfglint.document.python.evaluate import Evaluator
from cfglint.document.python.values import (
    Class,
    Flag,
    Function,
    Items,
    Literal,
    Object,
    Span,
    Symbol,
    Unknown,
    joined,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.source import Code

_SWITCHES = ("store_true", "store_false")
_PLAIN = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
_PARSERS = ("HfArgumentParser", "TrlParser", "H4ArgumentParser")
# The last is H4ArgumentParser's, which gives a single class as it is
# (https://github.com/huggingface/alignment-handbook/blob/v0.3.0/src/alignment/configs.py#L94-L113).
_WHOLE = ("parse_args_into_dataclasses", "parse_args_and_config", "parse_args", "parse")
_SAME = (
    "to",
    "cuda",
    "train",
    "eval",
    "requires_grad_",
    "add_argument_group",
    "add_mutually_exclusive_group",
)


class Parsing(Evaluator):
    """Notes calls and flags: ``calls`` are those of anything that is not the program's own, in their order.

    ``flags`` are the arguments that its parsers take, by name, and ``parsers`` says whether these
    are all; a program is ``asked`` for what those are that
    somebody gives, and all others have their defaults; None where nothing says how it is started.
    ``at_start`` are the places of calls that are made when the program is started, and not only in functions
    that others may call.
    """

    def __init__(self, code: Code, *, asked: dict[str, object] | None = None) -> None:
        super().__init__(code)
        self.asked = asked
        self.calls: dict[int, Object] = {}
        self.flags: dict[str, Flag] = {}
        # whole where all arguments are known, plain with those of transformers' own class, else open
        self.parsers: set[str] = set()
        self.at_start: frozenset[Span] = frozenset()

    def bound(self, function: Function, given: Object) -> dict[str, object]:
        """Return the parameters of a function with their arguments; `Program` knows them."""
        raise NotImplementedError

    def enter(self, function: Function, bound: dict[str, object], node: ast.Call | None) -> object:
        """Go through a function; `Program` does."""
        raise NotImplementedError

    # ── what is not the program's own ──────────────────────────────────────────────────────────────────
    def made(self, made: Object, node: ast.Call) -> object:
        """Return what a call of something imported makes, and note it."""
        first = made.positional[0] if made.positional else None
        if made.kind in ("fire.Fire", "fire.core.Fire") and isinstance(first, Function):
            return self._fire(first, node)
        if made.name == "ArgumentParser":
            made.items = {}
        elif made.kind == "tyro.cli" and isinstance(first, (Class, Symbol)):
            return self._dataclass(first, made.span)
        elif made.kind == "asyncio.run" and first is not None:
            return first
        elif made.kind in ("setattr", "delattr") and isinstance(first, Object):
            self._set_by_name(first, made, node)
        value = super().made(made, node)
        if value is made:
            old = self.calls.get(id(node))
            both = made if old is None else joined(old, made)
            self.calls[id(node)] = both if isinstance(both, Object) else made
        return value

    def _set_by_name(self, owner: Object, given: Object, node: ast.Call) -> None:
        name = given.positional[1] if len(given.positional) > 1 else None
        if isinstance(name, Literal) and isinstance(name.value, str):
            owner.items[name.value] = given.span, self.unknown("it is set by name", node)
        else:
            owner.rest = owner.rest or self._spelled(node)
            owner.items = {
                key: (span, self.unknown("it may be set by name", node))
                for key, (span, _) in owner.items.items()
            }

    def method(self, owner: Object, name: str, node: ast.Call) -> object:
        """Return what a method gives: a parser's arguments, the object itself, or what it is called."""
        if owner.name == "ArgumentParser":
            return self._of_parser(owner, name, node)
        if owner.name in _PARSERS and name.startswith("parse"):
            return self._of_dataclasses(owner, name, node)
        if name in _SAME and owner.kind != "dict":
            self.arguments(Object("", (0, 0)), node)
            self.called(owner, name)
            return owner
        value = super().method(owner, name, node)
        if isinstance(value, Object) and owner.kind != "dict":
            self.calls[id(node)] = value
        return value

    def _of_parser(self, parser: Object, name: str, node: ast.Call) -> object:
        given = self.arguments(Object(name, self.code.span(node)), node)
        if name == "add_argument":
            self._add_argument(parser, given, node)
        elif name in ("parse_args", "parse_known_args"):
            self.parsers.add("whole" if name == "parse_args" and not parser.rest else "open")
            flags = {key: (span, self._worth(flag)) for key, (span, flag) in parser.items.items()}
            made = Object("arguments", given.span, flags, branch=self.branch, rest=parser.rest)
            return (
                made
                if name == "parse_args"
                else Items([made, self.unknown("other arguments", node)], given.span)
            )
        elif name in _SAME:
            return parser
        elif name == "set_defaults":
            for key, (span, value) in given.items.items():
                self._add_flag(parser, Flag(key, value, span))
        elif name not in ("parse_args", "print_help", "error"):
            parser.rest = parser.rest or self._spelled(node)
        return self._computed(node)

    def _worth(self, flag: object) -> object:
        """Return what an argument is worth: what is given, or its default where the program says one."""
        if self.asked is None or not isinstance(flag, Flag):
            return flag
        if flag.name in self.asked:
            return Literal(self.asked[flag.name], flag.span)
        return flag if flag.default is None else flag.default

    def _add_argument(self, parser: Object, given: Object, node: ast.Call) -> None:
        words = [w.value for w in given.positional if isinstance(w, Literal) and isinstance(w.value, str)]
        long = next((w for w in words if w.startswith("--")), words[0] if words else "")
        name = given.get("dest")
        key = name.value if isinstance(name, Literal) else long.lstrip("-").replace("-", "_")
        if not isinstance(key, str) or not key or len(words) < len(given.positional) or given.rest:
            parser.rest = parser.rest or self._spelled(node)
            return
        action = given.get("action")
        switch = action.value if isinstance(action, Literal) else ""
        default = given.get("default")
        if default is None and switch in ("store_true", "store_false"):
            default = Literal(switch == "store_false", given.span)
        required = given.get("required")
        needed = not long.startswith("-") or (isinstance(required, Literal) and required.value is True)
        default = default or Literal(None, given.span)
        kind = "switch" if switch in _SWITCHES else _kind(given.get("type"))
        choices, options = _choices(given.get("choices")), tuple(w for w in words if w.startswith("-"))
        self._add_flag(parser, Flag(key, None if needed else default, given.span, kind, choices, options))

    def _add_flag(self, parser: Object, flag: Flag) -> None:
        old = parser.items.get(flag.name)
        if old is not None or parser.branch != self.branch:
            flag.default = None  # another may be the one that counts
            flag.kind, flag.choices = "", ()
        if isinstance(old, tuple) and isinstance(old[1], Flag):
            flag.options = (*old[1].options, *flag.options)
        parser.items[flag.name] = flag.span, flag
        self.flags[flag.name] = flag

    def _of_dataclasses(self, parser: Object, name: str, node: ast.Call) -> object:
        given = self.arguments(Object("", (0, 0)), node)
        kinds = parser.positional[0] if parser.positional else parser.get("dataclass_types")
        listed = kinds.items if isinstance(kinds, Items) else [kinds]
        if name not in _WHOLE:
            return self._computed(node)
        span = self.code.span(node)
        made: list[object] = []
        for kind in listed:
            if isinstance(kind, (Class, Symbol)):
                made.append(self._dataclass(kind, span))
            else:
                self.parsers.add("open")
                made.append(self.unknown("its class is not known", node))
        rest = given.get("return_remaining_strings")
        if isinstance(rest, Literal) and rest.value is True:
            self.parsers.add("open")
            made.append(self.unknown("the words that are left", node))
        return made[0] if name == "parse" and len(made) == 1 else Items(made, span)

    def _dataclass(self, kind: Class | Symbol, span: Span) -> Object:
        """Return an instance that a parser fills from the program's arguments."""
        base = kind.known_base() if isinstance(kind, Class) else kind.name
        cls = kind if isinstance(kind, Class) else None
        made = Object(base or kind.name, span, branch=self.branch, cls=cls)
        for name, (place, value) in (cls.all_fields() if cls is not None else {}).items():
            needed = isinstance(value, Unknown) and "no default" in value.why
            flag = Flag(name, None if needed or isinstance(value, Unknown) else value, place)
            self.flags[name] = flag
            made.items[name] = place, self._worth(flag)
        made.rest = "flags" if base else ""
        known = "whole" if cls is not None and not base else "open"
        self.parsers.add("plain" if made.kind in _PLAIN else known)
        made.calls.add("parsed")
        self.calls[id(made)] = made
        return made

    def attribute(self, value: Object, name: str, node: ast.AST) -> object:
        """Return a field; one of an imported class that a parser fills is its flag."""
        if "parsed" in value.calls and name not in value.items:
            return Flag(name, None, self.code.span(node))
        return super().attribute(value, name, node)

    def _fire(self, function: Function, node: ast.Call) -> object:
        """Enter a function whose parameters are the program's flags."""
        arguments = function.node.args
        bound = self.bound(function, Object("", (0, 0)))
        for argument in (*arguments.args, *arguments.kwonlyargs):
            default = bound.get(argument.arg)
            flag = Flag(argument.arg, default, self.code.span(argument))
            self.flags[argument.arg] = flag
            bound[argument.arg] = self._worth(flag)
        if isinstance(function.node, ast.Lambda):
            return self._computed(node)
        return self.enter(function, bound, node)


def _kind(given: object) -> str:
    """Return the name of the type that an argument's words become."""
    return given.name if isinstance(given, Symbol) and given.name in ("int", "float", "str", "bool") else ""


def _choices(given: object) -> tuple[object, ...]:
    items = given.items if isinstance(given, Items) else []
    known = tuple(item.value for item in items if isinstance(item, Literal))
    return known if len(known) == len(items) else ()
