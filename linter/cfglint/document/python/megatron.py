"""Which Megatron a program is written for: the one before its move in 2024; whether its layers are its own.

The move of March 2024 put everything outside of megatron.core below megatron.training and megatron.legacy
(https://github.com/NVIDIA/Megatron-LM/commit/38644dd756); what imports the old names runs with no later one.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_CHARACTERS = 200  # that cost a step
_OLDER = re.compile(
    r"(?m)^[ \t]*(?:from megatron import \(?\s*(?:get_|print_rank_)|"
    r"(?:from|import) megatron\.(?:arguments|global_vars|initialize|checkpointing|model|optimizer)\b)"
)
# As Megatron-LM had it until 2024 (NVIDIA/Megatron-LM megatron/arguments.py @23.04:62-68).
_CLAMPS = re.compile(r"\bargs\.pipeline_model_parallel_size\s*=\s*min\(")
_LAYERS = re.compile(r"(?m)^class \w*(?:Layer|Transformer|Block)\w*\((?:\w+\.)*MegatronModule\)")
# What makes Megatron's layers, or passes of one's own again.
_ITS_LAYERS = re.compile(
    r"recompute|checkpoint_activations|\bcheckpoint\(|\b(?:Parallel)?Transformer(?:Block|Layer)?\b[^\n(:]*\bimport|"
    r"megatron\.(?:model|core\.transformer|legacy\.model)\.(?:transformer|language_model|gpt_model)\b|"
    r"from megatron\.model import [^\n]*\b\w+Model\b"
)


def older_megatron(program: File, project: Modules) -> bool:
    """Whether a program imports what Megatron had before its move."""
    return any(_OLDER.search(text) for text in _texts(program, project))


def recomputes_nothing(program: File, project: Modules) -> bool:
    """Whether a program's layers are its own, and read none of Megatron's flags of recomputation."""
    texts = _texts(program, project)
    return any(_LAYERS.search(text) for text in texts) and not any(_ITS_LAYERS.search(text) for text in texts)


def clamps_sizes(program: File, project: Modules) -> bool:
    """Whether a program has no more pipeline stages than its processes allow, whatever it is told."""
    return any(_CLAMPS.search(text) for text in _texts(program, project))


def _texts(program: File, project: Modules) -> list[str]:
    """Return the texts of a program and of the modules of its project that it leads to."""
    texts = [file.text for file in project.files(program)]
    spend(sum(map(len, texts)) // _CHARACTERS, PYTHON)
    return texts
