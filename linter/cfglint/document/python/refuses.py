"""What a program's own code refuses or does, where a framework's other versions do otherwise.

It is read in the modules of the framework's package that lie with the program, whatever version it forks.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_PACKAGE = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+verl\b")
_MODULES = (
    "models.registry",
    "single_controller.ray.base",
    "workers.fsdp_workers",
    "workers.rollout.vllm_rollout.vllm_rollout",
    "workers.rollout.vllm_rollout.vllm_rollout_spmd",
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
# Its workers: the backend of fused kernels has to be named.
_KERNELS = re.compile(r"\bfused_kernel_options\b")
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

    told = {
        "packs": packs if says(_ASKS) else (),
        "frees_eagerly": ("true",) if says(_EAGER) else (),
        "sleeps": ("true",) if says(_SLEEPS) and not says(_MAY_SLEEP) else (),
        "names_kernels": ("true",) if says(_KERNELS) else (),
        "asks_npus": ("true",) if says(_NPUS) else (),
        "forks": ("true",) if texts else (),
    }
    return {name: words for name, words in told.items() if words}
