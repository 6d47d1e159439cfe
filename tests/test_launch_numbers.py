"""How many processes a launcher starts, said by its flag where a config file has the number."""

import json

import pytest

_FILE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
_ARGS = (
    "--model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a/b --per_device_train_batch_size 16 "
    "--gradient_accumulation_steps 2 --max_length 512 --bf16 True"
)
_FLAG = "--num_processes 4"
_START = "accelerate launch --config_file eight.yaml"


@pytest.fixture
def fixed(cfglint, folder):
    """Return the script after ``fix``, and what is known of it then."""

    def fix(text: str, *flags: str) -> tuple[str, dict[str, object]]:
        (folder / "eight.yaml").write_text(_FILE)
        (folder / "run.sh").write_text(text)
        done = cfglint("fix", "run.sh", "--gpu", "l40s:4", "--unsafe", "--accept-may", *flags)
        assert done.returncode in (0, 1), done.stderr
        told = cfglint("facts", "run.sh", "--gpu", "l40s:4", "--format", "json").stdout
        return (folder / "run.sh").read_text(), json.loads(told)

    return fix


def _facts(told) -> dict[str, object]:
    (job,) = told["jobs"]
    return {name: fact["value"] for name, fact in job["facts"].items()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{_START} -m trl.scripts.sft ", f"{_START} {_FLAG} -m trl.scripts.sft "),
        (f'LAUNCH="{_START}"\n$LAUNCH -m trl.scripts.sft ',
         f'LAUNCH="{_START}"\n$LAUNCH {_FLAG} -m trl.scripts.sft '),
        ('accelerate launch --config_file "eight.yaml" trl/scripts/sft.py ',
         f'accelerate launch --config_file "eight.yaml" {_FLAG} trl/scripts/sft.py '),
        ("accelerate launch \\\n    --config_file eight.yaml \\\n    trl/scripts/sft.py ",
         f"accelerate launch \\\n    --config_file eight.yaml \\\n    {_FLAG} \\\n    trl/scripts/sft.py "),
        ("accelerate launch --config-file=eight.yaml trl/scripts/sft.py ",
         "accelerate launch --config-file=eight.yaml --num-processes 4 trl/scripts/sft.py "),
        (f"{_START} $MORE trl/scripts/sft.py ", f"{_START} $MORE {_FLAG} trl/scripts/sft.py "),
        ("python -m accelerate.commands.launch --config_file eight.yaml trl/scripts/sft.py ",
         f"python -m accelerate.commands.launch --config_file eight.yaml {_FLAG} trl/scripts/sft.py "),
    ],
)  # fmt: skip
def test_the_flag_goes_behind_the_launchers_own(fixed, before: str, after: str) -> None:
    text, told = fixed(f"{before}{_ARGS}\n")
    assert text.startswith(after), text
    assert "--gradient_accumulation_steps 4" in text  # the batch stays
    assert _facts(told)["train_gpus"] == 4


def test_deepspeeds_list_of_gpus_ends_earlier(fixed) -> None:
    start = "deepspeed --include localhost:0,1,2,3,4,5,6,7 --module trl.scripts.sft "
    text, told = fixed(f"{start}{_ARGS}\n")
    assert text.startswith("deepspeed --include localhost:0,1,2,3 --module trl.scripts.sft ")
    assert _facts(told)["train_gpus"] == 4


def test_gpus_that_are_named_in_another_order_become_the_first(fixed) -> None:
    text, _ = fixed(f"deepspeed --include 'localhost:4,5,6,7,2,3,1,0' --module trl.scripts.sft {_ARGS}\n")
    assert text.startswith("deepspeed --include 'localhost:0,1,2,3' --module trl.scripts.sft ")


def test_a_number_that_is_said_otherwise_stays(fixed) -> None:
    text = f"{_START} --num_processes $N -m trl.scripts.sft {_ARGS}\n"
    assert fixed(text)[0] == text


def test_torchrun_takes_what_its_flags_begin_with(fixed) -> None:
    start = "torchrun --nproc_per 8 --nnode 2 -m trl.scripts.sft"
    text, _ = fixed(f"{start} {_ARGS}\n")
    assert text.startswith("torchrun --nproc_per 4 --nnode 1 -m trl.scripts.sft")


@pytest.mark.parametrize(
    ("before", "gpus"),
    [
        ("srun -n 16 -N 2 python train.py", 16),
        ("srun -N 2 --ntasks-per-node 8 python train.py", 16),
        ("srun --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 python train.py", 16),
        ("gantry run --gpus 8 -- torchrun --nproc_per_node 8 train.py", 8),
    ],
)
def test_tasks_of_all_nodes_are_counted(cfglint, folder, before: str, gpus: int) -> None:
    args = _ARGS.replace("--dataset_name a/b", "--output_dir o --num_train_epochs 1")
    (folder / "run.sh").write_text(f"{before} {args}\n")
    told = json.loads(cfglint("facts", "run.sh", "--gpu", "h100-sxm:8", "--format", "json").stdout)
    assert _facts(told)["num_gpus"] == gpus
    assert "DOC104" not in cfglint("check", "run.sh", "--gpu", "h100-sxm:8").stdout


def test_a_new_flag_is_joined_as_the_others_are(fixed) -> None:
    said = _ARGS.replace(" --gradient_accumulation_steps 2", "").replace(" --", "\0--").replace(" ", "=")
    text, _ = fixed(f"{_START} trl/scripts/sft.py " + said.replace("\0", " ") + "\n")
    assert text.rstrip().endswith(" --gradient_accumulation_steps=2")


@pytest.mark.parametrize(
    ("set_before", "one"),
    [
        ("export WORLD_SIZE=$((SLURM_NNODES * 4)) RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID\n", False),
        ("export WORLD_SIZE=4 LOCAL_RANK=$1\n", False),
        ("export WORLD_SIZE=1 RANK=$1\n", True),
        ("export WORLD_SIZE=4 RANK=0\n", True),
        ("export WORLD_SIZE=$SLURM_NTASKS\n", True),
        ("", True),
    ],
)
def test_a_script_that_is_told_its_rank_is_one_process_of_several(cfglint, folder, set_before, one) -> None:
    args = _ARGS.replace("--dataset_name a/b", "--output_dir o --num_train_epochs 1")
    (folder / "run.sh").write_text(f"{set_before}python train.py {args} --fsdp full_shard\n")
    assert ("PAR206" in cfglint("check", "run.sh", "--gpu", "l40s:4").stdout) is one
