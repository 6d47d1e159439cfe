"""What fuzzing found, each with the kind of input that it was: none of it may come back."""

import pytest

from fuzz import targets

DIGITS = "9" * 5000
LAUNCH = "accelerate launch --num_processes 1 -m openrlhf.cli.train_sft --train.batch_size 8"
SHEET = '{"cfglint": "hardware", "version": 1, "devices": [{"name": "A100-SXM4-80GB", "mig": "PROFILE"}]}'
FOUND = [
    # `²` is a digit to str.isdigit, and no number to int.
    ("script", "#SBATCH --nodes=²\n#SBATCH --gpus=2\ntorchrun t.py --per_device_train_batch_size 1\n"),
    ("script", "docker run --gpus ² img trl sft --per_device_train_batch_size 1\n"),
    ("script", "docker run --gpus count=² img trl sft --per_device_train_batch_size 1\n"),
    ("script", 'runpodctl create pod --gpuType x --gpuCount ² --args "trl sft --a 1"\n'),
    # More digits than int() takes.
    ("manifest", f"resources: {{accelerators: A100-80GB-1g.{DIGITS}gb}}\nrun: {LAUNCH}\n"),
    (
        "sheet",
        (
            '{"cfglint": "hardware", "version": 1, "devices": [{"name": "NVIDIA A100-SXM4-80GB", '
            f'"mig": "1g.{DIGITS}gb"}}]}}'
        ),
    ),
    ("flags", f"check\nx.yaml\n--gpu\na100-80gb-1g.{DIGITS}gb"),
    ("flags", f"fit\nx.yaml\n--vary\ngrpo[{DIGITS}]=1,2"),
    # More nodes than a float holds.
    (
        "sheet",
        '{"cfglint": "hardware", "version": 1, "nodes": 1e308, "devices": [{"name": "A40", "count": 9}]}',
    ),
    # A word of nothing in the place of a folder.
    ("script", "python3 -m verl.trainer.main_ppo --config-path= --config-name='x' data.train_batch_size=1\n"),
    # The places of what a manifest's scalar says are not known where U+0085 or U+2028 breaks its lines.
    ("manifest", f"num_nodes: 2\u2028run: |\u2028  {LAUNCH} \\\u2028    --data.max_len 8\u2028"),
    ("manifest", f"num_nodes: 2\x85run: |\x85  {LAUNCH} \\\x85    --data.max_len 8\x85"),
    # A flag added amid the words of another.
    ("script", f"{LAUNCH} --train.micro_batch_size 2 *a\n --ds.zero_stage 2\n"),
    ("script", f"N=8\n{LAUNCH} --data.max_len $N --train.micro_batch_size $N\n"),
    # A word with blanks and a `#` behind a flag that had none.
    ("script", f"{LAUNCH} --actor.gradient_checkpointing_enable --data.max_len 75\n"),
]


@pytest.mark.parametrize(("kind", "text"), FOUND, ids=range(len(FOUND)))
def test_found(kind, text):
    targets.tried(kind, text.encode())
