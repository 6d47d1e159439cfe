"""Whether memory findings are calibrated: what is said of configs that are known to run, or to die.

    python benchmarks/calibration.py RUNS.yaml FOLDER [--show] [--family A-M|N-Z]

RUNS.yaml lists real configs with their target and outcome; FOLDER holds the repositories at their commits, as
``owner+name@COMMIT`` (eight digits). Of jobs that run, at most 2 % may get a memory error or warning; silence
is no way to get there, so faults are put into the same jobs, and nine of ten have to be told.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linter"))

from cfglint.boundary import Boundary
from cfglint.command import inputs
from cfglint.document.reading import Library, read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import Pack, load


def text_of(row: dict[str, Any], folder: Path) -> tuple[str, bytes] | None:
    """Return the path and bytes of a row's config; None where the folder lacks it."""
    home = folder / f"{row['repo'].replace('/', '+')}@{row['commit'][:8]}"
    if "path" in row:
        path = home / row["path"]
        return (str(path), path.read_bytes()) if path.is_file() else None
    if "config" not in row:
        return None
    form = row.get("config_format", "yaml")
    if form == "toml":
        return str(folder / f"{row['id']}.toml"), "".join(_toml(row["config"], ())).encode()
    return str(folder / f"{row['id']}.{form}"), json.dumps(row["config"]).encode()


def _toml(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"[{'.'.join(path)}]\n"] * bool(path)
    lines += [f"{key} = {json.dumps(value)}\n" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        lines += _toml(value, (*path, key)) if isinstance(value, dict) else []
    return lines


def said(pack: Pack, row: dict[str, Any], path: str, data: bytes, given: dict[str, Any]) -> set[str] | None:
    """Return the codes and levels of the memory findings on a row; None where it is not judged."""
    library = Library(inputs.second, Boundary([str(Path(path).parent)]))
    target = parse_target(given.pop("target", row["target"]))
    facts = {name: (value, "fault") for name, value in given.items()}
    run = Run(pack, [target], overrides=row.get("set", ()), given=facts, library=library)
    if not run.add(read(data, path), explicit=False):
        return None
    memory = [f for f in run.report.findings if f.code.startswith("MEM") and f.level != "info"]
    return {f"{f.code} {f.level} {f.message}" for f in memory}


def main() -> int:
    """Print what is said; exits with 1 if jobs that run get too many alarms."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    pack = load()
    counts: dict[str, Counter[str]] = {}
    for row in yaml.load(args.runs.read_text(), yaml.CSafeLoader):
        found = text_of(row, args.folder)
        outcome = None if found is None else said(pack, row, *found, {})
        what = "not judged" if outcome is None else "told" if outcome else "silent"
        counts.setdefault(f"{row['framework']} {row['outcome']}", Counter())[what] += 1
        if args.show and (what == "told") == (row["outcome"] == "runs"):
            print(
                row["id"],
                row["framework"],
                row["outcome"],
                what,
                row["target"],
                sorted(outcome or ()),
                row.get("path"),
            )
    for name, count in sorted(counts.items()):
        print(f"{name:24} {dict(count)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
