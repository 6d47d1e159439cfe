"""Functions that return a training config, as torchtitan's config registries have them.

``def llama3_8b() -> Trainer.Config`` makes an object of nested dataclasses, or takes another function's and
changes it (``config = llama3_8b(); config.training.steps = 10``). `Registry` goes through such a function as
`Program` does, and knows three things more: a section that nobody gave has its defaults, ``replace`` of
dataclasses makes a changed copy, and a function of another file of the repository is read there. What such
a function makes has the place of its call, so nothing in it is edited.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import BUDGET, spend
from cfglint.document.python.run import Program
from cfglint.document.python.source import PYTHON, Code, Elsewhere, read_python
from cfglint.document.python.values import Class, Function, Items, Literal, Object, Span, Symbol, Unknown
from cfglint.errors import OverBudgetError
from cfglint.record import field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.values import Modules

SPEC = "ModelSpec"  # torchtitan/protocols/model_spec.py:33 @b5bcd76: the family's name and the flavor
_SPECS = "model_registry"  # makes one of a flavor, in each model's package
_LARGEST = 2**18  # characters of another file that is followed
_MOST_FILES = 20
_DEEPEST = 4  # files that lead to each other
_FUNCTION = re.compile(r"[a-z_][a-z0-9_]*\Z")
_CHANGED = ("dataclasses.replace", "copy.replace")
_COPIES = ("copy.copy", "copy.deepcopy")
# What reads its arguments and changes none, of the modules that such files import.
_READS = re.compile(r"(?:dataclasses|typing|functools|copy|math|os|json|warnings)\.|.*\blog")
# torchtitan's own parts that make no config; their arguments are kept as they are written.
_PARTS = re.compile(r"torchtitan\.(?!experiments\.)(?!.*registry)")
_IN_PLACE = ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse")


class Section(Object):
    """A section of a config that nobody gave: it is put in as soon as something of it is set."""

    above: Object | None = field(default=None, kw_only=True)
    at: str = field(default="", kw_only=True)


class Fields(Object):
    """The fields of a section that nobody gave anything, as a dictionary."""

    of: Section | None = field(default=None, kw_only=True)


class Registry(Program):
    """A file with such functions; ``modules`` gives the text of another by its path.

    ``folder`` is that of a file which another one leads to, as that one sees it; empty where it is not known.
    """

    def __init__(self, code: Code, modules: Modules | None, folder: str = "") -> None:
        super().__init__(code)
        self.folder = folder
        self._read = modules
        self._files: dict[str, Registry | None] = {}
        self._depth_of_files = 0

    # ── the functions ──────────────────────────────────────────────────────────────────────────────────
    def functions(self) -> list[Function]:
        """Go through the file; returns its functions that can be called without arguments."""
        self.start()
        names = self.scope.names
        found = []
        for node in self.code.body:
            function = names.get(node.name) if isinstance(node, ast.FunctionDef) else None
            if not isinstance(function, Function) or function.node is not node or node.decorator_list:
                continue
            arguments = node.args
            required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
            if not required and all(default is not None for default in arguments.kw_defaults):
                found.append(function)
        return found

    def made_by(self, function: Function) -> object:
        """Return what a function gives that is called without arguments."""
        for file in (self, *self._files.values()):
            if file is not None:
                file.renew()
        self.branch = (self.branches,)
        return self.enter(function, self.bound(function, Object("", (0, 0))), None)

    def returns(self, function: Function) -> str:
        """Return the full name of the class that a function says it gives; empty where it says none."""
        node = function.node.returns if isinstance(function.node, ast.FunctionDef) else None
        value = None if node is None or isinstance(node, ast.Constant) else self.value(node)
        if isinstance(value, Class):
            return value.known_base() or value.name
        return value.name if isinstance(value, Symbol) else "" if value is None else "?"

    # ── values ─────────────────────────────────────────────────────────────────────────────────────────
    def value(self, node: ast.expr) -> object:
        """Return what an expression is worth; of another file, it is at the call that leads there."""
        value = super().value(node)
        if isinstance(self.code, Elsewhere) and isinstance(value, Literal) and value.whole:
            return Literal(value.value, value.span)
        return value

    def arguments(self, made: Object, node: ast.Call) -> Object:
        """Add the arguments of a call to what it makes, at the call that leads to another file."""
        made = super().arguments(made, node)
        if isinstance(self.code, Elsewhere):
            made.elsewhere, made.last = True, None
            shown = self.code.shown
            made.items = {name: (shown, value) for name, (_, value) in made.items.items()}
        return made

    def attribute(self, value: Object, name: str, node: ast.AST) -> object:
        """Return a field of an object; a section that is not given is empty."""
        if name in value.items or not is_config(value) or (value.cls and name in value.cls.all_fields()):
            return super().attribute(value, name, node)
        made = Section("", self.code.span(node), branch=value.branch, above=value, at=name, elsewhere=True)
        made.rest = value.rest
        return made

    def _set_field(self, owner: object, name: str, value: object, node: ast.AST) -> None:
        attach(owner, self.code.span(node))
        super()._set_field(owner, name, value, node)

    def of_value(self, owner: object, made: Object, node: ast.Call) -> object:
        """Return what a method of a value gives; a list that it changes is not known any more."""
        if isinstance(owner, Items) and made.kind in _IN_PLACE:
            owner.items = [self.unknown(f"{self._spelled(node)} changes it", node)]
        return super().of_value(owner, made, node)

    def _compare(self, node: ast.Compare) -> object:
        """Return what a comparison gives; an object of a class that is known is not None."""
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            first, second = self.value(node.left), self.value(node.comparators[0])
            none = isinstance(second, Literal) and second.value is None
            if none and isinstance(first, Object) and first.name.endswith(("Config", SPEC)):
                return Literal(isinstance(node.ops[0], ast.IsNot), self.code.span(node))
        return super()._compare(node)

    def _dictcomp(self, node: ast.DictComp) -> object:
        """Return the fields of a dataclass: ``{f.name: getattr(x, f.name) for f in fields(x)}``."""
        part = node.generators[0]
        every = part.iter
        value = None
        if len(node.generators) == 1 and isinstance(every, ast.Call) and every.args and not part.ifs:
            callee = self.value(every.func)
            wanted = f"{{f.name: getattr({ast.unparse(every.args[0])}, f.name) for f in x}}"
            named = ast.DictComp(node.key, node.value, [ast.comprehension(part.target, ast.Name("x"), [], 0)])
            if isinstance(callee, Symbol) and callee.name == "dataclasses.fields":
                value = self.value(every.args[0]) if ast.unparse(named) == wanted else None
        if not isinstance(value, Object):
            return self.unknown(f"{self._spelled(node)} is not known before the program runs", node)
        untouched = value if isinstance(value, Section) and not value.items and not value.rest else None
        span = self.code.span(node)
        return Fields("dict", span, dict(value.items), [], value.rest, self.branch, of=untouched)

    def _of_dictionary(self, owner: Object, name: str, given: Object, node: ast.Call) -> object:
        key = given.positional[0] if given.positional else None
        sure = owner.branch == self.branch and isinstance(key, Literal) and isinstance(key.value, str)
        if name == "pop" and sure and not owner.rest:
            value = self.attribute(owner, key.value, node)  # type: ignore[attr-defined]
            owner.items.pop(key.value, None)  # type: ignore[attr-defined]
            return value
        return super()._of_dictionary(owner, name, given, node)

    def _importfrom(self, node: ast.ImportFrom) -> None:
        """Name what another file imports in full, where its package is known by its path."""
        package = self.folder.strip("/").split("/")
        if node.level and self.folder and ".." not in package:
            module = ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))
            node = ast.copy_location(ast.ImportFrom(module, node.names, 0), node)
        super()._importfrom(node)

    # ── calls ──────────────────────────────────────────────────────────────────────────────────────────
    def call(self, callee: object, node: ast.Call) -> object:
        """Return what a call makes; ``type(x.model)(**fields)`` is a section with the same fields."""
        alone = not node.args and len(node.keywords) == 1 and node.keywords[0].arg is None
        fields = self.value(node.keywords[0].value) if alone and isinstance(callee, Object) else None
        if isinstance(fields, Fields) and fields.of is not None and _is_class(callee):
            return replace(fields.of, span=self.code.span(node))
        return super().call(callee, node)

    def made(self, made: Object, node: ast.Call) -> object:
        """Return what a call of something imported makes."""
        first = made.positional[0] if made.positional else None
        if len(made.positional) == 2 and (made.kind == "typing.cast" or _is_sure(made)):
            return made.positional[1] if made.kind == "typing.cast" else Literal(True, made.span)
        if isinstance(first, Object) and made.kind in (*_CHANGED, *_COPIES):
            return self._copied(first, made)
        if "." not in made.kind or not _FUNCTION.match(made.name):
            return super().made(made, node)
        value = self._of_file(made)
        if value is not None:
            return value
        self._may_change(made)
        value = super().made(made, node)
        if _PARTS.match(made.kind):
            return value
        return Object(made.kind, made.span, {}, [], f"{made.name}()", self.branch, elsewhere=True)

    def _copied(self, first: Object, made: Object) -> Object:
        """Return a copy of an object, with what ``replace`` changes."""
        given = made.items if made.kind in _CHANGED else {}
        changes = {name: one for name, one in given.items() if not _is_own(one[1], first, name)}
        rest = first.rest or (made.rest if made.kind in _CHANGED else "")
        copy = Object(first.kind, made.span, first.items | changes, list(first.positional), rest)
        copy.branch, copy.cls, copy.elsewhere = self.branch, first.cls, True
        return copy if made.kind != "copy.deepcopy" else self._deep(copy)

    def entered(self, function: Function, given: Object, node: ast.Call) -> object:
        """Return what a function gives; one that another file handed over is not read."""
        if self.owns(function):
            return super().entered(function, given, node)
        self._may_change(replace(given, kind="it.is_handed_over"))
        return self._computed(node)

    def _deep(self, value: Object, depth: int = 0) -> Object:
        """Return a copy with copies of its sections."""
        spend(1 + len(value.items), PYTHON)
        items = {
            name: (span, self._deep(inner, depth + 1) if isinstance(inner, Object) and depth < 8 else inner)
            for name, (span, inner) in value.items.items()
        }
        return replace(value, items=items, branch=self.branch, elsewhere=True)

    def _may_change(self, made: Object) -> None:
        """Leave a config unknown that is handed to a function which is not read."""
        if _READS.match(made.kind):
            return
        given = (*made.positional, *(value for _, value in made.items.values()))
        for value in given:
            reads = value.name == SPEC and _PARTS.match(made.kind) if isinstance(value, Object) else None
            if isinstance(value, Object) and is_config(value) and not reads:
                attach(value, made.span)
                value.rest = value.rest or f"{made.name}()"
                why = f"{made.name}() may change it"
                value.items = {name: (span, Unknown(why, span)) for name, (span, _) in value.items.items()}

    # ── other files ────────────────────────────────────────────────────────────────────────────────────
    def _of_file(self, made: Object) -> object:
        """Return what a function of another file makes; None where that is not known."""
        if _PARTS.match(made.kind) and made.name != _SPECS:
            return None
        found = self._find(made.kind)
        if made.name == _SPECS:
            return self._spec(made, None if found is None else found[1])
        if found is None:
            return None
        file, function = found
        code = file.code
        if not isinstance(code, Elsewhere) or file.is_inside(function):
            return None
        outer, shown = file.branch, code.shown
        file.branch, code.shown = self.branch, made.span
        try:
            return file.enter(function, file.bound(function, made), None)
        finally:
            file.branch, code.shown = outer, shown

    def _find(self, name: str, depth: int = 0) -> tuple[Registry, Function] | None:
        """Return a function of another file of the repository, by its full name."""
        dots = len(name) - len(name.lstrip("."))
        module, _, attribute = name[dots:].rpartition(".")
        # `from . import x` is `..x` here, and `from .a import x` is `.a.x`.
        level = dots - (not module)
        base = self.folder + "../" * (level - 1) if level > 0 else ""
        path = base + module.replace(".", "/")
        places = [f"{path}.py", f"{path}/__init__.py"] if module else [f"{base}__init__.py"]
        for place in places:
            file = self._file(place)
            value = file.scope.names.get(attribute) if file is not None else None
            if file is not None and isinstance(value, Function) and not isinstance(value.node, ast.Lambda):
                return None if value.node.decorator_list else (file, value)
            if file is not None and isinstance(value, Symbol) and depth < _DEEPEST:
                return file._find(value.name, depth + 1)  # noqa: SLF001 (its own class)
        return None

    def _file(self, path: str) -> Registry | None:
        """Return another file, gone through once."""
        if path not in self._files:
            self._files[path] = None
            text = self._read(path) if self._read is not None and len(self._files) <= _MOST_FILES else None
            code = None
            if text is not None and len(text) <= _LARGEST and self._depth_of_files < _DEEPEST:
                try:
                    code = read_python(text, notebook=False)
                except OverBudgetError:
                    if BUDGET.left < 0:
                        raise
            if code is not None:
                other = Elsewhere(code.file, code.text, code.body)
                file = Registry(other, self._read, path.rpartition("/")[0] + "/" if "/" in path else "")
                file._files, file._depth_of_files = self._files, self._depth_of_files + 1
                file.start()
                self._files[path] = file
        return self._files[path]

    def _spec(self, made: Object, function: Function | None = None) -> Object:
        """Return the model that a registry makes: the family by the registry's own text, else its package."""
        spec = Object(SPEC, made.span, dict(made.items), [], made.rest, self.branch, elsewhere=True)
        parts = made.kind.split(".")
        family = parts[2] if parts[:2] == ["torchtitan", "models"] and len(parts) == 4 else None
        parameters: list[str] = ["flavor"]
        if function is not None and not isinstance(function.node, ast.Lambda):
            family = _family(function.node)
            arguments = function.node.args
            parameters = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
            for name, default in zip(reversed(parameters), reversed(arguments.defaults), strict=False):
                if name not in spec.items and isinstance(default, ast.Constant):
                    spec.items[name] = made.span, Literal(default.value, made.span)
        for name, value in zip(parameters, made.positional, strict=False):
            spec.items[name] = getattr(value, "span", made.span), value
        why = f"the family of {made.name}() is not known"
        named: object = Unknown(why, made.span) if family is None else Literal(family, made.span)
        spec.items["name"] = made.span, named
        return spec


def _family(node: ast.AST) -> str | None:
    """Return the name that a registry gives its models."""
    for call in ast.walk(node):
        spend(1, PYTHON)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "").endswith(SPEC):
            named = next((word.value for word in call.keywords if word.arg == "name"), None)
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                return named.value
    return None


def _is_class(callee: object) -> bool:
    """Whether what is called is ``type(x)`` of something."""
    return isinstance(callee, Object) and callee.kind == "type" and len(callee.positional) == 1


def _is_own(value: object, owner: Object, name: str) -> bool:
    """Whether a value is an object's own section, to which nobody gave anything."""
    own = isinstance(value, Section) and value.above is owner and value.at == name
    return own and isinstance(value, Section) and not value.items and not value.rest


def _is_sure(made: Object) -> bool:
    """Whether a call is ``isinstance(value, kind)`` of what a call of that class makes."""
    value, kind = made.positional
    known = isinstance(value, Object) and isinstance(kind, Symbol) and value.kind == kind.name
    return made.kind == "isinstance" and known and not value.rest  # type: ignore[attr-defined]


def is_config(value: Object) -> bool:
    """Whether an object is a config or a section of one: of a class ``…Config``, or not known at all."""
    return (
        isinstance(value, Section)
        or value.name.endswith(("Config", SPEC))
        or (value.elsewhere and value.rest != "")
    )


def attach(value: object, span: Span) -> None:
    """Put a section into its config, since something of it is set."""
    if isinstance(value, Section) and value.above is not None:
        attach(value.above, span)
        value.above.items.setdefault(value.at, (span, value))
