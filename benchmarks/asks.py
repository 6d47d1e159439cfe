"""Follows what cfglint asks for, as its user would: types it, and reads the next verdict.

    python benchmarks/asks.py FOLDER… [--gpu NAME …] [--rows]

Each job of a folder's files whose memory is not judged is followed for up to three asks. It ends with a
verdict, with a reason that nothing helps, or at a dead end: an ask that repeats, that cannot be typed, or
that is not accepted. Where the ask says no value, one that such jobs usually have is typed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cfglint.cli import main as cfglint

if TYPE_CHECKING:
    from collections.abc import Iterator

ASKS = 3
VERDICTS = ("fits", "tight", "oom")
NO_JOB = "the file that starts the job says which model it is"
FLAGS = ("--isolated", "--no-detect", "--fail-on", "never", "--format", "json")
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 32, "vocab_size": 32000, "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}  # fmt: skip
# What is typed where an ask leaves the value to its reader, by the last part of the name.
_LAYERS = "[q_proj,v_proj]"
TYPED = {
    "attn_impl": "sdpa", "attn_implementation": "sdpa", "optim": "adamw_torch", "optimizer": "adamw",
    "lora_target_modules": _LAYERS, "target_modules": _LAYERS, "lora_targets": _LAYERS, "lora_rank": "0",
    "lora_dropout": "0", "zero_stage": "2", "stage": "2", "mem_fraction": "0.5",
    "gpu_memory_utilization": "0.5", "strategy": "fsdp", "type": "local", "name": "vllm",
    "model_path": "Qwen/Qwen2.5-7B",
}  # fmt: skip
_TYPED = re.compile(r"--set ([^=\s]+)=(\S+)")
_GPU = re.compile(r"--gpu (\w[\w-]*:\d+)")
_FRAMEWORK = re.compile(r"--framework (\w+)")
_FLAGS = re.compile(r"^use_|^enable|offload|eager|checkpointing|remove|fused|cache|^bf16|^fp16|reentrant")


class Typed(NamedTuple):
    """What a user types for an ask: flags to add, and the target in place of the one before."""

    flags: tuple[str, ...]
    gpu: str | None = None


class Walk(NamedTuple):
    """How following a job's asks ended: ``end`` is a verdict, ``reason`` or ``dead end``; why if not."""

    path: str
    line: int
    end: str
    asks: tuple[str, ...]
    why: str = ""


def checked(path: str, gpu: str, flags: tuple[str, ...]) -> tuple[int, list[dict[str, Any]], str]:
    """Return the exit status, the jobs and the complaint of ``cfglint check``."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cfglint(["check", path, "--gpu", gpu, *flags, *FLAGS])
    jobs = json.loads(out.getvalue())["jobs"] if out.getvalue() else []
    return status, jobs, err.getvalue().strip()


def value_for(name: str, shown: str) -> str:
    """Return the value to type for a name: the one that the ask shows, else one that is usual."""
    shown = shown.rstrip(",;")
    if shown == "NAME":
        return TYPED["model_path"]
    if shown not in ("VALUE", "N", "[A,B]"):
        return shown
    last = name.rpartition(".")[2]
    return TYPED.get(last) or ("true" if _FLAGS.search(last) else "512" if "len" in last else "1")


def typed(ask: str, gpu: str, model: str) -> Typed | None:
    """Return what a user types for an ask; None where it holds nothing to type."""
    if "add :N to --gpu" in ask:
        return Typed((), f"{gpu.partition(':')[0]}:8")
    if (more := _GPU.search(ask)) is not None:
        return Typed((), more[1])
    framework, named = _FRAMEWORK.search(ask), _TYPED.findall(ask)
    flags = ["--framework", framework[1]] if framework is not None else []
    flags += ["--model-config", model] if "--model-config" in ask else []
    flags += [word for name, shown in named for word in ("--set", f"{name}={value_for(name, shown)}")]
    return Typed(tuple(flags)) if flags else None


def follow(job: dict[str, Any], gpu: str, model: str) -> Walk:
    """Type what is asked for a job, and again, up to three times."""
    path, line, ask = job["path"], job["line"], job["ask"] or ""
    asks: list[str] = []
    flags: tuple[str, ...] = ()
    while True:
        told = typed(ask, gpu, model)
        if told is None:
            return Walk(path, line, "reason", (*asks, ask))
        if ask in asks or set(told.flags[1::2]) & set(flags[1::2]):
            return Walk(path, line, "dead end", (*asks, ask), "it repeats")
        asks.append(ask)
        if len(asks) > ASKS:
            return Walk(path, line, "dead end", tuple(asks), "a fourth ask")
        flags, gpu = (*flags, *told.flags), told.gpu or gpu
        status, jobs, complaint = checked(path, gpu, flags)
        found = [each for each in jobs if each["line"] == line] or jobs
        if status == 2 or not found:
            return Walk(path, line, "dead end", tuple(asks), f"not accepted: {complaint}")
        if found[0]["verdict"] in VERDICTS:
            return Walk(path, line, found[0]["verdict"], tuple(asks))
        ask = found[0]["ask"] or ""


def walks(path: str, gpu: str, model: str) -> list[Walk]:
    """Return how the asks for all jobs of a file or folder end; parts of jobs are left out."""
    _, jobs, _ = checked(path, gpu, ())
    ends = []
    for job in jobs:
        if job["verdict"] in VERDICTS:
            ends.append(Walk(job["path"], job["line"], job["verdict"], ()))
        elif job["ask"] != NO_JOB:
            ends.append(follow(job, gpu, model))
    return ends


@contextlib.contextmanager
def a_model() -> Iterator[str]:
    """Give the path of a model's config.json."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(MODEL), encoding="utf-8")
        yield str(path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", metavar="FOLDER")
    parser.add_argument("--gpu", action="append", help="default: a100-80gb-sxm:8 and rtx-4090")
    parser.add_argument("--rows", action="store_true", help="print each walk that ends without a verdict")
    args = parser.parse_args()
    with a_model() as model:
        for path in args.paths:
            for gpu in args.gpu or ("a100-80gb-sxm:8", "rtx-4090"):
                ends = walks(path, gpu, model)
                at_once = sum(not walk.asks for walk in ends)
                found = Counter(walk.end if walk.end not in VERDICTS else "verdict" for walk in ends)
                share = f"{100 * found['verdict'] / len(ends):.0f} %" if ends else "-"
                print(
                    f"{path} {gpu}: {len(ends)} jobs; {at_once} judged at once, {found['verdict']} ({share}) "
                    f"after their asks; {found['dead end']} dead ends, {found['reason']} reasons"
                )
                for walk in ends if args.rows else ():
                    if walk.end not in VERDICTS:
                        print(f"  {walk.path}:{walk.line}: {walk.end} {walk.why}")
                        print(*(f"      {ask}" for ask in walk.asks), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
