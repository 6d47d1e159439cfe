"""What one more layer keeps for the backward pass, of any architecture of transformers, against Llama's.

`python -m oracle spread` builds each decoder of transformers at one size with four and with five layers, and
compares what the fifth keeps with Llama's formula at that size: how far an architecture that nobody measured
may be from it.
`python -m oracle towers` does the same for vision towers, in bytes per patch.
"""

from __future__ import annotations

import importlib
import statistics
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from oracle import attention, scan
from oracle.cuda import like_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKENS = 128
_PATCHES = 1024
_SIZE = {
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 3072,
    "vocab_size": 64,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# Towers: their configuration, class, sizes, and the key for the number of layers.
_TOWERS = (
    ("qwen2_vl", "Qwen2VLVisionConfig", "Qwen2VisionTransformerPretrainedModel", "depth"),
    ("qwen2_5_vl", "Qwen2_5_VLVisionConfig", "Qwen2_5_VisionTransformerPretrainedModel", "depth"),
    ("qwen3_vl", "Qwen3VLVisionConfig", "Qwen3VLVisionModel", "depth"),
    ("clip", "CLIPVisionConfig", "CLIPVisionModel", "num_hidden_layers"),
    ("siglip", "SiglipVisionConfig", "SiglipVisionModel", "num_hidden_layers"),
)
_TOWER = {"hidden_size": 640, "intermediate_size": 1500, "num_heads": 8, "num_attention_heads": 8}
_SPECIAL: dict[str, dict[str, Any]] = {
    "qwen2_vl": {"embed_dim": 640, "mlp_ratio": 3, "hidden_size": 512},
    "qwen2_5_vl": {"out_hidden_size": 512, "fullatt_block_indexes": [0, 1, 2]},
    "qwen3_vl": {"out_hidden_size": 512, "deepstack_visual_indexes": []},
    "clip": {"image_size": 448, "patch_size": 14},
    "siglip": {"image_size": 448, "patch_size": 14},
}


def _kept(model: torch.nn.Module, run: Callable[[], object]) -> int:
    """Return the bytes that autograd keeps of a forward pass, without the parameters."""
    seen = {tensor.untyped_storage()._cdata: 0 for tensor in (*model.parameters(), *model.buffers())}  # noqa: SLF001
    held = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        seen.setdefault(storage._cdata, storage.nbytes())  # noqa: SLF001
        held.append(tensor)  # else another storage could get its identity
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), like_cuda(autocast=False):
        run()
    return sum(seen.values())


def _decoder(config_name: str, class_name: str, depth: int, *, frozen: bool) -> tuple[int, bool]:
    """Return what a decoder of some layers keeps, and whether it is a mixture of experts."""
    with FakeTensorMode():
        torch.set_default_dtype(torch.bfloat16)
        config = getattr(transformers, config_name)(**_SIZE, num_hidden_layers=depth, use_cache=False)
        config._attn_implementation = "oracle_fused"  # noqa: SLF001
        model = getattr(transformers, class_name)(config)
        torch.set_default_dtype(torch.float32)
        model.train()
        if frozen:
            model.requires_grad_(requires_grad=False)
            model.enable_input_require_grads()
        base = model.base_model if model.base_model is not model else model.model
        ids = torch.zeros((1, _TOKENS), dtype=torch.long)
        experts = any("experts" in name for name, _ in model.named_parameters())
        return _kept(model, lambda: base(input_ids=ids)), experts


def spread() -> int:
    """Print each dense decoder's ratio to Llama, and the percentiles."""
    attention.register()
    scan.register()
    hidden, width, ffn = _SIZE["hidden_size"], 64 * (16 + 4), _SIZE["intermediate_size"]
    llama = (16 * hidden + 4 * width + 64 + 8 * ffn, 8 * hidden + 4 * width + 64 + 6 * ffn)
    ratios: list[list[float]] = [[], []]
    for name, classes in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()):
        class_name = classes[0] if isinstance(classes, (list, tuple)) else classes
        try:
            found = []
            for frozen in (False, True):
                (less, _), (more, experts) = (
                    _decoder(CONFIG_MAPPING_NAMES[name], class_name, depth, frozen=frozen) for depth in (4, 5)
                )
                found.append((more - less) / _TOKENS / llama[frozen])
        except Exception as error:  # noqa: BLE001 — a class that does not take these sizes says nothing
            print(f"{name:24} not built: {type(error).__name__}")
            continue
        if experts or not found[0]:
            continue
        print(f"{name:24} {found[0]:6.2f} {found[1]:6.2f}")
        for ratio, every in zip(found, ratios, strict=True):
            every.append(ratio)
    for word, every in zip(("trained", "frozen"), ratios, strict=True):
        cuts = statistics.quantiles(every, n=20)
        print(f"{word}: {len(every)} architectures, 5 % below {cuts[0]:.2f}, 5 % above {cuts[-1]:.2f}")
    return 0


def towers() -> int:
    """Print what a layer of each vision tower keeps per patch; of real tensors, since it looks at them."""
    attention.register()
    for family, config_name, class_name, layers in _TOWERS:
        found = []
        for depth in (2, 3):
            code = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
            config = getattr(code, config_name)(**{**_TOWER, **_SPECIAL[family], layers: depth})
            config._attn_implementation = "oracle_fused"  # noqa: SLF001
            torch.set_default_dtype(torch.bfloat16)
            code = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
            model = getattr(code, class_name)(config).train()
            torch.set_default_dtype(torch.float32)
            found.append(_kept(model, lambda model=model, config=config: _look(model, config)))
        print(f"{family:12} {(found[1] - found[0]) / _PATCHES:9.0f} bytes per patch and layer")
    return 0


def _look(model: Any, config: Any) -> object:
    if hasattr(config, "image_size"):
        return model(pixel_values=torch.zeros((1, 3, 448, 448), dtype=torch.bfloat16))
    pixels = config.in_channels * config.temporal_patch_size * config.patch_size**2
    patches = torch.zeros((_PATCHES, pixels), dtype=torch.bfloat16)
    return model(patches, grid_thw=torch.tensor([[1, 32, 32]]))
