"""How many of the models that frameworks' examples name are known, and how far names alone would be off.

    python benchmarks/models.py MIRROR [--missing N]

MIRROR is a folder with git directories OWNER+NAME/repo (FRAMEWORKS lists them; those that are not there are
left out). An id counts once for each file that names it where a model is named: `model_name_or_path:
org/name`, `--hf-checkpoint org/name`, `from_pretrained("org/name")`. Ids of owners that publish no language
models, and those whose names are of data, images or speech, are left out. The second table takes each id of
the catalogue as if it were not there: the interval of the size in its name either has the parameters, or
misses them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from pathlib import Path

from cfglint.lang.values import parts
from cfglint.models.registry import CATALOGUE, catalogue, find
from cfglint.models.size import by_name

FRAMEWORKS = (
    "verl-project/verl inclusionAI/AReaL huggingface/trl OpenRLHF/OpenRLHF hiyouga/LLaMA-Factory "
    "axolotl-ai-cloud/axolotl pytorch/torchtune pytorch/torchtitan NVIDIA-NeMo/RL NVIDIA-NeMo/Automodel "
    "PrimeIntellect-ai/prime-rl THUDM/slime modelscope/ms-swift NovaSky-AI/SkyRL alibaba/ROLL "
    "allenai/open-instruct InternLM/xtuner NVIDIA-NeMo/Megatron-Bridge huggingface/accelerate "
    "huggingface/alignment-handbook"
)
_FILES = (".yaml", ".yml", ".sh", ".toml", ".py", ".json", ".ipynb", ".slurm", ".sbatch")
_APART = re.compile(r"(^|/)(tests?|unit_tests|docs|node_modules|third_party)/")
_NAMED = re.compile(
    r"(?i)(?:model|checkpoint|ckpt|pretrain|tokenizer|\bhf[_-]|actor|critic|ref|teacher|draft|repo_id|\bload\b"
    r"|asset)"
    r"[\w.\-]*['\"\])]*\s*(?:[:=,(]|\s)\s*\\?['\"]?(?:\$\{[A-Z_]+:-)?['\"]?([A-Z0-9][\w.-]*/[A-Z0-9][\w.-]+)"
)
_NO_MODEL = re.compile(r"(?i)dataset|data_|\.parquet|\.jsonl|\bdata\b|github|image:|docker|http")
_OWNERS = (
    "01-ai ai-modelscope ai21labs allenai arcee-ai axolotl-ai-co axolotl-quants baichuan-inc baidu "
    "bigcode bigscience bytedance-seed codellama cohereforai coherelabs deepseek-ai eleutherai facebook "
    "google gsai-ml huggingfaceh4 huggingfacetb huggyllama ibm-granite inclusionai internlm lgai-exaone "
    "liquidai llava-hf llm-research lmsys meta-llama meta-models microsoft minimaxai mistral-community "
    "mistralai modelscope moonshotai nousresearch nvidia openai openai-community openbmb opengvlab "
    "openlm-research openrlhf poolside primeintellect qwen rednote-hilab redhatai "
    "shanghai_ai_laboratory stabilityai state-spaces stepfun-ai swift swiss-ai teknium tencent tencent- "
    "hunyuan thudm tiiuae tinyllama trl-lib unsloth upstage virtuoussy xiaomimimo zai-org zhipuai"
)
_OTHER = (
    "whisper clip flux wan2 image t2v tts asr bert reranker embedding siglip vae gte dataset alpaca "
    "ultrachat ultrafeedback gsm8k slimorca openorca tulu-3-sft dolma the-stack starcoderdata "
    "instructions preferences mixture tokenizer docvqa geometry prompts tiny- pokemon lima _dev hh-rlhf "
    "descriptiveness sentiment capybara open-r1 filtered web -data dpo-pairs livecode dapo cosmopedia "
    "fineweb smoltalk openmath helpsteer numina sharegpt glaive judge everyday toolcall caption tldr "
    "agentinstruct vlfeedback rlaif math500 opencode openscience thoughts aime infinity hunyuanvideo "
    "ltx t5- sana z-image musicgen parakeet canary nougat ocr rlvr-"
)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--missing", type=int, default=40, metavar="N", help="ids to list that are not known")
    args = parser.parse_args()
    counts = named(args.mirror)
    known = {name for name in counts if find.source_of(name) == CATALOGUE}
    mentions, found = sum(counts.values()), sum(counts[name] for name in known)
    print(f"{len(known)} of {len(counts)} ids are known ({len(known) / len(counts):.1%})")
    print(f"{found} of {mentions} mentions are of them ({found / mentions:.1%})")
    left = [(count, name) for name, count in counts.most_common() if name not in known]
    for count, name in left[: args.missing]:
        print(f"  {count:3} {name}: {find.source_of(name) or 'nothing is told'}")
    told, missed = by_names()
    print(
        f"{told} of {len(catalogue())} names have a size; it is wrong for {len(missed)}: {', '.join(missed)}"
    )


def named(mirror: Path) -> Counter[str]:
    """Return in how many files each model is named."""
    counts: Counter[str] = Counter()
    owners = set(_OWNERS.split())
    for repository in FRAMEWORKS.split():
        git = mirror / repository.replace("/", "+") / "repo"
        for text in texts(git) if git.exists() else ():
            ids = {
                match[1].rstrip(".-")
                for line in text.split("\n")
                if len(line) < 2000
                for match in models(line)
            }
            counts.update(
                name
                for name in ids
                if name.split("/")[0].lower() in owners
                and not any(word in name.split("/")[1].lower() for word in _OTHER.split())
                and not name.endswith(_FILES)
            )
    return counts


def models(line: str) -> list[re.Match[str]]:
    """Return where a line names models."""
    return [match for match in _NAMED.finditer(line) if not _NO_MODEL.search(line[: match.start(1)])]


def texts(git: Path) -> list[str]:
    """Return the texts of a repository's examples."""
    base = ["git", "--git-dir", str(git)]
    listed = subprocess.run([*base, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, check=True)
    names = [
        name
        for name in listed.stdout.decode().split("\n")
        if name.endswith(_FILES) and not _APART.search(name)
    ]
    asked = "".join(f"HEAD:{name}\n" for name in names).encode()
    answer = subprocess.run(
        [*base, "cat-file", "--batch"], input=asked, capture_output=True, check=True
    ).stdout
    at, found = 0, []
    while at < len(answer):
        end = answer.index(b"\n", at)
        head = answer[at:end].split()
        size = int(head[2]) if head[-1].isdigit() else -1
        if 0 <= size < 400_000:
            found.append(answer[end + 1 : end + 1 + size].decode("utf-8", "replace"))
        at = end + 1 + (size + 1 if size >= 0 else 0)
    return found


def by_names() -> tuple[int, list[str]]:
    """Return how many names of the catalogue have a size, and the ids whose parameters are not within it."""
    rows, told, missed = list(catalogue().values()), 0, []
    for name, row in catalogue().items():
        figures = by_name(name, rows)
        if figures is not None:
            told += 1
            low, high, _ = parts(figures["params"])  # type: ignore[arg-type]
            if not low <= row["params"] <= high:  # type: ignore[operator]
                missed.append(name)
    return told, missed


if __name__ == "__main__":
    main()
