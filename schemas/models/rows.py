"""Makes a row of the catalogue from a config: its columns, and its parameters as transformers counts them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from cfglint.lang.values import Open
from cfglint.models import COLUMNS
from cfglint.models.hf_config import ModelConfigError, shape_of
from cfglint.models.size import ALONE, FORMS, Form, active_params, params

_VISION = (
    "visual",
    "vision",
    "image_",
    "mm_projector",
    "multi_modal_projector",
    "connector",
    "embed_vision",
    "mlp1",
)
_FIRST = ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied")
_HELD = (  # what only the count needs
    "q_rank", "rope_dim", "nope_dim", "value_dim", "embed_dim", "attention_bias", "output_bias", "mlp_bias",
    "qk_norm", "expert_hidden",
)  # fmt: skip
_LEFT = ("family", "params", "active_params", "named", "vision_params", "positions", "context")


class RowError(Exception):
    """No row can be made of a config; the text says why."""


def row_of(config: dict[str, Any], *, form_only: bool = False, family: str = "") -> dict[str, Any]:
    """Return the family, the figures, and what counted them."""
    try:
        own, figures = shape_of(config)
    except ModelConfigError as error:
        raise RowError(str(error)) from None
    family = family or own
    if family not in FORMS and family not in ALONE:
        raise RowError(f"no form is written for {family}")
    try:
        counted, tied = ({}, False) if form_only else counts(config)
    except Exception as error:  # noqa: BLE001 (whatever a class of transformers makes of a config)
        raise RowError(f"transformers: {type(error).__name__}: {error}"[:300]) from None
    if isinstance(figures["tied"], Open):
        if not counted:
            raise RowError("whether the embeddings are tied is not said; set tie_word_embeddings")
        figures["tied"] = tied
    form = FORMS.get(family, Form())
    usual = {"attention_bias": form.qkv_bias, "output_bias": form.out_bias, "mlp_bias": form.mlp_bias}
    whole = {
        name: figures[name]
        for name in (*_FIRST, *COLUMNS, *_HELD, *(("max_positions",) if form.positions is not None else ()))
        if _told(name, figures) and (name not in usual or figures[name] != usual[name])
    }
    if family in ALONE and not counted:
        raise RowError(f"transformers has no class for {family}")
    try:
        counted_by_form = params(family, whole)
    except KeyError as error:
        raise RowError(f"the form needs {error}") from None
    if counted:
        beside = sum(counted.values()) - counted_by_form
        if beside < 0 and family not in ALONE:
            raise RowError(f"the form counts {-beside} more than transformers: {counted}")
        whole.update({name: value for name, value in (("other_params", beside),) if value})
        if counted["vision"] and (config.get("vision_config") or "audio_config" not in config):
            whole["vision_params"] = counted["vision"]
    whole["params"] = params(family, whole)
    if figures["experts"]:
        whole["active_params"] = active_params(family, whole)
    return {"family": family, "figures": whole, "counted": "transformers" if counted else "form"}


def _told(name: str, figures: dict[str, Any]) -> bool:
    if name in _LEFT or name not in figures:
        return False
    if name in ("attention_layers", "mlp_layers"):
        return bool(figures[name] != figures["layers"])
    return name in (*_FIRST, "attention_bias", "output_bias", "mlp_bias", "q_rank") or bool(figures[name])


def built(config: dict[str, Any]) -> Any:
    """Return the model of a config.json on the meta device; None where transformers has no class for it."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    if config.get("model_type") not in CONFIG_MAPPING_NAMES:
        return None
    with tempfile.TemporaryDirectory() as folder:
        left_out = ("quantization_config", "auto_map", "compression_config")
        plain = {key: value for key, value in config.items() if key not in left_out}
        Path(folder, "config.json").write_text(json.dumps(plain), "utf-8")
        made = transformers.AutoConfig.from_pretrained(folder)
    for auto in ("AutoModelForMultimodalLM", "AutoModelForImageTextToText", "AutoModelForCausalLM"):
        family = getattr(transformers, auto)
        if type(made) in family._model_mapping:  # noqa: SLF001 (no other way to ask)
            with torch.device("meta"):
                return family.from_config(made)
    return None


def counts(config: dict[str, Any]) -> tuple[dict[str, int], bool]:
    """Return the parameters of the class of transformers by text, vision and audio, and if they are tied.

    No parameters where transformers has no class.
    """
    model = built(config)
    if model is None:
        return {}, False
    made = model.config
    counted = {"text": 0, "vision": 0, "audio": 0}
    for name, weights in model.named_parameters():
        part = "audio" if "audio" in name else "vision" if any(word in name for word in _VISION) else "text"
        counted[part] += weights.numel()
    return counted, bool(
        getattr(made.get_text_config(), "tie_word_embeddings", getattr(made, "tie_word_embeddings", False))
    )
