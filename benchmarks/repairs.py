"""Over a folder of configs: which errors have a repair, of what kind, at what cost, and how long that takes.

    python benchmarks/repairs.py FOLDER... [--gpu NAME]... [--show]

Every repair is held against what must be true of it: linting the repaired text finds the error gone and no
new one, bytes outside the edits are the same, repairing twice is repairing once, `git apply` takes the diff.
``fix`` is the processor's time to judge, repair and prove a file; ``report`` that of `check`'s fixes,
alternatives and hardware.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linter"))

from cfglint.document.reading import read_text
from cfglint.repair.apply import repair
from cfglint.repair.attach import attach
from cfglint.report.changes import unified
from folders import paths_of, read, run_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import File
    from cfglint.engine.run import Run
    from cfglint.findings import Finding

GPUS = ("a40", "rtx-4090", "a100-80gb", "h100-sxm:8")


def errors_of(run: Run, file: File) -> set[str]:
    """Return the codes of a file's errors."""
    found = set()
    for subject in run.subjects(file, judge_broken=False):
        errors = (each.finding for each in run.findings(run.judged(subject)))
        found |= {finding.code for finding in errors if finding.level == "error"}
    return found


def proven(run: Run, file: File, text: str) -> list[str]:
    """Return what is wrong with a repaired text."""
    wrong = []
    again = read_text(text, file.path, bom=file.bom)
    if errors_of(run, again) - errors_of(run, file):
        wrong.append("a new error")
    if repair(run, again, unsafe=True, least="warning", notes=False).text != text:
        wrong.append("not idempotent")
    if text == file.text:
        return wrong
    with tempfile.TemporaryDirectory() as folder:
        data = file.encode(file.text)
        (Path(folder) / "c.yaml").write_bytes(data)
        diff = unified("c.yaml", data.decode(), file.encode(text).decode())
        done = subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=folder, check=False)
        if done.returncode or (Path(folder) / "c.yaml").read_bytes() != file.encode(text):
            wrong.append("git apply")
    return wrong


def proposed(finding: Finding) -> str:
    """Return what is proposed for an error: the kind of its fix, other hardware, a question, or nothing."""
    if finding.fix is not None:
        return finding.fix.applicability
    if finding.alternatives:
        return "hardware"
    return "question" if "too wide" in finding.unfixed else "nothing"


def told(counts: Counter[str]) -> str:
    """Return counts in words, the most first."""
    return ", ".join(f"{kind} {number}" for kind, number in counts.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--gpu", action="append", default=[])
    parser.add_argument("--show", action="store_true", help="print every error with its fix")
    args = parser.parse_args()
    gc.set_threshold(100_000, 50, 100)  # as the command does (cli/__init__.py)
    kinds: Counter[str] = Counter()
    memory: Counter[str] = Counter()  # errors of memory, by what is proposed
    without: Counter[str] = Counter()
    knobs: Counter[int] = Counter()
    reports, fixes, wrong = [], [], []
    for gpu, folder in product(args.gpu or GPUS, args.folder):
        run = run_of(folder, gpu)
        assert run.finder.symbols  # the trees are loaded once a run, not once a file
        for path, file in read([folder], paths_of([folder])):
            for subject in run.subjects(file, judge_broken=False):
                judgements = run.judged(subject)
                found = list(run.findings(judgements))
                errors = [each.finding for each in found if each.finding.level == "error"]
                if not errors:
                    continue
                gc.collect()  # what earlier files left is not this one's time
                start = time.process_time()
                attach(run, judgements, found)
                reports.append(time.process_time() - start)
                for finding in errors:
                    fix = finding.fix
                    if finding.code.startswith("MEM"):
                        memory[proposed(finding)] += 1
                    sure = fix is not None and bool(fix.edits) and fix.certainty == "sure"
                    kind = fix.applicability if sure else "may" if fix is not None and fix.edits else "none"
                    kinds[kind] += 1
                    if sure:
                        knobs[len(fix.edits)] += 1
                    else:
                        without[finding.code] += 1
                    if args.show:
                        title = fix.title if fix is not None else finding.unfixed or "nothing to move"
                        print(f"{gpu} {path}: {finding.code} {kind}: {title}")
                start = time.process_time()
                fixed = repair(run, file, unsafe=True, least="warning", notes=False)
                fixes.append((time.process_time() - start, gpu, path))
                wrong += [f"{gpu} {path}: {what}" for what in proven(run, file, fixed.text)]
    total = sum(kinds.values())
    print(f"{total} errors: {told(kinds)}")
    print(f"{sum(memory.values())} errors of memory: {told(memory)}")
    print("edits of a sure fix: " + ", ".join(f"{n}: {number}" for n, number in sorted(knobs.items())))
    print(f"without a sure fix: {told(without)}")
    for name, times in (("fix", [t for t, *_ in fixes]), ("report", reports)):
        if times:
            print(f"{name}: median {statistics.median(times) * 1e3:.0f} ms, worst {max(times) * 1e3:.0f} ms")
    print(f"worst fix: {max(fixes)[1:]}" if fixes else "no errors")
    print("\n".join(wrong) or "every repair proven, idempotent, taken by git apply")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
