"""What stands against a value that another command of the script reads, too."""

from __future__ import annotations

from found import found_in

SHAPE = (
    "--num-layers 40 --hidden-size 6144 --num-attention-heads 48 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --bf16"
)
MEGATRON = "torchrun --nproc_per_node 8 {} --tensor-model-parallel-size 8 --use-distributed-optimizer {}"


def test_what_another_command_breaks_is_said_with_its_number() -> None:
    both = MEGATRON.format("{}", f"{SHAPE} --train-iters 9 --vocab-size 50000").replace("8 {}", "$N {}", 1)
    script = f"N=8\n{both.format('tools/convert.py')}\n{both.format('pretrain_gpt.py')}\n"
    unfixed = found_in(script, "rtx-3090:2")["DOC104"].unfixed
    assert "pretrain_gpt.py (line 3) reads what is set, too: " in unfixed
    assert "18.4B weights with their gradients take" in unfixed
