"""What a job asks for: GPUs, nodes, tasks; here by a batch script's head (``#SBATCH --gpus=rtx_4090:4``)."""

from __future__ import annotations

import re

from cfglint.document.tree import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = re.compile(r"[^\r\n]*")
_SHORT = {"-G": "gpus", "-N": "nodes", "-n": "ntasks"}
_KEYS = ("gpus", "gpus-per-node", "gpus-per-task", "gres", "nodes", "ntasks", "ntasks-per-node")
_GPUS = re.compile(r"(?:(?P<kind>[A-Za-z][\w.-]*):)?(?P<count>[0-9]{1,6})\Z")
_MEMORY = re.compile(r"gpumem:([0-9]{1,9})([kmgKMG]?)\Z")


def read_job(text: str) -> Job | None:
    """Return what the ``#SBATCH`` lines ask for; Slurm reads those before the first command alone."""
    job = Job()
    seen = False
    for key, value, start in _options(text):
        seen = True
        _take(job, key, value, start)
    if not seen:
        return None
    job.add_up()
    return job


def _options(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        line = found.group() if found is not None else ""
        if line.strip() and not line.startswith("#"):
            return
        if line.startswith("#SBATCH"):
            yield from _words(line, at)
        at += len(line)
        while at < len(text) and text[at] in "\r\n":
            at += 1


def _words(line: str, at: int) -> Iterator[tuple[str, str, int]]:
    words = [(m.group(), at + 7 + m.start()) for m in re.finditer(r"\S+", line[7:])]
    i = 0
    while i < len(words):
        word, start = words[i]
        i += 1
        if word.startswith("#"):
            return
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            key = name[2:]
            start += len(name) + 1
        elif word[:2] in _SHORT:
            key, value = _SHORT[word[:2]], word[2:]
            equals, start = value, start + 2
        else:
            continue
        if key not in _KEYS:
            continue
        if not equals:
            if i == len(words):
                return
            value, start = words[i]
            i += 1
        yield key, value, start


def _take(job: Job, key: str, value: str, start: int) -> None:
    span = start, start + len(value)
    if key in ("nodes", "ntasks", "ntasks-per-node"):
        name = {"nodes": "nodes", "ntasks": "tasks", "ntasks-per-node": "tasks_per_node"}[key]
        low, _, high = value.partition("-")
        if low.isdigit() and len(low) < 7 and (not high or high == low):
            job.figures[name] = (int(low), *span)
        else:
            job.figures.pop(name, None)
        return
    if key in ("gpus", "gpus-per-node", "gpus-per-task"):
        found = _GPUS.match(value)
        if found is not None:
            job.kind = found["kind"] or job.kind
            job.figures[key.replace("-", "_")] = (int(found["count"]), *span)
        return
    at = start
    for part in value.split(","):
        memory = _MEMORY.match(part)
        if memory is not None:
            scale = {"k": 1 / 1024, "m": 1, "g": 1024, "": 1}[memory[2].lower()]
            job.memory_mib = int(int(memory[1]) * scale)
        elif part == "gpu" or part.startswith("gpu:"):
            found = _GPUS.match(part[4:] or "1")
            if found is not None:
                job.kind = found["kind"] or job.kind
                job.figures["gpus_per_node"] = (int(found["count"]), at, at + len(part))
            elif part[4:] and ":" not in part[4:]:
                job.kind = part[4:]
                job.figures["gpus_per_node"] = (1, at, at + len(part))
        at += len(part) + 1
