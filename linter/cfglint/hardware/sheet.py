"""Hardware sheets: what a machine has, as JSON to commit and lint against.

A sheet is written by ``cfglint hardware --json``, or by hand::

    {"cfglint": "hardware", "version": 1, "devices": [{"name": "NVIDIA A40", "count": 8}]}

It says nothing that tells one machine from another of its kind: no UUID, serial number or host name, and
nothing that changes from minute to minute, such as free memory.
"""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.host import Device, Host, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.hardware.target import Target

VERSION = 1
SCHEMA = "hardware.schema.json"
_COUNTS = ("total_mib", "usable_mib")


def to_sheet(host: Host) -> dict[str, Any]:
    """Return the sheet of ``host``; devices that are alike stand together, MIG instances for themselves."""
    sheet: dict[str, Any] = {"cfglint": "hardware", "version": VERSION}
    if host.driver:
        sheet["driver"] = host.driver
    if host.cuda:
        sheet["cuda"] = host.cuda
    if host.nodes > 1:
        sheet["nodes"] = host.nodes
    devices: list[dict[str, Any]] = []
    for unit in host.units():
        entry: dict[str, Any] = {"name": unit.name, "count": 1}
        for key in (*_COUNTS, "mig"):
            value = getattr(unit, key)
            if value is not None:
                entry[key] = value
        if unit.capability is not None:
            entry["capability"] = str(unit.capability)
        if devices and {**devices[-1], "count": 1} == entry:
            devices[-1]["count"] += 1
        else:
            devices.append(entry)
    sheet["devices"] = devices
    return sheet


def load_sheet(text: str, path: str) -> list[Target]:
    """Return the one target of the sheet ``text``; HardwareError says where in ``path`` it does not hold."""
    host = read_sheet(text, path)
    return [target(host.units(), f"sheet {path}", nodes=host.nodes)]


def read_sheet(text: str, path: str) -> Host:
    """Return the machine that the sheet ``text`` describes; raises HardwareError as ``load_sheet`` does."""
    import json

    try:
        sheet = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise HardwareError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise HardwareError(f"{path}: not JSON that can be read: {error}") from None
    if not _holds(sheet):
        raise HardwareError(f"{path}: {_complaint(sheet)}")
    devices: list[Device] = []
    for number, entry in enumerate(sheet["devices"]):
        total, usable = (int(entry[key]) if key in entry else None for key in _COUNTS)
        if total is not None and usable is not None and usable > total:
            raise HardwareError(
                f"{path}: $.devices[{number}]: usable_mib {usable} is more than total_mib {total}"
            )
        capability = entry.get("capability")
        devices += [
            Device(
                entry["name"],
                index=len(devices) + copy,
                total_mib=total,
                usable_mib=usable,
                capability=float(capability) if capability else None,
                mig=entry.get("mig"),
            )
            for copy in range(int(entry.get("count", 1)))
        ]
    nodes = int(sheet.get("nodes", 1))
    return Host(devices, driver=sheet.get("driver"), cuda=sheet.get("cuda"), nodes=nodes)


def _holds(sheet: Any) -> bool:
    """Check what the schema says, without loading jsonschema."""
    if not isinstance(sheet, dict) or not sheet.keys() <= {
        "$schema", "cfglint", "version", "driver", "cuda", "nodes", "devices",
    }:  # fmt: skip
        return False
    devices = sheet.get("devices")
    return (
        sheet.get("cfglint") == "hardware"
        and _count(sheet.get("version")) == VERSION
        and all(isinstance(sheet.get(key, ""), str) for key in ("$schema", "driver", "cuda"))
        and _count(sheet.get("nodes", 1)) > 0
        and isinstance(devices, list)
        and 0 < len(devices) <= 64
        and all(_device_holds(device) for device in devices)
    )


def _device_holds(device: Any) -> bool:
    return (
        isinstance(device, dict)
        and device.keys() <= {"name", "count", *_COUNTS, "capability", "mig"}
        and isinstance(device.get("name"), str)
        and bool(device["name"].strip())
        and 0 < _count(device.get("count", 1)) <= 1024
        and all(_count(device.get(key, 1)) > 0 for key in _COUNTS)
        and _matches(r"[0-9]{1,2}\.[0-9]", device.get("capability", "1.0"))
        and _matches(r"[1-9]g\.[1-9][0-9]*gb(\+[a-z.]+)?", device.get("mig", "1g.1gb"))
    )


def _count(value: Any) -> int:
    """Return ``value`` if it is a whole number as JSON Schema counts them, else -1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _matches(pattern: str, value: Any) -> bool:
    import re

    return isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None


def _complaint(sheet: Any) -> str:
    """Return the first thing that the schema has against ``sheet``, and where."""
    import json
    import os

    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    from cfglint.resources import folder, read

    schema = json.loads(read(os.path.join(folder("schemas"), SCHEMA)))
    error = best_match(Draft202012Validator(schema).iter_errors(sheet))
    if error is None:
        return "this is no hardware sheet; write one with: cfglint hardware --json"
    return f"{error.json_path}: {error.message}"
