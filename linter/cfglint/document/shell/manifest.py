"""Manifests that launch jobs: what they ask for, and their commands, each a document as of a script.

A SkyPilot task, a Kubernetes object with pods, a compose file, a RunPod pod. What a manifest leaves to the
cluster is unknown.
"""

from __future__ import annotations

import re

from cfglint.document.job import Job
from cfglint.document.shell.launch import launched, numbers, part
from cfglint.document.shell.processes import below, text_at, whole
from cfglint.document.shell.programs import VLLM_IMAGE
from cfglint.document.shell.run import Runner
from cfglint.document.shell.words import Piece, Pieces, Word, filled, pieces_of, unknown, value_of, word_of
from cfglint.document.tree import (
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    effective,
    may_launch,
    target,
)
from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_COUNTED = re.compile(r"(?P<kind>[A-Za-z][\w. -]*?)\s*(?::\s*(?P<count>[0-9]{1,5})(?:\.0*)?)?\Z")
_OTHER_MAKERS = ("tpu", "trainium", "inferentia", "gaudi")
# What compose fills in, and what the kubelet does.
_INTERPOLATED = re.compile(r"\$(?:\$|\{(\w+)(?::?-([^${}]*))?\}|(\w+))")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")

_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu.shared")
# Labels that tell the GPU of a node: of GPU feature discovery, GKE, Karpenter, EKS, SkyPilot, AMD, CoreWeave;
# the kind of a cloud's machine does, too.
_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name", "skypilot.co/accelerator", "amd.com/gpu.product-name",
    "gpu.nvidia.com/class", "gpu.nvidia.com/model", "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)  # fmt: skip
_REPLICA_SPECS = (
    "pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs", "paddleReplicaSpecs", "xgbReplicaSpecs",
    "jaxReplicaSpecs",
)  # fmt: skip


class Asked(Value):
    """A kind of GPU and how many a node has (None: not said), and where that stands."""

    kind: str
    many: int | None
    place: tuple[int, int] = field(compare=False)


class Group(Record):
    """Pods that are made alike: ``pod`` is what each is, ``many`` how many the job has (None: unknown)."""

    pod: Node | None
    many: int | None = 1
    spot: Scalar | None = None  # where the number stands


def launches_of(text: str, root: Mapping, *, inner: bool = False) -> list[Document]:
    """Return a document for each command that a manifest launches; none for another document."""
    names = effective(root)
    if text_at(root, "kind") == "List" and not inner:
        several = [item for item in items(below(root, "items")) if isinstance(item, Mapping)]
        return [document for item in several for document in launches_of(text, item, inner=True)]
    if "kind" in names and "apiVersion" in names:
        documents = _pods(text, root)
    elif "run" in names:
        documents = _task(text, root)
    else:
        documents = _services(text, root) if "services" in names else _pod(text, root)
    part(documents)
    return documents


# ── trees ──────────────────────────────────────────────────────────────────────────────────────────────────
def items(node: Node | None) -> list[Node]:
    """Return the items of a sequence."""
    node = target(node)
    return [target(item) for item in node.items] if isinstance(node, Sequence) else []


def scalars(node: Node | None) -> list[Scalar]:
    """Return the items of a sequence that are scalars."""
    return [item for item in items(node) if isinstance(item, Scalar)]


def entries(node: Node | None) -> list[tuple[Scalar, Node | None]]:
    """Return the keys and values of a mapping."""
    node = target(node)
    return [(e.key, target(e.value)) for e in effective(node).values()] if isinstance(node, Mapping) else []


def say(job: Job, figure: str, node: Node | None) -> int | None:
    """Set a figure of a job to the number that is at a node, if one does."""
    value = whole(node)
    if value is not None and node is not None:
        job.say(figure, value, node.start, node.end)
    return value


# ── commands ───────────────────────────────────────────────────────────────────────────────────────────────
def run_script(text: str, node: Node | None, job: Job | None, variables: dict[str, Pieces]) -> list[Document]:
    """Return what a script launches that is in a scalar."""
    if not isinstance(node, Scalar) or not may_launch(node.text):
        return []
    runner = Runner(variables)
    runner.pieces(pieces_of(text, node))
    documents = launched(text, runner, job)
    if runner.broken:
        from cfglint.document.shell.skipped import unparsed  # most scripts parse

        documents += unparsed(text, runner)
    return documents


def run_words(text: str, words: list[Word], job: Job | None, variables: dict[str, Pieces]) -> list[Document]:
    """Return what a command launches that is there as a list."""
    if not may_launch(" ".join(word.spelled for word in words)):
        return []
    runner = Runner()
    return launched(text, runner, job, listed=runner.argv(words, variables))


def words_at(text: str, node: Node | None, *keys: str) -> list[Word]:
    """Return the words of the lists at some keys."""
    return [word_of(text, item) for key in keys for item in scalars(below(node, key))]


def served(text: str, container: Node | None) -> list[Word]:
    """Return an image that is a command by itself: the server of vLLM."""
    image = below(container, "image")
    return [word_of(text, image)] if isinstance(image, Scalar) and VLLM_IMAGE in image.text else []


def mapped(text: str, node: Node | None) -> dict[str, Pieces]:
    """Return the variables of ``NAME: value``."""
    return {key.text: value_of(text, inner, key.text) for key, inner in entries(node)}


def listed(text: str, node: Node | None, key: str) -> dict[str, Pieces]:
    """Return the variables of ``- {name: NAME, value: value}``."""
    return {
        name: value_of(text, below(item, "value"), name)
        for item in items(node)
        for name in [text_at(item, key)]
    }


# ── SkyPilot ───────────────────────────────────────────────────────────────────────────────────────────────
def _task(text: str, root: Mapping) -> list[Document]:
    job = Job("resources.accelerators")
    nodes = below(root, "num_nodes")
    if say(job, "nodes", nodes) is None and text_at(nodes) not in ("", "~", "null"):
        return []
    resources = below(root, "resources")
    common = _accelerators(resources)
    several = [item for key in ("any_of", "ordered") for item in items(below(resources, key))]
    _several(job, [asked for item in several for asked in _accelerators(item) or common] or common)
    variables = mapped(text, below(root, "envs")) | mapped(text, below(root, "secrets"))
    per_node = job.count("gpus_per_node")
    variables |= numbers(
        {"SKYPILOT_NUM_NODES": job.count("nodes") or 1, "SKYPILOT_NUM_GPUS_PER_NODE": per_node}
    )
    return run_script(text, below(root, "run"), job, variables)


def _several(job: Job, several: list[Asked]) -> None:
    """Take kinds of GPU of which any will do; their number is known where all have the same."""
    several = list({asked: asked for asked in several}.values())
    if not several or any(asked.kind.lower().startswith(_OTHER_MAKERS) for asked in several):
        return
    first, *others = several
    job.kind = first.kind
    job.others = [(other.kind, other.many) for other in others]
    if first.many is not None and all(other.many == first.many for other in others):
        job.say("gpus_per_node", first.many, *first.place)
        job.add_up()
    else:
        job.many = first.many


def _accelerators(resources: Node | None) -> list[Asked]:
    """Return kinds of GPU, their number in a node and their place, from any form that SkyPilot takes."""
    node = below(resources, "accelerators")
    if node is None:
        machine = below(resources, "instance_type")
        return (
            [Asked(machine.text, None, (machine.start, machine.end))] if isinstance(machine, Scalar) else []
        )
    if isinstance(node, Scalar):
        return _counted(node)
    if isinstance(node, Sequence):
        return [asked for item in scalars(node) for asked in _counted(item)]
    several: list[Asked] = []
    for key, given in entries(node):
        if isinstance(given, Scalar) and given.text not in ("", "null"):
            several.append(Asked(key.text, whole(given), (given.start, given.end)))
        else:
            several += _counted(key)  # {A100:8} is a key without value
    return several


def _counted(node: Scalar) -> list[Asked]:
    """Return ``A100:8``; the name alone means one."""
    match, place = _COUNTED.match(node.text), (node.start, node.end)
    if match is None:  # a part of a GPU: its kind alone
        kind = node.text.partition(":")[0].strip()
        return [Asked(kind, None, place)] if kind and kind != "null" else []
    return [Asked(match["kind"], int(match["count"] or 1), place)]


# ── compose ────────────────────────────────────────────────────────────────────────────────────────────────
def _services(text: str, root: Mapping) -> list[Document]:
    documents: list[Document] = []
    for _, service in entries(below(root, "services")):
        if below(service, "image") is None and below(service, "build") is None:
            continue
        environment = below(service, "environment")
        variables = {name: _interpolated(pieces) for name, pieces in mapped(text, environment).items()}
        for item in scalars(environment):
            name, equals, _ = item.text.partition("=")
            if name:
                given = word_of(text, item).from_(len(name) + 1).pieces
                variables[name] = _interpolated(given) if equals else (unknown(name),)
        words = [
            part
            for key in ("entrypoint", "command")
            for part in _command(text, below(service, key), variables)
        ]
        if below(service, "entrypoint") is None:
            words = [*served(text, service), *words]
        documents += run_words(text, words, _devices(service), variables)
    return documents


def _command(text: str, node: Node | None, variables: dict[str, Pieces]) -> list[Word]:
    """Return a command that is a list, or a text that is split as a shell would split it."""
    if isinstance(node, Sequence):
        words = [word_of(text, item) for item in scalars(node)]
    elif isinstance(node, Scalar) and may_launch(node.text):
        runner = Runner(variables)
        runner.pieces(_interpolated(tuple(pieces_of(text, node))))
        commands = runner.commands
        if len(commands) != 1:  # of one shell, the shell itself
            shells = {id(command.outer): command.outer for command in commands}
            return shells.popitem()[1] if len(shells) == 1 else []
        return commands[0].words
    else:
        return []
    return [Word(_interpolated(part.pieces), part.start, part.end) for part in words]


def _interpolated(pieces: Pieces) -> Pieces:
    """Fill in what compose itself does: ``${NAME:-default}``, and ``$$`` for a dollar sign."""

    def fill(match: re.Match[str], piece: Piece) -> Pieces:
        return (unknown(match[1] or match[3]) if match[2] is None else piece.cut(*match.span(2)),)

    return filled(pieces, _INTERPOLATED, fill)


def _devices(service: Node | None) -> Job | None:
    """Return the GPUs that a service reserves."""
    job = Job("devices")
    for device in (
        *items(below(service, "deploy", "resources", "reservations", "devices")),
        *items(below(service, "gpus")),
    ):
        capabilities = {capability.text for capability in scalars(below(device, "capabilities"))}
        if capabilities and not {"gpu", "nvidia", "compute", "utility"} & capabilities:
            continue
        ids = below(device, "device_ids")
        if isinstance(ids, Sequence):
            job.say("gpus_per_node", len(ids.items), ids.start, ids.end)
        else:
            say(job, "gpus_per_node", below(device, "count"))
    job.add_up()
    return job if job.figures else None


# ── RunPod ─────────────────────────────────────────────────────────────────────────────────────────────────
def _pod(text: str, root: Mapping) -> list[Document]:
    job = Job("gpuCount")
    kinds = below(root, "gpuTypeIds") or below(root, "gpuTypeId") or below(root, "gpu_type_id")
    several = [kind for kind in (*items(kinds), kinds) if isinstance(kind, Scalar) and kind.text]
    count = below(root, "gpuCount") or below(root, "gpu_count")
    if count is None and several:
        job.say("gpus_per_node", 1, several[0].start, several[0].end)  # one where nothing is said
    else:
        say(job, "gpus_per_node", count)
    job.add_up()
    if several:
        job.kind = several[0].text
        job.others = [(kind.text, None) for kind in several[1:]]
    asked = job if job.figures else None
    environment = below(root, "env")
    variables = mapped(text, environment) | listed(text, environment, "key")
    words = words_at(text, root, "dockerEntrypoint", "dockerStartCmd")
    if words:
        return run_words(text, words, asked, variables)
    script = below(root, "dockerArgs") or below(root, "docker_args") or below(root, "dockerStartCmd")
    return run_script(text, script, asked, variables)


# ── Kubernetes: the pods of an object, the GPUs of each, on which nodes, what containers run ───────────────
def _pods(text: str, root: Mapping) -> list[Document]:
    """Return what each container of a job launches."""
    kind, spec = text_at(root, "kind"), below(root, "spec")
    groups = _GROUPS.get(kind, _others)(spec if kind != "Pod" else root)
    job = _job(groups)
    documents: list[Document] = []
    shell = below(spec, "entrypoint") if kind == "RayJob" else None
    if shell is not None:
        documents += run_script(text, shell, job, {})
    trainer = below(spec, "trainer") if kind == "TrainJob" else None
    if trainer is not None:
        documents += _container(text, trainer, _trainer(trainer))
    for group in groups:
        for container in items(below(group.pod, "containers")):
            documents += _container(text, container, job)
    return documents


def _group(node: Node | None) -> Group:
    replicas = below(node, "replicas")
    spot = replicas if isinstance(replicas, Scalar) else None
    return Group(below(node, "template", "spec"), _many(replicas), spot)


def _many(node: Node | None) -> int | None:
    """Return a number of copies: one where nothing is said."""
    return 1 if node is None else whole(node)


def _batch(spec: Node | None) -> list[Group]:
    tasks, pod = below(spec, "tasks"), below(spec, "template", "spec")
    if tasks is not None:  # Volcano
        return [_group(task) for task in items(tasks)]
    parallel = below(spec, "parallelism") if text_at(spec, "completionMode") == "Indexed" else None
    return [Group(pod, whole(parallel), parallel) if isinstance(parallel, Scalar) else Group(pod)]


def _job_set(spec: Node | None) -> list[Group]:
    groups = []
    for replicated in items(below(spec, "replicatedJobs")):
        many, inner = _many(below(replicated, "replicas")), below(replicated, "template", "spec")
        each = _many(below(inner, "parallelism"))
        pods = None if many is None or each is None else many * each
        groups.append(Group(below(inner, "template", "spec"), pods))
    return groups


def _leader_workers(spec: Node | None) -> list[Group]:
    inner = below(spec, "leaderWorkerTemplate")
    size = _many(below(inner, "size"))
    leader, workers = below(inner, "leaderTemplate", "spec"), below(inner, "workerTemplate", "spec")
    if leader is None:
        return [Group(workers, size)]
    return [Group(leader), Group(workers, None if size is None else size - 1)]


def _ray(cluster: Node | None) -> list[Group]:
    head = Group(below(cluster, "headGroupSpec", "template", "spec"))
    return [head, *(_group(workers) for workers in items(below(cluster, "workerGroupSpecs")))]


def _others(spec: Node | None) -> list[Group]:
    if any(below(spec, name) is not None for name in _REPLICA_SPECS):
        return [_group(replica) for name in _REPLICA_SPECS for _, replica in entries(below(spec, name))]
    # Of a StatefulSet and kinds of others nobody knows whether the pods are one job.
    return [Group(below(spec, "template", "spec"), None)]


# The groups of pods of an object, by the kinds that are in use for training and serving.
_GROUPS: dict[str, Callable[[Node | None], list[Group]]] = {
    "Pod": lambda root: [Group(below(root, "spec"))],
    "CronJob": lambda spec: _batch(below(spec, "jobTemplate", "spec")),
    "Job": _batch,
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_workers,
    "RayCluster": _ray,
    **dict.fromkeys(
        ("RayJob", "RayService"),
        lambda spec: _ray(below(spec, "rayClusterSpec") or below(spec, "rayClusterConfig")),
    ),
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "DaemonSet", "ReplicationController"),
        lambda spec: [Group(below(spec, "template", "spec"))],
    ),
}


def _gpus(container: Node | None) -> Scalar | None:
    for kind in ("limits", "requests"):
        for name in _RESOURCES:
            asked = below(container, "resources", kind, name)
            if isinstance(asked, Scalar) and whole(asked) is not None:
                return asked
    return None


def _job(groups: list[Group]) -> Job | None:
    """Return what a job asks for: its pods with GPUs, which are alike or of which nothing is said."""
    job = Job("nvidia.com/gpu")
    asking: list[tuple[Group, int, Scalar]] = []
    for group in groups:
        asked = [gpus for c in items(below(group.pod, "containers")) if (gpus := _gpus(c)) is not None]
        if asked:
            asking.append((group, sum(whole(gpus) or 0 for gpus in asked), asked[0]))
    if not asking:
        return None
    kinds = {tuple(_kinds(group.pod)) for group, *_ in asking}
    if len(kinds) == 1:
        job.kind, *others = next(iter(kinds)) or ("",)
        job.others = [(name, None) for name in others]
    _, per_node, spot = asking[0]
    if any(many != per_node for _, many, _ in asking):
        return job if job.kind else None
    job.say("gpus_per_node", per_node, spot.start, spot.end)
    several = [group.many for group, *_ in asking]
    nodes = sum(many for many in several if many is not None)
    if None not in several and nodes:
        place = next((group.spot for group, *_ in asking if group.spot is not None), spot)
        job.say("nodes", nodes, place.start, place.end)
        job.add_up()
    return job


def _trainer(trainer: Node | None) -> Job | None:
    """Return what a Kubeflow TrainJob asks for."""
    job = Job("nvidia.com/gpu")
    for kind in ("limits", "requests"):
        if say(job, "gpus_per_node", below(trainer, "resourcesPerNode", kind, _RESOURCES[0])) is not None:
            if say(job, "nodes", below(trainer, "numNodes")) is not None:
                job.add_up()
            return job
    return None


def _kinds(pod: Node | None) -> list[str]:
    """Return the GPUs that the nodes of a pod may have; none where no label says it."""
    for label in _LABELS:
        selected = text_at(pod, "nodeSelector", label)
        if selected:
            return [selected]
    required = below(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    kinds: list[str] = []
    for term in items(below(required, "nodeSelectorTerms")):  # any of them will do
        for label in _LABELS:
            asked = [
                product.text
                for match in items(below(term, "matchExpressions"))
                if text_at(match, "key") == label and text_at(match, "operator") == "In"
                for product in scalars(below(match, "values"))
            ]
            if asked:
                kinds += asked
                break
        else:
            return []
    return list(dict.fromkeys(kinds))


def _container(text: str, container: Node | None, job: Job | None) -> list[Document]:
    variables = listed(text, below(container, "env"), "name")
    words = [_expanded(word, variables) for word in words_at(text, container, "command", "args")]
    if below(container, "command") is None:
        words = [*served(text, container), *words]
    return run_words(text, words, job, variables)


def _expanded(argument: Word, variables: dict[str, Pieces]) -> Word:
    """Fill in ``$(NAME)``, as the kubelet does; of a name that the container does not set, it stays."""
    if "$" not in argument.spelled:
        return argument

    def fill(match: re.Match[str], piece: Piece) -> Pieces | None:
        pieces = variables.get(match[1])
        return None if pieces is None else tuple(part.within(piece.mode) for part in pieces)

    return Word(filled(argument.pieces, _VARIABLE, fill), argument.start, argument.end)
