"""Names of GPUs and targets: what people write, and what it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import catalogue, entry, fold, gpus
from cfglint.hardware.names import find
from cfglint.hardware.target import all_targets, parse_target

NAMES = [
    ("a40", "a40"),
    ("A40", "a40"),
    ("nvidia a40", "a40"),
    ("NVIDIA-A40-SHARED", "a40"),
    ("A100-SXM4-80GB", "a100-80gb-sxm"),
    ("a100-sxm-80gb", "a100-80gb-sxm"),
    ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
    ("a100-80gb", "a100-80gb-sxm"),
    ("a100_80g", "a100-80gb-sxm"),
    ("a100-40gb", "a100-40gb-pcie"),
    ("a100", "a100-40gb-pcie"),
    ("v100", "v100-16gb-sxm"),
    ("tesla v100 32gb", "v100-32gb-sxm"),
    ("h100", "h100-pcie"),
    ("h100-sxm", "h100-sxm"),
    ("H100 SXM5", "h100-sxm"),
    ("NVIDIA H100 80GB HBM3", "h100-sxm"),
    ("NVIDIA-H100-80GB-HBM3", "h100-sxm"),
    ("nvidia_h100_80gb_hbm3", "h100-sxm"),
    ("h200", "h200"),
    ("NVIDIA H200", "h200"),
    ("h200_nvl", "h200-nvl"),
    ("rtx-4090", "rtx-4090"),
    ("rtx_4090", "rtx-4090"),
    ("RTX 4090", "rtx-4090"),
    ("rtx4090", "rtx-4090"),
    ("4090", "rtx-4090"),
    ("geforce rtx 4090", "rtx-4090"),
    ("NVIDIA GeForce RTX 4090", "rtx-4090"),
    ("a6000", "rtx-a6000"),
    ("RTX 6000 Ada", "rtx-6000-ada"),
    ("rtx-6000", "quadro-rtx-6000"),
    ("3060", "rtx-3060"),
    ("mi300x", "mi300x"),
    ("AMD Instinct MI300X OAM", "mi300x"),
    ("p4d.24xlarge", "a100-40gb-sxm"),
    ("aws:p5.48xlarge", "h100-sxm"),
    ("Standard_ND96asr_v4", "a100-40gb-sxm"),
    ("runpod:NVIDIA A40", "a40"),
    ("a100-40gb-mig-1g.5gb", "a100-40gb-sxm-mig-1g.5gb"),
    ("a100-40gb.1g.5gb", "a100-40gb-sxm-mig-1g.5gb"),
    ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100-40gb-sxm-mig-1g.5gb"),
    ("nvidia_a100_1g.5gb", "a100-40gb-sxm-mig-1g.5gb"),
    ("a100_3g.39gb", "a100-80gb-sxm-mig-3g.39gb"),
    ("H100 80GB HBM3 MIG 1g.10gb", "h100-sxm-mig-1g.10gb"),
    ("h100-pcie-1g.10gb", "h100-pcie-mig-1g.10gb"),
    ("mig-1g.10gb@h100-sxm", "h100-sxm-mig-1g.10gb"),
    ("1g.5gb", "a100-40gb-sxm-mig-1g.5gb"),
    ("nvidia.com/mig-1g.5gb", "a100-40gb-sxm-mig-1g.5gb"),
    ("gh200-mig-1g.12gb", "gh200-mig-1g.12gb"),
]
# What reports print where it is not the GPU's own name: the family that was meant.
PRINTED = [
    ("a100-80gb", "a100-80gb"),
    ("A100 80G", "a100-80gb"),
    ("a100-80gb:8", "a100-80gb:8"),
    ("rtx-pro-6000", "rtx-pro-6000"),
    ("a100", "a100-40gb-pcie"),
    ("h100", "h100-pcie"),
    ("a100_1g.5gb", "a100-40gb-mig-1g.5gb"),
    ("a40", "a40"),
    ("A40:1", "a40:1"),
    ("rtx_4090:8", "rtx-4090:8"),
    ("rtx-4090:8x2", "rtx-4090:16"),
    (" rtx-4090 : 8 x 2 ", "rtx-4090:16"),
    ("p4d.24xlarge", "a100-40gb-sxm:8"),
    ("aws:p4d.24xlarge", "a100-40gb-sxm:8"),
    ("aws:p4d.24xlarge:8x2", "a100-40gb-sxm:16"),
    ("h100-sxm-mig-1g.10gb:7", "h100-sxm-mig-1g.10gb:7"),
]
WRONG = [
    ("a41", "unknown GPU 'a41'; did you mean 'a40'"),
    ("rtx-4091", "did you mean 'rtx-4090'"),
    ("h100-smx", "did you mean 'h100-sxm'"),
    ("nothing like it", "list them: cfglint gpus"),
    ("", "no GPU in ''; write a name like --gpu rtx-4090"),
    (":8", "no GPU in ':8'"),
    ("a40:", "write --gpu a40:8"),
    ("a40:0", "write --gpu a40:8"),
    ("a40:-1", "write --gpu a40:8"),
    ("a40:8x", "--gpu a40:8x2 for 2 nodes"),
    ("a40:8x0", "write --gpu a40:8"),
    ("a40:x2", "write --gpu a40:8"),
    ("a40:two", "write --gpu a40:8"),
    ("a40:²", "write --gpu a40:8"),
    ("a40:1_0", "write --gpu a40:8"),
    ("a40:8:8", "write --gpu a40:8"),
    ("a40:" + "9" * 5000, "write --gpu a40:8"),
    ("8xA100", "its parts swapped; write --gpu a100:8"),
    ("a40-mig-1g.5gb", "a40 cannot be cut into MIG instances; write --gpu a40"),
    ("h100-sxm-mig-5g.200gb", "no MIG profile 5g.200gb on h100-sxm; it has 1g.10gb"),
    ("mig-1g.99gb", "put one first: --gpu a100-80gb-mig-1g.99gb"),
    ("foo-mig-1g.5gb", "unknown GPU"),
]


@pytest.mark.parametrize(("written", "meant"), NAMES)
def test_find(written, meant):
    assert find(written).gpu.name == meant


@pytest.mark.parametrize(("written", "printed"), PRINTED)
def test_printed_name(written, printed):
    assert parse_target(written).name == printed


@pytest.mark.parametrize(("written", "said"), WRONG, ids=[w[:20] for w, _ in WRONG])
def test_wrong_name(written, said):
    with pytest.raises(HardwareError) as caught:
        parse_target(written)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_product_label_and_slurm_type():
    for gpu in gpus():
        for product in gpu.products:
            for written in (product, product.replace(" ", "-"), product.lower().replace(" ", "_")):
                match = find(written)
                assert (match.gpu.name, match.notice) == (gpu.name, None)


def test_every_alias_leads_to_its_gpu_or_to_a_smaller_one_with_a_notice():
    for gpu in gpus():
        for alias in entry(gpu.name).get("aliases", ()):
            match = find(alias)
            if match.gpu.name == gpu.name:
                continue
            assert match.gpu.usable_mib <= gpu.usable_mib
            assert gpu.name in match.notice


def test_every_canonical_name_is_printed_as_itself():
    for name in (*catalogue()["gpus"], *catalogue()["families"]):
        assert parse_target(name).name == name
        assert parse_target(f"{name}:2").name == f"{name}:2"


def test_every_cloud_instance():
    for gpu in gpus():
        for provider, instances in entry(gpu.name).get("cloud", {}).items():
            for instance, count in instances.items():
                for written in (instance, f"{provider}:{instance}", f"{provider.upper()}:{instance.lower()}"):
                    target = parse_target(written)
                    assert (target.facts["gpu.model"][0], target.count) == (gpu.name, count)


def test_ambiguous_name_says_what_else_it_could_be():
    notice = find("h100").notice
    assert notice.startswith("h100 is ambiguous: using h100-pcie (78.")
    assert "h100-sxm (79.09 GiB usable)" in notice
    assert "h100-nvl (93.00 GiB usable)" in notice


def test_least_memory_of_every_ambiguous_name():
    for key, (members, _) in catalogue()["names"].items():
        if len(members) > 1:
            least = min(gpu.usable_mib for gpu in gpus() if gpu.name in members)
            assert find(key).gpu.usable_mib == least


@given(st.data())
def test_case_and_separators_are_one(data):
    names = sorted({*catalogue()["gpus"], *(gpu.product for gpu in gpus()), "a100 sxm4 80gb", "h100 1g.10gb"})
    name = data.draw(st.sampled_from(names))
    written = []
    for char in name:
        if char in "-_ ":
            written.append(data.draw(st.sampled_from(["-", "_", " ", "", "--"])))
        else:
            written.append(data.draw(st.sampled_from([char.lower(), char.upper()])))
    assert find("".join(written)).name == find(name).name


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_a_hardware_error(text):
    try:
        parse_target(text)
    except HardwareError as error:
        assert "\n" not in str(error)  # noqa: PT017


@given(st.integers(1, 999), st.integers(1, 99))
def test_numbers(per_node, nodes):
    target = parse_target(f"a40:{per_node}x{nodes}")
    assert (target.count, target.gpus_per_node, target.nodes) == (per_node * nodes, per_node, nodes)
    assert target.facts["gpu.count"][0] == per_node * nodes
    assert target.facts["gpu.count"][1] == f"--gpu a40:{per_node}x{nodes}"


def test_without_a_number_the_config_says_how_many():
    target = parse_target("a40")
    assert target.count is None
    assert not {"gpu.count", "gpu.nodes", "gpu.per_node", "gpu.free"} & target.facts.keys()


def test_all_targets():
    assert [target.name for target in all_targets()] == list(catalogue()["gpus"])
    assert len(all_targets()) == 72


def test_fold_leaves_a_maker_that_is_the_whole_name():
    assert fold("NVIDIA") == "nvidia"
    assert fold("NVIDIA GeForce") == "geforce"
