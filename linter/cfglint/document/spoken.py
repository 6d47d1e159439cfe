"""Keys as people know them: what a command of a launch script says is below ``launch``, which no file has."""

from __future__ import annotations

from cfglint.document.tree import dotted, split_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Path

_COMMAND = "launch"
_FLAGS = "flags"
_PROGRAM = "the command's program"
_SAID = {  # all else is told of the program
    "processes": "the command's number of processes",
    "processes_per_node": "the command's number of processes per machine",
    "nodes": "the command's number of machines",
    "together": "the number of processes of all commands",
    "beside": "the script's other commands",
    "running": "the script's other commands",
    "kept_gpus": "the script's other commands",
    "kept_server": "a server that the script asks",
    "kept_number": "the number of GPUs of the script's other commands",
    "config": "the command's config file",
    "launcher": "the launcher",
    "mesh": "the command's config",
    "unread": "the command's words that cfglint cannot read",
    "visible_gpus": "the number of GPUs in CUDA_VISIBLE_DEVICES",
    "visible_least": "the GPUs in CUDA_VISIBLE_DEVICES",
    "workers_gpus": "the number of the script's commands with a GPU of their own",
    "max_pixels": "MAX_PIXELS",
    "own_batch": "each process's batch",
    "own_passes": "the accumulation steps",
    "own_whole": "the batch of all processes",
    "total": "the batch of all processes",
    "total_part": "each process's batch",
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


def named(name: str) -> str:
    """Return what a rule reads as reports print it: a fact by its name, ``$.launch.nodes`` as ``spoken``."""
    return spoken(tuple(split_key(name[2:]))) if name.startswith("$.") else name


def spoken(path: Path) -> str:
    """Return a key as reports print it: of a launcher's flag ``--num_processes``, else its path."""
    if path[:1] == ("python",) and len(path) == 2:
        return _MADE.get(str(path[1]), dotted(path))
    if path[:1] != (_COMMAND,) or len(path) < 2:
        return dotted(path)
    if path[1] == _FLAGS and len(path) > 2:
        return "--" + dotted(path[2:])
    return _SAID.get(str(path[1]), _PROGRAM)
