"""A full fine-tune that GPUs together cannot keep is not moved to them, also where nobody knows the rest."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cfglint.cli import main
from cfglint.repair.sized import beyond
from cfglint.repair.sizes_named import sizes_in
from found import found_in

if TYPE_CHECKING:
    from pathlib import Path

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
    "actor_rollout_ref.model.path=$MODEL actor_rollout_ref.actor.strategy=megatron "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.actor.use_dynamic_bsz=True trainer.nnodes=1 trainer.n_gpus_per_node=8"
)
LAUNCH = (
    "accelerate launch --num_processes 4 launch.py loss=dpo model=llama ++lr=1e-6 "
    "++model.name_or_path=meta-llama/Meta-Llama-3-8B ++model.batch_size=16"
)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("run_qwen30_a3b_megatron.sh", "30.0B weights (by the file's name)"),
        ("run_qwen2.5-32b_megatron.sh", "32.0B weights (by the file's name)"),
        ("run_qwen3-1.7b_megatron.sh", ""),
        ("run_30b_tokens.sh", ""),
        ("run_megatron_32b.sh", "32.0B weights (by the file's name)"),
        ("run_c4_32b.sh", ""),  # how much data
        ("run_megatron_200b.sh", ""),  # more than the file's own 8 GPUs could ever keep
        ("run.sh", ""),
    ],
)
def test_a_name_tells_the_size(path: str, told: str) -> None:
    unfixed = found_in(f"{VERL}\n", "l40s:4", path)["PAR190"].unfixed
    assert ("a full fine-tune of" in unfixed) == bool(told)
    assert told in unfixed


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("1-5B_eval", 1.5),
        ("dpsk1_5b-4nodes", 1.5),
        ("opt_6_7b", 6.7),
        ("llama-2-7b", 7),
        ("llama_3_8b", 8),
        ("pythia_2_8b", 2.8),
    ],
)
def test_a_digit_before_a_size_is_its_whole_part_or_a_version(name: str, size: float) -> None:
    assert list(sizes_in(name)) == [pytest.approx(size)]


@pytest.mark.parametrize(
    ("more", "target", "kept"),
    [
        ("", "rtx-3090:2", False),
        ("", "a100-80gb:2", True),
        ("++model.use_peft=true", "rtx-3090:2", True),
        ("++model.use_peft=false ++model.freeze_head=False", "rtx-3090:2", False),
        ("++mode=linear_probing", "rtx-3090:2", True),  # of a frozen body
        ("++model.unfreeze_body=false", "rtx-3090:2", True),  # it is frozen
        ("++zero.offload_optimizer=cpu", "rtx-3090:2", True),  # the weights alone stay: 15 GiB
    ],
)
def test_a_program_that_trains_all_weights(more: str, target: str, kept: bool) -> None:
    finding = found_in(f"{LAUNCH} {more}\n", target)["DOC104"]
    assert (finding.fix is not None) == kept
    assert kept or "8.0B weights" in finding.unfixed


def test_where_only_the_states_are_known_other_hardware_may_fit() -> None:
    finding = found_in(f"{LAUNCH}\n", "rtx-3090:2")["DOC104"]
    (place,) = [fix.title for fix in finding.alternatives]
    assert place.startswith("run it unchanged on ")
    assert ", where it may fit (at least 15 of " in place
    assert "no other hardware" not in finding.unfixed


LAYOUT = """
[model]
name = "own-llama-{size}"
flavor = "{size}"
[training]
local_batch_size = 2
seq_len = 4096
[parallelism]
tensor_parallel_degree = 8
"""


def test_another_layout_of_a_model_that_nobody_knows_is_never_sure() -> None:
    fix = found_in(LAYOUT.format(size="big"), "l40s:4", "job.toml")["PAR211"].fix
    assert fix is not None
    assert fix.certainty == "may"
    finding = found_in(LAYOUT.format(size="70b"), "l40s:4", "llama-70b.toml")["PAR211"]
    assert finding.fix is None
    assert "70.0B weights (by the file's name) keeps at least 1,043 GiB" in finding.unfixed


def test_weights_stay_where_the_optimizer_alone_goes_to_the_host() -> None:
    large = LAUNCH.replace("3-8B", "3-70B")
    finding = found_in(f"{large} ++zero.offload_optimizer=cpu\n", "rtx-3090:2")["DOC104"]
    assert finding.fix is None
    assert "131 GiB" in finding.unfixed


def test_what_all_processes_split_keeps_its_batch_on_fewer() -> None:
    start = "accelerate launch --num_processes 8 train.py --batch-size 2 --gradient-accumulate-every 3 "
    more = f"{start}--model Qwen/Qwen2.5-7B --learning-rate 1e-5 --seq-length 32000 --parallel_mode "
    fix = found_in(f"{more}ulysses_attn\n", "l40s:4")["DOC104"].fix
    assert fix is not None
    assert all(each.same and each.after == "6" for each in fix.results if each.name == "effective batch")
    fix = found_in(f"{more}data_parallel\n", "l40s:4")["DOC104"].fix
    assert fix is not None
    assert "gradient_accumulate_every to 6" in fix.title
    assert all(each.same for each in fix.results if each.name == "effective batch")


GIB = 1 << 30


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (2.9, ""),  # 23.2 GiB
        (2.98, "24.0 GiB, 0.4 of them for the process itself"),  # 23.8 GiB
        (3.1, "24.0 GiB"),  # 24.8 GiB, whatever a process takes
    ],
)
def test_what_each_gpu_keeps_leaves_room_for_the_process(params: float, told: str) -> None:
    size = params * GIB
    values: Any = dict.fromkeys(
        ("train_tp", "pp", "moe", "optimizer", "master_weights", "gpus_needed", "num_gpus")
    )
    values |= {"gpu.count": 4, "gpu.vram": 24 * GIB, "process.context": 0.4 * GIB, "trainer.likely": None}
    values |= {"trains": True, "lora": False, "quantized": False, "optimizer_in_backward": False}
    values |= dict.fromkeys(("param_bytes", "grad_bytes", "moment_bytes"), None)
    values |= dict.fromkeys(("ranks.weights", "ranks.gradients", "ranks.optimizer"), 1)
    values |= {"model.params": size, "params.trained": size, "framework.name": "own"}
    values |= {"states.away": False, "offload_params": False, "evaluates": False}
    judged: Any = SimpleNamespace(subject=SimpleNamespace(view=None, document=SimpleNamespace(root=None)))
    text = beyond(judged, values)
    assert text.endswith(told)
    assert bool(text) == bool(told)


@pytest.mark.parametrize(
    ("teacher", "kept"),
    [
        ("++teacher_model_path=out/opt-13B/", True),  # 24 GiB beside 7 of 47
        ("++teacher_model_path=out/opt-30B/", False),
        ("++teacher_model_path=out/opt-30B/ ++teacher_model_server=http://there:80", True),
        ("++teacher_temperature=30b", True),
    ],
)
def test_a_teacher_takes_its_part(teacher: str, kept: bool) -> None:
    finding = found_in(f"{LAUNCH.replace('Meta-Llama-3-8B', 'Llama-1B')} {teacher}\n", "rtx-3090:2")["DOC104"]
    assert (finding.fix is not None) == kept
    assert kept or "beside 56 GiB of a teacher's 30.0B weights, and 2 GPUs have 47 GiB" in finding.unfixed


SHAPE = (
    "--num-layers 40 --hidden-size 6144 --num-attention-heads 48 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --bf16"
)
MEGATRON = "torchrun --nproc_per_node 8 {} --tensor-model-parallel-size 8 --use-distributed-optimizer {}"


@pytest.mark.parametrize(
    ("program", "flags", "told"),
    [
        ("pretrain_gpt.py", "", "at least 18.1B weights with their gradients take 101 GiB"),
        ("finetune.py", "--attention-head-type multiquery", "at least 15.2B weights with their gradients"),
        ("tasks/eval_gsm8k.py", "--num-layers 160", "at least 72.5B weights take 135 GiB in 16 bits"),
        ("tools/convert_hf.py", "--num-layers 160", ""),  # on the host
    ],
)
def test_a_shape_without_a_vocabulary_tells_the_least(program: str, flags: str, told: str) -> None:
    command = f"{MEGATRON.format(program, SHAPE)} --tokenizer-type Own --train-iters 9 {flags}\n"
    finding = found_in(command, "rtx-4090:4")["DOC104"]
    assert (finding.fix is None) == bool(told)
    assert told in finding.unfixed


CODE = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\n"


@pytest.mark.parametrize(
    ("code", "kept", "told"),
    [
        ("model.train()\n", False, "13.0B weights (by the file's name) keeps at least 97 GiB"),
        ("state = Config(offload_to_cpu=True)\n", False, "97 GiB"),
        ("for p in model.parameters(): p.requires_grad = False\n", True, "97 GiB"),  # some, or all?
        ("fully_shard(model, offload=True)\n", True, "97 GiB"),
    ],
)
def test_code_that_may_keep_less_leaves_a_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, kept: bool, told: str
) -> None:
    command = "torchrun --nproc_per_node 8 main.py --lr 1e-5 --batch_size 4 --accum_iter 8\n"
    (tmp_path / "main.py").write_text(CODE + code)
    (tmp_path / "sharegpt_13B.sh").write_text(command)
    main(["check", str(tmp_path), "--no-detect", "--gpu", "rtx-3090:2", "--format", "json", "--isolated"])
    found = json.loads(capsys.readouterr().out)["findings"]
    finding = next(each for each in found if each["code"] == "DOC104")
    fix = finding.get("fix")
    assert (fix is not None) == kept
    assert told in (fix["effect"] if fix is not None else finding["unfixed"])


OWN = """
p.add_argument("--freeze-tower", action="store_true")
p.add_argument("--freeze-text", action="store_true")
p.add_argument("--host", default=False)
args = p.parse_args()
def freeze(part):
    for p in part.parameters():
        p.requires_grad = False
def main(args):
    if args.freeze_tower:
        freeze_sight(model)
    if args.freeze_text:
        freeze(model.language_model)
    wrap(model, cpu_offload=CPUOffload(offload_params=True) if args.host else None)
def freeze_sight(model):
    for p in model.vision_tower.parameters():
        p.requires_grad_(False)
main(args)
"""


@pytest.mark.parametrize(
    ("flags", "kept", "told"),
    [
        ("", False, "a full fine-tune of 7.1B weights keeps at least 53 GiB"),
        (
            "",
            False,
            "that is at least 13 GiB each; the program's --host would keep them on the host",
        ),
        ("--freeze-tower", False, "the training of 6.7B of 7.1B weights keeps at least 51 GiB of weights"),
        ("--freeze-tower --freeze-text", True, ""),
        ("--freeze-text", True, ""),
        ("--host 1", True, ""),
    ],
)
def test_switches_of_its_own_tell_what_a_program_freezes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: str, kept: bool, told: str
) -> None:
    command = f"torchrun --nproc_per_node 4 main.py --lr 1e-5 --batch_size 4 --accum_iter 8 {flags}"
    (tmp_path / "main.py").write_text(f"{CODE}p.add_argument('--base_model')\n{OWN}")
    (tmp_path / "run.sh").write_text(f"{command} --base_model llava-hf/llava-1.5-7b-hf\n")
    main(["check", str(tmp_path), "--no-detect", "--gpu", "rtx-3090:2", "--format", "json", "--isolated"])
    found = json.loads(capsys.readouterr().out)["findings"]
    finding = next(each for each in found if each["code"] == "DOC104")
    assert (finding.get("fix") is not None) == kept
    assert told in (finding["unfixed"] or "")


def test_fewer_machines_have_less_memory_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zero = {"stage": 3, **{f"offload_{name}": {"device": "cpu"} for name in ("param", "optimizer")}}
    (tmp_path / "zero3.json").write_text(json.dumps({"bf16": {"enabled": True}, "zero_optimization": zero}))
    (tmp_path / "run.sh").write_text(
        "torchrun --nproc_per_node=8 --nnodes=4 train.py --model_name_or_path meta-llama/Llama-2-70b-hf "
        "--bf16 --deepspeed zero3.json --per_device_train_batch_size 1 --gradient_accumulation_steps 4 "
        "--output_dir out --model_max_length 512 --gradient_checkpointing\n"
    )
    main(["check", str(tmp_path), "--no-detect", "--gpu", "rtx-3090:2", "--format", "json", "--isolated"])
    found = json.loads(capsys.readouterr().out)["findings"]
    finding = next(each for each in found if each["code"] == "DOC104")
    assert finding.get("fix") is None
    assert "then a machine needs at least" in finding["unfixed"]
    assert "of its own, and rented ones have at most 170 GiB beside such GPUs" in finding["unfixed"]


def test_an_evaluation_has_no_batch_to_keep() -> None:
    command = f"{MEGATRON.format('tasks/eval_gsm8k.py', SHAPE)} --tokenizer-type Own\n"
    fix = found_in(command.replace("parallel-size 8", "parallel-size 4"), "l40s:4")["DOC104"].fix
    assert fix is not None
    assert fix.title == "set --nproc_per_node to 4"
    assert fix.applicability == "safe"


ARCTIC = (
    "python -m skyrl.train.entrypoints.main_base "
    "trainer.override_entrypoint=integrations.arctic_rl.entrypoint "
    "trainer.arctic_rl.colocate=true trainer.arctic_rl.zero_stage=3 trainer.run_name=own-{} "
    "trainer.algorithm.advantage_estimator=grpo trainer.placement.colocate_all=false "
    "trainer.placement.policy_num_gpus_per_node=8 trainer.placement.policy_num_nodes=2 "
    "generator.inference_engine.num_engines=4 generator.inference_engine.tensor_parallel_size=4 "
    "generator.inference_engine.run_engines_locally=true trainer.train_batch_size=64\n"
)


@pytest.mark.parametrize(
    ("name", "target", "told"),
    [
        ("Qwen3-32B", "rtx-3090:2", "32.0B weights (by its run_name) take 60 GiB in the engine in 16 bits"),
        ("Qwen3-32B", "h200:2", ""),
        ("Qwen3-8B", "rtx-3090:2", ""),
        ("Qwen3-32B-AWQ", "rtx-3090:2", ""),  # a quarter of that
    ],
)
def test_an_engine_holds_the_weights_of_a_model_that_is_known_by_name(
    name: str, target: str, told: str
) -> None:
    unfixed = found_in(ARCTIC.format(name), target)["PAR199"].unfixed or ""
    assert ("in the engine" in unfixed) == bool(told)
    assert told in unfixed


XTUNER = """
from xtuner.v1.model import {model}
from xtuner.v1.train import TrainerConfig
{more}
trainer = TrainerConfig(model_cfg={model}(), sp_size=4, load_from=path)
"""


@pytest.mark.parametrize(
    ("model", "more", "target", "told"),
    [
        ("Qwen3MoE30BA3Config", "", "rtx-3090:2", "30.0B weights (by its config's model) take 56 GiB"),
        ("Qwen3MoE30BA3Config", "", "h200:2", ""),
        ("Qwen3Dense0P6BConfig", "", "rtx-3090:2", ""),
        ("Qwen3MoE30BA3Config", "fsdp = FSDPConfig(cpu_offload=True)", "rtx-3090:2", ""),
        ("Qwen3MoE30BA3Config", "small = dict(num_hidden_layers=2)", "rtx-3090:2", ""),
    ],
)
def test_weights_that_no_gpus_hold_come_before_what_a_move_would_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, more: str, target: str, told: str
) -> None:
    (tmp_path / "own.py").write_text(XTUNER.format(model=model, more=more))
    (tmp_path / "run.sh").write_text(
        "torchrun --nproc-per-node=8 -m xtuner.v1.train.cli.sft --config own.py\n"
    )
    main(["check", str(tmp_path), "--no-detect", "--gpu", target, "--format", "json", "--isolated"])
    found = json.loads(capsys.readouterr().out)["findings"]
    unfixed = next(each for each in found if each["code"] == "DOC104")["unfixed"] or ""
    assert ("weights" in unfixed) == bool(told)
    assert told in unfixed
