"""What else of a file a repair moves: other commands and configs, and what a script computes from a value."""

from __future__ import annotations

from cfglint.document.trace import Trace
from cfglint.document.tree import Scalar, walk
from cfglint.lang.show import path as path_text
from cfglint.lang.types import is_number
from cfglint.repair.adapters import for_adapters
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.document.view import View
    from cfglint.repair.tracks import Option
    from cfglint.repair.write import Definition, Writer

AS_WELL = "other commands of the script read it, too"
_MICRO = "micro_batch_size"
NEED_OTHERS = f"{AS_WELL}, and need other accumulation steps"
_LAUNCHED_STEPS = tuple(
    (*holder, "deepspeed_config", "gradient_accumulation_steps")
    for holder in (("launch", "flags", "config_file"), ("accelerate_config",))
)


def for_several(
    option: Option, definitions: Sequence[Definition], writer: Writer, apart: Callable[[Option], bool]
) -> None:
    """Say of an option that it moves others of the file, too, whose results may change.

    They do not where it is ``apart``: no result rests on what it moves.
    """
    for_adapters(option, writer)
    option.followers = set(_followers(option, writer))
    file, exchanged = writer.subject.document.format, "grad_accum" in option.facts
    computed = [key for each in definitions for key in each.shared if "batch" in key]
    for key in computed if exchanged else ():  # a script may make up for fewer GPUs by itself
        if not writer.read_from([tuple(key.split("."))]):
            option.risk = worse(option.risk, "optimization")
            option.effects.append(f"{key} is computed from it: see that the batch stays")
    if any(definition.several for definition in definitions):
        option.several = True
        kept = exchanged or _MICRO in option.exchanged
        same = kept and file == "shell" and keep_too(option, writer)
        spared = same or apart(option)
        option.unbalanced = exchanged and file == "shell" and not spared  # until all are written (in_step.py)
        if not spared and not option.unbalanced:
            option.risk = worse(option.risk, "optimization")
        if file == "shell":
            option.effects.append(NEED_OTHERS if exchanged and not same else AS_WELL)
        else:
            more = ", and need other accumulation steps" if exchanged else ""
            option.effects.append(f"other configs of the file read it, too{more}")


def share_micro(option: Option, writer: Writer) -> bool:
    """Whether one variable is the micro-batch of all commands of a script that an option moves.

    Another micro-batch keeps the batch of all of them; accumulation steps would be written into each, unless
    one variable says them, too.
    """
    if any(writer.definition(path).several for path in writer.origins.of("grad_accum").paths):
        return False
    definitions = [writer.definition(written.path) for written in option.written]
    paths = writer.origins.of(_MICRO).paths
    shell = writer.subject.document.format == "shell" and bool(definitions) and len(paths) == 1
    several = shell and all(each.several for each in (*definitions, writer.definition(paths[0])))
    return several and keep_too(option, writer)


def keep_too(option: Option, writer: Writer) -> bool:
    """Whether other commands keep their batch, too: they read all that is moved, and the micro-batch."""
    view = writer.subject.view
    keys = [*(each.path for each in option.written), *writer.origins.of("micro_batch_size").paths]
    places = {trace.span if (trace := Trace(view, key)).source is None else None for key in keys}
    moved = {Trace(view, each.path).span for each in option.written}
    for other in view.document.file.documents:
        if other.index != view.document.index and other.root is not None:
            read = {(node.start, node.end) for node in walk(other.root) if isinstance(node, Scalar)}
            if not moved.isdisjoint(read) and not places <= read:
                return False
    return True


def _followers(option: Option, writer: Writer) -> Iterator[str]:
    """Yield what said the same as a partner before a move, and does so after it."""
    said = {path_text(each.path): writer.subject.view.get(each.path) for each in option.written}
    for partner, (was, _) in option.exchanged.items():
        for name, value in option.facts.items():
            before = said.get(name) if name.startswith("$.") else writer.origins.values[name]
            if (value == option.facts[partner]) is True and (before == was) is True:
                yield name


def for_a_launcher(option: Option, view: View) -> None:
    """Say of accumulation steps that the launcher's own file has them, too, where no edit reaches."""
    steps = option.facts.get("grad_accum")
    said = next((view.get(path) for path in _LAUNCHED_STEPS if view.has(path)), None)
    if is_number(steps) and is_number(said) and said != steps:
        option.risk = worse(option.risk, "numerics")
        option.effects.append(
            f"write {steps} for {said} as deepspeed_config.gradient_accumulation_steps of the launcher's "
            "file by hand, too: the two have to agree"
        )
