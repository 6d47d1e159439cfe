"""``cfglint verify [PATH]``: what processes hold on this machine's GPUs, beside what was predicted."""

from __future__ import annotations

import os

from cfglint import files
from cfglint.command import free, inputs, options, output, parse, setup, switch
from cfglint.engine.memory import GIB
from cfglint.errors import HardwareError
from cfglint.findings import Span
from cfglint.record import Value
from cfglint.report.blocks import DASH, INF, Blank, Cell, Column, Line, Table, spread
from cfglint.report.encode import encode
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.hardware.host import Device, Host
    from cfglint.hardware.nvml import Holding, Holdings
    from cfglint.report import Style
    from cfglint.report.blocks import Block

_SHOWN = 200  # characters of a command line
# Words in the command lines of engines and their workers (sglang::scheduler, VLLM::EngineCore).
_ENGINES = ("sglang", "vllm")
_NARROWEST = 40  # cells of a line
_COLORS = {"inside": "green", "above": "red", "below": "yellow"}


class Process(Value):
    """One process: GiB that it holds (None where it is not known), its role, what was predicted."""

    pid: int
    name: str | None
    kind: str
    held_gib: float | None
    role: str | None
    predicted_gib: Span | None
    verdict: str


class Gpu(Value):
    """One GPU: what programs can have of it, what is in use by anyone, and its processes."""

    index: int
    name: str
    capacity_gib: float | None
    used_gib: float | None
    mig: bool
    processes: tuple[Process, ...]


class Verified(Value):
    """All GPUs; what was predicted by role, nothing without a config. JSON has these fields."""

    path: str | None
    predicted_gib: dict[str, Span]
    gpus: tuple[Gpu, ...]


def verdict_of(held: float | None, span: Span | None) -> str:
    """Return where a measured number of GiB lies: ``inside``, ``below``, ``above``, or ``unknown``."""
    if held is None or span is None or span.high == INF:
        return "unknown"
    if held < span.low - 0.005:
        return "below"
    return "above" if held > span.high + 0.005 else "inside"


class VerifyOptions(options.Options):
    """The flags of ``verify``."""

    command = "verify"
    about = (
        "Show what each process on this machine's GPUs holds (NVML); with PATH, the running job's config, "
        "next to the prediction."
    )
    offers = ("json", "framework", "set", "model_config", "online", "rules", "no_color")
    also = ("rule",)

    path: str | None = free("PATH", "the config that the running job was started with")
    json: bool = switch("print JSON", group="output")


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
    predicted = _predicted(args, args.path, measured.host) if args.path is not None else {}
    gpus = tuple(_gpu(device, measured, predicted) for device in measured.host.devices)
    verified = Verified(args.path, dict(sorted(predicted.items())), gpus)
    args.format = "json" if args.json else "text"
    # The numbers are those of schemas/verified.schema.json.
    data = {"version": 1, **encode(verified)}
    output.emit_page(args, lambda style: page(verified, style), lambda: data, DASH)
    return 0


def _predicted(args: VerifyOptions, path: str, host: Host) -> dict[str, Span]:
    """Return what the rules say that the driver shows of engine and trainer on this machine."""
    from cfglint.features.diagnose.compute import predictions
    from cfglint.hardware.nvml import detection

    targets = detection(host).targets
    run = setup.run(options.merged(args), targets)
    subject, *_ = inputs.recognised(run, inputs.named(path, args.boundary), path)
    values = run.on(next(iter(targets), None), subject).values
    return {role: prediction.span for role, prediction in predictions(values).items()}


def _gpu(device: Device, measured: Holdings, predicted: dict[str, Span]) -> Gpu:
    holdings = [holding for holding in measured.processes if holding.index == device.index]
    lines = [_command_line(holding.pid) for holding in holdings]
    roles = _roles(holdings, lines, predicted)
    usable = device.usable_mib if device.usable_mib is not None else device.total_mib
    return Gpu(
        device.index,
        device.name,
        usable / 1024 if usable is not None else None,
        _gib(measured.used.get(device.index)),
        bool(device.mig_mode),
        tuple(
            _process(holding, line[:_SHOWN] or None, role, predicted.get(role or ""))
            for holding, line, role in zip(holdings, lines, roles, strict=True)
        ),
    )


def _process(holding: Holding, name: str | None, role: str | None, span: Span | None) -> Process:
    held = _gib(holding.held)
    return Process(holding.pid, name, holding.kind, held, role, span, verdict_of(held, span))


def _gib(size: int | None) -> float | None:
    return None if size is None else size / GIB


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


# ── the page: a table for each GPU ───────────────────────────────────────────────────────────────────────
def page(verified: Verified, style: Style) -> Iterator[Block]:
    """Yield a table for each GPU."""
    width = max(style.width, _NARROWEST) if style.width else 0
    for i, gpu in enumerate(verified.gpus):
        if i:
            yield Blank()
        size = f", {gpu.capacity_gib:.2f} GiB usable" if gpu.capacity_gib is not None else ""
        used = f", {gpu.used_gib:.2f} in use" if gpu.used_gib is not None else ""
        yield Line([(f"GPU {gpu.index}: {shown(gpu.name)}{size}{used}", "bold")])
        if gpu.mig:
            yield _note("MIG is on: NVML lists processes only to users who may see all instances")
        if gpu.processes:
            yield from _processes(gpu, "predicted" if verified.path else "", width)
        elif (gpu.used_gib or 0) > 1:
            yield _note(
                "no process: memory is held by processes that NVML does not show here "
                "(in a container, run it outside)"
            )
        else:
            yield _note("no process")


def _note(text: str) -> Line:
    return Line([(text, "dim")])


def _processes(gpu: Gpu, head: str, width: int) -> Iterator[Block]:
    rows = [(str(p.pid), _held([p]), *_estimate(p), _called(p)) for p in gpu.processes]
    rows.append(("total", _held(gpu.processes), *_total(gpu), ""))
    pids, held, predicted, verdicts, names = zip(*rows, strict=True)
    columns = [Column("pid", pids), Column("held", held)]
    if head:
        columns.append(Column(head, predicted))
    if any(verdicts):
        words = [Cell([(word.replace("unknown", "not judged"), _COLORS.get(word, ""))]) for word in verdicts]
        columns.append(Column("", words, left=True))
    columns.append(Column("", [Cell([(name, "dim")]) for name in names], left=True, cut=1))
    yield Table(columns, width=width)
    if any(process.held_gib is None for process in gpu.processes):
        yield _note("? the driver does not report memory per process (WDDM, MIG, or a container)")
    if any(process.verdict == "below" for process in gpu.processes):
        yield _note("below: a process that has not reached its peak yet holds less than predicted")


def _held(processes: Sequence[Process]) -> str:
    """Return what processes hold together, as far as it is known."""
    sizes = [process.held_gib for process in processes if process.held_gib is not None]
    return f"{sum(sizes):.2f}" if sizes else "?"


def _estimate(process: Process) -> tuple[str, str]:
    """Return what was predicted of a process, and where its memory lies."""
    if process.predicted_gib is None:
        return "", ""
    return spread(process.predicted_gib).replace(DASH, f" {DASH} "), process.verdict


def _total(gpu: Gpu) -> tuple[str, str]:
    """Return what was predicted of the processes with a role together, and where the sum lies."""
    bounded = [p for p in gpu.processes if p.predicted_gib is not None and p.predicted_gib.high < INF]
    if len(bounded) < 2 or len({process.role for process in bounded}) < len(bounded):
        return "", ""
    spans = [process.predicted_gib for process in bounded if process.predicted_gib is not None]
    whole = Span(sum(span.low for span in spans), sum(span.high for span in spans))
    text = f"{whole.low:.2f} {DASH} {whole.high:.2f}"
    if any(process.held_gib is None for process in bounded):
        return text, ""
    return text, verdict_of(sum(process.held_gib or 0 for process in bounded), whole)


def _called(process: Process) -> str:
    words = [word for word in (process.role, shown(process.name or "")) if word]
    return ": ".join(words) or "(its command line cannot be read)"
