"""Goes through a script as bash would, without running anything, and gathers the commands with their words.

A branch is taken both ways: what differs afterwards is unknown. A loop's variables are unknown in it and
after it. The environment is taken not to set what the script has a default for, and a sourced file not to
change what the script sets itself.
"""

from __future__ import annotations

from cfglint.document.shell.containers import pod_script
from cfglint.document.shell.expand import DEEPEST, Expander
from cfglint.document.shell.source import Source
from cfglint.document.shell.words import Array, Piece, Word, joined, meet, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cfglint.document.shell.words import Pieces

MAX_STEPS = 50_000
MAX_COMMANDS = 2_000
MAX_WORDS = 20_000
_SHELLS = ("bash", "sh", "zsh", "dash")
_READERS = ("read", "mapfile", "readarray", "getopts", "let", "printf")
_BLOCKS = ("program", "compound_statement", "do_group", "else_clause")


class Command:
    """One command that the script runs: ``NAME=value`` in front, then its words.

    ``outer`` is the command that was given it to run (``docker run … bash -c``), ``end`` where it ends in the
    file, -1 where it is not known.
    """

    __slots__ = ("end", "environment", "exported", "outer", "words")

    def __init__(
        self,
        words: list[Word],
        environment: dict[str, Pieces],
        exported: dict[str, Pieces | Array],
        outer: list[Word],
    ) -> None:
        self.words = words
        self.outer = outer
        self.end = -1
        self.environment = environment
        self.exported = exported


class _Exit(Exception):  # noqa: N818 (a signal: nothing went wrong)
    """The way through the script ends here."""


class Runner:
    """Walks one script; ``commands`` are those that were met, in order."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.variables: dict[str, Pieces | Array] = {}
        self.functions: dict[str, tuple[Source, Any]] = {}
        self._steps = 0
        self._words = 0
        self._arguments: list[Word] | None = None
        self._outer: list[Word] = []
        self._source = Source(())

    def script(self, text: str) -> None:
        """Go through a whole script."""
        self.pieces((Piece(text, 0, len(text)),))

    def pieces(self, pieces: Sequence[Piece]) -> None:
        """Go through a script that stands in a file in pieces."""
        self._nested(Source(pieces), 0)

    def argv(self, words: list[Word], environment: dict[str, Pieces]) -> bool:
        """Take a command whose words are known one by one, as an image's entry point is.

        Returns whether it is itself what runs; a shell runs the script that it is given.
        """
        nested = _given_to_shell(words)
        if nested is None:
            self.commands.append(Command(words, environment, {}, []))
            return True
        before = dict(self.variables)
        self.variables.update(environment)
        self._nested(Source(nested.pieces), 0)
        self.variables = before
        return False

    def _nested(self, source: Source, depth: int) -> None:
        if depth > DEEPEST:
            return
        before, self._source = self._source, source
        self.variables.update(source.names)
        try:
            self._run(source.parse(), depth)
        except _Exit:
            pass
        finally:
            self._source = before

    # ── statements ─────────────────────────────────────────────────────────────────────────────────────
    def _run(self, node: Any, depth: int) -> None:
        self._steps += 1
        if depth > DEEPEST or self._steps > MAX_STEPS:
            self._forget(node)
            return
        kind = node.type
        if kind in _BLOCKS:
            for child in node.named_children:
                self._run(child, depth + 1)
        elif kind == "command":
            self._command(node, {}, depth)
        elif kind == "variable_assignment":
            self._assign(node)
        elif kind == "variable_assignments":
            for child in node.named_children:
                self._assign(child)
        elif kind == "declaration_command":
            for child in node.named_children:
                if child.type == "variable_assignment":
                    self._assign(child)
        elif kind == "redirected_statement":
            self._redirected(node, depth)
        elif kind == "list":
            self._list(node, depth)
        elif kind == "pipeline":
            for child in node.named_children:
                self._apart(child, depth)
        elif kind == "subshell":
            self._apart(node, depth, inside=True)
        elif kind == "if_statement":
            self._if(node, depth)
        elif kind == "case_statement":
            self._case(node, depth)
        elif kind in ("for_statement", "while_statement", "c_style_for_statement"):
            self._loop(node, depth)
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                self.functions[self._source.text_of(name)] = (self._source, body)
        elif kind == "negated_command":
            for child in node.named_children:
                self._run(child, depth + 1)
        elif kind == "unset_command":
            for child in node.named_children:
                self.variables[self._source.text_of(child)] = ()
        elif kind not in ("comment", "test_command"):
            self._forget(node)

    def _forget(self, node: Any) -> None:
        """What is not understood may have changed any variable that it names."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one.type == "variable_name":
                name = self._source.text_of(one)
                self.variables[name] = (unknown(name),)
            waiting.extend(one.named_children)

    def _assigned(self, node: Any) -> set[str]:
        names: set[str] = set()
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one.type == "variable_assignment":
                names.add(self._source.text_of(one.children[0]).partition("[")[0])
            elif one.type == "compound_statement" and one.children and one.children[0].type == "((":
                names.update(self._source.text_of(c) for c in one.named_children if c.type == "variable_name")
            elif one.type == "command":
                words = one.named_children
                if words and self._source.text_of(words[0]) in _READERS:
                    names.update(self._source.text_of(word).partition("=")[0] for word in words[1:])
            waiting.extend(one.named_children)
        return names

    def _expander(self) -> Expander:
        return Expander(self._source, self.variables, self._arguments)

    def _assign(self, node: Any) -> None:
        target = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if target is None:
            return
        adds = any(child.type == "+=" for child in node.children)
        name = self._source.text_of(target)
        if target.type == "subscript":
            name = name.partition("[")[0]
            self.variables[name] = (unknown(name),)
            return
        expander = self._expander()
        new: Pieces | Array
        if value is None:
            new = ()
        elif node.has_error:
            new = (unknown(name),)
        elif value.type == "array":
            new = expander.array(value)
        else:
            new = expander.value(value)
        if adds:
            old = self.variables.get(name, ())
            if isinstance(old, Array) and isinstance(new, Array):
                new = Array([*old.items, *new.items])
            elif isinstance(old, Array):
                new = Array([(*(old.items[0] if old.items else ()), *new), *old.items[1:]])  # type: ignore[misc]
            elif isinstance(new, Array):
                new = Array([old, *new.items] if old else new.items)
            else:
                new = (*old, *new)
        if _size(new) > MAX_WORDS:
            new = (unknown(name),)
        self.variables[name] = new

    def _list(self, node: Any, depth: int) -> None:
        first = True
        for child in node.named_children:
            if first:
                self._run(child, depth + 1)
                first = False
            else:
                self._ways([[child], []], depth)

    def _apart(self, node: Any, depth: int, *, inside: bool = False) -> None:
        """Run what has variables of its own."""
        before = dict(self.variables)
        try:
            for child in node.named_children if inside else (node,):
                self._run(child, depth + 1)
        except _Exit:
            pass
        self.variables = before

    def _ways(self, ways: list[list[Any]], depth: int) -> None:
        """Run each of some ways on its own, and go on with what they agree in."""
        before = self.variables
        after: list[dict[str, Pieces | Array]] = []
        for way in ways:
            self.variables = dict(before)
            try:
                for node in way:
                    self._run(node, depth + 1)
            except _Exit:
                continue
            after.append(self.variables)
        if not after:
            self.variables = before
            raise _Exit
        self.variables = _met(after)

    def _if(self, node: Any, depth: int) -> None:
        ways: list[list[Any]] = [[]]
        otherwise = False
        conditions = {id_of(c) for c in node.children_by_field_name("condition")}
        for child in node.named_children:
            if id_of(child) in conditions:
                continue
            if child.type == "elif_clause":
                ways.append([c for c in child.named_children if c.type not in ("test_command", "comment")])
            elif child.type == "else_clause":
                otherwise = True
                ways.append(list(child.named_children))
            elif child.type != "comment":
                ways[0].append(child)
        for condition in node.children_by_field_name("condition"):
            if condition.is_named:
                self._run(condition, depth + 1)
        if not otherwise:
            ways.append([])
        self._ways(ways, depth)

    def _case(self, node: Any, depth: int) -> None:
        ways: list[list[Any]] = []
        otherwise = False
        for item in node.named_children:
            if item.type != "case_item":
                continue
            values = {id_of(c) for c in item.children_by_field_name("value")}
            otherwise |= any(self._source.text_of(c) == "*" for c in item.children_by_field_name("value"))
            ways.append([c for c in item.named_children if id_of(c) not in values and c.type != "comment"])
        if not otherwise:
            ways.append([])
        self._ways(ways, depth)

    def _loop(self, node: Any, depth: int) -> None:
        names = self._assigned(node)
        variable = node.child_by_field_name("variable")
        if variable is not None:
            names.add(self._source.text_of(variable))
        for name in names:
            self.variables[name] = (unknown(name),)
        body = node.child_by_field_name("body")
        if body is not None:
            self._apart(body, depth)
        for name in names:
            self.variables[name] = (unknown(name),)

    def _redirected(self, node: Any, depth: int) -> None:
        body = node.child_by_field_name("body")
        document = next((c for c in node.named_children if c.type == "heredoc_redirect"), None)
        if body is not None and body.type == "command" and document is not None:
            words = [w.text for w in self._words_of(body)[0]]
            if words and words[0] == "read":
                self._read(words, document)
                return
        if document is not None:  # `<<EOF | next` hangs the rest of the line below the document
            for child in document.named_children:
                if child.type == "pipeline":
                    self._apart(child, depth)
        if body is not None:
            self._run(body, depth + 1)

    def _read(self, words: list[str | None], document: Any) -> None:
        """``read -r -d '' NAME <<EOF``: the variable holds the document."""
        names = [w for i, w in enumerate(words[1:], 1) if w and w.isidentifier() and words[i - 1] != "-d"]
        whole = "-d" in words and words[words.index("-d") + 1 : words.index("-d") + 2] == [""]
        raw = any(w is not None and w.startswith("-") and "r" in w for w in words)
        body = next((c for c in document.named_children if c.type == "heredoc_body"), None)
        start = next((c for c in document.named_children if c.type == "heredoc_start"), None)
        if len(names) != 1 or not whole or not raw or body is None or start is None or document.has_error:
            for name in names:
                self.variables[name] = (unknown(name),)
            return
        expander = self._expander()
        if any(mark in self._source.text_of(start) for mark in "'\"\\"):
            pieces = self._source.slice(body.start_byte, body.end_byte)
        else:
            pieces = expander.mixed(body, body.start_byte, body.end_byte, 0)
        self.variables[names[0]] = tuple(_stripped(pieces))

    # ── commands ───────────────────────────────────────────────────────────────────────────────────────
    def _words_of(self, node: Any) -> tuple[list[Word], dict[str, Pieces]]:
        self._lines_before(node)
        expander = self._expander()
        words: list[Word] = []
        environment: dict[str, Pieces] = {}
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is not None and value is not None and value.type != "array":
                    environment[self._source.text_of(name)] = expander.value(value)
            elif child.type == "command_name":
                for part in child.named_children:
                    words.extend(expander.words(part))
            elif child.type not in ("comment", "herestring_redirect", "file_redirect", "heredoc_redirect"):
                words.extend(expander.words(child))
        self._words += len(words)
        return words, environment

    def _lines_before(self, node: Any) -> None:
        """Run assignments that the grammar hangs in front of the next line's command."""
        name = next((c for c in node.named_children if c.type == "command_name"), None)
        if name is None:
            return
        ahead = [
            c
            for c in node.named_children
            if c.type == "variable_assignment" and c.end_byte <= name.start_byte
        ]
        for one, following in zip(ahead, [*ahead[1:], name], strict=False):
            between = self._source.data[one.end_byte : following.start_byte]
            if b"\n" in between.replace(b"\\\n", b""):
                for each in ahead[: ahead.index(one) + 1]:
                    self._assign(each)

    def _command(self, node: Any, exported: dict[str, Pieces], depth: int) -> None:
        del exported
        if node.has_error or self._words > MAX_WORDS:
            return
        words, environment = self._words_of(node)
        name = words[0].text if words else None
        if name is None and not (words and words[0].pieces):
            return
        if name in ("exit", "return"):
            raise _Exit
        if name in _READERS:
            for word in words[1:]:
                target = (word.text or "").partition("=")[0]
                if target.isidentifier():
                    self.variables[target] = (unknown(target),)
            return
        if name == "eval":
            self._nested(Source(joined(words[1:])), depth + 1)
            return
        if name in self.functions:
            self._call(name, words[1:], depth)
            return
        nested = pod_script(words) or _given_to_shell(words)
        if nested is not None:
            before, outer = dict(self.variables), self._outer
            self._outer = [*outer, *words]
            # A child has the exported variables alone; those that are not are rarely read by it.
            self._nested(Source(nested.pieces), depth + 1)
            self.variables, self._outer = before, outer
            return
        if len(self.commands) < MAX_COMMANDS:
            command = Command(words, environment, dict(self.variables), self._outer)
            command.end = self._source.span(node)[1]
            self.commands.append(command)

    def _call(self, name: str, arguments: list[Word], depth: int) -> None:
        source, body = self.functions[name]
        if depth > DEEPEST // 2:
            return
        before = self._source, self._arguments
        self._source, self._arguments = source, arguments
        try:
            self._run(body, depth + 2)
        except _Exit:  # a `return` and an `exit` look alike here: the script goes on
            pass
        finally:
            self._source, self._arguments = before


def id_of(node: Any) -> tuple[int, int, str]:
    """Tell nodes apart: the binding makes a new object each time."""
    return node.start_byte, node.end_byte, node.type


def _given_to_shell(words: list[Word]) -> Word | None:
    """Return the script of ``bash -c SCRIPT``, also behind srun or docker."""
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


def _met(states: list[dict[str, Pieces | Array]]) -> dict[str, Pieces | Array]:
    first = states[0]
    if len(states) == 1:
        return first
    names: dict[str, None] = {}
    for state in states:
        names.update(dict.fromkeys(state))
    result: dict[str, Pieces | Array] = {}
    for name in names:
        values = [state.get(name) for state in states]
        result[name] = values[0] if all(v is values[0] for v in values) else meet(values, name)  # type: ignore[assignment]
    return result


def _size(value: Pieces | Array) -> int:
    return sum(map(len, value.items)) if isinstance(value, Array) else len(value)


def _stripped(pieces: list[Piece]) -> list[Piece]:
    """Return pieces without blanks at both ends, as ``read`` stores them."""
    blank = " \t\n"
    while pieces and not pieces[0].unknown and not pieces[0].text.strip(blank):
        pieces = pieces[1:]
    while pieces and not pieces[-1].unknown and not pieces[-1].text.strip(blank):
        pieces = pieces[:-1]
    if pieces and not pieces[0].unknown:
        text = pieces[0].text
        pieces = [pieces[0].cut(len(text) - len(text.lstrip(blank)), len(text)), *pieces[1:]]
    if pieces and not pieces[-1].unknown:
        pieces = [*pieces[:-1], pieces[-1].cut(0, len(pieces[-1].text.rstrip(blank)))]
    return pieces
