"""A configuration to measure, in the names of cfglint's vocabulary (rules/vocabulary.rules)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One training step: names and defaults follow the vocabulary, the last block is the oracle's own."""

    model_path: str
    micro_batch_size: int = 1
    seq_len: int = 2048
    gradient_checkpointing: str = "none"  # none, full
    attn_impl: str = "flash_attention_2"  # flash_attention_2, sdpa, eager
    param_dtype: str = "bf16"  # bf16, fp32
    dtype: str = "bf16"  # bf16 over fp32 parameters is autocast, or MixedPrecisionPolicy with dp_shard > 1
    optimizer: str = "adamw"  # adamw (foreach), adamw_fused, adamw_8bit, sgd, sgd_momentum, adafactor, none
    master_weights: bool = False
    lora_rank: int = 0
    lora_targets: tuple[str, ...] = ()
    lora_dtype: str = ""  # empty: as param_dtype
    lora_dropout: float = 0.0
    lora_experts: str = ""  # what PEFT makes of all-linear for a mixture of experts: fused since 0.20
    fused_loss: str = "none"  # none, chunked, liger
    loss_chunks: int = 8
    dp_shard: int = 1
    fsdp_reshard: bool = True
    grad_accum: int = 1
    quantization: int = 0  # bits of the frozen base: 0, 4 (NF4)
    double_quantization: bool = True
    kbit_lift: str = "none"  # what of the rest is cast to fp32: none, norms, rest (PEFT's preparation)
    amp: bool = False  # autocast over 16-bit weights too, as in Hugging Face's Trainer
    unsynced_accumulation: bool = False  # no_sync, as accelerate has it: gradients are reduced in 16 bits

    images_per_sample: int = 0  # pictures in each sequence, of a model that sees
    image_pixels: int = 0  # of each, as the tower takes it
    freeze_vision_tower: bool = False  # with adapters: they are on the language model alone

    forward_only: bool = False  # log-probabilities without gradients; no optimizer
    embedding_bits: int = 8  # of an 8-bit optimizer: transformers' Trainer keeps 32-bit states for embeddings

    @property
    def autocast(self) -> bool:
        """Whether operators cast their inputs; FSDP casts the parameters that it gathers instead."""
        return self.amp or (self.param_dtype == "fp32" and self.dtype == "bf16" and self.dp_shard == 1)

    def as_json(self) -> dict[str, object]:
        """Return every field, so that a row can be read without this file's defaults."""
        return {**dataclasses.asdict(self), "lora_targets": list(self.lora_targets)}

    @classmethod
    def from_json(cls, fields: dict[str, object]) -> Case:
        """Read a row's configuration; fields that are absent have their defaults."""
        known = {field.name for field in dataclasses.fields(cls)}
        if strange := fields.keys() - known:
            raise ValueError(f"no such field: {', '.join(sorted(strange))}")
        targets = fields.get("lora_targets", ())
        return cls(**{**fields, "lora_targets": tuple(targets)})  # type: ignore[arg-type]
