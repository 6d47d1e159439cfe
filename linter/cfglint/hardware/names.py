"""Finds the GPU that a name means.

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

from cfglint.errors import HardwareError, did_you_mean
from cfglint.hardware.catalogue import Gpu, catalogue, family, fold, gpu

PROVIDERS = ("aws", "azure", "gcp", "oci", "lambda", "runpod")


class Match:
    """The GPU that a name means.

    ``name`` is how reports print it, ``notice`` a sentence where the name meant more than one GPU (else
    None), ``count`` how many GPUs the name implies (a cloud instance; else None).
    """

    __slots__ = ("count", "gpu", "name", "notice")

    def __init__(self, found: Gpu, name: str, notice: str | None = None, count: int | None = None) -> None:
        self.gpu = found
        self.name = name
        self.notice = notice
        self.count = count

    def __repr__(self) -> str:
        return f"Match({self.gpu.name!r}, {self.name!r}, {self.notice!r}, {self.count!r})"


def find(name: str) -> Match:
    """Return the GPU that ``name`` means; HardwareError names the nearest where nobody knows it."""
    data = catalogue()
    key = fold(_without_provider(name))
    notice = None
    if key.endswith("shared") and key not in data["exact"]:
        key = key[:-6]
        notice = f"{name} is shared by time slicing: other jobs use the same memory"
    if key in data["exact"]:
        canonical = data["exact"][key]
        return Match(gpu(canonical), canonical, notice)
    if key in data["loose"]:
        members = data["loose"][key]
        found, several = least(name, [gpu(member) for member in members])
        return Match(found, family(members) or found.name, "; ".join(filter(None, (several, notice))) or None)
    if key in data["cloud"]:
        canonical, count = data["cloud"][key]
        found = gpu(canonical)
        return Match(found, canonical, f"{name} has {count} x {found.product}", count)
    if "g." in key:
        from cfglint.hardware import mig

        instance = mig.find(name, key)
        if instance is not None:
            return instance
    raise HardwareError(unknown(name))


def candidates(name: str) -> list[str]:
    """Return the canonical names of all GPUs that ``name`` may mean (HardwareError where there is none)."""
    data = catalogue()
    key = fold(name)
    if key in data["exact"]:
        return [data["exact"][key]]
    if key in data["loose"]:
        return list(data["loose"][key])
    raise HardwareError(unknown(name))


def unknown(name: str) -> str:
    """Return the message for a ``name`` that no GPU has, with the nearest names."""
    data = catalogue()
    canonical = {fold(known): known for known in (*data["gpus"], *data["families"])}
    hint = did_you_mean(fold(name), {**data["exact"], **data["loose"], **canonical})
    for folded, known in canonical.items():
        hint = hint.replace(f"'{folded}'", f"'{known}'")
    return f"unknown GPU {name!r}{hint or ';'} list them: cfglint gpus"


def _without_provider(name: str) -> str:
    provider, colon, rest = name.partition(":")
    return rest if colon and provider.strip().lower() in PROVIDERS else name


def least(name: str, found: list[Gpu]) -> tuple[Gpu, str | None]:
    """Return the GPU with the least usable memory, and the sentence that says so where there are others."""
    chosen, *others = sorted(found, key=lambda one: one.usable_mib or 1 << 40)
    if not others:
        return chosen, None
    rest = ", ".join(f"{other.name} ({other.usable})" for other in others)
    return chosen, (
        f"{name} is taken as {chosen.name} ({chosen.usable}), the least of what it may mean; others: {rest}"
    )
