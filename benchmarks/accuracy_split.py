"""The split of the published rows: what formulas may look at, and what checks them.

    python benchmarks/accuracy_split.py [--write]

Rows of one project and one family of models resemble each other, so a group of them is on one side as a
whole. The side is drawn by a checksum of the group's name: nobody chooses it, and a new row of a known group
does not move the others. Formulas are written with rows of the side ``fit`` alone. A group that they were
written with (``written``) says nothing of how far a new run is; errors are measured with all others, and each
group is judged by those that the others measured. ``--write`` renews the committed list,
``benchmarks/data/groups.tsv``.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from accuracy_rows import DATA, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

FIT, CHECK, WRITTEN = "fit", "check", "written"
LIST = DATA / "groups.tsv"
# Of QLoRA (adapters on a T4; bitsandbytes before 0.43.2), of Megatron's pipelines, context parallelism and
# mixtures, of FSDP, of torchtune's recipes, of expert parallelism on FSDP, of PyTorch's context parallelism,
# of MXFP4 checkpoints, of Megatron's precision-aware optimizer, of vLLM's latent attention.
WRITTEN_WITH = (
    *("PyPI/fitcheck-llm|llama", "PyPI/fitcheck-llm|qwen2", "Lightning-AI/litgpt|llama"),
    *("MooreThreads/SimuMax|llama", "MooreThreads/SimuMax|deepseek_v2", "MooreThreads/SimuMax|deepseek_v3"),
    *(f"foundation-model-stack/fms-acceleration|{family}" for family in ("llama", "granite", "gpt_bigcode")),
    *("LambdaLabsML/distributed-training-guide|llama", "pytorch/torchtune|llama"),
    *(
        "NVIDIA-NeMo/Automodel|deepseek_v3",
        "huggingface/accelerate|qwen3",
        "axolotl-ai-cloud/axolotl|gpt_oss",
    ),
    *("NVIDIA-NeMo/Megatron-Bridge|deepseek_v3", "vllm-project/vllm|deepseek_v2"),
    *(
        "basetenlabs/ml-cookbook|qwen3_5",
        "basetenlabs/ml-cookbook|qwen3_5_moe",
        "rasbt/LLMs-from-scratch|gpt2",
    ),
    "snowflakedb/ArcticTraining|llama",
)
HEAD = "side\tgroup\tpublished\tready\tran out\tfitted\n"


def group_of(row: Mapping[str, Any]) -> str:
    """Return a row's ``project|family``."""
    return str(row["group"])


def side_of(group: str) -> str:
    """Return the side that a group is on."""
    if group in WRITTEN_WITH:
        return WRITTEN
    return CHECK if zlib.crc32(group.encode()) % 2 else FIT


def on(side: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a data file that are on one side."""
    return [row for row in rows(name) if side_of(group_of(row)) == side]


def listed() -> str:
    """Return the list of groups: the side, and how many rows of each kind there are."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for side in (FIT, CHECK, WRITTEN):
        for row in on(side, "published"):
            counts.setdefault((side, group_of(row)), Counter()).update(
                {"published": 1, "ready": int(row["estimator_ready"])}
            )
        for row in on(side, "outcomes"):
            counts.setdefault((side, group_of(row)), Counter())[row["result"]] += 1
    kinds = ("published", "ready", "oom", "fits")
    lines = ("\t".join((*names, *(str(count[kind]) for kind in kinds))) for names, count in counts.items())
    return HEAD + "".join(f"{line}\n" for line in sorted(lines))


if __name__ == "__main__":
    text = listed()
    if "--write" in sys.argv[1:]:
        LIST.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
