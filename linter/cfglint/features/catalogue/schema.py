"""``cfglint schema NAME``: the JSON Schema of a framework's keys, or of a form of cfglint's own."""

from __future__ import annotations

import sys

from cfglint import files
from cfglint.command.flags import Flag, Parser
from cfglint.errors import UsageError, did_you_mean
from cfglint.features.catalogue.command import print_rows

_SUFFIX = ".schema.json"


def schema(arguments: list[str]) -> int:
    """Print a schema, or the names of all."""
    parser = Parser(
        "schema",
        "The JSON Schema of a framework's keys, or of a form that cfglint reads and writes.",
        (Flag("list", "the names, and what each schema is of"),),
        positional=("name", "NAME", "a framework, settings, hardware, report, …"),
    )
    args = parser.parse_args(arguments)
    found = {
        path.rpartition("/")[2].removesuffix(_SUFFIX): (path, data)
        for path, data in files.shipped_contents("schemas", _SUFFIX).items()
    }
    if args.list:
        names = sorted(found, key=lambda name: (not found[name][0].startswith("frameworks/"), name))
        print_rows([("name", "keys", "of"), *(_row(*found[name]) for name in names)])
        return 0
    if args.name is None:
        raise UsageError("which schema? cfglint schema NAME; cfglint schema --list shows the names")
    if args.name not in found:
        near = did_you_mean(args.name, found) or "; cfglint schema --list shows the names"
        raise UsageError(f"no schema is named {args.name!r}{near}")
    sys.stdout.write(found[args.name][1].decode("utf-8"))
    return 0


def _row(path: str, data: bytes) -> tuple[str, str, str]:
    import json

    read = json.loads(data)
    objects = [read, *read.get("$defs", {}).values()]
    keys = sum(len(one.get("properties", ())) for one in objects)
    return path.rpartition("/")[2].removesuffix(_SUFFIX), str(keys), str(read.get("title", ""))
