"""Rule text to tree: one LALR parser, every complaint at file:line:column.

`parse` reads a whole file and goes on after a mistake with the next statement, so that all are reported.
"""

from __future__ import annotations

import re
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from lark import Lark, Token
from lark import __version__ as lark_version
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from cfglint import files
from cfglint.budget import Alarm
from cfglint.cache import cached, shipped
from cfglint.errors import Complaint, RulesError, did_you_mean
from cfglint.lang import tree as t
from cfglint.lang.expand import Statements
from cfglint.lang.salvage import EVERYTHING, HOLDS_ON, without_broken
from cfglint.lang.shorthand import RuleTextError
from cfglint.lang.symbols import Source
from cfglint.lang.transform import MAX_DEPTH, Transformer, words
from cfglint.lang.types import UNITS
from cfglint.record import replace
from cfglint.text import LineIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_TEXT = 2**20  # characters of one rule file
_STATEMENT = re.compile(
    r"(?:pack|prefix|source|for|where|given|table|each|fact|knob|let|role|registry|framework|rule)\b"
)
_GOES_BACK = re.compile(
    r"(?:[#){\]}]|->|<-|null[ \t]*->|(?:and|or|then|else|default|when|down|up|costs|keeping)\b"
    r"|to[ \t][^\n]*[ \t]costs\b)"
)
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|[\[({]|[\])}]')
_AFTER_NUMBER = re.compile(r"[0-9][0-9_.]*(?:[eE][+-]?[0-9]+)?[ \t]*\Z")
_LOSSES = ("time", "throughput", "quality", "memory", "host")
_ENDS_WITH_RANGE = words("FACT NAME")  # `fact n: count 1 ..` is complete
_HOLDS_LINES = words("RULE FRAMEWORK EACH")
_HOLDS = {  # what goes on over lines, by what the next one begins with
    "_NEWLINE": frozenset[str](),
    "_BEFORE_TEXT": words("SAY WHY SEE NEXT SETTING NAME TIED WRITE KNOB FACT"),
    "_BEFORE_SEE": words("KNOB"),
}
_ENDS = words("$END _NEWLINE RBRACE RPAR RSQB")
_OPENS = words("LPAR LSQB")
_CLOSES = words("RPAR RSQB")
_GOES_ON = words(
    "ARROW NULL_ARROW RANGE COMPARE PLUS_MINUS TIMES EQUAL OR AND NOT IN LIKE COLON __ANON_0 IF THEN ELSE"
    " WHEN DEFAULT COMMA AS"
)
_WORDS = {
    "_NEWLINE": "the end of the line",
    "EVERY": "any framework",
    "$END": "the end of the text",
    "NAME": "a name",
    "KEBAB": "the rule's name, like server-starves-trainer",
    "CODE": "a code like MEM101",
    "LEVEL": "error, warning or info",
    "STRING": 'a string in "…"',
    "NUMBER": "a number",
    "PATH": "a key like $.a.b",
    "UNIT": "a unit",
    "ARROW": "'->'",
    "COMPARE": "a comparison",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COLON": "':'",
    "COMMA": "','",
    "EQUAL": "'='",
    "RANGE": "'..'",
    "PLUS_MINUS": "'+'",
    "TIMES": "'*'",
    "QUANTIFIER": "all, any, sum, count, min or max",
    "NULL_ARROW": "'null ->'",
    "NAMES_ARE_KEYS": "'names are keys'",
    "SECTIONS_ARE_JOBS": "'sections are jobs'",
    "EXAMPLE": "an example",
    "SETTING": "a setting",
    "LOSS": "time, throughput, quality, memory or host",
    "RISK": "numerics, optimization or data",
    "EMPTY": "'_'",
    "VERSION": "a version like v1.0",
}
_SILENT = words("_NEWLINE _BEFORE_TEXT _BEFORE_SEE CONTINUED COMMENT BLANK")
_CONTINUES = words("and or in not like mod then else step to default when per")
_RESERVED = words(
    "AND OR NOT IN LIKE IF THEN ELSE MATCH HAS TRUE FALSE NULL QUANTIFIER VERSION STEP TO KEEPING DEFAULT"
    " WHEN COSTS FROM BY DOWN UP LET FACT RULE ROLE"
)


class _Newlines:
    """Drops the newlines that end nothing.

    Those are inside ( ) and [ ], after an operator, before a line that is indented at the top of a file, and
    between the texts of one clause.
    """

    always_accept = ("_NEWLINE", "_BEFORE_TEXT", "_BEFORE_SEE")

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.depth = 0  # of ( ) and [ ]
        self.braces: list[bool] = []  # whether each that is open holds a rule's or a framework's lines
        self.last, self.first = "_NEWLINE", ""  # of the line

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        self._reset()
        for token in stream:
            if token.type not in self.always_accept:
                self._take(token)
                yield token
            elif not self._goes_on(token):
                self.last = "_NEWLINE"
                yield token if token.type == "_NEWLINE" else token.update(type="_NEWLINE")

    def _goes_on(self, newline: Token) -> bool:
        """Whether a newline ends nothing."""
        if self.depth:
            return True
        if self.last in _GOES_ON and (self.last != "RANGE" or self.first not in _ENDS_WITH_RANGE):
            return True
        if not self.braces:
            return newline[-1] in " \t" and self.last != "_NEWLINE"
        return self.braces[-1] and self.first in _HOLDS[newline.type]

    def _take(self, token: Token) -> None:
        kind = token.type
        if self.last == "_NEWLINE":
            self.first = kind
        if kind in _OPENS or kind == "LBRACE":
            self.depth += kind in _OPENS
            if kind == "LBRACE":
                self.braces.append(self.first in _HOLDS_LINES and all(self.braces))
            if self.depth + len(self.braces) > MAX_DEPTH:
                raise UnexpectedToken(token, {"fewer brackets"})  # type: ignore[no-untyped-call]
        elif kind in _CLOSES:
            self.depth = max(0, self.depth - 1)
        elif kind == "RBRACE" and self.braces:
            self.braces.pop()
        self.last = kind


@cache
def _lark() -> Lark:
    """Return the parser; its tables take most of a second to make, so they are kept between runs."""
    sources = {"grammar.lark": files.shipped_text("lang", "grammar.lark"), "lark": lark_version}
    tables: Any = cached("grammar", sources, lambda: shipped("grammar", sources) or _tables(sources))
    return Lark.load(BytesIO(tables))


def _tables(sources: Mapping[str, str]) -> bytes:
    made = Lark(
        sources["grammar.lark"],
        parser="lalr",
        lexer="contextual",
        start=["start", "rule_only", "expr_only"],
        postlex=_Newlines(),
        propagate_positions=True,
        maybe_placeholders=False,
    )
    tables = BytesIO()
    made.save(tables)
    return tables.getvalue()


def grammar_to_ship() -> tuple[Mapping[str, str], bytes]:
    """Return what a wheel brings of the parser, with what it is made of: see ``cache.shipped``."""
    sources = {"grammar.lark": files.shipped_text("lang", "grammar.lark"), "lark": lark_version}
    return sources, _tables(sources)


def _listed(expected: set[str]) -> str:
    """Return "; expected a, b or c", or nothing where the list would not help."""
    shown = sorted(
        {_WORDS.get(e, f"'{e.lower()}'") for e in expected if not e.startswith("__") and e not in _SILENT}
    )
    if not 0 < len(shown) <= 8:
        return ""
    return f"; expected {', '.join(shown[:-1])}{' or ' if shown[:-1] else ''}{shown[-1]}"


def _explain(error: UnexpectedCharacters | UnexpectedToken, text: str, *, hole: bool) -> RuleTextError:
    from cfglint.lang.habits import habit

    at = error.token.start_pos if isinstance(error, UnexpectedToken) else error.pos_in_stream
    ends = isinstance(error, UnexpectedToken) and error.token.type in _ENDS
    if at is None or (ends and error.token.type == "$END"):  # type: ignore[union-attr]
        at = len(text.rstrip())
    found = habit(text, at, ends=ends, hole=hole)
    if found is not None:
        return RuleTextError(*found)
    return (
        _explain_token(error, text) if isinstance(error, UnexpectedToken) else _explain_character(error, text)
    )


def _explain_token(error: UnexpectedToken, text: str) -> RuleTextError:
    token = error.token
    if error.expected == {"fewer brackets"}:
        return RuleTextError(token.start_pos, f"brackets are nested more than {MAX_DEPTH} deep")
    expected = set(getattr(error, "accepts", None) or error.expected or ())
    at = token.start_pos if token.type != "$END" else len(text.rstrip())
    opener = re.search(r"\b(if|all|any|sum|count|min|max)[ \t]+\Z", text[max(0, at - 10) : at])
    if opener is not None:
        return RuleTextError(
            at - len(opener[0]), f"inside an expression, {opener[1]} … needs brackets: ({opener[1]} …)"
        )
    what = {"_NEWLINE": "the line ends", "$END": "the text ends"}.get(token.type)
    if what is None and (unit := _unit(text, at, expected)) is not None:
        return unit
    if token.type == "EQUAL" and "COMPARE" in expected:
        return RuleTextError(at, "write == instead of =")
    word = token.type in _RESERVED and "NAME" in expected
    tail = "; it is a keyword, not a name" if word else _listed(expected)
    return RuleTextError(at, (f"{what} too early" if what else f"{str(token)!r} is not allowed here") + tail)


def _explain_character(error: UnexpectedCharacters, text: str) -> RuleTextError:
    at: int = error.pos_in_stream  # type: ignore[assignment]
    char = text[at : at + 1]
    hint = _listed(set(error.allowed or ()))
    if char == '"':
        hint = "; this string has no closing quote on its line"
    elif char == "=":
        return RuleTextError(at, "write == instead of =")
    unit = _unit(text, at, set(error.allowed or ()))
    return unit or RuleTextError(at, f"{char!r} is not allowed here{hint}")


def _unit(text: str, at: int, expected: set[str]) -> RuleTextError | None:
    """Return the complaint about a word behind a number that is no unit (behind a cost, no loss), if any."""
    if "UNIT" not in expected:
        return None
    word = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)?").match(text, at)
    before = text[max(0, at - 40) : at]
    if word is None or word[0] in _CONTINUES or not (_AFTER_NUMBER.search(before) or before.endswith(" in ")):
        return None
    what, known = ("kind of loss", _LOSSES) if "LOSS" in expected else ("unit", tuple(UNITS))
    near = did_you_mean(word[0], known)
    if what == "unit" and not near and not before.endswith(" in "):
        near = "; two conditions are joined by and, or, ->"
    listed = f"; known are {', '.join(known)}"
    return RuleTextError(at, f"no {what} is named {word[0]!r}{near or listed}")


def _parse(text: str, start: str = "expr_only") -> Any:
    try:
        return _lark().parse(text, start=start)
    except (UnexpectedCharacters, UnexpectedToken) as error:
        raise _explain(error, text, hole=start == "expr_only") from None


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Split a file before every statement: where one starts at the first column and no bracket is open."""
    start = depth = at = 0
    for line in text.splitlines(keepends=True):
        fresh = line[:1].strip() and not _GOES_BACK.match(line) and (depth <= 0 or _STATEMENT.match(line))
        if fresh:
            if text[start:at].strip():
                yield start, text[start:at]
            start, depth = at, 0
        for bracket in _BRACKET.findall(line):
            depth += 1 if bracket in "[({" else -1 if bracket in "])}" else 0
        at += len(line)
    yield start, text[start:]


def parse(text: str, path: str) -> tuple[t.Statement, ...]:
    """Return the statements of a rule file. Raises RulesError with every complaint found."""
    source = read(text, path)
    if source.mistakes:
        raise RulesError(source.mistakes)
    return source.statements


def read(text: str, path: str) -> Source:
    """Return the statements of a rule file, as far as they parse, and the complaints about the others."""
    if len(text) > MAX_TEXT:
        mistake = Complaint(path, 1, 1, f"a rule file has at most {MAX_TEXT:,} characters; split it")
        return Source(path, text, (), (mistake,))
    try:
        return Source(path, text, _statements(text))
    except RuleTextError as mistake:
        first = mistake
    mistakes = []
    broken: list[tuple[int, str]] = []
    reader = Statements(_parse)
    for offset, chunk in _chunks(text):
        try:
            nodes = _parse(chunk, "start").children
            if not any(HOLDS_ON.match(before) for _, before in broken):
                list(reader.read(nodes))
        except RuleTextError as mistake:
            broken.append((offset, chunk))
            mistakes.append((offset + mistake.offset, str(mistake)))
    index = LineIndex(text)
    places = [
        (*index.position(min(at, len(text))), message)
        for at, message in mistakes or [(first.offset, str(first))]
    ]
    complaints = tuple(Complaint(path, line, column, message) for line, column, message in places)
    rest, names = without_broken(text, broken)
    try:
        statements = _statements(rest)
    except RuleTextError:  # they do not stand without the broken ones
        statements, names = (), frozenset((EVERYTHING,))
    return Source(path, text, statements, complaints, names)


def _statements(text: str) -> tuple[t.Statement, ...]:
    return tuple(Statements(_parse).read(_parse(text, "start").children))


def parse_rule(text: str, path: str) -> t.Rule:
    """Return the one rule of a ``--rule`` flag."""
    if len(text) > MAX_TEXT:
        raise RulesError([Complaint(path, 1, 1, f"a rule has at most {MAX_TEXT:,} characters")])
    try:
        condition, requirement = Transformer(_parse).arrow(_parse(text, "rule_only").children[0])
    except RuleTextError as mistake:
        line, column = LineIndex(text).position(min(mistake.offset, len(text)))
        raise RulesError([Complaint(path, line, column, str(mistake))]) from None
    return t.Rule("", "", "error", (), condition, requirement, span=(0, len(text)))


def read_sources(texts: Mapping[str, str], expressions: Sequence[str]) -> list[Source]:
    """Parse rule files and ``--rule`` expressions, as far as they parse; each source says what does not."""
    sources: list[Source] = []
    bare = 0
    for path, text in texts.items():
        Alarm.at = path
        source = read(text, path)
        statements = list(source.statements)
        for i, statement in enumerate(statements):
            if isinstance(statement, t.Rule) and not statement.code:
                bare += 1
                statements[i] = _named(statement, f"USR{bare:03}", text)
        sources.append(replace(source, statements=tuple(statements)))
    for i, text in enumerate(expressions, 1):
        path = f"--rule {i}"
        try:
            rule = _named(parse_rule(text, path), f"CLI{i:03}", text)
        except RulesError as error:
            sources.append(Source(path, text, (), tuple(error.complaints)))
        else:
            sources.append(Source(path, text, (rule,)))
    return sources


def _named(rule: t.Rule, code: str, text: str) -> t.Rule:
    written = " ".join(text[slice(*rule.span)].split())
    return replace(rule, code=code, name="rule-of-yours", says=(), why=f"Your own rule: {written}")
