"""OLMo's files: which are recognised, the model counted from its shape, and what fits fewer GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target

if TYPE_CHECKING:
    from cfglint.lang.pack import Pack

# OLMo 2 1B (configs/official-0425/OLMo2-1B-stage1.yaml), whose matrices and norms are
# 16 × (2,048 × (4 × 2,048 + 3 × 8,192) + 4 × 2,048) + 2 × 100,352 × 2,048 + 2,048 = 1,484,916,736.
OLMO2_1B = """
run_name: own
model: {d_model: 2048, n_heads: 16, n_layers: 16, mlp_ratio: 8, weight_tying: false, flash_attention: true,
  attention_layer_norm: true, norm_after: true, max_sequence_length: 4096, vocab_size: 100278,
  embedding_size: 100352}
fused_loss: true
optimizer: {name: adamw}
global_train_batch_size: 512
device_train_microbatch_size: 4
precision: amp_bf16
fsdp: {sharding_strategy: SHARD_GRAD_OP, precision: mixed}
"""


@pytest.mark.parametrize(
    ("more", "name", "value"),
    [
        ("", "model.family", "olmo2"),
        ("", "effective_batch_size", 512),
        ("", "grad_accum", 16),
        ("", "gradient_checkpointing", "none"),
        ("activation_checkpointing: whole_layer\n", "gradient_checkpointing", "full"),
        ("", "fsdp_reshard", False),
        ("distributed_strategy: ddp\n", "train_backend", "ddp"),
    ],
)
def test_binding(pack: Pack, more: str, name: str, value: object) -> None:
    (subject,) = Run(pack, [parse_target("h100-sxm:8")]).subjects(
        read_text(OLMO2_1B + more, "c.yaml"), judge_broken=True
    )
    assert subject.framework == "olmo"
    values = Run(pack, [parse_target("h100-sxm:8")]).judged(subject)[0].values
    assert values[name] == value
    assert values["model.params"] == pytest.approx(1_484_916_736, rel=1e-3)


def test_llm_foundrys_files_are_not_olmos(pack: Pack) -> None:
    text = "model: {name: mpt_causal_lm, d_model: 768, n_heads: 12, n_layers: 12, max_seq_len: 2048}\n"
    text += "global_train_batch_size: 256\ndevice_train_microbatch_size: 16\n"
    subjects = Run(pack, [parse_target("h100-sxm:8")]).subjects(read_text(text, "c.yaml"), judge_broken=True)
    assert all(subject.framework != "olmo" for subject in subjects)


def test_fewer_gpus_take_what_fits_and_keep_the_batch(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "own.yaml").write_text(OLMO2_1B, "utf-8")
    start = 'torchrun --nnodes "${N}:${N}" --nproc-per-node 8'
    (tmp_path / "run.sh").write_text(
        f"{start} scripts/train.py own.yaml --run_name=a --save_overwrite\n", "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "rtx-3090:2", "--verbose"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "set --nproc_per_node to 2, device_train_microbatch_size to 1" in told
    assert "activation_checkpointing to whole_layer" in told
    assert "effective batch 512" in told
