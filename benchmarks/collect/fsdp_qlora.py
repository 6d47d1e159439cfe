"""AnswerDotAI/fsdp_qlora: models too large for two RTX A5000, a command each.

benchmarking/small_gpu_benchmarking.sh keeps for each setting the command with the largest batch that got
through one forward and backward pass, and above it a remark; some say that even a batch of 1 died, of the
GPUs' memory or of the machine's. Only these are taken: which samples filled the batches of the others is
not told. The part on four GPUs is left out, its remarks cover several commands.

What train.py of the commit named there says: bf16 weights (4-bit NF4 for QLoRA) computed in autocast,
FSDP1 with full sharding or DDP, checkpointing by layer, flash attention, adapters of rank 64 on all
linears but o_proj, AdamW, samples padded to the longest and cut to the length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rows import outcome

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "AnswerDotAI/fsdp_qlora"
COMMIT = "05ed9f2a60f96a0795cb082bceab70a9b19fd213"
PREFIX = "fsdpqlora-small-"

PATH = "benchmarking/small_gpu_benchmarking.sh"
END = "# Try with 4xA5000"
FLAG = re.compile(r"--(\w+) (\S+)")
DIED = re.compile(r"SIGKIL|OOM|doesn't fix it")
HOST_DIED = re.compile(r"SIGKIL|OOM on cpu|doesn't fix it")
TARGETS = ["q_proj", "k_proj", "v_proj", "up_proj", "down_proj", "gate_proj"]
HOST_GB = 88


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return no measured rows, and the runs that died."""
    found: list[Row] = []
    remark, fresh = "", False
    for number, line in enumerate(source.read(PATH).splitlines(), 1):
        if line.startswith(END):
            break
        if line.startswith("#"):
            remark, fresh = line, True
        elif line.startswith("python "):
            flags = dict(FLAG.findall(line))
            if fresh and DIED.search(remark):
                found.append(_row(flags, remark, source.at(f"{PATH} line {number}"), number))
            fresh = False
    return [], found


def _row(flags: dict[str, str], remark: str, where: str, number: int) -> Row:
    facts: Row = {"model_path": flags["model_name"], "task": "sft", "num_gpus": 2}
    facts |= {"train_backend": "ddp"} if flags.get("use_ddp") else {"train_backend": "fsdp", "dp_shard": 2}
    facts |= {"fsdp_reshard": True} if not flags.get("use_ddp") else {}
    if flags.get("use_cpu_offload"):
        facts |= {"offload_params": True, "offload_optimizer": True}
    facts |= {"dtype": "bf16", "param_dtype": "bf16", "attn_impl": "flash"}
    facts |= {"quantization": 4} if flags["train_type"] == "qlora" else {}
    facts |= {"lora_rank": 64, "lora_targets": TARGETS}
    facts |= {"micro_batch_size": int(flags["batch_size"]), "grad_accum": 1}
    facts |= {"seq_len": int(flags["context_length"])}
    checkpointing = flags["use_gradient_checkpointing"] == "True"
    facts |= {"gradient_checkpointing": "full" if checkpointing else "none", "optimizer": "adamw"}
    facts |= {"compile": False, "fused_loss": "none"}
    common: Row = {"framework": "fsdp_qlora", "confidence": "medium"}
    common["assumed"] = ["lora_rank", "lora_targets", "attn_impl", "optimizer", "fused_loss"]
    ident = f"{PREFIX}{number}"
    if HOST_DIED.search(remark):
        common |= {"device": "host", "host_ram_gb": HOST_GB, "stated": False}
        return outcome(ident, where, "llama", "oom", "rtx-a5000", facts, **common)
    return outcome(ident, where, "llama", "oom", "rtx-a5000", facts, **common)
