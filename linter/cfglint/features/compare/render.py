"""Turns a Comparison into text: two columns for people, JSON, Markdown for a pull request."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.features.compare.compute import Comparison
    from cfglint.report import Style

FORMATS = ("text", "json", "markdown")


def render_comparison(comparison: Comparison, form: str, style: Style, *, verbose: bool = False) -> str:
    """Return ``comparison`` in ``form``, ending in a line break; JSON holds all of it, verbose or not."""
    if form == "json":
        from cfglint.features.compare.machine import as_json

        return as_json(comparison)
    if form == "markdown":
        from cfglint.features.compare.markdown import as_markdown

        return as_markdown(comparison, verbose=verbose)
    from cfglint.features.compare.page import as_text

    return as_text(comparison, style, verbose=verbose)
