"""What a job asks for: GPUs, nodes, tasks, as a batch script's head says (``#SBATCH --gpus=rtx_4090:4``)."""

from __future__ import annotations

import re

from cfglint.record import Record, field
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_LINE = re.compile(r"([^\r\n]*)[\r\n]*")
_SHORT = {"-G": "gpus", "-N": "nodes", "-n": "ntasks"}
_FIGURES = {
    "nodes": "nodes",
    "ntasks": "tasks",
    "ntasks-per-node": "tasks_per_node",
    "gpus": "gpus",
    "gpus-per-node": "gpus_per_node",
    "gpus-per-task": "gpus_per_task",
}
_GPUS = re.compile(r"(?:(?P<kind>[A-Za-z][\w.-]*):)?(?P<count>[0-9]{1,6})\Z")
# Slurm counts generic resources in powers of 1024; of memory, one is a byte.
_MEMORY = re.compile(r"gpumem:([0-9]{1,15})([kmgtKMGT]?)\Z")
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

# What Slurm tells a job, by what it was asked for; the others only where the script says so in these words.
_VARIABLES = {
    "SLURM_NNODES": "nodes",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_NTASKS_PER_NODE": "tasks_per_node",
    "SLURM_NTASKS": "tasks",
    "SLURM_NPROCS": "tasks",
    "SLURM_GPUS_ON_NODE": "gpus_per_node",
}
_BY_OPTION = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "c": "SLURM_CPUS_PER_TASK",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "job-name": "SLURM_JOB_NAME",
    "J": "SLURM_JOB_NAME",
}
_NAMED = re.compile(r"#SBATCH\s+(?:--(cpus-per-task|gpus-per-node|job-name)[=\s]|-([cJ])\s?)\s*([^\s#]+)")


class Job(Record):
    """GPUs and nodes that a job asks for; a figure is a value and its span, absent where none is said.

    ``source`` names who is asked. ``many`` is how many GPUs of its ``kind`` a node has, where kinds differ in
    that; ``others`` are further kinds that would do, with their numbers (None: as many as ``figures`` say).
    ``memory_gb`` is what the box of each GPU says, from and to (None: no limit). A job is ``spread`` over
    nodes whose number is not known. A command is run ``everywhere`` where each node gets it, and not the
    first alone.
    """

    source: str = "#SBATCH"
    kind: str = ""  # of GPU, as the cluster calls it
    many: int | None = None
    others: list[tuple[str, int | None]] = field(factory=list)
    memory_mib: int | None = None  # that each GPU has at least (gpumem)
    memory_gb: tuple[int, int | None] | None = None
    spread: bool = False
    figures: dict[str, tuple[int, int, int]] = field(factory=dict)

    @property
    def everywhere(self) -> bool:
        """Whether the request holds for all commands of a file; ``#SBATCH`` holds only for its own script."""
        return self.source != "#SBATCH"

    def say(self, name: str, value: int, start: int, end: int) -> None:
        """Set a figure."""
        self.figures[name] = value, start, end

    def add_up(self) -> None:
        """Work out GPUs in all from those of a node or a task, or those of a node from all."""
        nodes, tasks, each = (self.count(name) for name in ("nodes", "tasks", "gpus_per_task"))
        on_each = self.count("tasks_per_node")
        if tasks is None and on_each and (nodes is not None or not self.spread):
            tasks = on_each * (nodes or 1)
        if self.figures.keys().isdisjoint(("gpus", "gpus_per_node")) and tasks and each:
            self.say("gpus", tasks * each, *self.figures["gpus_per_task"][1:])
        per_node, total = self.count("gpus_per_node"), self.count("gpus")
        if total is None and per_node is not None and (nodes is not None or not self.spread):
            self.say("gpus", per_node * (nodes or 1), *self.figures["gpus_per_node"][1:])
        elif total is not None and per_node is None and nodes and total % nodes == 0:
            self.say("gpus_per_node", total // nodes, *self.figures["gpus"][1:])

    def count(self, name: str) -> int | None:
        """Return a figure, such as ``gpus``, ``gpus_per_node``, ``nodes``, ``tasks_per_node``."""
        figure = self.figures.get(name)
        return figure[0] if figure is not None else None


# ── batch scripts ──────────────────────────────────────────────────────────────────────────────────────────
def read_job(text: str) -> Job | None:
    """Return what the ``#SBATCH`` lines ask for; Slurm reads those before the first command alone."""
    job = Job()
    options = list(_options(text))
    if not options:
        return None
    for key, value, start in options:
        if key == "gres":
            _take_resources(job, value, start)
        elif key.startswith("gpus"):
            _take_gpus(job, _FIGURES[key], value, (start, start + len(value)))
        else:
            low, _, high = value.partition("-")
            number = small_number(low)
            if number is not None and high in ("", low):
                job.say(_FIGURES[key], number, start, start + len(value))
            else:
                job.figures.pop(_FIGURES[key], None)
    job.add_up()
    return job


def slurm_variables(text: str, job: Job) -> dict[str, tuple[str, int, int]]:
    """Return the variables that Slurm sets in a job for what its script asks, with where it asks for it.

    Without a place, -1, where the script has another text.
    """
    found: dict[str, tuple[str, int, int]] = {}
    for name, figure in _VARIABLES.items():
        if job.count(figure) is not None:
            number, start, end = job.figures[figure]
            told = text[start:end] == str(number) and figure in ("nodes", "gpus_per_node")
            found[name] = str(number), start if told else -1, end if told else -1
    for match in _LINE.finditer(text):
        line = match[1]
        if line.strip() and not line.startswith("#"):
            break
        option = _NAMED.match(line)
        if option is not None:
            name, value = option[1] or option[2], option[3].strip("\"'")
            if "%" not in value and (name in ("job-name", "J") or value.isdigit()):
                plain = name == "gpus-per-node" and option[3] == value
                at = match.start() + option.start(3) if plain else -1
                found[_BY_OPTION[name]] = value, at, at + len(value) if plain else -1
    return found


def _options(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _LINE.finditer(text):
        line = match[1]
        if line.strip() and not line.startswith("#"):
            return
        if line.startswith("#SBATCH"):
            yield from _of_line(line, match.start())


def _of_line(line: str, at: int) -> Iterator[tuple[str, str, int]]:
    """Yield the options of a line that say something of GPUs and nodes: key, value, and where that starts."""
    words = re.finditer(r"\S+", line[7:])
    for word in words:
        text, start = word[0], at + 7 + word.start()
        if text.startswith("#"):
            return
        name, equals, value = text.partition("=")
        if text.startswith("--"):
            key = name[2:]
            start += len(name) + 1
        elif text[:2] in _SHORT:
            key, value = _SHORT[text[:2]], text[2:]
            equals, start = value, start + 2
        else:
            continue
        if key not in _FIGURES and key != "gres":
            continue
        if not equals:
            following = next(words, None)
            if following is None:
                return
            value, start = following[0], at + 7 + following.start()
        yield key, value, start


def _take_gpus(job: Job, figure: str, value: str, span: tuple[int, int]) -> None:
    """Take ``rtx_4090:4``, or the number alone."""
    match = _GPUS.match(value)
    if match is not None:
        job.kind = match["kind"] or job.kind
        job.say(figure, int(match["count"]), *span)


def _take_resources(job: Job, value: str, at: int) -> None:
    """Take generic resources: ``gpu:rtx_4090:4,gpumem:20g``."""
    for part in value.split(","):
        memory = _MEMORY.match(part)
        name, _, asked = part.partition(":")
        span = at, at + len(part)
        if memory is not None:
            job.memory_mib = int(memory[1]) * _BYTES[memory[2].lower()] >> 20
        elif name == "gpu":
            _take_gpus(job, "gpus_per_node", asked or "1", span)
            if asked and ":" not in asked and _GPUS.match(asked) is None:
                job.kind = asked
                job.say("gpus_per_node", 1, *span)
        at += len(part) + 1
