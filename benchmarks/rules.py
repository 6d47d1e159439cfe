"""Per rule, over a folder of configs: how often it decided, fired, and was undecided, and for want of what.

    python benchmarks/rules.py FOLDER [--gpu NAME]... [--by-framework]

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

from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import needs_of
from folders import paths_of, read

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
    parser.add_argument("--by-framework", action="store_true", help="a line for each rule and framework")
    args = parser.parse_args()
    run = Run(load(), [parse_target(name) for name in args.gpu])
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    wants: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    recognised: Counter[str] = Counter()
    for _, file in read(args.folder, paths_of(args.folder)):
        for subject in run.subjects(file, judge_broken=False):
            recognised[subject.framework or "none"] += 1
            for one in run.judged(subject):
                values = values_for(subject, one.values.given)
                for rule in run.rules(subject, values):
                    truth = rule.test(values)
                    key = (rule.code, (subject.framework or "none") if args.by_framework else "")
                    counts[key][kind_of(truth)] += 1
                    wants[key].update(needs_of(truth))
    print("documents:", ", ".join(f"{name} {number}" for name, number in recognised.most_common()))
    of = f"{'framework':<14}" if args.by_framework else ""
    print(f"{'code':<8}{of}" + "".join(f"{kind:>8}" for kind in KINDS) + "  wants")
    for rule in sorted(run.pack.rules, key=lambda r: r.code):
        for key in sorted(key for key in counts if key[0] == rule.code) or [(rule.code, "")]:
            most = ", ".join(f"{name} ({number})" for name, number in wants[key].most_common(3))
            never = "" if sum(counts[key].values()) else "  out of scope here"
            own = f"{key[1]:<14}" if args.by_framework else ""
            row = "".join(f"{counts[key][kind]:>8}" for kind in KINDS)
            print(f"{rule.code:<8}{own}{row}  {most}{never}")
    decided = {code for (code, _), count in counts.items() if count["holds"] or count["breaks"]}
    print(f"{len(decided)} of {len(run.pack.rules)} rules decided at least once")


if __name__ == "__main__":
    main()
