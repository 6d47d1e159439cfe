"""From annotations and classes to JSON Schema: what a field takes, by what its declaration says."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from python import UNKNOWN, Module, Package, base_name
from unions import Schema, types_of, union

if TYPE_CHECKING:
    from collections.abc import Callable

SCALARS = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "None": "null",
    "NoneType": "null",
    "Path": "string",
    "PathLike": "string",
    "FilePath": "string",
    "DirectoryPath": "string",
    "StrictBool": "boolean",
    "StrictInt": "integer",
    "StrictStr": "string",
    "StrictFloat": "number",
    "UPath": "string",
}
RANGED: dict[str, Schema] = {
    "PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "NonNegativeInt": {"type": "integer", "minimum": 0},
    "PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "NonNegativeFloat": {"type": "number", "minimum": 0},
}
LISTS = ("list", "List", "Sequence", "tuple", "Tuple", "set", "Set", "Iterable", "frozenset", "Collection")
MAPPINGS = ("dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict")
LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_CONVERTERS = ("BeforeValidator", "PlainValidator", "WrapValidator")


@dataclass
class Style:
    """What is special about a framework's declarations: how unknown keys fare, and marks of ``choices``."""

    extra: Callable[[Shaper, Module, ast.ClassDef], Any] | None = None  # additionalProperties and policy
    private: bool = False  # names with an underscore in front are keys, too
    qualified: bool = False  # two files have classes of one name
    names_too: bool = False  # enumerations are written by their members' names as well
    skip: frozenset[str] = frozenset()
    any_class: frozenset[str] = frozenset()  # classes that stand for anything
    choices: str = "named"  # metadata["choices"]: refused, or only named in the help


@dataclass
class Shaper:
    """Makes the schemas of one version; ``defs`` grows by each class that is met."""

    package: Package
    style: Style
    defs: dict[str, Schema] = field(default_factory=dict)

    # ── annotations ────────────────────────────────────────────────────────────────────────────────────
    def annotation(self, module: Module, node: ast.AST | None, depth: int = 0) -> Schema:
        """Return the schema of what a type says; {} for what cannot be told."""
        if node is None or depth > 20:
            return {}
        if isinstance(node, ast.Constant):
            if node.value is None:
                return {"type": "null"}
            if isinstance(node.value, str):
                try:
                    return self.annotation(module, ast.parse(node.value, mode="eval").body, depth + 1)
                except SyntaxError:
                    return {}
            return {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return union([self.annotation(module, side, depth + 1) for side in (node.left, node.right)])
        if isinstance(node, ast.Subscript):
            return self._subscript(module, node, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(module, node, depth)
        return {}

    def _subscript(self, module: Module, node: ast.Subscript, depth: int) -> Schema:
        name = base_name(node)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            return union([self.annotation(module, inner[0], depth + 1), {"type": "null"}])
        if name == "Union":
            return union([self.annotation(module, one, depth + 1) for one in inner])
        if name == "Literal":
            values = [self.package.value(module, one) for one in inner]
            flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
            return {} if UNKNOWN in flat else {"enum": list(dict.fromkeys(flat))}
        if name == "Annotated":
            schema = dict(self.annotation(module, inner[0], depth + 1))
            for extra in inner[1:]:
                if isinstance(extra, ast.Call) and base_name(extra.func) in _CONVERTERS:
                    return {}  # takes what its function takes
                if isinstance(extra, ast.Call):
                    schema = self.limited(module, schema, extra)
            return schema
        if name in LISTS:
            kinds = [one for one in inner if not (isinstance(one, ast.Constant) and one.value is ...)]
            item = union([self.annotation(module, one, depth + 1) for one in kinds])
            return {"type": "array", "items": item} if item else {"type": "array"}
        if name in MAPPINGS:
            item = self.annotation(module, inner[1], depth + 1) if len(inner) > 1 else {}
            return {"type": "object", "additionalProperties": item} if item else {"type": "object"}
        if name in ("SerializeAsAny", "Required", "NotRequired", "ReadOnly", "Final", "InitVar"):
            return self.annotation(module, inner[0], depth + 1)
        found = self.package.find(module, name)
        if found is not None and isinstance(found[1], ast.ClassDef):
            return self._class(*found)  # a generic of the framework's own
        return {}

    def _name(self, module: Module, node: ast.AST, depth: int) -> Schema:
        name = base_name(node)
        if name in SCALARS:
            return {"type": SCALARS[name]}
        if name in RANGED:
            return dict(RANGED[name])
        if name in LISTS:
            return {"type": "array"}
        if name in MAPPINGS:
            return {"type": "object"}
        if name in self.style.any_class:
            return {}
        if isinstance(node, ast.Attribute):  # of another module; what is not in the tree is not known
            owner = module.imports.get(base_name(node.value))
            other = None if owner is None else self.package.imported(".".join(owner))
            found = None if other is None else self.package.find(other, name)
        else:
            found = self.package.find(module, name)
        if found is None:
            return {}
        if isinstance(found[1], ast.ClassDef):
            return self._class(*found)
        return self.annotation(*found, depth + 1)

    def _class(self, module: Module, node: ast.ClassDef) -> Schema:
        if self.package.is_enum(module, node):
            members = self.package.members(module, node)
            values = [value for value in members.values() if value is not UNKNOWN]
            if self.style.names_too:
                values += list(members)
            return {"enum": list(dict.fromkeys(values))} if values else {}
        if not self.is_record(module, node):
            return {}
        name = f"{PurePath(module.path).stem}.{node.name}" if self.style.qualified else node.name
        if name not in self.defs:
            self.defs[name] = {}  # a class may hold itself
            self.defs[name] = self.record(module, node)
        return {"$ref": f"#/$defs/{name}"}

    def is_record(self, module: Module, node: ast.ClassDef) -> bool:
        """Whether a class is a dataclass, a pydantic model or a TypedDict."""
        for _, one in self.package.lineage(module, node):
            if any("dataclass" in ast.dump(decorator) for decorator in one.decorator_list):
                return True
        bases = self.package.bases(module, node)
        return bool(bases & {"BaseModel", "TypedDict", "BaseSettings"}) or any(
            name.endswith(("BaseModel", "ConfigModel", "BaseConfig", "BaseSettings")) for name in bases
        )

    # ── classes ────────────────────────────────────────────────────────────────────────────────────────
    def record(self, module: Module, node: ast.ClassDef) -> Schema:
        """Return a class as an object: its fields and those of its bases."""
        properties: dict[str, Schema] = {}
        for at, one in self.package.lineage(module, node):
            for line in one.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    properties.update(self.field(at, line))
            for line in one.body:
                if isinstance(line, ast.FunctionDef) and line.name == "__post_init__":
                    self._checked(at, line, properties)
                if isinstance(line, ast.FunctionDef):
                    properties.update((name, {}) for name in self._converted(at, line) if name in properties)
        made: Schema = {"type": "object", "properties": properties}
        extra = self.style.extra(self, module, node) if self.style.extra else None
        if extra is None:
            made["additionalProperties"] = False
        elif extra in ("section", "subclass", "own"):
            made["x-cfglint"] = {"unknown": extra}
        elif extra != "open":
            made |= {"additionalProperties": False, "x-cfglint": {"unknown": extra}}
        return made

    def _converted(self, module: Module, function: ast.FunctionDef) -> list[str]:
        """Return the fields whose value a validator of this class changes before its type is looked at."""
        names = []
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and base_name(decorator.func) in (
                "field_validator",
                "validator",
            ):
                words = {word.arg: self.package.value(module, word.value) for word in decorator.keywords}
                if words.get("mode") in ("before", "plain", "wrap") or words.get("pre") is True:
                    names += [self.package.value(module, one) for one in decorator.args]
        return names

    def field(self, module: Module, line: ast.AnnAssign) -> list[tuple[str, Schema]]:
        """Return a field's names (its own, and an alias) with what it takes."""
        assert isinstance(line.target, ast.Name)
        name = line.target.id
        if (
            (name.startswith("_") and not self.style.private)
            or name in self.style.skip
            or name == "model_config"
        ):
            return []
        if base_name(line.annotation) in ("ClassVar", "PrivateAttr"):
            return []
        schema = dict(self.annotation(module, line.annotation))
        names = [name]
        default = self.package.value(module, line.value)
        call = line.value if isinstance(line.value, ast.Call) else None
        if call is not None:
            words = {word.arg: word.value for word in call.keywords if word.arg}
            if base_name(call.func) == "PrivateAttr":
                return []
            if base_name(call.func) in ("field", "Field", "DeprecatedField") or words.keys() & {
                "default",
                "default_factory",
            }:
                if self.package.value(module, words.get("init")) is False:
                    return []
                default = self.package.value(module, words.get("default"))
                if "default" not in words and call.args and base_name(call.func) == "Field":
                    default = self.package.value(module, call.args[0])
                factory = base_name(words["default_factory"]) if "default_factory" in words else ""
                if "default_factory" in words and isinstance(words["default_factory"], ast.Lambda):
                    default = self.package.value(module, words["default_factory"].body)
                if factory in ("list", "dict"):
                    default = [] if factory == "list" else {}
                schema = self.limited(module, schema, call)
                schema = self._chosen(module, schema, words.get("metadata"))
                for key in ("alias", "validation_alias"):
                    names += self._aliases(module, words.get(key))
                if self.package.value(module, words.get("deprecated")) not in (UNKNOWN, None, False):
                    schema["deprecated"] = True
        if default is None and schema:
            kept = {k: v for k, v in schema.items() if k == "deprecated"}
            schema = {
                **union([{k: v for k, v in schema.items() if k != "deprecated"}, {"type": "null"}]),
                **kept,
            }
        if default is not UNKNOWN and plain(default) and default is not ...:
            schema["default"] = default
        return [(one, schema) for one in dict.fromkeys(names)]

    def _aliases(self, module: Module, node: ast.AST | None) -> list[str]:
        if isinstance(node, ast.Call):  # AliasChoices("a", "b")
            values = [self.package.value(module, one) for one in node.args]
        else:
            values = [self.package.value(module, node)]
        return [value for value in values if isinstance(value, str)]

    def limited(self, module: Module, schema: Schema, call: ast.Call) -> Schema:
        """Return a schema with the range that ``Field(ge=…)`` and its like give."""
        schema = dict(schema)
        for word in call.keywords:
            for short, long in LIMITS.items():
                names = (short, "min" if short == "ge" else "max" if short == "le" else short)
                value = self.package.value(module, word.value) if word.arg in names else UNKNOWN
                if isinstance(value, (int, float)) and {"integer", "number"} & {*types_of(schema)}:
                    schema[long] = value
        if base_name(call.func) in ("Ge", "Gt", "Le", "Lt") and call.args:
            value = self.package.value(module, call.args[0])
            if isinstance(value, (int, float)) and {"integer", "number"} & {*types_of(schema)}:
                schema[LIMITS[base_name(call.func).lower()]] = value
        return schema

    def _chosen(self, module: Module, schema: Schema, metadata: ast.AST | None) -> Schema:
        """Return a schema with the choices that a field's metadata lists."""
        if not isinstance(metadata, ast.Dict):
            return schema
        for key, value in zip(metadata.keys, metadata.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "choices":
                choices = self.package.value(module, value)
                kinds = {*types_of(schema)}
                if (
                    isinstance(choices, list)
                    and plain(choices)
                    and "array" not in kinds
                    and kinds <= {"string", "integer", "null"}
                ):
                    choices += [None] * ("null" in kinds and None not in choices)
                    mark = {} if self.style.choices == "refused" else {"x-cfglint": {"values": "named"}}
                    return {"enum": list(dict.fromkeys(choices)), **mark}
        return schema

    # ── what a class checks itself ─────────────────────────────────────────────────────────────────────
    def _checked(self, module: Module, function: ast.FunctionDef, properties: dict[str, Schema]) -> None:
        """Take in what ``__post_init__`` raises on: ``if self.x < 0: raise``."""
        local = {
            line.targets[0].id: line.value
            for line in function.body
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        }
        for line in function.body:
            self._enumerated(module, line, properties)
            if isinstance(line, ast.If) and _raises(
                line
            ):  # a function of the framework's own decides: more than the listed may do
                calls = [node for node in ast.walk(line.test) if isinstance(node, ast.Call)]
                for call in calls:
                    for one in call.args if base_name(call.func) not in ("isinstance", "len", "str") else ():
                        if "enum" in properties.get(_own(one), {}):
                            kept = {k: v for k, v in properties[_own(one)].items() if k == "default"}
                            properties[_own(one)] = kept
            if isinstance(line, ast.If) and _raises(line):
                tests = (
                    line.test.values
                    if isinstance(line.test, ast.BoolOp) and isinstance(line.test.op, ast.Or)
                    else [line.test]
                )
                for test in tests:
                    self._narrowed(module, test, properties, local)

    def _enumerated(self, module: Module, line: ast.stmt, properties: dict[str, Schema]) -> None:
        """Take in ``self.x = Kind(self.x)``, which raises for what is no member of an enumeration."""
        if not (
            isinstance(line, ast.Assign) and isinstance(line.value, ast.Call) and len(line.value.args) == 1
        ):
            return
        name = _own(line.value.args[0])
        found = self.package.find(module, base_name(line.value.func)) if base_name(line.value.func) else None
        if name not in properties or found is None or not isinstance(found[1], ast.ClassDef):
            return
        if self.package.is_enum(*found):
            default = {k: v for k, v in properties[name].items() if k == "default"}
            properties[name] = {**self._class(*found), **default}

    def _narrowed(
        self, module: Module, test: ast.expr, properties: dict[str, Schema], local: dict[str, ast.expr]
    ) -> None:
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        inner = test.operand if isinstance(test, ast.UnaryOp) and negated else test
        if not isinstance(inner, ast.Compare):
            return
        sides = [inner.left, *inner.comparators]
        if len(sides) > 2 and not negated:
            return
        for left, operator, right in zip(sides, inner.ops, sides[1:], strict=False):
            swapped = not _own(left)
            name = _own(right if swapped else left)
            other = left if swapped else right
            if isinstance(other, ast.Name) and other.id in local:
                other = local[other.id]
            value = self.package.value(module, other)
            schema = properties.get(name)
            if schema is None or value is UNKNOWN:
                continue
            sign = type(operator)
            if swapped:
                sign = _SWAPPED.get(sign, ast.Eq)
            if negated:
                sign = _NEGATED.get(sign, ast.Eq)
            if sign is ast.NotIn and isinstance(value, list) and plain(value) and _scalar_types(schema):
                default = {k: schema[k] for k in ("default",) if k in schema}
                properties[name] = {"enum": list(dict.fromkeys(value)), **default}
            elif (
                sign in _RAISES
                and isinstance(value, (int, float))
                and {"integer", "number"} & {*types_of(schema)}
            ):
                schema[_RAISES[sign]] = value


def pydantic_extra(default: str | None) -> Callable[[Shaper, Module, ast.ClassDef], str | None]:
    """Return what reads ``extra`` of a model: None if it forbids, "open" where it allows, or a default."""

    def extra(shaper: Shaper, module: Module, node: ast.ClassDef) -> str | None:
        found = default
        for at, one in shaper.package.lineage(module, node):
            if "TypedDict" in map(base_name, one.bases):
                found = "open"  # only a hint
            for line in one.body:
                said: Any = UNKNOWN
                if isinstance(line, ast.Assign) and base_name(line.targets[0]) == "model_config":
                    if isinstance(line.value, ast.Call):
                        words = {word.arg: word.value for word in line.value.keywords}
                        said = shaper.package.value(at, words.get("extra"))
                    elif isinstance(line.value, ast.Dict):
                        settings = shaper.package.value(at, line.value)
                        said = settings.get("extra", UNKNOWN) if isinstance(settings, dict) else UNKNOWN
                elif isinstance(line, ast.ClassDef) and line.name == "Config":
                    said = shaper.package.members(at, line).get("extra", UNKNOWN)
                if said is not UNKNOWN:
                    found = {"forbid": None, "allow": "open", "ignore": "ignored"}.get(said, found)
        return found

    return extra


def _raises(line: ast.If) -> bool:
    return bool(line.body) and isinstance(line.body[-1], ast.Raise)


def _own(node: ast.AST) -> str:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own else ""  # type: ignore[attr-defined]


def _scalar_types(schema: Schema) -> bool:
    return "enum" in schema or bool(
        {*types_of(schema)} and {*types_of(schema)} <= {"string", "null", "integer"}
    )


_RAISES = {ast.Lt: "minimum", ast.LtE: "exclusiveMinimum", ast.Gt: "maximum", ast.GtE: "exclusiveMaximum"}
_SWAPPED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_NEGATED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.In: ast.NotIn}


def plain(value: Any) -> bool:
    """Whether a value is one that JSON has."""
    if isinstance(value, list):
        return all(map(plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))
