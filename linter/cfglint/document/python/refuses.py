"""What a program's own code refuses or does, where a framework's other versions do otherwise.

It is read in the modules of the framework's package that lie with the program, whatever version it forks.
"""

from __future__ import annotations

import os
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_PACKAGE = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+verl\b")
_WORKERS = "workers.fsdp_workers"
_MODULES = (
    "models.registry",
    "single_controller.ray.base",
    _WORKERS,
    "workers.rollout.vllm_rollout.vllm_rollout",
    "workers.rollout.vllm_rollout.vllm_rollout_spmd",
    "workers.rollout.vllm_rollout.vllm_async_server",
)
_CHARACTERS = 2000  # that cost a step
# verl's list of models whose padding is removed (verl/models/registry.py), its check, and who asks for that.
_PACKED = re.compile(r"(?m)^_RE\w*PAD_MODELS\s*=\s*\{([^{}]*)\}")
_KEY = re.compile(r"""["'](\w+)["']\s*:""")
_CHECKS = re.compile(r"def check_model_support_rmpad\(.*?\braise ValueError\(", re.DOTALL)
_ASKS = re.compile(r"(?<!def )\bcheck_model_support_rmpad\(")
# Its rollouts: the cache is freed without CUDA graphs alone; vLLM sleeps whatever the config says.
_EAGER = re.compile(r"assert not \(not [\w.]*\benforce_eager and [\w.]*\bfree_cache_engine\)")
_SLEEPS = re.compile(r"\benable_sleep_mode\s*=\s*True\b")
_MAY_SLEEP = re.compile(r"\benable_sleep_mode\s*=\s*[\w.]*config\b")
# How many requests its vLLM runs at a time, which the first ones leave to vLLM whatever their config says.
_LIMITS = re.compile(r"""\bmax_num_seqs\b""")
# Its workers: the backend of fused kernels has to be named.
_KERNELS = re.compile(r"\bfused_kernel_options\b")
# The first ones count prompts in a micro-batch: times the answers, mostly once the ranks have shared it.
_TIMES = r"(?m)^[ \t]+self\.config\.{0}_micro_batch_size \*= self\.config\.rollout\.n\b"
_ACTOR_TIMES, _SCORED_TIMES = (
    re.compile(_TIMES.format(each)) for each in (r"actor\.ppo", r"rollout\.log_prob")
)
_ACTOR_SHARED = re.compile(r"(?m)^[ \t]+self\.config\.actor\.ppo_micro_batch_size //=")
# What Ray is asked for where the device is Huawei's.
_NPUS = re.compile(r"""if device_name == ["']npu["']:\s+device_name = ["']NPU["']""")


def refused(program: File, project: Modules) -> dict[str, tuple[str, ...]]:
    """Return what a program's code says of itself, by the name that the rules know it by.

    ``packs`` are the model types whose padding it removes, where it stops at any other; ``forks`` says that
    the framework's modules lie with it, so that what its releases do does not count.
    """
    packs: tuple[str, ...] = ()
    if not _PACKAGE.search(program.text):
        return {}
    files = [project.imported(program, f"verl.{name}") for name in _MODULES]
    texts = [file.text for file in files if file is not None]
    spend(sum(map(len, texts)) // _CHARACTERS, PYTHON)
    for text in texts:
        models = _PACKED.search(text)
        if models is not None and _CHECKS.search(text):
            packs = tuple(_KEY.findall(models[1]))

    def says(pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(text) for text in texts)

    workers = next((file.text for file in files if file is not None and _is_workers(file)), "")
    told = {
        "packs": packs if says(_ASKS) else (),
        "frees_eagerly": ("true",) if says(_EAGER) else (),
        "sleeps": ("true",) if says(_SLEEPS) and not says(_MAY_SLEEP) else (),
        "limits_requests": ("true",) if says(_LIMITS) else (),
        "names_kernels": ("true",) if says(_KERNELS) else (),
        "asks_npus": ("true",) if says(_NPUS) else (),
        "counts_prompts": tuple(_counted(workers)),
        "forks": ("true",) if texts else (),
    }
    return {name: words for name, words in told.items() if words}


def _is_workers(file: File) -> bool:
    return file.path.replace(os.sep, "/").endswith(f"{_WORKERS.replace('.', '/')}.py")


def _counted(workers: str) -> Iterator[str]:
    """Yield whose micro-batches a copy's workers take for prompts, where a number over all GPUs is given.

    ``first`` says that the actor's is multiplied by the answers before the ranks share it, ``none`` that
    all are numbers of answers.
    """
    actor, shared = _ACTOR_TIMES.search(workers), _ACTOR_SHARED.search(workers)
    if actor is not None:
        yield "actor"
        if shared is not None and actor.start() < shared.start():
            yield "first"
    if _SCORED_TIMES.search(workers) is not None:
        yield "scored"
    elif workers and actor is None:
        yield "none"
