"""Run one training step with fake tensors and return its peak."""

from __future__ import annotations

import contextlib
import gc
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
import torch.distributed as dist
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools import fake_collectives  # noqa: F401 — importing it registers the fake collectives
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers.modeling_layers import GradientCheckpointingLayer

from oracle import attention, delta, losses, models, optimizers, quantized, scan, sight
from oracle.cuda import like_cuda
from oracle.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn
    from transformers import PreTrainedModel

    from oracle.case import Case
    from oracle.tracker import Peak

_DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def _decoder(model: PreTrainedModel) -> nn.Module:
    """Return what is below the output head; of a model that sees, the language model."""
    if hasattr(model.config, "vision_config"):
        return sight.language_model(model)
    decoder: nn.Module = model.model if model.base_model is model else model.base_model
    return decoder


def _layers(model: PreTrainedModel) -> nn.ModuleList:
    decoder: Any = _decoder(model)
    layers: nn.ModuleList = decoder.h if hasattr(decoder, "h") else decoder.layers
    return layers


def _blocks(part: nn.Module) -> Iterator[nn.Module]:
    """Yield the layers of a tower."""
    for inner in part.modules():
        if isinstance(inner, GradientCheckpointingLayer):
            yield inner


def _adapt(model: PreTrainedModel, case: Case) -> nn.Module:
    """Freeze the model and put adapters on it, by PEFT itself."""
    from peft import LoraConfig, get_peft_model

    targets = "all-linear" if case.lora_targets == ("all-linear",) else list(case.lora_targets)
    settings = LoraConfig(
        r=case.lora_rank,
        target_modules=targets,
        lora_dropout=case.lora_dropout,
        task_type="CAUSAL_LM",
        exclude_modules=r".*(visual|vision|multi_modal_projector|connector).*"
        if case.freeze_vision_tower
        else None,
    )
    # Adapters are made in their dtype: moving them to the base layer's swaps tensors, which fake ones refuse.
    torch.set_default_dtype(_DTYPES[case.lora_dtype or case.param_dtype])
    with mock.patch.object(torch.nn.Module, "to", lambda module, *_, **__: module):
        adapted: nn.Module = get_peft_model(model, settings, autocast_adapter_dtype=False)
    torch.set_default_dtype(torch.float32)
    return adapted


def _shard(root: nn.Module, model: PreTrainedModel, case: Case, mesh: DeviceMesh) -> None:
    """Shard each layer and then what is left, as trainers do."""
    mixed = case.param_dtype == "fp32" and case.dtype == "bf16"
    reduced = torch.bfloat16 if case.unsynced_accumulation else torch.float32
    policy = MixedPrecisionPolicy(torch.bfloat16, reduced) if mixed else MixedPrecisionPolicy()
    towers = (
        [layer for part in sight.tower(model) for layer in _blocks(part)]
        if hasattr(model.config, "vision_config")
        else []
    )
    for part in (*towers, *_layers(model), root):
        fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=case.fsdp_reshard)


def _look(root: nn.Module) -> Callable[[], Iterator[tuple[Tensor, str]]]:
    """Return a function that lists the storages whose role shows only once they exist."""
    parameters = list(root.parameters())
    states = [part._get_fsdp_state() for part in root.modules() if isinstance(part, FSDPModule)]  # noqa: SLF001
    groups = [state._fsdp_param_group for state in states]  # noqa: SLF001 — nothing public tells
    shards = [shard for group in groups if group for shard in group.fsdp_params]

    def look() -> Iterator[tuple[Tensor, str]]:
        for parameter in parameters:
            if parameter.grad is not None:
                yield parameter.grad, "gradients"
        for shard in shards:
            for gathered in shard.all_gather_outputs:
                yield gathered, "gathered"
            whole = getattr(shard, "_unsharded_param", None)
            if whole is not None and whole.grad is not None:
                yield whole.grad, "unsharded_gradients"

    return look


def _hold(tracker: Tracker, root: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    for parameter in root.parameters():
        tracker.hold(parameter, "parameters")
        if parameter.grad is not None:
            tracker.hold(parameter.grad, "gradients")
    for buffer in root.buffers():
        tracker.hold(buffer, "buffers")
    for state in optimizer.state.values() if optimizer else ():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                tracker.hold(value, "optimizer")


def _first_step(root: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Create the optimizer's states by a step, and return the peak of that step."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    tracker = Tracker(lambda: ())
    tracker.phase = "step"
    _hold(tracker, root, None)
    with tracker:
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    gc.collect()
    return tracker.peaks["step"].total


def _watch_decoder(tracker: Tracker, model: PreTrainedModel) -> None:
    """Book what comes between the decoder's output and its gradient as the loss."""

    def leaves(module: nn.Module, inputs: Any, output: Any) -> None:
        del module, inputs
        tracker.enter("loss")
        if output.last_hidden_state.requires_grad:
            output.last_hidden_state.register_hook(lambda _: tracker.enter("backward"))

    _decoder(model).register_forward_hook(leaves)


@contextlib.contextmanager
def _without_shapes(tracker: Tracker) -> Iterator[None]:
    """Leave out what DTensor allocates to work out the shape of an operator's result that it meets first."""
    original = ShardingPropagator._propagate_tensor_meta_non_cached  # noqa: SLF001

    def quiet(*args: Any, **kwargs: Any) -> Any:
        tracker.asleep = True
        try:
            return original(*args, **kwargs)
        finally:
            tracker.asleep = False

    with mock.patch.object(ShardingPropagator, "_propagate_tensor_meta_non_cached", quiet):
        yield


def _run(
    case: Case,
    root: nn.Module,
    tracker: Tracker,
    optimizer: torch.optim.Optimizer | None,
    seen: sight.Pictures | None,
) -> int:
    """Run the step and return what was alive between forward and backward pass."""
    shape = (case.micro_batch_size, case.seq_len)
    ids, labels = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    given = seen.given if seen else {}
    for tensor in (ids, labels, *given.values(), *(seen.made.values() if seen else ())):
        tracker.hold(tensor, "inputs")
    after_forward = 0
    autocast = torch.autocast("cpu", torch.bfloat16) if case.autocast else contextlib.nullcontext()
    with tracker, like_cuda(autocast=case.autocast), _without_shapes(tracker):
        for micro in range(case.grad_accum):
            if case.unsynced_accumulation:
                root.set_requires_gradient_sync(micro == case.grad_accum - 1)  # type: ignore[operator]
            tracker.enter("forward")
            if case.forward_only:
                with torch.no_grad(), autocast:
                    output = root(input_ids=ids)
                    losses.log_probabilities(output.logits, labels)
                return tracker.total
            with autocast:
                loss = root(input_ids=ids, labels=labels, **given)["loss"]
            after_forward = max(after_forward, tracker.total)
            loss.backward()
            del loss
        tracker.enter("step")
        tracker.categories()
        assert optimizer is not None
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return after_forward


def _result(peaks: dict[str, Peak], after_forward: int, first_step: int, states: int) -> dict[str, object]:
    moment = max(peaks, key=lambda phase: peaks[phase].total)
    cold = max([first_step, *(peak.total - states for phase, peak in peaks.items() if phase != "step")])
    return {
        "peak_bytes": peaks[moment].total,
        "moment": moment,
        "categories": peaks[moment].categories,
        "phases": {phase: peak.total for phase, peak in peaks.items()},
        "after_forward_bytes": after_forward,
        "first_step_peak_bytes": cold,
    }


def measure(case: Case) -> dict[str, object]:
    """Return the peak of a step whose optimizer has its states already, and what it consists of."""
    started = time.monotonic()
    attention.register()
    scan.register()
    delta.register()
    mesh = None
    if case.dp_shard > 1:
        dist.init_process_group("fake", rank=0, world_size=case.dp_shard, store=FakeStore())
        mesh = init_device_mesh("cpu", (case.dp_shard,))  # reads values, so before the fake mode
    row = models.row_of(case.model_path)
    with FakeTensorMode():
        torch.set_default_dtype(_DTYPES[case.param_dtype])
        model = models.build(row, case.seq_len, attention.NAMES[case.attn_impl])
        torch.set_default_dtype(torch.float32)
        figures = models.figures(row, model)
        model.train()
        if case.quantization:
            quantized.quantize(model, _DTYPES[case.dtype], nested=case.double_quantization)
            quantized.lift(model, case.kbit_lift)
        if case.freeze_vision_tower:
            for part in sight.tower(model):
                part.requires_grad_(requires_grad=False)
        root: nn.Module = _adapt(model, case) if case.lora_rank else model
        if case.gradient_checkpointing == "full":
            if case.lora_rank:
                model.enable_input_require_grads()  # as trainers do
            model.activation_checkpointing_enable({"use_reentrant": False})
        elif case.gradient_checkpointing != "none":
            raise NotImplementedError(f"gradient_checkpointing {case.gradient_checkpointing}")
        if case.fused_loss != "none":
            losses.install(model, case.fused_loss, case.loss_chunks)
        if mesh:
            _shard(root, model, case, mesh)
        trainable = [parameter for parameter in root.parameters() if parameter.requires_grad]
        optimizer = None
        first_step = states = 0
        if not case.forward_only:
            embeddings: Any = model.get_input_embeddings()
            wide = [embeddings.weight] if case.embedding_bits == 32 else []
            optimizer = optimizers.make(case.optimizer, trainable, master=case.master_weights, wide=wide)
            first_step = _first_step(root, optimizer)
        tracker = Tracker(_look(root))
        _hold(tracker, root, optimizer)
        states = tracker.categories().get("optimizer", 0)
        _watch_decoder(tracker, model)
        seen = sight.pictures(case, row, model) if case.images_per_sample else None
        with sight.blind(model, seen) if seen else contextlib.nullcontext():
            after_forward = _run(case, root, tracker, optimizer, seen)
    return {
        **_result(tracker.peaks, after_forward, first_step, states),
        **({"figures": figures} if figures else {}),
        "trainable": sum(parameter.numel() for parameter in trainable),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seconds": round(time.monotonic() - started, 1),
    }
