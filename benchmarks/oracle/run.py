"""Measure the grid, each configuration in a process of its own, into a file of JSON lines."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import time
import traceback
import warnings
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from oracle.case import Case
from oracle.grid import grid

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

_LIMIT_S = 900.0


def _child(case: Case, answer: Connection) -> None:
    from oracle.measure import measure

    warnings.simplefilter("ignore")
    try:
        answer.send(measure(case))
    except Exception as error:  # noqa: BLE001 — whatever it is, the row says so
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = str(error).strip().splitlines() or [""]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"
        answer.send({"failure": f"{type(error).__name__}: {words[0][:300]} ({place})"})


def _done(path: str) -> set[Case]:
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as stream:
        return {Case.from_json(json.loads(line)["config"]) for line in stream}


def _result(answer: Connection, process: ForkProcess) -> dict[str, object]:
    try:
        result: dict[str, object] = answer.recv()
    except EOFError:
        process.join()
        result = {"failure": f"the process ended with {process.exitcode}"}
    process.join()
    return result


def fill(path: str, jobs: int) -> int:
    """Append the rows that the file lacks; return 1 if any of them failed."""
    import torch

    import oracle.measure  # noqa: F401 — children inherit what is imported here

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what is imported stays shared between the children
    context = multiprocessing.get_context("fork")
    done = _done(path)
    waiting = [(name, case) for name, case in grid() if case not in done]
    running: dict[Connection, tuple[str, Case, ForkProcess, float]] = {}
    failures = 0
    with open(path, "a", encoding="utf-8") as stream:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, case = waiting.pop(0)
                answer, sender = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(case, sender))
                process.start()
                sender.close()
                running[answer] = (name, case, process, time.monotonic())
            ready = wait(list(running), timeout=5)
            for answer, (name, case, process, started) in list(running.items()):
                late = time.monotonic() - started > _LIMIT_S
                if answer not in ready and not late:
                    continue
                if late:
                    process.kill()
                result = {"failure": f"not done after {_LIMIT_S:.0f} s"} if late else _result(answer, process)
                failures += "failure" in result
                stream.write(json.dumps({"set": name, "config": case.as_json(), **result}) + "\n")
                stream.flush()
                del running[answer]
    return int(failures > 0)


def show() -> int:
    """Print the grid's configurations and how many there are."""
    rows = grid()
    for name, case in rows:
        print(json.dumps({"set": name, "config": case.as_json()}))
    print(f"{len(rows)} configurations, {sum(name == 'fit' for name, _ in rows)} to fit")
    return 0
