"""accelerate's launch files: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_file
from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of
from cfglint.repair.solve import solving

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
FOLDERS = ("accelerate", "alignment_handbook", "llamafactory", "trl")


def _values(pack: Pack, text: str, target: str | None = None) -> Values:
    targets = [] if target is None else [parse_target(target)]
    run = Run(pack, targets)
    return run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])[-1].values


def _launch(kind: str, more: str = "", precision: str = "bf16") -> str:
    return f"distributed_type: {kind}\nmixed_precision: {precision}\nnum_processes: 8\n{more}"


def _fsdp(*keys: str, more: str = "") -> str:
    return _launch("FSDP", "fsdp_config:\n" + "".join(f"  {key}\n" for key in keys) + more)


def _deepspeed(*keys: str) -> str:
    return _launch("DEEPSPEED", "deepspeed_config:\n" + "".join(f"  {key}\n" for key in keys))


def _sizes(**sizes: int) -> str:
    return "parallelism_config:\n" + "".join(
        f"  parallelism_config_{k}_size: {v}\n" for k, v in sizes.items()
    )


DDP = _launch("MULTI_GPU")
ZERO2 = _deepspeed("zero_stage: 2")
OTHER_FILE = (
    "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
)

# What the file says, the fact, its value.
TOLD = [
    # the launch
    (DDP, "num_gpus", 8),
    (DDP, "train_gpus", 8),
    (DDP, "train_dp", 8),
    (DDP, "gpu.count", 8),
    (DDP, "num_nodes", 1),
    (_launch("MULTI_GPU", "num_machines: 2\n"), "num_nodes", 2),
    (_launch("MULTI_GPU", "num_machines: 2\n"), "num_gpus", 8),
    (_launch("'NO'"), "num_gpus", 1),  # one process, whatever num_processes says
    (DDP, "train_backend", "ddp"),
    (_launch("'NO'"), "train_backend", "ddp"),
    (ZERO2, "train_backend", "deepspeed"),
    (_fsdp("fsdp_version: 2"), "train_backend", "fsdp"),
    (_fsdp("fsdp_sharding_strategy: NO_SHARD"), "train_backend", "ddp"),
    (
        _launch("MEGATRON_LM", "megatron_lm_config:\n  megatron_lm_tp_degree: 2\n"),
        "train_backend",
        "megatron",
    ),
    (_launch("MEGATRON_LM", "megatron_lm_config:\n  megatron_lm_tp_degree: 2\n"), "train_tp", 2),
    (_launch("MEGATRON_LM", "megatron_lm_config:\n  megatron_lm_pp_degree: 4\n"), "train_dp", 2),
    (_fsdp("fsdp_version: 2", more=_sizes(dp_shard=4, tp=2)), "train_tp", 2),
    (_fsdp("fsdp_version: 2", more=_sizes(dp_shard=4, tp=2)), "train_dp", 4),
    (_fsdp("fsdp_version: 2", more=_sizes(cp=8)), "cp", 8),
    (_launch("DEEPSPEED", _sizes(dp_shard=2, sp=4)), "sp", 4),
    # sharding
    (DDP, "zero_stage", 0),
    (DDP, "dp_shard", 1),
    (ZERO2, "zero_stage", 2),
    (_launch("DEEPSPEED"), "zero_stage", 2),
    (_deepspeed("zero_stage: 3", "offload_param_device: cpu"), "offload_params", True),
    (_deepspeed("zero_stage: 2", "offload_param_device: cpu"), "offload_params", False),
    (_deepspeed("zero_stage: 2", "offload_optimizer_device: cpu"), "offload_optimizer", True),
    (_deepspeed("zero_stage: 2", "offload_optimizer_device: none"), "offload_optimizer", False),
    (ZERO2, "offload_optimizer", False),
    (_launch("FSDP"), "dp_shard", -1),
    (_fsdp("fsdp_version: 2", more=_sizes(dp_replicate=2, dp_shard=4)), "dp_shard", 4),
    (_fsdp("fsdp_version: 2", more=_sizes(dp_replicate=2, dp_shard=4)), "dp_replicate", 2),
    (_fsdp("fsdp_sharding_strategy: HYBRID_SHARD", more="num_machines: 2\n"), "dp_shard", 4),
    (_fsdp("fsdp_sharding_strategy: HYBRID_SHARD", more="num_machines: 2\n"), "dp_replicate", 2),
    (_fsdp("fsdp_offload_params: true"), "offload_params", True),
    (_fsdp("offload_params: true"), "offload_params", True),
    (_fsdp("fsdp_offload_params: false"), "offload_params", False),
    (_launch("FSDP"), "fsdp_reshard", True),
    (_fsdp("fsdp_sharding_strategy: SHARD_GRAD_OP"), "fsdp_reshard", False),
    (_fsdp("fsdp_version: 2", "fsdp_reshard_after_forward: false"), "fsdp_reshard", False),
    (_fsdp("fsdp_version: 2"), "fsdp_reshard", True),
    (_fsdp("fsdp_reshard_after_forward: FULL_SHARD"), "fsdp_reshard", True),
    (_fsdp("fsdp_activation_checkpointing: true"), "gradient_checkpointing", "full"),
    # precision
    (DDP, "dtype", "bf16"),
    (_launch("MULTI_GPU", precision="fp16"), "dtype", "fp16"),
    (_launch("MULTI_GPU", precision="fp8"), "dtype", "fp8"),
    (_launch("MULTI_GPU", precision="fp8"), "fp8_training", True),
    ("distributed_type: MULTI_GPU\nnum_processes: 2\nfp16: true\n", "dtype", "fp16"),
    (ZERO2, "param_dtype", "bf16"),
]

# What nothing tells, and the names that would settle it.
UNTOLD = [
    (DDP, "model_path", "model_path"),
    (DDP, "param_dtype", "accelerate.weights"),
    (_launch("MULTI_GPU", precision="'no'"), "dtype", "accelerate.weights"),
    (DDP, "gradient_checkpointing", "accelerate.recomputes"),
    (_fsdp("fsdp_activation_checkpointing: false"), "gradient_checkpointing", "accelerate.recomputes"),
    (DDP, "lora_rank", "accelerate.rank"),
    (DDP, "micro_batch_size", "micro_batch_size"),
    ("distributed_type: MULTI_GPU\nmixed_precision: bf16\n", "num_gpus", "gpus_per_node"),
    ("distributed_type: MULTI_GPU\nnum_processes: -1\n", "num_gpus", "gpus_per_node"),
    (OTHER_FILE, "zero_stage", "zero_stage"),
    (OTHER_FILE, "dtype", "accelerate.precision"),
    (OTHER_FILE, "offload_params", "zero_stage"),
]


def _ids(rows: list[tuple[str, str, object]]) -> list[str]:
    return [f"{i}-{row[1]}" for i, row in enumerate(rows)]


@pytest.mark.parametrize(("text", "name", "value"), TOLD, ids=_ids(TOLD))
def test_told(pack: Pack, text: str, name: str, value: object) -> None:
    assert _values(pack, text)[name] == value


@pytest.mark.parametrize(("text", "name", "need"), UNTOLD, ids=_ids(UNTOLD))
def test_untold(pack: Pack, text: str, name: str, need: str) -> None:
    found = _values(pack, text)[name]
    assert need in needs_of(found), (found, needs_of(found))


def test_the_processes_of_the_file_go_before_the_target(pack: Pack) -> None:
    assert _values(pack, _launch("MULTI_GPU").replace("8", "4"), "h100-sxm:8")["train_gpus"] == 4
    assert (
        _values(pack, "distributed_type: MULTI_GPU\nmixed_precision: bf16\n", "h100-sxm:8")["train_gpus"] == 8
    )


SPLIT = """\
compute_environment: LOCAL_MACHINE
distributed_type: {kind}
mixed_precision: bf16
num_machines: 1
num_processes: {processes}
parallelism_config:
  parallelism_config_dp_shard_size: {shards}
  parallelism_config_sp_size: {split}
  parallelism_config_sp_backend: deepspeed
"""


@pytest.mark.parametrize(("split", "shards"), [(2, 2), (4, 2), (2, 4)])
def test_fewer_gpus_take_shards_before_parts_of_a_sequence(pack: Pack, split: int, shards: int) -> None:
    """What a GPU holds of a sequence doubles with half the degree, and nobody knows whether it then fits."""
    here, text = split, SPLIT.format(kind="DEEPSPEED", processes=split * shards, shards=shards, split=split)
    run = Run(pack, [parse_target(f"rtx-3090:{here}")])
    assert check_file(run, read_text(text, "c.yaml"))
    (fix,) = [f.fix for f in run.report.findings if f.code == "DOC105"]
    assert fix is not None
    assert fix.applicability == "unsafe"
    assert "sp_size" not in fix.title
    assert "dp_shard_size to 1" in fix.title


@pytest.mark.parametrize("machines", [2, 16, 32])
@pytest.mark.parametrize("kind", ["MULTI_GPU", "DEEPSPEED"])
def test_one_machine_is_left_of_however_many(pack: Pack, kind: str, machines: int) -> None:
    text = f"distributed_type: {kind}\nmachine_rank: 0\nnum_machines: {machines}\n"
    run = Run(pack, [parse_target("rtx-3090:2")])
    assert check_file(run, read_text(f"{text}num_processes: {machines * 8}\n", "c.yaml"))
    (fix,) = [f.fix for f in run.report.findings if f.code == "DOC105"]
    assert fix is not None
    assert "set num_processes to 2 and num_machines to 1" in fix.title


def test_a_fact_that_is_another_has_its_key(pack: Pack) -> None:
    run = Run(pack, [parse_target("rtx-3090:2")])
    text = "distributed_type: MULTI_GPU\nnum_machines: 2\nnum_processes: 16\n"
    (judged,) = run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])
    with solving(run, [judged]) as solver:
        assert solver.writer(judged).origins.key("num_nodes") == "num_machines"


OTHERS = [
    "distributed_type: DEEPSPEED\n",
    "num_processes: 8\nmixed_precision: bf16\n",
    "model_name_or_path: a/b\ndistributed: true\n",
]


@pytest.mark.parametrize("text", OTHERS)
def test_not_taken(pack: Pack, text: str) -> None:
    assert not check_file(Run(pack), read(text.encode(), "c.yaml"), explicit=False)


@pytest.mark.long
@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_the_files_of_the_corpus_and_no_others(pack: Pack) -> None:
    taken, told = set(), set()
    for path in sorted(CORPUS.rglob("*")):
        if path.suffix not in (".yaml", ".yml", ".json"):
            continue
        run = Run(pack, [parse_target("h100-sxm:8")])
        name = path.relative_to(CORPUS)
        if "\ndistributed_type:" in "\n" + path.read_text(encoding="utf-8"):
            told.add(name)
        subjects = run.subjects(read(path.read_bytes(), path.name), judge_broken=False)
        names = {s.framework for s in subjects} if subjects else set()
        if any(getattr(f, "name", f) == "accelerate" for f in names):
            taken.add(name)
            assert check_file(run, read(path.read_bytes(), path.name))
            errors = {f.code for f in run.report.findings if f.level == "error"}
            assert errors == ({"CFG011"} if path.name == "invalid_keys.yaml" else set()), path
    assert taken == told
    assert {n.parts[0] for n in taken} == set(FOLDERS)
    assert len(taken) == 51
