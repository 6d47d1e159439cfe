"""The forms of a diagnosis."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.features.diagnose.compute import Diagnosis

FORMATS = ("text", "json", "markdown")


def render(found: Diagnosis, form: str, *, color: bool = False, width: int = 0, plain: bool = False) -> str:
    """Return a diagnosis in one of FORMATS; ``plain`` is for streams without dashes."""
    if form == "json":
        from cfglint.features.diagnose import machine

        return machine.as_json(found)
    if form == "markdown":
        from cfglint.features.diagnose import markdown

        return markdown.as_markdown(found)
    from cfglint.features.diagnose import page

    return page.as_text(found, color=color, width=width, plain=plain)
