"""Turns a Plan into text: a table for each batch for people, JSON, Markdown for a pull request."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.features.plan.ranking import Plan
    from cfglint.report import Style

FORMATS = ("text", "json", "markdown")


def render_plan(plans: Sequence[Plan], form: str, style: Style, *, every: bool = False) -> str:
    """Return plans in ``form``, ending in a line break; ``every`` asks for rows that matter little, too."""
    if form == "json":
        from cfglint.features.plan.machine import as_json

        return as_json(plans)
    if form == "markdown":
        from cfglint.features.plan.markdown import as_markdown

        return as_markdown(plans, every=every)
    from cfglint.features.plan.page import as_text

    return as_text(plans, style, every=every)
