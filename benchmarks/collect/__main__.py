"""Make the collected rows of benchmarks/data again, from checkouts of the repositories that published them.

    python benchmarks/collect FOLDER [NAME…]

FOLDER holds the repositories as OWNER+NAME or OWNER/NAME; NAME picks collectors (all by default). A
collector's rows replace those in published.yaml and outcomes.yaml whose id has its prefix. It parses tables
(CSV, JSON, Markdown) and keeps facts; how each is read stands in its module.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from rows import checkout, write

COLLECTORS = (
    "adapters",
    "arctic_training",
    "fms_acceleration",
    "fsdp_qlora",
    "handread",
    "llm_foundry",
    "prime_rl",
    "simumax",
    "torchtune",
)
FRESH = (  # whose rows go to fresh_published.yaml and fresh_outcomes.yaml: nobody has looked at them yet
    "freshread",
    "unsloth_notebooks",
)


def main() -> int:
    """Write the rows of each collector whose repository is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    known = (*COLLECTORS, *FRESH)
    parser.add_argument("names", nargs="*", default=known, metavar="NAME", help=", ".join(known))
    args = parser.parse_args()
    for name in args.names:
        module = import_module(name)
        if hasattr(module, "collect_from"):  # many repositories
            published, outcomes = module.collect_from(args.folder)
        elif source := checkout(args.folder, module.NAME, module.COMMIT):
            published, outcomes = module.collect(source)
        else:
            print(f"{name}: no checkout of {module.NAME} in {args.folder}")
            continue
        before = "fresh_" if name in FRESH else ""
        write(f"{before}published", module.PREFIX, published)
        write(f"{before}outcomes", module.PREFIX, outcomes)
        print(f"{name}: {len(published)} measured, {len(outcomes)} outcomes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
