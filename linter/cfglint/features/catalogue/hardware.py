"""``cfglint hardware`` (what NVML reports here) and ``cfglint gpus`` (the catalogue)."""

from __future__ import annotations

import sys

from cfglint.command.flags import Flag, Parser
from cfglint.errors import HardwareError
from cfglint.features.catalogue.command import print_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def hardware(arguments: list[str]) -> int:
    """Print this machine's GPUs, as text or as a sheet to commit."""
    flags = (Flag("json", "a sheet for --hardware FILE"),)
    parser = Parser("hardware", "What NVML reports of this machine's GPUs.", flags)
    args = parser.parse_args(arguments)
    from cfglint.hardware.nvml import detect

    found = detect()
    if found.host is None or found.problem is not None:
        raise HardwareError(found.problem or "NVML reports nothing here")
    if args.json:
        import json

        from cfglint.hardware.host import to_sheet

        print(json.dumps(to_sheet(found.host), indent=2))
        return 0
    print(f"driver {found.host.driver or 'unknown'}, CUDA {found.host.cuda or 'unknown'}")
    for device in found.host.units():
        free = f", {device.free_mib / 1024:.2f} GiB free" if device.free_mib is not None else ""
        usable = (
            f"{device.usable_mib / 1024:.2f} GiB usable"
            if device.usable_mib is not None
            else "memory unknown"
        )
        print(
            f"{device.index}: {device.name}, {usable}{free}, "
            f"compute capability {device.capability or 'unknown'}"
        )
    for target in found.targets:
        print(f"target: {target.name}")
        for notice in target.notices:
            print(f"cfglint: {notice}", file=sys.stderr)
    return 0


def gpus(arguments: list[str]) -> int:
    """Print the catalogue, or one entry with every figure's source."""
    about = "The GPUs that cfglint knows; * marks an estimate."
    parser = Parser("gpus", about, (), positional=("name", "NAME", "show one GPU in full"))
    args = parser.parse_args(arguments)
    from cfglint.hardware.catalogue import gpus as catalogue
    from cfglint.hardware.target import parse_target

    if args.name is not None:
        target = parse_target(args.name)
        print(f"{target.name}: {target.gpu}")
        for notice in target.notices:
            print(f"  {notice}")
        from cfglint.engine.describe import Evaluator, show_value
        from cfglint.lang.pack import load

        evaluator = Evaluator(load().symbols())
        for name, (value, source) in sorted(target.facts.items()):
            print(f"  {name:<18} {show_value(value, evaluator.type_of(name)):<16} {source}")
        return 0
    rows = [("name", "product", "usable", "capability", "bf16", "fp8")]
    for gpu in catalogue():
        usable = (
            "unknown"
            if gpu.usable_mib is None
            else f"{gpu.usable_mib / 1024:.2f} GiB{'*' if 'usable_mib' in gpu.estimated else ''}"
        )
        rows.append(
            (
                gpu.name,
                gpu.product,
                usable,
                str(gpu.capability or ""),
                "yes" if "bf16" in gpu.formats else "no",
                "yes" if "fp8" in gpu.formats else "no",
            )
        )
    print_rows(rows)
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {"hardware": hardware, "gpus": gpus}
