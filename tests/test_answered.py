"""Verdicts on what a job leaves open: lengths that nothing cuts, a release's defaults, frozen weights."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfglint.cli import main

RECIPE = """\
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: LIMIT}
dataset: {_component_: torchtune.datasets.DATA, packed: false}
optimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit, lr: 2e-5}
optimizer_in_bwd: true
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
gradient_accumulation_steps: 1
enable_activation_checkpointing: true
dtype: bf16
"""
ALPACA, CHATS = "alpaca_cleaned_dataset", "chat_dataset"
FLAGS = ("--format", "json", "--isolated", "--no-detect", "--fail-on", "never")
SHEET = "cfglint: lengths\ndata: d.jsonl\nlength: {p50: 110, p99: 512, max: 1034}\n"
PROGRAM = """\
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", max_length=1024, per_device_train_batch_size=1KEYS)
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data).train()
"""
TUNE = """\
model_name_or_path: meta-llama/Meta-Llama-3-8B
stage: sft
do_train: true
finetuning_type: full
cutoff_len: 1024
bf16: true
pure_bf16: true
deepspeed: examples/deepspeed/ds_z2_config.json
per_device_train_batch_size: 1
"""


@pytest.fixture
def job(tmp_path, monkeypatch, capsys):
    """Return a function that writes files and returns the one job of the last."""
    monkeypatch.chdir(tmp_path)

    def judged(*files: tuple[str, str], gpu: str = "a100-80gb-sxm:8", options: tuple[str, ...] = ()) -> Any:
        for name, text in files:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        main(["check", files[-1][0], "--gpu", gpu, *FLAGS, *options])
        told = json.loads(capsys.readouterr().out)
        (found,) = told["jobs"]
        return {**found, "errors": [f["code"] for f in told["findings"] if f["level"] == "error"]}

    return judged


def recipe(data: str, limit: str = "null") -> tuple[str, str]:
    return "r.yaml", RECIPE.replace("LIMIT", limit).replace("DATA", data)


def test_samples_that_nothing_cuts_have_a_verdict_which_says_so(job):
    found = job(recipe(CHATS), gpu="a100-80gb-sxm:1")
    assert found["verdict"] == "fits"
    assert "--lengths" in found["ask"]


def test_a_known_data_set_is_no_longer_than_its_longest_sample(job):
    known, other = job(recipe(ALPACA)), job(recipe(CHATS))
    assert known["need_gib"][0] >= other["need_gib"][0]
    assert known["need_gib"][1] < other["need_gib"][1]
    assert known["need_gib"][1] <= job(recipe(ALPACA, "1304"))["need_gib"][1] + 0.1


def test_traces_of_reasoning_are_longer_than_chats(job):
    name, text = recipe(CHATS)
    traces = text.replace("packed: false", "source: open-thoughts/OpenThoughts-114k, packed: false")
    long, other = job((name, traces), gpu="a100-80gb-sxm:1"), job((name, text), gpu="a100-80gb-sxm:1")
    assert long["need_gib"][0] > other["need_gib"][0]
    assert long["need_gib"][1] > other["need_gib"][1]


def test_measured_lengths_take_the_place_of_what_is_assumed(job):
    found = job(("s.yaml", SHEET), recipe(CHATS), options=("--lengths", "s.yaml"))
    assert found["ask"] is None
    assert found["need_gib"][1] < job(recipe(CHATS))["need_gib"][1]


def test_what_fits_with_short_samples_is_tight_and_no_error(job):
    found = job(recipe(CHATS), gpu="rtx-4090:1")
    assert found["verdict"] == "tight"
    assert found["need_gib"][0] < found["capacity_gib"] < found["need_gib"][1]
    assert not found["errors"]


def test_what_does_not_fit_however_short_the_samples_are_is_out_of_memory(job):
    assert job(recipe(CHATS), gpu="rtx-4070:1")["verdict"] == "oom"


def test_fake_quantization_takes_more_than_training_without_it(job):
    quantizer = "quantizer: {_component_: torchtune.training.quantization.Int8DynActInt4WeightQATQuantizer}\n"
    name, text = recipe(ALPACA)
    text = text.replace("enable_activation_checkpointing: true", "enable_activation_checkpointing: false")
    assert job((name, text + quantizer))["need_gib"][1] > job((name, text))["need_gib"][1]


@pytest.mark.parametrize(
    ("name", "comment", "recipes"),
    [
        ("8B_single_device.yaml", "", ["single"]),
        ("8B.yaml", "# Config for full_finetune_single_device.py\n", ["single"]),
        ("8B.yaml", "# tune run lora_finetune_single_device --config 8B\n", ["single"]),
        # the config says what it is for first, and how to run it on one device last
        ("8B.yaml", "# full_finetune_distributed.py\n# or full_finetune_single_device\n", ["distributed"]),
        ("8B.yaml", "", ["distributed", "single"]),
    ],
)
def test_the_recipe_is_told_by_the_files_name_or_comment_else_both_count(job, name, comment, recipes):
    _, text = recipe(ALPACA, "512")
    text = text.replace("bitsandbytes.optim.PagedAdamW8bit", "torch.optim.SGD")
    found = job((name, comment + text), gpu="rtx-4090:8")
    cases = {case["given"]["torchtune.recipe"]: case["need_gib"] for case in found["cases"]}
    assert list(cases) == (recipes if len(recipes) > 1 else [])
    parallel = job((name, text + "fsdp_cpu_offload: false\n"), gpu="rtx-4090:8")["need_gib"]
    needs = cases or dict.fromkeys(recipes, found["need_gib"])
    weights = 8.03e9 * 2 / 2**30
    for each, need in needs.items():
        assert (need[0] > weights) == (each == "single")
        assert (need == parallel) == (each == "distributed")


def test_a_program_has_the_defaults_of_todays_trl_or_of_those_before(job):
    found = job(("p.py", PROGRAM.replace("KEYS", "")))
    assert found["verdict"] in ("fits", "tight")
    assert {case["given"]["trl.release"] for case in found["cases"]} == {"of today", "before v0.22"}
    # what the program says itself does not depend on the version
    told = job(("p.py", PROGRAM.replace("KEYS", ", gradient_checkpointing=True, bf16=True")))
    assert told["need_gib"][1] < found["need_gib"][1]


LAUNCH = """\
deepspeed --module openrlhf.cli.train_sft --pretrain MODEL --max_len 2048 --micro_train_batch_size 1 \\
    --train_batch_size 8 --bf16 --zero_stage 2 --gradient_checkpointing
"""


@pytest.mark.parametrize(
    ("model", "verdict"), [("Qwen/Qwen2.5-1.5B", "fits"), ("meta-llama/Llama-3.1-70B", "tight")]
)
def test_a_package_in_the_repository_is_judged_by_its_release_but_never_out_of_memory(job, model, verdict):
    package = [("openrlhf/__init__.py", ""), ("openrlhf/cli/__init__.py", ""), (".git/HEAD", "ref: x\n")]
    program = (
        "openrlhf/cli/train_sft.py",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--pretrain')\n",
    )
    found = job(*package, program, ("run.sh", LAUNCH.replace("MODEL", model)))
    assert found["verdict"] == verdict
    assert "release" in found["ask"]
    assert not found["errors"]


def test_frozen_layers_lie_between_nothing_and_full_training(job):
    full = job(("t.yaml", TUNE))
    frozen = job(("t.yaml", TUNE.replace("finetuning_type: full", "finetuning_type: freeze")))
    weights = 8.03e9 * 2 / 2**30
    assert weights < frozen["need_gib"][0] < full["need_gib"][0]
    assert frozen["need_gib"][1] < full["need_gib"][1]
    badam = job(("t.yaml", TUNE + "use_badam: true\n"))
    assert badam["need_gib"][0] < full["need_gib"][0]


def test_experts_on_the_host_are_not_judged(job):
    lora = TUNE.replace("finetuning_type: full", "finetuning_type: lora").replace("pure_bf16: true\n", "")
    moe = lora.replace("meta-llama/Meta-Llama-3-8B", "Qwen/Qwen3-30B-A3B")
    there, here = job(("t.yaml", moe + "use_kt: true\n")), job(("t.yaml", moe))
    assert here["verdict"] != "unknown"
    assert (there["verdict"], there["ask"]) == (
        "unknown",
        "cfglint does not model experts on the host (KTransformers)",
    )


SLIME = """\
python3 train.py --hf-checkpoint /root/MODEL --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \\
    --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32 \\
    --group-query-attention --num-query-groups 4 --kv-channels 128 --swiglu --vocab-size 151936 \\
    --untie-embeddings-and-output-weights --disable-bias-linear --normalization RMSNorm \\
    --num-experts 128 --moe-ffn-hidden-size 768 --moe-router-topk 8 --moe-layer-freq "$FREQ" \\
    --tensor-model-parallel-size 4 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 \\
    --use-dynamic-batch-size --max-tokens-per-gpu 8192 --rollout-batch-size 8 --global-batch-size 64 \\
    --n-samples-per-prompt 8 --rollout-max-response-len 2048 --recompute-granularity full \\
    --rollout-num-gpus-per-engine 8 --sglang-mem-fraction-static 0.5
"""


def test_a_list_that_a_loop_makes_is_that_of_the_checkpoint(job):
    assert job(("run.sh", SLIME.replace("MODEL", "Qwen3-30B-A3B")))["verdict"] != "unknown"
    assert job(("run.sh", SLIME.replace("MODEL", "some-model")))["verdict"] == "unknown"


FLAGGED = """\
import argparse

from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--model"DEFAULT)
parser.add_argument("--lora", action="store_true")
parser.add_argument("--servers", nargs="+", default=["a", "b"])
args = parser.parse_args()
GRPOTrainer(
    model=args.model,
    args=GRPOConfig(output_dir="out", num_generations=len(args.servers), max_completion_length=64),
    peft_config=LoraConfig() if args.lora else None,
    train_dataset=data,
).train()
"""


def test_a_program_that_is_started_without_flags_has_their_defaults_and_says_so(job):
    found = job(("p.py", FLAGGED.replace("DEFAULT", ', default="Qwen/Qwen2.5-0.5B"')))
    assert found["verdict"] in ("fits", "tight")
    assert found["ask"].endswith("with the defaults of the program's flags")
    huge = job(("p.py", FLAGGED.replace("DEFAULT", ', default="meta-llama/Llama-3.1-70B"')), gpu="rtx-4090:1")
    assert huge["verdict"] == "tight"  # flags may say another model
    assert not huge["errors"]


def test_a_flag_without_a_default_stays_open(job):
    assert job(("p.py", FLAGGED.replace("DEFAULT", "")))["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("comment", "verdict"),
    [("# Run it: trl sft --config c.yaml\n", "fits"), ("", "unknown"), ("# for trl\n", "unknown")],
)
def test_a_first_comment_tells_the_trainer_of_a_file_that_does_not(job, comment, verdict):
    text = f"{comment}model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: stanfordnlp/imdb\n"
    assert job(("c.yaml", text), gpu="a100-80gb:1")["verdict"] == verdict


RLOO = """\
from trl import RLOOConfig, RLOOTrainer

args = RLOOConfig(output_dir="out", KEYS)
RLOOTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data).train()
"""


def test_rloo_since_v0_22_is_grpo_with_a_reference(job):
    one, none = (job(("p.py", RLOO.replace("KEYS", f"num_generations=2, beta={b}"))) for b in (0.05, 0.0))
    assert one["verdict"] in ("fits", "tight")
    assert one["need_gib"][1] > none["need_gib"][1]
    old = job(("p.py", RLOO.replace("KEYS", "rloo_k=2")))
    assert (old["verdict"], old["ask"]) == ("unknown", "cfglint does not model the task RLOO before v0.22")


MEGATRON = TUNE.replace("pure_bf16: true\ndeepspeed: examples/deepspeed/ds_z2_config.json\n", "") + (
    "tensor_model_parallel_size: 4\npipeline_model_parallel_size: 2\nrecompute_granularity: full\n"
)


def test_megatron_splits_the_states_over_its_ranks(job):
    found = job(("t.yaml", MEGATRON + "use_distributed_optimizer: true\n"))
    assert found["verdict"] == "fits"
    assert found["cases"] == []  # both runners add gradients up in fp32
    eighth = 8.03e9 / 8 * (2 + 4 + 12) / 2**30  # weights, gradients, moments and fp32 weights
    assert eighth < found["need_gib"][0] < eighth * 1.4
    assert "8 GPUs" in job(("t.yaml", MEGATRON), gpu="a100-80gb:4")["ask"]


def test_what_runs_megatron_is_a_case_where_it_decides_who_keeps_the_optimizer(job):
    halves = MEGATRON.replace("tensor_model_parallel_size: 4", "tensor_model_parallel_size: 2")
    found = job(("t.yaml", halves))
    need = {case["given"]["llamafactory.runner"]: case["need_gib"] for case in found["cases"]}
    assert need.keys() == {"mcore_adapter", "Megatron Bridge"}
    halved = 8.03e9 / 4 * 12 / 2 / 2**30  # only Megatron Bridge shards the optimizer over the two ranks
    assert need["mcore_adapter"][0] - need["Megatron Bridge"][0] == pytest.approx(halved, rel=0.1)


def test_the_version_of_fsdp_is_a_case_where_nothing_says_it(job):
    lora = TUNE.replace("finetuning_type: full", "finetuning_type: lora").replace("pure_bf16: true\n", "")
    plain = lora.replace("deepspeed: examples/deepspeed/ds_z2_config.json\n", "")
    large = plain.replace("Meta-Llama-3-8B", "Llama-3.1-70B")
    given = [case["given"] for case in job(("t.yaml", large))["cases"]]
    assert {"llamafactory.launch": "fsdp", "version.fsdp": "1"} in given
    assert {"llamafactory.launch": "ddp"} in given


EXPERTS = """\
base_model: Qwen/Qwen3-30B-A3B-Instruct-2507
plugins: [axolotl.integrations.expert_parallel.ExpertParallelPlugin]
expert_parallel_size: 4
datasets: [{path: mhenrichsen/alpaca_2k_test, type: alpaca}]
sequence_len: 2048
sample_packing: true
micro_batch_size: 1
optimizer: adamw_torch_8bit
bf16: true
gradient_checkpointing: true
"""


def test_ranks_of_expert_parallelism_have_their_own_experts(job):
    found = job(("e.yaml", EXPERTS), gpu="a100-80gb:4")
    own = (28.99e9 / 4 + 1.54e9) * (2 + 2 + 2) / 2**30  # weights, gradients, 8-bit moments
    assert own * 0.9 < found["need_gib"][0] < found["need_gib"][1] < own * 1.6
    assert "4 GPUs" in job(("e.yaml", EXPERTS), gpu="a100-80gb:1")["ask"]


FREEZE = """\
model: Qwen/Qwen3-4B
model_class: llm
train_dataset: data/sums.yaml
peft_config: {name: freeze, freeze_trainable_layers: LAYERS}
dist_config: {name: fsdp2}
"""


def test_frozen_layers_of_the_v1_trainer_stay_as_the_checkpoint_has_them(job):
    two, many = (job(("v1.yaml", FREEZE.replace("LAYERS", n)), gpu="a100-80gb:1") for n in ("2", "30"))
    weights = 4.02e9 * 2 / 2**30
    states = weights + 2 / 36 * 3.63e9 * 14 / 2**30  # fp32 copies, gradients, moments
    assert weights < two["need_gib"][0] < states * 1.3
    assert two["need_gib"][1] > states
    trained = 30 / 36 * 3.63e9 / 2**30
    most = weights + trained * (14 + 4)  # and AdamW's temporaries, as large as the gradients
    assert most * 0.7 < many["need_gib"][0] < most * 1.05 < many["need_gib"][1]


def test_a_trainer_that_is_given_a_name_loads_it_in_fp32(job):
    given = 'SFTTrainer(model="Qwen/Qwen2.5-1.5B", args=args, train_dataset=data).train()'
    loaded = 'SFTTrainer(model=AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B"), args=args).train()'
    head = "from transformers import AutoModelForCausalLM\n" + PROGRAM.partition("SFTTrainer(")[0]
    head = head.replace("KEYS", ", gradient_checkpointing=True, bf16=True")
    named, own = (job(("p.py", head + call), gpu="a100-80gb:1") for call in (given, loaded))
    cases = {case["given"]["trl.release"]: case["need_gib"] for case in own["cases"]}
    assert named["need_gib"][0] > 1.54e9 * 16 / 2**30 * 0.9  # weights, gradients and moments in fp32
    assert cases["of today"][0] < named["need_gib"][0]
