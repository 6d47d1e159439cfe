"""Manifests that launch jobs: what they ask for, and their commands, each a document as of a script.

Kubernetes objects with pods (kubernetes.py), compose files, and the forms of one job (forms.py). What a
manifest leaves to the cluster is unknown.
"""

from __future__ import annotations

import re

from cfglint.document.candidates import may_launch
from cfglint.document.job import Job
from cfglint.document.shell.commands import at, entries, environment, items, run_words, say, scalars, served
from cfglint.document.shell.forms import by_form, form_of
from cfglint.document.shell.kubernetes import objects, train_job
from cfglint.document.shell.processes import below, text_at
from cfglint.document.shell.run import Runner
from cfglint.document.shell.shared import part
from cfglint.document.shell.words import Piece, Pieces, Word, filled, pieces_of, unknown, word_of
from cfglint.document.tree import Document, Mapping, Node, Scalar, Sequence, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.run import Scripts

# What compose fills in.
_INTERPOLATED = re.compile(r"\$(?:\$|\{(\w+)(?::?-([^${}]*))?\}|(\w+))")


def launches_of(
    text: str, root: Mapping, scripts: Scripts | None = None, *, inner: bool = False
) -> list[Document]:
    """Return a document for each command that a manifest launches; none for another document.

    ``scripts`` gives the text of a script that a command runs, by its name.
    """
    several: list[Node] = []
    if text_at(root, "kind") == "List" and not inner:
        several = items(below(root, "items"))
    elif text_at(root, "type") == "pipeline" and not inner:  # AzureML
        several = [step for _, step in entries(below(root, "jobs")) if step is not None]
    if several:
        steps = [step for step in several if isinstance(step, Mapping)]
        return [document for step in steps for document in launches_of(text, step, scripts, inner=True)]
    names = effective(root)
    form = form_of(root)
    trainer = at(root, "spec trainer") if text_at(root, "kind") == "TrainJob" else None
    if "kind" in names and "apiVersion" in names:
        documents = objects(text, root) if trainer is None else train_job(text, trainer)
    elif form is not None:
        documents = by_form(text, root, form, scripts)
    else:
        documents = _services(text, root) if "services" in names else []
    part(documents)
    return documents


# ── compose ────────────────────────────────────────────────────────────────────────────────────────────────
def _services(text: str, root: Mapping) -> list[Document]:
    documents: list[Document] = []
    for _, service in entries(below(root, "services")):
        if below(service, "image") is None and below(service, "build") is None:
            continue
        found = environment(text, below(service, "environment"))
        variables = {name: _interpolated(pieces) for name, pieces in found.items()}
        words = [
            word
            for key in ("entrypoint", "command")
            for word in _command(text, below(service, key), variables)
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
    return [Word(_interpolated(word.pieces), word.start, word.end) for word in words]


def _interpolated(pieces: Pieces) -> Pieces:
    """Fill in what compose itself does: ``${NAME:-default}``, and ``$$`` for a dollar sign."""

    def fill(match: re.Match[str], piece: Piece) -> Pieces:
        return (unknown(match[1] or match[3]) if match[2] is None else piece.cut(*match.span(2)),)

    return filled(pieces, _INTERPOLATED, fill)


def _devices(service: Node | None) -> Job | None:
    """Return the GPUs that a service reserves."""
    job = Job("devices")
    for device in (
        *items(at(service, "deploy resources reservations devices")),
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
