"""What is written short and stands for more: repeated statements, citations, the first of several keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lark import Token, Tree

from cfglint.lang import tree as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_REMARK = r"(?:(?::|,) (?P<what>.+))?"
_FILE = (  # path/to/file.py:12-15 @v1.2
    r"(?P<path>[\w.+*/-]*[./][\w.+*/-]*)(?::(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?)?"
    r"(?: @(?P<revision>[\w./-]+))?"
)
_CITED = re.compile(_FILE + _REMARK)
_ELSEWHERE = re.compile(rf"(?P<repository>[\w.-]+/[\w.-]+) (?=[^ ]*\.\w){_FILE}{_REMARK}")
_ADDRESSES = (  # papers, issues, sites
    (
        re.compile(rf"(?:(?P<who>.+), )?arXiv (?P<number>[0-9]{{4}}\.[0-9]{{5}}){_REMARK}"),
        "arxiv.org/abs/{number}",
    ),
    (
        re.compile(rf"(?P<where>[\w.-]+/[\w.-]+)#(?P<number>[0-9]+){_REMARK}"),
        "github.com/{where}/issues/{number}",
    ),
    (re.compile(rf"(?P<site>(?:[\w-]+\.)+(?:ai|co|com|dev|io|org)(?:/[\w./-]+)?){_REMARK}"), "{site}"),
)
_REVISION = re.compile(r"(?<=/blob/)[^/]+")
_ESCAPED = {"n": "\n", "t": "\t"}


class RuleTextError(Exception):
    """What is wrong with a text, at an offset."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def start_of(node: Any) -> int:
    """Return where a part of lark's tree begins."""
    return int(node.meta.start_pos) if isinstance(node, Tree) and not node.meta.empty else 0


# ── texts ──────────────────────────────────────────────────────────────────────────────────────────────────
def unquote(token: str) -> str:
    """Return what a text in quotes says."""
    return re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), str(token)[1:-1])


def places_of(token: Token) -> list[int]:
    """Return where each character of an unquoted text stands in the file."""
    begin = (token.start_pos or 0) + 1
    return [begin + m.start() for m in re.finditer(r"\\.|[^\\]", str(token)[1:-1])]


# ── citations ──────────────────────────────────────────────────────────────────────────────────────────────
def address(text: str, sources: Mapping[str, str]) -> str:
    """Return a citation as an address, with what is said of it in brackets; as it is where none is known.

    ``sources`` are what paths are below: that of the path's first folder, else the one without a name. With
    ``{"": "https://github.com/o/r/blob/main/"}``, ``trainer.py:12-15 @v1.2: the check`` is
    ``https://github.com/o/r/blob/v1.2/trainer.py#L12-L15 (the check)``. Repositories (``o/r path``), issues
    (``o/r#12``), papers (``arXiv 2104.09864``) and sites need no source.
    """
    for pattern, form in _ADDRESSES:
        if (cited := pattern.fullmatch(text)) is not None:
            parts = cited.groupdict()
            return _with("https://" + form.format(**parts), parts.get("who"), parts["what"])
    if (cited := _ELSEWHERE.fullmatch(text)) is not None:
        return _place(f"https://github.com/{cited['repository']}/blob/HEAD/", cited["path"], cited)
    cited = _CITED.fullmatch(text)
    if cited is None:
        return text
    head, _, rest = cited["path"].partition("/")
    base, path = (sources[head], rest) if head in sources else (sources.get("", ""), cited["path"])
    return _place(base, path, cited) if base else text


def _place(base: str, path: str, cited: re.Match[str]) -> str:
    if cited["revision"]:
        base = _REVISION.sub(cited["revision"], base)
    lines = f"#L{cited['first']}" + (f"-L{cited['last']}" if cited["last"] else "") if cited["first"] else ""
    return _with(base + path + lines, cited["what"])


def _with(address: str, *remarks: str | None) -> str:
    remark = ", ".join(part for part in remarks if part)
    return f"{address} ({remark})" if remark else address


# ── examples ───────────────────────────────────────────────────────────────────────────────────────────────
def with_given(example: t.Example, given: Sequence[tuple[Any, Any]]) -> t.Example:
    """Return an example with what is given to it, where it does not give that itself."""
    if not given:
        return example
    own = dict(example.given)
    merged = [(key, own.pop(key, value)) for key, value in given]
    return t.Example(example.kind, (*merged, *own.items()), span=example.span)


# ── several keys, one of which is there ────────────────────────────────────────────────────────────────────
def first_of(places: Sequence[Any], span: t.Span) -> t.Expr:
    """Return the value of the first key that is there; what stands last is taken where none is."""
    *keys, last = places
    for key in reversed(keys):
        if not isinstance(key, t.Path):
            raise RuleTextError(span[0], "first(…) takes keys, and at the end what holds where none is there")
        last = t.If(t.Has(key, span=key.span), key, last, span=span)
    result: t.Expr = last
    return result


# ── repetition: each ROLE in actor, critic { … } ───────────────────────────────────────────────────────────
def repeated(node: Any) -> Iterator[Any]:
    """Yield the statements of ``each``, once for each row, with the row's words for its variables."""
    names: list[Token] = []
    rows: list[Any] = []
    body: list[Any] = []
    for part in node.children:
        if isinstance(part, Token):
            names.append(part)
        else:
            (rows if part.data == "row" else body).append(part)
    for name in names:
        if not re.fullmatch(r"[A-Z]+", name):
            raise RuleTextError(
                name.start_pos or 0, f"{name} is replaced wherever it stands: write it in capitals"
            )
    for row in rows:
        if len(row.children) != len(names):
            raise RuleTextError(
                start_of(row) or row.children[0].start_pos,
                f"{len(row.children)} words stand here for {len(names)} names",
            )
        words = [unquote(word) if word.type == "STRING" else str(word) for word in row.children]
        pairs = dict(zip(map(str, names), words, strict=True))
        pattern = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(pairs)})(?![A-Za-z])")
        for statement in body:
            yield _replaced(statement, pattern, pairs)


def _replaced(node: Any, pattern: re.Pattern[str], words: dict[str, str]) -> Any:
    if isinstance(node, Token):
        return node.update(value=pattern.sub(lambda m: words[m[0]], node))
    return Tree(node.data, [_replaced(child, pattern, words) for child in node.children], node.meta)


def steps_of(token: str) -> tuple[str | int, ...]:
    """Return ``$.a[*].b[0]`` as ``("a", "*", "b", 0)``."""
    pieces = re.findall(r'\."([^"]*)"|\.([\w-]+)|\[(\d+)\]|\[(\*)\]', token)
    return tuple(int(index) if index else quoted or plain or every for quoted, plain, index, every in pieces)


def version_of(token: str) -> t.Version:
    """Return ``v1.0.4`` as (1, 0, 4); zeros at the end do not count."""
    numbers = [int(part) for part in token[1:].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return t.Version(tuple(numbers))
