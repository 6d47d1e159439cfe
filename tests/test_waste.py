"""What the hints about waste add up is never less than what the memory model says of the other setting."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.errors import UsageError
from cfglint.hardware.target import parse_target
from cfglint.lang.values import parts

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

MODELS = (
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-8B",
    "google/gemma-2-2b",
    "Qwen/Qwen3-30B-A3B",
)
SHAPES = (
    "micro_batch_size: 1\nseq_len: 512\n",
    "micro_batch_size: 4\nseq_len: 4096\n",
    "max_tokens_per_microbatch: 16384\npacking: true\nseq_len: 8192\n",
)
STATES = (
    "num_gpus: 1\n",
    "num_gpus: 8\ndp_shard: 8\n",
    "num_gpus: 8\nzero_stage: 2\n",
    "num_gpus: 8\nzero_stage: 3\n",
    "num_gpus: 2\n",
)
KINDS = (
    "param_dtype: bf16\n",
    "param_dtype: fp32\n",
    "dtype: fp32\nattn_impl: sdpa\n",
    "lora_rank: 16\nlora_targets: [all-linear]\nlora_dtype: fp32\n",
    "compile: true\nfused_loss: liger\n",
    "attn_impl: eager\n",
)


def _values(pack: Pack, text: str, overrides: tuple[str, ...] = ()) -> Values:
    run = Run(pack, [parse_target("h100-sxm:8")], overrides=overrides)
    (subject,) = run.subjects(read_text("cfglint: facts\n" + text, "c.yaml"), judge_broken=False)
    return run.judged(subject)[0].values


def _most(value: object) -> float:
    _, high, needs = parts(value)
    assert not needs
    return high


@pytest.mark.parametrize("model", MODELS)
def test_checkpointing_saves_at_most_what_is_added(pack: Pack, model: str) -> None:
    for shape, states, kind in product(SHAPES, STATES, KINDS):
        text = f"model_path: {model}\n{shape}{states}{kind}gradient_checkpointing: full\n"
        bound = _most(_values(pack, text)["spare.unchecked"])
        need = _most(_values(pack, text, ("gradient_checkpointing=none",))["need.total"])
        assert need <= bound, text


@pytest.mark.parametrize("model", MODELS)
def test_stage_3_saves_at_most_what_is_added(pack: Pack, model: str) -> None:
    for shape, kind, checkpointing in product(SHAPES, KINDS, ("none", "full")):
        text = f"model_path: {model}\n{shape}num_gpus: 8\nzero_stage: 3\n{kind}"
        text += f"gradient_checkpointing: {checkpointing}\n"
        bound = _most(_values(pack, text)["spare.whole"])
        need = _most(_values(pack, text, ("zero_stage=2",))["need.total"])
        assert need <= bound, text


@pytest.mark.parametrize("model", MODELS)
def test_twice_the_micro_batch_takes_at_most_what_is_added(pack: Pack, model: str) -> None:
    for states, kind, checkpointing in product(STATES, KINDS, ("none", "full")):
        head = f"model_path: {model}\nseq_len: 2048\n{states}{kind}gradient_checkpointing: {checkpointing}\n"
        bound = _most(_values(pack, head + "micro_batch_size: 2\ngrad_accum: 8\n")["spare.twice"])
        need = _most(_values(pack, head + "micro_batch_size: 4\ngrad_accum: 4\n")["need.total"])
        assert need <= bound, head


def test_observations_are_facts_of_every_framework(pack: Pack) -> None:
    values = _values(pack, "env_n_envs: 8\n", ("observed.gpu_util=8%", "observed.fps=4500", "env_n_envs=16"))
    assert (values["observed.gpu_util"], values["observed.fps"], values["env_n_envs"]) == (0.08, 4500, 16)
    run = Run(pack, overrides=["observed.gpu_util=0.5"])
    text = "Pong-v5:\n  policy: CnnPolicy\n  n_timesteps: 10\n"
    (subject,) = run.subjects(read_text(text, "ppo.yml"), judge_broken=False)
    assert run.judged(subject)[0].values["observed.gpu_util"] == 0.5


def test_a_facts_file_states_observations(pack: Pack) -> None:
    assert _values(pack, "observed: {gpu_util: 12 %, fps: 30000}\n")["observed.gpu_util"] == 0.12


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("observed.gpu_utl=3%", "did you mean 'observed.gpu_util'"),
        ("observed.speed=3", "did you mean 'observed.fps', "),
        ("observed.gpu_util=8", "a share, such as 8% or 0.08"),
        ("observed.fps=fast", "a number, such as 4500"),
        ("observed.fps=[1]", "a number, such as 4500"),
    ],
)
def test_an_observation_that_is_none(pack: Pack, override: str, said: str) -> None:
    run = Run(pack, overrides=[override], typed=[override])
    with pytest.raises(UsageError) as caught:
        list(run.subjects(read_text("cfglint: facts\nseq_len: 512\n", "job.yaml"), judge_broken=False))
    assert said in str(caught.value)
