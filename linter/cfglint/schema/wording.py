"""What a problem that the judge found is called: what was wanted, which key was meant, where it is.

Nothing here runs for a file that its framework's schema takes.
"""

from __future__ import annotations

from collections import Counter

from cfglint.document.trace import Trace
from cfglint.document.tree import Mapping, dotted
from cfglint.document.view import MappingView
from cfglint.errors import did_you_mean
from cfglint.schema.convert import CONVERT, NO
from cfglint.schema.table import BOOL, INT, KIND, LIST, MAP, NULL, NUMBER, TEXT, Mistake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.document.tree import Path
    from cfglint.document.view import View
    from cfglint.schema.table import Node, Problem, Table

_MOST_CHOICES = 12  # such a list grows with each release, and by projects' own
_MOST_HINTS = 100  # keys of one kind for which like ones are looked for
_LONGEST = 60  # letters of a key that is compared with others
_SHORT = 5  # letters; in a shorter name, two differences are another word
_LONGEST_LIST = 240  # characters of the members that a message lists
_MOST_FOREIGN = 2  # unknown keys; where there are more, a program of one's own is likelier than mistakes
_MOST_LISTED = 4
_MAYBE = ("section", "subclass", "newer", "own", "versions")
_FATE = {
    "refused": "",
    "section": "",
    "ignored": ": the framework ignores it",
    "subclass": ": the run stops unless one of your own classes defines it",
    "newer": ": newer versions stop at it unless one of your own classes defines it, older ones ignore it",
    "own": ": ignored by the framework (your own code may read it)",
    "versions": ": the server refuses it, unless its version differs",
}


def noted(wrong: Sequence[Problem], table: Table, view: View) -> dict[str, list[Mistake]]:
    """Return what is wrong with a document's keys and values, each kind in the file's order."""
    likely = {id(problem): meant(problem, view) for problem in wrong if problem.what == "key"}

    def counts(problem: Problem) -> bool:
        """Whether a problem is told: what is probably the job's own is left out."""
        if problem.what != "key":
            return True
        mark = problem.node[6]  # a slip of the pen looks like a key that is there
        slip = mark not in _MAYBE or likely[id(problem)] is not None
        return slip and (mark != "ignored" or view.get(problem.path) is not None)

    counted = [problem for problem in wrong if counts(problem) and not _is_declared(problem, table, view)]
    if view.document.vendored and counted and not _declares_others(counted, view):
        counted = []
    if any(problem.what == "key" for problem in counted) and extended(table, view):
        counted = [problem for problem in counted if problem.what != "key"]
    foreign = [p for p in counted if p.what == "key" and p.node[6] == "refused" and not likely[id(p)]]
    own = [problem for problem in foreign if _is_asked_for(problem, view)]
    known = set(map(id, own))
    counted, foreign = ([p for p in each if id(p) not in known] for each in (counted, foreign))
    names = list(dict.fromkeys(dotted(problem.path) for problem in foreign))
    by_kind: dict[str, list[Mistake]] = {}
    if own:
        by_kind["own_keys"] = [Mistake("", *span, dotted(p.path), "foreign") for p, span in unique(own, view)]
    # A whole section is no slip of the pen, but of another version; a key like no other may be a fork's.
    if len(names) <= _MOST_FOREIGN and not table.forked:
        foreign = [problem for problem in foreign if isinstance(view.get(problem.path), MappingView)]
        names = list(dict.fromkeys(dotted(problem.path) for problem in foreign))
    if names:
        counted = [problem for problem in counted if problem not in foreign]
        (_, span), *_ = unique(foreign[:1], view)
        listed = ", ".join(names[:_MOST_LISTED]) + ", …" * (len(names) > _MOST_LISTED)
        number = f" ({len(names)} in all)" if len(names) > 1 else ""
        note = f"{number}: the run stops, unless your version or a program of your own knows it"
        by_kind["ignored_keys"] = [Mistake(note, *span, listed, "foreign")]
    for problem, span in unique(counted, view):
        key = dotted(problem.path)
        mark = problem.node[6]
        if problem.what == "key":
            kind = "refused_keys" if mark in ("refused", "section") else "ignored_keys"
            name = likely[id(problem)]
            told = len(by_kind.get(kind, ())) < _MOST_HINTS
            hint = _asked(name, problem, table, view) if name else near(problem) if told else ""
            note = _FATE[mark] + (hint or elsewhere(problem, table))
            mistake = Mistake(note, *span, key, mark, problem=problem)
        else:
            kind = "misfits"
            hint = near(problem)
            if problem.what == "value":
                doubtful = mark == "named" or (not hint and len(problem.node[1] or ()) > _MOST_CHOICES)
                kind = "doubtful_values" if doubtful else "refused_values"
            note = wanted(problem.node) + hint
            mistake = Mistake(note, *span, key, shown(problem.value), "refused", problem)
        by_kind.setdefault(kind, []).append(mistake)
    return by_kind


def _is_asked_for(problem: Problem, view: View) -> bool:
    """Whether a whole section is the project's own: its code asks for it, in what may be another's config."""
    declares, name = view.document.declares, problem.path[-1]
    whole = isinstance(view.get(problem.path), MappingView)
    return whole and declares is not None and isinstance(name, str) and declares(name)


def _is_declared(problem: Problem, table: Table, view: View) -> bool:
    """Whether the project's code knows a key, or a choice of it, that the released framework does not.

    What a library refuses, no code of a project makes it take.
    """
    declares, name, choice = view.document.declares, problem.path[-1], problem.value
    if declares is None or not isinstance(name, str) or (problem.node[6] == "refused" and not table.forked):
        return False
    if problem.what == "key":
        return declares(name)
    return isinstance(choice, str) and declares(name, choice)


def _declares_others(wrong: list[Problem], view: View) -> bool:
    """Whether the project's code declares a key besides those that nobody knows: it is read as it is here."""
    root, declares = view.document.root, view.document.declares
    unknown = {problem.path[0] for problem in wrong}
    keys = root.entries if isinstance(root, Mapping) else {}
    return declares is not None and any(declares(key) for key in keys if key not in unknown)


def extended(table: Table, view: View) -> bool:
    """Whether the file says that other classes than the framework's own take keys from it."""
    from fnmatch import fnmatchcase

    for key, pattern in table.unless:
        path = tuple(key.split("."))
        if pattern == "*" and view.has(path):
            return True
        value = view.get(path)
        expected, pattern_text = pattern[0] != "!", pattern.lstrip("!")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (str, int)) and fnmatchcase(str(item), pattern_text) == expected:
                return True
    return False


def wanted(node: Node) -> str:
    """Say what a value has to be."""
    kinds, members, limits, *_ = node
    parts = []
    if kinds & NUMBER:
        parts.append(("a whole number" if kinds & NUMBER == INT else "a number") + _range(limits))
    if kinds & BOOL:
        parts.append("true or false")
    parts += [word for bit, word in ((TEXT, "a text"), (LIST, "a list"), (MAP, "a mapping")) if kinds & bit]
    if members is not None:
        shown = [_member(member) for member in members if member is not None]
        text = ", ".join(shown)
        while len(text) > _LONGEST_LIST:
            shown.pop()
            text = f"{', '.join(shown)} and {sum(m is not None for m in members) - len(shown)} others"
        parts.append(f"one of {text}" if len(shown) > 1 else text)
        kinds |= NULL * (None in members)
    if kinds & NULL and parts:
        parts.append("null")
    return " or ".join(parts) or "null"


def _member(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(limits: tuple[float | None, ...] | None) -> str:
    if limits is None:
        return ""
    least, greatest, above, below = limits
    low = f"at least {least:g}" if least is not None else f"above {above:g}" if above is not None else ""
    high = (
        f"at most {greatest:g}" if greatest is not None else f"below {below:g}" if below is not None else ""
    )
    if least is not None and greatest is not None:
        return f" from {least:g} to {greatest:g}"
    return " " + " and ".join(part for part in (low, high) if part)


def shown(value: object) -> str:
    """Say what is there."""
    if isinstance(value, str):
        return f'the string "{value if len(value) <= 60 else value[:59] + "…"}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return str(value)
    return "a mapping" if isinstance(value, Mapping) else "a list"


def near(problem: Problem) -> str:
    """Return ``"; did you mean …?"`` for an unknown key, or for a text that is not a member.

    A key of which more than a third is different does not help.
    """
    if problem.what == "key":
        name = str(problem.path[-1])
        most = max(2, len(name) // 3)
        plain = _plain(name)
        keys = [
            key
            for key in problem.node[3] or ()
            if abs(len(key) - len(name)) <= most and _distance(plain, _plain(key)) <= most
        ]
        return did_you_mean(name, keys)
    members = [member for member in problem.node[1] or () if isinstance(member, str)]
    return did_you_mean(problem.value, members) if isinstance(problem.value, str) else ""


def elsewhere(problem: Problem, table: Table) -> str:
    """Say which section has the key, where the one it is in has not."""
    name = problem.path[-1]
    root = table.nodes[0][3] or {}
    holders = [key for key, number in root.items() if name in (table.nodes[number][3] or ())]
    if name in root and len(problem.path) > 1:
        return "; it belongs at the top level"
    if not 0 < len(holders) < 3:
        return ""
    return f"; {' and '.join(holders)} {'has' if len(holders) == 1 else 'have'} it"


def meant(problem: Problem, view: View) -> str | None:
    """Return the one key that an unknown one was surely meant to be; None where none or several may be."""
    name, keys = str(problem.path[-1]), problem.node[3] or ()
    plain = _plain(name)
    if swapped := _with_words_swapped(plain, keys):
        return None if view.has((*problem.path[:-1], swapped)) else swapped
    letters, shortest, longest = set(plain), len(plain) - 2, len(plain) + 2
    apart = {
        key: _distance(plain, _plain(key))
        for key in keys
        if shortest <= len(key) <= longest
        and len(letters.symmetric_difference(_plain(key))) <= 4
        and _alike(plain, _plain(key))
    }
    least = min(apart.values(), default=9)
    best = [key for key, distance in apart.items() if distance == least]
    if name.startswith(("_", ".")):  # what other keys read through an anchor
        return None
    if len({_plain(key) for key in best}) != 1 or least > (1 if len(name) <= _SHORT else 2):
        return None
    if _is_another_word(plain, _plain(best[0])):
        return None
    beside = _beside(view, problem.path[:-1])
    if beside[_plain(best[0])] > (_plain(best[0]) == plain):
        return None
    alike = [key for key in best if ("-" in key) == ("-" in name)]  # of two spellings, the file's own
    return (alike or best)[0]


def fits(name: str, problem: Problem, table: Table, view: View) -> bool:
    """Whether a known key takes the value of an unknown one, by its type; yes where nobody knows that."""
    kinds, members, *_ = _node_of(name, problem, table)
    value = view.get(problem.path)
    kind = KIND.get(type(value), 0)
    if isinstance(value, (MappingView, list)):
        kind = LIST if isinstance(value, list) else MAP
    if not kind or kind == NULL or kinds & kind or (members is not None and value in members):
        return True
    result = CONVERT[table.loader](value, kinds, members) if table.loader else NO
    return result is not NO and (kind == TEXT or bool(kinds & KIND.get(type(result), 0)))


def _node_of(name: str, problem: Problem, table: Table) -> Node:
    """Return what the schema says of a key beside an unknown one."""
    return table.nodes[(problem.node[3] or {})[name]]


def _asked(name: str, problem: Problem, table: Table, view: View) -> str:
    """Ask for the key that was probably meant; of one whose type is another, say what it takes."""
    if fits(name, problem, table, view):
        return f"; did you mean {name!r}?"
    return f"; {name!r} is like it, but takes {wanted(_node_of(name, problem, table))}"


def _with_words_swapped(plain: str, keys: Iterable[str]) -> str | None:
    """Return the one key of the same words, three or more, in another order."""
    words = sorted(plain.split("_"))
    found = [key for key in keys if len(key) == len(plain) and sorted(_plain(key).split("_")) == words]
    return found[0] if len(words) > 2 and len(set(map(_plain, found))) == 1 else None


def _beside(view: View, path: Path) -> Counter[str]:
    """Return how often the keys of a mapping are spelled, found out once."""
    spelled: dict[Path, Counter[str]] = view.memo.setdefault("spelled", {})
    if path not in spelled:
        spelled[path] = Counter(map(_plain, view.keys(path)))
    return spelled[path]


def _alike(name: str, key: str) -> bool:
    """Whether two changes may suffice, by the letters alone: most names are told apart without more."""
    return sum(abs(name.count(letter) - key.count(letter)) for letter in {*name, *key}) <= 4


def _is_another_word(name: str, key: str) -> bool:
    """Whether a short word differs by two letters: lora_rank is no slip for local_rank."""
    words = list(zip(name.split("_"), key.split("_"), strict=False))
    if name.count("_") != key.count("_"):
        return False
    return any(min(len(a), len(b)) < _SHORT and _distance(a, b) > 1 for a, b in words)


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def _distance(one: str, other: str) -> int:
    """Return how many letters differ, are missing, too many, or change places with their neighbour."""
    if len(one) > _LONGEST:
        return len(one)
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i] + [0] * len(other)
        for j, there in enumerate(other, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def unique(problems: Iterable[Problem], view: View) -> list[tuple[Problem, tuple[int, int]]]:
    """Return the problems with their spans; what several keys read from one place is reported once."""
    places: dict[tuple[str, int, int], tuple[Problem, tuple[int, int]]] = {}
    for problem in problems:
        span = place(problem, view)
        places.setdefault((problem.what, *span), (problem, span))
    return list(places.values())


def place(problem: Problem, view: View) -> tuple[int, int]:
    """Return the span that a problem is at: the key, or the value where it is a scalar."""
    trace = Trace(view, problem.path)
    block = problem.value.__class__ is Mapping or not trace.present or trace.node is None
    return trace.key_span if problem.what == "key" or block else trace.span
