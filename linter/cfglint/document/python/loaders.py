"""Which flags are a process's batch and its passes, as a loop of one's own gives them to its loaders.

A ``DataLoader`` takes the batch of one process where each process has its part of the samples: by a
``DistributedSampler``, or as accelerate prepares it (accelerate/data_loader.py: prepare_data_loader, unless
``split_batches``). ``Accelerator`` is told the passes (jzhang38/EasyContext train.py:41-42, :83-86).
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.document.python.totals import Share, shares_of
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_CHARACTERS = 200  # that cost a step
_LOADER = re.compile(r"\w*DataLoader\Z")
_OTHER = re.compile(r"(?i)(?<![a-z])(?:eval\w*|val\w*|test\w*|dev)(?![a-z])|infer|predict")
_APART = re.compile(r"\bDistributedSampler\b|\bAccelerator\(")
_TOGETHER = re.compile(r"split_batches|(?<![a-z])DataParallel\(|init_device_mesh|fabric\.|lightning")
_ADDS_UP = re.compile(r"(?i)accum\w*_?(?:grad|step|iter|freq|every|batch)|grad\w*_?acc|update_(?:freq|every)")
_ENGINE = re.compile(r"(?m)^[ \t]*(?:import|from)[ \t]+(?:megatron|deepspeed)\b|[dD]eep[sS]peed\w*[(.]")


class Sizes(Value):
    """The flags of a process's ``batch`` and ``passes``, empty where they are not known, or ``once``."""

    batch: str = ""
    passes: str = ""
    once: bool = False  # no file of the program adds anything up


def sizes_of(program: File, project: Modules) -> Sizes:
    """Return what a program's own loop takes at a time, as far as it is one flag."""
    files = project.files(program)
    texts = [file.text for file in files]
    spend(sum(map(len, texts)) // _CHARACTERS, PYTHON)
    if not any(".backward(" in text for text in texts) or not any(map(_APART.search, texts)):
        return Sizes()
    if any(map(_TOGETHER.search, texts)):
        return Sizes()
    batch = _first(files, project, _is_loader, "batch_size")
    passes = _first(files, project, _is_accelerator, "gradient_accumulation_steps")
    once = not any(_ADDS_UP.search(text) or _ENGINE.search(text) for text in texts)
    return Sizes(batch, passes, once and bool(batch))


def _first(files: list[File], project: Modules, asks: Callable[[ast.Call], bool], argument: str) -> str:
    """Return the one flag that an argument is in the program's own file, else in all others that say one."""
    for some in (files[:1], files[1:]):
        found = {flag for file in some for flag in _flags(file, project, asks, argument)}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def _flags(file: File, project: Modules, asks: Callable[[ast.Call], bool], argument: str) -> Iterator[str]:
    """Yield the flag that an argument of some calls is; empty for anything else."""
    code = project.code(file) if argument in file.text else None
    for call, share in shares_of(code, argument) if code is not None else ():
        if asks(call):
            yield share.above[0] if share and share.above and share == Share(share.above[:1]) else ""


def _is_loader(call: ast.Call) -> bool:
    return bool(_LOADER.match(_name(call))) and not _OTHER.search(ast.unparse(call))


def _is_accelerator(call: ast.Call) -> bool:
    return _name(call) == "Accelerator"


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
