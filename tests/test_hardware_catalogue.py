"""The catalogue's figures, and the facts that become of them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest

from cfglint.hardware.catalogue import GIB, MIB, catalogue, entry, gpus
from cfglint.hardware.names import cuts, find
from cfglint.hardware.target import all_targets, parse_target

GPUS = {gpu.name: gpu for gpu in gpus()}
NVIDIA = [gpu for gpu in gpus() if gpu.vendor == "nvidia"]
CAPABILITIES = {
    "Pascal": {6.0}, "Volta": {7.0}, "Turing": {7.5}, "Ampere": {8.0, 8.6}, "Ada": {8.9}, "Hopper": {9.0},
    "Blackwell": {10.0, 10.3, 12.0},
}  # fmt: skip
FORMATS = {
    "Pascal": [], "Volta": [], "Turing": [], "Ampere": ["bf16", "tf32"], "Ada": ["bf16", "tf32", "fp8"],
    "Hopper": ["bf16", "tf32", "fp8"], "Blackwell": ["bf16", "tf32", "fp8", "fp4"],
}  # fmt: skip
KEYS = {
    "vendor", "product", "aliases", "family", "chip", "memory", "seen", "otherwise", "speed", "board",
    "cloud", "source", "unverified", "note",
}  # fmt: skip
FIGURES = {
    "arch", "capability", "formats", "nominal_gb", "nvml_mib", "usable_mib", "bandwidth_gbs", "tflops",
    "nvlink", "pcie", "ecc", "cloud",
}  # fmt: skip


def usable_by_rule(nvml_mib):
    """Return what a driver leaves to programs of ``nvml_mib``, both in MiB, where it was never seen.

    400 MiB and 0.75 % is above every reserve that was seen, from 11 to 180 GiB.
    """
    return nvml_mib - 400 - -(-nvml_mib * 75 // 10_000)


def test_size():
    assert len(NVIDIA) == 64
    assert len(gpus()) == 72


def test_a40():
    target = parse_target("a40")
    value, source = target.facts["gpu.vram"]
    assert value == 45486 * MIB
    assert f"{value / GIB:.2f}" == "44.42"
    assert source == "catalogue: torch total_memory 45486 MiB, seen in public output"
    assert {name: fact[0] for name, fact in target.facts.items()} == {
        "gpu.name": "NVIDIA A40", "gpu.model": "a40", "gpu.vendor": "nvidia", "gpu.arch": "Ampere",
        "gpu.capability": 8.6, "gpu.vram": 45486 * MIB, "gpu.vram_nvml": 46068 * MIB,
        "gpu.vram_nominal": 48 * 10**9, "gpu.bandwidth": 696e9, "gpu.tflops": 149.7e12, "gpu.mig": False,
        "gpu.bf16": True, "gpu.tf32": True, "gpu.fp8": False, "gpu.fp4": False,
    }  # fmt: skip


@pytest.mark.parametrize("gpu", NVIDIA, ids=lambda gpu: gpu.name)
def test_figures_are_sane(gpu):
    # The box says 48 GB for 48 GiB on a GDDR card and 141 GB for 141 * 10^9 on an HBM card.
    assert 0.95 * gpu.nvml_mib < gpu.usable_mib < gpu.nvml_mib <= gpu.nominal_gb * 1024
    assert gpu.nvml_mib * MIB > gpu.nominal_gb * 0.99e9
    assert gpu.capability in CAPABILITIES[gpu.arch]
    assert gpu.formats == FORMATS[gpu.arch]
    assert 100 < (gpu.bandwidth_gbs or 200) <= 8000
    assert 15 < (gpu.tflops or 20) <= 2500
    assert gpu.nvlink in (True, False, "bridge", "c2c")
    assert entry(gpu.name)["board"]["pcie"] in (3, 4, 5, 6)


@pytest.mark.parametrize("name", catalogue()["gpus"])
def test_entries_are_well_formed(name):
    one = entry(name)
    assert one.keys() <= KEYS
    assert set(one.get("unverified", ())) | set(one.get("source", ())) <= FIGURES
    assert not set(one.get("unverified", ())) & set(one.get("source", ()))
    memory = one["memory"]
    if "seen" in one:
        assert memory["usable_mib"] == min(one["seen"])
        assert "estimate" not in memory
    elif memory.get("estimate") == "rule":
        assert memory["usable_mib"] == usable_by_rule(memory["nvml_mib"])
    elif "usable_mib" in memory:
        assert memory["usable_mib"] == GPUS[memory["estimate"]].usable_mib


def test_the_rule_never_promises_more_than_was_seen():
    for gpu in NVIDIA:
        assert usable_by_rule(gpu.nvml_mib) <= gpu.usable_mib


def test_what_is_unknown_is_no_fact():
    facts = parse_target("mi300a").facts
    assert "gpu.vram" not in facts
    assert "gpu.capability" not in facts
    assert facts["gpu.vendor"][0] == "amd"
    assert "gpu.nvlink" not in parse_target("a40").facts  # a bridge may be fitted
    assert parse_target("h100-sxm").facts["gpu.nvlink"][0] is True
    assert "gpu.tflops" not in parse_target("rtx-6000d").facts


def test_estimates_and_unverified_figures_say_so():
    assert parse_target("a10").facts["gpu.vram"][1].startswith("catalogue: torch total_memory 22558 MiB")
    assert parse_target("h800").facts["gpu.vram"][1].startswith("catalogue: estimate, NVML's 81559 MiB less")
    assert (
        parse_target("v100-16gb-pcie").facts["gpu.vram"][1] == "catalogue: estimate, as seen on v100-16gb-sxm"
    )
    assert parse_target("a40").facts["gpu.bandwidth"][1] == "catalogue: unverified"
    assert parse_target("h100-sxm").facts["gpu.tflops"][1] == "catalogue: torchtitan b5bcd76 tools/utils.py"


def test_facts_are_in_base_units_and_of_plain_types():
    for target in all_targets():
        for name, (value, source) in target.facts.items():
            assert type(value) in (int, float, bool, str)
            assert source.startswith("catalogue")
            assert name.startswith("gpu.")


def test_mig_profiles():
    listed = sum(len(cut["gpus"]) * len(cut["profiles"]) for cut in cuts())
    assert listed > 21
    for cut in cuts():
        for parent in cut["gpus"]:
            for profile in cut["profiles"]:
                gpu = find(f"{parent}-mig-{profile}").gpu
                whole = GPUS[parent]
                assert gpu.usable_mib <= whole.usable_mib
                assert gpu.usable_mib < (gpu.nominal_gb + 1) * 1024
                assert gpu.product == f"{whole.product} MIG {profile}"
                assert gpu.bandwidth_gbs <= whole.bandwidth_gbs
                assert gpu.nvlink is False


def test_mig_facts():
    facts = parse_target("h100-pcie-mig-1g.10gb").facts
    assert facts["gpu.vram"] == (9984 * MIB, facts["gpu.vram"][1])
    assert facts["gpu.mig"][0] is True
    assert facts["gpu.mig_profile"][0] == "1g.10gb"
    assert facts["gpu.bandwidth"] == (2000e9 / 8, "catalogue: estimate")
    assert facts["gpu.tflops"][0] == pytest.approx(756e12 / 7)
    assert facts["gpu.capability"][0] == 9.0


def test_mig_profile_that_is_not_listed_is_an_estimate_below_every_listed_one():
    value, source = parse_target("gh200-mig-1g.12gb").facts["gpu.vram"]
    assert value == int(96768 / 8 * 0.87) * MIB
    assert "estimate" in source
    for cut in cuts():
        for profile, figures in cut["profiles"].items():
            whole = GPUS[cut["gpus"][0]]
            share = round(int(profile.split(".")[1].split("gb")[0]) * cut["memory_slices"] / whole.nominal_gb)
            share = min(max(share, 1), cut["memory_slices"]) / cut["memory_slices"]
            assert figures["gib"] * 1024 >= whole.usable_mib * share * 0.87


def test_importing_touches_nothing_heavy(tmp_path):
    code = (
        "import sys; import yaml; before = set(sys.modules)\n"
        "from cfglint.hardware.target import parse_target; parse_target('a40:8')\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    environment = {**os.environ, "CFGLINT_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
    heavy = {"dataclasses", "typing", "pathlib", "json", "jsonschema", "pynvml", "rich", "ctypes"}
    assert not heavy & set(done.stdout.split())


def test_from_a_zipped_wheel(tmp_path):
    import cfglint

    package = os.path.dirname(cfglint.__file__)
    wheel = tmp_path / "cfglint.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for folder, _, files in os.walk(package):
            for file in files:
                if file.endswith((".py", ".yaml")):
                    path = os.path.join(folder, file)
                    archive.write(path, os.path.join("cfglint", os.path.relpath(path, package)))
    code = "import cfglint.hardware.target as h; print(h.__file__, h.parse_target('a40').vram_gib)"
    others = [p for p in sys.path if not os.path.isfile(os.path.join(p, "cfglint", "__init__.py"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(wheel), *others])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert str(wheel) in done.stdout
    assert "44.419" in done.stdout


def test_the_cache_gives_the_same(tmp_path, monkeypatch):
    from cfglint.hardware import catalogue as module

    first = repr(module.catalogue())
    monkeypatch.setenv("CFGLINT_CACHE", str(tmp_path))
    for _ in range(2):
        module.catalogue.cache_clear()
        assert repr(module.catalogue()) == first
    assert list(tmp_path.iterdir())
