"""A program together with the modules of its project that it imports: their classes, functions and constants.

``from mypkg.args import ModelArguments`` is looked up beside the program, or where its package is. What
another module says has the place of the import, or of the call that leads there, so nothing there is edited.
"""

from __future__ import annotations

import ast
import os
import re
import sys

from cfglint.budget import BUDGET, spend
from cfglint.document.python.declared import FILE_ALONE, declared, files_of, options, plain_flags
from cfglint.document.python.documents import ARGUMENTS
from cfglint.document.python.run import Program
from cfglint.document.python.source import PYTHON, Code, Elsewhere, read_python
from cfglint.document.python.surely import names_of, traits_of
from cfglint.document.python.values import Class, Flag, Function, Literal, Object, Span
from cfglint.errors import OverBudgetError
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, TypeAlias, TypeVar

    from cfglint.document.project import Project
    from cfglint.document.python.surely import Traits
    from cfglint.document.tree import File

    Finder: TypeAlias = Callable[[str, str], File | None]  # by who asks, and a path
    Said: TypeAlias = Callable[[Flag], Literal | None]
    Found = TypeVar("Found")

_ELSEWHERE = sys.stdlib_module_names | {
    *("transformers", "trl", "torch", "datasets", "peft", "accelerate", "numpy", "deepspeed")
}
_CHARACTERS = 200  # that cost a step
# What is no code, and lines that nobody writes: to search one takes the square of its length.
_NO_CODE = re.compile(r"""(?ms)#[^\n]*|^[ \t]*(?:'{3}.*?'{3}|"{3}.*?"{3})|[^\n]{1000,}""")
_LARGEST = 2**18  # characters of a file
_MOST = 12  # modules of a program
_SHARED = ("calls", "flags", "parsers", "wondered", "_linked", "_active")
_RESERVE = 4  # of a file's steps, the part that is left for judging it


class Modules(Record):
    """The Python files of a project; each is parsed once."""

    find: Finder
    project: Project | None = None
    _codes: dict[str, Code | None] = field(factory=dict, init=False)
    _imported: dict[tuple[str, str], File | None] = field(factory=dict, init=False)
    _files: dict[str, list[File]] = field(factory=dict, init=False)
    _plain: dict[str, str] = field(factory=dict, init=False)
    _names: dict[str, dict[str, object]] = field(factory=dict, init=False)
    _traits: dict[ast.AST, Traits] = field(factory=dict, init=False)

    def code(self, file: File) -> Code | None:
        """Return the statements of a file; None for one that cannot be read, or costs more than it may."""
        if file.path not in self._codes:
            self._codes[file.path] = None
            if len(file.text) <= _LARGEST and BUDGET.left >= BUDGET.most // _RESERVE:
                try:
                    self._codes[file.path] = read_python(file.text, notebook=False)
                except OverBudgetError:
                    if BUDGET.left < 0:
                        raise
        return self._codes[file.path]

    def names(self, file: File) -> dict[str, object]:
        """Return what the names of a file stand for, as far as each is set once (see surely.py)."""
        if file.path not in self._names:
            code = self.code(file)
            self._names[file.path] = {} if code is None else names_of(code.body, file)
        return self._names[file.path]

    def traits(self, node: ast.AST) -> Traits:
        """Return what lies in a statement of one of the files, whatever a config says."""
        found = self._traits.get(node)
        if found is None:
            found = self._traits[node] = traits_of(node)
        return found

    def plain(self, file: File) -> str:
        """Return a file's code without comments, texts of their own, and lines that nobody writes."""
        if file.path not in self._plain:
            spend(len(file.text) // _CHARACTERS, PYTHON)
            self._plain[file.path] = _NO_CODE.sub("", file.text)
        return self._plain[file.path]

    def modelings(self, file: File) -> list[str]:
        """Return the code of the project's own models, which a checkpoint may bring along."""
        own = self.project.programs(file.path) if self.project is not None else ()
        return [text for path, text in own if os.path.basename(path).startswith("modeling_")]

    def imported(self, file: File, name: str) -> File | None:
        """Return the file of a module, by its dotted name as ``file`` imports it; None if it is not here."""
        key = os.path.dirname(file.path), name
        if key not in self._imported:
            self._imported[key] = self._find(file, name)
        return self._imported[key]

    def files(self, start: File) -> list[File]:
        """Return the files of a program and of what it imports from its project, up to a limit."""
        if start.path not in self._files:
            self._files[start.path] = list(files_of(start, self.imported))
        return self._files[start.path]

    def _find(self, file: File, name: str) -> File | None:
        bare = name.lstrip(".")
        up = "../" * max(len(name) - len(bare) - 1, 0)
        path = up + bare.replace(".", "/")
        if not bare or bare.partition(".")[0] in _ELSEWHERE:
            return None
        if bare != name:  # a relative import is seen from its own folder, and from nowhere else
            path = os.path.abspath(os.path.join(os.path.dirname(file.path), path))
        # A package may lie in a folder of its own (packaging.python.org: src layout vs flat layout).
        above = ("", "src/") if bare == name else ("",)
        for end in (f"{folder}{path}{tail}" for folder in above for tail in (".py", "/__init__.py")):
            found = self.find(file.path, end)
            if found is not None and found.format == "program":
                return found
        return None


def _is_same(one: Literal | None, other: Literal | None) -> bool:
    if one is None or other is None:
        return one is other
    return type(one.value) is type(other.value) and one.value == other.value and one.span == other.span


class Linked(Program):
    """A program, or a module of it; ``said`` is what its command, or a default, says of a flag.

    ``wondered`` are the flags that decide which branches are taken. Whoever says the same of all that was
    asked gets the same program ``again``.
    """

    def __init__(self, code: Code, file: File, modules: Modules, said: Said | None = None) -> None:
        super().__init__(code)
        self.wondered: set[str] = set()
        self._words: tuple[frozenset[str], bool] | None = None
        self._plain: dict[frozenset[str], frozenset[str] | None] = {}
        self._options: dict[str, frozenset[str]] = {}
        self._told: list[tuple[dict[str, tuple[Flag, Literal | None]], Linked]] = []
        self._file, self._modules, self._said = file, modules, said
        self._once: dict[object, Any] = {}
        self._linked: dict[str, Linked | None] = {os.path.abspath(file.path): self}

    def once(self, make: Callable[[File, Modules], Found]) -> Found:
        """Return what ``make`` finds out of the program and its modules, made at the first call."""
        if make not in self._once:
            self._once[make] = make(self._file, self._modules)
        return self._once[make]  # type: ignore[no-any-return]

    def texts(self) -> list[str]:
        """Return the texts of the program's files, as far as they were looked up."""
        return [linked.code.file for linked in self._linked.values() if linked is not None]

    @property
    def reads_file_alone(self) -> bool:
        """Whether it takes its arguments from a file that is its only word, and then no flag beside it."""
        return any(map(FILE_ALONE.search, self.texts()))

    def declared(self) -> tuple[frozenset[str], bool]:
        """Return the words that the project's files declare as arguments; see declared.py."""
        if self._words is None:
            self._words = declared(self._modules.files(self._file))
        return self._words

    def plain_flags(self, given: Collection[str]) -> frozenset[str] | None:
        """Return all flags of the parser that takes those that are given; see declared.py."""
        key = frozenset(given)
        if key not in self._plain:
            self._plain[key] = plain_flags(self._modules.files(self._file), key)
        return self._plain[key]

    def options(self, key: str) -> Collection[str]:
        """Return the spellings of a flag, as far as they are known; see declared.py."""
        flag = self.flags.get(key)
        if flag is not None and flag.options:
            return flag.options
        if key not in self._options:
            self._options[key] = options(self._modules.files(self._file), key)
        return self._options[key]

    def again(self, said: Said) -> Linked:
        """Go through the program again, with what is said of its flags."""
        for answers, told in self._told:
            if all(_is_same(said(flag), answer) for flag, answer in answers.values()):
                return told
        asked: dict[str, tuple[Flag, Literal | None]] = {}

        def noted(flag: Flag) -> Literal | None:
            asked[flag.name] = flag, said(flag)
            return asked[flag.name][1]

        told = Linked(self.code, self._file, self._modules, noted)
        told.run()
        self._told.append((asked, told))
        return told

    # ── flags ──────────────────────────────────────────────────────────────────────────────────────────
    def settled(self, value: object) -> object:
        """Return what a flag is worth where a branch depends on it, as far as that is known."""
        if not isinstance(value, Flag):
            return value
        self.wondered.add(value.name)
        told = self._said(value) if self._said is not None else None
        return told or value

    # ── other modules ──────────────────────────────────────────────────────────────────────────────────
    def value(self, node: ast.expr) -> object:
        """Return what an expression is worth; of another file, it is at the place that leads there."""
        value = super().value(node)
        if isinstance(self.code, Elsewhere) and isinstance(value, Literal) and value.whole:
            return Literal(value.value, value.span)
        return value

    def _name(self, node: ast.Name) -> object:
        if node.id == "__name__" and isinstance(self.code, Elsewhere):
            return Literal(self.code.file and "module", self.code.span(node))
        return super()._name(node)

    def arguments(self, made: Object, node: ast.Call) -> Object:
        """Add the arguments of a call to what it makes, at the place that leads to another file."""
        made = super().arguments(made, node)
        if isinstance(self.code, Elsewhere):
            made.elsewhere, made.last = True, None
            made.items = {name: (self.code.shown, value) for name, (_, value) in made.items.items()}
        return made

    def _importfrom(self, node: ast.ImportFrom) -> None:
        super()._importfrom(node)
        holder = "." * node.level + (node.module or "")
        module = self._module_at(holder, node) if node.module else None
        if module is None:
            return
        names = {alias.asname or alias.name: alias.name for alias in node.names}
        if "*" in names and "__all__" not in module.scope.names:
            names = {name: name for name in module.scope.names if not name.startswith("_")}
        for name, original in names.items():
            value = module.scope.names.get(original)
            if isinstance(value, Literal) or _is_plain(value):
                self.scope.names[name] = value

    def _module_at(self, name: str, node: ast.ImportFrom) -> Linked | None:
        """Return a module of the project, gone through once as far as it runs by itself."""
        file = self._modules.imported(self._file, name)
        if file is None:
            return None
        key = os.path.abspath(file.path)
        if key not in self._linked:
            self._linked[key] = None
            code = self._modules.code(file) if len(self._linked) <= _MOST else None
            if code is not None:
                other = Elsewhere(code.file, code.text, code.body)
                other.shown = self.code.span(node)
                self._linked[key] = linked = Linked(other, file, self._modules, self._said)
                linked.join(self)
                linked.start()
        return self._linked[key]

    def join(self, other: Linked) -> None:
        """Keep one list of calls, flags and modules with another."""
        vars(self).update({name: vars(other)[name] for name in _SHARED})

    def entered(self, function: Function, given: Object, node: ast.Call) -> object:
        """Return what a function gives, that of another module there."""
        owner = next((each for each in self._linked.values() if each and each.owns(function)), self)
        if owner is self:
            return super().entered(function, given, node)
        if self.is_inside(function):
            return self._computed(node)
        result = owner.lend(function, given, self.code.span(node), self)
        self.frozen, self.imports = self.frozen or owner.frozen, self.imports | owner.imports
        return self._computed(node) if result is None else result

    def lend(self, function: Function, given: Object, shown: Span, caller: Linked) -> object:
        """Return what a function of this module gives to another one; None where it is not gone through."""
        body, code = function.node, self.code
        if isinstance(body, ast.Lambda) or self._left <= 0 or self._yields(body):
            return None
        self._left -= 1
        outer, self.branch = self.branch, caller.branch
        self.branches = max(self.branches, caller.branches)
        before = code.shown if isinstance(code, Elsewhere) else shown
        if isinstance(code, Elsewhere):
            code.shown = shown
        try:
            return self.enter(function, self.bound(function, given), None)
        finally:
            self.branch, caller.branches = outer, self.branches
            if isinstance(code, Elsewhere):
                code.shown = before


def _is_plain(value: object) -> bool:
    """Whether a name stands for a function, or for a class of fields alone, as parsers fill them."""
    if isinstance(value, Class):
        base = value.known_base()
        return not value.makes_itself and (not base or base.rpartition(".")[2] in ARGUMENTS)
    return (
        isinstance(value, Function)
        and not isinstance(value.node, ast.Lambda)
        and not value.node.decorator_list
    )
