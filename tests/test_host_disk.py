"""What a job needs of its machines beside GPUs: host memory (need.host) and disk (need.disk)."""

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import Interval, needs_of

GIB = 2**30
PARAMS = 7_615_616_512  # of Qwen2.5-7B
FACTS = {
    "cfglint": "facts", "model_path": "Qwen/Qwen2.5-7B-Instruct", "task": "sft", "num_gpus": 8, "dp_shard": 8,
    "micro_batch_size": 1, "seq_len": 2048, "max_steps": 1000, "save_every": 250, "dataloader_workers": 0,
}  # fmt: skip


def values(text, framework=None, target="h100-sxm:8", name="job.yaml"):
    run = Run(load())
    document = read_text(text, name).documents[0]
    given = {fact: value for fact, (value, _) in parse_target(target).facts.items()}
    return values_for(run.subject_of(document, framework or run.recognise(document)), given)


def facts(**more):
    return values("\n".join(f"{k}: {v}" for k, v in {**FACTS, **more}.items()) + "\n", "facts")


def ends(value):
    assert not needs_of(value)
    return (value.lo, value.hi) if isinstance(value, Interval) else (value, value)


# ── disk ──
def test_a_checkpoint_has_weights_and_moments():
    full = facts()
    assert ends(full["checkpoint.size"]) == (PARAMS * 6, PARAMS * 6)  # bf16, and two moments in bf16
    assert ends(full["checkpoints.kept"]) == (4, 4)
    low, high = ends(full["need.disk"])
    assert (low, high) == (4 * PARAMS * 6, 4 * PARAMS * 6 + PARAMS * 2)
    master = facts(master_weights="true")
    assert ends(master["checkpoint.size"]) == (PARAMS * 14, PARAMS * 14)
    assert ends(facts(save_optimizer="false")["checkpoint.size"]) == (PARAMS * 2, PARAMS * 2)
    paged = facts(optimizer="paged_adamw_8bit")
    assert ends(paged["checkpoint.size"])[0] == pytest.approx(PARAMS * (2 + 2 * (1 + 4 / 256)))


def test_of_adapters_the_base_is_not_saved():
    assert ends(facts(lora_rank=16, lora_targets="[q_proj, v_proj]")["checkpoint.size"])[1] < 0.1 * GIB


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({"save_limit": 2}, (2, 3)),  # the oldest goes when the next one is there
        ({"save_limit": 9}, (4, 4)),
        ({"save_every": 0.1}, (10, 10)),
        ({"save_every": "null"}, (1, 10)),  # an estimate
        ({"save_every": "null", "save_epochs": 1, "num_epochs": 3}, (3, 3)),
    ],
)
def test_how_many_are_kept(more, kept):
    assert ends(facts(**more)["checkpoints.kept"]) == kept


def test_a_run_that_saves_nothing_has_its_last_weights():
    assert ends(facts(saves="false")["need.disk"]) == (0, PARAMS * 2)


LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: a
template: qwen
cutoff_len: 2048
max_steps: 1000
output_dir: out
"""
AXOLOTL = "base_model: Qwen/Qwen2.5-7B-Instruct\nsequence_len: 2048\nmicro_batch_size: 1\nnum_epochs: 3\n"
VERL = """\
data: {{train_files: a, train_batch_size: 64, max_prompt_length: 512, max_response_length: 512}}
actor_rollout_ref: {{model: {{path: Qwen/Qwen2.5-7B-Instruct}}, rollout: {{name: vllm}}}}
algorithm: {{adv_estimator: grpo}}
trainer: {{n_gpus_per_node: 8, nnodes: 1, total_training_steps: 100{}}}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LLAMAFACTORY, (True, 500, 0, True)),
        (
            LLAMAFACTORY + "save_steps: 100\nsave_total_limit: 2\nsave_only_model: true\n",
            (True, 100, 2, False),
        ),
        (LLAMAFACTORY + 'save_strategy: "no"\n', (False, None, 0, True)),
        (LLAMAFACTORY + "save_strategy: no\n", (False, None, 0, True)),
        (AXOLOTL, (True, None, 4, True)),
        (AXOLOTL + "save_steps: 100\nsave_total_limit: 2\n", (True, 100, 2, True)),
        (VERL.format(""), (False, None, 0, True)),
        (VERL.format(", save_freq: 20, max_actor_ckpt_to_keep: 1"), (True, 20, 1, True)),
    ],
)
def test_what_frameworks_save(text, told):
    found = values(text)
    names = ("saves", "save_every", "save_limit", "save_optimizer")
    assert tuple(None if needs_of(found[name]) else found[name] for name in names) == told


# ── host ──
def test_a_plain_job_has_its_processes_and_loads_its_weights():
    low, high = ends(facts(saves="false")["need.host"])
    assert low == 8 * 1.5 * GIB
    assert high == pytest.approx(8 * 4 * GIB + 8 * PARAMS * 2)
    assert ends(facts(saves="false", load_once="true")["need.host"])[1] == pytest.approx(
        8 * 4 * GIB + PARAMS * 2
    )


def test_offloaded_states_are_pinned_on_their_machine():
    offloaded = facts(offload_optimizer="true", offload_params="true", saves="false")
    low, high = ends(offloaded["host.offloaded"])
    assert low == pytest.approx(PARAMS * (2 + 2 + 4))  # weights, gradients, moments: of eight ranks together
    assert high == pytest.approx(1.5 * low)
    two = {"num_gpus": 16, "dp_shard": 16, "offload_optimizer": "true", "offload_params": "true"}
    machine = "\n".join(f"{k}: {v}" for k, v in {**FACTS, **two}.items()) + "\n"
    assert ends(values(machine, "facts", "h100-sxm:8x2")["host.offloaded"])[0] == pytest.approx(low / 2)


def test_a_gathered_checkpoint_and_workers_take_host_memory():
    plain, gathered = facts(), facts(save_gathered="true")
    assert ends(plain["host.checkpoint"])[0] == 0
    assert ends(gathered["host.checkpoint"])[0] == PARAMS * 2
    assert ends(facts(dataloader_workers=4)["host.workers"]) == pytest.approx(
        (8 * 4 * 0.1 * GIB, 8 * 4 * GIB)
    )


def test_an_engine_that_sleeps_may_keep_its_weights():
    engine = {
        "task": "grpo", "rollout_engine": "vllm", "colocated": "true", "generates": "true",
        "mem_fraction": 0.5, "max_prompt_len": 512, "max_new_tokens": 512,
        "rollout_batch_size": 64, "kl_coef": 0,
    }  # fmt: skip
    asleep = ends(facts(**engine, sleep_mode="true")["host.engine"])
    assert asleep[0] == 0
    assert asleep[1] == pytest.approx(8 * PARAMS * 2, rel=0.05)
    swap = {"engine.swap": "4 GiB"}
    assert ends(facts(**engine, **swap)["host.engine"]) == (8 * 4 * GIB, 8 * 4 * GIB)


def test_what_leaves_the_gpu_between_phases_is_on_the_host():
    rl = {
        "task": "grpo", "rollout_engine": "vllm", "colocated": "true", "generates": "true", "saves": "false",
        "mem_fraction": 0.5, "max_prompt_len": 512, "max_new_tokens": 512, "rollout_batch_size": 64,
        "kl_coef": 0,
    }  # fmt: skip
    stays, leaves = facts(**rl, train_offload="false"), facts(**rl, train_offload="true")
    assert ends(stays["host.offloaded"]) == (0, 0)
    assert ends(leaves["host.offloaded"])[0] == pytest.approx(PARAMS * (2 + 4))  # weights and moments
    assert ends(leaves["need.host"])[0] == pytest.approx(ends(stays["need.host"])[0] + PARAMS * 6)


VERL = """
algorithm: {adv_estimator: gae}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-7B-Instruct}
  actor: {ppo_mini_batch_size: 64, ppo_micro_batch_size_per_gpu: 1, fsdp_config: {param_offload: PARAM,
      optimizer_offload: false}}
  rollout: {name: vllm, tensor_model_parallel_size: 1, gpu_memory_utilization: 0.4}
critic: {model: {path: Qwen/Qwen2.5-7B-Instruct, fsdp_config: {param_offload: false,
    optimizer_offload: CRITIC}}}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""


@pytest.mark.parametrize(
    ("param", "critic", "per_param"), [(False, False, 0), (True, False, 4), (False, True, 8)]
)
def test_verl_sends_shards_of_policy_and_critic(param, critic, per_param):
    text = VERL.replace("PARAM", str(param).lower()).replace("CRITIC", str(critic).lower())
    turns = values(text)["host.turns"]
    assert ends(turns)[0] == pytest.approx(PARAMS * per_param / 8, rel=0.1)


def test_a_machine_that_is_too_small_hides_no_gpu_that_is():
    """A process takes more than the host has, and its states more than the GPU: each has its finding."""
    run = Run(load(), [parse_target("rtx-3060:1")], given={"host.ram": (GIB, "test")})
    text = "cfglint: facts\nmodel_path: Qwen/Qwen2.5-7B-Instruct\ntask: sft\nnum_gpus: 1\n"
    run.add(read_text(text, "job.yaml"))
    assert {f.code for f in run.report.findings if f.level == "error"} == {"MEM105", "MEM109"}
    assert [job.memory.verdict for job in run.report.jobs] == ["oom"]
