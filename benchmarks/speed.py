"""Speed, as ratios of CPU time against what any YAML tool must spend, side by side in one run.

    python benchmarks/speed.py [--config FILE --gpu NAME] [--runs 20] [--files 2000]

1. One clean file: `cfglint check FILE --gpu NAME` against `python -c` doing yaml.compose with libyaml on it,
   both with start-up. Runs alternate, so a change of the machine's speed meets both; medians are compared.
2. Many files: linting N files of 180 lines in one process against `yaml.load` with libyaml over them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = "import sys, yaml; yaml.compose(open(sys.argv[1]), Loader=yaml.CSafeLoader)"
LOAD = """
import sys, time, yaml
paths = [f"{sys.argv[1]}/{i}.yaml" for i in range(int(sys.argv[2]))]
start = time.process_time()
for path in paths:
    with open(path) as stream:
        yaml.load(stream, Loader=yaml.CSafeLoader)
print(time.process_time() - start)
"""
LINT = """
import sys, time
from cfglint.command import options, setup
from cfglint.command import parse
from cfglint.features import check
start = time.process_time()
args = options.merged(parse(check.CheckOptions, [sys.argv[1], "--no-detect", *sys.argv[3:]]))
run = setup.run(args)
check.judge(run, args)
seconds = time.process_time() - start
assert run.report.files == int(sys.argv[2]), run.report.files
assert not run.report.findings, run.report.findings[0].message
print(seconds)
"""


def cpu(command: list[str], environment: dict[str, str]) -> float:
    """Run a command and return its user and system seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def paired(one: list[str], other: list[str], runs: int, environment: dict[str, str]) -> tuple[float, float]:
    """Return the median CPU seconds of two commands, run in turn after a warm-up."""
    for command in (one, other):
        cpu(command, environment)
    pairs = [(cpu(one, environment), cpu(other, environment)) for _ in range(runs)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def padded(text: str, lines: int) -> str:
    """Return ``text`` brought to ``lines`` lines with keys that no rule reads."""
    have = text.count("\n")
    extra = "".join(f"  note_{i}: value {i}  # {i}\n" for i in range(max(0, lines - have - 1)))
    return text + ("stats_logger_notes:\n" + extra if extra else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--config", type=Path, default=ROOT / "examples" / "grpo_clean.yaml", help="a clean config"
    )
    parser.add_argument(
        "--gpu", default="a40:2", help="a target on which the config is clean; none for no target"
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--files", type=int, default=2000)
    args = parser.parse_args()
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "CFGLINT_CACHE")
    }
    environment["PYTHONPATH"] = str(ROOT / "linter")
    with tempfile.TemporaryDirectory() as folder:
        environment["CFGLINT_CACHE"] = f"{folder}/cache"
        target = [] if args.gpu == "none" else ["--gpu", args.gpu]
        lint = [sys.executable, "-m", "cfglint", "check", str(args.config), "--no-detect", *target]
        compose = [sys.executable, "-c", COMPOSE, str(args.config)]
        ours, bare = paired(lint, compose, args.runs, environment)
        print(
            f"one clean file: cfglint check {ours * 1e3:.1f} ms, yaml.compose {bare * 1e3:.1f} ms, "
            f"ratio {ours / bare:.2f} (limit 1.6)"
        )
        files = Path(folder) / "files"
        files.mkdir()
        text = padded(args.config.read_text(encoding="utf-8"), 180)
        for i in range(args.files):
            (files / f"{i}.yaml").write_text(f"# {i}\n{text}", encoding="utf-8")
        ratios = []
        for _ in range(3):
            times = [
                float(
                    subprocess.check_output(
                        [sys.executable, "-c", code, str(files), str(args.files), *target], env=environment
                    )
                )
                for code in (LINT, LOAD)
            ]
            ratios.append((times[0] / times[1], *times))
        ratio, ours, bare = statistics.median(r[0] for r in ratios), *sorted(ratios)[1][1:]
        print(
            f"{args.files} files of 180 lines: lint {ours:.2f} s, yaml.load {bare:.2f} s, "
            f"ratio {ratio:.2f} (limit 2.0)"
        )


if __name__ == "__main__":
    main()
