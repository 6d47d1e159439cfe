"""A target: the GPUs that a config is judged for, as facts with their sources.

One is named (``--gpu rtx-4090:8``) or asked for by a job (``#SBATCH --gpus=rtx_4090:4``,
``accelerators: A100-80GB:8``).
"""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import GIB, MIB, PROVIDERS, Gpu, find, gpus
from cfglint.lang.values import INF, Interval
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.job import Job

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

    ``name`` is how reports print it (``a40``; with a number the total: ``rtx-4090:16``), ``gpu`` the product
    as NVML prints it. ``count`` is the number of GPUs in all nodes, None where the config's own number
    holds. ``facts`` maps ``gpu.…`` to a value in base units (bytes, bytes/s, flop/s) and its source; what
    is not known is not there.
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


def _turned_round(text: str) -> None:
    """Raise the better message for ``8xA100``."""
    count, x, name = text.strip().lower().partition("x")
    if x and count.strip().isdecimal():
        try:
            find(name)
        except HardwareError:
            return
        raise HardwareError(f"{text!r} is turned round; write --gpu {name.strip()}:{count.strip()}") from None


# ── by a job ───────────────────────────────────────────────────────────────────────────────────────────────
def declared(job: Job | None) -> list[Target]:
    """Return the targets of a job, several where any of some GPUs will do.

    One that names no GPU that the catalogue knows has the number and the memory that the job asks for.
    """
    if job is None:
        return []
    kinds = [(job.kind, job.many), *job.others]
    named = [_named(job, kind, many) for kind, many in kinds if kind]
    targets = {target.name: target for target in named if target is not None}
    return list(targets.values()) or _unnamed(job)


def _spread(job: Job, per_node: int | None) -> tuple[int | None, int]:
    """Return GPUs in a node, and nodes; what nothing spreads is taken as one node."""
    nodes, total = job.count("nodes") or 1, job.count("gpus")
    per_node = per_node if per_node is not None else job.count("gpus_per_node")
    return (total, 1) if per_node is None and total is not None else (per_node, nodes)


def _named(job: Job, kind: str, many: int | None) -> Target | None:
    per_node, nodes = _spread(job, many)
    name = kind
    if per_node:
        name += f":{per_node}x{nodes}" if nodes > 1 else f":{per_node}"
    try:
        target = parse_target(name)
        if not per_node and nodes > 1 and target.count:  # a cloud's machine says how many it has
            target = parse_target(f"{name}:{target.count}x{nodes}")
    except HardwareError:
        return None
    for fact in {"gpu.count", "gpu.per_node", "gpu.nodes"} & target.facts.keys():
        target.facts[fact] = (target.facts[fact][0], job.source)
    return target


def _unnamed(job: Job) -> list[Target]:
    name, product = "gpu", "any GPU"
    facts: dict[str, Fact] = {}
    if job.memory_mib:
        name, product = f"{job.memory_mib / 1024:.2f}gib", "the job's GPU"
        source = f"{job.source} --gres=gpumem"
        # The cluster may give a larger one: what fits in this is sure to fit, what does not is not known.
        vram = Interval(job.memory_mib * MIB, INF, frozenset({"gpu.vram"}))
        facts = {"gpu.name": (product, source), "gpu.vram": (vram, source)}
    per_node, nodes = _spread(job, None)
    if not per_node:
        return [Target(name, product, facts)] if facts else []
    total = per_node * nodes
    facts |= count_facts(per_node, nodes, job.source)
    return [Target(f"{name}:{total}", product, facts, count=total, nodes=nodes)]


# ── facts ──────────────────────────────────────────────────────────────────────────────────────────────────
def count_facts(per_node: int, nodes: int, source: str) -> dict[str, Fact]:
    """Return the facts of ``nodes`` nodes with ``per_node`` GPUs each."""
    return {
        "gpu.count": (per_node * nodes, source),
        "gpu.per_node": (per_node, source),
        "gpu.nodes": (nodes, source),
    }


def gpu_facts(gpu: Gpu) -> dict[str, Fact]:
    """Return what the catalogue knows of one GPU, in base units."""

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
