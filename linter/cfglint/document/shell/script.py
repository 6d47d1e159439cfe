"""A launch script as documents: one for each training job that it starts."""

from __future__ import annotations

from cfglint.document.shell.job import read_job
from cfglint.document.shell.launch import Reader, whole
from cfglint.document.shell.run import Runner
from cfglint.document.shell.words import Piece
from cfglint.document.tree import Alias, Built, Document, Entry, Mapping, Scalar, Sequence, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Job


def parse_script(text: str) -> list[Document]:
    """Return a document for each command of a script that launches a job."""
    job = read_job(text)
    runner = Runner()
    runner.variables.update(_told_by_slurm(job))
    runner.script(text)
    return launched(text, runner, job)


def launched(text: str, runner: Runner, job: Job | None, *, listed: bool = False) -> list[Document]:
    """Return the documents of the commands that were met in a script or a manifest, the whole of ``text``."""
    reader = Reader(text)
    found = []
    for launch in map(reader.read, runner.commands):
        if launch is None:
            continue
        parsed = Document(launch.start, max(launch.end, launch.start), launch.root)
        parsed.format, parsed.listed, parsed.over = "shell", listed, launch.over
        parsed.job = asked = _own(launch.job, job)
        if asked is not None:
            _add_job(launch.root, asked)
        found.append(parsed)
    part(found)
    return found


def _own(own: Job | None, job: Job | None) -> Job | None:
    """Return what a command asks for itself, of the GPUs that the job around it is on."""
    if own is not None and job is not None and not own.kind:
        own.kind, own.others = job.kind, job.others
    return own or job


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
    figures = dict(job.figures)
    nodes = head.entries.get("nodes")
    alone = nodes is not None and whole(nodes.value) == 1
    if job.everywhere and (job.count("nodes") or 1) > 1 and alone and "gpus_per_node" in figures:
        figures["gpus"] = figures["gpus_per_node"]  # the launcher is started in each node, and sees no other
    spans = [(start, end) for _, start, end in figures.values()]
    asked = Mapping(spans[0][0], flow=True)
    asked.end = spans[0][1]
    for name, (number, start, end) in figures.items():
        asked.entries[name] = Entry(Scalar(name, start, end, '"'), Built(str(number), start, end))
    head.entries["job"] = Entry(Scalar("job", *spans[0], '"'), asked)


def part(launches: list[Document]) -> None:
    """Tell commands of the GPUs that they share; a definition that several read is none's to change."""
    roots = [launch.root for launch in launches if isinstance(launch.root, Mapping)]
    _count_together([head for root in roots if isinstance(head := root.entries["launch"].value, Mapping)])
    if len(roots) < 2:
        return
    readers: dict[tuple[int, int], int] = {}
    for root in roots:
        for key in {(n.start, n.end) for n in walk(root) if type(n) is Scalar and n.end > n.start}:
            readers[key] = readers.get(key, 0) + 1
    for root in roots:
        _close(root, {key for key, number in readers.items() if number > 1})


def _count_together(heads: list[Mapping]) -> None:
    """Add up what all start, beside each other or not; nothing where one is unknown."""
    started = [head.entries.get("processes") for head in heads]
    counts = [whole(entry.value) for entry in started if entry is not None]
    known = [count for count in counts if count is not None]
    if len(known) < len(heads):
        return
    for head, entry in zip(heads, started, strict=True):
        assert entry is not None
        place = entry.value
        head.entries["together"] = Entry(entry.key, Built(str(sum(known)), place.start, place.end))


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
