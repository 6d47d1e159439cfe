"""How often cfglint answers: the verdicts on a sample of the configs and launches in projects' checkouts.

    python benchmarks/answered.py FOLDER… [--gpu NAME …] [--files N] [--seed N] [--rows]

Of each folder's files with a job that names a model, N (20) are drawn by a committed seed (--seed draws
others), and the first job of each is counted whose model is known: answered where its verdict is fits, tight
or oom. What has no model of its own (the config of a launcher, a base) is not drawn, nor are tests. Counted
apart are a model that is known by its name alone, and a job that states more GPUs than the target has.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from accuracy_score import percent, print_table

SEED = 20261124
ANSWERS = ("fits", "tight", "oom")
NO_MODEL = "the file that starts the job says which model it is"
NEW_MODEL = "which model? add --model-config PATH"
MORE_GPUS = "it takes "  # more GPUs than the target has


def jobs_of(folder: str, gpu: str) -> list[dict[str, Any]]:
    """Return a job of each file of a folder that may name a model: the first that names a known one."""
    command = [sys.executable, "-m", "cfglint", "check", folder, "--gpu", gpu, "--format", "json"]
    flags = ["--isolated", "--no-detect", "--fail-on", "never", "--jobs", str(os.cpu_count() or 1)]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=True)
    first: dict[str, dict[str, Any]] = {}
    for job in json.loads(done.stdout)["jobs"]:
        if job["ask"] == NO_MODEL or "/tests/" in job["path"]:
            continue
        if (first.setdefault(job["path"], job)["ask"] or "").startswith(NEW_MODEL):
            first[job["path"]] = job
    return [first[path] for path in sorted(first)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--gpu", action="append", help="default: a100-80gb-sxm and a100-80gb-sxm:8")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--seed", type=int, default=SEED, help="draw other files")
    parser.add_argument("--rows", action="store_true", help="print each job that is not answered")
    args = parser.parse_args()
    lines = []
    for folder in args.folders:
        for gpu in args.gpu or ("a100-80gb-sxm", "a100-80gb-sxm:8"):
            jobs = jobs_of(folder, gpu)
            drawn = random.Random(args.seed).sample(jobs, min(args.files, len(jobs)))
            larger = [job for job in drawn if (job["ask"] or "").startswith(MORE_GPUS)]
            known = [
                job for job in drawn if not (job["ask"] or "").startswith(NEW_MODEL) and job not in larger
            ]
            unknown = len(drawn) - len(known) - len(larger)
            found = Counter(job["verdict"] for job in known)
            answered = sum(found[word] for word in ANSWERS)
            share = percent(answered / len(known)) if known else "-"
            cells = [str(len(jobs)), str(len(drawn)), str(unknown), str(len(larger))]
            lines.append([Path(folder).name, gpu, *cells, *(str(found[word]) for word in ANSWERS), share])
            for job in known if args.rows else ():
                if job["verdict"] == "unknown":
                    print(f"{job['path']}:{job['line']}: {job['ask']}")
    head = ["project", "target", "files", "drawn", "model unknown", "more GPUs", *ANSWERS, "answered"]
    print_table(head, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
