"""The files of SGLang's and vLLM's servers: which are recognised, and what their keys come to."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

VLLM = "model: Qwen/Qwen2.5-7B-Instruct\nmax-model-len: 8192\n"
SGLANG = "model-path: Qwen/Qwen2.5-7B-Instruct\nmem-fraction-static: 0.85\n"
TABLE = [
    (
        "vllm",
        VLLM,
        {
            "framework.name": "vllm",
            "task": "inference",
            "trains": False,
            "generates": True,
            "colocated": False,
            "rollout_engine": "vllm",
            "model_path": "Qwen/Qwen2.5-7B-Instruct",
            "mem_fraction": 0.92,
            "context_length": 8192,
            "rollout_tp": 1,
            "rollout_pp": 1,
            "rollout_dp": 1,
            "num_gpus": 1,
            "max_running_requests": 1024,
            "max_batched_tokens": 8192,
            "enforce_eager": False,
            "rollout_dtype": "auto",
            "kv_cache_dtype": "auto",
            "quantization": "none",
            "serve.chunked": True,
        },
    ),
    (
        "vllm sizes",
        VLLM + "tensor-parallel-size: 4\npipeline-parallel-size: 2\ndata-parallel-size: 2\n",
        {"rollout_tp": 4, "rollout_pp": 2, "rollout_dp": 2, "num_gpus": 16},
    ),
    (
        "vllm underscores",
        "model: x\nmax_model_len: 4096\ngpu_memory_utilization: 0.5\nmax_num_seqs: 8\nenforce_eager: true\n",
        {"mem_fraction": 0.5, "context_length": 4096, "max_running_requests": 8, "enforce_eager": True},
    ),
    (
        "vllm engine",
        VLLM + "dtype: half\nkv-cache-dtype: fp8\nquantization: fp8\n"
        "max-num-batched-tokens: 2048\ncpu-offload-gb: 4\n",
        {
            "rollout_dtype": "fp16",
            "kv_cache_dtype": "fp8",
            "quantization": "8",
            "max_batched_tokens": 2048,
            "rollout_cpu_offload": 4e9,
        },
    ),
    (
        "vllm counts bytes",
        VLLM + "kv-cache-memory-bytes: 8589934592\ngpu-memory-utilization: 0.1\n",
        {"mem_fraction": None},
    ),
    ("vllm unknown method", VLLM + "quantization: torchao\n", {"quantization": None}),
    (
        "sglang",
        SGLANG,
        {
            "framework.name": "sglang",
            "task": "inference",
            "trains": False,
            "rollout_engine": "sglang",
            "model_path": "Qwen/Qwen2.5-7B-Instruct",
            "mem_fraction": 0.85,
            "mem_fraction_auto": False,
            "context_length": None,
            "max_running_requests": None,
            "prefill_chunk": 8192,
            "max_batched_tokens": 16384,
            "num_gpus": 1,
            "enforce_eager": False,
            "attention_backend": "auto",
        },
    ),
    (
        "sglang leaves the share to itself",
        "model-path: Qwen/Qwen2.5-7B-Instruct\ntp-size: 2\n",
        {"mem_fraction_auto": True, "rollout_tp": 2, "num_gpus": 2},
    ),
    (
        "sglang sizes",
        SGLANG + "tensor-parallel-size: 4\npp-size: 2\ndp-size: 2\nnnodes: 2\n",
        {"rollout_tp": 4, "rollout_pp": 2, "rollout_dp": 2, "num_gpus": 16, "num_nodes": 2},
    ),
    (
        "sglang's further flags",
        SGLANG + "max-total-tokens: 20000\nep-size: 2\nenable-memory-saver: true\ndist-timeout: 600\n",
        {"kv_pool_tokens": 20000, "ep": 2, "sleep_mode": True, "comm_timeout": 600},
    ),
    ("vllm asleep", VLLM + "enable_sleep_mode: true\n", {"sleep_mode": True}),
    (
        "sglang data parallel attention",
        SGLANG + "tp-size: 8\ndp-size: 8\nenable-dp-attention: true\n",
        {"num_gpus": 8, "serve.replicas": 1},
    ),
    (
        "sglang engine",
        SGLANG + "chunked-prefill-size: -1\ncuda-graph-max-bs: 32\nattention-backend: fa3\ndtype: float16\n",
        {"prefill_chunk": -1, "graph_max_batch": 32, "attention_backend": "fa3", "rollout_dtype": "fp16"},
    ),
]


def _subjects(pack, text: str):
    run = Run(pack, [parse_target("h100-sxm:16")])
    return run, run.subjects(read(text.encode(), "x.yaml"), judge_broken=False)


@pytest.mark.parametrize(("text", "facts"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_binding(pack, text: str, facts: dict[str, object]) -> None:
    run, (subject,) = _subjects(pack, text)
    values = run.judged(subject)[0].values
    assert {name: point(values[name]) for name in facts} == facts


def test_the_share_means_another_thing(pack) -> None:
    """Of the same share, vLLM's holds everything; SGLang's graphs and prefill steps come on top."""
    held = {}
    for name, text in (("vllm", VLLM + "gpu-memory-utilization: 0.85\n"), ("sglang", SGLANG)):
        run, (subject,) = _subjects(pack, text)
        values = run.judged(subject)[0].values
        held[name] = (
            values["engine.memory"].lo / values["gpu.vram"],
            values["engine.memory"].hi / values["gpu.vram"],
        )
    assert held["vllm"][0] <= 0.85 <= held["vllm"][1] < 0.87
    assert held["sglang"][0] > 0.855


def test_a_limit_in_tokens_holds_where_the_memory_has_room_for_more(pack):
    def engine(more):
        run, (subject,) = _subjects(pack, SGLANG + more)
        values = run.judged(subject)[0].values
        return values["engine.memory"], values["engine.pool"]

    memory, pool = engine("")
    small, kept = engine("max-total-tokens: 20000\n")
    # Qwen2.5-7B keeps 28 layers x 4 heads x 128 numbers x 2 (key, value) x 2 bytes a token.
    assert kept == 20000 * 28 * 4 * 128 * 2 * 2
    assert small.lo == pytest.approx(memory.lo - (pool.hi - kept), rel=0.02)
    assert small.hi < memory.lo
    large, room = engine("max-total-tokens: 100000000\n")
    assert (large.lo, large.hi, room.lo, room.hi) == (memory.lo, memory.hi, pool.lo, pool.hi)


@pytest.mark.parametrize(
    "text",
    [
        "model: x\nhost: y\n",
        "model_name_or_path: x\nmax_model_len: 4\n",
        "gpu_memory_utilization: 0.5\nmax_model_len: null\nname: vllm\n",
        "actor:\n  path: x\nsglang:\n  mem-fraction-static: 0.8\n",
    ],
)
def test_others_are_not_taken(pack, text: str) -> None:
    assert not [s for s in _subjects(pack, text)[1] if s.framework in ("vllm", "sglang")]


NVML = {"h100-sxm": 81559, "rtx-4090": 24564}  # MiB, what nvidia-smi says
SHARES = [
    # 0.5.23: 512 MiB, 1.5 a token of a chunk, 128 a rank, 2 a graph's batch, 8 for each prefill graph
    ("h100-sxm", "", 512 + 8192 * 1.5 + 128 + 256 * 2 + 58 * 8),
    ("h100-sxm", "tp-size: 4\n", 512 + 8192 * 1.5 + 512 + 512 * 2 + 58 * 8),
    ("rtx-4090", "", 512 + 4096 * 1.5 + 128 + 48 * 2 + 50 * 8),
    ("rtx-4090", "cuda-graph-max-bs: 8\n", 512 + 4096 * 1.5 + 128 + 8 * 2 + 50 * 8),
    ("rtx-4090", "disable-cuda-graph: true\n", 512 + 4096 * 1.5 + 128),
    ("rtx-4090", "chunked-prefill-size: 2048\n", 512 + 2048 * 1.5 + 128 + 48 * 2 + 42 * 8),
    ("rtx-4090", "chunked-prefill-size: -1\n", 512 + 16384 * 1.5 + 128 + 48 * 2 + 74 * 8),
    # ten GiB at least, above 60
    ("h100-sxm", "chunked-prefill-size: 2048\n", 10 * 1024),
]


@pytest.mark.parametrize(("gpu", "more", "kept"), SHARES)
def test_what_sglang_takes_where_no_fraction_is_said(pack, gpu: str, more: str, kept: float) -> None:
    run = Run(pack, [parse_target(f"{gpu}:8")])
    text = f"model-path: Qwen/Qwen2.5-7B-Instruct\ncontext-length: 8192\nschedule-policy: lpm\n{more}"
    (subject,) = run.subjects(read(text.encode(), "x.yaml"), judge_broken=False)
    told = run.judged(subject)[0].values["engine.fraction"]
    assert told == pytest.approx((1 - kept / NVML[gpu]), abs=0.001)


def test_a_vision_tower_lowers_the_share_and_has_no_prefill_graphs(pack):
    text = "model-path: Qwen/Qwen2.5-VL-7B-Instruct\ncontext-length: 8192\nschedule-policy: lpm\n"
    run, (subject,) = _subjects(pack, text)
    told = run.judged(subject)[0].values["engine.fraction"]
    plain = 1 - (512 + 8192 * 1.5 + 128 + 256 * 2) / NVML["h100-sxm"]
    # 1280 wide, of 32 layers (24 where none are found): 0.95 * (1 - 0.1 * (layers / 24 * 1280² / 1024² - 1))
    assert told.hi == pytest.approx(plain * 0.95 * (1.1 - 0.1 * 1.5625), rel=1e-6)
    assert told.lo == pytest.approx(plain * 0.95 * (1.1 - 0.1 * 1.5625 * 32 / 24), rel=1e-6)


def test_a_step_holds_no_more_than_all_requests(pack):
    run, (subject,) = _subjects(
        pack, "model: Qwen/Qwen2.5-7B-Instruct\nmax-model-len: 1024\nmax-num-seqs: 4\n"
    )
    assert run.judged(subject)[0].values["max_batched_tokens"] == 4096


RELEASES = [
    # a server's release is its engine's: A100s counted as large before 0.9, and V0 ran 256 requests
    ("vllm", (0, 8, 5), "a100-80gb-sxm", "max_batched_tokens", 8192),
    ("vllm", (0, 9, 1), "a100-80gb-sxm", "max_batched_tokens", 2048),
    ("vllm", (0, 7, 3), "h100-sxm", "max_running_requests", 256),
    ("vllm", (0, 10, 2), "h100-sxm", "mem_fraction", 0.9),
    ("vllm", None, "h100-sxm", "mem_fraction", 0.92),
    ("sglang", (0, 4, 6), "rtx-4090", "engine.fraction", 0.88),
]


@pytest.mark.parametrize(("framework", "version", "gpu", "name", "value"), RELEASES)
def test_defaults_are_those_of_the_release(pack, framework, version, gpu: str, name: str, value) -> None:
    run = Run(pack, [parse_target(f"{gpu}:1")])
    key = "model" if framework == "vllm" else "model-path"
    text = (
        f"{key}: Qwen/Qwen2.5-7B-Instruct\n{'max-model-len' if key == 'model' else 'context-length'}: 8192\n"
    )
    document = read(text.encode(), "x.yaml").documents[0]
    subject = run.subject_of(document, framework, version)
    assert point(run.judged(subject)[0].values[name]) == value
