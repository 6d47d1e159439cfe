"""Finds out whether bash refuses a script: a quote, a bracket or a compound command that is never closed.

A parser that gives up on a script has not shown that the script is wrong; this has, by a count alone.
"""

from __future__ import annotations

import re

# Comments and here-documents first: they hide what opens and closes.
_TOKEN = re.compile(
    r"""\\. | (?:^|(?<=[\s;&|(]))\#[^\n]*
    | (?<!<)<<-?(?!<)[ \t]*(?P<quote>["']?)\\?(?P<word>[A-Za-z_][\w.-]*)(?P=quote)
    | \$'(?:\\.|[^'\\])*(?P<ansi>'?) | '[^']*(?P<single>'?)
    | (?P<space>[ \t]+|\\\n) | (?P<end>;;&?|;&|[\n;&|]+)
    | (?P<mark>"|`|\$\{|\$?\(|\)|\}) | (?P<name>(?:[^\s;&|()"'`\\$<>}]|\$(?![\{('"]))+)""",
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
_IN_QUOTES = re.compile(r"\\.|(?P<mark>\"|`|\$\{|\$\()", re.DOTALL)
_CLOSES = {"(": ")", "$(": ")", "${": "}", "`": "`", '"': '"'}
_ENDS = {"if": "fi", "case": "esac", "do": "done", "{": "{"}
_CLOSING = {"fi", "esac", "done"}
_BEFORE = {"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"}  # a command


class _Balance:
    """Goes through a script, with what is still to be closed."""

    def __init__(self) -> None:
        self.waiting: list[str] = []  # the innermost last
        self.outermost = 0  # where the first of them was opened
        self.at = 0
        self.starts = True  # whether the next word is a command's first
        self.named = False  # whether it is a function's name

    def opens(self, mark: str) -> None:
        if mark in _CLOSES:
            self._wait(_CLOSES[mark])
            self.starts = mark in ("(", "$(", "`")

    def _wait(self, end: str) -> None:
        if not self.waiting:
            self.outermost = self.at
        self.waiting.append(end)

    def never(self) -> int:
        """Return where begins what bash gives up on: it runs a command once it has read all of it."""
        return self.outermost if self.waiting else self.at

    def closes(self, mark: str) -> bool:
        """Close what a mark ends; False where nothing waits for it, and bash stops."""
        if self.waiting[-1:] == [mark]:
            self.waiting.pop()
            self.starts = mark == ")"
            return True
        if mark == ")" and self.waiting[-1:] in (["esac"], ["}"]):  # a pattern: of a case, of ${x##*)}
            self.starts = True
            return True
        if mark == "}" and self.waiting[-1:] != ["}"]:
            return self.word(mark)
        self.opens(mark)
        return mark != ")"

    def word(self, name: str) -> bool:
        """Take a word; False where it ends a compound command that nothing began."""
        first, self.starts = self.starts, self.named
        self.named = first and name == "function"
        if not first or self.waiting[-1:] == ["}"]:
            return True
        end = "{" if name == "}" else name
        if name == "}" or name in _CLOSING:
            return bool(self.waiting) and self.waiting.pop() == end
        if name in _ENDS:
            self._wait(_ENDS[name])
        self.starts = name in _BEFORE
        return True


def is_refused(text: str) -> bool:
    r"""Whether a script has a quote, a bracket or a compound command that is not closed, or not opened.

    >>> is_refused("if true; then echo 'it is' \"$(date +'%s')\"; fi")
    False
    >>> is_refused("echo it's"), is_refused("for i in 1 2; do echo $i")
    (True, True)
    """
    return refused_from(text) is not None


def refused_from(text: str) -> int | None:
    r"""Return where begins what bash never runs, if it refuses a script; what ends before, it runs.

    >>> refused_from("echo it\nfor i in 1 2; do echo $i")
    22
    """
    script, at = _Balance(), 0
    while True:
        quoted = script.waiting[-1:] == ['"']
        found = (_IN_QUOTES if quoted else _TOKEN).search(text, at)
        if found is None:
            return script.never() if script.waiting else None
        script.at, at = found.start(), found.end()
        groups = found.groupdict()
        if groups.get("ansi") == "" or groups.get("single") == "":
            return script.never()
        if groups.get("word") and script.waiting[-2:] != [")", ")"]:  # `$((a << b))` is arithmetic
            end = re.compile(rf"^\t*{re.escape(groups['word'])}\r?$", re.MULTILINE).search(text, at)
            at = len(text) if end is None else end.end()
        elif groups["mark"]:
            if not script.closes(groups["mark"]):
                return script.never()
        elif groups.get("name"):
            if not script.word(groups["name"]):
                return script.never()
        elif groups.get("end"):
            script.starts = True
        elif not groups.get("space") and not found[0].startswith("#"):
            script.starts = False
