"""A target: the GPUs that a config is checked for, as facts with their sources (``--gpu rtx-4090:8``)."""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import GIB, MIB, PROVIDERS, Gpu, Match, gpu, gpus, lookup
from cfglint.record import Record, field

Fact = tuple[object, str]

FORMATS = ("bf16", "tf32", "fp8", "fp4")
# Facts that are a figure of the catalogue, in base units.
_FIGURES = (
    ("gpu.vram_nvml", "nvml_mib", MIB),
    ("gpu.capability", "capability", 1),
    ("gpu.bandwidth", "bandwidth_gbs", 1e9),
    ("gpu.tflops", "tflops", 1e12),
)


class Target(Record):
    """The GPUs of one machine or job, all alike (the weakest figures hold where they are not).

    ``name`` is how reports print it (``a40``; with the numbers that were typed: ``rtx-4090:8x2``), ``gpu``
    the product as NVML prints it. ``count`` is the number of GPUs in all nodes, None where the config's own
    number holds. ``facts`` maps ``gpu.…`` to a value in base units (bytes, bytes/s, flop/s) and its source;
    what is not known is not there.
    """

    name: str
    gpu: str
    facts: dict[str, Fact]
    count: int | None = field(default=None, kw_only=True)
    nodes: int | None = field(default=None, kw_only=True)
    notices: list[str] = field(factory=list, kw_only=True)

    @property
    def gpus_per_node(self) -> int | None:
        """The GPUs of each node, None where the config's own number holds."""
        return self.count // self.nodes if self.count is not None and self.nodes else None

    @property
    def vram_gib(self) -> float | None:
        """Usable memory of one GPU in GiB, None where unknown."""
        fact = self.facts.get("gpu.vram")
        return fact[0] / GIB if fact and isinstance(fact[0], int) else None


# ── by name ────────────────────────────────────────────────────────────────────────────────────────────────
def parse_target(text: str) -> Target:
    """Return the target for ``NAME[:N[xNODES]]``: N GPUs in each of NODES nodes.

    Raises HardwareError for an unknown name or an invalid number.
    """
    name, number = _split(text)
    if not name:
        raise HardwareError(f"no GPU in {text!r}; write a name like --gpu rtx-4090 or --gpu rtx-4090:8")
    per_node, nodes = _numbers(text, name, number) if number else (None, 1)
    members, several = lookup(name)
    if len(members) == 1 and several is None:
        match = Match(gpu(members[0]), members[0])
    else:
        from cfglint.hardware.names import find_asked

        match = find_asked(text, name)
    if per_node is None:
        per_node = match.count
    facts = gpu_facts(match.gpu)
    notices = [match.notice] if match.notice else []
    if per_node is None:
        return Target(match.name, match.gpu.product, facts, notices=notices)
    facts.update(count_facts(per_node, nodes, f"--gpu {text.strip()}"))
    total = per_node * nodes
    return Target(
        f"{match.name}:{total}", match.gpu.product, facts, count=total, nodes=nodes, notices=notices
    )


def all_targets() -> list[Target]:
    """Return one target for each GPU of the catalogue, without a number of GPUs."""
    return [Target(gpu.name, gpu.product, gpu_facts(gpu)) for gpu in gpus()]


def _split(text: str) -> tuple[str, str]:
    name, colon, number = text.strip().partition(":")
    if name.strip().lower() in PROVIDERS:
        instance, _, number = number.partition(":")
        name = f"{name}:{instance}"
    elif colon and not number.strip():
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


# ── facts ──────────────────────────────────────────────────────────────────────────────────────────────────
def count_facts(per_node: int, nodes: int, source: str) -> dict[str, Fact]:
    """Return the facts of ``nodes`` nodes with ``per_node`` GPUs each."""
    return {
        "gpu.count": (per_node * nodes, source),
        "gpu.per_node": (per_node, source),
        "gpu.nodes": (nodes, source),
        "gpu.stated": (True, source),
    }


def gpu_facts(gpu: Gpu) -> dict[str, Fact]:
    """Return the catalogue's ``gpu.*`` facts of one GPU, in base units (bytes, bytes/s, FLOP/s)."""

    def why(figure: str) -> str:
        if figure in gpu.estimated:
            return "catalogue: estimate"
        if figure in gpu.unverified:
            return "catalogue: unverified"
        source = gpu.source.get(figure)
        return f"catalogue: {source}" if source else "catalogue"

    facts: dict[str, Fact] = {
        "gpu.name": (gpu.product, "catalogue"),
        "gpu.model": (gpu.name, "catalogue"),
        "gpu.vendor": (gpu.vendor, "catalogue"),
        "gpu.arch": (gpu.arch, why("arch")),
        "gpu.vram_nominal": (gpu.nominal_gb * 10**9, why("nominal_gb")),
        "gpu.mig": (gpu.mig is not None, "catalogue"),
    }
    if gpu.usable_mib is not None:
        facts["gpu.vram"] = (gpu.usable_mib * MIB, f"catalogue: {gpu.usable_why}")
    for name, figure, unit in _FIGURES:
        value = getattr(gpu, figure)
        if value is not None:
            facts[name] = (value * unit, why(figure))
    if isinstance(gpu.nvlink, bool):
        # A bridge may be fitted or not, and c2c leads to the CPU: then it is not known.
        facts["gpu.nvlink"] = (gpu.nvlink, why("nvlink"))
    if gpu.mig is not None:
        facts["gpu.mig_profile"] = (gpu.mig, "catalogue")
    for form in FORMATS:
        if gpu.vendor == "nvidia" or form in gpu.formats or form != "tf32":
            facts[f"gpu.{form}"] = (form in gpu.formats, why("formats"))
    return facts
