"""Colours for a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def painted(rows: Iterable[Sequence[tuple[str, str]]]) -> str:
    """Return rows of texts and their styles with the terminal's codes for them."""
    out = StringIO()
    # The caller has decided about colour; rich must not look at TERM, NO_COLOR or COLUMNS again.
    console = Console(
        file=out, force_terminal=True, color_system="standard", legacy_windows=False, force_jupyter=False,
        highlight=False, markup=False, emoji=False, _environ={},
    )  # fmt: skip
    # Text objects, never strings: rich reads markup such as [red] in strings.
    lines = [Text("").join(Text(text, style) for text, style in row) for row in rows]
    console.print(Text("\n").join(lines), soft_wrap=True)
    return out.getvalue()
