"""Asks NVML what this machine has, in a process of its own: the driver may hang or crash, cfglint must not.

Nothing is started before ``detect()`` or ``holdings()``. Figures that cannot be are left out.
"""

from __future__ import annotations

import os
from contextlib import suppress

from cfglint import files
from cfglint.hardware.catalogue import MIB
from cfglint.hardware.host import Device, Host, profile_in, target
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen
    from typing import Any, TypeVar

    from cfglint.hardware.target import Target

    Answer = TypeVar("Answer")

LIMIT = 20.0  # seconds; without persistence mode each of many GPUs takes one or two to wake up
_MOST = 2**20  # bytes of an answer
_START = "from cfglint.hardware.probe import main; main(sys.argv[1:])"
_LONGEST = 120  # characters of a name
_LARGEST = 2**24  # MiB of a GPU
_NO_GPU = "the NVIDIA driver finds no GPU on this machine"


class Detection(Record):
    """What NVML said: ``host`` and ``targets`` (one target, or none), or ``problem`` in one line."""

    host: Host | None = None
    targets: list[Target] = field(factory=list)
    problem: str | None = None


class Holding(Record):
    """A process on a GPU: bytes that it holds, None where it is not known. ``mig`` is its instance."""

    index: int
    pid: int
    held: int | None
    kind: str
    mig: int | None = None


class Holdings(Record):
    """The GPUs of this machine with their processes, or ``problem`` in one line."""

    host: Host | None = None
    processes: list[Holding] = field(factory=list)
    used: dict[int, int] = field(factory=dict)  # bytes in use by GPU, whoever uses them
    problem: str | None = None


def detect() -> Detection:
    """Return this machine's GPUs as NVML reports them. Never raises, and takes 20 seconds at most.

    ``CUDA_VISIBLE_DEVICES`` is respected where it is a plain list of numbers, since a job started here would
    see only those (a notice says so); NVML's order is assumed, which is CUDA's own only where all GPUs are
    alike or ``CUDA_DEVICE_ORDER`` is ``PCI_BUS_ID``. The host lists all GPUs in any case.
    """
    found = _asked(_host)
    return Detection(problem=found) if isinstance(found, str) else detection(found)


def holdings() -> Holdings:
    """Return the processes on this machine's GPUs and what each holds. Never raises, as ``detect``."""
    found = _asked(_holdings, "processes")
    return Holdings(problem=found) if isinstance(found, str) else found


def detection(host: Host) -> Detection:
    """Return what this machine is for a job that is started here."""
    if not host.devices:
        return Detection(host, problem=_NO_GPU)
    visible, notices = _visible(host)
    units = visible.units()
    if not units:
        if visible.devices:
            return Detection(host, problem="MIG is on, but no MIG instance exists")
        return Detection(host, problem="CUDA_VISIBLE_DEVICES hides every GPU of this machine")
    machine = target(units, "NVML", notices=notices)
    # An idle machine tells nothing of a job, and neither does one that is still loading.
    busy = max((unit.utilisation or 0 for unit in units if unit.computes), default=0)
    if busy:
        source = "NVML, just now: the busiest GPU that a process computes on"
        machine.facts["observed.gpu_util"] = busy / 100, source
    return Detection(host, [machine])


def _visible(host: Host) -> tuple[Host, list[str]]:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None or any(device.mig_mode for device in host.devices):
        return host, []
    written = [part.strip() for part in chosen.split(",")] if chosen.strip() else []
    devices = []
    for part in written:
        if not (part.isascii() and part.removeprefix("-").isdigit()):
            return host, [f"CUDA_VISIBLE_DEVICES={chosen} is not a list of numbers and was not applied"]
        number = int(part[:9])
        if not 0 <= number < len(host.devices) or host.devices[number] in devices:
            break  # as CUDA does: what follows an invalid number is hidden
        devices.append(host.devices[number])
    notices = []
    if len(devices) < len(host.devices):
        notices.append(
            f"CUDA_VISIBLE_DEVICES={chosen} leaves {len(devices)} of this machine's {len(host.devices)} GPUs"
        )
    return Host(devices, driver=host.driver, cuda=host.cuda), notices


# ── the process that asks ──────────────────────────────────────────────────────────────────────────────────
def _asked(read: Callable[[dict[str, Any]], Answer], *words: str) -> Answer | str:
    """Return what ``read`` makes of what probe.py prints, or the problem in one line."""
    import json
    import subprocess

    try:
        process = subprocess.Popen(  # noqa: S603 (this Python, and a module of this package)
            files.own_python(_START, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        data, status = _heard(process)
    except (OSError, RuntimeError) as error:  # no more processes, or no more threads
        return f"NVML cannot be asked: {getattr(error, 'strerror', None) or error}"
    if data is None:
        return f"the NVIDIA driver did not answer within {LIMIT:g} s"
    if status is not None and status < 0 and not data:
        return f"the NVIDIA library crashed (signal {-status})"
    if not data:
        return f"the process that asks NVML ended without an answer (status {status})"
    try:
        said = json.loads(data)
        problem = said.get("problem")
        return _line(problem) if problem else read(said)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return "the answer of the NVIDIA library makes no sense"


def _heard(process: Popen[bytes]) -> tuple[bytes | None, int | None]:
    """Return what a process prints, and its exit status; None in place of what does not come in time.

    One that waits inside of the driver cannot be killed, so nothing here waits for its end for long.
    """
    from subprocess import TimeoutExpired
    from threading import Thread

    assert process.stdout is not None
    stream = process.stdout.fileno()
    heard = b""

    def listen() -> None:
        nonlocal heard
        while len(heard) <= _MOST and (chunk := os.read(stream, 1 << 16)):
            heard += chunk

    listener = Thread(target=listen, daemon=True)
    status = None
    try:
        listener.start()
        listener.join(LIMIT)
        late = listener.is_alive()
        if not late and len(heard) <= _MOST:
            with suppress(TimeoutExpired):
                status = process.wait(1)
    finally:
        if status is None:
            process.kill()
            with suppress(TimeoutExpired):
                status = process.wait(1)
            if listener.is_alive():
                listener.join(1)
        if not listener.is_alive():
            process.stdout.close()
    return None if late else heard, status


# ── what it said ───────────────────────────────────────────────────────────────────────────────────────────
def _host(said: dict[str, Any]) -> Host:
    devices = []
    for index, entry in enumerate(said["devices"]):
        device = _device(entry, index, _capability(entry["capability"]))
        device.mig_mode = entry["mig_mode"]
        device.utilisation = _number(entry["utilisation"], 100)
        device.computes = bool(entry["computes"])
        for part in entry.get("instances", ()):
            instance = _device(part, index, device.capability)
            instance.mig = profile_in(instance.name)
            device.instances.append(instance)
        devices.append(device)
    version = _number(said["cuda"], 10**6)
    return Host(
        devices,
        driver=_line(said["driver"]) or None,
        cuda=f"{version // 1000}.{version % 1000 // 10}" if version else None,
    )


def _device(entry: dict[str, Any], index: int, capability: float | None) -> Device:
    """Return a GPU or an instance; a figure that cannot be is one that nobody said."""
    total = _number(entry.get("total_mib"), _LARGEST)
    return Device(
        _line(entry["name"]) or "NVIDIA GPU",
        index=index,
        total_mib=total,
        free_mib=_number(entry.get("free_mib"), total or 0),
        reserved_mib=_number(entry.get("reserved_mib"), total or 0),
        capability=capability,
    )


def _capability(said: Any) -> float | None:
    if not said or any(_number(part, 99) is None for part in said):
        return None
    # As written (`8.6`, `12.0`): major + minor / 10 would give 8.600000000000001 for some.
    return float(f"{said[0]}.{said[1]}")


def _number(value: Any, most: int) -> int | None:
    return value if type(value) is int and 0 <= value <= most else None


def _line(text: Any) -> str:
    return "".join(c if c.isprintable() else "?" for c in str(text)[:_LONGEST]).strip()


def _holdings(said: dict[str, Any]) -> Holdings:
    host = _host(said)
    if not host.devices:
        return Holdings(problem=_NO_GPU)
    holdings: dict[tuple[int, int, int | None], Holding] = {}
    used = {}
    for device, entry in zip(host.devices, said["devices"], strict=True):
        if device.total_mib is not None and device.free_mib is not None:
            used[device.index] = (device.total_mib - device.free_mib - (device.reserved_mib or 0)) * MIB
        for process in entry["processes"]:
            holding = _holding(device, process)
            # One that computes and draws is in both lists.
            holdings.setdefault((device.index, holding.pid, holding.mig), holding)
    return Holdings(host, sorted(holdings.values(), key=lambda p: (p.index, -(p.held or 0), p.pid)), used)


def _holding(device: Device, process: dict[str, Any]) -> Holding:
    # NVML has marks for what it does not know; they are larger than any memory and any number of instances.
    held = _number(process["held"], (device.total_mib or _LARGEST) * MIB)
    mig = _number(process["mig"], (1 << 31) - 1) if device.mig_mode else None
    return Holding(device.index, int(process["pid"]), held, str(process["kind"]), mig)
