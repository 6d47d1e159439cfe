"""Which flags are a process's batch and its passes, as a loop of one's own gives them to its loaders.

A ``DataLoader`` takes the batch of one process where each process has its part of the samples: by a
``DistributedSampler``, or as accelerate prepares it (accelerate/data_loader.py: prepare_data_loader, unless
``split_batches``). ``Accelerator`` is told the passes (jzhang38/EasyContext train.py:41-42, :83-86), or a
loop takes a step at every so many. Where a loader gets its share of a batch of all processes, that is a flag
(facebookresearch/DiT train.py:167).
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.document.python.totals import Share, every_of, shares_of
from cfglint.record import Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_CHARACTERS = 200  # that cost a step
_LOADER = re.compile(r"\w*(?:DataLoader|BatchSampler)\Z")
_OTHER = re.compile(r"(?i)(?<![a-z])(?:eval\w*|val\w*|test\w*|dev)(?![a-z])|infer|predict")
_APART = re.compile(r"\bDistributedSampler\b|\bAccelerator\(")
_TOGETHER = re.compile(r"split_batches|init_device_mesh|fabric\.|lightning")
# GPUs share the batch of one process; those that a launcher starts have a sampler each.
_SPLITS = re.compile(r"(?<![a-z])DataParallel\(")
_SAMPLES = re.compile(r"\bDistributedSampler\b")
_ENGINE_LOADS = re.compile(r"\btraining_data\s*=(?!=)|\bdeepspeed_io\(")
_ADDS_UP = re.compile(r"(?i)accum\w*_?(?:grad|step|iter|freq|every|batch)|grad\w*_?acc|update_(?:freq|every)")
_PASSES = re.compile(r"(?i)accum|grad\w*_?acc")  # by whose name a number of passes is one
_LOOP = re.compile(r"\.backward\(|\bzero_grad\(")
_ENGINE = re.compile(r"(?m)^[ \t]*(?:import|from)[ \t]+(?:megatron|deepspeed)\b|[dD]eep[sS]peed\w*[(.]")


class Sizes(Value):
    """The flags of a process's ``batch`` and ``passes``, empty where they are not known, or ``once``.

    ``whole`` is that of a batch of all processes, of which each takes its share, and ``divided`` that of what
    a process takes in all its passes.
    """

    batch: str = ""
    passes: str = ""
    whole: str = ""
    divided: str = ""
    once: bool = False  # no file of the program adds anything up
    splits: bool = False  # without a launcher, all GPUs share the batch
    loads: bool = field(
        default=False, compare=False
    )  # the program makes its loader itself, whatever engine takes the steps


def sizes_of(program: File, project: Modules) -> Sizes:
    """Return what a program's own loop takes at a time, as far as it is one flag."""
    files = project.files(program)
    texts = [file.text for file in files]
    spend(sum(map(len, texts)) // _CHARACTERS, PYTHON)
    if not any(".backward(" in text for text in texts):
        return Sizes()
    passes = _first(files, project, _is_accelerator, "gradient_accumulation_steps") or _every(files, project)
    splits = any(map(_SPLITS.search, texts))
    apart = _SAMPLES if splits else _APART
    if not any(map(apart.search, texts)) or any(map(_TOGETHER.search, texts)):
        return Sizes(passes=passes)
    batch = _first(files, project, _is_loader, "batch_size")
    whole = "" if batch else _first(files, project, _is_loader, "batch_size", shared=True)
    parted = passes and not (batch or whole)
    divided = _first(files, project, _is_loader, "batch_size", passes=passes) if parted else ""
    once = not any(_ADDS_UP.search(text) or _ENGINE.search(text) for text in texts)
    own = any(_shares(files[0], project, _is_loader, "batch_size"))
    loads = own and not any(map(_ENGINE_LOADS.search, texts))
    once = once and not passes and bool(batch or whole)
    return Sizes(batch, passes, whole, divided, once=once, splits=splits, loads=loads)


def _every(files: list[File], project: Modules) -> str:
    """Return the one flag at every so many passes of which a loop takes a step."""
    found: set[str] = set()
    for file in files:
        code = project.code(file) if "%" in file.text and _LOOP.search(file.text) else None
        for node, share in every_of(code) if code is not None else ():
            flag = _flag_of(share)
            if _PASSES.search(ast.unparse(node)) or _PASSES.search(flag):
                found.add(flag)
    return found.pop() if len(found) == 1 else ""


def _flag_of(share: Share | None, *, shared: bool = False, passes: str = "") -> str:
    """Return the flag that a share is, or of which it is each process's or each pass's; empty for others."""
    if share is None or len(share.above) != 1:
        return ""
    return share.above[0] if share == Share(share.above, (passes,) if passes else (), -shared) else ""


def _first(
    files: list[File],
    project: Modules,
    asks: Callable[[ast.Call], bool],
    argument: str,
    *,
    shared: bool = False,
    passes: str = "",
) -> str:
    """Return the one flag that an argument is in the program's own file, else in all others that say one."""
    for some in (files[:1], files[1:]):
        shares = [share for file in some for share in _shares(file, project, asks, argument)]
        found = {_flag_of(share, shared=shared, passes=passes) for share in shares}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def _shares(
    file: File, project: Modules, asks: Callable[[ast.Call], bool], argument: str
) -> Iterator[Share | None]:
    """Yield what an argument of some calls is."""
    code = project.code(file) if argument.partition("_")[0] in file.text else None
    return (share for call, share in (shares_of(code, argument) if code is not None else ()) if asks(call))


def _is_loader(call: ast.Call) -> bool:
    return bool(_LOADER.match(_name(call))) and not _OTHER.search(ast.unparse(call))


def _is_accelerator(call: ast.Call) -> bool:
    return _name(call) == "Accelerator"


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
