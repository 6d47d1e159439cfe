"""Turns sound inputs into strange ones that still look like their kind, with choices from a ``Random``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fuzz.seeds import seeds

if TYPE_CHECKING:
    from random import Random

LONGEST = 40_000  # bytes; what is linear is tested with other means
_NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "8", "64", "1000000007", "0.5", "-0.0", "1e-9", "1e308", "1e999", ".inf",
    "-.inf", ".nan", "NaN", "Infinity", "9" * 40, "9" * 400, "9" * 5000, "0x1F", "0o17", "017", "1_000", "12:30:45",
    "2001-01-01", "1.", "+1", "1e", "0b1", "²", "٣", "１",
)  # fmt: skip
_WORDS = (
    "true", "no", "null", "~", "''", '""', "{}", "[]", "[1, 2]", "{a: 1}", "auto", "bfloat16", "fsdp", "vllm",
    "Qwen/Qwen2.5-7B", "../x", "a.yaml", ".", "|", ">-", "|2", "? a", "- b", "# c", "'a''b'", '"\\x41\\u0041"',
    "!!str 1", "!!int x", "!!python/object:os.system", "!x", "<<", "=", "@a", "`a`", "%a", "\\", "…", "é", "🙂",
)  # fmt: skip
_REFERENCES = (
    "${a}", "${.a}", "${..a}", "${a.b.c}", "${oc.env:HOME}", "${oc.env:X,1}", "${a[0]}", "${${a}}", "${", "$a",
    "$(ls)", "`ls`", "$((1+2))", "${a:-1}", "${#a}", "${a//b/c}", "$@", "*a", "&a 1", "&a", "${mul:2,3}",
    "${oc.select:a,1}", "${b", "<(cat)", "<<EOF", "x\\\ny", "$'\\n'", '"$a"x',
)  # fmt: skip
_CHARS = (
    "\x00", "\t", "\r", "\x0b", "\x0c", "\x1b[2J", "\x7f", "\x85", "\xa0", "\u0301", "\u200b", "\u2028", "\u2029",
    "\u202e", "\ufeff", "\ufffe", "\ud7ff", "\U0001f642", "\U0010ffff", "'", '"', "#", ":", "-", "{", "}", "[", "]",
    ",", "&", "*", "!", "|", ">", "%", "\\", "$", "=", " ", "\n", "\r\n", ";", "(", ")", "<", "@", "`", "~", "?",
)  # fmt: skip
_LINES = (
    "---", "...", "%YAML 1.2", "<<: *a", "<<: [*a, *a]", "? x\n: y", "- 1", "a: &a {b: 1}", "b: *a", "defaults: [x]",
    "[a]", "[[a]]", "a.b.c = 1", "a = '''\nx\n'''", "if true; then", "fi", "for a in 1 2; do", "done", "cat <<EOF",
    "EOF", "# cfglint: ignore", "# cfglint: ignore CFG009", "export A=1", "A=1", "}", "{", "]", "=== y.yaml",
    "source x.sh", 'eval "$A"', "set -- a b", "function f() {", "case $a in x) ;; esac", "defaults: train.yaml",
)  # fmt: skip
_VALUE = re.compile(r"(?<=[:=,\[({ ])[^\s,:=\[\](){}]+(?=[\s,\])}]|\Z)")
_KEY = re.compile(r"[A-Za-z_][\w-]*(?=\"? ?[:=])")


def mutated(random: Random, kind: str, text: str | None = None) -> bytes:
    """Return an input of a kind: ``text``, or one of its seeds, after one to six changes."""
    if text is None:
        text = random.choice(seeds(kind))
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        text = random.choice(_CHANGES)(random, text, kind)
    data = text.encode("utf-8", "surrogatepass")
    if random.randrange(40) == 0:
        data = random.choice((_flipped, _wide, _marked))(random, data)
    return data[:LONGEST]


def _strange(random: Random) -> str:
    return random.choice(random.choice((_NUMBERS, _WORDS, _REFERENCES)))


def _value(random: Random, text: str, kind: str) -> str:
    """Put something strange in a value's place, or a value of another place."""
    found = list(_VALUE.finditer(text))
    if not found:
        return text + _strange(random)
    match = random.choice(found)
    new = random.choice(found).group() if random.randrange(4) == 0 else _strange(random)
    if kind in ("json", "sheet", "model") and random.randrange(3):
        new = random.choice((*_NUMBERS[:10], '"x"', "null", "true", "[]", "{}", "1e999", "-5", '"auto"'))
    return text[: match.start()] + new + text[match.end() :]


def _key(random: Random, text: str, _: str) -> str:
    """Misspell a key, or give it the name of another."""
    found = list(_KEY.finditer(text))
    if not found:
        return text
    match = random.choice(found)
    name = match.group()
    at = random.randrange(len(name))
    new = random.choice(
        (name[:at] + name[at + 1 :], name[:at] + "x" + name[at:], random.choice(found).group())
    )
    return text[: match.start()] + new + text[match.end() :]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True) or [""]


def _range(random: Random, count: int) -> tuple[int, int]:
    start = random.randrange(count)
    return start, min(count, start + random.choice((1, 1, 2, 3, 8)))


def _without(random: Random, text: str, _: str) -> str:
    lines = _lines(text)
    start, end = _range(random, len(lines))
    return "".join(lines[:start] + lines[end:])


def _twice(random: Random, text: str, _: str) -> str:
    lines = _lines(text)
    start, end = _range(random, len(lines))
    at = random.randrange(len(lines) + 1)
    return "".join(lines[:at] + lines[start:end] + lines[at:])


def _spliced(random: Random, text: str, kind: str) -> str:
    lines, other = _lines(text), _lines(random.choice(seeds(kind)))
    at = random.randrange(len(lines) + 1)
    start, end = _range(random, len(other))
    return "".join(lines[:at] + other[start:end] + lines[at:])


def _line(random: Random, text: str, _: str) -> str:
    lines = _lines(text)
    at = random.randrange(len(lines) + 1)
    return "".join(
        [*lines[:at], random.choice(("", "  ", "    ")) + random.choice(_LINES) + "\n", *lines[at:]]
    )


def _indented(random: Random, text: str, _: str) -> str:
    lines = _lines(text)
    start, end = _range(random, len(lines))
    blanks = random.choice((" ", "  ", "    ", "\t"))
    outwards = random.randrange(2)
    changed = [line.removeprefix(blanks) if outwards else blanks + line for line in lines[start:end]]
    return "".join(lines[:start] + changed + lines[end:])


def _nested(random: Random, text: str, kind: str) -> str:
    """Put a part deep inside, or brackets within brackets in a value's place."""
    depth = random.choice((3, 30, 198, 210, 1500))
    form = random.randrange(3)
    if form == 0:
        lines = _lines(text)
        at = random.randrange(len(lines) + 1)
        deep = min(depth, 100)
        return "".join([*lines[:at], *(" " * i + "a:\n" for i in range(deep)), *lines[at:]])
    opening, closing = random.choice(
        (("[", "]"), ("{a: ", "}"), ('{"a":', "}"), ("${", "}"), ("$(", ")"), ("(", ")"))
    )
    match = random.choice(list(_VALUE.finditer(text)) or [None])  # type: ignore[list-item]
    start, end = match.span() if match else (len(text), len(text))
    inner = text[start:end]
    return text[:start] + opening * depth + inner + (closing * depth if form == 1 else "") + text[end:]


def _char(random: Random, text: str, _: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(_CHARS) * random.choice((1, 1, 1, 2, 300)) + text[at:]


def _cut(random: Random, text: str, _: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] if random.randrange(2) else text[:at] + text[at + random.randrange(1, 9) :]


def _breaks(random: Random, text: str, _: str) -> str:
    new = random.choice(("\r\n", "\r", "\n\n", "\x85", "\u2028", " \n", "\n#\n"))
    if random.randrange(2):
        return text.replace("\n", new)
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at:].replace("\n", new, random.choice((1, 2, 50)))


def _moved(random: Random, text: str, _: str) -> str:
    lines = _lines(text)
    random.shuffle(lines) if random.randrange(8) == 0 else lines.insert(
        random.randrange(len(lines)), lines.pop(random.randrange(len(lines)))
    )
    return "".join(lines)


def _aliased(random: Random, text: str, _: str) -> str:
    """Anchor one value and refer to it from others."""
    found = list(_VALUE.finditer(text))
    for match in sorted(random.sample(found, min(len(found), 3)), key=lambda m: -m.start())[:-1]:
        text = text[: match.start()] + random.choice(("*a", "${a}")) + text[match.end() :]
    if found:
        first = found[0] if random.randrange(2) else random.choice(found)
        text = text[: first.start()] + "&a " + text[first.start() :]
    return text


def _quoted(random: Random, text: str, _: str) -> str:
    match = random.choice(list(_VALUE.finditer(text)) or [None])  # type: ignore[list-item]
    if match is None:
        return text
    before, after = random.choice(
        (("'", "'"), ('"', '"'), ("[", "]"), ("", "  # c"), ("!!str ", ""), ("&b ", ""), ("\n  ", ""))
    )
    return text[: match.start()] + before + match.group() + after + text[match.end() :]


def _flipped(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _wide(random: Random, data: bytes) -> bytes:
    form = random.choice(("utf-16", "utf-16-be", "utf-32"))
    return data.decode("utf-8", "replace").encode(form, "replace")


def _marked(_: Random, data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


_CHANGES = (
    _value, _value, _value, _value, _key, _without, _twice, _spliced, _line, _indented, _nested, _char, _char, _cut,
    _breaks, _moved, _aliased, _quoted, _quoted,
)  # fmt: skip
