"""Command line: measure one configuration, or the grid into a file."""

from __future__ import annotations

import argparse
import json
import sys

from oracle.case import Case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m oracle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure", help="measure one configuration and print it as a JSON line")
    one.add_argument("case", help='such as \'{"model_path": "Qwen/Qwen2.5-0.5B", "seq_len": 4096}\'')
    grid = commands.add_parser("grid", help="measure what the file lacks, each in a process")
    grid.add_argument("--out", required=True, help="a file of JSON lines")
    grid.add_argument("--jobs", type=int, default=2)
    grid.add_argument("--list", action="store_true", help="print the configurations instead")
    commands.add_parser("spread", help="compare a layer of each decoder of transformers with Llama's")
    commands.add_parser("towers", help="what a layer of a vision tower keeps per patch")
    trainers = commands.add_parser("trainers", help="measure the losses of the trainers that are installed")
    trainers.add_argument("--out", required=True, help="a file of JSON lines")
    counts = commands.add_parser("counts", help="count weights and adapters of the catalogue's models")
    counts.add_argument("--out", required=True, help="a file of JSON lines")
    counts.add_argument("--mirror", required=True, help="git directories, as schemas/models takes them")
    counts.add_argument("--patterns", action="store_true", help="adapters by patterns of names instead")
    options = parser.parse_args()
    if options.command == "measure":
        from oracle.measure import measure

        case = Case.from_json(json.loads(options.case))
        print(json.dumps({"config": case.as_json(), **measure(case)}))
        return 0
    if options.command in ("spread", "towers"):
        from oracle import layers

        return layers.spread() if options.command == "spread" else layers.towers()
    if options.command == "trainers":
        from oracle import trainers as losses

        return losses.fill(options.out)
    if options.command == "counts":
        from oracle import counts as counted

        count = counted.patterns if options.patterns else counted.fill
        return count(options.out, options.mirror)
    from oracle import run

    return run.show() if options.list else run.fill(options.out, options.jobs)


sys.exit(main())
