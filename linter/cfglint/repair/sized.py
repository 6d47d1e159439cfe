"""What a full fine-tune keeps where nobody knows what a job takes, against all GPUs together.

Of a job whose memory is not judged, the size of its model may still be known, by its name or by those of the
file and the run. Where its weights, gradients and moments alone are more than all GPUs have, or what each
of them keeps is more than it has, fewer GPUs are no repair, unless the file can shard more of them, or send
them to the host.
"""

from __future__ import annotations

import re
from itertools import chain, combinations

from cfglint.document.tree import Mapping
from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.lang.values import INF
from cfglint.record import replace
from cfglint.repair.allowed import SAFE
from cfglint.repair.found import Repair
from cfglint.repair.hopeless import gpus_have, params_told, spread
from cfglint.repair.options import Options
from cfglint.repair.price import lays_out, regroups
from cfglint.repair.together import combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal

_SIZE = re.compile(  # 7B, 30B-A3B, qwen30_a3b
    r"(?i)(?<![a-z0-9.])([0-9]{1,3}(?:\.[0-9]{1,2})?)b(?![a-z0-9])|([0-9]{2,3})b?[-_]a[0-9]{1,2}b(?![a-z0-9])"
)
_FAMILY = re.compile(
    r"(?i)qwen|llama|mistral|mixtral|gemma|deepseek|intern|glm|phi|moonlight|kimi|olmo|falcon|granite|vicuna"
)
_NAMES = (
    *("model_path", "experiment_name", "exper_name", "run_name", "exp_name", "output_dir", "save_path"),
    "hf_assets_path",  # torchtitan's tokenizer and checkpoint
)
_HOLDERS = ((), ("trainer",), ("launch", "flags"))
# What may hold less on the GPUs than weights, gradients and moments of all parameters.
_LESS = re.compile(
    r"(?i)lora|peft|adapter|[48]_?bit|quant|galore|freeze|frozen|prob(?:e|ing)|offload|adafactor|muon|lion"
)
_SWITCHED = r"(?:load_in|use|enable|with)_\w*(?:[48]_?bit|lora|peft|adapter|quant|galore)|lora_enable"
_OFF = re.compile(rf"(?i)\w*(?:offload|(?<!un)freeze|{_SWITCHED})\w*[=: ]+[\"']?(?:false|none|null|0)\b")
_STATES_OFF = re.compile(r"(?i)\w*offload_optimizer\w*|super_?offload\w*|zerooffload\w*")  # ZeRO-Offload
_TEACHER = re.compile(r"(?i)teacher(?:_model)?(?:_name)?(?:_or)?(?:_path)?")
_SERVED = re.compile(r"(?i)teacher\w*(?:server|url|api|host|port|bit|quant|offload)")
_BILLION = 1e9
_WEIGHTS, _MOMENTS = 2.0, 4.0  # bytes of each parameter: 16 bits, and AdamW's two in 16 bits
_ALL = 0.99  # of the weights are trained
_PARTS = ("weights", "gradients", "moments")
_SHARED = ("ranks.weights", "ranks.gradients", "ranks.optimizer")  # over so many GPUs
_AWAY = ("zero_stage", "train_tp", "offload_optimizer", "offload_params")  # the cheapest first
_BY_HAND = _AWAY[2:]
_STAGES = 3
_HALF = 0.6  # of a GPU: what leaves room for all that nobody knows
_ROOM = 0.9  # of a GPU, a rule of thumb: more of it in states is a reason to shard more, and told to nobody


def beyond(judged: Judged, values: Values, *, sure: bool = True, share: float = 1.0) -> str:
    """Say that a full fine-tune keeps more than a ``share`` of all GPUs; nothing where not, or who knows.

    What is not sharded, each GPU keeps whole. Without ``sure``, also of a job that may train all weights.
    """
    vram, count = bounds_of(values["gpu.vram"]), values["gpu.count"]
    need = bounds_of(values["trainer.likely"])
    if vram is None or not is_number(count) or count < 1 or (need is not None and need[1] < INF):
        return ""
    parts = _parts(judged, values, sure=sure)
    size, by = _size(judged, values, sure=sure) if sum(parts) else (0, "")
    if not size:
        return ""
    each, there, teacher = sum(parts), vram[1] * count, _teacher(judged)
    held = teacher * _WEIGHTS
    beside = f", beside {held / GIB:,.0f} GiB of a teacher's {params_told(teacher)} weights" if held else ""
    whose = f"a full fine-tune of {params_told(size)} weights{by} keeps at least"
    kinds = f"{_joined(parts)} ({each:g} bytes each)"
    own = next((n for name in ("gpus_needed", "num_gpus") if is_number(n := values[name])), 0)
    if size * each + held > there * share:
        told = f"{whose} {size * each / GIB:,.0f} GiB of {kinds}{beside}, and {gpus_have(there, int(count))}"
        if own <= count:
            return told
        share_there = f"{(size * each + held) / own / GIB:,.0f} GiB each"
        return f"{told}; on the {int(own)} GPUs of the file, that is at least {share_there}"
    ranks = [_ranks(values, name, count) for name in _SHARED]
    on_each = size * sum(part / over for part, over in zip(parts, ranks, strict=True))
    context = (bounds_of(values["process.context"]) or (0, 0))[0]
    if on_each + held / count <= min(vram[1] * share, vram[1] - context):
        return ""
    if held:
        beside = f", beside {held / count / GIB:,.1f} GiB of a teacher's {params_told(teacher)} weights"
    whole = " and ".join(n for n, part, over in zip(_PARTS, parts, ranks, strict=True) if over == 1 and part)
    told_whole = f", with {whole} whole on each" if whole else ""
    of_process = f", {context / GIB:.1f} of them for the process itself"
    return (
        f"{whose} {on_each / GIB:,.1f} GiB on each of {int(count)} GPUs{told_whole}{beside}, and "
        f"{gpus_have(vram[1], 1, 1)}{of_process if on_each + held / count <= vram[1] else ''}"
    )


def _joined(parts: tuple[float, ...]) -> str:
    *names, last = [name for name, part in zip(_PARTS, parts, strict=True) if part]
    return f"{', '.join(names)} and {last}" if names else last


def _ranks(values: Values, name: str, count: float) -> float:
    """Return over how many GPUs a part is shared out at most."""
    known = bounds_of(values[name])
    return count if known is None else max(1.0, min(count, known[1] * spread(values)))


def share_of_each(judged: Judged, values: Values) -> float:
    """Return the bytes of a full fine-tune that each GPU keeps at least; 0 where nobody knows."""
    need, count = bounds_of(values["trainer.likely"]), values["gpu.count"]
    if not is_number(count) or count < 1 or (need is not None and need[1] < INF):
        return 0
    parts = _parts(judged, values, sure=True)
    if not sum(parts):
        return 0
    size = _size(judged, values, sure=True)[0]
    ranks = [_ranks(values, name, count) for name in _SHARED]
    return size * sum(part / over for part, over in zip(parts, ranks, strict=True))


def sent_away(solver: Solver, repair: Repair, judged: Judged) -> tuple[Repair, bool]:
    """Return a repair, with more sharded or sent to the host where GPUs cannot keep all; whether they can.

    What is not a move to other GPUs stays as it is.
    """
    facts = combined(repair.options) or {}
    after = solver.trials.values(judged, facts)
    placed = regroups(facts) or lays_out(facts)
    if repair.sure or not placed or not beyond(judged, after, sure=False, share=_ROOM):
        return repair, True
    able = not beyond(judged, after)
    for option in ways_away(solver, judged):
        if combined((*repair.options, option)) is None:
            continue
        more = solver.written(Repair((*repair.options, option), sure=False), repair.goals)
        moved = combined(more.options) if more is not None else None
        if more is None or more.patch is None or (able and more.unsafe and not repair.unsafe):
            continue
        if not beyond(judged, solver.trials.values(judged, moved or {}), sure=False, share=_ROOM):
            return more, True
    return repair, able


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


def _takes_off(option: Option, judged: Judged) -> bool:
    """Whether a move leads to more sharding or to the host."""
    new, old = option.facts.get(option.knob), judged.values[option.knob]
    return new is True or (is_number(new) and is_number(old) and new > old)


def _parts(judged: Judged, values: Values, *, sure: bool) -> tuple[float, ...]:
    """Return the bytes that a full fine-tune keeps of each parameter at least; none where it may be none.

    They are those of weights, gradients, and the optimizer. Without ``sure`` a job whose file says nothing of
    adapters is taken to have none.
    """
    lora, packed = values["lora"], values["quantized"]
    if values["trains"] is not True or lora is True or packed is True or (sure and lora is not False):
        return ()
    if values["optimizer_in_backward"] is True:
        return ()
    moments = 0.0 if isinstance(values["optimizer"], str) else _MOMENTS  # AdamW where nobody says another
    master = values["master_weights"] is True  # then the moments have as many bytes
    floors = {"param_bytes": _WEIGHTS, "grad_bytes": _WEIGHTS, "moment_bytes": moments * (1 + master)}
    bounds = {name: bounds_of(values[name]) for name in floors}
    weights, gradients, optimizer = (
        part[0] if part and part[0] else floors[name] for name, part in bounds.items()
    )
    known = lora is False and packed is False and values["framework.name"] != "user_script"
    if not known:  # what no framework's keys say, a program may have other words for
        document = judged.subject.document
        text = document.file.text[document.start : document.end]
        text = _OFF.sub("", text)
        rest = _STATES_OFF.sub("", text)
        if _LESS.search(rest):
            return ()
        if rest != text:  # the optimizer alone goes to the host
            optimizer, gradients, master = 0.0, 0.0, False
    if values["states.away"] is not False:
        optimizer = gradients = 0.0
    elif master:
        optimizer += 2 * _WEIGHTS
    return (0.0 if values["offload_params"] is not False else weights, gradients, optimizer)


def _size(judged: Judged, values: Values, *, sure: bool) -> tuple[float, str]:
    """Return the size of the model, and by what it is known where that is a name; 0 without one."""
    own, trained = values["model.params"], values["params.trained"]
    if is_number(own):
        most = bounds_of(trained)
        whole = most is not None and most[0 if sure else 1] >= _ALL * own / spread(values)
        return (own, "") if whole else (0, "")
    texts = _texts(judged)
    sizes = [(float(match[1] or match[2]), where) for text, where in texts for match in _SIZE.finditer(text)]
    least, where = min(sizes, default=(0, ""))
    return least * _BILLION, f" (by {where})" if least else ""


def _teacher(judged: Judged) -> float:
    """Return the size of a teacher that a job loads beside its model, by its name; 0 without one.

    One that is served elsewhere, or packed, is not looked at.
    """
    view, root = judged.subject.view, judged.subject.document.root
    names = root.entries if isinstance(root, Mapping) else {}
    told = [view.get((name,)) for name in names if _TEACHER.fullmatch(name)]
    if any(_SERVED.search(name) for name in names):
        return 0
    ends = [text.rstrip("/").rpartition("/")[2] for text in told if isinstance(text, str)]
    sizes = [float(match[1] or match[2]) for text in ends for match in _SIZE.finditer(text)]
    return min(sizes, default=0) * _BILLION


def _texts(judged: Judged) -> Iterator[tuple[str, str]]:
    """Yield the names that may tell a model, and whose they are: those with the name of a family."""
    view, document = judged.subject.view, judged.subject.document
    names: list[tuple[object, str]] = [(document.file.path.rpartition("/")[2], "the file's name")]
    configs = [each.file for each in view.layers.files] if view.layers is not None and document.over else []
    names += [(each.path, "its config's name") for each in configs if not _LESS.search(each.text)]
    for holder in _HOLDERS:
        names += [(view.get((*holder, name)), f"its {name}") for name in _NAMES]
    names.append((judged.values["model_path"], "the model's name"))
    yield from (
        (text.rstrip("/").rpartition("/")[2], where)
        for text, where in names
        if isinstance(text, str) and _FAMILY.search(text)
    )
