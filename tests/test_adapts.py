"""Adapters where full training does not fit: by a framework's switch, or by a program's own."""

import pytest

from cfglint.cli import main
from cfglint.document.python.adapts import adapters_of, takes_peft_config
from cfglint.document.python.modules import Modules
from cfglint.document.tree import File

_PROGRAM = """
from dataclasses import dataclass, field
from typing import List, Optional
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default=None)


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=512)
    lora_enable: bool = False
    lora_r: int = 64
    layers: List[str] = field(default_factory=lambda: ["q_proj", "v_proj"])
    bits: int = field(default=16)


def find_all_linear_names(model):
    return [name for name, module in model.named_modules()]


def train():
    parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    quantized = BitsAndBytesConfig(load_in_4bit=training_args.bits == 4)
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, quantization_config=quantized)
    model.enable_input_require_grads()
    if training_args.lora_enable:
        config = LoraConfig(r=training_args.lora_r, target_modules=find_all_linear_names(model))
        model = get_peft_model(model, config)
    Trainer(model=model, args=training_args).train()


train()
"""
_ALL = "target_modules=find_all_linear_names(model)"
_SCRIPT = """
deepspeed --num_gpus 1 train.py --model_name_or_path Qwen/Qwen3-4B --output_dir out --bf16 True \\
    --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --gradient_checkpointing True \\
    --logging_steps 1 --model_max_length 1024
"""
_REFUSES = (
    "    if training_args.lora_enable and {}:\n        raise ValueError\n    if training_args.lora_enable:\n"
)


def _adapters(text):
    return adapters_of(File("train.py", text, "program"), Modules(lambda file, name: None))


def test_the_switch_of_a_program_is_read_from_the_branch_that_makes_adapters():
    found = _adapters(_PROGRAM)
    assert (found.switch, found.rank, found.targets) == ("lora_enable", "lora_r", ("all-linear",))
    assert (found.bits, found.numbered, found.unsharded, found.saves) == ("bits", True, False, False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    if training_args.lora_enable:\n", "    if False:\n"),  # nobody reads the switch
        ("    model.enable_input_require_grads()\n", ""),  # checkpointed layers would learn nothing
        (_ALL, "target_modules=find_all_linear_names(model, training_args.lora_llm)"),  # by more flags
        (_ALL, "target_modules=layers_of(model)"),
        ("    if training_args.lora_enable:\n", _REFUSES.format("training_args.tune_llm")),
        ("r=training_args.lora_r", 'r=json.load(file)["r"]'),
    ],
)
def test_a_switch_whose_effect_is_not_told_is_none(old, new):
    assert old in _PROGRAM
    assert _adapters(_PROGRAM.replace(old, new)) is None


def test_what_stops_with_sharded_weights_is_noted():
    stops = _REFUSES.format("deepspeed.is_deepspeed_zero3_enabled()")
    found = _adapters(_PROGRAM.replace("    if training_args.lora_enable:\n", stops))
    assert found.unsharded


_PROJECTOR = "    for weight in model.projector.parameters():\n        weight.requires_grad = True\n"
_KEEPS = (
    "    if training_args.lora_enable:\n        torch.save(non_lora_state(model), training_args.output_dir)\n"
)


@pytest.mark.parametrize(
    ("saves", "offered"),
    [
        ("", False),
        (_KEEPS.replace("    ", "    # "), False),
        (_KEEPS, True),
        ("    engine.save_checkpoint(out)\n", True),
    ],
)
def test_what_is_trained_beside_adapters_has_to_be_saved_with_them(saves, offered):
    made = "    Trainer(model=model, args=training_args).train()\n"
    found = _adapters(_PROGRAM.replace(made, _PROJECTOR + made + saves))
    assert (found is not None) is offered


def test_layers_may_be_listed_in_the_code_or_by_a_flag():
    assert _adapters(_PROGRAM.replace(_ALL, 'target_modules=["wq", "wv"]')).targets == ("wq", "wv")
    assert _adapters(_PROGRAM.replace(_ALL, "target_modules=training_args.layers")).targets == "layers"


def test_a_method_may_make_them():
    text = _PROGRAM.replace("        model = get_peft_model(model, config)\n", "")
    text = text.replace(f"config = LoraConfig(r=training_args.lora_r, {_ALL})", "model.wrap_lora(r=8)")
    method = """
class Model:
    def wrap_lora(self, r=128):
        layers = ["attention.wqkv", "attention.wo"]
        self.lm = get_peft_model(self.lm, LoraConfig(r=r, target_modules=layers))
"""
    found = _adapters(text + method)
    assert (found.rank, found.targets) == (8, ("attention.wo", "attention.wqkv"))


def test_trl_arguments_that_are_handed_on():
    text = "trainer = SFTTrainer(model, peft_config=get_peft_config(model_args))\n"
    assert takes_peft_config(File("sft.py", text, "program"), Modules(lambda file, name: None))
    alone = File("sft.py", "config = get_peft_config(model_args)\n", "program")
    assert not takes_peft_config(alone, Modules(lambda file, name: None))


def _check(path, capsys, *more):
    main(["check", str(path), "--gpu", "rtx-4090:1", "--no-detect", *more])
    return capsys.readouterr().out


def test_a_program_that_does_not_fit_gets_its_switch_with_smaller_micro_batches(tmp_path, capsys):
    (tmp_path / "train.py").write_text(_PROGRAM)
    (tmp_path / "train.sh").write_text(_SCRIPT)
    told = _check(tmp_path / "train.sh", capsys)
    assert "set lora_enable to true" in told
    assert "LoRA rank 0 → 64" in told
    assert "effective batch 16" in told
    (tmp_path / "train.py").write_text(
        _PROGRAM.replace("    if training_args.lora_enable:\n", "    if False:\n")
    )
    assert "lora_enable" not in _check(tmp_path / "train.sh", capsys)


_FULL = "per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\noutput_dir: out\nbf16: true\n"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "llamafactory.yaml",
            (
                "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
                f"template: qwen3\ndataset: mine\ncutoff_len: 2048\n{_FULL}"
            ),
            "set finetuning_type to lora",
        ),
        (
            "trl.sh",
            (
                "trl sft --model_name_or_path Qwen/Qwen3-8B --dataset_name mine --output_dir out --bf16 true "
                "--per_device_train_batch_size 2 --gradient_accumulation_steps 8\n"
            ),
            "set use_peft to true",
        ),
        (
            "swift.sh",
            (
                "CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen3-8B --dataset mine --tuner_type full "
                "--torch_dtype bfloat16 --per_device_train_batch_size 2 --gradient_accumulation_steps 8\n"
            ),
            "set tuner_type to lora",
        ),
        (
            "openrlhf.sh",
            (
                "deepspeed --module openrlhf.cli.train_sft --pretrain Qwen/Qwen3-8B --dataset mine "
                "--zero_stage 2 --train_batch_size 16 --micro_train_batch_size 2 --param_dtype bf16 "
                "--gradient_checkpointing\n"
            ),
            "lora_rank to 64",
        ),
        (
            "axolotl.yaml",
            (
                "base_model: Qwen/Qwen3-8B\ndatasets:\n  - path: mine\n    type: alpaca\nsequence_len: 2048\n"
                "micro_batch_size: 2\ngradient_accumulation_steps: 8\nnum_epochs: 1\n"
                "optimizer: adamw_torch_fused\n"
                "learning_rate: 1.0e-5\nbf16: true\ngradient_checkpointing: true\noutput_dir: out\n"
            ),
            "set adapter to lora",
        ),
    ],
)
def test_a_framework_has_its_own_switch(name, text, told, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert told in _check(tmp_path / name, capsys)


def test_what_leaves_the_training_as_it_is_comes_first(tmp_path, capsys):
    config = "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
    (tmp_path / "full.yaml").write_text(
        f"{config}template: qwen3\ndataset: mine\ncutoff_len: 2048\n{_FULL.replace('size: 2', 'size: 16')}"
    )
    out = _check(tmp_path / "full.yaml", capsys)
    assert "fix (" in out
    assert "finetuning_type to lora" not in out
