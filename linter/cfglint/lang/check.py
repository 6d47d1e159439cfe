"""Checks rule files against each other and turns them into one module of Python source.

Imported only when rule files changed, or when a finding needs their trees; a clean run reads the result from
the cache (pack.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.omega import RESOLVERS
from cfglint.errors import Complaint, RulesError, did_you_mean
from cfglint.lang import tree as t
from cfglint.lang.builtin import FUNCTIONS
from cfglint.lang.compile import CompileError, Function, Names
from cfglint.lang.emit import is_number
from cfglint.lang.message import MessageError, offset_in, placed
from cfglint.lang.show import show
from cfglint.lang.symbols import MAX_CHAIN, Graph, signs
from cfglint.lang.tree import paths_in, walk
from cfglint.lang.types import ANY, BOOL, Type
from cfglint.lang.units import UNITS
from cfglint.record import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from cfglint.lang.symbols import Source, Symbols

DIALECTS = ("pyyaml", "omegaconf", "json", "hjson", "toml")
COMPOSES = ("hydra", "parents")
_ENOUGH = 100  # complaints of one kind of pass; looking for near names is slow, and nobody reads more


class Tables(Record):
    """What names the functions: plain data, the source of the rest, and of each framework's block."""

    facts: dict[str, tuple[str, float, float, float, dict[str, str] | None]]
    measures: dict[str, tuple[tuple[int, int, int], bool]]
    source: str
    blocks: dict[str, str]


def _keys(nodes: Iterable[t.Framework]) -> tuple[tuple[str | int, ...], ...] | None:
    """Return the keys that a framework reads beside the facts' names; None where those are no keys."""
    if not any(isinstance(entry, t.NamesAreKeys) for node in nodes for entry in node.entries):
        return None
    return tuple(
        dict.fromkeys(path.steps for node in nodes for path in walk(node) if isinstance(path, t.Path))
    )


def _in_sections(nodes: Iterable[t.Framework]) -> bool:
    return any(isinstance(entry, t.SectionsAreJobs) for node in nodes for entry in node.entries)


def _signs(condition: t.Expr, nodes: Iterable[t.Framework], symbols: Symbols) -> str:
    """Return the source of the keys that a file cannot be recognised without."""
    own = {entry.name: entry for node in nodes for entry in node.entries if isinstance(entry, t.Let)}
    bound = {entry.name for node in nodes for entry in node.entries if isinstance(entry, t.Binding)}
    lets = {**symbols.lets, **own}
    found = signs(condition, {name: let for name, let in lets.items() if name not in bound})
    return repr(None if found is None else tuple(sorted(found)))


class Builder:
    """Compiles the statements of some files against all symbols known by then."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.names = Names(symbols)
        self.functions: dict[str, str] = {}  # names by source; many are alike
        self.complaints: list[Complaint] = []
        self.doubtful: dict[str, Complaint] = {}  # functions that do not fit values of any type
        self.source: Source | None = None
        self.home: dict[int, Source] = {}  # by the identity of a statement or a framework's entry

    # ── complaints ─────────────────────────────────────────────────────────────────────────────────────
    def complain(self, span: t.Span, message: str) -> None:
        assert self.source is not None
        self.complaints.append(self.source.complain(span, message))

    def _near(self, name: str, known: Iterable[str]) -> str:
        return did_you_mean(name, known) if len(self.complaints) < _ENOUGH else ""

    def _is_named(self, name: str, span: t.Span, tail: str = "") -> bool:
        """Whether anything has a name; complains if not."""
        if self.names.type_of(name) is not None:
            return True
        self.complain(span, f"nothing is named {name!r}{self._near(name, self.symbols.names())}{tail}")
        return False

    # ── functions ──────────────────────────────────────────────────────────────────────────────────────
    def function(self, node: t.Expr | None, wanted: Type | None = None, *, given: bool = False) -> str:
        """Compile an expression to a function of its own; returns its name, "None" where there is none.

        ``given`` marks what a file says: a number of its own, whatever it was computed from.
        """
        if node is None:
            return "None"
        emitter = Function(self.names)
        try:
            atom, kind = emitter.value(node) if wanted is None else emitter.typed(node, wanted)
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
        self._check_message(rule)
        for scope in rule.scope:
            if scope.framework not in self.symbols.frameworks:
                near = self._near(scope.framework, self.symbols.frameworks)
                self.complain(scope.span, f"no framework is named {scope.framework!r}{near}")
        if isinstance(rule.at, t.Name):
            self._is_named(rule.at.name, rule.at.span)
        for example in rule.examples:
            self._check_example(example)
        return name

    def _check_message(self, rule: t.Rule) -> None:
        assert self.source is not None
        quoted = self.source.text[slice(*rule.said_at)]

        def complain(offset: int, message: str) -> None:
            at = rule.said_at[0] + offset_in(quoted, offset)
            self.complain((at, at), message)

        try:
            parts = placed(rule.say)
        except MessageError as error:
            complain(error.offset, str(error))
            return
        self.symbols.messages[rule.say] = parts
        variables: dict[str, tuple[str, Type]] = {}
        if isinstance(rule.requirement, t.Quantifier) and rule.requirement.kind == "all":
            variables[rule.requirement.variable] = ("x", ANY)
        for part, offset in parts:
            if not isinstance(part, str):
                try:
                    Function(self.names, variables).value(part)
                except CompileError as error:
                    complain(offset + error.span[0], str(error))

    def _check_example(self, example: t.Example) -> None:
        seen: set[t.Name | t.Path] = set()
        for key, value in example.given:
            if key in seen:
                self.complain(key.span, "this is given twice")
            seen.add(key)
            wanted = None
            if isinstance(key, t.Name):
                if not self._is_named(key.name, key.span):
                    continue
                wanted = self.names.type_of(key.name)
            try:
                emitter = Function(self.names)
                atom, kind = emitter.value(value, wanted)
                if wanted is not None:
                    emitter.fit(value, atom, kind, wanted)
            except CompileError as error:
                self.complain(error.span, str(error))

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

    def one_of(self, span: t.Span, what: str, values: Iterable[str], known: Collection[str]) -> None:
        """Complain about the values that are none of those that are known."""
        for value in values:
            if value not in known:
                near = self._near(value, known) or f"; known are {', '.join(known)}"
                self.complain(span, f"no {what} is named {value!r}{near}")

    def framework(self, name: str) -> tuple[str, str]:
        """Compile all blocks of a framework, of every layer: what stands first goes first.

        Returns what every run needs, and what only a file of the framework does.
        """
        nodes = self.symbols.frameworks[name]
        detect, versions = [], []
        bindings: dict[str, list[str]] = {}
        lets: dict[str, str] = {}
        dialect = composes = ""
        resolvers: list[str] = []
        knows: list[str] = []
        files: list[tuple[str | int, ...]] = []
        outer = self.names
        self.names = Names(
            self.symbols, {e.name: e for n in reversed(nodes) for e in n.entries if isinstance(e, t.Let)}
        )
        self.names.called = outer.called
        for node in nodes:
            self.source = self.home.get(id(node), self.source)
            for entry in node.entries:
                match entry:
                    case t.Detect(condition):
                        keys = _signs(condition, nodes, self.symbols)
                        detect.append(f"({keys}, {self.function(condition, BOOL)})")
                    case t.Tie(tied):
                        if tied not in self.symbols.types:
                            near = self._near(tied, self.symbols.types)
                            self.complain(entry.span, f"no fact is named {tied!r}{near}")
                    case t.Since(version, when):
                        test = self.function(when, BOOL)
                        versions.append(f"({version.numbers!r}, {test})")
                    case t.Binding(bound):
                        bindings.setdefault(bound, []).append(self.binding(entry))
                    case t.Let(derived):
                        if derived not in lets:
                            lets[derived] = self.let(entry)
                    case t.Setting("dialect", value):
                        self.one_of(entry.span, "dialect", (value,), DIALECTS)
                        dialect = dialect or value
                    case t.Setting("composes", value):
                        self.one_of(entry.span, "way to compose files", (value,), COMPOSES)
                        composes = composes or value
                    case t.Setting("resolvers", value):
                        self.one_of(entry.span, "resolver", value.split(), RESOLVERS)
                        resolvers += value.split()
                    case t.Setting("extends", value):
                        self.one_of(entry.span, "framework", (value,), self.symbols.frameworks)
                    case t.Setting("knows", value):
                        knows += value.split()
                    case t.NamesFile(path):
                        files.append(path.steps)
        self.names = outer
        bound_text = ", ".join(f"{key!r}: ({', '.join(each)},)" for key, each in bindings.items())
        lets_text = ", ".join(f"{key!r}: {value}" for key, value in lets.items())
        head = (
            f"{{'dialect': {dialect or 'pyyaml'!r}, 'detect': ({''.join(d + ', ' for d in detect)}), "
            f"'keys': {_keys(nodes)!r}, 'composes': {composes!r}, 'files': {tuple(files)!r}, "
            f"'knows': {tuple(knows)!r}, 'resolvers': {tuple(sorted(set(resolvers)))!r}, "
            f"'sections': {_in_sections(nodes)}}}"
        )
        block = (
            f"{{'versions': ({''.join(v + ', ' for v in versions)}), "
            f"'bind': {{{bound_text}}}, 'lets': {{{lets_text}}}}}"
        )
        return head, block

    def _extend(self, node: t.Framework) -> None:
        """Give a framework what the one that it extends says of other names; detection is its own."""
        for base in [e.value for e in node.entries if isinstance(e, t.Setting) and e.key == "extends"]:
            own = {e.name for e in node.entries if isinstance(e, t.Let | t.Binding)}
            for other in self.symbols.frameworks.get(base, ()):
                taken = [e for e in other.entries if isinstance(e, t.Let | t.Binding) and e.name not in own]
                lent = t.Framework(node.name, tuple(taken), span=other.span)
                self.symbols.frameworks[node.name].append(lent)
                if id(other) in self.home:  # else it is a shipped one, which was checked
                    self.home[id(lent)] = self.home[id(other)]

    # ── the whole ──────────────────────────────────────────────────────────────────────────────────────
    def build(self, sources: Sequence[Source]) -> tuple[str, Tables]:
        """Return the source of the functions, and of the tables that name them.

        Raises RulesError with every complaint.
        """
        before = dict(self.symbols.let_types)
        for source in sources:
            self.source = source
            for node in source.statements:
                self.home[id(node)] = source
            self.complaints += self.symbols.add(source, FUNCTIONS)
        for node in [node for source in sources for node in source.statements]:
            if isinstance(node, t.Framework):
                self._extend(node)
        circles = list(self._circles(sources))
        self.names = Names(self.symbols)
        if circles:
            self.names.derivations.clear()  # nobody follows them
        else:
            for name in Graph(self.symbols).order():  # from the ground up, so that typing never goes deep
                self.names.type_of(name)
            self.symbols.let_types = {
                n: k for n in self.symbols.lets if (k := self.names.type_of(n)) is not None
            }
        rules, lets, touched = [], [], {}
        for source in sources:
            self.source = source
            for node in source.statements:
                match node:
                    case t.Let(name, ()):
                        self._check_replaced(node, before)
                        lets.append(f"{name!r}: {self.let(node)}")
                    case t.Let():
                        self._check_function(node)
                    case t.Role():
                        lets += [f"{let.name!r}: {self.let(let)}" for let in node.lets()]
                        for key, value in node.fields:
                            self._is_named(f"{node.name}.{key}", value.span)
                        self.function(node.when, BOOL)
                    case t.Framework(name):
                        touched[name] = source
                    case t.Rule():
                        scope = tuple(
                            (s.framework, tuple((o, v.numbers) for o, v in s.operators)) for s in node.scope
                        )
                        rules.append(
                            f"({node.code!r}, {node.name!r}, {node.level!r}, {scope!r}, {self.rule(node)})"
                        )
                    case t.Knob():
                        self._check_knob(node)
                    case t.Registry():
                        for key in node.keys:
                            self._is_named(key, node.span)
        frameworks, blocks = [], {}
        for name, self.source in touched.items():
            head, block = self.framework(name)
            frameworks.append(f"{name!r}: {head}")
            blocks[name] = block
        self.complaints += [c for name, c in self.doubtful.items() if name not in self.names.called]
        if self.complaints:
            raise RulesError(self.complaints)
        facts = {
            n: (k.kind, k.factor, k.low, k.high, dict(k.spellings) or None)
            for n, k in self.symbols.types.items()
        }
        measures = {n: (k.dimension, k.whole) for n, k in self.symbols.types.items() if k.kind == "number"}
        registries = {prefix: (node.table, node.keys) for prefix, node in self.symbols.registries.items()}
        named = (
            f"LETS = {{{', '.join(lets)}}}",
            f"REGISTRIES = {registries!r}",
            f"FRAMEWORKS = {{{', '.join(frameworks)}}}",
            f"RULES = ({''.join(rule + ', ' for rule in rules)})",
        )
        functions = (source.replace("{}", name, 1) for source, name in self.functions.items())
        return "\n".join(functions) + "\n", Tables(facts, measures, "\n".join(named) + "\n", blocks)

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
            self.complain(let.span, f"{let.name} has two parameters of one name")
        self.names.open.append(let.name)
        try:
            Function(self.names, dict.fromkeys(let.parameters, ("x", ANY))).value(let.body)
        except CompileError as error:
            self.doubtful[let.name] = self.source.complain(error.span, str(error))
        finally:
            self.names.open.pop()

    def _check_knob(self, knob: t.Knob) -> None:
        kind = self.symbols.types.get(knob.name)
        if kind is None:
            near = self._near(knob.name, self.symbols.types)
            self.complain(knob.span, f"a knob turns a fact, and no fact is named {knob.name!r}{near}")
            return
        if knob.keeping is not None:
            self._is_named(knob.keeping, knob.span)
        for partner in knob.partners:
            if partner not in self.symbols.types:
                near = self._near(partner, self.symbols.types)
                self.complain(
                    knob.span, f"what moves with a knob is a fact, and none is named {partner!r}{near}"
                )
        for word in (word for move in knob.moves for word in move.to):
            if word not in knob.values:
                listed = f"its values are {show(t.ListOf(knob.values))}" if knob.values else "it lists none"
                self.complain(word.span, f"{show(word)} is no value of knob {knob.name}; {listed}")
        for when in (move.when for move in knob.moves if move.when is not None):
            try:
                Function(self.names).typed(when, BOOL)
            except CompileError as error:
                self.complain(error.span, str(error))
        for value in (knob.low, knob.high, knob.step, *knob.values):
            if value is not None and not (isinstance(value, t.Name) and kind.kind in ("text", "any")):
                try:
                    Function(self.names).typed(value, kind)
                except CompileError as error:
                    self.complain(error.span, str(error))
                    return
        if knob.low is not None and knob.high is not None and knob.step is not None:
            low, high, step = (
                n.value * (UNITS[n.unit][0] if n.unit else kind.factor)
                for n in (knob.low, knob.high, knob.step)
            )
            if low > high or step <= 0:
                self.complain(knob.span, "a knob goes from a lower to a higher value in steps above zero")

    def _circles(self, sources: Sequence[Source]) -> Iterator[frozenset[str]]:
        """Complain about names that are derived from themselves, and yield them."""
        places: dict[tuple[str | None, str], tuple[Source, t.Span]] = {}
        for source in sources:
            for node in source.statements:
                if isinstance(node, t.Let):
                    places[None, node.name] = source, node.span
                elif isinstance(node, t.Role):
                    places |= {
                        (None, f"{node.name}.{key}"): (source, value.span) for key, value in node.fields
                    }
                elif isinstance(node, t.Framework):
                    own = (e for e in node.entries if isinstance(e, (t.Binding, t.Let)))
                    places |= {(node.name, entry.name): (source, entry.span) for entry in own}
        told: set[frozenset[str]] = set()
        for framework in (None, *self.symbols.frameworks):
            graph = Graph(self.symbols, framework)
            under = f"under {framework}, " if framework is not None else ""
            for circle in graph.circles():
                if frozenset(circle) in told:
                    continue
                told.add(frozenset(circle))
                self._complain_at(
                    places, framework, circle, f"{under}names go in a circle: {' -> '.join(circle)}"
                )
                yield frozenset(circle)
            if told:
                continue
            high = [name for name, height in graph.heights().items() if height > MAX_CHAIN]
            if high:
                told.add(frozenset(high))
                self._complain_at(
                    places, framework, high, f"{under}more than {MAX_CHAIN} names build on each other here"
                )
                yield frozenset(high)

    def _complain_at(
        self,
        places: Mapping[tuple[str | None, str], tuple[Source, t.Span]],
        framework: str | None,
        names: Sequence[str],
        message: str,
    ) -> None:
        keys = [*((framework, name) for name in names), *((None, name) for name in names)]
        found = next((places[key] for key in keys if key in places), None)
        if found is not None:
            self.complaints.append(found[0].complain(found[1], message))
        elif self.source is not None:
            self.complaints.append(self.source.complain((0, 0), message))
