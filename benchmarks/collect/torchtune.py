"""pytorch/torchtune: the two tables of its README, each row read as the recipe's config that it ran.

"Memory and training speed" stands there since September 2024, "Optimization flags" since November; the
configs are those of these commits, with what the page says of all rows (batch size, packing, length,
compilation) and what a row's technique changes, as in the command below the second table. Both give PyTorch's
active bytes.

Left out: rows of which the page does not say what differs from the config (8B on an A6000). Not ready: 405B,
whose config has a batch of 1 where the page says 2 of all rows, and whose number is in GB.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from rows import GIB, measured

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "pytorch/torchtune"
COMMIT = "bd2a0fc7c314"
PREFIX = "torchtune-table-"

PAGE = "README.md"
SPEED, FLAGS = "30b8519e8", "1814feb17"  # when each table was written
FOLDER = "recipes/configs"
# Of the first table: how its rows begin, the config, and the GPUs.
SPEED_ROWS = {
    "Llama 3.1 8B | Full finetune | 1x 4090": ("llama3_1/8B_full_single_device", "rtx-4090", 1),
    "Llama 3.1 8B | LoRA | 1x 4090": ("llama3_1/8B_lora_single_device", "rtx-4090", 1),
    "Llama 3.1 8B | QLoRA | 1x 4090": ("llama3_1/8B_qlora_single_device", "rtx-4090", 1),
    "Llama 3.1 70B | Full finetune | 8x A100": ("llama3_1/70B_full", None, 8),
    "Llama 3.1 70B | LoRA | 8x A100": ("llama3_1/70B_lora", None, 8),
    "Llama 3.1 405B | QLoRA | 8x A100": ("llama3_1/405B_qlora", None, 8),
}
SPEED_SETS = {
    "batch_size": 2,
    "gradient_accumulation_steps": 1,
    "tokenizer": {"max_seq_len": 2048},
    "dataset": {"packed": True},
    "compile": True,
}
# Of the second: the technique, its config and what it sets beyond the row above; baseline first.
FULL, ADAPTED, QUANTIZED = (f"llama3_2/3B_{name}_single_device" for name in ("full", "lora", "qlora"))
ADAMW = {"_component_": "torch.optim.AdamW", "fused": True}  # fused: full's peaks leave no room for another
CHUNKED = {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"}
BASELINE: Row = {
    "batch_size": 2,
    "gradient_accumulation_steps": 1,
    "tokenizer": {"max_seq_len": 4096},
    "dataset": {"packed": False},
    "compile": False,
    "loss": {"_component_": "torch.nn.CrossEntropyLoss"},
    "enable_activation_checkpointing": False,
    "enable_activation_offloading": False,
    "optimizer_in_bwd": False,
    "optimizer": ADAMW,
}
ADAPTERS = {"optimizer_in_bwd": False, "optimizer": ADAMW}
FLAG_ROWS: dict[str, tuple[str, Row]] = {
    "Baseline": (FULL, {}),
    "Packed Dataset": (FULL, {"dataset": {"packed": True}}),
    "Compile": (FULL, {"compile": True}),
    "Chunked Cross Entropy": (FULL, {"loss": CHUNKED}),
    "Activation Checkpointing": (FULL, {"enable_activation_checkpointing": True}),
    "Fuse optimizer step into backward": (FULL, {"optimizer_in_bwd": True}),
    "Activation Offloading": (FULL, {"enable_activation_offloading": True}),
    "8-bit AdamW": (FULL, {"optimizer": {"_component_": "bitsandbytes.optim.AdamW8bit"}}),
    "LoRA": (ADAPTED, ADAPTERS),
    "QLoRA": (QUANTIZED, ADAPTERS),
}
# What moves no memory, or names files.
DROPPED = (
    *("checkpointer", "metric_logger", "profiler", "output_dir", "log_every_n_steps", "seed", "shuffle"),
    *(
        "log_peak_memory_stats",
        "max_steps_per_epoch",
        "resume_from_checkpoint",
        "lr_scheduler",
        "save_adapter_weights_only",
    ),
)


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return the measured rows; nothing died."""
    text = source.read(PAGE)
    return [*_speed(source, text), *_flags(source, text)], []


def _speed(source: Checkout, text: str) -> list[Row]:
    rows: list[Row] = []
    for begin, (name, gpu, gpus) in SPEED_ROWS.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| {begin} "))
        config = _merged(_config(source, SPEED, name), SPEED_SETS)
        rows.append(_row(source, name.replace("/", "-").lower(), _number(line, 3), config, gpu, gpus, SPEED))
    return rows


def _flags(source: Checkout, text: str) -> list[Row]:
    rows: list[Row] = []
    sets = BASELINE
    for technique, (name, more) in FLAG_ROWS.items():
        heads = (f"| {technique} |", f"| [{technique}]", f"| [+ {technique}]")
        line = next(line for line in text.splitlines() if line.startswith(heads))
        sets = _merged(sets, more)
        config = _merged(_config(source, FLAGS, name), sets)
        ident = f"flags-{technique.lower().replace(' ', '-')}"
        rows.append(_row(source, ident, _number(line, 1), config, "a100-80gb-sxm", 1, FLAGS))
    return rows


def _row(  # noqa: PLR0913 - a row's fields
    source: Checkout, ident: str, peak: Any, config: Row, gpu: str | None, gpus: int, commit: str
) -> Row:
    packed = config["dataset"]["packed"]
    return measured(
        PREFIX + ident,
        f"{source.at(PAGE)} + {FOLDER} @{commit}",
        "llama",
        peak,
        "active",
        gpu,
        {"num_gpus": gpus} | ({"lora_rank": rank} if (rank := config["model"].get("lora_rank")) else {}),
        framework="torchtune",
        framework_of_run="torchtune",
        config={name: value for name, value in config.items() if name not in DROPPED},
        ready=packed and "405b" not in ident,
        seq_reached=packed,
        missing=["A100 40 or 80 GB" if gpu is None else "which configs the page started from"],
    )


def _config(source: Checkout, commit: str, name: str) -> Row:
    found: Row = yaml.safe_load(replace(source, commit=commit).read(f"{FOLDER}/{name}.yaml"))
    return found


def _merged(config: Row, sets: Row) -> Row:
    """Return a config with settings over it, in the sections too."""
    found: dict[str, Any] = dict(config)
    for name, value in sets.items():
        below = found.get(name)
        deep = isinstance(value, dict) and isinstance(below, dict) and "_component_" not in value
        found[name] = {**below, **value} if deep else value  # type: ignore[dict-item]
    return found


def _number(line: str, column: int) -> float | list[float]:
    """Return a cell's number; one in GB may be either unit."""
    number, *unit = line.strip("| ").split("|")[column].split()
    return [float(number) * 1e9 / GIB, float(number)] if "GB" in unit else float(number)
