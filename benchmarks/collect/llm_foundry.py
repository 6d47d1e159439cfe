"""mosaicml/llm-foundry: MPT models that trained on H100 and A100, with the micro-batch that was tuned to fit.

scripts/train/benchmarking/README.md has a table per GPU; the shapes are those of
scripts/train/yamls/pretrain. Memory is not told, so the rows say that the job fits. Learned positions,
weights kept in fp32 and sharded by FSDP1, computed in bf16. The tables for FP8 and of models below a
billion are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rows import outcome, thinned

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "mosaicml/llm-foundry"
COMMIT = "8c8dd48f72168c5d51e2f7b151595892a8fba43d"
PREFIX = "foundry-"

PATH = "scripts/train/benchmarking/README.md"
GPUS = {"h100_80gb": "h100-sxm", "a100_80gb": "a100-80gb-sxm", "a100_40gb": "a100-40gb-sxm"}
SHAPES = {
    "70b": (8192, 80),
    "30b": (7168, 48),
    "13b": (5120, 40),
    "7b": (4096, 32),
    "3b": (2560, 32),
    "1b": (2048, 24),
}
HEAD = 128
VOCAB = 50368
NO_EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "latent_dim")


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return no measured rows, and the runs that fitted."""
    found: list[Row] = []
    names: list[str] = []
    for number, text in enumerate(source.read(PATH).splitlines(), 1):
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        if cells[0] == "Model":
            names = cells
        line = dict(zip(names, cells, strict=False))
        if line.get("Model") in SHAPES and line.get("Precision") == "amp_bf16":
            found.append(_row(line, source.at(f"{PATH} line {number}"), number))
    return [], thinned(found)


def _row(line: Row, where: str, number: int) -> Row:
    gpus = int(line["# GPUs"])
    sharding = line["Sharding Strategy"]
    facts: Row = _model(line) | {
        "task": "pretrain",
        "num_gpus": gpus,
        "train_backend": "fsdp",
        "dp_shard": gpus,
    }
    facts |= {
        "fsdp_reshard": sharding == "FULL_SHARD",
        "dtype": "bf16",
        "param_dtype": "fp32",
        "attn_impl": "flash",
    }
    facts |= {"micro_batch_size": int(line["MicroBatchSize"]), "grad_accum": int(line["GradAccum"])}
    facts |= {"seq_len": int(line["SeqLen (T)"]), "pad_to_max": True, "packing": True}
    facts |= {"gradient_checkpointing": "full" if line["Activation Checkpointing"] == "True" else "none"}
    facts |= {
        "activation_offload": line["Activation CPUOffload"] == "True",
        "optimizer": "adamw",
        "fused_loss": "none",
    }
    return outcome(
        f"{PREFIX}{number}",
        where,
        "mpt",
        "fits",
        GPUS[line["GPU"]],
        facts,
        framework="llm-foundry",
        framework_of_run="llm-foundry",
        seq_reached=True,
        assumed=["fused_loss", "optimizer", "param_dtype"],
        missing=["versions of the run"],
    )


def _model(line: Row) -> Row:
    hidden, layers = SHAPES[line["Model"]]
    total = int(line["NumParams"])
    shape: Row = {
        "family": "mpt",
        "params": total,
        "active_params": total,
        "layers": layers,
        "hidden": hidden,
    }
    shape |= {"heads": hidden // HEAD, "kv_heads": hidden // HEAD, "head_dim": HEAD, "ffn": 4 * hidden}
    shape |= {"vocab": VOCAB, "tied": True, "quantized_bits": 0} | dict.fromkeys(NO_EXPERTS, 0)
    return {f"model.{name}": value for name, value in shape.items()}
