"""Who held what, the GPU by its memory, the moment by the traceback, and what a cut or odd text leaves."""

import os
from pathlib import Path

import pytest

from cfglint.cli import main
from cfglint.features.diagnose.attribution import Share, failures, gpu_of, holders
from cfglint.features.diagnose.log import engine_of, moment, read, traceback_before

GIB = 2**30
SHARED = os.environ.get("CFGLINT_SHARED")


def log_of(*lines):
    return read(["\n".join(lines).encode()], "a.log")


def text(*processes, gpu=0, rest="", capacity=44.42):
    names = "".join(f"Process {pid} has {held} GiB memory in use. " for pid, held in processes)
    return (
        f"CUDA out of memory. Tried to allocate 48.00 MiB. GPU {gpu} has a total capacity of {capacity} "
        f"GiB of which 27.50 MiB is free. {names}{rest}"
    )


SHORT = text((2963820, 36.34), (2965022, 8.05))
ASKS = Share(0.8, "sglang", "c.yaml")


def test_a_short_text_in_a_container():
    """No process is said to be the one that died: the engine is known by its share, and the other died."""
    (one,) = log_of(SHORT).incidents
    engine, trainer = holders(one, ASKS, trains=True)
    assert (engine.role, engine.pid, engine.died) == ("engine", 2963820, False)
    assert (trainer.role, trainer.pid, trainer.died) == ("trainer", 2965022, True)
    assert trainer.needed == pytest.approx(8.05 * GIB + 48 * 2**20, abs=2)


def test_without_a_share_nobody_is_called_the_engine():
    (one,) = log_of(SHORT).incidents
    assert [h.role for h in holders(one, None)] == ["other", "other"]


def test_a_share_that_nobody_holds():
    (one,) = log_of(SHORT).incidents
    assert "engine" not in [h.role for h in holders(one, Share(0.5, "sglang", "c.yaml"), trains=True)]


def test_the_process_that_pytorch_speaks_of():
    rest = (
        "Of the allocated memory 6.52 GiB is allocated by PyTorch, and 1.06 GiB is reserved by PyTorch but "
    )
    rest += "unallocated."
    (one,) = log_of(text((1, 20.0), (2, 8.05), (3, 16.0), rest=rest)).incidents
    assert [(h.pid, h.died) for h in holders(one, None)] == [(1, False), (3, False), (2, True)]


def test_what_the_driver_does_not_know():
    """WDDM: 2^64 - 1 bytes stand for what is not told."""
    (one,) = log_of(
        text(rest="Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use.")
    ).incidents
    (own,) = holders(one, None)
    assert (own.died, own.held, own.needed) == (True, None, None)


def test_ranks_are_one_failure_and_repeats_none():
    own = "Including non-PyTorch memory, this process has 40.00 GiB memory in use."
    lines = [f"[rank{i}]: {text(gpu=i, rest=own)}" for i in range(4)]
    log = log_of(*lines, lines[0], "restarted", f"[rank0]: {text(gpu=0, rest=own.replace('40', '41'))}")
    found = failures(log.incidents)
    assert [[one.gpu for one in failure] for failure in found] == [[0, 1, 2, 3], [0]]


def test_a_killed_process_counts_only_where_nothing_else_tells():
    killed = "failed (exitcode: -9) local_rank: 3"
    assert [one.kind for one in log_of(killed).incidents] == ["killed"]
    assert [one.kind for one in log_of(SHORT, killed).incidents] == ["torch"]


LENGTH = (
    "To serve at least one request with the model's max seq len (131072), 1.45 GiB KV cache is needed, which "
    "is larger than the available KV cache memory (0.2 GiB)."
)
OLD_LENGTH = (
    "The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV "
    "cache (9120)."
)
FREE = (
    "Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 71.24 GiB)."
)
CUBLAS = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
WEIGHTS = "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.1"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("RuntimeError: CUDA error: out of memory", "cuda"),
        ("RuntimeError: CUDA out of memory.", "cuda"),
        (CUBLAS, "cuda"),
        (WEIGHTS, "sglang-pool"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", "host"),
        ("srun: error: node7: task 0: Out Of Memory", "host"),
        ("[ 91.2] Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:2kB", "host"),
        (OLD_LENGTH, "vllm-length"),
        (LENGTH, "vllm-length"),
        (FREE, "vllm-free"),
        ("Tried to allocate 20.00 MiB (GPU 0; 1.96 GiB total capacity; 2.88 MiB free;", "torch"),
    ],
)
def test_kinds(line, kind):
    assert [one.kind for one in log_of("step 1", line, "done").incidents] == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "GPU memory: 12.1 GiB in use, out of 44.4",
        "if you run out of memory, lower the batch size",
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True for better memory management",
        "killed 3 stale workers",
        "exit code 1",
        "tokens: 137, exit status 0",
    ],
)
def test_what_is_no_failure(line):
    assert log_of("step 1", line, "done").incidents == ()


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (["    loss.backward()", '  File "/x/functional.py", line 3, in cross_entropy'], "backward"),
        (["    self.optimizer.step()", "    loss = closure()"], "optimizer step"),
        (["    loss = F.cross_entropy(logits, labels)"], "loss"),
        (['  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 9, in capture'], "graph capture"),
        (["    model = AutoModel.from_pretrained(path)"], "loading"),
        (['  File "/x/memory_pool.py", line 2, in _create_buffers'], "KV cache allocation"),
        (["    x = foo(y)"], None),
        ([], None),
    ],
)  # fmt: skip
def test_moments(frames, expected):
    assert moment([frame.strip() for frame in frames])[0] == expected


def test_the_last_traceback_counts():
    lines = [
        "Traceback (most recent call last):",
        "loss.backward()",
        "Traceback (most recent call last):",
        "foo()",
        "^^^",
    ]
    assert traceback_before(lines) == ["foo()"]
    assert engine_of(['File "/venv/vllm/v1/worker/gpu_worker.py", line 2, in load']) == "vllm"


def test_a_gpu_is_known_by_its_memory():
    assert (
        gpu_of(round(79.10 * GIB), "a.log:1", ["GPU 0: NVIDIA H100 80GB HBM3 (UUID: x)"])[0].name
        == "h100-sxm"
    )
    target, why = gpu_of(round(44.42 * GIB), "a.log:1")
    assert target.facts["gpu.vram"] == (round(44.42 * GIB), "measured in a.log:1")
    assert "a40" in why
    assert "choose one with --gpu" in why
    target, why = gpu_of(round(44.42 * GIB), "a.log:1", ["| 0  NVIDIA A40   Off |"])
    assert (target.name, target.gpu) == ("a40", "NVIDIA A40")
    target, why = gpu_of(round(3.33 * GIB), "a.log:1")
    assert "no GPU of the catalogue has 3.33 GiB usable" in why


def test_several_logs_and_no_log(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.log").write_text("nothing here\n")
    Path("b.log").write_text(SHORT)
    assert main(["diagnose", "a.log", "b.log"]) == 0
    assert "b.log:1" in capsys.readouterr().out
    assert main(["diagnose", "a.log"]) == 1
    assert main(["diagnose", "c.log"]) == 2
    assert main(["diagnose"]) == 2
    assert "cannot read the log" in capsys.readouterr().err


@pytest.mark.skipif(not SHARED, reason="the collection of cases is not here")
def test_texts_of_the_collection():
    """Where a case quotes an out-of-memory text, it is read."""
    import re

    import yaml

    path = Path(str(SHARED)) / "facts" / "cases.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open(encoding="utf-8") as stream:
        cases = yaml.load(stream, loader)
    cases = cases["cases"] if isinstance(cases, dict) else cases
    titles = [str((case.get("source") or {}).get("title")) for case in cases]
    wanted = re.compile(
        r"(CUDA|HIP) out of memory\. |No available memory for the cache blocks|increase --mem-fraction-static"
    )
    quoted = [title for title in titles if wanted.search(title)]
    assert quoted
    assert [title for title in quoted if not log_of(title).incidents] == []
