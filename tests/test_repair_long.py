"""Long sequences: what each GPU holds of them decides, and what nobody knew before stands against nothing."""

from __future__ import annotations

import pytest

from found import found_in

ZERO3 = (
    "accelerate launch --num_processes 8 --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu "
    "--offload_param_device cpu"
)
GPT_OSS = (
    f"{ZERO3} internvl/train/internvl_chat_finetune.py --model_name_or_path openai/gpt-oss-20b "
    "--output_dir out --bf16 True --per_device_train_batch_size 1 --gradient_accumulation_steps 8 "
    "--max_seq_length 32768 --grad_checkpoint True --save_strategy steps --freeze_llm False"
)
OWN = (
    f"{ZERO3} main.py --model_name_or_path own/Long-7B-64k --output_dir out --num_train_epochs 2 "
    "--per_device_train_batch_size 1 --gradient_accumulation_steps 2 --bf16 True --save_strategy steps "
    "--learning_rate 2e-5 --gradient_checkpointing True\n"
)
RING = (
    f"{ZERO3} train.py --batch-size 1 --gradient-accumulate-every 4 --learning-rate 1e-5 "
    "--model Qwen/Qwen2-7B-Instruct --seq-length LENGTH --parallel_mode zigzag_ring_attn\n"
)


@pytest.mark.parametrize(("more", "keeps"), [("False", True), ("True", False)])
def test_a_program_that_puts_flash_attention_in_keeps_no_scores(more: str, keeps: bool) -> None:
    found = found_in(f"{GPT_OSS} --use_custom_flash_attn {more}\n", "a100-40gb:8")
    assert ("MEM104" in found) == keeps  # by hundreds of GiB of scores


def test_what_nobody_knew_before_does_not_stand_against_fewer_gpus() -> None:
    finding = found_in(OWN, "rtx-3090:2")["DOC104"]
    assert finding.fix is not None
    assert finding.fix.certainty == "may"
    assert "gradient_accumulation_steps to 8" in finding.fix.title


def test_what_each_gpu_holds_of_a_shared_sequence_decides() -> None:
    finding = found_in(RING.replace("LENGTH", "224000"), "rtx-3090:2")["DOC104"]
    assert finding.fix is None
    assert "then the job takes more memory than a GPU has" in finding.unfixed
    assert found_in(RING.replace("LENGTH", "16000"), "rtx-3090:2")["DOC104"].fix is not None


def test_what_rests_on_the_processes_is_mended_with_them() -> None:
    command = (
        "torchrun --nnodes=$n_node --nproc_per_node=8 train.py --model_name_or_path $1 --learning_rate 2e-5 "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps $steps --model_max_length 131072 "
        "--seq_parallel_size 14\n"
    )
    found = found_in(command, "l40s:4")
    fix = found["DOC104"].fix
    assert fix is not None
    assert fix == found["PAR137"].fix
    assert "--nproc_per_node to 4" in fix.title
    assert "seq_parallel_size to 2" in fix.title
    assert not any(each.same for each in fix.results if each.name == "effective batch")
    assert "(131,072 tokens) each GPU then holds 65,536 instead of 9,362" in fix.effect
    assert "3.91 GiB (a vocabulary of 32,000) or 18.6 GiB (a vocabulary of 152,064) of 44.4" in fix.effect
    here = found_in(command, "rtx-3090:2")["DOC104"]  # whose logits and their gradient take more than it has
    assert here.fix is None
    assert "fewer GPUs cannot share a sequence" in here.unfixed
    assert "as many GPUs as share it now (14)" in here.unfixed
    short = found_in(command.replace("131072", "8192"), "l40s:4")["DOC104"].fix
    assert short is not None
    assert "logits" not in short.effect


@pytest.mark.parametrize(("gpu", "offered"), [("l40s:8", True), ("l40s:4", True), ("rtx-3090:2", False)])
def test_a_few_of_the_gpus_that_a_job_asks_for_are_no_fix(gpu: str, offered: bool) -> None:
    command = OWN.replace("accelerate launch --num_processes 8", "accelerate launch --num_processes 64")
    finding = found_in(command.replace("launch", "launch --num_machines 4", 1), gpu)["DOC104"]
    assert (finding.fix is not None) == offered
    if not offered:
        assert "the job asks for 64 GPUs, and there are 2" in finding.unfixed
        assert "about 32 times as long" in finding.unfixed
        assert ["run it unchanged on 64 GPUs" in each.title for each in finding.alternatives] == [True]


DPO = (
    "deepspeed --num_gpus 1 --module openrlhf.cli.train_dpo --pretrain Qwen/Qwen2.5-3B "
    "--train_batch_size 256 --micro_train_batch_size 1 --max_len 8192 --zero_stage 3 --bf16 --flash_attn "
    "--gradient_checkpointing --save_path out --dataset own/pairs --learning_rate 5e-7\n"
)


def test_states_that_do_not_fit_go_to_the_host_with_adapters_before_samples_are_cut() -> None:
    finding = found_in(DPO, "rtx-3090")["MEM105"]
    adapted, (elsewhere, cut) = finding.fix, finding.alternatives
    assert adapted is not None
    assert (adapted.applicability, adapted.certainty, adapted.risk) == ("unsafe", "may", "optimization")
    assert adapted.title == "set ref_offload to true, adam_offload to true and lora_rank to 64"
    assert elsewhere.applicability == "display"
    assert (cut.applicability, cut.risk) == ("unsafe", "data")


@pytest.mark.parametrize(
    ("more", "same"), [("--total_batch_size 512", True), ("--gradient_accumulation 4", False)]
)
def test_a_batch_over_all_processes_stays(more: str, same: bool) -> None:
    command = (
        "torchrun --nproc_per_node 8 torchrun_main.py --model_config own.json --lr 0.01 --batch_size 16 "
        f"--num_training_steps 1000 --dtype bfloat16 {more}\n"
    )
    fix = found_in(command, "l40s:4")["DOC104"].fix
    assert fix is not None
    assert all(each.same for each in fix.results if each.name == "effective batch") == same


def test_tensor_parallelism_makes_room_for_offloading() -> None:
    """Torchtune offloads only where FSDP shards, as its llama3_3/70B_full.yaml does."""
    config = (
        "model:\n  _component_: torchtune.models.llama3_3.llama3_3_70b\n"
        "tokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  path: t\n"
        "  max_seq_len: 1024\n"
        "dataset:\n  _component_: torchtune.datasets.alpaca_cleaned_dataset\n  packed: False\n"
        "tensor_parallel_dim: 8\ntensor_parallel_plan:\n"
        "  _component_: torchtune.models.llama3.base_llama_tp_plan\n"
        "batch_size: 4\ngradient_accumulation_steps: 1\n"
        "optimizer:\n  _component_: torch.optim.AdamW\n  lr: 2e-5\n  fused: True\n"
        "loss:\n  _component_: torchtune.modules.loss.LinearCrossEntropyLoss\n"
        "enable_activation_checkpointing: True\nfsdp_cpu_offload: False\ndevice: cuda\ndtype: bf16\n"
    )
    ways = found_in(config, "a100-40gb-pcie:8", "full.yaml")["MEM105"].alternatives
    moves = "fsdp_cpu_offload to true, tensor_parallel_dim to 4 and batch_size to 2"
    assert [way.risk for way in ways if moves in way.title] == ["none"]
