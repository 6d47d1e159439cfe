"""Checks rule files against each other and turns them into one module of Python source.

Imported only when rule files changed, or when a finding needs their trees; a clean run reads the result from
the cache (pack.py).
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from cfglint.budget import Alarm
from cfglint.document.resolvers import RESOLVERS
from cfglint.errors import Complaint, RulesError, did_you_mean
from cfglint.lang import tree as t
from cfglint.lang.block import Block, dict_of, tuple_of
from cfglint.lang.calls import FUNCTIONS
from cfglint.lang.compile import CompileError, Function, Names
from cfglint.lang.emit import is_number
from cfglint.lang.salvage import first_causes
from cfglint.lang.show import show
from cfglint.lang.symbols import MAX_CHAIN, Graph, Source, Symbols, signs, trail
from cfglint.lang.tree import KEY, paths_in
from cfglint.lang.types import ANY, BOOL, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from cfglint.lang.compile import Emitted


DIALECTS = ("pyyaml", "omegaconf", "omegaconf_unresolved", "json", "hjson", "toml")
COMPOSES = ("hydra", "parents")
CLAIMS = ("last",)
SWITCHES = ("words",)
_ENOUGH = 100  # complaints of one kind of pass; looking for near names is slow, and nobody reads more
_LISTS = ("resolvers", "knows", "packages", "programs")  # settings that take several words


class Builder:
    """Compiles the statements of some files against all symbols known by then."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.names = Names(symbols)
        self.functions: dict[str, str] = {}  # names by source; many are alike
        self.lets: dict[str, str] = {}
        self.rules: list[str] = []
        self.complaints: list[Complaint] = []
        self.doubtful: dict[str, Complaint] = {}  # functions that do not fit values of any type
        self.source: Source | None = None
        self.home: dict[int, Source] = {}  # by the identity of a statement or a framework's entry

    # ── complaints ─────────────────────────────────────────────────────────────────────────────────────
    def complain(self, span: t.Span, message: str) -> None:
        """Add a mistake at ``span`` to the complaints."""
        assert self.source is not None
        self.complaints.append(self.source.complain(span, message))

    def _near(self, name: str, known: Iterable[str]) -> str:
        return did_you_mean(name, known) if len(self.complaints) < _ENOUGH else ""

    def _is_named(self, name: str, span: t.Span, tail: str = "", other: str = "") -> bool:
        """Whether anything has a name; complains if not, with ``other`` where no name is near."""
        if self.names.type_of(name) is not None:
            return True
        self.complain(span, f"unknown name {name!r}{self._near(name, self.symbols.names()) or other}{tail}")
        return False

    def _is_in(self, known: Collection[str], name: str, span: t.Span, what: str = "fact") -> bool:
        """Whether a name is one of those that are known; complains if not."""
        if name in known:
            return True
        self.complain(span, f"unknown {what} {name!r}{self._near(name, known)}")
        return False

    def _fits(self, node: t.Expr, wanted: Type | None) -> bool:
        """Whether an expression is right in itself, and of a type; complains if not."""
        try:
            Function(self.names).checked(node, wanted)
        except CompileError as error:
            self.complain(error.span, str(error))
            return False
        return True

    # ── functions ──────────────────────────────────────────────────────────────────────────────────────
    def function(self, node: t.Expr | None, wanted: Type | None = None, *, given: bool = False) -> str:
        """Compile an expression to a function of its own; returns its name, "None" where there is none.

        ``given`` marks what a file says: a number of its own, whatever it was computed from.
        """
        if node is None:
            return "None"
        emitter = Function(self.names)
        try:
            atom, kind = emitter.checked(node, wanted)
        except CompileError as error:
            self.complain(error.span, str(error))
            return "None"
        derived = given and kind.kind == "number" and not is_number(atom)
        emitter.line(f"return as_given({atom})" if derived else f"return {atom}")
        return self._take(emitter, kind.kind)

    def _take(self, emitter: Function, kind: str) -> str:
        return self.functions.setdefault(emitter.finish("{}", kind=kind), f"F{len(self.functions)}")

    def let(self, node: t.Let) -> str:
        """Compile a let; one that derives a declared fact has the fact's type."""
        declared = self.symbols.types.get(node.name)
        if declared is None and node.name in self.symbols.let_types:
            declared = self.symbols.let_types[node.name]
        return self.function(node.body, declared if declared is not None and declared != ANY else None)

    # ── rules ──────────────────────────────────────────────────────────────────────────────────────────
    def rule(self, rule: t.Rule) -> str:
        """Compile a rule and check everything that it says."""
        emitter = Function(self.names)
        name = "None"
        try:
            condition = "True"
            if rule.condition is not None:
                condition = emitter.put(emitter.typed(rule.condition, BOOL)[0])
                emitter.line(f"if {condition} is False: return None")
            requirement = emitter.typed(rule.requirement, BOOL)[0]
            emitter.line(
                f"return {requirement} if {condition} is True else implies({condition}, {requirement})"
            )
            name = self._take(emitter, "bool")
        except CompileError as error:
            self.complain(error.span, str(error))
        self._check_messages(rule)
        for scope in rule.scope:
            if not self._is_in(self.symbols.frameworks, scope.framework, scope.span, "framework"):
                last = self.complaints[-1]
                if "did you mean" not in last.message:
                    last.message += (
                        f"; define it with framework {scope.framework} {{ … }}, or see cfglint frameworks"
                    )
        if isinstance(rule.at, t.Name):
            self._is_named(rule.at.name, rule.at.span)
        for example in rule.examples:
            self._check_example(example)
        return name

    def _check_messages(self, rule: t.Rule) -> None:
        variables: dict[str, tuple[str, Type]] = {}
        if isinstance(rule.requirement, t.Quantifier) and rule.requirement.kind == "all":
            variables[rule.requirement.variable] = ("x", ANY)
        for say in rule.says:
            if say.when is not None:
                self._fits(say.when, BOOL)
            for part in say.parts:
                if isinstance(part, t.Call) and part.function == KEY:
                    self._check_key(part, variables)
                elif not isinstance(part, str):
                    try:
                        Function(self.names, variables).value(part)
                    except CompileError as error:
                        self.complain(error.span, str(error))

    def _check_key(self, part: t.Call, variables: Collection[str]) -> None:
        """Check ``{key(fact)}``: the key that a fact is read from, or that an item of a list has."""
        if len(part.arguments) == 1 and isinstance(part.arguments[0], t.Name):
            if part.arguments[0].name not in variables:
                self._is_in(self.symbols.types, part.arguments[0].name, part.arguments[0].span)
        else:
            self.complain(part.span, "key(…) takes one fact, and is the key that it is read from")

    def _check_example(self, example: t.Example) -> None:
        for key, value in example.given:
            if isinstance(key, t.Path):
                self._fits(value, None)
            elif self._is_named(key.name, key.span, other=f"; a key of the file is written $.{key.name}"):
                self._fits(value, self.names.type_of(key.name))

    # ── frameworks ─────────────────────────────────────────────────────────────────────────────────────
    def binding(self, node: t.Binding) -> str:
        """Compile one binding: source, when, default, null, the paths it reads, whether it wants its type."""
        wanted = self.symbols.types.get(node.name)
        raw = wanted is not None and isinstance(node.source, t.Path)
        if wanted is None:
            if not self._is_named(node.name, node.span, "; declare it with fact"):
                return "None"
            wanted = self.names.type_of(node.name)
        if node.null is not None and len(paths_in(node.source)) != 1:
            self.complain(node.span, "null -> is for a binding that reads one key")
        parts = [
            self.function(None if raw else node.source, wanted, given=True),
            self.function(node.when, BOOL),
            self.function(node.default, wanted, given=True),
            self.function(node.null, wanted, given=True),
        ]
        return f"({', '.join(parts)}, {paths_in(node.source)!r}, {raw})"

    def framework(self, name: str) -> Block:
        """Compile all blocks of a framework."""
        nodes = self.symbols.frameworks[name]
        block = Block()
        own = {e.name: e for n in reversed(nodes) for e in n.entries if isinstance(e, t.Let)}
        outer, self.names = self.names, Names(self.symbols, own)
        self.names.called = outer.called
        bound = {e.name for node in nodes for e in node.entries if isinstance(e, t.Binding)}
        lets = {name: let for name, let in {**self.symbols.lets, **own}.items() if name not in bound}
        for node in nodes:
            self.source = self.home.get(id(node), self.source)
            for entry in node.entries:
                self._enter(entry, block, lets)
        self.names = outer
        return block

    def _enter(self, entry: t.Entry, block: Block, lets: Mapping[str, t.Let]) -> None:
        """Compile one entry of a framework's block; ``lets`` are those that no binding goes before."""
        match entry:
            case t.Detect(condition):
                keys = signs(condition, lets)
                signed = None if keys is None else tuple(sorted(keys))
                block.detect.append(f"({signed!r}, {self.function(condition, BOOL)})")
            case t.Tie(tied):
                self._is_in(self.symbols.types, tied, entry.span)
            case t.Write():
                self._check_write(entry)
            case t.Since(version, when):
                block.versions.append(f"({version.numbers!r}, {self.function(when, BOOL)})")
            case t.Binding(bound):
                block.bindings.setdefault(bound, []).append(self.binding(entry))
            case t.Let(derived):
                if derived not in block.lets:
                    block.lets[derived] = self.let(entry)
            case t.Setting():
                self._set(entry, block)
            case t.NamesFile(path, dialect):
                self._is_in(("", *DIALECTS), dialect, entry.span, "dialect")
                block.files.append((path.steps, dialect))

    def _check_write(self, entry: t.Write) -> None:
        kind = self.symbols.types.get(entry.name)
        if kind is None:
            self._is_in(self.symbols.types, entry.name, entry.span)
            return
        word = isinstance(entry.value, t.Name) and kind.kind in ("text", "any")
        if entry.value is not None and not word:
            self._fits(entry.value, kind)
        for path, value in entry.keys:
            if path.steps.count("*") > path.steps[-1:].count("*"):
                self.complain(path.span, "a key that is written has no [*] but at its end, for one more item")
            if value is not None:
                self._fits(value, None)
        if entry.when is not None:
            self._fits(entry.when, BOOL)

    def _set(self, entry: t.Setting, block: Block) -> None:
        """Take in a setting of a framework; most know the words that they take."""
        words = entry.value.split() if entry.key in _LISTS else [entry.value]
        block.settings.setdefault(entry.key, []).extend(words)
        checks: dict[str, tuple[str, Collection[str]]] = {
            "dialect": ("dialect", DIALECTS),
            "composes": ("way to compose files", COMPOSES),
            "resolvers": ("resolver", RESOLVERS),
            "claims": ("way to claim files", CLAIMS),
            "switches": ("kind of switches", SWITCHES),
            "extends": ("framework", self.symbols.frameworks),
        }
        what, known = checks.get(entry.key, ("", ()))
        for word in words if what else ():
            if word not in known:
                near = self._near(word, known) or f"; known: {', '.join(known)}"
                self.complain(entry.span, f"unknown {what} {word!r}{near}")

    def _extend(self, node: t.Framework) -> None:
        """Give a framework what the one that it extends says of other names; detection is its own."""
        for base in [e.value for e in node.entries if isinstance(e, t.Setting) and e.key == "extends"]:
            own = {e.name for e in node.entries if isinstance(e, t.Let | t.Binding)}
            for lender in self.symbols.frameworks.get(base, ()):
                kinds = t.Let | t.Binding | t.Write
                taken = [e for e in lender.entries if isinstance(e, kinds) and e.name not in own]
                lent = t.Framework(node.name, tuple(taken), span=lender.span)
                self.symbols.frameworks[node.name] = [*self.symbols.frameworks[node.name], lent]
                if id(lender) in self.home:  # else it is a shipped one, which was checked
                    self.home[id(lent)] = self.home[id(lender)]

    # ── the whole ──────────────────────────────────────────────────────────────────────────────────────
    def build(self, sources: Sequence[Source]) -> Emitted:
        """Return the source of the functions, of the tables that name them, and of each framework's block.

        Raises RulesError with every complaint.
        """
        before = dict(self.symbols.let_types)
        self._define(sources)
        touched: dict[str, Source] = {}
        for source in sources:
            self.source, Alarm.at = source, source.path
            for node in source.statements:
                if isinstance(node, t.Framework):
                    touched[node.name] = source
                else:
                    self._state(node, before)
        frameworks, blocks = {}, {}
        for name, self.source in touched.items():
            block = self.framework(name)
            frameworks[name], blocks[name] = block.head(self.symbols.frameworks[name]), block.rest()
        self.complaints += [c for name, c in self.doubtful.items() if name not in self.names.called]
        mistakes = [mistake for source in sources for mistake in source.mistakes]
        if mistakes or self.complaints:
            raise RulesError([*mistakes, *first_causes(self.complaints, sources)])
        types = self.symbols.types.items()
        asks = {name: fact.asks for name, fact in self.symbols.facts.items() if fact.asks}
        registries = {prefix: (node.table, node.keys) for prefix, node in self.symbols.registries.items()}
        functions = [f"{source.replace('{}', name, 1)}\n" for source, name in self.functions.items()]
        others = (
            f"LETS = {dict_of(self.lets)}\nREGISTRIES = {registries!r}\nASKS = {asks!r}\n"
            f"FRAMEWORKS = {dict_of(frameworks)}\nRULES = {tuple_of(self.rules)}\n"
        )
        tables = (
            {n: (k.kind, k.factor, k.low, k.high, dict(k.spellings) or None) for n, k in types},
            {n: (k.dimension, k.whole) for n, k in types if k.kind == "number"},
            others,
        )
        return "".join(functions), tuple(accumulate(map(len, functions))), tables, blocks

    def _define(self, sources: Sequence[Source]) -> None:
        """Take in all that the files define, and find out the types of the lets."""
        for source in sources:
            self.source, Alarm.at = source, source.path
            self.home |= {id(node): source for node in source.statements}
            self.complaints += self.symbols.add(source, FUNCTIONS)
        for node in [node for source in sources for node in source.statements]:
            if isinstance(node, t.Framework):
                self._extend(node)
        # What is derived from what takes most of the time of a small layer: most of them need not know.
        graph = cache(lambda: Graph(self.symbols))
        circles = list(self._circles(sources, graph))
        self.names = Names(self.symbols)
        if circles:
            self.names.derivations.clear()  # nobody follows them
            return
        untyped = self.symbols.lets.keys() - self.names.known.keys()
        for name in graph().order() if untyped else ():  # from the ground up, so that typing never goes deep
            if name in self.symbols.lets:
                self.names.type_of(name)
        self.symbols.let_types = {n: k for n in self.symbols.lets if (k := self.names.type_of(n)) is not None}

    def _state(self, node: t.Statement, before: Mapping[str, Type]) -> None:
        """Compile or check a statement; ``before`` has the types of the lets of earlier layers."""
        match node:
            case t.Let(name, ()):
                self._check_replaced(node, before)
                self.lets[name] = self.let(node)
            case t.Let():
                self._check_function(node)
            case t.Role(name, when, fields):
                self.lets |= {let.name: self.let(let) for let in node.lets()}
                for key, value in fields:
                    self._is_named(f"{name}.{key}", value.span)
                self.function(when, BOOL)
            case t.Rule(code, name, level, scopes):
                scope = tuple((s.framework, tuple((o, v.numbers) for o, v in s.operators)) for s in scopes)
                self.rules.append(f"({code!r}, {name!r}, {level!r}, {scope!r}, {self.rule(node)})")
            case t.Knob():
                self._check_knob(node)
            case t.Registry(keys=keys):
                for key in keys:
                    self._is_named(key, node.span)

    def _check_replaced(self, let: t.Let, before: Mapping[str, Type]) -> None:
        """Rules that are compiled already rely on a let's type: what takes its place has the same."""
        old, new = before.get(let.name), self.symbols.let_types.get(let.name)
        if old is not None and new is not None and (old.kind, old.dimension) != (new.kind, new.dimension):
            self.complain(let.span, f"{let.name} is {old} wherever it is used, and this is {new}")
            self.symbols.let_types[let.name] = new

    def _check_function(self, let: t.Let) -> None:
        """Check a function by itself; what it cannot do with any value, it may do with those of its calls."""
        assert self.source is not None
        if len(set(let.parameters)) < len(let.parameters):
            self.complain(let.span, f"{let.name} has two parameters of the same name")
        self.names.open.append(let.name)
        try:
            Function(self.names, dict.fromkeys(let.parameters, ("x", ANY))).value(let.body)
        except CompileError as error:
            self.doubtful[let.name] = self.source.complain(error.span, str(error))
        finally:
            self.names.open.pop()

    def _check_knob(self, knob: t.Knob) -> None:
        kind = ANY if knob.name.startswith("$") else self.symbols.types.get(knob.name)
        if kind is None:
            self._is_in(self.symbols.types, knob.name, knob.span)
            return
        if kind is ANY and knob.domain != "any":
            self.complain(
                knob.span, "a key has no type, so its knob takes any value that a rule asks for: write any"
            )
            return
        if knob.keeping is not None:
            self._is_named(knob.keeping, knob.span)
        for partner in knob.partners:
            self._is_in(self.symbols.types, partner, knob.span, "fact")
        for word in (word for move in knob.moves for word in move.to):
            if word not in knob.values:
                listed = f"its values are {show(t.ListOf(knob.values))}" if knob.values else "it lists none"
                self.complain(word.span, f"{show(word)} is not a value of knob {knob.name}; {listed}")
        conditions = (each for move in knob.moves for each in (move.when, move.leaving) if each is not None)
        for when in conditions:
            self._fits(when, BOOL)
        self._check_domain(knob, kind)

    def _check_domain(self, knob: t.Knob, kind: Type) -> None:
        for value in (knob.low, knob.high, knob.step, *knob.values):
            word = isinstance(value, t.Name) and kind.kind in ("text", "any")
            if value is not None and not word and not self._fits(value, kind):
                return
        if knob.low is None or knob.high is None or knob.step is None:
            return
        if kind.worth(knob.low) > kind.worth(knob.high) or knob.step.value <= 0:
            self.complain(knob.span, "a knob goes from a lower to a higher value in steps above zero")

    def _circles(self, sources: Sequence[Source], shared: Callable[[], Graph]) -> Iterator[frozenset[str]]:
        """Complain about names that are derived from themselves, and yield them."""
        places: dict[tuple[str | None, str], tuple[Source, t.Span]] = {}
        for source in sources:
            for node in source.statements:
                if isinstance(node, t.Let):
                    places[None, node.name] = source, node.span
                elif isinstance(node, t.Role):
                    places.setdefault((None, "roles"), (source, node.span))
                    places |= {
                        (None, f"{node.name}.{key}"): (source, value.span) for key, value in node.fields
                    }
                elif isinstance(node, t.Framework):
                    own = (e for e in node.entries if isinstance(e, (t.Binding, t.Let)))
                    places |= {(node.name, entry.name): (source, entry.span) for entry in own}
        reported: set[frozenset[str]] = set()
        for framework in self._derived_anew(sources):
            graph = Graph(self.symbols, framework, shared())
            under = f"under {framework}, " if framework is not None else ""
            for circle in graph.circles():
                if frozenset(circle) in reported:
                    continue
                reported.add(frozenset(circle))
                self._complain_at(places, framework, circle, f"{under}cyclic definition: {trail(circle)}")
                yield frozenset(circle)
            if reported:
                continue
            high = [name for name, height in graph.heights().items() if height > MAX_CHAIN]
            if high:
                reported.add(frozenset(high))
                self._complain_at(
                    places, framework, high, f"{under}more than {MAX_CHAIN} names depend on each other here"
                )
                yield frozenset(high)

    def _derived_anew(self, sources: Sequence[Source]) -> Sequence[str | None]:
        """Return the frameworks (None: none) under which these files may make names build on others."""
        statements = [node for source in sources for node in source.statements]
        if all(isinstance(node, (t.Rule, t.Knob, t.Fact, t.Framework)) for node in statements):
            return [node.name for node in statements if isinstance(node, t.Framework)]
        return [None, *self.symbols.frameworks]

    def _complain_at(
        self,
        places: Mapping[tuple[str | None, str], tuple[Source, t.Span]],
        framework: str | None,
        names: Sequence[str],
        message: str,
    ) -> None:
        keys = [*((framework, name) for name in names), *((None, name) for name in names)]
        place = next((places[key] for key in keys if key in places), None)
        if place is not None:
            self.complaints.append(place[0].complain(place[1], message))
        elif self.source is not None:
            self.complaints.append(self.source.complain((0, 0), message))
