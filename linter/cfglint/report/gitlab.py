"""GitLab's code quality report: what the widget of a merge request shows."""

from __future__ import annotations

import hashlib
import json

from cfglint.report.github import in_repository
from cfglint.report.order import Lines, grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.findings import Report
    from cfglint.report.order import Group

_SEVERITIES = {"error": "critical", "warning": "major", "info": "info"}


def as_gitlab(report: Report) -> str:
    """Return a list of findings, each with a fingerprint that survives moved lines."""
    lines = Lines(report)
    seen: dict[str, int] = {}
    return json.dumps([_entry(lines, group, seen) for group in grouped(report.findings)], indent=2) + "\n"


def _entry(lines: Lines, group: Group, seen: dict[str, int]) -> dict[str, Any]:
    finding = group.first
    path = in_repository(finding.place.path)
    line, _ = lines.position(finding.place.path, finding.place.start)
    told = f"{finding.message} {group.label}".rstrip()
    # The widget knows a finding again by its fingerprint: not by its line, which moves.
    known = f"{path}\0{finding.code}\0{told}"
    seen[known] = seen.get(known, 0) + 1
    digest = hashlib.sha256(f"{known}\0{seen[known]}".encode()).hexdigest()
    return {
        "description": f"{finding.code} {told}",
        "check_name": finding.code,
        "fingerprint": digest[:32],
        "severity": _SEVERITIES[finding.level],
        "location": {"path": path, "lines": {"begin": line}},
    }
