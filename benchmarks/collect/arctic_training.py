"""snowflakedb/ArcticTraining: the recipes of its long sequence training (projects/sequence-parallelism).

Each, a YAML file, is pushed until its length just fits; beside the lengths tried stand what became of them
("oom", "cpu oom", "close to oom", "cache flushes") and often the memory of the GPU by NVML after a step
(debug/utils.py: "NV", in 2**30 bytes; the H200 files leave the letters out). The commits are those where the
lists were longest; later ones keep the last length only.

What the code of those commits says: checkpointing is on unless disabled, samples are packed up to
`max_length`, one GPU uses the model's own loss, `type: liger` its fused one, weights are bf16 and the
optimizer (with fp32 weights) lives on the host. `tiled_mlp_compute` has no name in the vocabulary, so such
rows are not ready. Each data-parallel group is one sequence-parallel group: GPUs = SP.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from rows import checkout, measured, outcome, thinned

if TYPE_CHECKING:
    from pathlib import Path

    from rows import Checkout, Row

NAME = "snowflakedb/ArcticTraining"
PREFIX = "arctic-"
FOLDER = "projects/sequence-parallelism"
H200 = "b8013b9634a576f0bb4d6e192ae6aeef6a2b4bc0"
H100 = "9ef816bd803df81e87ce3a4b7a9e8bce2e47bd90"
EARLIER = "89815cd69a826e71e69c6488325105d20292d1eb"  # the baseline, also with weights on the GPU

FAMILIES = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama",
    "meta-llama/Llama-3.1-70B-Instruct": "llama",
    "Qwen/Qwen3-32B": "qwen3",
}
# Their lists contradict the settings of the file: no sequence parallelism by name, SP 8 or 32 by its key.
CONTRADICTORY = ("no-ulysses", "sp32-llama-8b-baseline")
# Lengths whose remarks are of another setting: 32,000 tokens cannot take what 15,000,000 take, and so on.
STALE = {("sp32-llama-8b", 32_000), ("sp32-llama-8b", 1_800_000), ("sp32-llama-8b", 2_200_000)}

LENGTH = re.compile(
    r"^[ \t]*(#?)[ \t]*max_length:[ \t]*(\d+|\d{1,3}(?:_\d{3})+)(?![\d_])[ \t]*#?[ \t]*(.*)$", re.MULTILINE
)
MEMORY = re.compile(r"([\d.]+) ?GB")
HOST_DIED = re.compile(r"cpu[ -]oom")
BARELY = re.compile(r"close to oom|flush|flash|almost oom")
FITS = re.compile(r"ok\b|w/ param offload|fits")
HOST_GB = 1900  # of a machine of eight GPUs, by the README


def collect_from(folder: Path) -> tuple[list[Row], list[Row]]:
    """Return the measured rows and the outcomes of the three commits."""
    published: list[Row] = []
    outcomes: list[Row] = []
    for commit, gpu in ((H100, "h100-sxm"), (H200, "h200"), (EARLIER, "h100-sxm")):
        source = checkout(folder, NAME, commit)
        if source is None:
            raise SystemExit(f"arctic_training: no checkout of {NAME} in {folder}")
        for path in _paths(source):
            for row in _rows_of(source, path, gpu):
                (published if "peak_gib" in row else outcomes).append(row)
    return thinned(published), _nearest_the_limit(outcomes)


def _nearest_the_limit(rows: list[Row]) -> list[Row]:
    """Return of each recipe the longest length that fitted and the shortest that died."""
    kept: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["facts"]["seq_len"]):
        key = (row["source"], row["result"])
        if row["result"] == "fits" or key not in kept:
            kept[key] = row
    return [row for row in rows if row in kept.values()]


def _paths(source: Checkout) -> list[str]:
    """Return the recipes to read at a commit."""
    names = [name for name in source.names(FOLDER) if name.endswith(".yml")]
    names = [name for name in names if not any(word in name for word in CONTRADICTORY)]
    if source.commit == EARLIER:
        return [name for name in names if "sp1-llama-8b-baseline" in name]
    return sorted(name for name in names if ("h200" in name) == (source.commit == H200))


def _rows_of(source: Checkout, path: str, gpu: str) -> list[Row]:
    text = source.read(path)
    recipe = path.rsplit("/run-", 1)[1].removesuffix(".yml")
    config = yaml.safe_load(text)
    rows: list[Row] = []
    for mark, length, remark in LENGTH.findall(text):
        facts = _facts(config, int(length), remark)
        if (recipe, int(length)) in STALE or (source.commit == EARLIER and facts["offload_params"]):
            continue
        notes = ["the MLP is computed in tiles"] * bool(config.get("tiled_mlp_compute"))
        ident = f"{PREFIX}{recipe}-{int(length) // 1000}k"
        left_with = not mark and not remark and source.commit == H100  # the recipe's own length
        made = _row(ident, source.at(path), gpu, facts, notes, "ok" if left_with else remark)
        rows += [row | {"outside": ["an MLP computed in tiles"]} if notes else row for row in made]
    return rows


def _row(ident: str, where: str, gpu: str, facts: Row, notes: list[str], remark: str) -> list[Row]:
    family, ready = FAMILIES[facts["model_path"]], not notes
    common: Row = {"framework": "deepspeed", "framework_of_run": "arctic-training"}
    common |= {"assumed": ["gradient_checkpointing", "packing", "grad_accum", "param_dtype"]}
    memory = MEMORY.search(remark)
    if memory and not HOST_DIED.match(remark):
        peak, sure = float(memory[1]), "NV" in remark
        around = peak if "." in memory[1] else [peak - 0.5, peak + 0.5]
        common |= {"ready": ready, "confidence": "high" if sure else "medium"}
        common["missing"] = [] if sure else ["the statistic: NVML in the recipe's other lines"]
        common["note"] = _note([*notes, *["its loss was NaN"] * ("nan" in remark)])
        return [measured(ident, where, family, around, "nvidia-smi", gpu, facts, **common)]
    barely = BARELY.search(remark)
    common |= {"confidence": "medium", "note": _note([*notes, *[f"barely: {remark}"] * bool(barely)])}
    if HOST_DIED.match(remark):
        common |= {"device": "host", "host_ram_gb": HOST_GB, "stated": False}
        return [outcome(ident, where, family, "oom", gpu, facts, **common)]
    if remark.startswith("oom") or barely or FITS.match(remark):
        result = "oom" if remark.startswith("oom") else "fits"
        return [outcome(ident, where, family, result, gpu, facts, stated=ready and result == "oom", **common)]
    return []


def _facts(config: Row, length: int, remark: str) -> Row:
    zero = config["deepspeed"]["zero_optimization"]
    model = config["model"]
    parallel: int = config["sequence_parallel_size"]
    facts: dict[str, Any] = {"model_path": model["name_or_path"], "task": "sft", "num_gpus": parallel}
    facts |= {"train_backend": "deepspeed", "zero_stage": zero["stage"]}
    facts |= {"sp": parallel} if parallel > 1 else {}
    facts |= {"offload_optimizer": "offload_optimizer" in zero, "offload_params": "offload_param" in zero}
    if "w/o param offload" in remark:
        facts["offload_params"] = False
    facts |= {"dtype": "bf16", "param_dtype": "bf16", "master_weights": True}
    facts |= {"attn_impl": "sdpa" if model["attn_implementation"] == "sdpa" else "flash"}
    facts |= {"micro_batch_size": config["micro_batch_size"], "grad_accum": 1, "seq_len": length}
    facts |= {"packing": True, "gradient_checkpointing": "full"}
    facts |= {"activation_offload": True} if config.get("activation_checkpoint_cpu_offload") else {}
    return facts | {"optimizer": "adamw", "fused_loss": "liger" if model.get("type") == "liger" else "none"}


def _note(notes: list[str]) -> str | None:
    return "; ".join(notes) or None
