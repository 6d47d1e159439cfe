"""Goes through a script as bash would, without running anything, and gathers the commands with their words.

A branch whose condition is not known is taken both ways: what differs afterwards is unknown. A loop's
variables are unknown in it and after it. The script is taken to be run without arguments, in an environment
that sets none of its variables. Scripts that it sources or runs are read where they are here; a sourced file
that is not is taken not to change what the script sets itself.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.shell.branches import LEAVING, READERS, Branches, Exit, walk_nodes
from cfglint.document.shell.containers import pod_script
from cfglint.document.shell.expand import DEEPEST
from cfglint.document.shell.nested import (
    READS_SCRIPT,
    arguments,
    base,
    filled,
    given_to_shell,
    is_shell,
    printed,
    script_given,
    text_given,
)
from cfglint.document.shell.redirected import REDIRECTS, last_of, words_behind
from cfglint.document.shell.source import SCRIPT, Source
from cfglint.document.shell.substituted import ends_of, placed
from cfglint.document.shell.variables import Variables, added
from cfglint.document.shell.words import (
    HERE,
    Array,
    Command,
    Piece,
    Pieces,
    Word,
    joined,
    known_places,
    stripped,
    unknown,
)
from cfglint.document.tree import SCRIPTS
from cfglint.errors import OverBudgetError
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, ClassVar, TypeAlias

    Scripts: TypeAlias = Callable[[str], str | None]  # a script's text by its name, None where it is not here


MAX_WORDS = 20_000  # of one variable
_STATEMENT, _WORD, _FILE = 20, 5, 100  # steps
_MOST_CALLS = 24  # of one function, which others may call in every one of their ways
_MOST_OPEN = 8  # scripts that run each other
_LOCAL = ("local", "declare", "typeset")  # to the function that they are in
_SETS = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=")  # in (( … ))


class Runner(Branches):
    """Walks one script; ``commands`` are those that were met, in order, ``broken`` what does not parse."""

    def __init__(
        self, variables: Mapping[str, Pieces | Array] | None = None, scripts: Scripts | None = None
    ) -> None:
        super().__init__(Variables(variables or {}))
        self.broken: list[tuple[int, int]] = []
        self.functions: dict[str, tuple[Source, Any]] = {}
        self._scripts = scripts
        self._written: dict[str, Pieces] = {}  # scripts that the script writes itself
        self._exported: set[str] = set(variables or ())
        self._calls = 0  # of functions and sourced files that are at work
        self._entered: dict[str, int] = {}  # how often each function was run
        self._outer: list[Word] = []

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
        nested = given_to_shell(words)
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
            self._within(source, root, depth)

    def _within(self, source: Source, node: Any, depth: int) -> None:
        """Run a part of a script on its own text; what is around it continues after an exit."""
        before, self._source = self._source, source
        try:
            self._run(node, depth)
        except Exit:  # a function's `return` and an `exit` look alike here
            pass
        finally:
            self._source = before

    # ── statements ─────────────────────────────────────────────────────────────────────────────────────
    def _run(self, node: Any, depth: int) -> None:
        spend(_STATEMENT, SCRIPT)
        if depth > DEEPEST:
            raise OverBudgetError(f"the script is nested more than {DEEPEST} levels deep: it was not judged")
        self._by_kind.get(node.type, Runner._forget)(self, node, depth)

    def _forget(self, node: Any, _: int) -> None:
        """Forget every variable that a statement names: it is not understood and may have changed them."""
        names = (inner for inner in walk_nodes(node) if inner.type == "variable_name")
        self._hide(map(self._source.text_of, names))

    def _block(self, node: Any, depth: int) -> None:
        children = node.children
        for child, following in zip(children, [*children[1:], None], strict=False):
            if not child.is_named:
                continue
            if following is not None and following.type == "&":
                self._apart([child], depth, beside=True)
            else:
                self._run(child, depth + 1)

    def _compound(self, node: Any, depth: int) -> None:
        """Run ``{ … }``; of ``(( … ))``, what may set a variable."""
        if node.children[0].type != "((":
            self._block(node, depth)
        elif _SETS.search(self._source.text_of(node)):
            self._forget(node, depth)

    def _pipeline(self, node: Any, depth: int) -> None:
        before = None
        for child in node.named_children:
            if (
                before is not None
                and before.type == child.type == "command"
                and "".join(self._source.text_of(child).split(None, 1)[:1]) in READS_SCRIPT
            ):
                words, told = self._words_of(child)[0], printed(self._words_of(before)[0])
                if told is not None and is_shell(words):  # echo "$CMD" | bash
                    self._as_child(told, words, depth)
            self._apart([child], depth)
            before = child

    def _function(self, node: Any, _: int) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[self._source.text_of(name)] = (self._source, body)

    # ── variables ──────────────────────────────────────────────────────────────────────────────────────
    def _assignments(self, node: Any, depth: int) -> None:
        own = self._locals if node.children[0].type in _LOCAL else None
        if own is not None and not any(self._source.text_of(c) == "-g" for c in node.named_children):
            for child in node.named_children:
                target = child.child_by_field_name("name") or child
                own.setdefault(name := self._source.text_of(target), self.variables.get(name))
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, depth)
        if node.children[0].type == "export":
            targets = (child.child_by_field_name("name") or child for child in node.named_children)
            self._exported.update(map(self._source.text_of, targets))

    def _unset(self, node: Any, _: int) -> None:
        self.variables.set({self._source.text_of(child): () for child in node.named_children})

    def _assign(self, node: Any, depth: int) -> None:
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
            self._look_within(value, depth)
        if any(child.type == "+=" for child in node.children):
            new = added(self.variables.get(name, ()), new)
        size = sum(map(len, new.items)) if isinstance(new, Array) else len(new)
        self.variables[name] = new if size <= MAX_WORDS else (unknown(name),)

    def _redirected(self, node: Any, depth: int) -> None:
        body = node.child_by_field_name("body")
        document = next((c for c in node.named_children if c.type == "heredoc_redirect"), None)
        if document is not None:
            words = self._words_of(body)[0] if body is not None and body.type == "command" else []
            name = base(words[0]) if words else ""
            if name == "read":
                self._read([word.text for word in words], document)
                return
            self._document(words, node, document, depth)
            if name in READS_SCRIPT:
                return
        if body is not None:
            self._run(body, depth + 1)

    def _document(self, words: list[Word], node: Any, document: Any, depth: int) -> None:
        """Take a here-document that is a script: given to a shell or batch system, or written."""
        pipeline = [child for child in document.named_children if child.type == "pipeline"]
        if pipeline:  # `<<EOF | next` hangs the rest of the line below the document
            last = pipeline[0].named_children[-1]
            words = (self._words_of(last)[0] if last.type == "command" else []) or words
        name = base(words[0]) if words else ""
        if name in READS_SCRIPT:
            pieces = self._text_of_document(document)
            if pieces is not None:
                self._as_child(pieces, words, depth)
            return
        for child in pipeline:
            self._apart([child], depth)
        targets = words[1:] if name == "tee" else []
        for child in (*node.named_children, *document.named_children):
            if child.type == "file_redirect" and ">" in self._source.text_of(child):
                targets = [*targets, *self._expander().words(child.named_children[-1])]
        for target in targets:
            pieces = self._text_of_document(document) if target.spelled.endswith(SCRIPTS) else None
            if pieces is not None and target.text:
                self._written[target.text] = pieces

    def _text_of_document(self, document: Any) -> Pieces | None:
        """Return the text of a here-document; None where it does not parse."""
        body = next((c for c in document.named_children if c.type == "heredoc_body"), None)
        start = next((c for c in document.named_children if c.type == "heredoc_start"), None)
        if body is None or start is None or document.has_error:
            return None
        if any(mark in self._source.text_of(start) for mark in "'\"\\"):
            return tuple(self._source.slice(body.start_byte, body.end_byte))
        return tuple(self._expander().mixed(body, body.start_byte, body.end_byte, 0))

    def _read(self, words: list[str | None], document: Any) -> None:
        """``read -r -d '' NAME <<EOF``: the variable holds the document."""
        names = [w for i, w in enumerate(words[1:], 1) if w and w.isidentifier() and words[i - 1] != "-d"]
        whole = "-d" in words and words[words.index("-d") + 1 : words.index("-d") + 2] == [""]
        raw = any(word is not None and word.startswith("-") and "r" in word for word in words)
        pieces = self._text_of_document(document)
        if len(names) != 1 or not whole or not raw or pieces is None:
            self._hide(names)
            return
        self.variables[names[0]] = tuple(stripped(list(pieces)))

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
            elif child.type not in REDIRECTS:
                for part in child.named_children if child.type == "command_name" else [child]:
                    more = expander.words(part)
                    if more and words and part.start_byte == last:  # the grammar cuts `[\\]` in two
                        before, first = words[-1], more.pop(0)
                        words[-1] = Word((*before.pieces, *first.pieces), before.start, first.end)
                    words.extend(more)
                    last = part.end_byte
        words += words_behind(node, self._source, expander)
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
        given = next((c for c in node.named_children if c.type == "herestring_redirect"), None)
        if given is not None and is_shell(words):
            self._as_child(self._expander().value(given.named_children[-1]), words, depth)
            return
        name = words[0].text if words else None
        if name is None and not (words and words[0].pieces):
            return
        if name in self.functions:
            if depth <= DEEPEST // 2:
                self._call(name, words[1:], depth + 2)
        elif name in LEAVING:
            self._leave(name, in_call=self._calls > 0)
        elif name is not None and name in self._builtins:
            self._builtins[name](self, words, depth)
        else:
            self._external(words, environment, node, depth)

    def _external(self, words: list[Word], environment: dict[str, Pieces], node: Any, depth: int) -> None:
        """Go through a program that runs a script, or note the command."""
        pod = pod_script(words)
        given = pod.pieces if pod is not None else text_given(words)
        if given is not None:
            self._as_child(given, words, depth)
            return
        script = script_given(words)
        if script is not None and self._run_script(*script, words, environment, depth):
            return
        if base(words[0]) in ("xargs", "parallel"):
            words = filled(words)
        end = -1 if self._source.loose else self._source.span(last_of(node, self._source))[1]
        self.commands.append(Command(words, environment, self.variables.snapshot(), self._outer, end))

    # ── other scripts ──────────────────────────────────────────────────────────────────────────────────
    def _as_child(self, pieces: Pieces, words: list[Word], depth: int) -> None:
        """Go through a text that a command is given to run."""
        before, outer = self.variables.begin(), self._outer
        self._outer = [*outer, *words]
        # A child has the exported variables alone; those that are not are rarely read by it.
        self._nested(Source(pieces), depth + 1)
        self.variables.undo(before)
        self._outer = outer

    def _run_script(
        self, file: Word, rest: list[Word], words: list[Word], environment: dict[str, Pieces], depth: int
    ) -> bool:
        """Go through a script that is run by its name, with what is exported; False where it is not here."""
        pieces = self._script(file)
        if pieces is None:
            return False
        passed = (*self._exported, "PWD")
        own = {name: self.variables[name] for name in passed if name in self.variables}
        before = self.variables.begin()
        state = self._outer, self.functions, self._calls, self._exported
        for name in list(self.variables):
            del self.variables[name]
        self.variables.set({**own, **environment, "@": Array(arguments(rest)), "0": file.pieces})
        self._outer, self.functions, self._calls = [*self._outer, *words[:1]], {}, 0
        self._exported = {*own, *environment}
        self._open.append(file.spelled)
        self._nested(Source(pieces), depth + 1)
        self._open.pop()
        self.variables.undo(before)
        self._outer, self.functions, self._calls, self._exported = state
        return True

    def _script(self, word: Word) -> Pieces | None:
        """Return the text of a script that is here, all of it at the place of its name."""
        name = word.text if word.text is not None else placed(word.pieces)
        if word.spelled in self._open or len(self._open) > _MOST_OPEN:
            return None
        if name in self._written:
            return self._written[name]
        text = next(filter(None, map(self._text_of_script, ends_of(name, word.pieces))), None)
        if text is None:
            return None
        spend(len(text) // 8, SCRIPT)
        return (Piece(text, word.start, word.end, loose=True, there=(word.spelled, text, 0)),)

    def _text_of_script(self, name: str) -> str | None:
        """Return the text of a script by its name, seen from the working folder or from the script's own."""
        if self._scripts is None:
            return None
        spend(_FILE, SCRIPT)
        folder = self.variables.get("PWD")
        where = placed(folder) if isinstance(folder, tuple) and not name.startswith("/") else None
        below = self._scripts(f"{where}/{name}") if where else None
        return below if below is not None else self._scripts(name)

    def _sourced(self, words: list[Word], depth: int) -> None:
        """Go through a sourced file, which has the script's own variables."""
        pieces = self._script(words[1]) if len(words) > 1 else None
        if pieces is None:
            return
        before = {name: self.variables.get(name) for name in ("@", "BASH_SOURCE")}
        self.variables["BASH_SOURCE"] = words[1].pieces
        if len(words) > 2:
            self.variables["@"] = Array(arguments(words[2:]))
        self._open.append(words[1].spelled)
        self._calls += 1
        self._nested(Source(pieces), depth + 1)
        self._calls -= 1
        self._open.pop()
        self.variables.restore(before)

    # ── builtins ───────────────────────────────────────────────────────────────────────────────────────
    def _evaluated(self, words: list[Word], depth: int) -> None:
        self._nested(Source(joined(words[1:])), depth + 1)

    def _reads(self, words: list[Word], _: int) -> None:
        targets = ((word.text or "").partition("=")[0] for word in words[1:])
        self._hide(target for target in targets if target.isidentifier())

    def _shift(self, words: list[Word], _: int) -> None:
        given = self.variables.get("@")
        number = small_number(words[1].text or "") if len(words) > 1 else 1
        if isinstance(given, Array):
            known = number is not None and number <= known_places(given.items)
            self.variables["@"] = Array(given.items[number:] if known else [(unknown("@"),)])

    def _set(self, words: list[Word], _: int) -> None:
        """``set -- a b``: the arguments from now on."""
        at = next((i for i, word in enumerate(words) if word.text == "--"), 0)
        if at:
            self.variables["@"] = Array(arguments(words[at + 1 :]))

    def _enter(self, words: list[Word], _: int) -> None:
        """``cd FOLDER``: where the working folder is from now on."""
        folder = [word for word in words[1:] if word.text not in ("-P", "-L", "--")]
        pieces: Pieces = folder[0].pieces if len(folder) == 1 else ()
        text = folder[0].text if len(folder) == 1 else None
        if text is not None and not text.startswith("/"):
            parent = self.variables.get("PWD") or (unknown(HERE),)
            inside = Piece(f"/{text}", -1, -1)
            pieces = (*parent, inside) if isinstance(parent, tuple) and text not in ("", "-") else ()
        self.variables["PWD"] = pieces or (unknown("the working folder after cd"),)

    def _call(self, name: str, given: list[Word], depth: int) -> None:
        """Run a function; its local variables end with it."""
        source, body = self.functions[name]
        self._entered[name] = self._entered.get(name, 0) + 1
        if self._entered[name] > _MOST_CALLS:
            self._hide(name for name in self._by_functions() if name in self.variables)
            return
        before, self._locals = self._locals, {}
        outer = self.variables.get("@")
        self.variables["@"] = Array(arguments(given))
        self._calls += 1
        self._within(source, body, depth)
        self._calls -= 1
        self.variables.restore({**self._locals, "@": outer})
        self._locals = before

    def _by_functions(self) -> set[str]:
        """Return the variables that functions may set, each for itself and for those that it calls."""
        names: set[str] = set()
        before = self._source
        for source, body in self.functions.values():
            self._source = source
            names |= self._assigned(body)
        self._source = before
        return names - {"@"}  # each has its own arguments

    _builtins: ClassVar[dict[str, Callable[[Runner, list[Word], int], None]]] = {
        "eval": _evaluated,
        **dict.fromkeys(READERS, _reads),
        **dict.fromkeys(("source", "."), _sourced),
        "shift": _shift,
        "set": _set,
        **dict.fromkeys(("cd", "pushd", "popd"), _enter),
    }
    _by_kind: ClassVar[dict[str, Callable[[Runner, Any, int], None]]] = {
        **dict.fromkeys(("program", "do_group", "else_clause", "negated_command"), _block),
        "compound_statement": _compound,
        "command": _command,
        "variable_assignment": _assign,
        "variable_assignments": _assignments,
        "declaration_command": _assignments,
        "unset_command": _unset,
        "redirected_statement": _redirected,
        "list": Branches.take_list,
        "pipeline": _pipeline,
        "subshell": Branches.take_subshell,
        "if_statement": Branches.take_if,
        "case_statement": Branches.take_case,
        **dict.fromkeys(("for_statement", "while_statement", "c_style_for_statement"), Branches.take_loop),
        "function_definition": _function,
        **dict.fromkeys(("comment", "test_command"), lambda *_: None),  # these change nothing
    }
