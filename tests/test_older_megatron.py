"""Programs written for the Megatron before its move of 2024: no fix gives a flag that it did not have."""

import pytest

from cfglint.cli import main

OLD = "from megatron import get_args\nfrom megatron.training import pretrain\n"
NEW = "from megatron.training import get_args, pretrain\n"
OWN_LAYERS = (
    "from megatron.model.module import MegatronModule\n\n\n"
    "class TransformerLayer(MegatronModule):\n    pass\n"
)
# 1.7B weights on one GPU of 23.6 GiB: the optimizer on the host holds them, else nothing does.
MODEL = (
    "--num-layers 32 --hidden-size 2048 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --train-iters 100 "
    "--lr 0.00015 --bf16 --vocab-size 50257 "
)
# Fewer fit, but not with such a long sequence.
SMALL = MODEL.replace("--num-layers 32", "--num-layers 12").replace("1024", "16384")


def _checked(program, flags, tmp_path, monkeypatch, capsys):
    (tmp_path / "pretrain_gpt.py").write_text(program, "utf-8")
    command = f"torchrun --nproc_per_node 1 pretrain_gpt.py --tensor-model-parallel-size 1 {flags}\n"
    (tmp_path / "run.sh").write_text(command, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "rtx-3090:1"]) == 1
    return capsys.readouterr().out


@pytest.mark.parametrize(("program", "offered"), [(OLD, False), (NEW, True)])
def test_an_older_megatron_has_no_optimizer_on_the_host(program, offered, tmp_path, monkeypatch, capsys):
    told = _checked(program, MODEL, tmp_path, monkeypatch, capsys)
    assert ("optimizer_cpu_offload" in told) is offered
    assert "OUT OF MEMORY" in told


def test_so_do_flags_of_2021_tell(tmp_path, monkeypatch, capsys):
    told = _checked("", MODEL + "--checkpoint-activations", tmp_path, monkeypatch, capsys)
    assert "optimizer_cpu_offload" not in told


@pytest.mark.parametrize(("layers", "offered"), [("", True), (OWN_LAYERS, False)])
def test_layers_of_its_own_recompute_nothing(layers, offered, tmp_path, monkeypatch, capsys):
    told = _checked(OLD + layers, SMALL, tmp_path, monkeypatch, capsys)
    assert ("recompute_granularity" in told) is offered
