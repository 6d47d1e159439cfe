"""A derivation for people and for programs: the rule, its verdict, the tree, and what moves the result."""

from __future__ import annotations

from rich.cells import cell_len

from cfglint.engine.evaluation_scope import HERE
from cfglint.features.explain.derivation import Child, Derivation, Node
from cfglint.lang.types import BANDWIDTH, COMPUTE, COMPUTE_RATE, DURATION, MEMORY, PLAIN, describe
from cfglint.lang.values import INF, Interval, needs_of
from cfglint.record import Record
from cfglint.report import Style, encode, forms
from cfglint.report.blocks import Line, few
from cfglint.text import shown, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from cfglint.engine.knobs import Move
    from cfglint.report.blocks import Piece

_BASE_UNITS = {MEMORY: "B", DURATION: "s", COMPUTE: "FLOP", COMPUTE_RATE: "FLOP/s", BANDWIDTH: "B/s"}
_STYLES = {
    "breaks": "bold red", "may break": "bold yellow", "holds": "bold green", "undecided": "bold cyan",
    "does not apply": "bold",
}  # fmt: skip
_UNICODE = ("├─ ", "└─ ", "│  ", "   ")
_ASCII = ("|- ", "`- ", "|  ", "   ")
_PLAIN = str.maketrans({"…": "...", "→": "->", "—": "-", "\u2013": "-", "∞": "inf"})
_ASIDE = 2  # levels that what chose a branch gets less than the branch
_WIDEST = 34  # cells of a name that the values of its siblings are lined up after
_VALUES = 16  # the same of a value
_WANTED = 3
_ONE_LINE = 100  # cells up to which a formula and its numbers share a line
_GREY, _DIM, _MOVES = "bright_black", "dim", "green"


# ── the tree that is shown ─────────────────────────────────────────────────────────────────────────────────
class Shown(Record):
    """A node of the tree; ``state`` is full, above (shown before) or folded (deeper than asked for)."""

    node: Node
    label: str
    mark: str
    state: str
    children: tuple[Shown, ...] = ()


def fold(roots: Iterable[Node], depth: int) -> tuple[Shown, ...]:
    """Return the trees of ``roots``, each node in full where it first stands, down to ``depth`` levels."""
    before: set[int] = set()

    def shown(child: Child, left: int) -> Shown:
        node = child.node
        # What chose a branch matters less than what is in it.
        left = max(left - _ASIDE, 0) if child.label == "chooses" else left
        if node.children and (id(node) in before or left == 0):
            return Shown(node, child.label, child.mark, "above" if id(node) in before else "folded")
        before.add(id(node))
        return Shown(node, child.label, child.mark, "full", tuple(shown(c, left - 1) for c in node.children))

    return tuple(shown(Child(root), depth) for root in roots)


# ── text ───────────────────────────────────────────────────────────────────────────────────────────────────
def as_text(derivations: Sequence[Derivation], depth: int, style: Style) -> str:
    """Return the derivations, each tree down to ``depth`` levels."""
    page = _Page(style)
    for i, derivation in enumerate(derivations):
        if i:
            page.add()
        page.derivation(derivation, depth)
    text = forms.as_text((Line(row) for row in page.rows), style)
    return text if style.unicode else text.translate(_PLAIN)


class _Page:
    def __init__(self, style: Style) -> None:
        self.rows: list[list[Piece]] = []
        self.width = style.width
        self.guides = _UNICODE if style.unicode else _ASCII

    def add(self, *pieces: Piece) -> None:
        """Add a row; no blanks are at its end."""
        row = [piece for piece in pieces if piece[0]]
        while row and not row[-1][0].rstrip():
            row.pop()
        if row:
            text, style = row[-1]
            row[-1] = text.rstrip(), style
        self.rows.append(row)

    def tell(self, text: str, first: str, rest: str, style: str = "", guide: str = _GREY) -> None:
        """Add a text after ``first``, wrapped; further lines follow ``rest``."""
        lines = wrap(shown(text), max(self.width, 40) if self.width else 0, first, rest, cells=cell_len)
        for i, line in enumerate(lines):
            lead = first if i == 0 else rest
            self.add((lead, guide), (line[len(lead) :], style))

    # ── a derivation ───────────────────────────────────────────────────────────────────────────────────
    def derivation(self, derivation: Derivation, depth: int) -> None:
        rule = derivation.rule
        on = f" on {shown(derivation.target)}" if derivation.target else ""
        self.add(
            (f"{rule.code} {shown(rule.name)}", "bold"), (f" ({rule.level}): ", ""),
            (f"{derivation.verdict}{on}", _STYLES[derivation.verdict]),
        )  # fmt: skip
        same = f"; the same on {', '.join(map(shown, derivation.alike))}" if derivation.alike else ""
        kind = f", {derivation.framework}" if derivation.framework else ""
        section = f", {shown(derivation.section)}" if derivation.section else ""
        self.add((f"{shown(derivation.path)}{kind}{section}{same}", _GREY))
        if derivation.cases:
            self.tell(f"with {' or '.join(derivation.cases)}", "  ", "  ")
        if derivation.because:
            label = {"undecided": "missing: "}.get(derivation.verdict, "")
            self.tell(label + derivation.because, "  ", "  ")
        if derivation.message:
            self.tell(derivation.message, "  ", "  ")
        if not derivation.requirement.text:
            return
        labels = ("where", "requires")[-len(derivation.roots) :]
        for label, tree in zip(labels, fold(derivation.roots, depth), strict=True):
            self.root(label, tree)
        self.moves(derivation)

    def root(self, label: str, tree: Shown) -> None:
        """Add the condition or the requirement and what it rests on."""
        node = tree.node
        self.add()
        verdict = node.text if node.text in ("true", "false") else "undecided"
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
        tail = [tree.mark, {"above": "(above)", "folded": "…"}.get(tree.state, "")]
        if tree.state != "above":
            tail.append(shown(node.origin.source))
            if node.children and node.text in ("?", "undecided"):
                tail.append(f"needs {few(sorted(needs_of(node.value)), _WANTED)}")
        parts = [(head, _GREY), (name.ljust(name_width), "red" if tree.mark == "fails" else "")]
        parts.append((f"  {shown(node.text).ljust(value_width)}", "bold"))
        parts += [(f"  {text}", _GREY if i else "bold") for i, text in enumerate(tail) if text]
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
        formula = node.formula if node.formula != node.text else ""
        lines = [f"= {text}" for text in (formula, node.numbers) if text]
        if cell_len(indent + " ".join(lines)) <= min(self.width or _ONE_LINE, _ONE_LINE):
            lines = [" ".join(lines)] if lines else []
        for line in lines:
            self.tell(line, indent, indent + "  ", _DIM)
        if node.chosen:
            self.tell(f"because {' and '.join(node.chosen)}", indent, indent + "  ", _GREY)

    def moves(self, derivation: Derivation) -> None:
        """Add what moves the result, one knob or value of the file a line."""
        if not derivation.leaves:
            return
        self.add()
        changed = {(c.name, c.before) for node in derivation.leaves for m in node.moves for c in m.effects}
        known = len(changed) == 1
        results = f" {', '.join(derivation.results)}" if derivation.results else " it"
        if known:
            ((name, before),) = changed
            results = f" {name} ({before})"
        self.tell(f"What changes{results}:", "", "  ", "bold")
        names = max(cell_len(node.name) for node in derivation.leaves)
        values = max(cell_len(node.text) for node in derivation.leaves)
        for node in derivation.leaves:
            lead = f"  {node.name.ljust(names)}  {node.text.ljust(values)}  "
            for i, move in enumerate(node.moves):
                first = lead if i == 0 else " " * cell_len(lead)
                self.tell(
                    move.words(known=known),
                    first,
                    " " * (cell_len(lead) + 2),
                    _MOVES if move.turns else "",
                    "",
                )


def _name(tree: Shown) -> str:
    leads = {"": "", "chooses": "", "by": "by "}
    return leads.get(tree.label, f"{tree.label} = ") + tree.node.name


# ── JSON ───────────────────────────────────────────────────────────────────────────────────────────────────
def as_json(derivations: Sequence[Derivation], depth: int) -> str:
    """Return the derivations as JSON."""
    first, *others = [_derivation(derivation, depth) for derivation in derivations]
    return encode.as_json({"version": 1, **first, "others": others})


def _derivation(derivation: Derivation, depth: int) -> dict[str, Any]:
    name = " -> ".join(node.name for node in derivation.roots)
    return {
        **encode.picked(derivation.rule, ("code", "name", "level")),
        **encode.picked(derivation, ("path", "framework")),
        **({"section": derivation.section} if derivation.section else {}),
        "target": derivation.target,
        "same_on": derivation.alike,
        **({"cases": derivation.cases} if derivation.cases else {}),
        **encode.picked(derivation, ("verdict", "because", "message")),
        "tree": {
            "name": name,
            "value": {"holds": True, "breaks": False}.get(derivation.verdict),
            "text": derivation.verdict,
            "unit": None,
            "formula": name,
            "numbers": " -> ".join(node.numbers for node in derivation.roots),
            "origin": encode.encode(HERE),
            "chosen": [],
            "state": "full",
            "children": [
                _node(tree) for tree in fold(derivation.roots, depth) if derivation.requirement.text
            ],
            "moves": [
                {"name": node.name, "from": node.text, **_move(move)}
                for node in derivation.leaves
                for move in node.moves
            ],
        },
    }


def _node(tree: Shown) -> dict[str, Any]:
    node = tree.node
    dimension = node.kind.dimension if node.kind.kind == "number" else PLAIN
    return {
        "name": node.name,
        "label": tree.label,
        "mark": tree.mark,
        "value": _value(node.value),
        "text": node.text,
        "unit": _BASE_UNITS.get(dimension, describe(dimension)) if any(dimension) else None,
        **encode.picked(node, ("formula", "numbers", "origin", "chosen")),
        "state": tree.state,
        "children": [_node(child) for child in tree.children],
        "moves": [_move(move) for move in node.moves],
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "direction": move.direction or None,
        **encode.picked(move, ("to", "effects", "verdict")),
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
