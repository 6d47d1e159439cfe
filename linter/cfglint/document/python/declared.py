"""The words that a program and the modules of its project declare as arguments, wherever its parser is made.

They are found by text: what is imported is followed from file to file, and each may declare some, by
``add_argument`` or as fields of a class.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from cfglint.document.tree import File

_MOST = 80  # files of a program
_PARTS = 12  # of what a line imports, that may be modules
_IMPORTED = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w., ]+))",
    re.MULTILINE,
)
_FLAG = re.compile(r"""["']--?([A-Za-z][\w.-]*)["']""")
_OPTION = re.compile(r"""["'](--[A-Za-z][\w.-]*)["']""")
_FIELD = re.compile(r"^[ \t]+([A-Za-z_]\w*)[ \t]*:[ \t]*[A-Za-z\"'][^\n]*$", re.MULTILINE)
_SWITCH = re.compile(r"^[ \t]+([A-Za-z_]\w*)[ \t]*:[ \t]*[\"']?(?:Optional\[)?bool\b", re.MULTILINE)
_LIBRARY = re.compile(
    r"^[ \t]*from[ \t]+(?:transformers|trl)\b[\w.]*[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE
)
# Parsers, with what fills them; what takes any flag; other ways to read a command; what adds flags by itself.
_MADE = re.compile(r"(?<!import )(?<!class )\b(?:Hf)?ArgumentParser\w*\(+([^)=]*)")
_CLASSES = re.compile(r"[\s(]*(?:(?:\w+\.)*[A-Z]\w*\s*(?:,\s*|\Z))+")  # the classes alone that fill a parser
_LENIENT = re.compile(
    r"\bparse_known_args\b|\bknown_only\s*=\s*True\b|\breturn_remaining_strings\b|\bsys\.argv\[1:\]"
    r"|\bREMAINDER\b"
)
# `if len(sys.argv) == 2 and sys.argv[1].endswith(".json"): … parser.parse_json_file(…)`, and flags otherwise
# (https://github.com/huggingface/transformers/blob/v4.46.0/examples/pytorch/language-modeling/run_clm.py#L262).
FILE_ALONE = re.compile(r"\bsys\.argv\b(?s:.){0,600}?\.parse_(?:json|yaml)_file\(")
_OTHERS = re.compile(
    r"(?m)^[ \t]*(?:import|from)[ \t]+(?:fire|click|tyro|absl|jsonargparse|simple_parsing|draccus|typer|hydra"
    r"|omegaconf|gflags|docopt|configargparse|megatron)\b"
)
_ADDS = re.compile(r"\b(add_(?!argument\b|argument_group\b)\w*arg\w*)\(")
_LEAST = 8  # flags, by which a parser is known to be a command's
# Flags that are put together, or made of the fields of a class by transformers.
_BY_FIELDS = re.compile(r"""HfArgumentParser|\bf["']--|["']--["']|["']--?%s|["']--\{""")
_CLASS = re.compile(r"(?m)^[ \t]*class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?:")
_BODY = re.compile(r"(?m)^class[ \t]+(\w+)[^\n]*((?:\n(?:[ \t)][^\n]*)?)*)")
_TITLE = re.compile(r"\b[A-Z]\w*")
_LAST = re.compile(r"(?:\w+\.)*(\w+)")  # of a dotted name
_FILLED = re.compile(r"(?:class[ \t]+\w+|\w*Parser)\(+([^)=]*)")  # a class's bases, what a parser fills


def declared(files: Sequence[File]) -> tuple[frozenset[str], bool]:
    """Return the words, and whether a class of transformers' arguments adds its own."""
    words: set[str] = set()
    trains = False
    for file in files:
        words |= _words(file.text)
        trains = trains or _fills_library(file.text)
    return frozenset(words), trains


def options(files: Sequence[File], key: str) -> frozenset[str]:
    """Return how the project's files spell a flag; empty where none has it, or a class has it as a field.

    HfArgumentParser takes a field with underscores, whatever else it takes.
    """
    told: set[str] = set()
    for file in files:
        if key in _FIELD.findall(file.text):
            return frozenset()
        told.update(word for word in _OPTION.findall(file.text) if word[2:].replace("-", "_") == key)
    return frozenset(told)


def plain_flags(files: Sequence[File], given: Collection[str]) -> frozenset[str] | None:
    """Return all flags of the parser that takes those that are ``given``; None where nobody knows which.

    It is the nearest file that makes a parser, fills it line by line, and has it stop at what is left over.
    One flag in nine may be left from an older version.
    """
    for file in files:
        words = frozenset(word.replace("-", "_") for word in _FLAG.findall(file.text))
        strange = sum(each not in words for each in given)
        if len(given) < _LEAST * (1 + strange) or "ArgumentParser(" not in file.text:
            continue
        own = set(re.findall(r"\bdef[ \t]+(\w+)", file.text))
        strict = ".parse_args(" in file.text and not _LENIENT.search(file.text)
        plain = not _BY_FIELDS.search(file.text) and own.issuperset(_ADDS.findall(file.text))
        return words if strict and plain else None
    return None


def all_taken(files: Sequence[File]) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    """Return all words that a program may take as flags, where it stops at any other; sure ones; switches.

    None where nobody knows: its parser, and the classes that fill it, have to be in the project's files.
    """
    texts = [file.text for file in files]
    whole = "\n".join(texts)
    filled = _MADE.findall(whole)
    if not filled or len(texts) > _MOST or _LENIENT.search(whole) or _OTHERS.search(texts[0]):
        return None
    if any(_fills_library(text) for text in texts):
        return None
    defined = dict(_CLASS.findall(whole))
    waiting = [name for made in filled for name in _TITLE.findall(made)]
    for name in waiting:
        if name not in defined:
            return None
        waiting += [base for base in _LAST.findall(defined[name]) if base not in (*waiting, "object")]
    made = set(re.findall(r"\bdef[ \t]+(\w+)", whole))
    if not made.issuperset(_ADDS.findall(whole)):
        return None
    bodies = [body for name, body in _BODY.findall(whole) if name in waiting]
    sure = frozenset(field for body in bodies for field in _FIELD.findall(body))
    switches = frozenset(field for body in bodies for field in _SWITCH.findall(body))
    exact = _fields_of(waiting, texts) if all(map(_CLASSES.fullmatch, filled)) else None
    if exact is not None:  # a field of another class is no flag
        flags = {word.replace("-", "_") for word in _FLAG.findall(whole)}
        return frozenset(flags | exact), sure, switches
    return frozenset(word for text in texts for word in _words(text)), sure, switches


def one_parser(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    """Return the flags of a program that fills one parser by itself, whatever it imports.

    Its parser has one name, of which the file asks nothing but to add flags and to parse the command.
    """
    if text.count("ArgumentParser(") != 1 or ".parse_args()" not in text or _LENIENT.search(text):
        return None
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    spend(len(nodes), PYTHON)
    makes = [node for node in nodes if isinstance(node, ast.Assign) and _makes_parser(node.value)]
    name = getattr(makes[0].targets[0], "id", "") if len(makes) == 1 else ""
    calls = [node for node in nodes if isinstance(node, ast.Call) and _called(node, name)]
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    adds = [node for node in calls if _called(node, name) == "add_argument"]
    parses = sum(_called(node, name) == "parse_args" and not node.args for node in calls)
    aside = sum(_called(node, name) in ("error", "set_defaults") for node in calls)
    if not name or parses != 1 or len(uses) != 1 + len(adds) + parses + aside:
        return None
    words: dict[str, bool] = {}
    for node in adds:
        if not all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.args):
            return None
        action = next((each.value for each in node.keywords if each.arg == "action"), None)
        if any(each.arg is None for each in node.keywords):
            return None
        for each in node.args:
            word = each.value.lstrip("-").replace("-", "_")  # type: ignore[attr-defined]
            words[word] = isinstance(action, ast.Constant) and str(action.value).startswith("store_")
    return frozenset(words), frozenset(words), frozenset(word for word, switch in words.items() if switch)


def _makes_parser(node: ast.expr) -> bool:
    """Whether a value is a parser of its own, and not one that takes flags from others or from files."""
    made = isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "argparse.ArgumentParser",
        "ArgumentParser",
    )
    told = {each.arg for each in node.keywords} if isinstance(node, ast.Call) else set()
    return made and told <= {"description", "prog", "usage", "epilog", "formatter_class"}


def _called(node: ast.Call, name: str) -> str:
    """Return the method of a name that is called; empty for another call."""
    method = node.func
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name):
        return ""
    return method.attr if method.value.id == name else ""


def _fields_of(names: list[str], texts: list[str]) -> set[str] | None:
    """Return the fields of some classes; None where a file that has one does not parse."""
    fields: set[str] = set()
    for text in texts:
        if set(names).isdisjoint(name for name, _ in _CLASS.findall(text)):
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        bodies = (
            node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name in names
        )
        targets = (each.target for body in bodies for each in body if isinstance(each, ast.AnnAssign))
        fields |= {target.id for target in targets if isinstance(target, ast.Name)}
    return fields


def field_defaults(text: str) -> dict[str, object]:
    """Return what the fields of a file's classes are worth by default, where that is a literal."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    spend(len(nodes), PYTHON)
    bodies = (node.body for node in nodes if isinstance(node, ast.ClassDef))
    fields = (each for body in bodies for each in body if isinstance(each, ast.AnnAssign))
    worth = ((field.target, _default(field.value)) for field in fields)
    return {name.id: value.value for name, value in worth if isinstance(name, ast.Name) and value is not None}


def _default(node: ast.expr | None) -> ast.Constant | None:
    """Return the default of a field, as it is or as ``field(default=…)``."""
    if isinstance(node, ast.Call):
        node = next((each.value for each in node.keywords if each.arg == "default"), None)
    return node if isinstance(node, ast.Constant) else None


def _words(text: str) -> set[str]:
    return {word.replace("-", "_") for word in _FLAG.findall(text)} | set(_FIELD.findall(text))


def files_of(start: File, imported: Callable[[File, str], File | None]) -> Iterator[File]:
    """Yield the files of a program and of what it imports from its project, up to a limit and one more."""
    waiting, seen = [start], {start.path}
    while waiting and len(seen) <= _MOST:
        file = waiting.pop(0)
        yield file
        for name in _names(file.text):
            found = imported(file, name)
            if found is not None and found.path not in seen:
                seen.add(found.path)
                waiting.append(found)
    yield from waiting


def _fills_library(text: str) -> bool:
    """Whether arguments of transformers or TRL are a base, or among the classes that a parser fills."""
    filled = " ".join(_FILLED.findall(text))
    named = re.findall(r"\w+(?:Arguments|Config)\b", " ".join(_LIBRARY.findall(text)))
    by_module = re.search(r"\b(?:transformers|trl)\.\w+(?:Arguments|Config)\b", filled) is not None
    return by_module or not set(named).isdisjoint(re.findall(r"\w+", filled))


def _names(text: str) -> list[str]:
    """Return the modules that a file imports, and what may be modules of them."""
    names: dict[str, None] = {}
    for holder, parts, plain in _IMPORTED.findall(text):
        if holder:
            names[holder] = None
            inner, dot = re.findall(r"[A-Za-z_]\w*", parts), "" if holder.endswith(".") else "."
            names.update((f"{holder}{dot}{part}", None) for part in inner[:_PARTS])
        names.update((each, None) for each in re.findall(r"[\w.]+", plain))
    return list(names)
