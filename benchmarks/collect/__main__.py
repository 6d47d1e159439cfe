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
    "freshread",
    "fsdp_qlora",
    "handread",
    "llm_foundry",
    "prime_rl",
    "simumax",
    "torchtune",
    "unseenread",
    "unsloth_notebooks",
)


def main() -> int:
    """Write the rows of each collector whose repository is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=COLLECTORS, metavar="NAME", help=", ".join(COLLECTORS))
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
        write("published", module.PREFIX, published)
        write("outcomes", module.PREFIX, outcomes)
        print(f"{name}: {len(published)} measured, {len(outcomes)} outcomes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
