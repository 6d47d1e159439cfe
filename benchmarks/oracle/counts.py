"""Weights by kind, and adapters by list of targets, of every model that transformers builds.

The configs are those of the catalogue: of `schemas/models` where a row came from one, else made of the
row's figures. Adapters are PEFT's own, of rank 1, all on the meta device, so that what is counted is the
sum over layers of inputs and outputs.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import peft
import torch
import transformers
import yaml
from peft import LoraConfig, get_peft_model

from oracle import models

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from transformers import PreTrainedModel

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "schemas" / "models"), str(_ROOT / "linter")]

LISTS: dict[str, list[str] | str | None] = {
    "all-linear": "all-linear",
    "default": None,  # PEFT's own list for the family
    "q_proj,v_proj": ["q_proj", "v_proj"],
    "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj": [
        *("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    ],
}
# Names with their parents, patterns of whole paths and the number of a layer, for a model of each make.
PATTERNS: dict[str, list[str] | str] = {
    "parents": ["self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"],
    "shared": [
        *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
        *("shared_expert.gate_proj", "shared_expert.up_proj", "shared_expert.down_proj"),
    ],
    "pattern": r".*layers\.\d+\.(self_attn|mlp|feed_forward)\.(up|down|gate|q|k|v|o)_proj",
    "no tower": r"^(?!.*(visual|vision|multi_modal)).*\.(q_proj|v_proj)",
    "tensors": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
    "one layer": ["layers.3.self_attn.q_proj", "layers.3.self_attn.v_proj"],
}
MAKES = (
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen2.5-VL-3B-Instruct",
    "meta-llama/Llama-4-Scout-17B-16E",
    "THUDM/GLM-4-9B-0414",
)
MAKES += ("microsoft/Phi-3-mini-4k-instruct", "google/gemma-2-2b", "mistralai/Mixtral-8x7B-v0.1", "gpt2")
_TOWER = ("visual", "vision", "image_", "mm_projector", "multi_modal_projector", "connector", "audio")


def _from_configs(mirror: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    from configs import ConfigSourceError, config_of  # type: ignore[import-not-found]

    sources = yaml.safe_load((_ROOT / "schemas/models/sources.yaml").read_text("utf-8"))
    for entry in sources["rows"]:
        try:
            yield entry["ids"][0], config_of(entry, sources["commits"], mirror)
        except ConfigSourceError as error:
            print(f"{entry['ids'][0]}: {error}", file=sys.stderr)


def _from_figures() -> Iterator[tuple[str, dict[str, Any]]]:
    path = _ROOT / "linter/cfglint/models/models.yaml"
    seen = set()
    for row in yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)["models"]:
        figures = {**row["figures"], "family": row["family"]}
        shape = json.dumps({k: v for k, v in figures.items() if k not in ("max_positions", "quantized_bits")})
        if shape not in seen:
            seen.add(shape)
            yield (row.get("ids") or [row["id"]])[0], figures


def _made(config: dict[str, Any]) -> PreTrainedModel:
    """Return the model of a config.json, as schemas/models counts it."""
    from rows import built  # type: ignore[import-not-found]

    model: PreTrainedModel | None = built(config)
    if model is None:
        raise LookupError(f"no class for {config.get('model_type')}")
    return model


def _kinds(model: PreTrainedModel) -> dict[str, int]:
    """Return the numbers of weights by kind: experts that tokens are sent to, tables, tower, and the rest."""
    counted: Counter[str] = Counter()
    tables = {
        id(part.weight) for part in (model.get_input_embeddings(), model.get_output_embeddings()) if part
    }
    for name, weight in model.named_parameters():
        if any(word in name for word in _TOWER):
            kind = "tower"
        elif ".experts." in name and "shared" not in name:
            kind = "experts"
        else:
            kind = "tables" if id(weight) in tables else "rest"
        counted[kind] += weight.numel()
    return dict(counted)


def _adapters(model: PreTrainedModel, targets: list[str] | str | None) -> dict[str, int]:
    """Return how many numbers adapters of rank 1 have, those of the tower apart."""
    tensors = [name for name in targets or () if ".experts." in name] if isinstance(targets, list) else []
    kinds = {"target_modules": [], "target_parameters": tensors} if tensors else {"target_modules": targets}
    settings = LoraConfig(r=1, task_type="CAUSAL_LM", **kinds)  # type: ignore[arg-type]
    with torch.device("meta"):
        adapted = get_peft_model(model, settings, autocast_adapter_dtype=False)
    counted: Counter[str] = Counter()
    for name, weight in adapted.named_parameters():
        if weight.requires_grad:
            counted["tower" if any(word in name for word in _TOWER) else "text"] += weight.numel()
    return dict(counted)


def _count(make: Any, done: set[tuple[str, bool, bool]]) -> dict[str, Any]:
    """Return a model's counts; adapters for the first of each architecture, with and without a tower."""
    model = make()
    row: dict[str, Any] = {"weights": _kinds(model), "lora": {}}
    sort = (model.config.get_text_config().model_type, "tower" in row["weights"], "experts" in row["weights"])
    lists = {} if sort in done else LISTS
    done.add(sort)
    row["lora"] = _by_targets(make, lists)
    return row


def _by_targets(make: Any, lists: Mapping[str, list[str] | str | None]) -> dict[str, Any]:
    counted: dict[str, Any] = {}
    for name, targets in lists.items():
        try:
            counted[name] = _adapters(make(), targets)
        except (ValueError, TypeError, NotImplementedError, RuntimeError) as error:
            counted[name] = {"failure": str(error).splitlines()[0][:160]}
    return counted


def _sources(mirror: str) -> Iterator[tuple[str, Any]]:
    for name, config in _from_configs(Path(mirror)):
        yield name, lambda config=config: _made(config)
    for name, row in _from_figures():
        yield name, lambda row=row: models.on_meta(row)


def patterns(path: str, mirror: str) -> int:
    """Count the adapters of some models by parents, patterns and numbers into a file of JSON lines."""
    warnings.simplefilter("ignore")
    versions = {"transformers": transformers.__version__, "peft": peft.__version__}
    with open(path, "w", encoding="utf-8") as stream:
        for name, make in _sources(mirror):
            if name in MAKES:
                for title, counted in _by_targets(make, PATTERNS).items():
                    row = {"model": name, "targets": PATTERNS[title], "lora": counted, **versions}
                    stream.write(json.dumps(row) + "\n")
    return 0


def fill(path: str, mirror: str) -> int:
    """Count every model of the catalogue into a file of JSON lines."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    versions = {"transformers": transformers.__version__, "peft": peft.__version__}
    failed = 0
    done: set[tuple[str, bool, bool]] = set()
    with open(path, "w", encoding="utf-8") as stream:
        for name, make in _sources(mirror):
            try:
                row = {"model": name, **_count(make, done), **versions}
            except Exception as error:  # noqa: BLE001 (whatever a class makes of a config)
                failed += 1
                print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
                continue
            stream.write(json.dumps(row) + "\n")
            stream.flush()
    print(f"{failed} models could not be built")
    return 0
