"""Kubernetes objects: their pods, how many, the GPUs of each, on which nodes, and what the containers run.

Pods are looked for by what holds them and not by the object's kind, so that kinds that nobody knows are read.
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
    items,
    run_script,
    run_words,
    say,
    scalars,
    script_at,
    served,
    words_at,
)
from cfglint.document.shell.launch import numbers
from cfglint.document.shell.nested import given_to_shell
from cfglint.document.shell.processes import PET, below, text_at, whole
from cfglint.document.shell.words import Piece, Pieces, Word, filled, unknown
from cfglint.document.tree import Document, Mapping, Node, Scalar, effective, walk
from cfglint.record import Record, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# `$(NAME)` is what the kubelet fills in; `$NAME` and `${NAME}` nobody does, but for envsubst before.
_VARIABLE = re.compile(r"\$\$|\$\((?P<own>[A-Za-z_][\w.-]*)\)|\$\{?(?P<before>[A-Za-z_]\w*)\}?")
_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu.shared")
_MIG = "nvidia.com/mig-"
# Labels that tell the GPU of a node: of GPU feature discovery, GKE, Karpenter, EKS, SkyPilot, AMD, CoreWeave;
# the kind of a cloud's machine does, too.
_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name", "skypilot.co/accelerator", "amd.com/gpu.product-name",
    "gpu.nvidia.com/class", "gpu.nvidia.com/model", "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type", "sagemaker.amazonaws.com/instance-type",
)  # fmt: skip
# What torchrun takes where its flags do not say it.
_PER_NODE, _NODES = f"{PET}NPROC_PER_NODE", f"{PET}NNODES"


class Pods(Value):
    """How pods that are made alike stand in an item of a list or a mapping of such groups.

    Their spec is at the keys ``pod``, their number is the product of what is at ``many``: one where nothing
    is said, or unknown where that is ``open``.
    """

    pod: str
    many: tuple[str, ...] = ()
    open: bool = False


# Groups of pods that are one job, by the key that they stand below.
_GROUPS = {
    # JobSet
    "replicatedJobs": Pods("template spec template spec", ("replicas", "template spec parallelism")),
    "headGroupSpec": Pods("template spec"),  # KubeRay
    # Without a number, the operator takes minReplicas (kuberay: apis/ray/v1/raycluster_types.go).
    "workerGroupSpecs": Pods("template spec", ("replicas", "numOfHosts"), open=True),
    "tasks": Pods("template spec", ("replicas",)),  # Volcano
    **dict.fromkeys(
        (
            "pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs", "paddleReplicaSpecs",  # Kubeflow
            "xgbReplicaSpecs", "jaxReplicaSpecs", "replicaSpecs",  # the last is HyperPod's
        ),
        Pods("template spec", ("replicas",)),
    ),
}  # fmt: skip
_LEADER = "leaderWorkerTemplate"
_POD = 50  # steps of reading one
# Objects whose pods are a job each. Of a StatefulSet and other kinds nobody knows.
_ALONE = ("Pod", "Job", "CronJob", "Deployment", "ReplicaSet", "DaemonSet", "ReplicationController")
# Objects whose operators leave torchrun's variables alone.
_PLAIN = (*_ALONE, "StatefulSet", "JobSet", "LeaderWorkerSet", "RayCluster", "RayJob", "RayService")


class Group(Record):
    """Pods that are made alike: ``pod`` is what each is, ``many`` how many the job has (None: unknown)."""

    pod: Node | None
    many: int | None = 1
    spot: Scalar | None = None  # where the number stands


def objects(text: str, root: Mapping) -> list[Document]:
    """Return what each container of an object launches."""
    kind = text_at(root, "kind")
    documents: list[Document] = []
    seen: set[int] = set()
    for node in walk(root):  # a mapping comes before what is in it
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        names = effective(node).keys()
        spend(1 + len(names) // 4, MANIFEST)
        groups = _groups_of(node, names, root)
        if groups is None:
            continue
        job = _job(groups)
        told = _told(node, kind)
        if kind == "RayJob":
            script = script_at(text, at(root, "spec entrypoint"))
            documents += run_script(text, script, job, {})
        for group in groups:
            inside = walk(group.pod)  # of an alias, again
            spend(_POD + len(inside) // 4, MANIFEST)
            seen.update(map(id, inside))
            for container in _containers(group.pod):
                documents += _container(text, container, job, told)
    return sorted(documents, key=lambda document: document.start)


# ── pods ───────────────────────────────────────────────────────────────────────────────────────────────────
def _groups_of(node: Mapping, names: Iterable[str], root: Mapping) -> list[Group] | None:
    """Return the groups of pods that a mapping holds itself; None for another mapping."""
    if _LEADER in names:
        return _leader_workers(below(node, _LEADER))
    names = set(names)
    groups = [group for key in names & _GROUPS.keys() for group in _each(node, key, _GROUPS[key])]
    if groups:
        return groups
    container = not ({"resources", "image"}.isdisjoint(names) or {"command", "args"}.isdisjoint(names))
    alone = "containers" in names or container
    return [_own(node, root)] if alone else None


def _each(holder: Mapping, key: str, pods: Pods) -> Iterator[Group]:
    held = below(holder, key)
    several = items(held) or [node for _, node in entries(held) if node is not None]
    if held is not None and below(held, "template") is not None:
        several = [held]
    # Ray's autoscaler changes the number, and so does Kubernetes' own where an elastic job has metrics.
    scaled = text_at(holder, "enableInTreeAutoscaling").lower() == "true" and pods.open
    scaled = scaled or at(holder, "elasticPolicy metrics") is not None
    for item in several:
        pod = at(item, pods.pod)
        if pod is None:
            continue
        spend(_POD + len(_containers(pod)), MANIFEST)
        factors = [at(item, path) for path in pods.many]
        many: int | None = None if scaled or (pods.open and factors[0] is None) else 1
        for factor in factors:
            number = 1 if factor is None else whole(factor)
            many = None if many is None or number is None else many * number
        yield Group(pod, many, next((f for f in factors if isinstance(f, Scalar)), None))


def _leader_workers(node: Node | None) -> list[Group]:
    size = at(node, "size")
    many = 1 if size is None else whole(size)
    leader, workers = at(node, "leaderTemplate spec"), at(node, "workerTemplate spec")
    if leader is None:
        return [Group(workers, many)]
    return [Group(leader), Group(workers, None if many is None else many - 1)]


def _own(pod: Mapping, root: Mapping) -> Group:
    """Return a pod that belongs to no group, or a container that belongs to no pod."""
    kind, spec = text_at(root, "kind"), below(root, "spec")
    parallel = below(spec, "parallelism") if text_at(spec, "completionMode") == "Indexed" else None
    if kind == "Job" and isinstance(parallel, Scalar):
        return Group(pod, whole(parallel), parallel)
    return Group(pod, 1 if kind in _ALONE else None)


def _containers(pod: Node | None) -> list[Node]:
    return items(below(pod, "containers")) or ([pod] if pod is not None else [])


# ── what they ask for ──────────────────────────────────────────────────────────────────────────────────────
def _gpus(container: Node | None) -> tuple[int, Scalar, str] | None:
    """Return how many GPUs a container gets, where that stands, and the part of one that each is."""
    for kind in ("limits", "requests"):
        for key, asked in entries(at(container, f"resources {kind}")):
            name = key.text
            number = whole(asked) if name in _RESOURCES or name.startswith(_MIG) else None
            if number and isinstance(asked, Scalar):
                return number, asked, name.partition("/")[2] if name.startswith(_MIG) else ""
    return None


def _job(groups: list[Group]) -> Job | None:
    """Return what a job asks for: its pods with GPUs, which are alike or of which nothing is said."""
    job = Job("nvidia.com/gpu")
    asking: list[tuple[Group, int, Scalar, str]] = []
    for group in groups:
        asked = [gpus for container in _containers(group.pod) if (gpus := _gpus(container)) is not None]
        if asked and group.many != 0:
            asking.append((group, sum(number for number, *_ in asked), asked[0][1], asked[0][2]))
    if not asking:
        return None
    kinds = {tuple(_kinds(group.pod, part)) for group, _, _, part in asking}
    if len(kinds) == 1:
        job.kind, *others = next(iter(kinds)) or ("",)
        job.others = [(name, None) for name in others]
    _, per_node, spot, _ = asking[0]
    if any(many != per_node for _, many, *_ in asking):
        job.spread = True
        return job if job.kind else None
    job.say("gpus_per_node", per_node, spot.start, spot.end)
    several = [group.many for group, *_ in asking]
    nodes = sum(many for many in several if many is not None)
    job.spread = None in several or not nodes
    if not job.spread:
        place = next((group.spot for group, *_ in asking if group.spot is not None), spot)
        job.say("nodes", nodes, place.start, place.end)
    job.add_up()
    return job


def _kinds(pod: Node | None, part: str) -> list[str]:
    """Return the GPUs that a pod may be on, or the ``part`` of one; none where no label says it."""
    kinds = _labelled(pod)
    return [f"{kind}-{part}" for kind in kinds] or [part] if part else kinds


def _labelled(pod: Node | None) -> list[str]:
    for label in _LABELS:
        selected = text_at(pod, "nodeSelector", label)
        if selected:
            return [selected]
    required = at(pod, "affinity nodeAffinity requiredDuringSchedulingIgnoredDuringExecution")
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


# ── what they run ──────────────────────────────────────────────────────────────────────────────────────────
def _told(job: Mapping, kind: str) -> dict[str, Pieces]:
    """Return what an operator tells torchrun: Kubeflow's and HyperPod's do, others may.

    Without a number it is ``auto``, and before version 1.7 none (training-operator:
    pkg/controller.v1/pytorch/envvar.go).
    """
    if kind in _PLAIN:
        return {}
    asked = below(job, "nprocPerNode") or at(job, "elasticPolicy nProcPerNode")
    return _hidden() | numbers({_PER_NODE: whole(asked)})


def _hidden() -> dict[str, Pieces]:
    return {name: (unknown(name),) for name in (_PER_NODE, _NODES)}


def _container(text: str, container: Node | None, job: Job | None, told: dict[str, Pieces]) -> list[Document]:
    variables = told | environment(text, below(container, "env"))
    words = words_at(text, container, "command", "args")
    shell = given_to_shell(words)
    words = [word if word is shell else _expanded(word, variables) for word in words]
    if below(container, "command") is None:
        words = [*served(text, container), *words]
    return run_words(text, words, job, variables)


def _expanded(argument: Word, variables: dict[str, Pieces]) -> Word:
    """Fill in ``$(NAME)``, as the kubelet does; of a name that the container does not set, it stays."""
    if "$" not in argument.spelled:
        return argument

    def fill(match: re.Match[str], piece: Piece) -> Pieces | None:
        if match["before"]:
            return (unknown(match["before"]),)
        pieces = variables.get(match["own"])
        return None if pieces is None else tuple(part.within(piece.mode) for part in pieces)

    return Word(filled(argument.pieces, _VARIABLE, fill), argument.start, argument.end)


# ── Kubeflow's TrainJob ────────────────────────────────────────────────────────────────────────────────────
def train_job(text: str, trainer: Node) -> list[Document]:
    """Return what a TrainJob runs; what it does not say, its runtime does."""
    job = Job("nvidia.com/gpu", spread=True)
    asked = [at(trainer, f"resourcesPerNode {kind}") for kind in ("limits", "requests")]
    gpus = next((node for held in asked for key in _RESOURCES[:2] if (node := below(held, key))), None)
    if say(job, "gpus_per_node", gpus) is not None:
        job.spread = say(job, "nodes", below(trainer, "numNodes")) is None
        job.add_up()
    # `auto` is torchrun's own word for all GPUs (trainer: pkg/runtime/framework/plugins/torch/torch.go).
    counts = {_PER_NODE: whole(below(trainer, "numProcPerNode")), _NODES: whole(below(trainer, "numNodes"))}
    return _container(text, trainer, job if job.figures else None, _hidden() | numbers(counts))
