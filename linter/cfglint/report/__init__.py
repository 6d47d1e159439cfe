"""Turns a Report into text: for people, for editors and scripts, for programs, for CI systems."""

from __future__ import annotations

from cfglint.record import Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cfglint.findings import Report
    from cfglint.report.blocks import Block

    Page = Callable[["Style"], Iterable[Block]]

FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")


class Style(Value):
    """What a form can show: colours, cells in a line (0: a pipe or a file), characters beyond ASCII.

    ``loose`` lets a line end between a number and its unit.
    """

    color: bool = field(default=False, kw_only=True)
    width: int = field(default=0, kw_only=True)
    unicode: bool = field(default=True, kw_only=True)
    markdown: bool = field(default=False, kw_only=True)
    loose: bool = field(default=False, kw_only=True)


def render(report: Report, form: str, *, color: bool = False, width: int = 80, verbose: bool = False) -> str:
    """Return ``report`` in ``form``, ending in a line break; nothing is printed here.

    ``width`` is the terminal's, in cells; 0 is a pipe or a file, where no sentence is wrapped.
    Raises UsageError for a form that nobody knows.
    """
    # Each form's module is imported where it is asked for: a clean run must not pay for rich or json.
    if form == "concise":
        from cfglint.report.order import as_concise

        return as_concise(report, verbose=verbose)
    if form == "text" and not report.findings:
        from cfglint.report.order import as_clean

        return as_clean(report, width=width, verbose=verbose)
    if form == "json":
        from cfglint.report.encode import as_json, of_report

        return as_json(of_report(report))
    if form in ("text", "markdown"):
        from cfglint.report.page import page

        style = Style(color=color, width=width)
        return drawn(form, style, lambda style: page(report, style, verbose=verbose))
    if form in FORMATS:
        from cfglint.report import ci

        return ci.FORMS[form](report)
    from cfglint.errors import UsageError, did_you_mean

    raise UsageError(f"no report format {form!r}{did_you_mean(form, FORMATS)} (known: {', '.join(FORMATS)})")


def drawn(form: str, style: Style, page: Page) -> str:
    """Return a page as text or Markdown."""
    from cfglint.report.forms import as_markdown, as_text

    return as_markdown(page(Style(markdown=True))) if form == "markdown" else as_text(page(style), style)


def written(form: str, style: Style, page: Page, data: Callable[[], object]) -> str:
    """Return what a feature has to say in ``form``: its page, or its data as JSON."""
    if form != "json":
        return drawn(form, style, page)
    from cfglint.report.encode import as_json

    return as_json(data())
