"""The catalogue of GPUs, and which of them a name means; ``catalogue.yaml`` is read once, then the cache.

Case, ``-``, ``_`` and blanks are one, and the maker may be left out. So all of these are names:

* the canonical ones: ``a40``, ``a100-80gb``, ``h100-sxm``, ``rtx-4090``
* short ones: ``4090``, ``a6000``, ``h100``; where several GPUs fit, the one with the least usable memory
* what NVML prints, the Kubernetes label and the Slurm type: ``NVIDIA A100-SXM4-80GB``,
  ``NVIDIA-H100-80GB-HBM3`` (``-SHARED`` too), ``nvidia_h100_80gb_hbm3``
* a cloud instance, with or without its provider: ``p4d.24xlarge``, ``aws:p4d.24xlarge``
* a MIG instance: ``a100-40gb-mig-1g.5gb``, ``a100-40gb.1g.5gb``, ``NVIDIA-A100-SXM4-40GB-MIG-1g.5gb``,
  ``a100_1g.5gb``, ``1g.5gb@a100``, or the profile alone: ``mig-1g.5gb``
"""

from __future__ import annotations

import marshal
import re

from cfglint import files
from cfglint.cache import cached
from cfglint.errors import HardwareError, did_you_mean
from cfglint.record import Record, field, fields, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "catalogue.yaml"
# Raised with the shape of what _build returns: the cache knows the text, not this code.
SHAPE = "gpus3"
MIB = 1 << 20
GIB = 1 << 30
PROVIDERS = ("aws", "azure", "gcp", "oci", "lambda", "runpod")

# What NVML or a label puts before the model; `quadro` and `titan` are part of it.
_MAKERS = ("nvidia", "amd", "instinct", "tesla", "geforce")
_FOLD = {ord(char): None for char in "-_ \t"}
_SPELLINGS = {"sxm": ("sxm", "sxm2", "sxm4", "sxm5"), "pcie": ("pcie", "pci")}
# On a folded name: `a10040gbmig1g.5gb`, `a10040gb.1g.5gb`, `1g.5gb@a100`, `.com/mig1g.5gb` of a Kubernetes
# resource. The digit before `g.` is the profile's, whatever the model ends in.
_MIG = r"(.*?)[.]?(?:mig)?(\d)g\.(\d+)gb((?:\+[a-z.]+)?)(?:@(.+))?"
# The least share of an eighth of the memory that any listed MIG profile gets.
_ESTIMATE = 0.87


class Gpu(Record):
    """One GPU, or one MIG instance of it. Memory in MiB, bandwidth in GB/s, TFLOPS dense 16-bit.

    A figure that nobody knows is None. ``usable_why`` says where ``usable_mib`` comes from, ``unverified``
    names the figures that were not checked, ``estimated`` those that are computed.
    """

    name: str
    products: list[str]
    arch: str
    formats: list[str]
    nominal_gb: int
    usable_why: str
    aliases: list[str] = field(factory=list)
    vendor: str = "nvidia"
    capability: float | None = None
    nvml_mib: int | None = None
    usable_mib: int | None = None
    bandwidth_gbs: float | None = None
    tflops: float | None = None
    nvlink: bool | str | None = None
    pcie: int | None = None
    ecc: bool | None = None
    cloud: dict[str, dict[str, int]] = field(factory=dict)
    source: dict[str, str] = field(factory=dict)
    unverified: list[str] = field(factory=list)
    estimated: list[str] = field(factory=list)
    note: str | None = None
    mig: str | None = None

    @property
    def product(self) -> str:
        """What NVML prints, the first where drivers differ."""
        return self.products[0]

    @property
    def usable(self) -> str:
        """The usable memory as text, such as ``44.42 GiB usable``."""
        if self.usable_mib is None:
            return "usable memory unknown"
        return f"{self.usable_mib / 1024:.2f} GiB usable"


class Match(Record):
    """The GPU that a name means.

    ``name`` is how reports print it, ``notice`` a sentence where the name meant more than one GPU (else
    None), ``count`` how many GPUs the name implies (a cloud instance; else None).
    """

    gpu: Gpu
    name: str
    notice: str | None = None
    count: int | None = None


# ── what the file says ─────────────────────────────────────────────────────────────────────────────────────
_kept: dict[str, Any] = {}


def catalogue() -> dict[str, Any]:
    """Return the catalogue: ``gpus``, ``families``, ``mig``, and ``names``.

    ``gpus`` and ``mig`` are packed, see ``entry`` and ``cuts``. ``names`` leads from a folded name to the
    canonical names of all GPUs that it may mean, and the number of GPUs that it implies.
    """
    if not _kept:
        text = files.shipped_text("hardware", FILE)
        value: Any = cached(SHAPE, {FILE: text}, lambda: _build(text))
        _kept.update(value)
    return _kept


def entry(name: str) -> dict[str, Any]:
    """Return what the file says of the GPU with the canonical name ``name``; KeyError where there is none."""
    content: dict[str, Any] = marshal.loads(catalogue()["gpus"][name])  # noqa: S302 (packed by _build)
    return content


def gpu(name: str) -> Gpu:
    """Return the GPU whose canonical name is ``name`` (KeyError where there is none)."""
    content = entry(name)
    memory = content["memory"]
    figures = content | content["chip"] | memory | content.get("speed", {}) | content.get("board", {})
    figures |= {"name": name, "products": _products(content), "usable_why": _usable_why(memory)}
    figures["estimated"] = ["usable_mib"] if "estimate" in memory else []
    return Gpu(**{name: figures[name] for name in fields(Gpu) if name in figures})


def gpus() -> list[Gpu]:
    """Return all GPUs, in the catalogue's order."""
    return [gpu(name) for name in catalogue()["gpus"]]


def cuts() -> list[dict[str, Any]]:
    """Return what the file says of MIG."""
    content: list[dict[str, Any]] = marshal.loads(catalogue()["mig"])  # noqa: S302 (packed by _build)
    return content


def _products(content: dict[str, Any]) -> list[str]:
    product = content["product"]
    return product if isinstance(product, list) else [product]


def _usable_why(memory: dict[str, Any]) -> str:
    mib, estimate = memory.get("usable_mib"), memory.get("estimate")
    if estimate is None:
        return f"torch total_memory {mib} MiB, seen in public output"
    if estimate == "rule":
        return f"estimate, NVML's {memory['nvml_mib']} MiB less 400 MiB and 0.75 %"
    return f"estimate, as seen on {estimate}"


def _build(text: str) -> dict[str, Any]:
    import yaml

    data: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    certain: dict[str, list[str]] = {}
    meant: dict[str, list[str]] = {}
    cloud: dict[str, tuple[list[str], int]] = {}
    for name, content in data["gpus"].items():
        own = (name, *_products(content))
        certain.update({key: [name] for key in map(fold, own)})
        for alias in (*own, *content.get("aliases", []), *_family_names(content.get("family"))):
            key = fold(alias)
            # `rtx-a6000` is written `a6000`, `rtx-4090` is written `4090`.
            for spelling in (key, key[3:]) if key.startswith("rtx") else (key,):
                members = meant.setdefault(spelling, [])
                if name not in members:
                    members.append(name)
        for instances in content.get("cloud", {}).values():
            cloud.update({fold(instance): ([name], count) for instance, count in instances.items()})
    meant.update({fold(name): members for name, members in data["families"].items()})
    return {
        # One GPU of seventy is wanted: packed, the others cost next to nothing to read.
        "gpus": {name: marshal.dumps(content) for name, content in data["gpus"].items()},
        "mig": marshal.dumps(data["mig"]),
        "families": data["families"],
        "names": {**cloud, **{key: (members, None) for key, members in {**meant, **certain}.items()}},
    }


def _family_names(family: list[str] | None) -> list[str]:
    """Return the model with each choice of its other words, in each order and spelling."""
    if not family:
        return []
    from itertools import permutations, product

    model, *words = family
    spelled = [_SPELLINGS.get(word, (word, word[:-1]) if word.endswith("gb") else (word,)) for word in words]
    return [
        "-".join((model, *spelling))
        for size in range(len(words) + 1)
        for chosen in permutations(spelled, size)
        for spelling in product(*chosen)
    ]


# ── names ──────────────────────────────────────────────────────────────────────────────────────────────────
def fold(name: str) -> str:
    """Return ``name`` as names are compared: lower case, no separators, no maker."""
    folded = name.lower().translate(_FOLD)
    while maker := next((m for m in _MAKERS if folded.startswith(m) and folded != m), ""):
        folded = folded[len(maker) :]
    return folded


def lookup(name: str) -> tuple[list[str], int | None]:
    """Return the canonical names that ``name`` may mean, and how many GPUs it implies; none where unknown."""
    members, count = catalogue()["names"].get(fold(name), ((), None))
    return list(members), count


def find(name: str) -> Match:
    """Return the GPU that ``name`` means; HardwareError names the nearest where nobody knows it."""
    provider, colon, rest = name.partition(":")
    key = fold(rest if colon and provider.strip().lower() in PROVIDERS else name)
    members, count = lookup(key)
    notice = None
    if not members and key.endswith("shared"):
        key = key[:-6]
        members, count = lookup(key)
        notice = f"{name} is shared by time slicing: other jobs use the same memory"
    if members:
        chosen, ambiguous = _least(name, [gpu(member) for member in members])
        if count is not None:
            return Match(chosen, chosen.name, f"{name} has {count} x {chosen.product}", count)
        notice = "; ".join(filter(None, (ambiguous, notice))) or None
        return Match(chosen, (_family(members) if len(members) > 1 else None) or chosen.name, notice)
    form = re.fullmatch(_MIG, key) if "g." in key else None
    if form is None:
        raise HardwareError(_unknown(name))
    return _mig(name, form)


def _candidates(name: str) -> list[str]:
    """Return the canonical names of all GPUs that ``name`` may mean (HardwareError where there is none)."""
    members, count = lookup(name)
    if not members or count is not None:
        raise HardwareError(_unknown(name))
    return members


def _family(members: list[str]) -> str | None:
    """Return the canonical name that stands for exactly ``members``, None where none does."""
    families = catalogue()["families"].items()
    return next((str(name) for name, held in families if set(held) == set(members)), None)


def _unknown(name: str) -> str:
    """Return the message for a ``name`` that no GPU has, with the nearest names."""
    data = catalogue()
    canonical = {fold(gpu): gpu for gpu in (*data["gpus"], *data["families"])}
    hint = did_you_mean(fold(name), [key for key, (_, count) in data["names"].items() if count is None])
    for folded, spelled in canonical.items():
        hint = hint.replace(f"'{folded}'", f"'{spelled}'")
    return f"unknown GPU {name!r}{hint or ';'} list them: cfglint gpus"


def _least(name: str, meant: list[Gpu]) -> tuple[Gpu, str | None]:
    """Return the GPU with the least usable memory, and the sentence that says so where there are others."""
    chosen, *others = sorted(meant, key=lambda gpu: gpu.usable_mib or 1 << 40)
    if not others:
        return chosen, None
    rest = ", ".join(f"{gpu.name} ({gpu.usable})" for gpu in others)
    return chosen, (
        f"{name} is taken as {chosen.name} ({chosen.usable}), the least of what it may mean; others: {rest}"
    )


# ── MIG instances: a profile such as ``1g.10gb`` of a GPU that can be cut ───────────────────────────────────
def _mig(name: str, form: re.Match[str]) -> Match:
    """Return the instance that ``name`` means; HardwareError where the GPU is unknown or cannot be cut so."""
    before, slices, gigabytes, extra, after = form.groups()
    profile = f"{slices}g.{gigabytes}gb{extra}"
    parent = after or before.removeprefix(".com/").rstrip("/")
    able = _able()
    if parent:
        members = _candidates(parent)
    else:
        members = [member for member, cut in able.items() if profile in cut["profiles"]]
        if not members:
            raise HardwareError(f"no GPU in {name!r}; write it before: --gpu a100-80gb-mig-{profile}")
    listed = [m for m in members if m in able and profile in able[m]["profiles"]]
    possible = listed or [m for m in members if m in able and _fits(gpu(m), able[m], profile)]
    if not possible:
        raise HardwareError(_refusal(profile, members, able))
    chosen, notice = _least(name, [instance(gpu(member), profile) for member in possible])
    base = _family(possible)
    if base is not None:
        return Match(chosen, f"{base}-mig-{profile}")
    return Match(chosen, chosen.name, notice)


def instance(parent: Gpu, profile: str) -> Gpu:
    """Return the instance ``profile`` of ``parent``; figures that no one measured are shares of the GPU's."""
    cut = _able().get(parent.name)
    if cut is None:
        raise HardwareError(f"{parent.name} cannot be cut into MIG instances")
    compute, gigabytes = _sizes(profile)
    share = min(max(round(gigabytes * cut["memory_slices"] / parent.nominal_gb), 1), cut["memory_slices"])
    share /= cut["memory_slices"]
    gib = cut["profiles"].get(profile, {}).get("gib")
    usable, why, estimated = parent.usable_mib, parent.usable_why, ["tflops", "bandwidth_gbs"]
    if gib is not None:
        # 7g is the whole GPU, whose own figure may be the smaller one.
        usable = min(int(gib * 1024), usable or 1 << 40)
        checked = profile not in cut.get("unverified", ())
        why = f"{gib} GiB, " + (cut["source"] if checked else "MIG user guide, unverified")
    elif usable is not None:
        why = f"estimate, {_ESTIMATE} of {share:g} of {parent.name}'s {usable} MiB"
        usable = int(usable * share * _ESTIMATE)
        estimated.append("usable_mib")
    return replace(
        parent,
        name=f"{parent.name}-mig-{profile}",
        products=[f"{parent.product} MIG {profile}"],
        mig=profile,
        nominal_gb=gigabytes,
        nvml_mib=None,
        nvlink=False,
        source={},
        usable_mib=usable,
        usable_why=why,
        estimated=estimated,
        tflops=None if parent.tflops is None else parent.tflops * compute / cut["slices"],
        bandwidth_gbs=None if parent.bandwidth_gbs is None else parent.bandwidth_gbs * share,
    )


def _able() -> dict[str, dict[str, Any]]:
    """Return how each GPU can be cut that can."""
    return {member: cut for cut in cuts() for member in cut["gpus"]}


def _sizes(profile: str) -> tuple[int, int]:
    compute, _, memory = profile.partition("+")[0].partition("g.")
    return int(compute), int(memory.removesuffix("gb"))


def _fits(parent: Gpu, cut: dict[str, Any], profile: str) -> bool:
    compute, gigabytes = _sizes(profile)
    smallest = parent.nominal_gb / cut["memory_slices"]
    return bool(1 <= compute <= cut["slices"] and 0.8 * smallest <= gigabytes <= parent.nominal_gb)


def _refusal(profile: str, members: list[str], able: dict[str, dict[str, Any]]) -> str:
    name = next((member for member in members if member in able), None)
    if name is None:
        return f"{members[0]} cannot be cut into MIG instances; write --gpu {members[0]}"
    listed = ", ".join(able[name]["profiles"])
    has = f"it has {listed}" if listed else f"its memory is {gpu(name).nominal_gb} GB"
    return f"no MIG profile {profile} on {name}; {has}"
