"""A launch script as documents: one for each training job that it starts."""

from __future__ import annotations

from cfglint.document.shell.job import read_job
from cfglint.document.shell.launch import Reader
from cfglint.document.shell.run import Runner
from cfglint.document.shell.words import Piece
from cfglint.document.tree import Alias, Built, Entry, Mapping, Scalar, Sequence, walk
from cfglint.document.yaml_tree import Parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.job import Job
    from cfglint.document.shell.launch import Launch


def parse_script(text: str) -> tuple[list[Parsed], Job | None]:
    """Return a document for each command that launches a job, and what the batch system is asked for."""
    job = read_job(text)
    runner = Runner()
    runner.variables.update(_told_by_slurm(job))
    runner.script(text)
    reader = Reader(text)
    launches = [launch for launch in map(reader.read, runner.commands) if launch is not None]
    _part(launches)
    found = []
    for launch in launches:
        parsed = Parsed(launch.start)
        parsed.end = max(launch.end, launch.start)
        parsed.root = launch.root
        if job is not None:
            _add_job(launch.root, job)
        found.append(parsed)
    return found, job


def _told_by_slurm(job: Job | None) -> dict[str, tuple[Piece, ...]]:
    """Return the variables that Slurm sets from what the script asks for."""
    named = (
        ("SLURM_NNODES", "nodes"),
        ("SLURM_JOB_NUM_NODES", "nodes"),
        ("SLURM_NTASKS_PER_NODE", "tasks_per_node"),
        ("SLURM_NTASKS", "tasks"),
    )
    told = {name: job.count(figure) for name, figure in named} if job is not None else {}
    return {name: (Piece(str(number), -1, -1),) for name, number in told.items() if number is not None}


def _add_job(root: Mapping, job: Job) -> None:
    head = root.entries["launch"].value
    if not isinstance(head, Mapping) or not job.figures:
        return
    spans = [(start, end) for _, start, end in job.figures.values()]
    asked = Mapping(spans[0][0], flow=True)
    asked.end = spans[0][1]
    for name, (number, start, end) in job.figures.items():
        asked.entries[name] = Entry(Scalar(name, start, end, '"'), Built(str(number), start, end))
    head.entries["job"] = Entry(Scalar("job", *spans[0], '"'), asked)


def _part(launches: list[Launch]) -> None:
    """A definition that several commands read is no command's to change."""
    if len(launches) < 2:
        return
    readers: dict[tuple[int, int], int] = {}
    for launch in launches:
        for key in {(n.start, n.end) for n in walk(launch.root) if type(n) is Scalar and n.end > n.start}:
            readers[key] = readers.get(key, 0) + 1
    for launch in launches:
        _close(launch.root, {key for key, number in readers.items() if number > 1})


def _close(root: Mapping, shared: set[tuple[int, int]]) -> None:
    closed: dict[int, Built] = {}
    for holder in walk(root):
        if isinstance(holder, Mapping):
            for entry in holder.entries.values():
                value = entry.value
                if type(value) is Scalar and (value.start, value.end) in shared:
                    entry.value = closed[id(value)] = Built(value.text, value.start, value.end)
        elif isinstance(holder, Sequence):
            holder.items = [
                Built(item.text, item.start, item.end)
                if type(item) is Scalar and (item.start, item.end) in shared
                else item
                for item in holder.items
            ]
    for node in walk(root):
        if isinstance(node, Alias) and id(node.target) in closed:
            node.target = closed[id(node.target)]
