"""What documents are taken for and why (``cfglint frameworks PATH``), as the blocks of a page."""

from __future__ import annotations

from cfglint.report.blocks import Line, Paragraph
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.features.catalogue.recognition import Claim, Key, Near, Recognition
    from cfglint.report.blocks import Block, Piece

_HEAD = "  {:<9} "
_DIFFERENCES = 3
_KEYS = 8


def page(recognitions: Sequence[Recognition], hidden: int, *, verbose: bool) -> Iterator[Block]:
    """Yield a paragraph for each document, and how many there are; ``hidden`` files are nobody's."""
    for recognition in recognitions:
        yield _head(recognition)
        for label, text in _lines(recognition, verbose=verbose):
            lead = _HEAD.format(label)
            yield Paragraph(text, lead=lead, rest=" " * len(lead))
    yield Paragraph(_summary(recognitions, hidden))


def _head(recognition: Recognition) -> Line:
    where = shown(recognition.path) + (f":{recognition.line}" if recognition.line > 1 else "")
    head: list[Piece] = [(f"{where}: ", "bold")]
    if recognition.framework is None:
        return Line([*head, ("no framework", "yellow")])
    head.append((recognition.framework, "bold"))
    if recognition.sure is not None:
        head += [(", ", ""), (recognition.sure, "green" if recognition.sure == "certain" else "yellow")]
        head.append((f" ({recognition.why})" if recognition.why else "", "dim"))
    elif recognition.by == "flag":
        head.append((", as --framework says", ""))
    else:
        glob = f" of {shown(recognition.glob)}" if recognition.glob else ""
        head.append((f", as the settings say{glob}", ""))
    return Line(head)


def _lines(recognition: Recognition, *, verbose: bool) -> Iterator[tuple[str, str]]:
    if recognition.error is not None:
        yield "broken", shown(recognition.error)
    if recognition.keys:
        yield "told by", _keys(recognition.keys, verbose=verbose)
    for claim in recognition.also:
        yield "also", _claim(claim, verbose=verbose)
    for near in recognition.nearest:
        yield "nearest", _near(near)


def _keys(keys: Sequence[Key], *, verbose: bool = True) -> str:
    most = len(keys) if verbose else _KEYS
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(map(_key, keys[:most])) + more


def _key(key: Key) -> str:
    if key.key.startswith("launch."):
        return "the program that is started"
    return shown(key.key) + (f" (line {key.line})" if key.line is not None else "")


def _claim(claim: Claim, *, verbose: bool) -> str:
    signs = f"{claim.framework}, by {_keys(claim.keys, verbose=verbose)}" if claim.keys else claim.framework
    if not claim.matters:
        return f"{signs}; it does not matter: whatever both say is the same"
    most = len(claim.differs) if verbose else _DIFFERENCES
    some = (f"{d.name} {shown(d.as_taken)} or {shown(d.as_this)}" for d in claim.differs[:most])
    more = f" and {len(claim.differs) - most} more" if len(claim.differs) > most else ""
    return f"{signs}; it matters: {', '.join(some)}{more}"


def _near(near: Near) -> str:
    parts = []
    if near.lacks:
        parts.append("lacks " + ", and ".join(" or ".join(map(shown, group)) for group in near.lacks))
    if near.against:
        parts.append(f"{_keys(near.against)} {'speak' if len(near.against) > 1 else 'speaks'} against it")
    return f"{near.framework}: has {_keys(near.keys)}; {'; '.join(parts)}"


def _summary(recognitions: Sequence[Recognition], hidden: int) -> str:
    counts: dict[str, int] = {}
    for recognition in recognitions:
        if recognition.framework is not None:
            counts[recognition.framework] = counts.get(recognition.framework, 0) + 1
    unknown = len(recognitions) - sum(counts.values())
    parts = [f"{number} {name}" for name, number in sorted(counts.items(), key=lambda i: (-i[1], i[0]))]
    parts += [f"{unknown} of no framework"] if unknown else []
    text = f"{len(recognitions)} document{'s' * (len(recognitions) != 1)}"
    text += ": " + ", ".join(parts) if parts else ""
    skipped = f"; {hidden} more file{'s' * (hidden != 1)} of no framework, --verbose lists them"
    return text + (skipped if hidden else "")
