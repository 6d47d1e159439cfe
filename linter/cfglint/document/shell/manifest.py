"""Manifests that launch jobs: what they ask for, and their commands, each a document as of a script.

A SkyPilot task, a Kubernetes object with pods (kubernetes.py), a compose file, a RunPod pod. What a manifest
leaves to the cluster is unknown.
"""

from __future__ import annotations

import re

from cfglint.document.shell.decoded import pieces_of
from cfglint.document.shell.programs import VLLM_IMAGE
from cfglint.document.shell.run import Runner
from cfglint.document.shell.script import launched, part
from cfglint.document.shell.words import QUOTED, Piece, Word, unknown
from cfglint.document.tree import STARTERS, Alias, Job, Mapping, Scalar, Sequence, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.words import Array, Pieces
    from cfglint.document.tree import Document, Node

_COUNTED = re.compile(r"(?P<kind>[A-Za-z][\w. -]*?)\s*(?::\s*(?P<count>[0-9]{1,5})(?:\.0*)?)?\Z")
_INTERPOLATED = re.compile(r"\$(?:\$|\{(\w+)(?::?-([^${}]*))?\}|(\w+))")
_OTHER_MAKERS = ("tpu", "trainium", "inferentia", "gaudi")


def launches_of(text: str, root: Mapping) -> list[Document]:
    """Return a document for each command that a manifest launches; none where it is no manifest."""
    names = effective(root)
    if "kind" in names and "apiVersion" in names:
        from cfglint.document.shell.kubernetes import pods

        found = [launch for pod in pods(text, root) for launch in pod]
    elif "run" in names:
        found = _task(text, root)
    else:
        found = _services(text, root) if "services" in names else _pod(text, root)
    part(found)
    return found


# ── trees ──────────────────────────────────────────────────────────────────────────────────────────────────
def resolved(node: Node | None) -> Node | None:
    """Return what an alias stands for."""
    return node.target if isinstance(node, Alias) else node


def below(node: Node | None, *path: str) -> Node | None:
    """Return the node at some keys below another."""
    for name in path:
        node = resolved(node)
        entry = effective(node).get(name) if isinstance(node, Mapping) else None
        if entry is None:
            return None
        node = entry.value
    return resolved(node)


def text_at(node: Node | None, *path: str) -> str:
    """Return the text of a scalar; nothing where there is none."""
    found = below(node, *path)
    return found.text if isinstance(found, Scalar) else ""


def number(node: Node | None) -> int | None:
    """Return a whole number that stands there as one."""
    text = node.text if isinstance(node, Scalar) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def items(node: Node | None) -> list[Node]:
    """Return the items of a sequence."""
    node = resolved(node)
    return (
        [one for item in node.items if (one := resolved(item)) is not None]
        if isinstance(node, Sequence)
        else []
    )


def entries(node: Node | None) -> list[tuple[Scalar, Node | None]]:
    """Return the keys and values of a mapping."""
    node = resolved(node)
    return [(e.key, resolved(e.value)) for e in effective(node).values()] if isinstance(node, Mapping) else []


# ── commands ───────────────────────────────────────────────────────────────────────────────────────────────
def run_script(
    text: str, node: Node | None, job: Job | None, variables: dict[str, Pieces | Array]
) -> list[Document]:
    """Return what a script launches that stands in a scalar."""
    if not isinstance(node, Scalar) or not any(word in node.text for word in STARTERS):
        return []
    runner = Runner()
    runner.variables.update(variables)
    runner.pieces(pieces_of(text, node))
    return launched(text, runner, job)


def run_words(
    text: str, words: list[Word], job: Job | None, variables: dict[str, Pieces | Array]
) -> list[Document]:
    """Return what a command launches that stands there as a list."""
    if not any(word in one.spelled for one in words for word in STARTERS):
        return []
    runner = Runner()
    listed = runner.argv(
        words, {name: value for name, value in variables.items() if isinstance(value, tuple)}
    )
    return launched(text, runner, job, listed=listed)


def word(text: str, node: Scalar) -> Word:
    """Return a scalar as a word of a command."""
    pieces = tuple(piece.within(QUOTED) for piece in pieces_of(text, node))
    return Word(pieces or (Piece("", node.start, node.end, QUOTED),), node.start, node.end)


def served(text: str, container: Node | None) -> list[Word]:
    """Return an image that is a command by itself: the server of vLLM."""
    image = below(container, "image")
    return [word(text, image)] if isinstance(image, Scalar) and VLLM_IMAGE in image.text else []


def value(text: str, node: Node | None, name: str) -> Pieces:
    """Return what a variable of the environment is set to; unknown where nothing here says it."""
    if not isinstance(node, Scalar) or (not node.style and node.text in ("", "~", "null")):
        return (unknown(name),)
    return tuple(pieces_of(text, node))


# ── SkyPilot ───────────────────────────────────────────────────────────────────────────────────────────────
def _task(text: str, root: Mapping) -> list[Document]:
    job = Job("resources.accelerators")
    nodes = below(root, "num_nodes")
    if isinstance(nodes, Scalar) and (many := number(nodes)) is not None:
        job.say("nodes", many, nodes.start, nodes.end)
    elif nodes is not None:
        return []
    resources = below(root, "resources")
    common = _accelerators(resources)
    asked = [one for key in ("any_of", "ordered") for item in items(below(resources, key)) for one in
             (_accelerators(item) or common)] or common  # fmt: skip
    _several(job, asked)
    variables: dict[str, Pieces | Array] = {}
    for held in ("envs", "secrets"):
        for key, node in entries(below(root, held)):
            variables[key.text] = value(text, node, key.text)
    per_node = job.count("gpus_per_node")
    told = {"SKYPILOT_NUM_NODES": job.count("nodes") or 1, "SKYPILOT_NUM_GPUS_PER_NODE": per_node}
    variables |= {name: (Piece(str(one), -1, -1),) for name, one in told.items() if one is not None}
    return run_script(text, below(root, "run"), job, variables)


def _several(job: Job, asked: list[tuple[str, int | None, int, int]]) -> None:
    """Take kinds of GPU of which any will do; their number is known where all have the same."""
    asked = list({(kind, many): (kind, many, start, end) for kind, many, start, end in asked}.values())
    if not asked or any(kind.lower().startswith(_OTHER_MAKERS) for kind, *_ in asked):
        return
    kind, many, start, end = asked[0]
    job.kind = kind
    job.others = [(other, count) for other, count, *_ in asked[1:]]
    if many is not None and all(count == many for _, count, *_ in asked):
        job.say("gpus_per_node", many, start, end)
        job.add_up()
    else:
        job.many = many


def _accelerators(resources: Node | None) -> list[tuple[str, int | None, int, int]]:
    """Return kinds of GPU, their number in a node and their place, from any form that SkyPilot takes."""
    node = below(resources, "accelerators")
    if node is None:
        instance = below(resources, "instance_type")
        return [(instance.text, None, instance.start, instance.end)] if isinstance(instance, Scalar) else []
    if isinstance(node, Scalar):
        return _counted(node)
    if isinstance(node, Sequence):
        return [one for item in items(node) if isinstance(item, Scalar) for one in _counted(item)]
    found: list[tuple[str, int | None, int, int]] = []
    for key, given in entries(node):
        many = number(given)
        if isinstance(given, Scalar) and given.text and given.text != "null":
            found.append((key.text, many, given.start, given.end))
        else:
            found += _counted(key)  # {A100:8} is a key without value
    return found


def _counted(node: Scalar) -> list[tuple[str, int | None, int, int]]:
    """Return ``A100:8``; the name alone means one."""
    found = _COUNTED.match(node.text)
    if found is None:  # a part of a GPU: its kind alone
        kind = node.text.partition(":")[0].strip()
        return [(kind, None, node.start, node.end)] if kind and kind != "null" else []
    return [(found["kind"], int(found["count"] or 1), node.start, node.end)]


# ── compose ────────────────────────────────────────────────────────────────────────────────────────────────
def _services(text: str, root: Mapping) -> list[Document]:
    found: list[Document] = []
    for _, service in entries(below(root, "services")):
        if below(service, "image") is None and below(service, "build") is None:
            continue
        variables: dict[str, Pieces | Array] = {}
        environment = below(service, "environment")
        for key, node in entries(environment):
            variables[key.text] = _interpolated(value(text, node, key.text))
        for item in items(environment):
            name, equals, _ = item.text.partition("=") if isinstance(item, Scalar) else ("", "", "")
            if name and isinstance(item, Scalar):
                given = word(text, item).from_(len(name) + 1).pieces
                variables[name] = _interpolated(given) if equals else (unknown(name),)
        words = [
            one for key in ("entrypoint", "command") for one in _command(text, below(service, key), variables)
        ]
        if below(service, "entrypoint") is None:
            words = [*served(text, service), *words]
        found += run_words(text, words, _devices(service), variables)
    return found


def _command(text: str, node: Node | None, variables: dict[str, Pieces | Array]) -> list[Word]:
    """Return a command that is a list, or a text that is split as a shell would split it."""
    if isinstance(node, Sequence):
        words = [word(text, item) for item in items(node) if isinstance(item, Scalar)]
    elif isinstance(node, Scalar) and any(name in node.text for name in STARTERS):
        runner = Runner()
        runner.variables.update(variables)
        runner.pieces(_interpolated(tuple(pieces_of(text, node))))
        return runner.commands[0].words if len(runner.commands) == 1 else []
    else:
        return []
    return [Word(_interpolated(one.pieces), one.start, one.end) for one in words]


def _interpolated(pieces: Pieces) -> Pieces:
    """Fill in what compose itself does: ``${NAME:-default}``, and ``$$`` for a dollar sign."""
    found: list[Piece] = []
    for piece in pieces:
        at = 0
        for match in _INTERPOLATED.finditer(piece.text):
            found.append(piece.cut(at, match.start()))
            at = match.end()
            if match.group() == "$$":
                found.append(Piece("$", -1, -1, piece.mode))
            elif match[2] is not None:
                found.append(piece.cut(match.start(2), match.end(2)))
            else:
                found.append(unknown(match[1] or match[3]))
        found.append(piece.cut(at, len(piece.text)) if at else piece)
    return tuple(one for one in found if one.text or one.unknown or len(found) == 1)


def _devices(service: Node | None) -> Job | None:
    """Return the GPUs that a service reserves."""
    listed = [
        *items(below(service, "deploy", "resources", "reservations", "devices")),
        *items(below(service, "gpus")),
    ]
    job = Job("devices")
    for device in listed:
        capabilities = [one.text for one in items(below(device, "capabilities")) if isinstance(one, Scalar)]
        if capabilities and not {"gpu", "nvidia", "compute", "utility"} & set(capabilities):
            continue
        ids, count = below(device, "device_ids"), below(device, "count")
        if isinstance(ids, Sequence):
            job.say("gpus_per_node", len(ids.items), ids.start, ids.end)
        elif isinstance(count, Scalar) and (many := number(count)) is not None:
            job.say("gpus_per_node", many, count.start, count.end)
    job.add_up()
    return job if job.figures else None


# ── RunPod ─────────────────────────────────────────────────────────────────────────────────────────────────
def _pod(text: str, root: Mapping) -> list[Document]:
    job = Job("gpuCount")
    kinds = below(root, "gpuTypeIds") or below(root, "gpuTypeId") or below(root, "gpu_type_id")
    listed = [one for one in (*items(kinds), kinds) if isinstance(one, Scalar) and one.text]
    count = below(root, "gpuCount") or below(root, "gpu_count")
    if count is None and listed:
        job.say("gpus_per_node", 1, listed[0].start, listed[0].end)  # one where nothing is said
    elif isinstance(count, Scalar) and (many := number(count)) is not None:
        job.say("gpus_per_node", many, count.start, count.end)
    job.add_up()
    if listed:
        job.kind = listed[0].text
        job.others = [(one.text, None) for one in listed[1:]]
    variables: dict[str, Pieces | Array] = {}
    for key, node in entries(below(root, "env")):
        variables[key.text] = value(text, node, key.text)
    for one in items(below(root, "env")):
        name = text_at(one, "key")
        variables[name] = value(text, below(one, "value"), name)
    entry, start = (
        [word(text, one) for one in items(below(root, key)) if isinstance(one, Scalar)]
        for key in ("dockerEntrypoint", "dockerStartCmd")
    )
    if entry or start:
        return run_words(text, [*entry, *start], job if job.figures else None, variables)
    told = below(root, "dockerArgs") or below(root, "docker_args") or below(root, "dockerStartCmd")
    return run_script(text, told, job if job.figures else None, variables)
