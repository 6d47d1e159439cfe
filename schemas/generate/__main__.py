"""Writes schemas/frameworks/NAME.schema.json from the frameworks' sources, which are read and never run.

    python schemas/generate [NAME…] --from areal=DIR --from transformers=DIR …

DIR is a git directory (or a clone with its tags) of the framework, or a folder with its wheels. Without NAME,
all are generated whose sources are given. ``--check`` writes nothing and exits 1 where a file would change.
It takes Python 3.12, since some sources do, and PyYAML.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from frameworks import FRAMEWORKS
from sources import SourceError

OUT = Path(__file__).resolve().parents[1] / "frameworks"


def main() -> int:
    """Generate what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python schemas/generate", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FRAMEWORKS)}")
    parser.add_argument("--from", dest="places", action="append", default=[], metavar="SOURCE=DIR")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where a file would change"
    )
    args = parser.parse_args()
    places = dict(place.split("=", 1) for place in args.places)
    changed = 0
    for name in args.names or list(FRAMEWORKS):
        if name not in FRAMEWORKS:
            parser.error(f"no framework is named {name}; known are {', '.join(FRAMEWORKS)}")
        framework = FRAMEWORKS[name]
        if not args.names and not framework.needs <= places.keys():
            continue
        try:
            text = written(framework.schema(places)) + "\n"
        except SourceError as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
        path = OUT / f"{name}.schema.json"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != before:
            changed += 1
            if not args.check:
                path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {'unchanged' if text == before else 'differs' if args.check else 'written'}")
    return int(args.check and changed > 0)


def written(value: object, depth: int = 0) -> str:
    """Return JSON with a line for each key of a framework: a change of one is a change of a line."""
    if not isinstance(value, dict) or not ({"properties", "$defs"} & value.keys() or depth % 2):
        return json.dumps(value, ensure_ascii=False)
    inner = "  " * (depth + 1)
    lines = []
    for key, one in value.items():
        group = key in ("properties", "$defs", "x-since", "x-until") and not depth % 2
        text = written(one, depth + 1) if group or depth % 2 else json.dumps(one, ensure_ascii=False)
        lines.append(f"{inner}{json.dumps(key, ensure_ascii=False)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"


if __name__ == "__main__":
    sys.exit(main())
