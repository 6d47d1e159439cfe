"""What NVML says of this machine, as one line of JSON: run by nvml.py in a process of its own.

The driver's library may wait for ever or crash; then this process does, and not cfglint. Whatever the library
itself prints goes nowhere. pynvml is imported here alone.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MIB = 2**20
_LIFE = 60  # seconds, should nobody be left to end this process
_MOST = 256  # GPUs of a machine, and MIG instances of a GPU

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


def main(words: list[str]) -> None:
    """Print what NVML says; with the word ``processes``, of those on the GPUs, too."""
    if hasattr(signal, "alarm"):
        signal.alarm(_LIFE)
    answer = os.dup(1)
    os.dup2(2, 1)  # stderr leads nowhere, see nvml.py
    said = json.dumps(_said(processes="processes" in words)).encode()
    while said:
        said = said[os.write(answer, said) :]
    os._exit(0)  # what a library does at the end may hang as well


def _said(*, processes: bool) -> dict[str, Any]:
    try:
        import pynvml
    except Exception:  # noqa: BLE001 (a broken install of a library must not stop a linter)
        return {"problem": "NVML is not available: the Python package nvidia-ml-py is missing or broken"}
    try:
        pynvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 (NVMLError, or whatever ctypes makes of a broken library)
        return {"problem": _problem(error)}
    try:
        return _host(pynvml, processes=processes)
    except Exception as error:  # noqa: BLE001 (a GPU may go at any moment)
        return {"problem": _problem(error)}
    finally:
        with suppress(Exception):
            pynvml.nvmlShutdown()


def _host(nvml: Any, *, processes: bool) -> dict[str, Any]:
    count = int(nvml.nvmlDeviceGetCount())
    if count > _MOST:
        return {"problem": f"the answer of the NVIDIA library makes no sense: {count} GPUs"}
    devices = []
    for index in range(count):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        device = _device(nvml, handle)
        if device["mig_mode"]:
            device["instances"] = _instances(nvml, handle)
        if processes:
            device["processes"] = _processes(nvml, handle)
        devices.append(device)
    return {
        "devices": devices,
        "driver": _text(_ask(nvml.nvmlSystemGetDriverVersion)),
        "cuda": _ask(nvml.nvmlSystemGetCudaDriverVersion),
    }


def _device(nvml: Any, handle: Any) -> dict[str, Any]:
    memory = _memory(nvml, handle)
    mode = _ask(nvml.nvmlDeviceGetMigMode, handle)
    use = _ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    return {
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        **memory,
        "capability": _ask(nvml.nvmlDeviceGetCudaComputeCapability, handle),
        "mig_mode": bool(mode[0]) if mode else None,
        "utilisation": int(use.gpu) if use else None,
        "computes": bool(_ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)),
    }


def _instances(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    instances = []
    for index in range(min(int(_ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0), _MOST)):
        instance = _ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if instance is not None:  # not every slot is taken
            instances.append({"name": _text(nvml.nvmlDeviceGetName(instance)), **_memory(nvml, instance)})
    return instances


def _processes(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    return [
        {
            "pid": int(process.pid),
            "held": getattr(process, "usedGpuMemory", None),
            "kind": kind,
            "mig": getattr(process, "gpuInstanceId", None),
        }
        for kind, call in (
            ("compute", nvml.nvmlDeviceGetComputeRunningProcesses),
            ("graphics", nvml.nvmlDeviceGetGraphicsRunningProcesses),
        )
        for process in _ask(call, handle) or ()
    ]


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
