"""The verdicts on ten configs of the kinds that people run most (benchmarks/popular), each on its GPU.

    python benchmarks/popular.py [--python PATH]

``--python`` runs another cfglint's interpreter, to compare with an older version: its ``fit`` is asked, which
every version has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from accuracy_score import print_table

FOLDER = Path(__file__).parent / "popular"
MARK = "# target: "


def asked(python: str, path: Path) -> tuple[str, dict[str, Any]]:
    """Return the target that a config names in its first line, and the row of ``cfglint fit`` for it."""
    target = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix(MARK)
    command = [python, "-m", "cfglint", "fit", str(path), "--gpu", target, "--format", "json", "--isolated"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return target, json.loads(done.stdout)["rows"][0]


def told(span: list[float | None]) -> str:
    low, high = (round(end, 1) if end is not None else "?" for end in span)
    return f"{low} - {high}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    lines = []
    for path in sorted(p for p in FOLDER.iterdir() if p.suffix in (".yaml", ".sh")):
        target, row = asked(args.python, path)
        need, bound = told(row["need_gib"]), told(row.get("bound_gib", row["need_gib"]))
        missing = row.get("ask") or ", ".join(row["needs"])
        lines.append([path.name, target, row["verdict"], need, bound, str(row["capacity_gib"]), missing])
    print_table(["config", "target", "verdict", "need", "bounds", "capacity", "missing"], lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
