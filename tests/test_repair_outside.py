"""A value that another script says, which a launcher runs, is told with its place, and the launcher's own."""

from __future__ import annotations

from cfglint.document.compose import edited
from cfglint.document.edits import replace_value
from cfglint.document.reading import read_text
from cfglint.text import OutsideEdit, apply_edits
from found import found_in

INNER = """\
LEADER=$1
NUM_NODES=$2
torchrun --nnodes ${NUM_NODES}:${NUM_NODES} --nproc-per-node 8 --rdzv_endpoint=$LEADER:29400 \\
  -m openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-0.5B --train_batch_size 64
"""
SUBMITTED = """\
NUM_NODES=2
gantry run --gpus 8 --replicas "${NUM_NODES}" \\
  -- /bin/bash -c "scripts/on_each.sh \\$LEADER ${NUM_NODES}"
"""
AS_IT_IS = SUBMITTED.replace("--gpus 8", "--gpus 2")
PLACE = "scripts/on_each.sh"


def test_counts_of_both_scripts_are_told() -> None:
    fix = found_in(SUBMITTED, "rtx-4090:2", "bad.sh", {"scripts/on_each.sh": INNER})["DOC104"].fix
    assert fix is not None
    # flags that it lacks
    there = f"set --nproc_per_node to 2, gradient_checkpointing to true, adam_offload to true in {PLACE}"
    assert fix.title.startswith(f"{there}, NUM_NODES to 1")
    assert fix.title.endswith("--gpus to 2")
    assert not fix.edits  # a fix edits the file of the finding alone


def test_what_asks_for_no_more_stays() -> None:
    fix = found_in(AS_IT_IS, "rtx-4090:2", "bad.sh", {"scripts/on_each.sh": INNER})["DOC104"].fix
    assert fix is not None
    assert "--gpus" not in fix.title


def test_an_edit_of_another_script_is_read_again() -> None:
    file = read_text(SUBMITTED, "bad.sh", scripts={"scripts/on_each.sh": INNER}.get)
    at = INNER.index("8 --rdzv")
    edits = [OutsideEdit(at, at + 1, "2", "scripts/on_each.sh", INNER)]
    again = edited(file.documents[0], edits)
    assert again is not None
    assert again.file.text == SUBMITTED
    assert again.root.entries["launch"].value.entries["processes_per_node"].value.target.text == "2"  # type: ignore[union-attr]


def test_a_text_with_blanks_stays_in_its_quotes() -> None:
    command = (
        "torchrun --nproc_per_node=4 train.py --model_name_or_path huggyllama/llama-7b --bf16 True \\\n"
        "  --per_device_train_batch_size 1 --output_dir out --fsdp {}\n"
    )
    for said, edits in (('"full_shard auto_wrap"', True), ("full_shard", False)):
        document = read_text(command.format(said), "run.sh").documents[0]
        node = document.root.entries["fsdp"].value  # type: ignore[union-attr]
        edit = replace_value(document, node, "full_shard auto_wrap offload", "yaml12")
        assert (edit is not None) is edits
        if edit is not None:
            text = apply_edits(document.file.text, [edit])
            assert text == command.format('"full_shard auto_wrap offload"')


def test_a_list_of_gpus_there_is_told() -> None:
    inner = (
        "deepspeed --include localhost:4,5,6,7 train.py --model_name_or_path Qwen/Qwen2.5-0.5B \\\n"
        "  --output_dir out --per_device_train_batch_size 4 --gradient_accumulation_steps 2\n"
    )
    found = found_in("bash scripts/each.sh\n", "rtx-4090:2", "run.sh", {"scripts/each.sh": inner})
    fix = found["DOC104"].fix
    assert fix is not None
    told = "set the GPUs of --include to 0,1, gradient_accumulation_steps to 4 in scripts/each.sh"
    assert fix.title.startswith(told)
    assert not fix.edits
