"""What a full fine-tune keeps where nobody knows what a job takes, against all GPUs together, or an engine.

Of a job whose memory is not judged, the size of its model may still be known, by its name or by those of the
file and the run. Where its weights, gradients and moments alone are more than all GPUs have, or what each
of them keeps is more than it has, fewer GPUs are no repair, unless the file can shard more of them, or send
them to the host.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import chain, combinations

from cfglint.document.python.spares import spared, switch_to_host, what_is_spared
from cfglint.document.shell.processes import text_at
from cfglint.document.tree import child
from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.lang.values import INF
from cfglint.record import replace
from cfglint.repair.allowed import SAFE
from cfglint.repair.found import Repair
from cfglint.repair.hopeless import bytes_served, gpus_have, params_told, spread, too_large
from cfglint.repair.options import Options
from cfglint.repair.price import lays_out, overfills_host, regroups
from cfglint.repair.sizes_named import size_named, teacher_named
from cfglint.repair.together import combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal

# What may hold less on the GPUs than weights, gradients and moments of all parameters.
_LESS = re.compile(
    r"(?i)lora|peft|adapter|[48]_?bit|quant|galore|freeze|frozen|prob(?:e|ing)|offload|adafactor|muon|(?<![a-z])lion"
)
_PACKS = re.compile(r"(?i)lora|peft|adapter|[48]_?bit|quant|offload|prob(?:e|ing)|num_hidden_layers")
_IN_CODE = re.compile(
    r"requires_grad_?\s*(?:=|\()\s*False|offload(?!_to_cpu)\w*\s*=\s*True|CPUAdam|(?:Adam\w*8bit|Adafactor|GaLore\w*|Lion)\("
)
_SWITCHED = r"(?:load_in|use|enable|with)_\w*(?:[48]_?bit|lora|peft|adapter|quant|galore)|lora_enable"
_OFF = re.compile(rf"(?i)\w*(?:offload|(?<!un)freeze|{_SWITCHED})\w*[=: ]+[\"']?(?:false|none|null|0)\b")
_PACKED_NAME = re.compile(r"(?i)[-_](?:fp8|mxfp4|nvfp4|awq|gptq|int[48]|w[48]a\d+|bnb|gguf)(?![a-z0-9])")
_NO = ("false", "no", "0", "none", "null")
_FROZEN = re.compile(r"(?i)\w*(?:freeze|frozen)\w*")  # where the code shows what is frozen
_ACTIVATIONS = re.compile(r"(?i)\w*(?:offload_activation|activations?_offload)\w*")
_STATES_OFF = re.compile(r"(?i)\w*offload_optimizer\w*|super_?offload\w*|zerooffload\w*")  # ZeRO-Offload
_WEIGHTS, _MOMENTS = 2.0, 4.0  # bytes of each parameter: 16 bits, and AdamW's two in 16 bits
_BITS = 8  # of a byte
_PACKED = 0.5  # of a weight in 4 bits
_LARGEST = (
    141e9  # bytes of the largest GPU that most can rent: no file asks for GPUs that cannot hold its job
)
_ALL = 0.99  # of the weights are trained
_MOST = 0.5  # of the weights, from which on what they keep is worth telling
_TOWER = 0.4  # of the weights, at most: a vision tower of which nobody knows more
_PARTS = ("weights", "gradients", "moments")
_SHARED = ("ranks.weights", "ranks.gradients", "ranks.optimizer")  # over so many GPUs
_AWAY = ("zero_stage", "train_tp", "offload_optimizer", "offload_params")  # the cheapest first
_BY_HAND = _AWAY[2:]
_BYTES = ("param_bytes", "grad_bytes", "moment_bytes")
_STAGES = 3
_HALF = 0.6  # of a GPU: what leaves room for all that nobody knows
_ROOM = 0.9  # of a GPU, a rule of thumb: more of it in states is a reason to shard more, and told to nobody


def beyond(
    judged: Judged, values: Values, *, sure: bool = True, share: float = 1.0, whole: bool = False
) -> str:
    """Say that a job keeps more of its model than a ``share`` of all GPUs; nothing where not, or who knows.

    What is not sharded, each GPU keeps whole. Without ``sure``, also of a job that may train all weights, and
    with ``whole`` of one whose code may freeze some, too.
    """
    vram, count = bounds_of(values["gpu.vram"]), values["gpu.count"]
    if vram is None or not is_number(count) or count < 1 or _is_judged(values):
        return ""
    there = vram[1] * count
    if engine := _beyond_in_engine(judged, values, there, int(count)):
        return engine
    parts, trains = _parts(judged, values, sure=sure, whole=whole), _updates(values)
    size, by, share_trained = _size(judged, values, parts, sure=sure) if sum(parts) else (0, "", 0.0)
    if not size:
        return _beyond_in_weights(judged, values, there, int(count)) if share == 1 else ""
    parts = _of_trained(parts, share_trained)
    each, teacher = sum(parts), teacher_named(judged)
    held = teacher * _WEIGHTS
    beside = f", beside {held / GIB:,.0f} GiB of a teacher's {params_told(teacher)} weights" if held else ""
    whose = f"{params_told(size)} weights{by}"
    every = share_trained >= _ALL
    trained = "a full fine-tune" if every else f"the training of {params_told(size * share_trained)}"
    whose = f"{trained} of {whose} keeps at least" if trains else f"{whose} take at least"
    if size * each + held > there * share:
        bytes_told = f" ({each:g} bytes each)" if every else ""
        kinds = f"of {_joined(parts)}{bytes_told}" if trains else f"in {each * _BITS:g} bits"
        told = f"{whose} {size * each / GIB:,.0f} GiB {kinds}{beside}, and {gpus_have(there, int(count))}"
        own = _gpus_of_file(values)
        share_there = f"{(size * each + held) / own / GIB:,.0f} GiB each" if own > count else ""
        told += share_there and f"; on the {int(own)} GPUs of the file, that is at least {share_there}"
        return told + (_to_host(judged) if trains else "")
    ranks = [_ranks(values, name, count) if trains else count for name in _SHARED]
    on_each = size * sum(part / over for part, over in zip(parts, ranks, strict=True))
    context = (bounds_of(values["process.context"]) or (0, 0))[0] if trains else 0
    if on_each + held / count <= min(vram[1] * share, vram[1] - context):
        return ""
    if held:
        beside = f", beside {held / count / GIB:,.1f} GiB of a teacher's {params_told(teacher)} weights"
    names = " and ".join(n for n, part, over in zip(_PARTS, parts, ranks, strict=True) if over == 1 and part)
    told_whole = f", with {names} whole on each" if names else ""
    of_process = f", {context / GIB:.1f} of them for the process itself"
    return (
        f"{whose} {on_each / GIB:,.1f} GiB on each of {int(count)} GPUs{told_whole}{beside}, and "
        f"{gpus_have(vram[1], 1, 1)}{of_process if on_each + held / count <= vram[1] else ''}"
    )


def _beyond_in_engine(judged: Judged, values: Values, there: float, count: int) -> str:
    """Say that the weights which an engine serves beside a trainer are more than all GPUs have.

    Whatever the trainer sends to the host, the engine has them on the GPUs.
    """
    known = is_number(values["model.params"]) or not _updates(values)  # which others look at (hopeless.py)
    each = None if known else bytes_served(values)
    if each is None or _PACKED_NAME.search(_text_of(judged)):
        return ""
    size, by, _ = _size(judged, values, (each,), sure=True)
    if size * each <= there:
        return ""
    whose, bits = f"{params_told(size)} weights{by}", f"{each * _BITS:g} bits"
    has = gpus_have(there, count)
    return f"{whose} take {size * each / GIB:,.0f} GiB in the engine in {bits}, and {has}"


def _beyond_in_weights(judged: Judged, values: Values, there: float, count: int) -> str:
    """Say that the weights alone of a job that may train a part of them are more than all GPUs have.

    They are in 16 bits at least where neither its file nor its config packs them or sends them to the host.
    """
    packed = values["quantized"] is True or values["offload_params"] is True
    if not _updates(values) or packed or is_number(values["model.params"]):
        return ""
    if not _is_told(values) and any(map(_packs, _texts_of(judged))):
        return ""
    size, by, _ = _size(judged, values, (_WEIGHTS,), sure=True)
    if not by or size * _WEIGHTS <= there or not size_named(judged, _LESS)[2]:
        return ""
    told = (
        f"{params_told(size)} weights{by} take {size * _WEIGHTS / GIB:,.0f} GiB in {_WEIGHTS * _BITS:g} bits"
    )
    return f"{told}, and {gpus_have(there, count)}"


def _packs(text: str) -> bool:
    """Whether a job may hold its weights in fewer bits, or elsewhere, or has fewer layers than its model."""
    return _PACKS.search(_ACTIVATIONS.sub("", _OFF.sub("", text))) is not None


def _texts_of(judged: Judged) -> list[str]:
    """Return the text of a document and of the configs that it names."""
    layers = judged.subject.view.layers
    return [_text_of(judged), *(each.file.text for each in (layers.files if layers is not None else ()))]


def _text_of(judged: Judged) -> str:
    document = judged.subject.document
    return document.file.text[document.start : document.end]


def _is_judged(values: Values) -> bool:
    """Whether the memory of a job's trainer is known, so that no bound of it is needed."""
    need = bounds_of(values["trainer.likely"])
    return values["trains"] is True and need is not None and need[1] < INF


def _gpus_of_file(values: Values) -> float:
    return next((n for name in ("gpus_needed", "num_gpus") if is_number(n := values[name])), 0)


def _joined(parts: tuple[float, ...]) -> str:
    *names, last = [name for name, part in zip(_PARTS, parts, strict=True) if part]
    return f"{', '.join(names)} and {last}" if names else last


def _ranks(values: Values, name: str, count: float) -> float:
    """Return over how many GPUs a part is shared out at most."""
    known = bounds_of(values[name])
    return count if known is None else max(1.0, min(count, known[1] * spread(values)))


def share_of_each(judged: Judged, values: Values) -> float:
    """Return the bytes of a full fine-tune that each GPU keeps at least; 0 where nobody knows."""
    count = values["gpu.count"]
    if not is_number(count) or count < 1 or values["trains"] is not True or _is_judged(values):
        return 0
    parts = _parts(judged, values, sure=True)
    if not sum(parts):
        return 0
    size, _, trained = _size(judged, values, parts, sure=True)
    parts, ranks = _of_trained(parts, trained), [_ranks(values, name, count) for name in _SHARED]
    return size * sum(part / over for part, over in zip(parts, ranks, strict=True))


def sent_away(solver: Solver, repair: Repair, judged: Judged) -> tuple[Repair, bool]:
    """Return a repair, with more sharded or sent to the host where GPUs cannot keep all; whether they can.

    What is not a move to other GPUs stays as it is.
    """
    facts = combined(repair.options) or {}
    after = solver.trials.values(judged, facts)
    placed = regroups(facts) or lays_out(facts)
    able = not placed or not (
        too_large(after, states=True) or beyond(judged, after) or overfills_host(solver.trials, judged, facts)
    )
    if not placed or (able and (repair.sure or not beyond(judged, after, sure=False, share=_ROOM))):
        told = beyond(judged, after, sure=False, whole=True) if placed and not repair.sure else ""
        return (_but(repair, told) if told else repair), True
    away = ((option,) for option in ways_away(solver, judged))
    for moves in chain(away, in_fewer_bits(solver, judged)):
        if combined((*repair.options, *moves)) is None:
            continue
        more = solver.written(Repair((*repair.options, *moves), sure=False), repair.goals)
        moved = combined(more.options) if more is not None else None
        if more is None or more.patch is None or (able and more.unsafe and not repair.unsafe):
            continue
        moved_to = solver.trials.values(judged, moved or {})
        if not (too_large(moved_to, states=True) or beyond(judged, moved_to, sure=False, share=_ROOM)):
            return more, True
    return repair, able


def _but(repair: Repair, told: str) -> Repair:
    """Return a repair that says what a job keeps that trains all, where its code may freeze some."""
    last = repair.options[-1]
    effects = [*last.effects, f"it only runs if its code trains a part of the weights: {told}"]
    return replace(repair, options=(*repair.options[:-1], replace(last, effects=effects)))


def hosted(solver: Solver, goals: Sequence[Goal], judged: Judged, *, by_hand: bool = False) -> Repair | None:
    """Return what gives a job the GPUs that are there, and has elsewhere the states that they cannot keep.

    With ``by_hand``, also what no edit of this file can do.
    """
    search = replace(solver.search(goals), keeping=True)
    first = solver.anyhow(search, goals, SAFE)
    if first is None or not _overfull(judged, solver.trials.values(judged, combined(first.options) or {})):
        return None
    ways = ways_away(solver, judged, by_hand=by_hand)
    for moved in chain(combinations(ways, 1), combinations(ways, 2)):
        if (facts := combined((*first.options, *moved))) is None:
            continue
        harmed = solver.trials.harmed(judged, facts, surely=True, infos=False)
        if harmed or _overfull(judged, solver.trials.values(judged, facts), sure=False, share=_HALF):
            continue
        more = solver.written(Repair((*first.options, *moved), sure=False), goals)
        if more is not None:
            return more
    return None


def _overfull(judged: Judged, values: Values, *, sure: bool = True, share: float = 1.0) -> bool:
    """Whether the states of a job take more than a share of the GPUs, by their sum or by each GPU's part."""
    states, vram = bounds_of(values["trainer.states"]), bounds_of(values["gpu.vram"])
    over = states is not None and vram is not None and states[0] > vram[1] * share
    return over or bool(beyond(judged, values, sure=sure, share=max(share, _ROOM)))


def ways_away(solver: Solver, judged: Judged, *, by_hand: bool = False) -> list[Option]:
    """Return the moves that shard more, then those that send something to the host.

    They are edits of the file. ``by_hand`` are those that no edit can make, where none sends anything to the
    host: no stage, with which more keys come.
    """
    options, found = Options(solver.trials, judged, solver.writer(judged)), []
    for name in _BY_HAND if by_hand else _AWAY:
        for track in options.tracks(t.Name(name)):
            places = range(min(len(track), _STAGES)) if track.knob.name == name else ()
            found += [one for one in map(track.option, places) if one is not None and _takes_off(one, judged)]
    if not by_hand:
        return [one for one in found if one.writable]
    return [] if any(one.writable for one in found) else found


def in_fewer_bits(solver: Solver, judged: Judged) -> list[tuple[Option, ...]]:
    """Return the edits after which a full fine-tune keeps its states in fewer bytes; the least come last."""

    def kept(moved: tuple[Option, ...]) -> float:
        facts = combined(moved)
        values = judged.values if facts is None else solver.trials.values(judged, facts)
        sizes = [bounds_of(values[name]) for name in _BYTES]
        own = facts is not None and values["lora"] is False
        return sum(size[0] if size else INF for size in sizes) if own else INF

    options, now = Options(solver.trials, judged, solver.writer(judged)), kept(())
    tracks = {track.knob.name: track for name in _BYTES for track in options.tracks(t.Name(name))}
    able = (option for track in tracks.values() for option in track.options())
    few = [one for one in able if one.writable and one.risk == "numerics" and kept((one,)) < now < INF]
    pairs = (pair for pair in combinations(few, 2) if kept(pair) < min(kept((one,)) for one in pair))
    return sorted((*((one,) for one in few), *pairs), key=kept, reverse=True)


def _takes_off(option: Option, judged: Judged) -> bool:
    """Whether a move leads to more sharding or to the host."""
    new, old = option.facts.get(option.knob), judged.values[option.knob]
    return new is True or (is_number(new) and is_number(old) and new > old)


def _parts(judged: Judged, values: Values, *, sure: bool, whole: bool = False) -> tuple[float, ...]:
    """Return the bytes that a job keeps of each parameter at least; none where it may be none.

    They are those of weights, gradients, and the optimizer. Without ``sure`` a job whose file says nothing of
    adapters is taken to have none.
    """
    lora, packed = values["lora"], values["quantized"]
    if not _updates(values):
        return (_held(values), 0.0, 0.0)
    if (
        lora is True
        or packed is True
        or (sure and lora is not False)
        or values["optimizer_in_backward"] is True
    ):
        return ()
    moments = 0.0 if isinstance(values["optimizer"], str) else _MOMENTS  # AdamW where nobody says another
    master = values["master_weights"] is True  # then the moments have as many bytes
    floors = {"param_bytes": _WEIGHTS, "grad_bytes": _WEIGHTS, "moment_bytes": moments * (1 + master)}
    bounds = {name: bounds_of(values[name]) for name in floors}
    weights, gradients, optimizer = (
        part[0] if part and part[0] else floors[name] for name, part in bounds.items()
    )
    if not _is_told(values):  # what no framework's keys say, a program may have other words for
        text, little = _text_of(judged), _spared(judged)
        text = _ACTIVATIONS.sub("", (_FROZEN if little else _OFF).sub("", _OFF.sub("", text)))
        rest = _STATES_OFF.sub("", text)
        if _LESS.search(rest) or not (whole or little or not _codes_less(judged)):
            return ()
        if rest != text:  # the optimizer alone goes to the host
            optimizer, gradients, master = 0.0, 0.0, False
    if values["states.away"] is not False:
        optimizer = gradients = 0.0
    elif master:
        optimizer += 2 * _WEIGHTS
    return (0.0 if values["offload_params"] is not False else weights, gradients, optimizer)


def _is_told(values: Values) -> bool:
    """Whether the keys of a framework tell all that a job may spare."""
    told = values["lora"] is False and values["quantized"] is False
    return told and values["framework.name"] != "user_script"


def _updates(values: Values) -> bool:
    """Whether a job trains a model: what only passes through one in the trainer's way keeps its weights."""
    return values["trains"] is True and values["evaluates"] is not True


def _held(values: Values) -> float:
    """Return the bytes that a job which trains nothing holds of each weight on its GPUs at least."""
    if values["evaluates"] is True:
        return _WEIGHTS if values["quantized"] is False else 0
    hosted, bits = bounds_of(values["rollout_cpu_offload"]), bounds_of(values["engine.bits"])
    if values["generates"] is not True or values["trains"] is not False or (hosted and hosted[1] > 0):
        return 0
    return bits[0] / _BITS if bits is not None and bits[0] > 0 else _PACKED


def _codes_less(judged: Judged) -> bool:
    """Whether the code of a program that is here may keep less, whatever its flags say."""
    document = judged.subject.document
    started = document.program
    if started is None:
        return False
    makes = any(text_at(document.root, "launch", name) for name in ("adapts", "quantizes"))
    return makes or any(_IN_CODE.search(text) for text in started.program.texts())


def _spared(judged: Judged) -> str:
    """Return what the code of a program at hand spares with the switches of its command; see spares.py.

    Empty where that may be more than a vision tower, or where a file may say more than the command.
    """
    started = judged.subject.document.program
    if started is None or _says_more(judged):
        return ""
    return what_is_spared(started.program.once(spared), partial(_is_on, judged))


def _to_host(judged: Judged) -> str:
    """Say which switch of a program's own would send its weights to the host; nothing where none does."""
    started = judged.subject.document.program
    if started is None or _says_more(judged):
        return ""
    switch = switch_to_host(started.program.once(spared), partial(_is_on, judged))
    return switch and f"; the program's {started.spelled(switch, dashes=True)} would keep them on the host"


def _says_more(judged: Judged) -> bool:
    document = judged.subject.document
    head = child(document.root, "launch")
    return bool(document.over) or any(child(head, name) is not None for name in ("unread", "config"))


def _is_on(judged: Judged, switch: str) -> bool:
    root = judged.subject.document.root
    return child(root, switch) is not None and text_at(root, switch).lower() not in _NO


def _of_trained(parts: tuple[float, ...], share: float) -> tuple[float, ...]:
    """Return the bytes of each parameter where a share of them is trained."""
    return (parts[0], *(part * share for part in parts[1:]))


def _share_trained(judged: Judged, values: Values, own: float, *, sure: bool) -> float:
    """Return the least, or unless ``sure`` the largest share of the weights that is trained; 0 for few."""
    bounds = bounds_of(values["params.trained"])
    share = min(bounds[0 if sure else 1] * spread(values) / own, 1.0) if bounds is not None else 0.0
    if share >= _ALL and not _is_told(values) and _spared(judged) == "sight":
        sight = bounds_of(values["params.vision"])
        share = 1 - (sight[1] / own if sight is not None and 0 < sight[1] < own else _TOWER)
    return share if share >= _MOST else 0.0


def _size(
    judged: Judged, values: Values, parts: tuple[float, ...], *, sure: bool
) -> tuple[float, str, float]:
    """Return the size of the model, by what it is known where that is a name, and the share that is trained.

    The size is 0 where nobody knows it, or whether most of it is trained.
    """
    own = values["model.params"]
    if is_number(own):
        share = _share_trained(judged, values, own, sure=sure) if values["trains"] is True else 1.0
        return (own if share else 0, "", share)
    least, where, surely = size_named(judged, _LESS)
    before = judged.values
    started = judged.subject.view.get(("launch", "processes_per_node"))  # where nobody counts the machines
    gpus = _gpus_of_file(before) or max(spread(before), started if is_number(started) else 0)
    gpus = INF if surely and gpus == 1 else gpus
    if not least or least * sum(parts) > gpus * _LARGEST:
        return 0, "", 0.0
    return least, f" (by {where})", 1.0
