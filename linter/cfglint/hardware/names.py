"""Which GPU a name means that is not simply one of the catalogue's, and what to say where it means none.

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
from contextlib import suppress

from cfglint.errors import HardwareError, did_you_mean
from cfglint.hardware.catalogue import PROVIDERS, Gpu, Match, catalogue, fold, gpu, lookup
from cfglint.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# On a folded name: `a10040gbmig1g.5gb`, `a10040gb.1g.5gb`, `1g.5gb@a100`, `.com/mig1g.5gb` of a Kubernetes
# resource. The digit before `g.` is the profile's, whatever the model ends in.
_MIG = r"(.*?)[.]?(?:mig)?([0-9])g\.([0-9]{1,6})gb((?:\+[a-z.]+)?)(?:@(.+))?"
# The least share of an eighth of the memory that any listed MIG profile gets.
_ESTIMATE = 0.87


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


def find_asked(text: str, name: str) -> Match:
    """Return the GPU that ``name`` means in ``text``; raises a better message for ``8xA100``."""
    try:
        return find(name)
    except HardwareError as unknown:
        error = unknown
    count, x, turned = (part.strip() for part in text.strip().lower().partition("x"))
    if x and count.isdecimal():
        with suppress(HardwareError):
            find(turned)
            error = HardwareError(f"{text!r} has its parts swapped; write --gpu {turned}:{count}")
    raise error


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
        f"{name} is ambiguous: using {chosen.name} ({chosen.usable}), the smallest; others: {rest}"
    )


# ── MIG instances: a profile such as ``1g.10gb`` of a GPU that can be cut ───────────────────────────────────
def _mig(name: str, form: re.Match[str]) -> Match:
    """Return the instance that ``name`` means; HardwareError where the GPU is unknown or cannot be cut so."""
    before, slices, gigabytes, extra, after = form.groups()
    profile = f"{slices}g.{gigabytes}gb{extra}"
    parent = after or before.removeprefix(".com/").rstrip("/")
    able = _able()
    if parent:
        members, count = lookup(parent)
        if not members or count is not None:
            raise HardwareError(_unknown(parent))
    else:
        members = [member for member, cut in able.items() if profile in cut["profiles"]]
        if not members:
            raise HardwareError(f"{name!r} names no GPU; put one first: --gpu a100-80gb-mig-{profile}")
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


def cuts() -> list[dict[str, Any]]:
    """Return what the file says of MIG."""
    content: list[dict[str, Any]] = marshal.loads(catalogue()["mig"])  # noqa: S302 (packed by _build)
    return content


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
