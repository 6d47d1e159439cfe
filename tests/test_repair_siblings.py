"""DeepSpeed's files of a project beside the one in use, which shard more or send more to the host."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_text
from cfglint.text import apply_edits

if TYPE_CHECKING:
    from pathlib import Path

    from cfglint.findings import Finding

AUTO = {
    "bf16": {"enabled": "auto"},
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}
HOST = {"device": "cpu"}
ZERO = {
    "zero2": {"stage": 2},
    "zero3": {"stage": 3},
    "zero3_offload": {"stage": 3, "offload_optimizer": HOST, "offload_param": HOST},
}
GRPO = """HOME_OF_RUN="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"
torchrun --nproc_per_node="8" mine/grpo_pairs.py \\
    --model_name_or_path Qwen/Qwen2.5-3B-Instruct \\
    --num_generations 8 --max_completion_length 512 --bf16 \\
    --per_device_train_batch_size 8 --gradient_accumulation_steps 2 \\
    --deepspeed ${HOME_OF_RUN}/ds/zero2.json
"""


def found_in(folder: Path, script: str, gpu: str, code: str, path: str = "") -> Finding:
    """Return the first finding of a rule in a script of a folder; ``path`` is what it is called."""
    (folder / "run.sh").write_text(script)

    def read(path: str) -> bytes | None:
        place = folder / path
        return place.read_bytes() if place.is_file() else None

    report = check_text(script, path=path or str(folder / "run.sh"), hardware=gpu, read=read)
    return next(each for each in report.findings if each.code == code)


@pytest.mark.parametrize(
    ("gpu", "more", "named"),
    [
        ("rtx-3090:2", "", "zero3_offload"),  # 9 bytes each on two GPUs are 26 GiB, 8 of ZeRO-3 are 23
        ("l40s:2", "", ""),
        ("rtx-3090:2", " --use_peft true", ""),
        ("l40s:4", " Qwen/Qwen3-8B", "zero3"),  # 5.5 bytes each are 42 GiB, 4 are 31
    ],
)
def test_fewer_gpus_that_do_not_keep_what_each_has_take_another_file(
    tmp_path: Path, gpu: str, more: str, named: str
) -> None:
    script = GRPO.replace(" Qwen/Qwen2.5-3B-Instruct", more) if "/" in more else f"{GRPO.rstrip()}{more}\n"
    (tmp_path / "ds").mkdir()
    for name, zero in ZERO.items():
        (tmp_path / "ds" / f"{name}.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    fix = found_in(tmp_path, script, gpu, "DOC104").fix
    assert fix is not None
    assert (fix.applicability, fix.certainty) == ("safe", "may")
    assert ("${HOME_OF_RUN}/ds/" in fix.title) == bool(named)
    assert not named or fix.title.endswith(f"ds/{named}.json")
    assert [edit.new for edit in fix.edits if "ds/" in edit.new] == ([f"/ds/{named}.json"] if named else [])


def test_a_file_with_another_schedule_takes_no_ones_place(tmp_path: Path) -> None:
    (tmp_path / "ds").mkdir()
    linear = {"type": "WarmupDecayLR", "params": {"warmup_num_steps": "auto", "total_num_steps": "auto"}}
    for name, zero in ZERO.items():
        more = {"scheduler": linear} if name == "zero3_offload" else {}
        (tmp_path / "ds" / f"{name}.json").write_text(json.dumps({**AUTO, **more, "zero_optimization": zero}))
    found = found_in(tmp_path, GRPO, "rtx-3090:2", "DOC104")
    assert all("zero3_offload.json" not in fix.title for fix in (found.fix, *found.alternatives) if fix)


PARSER = """import argparse
import deepspeed
parser = argparse.ArgumentParser()
parser.add_argument("--model-path")
parser.add_argument("--lr", type=float)
parser.add_argument("--epochs", type=int)
parser.add_argument("--batch-size", type=int)
parser.add_argument("--gradient-accumulation-steps", type=int, default=1)
parser.add_argument("--max-length", type=int, default=512)
parser.add_argument("--peft", type=str, default=None)
parser.add_argument("--peft-lora-r", type=int, default=8)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()
"""
OWN = """ROOT=${1-"/srv/somebody/pairs"}
OPTS=" --model-path meta-llama/Llama-2-7b-hf --lr 1e-5 --epochs 3 --batch-size 1 --max-length 512"
OPTS+=" --gradient-accumulation-steps 2 --deepspeed"
OPTS+=" --deepspeed_config ${ROOT}/ds/zero1.json"
torchrun --nproc_per_node 16 ${ROOT}/train_pairs.py ${OPTS}
"""


@pytest.mark.parametrize(("window", "risk"), [(2000, "safe"), (5000, "unsafe")])
def test_a_checkout_on_another_machine_has_the_same_files(tmp_path: Path, window: int, risk: str) -> None:
    halves = {"enabled": True, "loss_scale_window": 2000}
    fixed = {"train_micro_batch_size_per_gpu": 1}
    (tmp_path / "ds").mkdir()
    for stage, scale in ((1, 2000), (2, window)):
        parts = {
            **fixed,
            "fp16": {**halves, "loss_scale_window": scale},
            "zero_optimization": {"stage": stage},
        }
        (tmp_path / "ds" / f"zero{stage}.json").write_text(json.dumps(parts))
    (tmp_path / "train_pairs.py").write_text(PARSER)
    fix = found_in(tmp_path, OWN, "a100-40gb:4", "DOC104").fix
    assert fix is not None
    # Stage 1 keeps 4 bytes of each weight whole, and 12 on 4 GPUs: 44 of 39.5 GiB.
    assert "…/ds/zero2.json" in fix.title
    assert "/ds/zero2.json" in [edit.new for edit in fix.edits]
    assert fix.applicability == risk


TUNES = """from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from shapes import ModelArguments
model_args, args = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
Trainer(model=model, args=args, train_dataset=load(model_args)).train()
"""
NAMED = """GPUS=${GPUS:-16}
GPUS_PER_NODE=${GPUS_PER_NODE:-8}
BATCH_SIZE=${BATCH_SIZE:-128}
EACH=${EACH:-4}
NODES=$((GPUS / GPUS_PER_NODE))
ACCUMULATION=$((BATCH_SIZE / EACH / GPUS))
srun --gres=gpu:${GPUS_PER_NODE} --nodes=${NODES} --ntasks=${GPUS} --ntasks-per-node=${GPUS_PER_NODE} \\
    python tune.py --model_name_or_path ./work_dirs/mine_phi3_3_8b --output_dir out --bf16 True \\
    --max_seq_length 8192 --freeze_llm False --deepspeed "zero1.json" --grad_checkpoint True \\
    --per_device_train_batch_size ${EACH} --gradient_accumulation_steps ${ACCUMULATION}
"""


@pytest.mark.parametrize("offloads", [True, False])
def test_states_that_gpus_cannot_keep_go_to_the_host_where_a_file_says_so(
    tmp_path: Path, offloads: bool
) -> None:
    kinds = {"zero1": {"stage": 1}, **(ZERO if offloads else {})}
    for name, zero in kinds.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    (tmp_path / "tune.py").write_text(TUNES)
    finding = found_in(tmp_path, NAMED, "rtx-3090:2", "DOC104")
    # A name says 3.2 to 6.1B: with 16 bytes each at least 48 of 47 GiB; on the host, the rest is open.
    assert finding.fix is not None
    if not offloads:
        assert finding.fix.applicability == "display"
        assert "offload_optimizer.device to cpu" in finding.fix.title
        return
    assert "deepspeed to zero3_offload.json" in finding.fix.title
    assert (finding.fix.applicability, finding.fix.certainty) == ("safe", "may")
    assert "GPUS=${GPUS:-2}" in apply_edits(NAMED, list(finding.fix.edits))


def test_files_beside_a_script_in_the_working_folder_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, zero in ZERO.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    monkeypatch.chdir(tmp_path)
    script = GRPO.replace("${HOME_OF_RUN}/ds/", "")
    fix = found_in(tmp_path, script, "rtx-3090:2", "DOC104", path="run.sh").fix
    assert fix is not None
    assert "zero3_offload.json" in fix.title


OWN_STATES = """torchrun --nproc_per_node 8 tune.py --model_name_or_path {model} --output_dir out \\
    --bf16 True --model_max_length 2048 --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \\
    --gradient_checkpointing True --deepspeed ds.json
"""


@pytest.mark.parametrize(("model", "told"), [("Qwen/Qwen2.5-7B", True), ("Qwen/Qwen2.5-0.5B", False)])
def test_the_file_that_offloads_nothing_is_where_the_states_go_to_the_host(
    tmp_path: Path, model: str, told: bool
) -> None:
    none = {"device": "none"}
    zero = {"stage": 3, "offload_optimizer": none, "offload_param": none}
    (tmp_path / "ds.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    (tmp_path / "tune.py").write_text(TUNES)
    fix = found_in(tmp_path, OWN_STATES.format(model=model), "rtx-3090:2", "DOC104").fix
    assert fix is not None
    # 7.6B in ZeRO-3 are 16 bytes each: 57 GiB on each of two GPUs, and 14 with the optimizer on the host.
    assert (fix.applicability == "display") == told
    assert ("offload_optimizer.device to cpu in " in fix.title) == told


def test_a_reason_names_the_rule_that_keeps_states_off_the_host(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps({**AUTO, "zero_optimization": {"stage": 3}}))
    (tmp_path / "tune.py").write_text(TUNES)
    script = f"{OWN_STATES.format(model='Qwen/Qwen2.5-7B').rstrip()} --optim rmsprop\n"
    finding = found_in(tmp_path, script, "rtx-3090:2", "DOC104")
    assert finding.fix is None
    assert "would have them on the host, but RUN282 (optimizer-becomes-adam) would break" in finding.unfixed


TUNED = """deepspeed --num_gpus 4 tune.py --model_name_or_path meta-llama/Llama-2-13b-hf --output_dir out \\
    --bf16 True --max_seq_length 512 --gradient_checkpointing True --deepspeed zero2.json \\
    --per_device_train_batch_size 1 --gradient_accumulation_steps 8
"""


@pytest.mark.parametrize(
    ("gpu", "beside", "title"),
    [
        (
            "rtx-3090:4",
            "zero3",
            "set zero_optimization.offload_optimizer.device to cpu in zero3.json and deepspeed to zero3.json",
        ),
        ("a40:4", "zero2_offload", "set deepspeed to zero2_offload.json"),
    ],
)
def test_the_file_that_is_edited_is_the_one_that_is_used(
    tmp_path: Path, gpu: str, beside: str, title: str
) -> None:
    both = {"stage": 2, "offload_optimizer": HOST, "offload_param": HOST}  # of which stage 2 reads the first
    for name, zero in (("zero2", ZERO["zero2"]), (beside, both if "offload" in beside else ZERO["zero3"])):
        (tmp_path / f"{name}.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    (tmp_path / "tune.py").write_text(TUNES)
    finding = found_in(tmp_path, TUNED, gpu, "MEM105")
    assert finding.fix is not None
    assert finding.fix.title == title


FACTORY = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
deepspeed: examples/deepspeed/ds_z3_config.json
dataset: identity
template: qwen
cutoff_len: 2048
per_device_train_batch_size: 1
bf16: true
output_dir: out
"""


@pytest.mark.parametrize(("here", "shows"), [(("",), "unsafe"), (("", "_offload"), "safe"), ((), "safe")])
def test_llamafactorys_files_are_named_where_they_may_be(
    tmp_path: Path, here: tuple[str, ...], shows: str
) -> None:
    folder = tmp_path / "examples" / "deepspeed"
    folder.mkdir(parents=True)
    for offload in here:
        parts = {**AUTO, "zero_optimization": ZERO[f"zero3{offload}"]}
        (folder / f"ds_z3{offload}_config.json").write_text(json.dumps(parts))
    fix = found_in(tmp_path, FACTORY, "rtx-3090:2", "MEM105", str(tmp_path / "tune.yaml")).fix
    assert fix is not None
    assert fix.applicability == shows
    assert ("ds_z3_offload_config.json" in fix.title) == (shows == "safe")
    assert ("finetuning_type to lora" in fix.title) == (shows == "unsafe")


def test_a_file_that_shards_nothing_has_siblings_too(tmp_path: Path) -> None:
    folder = tmp_path / "examples" / "deepspeed"
    folder.mkdir(parents=True)
    for stage in (0, 3):
        parts = {**AUTO, "zero_optimization": {"stage": stage}}
        (folder / f"ds_z{stage}_config.json").write_text(json.dumps(parts))
    text = FACTORY.replace("ds_z3", "ds_z0")
    fix = found_in(tmp_path, text, "a40:8", "MEM105", str(tmp_path / "tune.yaml")).fix
    assert fix is not None
    assert "deepspeed to examples/deepspeed/ds_z3_config.json" in fix.title


def test_states_go_to_the_host_also_where_the_rest_of_the_memory_is_open(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps({**AUTO, "zero_optimization": ZERO["zero3"]}))
    script = TUNED.replace("meta-llama/Llama-2-13b-hf", "mistralai/Mixtral-8x7B-v0.1").replace("zero2", "ds")
    script = script.replace("--num_gpus 4 tune.py", "--num_gpus 8 mine/tune.py")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tune.py").write_text("from mine.elsewhere import train\ntrain(attention='eager')\n")
    finding = found_in(tmp_path, script, "a100-40gb-pcie:8", "MEM105")
    # 93 GB of weights on 8 GPUs: 87 GiB of states each. Whether there is a reference, too, nobody says.
    assert finding.fix is not None
    assert "offload_param.device to cpu" in finding.fix.title
    assert (finding.fix.applicability, finding.fix.certainty) == ("display", "may")


@pytest.mark.parametrize(
    ("more", "clips", "title"),
    [
        ({}, "auto", "set deepspeed to zero3_clipped.json"),  # of two files, the one that changes less
        ({"fp16": {"enabled": "auto", "loss_scale_window": 500}}, None, "set deepspeed to zero3.json"),
    ],
)
def test_a_file_that_keeps_how_a_run_learns_is_safe(
    tmp_path: Path, more: dict[str, object], clips: str | None, title: str
) -> None:
    both = {"zero2": ("zero2", clips), "zero3": ("zero3", None), "zero3_clipped": ("zero3", clips)}
    for name, (kind, clipping) in both.items():
        own = {**AUTO, **(more if name == "zero2" else {}), "zero_optimization": ZERO[kind]}
        own |= {"gradient_clipping": clipping} if clipping else {}
        (tmp_path / f"{name}.json").write_text(json.dumps(own))
    (tmp_path / "tune.py").write_text(TUNES)
    script = TUNED.replace("Llama-2-13b", "Llama-2-7b").replace("num_gpus 4", "num_gpus 8")
    fix = found_in(tmp_path, script, "rtx-4090:8", "MEM105").fix
    assert fix is not None
    # What scales a loss in fp16 scales none in bf16.
    assert (fix.title, fix.applicability) == (title, "safe")


def test_what_is_missing_agrees_with_the_need_behind_it(tmp_path: Path) -> None:
    (tmp_path / "tune.py").write_text(TUNES)
    script = TUNED.replace("deepspeed --num_gpus 4", "torchrun --nproc_per_node 8").replace("512", "2048")
    script = script.replace("--deepspeed zero2.json", '--fsdp "full_shard auto_wrap offload"')
    told = found_in(tmp_path, script, "rtx-4090:8", "MEM104").unfixed
    # Between micro-batches, FSDP keeps whole gradients: 24 GiB of each GPU.
    lack, most = re.findall(r"up to ([0-9.]+) GiB .* needs [0-9.]+–([0-9.]+) GiB", told)[0]
    assert float(most) - float(lack) == pytest.approx(23.51, abs=0.1)


SFT = """model_name_or_path: Qwen/Qwen2.5-3B-Instruct
stage: sft
do_train: true
finetuning_type: full
deepspeed: ds/zero2.json
enable_liger_kernel: true
dataset: alpaca_en_demo
template: qwen
cutoff_len: 16384
output_dir: saves/run
per_device_train_batch_size: 1
use_unsloth_gc: true
bf16: true
"""


def test_another_file_is_tried_with_its_own_buckets(tmp_path: Path) -> None:
    """Those of the file in use are a gigabyte each, which would leave too little for what fits."""
    (tmp_path / "ds").mkdir()
    large = {"reduce_bucket_size": 5e8, "overlap_comm": True}
    files = {
        "zero2": {**ZERO["zero2"], **large},
        "zero2_offload": {**ZERO["zero2"], "offload_optimizer": HOST, **large},
        "zero3_offload": {**ZERO["zero3_offload"], "reduce_bucket_size": "auto", "overlap_comm": True},
    }
    for name, zero in files.items():
        (tmp_path / "ds" / f"{name}.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    fix = found_in(tmp_path, SFT, "rtx-3060:2", "MEM105", str(tmp_path / "sft.yaml")).fix
    assert fix is not None
    assert fix.title == "set deepspeed to ds/zero3_offload.json"
    assert (fix.applicability, fix.certainty) == ("safe", "sure")
