"""Over checkouts of other projects: which errors and warnings are true, by verdicts that people gave.

    python benchmarks/precision.py FOLDER... [--all] [--new FILE] [--gpu NAME]

A FOLDER is a checkout named ``owner+name``, or holds such. Every error and warning is held against the list
``benchmarks/data/verdicts.yaml``: true, false or debatable, and why. What has no verdict is new and printed;
with ``--new`` it is written to FILE as entries to fill in. ``--all`` prints every finding. An error on code
that its project runs is a mistake of cfglint until shown otherwise. Exits with 1 if an error is false or new.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
VERDICTS = ROOT / "benchmarks" / "data" / "verdicts.yaml"
_KEY = ("repo", "path", "code", "line")


def checkouts(folders: list[Path]) -> Iterator[Path]:
    """Yield the folders that are checkouts, by their names."""
    for folder in folders:
        inner = [folder] if "+" in folder.name else sorted(folder.iterdir())
        yield from (each for each in inner if each.is_dir() and "+" in each.name)


def report_of(folder: Path, gpus: list[str]) -> dict[str, Any]:
    """Return cfglint's report on a checkout."""
    flags = ["--isolated", "--no-detect", "--fail-on", "never", "--format", "json"]
    flags += [word for gpu in gpus for word in ("--gpu", gpu)]
    command = [sys.executable, "-P", "-m", "cfglint", "check", ".", *flags]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2) or not done.stdout:
        sys.exit(f"{folder}: exit status {done.returncode}: {done.stderr[-400:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def findings_of(folder: Path, report: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield errors and warnings as entries of the list; the text of the line outlives its number."""
    repo = folder.name.partition("@")[0].replace("+", "/")
    for finding in report["findings"]:
        if finding["level"] == "info":
            continue
        lines = (folder / finding["path"]).read_text(errors="replace").splitlines()
        number = finding["start"]["line"]
        line = lines[number - 1].strip()[:120] if 0 < number <= len(lines) else ""
        entry = dict(zip(_KEY, (repo, finding["path"], finding["code"], line), strict=True))
        entry["level"] = finding["level"]
        entry["says"] = f"{number}: {finding['message']}"
        yield entry


def verdicts() -> dict[tuple[str, ...], dict[str, str]]:
    """Return the verdicts by repository, path, code and line."""
    entries = yaml.safe_load(VERDICTS.read_text()) or []
    return {tuple(entry[key] for key in _KEY): entry for entry in entries}


def main() -> int:
    """Print the table, and what is false or new."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--all", action="store_true", help="print every finding with its verdict")
    parser.add_argument("--new", type=Path, help="write findings without a verdict here")
    parser.add_argument("--gpu", action="append", default=[])
    args = parser.parse_args()
    known = verdicts()
    counts: Counter[tuple[str, str]] = Counter()
    new: list[dict[str, str]] = []
    print(f"{'project':48} {'files':>6} {'error':>6} {'warn':>6} {'info':>6}")
    for folder in checkouts(args.folders):
        report = report_of(folder, args.gpu)
        sums = report["summary"]
        if sums["files"]:
            print(
                f"{folder.name:48} {sums['files']:6} {sums['error']:6} {sums['warning']:6} {sums['info']:6}"
            )
        for entry in findings_of(folder, report):
            alike = entry["repo"], "*", entry["code"], "*"
            given = known.get(tuple(entry[key] for key in _KEY)) or known.get(alike)
            verdict = given["verdict"] if given else "new"
            counts[entry["level"], verdict] += 1
            if given is None:
                new.append(entry)
            if args.all or verdict == "new" or (verdict == "false" and entry["level"] == "error"):
                why = f" ({given['why']})" if given else ""
                place = f"{entry['path']}:{entry['says'][:200]}"
                print(f"  {verdict} {entry['level']}: {place} {entry['code']}{why}")
    for level in ("error", "warning"):
        right, wrong = counts[level, "true"], counts[level, "false"]
        share = f", {100 * right / (right + wrong):.0f} % true of those" if right + wrong else ""
        print(f"{level}s: {right} true, {wrong} false{share}; {counts[level, 'debatable']} debatable, "
              f"{counts[level, 'new']} new")  # fmt: skip
    if args.new is not None:
        entries = [{**entry, "verdict": "", "why": ""} for entry in new]
        args.new.write_text(yaml.safe_dump(entries, sort_keys=False, width=200, allow_unicode=True))
    return int(bool(counts["error", "false"] + counts["error", "new"]))


if __name__ == "__main__":
    sys.exit(main())
