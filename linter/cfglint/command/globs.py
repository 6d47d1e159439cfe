"""Globs over paths: ``*`` and ``?`` stay within a folder, ``**`` does not, ``[a-c]`` is one of three.

Matching takes steps in proportion to glob times path, which no regular expression promises: both may be a
stranger's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Test = Callable[[str], bool]

_STAR, _DEEP = "*", "**/"


class Glob:
    """A pattern for whole paths, whose folders are parted by ``/``."""

    def __init__(self, glob: str) -> None:
        self._parts: list[str | Test] = list(_parts(glob))

    def matches(self, path: str) -> bool:
        """Whether the pattern is that of a path."""
        at = self._closed({(0, False)})
        for char in path:
            at = self._closed(set(self._after(at, char)))
        return (len(self._parts), False) in at

    def _after(self, at: set[tuple[int, bool]], char: str) -> Iterator[tuple[int, bool]]:
        """Yield where the parts are after a character; True stands for amid the folders of ``**/``."""
        for i, amid in at:
            part = self._parts[i] if i < len(self._parts) else None
            if amid or part == _DEEP:
                yield i, True
                if char == "/":
                    yield i + 1, False
            elif part == "**" or (part == _STAR and char != "/"):
                yield i, False
            elif callable(part) and part(char):
                yield i + 1, False

    def _closed(self, at: set[tuple[int, bool]]) -> set[tuple[int, bool]]:
        """Return the same with what is reached by leaving parts out that may be empty."""
        waiting = list(at)
        while waiting:
            i, amid = waiting.pop()
            following = i + 1, False
            may_be_empty = i < len(self._parts) and not callable(self._parts[i])
            if may_be_empty and not amid and following not in at:
                at.add(following)
                waiting.append(following)
        return at


def _parts(glob: str) -> Iterator[str | Test]:
    i = 0
    while i < len(glob):
        if glob.startswith(_DEEP, i) and (i == 0 or glob[i - 1] == "/"):
            yield _DEEP
            i += 3
        elif glob.startswith("**", i):
            yield "**"
            i += 2
        elif glob[i] == "[" and (end := glob.find("]", i + 2)) > 0:
            yield _one_of(glob[i + 1 : end])
            i = end + 1
        else:
            yield _STAR if glob[i] == _STAR else _one_of("!/") if glob[i] == "?" else _is(glob[i])
            i += 1


def _is(char: str) -> Test:
    return lambda other: other == char


def _one_of(inner: str) -> Test:
    """Return the test of what stands in brackets: characters, ranges, ``!`` for all others; never a ``/``."""
    others = inner.startswith("!")
    inner = inner[others:]
    chars, ranges = set(), []
    i = 0
    while i < len(inner):
        if inner[i + 1 : i + 2] == "-" and i + 2 < len(inner):
            ranges.append((inner[i], inner[i + 2]))
            i += 3
        else:
            chars.add(inner[i])
            i += 1

    def test(char: str) -> bool:
        within = char in chars or any(low <= char <= high for low, high in ranges)
        return char != "/" and within is not others

    return test
