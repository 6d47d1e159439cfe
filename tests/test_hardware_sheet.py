"""Hardware sheets: read, written, refused."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cfglint.errors import HardwareError
from cfglint.files import shipped_folder
from cfglint.hardware.host import SCHEMA, Device, Host, _holds, load_sheet, read_sheet, to_sheet

with open(os.path.join(shipped_folder("schemas"), SCHEMA), encoding="utf-8") as stream:
    VALIDATOR = Draft202012Validator(json.load(stream))


def sheet(*devices, **more):
    return {"cfglint": "hardware", "version": 1, "devices": list(devices), **more}


def loaded(*devices, **more):
    (target,) = load_sheet(json.dumps(sheet(*devices, **more)), "hw.json")
    return target


def test_written_by_hand():
    target = loaded({"name": "NVIDIA A40", "count": 8})
    assert (target.name, target.gpu, target.count, target.notices) == ("a40:8", "NVIDIA A40", 8, [])
    assert target.facts["gpu.vram"][0] == 45486 << 20
    assert target.facts["gpu.count"] == (8, "sheet hw.json")


def test_nodes():
    target = loaded({"name": "NVIDIA GeForce RTX 4090", "count": 8}, nodes=2)
    assert (target.name, target.count, target.gpus_per_node, target.nodes) == ("rtx-4090:16", 16, 8, 2)
    assert [target.facts[name][0] for name in ("gpu.count", "gpu.per_node", "gpu.nodes")] == [16, 8, 2]


def test_measured_figures_win_over_the_catalogue():
    target = loaded({"name": "NVIDIA A40", "total_mib": 46068, "usable_mib": 45000, "capability": "8.6"})
    assert target.facts["gpu.vram"] == (
        45000 << 20,
        "sheet hw.json: 46068 MiB less 1068 MiB that the driver keeps",
    )


def test_catalogue_memory_is_capped_by_what_the_machine_has():
    target = loaded({"name": "NVIDIA A40", "total_mib": 45000})
    assert target.facts["gpu.vram"] == (45000 << 20, "sheet hw.json")


def test_a_product_name_of_several_sizes():
    target = loaded({"name": "NVIDIA GeForce RTX 4090", "total_mib": 49140})
    assert target.name == "rtx-4090:1"
    assert target.facts["gpu.vram"][0] == 49140 << 20
    assert "gpu.vram_nominal" not in target.facts
    assert target.facts["gpu.fp8"][0] is True


def test_a_gpu_that_nobody_knows_and_that_says_nothing():
    facts = loaded({"name": "NVIDIA Wonder 9000"}).facts
    assert facts["gpu.model"][0] == "nvidia-wonder-9000"
    assert not {"gpu.vram", "gpu.bf16", "gpu.capability"} & facts.keys()


def test_different_gpus():
    target = loaded({"name": "NVIDIA A40", "count": 2}, {"name": "NVIDIA A100-SXM4-80GB"})
    assert target.name == "a40:2+a100-80gb-sxm:1"
    assert target.facts["gpu.vram"][0] == 45486 << 20
    assert target.facts["gpu.capability"][0] == 8.0
    assert target.facts["gpu.model"][0] == "a40 + a100-80gb-sxm"
    assert len(target.notices) == 1


def test_mig_instance_beside_a_whole_gpu():
    target = loaded({"name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "mig": "1g.5gb"}, {"name": "NVIDIA A40"})
    assert target.facts["gpu.mig"][0] is True
    assert target.facts["gpu.vram"][0] == 4864 << 20


GOOD = [
    sheet({"name": "NVIDIA A40"}),
    sheet({"name": "NVIDIA A40", "count": 8, "total_mib": 46068, "usable_mib": 45486, "capability": "8.6"}),
    sheet({"name": "x MIG 1g.10gb+me", "mig": "1g.10gb+me"}, driver="550", cuda="12.4", nodes=4),
    sheet({"name": "NVIDIA A40", "count": 2.0}, **{"$schema": "x"}),
]
BAD = [
    ([], "is not of type 'object'"),
    ({}, "required property"),
    ({"cfglint": "facts", "version": 1, "devices": [{"name": "a"}]}, "'hardware' was expected"),
    (sheet({"name": "a"}, version=2), "1 was expected"),
    (sheet({"name": "a"}, version=True), "1 was expected"),
    (sheet(), "should be non-empty"),
    (sheet({"name": "a"}, hostname="secret"), "'hostname' was unexpected"),
    (sheet({"name": "a", "uuid": "GPU-1"}), "'uuid' was unexpected"),
    (sheet({"count": 1}), "'name' is a required property"),
    (sheet({"name": " "}), "$.devices[0].name"),
    (sheet({"name": 4090}), "is not of type 'string'"),
    (sheet({"name": "a", "count": 0}), "less than the minimum"),
    (sheet({"name": "a", "count": True}), "is not of type 'integer'"),
    (sheet({"name": "a", "count": 2000}), "greater than the maximum"),
    (sheet({"name": "a", "total_mib": "46068"}), "$.devices[0].total_mib"),
    (sheet({"name": "a", "capability": 8.6}), "$.devices[0].capability"),
    (sheet({"name": "a", "capability": "x"}), "does not match"),
    (sheet({"name": "a", "mig": "half"}), "does not match"),
    (sheet({"name": "a"}, nodes=0), "less than the minimum"),
    (sheet({"name": "a"}, nodes=1e308), "greater than the maximum"),
    (sheet({"name": "a", "total_mib": 10**400}), "greater than the maximum"),
    (sheet({"name": "a"}, driver=550), "$.driver"),
    (sheet("NVIDIA A40"), "$.devices[0]"),
    (sheet(*[{"name": "a"}] * 65), "$.devices"),
]


@pytest.mark.parametrize("good", GOOD)
def test_good_sheets(good):
    assert VALIDATOR.is_valid(good)
    assert _holds(good)
    assert load_sheet(json.dumps(good), "hw.json")


@pytest.mark.parametrize(("bad", "said"), BAD)
def test_bad_sheets(bad, said):
    assert not VALIDATOR.is_valid(bad)
    assert not _holds(bad)
    with pytest.raises(HardwareError) as caught:
        load_sheet(json.dumps(bad), "hw.json")
    assert str(caught.value).startswith("hw.json: $")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "hw.json:1:1: not JSON"),
        ('{"cfglint":\n  hardware}', "hw.json:2:3: not JSON: Expecting value"),
        ("[" * 100_000, "hw.json: not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "hw.json: "),
    ],
    ids=["empty", "bare word", "deep", "long number"],
)
def test_text_that_is_no_json(text, said):
    with pytest.raises(HardwareError) as caught:
        load_sheet(text, "hw.json")
    assert said in str(caught.value)


def test_more_usable_than_there_is():
    with pytest.raises(HardwareError, match=r"devices\[0\]: usable_mib 200 is more than total_mib 100"):
        loaded({"name": "a", "total_mib": 100, "usable_mib": 200})


def test_a_byte_order_mark_is_no_matter():
    assert load_sheet("\ufeff" + json.dumps(GOOD[0]), "hw.json")


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(VALIDATOR.schema)


def test_a_sheet_does_not_say_which_machine():
    device = Device(
        "NVIDIA A40", index=3, total_mib=46068, reserved_mib=582, free_mib=7, utilisation=99, capability=8.6
    )
    written = to_sheet(Host([device], driver="550.54", cuda="12.4"))
    assert VALIDATOR.is_valid(written)
    assert written == {
        "cfglint": "hardware",
        "version": 1,
        "driver": "550.54",
        "cuda": "12.4",
        "devices": [
            {"name": "NVIDIA A40", "count": 1, "total_mib": 46068, "usable_mib": 45486, "capability": "8.6"}
        ],
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3000) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
DEVICES = st.fixed_dictionaries(
    {"name": st.sampled_from(["NVIDIA A40", "NVIDIA GeForce RTX 3090", "NVIDIA Wonder 9000"])},
    optional={
        "count": st.integers(0, 9),
        "total_mib": st.integers(0, 99_999),
        "capability": st.sampled_from(["8.6", "10.0", "x"]) | VALUES,
        "mig": st.sampled_from(["1g.5gb", "9g"]) | VALUES,
    },
)


@given(VALUES | st.lists(DEVICES, max_size=3).map(lambda devices: sheet(*devices)))
def test_the_quick_check_is_the_schema(value):
    assert _holds(value) == VALIDATOR.is_valid(value)
    try:
        load_sheet(json.dumps(value), "hw.json")
    except HardwareError:
        assert not _holds(value)


def test_round_trip():
    for good in GOOD:
        host = read_sheet(json.dumps(good), "hw.json")
        assert to_sheet(read_sheet(json.dumps(to_sheet(host)), "hw.json")) == to_sheet(host)
