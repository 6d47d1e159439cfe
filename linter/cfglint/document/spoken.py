"""Keys as people know them: what a command of a launch script says is below ``launch``, which no file has."""

from __future__ import annotations

from cfglint.document.tree import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Path

_COMMAND = "launch"
_FLAGS = "flags"
_SAID = {
    "processes": "the command's number of processes",
    "processes_per_node": "the command's number of processes per machine",
    "nodes": "the command's number of machines",
    "together": "the number of processes of all commands",
    "beside": "the script's other commands",
    "running": "the script's other commands",
    "kept_gpus": "the script's other commands",
    "launcher": "the launcher",
    "program": "the command's program",
    "module": "the command's program",
    "program_file": "the command's program",
    "base": "the command's program",
    "adapts": "the command's program",
    "quantizes": "the command's program",
    "takes_peft_config": "the command's program",
    "adapter_switch": "the command's program",
    "adapter_ranks": "the command's program",
    "adapter_rank": "the command's program",
    "adapter_targets": "the command's program",
    "adapter_saves": "the command's program",
    "adapter_bits": "the command's program",
    "adapter_bits_numbered": "the command's program",
    "adapter_unsharded": "the command's program",
    "suite": "the command's program",
    "submits": "the command's program",
    "imports": "the command's program",
    "trains_with": "the command's program",
    "compares": "the command's program",
    "one_pass": "the command's program",
    "older_megatron": "the command's program",
    "recomputes_nothing": "the command's program",
    "counts_micro": "the command's program",
    "whole_groups": "the command's program",
    "repeats_prompts": "the command's program",
    "averages_ranks": "the command's program",
    "averages_tokens": "the command's program",
    "means_tokens": "the command's program",
    "starves_adapters": "the command's program",
    "finds_unused": "the command's program",
    "shares_sequences": "the command's program",
    "grouped_by": "the command's program",
    "groups_shrink": "the command's program",
    "mesh": "the command's config",
    "packs": "the command's program",
    "frees_eagerly": "the command's program",
    "sleeps": "the command's program",
    "names_kernels": "the command's program",
    "asks_npus": "the command's program",
    "forks": "the command's program",
    "unread": "the command's words that cfglint cannot read",
    "visible_gpus": "the number of GPUs in CUDA_VISIBLE_DEVICES",
    "visible_least": "the GPUs in CUDA_VISIBLE_DEVICES",
    "workers_gpus": "the number of the script's commands with a GPU of their own",
    "max_pixels": "MAX_PIXELS",
    "job": "the number of GPUs that the job asks for",
}


# What a program makes, which is below ``python``.
_MADE = {
    "args": "the trainer's arguments",
    "trainer": "the trainer",
    "library": "the trainer",
    "loader": "what loads the model",
    "followed": "what loads the model",
    "freezes": "what freezes weights",
    "gradient_checkpointing_enable": "gradient_checkpointing_enable()",
}


def spoken(path: Path) -> str:
    """Return a key as reports print it: of a launcher's flag ``--num_processes``, else its path."""
    if path[:1] == ("python",) and len(path) == 2:
        return _MADE.get(str(path[1]), dotted(path))
    if path[:1] != (_COMMAND,) or len(path) < 2:
        return dotted(path)
    if path[1] == _FLAGS and len(path) > 2:
        return "--" + dotted(path[2:])
    return _SAID.get(str(path[1]), dotted(path))
