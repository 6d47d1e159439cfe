"""Kubernetes objects: the pods that they make, the GPUs of each, on which nodes, what containers run."""

from __future__ import annotations

import re

from cfglint.document.shell.manifest import (
    below,
    entries,
    items,
    number,
    run_script,
    run_words,
    served,
    text_at,
    value,
    word,
)
from cfglint.document.shell.words import Piece, Word
from cfglint.document.tree import Job, Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.shell.words import Array, Pieces
    from cfglint.document.tree import Document, Mapping, Node

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
_ALONE = ("Deployment", "ReplicaSet", "DaemonSet", "ReplicationController")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


class Group:
    """Pods that are made alike: ``pod`` is what each is, ``many`` how many the job has (None: unknown)."""

    __slots__ = ("many", "pod", "spot")

    def __init__(self, pod: Node | None, many: int | None = 1, spot: Scalar | None = None) -> None:
        self.pod = pod
        self.many = many
        self.spot = spot  # where the number stands


def pods(text: str, root: Mapping) -> Iterator[list[Document]]:
    """Yield what each container of a job launches."""
    kind, spec = text_at(root, "kind"), below(root, "spec")
    groups = list(_groups(kind, spec if kind != "Pod" else root))
    job = _job(groups)
    shell = below(spec, "entrypoint") if kind == "RayJob" else None
    if shell is not None:
        yield run_script(text, shell, job, {})
    trainer = below(spec, "trainer") if kind == "TrainJob" else None
    if trainer is not None:
        yield _container(text, trainer, _trainer(trainer))
    for group in groups:
        for container in items(below(group.pod, "containers")):
            yield _container(text, container, job)


def _groups(kind: str, spec: Node | None) -> Iterator[Group]:
    """Yield the groups of pods of an object, by the kinds that are in use for training and serving."""
    if kind == "Pod":
        yield Group(below(spec, "spec"))
    elif kind == "CronJob":
        yield from _groups("Job", below(spec, "jobTemplate", "spec"))
    elif kind == "Job" and below(spec, "tasks") is not None:  # Volcano
        for task in items(below(spec, "tasks")):
            yield _group(task)
    elif kind == "Job":
        indexed = text_at(spec, "completionMode") == "Indexed"
        parallel = below(spec, "parallelism")
        if indexed and isinstance(parallel, Scalar):
            yield Group(below(spec, "template", "spec"), number(parallel), parallel)
        else:
            yield Group(below(spec, "template", "spec"))
    elif kind == "JobSet":
        for replicated in items(below(spec, "replicatedJobs")):
            many, inner = _many(below(replicated, "replicas")), below(replicated, "template", "spec")
            each = _many(below(inner, "parallelism"))
            yield Group(
                below(inner, "template", "spec"), None if many is None or each is None else many * each
            )
    elif kind == "LeaderWorkerSet":
        inner = below(spec, "leaderWorkerTemplate")
        size = _many(below(inner, "size"))
        leader = below(inner, "leaderTemplate", "spec")
        if leader is not None:
            yield Group(leader, 1)
            size = None if size is None else size - 1
        yield Group(below(inner, "workerTemplate", "spec"), size)
    elif kind in ("RayJob", "RayCluster", "RayService"):
        cluster = (
            spec if kind == "RayCluster" else below(spec, "rayClusterSpec") or below(spec, "rayClusterConfig")
        )
        yield Group(below(cluster, "headGroupSpec", "template", "spec"), 1)
        for workers in items(below(cluster, "workerGroupSpecs")):
            yield _group(workers)
    elif kind in _ALONE:
        yield Group(below(spec, "template", "spec"))
    elif any(below(spec, name) is not None for name in _REPLICA_SPECS):
        for name in _REPLICA_SPECS:
            for _, replica in entries(below(spec, name)):
                yield _group(replica)
    else:  # of a StatefulSet and kinds of others nobody knows whether the pods are one job
        yield Group(below(spec, "template", "spec"), None)


def _group(node: Node | None) -> Group:
    replicas = below(node, "replicas")
    spot = replicas if isinstance(replicas, Scalar) else None
    return Group(below(node, "template", "spec"), _many(replicas), spot)


def _many(node: Node | None) -> int | None:
    """Return a number of copies: one where nothing is said."""
    return 1 if node is None else number(node)


# ── what is asked for ──────────────────────────────────────────────────────────────────────────────────────
def _gpus(container: Node | None) -> Scalar | None:
    """Return the number of GPUs of a container."""
    for part in ("limits", "requests"):
        for name in _RESOURCES:
            found = below(container, "resources", part, name)
            if isinstance(found, Scalar) and number(found) is not None:
                return found
    return None


def _job(groups: list[Group]) -> Job | None:
    """Return what a job asks for: its pods with GPUs, which are alike or of which nothing is said."""
    job = Job("nvidia.com/gpu")
    found: list[tuple[Group, int, Scalar]] = []
    for group in groups:
        asked = [
            one
            for container in items(below(group.pod, "containers"))
            if (one := _gpus(container)) is not None
        ]
        if asked:
            found.append((group, sum(number(one) or 0 for one in asked), asked[0]))
    if not found:
        return None
    kinds = {tuple(_kinds(group.pod)) for group, *_ in found}
    if len(kinds) == 1:
        job.kind, *others = next(iter(kinds)) or ("",)
        job.others = [(name, None) for name in others]
    group, per_node, spot = found[0]
    if any(many != per_node for _, many, _ in found):
        return job if job.kind else None
    job.say("gpus_per_node", per_node, spot.start, spot.end)
    several = [group.many for group, *_ in found]
    nodes = sum(many for many in several if many is not None)
    if None not in several and nodes:
        place = next((group.spot for group, *_ in found if group.spot is not None), spot)
        job.say("nodes", nodes, place.start, place.end)
        job.add_up()
    return job


def _trainer(trainer: Node | None) -> Job | None:
    """Return what a Kubeflow TrainJob asks for."""
    job = Job("nvidia.com/gpu")
    for part in ("limits", "requests"):
        found = below(trainer, "resourcesPerNode", part, _RESOURCES[0])
        if isinstance(found, Scalar) and (many := number(found)) is not None:
            job.say("gpus_per_node", many, found.start, found.end)
            nodes = below(trainer, "numNodes")
            if isinstance(nodes, Scalar) and (number_of := number(nodes)) is not None:
                job.say("nodes", number_of, nodes.start, nodes.end)
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
    found: list[str] = []
    for term in items(below(required, "nodeSelectorTerms")):  # any of them will do
        for label in _LABELS:
            asked = [
                one.text
                for match in items(below(term, "matchExpressions"))
                if text_at(match, "key") == label and text_at(match, "operator") == "In"
                for one in items(below(match, "values"))
                if isinstance(one, Scalar)
            ]
            if asked:
                found += asked
                break
        else:
            return []
    return list(dict.fromkeys(found))


# ── commands ───────────────────────────────────────────────────────────────────────────────────────────────
def _container(text: str, container: Node | None, job: Job | None) -> list[Document]:
    variables: dict[str, Pieces | Array] = {}
    for one in items(below(container, "env")):
        name = text_at(one, "name")
        variables[name] = value(text, below(one, "value"), name)
    words = [
        _expanded(word(text, item), variables)
        for key in ("command", "args")
        for item in items(below(container, key))
        if isinstance(item, Scalar)
    ]
    if below(container, "command") is None:
        words = [*served(text, container), *words]
    return run_words(text, words, job, variables)


def _expanded(one: Word, variables: dict[str, Pieces | Array]) -> Word:
    """Fill in ``$(NAME)``, as the kubelet does; of a name that the container does not set, it stays."""
    if "$" not in one.spelled:
        return one
    found: list[Piece] = []
    for piece in one.pieces:
        at = 0
        for match in _VARIABLE.finditer(piece.text):
            known = variables.get(match[1]) if match[1] else None
            if match.group() != "$$" and known is None:
                continue
            found.append(piece.cut(at, match.start()))
            at = match.end()
            if match.group() == "$$":
                found.append(Piece("$", -1, -1, piece.mode))
            else:
                found.extend(one.within(piece.mode) for one in known if isinstance(known, tuple))  # type: ignore[union-attr]
        found.append(piece.cut(at, len(piece.text)) if at else piece)
    return Word(tuple(piece for piece in found if piece.text or piece.unknown), one.start, one.end)
