"""Goes through a script as bash would, without running anything, and gathers the commands with their words.

A branch is taken both ways: what differs afterwards is unknown. A loop's variables are unknown in it and
after it. The environment is taken not to set what the script has a default for, and a sourced file not to
change what the script sets itself.
"""

from __future__ import annotations

from cfglint.budget import spend
from cfglint.document.shell.expand import DEEPEST, SCRIPT, Expander, Source
from cfglint.document.shell.programs import pod_script
from cfglint.document.shell.variables import Variables
from cfglint.document.shell.words import Array, Piece, Pieces, Word, joined, meet, unknown
from cfglint.errors import OverBudgetError
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, ClassVar


MAX_WORDS = 20_000  # of one variable
_STATEMENT, _WORD = 20, 5  # steps
_SHELLS = ("bash", "sh", "zsh", "dash")
_LOCAL = ("local", "declare", "typeset")  # to the function that they are in
_READERS = ("read", "mapfile", "readarray", "getopts", "let", "printf")
_REDIRECTS = ("comment", "herestring_redirect", "file_redirect", "heredoc_redirect")
_BLANKS = " \t\n"


class Command(Record):
    """One command that the script runs: ``NAME=value`` in front, then its words.

    ``outer`` is the command that was given it to run (``docker run … bash -c``), ``end`` where it ends in the
    file, -1 where it is not known.
    """

    words: list[Word]
    environment: dict[str, Pieces]
    exported: dict[str, Pieces | Array] = field(factory=dict)
    outer: list[Word] = field(factory=list)
    end: int = -1


class _Exit(Exception):  # noqa: N818 (a signal: nothing went wrong)
    """The way through the script ends here."""


class Runner:
    """Walks one script; ``commands`` are those that were met, in order, ``broken`` what does not parse."""

    def __init__(self, variables: Mapping[str, Pieces | Array] | None = None) -> None:
        self.commands: list[Command] = []
        self.broken: list[tuple[int, int]] = []
        self.variables = Variables(variables or {})
        self.functions: dict[str, tuple[Source, Any]] = {}
        self._arguments: list[Word] | None = None
        self._outer: list[Word] = []
        self._locals: dict[str, Pieces | Array | None] | None = None  # of a function, with what they hide
        self._source = Source(())

    def script(self, text: str) -> None:
        """Go through a whole script."""
        self.pieces((Piece(text, 0, len(text)),))

    def pieces(self, pieces: Sequence[Piece]) -> None:
        """Go through a script that is in a file in pieces."""
        self._nested(Source(pieces), 0)

    def argv(self, words: list[Word], environment: dict[str, Pieces]) -> bool:
        """Take a command whose words are known one by one, as an image's entry point is.

        Returns whether it is itself what runs; a shell runs the script that it is given.
        """
        nested = _given_to_shell(words)
        if nested is None:
            self.commands.append(Command(words, environment))
            return True
        before = self.variables.begin()
        self.variables.set(environment)
        self._nested(Source(nested.pieces), 0)
        self.variables.undo(before)
        return False

    def _nested(self, source: Source, depth: int) -> None:
        if depth <= DEEPEST:
            self.variables.set(source.names)
            root = source.parse()
            if root.has_error:
                self.broken += source.broken(root)
            self._within(source, self._arguments, root, depth)

    def _within(self, source: Source, arguments: list[Word] | None, node: Any, depth: int) -> None:
        """Run a part of a script on its own text and arguments; what is around it continues after an exit."""
        before = self._source, self._arguments
        self._source, self._arguments = source, arguments
        try:
            self._run(node, depth)
        except _Exit:  # a function's `return` and an `exit` look alike here
            pass
        finally:
            self._source, self._arguments = before

    # ── statements ─────────────────────────────────────────────────────────────────────────────────────
    def _run(self, node: Any, depth: int) -> None:
        spend(_STATEMENT, SCRIPT)
        if depth > DEEPEST:
            raise OverBudgetError(f"the script is nested more than {DEEPEST} levels deep: it was not judged")
        self._by_kind.get(node.type, Runner._forget)(self, node, depth)

    def _forget(self, node: Any, _: int) -> None:
        """Forget every variable that a statement names: it is not understood and may have changed them."""
        names = (inner for inner in _walk(node) if inner.type == "variable_name")
        self._hide(map(self._source.text_of, names))

    def _hide(self, names: Iterable[str]) -> None:
        for name in names:
            self.variables[name] = (unknown(name),)

    def _block(self, node: Any, depth: int) -> None:
        children = node.children
        for child, following in zip(children, [*children[1:], None], strict=False):
            if not child.is_named:
                continue
            if following is not None and following.type == "&":
                self._apart([child], depth)
            else:
                self._run(child, depth + 1)

    def _pipeline(self, node: Any, depth: int) -> None:
        for child in node.named_children:
            self._apart([child], depth)

    def _subshell(self, node: Any, depth: int) -> None:
        self._apart(node.named_children, depth)

    def _list(self, node: Any, depth: int) -> None:
        for number, child in enumerate(node.named_children):
            if number:
                self._ways([[child], []], depth)
            else:
                self._run(child, depth + 1)

    def _apart(self, nodes: Iterable[Any], depth: int) -> None:
        """Run what has variables of its own."""
        before = self.variables.begin()
        try:
            for node in nodes:
                self._run(node, depth + 1)
        except _Exit:
            pass
        self.variables.undo(before)

    def _ways(self, ways: list[list[Any]], depth: int) -> None:
        """Run each of some ways on its own, and go on with what they agree in."""
        after: list[dict[str, Pieces | Array | None]] = []
        for way in ways:
            before = self.variables.begin()
            try:
                for node in way:
                    self._run(node, depth + 1)
            except _Exit:
                self.variables.undo(before)
            else:
                after.append(self.variables.undo(before))
        if not after:
            raise _Exit
        self._meet(after)

    def _meet(self, ways: list[dict[str, Pieces | Array | None]]) -> None:
        """Go on with what some ways agree in, each given by what it changes."""
        changes: dict[str, list[tuple[int, Pieces | Array | None]]] = {}
        for number, way in enumerate(ways):
            for name, value in way.items():
                changes.setdefault(name, []).append((number, value))
        for name, changed in changes.items():
            values = [value for _, value in changed]
            if len(changed) < len(ways):  # the others leave it as it was; the first of them counts for all
                first = next((i for i, (number, _) in enumerate(changed) if number != i), len(changed))
                values.insert(first, self.variables.get(name))
            spend(len(values), SCRIPT)
            if not all(value is values[0] for value in values):
                self.variables[name] = meet(values, name)
            elif values[0] is not None:
                self.variables[name] = values[0]
            else:
                del self.variables[name]

    def _if(self, node: Any, depth: int) -> None:
        conditions = node.children_by_field_name("condition")
        tested = {child.id for child in conditions}
        ways: list[list[Any]] = [[]]
        otherwise = False
        for child in node.named_children:
            if child.type == "elif_clause":
                ways.append([c for c in child.named_children if c.type not in ("test_command", "comment")])
            elif child.type == "else_clause":
                otherwise = True
                ways.append(list(child.named_children))
            elif child.type != "comment" and child.id not in tested:
                ways[0].append(child)
        for condition in conditions:
            if condition.is_named:
                self._run(condition, depth + 1)
        self._ways(ways if otherwise else [*ways, []], depth)

    def _case(self, node: Any, depth: int) -> None:
        ways: list[list[Any]] = []
        otherwise = False
        for item in node.named_children:
            if item.type != "case_item":
                continue
            values = item.children_by_field_name("value")
            otherwise |= any(self._source.text_of(value) == "*" for value in values)
            tested = {value.id for value in values}
            ways.append([c for c in item.named_children if c.id not in tested and c.type != "comment"])
        self._ways(ways if otherwise else [*ways, []], depth)

    def _loop(self, node: Any, depth: int) -> None:
        names = self._assigned(node)
        variable = node.child_by_field_name("variable")
        if variable is not None:
            names.add(self._source.text_of(variable))
        self._hide(names)
        body = node.child_by_field_name("body")
        if body is not None:
            self._apart([body], depth)
        self._hide(names)

    def _function(self, node: Any, _: int) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[self._source.text_of(name)] = (self._source, body)

    # ── variables ──────────────────────────────────────────────────────────────────────────────────────
    def _assigned(self, node: Any) -> set[str]:
        """Return the variables that a loop may set."""
        text_of = self._source.text_of
        names: set[str] = set()
        for inner in _walk(node):
            children = inner.named_children
            if inner.type == "variable_assignment":
                names.add(text_of(inner.children[0]).partition("[")[0])
            elif inner.type == "compound_statement" and inner.children and inner.children[0].type == "((":
                names.update(text_of(child) for child in children if child.type == "variable_name")
            elif inner.type == "command" and children and text_of(children[0]) in _READERS:
                names.update(text_of(word).partition("=")[0] for word in children[1:])
        return names

    def _expander(self) -> Expander:
        return Expander(self._source, self.variables, self._arguments)

    def _assignments(self, node: Any, depth: int) -> None:
        own = self._locals if node.children[0].type in _LOCAL else None
        if own is not None and not any(self._source.text_of(c) == "-g" for c in node.named_children):
            for child in node.named_children:
                target = child.child_by_field_name("name") or child
                own.setdefault(name := self._source.text_of(target), self.variables.get(name))
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, depth)

    def _unset(self, node: Any, _: int) -> None:
        self.variables.set({self._source.text_of(child): () for child in node.named_children})

    def _assign(self, node: Any, _: int) -> None:
        target = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if target is None:
            return
        name = self._source.text_of(target)
        if target.type == "subscript":
            self._hide([name.partition("[")[0]])
            return
        new: Pieces | Array
        if value is None:
            new = ()
        elif node.has_error:
            new = (unknown(name),)
        elif value.type == "array":
            new = self._expander().array(value)
        else:
            new = self._expander().value(value)
        if any(child.type == "+=" for child in node.children):
            new = _added(self.variables.get(name, ()), new)
        size = sum(map(len, new.items)) if isinstance(new, Array) else len(new)
        self.variables[name] = new if size <= MAX_WORDS else (unknown(name),)

    def _redirected(self, node: Any, depth: int) -> None:
        body = node.child_by_field_name("body")
        document = next((c for c in node.named_children if c.type == "heredoc_redirect"), None)
        if body is not None and body.type == "command" and document is not None:
            words = [word.text for word in self._words_of(body)[0]]
            if words and words[0] == "read":
                self._read(words, document)
                return
        if document is not None:  # `<<EOF | next` hangs the rest of the line below the document
            for child in document.named_children:
                if child.type == "pipeline":
                    self._apart([child], depth)
        if body is not None:
            self._run(body, depth + 1)

    def _read(self, words: list[str | None], document: Any) -> None:
        """``read -r -d '' NAME <<EOF``: the variable holds the document."""
        names = [w for i, w in enumerate(words[1:], 1) if w and w.isidentifier() and words[i - 1] != "-d"]
        whole = "-d" in words and words[words.index("-d") + 1 : words.index("-d") + 2] == [""]
        raw = any(word is not None and word.startswith("-") and "r" in word for word in words)
        body = next((c for c in document.named_children if c.type == "heredoc_body"), None)
        start = next((c for c in document.named_children if c.type == "heredoc_start"), None)
        if len(names) != 1 or not whole or not raw or body is None or start is None or document.has_error:
            self._hide(names)
            return
        if any(mark in self._source.text_of(start) for mark in "'\"\\"):
            pieces = self._source.slice(body.start_byte, body.end_byte)
        else:
            pieces = self._expander().mixed(body, body.start_byte, body.end_byte, 0)
        self.variables[names[0]] = tuple(_stripped(pieces))

    # ── commands ───────────────────────────────────────────────────────────────────────────────────────
    def _words_of(self, node: Any) -> tuple[list[Word], dict[str, Pieces]]:
        self._lines_before(node)
        expander = self._expander()
        words: list[Word] = []
        environment: dict[str, Pieces] = {}
        last = -1
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is not None and value is not None and value.type != "array":
                    environment[self._source.text_of(name)] = expander.value(value)
            elif child.type not in _REDIRECTS:
                for part in child.named_children if child.type == "command_name" else [child]:
                    more = expander.words(part)
                    if more and words and part.start_byte == last:  # the grammar cuts `[\\]` in two
                        before, first = words[-1], more.pop(0)
                        words[-1] = Word((*before.pieces, *first.pieces), before.start, first.end)
                    words.extend(more)
                    last = part.end_byte
        spend(_WORD * len(words), SCRIPT)
        return words, environment

    def _lines_before(self, node: Any) -> None:
        """Run assignments that the grammar hangs in front of the next line's command."""
        name = next((c for c in node.named_children if c.type == "command_name"), None)
        if name is None:
            return
        ahead = [c for c in node.named_children if c.type == "variable_assignment"]
        ahead = [assignment for assignment in ahead if assignment.end_byte <= name.start_byte]
        for number, following in enumerate([*ahead[1:], name] if ahead else [], 1):
            between = self._source.data[ahead[number - 1].end_byte : following.start_byte]
            if b"\n" in between.replace(b"\\\n", b""):
                for assignment in ahead[:number]:
                    self._assign(assignment, 0)

    def _command(self, node: Any, depth: int) -> None:
        if node.has_error:
            return
        words, environment = self._words_of(node)
        name = words[0].text if words else None
        if name is None and not (words and words[0].pieces):
            return
        nested = pod_script(words) or _given_to_shell(words)
        if name in ("exit", "return") and name not in self.functions:
            if name == "exit" or self._arguments is not None:
                raise _Exit
            return  # bash complains, and goes on
        if name in _READERS:
            targets = ((word.text or "").partition("=")[0] for word in words[1:])
            self._hide(target for target in targets if target.isidentifier())
        elif name == "eval":
            self._nested(Source(joined(words[1:])), depth + 1)
        elif name in self.functions:
            if depth <= DEEPEST // 2:
                self._call(name, words[1:], depth + 2)
        elif nested is not None:
            before, outer = self.variables.begin(), self._outer
            self._outer = [*outer, *words]
            # A child has the exported variables alone; those that are not are rarely read by it.
            self._nested(Source(nested.pieces), depth + 1)
            self.variables.undo(before)
            self._outer = outer
        else:
            end = -1 if self._source.loose else self._source.span(node)[1]
            self.commands.append(Command(words, environment, self.variables.snapshot(), self._outer, end))

    def _call(self, name: str, arguments: list[Word], depth: int) -> None:
        """Run a function; its local variables end with it."""
        source, body = self.functions[name]
        before, self._locals = self._locals, {}
        self._within(source, arguments, body, depth)
        self.variables.restore(self._locals)
        self._locals = before

    _by_kind: ClassVar[dict[str, Callable[[Runner, Any, int], None]]] = {
        **dict.fromkeys(
            ("program", "compound_statement", "do_group", "else_clause", "negated_command"), _block
        ),
        "command": _command,
        "variable_assignment": _assign,
        "variable_assignments": _assignments,
        "declaration_command": _assignments,
        "unset_command": _unset,
        "redirected_statement": _redirected,
        "list": _list,
        "pipeline": _pipeline,
        "subshell": _subshell,
        "if_statement": _if,
        "case_statement": _case,
        **dict.fromkeys(("for_statement", "while_statement", "c_style_for_statement"), _loop),
        "function_definition": _function,
        **dict.fromkeys(("comment", "test_command"), lambda *_: None),  # these change nothing
    }


def _walk(node: Any) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.named_children)


def _given_to_shell(words: list[Word]) -> Word | None:
    """Return the script of ``bash -c SCRIPT``, also after srun or docker."""
    for at, word in enumerate(words[:-2]):
        text = word.text
        if text is None or text.rpartition("/")[2] not in _SHELLS:
            continue
        for i in range(at + 1, len(words) - 1):
            flag = words[i].text
            if flag is None or not flag.startswith("-"):
                break
            if not flag.startswith("--") and flag.endswith("c"):
                return words[i + 2 if words[i + 1].text == "--" and i + 2 < len(words) else i + 1]
    return None


def _added(old: Pieces | Array, new: Pieces | Array) -> Pieces | Array:
    """Return what ``+=`` makes of a variable."""
    spend(len(old.items) if isinstance(old, Array) else len(old), SCRIPT)
    if isinstance(old, Array) and isinstance(new, Array):
        return Array([*old.items, *new.items])
    if isinstance(old, Array):
        return Array([(*(old.items[0] if old.items else ()), *new), *old.items[1:]])  # type: ignore[misc]
    if isinstance(new, Array):
        return Array([old, *new.items] if old else new.items)
    return (*old, *new)


def _stripped(pieces: list[Piece]) -> list[Piece]:
    """Return pieces without blanks at both ends, as ``read`` stores them."""
    pieces = list(pieces)
    for end in (0, -1):
        while pieces and not pieces[end].unknown and not pieces[end].text.strip(_BLANKS):
            del pieces[end]
        if pieces and not pieces[end].unknown:
            text = pieces[end].text
            kept = len(text.rstrip(_BLANKS) if end else text.lstrip(_BLANKS))
            pieces[end] = pieces[end].cut(0, kept) if end else pieces[end].cut(len(text) - kept, len(text))
    return pieces
