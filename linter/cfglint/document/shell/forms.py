"""Manifests of one job: where each form says the command, the nodes, their GPUs and the environment.

``FORMS`` is the whole of it. A number that a form leaves to the platform is unknown.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.job import Job
from cfglint.document.shell.commands import (
    MANIFEST,
    at,
    entries,
    environment,
    first,
    items,
    run_script,
    run_words,
    say,
    scalars,
    script_at,
    words_at,
)
from cfglint.document.shell.launch import numbers
from cfglint.document.shell.processes import below, text_at, whole
from cfglint.document.shell.words import pieces_of
from cfglint.document.tree import (
    Composite,
    Document,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unresolved,
    effective,
)
from cfglint.record import Value, field
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.document.shell.run import Scripts
    from cfglint.document.shell.words import Pieces

_COUNTED = re.compile(r"(?P<kind>[A-Za-z][\w. -]*?)\s*(?::\s*(?P<count>[0-9]{1,5})(?:\.0*)?)?\Z")
_OTHER_MAKERS = ("tpu", "trainium", "inferentia", "gaudi")
_NOTHING = ("", "~", "null")
# dstack: `24GB`, `16GB..24GB`, `40GB..`; of a range without a lower end, nothing is sure.
_MEMORY = re.compile(r"([0-9]{1,4})(?:\.0*)?GB(\.\.(?:([0-9]{1,4})(?:\.0*)?GB)?)?\Z", re.IGNORECASE)
_VENDORS = ("nvidia", "amd", "google", "tpu", "intel", "tenstorrent", "tt")
_INPUT = re.compile(r"\$\{\{\s*inputs\.(\w+)\s*\}\}\Z")


class Asked(Value):
    """A kind of GPU and how many a node has (None: not said), and where that stands.

    ``memory`` is what the box of the GPU says in GB, from and to (None: no limit).
    """

    kind: str
    many: int | None
    place: tuple[int, int] = field(compare=False)
    memory: tuple[int, int | None] | None = None


class Form(Value):
    """Where a form says what: keys with blanks between; the first place that is there counts.

    A manifest has the form if it ``has`` all of these keys, and one of ``some`` if there are any. ``source``
    is what reports call the request. A command is a ``script`` (a text, or a list of lines) or ``words``.
    ``nodes`` is how many machines; where none is said there is one, unless that is ``elsewhere``. GPUs are
    counted ``per_node`` or in ``total``, and ``kinds`` names them or the machine; or ``asked`` reads all that
    at once. Where a kind but no number is said, the number is unknown, or one if ``single``. ``processes`` is
    how many the platform starts on a machine (in all, if the machines are unknown) of what its ``starter``
    starts. ``told`` are the variables that it sets, by the figure
    of the job.
    """

    source: str
    has: frozenset[str] = frozenset()
    some: frozenset[str] = frozenset()
    script: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    elsewhere: bool = False
    per_node: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    single: bool = False
    asked: Callable[[Mapping], list[Asked]] | None = None
    processes: tuple[str, ...] = ()
    starter: str = "python"
    told: tuple[tuple[str, str], ...] = ()


def form_of(root: Mapping) -> Form | None:
    """Return the form that a manifest has; None where it has none of these."""
    names = effective(root).keys()
    forms = (form for form in FORMS if form.has <= names and (not form.some or form.some & names))
    return next(forms, None)


def by_form(text: str, root: Mapping, form: Form, scripts: Scripts | None = None) -> list[Document]:
    """Return what a manifest launches."""
    job = job_of(root, form)
    variables: dict[str, Pieces] = {}
    for path in form.env:
        variables |= environment(text, at(root, path))
    counts = {"nodes": None if job.spread else 1} | {name: job.count(name) for name in job.figures}
    variables |= numbers({name: counts.get(figure) for name, figure in form.told})
    asked = job if job.figures or job.kind or job.memory_gb else None
    words = words_at(text, root, *form.words)
    if words:
        documents = run_words(text, words, asked, variables)
    else:
        script = script_at(text, first(root, form.script), lambda match, _: _input(text, root, match[0]))
        documents = run_script(text, script, asked, variables, scripts)
    processes = first(root, form.processes)
    if processes is not None:
        for document in documents:
            nodes = None if job.spread else job.count("nodes") or 1
            _add_processes(document, processes, nodes, form.starter)
    return documents


def job_of(root: Mapping, form: Form) -> Job:
    """Return what a manifest asks for."""
    job = Job(form.source)
    nodes = first(root, form.nodes)
    said = nodes is not None and text_at(nodes) not in _NOTHING
    job.spread = (form.elsewhere and not said) or (said and whole(nodes) is None)
    if said:
        say(job, "nodes", nodes)
    several = form.asked(root) if form.asked is not None else _named(root, form)
    if any(asked.kind.lower().startswith(_OTHER_MAKERS) for asked in several):
        return Job(form.source, spread=True)
    total = first(root, form.total)
    take(job, several)
    if total is not None:
        say(job, "gpus", total)
    job.add_up()
    return job


def _add_processes(launch: Document, count: Node, nodes: int | None, launcher: str) -> None:
    """Say how many processes a platform starts of what ``launcher`` starts: on each node, or in all."""
    head = below(launch.root, "launch")
    if not isinstance(head, Mapping) or text_at(head, "launcher") != launcher:
        return
    number, place = whole(count), (count.start, count.end)
    factors = {"processes": nodes or 1} | ({} if nodes is None else {"processes_per_node": 1})
    for name, factor in factors.items():
        told: Node = Unresolved(
            text_at(count), *place, why="the manifest leaves open how many processes start"
        )
        if number is not None:
            told = Composite(str(number * factor), *place)
        head.entries[name] = Entry(Scalar(name, *place, '"'), told)


def take(job: Job, several: list[Asked]) -> None:
    """Take kinds of GPU of which any will do; their number is known where all have the same."""
    several = list({asked: asked for asked in several}.values())
    if not several:
        return
    leading, *others = several
    job.kind, job.memory_gb = leading.kind, leading.memory
    job.others = [(other.kind, other.many) for other in others]
    if leading.many is not None and all(other.many == leading.many for other in others):
        job.say("gpus_per_node", leading.many, *leading.place)
    else:
        job.many = leading.many


def _named(root: Mapping, form: Form) -> list[Asked]:
    """Return the kinds that stand at a place, one or several, and the number that stands at another."""
    count, kinds = first(root, form.per_node), first(root, form.kinds)
    several = [kind for kind in (*items(kinds), kinds) if isinstance(kind, Scalar) and kind.text]
    many = 1 if count is None and form.single else whole(count)
    place = count or (several[0] if several else None)
    if place is None or (many is None and not several):
        return []
    return [Asked(kind.text, many, (place.start, place.end)) for kind in several] or [
        Asked("", many, (place.start, place.end))
    ]


def _input(text: str, root: Mapping, template: str) -> Pieces | None:
    """Return the input of an AzureML job that a command names, if it is a plain value."""
    match = _INPUT.match(template)
    value = below(root, "inputs", match[1]) if match is not None else None
    return tuple(pieces_of(text, value)) if isinstance(value, Scalar) else None


# ── SkyPilot ───────────────────────────────────────────────────────────────────────────────────────────────
def _sky(root: Mapping) -> list[Asked]:
    """Return kinds of GPU of any form that SkyPilot takes."""
    resources = below(root, "resources")
    common = _accelerators(resources)
    several = [item for key in ("any_of", "ordered") for item in items(below(resources, key))]
    spend(len(several) * (1 + len(common)), MANIFEST)
    return [asked for item in several for asked in _accelerators(item) or common] or common


def _accelerators(resources: Node | None) -> list[Asked]:
    node = below(resources, "accelerators")
    if node is None:
        machine = below(resources, "instance_type")
        return (
            [Asked(machine.text, None, (machine.start, machine.end))] if isinstance(machine, Scalar) else []
        )
    if isinstance(node, Scalar):
        return _counted(node)
    if isinstance(node, Sequence):
        spend(4 * len(node.items), MANIFEST)
        return [asked for item in scalars(node) for asked in _counted(item)]
    several: list[Asked] = []
    for key, given in entries(node):
        spend(4, MANIFEST)
        if isinstance(given, Scalar) and given.text not in ("", "null"):
            several.append(Asked(key.text, whole(given), (given.start, given.end)))
        else:
            several += _counted(key)  # {A100:8} is a key without value
    return several


def counted(text: str, place: tuple[int, int]) -> list[Asked]:
    """Return ``A100:8``; the name alone means one."""
    match = _COUNTED.match(text)
    if match is None:  # a part of a GPU: its kind alone
        kind = text.partition(":")[0].strip()
        return [Asked(kind, None, place)] if kind and kind != "null" else []
    return [Asked(match["kind"], int(match["count"] or 1), place)]


def _counted(node: Scalar) -> list[Asked]:
    return counted(node.text, (node.start, node.end))


# ── dstack ─────────────────────────────────────────────────────────────────────────────────────────────────
def _dstack(root: Mapping) -> list[Asked]:
    """Return GPUs as dstack reads them: parts between colons, told apart by how they begin.

    A number that is a range, or that is not said, is one or more (dstack/_internal/core/models/resources.py:
    GPUSpec.parse, DEFAULT_GPU_COUNT).
    """
    node = at(root, "resources gpu")
    if isinstance(node, Scalar):
        parts = [part for part in node.text.replace(" ", "").split(":") if part.lower() not in _VENDORS]
        names = [name for part in parts if part[:1].isalpha() for name in part.split(",")]
        memory = next((part for part in parts if part[:1].isdigit() and not part[-1].isdigit()), "")
        many = next((small_number(part) for part in parts if part.isdigit()), None)
        place = node.start, node.end
    elif isinstance(node, Mapping):
        named, count, memory = below(node, "name"), below(node, "count"), text_at(node, "memory")
        names = [name.text for name in (*scalars(named), named) if isinstance(name, Scalar)]
        many, placed = whole(count), count or node
        place = placed.start, placed.end
    else:
        return []
    least = _memory(memory)
    if not names and many is None and least is None:
        return []
    return [Asked(name, many, place, least) for name in names or [""]]


def _memory(text: str) -> tuple[int, int | None] | None:
    match = _MEMORY.match(text.replace(" ", ""))
    if match is None:
        return None
    return int(match[1]), int(match[3]) if match[3] else None if match[2] else int(match[1])


# ── all of them ────────────────────────────────────────────────────────────────────────────────────────────
_TASK = frozenset(("resources", "num_nodes", "setup", "envs", "workdir", "file_mounts"))
_RUNPOD = ("gpuTypeIds", "gpuTypeId", "gpu_type_id")
FORMS = (
    # SkyPilot: https://docs.skypilot.co/en/latest/reference/yaml-spec.html
    Form(
        "resources.accelerators",
        has=frozenset(("run",)),
        some=_TASK,
        script=("run",),
        env=("envs", "secrets"),
        nodes=("num_nodes",),
        asked=_sky,
        told=(("SKYPILOT_NUM_NODES", "nodes"), ("SKYPILOT_NUM_GPUS_PER_NODE", "gpus_per_node")),
    ),
    # dstack: https://dstack.ai/docs/reference/dstack.yml/task
    Form(
        "resources.gpu",
        has=frozenset(("type", "commands")),
        script=("commands",),
        env=("env",),
        nodes=("nodes",),
        asked=_dstack,
        told=(
            ("DSTACK_NODES_NUM", "nodes"),
            ("DSTACK_GPUS_PER_NODE", "gpus_per_node"),
            ("DSTACK_GPUS_NUM", "gpus"),
        ),
    ),
    # AzureML: https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-command
    Form(
        "resources.instance_type",
        has=frozenset(("command",)),
        some=frozenset(("distribution", "environment", "$schema")),
        script=("command",),
        env=("environment_variables",),
        nodes=("resources instance_count",),
        kinds=("resources instance_type",),
        processes=("distribution process_count_per_instance",),
    ),
    # Determined: https://docs.determined.ai/latest/reference/training/experiment-config-reference.html. The
    # cluster spreads the slots over its machines.
    Form(
        "resources.slots_per_trial",
        has=frozenset(("entrypoint", "resources")),
        script=("entrypoint",),
        words=("entrypoint",),
        env=("environment environment_variables",),
        elsewhere=True,
        total=("resources slots_per_trial", "resources slots"),
        processes=("resources slots_per_trial", "resources slots"),
        starter="determined",
    ),
    # MosaicML: https://docs.mosaicml.com/projects/mcli/en/latest/training/yaml_schema.html
    Form(
        "compute.gpus",
        has=frozenset(("command", "compute")),
        script=("command",),
        env=("env_variables",),
        nodes=("compute nodes",),
        elsewhere=True,
        total=("compute gpus",),
        kinds=("compute gpu_type", "compute instance"),
    ),
    # Anyscale: https://docs.anyscale.com/reference/job-api. Its compute_config is kept by the platform.
    Form(
        "compute_config",
        has=frozenset(("entrypoint", "compute_config")),
        script=("entrypoint",),
        env=("env_vars",),
        elsewhere=True,
    ),
    # RunPod: https://docs.runpod.io/api-reference/pods; runpod-python: api/ctl_commands.py: create_pod
    Form(
        "gpuCount",
        some=frozenset((*_RUNPOD, "dockerStartCmd", "dockerArgs", "docker_args")),
        words=("dockerEntrypoint", "dockerStartCmd"),
        script=("dockerArgs", "docker_args", "dockerStartCmd"),
        env=("env",),
        per_node=("gpuCount", "gpu_count"),
        kinds=_RUNPOD,
        single=True,
    ),
)
