"""What all forms share: the order of findings, one entry for several targets, safe text, positions."""

from __future__ import annotations

from cfglint.record import replace
from cfglint.text import LineIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from cfglint.findings import Finding, Fix, Report, Undecided

    T = TypeVar("T")

# Marks that reorder or hide what a terminal shows (Trojan Source), and separators that break lines.
_HIDDEN = frozenset(
    "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
)


def shown_char(char: str) -> str:
    r"""Return ``char``, or its escape (``\x1b``) where a terminal would obey instead of show it."""
    code = ord(char)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return {"\t": " ", "\n": "\\n", "\r": "\\r"}.get(char) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if char in _HIDDEN or 0xD800 <= code < 0xE000 else char


def shown(text: str) -> str:
    """Return ``text`` with nothing in it that a terminal would obey; one line, whatever it was."""
    return text if text.isprintable() else "".join(map(shown_char, text))


class Group:
    """One finding as it is printed: the same one for several targets is told once.

    ``members`` are the findings of the single targets; what they share is read from ``first``.
    """

    __slots__ = ("first", "members")

    def __init__(self, first: Finding) -> None:
        self.first = first
        self.members = [first]

    @property
    def label(self) -> str:
        """The targets in brackets, ``[a40, rtx-5090]``, or nothing where none plays a part."""
        names = ", ".join(dict.fromkeys(shown(m.target) for m in self.members if m.target))
        return f"[{names}]" if names else ""

    def variants(
        self, read: Callable[[Finding], T], same: Callable[[T], object] = lambda value: value
    ) -> list[tuple[T, str]]:
        """What ``read`` gives for the members, once each, with the targets it holds for.

        The targets are empty where all members agree, since the header names them already.
        """
        values: dict[object, tuple[T, list[str]]] = {}
        for member in self.members:
            value = read(member)
            values.setdefault(same(value), (value, []))[1].append(shown(member.target or ""))
        if len(values) == 1:
            return [(value, "") for value, _ in values.values()]
        return [(value, ", ".join(names)) for value, names in values.values()]

    def fixes(self) -> list[tuple[Fix | None, str]]:
        """The group's distinct fixes with their targets; None stands for the targets without one."""
        return self.variants(lambda m: m.fix, lambda fix: fix and fix_key(fix))


def fix_key(fix: Fix) -> tuple[object, ...]:
    """What makes two fixes the same to a reader; the number does not, it counts per target."""
    return fix.applicability, fix.certainty, fix.title, fix.effect, tuple(fix.edits)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by path, place, code and target; the rest only makes the order total."""
    return sorted(
        findings,
        key=lambda f: (f.place.path, f.place.start, f.code, f.target or "", f.place.end, f.message, f.level),
    )


def undecided_in_order(report: Report) -> list[Undecided]:
    """Return the rules that were left undecided, each with the facts that it wants once, in order."""
    rules = (
        replace(rule, target=rule.target or None, needs=tuple(sorted(set(rule.needs))))
        for rule in report.undecided
    )
    return sorted(rules, key=lambda rule: (rule.path, rule.target or "", rule.code, rule.needs))


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """Put the findings in order, with those that differ in nothing but their target told once."""
    groups: dict[tuple[object, ...], Group] = {}
    for finding in ordered(findings):
        place = finding.place
        key = (
            place.path, place.start, place.end,
            finding.code, finding.name, finding.level, finding.possible, finding.message,
        )  # fmt: skip
        if key in groups:
            groups[key].members.append(finding)
        else:
            groups[key] = Group(finding)
    return list(groups.values())


class Lines:
    """Positions in all files of a report, each indexed when it is first asked for."""

    __slots__ = ("_indexes", "_texts")

    def __init__(self, report: Report) -> None:
        self._texts = report.texts
        self._indexes: dict[str, LineIndex] = {}

    def index(self, path: str) -> LineIndex:
        """Return the line index of ``path``; a file that could not be read counts as empty."""
        if path not in self._indexes:
            self._indexes[path] = LineIndex(self._texts.get(path, ""))
        return self._indexes[path]

    def position(self, path: str, offset: int) -> tuple[int, int]:
        """Return line and column of ``offset``; what lies behind the text counts as its end."""
        index = self.index(path)
        return index.position(min(offset, len(index.text)))

    def where(self, path: str, offset: int) -> str:
        """Return ``path:line:column``."""
        line, column = self.position(path, offset)
        return f"{shown(path)}:{line}:{column}"
