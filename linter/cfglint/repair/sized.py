"""What a full fine-tune keeps where nobody knows what a job takes, against all GPUs together.

Of a job whose memory is not judged, the size of its model may still be known, by its name or by those of the
file and the run. Where its weights, gradients and moments alone are more than all GPUs have, fewer GPUs are
no repair, unless the file can send them to the host.
"""

from __future__ import annotations

import re

from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.lang.values import INF
from cfglint.repair.found import Repair
from cfglint.repair.hopeless import gpus_have, params_told, spread
from cfglint.repair.options import Options
from cfglint.repair.price import regroups
from cfglint.repair.together import combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option

_SIZE = re.compile(  # 7B, 30B-A3B, qwen30_a3b
    r"(?i)(?<![a-z0-9.])([0-9]{1,3}(?:\.[0-9]{1,2})?)b(?![a-z0-9])|([0-9]{2,3})b?[-_]a[0-9]{1,2}b(?![a-z0-9])"
)
_FAMILY = re.compile(
    r"(?i)qwen|llama|mistral|mixtral|gemma|deepseek|intern|glm|phi|moonlight|kimi|olmo|falcon|granite|vicuna"
)
_NAMES = ("model_path", "experiment_name", "exper_name", "run_name", "exp_name", "output_dir", "save_path")
_HOLDERS = ((), ("trainer",), ("launch", "flags"))
# What may hold less on the GPUs than weights, gradients and moments of all parameters.
_LESS = re.compile(r"(?i)lora|peft|adapter|[48]_?bit|quant|galore|freeze|frozen|offload|adafactor|muon|lion")
_OFF = re.compile(r"(?i)\w*offload\w*[=: ]+[\"']?(false|none|null|0)\b")
_BILLION = 1e9
_WEIGHTS, _MOMENTS = 2.0, 4.0  # bytes of each parameter: 16 bits, and AdamW's two in 16 bits
_ALL = 0.99  # of the weights are trained
_AWAY = "offload_params"


def beyond(judged: Judged, values: Values, *, sure: bool = True) -> str:
    """Say that a full fine-tune keeps more than all GPUs have; nothing where it does not, or who knows.

    Without ``sure``, also of a job that may train all weights, or not.
    """
    vram, count = bounds_of(values["gpu.vram"]), values["gpu.count"]
    need = bounds_of(values["trainer.likely"])
    if vram is None or not is_number(count) or (need is not None and need[1] < INF):
        return ""
    each = _each(judged, values)
    size, by = _size(judged, values, sure=sure) if each else (0, "")
    there = vram[1] * count
    if size * each <= there:
        return ""
    told = (
        f"a full fine-tune of {params_told(size)} weights{by} keeps at least {size * each / GIB:,.0f} GiB of "
        f"weights, gradients and moments ({each:g} bytes each), and {gpus_have(there, int(count))}"
    )
    own = next((n for name in ("gpus_needed", "num_gpus") if is_number(n := values[name])), 0)
    if own <= count:
        return told
    share = f"{size * each / own / GIB:,.0f} GiB each"
    return f"{told}; on the {int(own)} GPUs of the file, that is at least {share}"


def sent_away(solver: Solver, repair: Repair, judged: Judged) -> tuple[Repair, bool]:
    """Return a repair, with the weights sent to the host where GPUs cannot keep all; whether they can.

    What is not a move to other GPUs stays as it is.
    """
    facts = combined(repair.options) or {}
    after = solver.trials.values(judged, facts)
    if repair.sure or not regroups(facts) or not beyond(judged, after, sure=False):
        return repair, True
    options = Options(solver.trials, judged, solver.writer(judged))
    ways = (one for track in options.tracks(t.Name(_AWAY)) if (one := _away(track.option(0))) is not None)
    for option in ways:
        if combined((*repair.options, option)) is None:
            continue
        more = solver.written(Repair((*repair.options, option), sure=False), repair.goals)
        moved = combined(more.options) if more is not None else None
        if more is not None and not beyond(judged, solver.trials.values(judged, moved or {}), sure=False):
            return more, True
    return repair, not beyond(judged, after)


def _away(option: Option | None) -> Option | None:
    if option is None or not option.writable or option.facts.get(_AWAY) is not True:
        return None
    return option


def _each(judged: Judged, values: Values) -> float:
    """Return the bytes that a full fine-tune keeps of each parameter at least; 0 where it may be none."""
    whole = values["trains"] is True and values["lora"] is False and values["quantized"] is not True
    if not whole or values["states.away"] is not False or values["offload_params"] is True:
        return 0
    if values["optimizer_in_backward"] is True:
        return 0
    moments = 0 if isinstance(values["optimizer"], str) else _MOMENTS  # AdamW where nobody says another
    floors = {"param_bytes": _WEIGHTS, "grad_bytes": _WEIGHTS, "moment_bytes": moments}
    bounds = {name: bounds_of(values[name]) for name in floors}
    least = [part[0] if part and part[0] else floors[name] for name, part in bounds.items()]
    if values["master_weights"] is True:
        least.append(2 * _WEIGHTS)
    known = values["quantized"] is False and values["framework.name"] != "user_script"
    if not known:  # what no framework's keys say, a program may have other words for
        document = judged.subject.document
        text = document.file.text[document.start : document.end]
        if _LESS.search(_OFF.sub("", text)):
            return 0
    return sum(least)


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


def _texts(judged: Judged) -> Iterator[tuple[str, str]]:
    """Yield the names that may tell a model, and whose they are: those with the name of a family."""
    view = judged.subject.view
    path = judged.subject.document.file.path.rpartition("/")[2]
    names: list[tuple[object, str]] = [(path, "the file's name")]
    for holder in _HOLDERS:
        names += [(view.get((*holder, name)), f"its {name}") for name in _NAMES]
    names.append((judged.values["model_path"], "the model's name"))
    yield from (
        (text.rstrip("/").rpartition("/")[2], where)
        for text, where in names
        if isinstance(text, str) and _FAMILY.search(text)
    )
