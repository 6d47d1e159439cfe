"""Names keys in the words of a reason: as reports print them, with their values, a few in a sentence."""

from __future__ import annotations

from cfglint.document.spoken import spoken
from cfglint.document.trace import Trace
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.repair.write import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.document.view import View
    from cfglint.engine.describe import Origins
    from cfglint.facts import Steps
    from cfglint.repair.tracks import Track

_WORD = 60  # characters of a command that are quoted
_OF_MODEL = "model."  # the facts of a model's architecture
LISTED = 3  # keys or rules in a sentence


def quoted(view: View, path: Steps) -> str:
    """Return a key as reports print it; of what a command says of its launch, with the word that says it."""
    trace, name = Trace(view, path), spoken(path)
    start, end = trace.span
    if path[:1] != ("launch",) or not trace.present or trace.source is not None or not 0 <= start < end:
        return name
    word = view.document.file.text[start:end]
    line = view.document.file.text.count("\n", 0, start) + 1
    return f"{name} ({word}, line {line})" if len(word) <= _WORD and not set(word) & set("\n()") else name


def keys_of(origins: Origins, rule: t.Rule, view: View) -> list[tuple[str, str]]:
    """Return the keys that a requirement reads, those of the file first, each alone and with its value.

    The keys of the rule's condition follow.
    """
    keys = _read_by(origins, rule.requirement, view)
    if rule.condition is not None:
        keys += _read_by(origins, rule.condition, view)
    return list(dict.fromkeys(keys))


def _read_by(origins: Origins, node: t.Expr, view: View) -> list[tuple[str, str]]:
    read = [_valued(path, view, None) for path in t.paths_in(node) if "*" not in path]
    names = [
        (origin.kind != "file", _valued(origin.paths[0], view, origins.values[name]))
        for name in origins.with_leaves(origins.names_in(node))
        if not name.startswith(_OF_MODEL)  # nobody gives a model other sizes to fit a GPU
        and (origin := origins.of(name)).paths
        and "*" not in origin.paths[0]
    ]
    return read + [key for _, key in sorted(names, key=lambda name: name[0])]


def _valued(path: Steps, view: View, worth: object) -> tuple[str, str]:
    """Return a key as it is spoken of, and with its number, or the one that it has by default."""
    value = view.get(path) if view.has(path) else worth
    told = f" {shown(value)}" if is_number(value) or isinstance(value, bool) else ""
    return spoken(path), f"{spoken(path)}{told}"


def listed(texts: Iterable[str]) -> str:
    """Return texts in a row, each once; of many the first, and how many there are besides.

    >>> listed(["a", "b", "a"]), listed("abcde")
    ('a, b', 'a, b, c and 2 others')
    """
    each = list(dict.fromkeys(texts))
    more = len(each) - LISTED
    return ", ".join(each[:LISTED]) + f" and {more} others" if more > 1 else ", ".join(each)


def span_told(tracks: Sequence[Track]) -> str:
    """Return the least and the largest value that was tried of a single knob, as an addition."""
    if len({track.knob.name for track in tracks}) > 1:
        return ""
    values = [track.values[i] for track in tracks for i in (0, len(track) - 1)]
    numbers = sorted({value for value in values if is_number(value) and not isinstance(value, bool)})
    return f" ({numbers[0]:g} to {numbers[-1]:g} tried)" if len(numbers) > 1 else ""
