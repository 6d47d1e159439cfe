"""What is said where nothing is proposed: the certain reason first, and a way out that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.cli import main
from cfglint.document.reading import Library, read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.repair.attach import attach
from found import found_in

if TYPE_CHECKING:
    from pathlib import Path

GALORE = """
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: full
use_galore: true
galore_layerwise: true
galore_rank: 64
dataset: identity
template: qwen
cutoff_len: 1024
output_dir: out
per_device_train_batch_size: 1
gradient_accumulation_steps: 1
pure_bf16: true
"""
PHASES = """
max_steps = 100
seq_len = 32768
output_dir = "out"
[deployment]
type = "multi_node"
num_train_nodes = 4
gpus_per_node = 8
[inference.deployment]
type = "disaggregated"
prefill_nodes_per_replica = 1
num_prefill_replicas = 2
decode_nodes_per_replica = 2
[slurm]
job_name = "own"
[trainer.model]
name = "zai-org/GLM-5.1"
cp = 2
ep = 8
[orchestrator]
batch_size = 64
[inference]
[inference.vllm]
model = "zai-org/GLM-5.1-FP8"
max_model_len = 32768
"""
PACKED = """
base_model: deepseek-ai/DeepSeek-V2
load_in_4bit: true
adapter: qlora
lora_r: 128
lora_target_linear: true
datasets: [{path: mlabonne/FineTome-100k, type: chat_template}]
sequence_len: 3072
sample_packing: true
micro_batch_size: 6
gradient_accumulation_steps: 1
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
fsdp: [full_shard, auto_wrap]
fsdp_config:
  fsdp_offload_params: true
  fsdp_cpu_ram_efficient_loading: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: DeepseekV2DecoderLayer
  fsdp_sharding_strategy: FULL_SHARD
"""


def test_some_of_the_gpus_that_are_there_come_before_others() -> None:
    finding = found_in(GALORE, "a100-40gb:4", "galore.yaml")["PAR141"]
    assert finding.fix is None
    assert finding.unfixed == "nothing in the file has to change: it runs on some of the GPUs here"
    place = finding.alternatives[0].title
    assert place.startswith("run it unchanged on 1 of the 4 GPUs here, by CUDA_VISIBLE_DEVICES=0 (")
    assert "an hour" not in place


def test_kernels_that_a_gpu_has_not_are_the_reason() -> None:
    found = found_in(PHASES, "rtx-4090", "rl.toml")
    assert found["PRC221"].unfixed.startswith("cfglint has no setting to move for this rule")
    others = [finding.unfixed for code, finding in found.items() if code in ("MEM105", "MEM201")]
    assert others
    assert all(text.startswith("PRC221 (sparse-attention-needs-hopper) stands") for text in others)


def test_what_nobody_can_tell_is_shown_as_what_may_not_be_enough() -> None:
    finding = found_in(PACKED, "rtx-3090:2", "qlora.yaml")["MEM104"]
    assert finding.fix is None
    assert "cannot tell" in finding.unfixed
    first = finding.alternatives[0]
    assert first.title.startswith("set micro_batch_size to 1")
    assert (first.applicability, first.certainty) == ("safe", "may")


TITAN = """
[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 4
seq_len = 4096
[parallelism]
tensor_parallel_degree = 8
[activation_checkpoint]
mode = "full"
"""


def test_what_no_layout_changes_is_the_reason() -> None:
    found = found_in(TITAN, "l40s:4", "own.toml")
    told = (
        "70.6B weights with their gradients and optimizer take 1,051 GiB (16 bytes each), and 4 GPUs have 178"
    )
    assert found["MEM105"].unfixed.startswith(told)
    assert found["PAR211"].unfixed.startswith(told)
    assert found["PRF102"].fix is not None
    assert "set training.dtype to bfloat16" in found["PRF102"].fix.title  # no fp16, which torchtitan refuses


CONFIGS = """
from torchtitan.components.optimizer import default_adamw
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import SelectiveAC
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def own_llama() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("{size}"),
        optimizer=default_adamw(lr=2e-4),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192, max_context_length=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree={tensor}),
        activation_checkpoint=SelectiveAC.Config(),
    )


def shorter() -> Trainer.Config:
    config = own_llama()
    config.training.steps = 20
    return config
"""


def test_what_moves_no_result_is_safe_for_other_configs_too() -> None:
    fix = found_in(CONFIGS.format(size="8B", tensor=1), "l40s:4", "config_registry.py")["MEM104"].fix
    assert fix is not None
    assert "FullAC" in fix.title
    assert fix.applicability == "safe"
    assert "other configs of the file read it, too" in fix.effect


def test_errors_that_stop_a_job_together_are_mended_together() -> None:
    found = found_in(CONFIGS.format(size="70B", tensor=8), "l40s:4", "config_registry.py")
    fixes = [found[code].fix for code in ("MEM105", "PAR211")]
    assert fixes[0] is not None
    assert fixes[1] is not None
    assert fixes[0].edits == fixes[1].edits
    assert "tensor_parallel_degree to 4" in fixes[0].title


BASE = """
from torchtitan.components.optimizer import default_adamw
from torchtitan.config import TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def own_llama() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B"),
        optimizer=default_adamw(lr=2e-4),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=8192, max_context_length=8192, disable_cuda_graphs=True
        ),
        activation_checkpoint=FullAC.Config(),
    )
"""
CAPTURED = """

def captured() -> Trainer.Config:
    config = own_llama()
    config.training.disable_cuda_graphs = {off}
    return config
"""
IMPORTS = """
from own.config_registry import own_llama
from torchtitan.trainer import Trainer
"""


@pytest.mark.parametrize("off", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_what_breaks_a_config_that_builds_on_it_is_not_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], off: bool, apart: bool
) -> None:
    built = CAPTURED.format(off=off)
    for folder in ("own", "graphs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "pyproject.toml").touch()
    own = tmp_path / "own" / "config_registry.py"
    own.write_text(BASE if apart else BASE + built, encoding="utf-8")
    if apart:
        (tmp_path / "graphs" / "config_registry.py").write_text(IMPORTS + built, encoding="utf-8")
    main(["check", str(own), "--no-detect", "--gpu", "l40s:2", "--verbose"])
    told = capsys.readouterr().out.partition("MEM105")[2]
    assert ("fix (safe)" in told) is off
    assert ("enable_cpu_offload to true" in told) is (off or apart)
    if apart and not off:
        assert "fix (unsafe)" in told
        assert (
            "PAR297 (torchtitan-config-graphs-and-offload) would break for captured, which builds on it"
            in told
        )


FACTORY = """
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all
dataset: identity
template: llama3
cutoff_len: 32768
packing: true
output_dir: out
per_device_train_batch_size: 1
bf16: true
enable_liger_kernel: true
flash_attn: fa2
"""


def test_llamafactory_keeps_the_inputs_of_layers_on_the_host() -> None:
    finding = found_in(FACTORY, "rtx-4090:1", "lora.yaml")["MEM104"]
    ways = [fix.title for fix in (finding.fix, *finding.alternatives) if fix is not None]
    assert any("use_unsloth_gc to true" in title for title in ways)
    again = found_in(f"{FACTORY}use_unsloth_gc: true\nquantization_bit: 4\n", "rtx-4090:1", "lora.yaml")
    assert "MEM104" not in again


def test_a_rule_that_may_not_be_about_the_job_stands_against_nothing(pack) -> None:
    files = {
        "zero.yaml": b"distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\n",
        "own.py": b"import sys\nfrom transformers import Trainer\nTrainer(sys.argv[1]).train()\n",
    }
    words = b"--learning_rate 1e-5 --num_train_epochs 1"
    script = b"accelerate launch --config_file zero.yaml own.py own_config.yaml " + words + b"\n"
    run = Run(pack, targets=(parse_target("l40s:4"),), library=Library(files.get))
    (subject,) = run.subjects(read(script, "run.sh"), judge_broken=True)
    judgements = run.judged(subject)
    found = list(run.findings(judgements))
    attach(run, judgements, found)
    (finding,) = [each.finding for each in found if each.finding.code == "DOC105"]
    assert finding.fix is not None
    assert finding.fix.certainty == "may"
    assert "PAR136" not in finding.unfixed
    assert not any(
        each.same for each in finding.fix.results if each.name in ("effective batch", "tokens per step")
    )


INTERNVL = """
export PER_STEP=$((256 / WORLD_SIZE))
torchrun --nnodes=1 --nproc-per-node=4 internvl/train/internvl_chat_finetune.py \\
  --model_name_or_path OpenGVLab/InternVL3_5-2B-Pretrained --output_dir out --bf16 True \\
  --freeze_llm False --freeze_mlp False --freeze_backbone False \\
  --per_device_train_batch_size 1 --gradient_accumulation_steps ${PER_STEP} \\
  --grad_checkpoint True --gradient_checkpointing True --max_seq_length 36864 \\
  --use_packed_ds True --num_images_expected 48 --max_packed_tokens 36864 --max_steps 900
"""


def test_a_cut_that_may_be_enough_is_shown_where_nothing_else_is() -> None:
    finding = found_in(INTERNVL, "a6000:4", "own.sh")["MEM104"]
    assert finding.fix is None
    assert finding.unfixed.startswith("nothing was found for this hardware but what cuts")
    cut = next(one for one in finding.alternatives if "max_packed_tokens" in one.title)
    assert (cut.applicability, cut.certainty) == ("unsafe", "may")


LONG_ANSWERS = """
python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen2.5-Math-7B \\
  --ref_num_nodes 1 --ref_num_gpus_per_node 4 --actor_num_nodes 1 --actor_num_gpus_per_node 4 \\
  --critic_num_nodes 1 --critic_num_gpus_per_node 4 --vllm_num_engines 4 --vllm_tensor_parallel_size 1 \\
  --remote_rm_url http://localhost:5000/get_reward --micro_train_batch_size 4 --train_batch_size 256 \\
  --micro_rollout_batch_size 4 --rollout_batch_size 1024 --n_samples_per_prompt 8 --advantage_estimator gae \\
  --prompt_max_len 1024 --generate_max_len 3072 --max_len 4096 --init_kl_coef 0.01 --zero_stage 3 --bf16 \\
  --packing_samples --adam_offload --flash_attn --gradient_checkpointing
"""


def test_what_nearly_does_and_cuts_nothing_goes_before_a_cut() -> None:
    finding = found_in(LONG_ANSWERS, "rtx-4090", "own.sh")["MEM104"]
    assert finding.fix is not None
    assert finding.fix.risk != "data"
    assert "micro_train_batch_size" in finding.fix.title
    assert any(one.risk == "data" for one in finding.alternatives)


SMALLER = """
max_steps = 100
seq_len = 131072

[model]
name = "Qwen/Qwen3-30B-A3B"

[deployment]
type = "multi_node"
num_train_nodes = 2
num_infer_nodes = 2

[slurm]
job_name = "sums"

[orchestrator]
batch_size = 128

[trainer.model]
ep = 8
cp = 2
attn = "flash_attention_3"

[inference.vllm]
tensor_parallel_size = 8
"""


def test_a_warning_gets_its_own_fix_where_nothing_surely_lets_the_job_run() -> None:
    found = found_in(SMALLER, "a100-40gb-pcie:8", "rl.toml")
    assert found["PAR223"].fix is not None
    assert found["PAR223"].fix.certainty == "may"
    assert found["PRC121"].fix is not None
    assert found["PRC121"].fix.title == "set trainer.model.attn to auto"


SHARDED = """
base_model: axolotl-ai-co/Mistral-Medium-3.5-128B-BF16
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_target_linear: true
datasets: [{path: mlabonne/FineTome-100k, type: chat_template}]
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
"""


def test_sharding_that_may_be_enough_comes_before_cuts_of_the_data() -> None:
    finding = found_in(SHARDED, "h100-sxm:8", "qlora.yaml")["MEM104"]
    assert finding.fix is not None
    assert "fsdp_config.fsdp_version to 2" in finding.fix.title
    assert (finding.fix.applicability, finding.fix.certainty) == ("unsafe", "may")


MEGATRON = """
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 32 \\
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 32 \\
  --train-iters 100 --vocab-size 50257 --optimizer adam --bf16 --save out {}
"""


@pytest.mark.parametrize(
    ("flags", "title", "applicability"),
    [
        ("--load base --finetune", "set use_distributed_optimizer to true", "safe"),
        ("--load base", "set use_distributed_optimizer to true", "unsafe"),  # with the optimizer of that run
        (
            "--load base --disable-gloo-process-groups --checkpoint-activations",
            "set tensor_model_parallel_size to 2",
            "unsafe",
        ),
        (
            "--load base --disable-gloo-process-groups --ckpt-format torch_dist",
            "set tensor_model_parallel_size to 2",
            "safe",
        ),
    ],
)
def test_a_checkpoint_that_is_cut_for_its_ranks_is_not_safely_laid_out_anew(
    flags: str, title: str, applicability: str
) -> None:
    fix = found_in(MEGATRON.format(flags), "rtx-4090:4", "train.sh")["MEM104"].fix
    assert fix is not None
    assert fix.title.startswith(title)
    assert fix.applicability == applicability


def test_more_gpus_with_a_larger_batch_are_told_where_nothing_else_holds_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "config_registry.py"
    own.write_text(BASE.replace("llama3", "qwen3").replace('"8B"', '"32B"'), encoding="utf-8")
    main(["check", str(own), "--no-detect", "--gpu", "rtx-3090:2", "--verbose"])
    told = capsys.readouterr().out.partition("MEM105")[2]
    assert "times the batch, " in told
    assert "no other hardware was found" not in told
