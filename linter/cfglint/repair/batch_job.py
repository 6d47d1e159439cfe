"""What a batch script asks Slurm for, where a repair moves its job to fewer GPUs or machines.

``#SBATCH --nodes=4`` keeps a job waiting on a cluster that has one machine, whatever its commands start, and
SkyPilot rents as many as ``num_nodes`` says. So such lines move along, as far as they ask for more than there
is.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cfglint.document.shell.processes import below
from cfglint.repair.devices import with_devices
from cfglint.repair.in_step import in_step
from cfglint.repair.patch import Change, Patch
from cfglint.repair.price import gives_other_gpus, lays_out
from cfglint.repair.said_twice import with_variable
from cfglint.repair.submitted import asked_in_front, told_to_ray
from cfglint.repair.together import combined
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.job import Job
    from cfglint.document.tree import Document
    from cfglint.engine.subject import Judged
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Trials

_NUMBER = re.compile(r"[0-9]+\Z")
_STEP = re.compile(
    r"(?P<flag>--gres=gpu|--gpus-per-(?:node|task))[:=](?:[A-Za-z][\w.-]*:)?(?P<number>[0-9]{1,3})"
)
_ASKS = re.compile(r"#SBATCH|num_nodes:\Z")  # Slurm's, and SkyPilot's number of machines
_FIGURES = ("nodes", "gpus_per_node", "gpus_per_task", "tasks_per_node", "gpus", "tasks")


def with_job(
    patch: Patch | None, repair: Repair, watched: Sequence[Judged], trials: Trials
) -> tuple[Patch | None, Repair]:
    """Return a patch with what goes along with a job that moves, and the repair with what that spares."""
    return in_step(_asking_less(patch, repair, watched, trials), repair, watched, trials)


def _asking_less(
    patch: Patch | None, repair: Repair, watched: Sequence[Judged], trials: Trials
) -> Patch | None:
    """Return a patch that lets a script's head ask for no more than a target has, where its job moves.

    The command's list of GPUs and srun's flags move along. Other commands of the script may need what its
    head asks for.
    """
    patch = with_variable(with_devices(patch, repair, watched, trials), repair, watched, trials)
    facts = combined(repair.options) or {}
    if patch is None or len(watched) != 1:
        return patch
    if not (lays_out(facts) or gives_other_gpus(trials, watched[0], facts)):
        return patch
    in_front = [change for change in asked_in_front(watched[0]) if change.edit not in patch.edits]
    patch = Patch([*patch.changes, *in_front]) if in_front else patch
    document, values = watched[0].subject.document, watched[0].values
    each, machines = values["gpu.count"], values["gpu.nodes"]
    job = document.job
    if watched[0].target is None or not isinstance(each, int):
        return patch
    most = machines if isinstance(machines, int) else 1
    moved = patch.spans
    more = [*_of_step(document, each, moved), *told_to_ray(watched[0])]
    if job is not None and ((job.count("gpus") or 0) > each * most or (job.count("nodes") or 0) > most):
        more += _edits(document, job, each, most, moved)
    if not more:
        return patch
    wider = Patch([*patch.changes, *more])
    alone = len(document.file.documents) == 1 or len(wider.changes) == len(patch.changes)
    return wider if alone or trials.spares(wider.edits) else patch


def _of_step(document: Document, each: int, moved: set[tuple[int, int]]) -> Iterator[Change]:
    """Yield the change of each flag of srun in front of the program that asks for more GPUs than ``each``."""
    words, name = document.words, below(document.root, "launch", "name")
    if name is None or not words or words[0].spelled.rpartition("/")[2] != "srun":
        return
    for before, word in pairwise(words):
        found = _STEP.fullmatch(word.spelled) or _STEP.fullmatch(f"{before.spelled}={word.spelled}")
        text = document.file.text[word.start : word.end]
        if word.start >= name.start or found is None or not text.endswith(found["number"]):
            continue
        span = word.end - len(found["number"]), word.end
        if int(found["number"]) > each and span not in moved:
            moved.add(span)
            flag = found["flag"]
            yield Change(Edit(*span, str(each)), f"srun's {flag} to {each}", flag, found["number"])


def _edits(
    document: Document, job: Job, each: int, most: int, moved: set[tuple[int, int]]
) -> Iterator[Change]:
    """Yield the change of each figure that is larger than a target: so many machines with ``each`` GPUs."""
    nodes, own = job.count("nodes"), job.count("gpus_per_node")
    new_nodes, new_own = min(nodes or 1, most), min(own or each, each)
    news = {
        "nodes": new_nodes,
        "gpus_per_node": new_own,
        "gpus_per_task": new_own if job.count("gpus_per_task") == own else None,
        "tasks_per_node": new_own if job.count("tasks_per_node") == own else None,
        "gpus": new_nodes * new_own,
        "tasks": {job.count("gpus"): new_nodes * new_own, nodes: new_nodes}.get(job.count("tasks")),
    }
    for name in _FIGURES:
        old, start, end = job.figures.get(name, (0, 0, 0))
        new, text = news[name], document.file.text[start:end]
        digits = _NUMBER.search(text)
        if new is None or new >= old or digits is None or int(digits[0]) != old:
            continue
        span = start + digits.start(), end
        line = document.file.text[document.file.text.rfind("\n", 0, start) + 1 : start].strip().rstrip("= ")
        if _ASKS.match(line) and not any(a < span[1] and span[0] < b for a, b in moved):
            moved.add(span)
            told = text[: digits.start()] + str(new)
            yield Change(Edit(*span, str(new)), f"{line} to {told}", line, digits[0])
