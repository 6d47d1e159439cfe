"""One line per finding, for editors, grep and logs."""

from __future__ import annotations

from cfglint.report.order import Lines, grouped, shown
from cfglint.report.summary import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.findings import Report


def as_concise(report: Report, *, verbose: bool) -> str:
    """Return ``path:line:column: level CODE message [target]`` per finding, then the closing lines."""
    lines = Lines(report)
    groups = grouped(report.findings)
    rows = []
    for group in groups:
        finding = group.first
        may = "(may) " if finding.possible else ""
        label = f" {group.label}" if group.label else ""
        where = lines.where(finding.place.path, finding.place.start)
        rows.append(f"{where}: {finding.level} {shown(finding.code)} {may}{shown(finding.message)}{label}\n")
    return "".join(rows) + closing(report, groups, verbose=verbose)
