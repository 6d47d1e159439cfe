"""Rule trees to Python source, and that to code: types checked, units put in.

Known values cost what plain Python costs.
"""

from __future__ import annotations

import marshal
import sys
from itertools import accumulate
from types import CodeType
from typing import TYPE_CHECKING

from cfglint.errors import did_you_mean
from cfglint.lang import tree as t
from cfglint.lang import types
from cfglint.lang.calls import FUNCTIONS, Branches
from cfglint.lang.emit import CompileError, Scope, is_number, is_text, pattern_of, plain_test, tidy
from cfglint.lang.runtime import MAX_TEXT
from cfglint.lang.show import show
from cfglint.lang.types import ANY, BOOL, NULL, PLAIN, TEXT, UNITS, VERSION, Type
from cfglint.record import replace

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Ends: TypeAlias = tuple[int, ...]  # of the functions, which lie one behind the other
    Data: TypeAlias = dict[str, Any]
    # Functions; facts, measures and the source of the other tables; the block of each framework.
    Emitted: TypeAlias = tuple[str, Ends, tuple[Data, Data, str], dict[str, str]]
    Code: TypeAlias = tuple[bytes | memoryview, Ends, tuple[Data, Data, CodeType], dict[str, bytes]]

__all__ = ["CompileError", "Function", "Names", "packed"]

_BARE = replace(types.NUMBER, bare=True)  # a term of the file: in the unit of the other terms
_ALIKE = 0.75  # of a misspelled name; one that is less alike is probably a key of the file
_FEW = 3  # facts that have a value of one name
_ROW = 16  # terms of one line of a long sum; Python's compiler recurses over them


class Names(Scope):
    """The scope of what this module compiles."""

    def infer(self, body: t.Expr) -> Type:
        """Return the type of an expression."""
        return Function(self).value(body)[1]


class Function(Branches):
    """Emits the body of one Python function."""

    # ── what is written as it stands ───────────────────────────────────────────────────────────────────
    def _number(self, node: t.Number, wanted: Type | None) -> tuple[str, Type]:
        if node.unit is None:
            if (member := _member(show(node), wanted)) is not None:
                return member
            return repr(tidy(node.value)), Type("number", bare=True, whole=isinstance(node.value, int))
        factor, dimension = UNITS[node.unit]
        return repr(tidy(node.value * factor)), Type("number", dimension, node.unit, written=True)

    def _text(self, node: t.Text, wanted: Type | None) -> tuple[str, Type]:
        return self._member_or(node, node.value, wanted) or (repr(node.value), TEXT)

    def _member_or(self, node: t.Expr, word: str, wanted: Type | None) -> tuple[str, Type] | None:
        """Return a member of the enumeration that is wanted, None where none is. Complains of other words."""
        if wanted is None or wanted.kind != "enum":
            return None
        member = _member(word, wanted)
        if member is None:
            raise CompileError(
                node.span, f"{word!r} is not {wanted}{did_you_mean(word, dict(wanted.spellings))}"
            )
        return member

    def _truth(self, node: t.Truth, wanted: Type | None) -> tuple[str, Type]:
        return self._member_or(node, str(node.value).lower(), wanted) or (repr(node.value), BOOL)

    def _null(self, _node: t.Null, wanted: Type | None) -> tuple[str, Type]:
        return _member("null", wanted) or ("None", NULL)

    def _version(self, node: t.Version, _wanted: Type | None) -> tuple[str, Type]:
        return repr(node.numbers), VERSION

    def _listof(self, node: t.ListOf, wanted: Type | None) -> tuple[str, Type]:
        return self.put(f"[{', '.join(self.value(item, wanted)[0] for item in node.items)}]"), types.LIST

    def _recordof(self, node: t.RecordOf, _wanted: Type | None) -> tuple[str, Type]:
        inner = ", ".join(f"{key!r}: {self.value(value)[0]}" for key, value in node.fields)
        return self.put(f"{{{inner}}}"), types.RECORD

    # ── names and keys ─────────────────────────────────────────────────────────────────────────────────
    def _name(self, node: t.Name, wanted: Type | None) -> tuple[str, Type]:
        name = node.name
        head, _, rest = name.partition(".")
        if head in self.roles and rest:
            name = f"{self.roles[head]}.{rest}"
            if self.names.type_of(name) is None:
                raise CompileError(node.span, f"role {self.roles[head]} has no {rest!r}")
        elif head in self.variables:
            atom, kind = self.variables[head]
            for part in rest.split(".") if rest else ():
                atom, kind = self.once(f"field({atom}, {part!r})"), ANY
            return atom, kind
        elif (member := _member(name, wanted)) is not None:
            return member
        own = self.names.type_of(name)
        if own is None:
            raise self._unknown(node, wanted)
        return f"V[{name!r}]", own

    def _unknown(self, node: t.Name, wanted: Type | None) -> CompileError:
        from cfglint.lang.habits import word_instead_of

        name, symbols = node.name, self.names.symbols
        if (habit := word_instead_of(name)) is not None:
            return CompileError(node.span, habit)
        if name in symbols.functions or name in FUNCTIONS:
            return CompileError(node.span, f"{name} takes arguments: {name}(…)")
        if f"{name}.{t.LISTS}" in symbols.functions:
            columns = [f for f in symbols.functions if f.startswith(f"{name}.") and f != f"{name}.{t.LISTS}"]
            written = [f"write in table {name}", *(f"{column}(word)" for column in columns)]
            return CompileError(node.span, f"{name} is a table: {' or '.join(written)}")
        if wanted is not None and wanted.kind == "enum":
            near = self.names.near(name, (*dict(wanted.spellings), *symbols.names()))
            return CompileError(node.span, f"{name!r} is not {wanted}{near}")
        near = self.names.near(name, (*symbols.names(), *self.variables, *self.roles), cutoff=_ALIKE)
        if wanted is not None and wanted.kind in ("text", "any"):
            near += f'; strings need quotes: "{name}"'
        if name == "roles":
            near = "; write roles after `in`: sum r in roles: r.params"
        return CompileError(node.span, f"unknown name {name!r}{near or self._probably(name)}")

    def _probably(self, name: str) -> str:
        """Return what a name is that nothing is named like: a field, a value, or a key of the file."""
        items = [*self.roles, *(variable for variable, (_, kind) in self.variables.items() if kind == ANY)]
        key = f"a key of the file is written $.{name}"
        if items and not self.names.open:  # those of a function are any values
            field = name.removeprefix(items[-1]).lstrip("_") or name
            return f"; a field of {items[-1]} is written {items[-1]}.{field}, and {key}"
        kinds = self.names.symbols.types.items()
        having = [fact for fact, kind in kinds if name.lower() in dict(kind.spellings)]
        if having and len(having) <= _FEW:
            return f"; {name} is a value of {having[0]}: write {having[0]} == {name}"
        return f"; {key}"

    def _path(self, node: t.Path, _wanted: Type | None) -> tuple[str, Type]:
        return self.once(f"V.key({node.steps!r})"), types.LIST if "*" in node.steps else ANY

    def _has(self, node: t.Has, _wanted: Type | None) -> tuple[str, Type]:
        if "*" in node.path.steps:
            raise CompileError(node.path.span, "has asks for one key; use any … in … for the items of a list")
        return self.put(f"V.has({node.path.steps!r})"), BOOL

    # ── truths ─────────────────────────────────────────────────────────────────────────────────────────
    def _not(self, node: t.Not, _wanted: Type | None) -> tuple[str, Type]:
        return self.negated(self.typed(node.operand, BOOL)[0]), BOOL

    def _junction(self, node: t.Junction, _wanted: Type | None) -> tuple[str, Type]:
        settled, settles = ("False", "True") if node.operator == "and" else ("True", "False")
        result = self.put(self.typed(node.operands[0], BOOL)[0])
        for operand in node.operands[1:]:

            def rest(operand: t.Expr = operand) -> None:
                atom = self.typed(operand, BOOL)[0]
                self.line(
                    f"{result} = {atom} if {result} is {settles} else {node.operator}_({result}, {atom})"
                )

            self.block(f"if {result} is not {settled}", rest)
        return result, BOOL

    def _compare(self, node: t.Compare, _wanted: Type | None) -> tuple[str, Type]:
        parts = self._operands(node.operands)
        result = ""
        for i, operator in enumerate(node.operators):
            pair = self._pair(parts[i], operator, parts[i + 1])
            result = self.put(f"and_({result}, {pair})") if result else pair
        return result, BOOL

    def _operands(self, nodes: tuple[t.Expr, ...]) -> list[tuple[t.Expr, str, Type]]:
        """Emit the operands of a comparison; words come last: another's enumeration resolves them."""
        enumeration: Type | None = None
        texts = False
        done: dict[int, tuple[str, Type]] = {}
        for i, node in sorted(enumerate(nodes), key=lambda pair: self._rank(pair[1])):
            wanted = enumeration or (TEXT if texts else None)
            done[i] = atom, kind = self.value(node, wanted)
            if kind.kind == "enum":
                enumeration = enumeration or kind
            texts = texts or kind.kind in ("text", "any")
            done[i] = atom, kind
        return [(node, *done[i]) for i, node in enumerate(nodes)]

    def _rank(self, node: t.Expr) -> int:
        """Return how late an operand is emitted: enumerations first, then others, then possible members."""
        if isinstance(node, t.Name):
            head = node.name.partition(".")[0]
            if head in self.variables or head in self.roles:
                return 1
            kind = self.names.type_of(node.name)
            return 3 if kind is None else 0 if kind.kind == "enum" else 2
        return 2 if isinstance(node, (t.Text, t.Truth, t.Null, t.Number)) else 1

    def _pair(self, left: tuple[t.Expr, str, Type], operator: str, right: tuple[t.Expr, str, Type]) -> str:
        """Emit the comparison of two operands, each of which may say what the other is."""
        (first, a, x), (second, b, y) = left, right
        ordered = operator not in ("==", "!=")
        if "null" in (x.kind, y.kind) and not ordered:
            return self._equality(a, operator, b)
        if x.kind == "any" and (ordered or y.kind != "any"):
            wanted = types.NUMBER if y.kind == "any" else y
            a, x = self._compared(first, a, x, wanted), wanted
        if y.kind == "any" and x.kind != "any":
            b, y = self._compared(second, b, y, x), x
        if x.kind == y.kind == "number":
            return self._numbers((first, a, x), operator, (second, b, y))
        if x.kind == y.kind == "version":
            return self._versions(a, operator, b)
        words = {"text", "enum"}
        if ordered or (x.kind != y.kind and {x.kind, y.kind} != words):
            raise self._uneven((first, x), operator, (second, y))
        if x.kind == "enum" and x != y:
            b = self.fit(second, b, y, x)
        elif y.kind == "enum" and x != y:
            a = self.fit(first, a, x, y)
        return self._equality(a, operator, b)

    def _compared(self, node: t.Expr, atom: str, kind: Type, wanted: Type) -> str:
        """Convert a value of the file to ``wanted`` for a comparison; null is no word."""
        if wanted.kind not in ("text", "enum") or "null" in dict(wanted.spellings):
            return self.fit(node, atom, kind, wanted)
        atom = self.held(atom)
        return self.put(f"None if {atom} is None else {self.fit(node, atom, kind, wanted)}")

    def _uneven(self, left: tuple[t.Expr, Type], operator: str, right: tuple[t.Expr, Type]) -> CompileError:
        """Return the error for two operands that cannot be compared."""
        from cfglint.lang.mismatch import comparison

        first, second = sorted((left[0].span, right[0].span))  # in a range, the upper end stands behind
        return CompileError((first[0], second[1]), comparison(left, operator, right))

    def _equality(self, a: str, operator: str, b: str) -> str:
        """Emit a comparison; with a text that is written down, Python itself compares a known one."""
        if is_text(a) and not is_text(b):
            a, b = b, a
        quick = ""
        if is_text(b):
            a = self.held(a)
            quick = f"{a} {operator} {b} if type({a}) is str else "
        return self.put(quick + (f"equal({a}, {b})" if operator == "==" else f"not_(equal({a}, {b}))"))

    def _versions(self, a: str, operator: str, b: str) -> str:
        text = {
            "<": f"older({a}, {b})",
            ">": f"older({b}, {a})",
            "<=": f"not_(older({b}, {a}))",
            ">=": f"not_(older({a}, {b}))",
            "==": f"equal(as_version({a}), as_version({b}))",
            "!=": f"not_(equal(as_version({a}), as_version({b})))",
        }
        return self.put(text[operator])

    def _numbers(self, left: tuple[t.Expr, str, Type], operator: str, right: tuple[t.Expr, str, Type]) -> str:
        """Emit a comparison of numbers; one written without a unit takes the other's."""
        (first, a, x), (second, b, y) = left, right
        if x.bare and not y.bare:
            a = self.scaled(a, y.factor)
        elif y.bare and not x.bare:
            b = self.scaled(b, x.factor)
        elif x.dimension != y.dimension:
            raise self._uneven((first, x), operator, (second, y))
        result = self.put(f"{a} {operator} {b}")
        if self.names.repeat(first, second):
            self.line(f"if type({result}) is Open: {result} = again({result}, {a}, {operator!r}, {b})")
        return result

    def _range(self, node: t.Range, _wanted: Type | None) -> tuple[str, Type]:
        a, x = self.arithmetic(node.low)
        b, y = self.arithmetic(node.high)
        if x.bare and y.written:
            a, x = self.scaled(a, UNITS[y.unit][0] if y.unit else 1), y  # 20..30 %
        elif x.bare and not y.bare:
            a, x = self.scaled(a, y.factor), y
        elif y.bare and not x.bare:
            b, y = self.scaled(b, UNITS[x.unit][0] if x.written and x.unit else x.factor), x
        elif x.dimension != y.dimension:
            raise CompileError(node.span, f"a range cannot run from {x} to {y}")
        return self.put(_hull(a, b)), replace(x, whole=False, low=-types.INF, high=types.INF)

    def _member(self, node: t.Member, _wanted: Type | None) -> tuple[str, Type]:
        container = node.container
        if isinstance(container, t.Range):
            low, item, high = self._operands((container.low, node.item, container.high))
            if item[2].kind == "list":
                from cfglint.lang.mismatch import of_each

                asked = of_each(node.item, f"in {show(container)}")
                raise CompileError(node.item.span, f"{show(node.item)} is a list{asked}")
            if low[2].bare and high[2].written and high[2].unit:
                low = (low[0], self.scaled(low[1], UNITS[high[2].unit][0]), high[2])
            atom = self.put(f"and_({self._pair(low, '<=', item)}, {self._pair(item, '<=', high)})")
        elif isinstance(container, t.ListOf):
            if len(container.items) == 1 and isinstance(container.items[0], t.Range):
                only = show(container.items[0])
                raise CompileError(
                    container.span, f"write in {only}: in brackets it is a list with one range"
                )
            item, *others = self._operands((node.item, *container.items))
            if item[2].kind in ("enum", "text") and all(is_text(a) and k == item[2] for _, a, k in others):
                subject, texts = self.held(item[1]), "".join(f"{atom}, " for _, atom, _ in others)
                atom = self.put(
                    f"{subject} in ({texts}) if type({subject}) is str else member({subject}, ({texts}))"
                )
                return (self.negated(atom) if node.negated else atom), BOOL
            tests = [self._pair(item, "==", other) for other in others]
            atom = self.put("False")
            for test in tests:
                self.line(f"{atom} = or_({atom}, {test})")
        else:
            item_atom, _ = self.value(node.item)
            atom, kind = self.value(container)
            if kind.kind not in ("list", "any"):
                from cfglint.lang.mismatch import membership

                raise CompileError(
                    container.span, membership(node.item, container, kind, negated=node.negated)
                )
            atom = self.put(f"member({item_atom}, as_list({atom}))")
        return (self.negated(atom) if node.negated else atom), BOOL

    def _like(self, node: t.Like, _wanted: Type | None) -> tuple[str, Type]:
        atom, kind = self.value(node.subject, TEXT)
        atom = (self._compared if kind.kind == "any" else self.fit)(node.subject, atom, kind, TEXT)
        pieces = pattern_of(node.pattern)
        atom, test = self.held(atom), plain_test(pieces)
        quick = (
            f"{test.format(atom)} if type({atom}) is str and len({atom}) <= {MAX_TEXT} else " if test else ""
        )
        result = self.put(f"{quick}like({atom}, {pieces!r})")
        return (self.negated(result) if node.negated else result), BOOL

    # ── arithmetic ─────────────────────────────────────────────────────────────────────────────────────
    def _negative(self, node: t.Negative, _wanted: Type | None) -> tuple[str, Type]:
        atom, kind = self.arithmetic(node.operand)
        kind = replace(kind, low=-types.INF, high=types.INF)
        if is_number(atom):
            return (atom[1:] if atom.startswith("-") else f"-{atom}"), kind
        return self.once(f"-{atom}"), kind

    def _sum(self, node: t.Sum, _wanted: Type | None) -> tuple[str, Type]:
        parts = [(sign, term, *self.arithmetic(term, _BARE)) for sign, term in node.terms]
        united = [kind for *_, kind in parts if not kind.bare]
        lead = next((kind for kind in united if not kind.written), united[0] if united else parts[0][3])
        atoms = []
        for sign, term, atom, kind in parts:
            if kind.bare and not lead.bare:
                atoms.append((sign, self.scaled(atom, lead.factor)))
            elif kind.dimension != lead.dimension:
                from cfglint.lang.mismatch import addition

                raise CompileError(term.span, addition(term, kind, lead))
            else:
                atoms.append((sign, atom))
        result = atoms[0][1]
        for start in range(1, len(atoms), _ROW):
            result = self.once(
                result + "".join(f" {sign} {atom}" for sign, atom in atoms[start : start + _ROW])
            )
        whole = all(kind.whole for *_, kind in parts)
        return result, Type("number", lead.dimension, lead.unit, whole, bare=lead.bare, written=lead.written)

    def _product(self, node: t.Product, _wanted: Type | None) -> tuple[str, Type]:
        atom, kind = self.arithmetic(node.factors[0][1])
        dimension, whole, bare = kind.dimension, kind.whole, kind.bare
        kinds = [kind]
        for operator, factor in node.factors[1:]:
            operand, right = self.arithmetic(factor)
            left = atom
            if operator == "mod":
                unit = self._unit_of(kinds, dimension)
                if right.bare and not bare:
                    operand = self.scaled(operand, Type("number", dimension, unit).factor)
                elif right.dimension != dimension:
                    raise self.misfit(factor, right, Type("number", dimension))
                atom = self.once(f"modulo({left}, {operand})")
                whole = whole and right.whole
            else:
                sign = 1 if operator == "*" else -1
                a, b, c = (x + sign * y for x, y in zip(dimension, right.dimension, strict=True))
                dimension = (a, b, c)
                whole = whole and right.whole and operator == "*"
                atom = self.once(f"{left} * {operand}") if operator == "*" else self._divided(left, operand)
            kinds.append(right)
            bare = bare and right.bare
        return atom, Type("number", dimension, self._unit_of(kinds, dimension), whole=whole, bare=bare)

    def _divided(self, top: str, bottom: str) -> str:
        if bottom[:1].isdigit():
            return self.once(f"{top} / {bottom}" if float(bottom) else f"divide({top}, {bottom})")
        top, bottom = self.held(top), self.held(bottom)
        plain = " and ".join(
            f"type({atom}) is not Interval" for atom in dict.fromkeys((top, bottom)) if not atom[:1].isdigit()
        )
        return self.once(f"{top} / {bottom} if {plain} and {bottom} != 0 else divide({top}, {bottom})")

    def _unit_of(self, kinds: list[Type], dimension: tuple[int, int, int]) -> str | None:
        """Return the unit that a fact among the factors gives to the result."""
        fitting = (
            k.unit
            for k in kinds
            if k.dimension == dimension != PLAIN and k.unit is not None and not k.written
        )
        return next(fitting, None)


def _member(word: str, wanted: Type | None) -> tuple[str, Type] | None:
    """Return the member that a word spells, where an enumeration is wanted that has one."""
    name = None if wanted is None else dict(wanted.spellings).get(word.lower())
    return None if wanted is None or name is None else (repr(name), wanted)


def _hull(low: str, high: str) -> str:
    """Return the source of a range; one between numbers that are written down needs no look at them."""
    try:
        ordered = float(low) < float(high)
    except ValueError:
        ordered = False
    return f"Interval({low}, {high})" if ordered else f"hull(({low}, {high}))"


# ── source to code ─────────────────────────────────────────────────────────────────────────────────────────
def packed(functions: str, ends: Ends, tables: tuple[Data, Data, str], blocks: dict[str, str]) -> Code:
    """Compile what check.py gives: source that ``Pack.add`` runs as well, each function when it is called.

    Returns the same as code: the functions packed one behind the other, and where each of them ends.
    """
    module = compile(functions, "<rules>", "exec")
    codes = [marshal.dumps(_without_lines(c)) for c in module.co_consts if isinstance(c, CodeType)]
    assert len(codes) == len(ends)
    compiled = {n: marshal.dumps(compile(text, "<block>", "eval")) for n, text in blocks.items()}
    # Plain data are put together in C as they are read, half a millisecond faster than by code.
    facts, measures, source = tables
    ready = facts, measures, compile(source, "<tables>", "exec")
    return b"".join(codes), tuple(accumulate(map(len, codes))), ready, compiled


def _without_lines(code: CodeType) -> CodeType:
    """Leave out which line each instruction stands on: a third of the bytes, of a source that nobody has."""
    if sys.version_info < (3, 11):
        return code
    full, rest = divmod(len(code.co_code) // 2, 8)  # an entry stands for eight units of two bytes at most
    table = b"\xff" * full + (bytes((0xF7 + rest,)) if rest else b"")
    consts = tuple(_without_lines(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=table, co_consts=consts, co_qualname=code.co_name)
