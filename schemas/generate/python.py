"""Reads Python modules without running them: classes, constants and what imported names stand for."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sources import Tree

UNKNOWN = object()
_DEEPEST = 12


@dataclass
class Module:
    """A module: its top-level classes, assignments and imports, also those under ``if`` and ``try``."""

    path: str
    tree: ast.Module
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


class Package:
    """The modules of a tree, read when they are asked for; ``prefix`` is the folder that imports start at."""

    def __init__(self, tree: Tree, prefix: str = "", others: tuple[Package, ...] = ()) -> None:
        self.tree = tree
        self.prefix = prefix
        self.others = others  # packages that this one imports from
        self._known: dict[str, Module | None] = {}

    def module(self, path: str) -> Module | None:
        """Return the module in a file."""
        if path not in self._known:
            text = self.tree.text(path)
            self._known[path] = None if text is None else _parsed(path, text)
        return self._known[path]

    def imported(self, dotted: str) -> Module | None:
        """Return a module by its dotted name."""
        inside = dotted.replace(".", "/")
        for base in dict.fromkeys((self.prefix + inside, inside)):
            found = self.module(f"{base}.py") or self.module(f"{base}/__init__.py")
            if found is not None:
                return found
        for other in self.others:
            found = other.imported(dotted)
            if found is not None:
                return found
        return None

    def find(self, module: Module, name: str, depth: int = 0) -> tuple[Module, ast.AST] | None:
        """Return what a name stands for: a class, a value or a function, and the module that defines it."""
        for table in (module.classes, module.values, module.functions):
            if name in table:
                return module, table[name]
        if depth > _DEEPEST:
            return None
        if name in module.imports:
            source, original = module.imports[name]
            other = self.imported(source)
            return None if other is None else self.find(other, original, depth + 1)
        for source in module.stars:
            other = self.imported(source)
            found = None if other is None else self.find(other, name, depth + 1)
            if found is not None:
                return found
        return None

    # ── constants ──────────────────────────────────────────────────────────────────────────────────────
    def value(self, module: Module, node: ast.AST | None, depth: int = 0) -> Any:
        """Return what an expression is worth; UNKNOWN where that takes running it."""
        if node is None or depth > _DEEPEST:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._items(module, node.elts, depth)
        if isinstance(node, ast.Dict):
            keys = self._items(module, [key for key in node.keys if key is not None], depth)
            if keys is UNKNOWN or len(keys) < len(node.keys):
                return UNKNOWN
            values = [self.value(module, value, depth + 1) for value in node.values]
            try:
                return dict(zip(keys, values, strict=True))
            except TypeError:
                return UNKNOWN
        if isinstance(node, ast.Name):
            found = self.find(module, node.id)
            if found is None or not isinstance(found[1], ast.expr):
                return UNKNOWN
            return self.value(*found, depth + 1)
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.value(module, node.operand, depth + 1)
            return -value if isinstance(value, (int, float)) else UNKNOWN
        if isinstance(node, ast.BinOp):
            return self._sum(module, node, depth)
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        return UNKNOWN

    def _items(self, module: Module, nodes: list[ast.expr], depth: int) -> Any:
        found: list[Any] = []
        for node in nodes:
            inner = node.value if isinstance(node, ast.Starred) else node
            value = self.value(module, inner, depth + 1)
            if value is UNKNOWN:
                return UNKNOWN
            if isinstance(node, ast.Starred):
                found += value
            else:
                found.append(value)
        return found

    def _attribute(self, module: Module, node: ast.Attribute, depth: int) -> Any:
        owner = node.value
        if node.attr == "value":  # of an enumeration's member
            return self.value(module, owner, depth + 1)
        if isinstance(owner, ast.Name):
            found = self.find(module, owner.id)
            if found is not None and isinstance(found[1], ast.ClassDef):
                members = self.members(found[0], found[1])
                return members.get(node.attr, UNKNOWN)
            if owner.id in module.imports:
                source, original = module.imports[owner.id]
                other = self.imported(f"{source}.{original}")
                hit = None if other is None else self.find(other, node.attr)
                if hit is not None and isinstance(hit[1], ast.expr):
                    return self.value(*hit, depth + 1)
        return UNKNOWN

    def _sum(self, module: Module, node: ast.BinOp, depth: int) -> Any:
        left = self.value(module, node.left, depth + 1)
        right = self.value(module, node.right, depth + 1)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        try:
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Pow) and abs(right) < 64:
                return left**right
            if isinstance(node.op, ast.Div):
                return left / right
            if isinstance(node.op, ast.LShift) and right < 64:
                return left << right
        except (TypeError, ValueError, ZeroDivisionError):
            return UNKNOWN
        return UNKNOWN

    def _call(self, module: Module, node: ast.Call, depth: int) -> Any:
        function = node.func
        if isinstance(function, ast.Name) and function.id in ("list", "sorted", "tuple", "set", "frozenset"):
            if not node.args:
                return []
            value = self.value(module, node.args[0], depth + 1)
            return UNKNOWN if value is UNKNOWN else list(value)
        if isinstance(function, ast.Attribute) and function.attr in ("keys", "values") and not node.args:
            value = self.value(module, function.value, depth + 1)
            return list(getattr(value, function.attr)()) if isinstance(value, dict) else UNKNOWN
        if isinstance(function, ast.Name) and function.id == "dict" and not node.args and not node.keywords:
            return {}
        return UNKNOWN

    # ── classes ────────────────────────────────────────────────────────────────────────────────────────
    def lineage(
        self, module: Module, node: ast.ClassDef, depth: int = 0
    ) -> list[tuple[Module, ast.ClassDef]]:
        """Return a class and its known bases, the deepest base first."""
        found: list[tuple[Module, ast.ClassDef]] = []
        for base in reversed(node.bases):
            name = base_name(base)
            hit = self.find(module, name) if name else None
            if hit is not None and isinstance(hit[1], ast.ClassDef) and depth < _DEEPEST:
                found += [one for one in self.lineage(hit[0], hit[1], depth + 1) if one not in found]
        return [*found, (module, node)]

    def bases(self, module: Module, node: ast.ClassDef) -> set[str]:
        """Return the names of all classes above a class, also of those that are not in the tree."""
        return {
            name
            for _, one in self.lineage(module, node)
            for name in (one.name, *(base_name(base) for base in one.bases))
            if name
        }

    def members(self, module: Module, node: ast.ClassDef) -> dict[str, Any]:
        """Return the plain assignments of a class: an enumeration's members with their values."""
        found: dict[str, Any] = {}
        for at, one in self.lineage(module, node):
            for line in one.body:
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                    name = line.targets[0].id
                    auto = isinstance(line.value, ast.Call) and base_name(line.value.func) == "auto"
                    found[name] = name.lower() if auto else self.value(at, line.value)
        return found

    def is_enum(self, module: Module, node: ast.ClassDef) -> bool:
        """Whether a class is an enumeration."""
        return any(name.endswith("Enum") or name == "Flag" for name in self.bases(module, node))


def base_name(node: ast.AST) -> str:
    """Return the last name of ``a.b.C`` or ``C[T]``."""
    if isinstance(node, ast.Subscript):
        return base_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parsed(path: str, text: str) -> Module:
    tree = ast.parse(text)
    module = Module(path, tree)
    _fill(module, tree.body)
    return module


def _package(path: str, level: int) -> str:
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[: len(parts) - level])


def _fill(module: Module, body: list[ast.stmt]) -> None:
    for line in body:
        if isinstance(line, ast.ClassDef):
            module.classes[line.name] = line
        elif isinstance(line, ast.FunctionDef):
            module.functions[line.name] = line
        elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            module.values[line.targets[0].id] = line.value
        elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            module.values[line.target.id] = line.value
        elif isinstance(line, ast.ImportFrom):
            source = line.module or ""
            if line.level:
                package = _package(module.path, line.level)
                source = f"{package}.{source}" if source else package
            for name in line.names:
                if name.name == "*":
                    module.stars.append(source)
                else:
                    module.imports.setdefault(name.asname or name.name, (source, name.name))
        elif isinstance(line, ast.If):
            _fill(module, line.body)
            _fill(module, line.orelse)
        elif isinstance(line, ast.Try):
            _fill(module, line.body)
            for handler in line.handlers:
                _fill(module, handler.body)
        elif line.__class__.__name__ == "TypeAlias":  # `type X = …`, Python 3.12
            module.values[line.name.id] = line.value  # type: ignore[attr-defined]
