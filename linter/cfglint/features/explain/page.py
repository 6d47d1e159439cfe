"""A derivation for people and for programs: the rule, its verdict, the tree, and what moves the result."""

from __future__ import annotations

import json
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cfglint.features.explain.nodes import fold
from cfglint.lang.units import BANDWIDTH, COMPUTE, COMPUTE_RATE, DURATION, MEMORY, describe
from cfglint.lang.values import INF, Interval, needs_of
from cfglint.report.order import shown
from cfglint.report.terminal import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from cfglint.engine.sensitivity import Move
    from cfglint.features.explain.nodes import Derivation, Node, Shown

VERSION = 1
_BASE_UNITS = {MEMORY: "B", DURATION: "s", COMPUTE: "FLOP", COMPUTE_RATE: "FLOP/s", BANDWIDTH: "B/s"}
_STYLES = {
    "breaks": "bold red", "may break": "bold yellow", "holds": "bold green", "undecided": "bold cyan",
    "does not apply": "bold",
}  # fmt: skip
_UNICODE = ("├─ ", "└─ ", "│  ", "   ")
_ASCII = ("|- ", "`- ", "|  ", "   ")
_PLAIN = {"…": "...", "→": "->", "—": "-", "\u2013": "-", "∞": "inf"}
_WIDEST = 34  # cells of a name that the values of its siblings are lined up behind
_VALUES = 16  # the same of a value
_WANTED = 3
_ONE_LINE = 100  # cells up to which a formula and its numbers share a line
_GREY, _DIM, _MOVES = "bright_black", "dim", "green"


def as_text(
    found: Sequence[tuple[Derivation, Sequence[str]]],
    *,
    depth: int,
    color: bool = False,
    width: int = 0,
    plain: bool = False,
) -> str:
    """Return the derivations, each with the other targets that it holds for; ``plain`` draws in ASCII."""
    page = _Page(width, plain=plain)
    for i, (derivation, alike) in enumerate(found):
        if i:
            page.add()
        page.derivation(derivation, alike, depth)
    out = StringIO()
    # The caller has decided about colour; rich must not look at TERM, NO_COLOR or COLUMNS again.
    console = Console(
        file=out, force_terminal=color, color_system="standard" if color else None, no_color=not color,
        legacy_windows=False, force_jupyter=False, highlight=False, markup=False, emoji=False, _environ={},
    )  # fmt: skip
    console.print(Text("\n").join(page.rows), soft_wrap=True)
    text = out.getvalue()
    return "".join(_PLAIN.get(char, char) for char in text) if plain else text


class _Page:
    """Collects the rows."""

    def __init__(self, width: int, *, plain: bool) -> None:
        self.rows: list[Text] = []
        self.width = width
        self.guides = _ASCII if plain else _UNICODE

    def add(self, *parts: tuple[str, str]) -> None:
        # Text objects, never strings: rich reads markup such as [red] in strings.
        row = Text()
        for text, style in parts:
            row.append(text, style)
        row.rstrip()
        self.rows.append(row)

    def tell(self, text: str, first: str, rest: str, style: str = "", guide: str = _GREY) -> None:
        """Add a text behind ``first``, wrapped; further lines stand behind ``rest``."""
        lines = wrap(shown(text), max(self.width, 40) if self.width else 0, first, rest)
        for i, line in enumerate(lines):
            lead = first if i == 0 else rest
            self.add((lead, guide), (line[len(lead) :], style))

    # ── one derivation ─────────────────────────────────────────────────────────────────────────────────
    def derivation(self, found: Derivation, alike: Sequence[str], depth: int) -> None:
        rule = found.rule
        on = f" on {shown(found.target)}" if found.target else ""
        self.add(
            (f"{rule.code} {shown(rule.name)}", "bold"), (f" ({rule.level}): ", ""),
            (f"{found.verdict}{on}", _STYLES[found.verdict]),
        )  # fmt: skip
        same = f"; the same on {', '.join(map(shown, alike))}" if alike else ""
        kind = f", {found.framework}" if found.framework else ""
        section = f", {shown(found.section)}" if found.section else ""
        self.add((f"{shown(found.path)}{kind}{section}{same}", _GREY))
        if found.because:
            label = {"undecided": "it would take "}.get(found.verdict, "")
            self.tell(label + found.because, "  ", "  ")
        if found.said:
            self.tell(found.said, "  ", "  ")
        if not found.requirement.text:
            return
        roots = tuple(node for node in (found.condition, found.requirement) if node is not None)
        for label, tree in zip(("where", "requires")[-len(roots) :], fold(roots, depth), strict=True):
            self.root(label, tree)
        self.moves(found)

    def root(self, label: str, tree: Shown) -> None:
        """Add the condition or the requirement and what it rests on."""
        node = tree.node
        self.add()
        verdict = {"true": "true", "false": "false"}.get(node.text, "open")
        self.tell(f"{node.name}  is {verdict}", f"{label} ", " " * (len(label) + 1), "bold", "bold")
        if node.numbers and node.numbers != node.name:
            self.tell(f"= {node.numbers}", " " * (len(label) + 1), " " * (len(label) + 3), _DIM)
        self.children(tree.children, "")

    def children(self, children: Sequence[Shown], indent: str) -> None:
        names = [cell_len(_name(child)) for child in children]
        values = [cell_len(child.node.text) for child in children]
        name_width = max((n for n in names if n <= _WIDEST), default=0)
        value_width = max((n for n in values if n <= _VALUES), default=0)
        for i, child in enumerate(children):
            last = i == len(children) - 1
            self.node(child, indent, name_width, value_width, last=last)

    def node(self, tree: Shown, indent: str, name_width: int, value_width: int, *, last: bool) -> None:
        """Add a node: name, value and origin, then its formula and the numbers, then what it rests on."""
        node = tree.node
        tee, corner, bar, blank = self.guides
        head = indent + (corner if last else tee)
        below = indent + (blank if last else bar)
        name = shown(_name(tree))
        tail = []
        if tree.mark:
            tail.append((tree.mark, "bold"))
        if tree.state == "above":
            tail.append(("(above)", _GREY))
        elif tree.state == "folded":
            tail.append(("…", _GREY))
        if node.origin.source and tree.state != "above":
            tail.append((shown(node.origin.source), _GREY))
        if node.children and node.text in ("unknown", "open") and tree.state != "above":
            tail.append((f"wants {_some(needs_of(node.value))}", _GREY))
        parts = [(head, _GREY), (name.ljust(name_width), "red" if tree.mark == "fails" else "")]
        parts.append((f"  {shown(node.text).ljust(value_width)}", "bold"))
        for text, style in tail:
            parts.append((f"  {text}", style))
        self.row(parts, below + ("   " if not tree.children else bar))
        if tree.state != "full":
            return
        inner = below + (bar if tree.children else blank)
        self.formula(node, inner)
        self.children(tree.children, below)

    def row(self, parts: list[tuple[str, str]], rest: str) -> None:
        """Add a row; an origin that does not fit goes on below."""
        if self.width and sum(cell_len(text) for text, _ in parts) > self.width and len(parts) > 3:
            self.add(*parts[:-1])
            text, style = parts[-1]
            self.tell(text.strip(), rest + "  ", rest + "  ", style)
            return
        self.add(*parts)

    def formula(self, node: Node, indent: str) -> None:
        if node.formula and node.formula != node.text:
            both = f"= {node.formula}"
            if node.numbers:
                joined = f"{both} = {node.numbers}"
                room = min(self.width or _ONE_LINE, _ONE_LINE)
                if cell_len(indent) + cell_len(joined) <= room:
                    both = joined
                else:
                    self.tell(both, indent, indent + "  ", _DIM)
                    both = f"= {node.numbers}"
            self.tell(both, indent, indent + "  ", _DIM)
        elif node.numbers:
            self.tell(f"= {node.numbers}", indent, indent + "  ", _DIM)
        if node.chosen:
            self.tell(f"since {' and '.join(node.chosen)}", indent, indent + "  ", _GREY)

    def moves(self, found: Derivation) -> None:
        """Add what moves the result, one knob or value of the file a line."""
        if not found.leaves:
            return
        self.add()
        results = f" {', '.join(found.results)}" if found.results else " it"
        self.tell(f"What moves{results}:", "", "  ", "bold")
        names = max(cell_len(node.name) for node in found.leaves)
        values = max(cell_len(node.text) for node in found.leaves)
        for node in found.leaves:
            lead = f"  {node.name.ljust(names)}  {node.text.ljust(values)}  "
            for i, move in enumerate(node.moves):
                first = lead if i == 0 else " " * cell_len(lead)
                self.tell(move.words(), first, " " * (cell_len(lead) + 2), _MOVES if move.turns else "", "")


def _some(names: Collection[str]) -> str:
    first = sorted(names)[:_WANTED]
    rest = len(names) - len(first)
    return shown(", ".join(first)) + (f" and {rest} more" if rest else "")


def _name(tree: Shown) -> str:
    label = tree.label
    if label == "chooses" or not label:
        return tree.node.name
    return f"{label} = {tree.node.name}" if label != "by" else f"by {tree.node.name}"


# ── JSON ───────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(found: Sequence[tuple[Derivation, Sequence[str]]], *, depth: int) -> str:
    """Return the derivations as JSON; ASCII only, so that no locale and no terminal can spoil it."""
    first, *others = [_derivation(one, alike, depth) for one, alike in found]
    return json.dumps({"version": VERSION, **first, "others": others}, indent=2) + "\n"


def _derivation(found: Derivation, alike: Sequence[str], depth: int) -> dict[str, Any]:
    roots = tuple(node for node in (found.condition, found.requirement) if node is not None)
    trees = fold(roots, depth) if found.requirement.text else ()
    truth = {"holds": True, "breaks": False}.get(found.verdict)
    name = " -> ".join(node.name for node in roots)
    return {
        "code": found.rule.code,
        "name": found.rule.name,
        "level": found.rule.level,
        "path": found.path,
        "framework": found.framework,
        **({"section": found.section} if found.section else {}),
        "target": found.target,
        "same_on": list(alike),
        "verdict": found.verdict,
        "because": found.because,
        "message": found.said,
        "tree": {
            "name": name,
            "value": truth,
            "text": found.verdict,
            "unit": None,
            "formula": name,
            "numbers": " -> ".join(node.numbers for node in roots),
            "origin": {"kind": "expression", "source": "", "line": None, "column": None},
            "chosen": [],
            "state": "full",
            "children": [_node(tree) for tree in trees],
            "moves": [
                {"name": node.name, "from": node.text, **_move(move)}
                for node in found.leaves
                for move in node.moves
            ],
        },
    }


def _node(tree: Shown) -> dict[str, Any]:
    node, origin = tree.node, tree.node.origin
    number = node.kind.kind == "number"
    dimension = node.kind.dimension
    unit = _BASE_UNITS.get(dimension, describe(dimension)) if number and any(dimension) else None
    return {
        "name": node.name,
        "label": tree.label,
        "mark": tree.mark,
        "value": _value(node.value),
        "text": node.text,
        "unit": unit,
        "formula": node.formula,
        "numbers": node.numbers,
        "origin": {
            "kind": origin.kind,
            "source": origin.source,
            "line": origin.line,
            "column": origin.column,
        },
        "chosen": list(node.chosen),
        "state": tree.state,
        "children": [_node(child) for child in tree.children],
        "moves": [_move(move) for move in node.moves],
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "direction": move.direction or None,
        "to": move.to,
        "effects": [
            {
                "name": e.name,
                "before": e.before,
                "after": e.after,
                "direction": e.direction,
                "amount": e.amount,
            }
            for e in move.effects
        ],
        "verdict": move.verdict,
        "words": move.words(),
    }


def _value(value: object) -> Any:
    """Return a value as JSON has it, numbers in base units; a range as a list, null for an open end."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) != INF else None
    if isinstance(value, Interval):
        return [None if abs(end) == INF else end for end in (value.lo, value.hi)]
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if hasattr(value, "keys"):
        return {str(key): _value(value.get(key)) for key in value.keys()}  # type: ignore[attr-defined]  # noqa: SIM118
    return None
