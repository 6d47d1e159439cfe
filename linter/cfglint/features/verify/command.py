"""``cfglint verify [PATH]``: what processes hold on this machine's GPUs, beside what was predicted."""

from __future__ import annotations

import os

from cfglint import files
from cfglint.command import inputs, options, output, setup
from cfglint.command.flags import free, parse, switch
from cfglint.engine.memory import GIB
from cfglint.errors import HardwareError, UsageError
from cfglint.features.verify.page import Gpu, Process, Verified, render_verified, verdict_of
from cfglint.report.blocks import DASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.memory import Span
    from cfglint.hardware.host import Device
    from cfglint.hardware.nvml import Holding, Holdings

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
            f"{measured.problem or 'NVML reports nothing here'}; run cfglint verify on the machine where the "
            "job runs, or read the job's log: cfglint diagnose LOG"
        )
    predicted = _predicted(args, args.path) if args.path is not None else {}
    gpus = tuple(_gpu(device, measured, predicted) for device in measured.host.devices)
    verified = Verified(args.path, dict(sorted(predicted.items())), gpus)
    form = "json" if args.json else "text"
    output.emit(lambda style: render_verified(verified, form, style), args, DASH)
    return 0


def _predicted(args: VerifyOptions, path: str) -> dict[str, Span]:
    """Return what the rules say of engine and trainer on this machine."""
    from cfglint.features.diagnose.compute import predictions
    from cfglint.hardware.nvml import detect

    detection = detect()
    run = setup.run(options.merged(args), detection.targets)
    subjects = run.subjects(inputs.named(path), judge_broken=False)
    if not subjects:
        raise UsageError(inputs.unknown(run, path))
    values = run.on(next(iter(detection.targets), None), subjects[0]).values
    return {role: prediction.span for role, prediction in predictions(values).items()}


def _gpu(device: Device, measured: Holdings, predicted: dict[str, Span]) -> Gpu:
    holdings = [holding for holding in measured.processes if holding.index == device.index]
    lines = [_command_line(holding.pid) for holding in holdings]
    roles = _roles(holdings, lines, predicted)
    usable = device.usable_mib if device.usable_mib is not None else device.total_mib
    used = measured.used.get(device.index)
    return Gpu(
        device.index,
        device.name,
        usable / 1024 if usable is not None else None,
        used / GIB if used is not None else None,
        bool(device.mig_mode),
        tuple(
            _process(holding, line[:_SHOWN] or None, role, predicted.get(role or ""))
            for holding, line, role in zip(holdings, lines, roles, strict=True)
        ),
    )


def _process(holding: Holding, name: str | None, role: str | None, span: Span | None) -> Process:
    held = holding.held / GIB if holding.held is not None else None
    verdict = "unknown" if span is None else verdict_of(held, span.low, span.high)
    return Process(holding.pid, name, holding.kind, held, role, span, verdict)


def _command_line(pid: int) -> str:
    """Return the command line of a process, its program without folders; nothing where it cannot be read."""
    try:
        data = files.read_bytes(f"/proc/{pid}/cmdline", 1 << 16)
    except OSError:
        return ""
    program, *words = [word for word in data.decode("utf-8", "replace").split("\0") if word] or [""]
    return " ".join([os.path.basename(program), *words])


def _roles(holdings: list[Holding], lines: list[str], predicted: dict[str, Span]) -> list[str | None]:
    """Say which processes are engine and trainer: by their command lines, else by what is left over."""
    engines = ["engine" in predicted and any(word in line.lower() for word in _ENGINES) for line in lines]
    sizes = [holding.held for holding in holdings if holding.held is not None]
    if {"engine", "trainer"} <= predicted.keys() and not any(engines) and len(sizes) == len(holdings) == 2:
        # Nothing can be read of either: the nearer one to the engine's estimate is the engine.
        middle = (predicted["engine"].low + predicted["engine"].high) / 2 * GIB
        first, second = (abs(size - middle) for size in sizes)
        return ["engine", "trainer"] if first <= second else ["trainer", "engine"]
    roles: list[str | None] = ["engine" if engine else None for engine in engines]
    pythons = [i for i, line in enumerate(lines) if not engines[i] and (not line or "python" in line.lower())]
    if "trainer" in predicted and len(pythons) == 1:
        roles[pythons[0]] = "trainer"
    return roles
