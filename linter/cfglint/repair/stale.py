"""Comments that a fix makes untrue: they quote the old value, or the memory that went with it.

One counts where it stands behind the value, or right above it and names the key, and where its words leave no
doubt: the number is said of the key, and the comment does not list, advise, compare or tell of the past. Of
all else nothing is said.
"""

from __future__ import annotations

import re

from cfglint.findings import Stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from cfglint.document.tree import Document
    from cfglint.findings import MemoryChange
    from cfglint.repair.patch import Change

_NUMBER = re.compile(
    r"(?<![\w.$#%/@^-])(?<!\*\*)(?P<number>\d[\d,_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"(?:(?P<unit>%|[kK]\b)|\s?(?P<memory>G(?:i?B)?)\b)?(?![\w%^/]|[.,]\d|\*\*|-\w)"
)
_GROUPED = re.compile(r"\d{1,3}(?:[,_]\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
# What advises, lists, tells of the past or holds only sometimes stays true.
_OPEN = re.compile(
    r"\b(?:defaults?|default(?:ed|ing)|recommend\w*|typical\w*|usual\w*|popular|common\w*|suggest\w*|e\.?g|"
    r"examples?|ranges?|choices?|options?|either|alternativ\w*|original\w*|previous\w*|former\w*|upstream|"
    r"suitable|adjust\w*|optional\w*|papers?|was|were|used to|if|when|unless|else|otherwise|whether|try|"
    r"tried|could|would|better|cfglint|todo)\b",
    re.IGNORECASE,
)
_PRODUCT = re.compile(r"\d\s*[*x×]\s*\d")
_MOVED = re.compile(
    r"\b(?:reduc|increas|lower|rais|chang|decreas|bump|drop|cut)\w*\s+from\s+\S+\s+to\s*\Z", re.IGNORECASE
)
_LISTED_BEFORE = re.compile(
    r"(?:\d\S*\s*(?:,|\||or\b|and\b|to\b|through\b|\s)|\bup to|[<>!]=?)\s*\Z", re.IGNORECASE
)
_LISTED_AFTER = re.compile(
    r"[\"'`]?\s*(?:[,|]?\s*(?:or|and|to)\b|[,|]?\s*[\"'`]?\d|[,|]\s*[\"'`]|\+|-+>|→|=>|=\s*[a-z]|:)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"([A-Za-z_][\w.]*)\s*([=:]?)\s*\Z")
_AFTER = re.compile(r"\s*([A-Za-z_]+)")
# Words between which a number is said of the value itself.
_LEADING = re.compile(
    r"a|all|always|are|at|be|by|currently|equals|exactly|fits|for|gives|is|just|keep|keeps|leaves|means|must|"
    r"need|needs|now|on|only|our|per|run|runs|set|so|still|takes|the|these|this|thus|to|total|use|uses|using|"
    r"with|x|increases?|increased|reduced?|lowered|raised|about|around|roughly",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"already|are|as|at|because|by|each|every|exactly|fits?|for|from|gives|here|in|is|its|keeps|leaves|let|"
    r"makes|max|means|needs|not|now|of|on|only|per|plus|runs|since|so|takes|times|to|total|uses|with|works|x",
    re.IGNORECASE,
)
_MEANT = {  # nouns, and the words of keys that count them
    "gpu": "gpus nproc nprocs procs processes world parallel tp dp pp cp ep shard shards devices ranks",
    "sample": "batch bs samples sequences seqs prompts rollout rollouts generations group n",
    "token": "tokens len length context cutoff block seq seqlen",
    "request": "seqs requests concurrent rollouts",
    "step": "accumulation accum",
}
_SAME = {
    **dict.fromkeys(("device", "card", "rank", "process", "accelerator", "way"), "gpu"),
    **dict.fromkeys(("example", "sequence", "prompt", "rollout", "completion", "answer", "image"), "sample"),
}
_PER = re.compile(r"per_?(?:device|gpu|rank|node|worker)")
_DIRECTIVE = re.compile(r"[!$%]|[A-Z]{3,}\b|\s*(?:type:|noqa|pylint|pragma|fmt:|-\*-)")  # that is obeyed
_SETTING = re.compile(r"""-{0,2}['"]?[\w.-]+['"]?(?:\s*[:=]\s*|\s+)\S+\s*(?:#.*)?\Z""")
_SIZES = frozenset((16, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 180, 192, 256, 288))  # of GPUs, as sold
_NAMES = 2  # words of a key that name it
_SHARED = re.compile(
    r"\s+of\b[^.;,\d]{0,30}(?:\w*[A-Za-z]\w*\S*\s+)?\d+(?:\.\d+)?\s?G(?:i?B)?\b"
)  # 36 of 44.4 GiB
_NARROW = 0.1  # of an estimate: a number in a wide one says nothing


def stale(document: Document, changes: Iterable[Change], memory: Sequence[MemoryChange]) -> Iterator[Stale]:
    """Yield the comments that still say what some changes make untrue."""
    text = document.file.text
    for change in changes:
        if change.old is None or not change.old or "\n" in change.old:
            continue
        words = _words(change.key)
        for start, end, above in comments_beside(document, change.edit.end):
            comment = text[start:end]
            named = words[-1] & _split(comment)
            if above and len(named) < min(len(words[-1]), _NAMES):
                continue
            said = _said(comment, change, set().union(*words), memory)
            if said is not None:
                yield Stale(start, said, change.old.strip("'\""))


def _words(key: str) -> list[frozenset[str]]:
    """Return the words of each part of a key; what it is counted per is not what it counts."""
    parts = [frozenset(_split(_PER.sub("", part))) for part in key.split(".")]
    return [part for part in parts if part] or [frozenset((key,))]


def _split(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)}


# ── where comments are ───────────────────────────────────────────────────────────────────────────────────
def comments_beside(document: Document, at: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the spans of what comments say, behind a place on its line and in the lines right above."""
    text, form = document.file.text, document.format
    marks = ("//", "#") if form == "json" else ("#",)
    end = _line_end(text, at, form)
    begin = _behind(text, at, end, marks)
    if begin is not None and not _DIRECTIVE.match(text, begin):
        yield (*_stripped(text, begin, end), False)
    line = text.rfind("\n", 0, at) + 1
    while line > 0:
        above = text.rfind("\n", 0, line - 1) + 1
        start = above + len(text[above:line]) - len(text[above:line].lstrip(' \t"'))
        mark = next((mark for mark in marks if text.startswith(mark, start)), None)
        if mark is None:
            return
        begin = start + len(mark)
        span = _stripped(text, begin, _line_end(text, start, form))
        if not _SETTING.match(text, *span) and not _DIRECTIVE.match(text, begin):
            yield (*span, True)
        line = above


def _line_end(text: str, at: int, form: str) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    inner = text.find("\\n", at, end) if form == "notebook" else -1
    return end if inner < 0 else inner


def _behind(text: str, at: int, end: int, marks: Sequence[str]) -> int | None:
    """Return where the words of the comment begin that follows on a line; None where there is none."""
    quote = ""
    i = at
    while i < end:
        char = text[i]
        if quote:
            i += char == "\\" and quote == '"'
            quote = "" if char == quote else quote
        elif char in "\"'" and not (text[i - 1].isalnum() or text[i - 1] in "_\\"):
            quote = char
        else:
            for mark in marks:
                if text.startswith(mark, i) and (text[i - 1] in " \t" or mark == "//"):
                    return i + len(mark)
        i += 1
    return None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip(" \t")), start + len(inner.rstrip())


# ── what they say ────────────────────────────────────────────────────────────────────────────────────────
def _said(comment: str, change: Change, words: Collection[str], memory: Sequence[MemoryChange]) -> str | None:
    """Return what a comment says that is no longer true, in its own words."""
    if _OPEN.search(comment):
        return None
    word, new = ((text or "").strip("'\"") for text in (change.old, change.edit.new))
    old, numbers = _number(word), list(_NUMBER.finditer(comment))
    after = _number(new)
    both = new and new in comment if after is None else any(after in _worth(match) for match in numbers)
    if both and not _PRODUCT.search(comment):
        return None  # what was, and what is
    for match in numbers:
        if match["memory"] or _SHARED.match(comment, match.end()):
            if _was_held(match, numbers, old, memory):
                return f"{match['number']} GiB"
        elif old and old in _worth(match) and _is_said_of(comment, match, words):
            return match.group()
    if old is None and len(word) > 2 and re.search(r"\d|_", word) and not re.search(r"\bor\b", comment):
        for match in re.finditer(
            rf"(?<![\w./-])(?<!, )(?<!, [\"']){re.escape(word)}(?![\w/-]|\.\w|[\"']?,)", comment
        ):
            if _is_said_of(comment, match, words):
                return match.group()
    return None


def _number(text: str) -> float | None:
    return float(re.sub("[,_]", "", text)) if _GROUPED.fullmatch(text) else None


def _worth(match: re.Match[str]) -> tuple[float, ...]:
    """Return what a number with its unit may be."""
    number = _number(match["number"])
    if number is None:
        return ()
    factors = {"%": (0.01,), "k": (1000, 1024), "K": (1000, 1024)}.get(match["unit"], (1,))
    return tuple(round(number * factor, 9) for factor in factors)


def _is_said_of(comment: str, match: re.Match[str], words: Collection[str]) -> bool:
    """Whether a number is said of a key, whose words are given: no other noun is before or behind it."""
    before = _MOVED.sub("", comment[: match.start()])
    if _LISTED_BEFORE.search(before) or _LISTED_AFTER.match(comment, match.end()):
        return False
    lead, tail = _BEFORE.search(before), _AFTER.match(comment, match.end())
    own = lead is None or _split(lead[1]) <= set(words)
    if lead is not None and not own and (lead[2] or not _LEADING.fullmatch(lead[1])):
        return False
    if tail is None or _TRAILING.fullmatch(tail[1]):
        return True
    noun = tail[1].lower()
    stems = {noun, noun.removesuffix("s"), noun.removesuffix("es")}
    meant = {word for stem in stems for word in _MEANT.get(_SAME.get(stem, stem), "").split()}
    return not (stems | meant).isdisjoint(words)


def _was_held(
    match: re.Match[str],
    numbers: Sequence[re.Match[str]],
    old: float | None,
    memory: Sequence[MemoryChange],
) -> bool:
    """Whether a number of GiB is what the old value took: a share of the GPU, or what was estimated."""
    said = _number(match["number"])
    near = 0.5 / 10 ** len(match["number"].partition(".")[2])
    whole = [_number(other["number"]) for other in numbers if other["memory"] and other is not match]
    if said is None:
        return False
    if old is not None and 0 < old <= 1:
        return any(abs(old * each - said) <= near for each in whole if each is not None)
    for change in memory:
        (low, high), (after, most) = change.before_gib, change.after_gib
        sharp = change.part != "headroom" and high - low <= _NARROW * high and said not in _SIZES
        stays = after - near <= said <= most + near
        if sharp and low - near <= said <= high + near and not stays:
            return True
    return False
