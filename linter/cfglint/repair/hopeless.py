"""The number that shows that a job cannot run on its GPUs at all, whatever a file says.

Where it is known, it comes before what single moves would break: a model whose weights take more than all
GPUs have together, a layout of more GPUs than there are.
"""

from __future__ import annotations

from math import ceil, prod

from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values

WHOLE = "which each GPU holds before they are sharded"
APART = "GPUs of its own"
_SIZES = (("train_tp", "tensor"), ("pp", "pipeline"), ("cp", "context"))
_ENGINE = (("rollout_tp", "tensor"), ("rollout_pp", "pipeline"))
_BILLION, _MILLION = 1e9, 1e6
_NODE = 8  # GPUs of a machine that clouds rent
_BITS = 8  # of a byte
_HALF = 2.0  # bytes of a weight of 16 bits
_SIXTEEN = ("bf16", "fp16", "auto")  # what an engine makes of weights that are not quantized


def too_large(values: Values, *, states: bool = False) -> str:
    """Say that a model takes more memory than all GPUs have together; nothing where it does not.

    Its weights are looked at, and with ``states`` also what a full fine-tune keeps of them on the GPUs.
    """
    sizes, vram, count = bounds_of(values["model.params"]), bounds_of(values["gpu.vram"]), values["gpu.count"]
    if sizes is None or vram is None or not is_number(count) or sizes[0] <= 0:
        return ""
    size = sizes[0]  # of a model that only its name tells, the least that it may have
    about = params_told(size) if sizes[1] == size else f"at least {params_told(size)}"
    there = vram[1] * count
    beside = gpus_have(there, int(count))
    each = _bytes_of_weight(values)
    if values["trains"] is True and values["offload_params"] is True:  # layer by layer, from the host
        each = bytes_served(values)
    if each is not None and size * each > there:
        places = int(size * each < there + GIB)  # where rounded numbers would be the same
        weights = f"{about} weights take {size * each / GIB:,.{places}f} GiB in {each * _BITS:g} bits"
        return f"{weights}, and {gpus_have(there, int(count), places)}"
    told, stay, served = f"{about} weights with their gradients", *_bytes_that_stay(values)
    if size * (stay + served) > there:
        told += f" take {size * stay / GIB:,.0f} GiB ({stay:g} bytes each), the optimizer aside"
        engine = f", the engine's weights {size * served / GIB:,.0f} GiB" if size * stay <= there else ""
        return f"{told}{engine}, and {beside}"
    loading = bounds_of(values["weights.loading"])
    if states and loading is not None and loading[0] > vram[1]:
        return f"{loading[0] / GIB:,.0f} GiB of weights, {WHOLE}, are more than its {vram[1] / GIB:,.0f} GiB"
    kept = _bytes_of_states(values) if states else 0
    more = (
        f", and {beside}"
        if size * kept > there
        else _left_by_engine(values, size * kept, vram[1], int(count))
    )
    return (
        f"{told} and optimizer take {size * kept / GIB:,.0f} GiB ({kept:g} bytes each){more}" if more else ""
    )


def gpus_have(there: float, count: int, places: int = 0) -> str:
    """Return in words what all GPUs have, in GiB of so many decimals."""
    told = f"{there / GIB:,.{places}f} GiB"
    return f"the GPU has {told}" if count == 1 else f"{count} GPUs have {told} together"


def laid_wider(values: Values) -> str:
    """Say that a job is laid out for more GPUs than there are; nothing where it is not."""
    rank = values["launch.rank"]
    if values["launch.follows"] is True and is_number(rank):
        return f"this starts machine {rank + 1}, which waits for the first: move that one, and run it alone"
    count, needed = values["gpu.count"], values["gpus_needed"]
    if not is_number(count):
        return ""
    there = "there is 1" if count == 1 else f"there are {int(count)}"
    serves = values["trains"] is not True and values["generates"] is True
    sizes = [(values[name], word) for name, word in (_ENGINE if serves else _SIZES)]
    known = [(int(size), word) for size, word in sizes if is_number(size) and size > 1]
    copy = prod(size for size, _ in known)
    if copy > count:
        told = " × ".join(f"{word} {size}" for size, word in known)
        own = told if len(known) > 1 else f"{told} parallel"
        return f"one copy of the model is laid over {copy} GPUs ({own}{_machines(copy)}), and {there}"
    if not is_number(needed) or needed <= count:
        return ""
    parts = (("engine", values["rollout_gpus"]), ("trainer", values["train_gpus"]))
    apart = values["colocated"] is False and all(is_number(part) and part >= 1 for _, part in parts)
    given = [(word, int(part)) for word, part in parts if is_number(part)] if apart else []
    if given and (rest := int(needed) - sum(part for _, part in given)) > 0:
        given.append(("other models", rest))
    told = ", ".join(f"{word} {part}" for word, part in given)
    own = (told + _machines(int(needed))).removeprefix("; ")
    return f"the job is laid out for {int(needed)} GPUs{own and f' ({own})'}, and {there}"


def _left_by_engine(values: Values, kept: float, vram: float, count: int) -> str:
    """Say, as an addition, that an engine with GPUs of its own leaves less than a trainer keeps."""
    shared = values["colocated"] is not False or values["generates"] is not True
    gpus, size = values["rollout_gpus"], bounds_of(values["model.params"])
    if shared or not kept or size is None or not is_number(gpus) or gpus < 1:
        return ""
    engine = max(1, ceil(size[0] * (bytes_served(values) or 0) / vram))
    left = max(count - engine, 0)
    if kept <= vram * left:
        return ""
    others = {0: "no GPU is left", 1: f"the other GPU has {vram / GIB:,.0f} GiB"}
    told = others.get(left) or f"the other {gpus_have(vram * left, left)}"
    return f"; the engine has {APART}, {engine} at least, and {told}"


def _machines(gpus: int) -> str:
    return f"; {gpus // _NODE} machines of {_NODE}" if gpus > _NODE and gpus % _NODE == 0 else ""


def _bytes_of_weight(values: Values) -> float | None:
    """Return what a weight takes at least; None where that is not known."""
    if values["trains"] is not True and values["evaluates"] is not True:
        bits = bounds_of(values["engine.bits"])
        return bits[0] / _BITS if bits is not None and bits[0] > 0 else None
    if values["quantized"] is False:
        return _HALF
    packed = bounds_of(values["packed_bytes"])
    return packed[0] if packed is not None and packed[0] > 0 else None


def bytes_served(values: Values) -> float | None:
    """Return what a weight takes at least of the GPUs of an engine; None where it is not known to hold it."""
    gpus, bits = values["rollout_gpus"], bounds_of(values["engine.bits"])
    hosted = bounds_of(values["rollout_cpu_offload"])
    if values["generates"] is not True or not is_number(gpus) or gpus < 1 or (hosted and hosted[1] > 0):
        return None
    if bits is not None and bits[0] > 0:
        return bits[0] / _BITS
    if values["engine.quantized"] is not False:
        return None
    return 1.0 if values["rollout_dtype"] == "fp8" else _HALF if values["rollout_dtype"] in _SIXTEEN else None


def _bytes_of_states(values: Values) -> float:
    """Return what a full fine-tune keeps on the GPUs of each weight; nothing where some is elsewhere."""
    if values["states.away"] is not False:
        return 0
    kept = _bytes_of(values, ("param_bytes", "grad_bytes", "moment_bytes"))
    return kept and kept + 4 * (values["master_weights"] is True)


def _bytes_that_stay(values: Values) -> tuple[float, float]:
    """Return what Megatron keeps on the GPUs of each weight, the optimizer aside, and an engine apart."""
    stay = _bytes_of(values, ("param_bytes", "grad_bytes")) if values["train_backend"] == "megatron" else 0
    apart = values["generates"] is True and values["colocated"] is False and values["rollout_dtype"] == "bf16"
    return (stay, _HALF if apart else 0) if stay else (0, 0)


def _bytes_of(values: Values, parts: tuple[str, ...]) -> float:
    """Return what parts of a full fine-tune's states take of each weight; nothing of another job."""
    given = (values["trains"], values["lora"], values["quantized"], values["optimizer_in_backward"])
    if given != (True, False, False, False):
        return 0
    sizes = [bounds_of(values[name]) for name in parts]
    if not trains_all(values) or any(size is None for size in sizes):
        return 0
    return sum(size[0] for size in sizes if size is not None)


def trains_all(values: Values) -> bool:
    """Whether all weights are trained, also of a model of which only the least size is known."""
    trained, whole = bounds_of(values["params.trained"]), bounds_of(values["model.params"])
    if trained is None or whole is None or whole[0] <= 0:
        return False
    share = bounds_of(values["trained_share"]) if whole[0] < whole[1] else None
    every = share is not None and share[0] == 1 and values["freeze_vision_tower"] is False
    return every or whole[0] <= trained[0] * spread(values) * 1.01


def spread(values: Values) -> float:
    """Return over how many GPUs a layout spreads each copy of the weights."""
    sizes = ("train_tp", "pp", *(("ep", "etp") if values["moe"] is True else ()))
    return prod(size for name in sizes if is_number(size := values[name]))


def params_told(size: float) -> str:
    """Return a model's size as people say it."""
    return f"{size / _BILLION:.1f}B" if size >= _BILLION else f"{size / _MILLION:.0f}M"
