"""The time of a step against published throughputs: each lies in the range that the rules give."""

from types import SimpleNamespace

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import Interval, Unknown, parts
from cfglint.repair.price import points

# IST-DASLab/llmq benchmarks/4090x1.md and 4090x4.md @7f895bd, LLaMA-Factory's tokens per second; sequences of
# 1,024 tokens, 512 of them to a step (504 for 14B). What is recomputed is not told; the larger ones offload,
# which the rules do not time.
LLAMA_FACTORY = [
    ("Qwen/Qwen2.5-0.5B", 1, 0, 128, 4, 30183),
    ("Qwen/Qwen2.5-1.5B", 1, 0, 32, 16, 9419),
    ("Qwen/Qwen2.5-0.5B", 4, 0, 128, 1, 122784),
    ("Qwen/Qwen2.5-1.5B", 4, 0, 32, 4, 40960),
    ("Qwen/Qwen2.5-3B", 4, 3, 64, 2, 18480),
    ("Qwen/Qwen2.5-7B", 4, 3, 32, 4, 6929),
    ("Qwen/Qwen2.5-14B", 4, 3, 21, 6, 2630),
]
# pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md: Llama 3.1 8B, FSDP, micro-batch 2, selective
# checkpointing, tokens per second and GPU, eager and compiled.
TORCHTITAN = [(8, 5762), (8, 6667), (128, 5605), (128, 6514)]


def step(pack, target, **facts):
    text = "cfglint: facts\n" + "".join(f"{name}: {value}\n" for name, value in facts.items())
    run = Run(pack, [parse_target(target)])
    (subject,) = run.subjects(read_text(text, "c.yaml"), judge_broken=False)
    given = {name: fact[0] for name, fact in run.targets[0].facts.items()}
    values = values_for(subject, given)
    low, high, needs = parts(values["step.time"])
    assert not needs
    return low, high, values["effective_batch_size"] * facts["seq_len"]


@pytest.mark.parametrize(("model", "gpus", "stage", "micro", "accum", "rate"), LLAMA_FACTORY)
def test_llama_factory_on_rtx_4090(pack, model, gpus, stage, micro, accum, rate):
    low, high, tokens = step(
        pack,
        "rtx-4090",
        model_path=model,
        num_gpus=gpus,
        zero_stage=stage,
        micro_batch_size=micro,
        grad_accum=accum,
        seq_len=1024,
        gradient_checkpointing="selective",
    )
    assert low <= tokens / rate <= high
    assert high / low < 6


@pytest.mark.parametrize(("gpus", "rate"), TORCHTITAN)
def test_torchtitan_on_h100(pack, gpus, rate):
    low, high, tokens = step(
        pack,
        "h100-sxm",
        model_path="meta-llama/Llama-3.1-8B",
        num_gpus=gpus,
        dp_shard=gpus,
        micro_batch_size=2,
        grad_accum=1,
        seq_len=8192,
        gradient_checkpointing="selective",
    )
    assert low <= tokens / (rate * gpus) <= high


class _Trials:
    """What a move makes of a step's work."""

    def __init__(self, after):
        self.after = after

    def values(self, judged, facts):
        return {"step.work": self.after}


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (Interval(2, 220), 0.5),  # 10 % at most
        (Interval(2, 203), 0.02),  # as good as nothing: not what the knob itself says of it
        (Interval(2, 200), 4.0),  # the time knows nothing of it
        (Unknown(), 4.0),
    ],
)
def test_what_hardly_takes_time_is_no_dearer_than_what_takes_some(after, told):
    judged = SimpleNamespace(values={"step.work": Interval(2, 200)})
    assert points(_Trials(after), judged, {}, 4.0) == pytest.approx(told)
