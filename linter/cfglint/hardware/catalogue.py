"""The catalogue of GPUs; ``catalogue.yaml`` is read once, then the cache. What a name means: names.py."""

from __future__ import annotations

import marshal
from functools import cache

from cfglint import files
from cfglint.cache import cached
from cfglint.record import Record, field, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "catalogue.yaml"
# Raised with the shape of what _build returns: the cache knows the text, not this code.
SHAPE = "gpus4"
MIB = 1 << 20
GIB = 1 << 30
PROVIDERS = ("aws", "azure", "gcp", "oci", "lambda", "runpod")

# What NVML or a label puts before the model; `quadro` and `titan` are part of it.
_MAKERS = ("nvidia", "amd", "instinct", "tesla", "geforce")
_FOLD = {ord(char): None for char in "-_ \t"}
_SPELLINGS = {"sxm": ("sxm", "sxm2", "sxm4", "sxm5"), "pcie": ("pcie", "pci")}


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
    vendor: str = "nvidia"
    capability: float | None = None
    nvml_mib: int | None = None
    usable_mib: int | None = None
    bandwidth_gbs: float | None = None
    tflops: float | None = None
    nvlink: bool | str | None = None
    source: dict[str, str] = field(factory=dict)
    unverified: list[str] = field(factory=list)
    estimated: list[str] = field(factory=list)
    mig: str | None = None

    @property
    def product(self) -> str:
        """What NVML prints, the first where drivers differ."""
        return self.products[0]

    @property
    def usable(self) -> str:
        """The usable memory as text, such as ``44.42 GiB usable``."""
        if self.usable_mib is None:
            return "usable memory not published"
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
@cache
def catalogue() -> dict[str, Any]:
    """Return the catalogue: ``gpus``, ``families``, ``mig``, and ``names``.

    ``gpus`` and ``mig`` are packed, see ``entry`` and ``cuts``. ``names`` leads from a folded name to the
    canonical names of all GPUs that it may mean, and the number of GPUs that it implies.
    """
    text = files.shipped_text("hardware", FILE)
    content: Any = cached(SHAPE, {FILE: text}, lambda: _build(text))
    return content  # type: ignore[no-any-return]


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
        for provider, instances in content.get("cloud", {}).items():
            for prefix in ("", "ml.") if provider == "aws" else ("",):  # as SageMaker calls them
                cloud.update({fold(prefix + key): ([name], count) for key, count in instances.items()})
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
