"""Compiles what chooses, repeats and calls: if, match, quantifiers, and the functions of the language."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang import types
from cfglint.lang.emit import CompileError, Emitter, is_number, is_text, pattern_of
from cfglint.lang.show import quote, show
from cfglint.lang.types import ANY, BOOL, COUNT, LIST, NUMBER, PLAIN, TEXT, Type
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Builtin: TypeAlias = Callable[[Emitter, t.Call], tuple[str, Type]]
    _Tests: TypeAlias = Sequence[Sequence[str]]  # what each arm of a match is for

_FEW_ARMS = 6  # of a match, that are asked one after the other
_EXTREMES = {"min": "minimum", "max": "maximum"}
MAX_LOOPS = 2  # quantifiers inside each other; each multiplies the time by the length of a list


# ── the functions of the language, which every rule may call ───────────────────────────────────────────────
def _take(node: t.Call, least: int, most: int | None = None) -> None:
    most = least if most is None else most
    if not least <= len(node.arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise CompileError(
            node.span,
            f"{node.function} takes {wanted} argument{'s' * (wanted != '1')}, not {len(node.arguments)}",
        )


def _numbers(function: Emitter, node: t.Call) -> tuple[list[str], Type]:
    parts = [(argument, *function.value(argument)) for argument in node.arguments]
    united = [kind for _, _, kind in parts if kind.kind == "number" and not kind.bare]
    lead = next((kind for kind in united if not kind.written), united[0] if united else NUMBER)
    atoms = [function.fit(argument, atom, kind, lead) for argument, atom, kind in parts]
    whole = all(kind.whole for _, _, kind in parts)
    bare = all(kind.kind == "number" and kind.bare for _, _, kind in parts)
    return atoms, Type("number", lead.dimension, lead.unit, whole=whole, bare=bare, written=lead.written)


def _extreme(runtime: str) -> Builtin:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        if len(node.arguments) == 1:
            atom, kind = function.value(node.arguments[0])
            if kind.kind not in ("list", "any"):
                raise CompileError(node.span, f"{node.function} takes two numbers or more, or one list")
            return function.once(f"extreme_over(as_list({atom}), as_number, {runtime})"), NUMBER
        _take(node, 2, 100)
        atoms, kind = _numbers(function, node)
        return function.once(_short(function, runtime, atoms) + f"{runtime}({', '.join(atoms)})"), kind

    return emit


def _short(function: Emitter, runtime: str, atoms: list[str]) -> str:
    """Return how two plain numbers are compared without a call; their names replace ``atoms``."""
    if len(atoms) != 2:
        return ""
    left, right = atoms[:] = [function.held(atom) for atom in atoms]
    plain = [f"type({atom}) is not Interval" for atom in atoms if not is_number(atom)]
    sign = ">" if runtime == "maximum" else "<"
    return f"({right} if {right} {sign} {left} else {left}) if {' and '.join(plain) or True} else "


def _of_number(runtime: str, *, plain: bool = False, rounds: bool = False) -> Builtin:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        _take(node, 1)
        (atom,), kind = _numbers(function, node)
        if plain and kind.dimension != PLAIN:
            raise CompileError(
                node.span, f"{node.function} takes a plain number, and {show(node.arguments[0])} is {kind}"
            )
        if rounds:
            kind = replace(kind, whole=kind.dimension == PLAIN)
        return function.once(f"{runtime}({atom})"), NUMBER if plain else kind

    return emit


def _part(place: int) -> Builtin:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        _take(node, 2)
        text, _ = function.typed(node.arguments[0], TEXT)
        separator, _ = function.typed(node.arguments[1], TEXT)
        return function.once(f"divided({text}, {separator}, {place})"), TEXT

    return emit


def _renumbered(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``renumbered(text, "d", 2)``: the text with another number behind a letter."""
    _take(node, 3)
    text, _ = function.typed(node.arguments[0], TEXT)
    letter, _ = function.typed(node.arguments[1], TEXT)
    number, _ = function.typed(node.arguments[2], COUNT)
    return function.once(f"renumbered({text}, {letter}, {number})"), TEXT


def _capture(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``capture(text, "*t{n:int}*", 1)``: what the pattern's one capture holds, else the default."""
    _take(node, 2, 3)
    text, _ = function.typed(node.arguments[0], TEXT)
    pattern = node.arguments[1]
    if not isinstance(pattern, t.Text):
        raise CompileError(node.span, "the pattern of capture must be a string in quotes")
    pieces = pattern_of(pattern)
    captures = [kind for piece in pieces for kind, name in piece if name and kind != "="]
    if len(captures) != 1:
        raise CompileError(
            pattern.span, f"capture needs exactly one named capture; this pattern has {len(captures)}"
        )
    kind = COUNT if captures[0] == "int" else TEXT
    default = f"NAMES(({'a string like ' + quote(pattern.value)!r},))"
    if len(node.arguments) == 3:
        default = function.typed(node.arguments[2], kind)[0]
    return function.once(f"capture({text}, {pieces!r}, {default}, {kind.kind!r})"), kind


def _length(function: Emitter, node: t.Call) -> tuple[str, Type]:
    _take(node, 1)
    atom, kind = function.value(node.arguments[0])
    if kind.kind not in ("list", "any"):
        raise CompileError(node.span, f"length takes a list, and {show(node.arguments[0])} is {kind}")
    return function.once(f"length(as_list({atom}))"), COUNT


def _adapted(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``adapted(targets, parents, names, layers)``: the layers in which such a module has an adapter."""
    _take(node, 4)
    lists = [function.value(argument)[0] for argument in node.arguments[:3]]
    layers, _ = function.typed(node.arguments[3], COUNT)
    return function.once(f"adapted({', '.join(lists)}, {layers})"), COUNT


def _divisors(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``divisors(a, b)``: the whole numbers that divide all of its arguments, as a list."""
    _take(node, 1, 10)
    atoms, kind = _numbers(function, node)
    if kind.dimension != PLAIN:
        raise CompileError(
            node.span, f"divisors takes plain numbers, and {show(node.arguments[0])} is {kind}"
        )
    return function.once(f"divisors({', '.join(atoms)})"), LIST


def _known(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``known(x)``: whether there is a value for it at all, however uncertain."""
    _take(node, 1)
    atom = function.held(function.value(node.arguments[0])[0])
    return function.once(f"True if type({atom}) in PLAIN else not needs_of({atom})"), BOOL


FUNCTIONS: dict[str, Builtin] = {
    **{name: _extreme(runtime) for name, runtime in _EXTREMES.items()},
    "ceil": _of_number("ceiling", rounds=True),
    "floor": _of_number("floor", rounds=True),
    "round": _of_number("nearest_whole", rounds=True),
    "abs": _of_number("absolute"),
    "lowest": _of_number("lowest"),
    "highest": _of_number("highest"),
    "sqrt": _of_number("square_root", plain=True),
    "log2": _of_number("binary_logarithm", plain=True),
    "before": _part(0),
    "after": _part(2),
    "capture": _capture,
    "renumbered": _renumbered,
    "length": _length,
    "adapted": _adapted,
    "divisors": _divisors,
    "known": _known,
}


class Branches(Emitter):
    """The part of the compiler that emits blocks."""

    def _join(self, node: t.Expr, x: Type, y: Type) -> Type:
        """Return the type of what is either an ``x`` or a ``y``."""
        if x.kind == "number" == y.kind:
            if x.bare or y.bare:
                lead = y if x.bare else x
            elif x.dimension != y.dimension:
                raise CompileError(node.span, f"one arm is {x}, the other {y}")
            else:
                lead = y if x.written else x
            return replace(
                lead, whole=x.whole and y.whole, bare=x.bare and y.bare, low=-types.INF, high=types.INF
            )
        if x.kind == "enum" == y.kind and x != y:
            return types.TEXT
        if x.kind == y.kind:
            return x
        if {x.kind, y.kind} == {"text", "enum"}:
            return types.TEXT
        if not {x.kind, y.kind}.isdisjoint({"any", "null"}):
            return ANY
        raise CompileError(node.span, f"one arm is {x}, the other {y}")

    def _joined(self, node: t.Expr, arms: Sequence[tuple[int, str, Type]], result: Type) -> None:
        """Put the result's unit into the arms written without one; ``arms`` has their last lines."""
        for place, atom, kind in arms:
            if kind.kind == "number" and kind.bare and not result.bare and result.factor != 1:
                if result.written and result.unit == "%":
                    raise CompileError(node.span, "write the unit in every arm")
                self.lines[place] = self.lines[place].replace(atom, f"{atom} * {result.factor!r}")

    def _if(self, node: t.If, wanted: Type | None) -> tuple[str, Type]:
        condition = self.held(self.typed(node.condition, BOOL)[0])
        result = ""
        arms: list[tuple[int, str, Type]] = []

        def body(arm: t.Expr, hint: Type | None) -> None:
            nonlocal result
            atom, kind = self.value(arm, hint)
            last = self.put(atom)
            arms.append((len(self.lines) - 1, f"= {atom}", kind))
            if result:
                either = f"if_({condition}, {result}, {last})"
                self.line(f"{result} = {last} if {condition} is False else {either}")
            result = result or last

        self.block(f"if {condition} is not False", lambda: body(node.then, wanted))
        hint = arms[0][2] if wanted is None and arms[0][2].kind == "enum" else wanted
        self.block(f"if {condition} is not True", lambda: body(node.other, hint))
        kind = self._join(node, arms[0][2], arms[1][2])
        self._joined(node, arms, kind)
        return result, kind

    def _choice(self, node: t.Choice, wanted: Type | None) -> tuple[str, Type]:
        atom, kind = self.value(node.subject)
        subject = self.put(atom)
        tests = [[self._pattern(p, kind) for p in patterns] for patterns, _ in node.arms]
        covered = {test for each in tests for test in each}
        if not tests and node.other is None:
            raise CompileError(node.span, "match needs at least one arm")
        total = node.other is not None or (kind.kind == "enum" and {repr(m) for m in kind.members} <= covered)
        total = total or (kind.kind == "bool" and {"True", "False"} <= covered)
        emit = self._few if kind.kind in ("enum", "text") and all(map(is_text, covered)) else self._arms
        return emit(node, (subject, kind), tests, wanted, total=total)

    def _few(
        self, node: t.Choice, of: tuple[str, Type], tests: _Tests, wanted: Type | None, *, total: bool
    ) -> tuple[str, Type]:
        """Emit a match whose patterns are texts: a known subject has one arm, an unknown one has all."""
        subject, subject_kind = of
        places: dict[str, int] = {}
        for place, each in enumerate(tests):
            for test in each:
                places.setdefault(test, place)
        table = self.put(f"{{{', '.join(f'{test}: {place}' for test, place in places.items())}}}")
        place_of = f"arm({subject}, {table}, {len(tests)})"
        chosen = self.put(f"{table}.get({subject}, {len(tests)}) if type({subject}) is str else {place_of}")
        result, values = self.put("None"), self.put("[]")
        arms: list[tuple[int, str, Type]] = []

        def body(arm: t.Expr) -> None:
            atom, own = self.value(arm, wanted)
            self.line(f"{result} = {atom}")
            arms.append((len(self.lines) - 1, f"= {atom}", own))
            self.line(f"if {chosen} < 0: {values}.append({result})")

        def among(bodies: Sequence[t.Expr], first: int) -> None:
            """Emit some arms, halved until few are left: a table may have a hundred."""
            if len(bodies) <= _FEW_ARMS:
                for place, arm in enumerate(bodies, first):
                    self.block(f"if {chosen} == {place} or {chosen} < 0", partial(body, arm))
                return
            half = len(bodies) // 2
            for low, part in ((first, bodies[:half]), (first + half, bodies[half:])):
                head = f"if {low} <= {chosen} < {low + len(part)} or {chosen} < 0"
                self.block(head, partial(among, part, low))

        among(_bodies(node), 0)
        kind = self._joined_all(node, arms)
        label = self._label(node.subject, subject_kind, wanted)
        open_ = f"chosen({values}, {subject}, {total}, {kind.kind!r}, {label!r})"
        self.line(f"if {chosen} < 0 or {chosen} >= {len(arms)}: {result} = {open_}")
        return result, kind

    def _joined_all(self, node: t.Expr, arms: Sequence[tuple[int, str, Type]]) -> Type:
        result = arms[0][2]
        for _, _, own in arms[1:]:
            result = self._join(node, result, own)
        self._joined(node, arms, result)
        return result

    def _arms(
        self, node: t.Choice, of: tuple[str, Type], tests: _Tests, wanted: Type | None, *, total: bool
    ) -> tuple[str, Type]:
        """Emit a match of any kind: every arm that may be meant is computed."""
        subject, subject_kind = of
        values, settled = self.put("[]"), self.put("False")
        arms: list[tuple[int, str, Type]] = []
        for place, arm in enumerate(_bodies(node)):
            if place < len(tests):
                members = f"({''.join(a + ', ' for a in tests[place])})"
                hit = self.put(f"False if {settled} is True else member({subject}, {members})")
            else:
                hit = self.put(f"not_({settled})")

            def body(arm: t.Expr = arm) -> None:
                atom, own = self.value(arm, wanted)
                atom = self.put(atom)
                self.line(f"{values}.append({atom})")
                arms.append((len(self.lines) - 1, f"({atom}", own))

            self.block(f"if {hit} is not False", body)
            self.line(f"{settled} = {hit} if {settled} is False else or_({settled}, {hit})")
        kind = self._joined_all(node, arms)
        label = self._label(node.subject, subject_kind, wanted)
        made = f"chosen({values}, {subject}, {total or settled}, {kind.kind!r}, {label!r})"
        return self.put(made), kind

    def _label(self, subject: t.Expr, kind: Type, wanted: Type | None) -> str:
        """Return what goes before a value that no arm is for, ``optimizer``; nothing where a text says it."""
        if kind.kind in ("text", "any") and wanted is not None and wanted.kind == "enum":
            made = (n for n, own in self.names.symbols.types.items() if own == wanted and "." not in n)
            return next(made, "").replace("_", " ")  # the fact that is made of a word of the file
        if isinstance(subject, t.Path):
            return str(subject.steps[-1]) if subject.steps else ""
        name = subject.name.rpartition(".")[2] if isinstance(subject, t.Name) else ""
        worded = kind.kind == "text" and name not in self.names.symbols.facts
        return "" if worded else name.replace("_", " ")

    def _pattern(self, node: t.Expr, subject: Type) -> str:
        """Emit one pattern of an arm; beside a text, or a value of the file, a name is a word."""
        if isinstance(node, t.Name) and subject.kind in ("any", "text"):
            return repr(node.name)
        atom, kind = self.value(node, subject)
        return atom if subject.kind == "any" or kind.kind == "null" else self.fit(node, atom, kind, subject)

    def _call(self, node: t.Call, wanted: Type | None) -> tuple[str, Type]:
        function = self.names.symbols.functions.get(node.function)
        if function is not None:
            return self._put_in(node, function, wanted)
        builtin = FUNCTIONS.get(node.function)
        if builtin is None:
            if node.function in self.names.symbols.names():
                raise CompileError(node.span, f"{node.function} is not a function; it takes no arguments")
            from cfglint.lang.habits import call_instead_of

            instead = call_instead_of(node.function, [show(argument) for argument in node.arguments])
            near = self.names.near(node.function, (*FUNCTIONS, *self.names.symbols.functions))
            raise CompileError(node.span, instead or f"unknown function {node.function!r}{near}")
        return builtin(self, node)

    def _put_in(self, node: t.Call, function: t.Let, wanted: Type | None) -> tuple[str, Type]:
        """Emit a function's body in place of its call."""
        least = len(function.parameters)
        if len(node.arguments) != least:
            plural = "s" * (least != 1)
            raise CompileError(
                node.span, f"{function.name} takes {least} argument{plural}, not {len(node.arguments)}"
            )
        if function.name in self.names.open:
            raise CompileError(node.span, f"{function.name} calls itself")
        bound = {}
        for parameter, argument in zip(function.parameters, node.arguments, strict=True):
            atom, kind = self.value(argument)
            bound[parameter] = atom, kind
        outer, self.variables = self.variables, bound
        roles, self.roles = self.roles, {}
        self.names.open.append(function.name)
        try:
            result = self.value(function.body, wanted)
        except CompileError as error:
            raise CompileError(node.span, f"in {function.name}: {error.inmost}", error.inmost) from None
        finally:
            self.names.open.pop()
            self.variables, self.roles = outer, roles
        self.names.called.add(function.name)
        return result

    def _quantifier(self, node: t.Quantifier, _wanted: Type | None) -> tuple[str, Type]:
        truths = node.kind in ("all", "any", "count")
        if isinstance(node.source, t.Name) and node.source.name == "roles":
            return self._over_roles(node, truths=truths)
        source, kind = self.value(node.source)
        if kind.kind not in ("list", "any"):
            raise CompileError(
                node.source.span, f"{show(node.source)} is {kind}, but a list is expected here"
            )
        if self.loops == MAX_LOOPS:
            raise CompileError(
                node.span, f"more than {MAX_LOOPS} quantifiers inside each other take too long"
            )
        self.temporaries += 1
        name, variable = f"f{self.temporaries}", f"v{self.temporaries}"
        outer = self.variables
        self.variables = {**outer, node.variable: (variable, ANY)}
        self.loops += 1
        inner: list[Type] = []

        def body() -> None:
            atom, own = self.typed(node.body, BOOL) if truths else self.arithmetic(node.body)
            inner.append(own)
            self.line(f"return {atom}")

        try:
            self.block(f"def {name}({variable})", body)
        finally:
            self.variables = outer
            self.loops -= 1
        if node.kind in _EXTREMES:
            over = f"extreme_over(as_list({source}), {name}, {_EXTREMES[node.kind]})"
        else:
            over = f"{node.kind}_over(as_list({source}), {name})"
        of_truths = types.COUNT if node.kind == "count" else BOOL
        return self.put(over), of_truths if truths else replace(inner[0], bare=False)

    def _over_roles(self, node: t.Quantifier, *, truths: bool) -> tuple[str, Type]:
        start = {"all": "True", "any": "False", "sum": "0", "count": "0"}.get(node.kind, "[]")
        result, kind = self.put(start), BOOL if node.kind in ("all", "any") else types.COUNT
        outer = self.roles
        for role in self.names.symbols.roles.values():
            self.roles = outer
            present = self.put("True" if role.when is None else self.typed(role.when, BOOL)[0])
            self.roles = {**outer, node.variable: role.name}

            def body(present: str = present) -> Type:
                atom, own = self.typed(node.body, BOOL) if truths else self.arithmetic(node.body)
                step = {
                    "sum": f"{result} + if_({present}, {atom}, 0)",
                    "count": f"{result} + as_count(and_({present}, {atom}))",
                    "all": f"and_({result}, implies({present}, {atom}))",
                    "any": f"or_({result}, and_({present}, {atom}))",
                }.get(node.kind, f"[*{result}, ({present}, {atom})]")
                self.line(f"{result} = {step}")
                return own

            try:
                own = self.block(f"if {present} is not False", body)
            finally:
                self.roles = outer
            if not truths:
                if kind is not types.COUNT and kind.dimension != own.dimension:
                    raise CompileError(
                        node.span, f"{show(node.body)} is {kind} for one role and {own} for {role.name}"
                    )
                kind = replace(own, bare=False, whole=False)
        if node.kind in _EXTREMES:
            result = self.put(f"{node.kind}_of_roles({result})")
        return result, kind


def _bodies(node: t.Choice) -> tuple[t.Expr, ...]:
    """Return what the arms of a match give, ``else`` last."""
    return (*(arm for _, arm in node.arms), *(() if node.other is None else (node.other,)))
