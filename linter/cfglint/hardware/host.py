"""The target that a machine makes, measured by NVML or stated by a hardware sheet, or that a job asks for.

A sheet is JSON to commit and lint against, written by ``cfglint hardware --json``, or by hand::

    {"cfglint": "hardware", "version": 1, "devices": [{"name": "NVIDIA A40", "count": 8}]}

It says nothing that tells one machine from another of its kind: no UUID, serial number or host name, and
nothing that changes from minute to minute, such as free memory.
"""

from __future__ import annotations

import re

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import GIB, MIB, Gpu, gpu, gpus, lookup
from cfglint.hardware.names import instance
from cfglint.hardware.target import FORMATS, Fact, Target, count_facts, gpu_facts, parse_target
from cfglint.lang.values import INF, Interval
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cfglint.document.job import Job

VERSION = 1
SCHEMA = "hardware.schema.json"
_COUNTS = ("total_mib", "usable_mib")
_MOST = 10**9 - 1  # of nodes, as in --gpu, and of MiB; what follows from more is no number to a computer
_SHEET = {"$schema", "cfglint", "version", "driver", "cuda", "nodes", "devices"}
# Architectures by the compute capability that they begin with, the newest first.
_ARCHITECTURES = (
    (10.0, "Blackwell"), (9.0, "Hopper"), (8.9, "Ada"), (8.0, "Ampere"), (7.5, "Turing"), (7.0, "Volta"),
    (6.0, "Pascal"),
)  # fmt: skip
# Capability from which tensor cores know a format.
_SINCE = {"bf16": 8.0, "tf32": 8.0, "fp8": 8.9, "fp4": 10.0}
_PROFILE = r"[1-9]g\.[1-9][0-9]{0,5}gb(\+[a-z.]+)?"


class Device(Record):
    """One GPU or one MIG instance (``mig`` is its profile). Memory in MiB, utilisation in per cent.

    ``computes`` is whether a process computes on it now.

    ``reserved_mib`` is what the driver keeps for itself; ``instances`` are those of a GPU in MIG mode. None
    is what nobody said.
    """

    name: str
    index: int = field(default=0, kw_only=True)
    total_mib: int | None = field(default=None, kw_only=True)
    free_mib: int | None = field(default=None, kw_only=True)
    reserved_mib: int | None = field(default=None, kw_only=True)
    usable_mib: int | None = field(default=None, kw_only=True)
    capability: float | None = field(default=None, kw_only=True)
    mig: str | None = field(default=None, kw_only=True)
    mig_mode: bool | None = field(default=None, kw_only=True)
    utilisation: int | None = field(default=None, kw_only=True)
    computes: bool = field(default=False, kw_only=True)
    instances: list[Device] = field(factory=list, init=False)

    def __post_init__(self) -> None:
        """Work out what the driver leaves."""
        if self.usable_mib is None and self.total_mib is not None and self.reserved_mib is not None:
            self.usable_mib = self.total_mib - self.reserved_mib


class Host(Record):
    """A machine: its driver's version, the CUDA version that the driver supports, and its GPUs."""

    devices: list[Device]
    driver: str | None = field(default=None, kw_only=True)
    cuda: str | None = field(default=None, kw_only=True)
    nodes: int = field(default=1, kw_only=True)

    def units(self) -> list[Device]:
        """Return what a job can use: the MIG instances of a GPU that is partitioned, else the GPU."""
        return [
            unit for device in self.devices for unit in (device.instances if device.mig_mode else [device])
        ]


def profile_in(name: str) -> str | None:
    """Return the profile in a MIG instance's name; `1c.3g.20gb` shares the memory of `3g.20gb`."""
    written = re.search(_PROFILE, name)
    return written.group() if written else None


# ── the target of a machine ────────────────────────────────────────────────────────────────────────────────
def _gpu_of(device: Device) -> Gpu | None:
    """Return what the catalogue has under the device's product name, None where it has nothing."""
    members, count = lookup(device.name.partition(" MIG ")[0])
    if len(members) != 1 or count is not None:
        return None
    whole = gpu(members[0])
    try:
        return whole if device.mig is None else instance(whole, device.mig)
    except HardwareError:
        return None


def target(units: Sequence[Device], source: str, *, nodes: int = 1, notices: Sequence[str] = ()) -> Target:
    """Return the one target that ``units`` of each node make; where they differ, the weakest figure holds.

    ``source`` is ``"NVML"`` or names the sheet. HardwareError where there are no units.
    """
    if not units:
        raise HardwareError(f"{source}: no GPU")
    groups: dict[str, int] = {}
    products: list[str] = []
    all_facts: list[dict[str, Fact]] = []
    for unit in units:
        facts = _facts(unit, source)
        model = str(facts["gpu.model"][0])
        groups[model] = groups.get(model, 0) + nodes
        if unit.name not in products:
            products.append(unit.name)
        all_facts.append(facts)
    notices = list(notices)
    if len(groups) > 1:
        notices.append(f"{source}: the GPUs differ; the weakest counts")
    facts = _weakest(all_facts)
    facts.update(count_facts(len(units), nodes, source))
    name = "+".join(f"{model}:{count}" for model, count in groups.items())
    return Target(name, " + ".join(products), facts, count=len(units) * nodes, nodes=nodes, notices=notices)


def _facts(device: Device, source: str) -> dict[str, Fact]:
    entry = _gpu_of(device)
    facts = gpu_facts(entry) if entry else {}
    facts["gpu.name"] = (device.name, source)
    if entry is None:
        facts["gpu.model"] = ("-".join(device.name.lower().replace("_", " ").split()), source)
        facts["gpu.vendor"] = ("nvidia", source)
        facts["gpu.mig"] = (device.mig is not None, source)
        if device.mig is not None:
            facts["gpu.mig_profile"] = (device.mig, source)
        if device.capability is not None:
            facts.update(_of_capability(device.capability))
    elif (
        device.total_mib and entry.nvml_mib and abs(device.total_mib - entry.nvml_mib) > entry.nvml_mib // 10
    ):
        # One product name, several sizes: RTX 4060 Ti with 8 GB, RTX 3080 with 12 GB, changed RTX 4090.
        for figure in ("gpu.vram", "gpu.vram_nominal", "gpu.bandwidth"):
            facts.pop(figure, None)
        entry = None
    if device.capability is not None:
        facts["gpu.capability"] = (device.capability, source)
    if device.total_mib is not None:
        facts["gpu.vram_nvml"] = (device.total_mib * MIB, source)
    usable = _usable(device, entry, source)
    if usable is not None:
        facts["gpu.vram"] = usable
    if device.free_mib is not None:
        facts["gpu.free"] = (device.free_mib * MIB, source)
    return facts


def _usable(device: Device, entry: Gpu | None, source: str) -> Fact | None:
    total, known_mib = device.total_mib, entry.usable_mib if entry else None
    if device.usable_mib is not None:
        if total is None:
            return device.usable_mib * MIB, source
        kept = total - device.usable_mib
        return device.usable_mib * MIB, f"{source}: {total} MiB less {kept} MiB that the driver keeps"
    if known_mib is not None and entry is not None:
        if total is None or known_mib <= total:
            return known_mib * MIB, f"catalogue: {entry.usable_why}"
        return total * MIB, source
    return (total * MIB, f"{source}: the whole memory; the driver's share is not reported") if total else None


def _of_capability(capability: float) -> dict[str, Fact]:
    source = f"derived from compute capability {capability}"
    facts: dict[str, Fact] = {f"gpu.{form}": (capability >= _SINCE[form], source) for form in FORMATS}
    arch = next((name for since, name in _ARCHITECTURES if capability >= since), None)
    if arch is not None:
        facts["gpu.arch"] = (arch, source)
    return facts


def _weakest(all_facts: list[dict[str, Fact]]) -> dict[str, Fact]:
    first, *others = all_facts
    merged: dict[str, Fact] = {}
    for name, fact in first.items():
        facts = [fact, *(weaker[name] for weaker in others if name in weaker)]
        if len(facts) < len(all_facts):
            continue
        values = [value for value, _ in facts]
        if all(value == values[0] for value in values):
            merged[name] = fact
        elif isinstance(values[0], str):
            if name in ("gpu.name", "gpu.model"):
                merged[name] = (" + ".join(dict.fromkeys(map(str, values))), fact[1])
        elif name == "gpu.mig":
            merged[name] = (True, fact[1])
        else:
            merged[name] = min(facts, key=_number)
    return merged


def _number(fact: Fact) -> float:
    value = fact[0]
    return float(value) if isinstance(value, (int, float)) else 0.0


# ── by a job ───────────────────────────────────────────────────────────────────────────────────────────────
def declared(job: Job | None) -> list[Target]:
    """Return the targets of a job, several where any of some GPUs will do.

    One that names no GPU that the catalogue knows has the number and the memory that the job asks for.
    """
    if job is None:
        return []
    kinds = [(job.kind, job.many), *job.others]
    box = job.memory_gb
    exact = f"-{box[0]}gb" if box is not None and box[0] == box[1] else ""
    named = [
        (_named(job, kind + exact, many) if exact else None) or _named(job, kind, many)
        for kind, many in kinds
        if kind
    ]
    targets = {target.name: target for target in named if target is not None}
    return list(targets.values()) or _unnamed(job)


def _spread(job: Job, per_node: int | None) -> tuple[int | None, int]:
    """Return GPUs in a node, and nodes; what nothing spreads is taken as one node."""
    nodes, total = job.count("nodes") or 1, job.count("gpus")
    per_node = per_node if per_node is not None else job.count("gpus_per_node")
    return (total, 1) if per_node is None and total is not None else (per_node, nodes)


def _named(job: Job, kind: str, many: int | None) -> Target | None:
    per_node, nodes = _spread(job, many)
    name = f"{kind}:{per_node}x{nodes}" if per_node else kind
    try:
        target = parse_target(name)
        if job.spread:
            return _of_any_number(job, target.name.partition(":")[0])
        if not per_node and nodes > 1 and target.count:  # a cloud's machine says how many it has
            target = parse_target(f"{name}:{target.count}x{nodes}")
    except HardwareError:
        return None
    if target.gpus_per_node and target.nodes:
        target.facts.update(count_facts(target.gpus_per_node, target.nodes, job.source))
    return target


def _of_any_number(job: Job, name: str) -> Target:
    """Return the target of a job on nodes whose number is not known; the total may be."""
    target, total = parse_target(name), job.count("gpus")
    if total:
        target.name, target.count = f"{name}:{total}", total
        target.facts["gpu.count"] = (total, job.source)
    return target


def _unnamed(job: Job) -> list[Target]:
    name, product = "gpu", "any GPU"
    facts: dict[str, Fact] = {}
    if job.memory_mib or job.memory_gb:
        # The cluster may give a larger one: what fits in this is sure to fit, what does not is not known.
        low, high, source = float((job.memory_mib or 0) * MIB), INF, f"{job.source} --gres=gpumem"
        name, product = f"{low / GIB:.2f}gib", "the job's GPU"
        if job.memory_gb:
            name, source = f"{job.memory_gb[0]}gb", job.source
            low, high = _least_and_most(*job.memory_gb)
        vram = Interval(low, high, frozenset({"gpu.vram"}))
        facts = {"gpu.name": (product, source), "gpu.vram": (vram, source)}
    per_node, nodes = _spread(job, None)
    if not per_node or (job.spread and job.count("gpus") is None):
        return [Target(name, product, facts)] if facts else []
    total = per_node * nodes
    if job.spread:
        facts["gpu.count"] = (total, job.source)
        return [Target(f"{name}:{total}", product, facts, count=total)]
    facts |= count_facts(per_node, nodes, job.source)
    return [Target(f"{name}:{total}", product, facts, count=total, nodes=nodes)]


def _least_and_most(low: int, high: int | None) -> tuple[float, float]:
    """Return the least and the most usable bytes of GPUs with ``low`` to ``high`` GB on the box."""
    sizes = [gpu.usable_mib for gpu in gpus() if gpu.usable_mib and low <= gpu.nominal_gb <= (high or INF)]
    return min(sizes, default=0) * MIB, max(sizes, default=INF) * MIB if high else INF


# ── sheets ─────────────────────────────────────────────────────────────────────────────────────────────────
def to_sheet(host: Host) -> dict[str, Any]:
    """Return the sheet of ``host``; devices that are alike stand together, MIG instances for themselves."""
    sheet: dict[str, Any] = {"cfglint": "hardware", "version": VERSION}
    sheet |= {key: value for key in ("driver", "cuda") if (value := getattr(host, key))}
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
        raise HardwareError(f"{path}: not valid JSON: {error}") from None
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
    devices = sheet.get("devices") if isinstance(sheet, dict) else None
    return (
        isinstance(sheet, dict)
        and sheet.keys() <= _SHEET
        and sheet.get("cfglint") == "hardware"
        and _count(sheet.get("version")) == VERSION
        and all(isinstance(sheet.get(key, ""), str) for key in ("$schema", "driver", "cuda"))
        and 0 < _count(sheet.get("nodes", 1)) <= _MOST
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
        and all(0 < _count(device.get(key, 1)) <= _MOST for key in _COUNTS)
        and _matches(r"[0-9]{1,2}\.[0-9]", device.get("capability", "1.0"))
        and _matches(_PROFILE, device.get("mig", "1g.1gb"))
    )


def _count(value: Any) -> int:
    """Return ``value`` if it is a whole number as JSON Schema counts them, else -1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _matches(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None


def _complaint(sheet: Any) -> str:
    """Return the first thing that the schema has against ``sheet``, and where."""
    import json

    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    from cfglint import files

    schema = json.loads(files.shipped_text(files.shipped_folder("schemas"), SCHEMA))
    error = best_match(Draft202012Validator(schema).iter_errors(sheet))
    if error is None:
        return "not a hardware sheet; write one with: cfglint hardware --json"
    return f"{error.json_path}: {error.message}"
