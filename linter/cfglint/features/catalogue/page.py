"""What documents are taken for and why (``cfglint frameworks PATH``), as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cfglint.report.order import shown
from cfglint.report.terminal import wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from cfglint.features.catalogue.recognition import Claim, Key, Near, Recognition
    from cfglint.report import Style

    Pieces = list[tuple[str, str]]

VERSION = 1
_HEAD = "  {:<9} "
_DIFFERENCES = 3
_KEYS = 8


def as_text(found: Sequence[Recognition], none: int, style: Style, *, verbose: bool) -> str:
    """Return a paragraph for each document, and how many there are; ``none`` files are nobody's."""
    rows: list[Pieces] = []
    for one in found:
        rows += _document(one, style, verbose=verbose)
    rows += [[(line, "")] for line in wrap(_summary(found, none), style.width, "", "  ")]
    if not style.color:
        return "".join("".join(text for text, _ in row).rstrip() + "\n" for row in rows)
    from cfglint.report.terminal import painted  # rich is only for terminals

    return painted(rows)


def _document(one: Recognition, style: Style, *, verbose: bool) -> list[Pieces]:
    where = shown(one.path) + (f":{one.line}" if one.line > 1 else "")
    head: Pieces = [(f"{where}: ", "bold")]
    if one.framework is None:
        head.append(("no framework", "yellow"))
    else:
        head.append((one.framework, "bold"))
        if one.sure is not None:
            head += [(", ", ""), (one.sure, "green" if one.sure == "certain" else "yellow")]
            head.append((f" ({one.why})" if one.why else "", "dim"))
        elif one.by == "flag":
            head.append((", as --framework says", ""))
        else:
            head.append((", as the settings say" + (f" of {shown(one.glob)}" if one.glob else ""), ""))
    rows = [head]

    def tell(label: str, text: str) -> None:
        first = _HEAD.format(label)
        rows.extend([(line, "")] for line in wrap(first + text, style.width, "", " " * len(first)))

    if one.error is not None:
        tell("broken", shown(one.error))
    if one.keys:
        tell("told by", _keys(one.keys, verbose=verbose))
    for rival in one.rivals:
        tell("also", _rival(rival, verbose=verbose))
    for near in one.nearest:
        tell("nearest", _near(near))
    return rows


def _keys(keys: Sequence[Key], *, verbose: bool = True) -> str:
    most = len(keys) if verbose else _KEYS
    told = [_key(key) for key in keys[:most]]
    return ", ".join(told) + (f" and {len(keys) - most} more" if len(keys) > most else "")


def _key(key: Key) -> str:
    if key.path.startswith("launch."):
        return "the program that is started"
    return shown(key.path) + (f" (line {key.line})" if key.line is not None else "")


def _rival(claim: Claim, *, verbose: bool) -> str:
    told = f"{claim.framework}, by {_keys(claim.keys, verbose=verbose)}" if claim.keys else claim.framework
    differs = claim.differs or ()
    if not differs:
        return f"{told}; it does not matter: whatever both say is the same"
    most = len(differs) if verbose else _DIFFERENCES
    some = ", ".join(f"{d.name} {shown(d.here)} or {shown(d.there)}" for d in differs[:most])
    more = f" and {len(differs) - most} more" if len(differs) > most else ""
    return f"{told}; it matters: {some}{more}"


def _near(near: Near) -> str:
    parts = []
    if near.lacks:
        parts.append("lacks " + ", and ".join(" or ".join(map(shown, group)) for group in near.lacks))
    if near.against:
        parts.append(f"{_keys(near.against)} {'speak' if len(near.against) > 1 else 'speaks'} against it")
    return f"{near.framework}: has {_keys(near.has)}; {'; '.join(parts)}"


def _summary(found: Sequence[Recognition], none: int) -> str:
    counted: dict[str, int] = {}
    for one in found:
        if one.framework is not None:
            counted[one.framework] = counted.get(one.framework, 0) + 1
    unknown = len(found) - sum(counted.values())
    parts = [f"{number} {name}" for name, number in sorted(counted.items(), key=lambda i: (-i[1], i[0]))]
    parts += [f"{unknown} of no framework"] if unknown else []
    text = f"{len(found)} document{'s' * (len(found) != 1)}"
    text += ": " + ", ".join(parts) if parts else ""
    skipped = f"; {none} more file{'s' * (none != 1)} of no framework, --verbose lists them"
    return text + (skipped if none else "")


# ── JSON ───────────────────────────────────────────────────────────────────────────────────────────────────
def as_json(found: Iterable[Recognition]) -> str:
    """Return JSON as ``schemas/recognition.schema.json`` describes it; ASCII only."""
    data = {"version": VERSION, "documents": [_json(one) for one in found]}
    return json.dumps(data, indent=2) + "\n"


def _json(one: Recognition) -> dict[str, Any]:
    return {
        "path": one.path,
        "line": one.line,
        "framework": one.framework,
        "by": one.by,
        "glob": one.glob,
        "sure": one.sure,
        "why": one.why,
        "error": one.error,
        "keys": _json_keys(one.keys),
        "also": [
            {
                "framework": claim.framework,
                "signs": claim.signs,
                "keys": _json_keys(claim.keys),
                "matters": bool(claim.differs),
                "differs": [
                    {"name": d.name, "as_taken": d.here, "as_this": d.there} for d in claim.differs or ()
                ],
            }
            for claim in one.rivals
        ],
        "nearest": [
            {
                "framework": near.framework,
                "keys": _json_keys(near.has),
                "lacks": [list(group) for group in near.lacks],
                "against": _json_keys(near.against),
            }
            for near in one.nearest
        ],
    }


def _json_keys(keys: Iterable[Key]) -> list[dict[str, Any]]:
    return [{"key": key.path, "line": key.line} for key in keys]
