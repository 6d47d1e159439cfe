"""The moment of a job that an error fell into, told by its traceback, in the memory model's words."""

from __future__ import annotations

import re

LOSS, BACKWARD, STEP, FORWARD = "loss", "backward", "optimizer step", "forward"
LOADING, CAPTURE, POOL = "loading", "graph capture", "KV cache allocation"
SYNC, GENERATE = "weight update", "generation"
TRAINING = (LOSS, BACKWARD, STEP, FORWARD)
WHEN = {
    LOSS: "at the loss", BACKWARD: "in the backward pass", STEP: "at the optimizer step",
    FORWARD: "in the forward pass",
    LOADING: "while loading", CAPTURE: "while capturing graphs", POOL: "while allocating the KV cache",
    SYNC: "while updating weights", GENERATE: "while generating",
}  # fmt: skip

# The first whose words stand in a frame. A pass that checkpointing repeats runs inside the backward pass, a
# step of the optimizer may run inside either, and an engine captures graphs with the forward pass's code.
_WORDS = (
    (STEP, re.compile(
        r"optimizer\.step|optim\.step|/optim/\w+\.py|_init_group|exp_avg|optimizer_step|"
        r"\bopt\.step\("
    )),
    (BACKWARD, re.compile(r"\.backward\(|run_backward|_engine_run_backward|\bin backward\b|manual_backward")),
    (CAPTURE, re.compile(
        r"capture_model|cuda_graph_runner|\bin capture\b|capture_one|_dummy_run.*graph|graph_capture"
    )),
    (POOL, re.compile(
        r"init_memory_pool|memory_pool\.py|initialize_kv_cache|_allocate_kv_cache|init_kv_cache|"
        r"kv_cache_configurator|initialize_cache|_create_buffers"
    )),
    (SYNC, re.compile(
        r"update_weights|sync_weights|init_weights_update_group|broadcast_weights|"
        r"_update_bucket_weights"
    )),
    (LOSS, re.compile(
        r"cross_entropy|log_softmax|logsumexp|lm_head|logits|gather_logprobs|compute_loss|loss_fn|"
        r"\bloss = "
    )),
    (LOADING, re.compile(
        r"from_pretrained|load_weights|load_model\b|load_state_dict|model_loader|create_weights|"
        r"_load_pretrained|\.to\(device|\.cuda\(\)"
    )),
    (GENERATE, re.compile(
        r"\.generate\(|\bin generate\b|_sample\(|forward_batch_generation|execute_model|run_batch"
    )),
    (FORWARD, re.compile(r"\bin forward\b|forward_call\(|\.forward\(|self\.model\(|model\(\*\*")),
)  # fmt: skip
_START = "Traceback (most recent call last)"
_ENGINES = (
    ("sglang", re.compile(r"[/\\]sglang[/\\]|sglang::|\bsglang\.srt")),
    ("vllm", re.compile(r"[/\\]vllm[/\\]|\bvllm\.v1|vllm::")),
)
_NO_FRAME = re.compile(r"^[\s^~]*$")


def traceback_before(lines: list[str]) -> list[str]:
    """Return the lines of the last traceback that begins in ``lines``, which end with an error."""
    for i in range(len(lines) - 1, -1, -1):
        if _START in lines[i]:
            return [line for line in lines[i + 1 :] if not _NO_FRAME.match(line)]
    # Its head may be further up; frames alone will do.
    frames = [line for line in lines if line.startswith("File ") or not _NO_FRAME.match(line)]
    return frames if any(line.startswith("File ") for line in frames) else []


def moment(frames: list[str]) -> tuple[str | None, str]:
    """Return the moment and the line that tells it; None where no frame does."""
    for name, words in _WORDS:
        telling = [line for line in frames if words.search(line)]
        if telling:
            # The job's own code tells a person more than the library's that it ends in.
            return name, next((line for line in telling if not line.startswith("File ")), telling[0])
    return None, ""


def engine_of(frames: list[str]) -> str | None:
    """Return the inference engine whose code raised the error, None where none did.

    A trainer that calls an engine in its own process has both; the engine counts, as its memory is meant.
    """
    for line in reversed(frames):
        for name, words in _ENGINES:
            if words.search(line):
                return name
    return None
