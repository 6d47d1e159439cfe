"""A target: the GPUs that a config is judged for, as facts with their sources."""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import GIB, MIB, Gpu, gpus
from cfglint.hardware.names import PROVIDERS, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    Fact = tuple[object, str]

FORMATS = ("bf16", "tf32", "fp8", "fp4")


class Target:
    """The GPUs of one machine or job, all alike (the weakest figures hold where they are not).

    ``name`` is how reports print it (``a40``; with a number the total: ``rtx-4090:16``), ``gpu`` the product
    as NVML prints it. ``count`` is the number of GPUs in all nodes, None where the config's own number
    holds. ``facts`` maps ``gpu.…`` to a value in base units (bytes, bytes/s, flop/s) and its source; what
    is not known is not there.
    """

    __slots__ = ("count", "facts", "gpu", "gpus_per_node", "name", "nodes", "notices")

    def __init__(
        self,
        name: str,
        gpu: str,
        facts: dict[str, Fact],
        *,
        count: int | None = None,
        nodes: int | None = None,
        notices: list[str] | None = None,
    ) -> None:
        self.name = name
        self.gpu = gpu
        self.facts = facts
        self.count = count
        self.nodes = nodes
        self.gpus_per_node = count // nodes if count is not None and nodes else None
        self.notices = notices or []

    def __repr__(self) -> str:
        return f"Target({self.name!r}, {self.gpu!r}, count={self.count})"

    @property
    def vram_gib(self) -> float | None:
        """Usable memory of one GPU in GiB, None where unknown."""
        fact = self.facts.get("gpu.vram")
        return fact[0] / GIB if fact and isinstance(fact[0], int) else None


def parse_target(text: str) -> Target:
    """Return the target that ``NAME[:N[xNODES]]`` means: N GPUs in each of NODES nodes.

    Raises HardwareError where the name is unknown or the number is none.
    """
    name, number = _split(text)
    if not name:
        raise HardwareError(f"no GPU in {text!r}; write a name like --gpu rtx-4090 or --gpu rtx-4090:8")
    per_node, nodes = _numbers(text, name, number) if number else (None, 1)
    try:
        match = find(name)
    except HardwareError:
        _turned_round(text)
        raise
    if per_node is None:
        per_node = match.count
    facts = gpu_facts(match.gpu)
    notices = [match.notice] if match.notice else []
    if per_node is None:
        return Target(match.name, match.gpu.product, facts, notices=notices)
    source = f"--gpu {text.strip()}"
    facts.update(count_facts(per_node, nodes, source))
    total = per_node * nodes
    return Target(
        f"{match.name}:{total}", match.gpu.product, facts, count=total, nodes=nodes, notices=notices
    )


def all_targets() -> list[Target]:
    """Return one target for each GPU of the catalogue, without a number of GPUs."""
    return [Target(one.name, one.product, gpu_facts(one)) for one in gpus()]


def _split(text: str) -> tuple[str, str]:
    name, _, number = text.strip().partition(":")
    if name.strip().lower() in PROVIDERS:
        instance, _, number = number.partition(":")
        name = f"{name}:{instance}"
    elif _ and not number.strip():
        number = "nothing"  # `a40:` is a number left out, not a name
    return name.strip(), number.strip()


def _numbers(text: str, name: str, number: str) -> tuple[int, int]:
    per_node, x, nodes = number.lower().replace(" ", "").partition("x")
    # isdecimal() would take digits of other scripts and int() underscores.
    if per_node.isascii() and per_node.isdigit() and (not x or (nodes.isascii() and nodes.isdigit())):
        counts = int(per_node[:9]), int(nodes[:9] or 1)
        if min(counts) >= 1 and max(len(per_node), len(nodes)) <= 9:
            return counts
    raise HardwareError(
        f"{text!r}: no number of GPUs after the colon; write --gpu {name}:8, or --gpu {name}:8x2 for 2 nodes"
    )


def _turned_round(text: str) -> None:
    """Raise the better message for ``8xA100``."""
    count, x, name = text.strip().lower().partition("x")
    if x and count.strip().isdecimal():
        try:
            find(name)
        except HardwareError:
            return
        raise HardwareError(f"{text!r} is turned round; write --gpu {name.strip()}:{count.strip()}") from None


def count_facts(per_node: int, nodes: int, source: str) -> dict[str, Fact]:
    """Return the facts of ``nodes`` nodes with ``per_node`` GPUs each."""
    return {
        "gpu.count": (per_node * nodes, source),
        "gpu.per_node": (per_node, source),
        "gpu.nodes": (nodes, source),
    }


def gpu_facts(one: Gpu) -> dict[str, Fact]:
    """Return what the catalogue knows of ``one`` GPU, in base units."""

    def why(figure: str) -> str:
        if figure in one.estimated:
            return "catalogue: estimate"
        if figure in one.unverified:
            return "catalogue: unverified"
        source = one.source.get(figure)
        return f"catalogue: {source}" if source else "catalogue"

    facts: dict[str, Fact] = {
        "gpu.name": (one.product, "catalogue"),
        "gpu.model": (one.name, "catalogue"),
        "gpu.vendor": (one.vendor, "catalogue"),
        "gpu.arch": (one.arch, why("arch")),
        "gpu.vram_nominal": (one.nominal_gb * 10**9, why("nominal_gb")),
        "gpu.mig": (one.mig is not None, "catalogue"),
    }
    if one.usable_mib is not None:
        facts["gpu.vram"] = (one.usable_mib * MIB, f"catalogue: {one.usable_why}")
    if one.nvml_mib is not None:
        facts["gpu.vram_nvml"] = (one.nvml_mib * MIB, why("nvml_mib"))
    if one.capability is not None:
        facts["gpu.capability"] = (one.capability, why("capability"))
    if one.bandwidth_gbs is not None:
        facts["gpu.bandwidth"] = (one.bandwidth_gbs * 1e9, why("bandwidth_gbs"))
    if one.tflops is not None:
        facts["gpu.tflops"] = (one.tflops * 1e12, why("tflops"))
    if isinstance(one.nvlink, bool):
        # A bridge may be fitted or not, and c2c leads to the CPU: then it is not known.
        facts["gpu.nvlink"] = (one.nvlink, why("nvlink"))
    if one.mig is not None:
        facts["gpu.mig_profile"] = (one.mig, "catalogue")
    for form in FORMATS:
        if one.vendor == "nvidia" or form in one.formats or form != "tf32":
            facts[f"gpu.{form}"] = (form in one.formats, why("formats"))
    return facts
