"""MIG instances: a profile such as ``1g.10gb`` of a GPU that can be cut."""

from __future__ import annotations

import re

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import Gpu, cuts, family, gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.hardware.names import Match

# On a folded name: `a10040gbmig1g.5gb`, `a10040gb.1g.5gb`, `1g.5gb@a100`, `.com/mig1g.5gb` of a Kubernetes
# resource. The digit before `g.` is the profile's, whatever the model ends in.
_FORM = re.compile(r"(.*?)[.]?(?:mig)?(\d)g\.(\d+)gb((?:\+[a-z.]+)?)(?:@(.+))?")
# The least share of an eighth of the memory that any listed profile gets.
_ESTIMATE = 0.87


def find(name: str, key: str) -> Match | None:
    """Return the MIG instance that ``name``, folded to ``key``, means; None where it is none.

    Raises HardwareError where the GPU is unknown, cannot be cut, or not so.
    """
    from cfglint.hardware.names import Match, candidates, least

    form = _FORM.fullmatch(key)
    if form is None:
        return None
    before, slices, gigabytes, extra, after = form.groups()
    profile = f"{slices}g.{gigabytes}gb{extra}"
    parent = after or before.removeprefix(".com/").rstrip("/")
    able = {member: cut for cut in cuts() for member in cut["gpus"]}
    if parent:
        members = candidates(parent)
    else:
        members = [member for member, cut in able.items() if profile in cut["profiles"]]
        if not members:
            raise HardwareError(f"no GPU in {name!r}; write it before: --gpu a100-80gb-mig-{profile}")
    listed = [m for m in members if m in able and profile in able[m]["profiles"]]
    possible = listed or [m for m in members if m in able and _fits(gpu(m), able[m], profile)]
    if not possible:
        raise HardwareError(_refusal(profile, members, able))
    base = family(possible)
    chosen, notice = least(name, [instance(gpu(member), profile) for member in possible])
    if base is not None:
        return Match(chosen, f"{base}-mig-{profile}")
    return Match(chosen, chosen.name, notice)


def instance(parent: Gpu, profile: str) -> Gpu:
    """Return the instance ``profile`` of ``parent``; figures that no one measured are shares of the GPU's."""
    cut = _cut(parent.name)
    entry: dict[str, Any] = cut["profiles"].get(profile, {})
    compute, gigabytes = _sizes(profile)
    share = _memory_share(parent, cut, gigabytes)
    one = gpu(parent.name)
    one.name = f"{parent.name}-mig-{profile}"
    one.product = f"{parent.product} MIG {profile}"
    one.products = [one.product]
    one.mig = profile
    one.nominal_gb = gigabytes
    one.nvml_mib = None
    one.nvlink = False
    one.source, one.estimated = {}, ["tflops", "bandwidth_gbs"]
    if "gib" in entry:
        # 7g is the whole GPU, whose own figure may be the smaller one.
        one.usable_mib = min(int(entry["gib"] * 1024), parent.usable_mib or 1 << 40)
        checked = profile not in cut.get("unverified", ())
        one.usable_why = f"{entry['gib']} GiB, " + (
            cut["source"] if checked else "MIG user guide, unverified"
        )
    elif parent.usable_mib is not None:
        one.usable_mib = int(parent.usable_mib * share * _ESTIMATE)
        one.usable_why = f"estimate, {_ESTIMATE} of {share:g} of {parent.name}'s {parent.usable_mib} MiB"
        one.estimated.append("usable_mib")
    if parent.tflops is not None:
        one.tflops = parent.tflops * compute / cut["slices"]
    if parent.bandwidth_gbs is not None:
        one.bandwidth_gbs = parent.bandwidth_gbs * share
    return one


def _cut(name: str) -> dict[str, Any]:
    for cut in cuts():
        if name in cut["gpus"]:
            return cut
    raise HardwareError(f"{name} cannot be cut into MIG instances")


def _sizes(profile: str) -> tuple[int, int]:
    compute, _, memory = profile.partition("+")[0].partition("g.")
    return int(compute), int(memory.removesuffix("gb"))


def _memory_share(parent: Gpu, cut: dict[str, Any], gigabytes: int) -> float:
    slices: int = cut["memory_slices"]
    return min(max(round(gigabytes * slices / parent.nominal_gb), 1), slices) / slices


def _fits(parent: Gpu, cut: dict[str, Any], profile: str) -> bool:
    compute, gigabytes = _sizes(profile)
    smallest = parent.nominal_gb / cut["memory_slices"]
    return bool(1 <= compute <= cut["slices"] and 0.8 * smallest <= gigabytes <= parent.nominal_gb)


def _refusal(profile: str, members: list[str], able: dict[str, dict[str, Any]]) -> str:
    name = next((member for member in members if member in able), None)
    if name is None:
        return f"{members[0]} cannot be cut into MIG instances; write --gpu {members[0]}"
    known = ", ".join(able[name]["profiles"])
    has = f"it has {known}" if known else f"its memory is {gpu(name).nominal_gb} GB"
    return f"no MIG profile {profile} on {name}; {has}"
