"""The catalogue of GPUs: read from ``catalogue.yaml`` once, then from the cache."""

from __future__ import annotations

import marshal
import os

from cfglint.cache import cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "catalogue.yaml"
# Raised with the shape of what _build returns: the cache knows the text, not this code.
SHAPE = "gpus2"
MIB = 1 << 20
GIB = 1 << 30

# What NVML or a label puts before the model; `quadro` and `titan` are part of it.
_MAKERS = ("nvidia", "amd", "instinct", "tesla", "geforce")
_FOLD = {ord(char): None for char in "-_ \t"}
_SPELLINGS = {"sxm": ("sxm", "sxm2", "sxm4", "sxm5"), "pcie": ("pcie", "pci")}


def fold(name: str) -> str:
    """Return ``name`` as names are compared: lower case, no separators, no maker."""
    folded = name.lower().translate(_FOLD)
    shorter = True
    while shorter:
        shorter = False
        for maker in _MAKERS:
            if folded.startswith(maker) and folded != maker:
                folded = folded[len(maker) :]
                shorter = True
    return folded


def usable_by_rule(nvml_mib: int) -> int:
    """Return what a driver leaves to programs of ``nvml_mib``, both in MiB, where it was never seen.

    400 MiB and 0.75 % is above every reserve that was seen, from 11 to 180 GiB.
    """
    return nvml_mib - 400 - -(-nvml_mib * 75 // 10_000)


class Gpu:
    """One GPU, or one MIG instance of it. Memory in MiB, bandwidth in GB/s, TFLOPS dense 16-bit.

    A figure that nobody knows is None. ``usable_why`` says where ``usable_mib`` comes from, ``unverified``
    names the figures that were not checked, ``estimated`` those that are computed.
    """

    __slots__ = (
        "aliases", "arch", "bandwidth_gbs", "capability", "cloud", "ecc", "estimated", "formats", "mig",
        "name", "nominal_gb", "note", "nvlink", "nvml_mib", "pcie", "product", "products", "source",
        "tflops", "unverified", "usable_mib", "usable_why", "vendor",
    )  # fmt: skip

    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        memory, chip = entry["memory"], entry["chip"]
        speed, board = entry.get("speed", {}), entry.get("board", {})
        product = entry["product"]
        self.name = name
        self.products: list[str] = product if isinstance(product, list) else [product]
        self.product: str = self.products[0]
        self.aliases: list[str] = entry.get("aliases", [])
        self.vendor: str = entry.get("vendor", "nvidia")
        self.arch: str = chip["arch"]
        self.capability: float | None = chip.get("capability")
        self.formats: list[str] = chip["formats"]
        self.nominal_gb: int = memory["nominal_gb"]
        self.nvml_mib: int | None = memory.get("nvml_mib")
        self.usable_mib: int | None = memory.get("usable_mib")
        self.usable_why = _usable_why(memory)
        self.bandwidth_gbs: float | None = speed.get("bandwidth_gbs")
        self.tflops: float | None = speed.get("tflops")
        self.nvlink: bool | str | None = board.get("nvlink")
        self.pcie: int | None = board.get("pcie")
        self.ecc: bool | None = board.get("ecc")
        self.cloud: dict[str, dict[str, int]] = entry.get("cloud", {})
        self.source: dict[str, str] = entry.get("source", {})
        self.unverified: list[str] = entry.get("unverified", [])
        self.estimated: list[str] = ["usable_mib"] if "estimate" in memory else []
        self.note: str | None = entry.get("note")
        self.mig: str | None = None

    def __repr__(self) -> str:
        return f"Gpu({self.name!r})"

    @property
    def usable(self) -> str:
        """The usable memory as text, such as ``44.42 GiB usable``."""
        if self.usable_mib is None:
            return "usable memory unknown"
        return f"{self.usable_mib / 1024:.2f} GiB usable"


def _usable_why(memory: dict[str, Any]) -> str:
    mib, estimate = memory.get("usable_mib"), memory.get("estimate")
    if estimate is None:
        return f"torch total_memory {mib} MiB, seen in public output"
    if estimate == "rule":
        return f"estimate, NVML's {memory['nvml_mib']} MiB less 400 MiB and 0.75 %"
    return f"estimate, as seen on {estimate}"


def read(file: str) -> str:
    """Return the text of a file beside this module, from a folder or from a zipped wheel."""
    path = os.path.join(os.path.dirname(__file__), file)
    try:
        with open(path, "rb") as stream:
            return stream.read().decode()
    except OSError:
        data: bytes = globals()["__loader__"].get_data(path)
        return data.decode()


_kept: dict[str, Any] = {}


def catalogue() -> dict[str, Any]:
    """Return the catalogue: ``gpus``, ``families``, ``mig``, and the indices ``exact``, ``loose``, ``cloud``.

    ``gpus`` and ``mig`` are packed, see ``entry`` and ``cuts``. ``exact`` leads from a folded name to its
    only GPU, ``loose`` from one to all GPUs that it may mean, ``cloud`` from an instance to its GPU and how
    many it has.
    """
    if not _kept:
        text = read(FILE)
        value: Any = cached(SHAPE, {FILE: text}, lambda: _build(text))
        _kept.update(value)
    return _kept


def entry(name: str) -> dict[str, Any]:
    """Return what the file says of the GPU with the canonical name ``name``; KeyError where there is none."""
    found: dict[str, Any] = marshal.loads(catalogue()["gpus"][name])  # noqa: S302 (packed by _build)
    return found


def gpu(name: str) -> Gpu:
    """Return the GPU whose canonical name is ``name`` (KeyError where there is none)."""
    return Gpu(name, entry(name))


def gpus() -> list[Gpu]:
    """Return all GPUs, in the catalogue's order."""
    return [gpu(name) for name in catalogue()["gpus"]]


def cuts() -> list[dict[str, Any]]:
    """Return what the file says of MIG."""
    found: list[dict[str, Any]] = marshal.loads(catalogue()["mig"])  # noqa: S302 (packed by _build)
    return found


def family(members: list[str]) -> str | None:
    """Return the canonical name that stands for exactly ``members``, None where none does."""
    for name, known in catalogue()["families"].items():
        if set(known) == set(members):
            return str(name)
    return None


def _build(text: str) -> dict[str, Any]:
    import yaml

    data: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    certain: dict[str, str] = {}
    meant: dict[str, list[str]] = {}
    cloud: dict[str, tuple[str, int]] = {}
    for name, one in data["gpus"].items():
        products = one["product"] if isinstance(one["product"], list) else [one["product"]]
        for own in (name, *products):
            certain[fold(own)] = name
        for alias in (name, *products, *one.get("aliases", []), *_family_names(one.get("family"))):
            key = fold(alias)
            # `rtx-a6000` is written `a6000`, `rtx-4090` is written `4090`.
            for spelling in (key, key[3:]) if key.startswith("rtx") else (key,):
                known = meant.setdefault(spelling, [])
                if name not in known:
                    known.append(name)
        for instances in one.get("cloud", {}).values():
            for instance, count in instances.items():
                cloud[fold(instance)] = (name, count)
    for name, members in data["families"].items():
        meant[fold(name)] = members
    return {
        # One GPU of seventy is wanted: packed, the others cost next to nothing to read.
        "gpus": {name: marshal.dumps(one) for name, one in data["gpus"].items()},
        "mig": marshal.dumps(data["mig"]),
        "families": data["families"],
        "exact": {**{key: names[0] for key, names in meant.items() if len(names) == 1}, **certain},
        "loose": {key: names for key, names in meant.items() if len(names) > 1 and key not in certain},
        "cloud": cloud,
    }


def _family_names(family: list[str] | None) -> list[str]:
    """Return the model with each choice of its other words, in each order and spelling."""
    if not family:
        return []
    from itertools import permutations, product

    model, *words = family
    spelled = [_SPELLINGS.get(word, (word, word[:-1]) if word.endswith("gb") else (word,)) for word in words]
    names = []
    for size in range(len(words) + 1):
        for chosen in permutations(spelled, size):
            names += ["-".join((model, *spelling)) for spelling in product(*chosen)]
    return names
