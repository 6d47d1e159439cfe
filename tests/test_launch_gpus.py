"""The processes that a launch starts are its GPUs, in every framework whose launcher starts one for each."""

import json

import pytest

from cfglint.cli import main

MODEL = "--model_name_or_path Qwen/Qwen2.5-0.5B"
TRL = f"{MODEL} --dataset_name a/b --per_device_train_batch_size 1 --max_length 512"
TRAINER = f"{MODEL} --output_dir o --do_train --per_device_train_batch_size 1"
FILES = {
    "factory.yaml": """
model_name_or_path: Qwen/Qwen2.5-0.5B
stage: sft
do_train: true
finetuning_type: full
cutoff_len: 512
per_device_train_batch_size: 1
""",
    "axolotl.yaml": """
base_model: Qwen/Qwen2.5-0.5B
sequence_len: 512
micro_batch_size: 1
datasets: []
""",
    "tune.yaml": """
model: {_component_: torchtune.models.qwen2_5.qwen2_5_0_5b}
batch_size: 1
optimizer: {_component_: torch.optim.AdamW}
loss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}
dataset: {_component_: torchtune.datasets.alpaca_dataset}
""",
    "titan.toml": """
[job]
dump_folder = "o"
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 512
""",
    "four.yaml": """
distributed_type: MULTI_GPU
num_machines: 1
num_processes: 4
mixed_precision: bf16
""",
}
COMMANDS = {
    "trl by torchrun": f"torchrun --nproc_per_node=4 -m trl.scripts.sft {TRL}",
    "trl by deepspeed": f"deepspeed --num_gpus 4 --module trl.scripts.sft {TRL}",
    "trl by itself": f"trl sft --num_processes 4 {TRL}",
    "trl by accelerate": f"accelerate launch --num_processes 4 -m trl.scripts.sft {TRL}",
    "trl by accelerate's file": f"accelerate launch --config_file four.yaml -m trl.scripts.sft {TRL}",
    "transformers": f"torchrun --nproc_per_node 4 run_clm.py {TRAINER}",
    "transformers by accelerate's file": f"accelerate launch --config_file four.yaml run_clm.py {TRAINER}",
    "llamafactory": "NPROC_PER_NODE=4 llamafactory-cli train factory.yaml",
    "axolotl": "accelerate launch --num_processes 4 -m axolotl.cli.train axolotl.yaml",
    "torchtune": "tune run --nproc_per_node 4 full_finetune_distributed --config tune.yaml",
    "torchtitan": "torchrun --nproc_per_node 4 -m torchtitan.train --job.config_file titan.toml",
    "verl": "torchrun --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=1 "
    "model.partial_pretrain=Qwen/Qwen2.5-0.5B trainer.total_epochs=1",
    "openrlhf": "deepspeed --num_gpus 4 --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-0.5B "
    "--train_batch_size 64 --micro_train_batch_size 1",
}


@pytest.fixture(params=COMMANDS.values(), ids=COMMANDS)
def launch(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "run.sh").write_text(request.param + "\n", "utf-8")
    return request.param


def read(capsys, *arguments):
    main([*arguments, "run.sh", "--no-detect", "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_a_launch_that_states_its_processes_needs_no_count(launch, capsys):
    (job,) = read(capsys, "facts", "--gpu", "a40")["jobs"]
    assert {name: job["facts"][name]["value"] for name in ("num_gpus", "gpu.count", "train_gpus")} == {
        "num_gpus": 4,
        "gpu.count": 4,
        "train_gpus": 4,
    }
    report = read(capsys, "check", "--gpu", "a40")
    needs = {need for rule in report["undecided"] for need in rule["needs"]}
    assert not needs & {"num_gpus", "gpu.count", "gpus_per_node"}


def test_machines_of_a_cluster_have_the_gpus_of_their_processes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(
        f"torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES -m trl.scripts.sft {TRL}\n", "utf-8"
    )
    (job,) = read(capsys, "check", "--gpu", "a40")["jobs"]
    assert job["gpus"] == 8
    assert job["ask"] == "its number of machines is set outside the script: add :N to --gpu"


def test_more_processes_than_there_are_gpus_are_an_error(launch, capsys):
    codes = {
        (finding["code"], finding["level"])
        for finding in read(capsys, "check", "--gpu", "a40:2", "--select", "DOC")["findings"]
    }
    assert codes & {("DOC104", "error"), ("DOC105", "error")}
    assert not read(capsys, "check", "--gpu", "a40:4", "--select", "DOC104,DOC105")["findings"]


def test_a_launcher_that_shards_nothing_is_plain_data_parallel(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for launcher in ("torchrun --nproc_per_node=4", "deepspeed --num_gpus 4"):
        module = "--module" if launcher.startswith("deepspeed") else "-m"
        (tmp_path / "run.sh").write_text(f"{launcher} {module} trl.scripts.sft {TRL}\n", "utf-8")
        (job,) = read(capsys, "facts", "--gpu", "a40")["jobs"]
        assert job["facts"]["train_backend"]["value"] == "ddp"
        assert "trl.launcher" not in job["unknown"]
        (tmp_path / "run.sh").write_text(
            f"{launcher} {module} trl.scripts.sft {TRL} --deepspeed z.json\n", "utf-8"
        )
        (job,) = read(capsys, "facts", "--gpu", "a40")["jobs"]
        assert "train_backend" not in job["facts"], "the file is not here"
