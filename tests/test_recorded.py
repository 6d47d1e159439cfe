"""Records of runs start nothing."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.document.recorded import is_recorded

_SETTINGS = "model: Qwen/Qwen3-8B\ngpu_memory_utilization: 0.9\n"


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        (_SETTINGS, False),
        (_SETTINGS + "tokens_per_sec: 81.74\n", True),
        (_SETTINGS + "points:\n- {batch: 1, wall_s: 29.544}\n", True),
        (_SETTINGS + "eval: {eval_samples_per_second: 12.25}\n", True),
        (_SETTINGS + "_wandb: {value: {}}\n", True),
        (_SETTINGS + "max_tokens_per_second: 100\n", False),  # somebody asks for it
        (_SETTINGS + "throughput: true\n", False),
        ("- 1\n", False),
        (
            "".join(
                f"{key}: the value of this setting in a run\n" for key in ("lr", "bf16", "seed", "dtype")
            ),
            True,
        ),
        ("".join(f"{key}: 学習率です\n" for key in ("lr", "bf16", "seed", "dtype")), True),
        ("system: you are a helpful assistant of a shop\nlr: 1e-5\nbf16: true\nseed: 1\n", False),
    ],
)
def test_what_was_measured_is_a_record(text, recorded):
    assert is_recorded(read_text(text, "c.yaml").documents[0].root) is recorded
