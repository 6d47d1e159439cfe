"""``cfglint verify [PATH]``: what processes hold on this machine's GPUs, beside what was predicted."""

from __future__ import annotations

import os
import sys

from cfglint import files
from cfglint.command import inputs, options, output, setup
from cfglint.command.flags import free, parse, switch
from cfglint.errors import HardwareError, UsageError
from cfglint.features.verify.page import Gpu, Process, Verified, as_json, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.memory import Span
    from cfglint.hardware.nvml import Holding, Holdings
    from cfglint.report import Style

_SHOWN = 200  # characters of a command line
# What stands in the command lines of engines and their workers (sglang::scheduler, VLLM::EngineCore).
_ENGINES = ("sglang", "vllm")


class VerifyOptions(options.Options):
    """The flags of ``verify``."""

    command = "verify"
    about = (
        "What the processes on this machine's GPUs hold, by NVML; with PATH, the config of the running "
        "job, beside what was predicted."
    )
    offers = ("json", "framework", "set", "model_config", "online", "rules", "no_color")
    also = ("rule",)

    path: str | None = free("PATH", "the config that the running job was started with")
    json: bool = switch("the numbers for scripts", group="output")


def main(arguments: list[str]) -> int:
    """Run the command; 2 where there is no GPU to ask."""
    args = parse(VerifyOptions, arguments)
    from cfglint.hardware.nvml import holdings

    measured = holdings()
    if measured.host is None or measured.problem is not None:
        raise HardwareError(
            f"{measured.problem or 'NVML reports nothing here'}; run cfglint verify on the machine "
            f"where the job runs, or read "
            "the job's log: cfglint diagnose LOG"
        )
    predicted = _predicted(args, args.path) if args.path is not None else None
    found = _verified(measured, args.path, predicted)
    if args.json:
        sys.stdout.write(as_json(found))
        return 0

    def page(style: Style) -> str:
        return as_text(found, color=style.color, width=style.width, plain=not style.unicode)

    output.emit(page, args, "\u2013")
    return 0


def _predicted(args: VerifyOptions, path: str) -> dict[str, Span]:
    """Return what the rules say of engine and trainer on this machine."""
    from cfglint.features.diagnose.compute import predictions
    from cfglint.hardware.nvml import detect

    args = options.merged(args)
    detection = detect()
    run = setup.run(args, detection.targets)
    subjects = run.subjects(inputs.named(path), judge_broken=False)
    if not subjects:
        raise UsageError(inputs.unknown(run, path))
    values = run.on(next(iter(detection.targets), None), subjects[0]).values
    return {role: prediction.span for role, prediction in predictions(values).items()}


def _verified(measured: Holdings, path: str | None, predicted: dict[str, Span] | None) -> Verified:
    assert measured.host is not None
    gpus = []
    for device in measured.host.devices:
        here = [one for one in measured.processes if one.index == device.index]
        told = [(one, *_about(one.pid)) for one in here]
        roles = _roles(told, predicted)
        processes = tuple(
            Process(one.pid, name, one.held, one.kind, role, (predicted or {}).get(role) if role else None)
            for (one, name, _), role in zip(told, roles, strict=True)
        )
        usable = device.usable_mib if device.usable_mib is not None else device.total_mib
        gpus.append(
            Gpu(
                device.index,
                device.name,
                usable * 2**20 if usable is not None else None,
                measured.used.get(device.index),
                processes,
                bool(device.mig_mode),
            )
        )
    return Verified(path, predicted or {}, tuple(gpus))


def _about(pid: int) -> tuple[str, str]:
    """Return a process as people know it and its whole command line, both empty where it cannot be read."""
    try:
        told = files.read_bytes(f"/proc/{pid}/cmdline", 1 << 16)
    except OSError:
        return "", ""
    words = [w for w in told.decode("utf-8", "replace").split("\0") if w]
    if not words:
        return "", ""
    line = " ".join([os.path.basename(words[0]), *words[1:]])
    return line[:_SHOWN], line


def _roles(told: list[tuple[Holding, str, str]], predicted: dict[str, Span] | None) -> list[str | None]:
    """Say which processes are engine and trainer: by their command lines, else by what is left over."""
    if predicted is None:
        return [None] * len(told)
    engines = [any(word in line.lower() for word in _ENGINES) for _, _, line in told]
    if "engine" not in predicted:
        engines = [False] * len(told)
    rest = [i for i, engine in enumerate(engines) if not engine]
    if "engine" in predicted and not any(engines) and "trainer" in predicted and len(told) == 2:
        # Nothing can be read of either: the nearer one to the engine's estimate is the engine.
        span, (one, other) = predicted["engine"], (told[0][0], told[1][0])
        if one.held is not None and other.held is not None:
            middle = (span.low + span.high) / 2 * 2**30
            near = 0 if abs(one.held - middle) <= abs(other.held - middle) else 1
            return ["engine" if i == near else "trainer" for i in range(2)]
    roles: list[str | None] = ["engine" if engine else None for engine in engines]
    pythons = [i for i in rest if "python" in told[i][2].lower() or not told[i][2]]
    if "trainer" in predicted and len(pythons) == 1:
        roles[pythons[0]] = "trainer"
    return roles
