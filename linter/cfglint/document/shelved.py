"""DeepSpeed files beside the one that a config names, which differ from it in stage and offload alone.

A project ships several, and people move a run by naming another. Batches, precision and the optimizer are
the same in both, or filled in by the trainer in both. AdamW whose settings are the trainer's is its own
optimizer; a schedule, the clipping of gradients and the scaling of an fp16 loss may differ, which is told
(rules/results.rules).
"""

from __future__ import annotations

import json
import os

from cfglint.files import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from cfglint.document.layers import Layers, Source
    from cfglint.document.reading import Library

KINDS = ("zero1", "zero2", "zero2_offload", "zero3", "zero3_offload")
_ZERO = "zero_optimization"
_TALK = ("wall_clock_breakdown", "steps_per_print", "comms_logger", "flops_profiler", "dump_state")
_FILLED = {"optimizer": ("AdamW",), "scheduler": ("WarmupLR", "WarmupDecayLR"), "gradient_clipping": ()}
# Where the optimizer of an offload comes from, which only a file that offloads has to say.
_HOST = ("zero_force_ds_cpu_optimizer", "zero_allow_untested_optimizer")
_OTHERS = ("zero_hpz", "zero_quantized", "mics_", "offload_optimizers", "cpu_offload")  # more, or old
# How a dynamic scale moves, with what holds without a word (deepspeed/runtime/fp16/loss_scaler.py).
_SCALES = {"initial_scale_power": 16, "loss_scale_window": 1000, "hysteresis": 2, "min_loss_scale": 1}
# Keys of ZeRO that memory rests on (rules/memory/moments.rules).
_SIZES = {
    "bucket": "reduce_bucket_size",
    "overlap": "overlap_comm",
    "contiguous": "contiguous_gradients",
    "live": "stage3_max_live_parameters",
    "reuse": "stage3_max_reuse_distance",
    "ahead": "stage3_prefetch_bucket_size",
}
_MOST = 40  # files of a folder


def shelved(layers: Layers | None, library: Library | None) -> dict[str, object]:
    """Return the files by what they make of ZeRO (`KINDS`), named as the config would name them.

    Behind a kind, or ``own``, ``_schedule``, ``_groups``, ``_clipping`` and ``_scaling`` tell what else it
    decides, ``_kind`` what it makes of ZeRO, and the names of `_SIZES` what it says of buffers.
    """
    source = next(filter(_is_deepspeeds, layers.files if layers is not None else ()), None)
    if source is None or library is None:
        return {}
    own, folder = _parsed(source.file.text), os.path.dirname(source.file.path)
    kind = _kind(own) if own is not None else None
    if own is None or kind is None:
        return {}
    decides = _decided("", own)
    found: dict[str, object] = {kind: source.node.text, **_told("own", kind, own), **_told(kind, kind, own)}
    others: list[tuple[int, str, str, dict[str, object]]] = []
    for name in _beside(folder):
        file = library.file(os.path.join(folder, name), source.file.path)
        other = None if file is None else _parsed(file.text)
        kind = _kind(other) if other is not None and _rest(other) == _rest(own) else None
        if other is not None and kind is not None:
            differs = sum(decides[key] != said for key, said in _decided("", other).items())
            others.append((differs, kind, name, other))
    for _, kind, name, other in sorted(others, key=lambda one: one[0]):  # what changes least, first
        if kind not in found:
            start = source.node.text[: -len(os.path.basename(source.node.text))]
            found |= {kind: f"{start}{name}", **_told(kind, kind, other)}
    return found


def _told(name: str, kind: str, config: Mapping[str, Any]) -> dict[str, object]:
    """Return what a config decides beside ZeRO, what it makes of that, and how large its buffers are."""
    sizes = {f"{name}_{size}": config[_ZERO].get(key, "") for size, key in _SIZES.items()}
    return {**_decided(name, config), f"{name}_kind": kind, **sizes}


def _decided(kind: str, config: Mapping[str, object]) -> dict[str, str]:
    """Return what a config says of the schedule, of clipping, and of how the loss is scaled.

    With an optimizer of its own, DeepSpeed takes all weights as one group.
    """
    schedule = config.get("scheduler")
    told = str(schedule.get("type", "")) if isinstance(schedule, dict) else "the trainer's"
    clips = str(config.get("gradient_clipping", "none")).replace("auto", "max_grad_norm")
    own = config.get("fp16")
    halves = own if isinstance(own, dict) and own.get("enabled") is not False else None
    sizes = {} if halves is None else {key: halves.get(key, size) for key, size in _SCALES.items()}
    scales = ", ".join(f"{key} {size}" for key, size in sizes.items())
    groups = "one, by DeepSpeed" if isinstance(config.get("optimizer"), dict) else "the trainer's"
    return {
        f"{kind}_schedule": told,
        f"{kind}_groups": groups,
        f"{kind}_clipping": clips,
        f"{kind}_scaling": scales or "none",
    }


def _is_deepspeeds(source: Source) -> bool:
    """Whether a file hangs at a key as DeepSpeed's config."""
    key = source.key.rpartition(".")[2]
    return source.hung and source.file.path.endswith(".json") and key in ("deepspeed", "deepspeed_config")


def _beside(folder: str) -> Iterator[str]:
    """Yield the JSON files of a folder, those with the shortest names first; none of a large folder."""
    _, _, files, _ = next(walk(folder or os.curdir), ("", [], [], []))
    names = [name for name in files if name.endswith(".json")]
    yield from sorted(names, key=lambda name: (len(name), name)) if len(names) <= _MOST else ()


def _parsed(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rest(config: Mapping[str, object]) -> dict[str, object]:
    """Return what a config says of everything but ZeRO, and of what the trainer fills in.

    bf16 that it fills in is as good as bf16 on: where its precision is another, a rule of the file says so.
    """
    rest = {
        key: value
        for key, value in config.items()
        if key not in (_ZERO, *_TALK, *_HOST) and not (key in _FILLED and _is_filled(value, _FILLED[key]))
    }
    if _enabled(rest.get("bf16")) in ("auto", True):
        rest["bf16"] = {"enabled": "auto"}
        if _enabled(rest.get("fp16")) in ("auto", False):
            del rest["fp16"]
    elif isinstance(halves := rest.get("fp16"), dict):
        rest["fp16"] = {key: value for key, value in halves.items() if key not in _SCALES}
    return rest


def _enabled(section: object) -> object:
    return section.get("enabled") if isinstance(section, dict) else None


def _is_filled(part: object, kinds: tuple[str, ...]) -> bool:
    """Whether a part is of one of some kinds, and the trainer gives all its settings."""
    if part == "auto":
        return True
    if not isinstance(part, dict) or not isinstance(settings := part.get("params"), dict):
        return False
    return part.get("type") in kinds and all(each == "auto" for each in settings.values())


def _kind(config: Mapping[str, object]) -> str | None:
    """Return what a config makes of ZeRO; None where it does more than shard and offload to the host."""
    zero = config.get(_ZERO)
    stage = zero.get("stage") if isinstance(zero, dict) else None
    if not isinstance(zero, dict) or any(str(key).startswith(_OTHERS) for key in zero):
        return None
    states, weights = _on_host(zero.get("offload_optimizer")), _on_host(zero.get("offload_param"))
    if type(stage) is not int or states is None or weights is None:
        return None
    kinds = {
        (0, False, False): "zero0",  # only ever the one in use
        (1, False, False): "zero1",
        (2, False, False): "zero2",
        (2, True, False): "zero2_offload",
        (2, True, True): "zero2_offload",  # weights are offloaded at stage 3 alone
        (3, False, False): "zero3",
        (3, True, True): "zero3_offload",
    }
    return kinds.get((stage, states, weights))


def _on_host(part: object) -> bool | None:
    """Whether a part is offloaded to the host; None where it goes elsewhere."""
    device = part.get("device", "none") if isinstance(part, dict) else "none"
    return {"none": False, "cpu": True}.get(str(device))
