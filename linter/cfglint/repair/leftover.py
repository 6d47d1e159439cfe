"""What still asks for more GPUs than there are, once a job was moved to fewer.

Rules judge the keys that facts are read from. Another that is named like a size, and stays larger than all
the GPUs of the target, is told, and the repair may not be enough: most launchers and trainers refuse it. So
is what other commands of a script start there that no framework reads, and a batch that a DeepSpeed file
fixes for the GPUs of before.
"""

from __future__ import annotations

import os
import re
from itertools import chain, islice
from math import prod

from cfglint.document.shell.handed import SIZES
from cfglint.document.shell.processes import below, text_at, whole
from cfglint.document.spoken import spoken
from cfglint.document.tree import Mapping, nodes_with_paths
from cfglint.engine.memory import bounds_of
from cfglint.lang.types import is_number
from cfglint.lang.values import INF
from cfglint.repair.alike import alike
from cfglint.repair.beside import taken_beside
from cfglint.repair.price import regroups, serves_on_fewer
from cfglint.repair.together import combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.document.tree import Document
    from cfglint.engine.subject import Judged
    from cfglint.repair.found import Repair
    from cfglint.repair.patch import Patch
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Writer

_SIZE = re.compile(
    r"(?i)(\A|[_.-])(n?gpus|gpu_count|(tp|pp|ep|cp|sp|efsdp)_size|nproc|num_processes|world_size"
    r"|shard_(degree|size)|fsdp_size|(tensor|pipeline|context|sequence|expert)(_model)?_parallel(_size|_degree|_dim)?)(\Z|[_.-])"
)
_ON_CPUS = frozenset({("roll", "world_size")})  # workers: device_mapping counts GPUs (worker_config.py:313)
_WORKERS = frozenset({"num_processes", "nproc", "num_proc"})  # what a program of one's own may start on CPUs
_DEVICES = "devices"  # of Lightning's trainer
_NODES = 5000  # of a document that are looked at
_TOLD = 2
_LAUNCH = "launch"  # under which a command is read once more
_CONFIG = (_LAUNCH, "flags", "config_file")
_DEEPSPEED = "deepspeed_config"
_FILE = f"{_DEEPSPEED}_file"
_LOGPROBS = ("actor_rollout_ref", "rollout", "log_prob_micro_batch_size")  # verl's
_BATCHES = (  # where an accelerate config or command names a DeepSpeed file, and what else says its steps
    ((_DEEPSPEED, _FILE), (_DEEPSPEED,)),
    ((*_CONFIG, _DEEPSPEED, _FILE), (*_CONFIG, _DEEPSPEED)),
    ((_LAUNCH, "flags", _FILE), (_LAUNCH, "flags")),
)


def left_of(
    repair: Repair,
    patch: Patch | None,
    watched: Sequence[Judged],
    trials: Trials,
    writer: Callable[[Judged], Writer],
) -> str:
    """Say what of a repaired document is still for more GPUs than there are, with all that moves along."""
    facts = combined(repair.options) or {}
    if not (regroups(facts) or any(serves_on_fewer(facts, each.values) for each in watched)):
        return ""
    if patch is None:  # what people are to do
        return next(filter(None, (_of_job(each, _most(each) or 0) for each in watched)), "")
    after = trials.judged_after((*patch.edits, *alike(trials, patch.own).edits)) or ()
    pairs = ((old, new) for old, new in zip(trials.judgements, after, strict=False) if old in watched)
    return next(filter(None, (left_over(old, new, writer(old), trials) for old, new in pairs)), "")


def left_over(before: Judged, after: Judged, writer: Writer, trials: Trials) -> str:
    """Say what of a repaired document is for more GPUs than there are, or for those of before."""
    most = _most(before)
    if most is None:
        return ""
    handed = list(islice(_handed(after, most), _TOLD))
    told = [*handed, *islice(_larger(after, most, writer), _TOLD - len(handed))]
    others = chain(_of_configs(after, most, writer), _of_other_commands(after, most, trials))
    elsewhere = list(islice(others, _TOLD - len(handed)))
    told += [each for each in elsewhere if each not in told]
    stays = "stays" if len(told) == 1 and not told[0].startswith("the ") else "stay"
    by_hand = ": change that by hand" if elsewhere or handed else ""
    sizes = f"{' and '.join(told)} {stays}, for more GPUs than there are{by_hand}" if told else ""
    return "; ".join(
        filter(
            None,
            (
                *(sizes, _of_job(after, most), _of_deepspeed(before, after), _of_gpus_beside(after)),
                _of_logprobs(before, after),
            ),
        )
    )


def _most(judged: Judged) -> int | None:
    """Return how many GPUs a target has; None where nobody says."""
    there, nodes = judged.values["gpu.count"], judged.values["gpu.nodes"]
    return int(there) * (int(nodes) if is_number(nodes) else 1) if is_number(there) else None


def _of_job(judged: Judged, most: int) -> str:
    """Say that a batch script asks for more GPUs than there are."""
    asked = judged.subject.view.get((_LAUNCH, "job", "gpus"))
    more = 0 < most < asked if is_number(asked) else False
    return f"the file still asks for {asked} GPUs: change that by hand" if more else ""


def _handed(judged: Judged, most: int) -> Iterator[str]:
    """Yield the sizes that a script exports to its program, where all together are for more GPUs."""
    sizes = below(judged.subject.document.root, _LAUNCH, SIZES)
    entries = sizes.entries if isinstance(sizes, Mapping) else {}
    known = [(name, size) for name in entries if (size := whole(below(sizes, name)) or 0) > 1]
    gpus = [(name, size) for name, size in known if "GPU" in name and size > most]
    share = [(name, size) for name, size in known if "GPU" not in name]
    yield from (f"{name} {size}" for name, size in gpus + (share if prod(n for _, n in share) > most else []))


def _larger(judged: Judged, most: int, writer: Writer) -> Iterator[str]:
    view = judged.subject.view
    seen = set()
    for path, _ in islice(nodes_with_paths(judged.subject.document.root), _NODES):
        name = path[-1] if path else None
        if path[:1] == (_LAUNCH,) or not isinstance(name, str) or not _SIZE.search(name) or path in seen:
            continue
        if (judged.subject.framework, name) in _ON_CPUS:
            continue
        seen.add(path)
        value, steps = view.get(path), tuple(part for part in path if isinstance(part, (str, int)))
        large = isinstance(value, int) and not isinstance(value, bool) and value > most
        if large and not writer.read_from([steps]):
            yield f"{spoken(path)} {value}"


def _of_configs(after: Judged, most: int, writer: Writer) -> Iterator[str]:
    """Yield the sizes of configs that a command hands to its program, which no fact is read from."""
    view = after.subject.view
    for file in (each.file for each in (view.layers.files if view.layers else ()) if each.file.documents):
        for path, node in islice(nodes_with_paths(file.documents[0].root), _NODES):
            number, last = whole(node), path[-1] if path else None
            sized = isinstance(last, str) and (_SIZE.search(last) or last == _DEVICES)
            steps = tuple(part for part in path if isinstance(part, (str, int)))
            if sized and (number or 0) > most and view.get(steps) == number and not writer.read_from([steps]):
                yield f"{spoken(path)} {number} of {os.path.basename(file.path)}"


def _of_other_commands(after: Judged, most: int, trials: Trials) -> Iterator[str]:
    """Yield what a script's other commands ask for that are no documents of a framework."""
    own, view = after.subject.document, after.subject.view
    others = [document for document in own.file.documents if document.index != own.index]
    if not others or below(own.root, _LAUNCH) is None:
        return
    read = {each.document.index for each in trials.run.but().subjects(own.file, judge_broken=False)}
    config, number = text_at(own.root, *_CONFIG), view.get((*_CONFIG, "num_processes"))
    for document in others:
        if document.index in read or below(document.root, _LAUNCH) is None:
            continue
        name, program = text_at(document.root, _LAUNCH, "name"), below(document.root, _LAUNCH, "program")
        start = document.start if program is None else program.start
        line = own.file.lines.position(start)[0]
        where = f"of {name} (line {line})" if name else f"in line {line}"
        started = _started(document)
        if started is None and config and text_at(document.root, *_CONFIG) == config:
            started = number if isinstance(number, int) else None  # the same config, without what was added
        if started is not None and started > most:
            yield f"the {started} processes {where}"
        yield from (f"{flag} {where}" for flag in _flags(document, most))


def _started(document: Document) -> int | None:
    """Return how many processes a command starts, as far as it says so itself."""
    numbers = (whole(below(document.root, _LAUNCH, key)) for key in ("processes_per_node", "processes"))
    return next((number for number in numbers if number is not None), None)


def _flags(document: Document, most: int) -> Iterator[str]:
    """Yield the flags of a command that are named like a size and larger than all GPUs."""
    entries = document.root.entries if isinstance(document.root, Mapping) else {}
    for name in entries.keys() - {_LAUNCH, *_WORKERS}:
        number = whole(below(document.root, name)) if _SIZE.search(name) else None
        if number is not None and number > most:
            yield f"--{name} {number}"


def _of_deepspeed(before: Judged, after: Judged) -> str:
    """Say which batch of a DeepSpeed file, right for the GPUs of before, is none for those of now."""
    view, replicas = after.subject.view, (before.values["train_dp"], after.values["train_dp"])
    for file, beside in _BATCHES:
        batch, micro, steps = (
            view.get((*file, key))
            for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
        )
        if not is_number(steps):
            steps = view.get((*beside, "gradient_accumulation_steps"))
        parts = [number for number in (batch, micro, steps if is_number(steps) else 1) if is_number(number)]
        if len(parts) < 3 or not all(map(is_number, replicas)):
            continue
        was, now = (parts[1] * parts[2] * number for number in replicas if is_number(number))
        if parts[0] == was != now:
            name = str(view.get(file)).rpartition("/")[2]
            return f"{name} keeps train_batch_size {was:g}: write {now:g} there by hand, or it stops"
    return ""


def _of_logprobs(before: Judged, after: Judged) -> str:
    """Say that a micro-batch of all GPUs is larger on each of fewer, whose memory nobody knows."""
    view, name = after.subject.view, _LOGPROBS[-1]
    said, need = view.get(_LOGPROBS), bounds_of(after.values["trainer.likely"])
    was, now = (each.values["logprob_micro_batch_size"] for each in (before, after))
    if not (is_number(said) and is_number(was) and is_number(now)) or (need is not None and need[1] < INF):
        return ""
    if not 0 < was < now:
        return ""
    less = max(1, int(said * was // now))
    return (
        f"{name} {said:g} is shared out among all GPUs: {now:g} on each then, not {was:g}; {less} keeps that"
    )


def _of_gpus_beside(after: Judged) -> str:
    """Say how a machine's GPUs are shared out among a command and one that runs beside it, which has its own.

    Nothing where both have GPUs of their own that are there.
    """
    view, there = after.subject.view, after.values["gpu.per_node"]
    taken, line = taken_beside(after)
    own, least = view.get((_LAUNCH, "processes_per_node")), view.get((_LAUNCH, "visible_least"))
    serves = after.values["launched.server"] is True and isinstance(least, int)
    if not (taken or serves) or not isinstance(own, int) or not is_number(there) or not 0 < own < there:
        return ""
    first = int(there) - own
    if isinstance(least, int) and least <= there and max(taken, default=0) < first:
        return ""
    numbers = [",".join(map(str, part)) for part in (range(first), range(first, int(there)))]
    if not taken or view.has((_LAUNCH, "kept_server")):
        return f"write CUDA_VISIBLE_DEVICES={numbers[1]} by hand, and leave {numbers[0]} to the server"
    return (
        f"share the GPUs out by hand: CUDA_VISIBLE_DEVICES={numbers[0]} for the command in line {line}, with "
        f"engines for {first}, and {numbers[1]} for this one"
    )
