"""What a machine has, measured by NVML or stated by a hardware sheet, and the target that it makes."""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import MIB, Gpu, catalogue, fold, gpu
from cfglint.hardware.target import FORMATS, Target, count_facts, gpu_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.hardware.target import Fact

# Architectures by the compute capability that they begin with, the newest first.
_ARCHITECTURES = (
    (10.0, "Blackwell"), (9.0, "Hopper"), (8.9, "Ada"), (8.0, "Ampere"), (7.5, "Turing"), (7.0, "Volta"),
    (6.0, "Pascal"),
)  # fmt: skip
# Capability from which tensor cores know a format.
_SINCE = {"bf16": 8.0, "tf32": 8.0, "fp8": 8.9, "fp4": 10.0}


class Device:
    """One GPU or one MIG instance (``mig`` is its profile). Memory in MiB, utilisation in per cent.

    ``computes`` is whether a process computes on it now.

    ``reserved_mib`` is what the driver keeps for itself; ``instances`` are those of a GPU in MIG mode. None
    is what nobody said.
    """

    __slots__ = (
        "capability", "computes", "free_mib", "index", "instances", "mig", "mig_mode", "name", "reserved_mib",
        "total_mib", "usable_mib", "utilisation",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        index: int = 0,
        total_mib: int | None = None,
        free_mib: int | None = None,
        reserved_mib: int | None = None,
        usable_mib: int | None = None,
        capability: float | None = None,
        mig: str | None = None,
        mig_mode: bool | None = None,
        utilisation: int | None = None,
        computes: bool = False,
    ) -> None:
        self.index = index
        self.name = name
        self.total_mib = total_mib
        self.free_mib = free_mib
        self.reserved_mib = reserved_mib
        self.capability = capability
        self.mig = mig
        self.mig_mode = mig_mode
        self.utilisation = utilisation
        self.computes = computes
        self.instances: list[Device] = []
        if usable_mib is None and total_mib is not None and reserved_mib is not None:
            usable_mib = total_mib - reserved_mib
        self.usable_mib = usable_mib


class Host:
    """A machine: its driver's version, the CUDA version that the driver supports, and its GPUs."""

    __slots__ = ("cuda", "devices", "driver", "nodes")

    def __init__(
        self, devices: list[Device], *, driver: str | None = None, cuda: str | None = None, nodes: int = 1
    ) -> None:
        self.devices = devices
        self.driver = driver
        self.cuda = cuda
        self.nodes = nodes

    def units(self) -> list[Device]:
        """What a job can use: MIG instances where a GPU is cut, else the GPU."""
        return [
            unit for device in self.devices for unit in (device.instances if device.mig_mode else [device])
        ]


def known(device: Device) -> Gpu | None:
    """Return what the catalogue has under the device's product name, None where it has nothing."""
    canonical = catalogue()["exact"].get(fold(device.name.partition(" MIG ")[0]))
    if canonical is None:
        return None
    if device.mig is None:
        return gpu(str(canonical))
    from cfglint.hardware import mig

    try:
        return mig.instance(gpu(str(canonical)), device.mig)
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
    said = list(notices)
    if len(groups) > 1:
        said.append(f"{source}: the GPUs differ; for each figure the weakest holds")
    facts = _weakest(all_facts)
    facts.update(count_facts(len(units), nodes, source))
    name = "+".join(f"{model}:{count}" for model, count in groups.items())
    return Target(name, " + ".join(products), facts, count=len(units) * nodes, nodes=nodes, notices=said)


def _facts(device: Device, source: str) -> dict[str, Fact]:
    entry = known(device)
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
    return (total * MIB, f"{source}: the whole memory, what the driver keeps is unknown") if total else None


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
        facts = [fact, *(other[name] for other in others if name in other)]
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
