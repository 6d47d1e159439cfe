"""An optimizer of a fork's or a program's own: DeepSpeed's offload would put its CPU Adam in its place."""

from types import SimpleNamespace

import pytest

from cfglint.cli import main
from cfglint.document.python.optimizers import makes_optimizer

TRAIN = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
{}deepspeed: examples/deepspeed/ds_z3_config.json
dataset: alpaca_en_demo
template: qwen
cutoff_len: 2048
output_dir: saves/run
per_device_train_batch_size: 1
bf16: true
"""
FORK = """
def create_custom_optimizer(model, training_args, finetuning_args):
    if finetuning_args.use_sketch:
        return _create_sketch_optimizer(model)
    if finetuning_args.use_more_logs:
        logger.setLevel("DEBUG")
"""


@pytest.mark.parametrize(
    ("switch", "code", "offered"),
    [
        ("", FORK, True),
        ("use_sketch: true\n", FORK, False),
        ("use_sketch: false\n", FORK, True),
        ("use_more_logs: true\n", FORK, True),  # it is read for something else
        ("use_sketch: true\n", "", False),  # nobody knows what it does
        ("use_muon: true\n", "", False),
        ("use_swanlab: true\n", "", True),
    ],
)
def test_what_offload_is_offered_beside(
    tmp_path, monkeypatch, capsys, switch: str, code: str, offered: bool
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "trainer_utils.py").write_text(code, "utf-8")
    (tmp_path / "sft.yaml").write_text(TRAIN.format(switch), "utf-8")
    monkeypatch.chdir(tmp_path)
    main(["check", "sft.yaml", "--no-detect", "--gpu", "rtx-4090:2"])
    out = capsys.readouterr().out
    assert "OUT OF MEMORY" in out
    assert ("ds_z3_offload_config.json" in out) is offered
    if "sketch: true" in switch:
        assert "to lora" not in out


OWN = "from transformers import Trainer\n{}"
GIVEN = "trainer = Trainer(model, args, optimizers=(optimizer, None))\n"
BUILT = f"optimizer, scheduler = build(model)\n{GIVEN}def build(model):\n    return {{}}(model), None\n"
MADE = "class Own(Trainer):\n    def create_optimizer(self):\n        {}\n        self.optimizer = kind()\n"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (f"optimizer = Sophia(model.parameters())\n{GIVEN}", True),
        (f"optimizer = torch.optim.AdamW(groups)\n{GIVEN}", False),
        (BUILT.format("AdamW"), False),
        (BUILT.format("Sophia"), True),
        ("trainer = Trainer(model, args, optimizers=(None, scheduler))\n", False),
        (MADE.format("kind = Sophia"), True),
        (MADE.format("kind, words = Trainer.get_optimizer_cls_and_kwargs(self.args)"), False),
    ],
)
def test_a_program_that_makes_an_optimizer(code: str, told: bool) -> None:
    file = SimpleNamespace(text=OWN.format(code), path="train.py")
    assert makes_optimizer(file, SimpleNamespace(files=lambda _: [file])) is told
