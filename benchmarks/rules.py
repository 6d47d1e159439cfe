"""Per rule, over a folder of configs: how often it decided, fired, and was undecided, and for want of what.

    python benchmarks/rules.py FOLDER [--gpu NAME]...

``holds`` and ``breaks`` are decided verdicts, ``aside`` means that the rule's condition is false, ``may``
that it hangs on an estimate, ``open`` that facts are missing (the most wanted are named). A rule that is not
even aside speaks of no version of a framework that was met.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linter"))

from cfglint.cli import files
from cfglint.dsl.pack import load
from cfglint.dsl.values import needs_of
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target

KINDS = ("holds", "breaks", "may", "open", "aside")


def kind_of(truth: object) -> str:
    """Return which of KINDS a verdict is."""
    if truth is None:
        return "aside"
    if truth is True or truth is False:
        return "holds" if truth else "breaks"
    return "open" if needs_of(truth) else "may"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--gpu", action="append", default=[])
    args = parser.parse_args()
    run = Run(load(), [parse_target(name) for name in args.gpu])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wants: dict[str, Counter[str]] = defaultdict(Counter)
    recognised: Counter[str] = Counter()
    for path, _ in files.find(args.folder, print):
        loaded = files.load(path, named=False)
        for subject in run.subjects(loaded[0], judge_broken=False) if loaded is not None else ():
            recognised[subject.framework or "none"] += 1
            for one in run.judged(subject):
                values = values_for(run.pack, subject, one.values.given, run.tables)
                for rule in run.rules(subject, values):
                    truth = rule.test(values)
                    counts[rule.code][kind_of(truth)] += 1
                    wants[rule.code].update(needs_of(truth))
    print("documents:", ", ".join(f"{name} {number}" for name, number in recognised.most_common()))
    print(f"{'code':<8}" + "".join(f"{kind:>8}" for kind in KINDS) + "  wants")
    for rule in sorted(run.pack.rules, key=lambda r: r.code):
        count = counts[rule.code]
        most = ", ".join(f"{name} ({number})" for name, number in wants[rule.code].most_common(3))
        never = "" if sum(count.values()) else "  out of scope here"
        print(f"{rule.code:<8}" + "".join(f"{count[kind]:>8}" for kind in KINDS) + f"  {most}{never}")


if __name__ == "__main__":
    main()
