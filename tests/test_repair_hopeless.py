"""What is said and proposed where a job does not fit its GPUs, or nobody knows whether it does."""

from __future__ import annotations

from typing import Any

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.repair.attach import attach
from cfglint.repair.hopeless import laid_wider, too_large

GIB = 1 << 30
_MESH = """
distributed_type: FSDP
fsdp_config: {fsdp_version: 2}
mixed_precision: bf16
num_machines: 1
num_processes: 8
parallelism_config:
  parallelism_config_cp_size: 1
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 2
  parallelism_config_tp_size: 2
"""


def _values(**given: object) -> Any:
    facts = {"gpu.count": 2, "gpu.vram": 24 * GIB, "model.params": 70.6e9, "trains": True, "lora": False}
    facts |= {
        "quantized": False,
        "optimizer_in_backward": False,
        "states.away": False,
        "offload_params": False,
        "params.trained": 70.6e9,
    }
    facts |= {"param_bytes": 2, "grad_bytes": 2, "moment_bytes": 8, "master_weights": True, "gpus_needed": 2}
    facts |= {"train_tp": 1, "pp": 1, "cp": 1, "colocated": True, "rollout_gpus": None, "train_gpus": 2}
    facts |= {"train_backend": "fsdp", "moe": False, "generates": False, "rollout_dtype": "bf16"}
    facts |= {
        "engine.bits": None,
        "packed_bytes": None,
        "weights.loading": 0,
        "rollout_cpu_offload": None,
        "evaluates": False,
        "launch.rank": 0,
        "launch.follows": False,
    } | {name.replace("__", "."): v for name, v in given.items()}
    return facts


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "70.6B weights take 132 GiB in 16 bits, and 2 GPUs have 48 GiB together"),
        ({"gpu__count": 1}, "70.6B weights take 132 GiB in 16 bits, and the GPU has 24 GiB"),
        ({"quantized": True, "packed_bytes": 0.5}, ""),
        ({"offload_params": True}, ""),
        ({"gpu__count": 8}, ""),
        ({"model__params": None}, ""),
        (
            {
                "offload_params": True,
                "generates": True,
                "rollout_gpus": 2,
                "engine__quantized": False,
                "rollout_dtype": "fp8",
            },
            "70.6B weights take 66 GiB in 8 bits, and 2 GPUs have 48 GiB together",
        ),
        (
            {"trains": False, "engine__bits": 8},
            "70.6B weights take 66 GiB in 8 bits, and 2 GPUs have 48 GiB together",
        ),
    ],
)
def test_weights_of_all_gpus(given: dict[str, object], told: str) -> None:
    assert too_large(_values(**given)) == told


def test_states_count_where_they_stay_on_the_gpus() -> None:
    small = {"model__params": 8e9, "params__trained": 8e9}
    told = too_large(_values(**small), states=True)
    assert told == (
        "8.0B weights with their gradients and optimizer take 119 GiB (16 bytes each), "
        "and 2 GPUs have 48 GiB together"
    )
    assert not too_large(_values(**small))
    assert not too_large(_values(**small, states__away=True), states=True)
    assert not too_large(_values(**small, lora=True), states=True)
    assert not too_large(_values(model__params=8e9, params__trained=1e9), states=True)


def test_megatron_keeps_weights_and_gradients_wherever_the_optimizer_is() -> None:
    model = {"model__params": 14e9, "params__trained": 14e9, "train_backend": "megatron"}
    assert too_large(_values(**model, states__away=True)) == (
        "14.0B weights with their gradients take 52 GiB (4 bytes each), the optimizer aside, "
        "and 2 GPUs have 48 GiB together"
    )
    small = model | {"model__params": 10e9, "params__trained": 10e9}
    assert not too_large(_values(**small))
    assert too_large(_values(**small, generates=True, colocated=False)) == (
        "10.0B weights with their gradients take 37 GiB (4 bytes each), the optimizer aside, "
        "the engine's weights 19 GiB, and 2 GPUs have 48 GiB together"
    )
    assert not too_large(_values(**small, generates=True, colocated=True))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"train_tp": 8, "pp": 12},
            (
                "one copy of the model is laid over 96 GPUs (tensor 8 × pipeline 12; 12 machines of 8), "
                "and there are 2"
            ),
        ),
        ({"train_tp": 8}, "one copy of the model is laid over 8 GPUs (tensor 8 parallel), and there are 2"),
        ({"gpus_needed": 16}, "the job is laid out for 16 GPUs (2 machines of 8), and there are 2"),
        (
            {"gpus_needed": 24, "colocated": False, "rollout_gpus": 16, "train_gpus": 8},
            "the job is laid out for 24 GPUs (engine 16, trainer 8; 3 machines of 8), and there are 2",
        ),
        ({}, ""),
        ({"gpu__count": None}, ""),
    ],
)
def test_layouts_of_more_gpus(given: dict[str, object], told: str) -> None:
    assert laid_wider(_values(**given)) == told


def test_replicas_become_shards_beside_less_tensor_parallelism(pack) -> None:
    run = Run(pack, [parse_target("l40s:4")])
    judgements = run.judged(run.subjects(read_text(_MESH, "c.yaml"), judge_broken=True)[0])
    found = run.findings(judgements)
    attach(run, judgements, found)
    fix = next(each.finding.fix for each in found if each.finding.code == "DOC105")
    assert fix is not None
    for key, value in {"num_processes": 4, "tp_size": 1, "dp_replicate_size": 1, "dp_shard_size": 4}.items():
        assert f"{key} to {value}" in fix.title
    assert fix.certainty == "may"  # of a job whose model nobody names


def test_what_each_gpu_loads_whole_is_told() -> None:
    told = too_large(
        _values(model__params=8e9, packed_bytes=0.5, quantized=True, weights__loading=61 * GIB), states=True
    )
    assert told == "61 GiB of weights, which each GPU holds before they are sharded, are more than its 24 GiB"
