"""Asks NVML what this machine has. Nothing here runs, and pynvml is not imported, before ``detect()``."""

from __future__ import annotations

import os
from contextlib import suppress

from cfglint.hardware.catalogue import MIB
from cfglint.hardware.host import Device, Host, profile_in, target
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from cfglint.hardware.target import Target

    Answer = TypeVar("Answer")

_BROKEN = "the NVIDIA driver library on this machine is broken or does not match the driver"
# NVML's own numbers (nvml.h), which no version of pynvml changes.
_PROBLEMS = {
    1: _BROKEN,
    4: "NVML is not accessible: no permission for the GPU devices",
    9: "the NVIDIA driver is installed but not loaded",
    12: "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)",
    13: _BROKEN,
    15: "a GPU was lost: it fell off the bus or must be reset",
    17: "NVML is not accessible: the operating system blocks the GPU devices",
    18: "the NVIDIA driver library and the loaded driver have different versions; reboot to fix it",
}
_UNSAID = (2, 3, 4, 6, 13)  # invalid argument, not supported, no permission, not found, no such function


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
    """Return this machine's GPUs as NVML reports them. Never raises, and leaves NVML shut down.

    ``CUDA_VISIBLE_DEVICES`` is respected where it is a plain list of numbers, since a job started here would
    see only those (a notice says so); NVML's order is assumed, which is CUDA's own only where all GPUs are
    alike or ``CUDA_DEVICE_ORDER`` is ``PCI_BUS_ID``. The host lists all GPUs in any case.
    """
    return _answer(Detection, _detection)


def holdings() -> Holdings:
    """Return the processes on this machine's GPUs and what each holds. Never raises."""
    return _answer(Holdings, _holdings)


def _answer(kind: Callable[..., Answer], ask: Callable[[Any], Answer]) -> Answer:
    """Return what NVML says to ``ask``, or a ``kind`` with the problem."""
    try:
        import pynvml
    except Exception:  # noqa: BLE001 (a broken install of a library must not stop a linter)
        return kind(problem="NVML is not available: the Python package nvidia-ml-py is missing or broken")
    try:
        pynvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 (NVMLError, or whatever ctypes makes of a broken library)
        return kind(problem=_problem(error))
    try:
        return ask(pynvml)
    except Exception as error:  # noqa: BLE001 (a GPU may go at any moment)
        return kind(problem=_problem(error))
    finally:
        with suppress(Exception):
            pynvml.nvmlShutdown()


def _detection(nvml: Any) -> Detection:
    host = _host(nvml)
    if not host.devices:
        return Detection(host, problem="the NVIDIA driver finds no GPU on this machine")
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


def _host(nvml: Any) -> Host:
    devices = []
    for index in range(int(nvml.nvmlDeviceGetCount())):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        device = _device(nvml, handle, index)
        if device.mig_mode:
            device.instances = _instances(nvml, handle, device)
        devices.append(device)
    version = _ask(nvml.nvmlSystemGetCudaDriverVersion)
    return Host(
        devices,
        driver=_text(_ask(nvml.nvmlSystemGetDriverVersion)) or None,
        cuda=f"{version // 1000}.{version % 1000 // 10}" if version else None,
    )


def _device(nvml: Any, handle: Any, index: int) -> Device:
    memory = _memory(nvml, handle)
    capability = _ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    mode = _ask(nvml.nvmlDeviceGetMigMode, handle)
    use = _ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    return Device(
        _text(nvml.nvmlDeviceGetName(handle)),
        index=index,
        **memory,
        # As written (`8.6`, `12.0`): major + minor / 10 would give 8.600000000000001 for some.
        capability=float(f"{capability[0]}.{capability[1]}") if capability else None,
        mig_mode=bool(mode[0]) if mode else None,
        utilisation=int(use.gpu) if use else None,
        computes=bool(_ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)),
    )


def _instances(nvml: Any, handle: Any, parent: Device) -> list[Device]:
    instances = []
    for index in range(int(_ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0)):
        instance = _ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if instance is None:
            continue  # not every slot is taken
        name, memory = _text(nvml.nvmlDeviceGetName(instance)), _memory(nvml, instance)
        instances.append(
            Device(name, index=parent.index, capability=parent.capability, mig=profile_in(name), **memory)
        )
    return instances


def _memory(nvml: Any, handle: Any) -> dict[str, Any]:
    """Return the figures of a device's memory; only version 2 of the call knows what the driver reserves."""
    version = getattr(nvml, "nvmlMemory_v2", None)
    if version is not None:
        memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle, version)
        if memory is not None and memory.total and memory.reserved < memory.total // 2:
            reserved = -(-int(memory.reserved) // MIB)  # rounded up: the rest is never more than there is
            return {**_sizes(memory), "reserved_mib": reserved}
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    # A GPU that shares the CPU's memory (GB10) reports none.
    return _sizes(memory) if memory is not None and memory.total else {}


def _sizes(memory: Any) -> dict[str, Any]:
    return {"total_mib": int(memory.total) // MIB, "free_mib": int(memory.free) // MIB}


def _ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what ``call`` says, None where this GPU, driver or pynvml does not say it."""
    try:
        return call(*arguments)
    except TypeError:
        return None  # an older pynvml, without that argument
    except Exception as error:
        if getattr(error, "value", None) in _UNSAID:
            return None
        raise


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def _problem(error: Exception) -> str:
    number = getattr(error, "value", None)
    if number == 12 and os.name == "posix":
        # pynvml says «not found» of a library that is there and cannot be loaded.
        import ctypes

        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as reason:
            if "No such file" not in str(reason):
                return _BROKEN
    problem = _PROBLEMS.get(number) if isinstance(number, int) else None
    if problem is None:
        return f"NVML does not answer: {' '.join(str(error).split()) or type(error).__name__}"
    return problem


def _holdings(nvml: Any) -> Holdings:
    host = _host(nvml)
    if not host.devices:
        return Holdings(problem="the NVIDIA driver finds no GPU on this machine")
    holdings: dict[tuple[int, int, int | None], Holding] = {}
    used = {}
    for device in host.devices:
        handle = nvml.nvmlDeviceGetHandleByIndex(device.index)
        if device.total_mib is not None and device.free_mib is not None:
            used[device.index] = (device.total_mib - device.free_mib - (device.reserved_mib or 0)) * MIB
        for kind, call in (
            ("compute", nvml.nvmlDeviceGetComputeRunningProcesses),
            ("graphics", nvml.nvmlDeviceGetGraphicsRunningProcesses),
        ):
            for process in _ask(call, handle) or ():
                holding = _holding(device, process, kind)
                # One that computes and draws is in both lists.
                holdings.setdefault((device.index, holding.pid, holding.mig), holding)
    return Holdings(host, sorted(holdings.values(), key=lambda p: (p.index, -(p.held or 0), p.pid)), used)


def _holding(device: Device, process: Any, kind: str) -> Holding:
    held = getattr(process, "usedGpuMemory", None)
    if held is not None and (held >= 1 << 62 or (device.total_mib and held > device.total_mib * MIB)):
        held = None  # NVML's mark of what it does not know
    instance = getattr(process, "gpuInstanceId", None)
    mig = instance if device.mig_mode and instance is not None and instance < 1 << 31 else None
    return Holding(device.index, int(process.pid), None if held is None else int(held), kind, mig)
