"""Turns a Fit into text: a table and bars for people, JSON, Markdown for a pull request, an SVG chart."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.memory import Fit

FORMATS = ("text", "json", "markdown", "svg")


class Style:
    """What the output can show: colours, cells in a line (0: a pipe or a file), characters beyond ASCII."""

    __slots__ = ("color", "unicode", "width")

    def __init__(self, *, color: bool = False, width: int = 0, unicode: bool = True) -> None:
        self.color = color
        self.width = width
        self.unicode = unicode


def render_fit(fit: Fit, form: str, text: str, style: Style) -> str:
    """Return ``fit`` in ``form``, ending in a line break; ``text`` is the config that it is about."""
    if form == "json":
        from cfglint.features.fit.machine import as_json

        return as_json(fit, text)
    if form == "markdown":
        from cfglint.features.fit.markdown import as_markdown

        return as_markdown(fit)
    if form == "svg":
        from cfglint.features.fit.svg import as_svg

        return as_svg(fit)
    from cfglint.features.fit.page import as_text

    return as_text(fit, style)
