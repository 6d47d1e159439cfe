"""What a program's own code says: whose samples its loss compares, whether it accumulates, its flags."""

import pytest

from cfglint.cli import main
from cfglint.document.python.declared import plain_flags
from cfglint.document.python.learns import (
    accumulates,
    applies_liger,
    averages_over_ranks,
    averages_over_tokens,
    compares,
    finds_unused,
    keeps_logits,
    means_tokens,
    passes_apart,
    says_sizes,
    starves_adapters,
    starves_unless_quantized,
    sums_losses,
    takes_sizes,
    takes_whole_groups_served,
)
from cfglint.document.python.megatron import clamps_sizes
from cfglint.document.python.modules import Modules
from cfglint.document.tree import File


def _alone():
    """Return a project of one file."""
    return Modules(lambda path, name: None)


def _program(text, path="train.py"):
    return File(path, text, "program")


_GATHERED = """
class Model:
    def forward(self, image, text):
        text_all = GatherLayer.apply(text).flatten(0, 1)
        return contrastive_loss(self.logit_scale.exp() * image @ text_all.t())
"""


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        (_GATHERED, "ranks"),
        ("scores = self.negatives_cross_device and all_gather(reps)  # contrastive\n", "batch"),
        ("loss = losses.MultipleNegativesRankingLoss(model)\n", "batch"),
        ("# a contrastive loss would need all_gather\nloss = model(**batch).loss\n", ""),
        ("dist.all_gather(shards, weights)\n", ""),
    ],
)
def test_whose_samples_a_loss_compares(text, whose):
    assert compares(_program(text), _alone()) == whose


def test_a_tower_that_was_trained_so_is_but_used():
    tower = _program(_GATHERED, "vision_tower/loss.py")
    project = Modules(lambda path, name: tower if name == tower.path else None)
    assert compares(_program("from vision_tower.loss import Loss\n"), project) == ""


def test_a_program_of_one_pass_accumulates_nothing():
    assert not accumulates(_program("def get_num_microbatches():\n    return 1\n"), _alone())
    assert accumulates(_program("def get_num_microbatches():\n    return _CALCULATOR.get()\n"), _alone())


_STEPS = """
for i, batch in enumerate(loader):
    {first}
    loss = model(batch) / args.accum_steps
    loss.backward()
    if (i + 1) % args.accum_steps == 0:
        optimizer.step()
        {last}
"""


@pytest.mark.parametrize(
    ("first", "last", "apart"),
    [
        ("log()", "optimizer.zero_grad()", False),
        ("optimizer.zero_grad()", "log()", True),
        ("if args.accum_steps == 1: log()", "optimizer.zero_grad()", True),
        ("if args.accum_steps == 1:\n        optimizer.zero_grad()", "optimizer.zero_grad()", False),
        ("if args.accum_steps == 1:\n        optimizer.zero_grad()\n        log()", "log()", True),
        ("if args.accum_steps == 1:\n        optimizer.zero_grad()\n    else:\n        log()", "log()", True),
        ("if i == 1: log()", "optimizer.zero_grad()", False),
    ],
)
def test_a_loop_that_does_otherwise_with_more_passes(first, last, apart):
    assert passes_apart(_program(_STEPS.format(first=first, last=last)), _alone()) is apart


def test_a_loop_with_many_blank_lines_is_read_in_time():
    text = _STEPS.format(first="optimizer.zero_grad()" + "\n        " * 2_000, last="log()")
    assert passes_apart(_program(text), _alone())
    assert not passes_apart(_program(text.replace("    loss.backward()", "  loss.backward()")), _alone())


_LOOP = """
for step, batch in enumerate(loader):
    loss = {}
    {}
    if (step + 1) % args.accumulation_steps == 0:
        optimizer.step()
        global_step = (step + 1) / args.accumulation_steps
"""


@pytest.mark.parametrize(
    ("loss", "backward", "sums"),
    [
        ("model(batch).loss", "loss.backward()", True),
        ("model(batch).loss", "booster.backward(loss=loss, optimizer=optimizer)", True),
        ("model(batch).loss / args.accumulation_steps", "loss.backward()", False),
        ("model(batch).loss", "(loss / self.config.gradient_accumulation_steps).backward()", False),
        ("model(batch).loss", "accelerator.backward(loss)", False),
        ("model(batch).loss", "engine, *_ = deepspeed.initialize(model)\n    loss.backward()", False),
        (
            "model(batch).loss",
            "loss.backward(); scale_grads_(model, 1 / tokens)",
            False,
        ),  # torchtune's recipes
    ],
)
def test_a_loop_that_adds_up_its_losses(loss, backward, sums):
    assert sums_losses(_program(_LOOP.format(loss, backward)), _alone()) is sums


@pytest.mark.parametrize(
    ("line", "over"),
    [
        ("labels = (labels[0], labels[1] * torch.cuda.device_count() / count)", True),
        ("loss_weight = tokens / all_tokens * dist.get_world_size()", True),
        ("loss *= self.args.world_size", True),
        ("loss = loss * args.gradient_accumulation_steps * accelerator.num_processes", False),
        ("loss = loss * num_processes / num_items_in_batch", False),
        ("seen += loss.item() * world_size", False),
        ("optimizer = Adam(lr=args.lr * world_size, weight_decay=0)", False),
        ("loss = loss * world_size" + " " * 1000, False),  # no such line is read
    ],
)
def test_a_loss_that_is_a_mean_over_the_micro_batches_of_all_processes(line, over):
    assert averages_over_ranks(_program(f"def step(batch):\n    {line}\n"), _alone()) is over


RING = """
from transformers import HfArgumentParser, Trainer, TrainingArguments


class Long(Trainer):
    def compute_loss(self, model, inputs):
        return model(extract_local(inputs["input_ids"], self.rank, self.world, "cuda")).loss


args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Long(args=args).train()
"""


@pytest.mark.parametrize(("call", "keeps"), [("extract_local", False), ("own_part", True)])
def test_a_sequence_that_processes_share_is_no_part_of_the_batch(call, keeps, tmp_path, monkeypatch, capsys):
    (tmp_path / "train.py").write_text(RING.replace("extract_local", call), "utf-8")
    flags = "--output_dir out --bf16 True --per_device_train_batch_size 1 --gradient_accumulation_steps 4"
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node=8 train.py {flags}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "h100-sxm:4"]) == 1
    told = capsys.readouterr().out
    assert ("fix (safe" in told) is keeps
    assert ("gradient_accumulation_steps to 8" in told) is keeps
    assert "PAR299" not in told


def test_all_processes_share_a_sequence_that_each_takes_its_part_of(tmp_path, monkeypatch, capsys):
    all_of_them = "rank = dist.get_rank()\nworld = dist.get_world_size()\n"
    program = RING.replace("self.rank, self.world", "rank, world").replace(
        "class Long", f"{all_of_them}class Long"
    )
    (tmp_path / "train.py").write_text(program, "utf-8")
    flags = "--output_dir out --bf16 True --per_device_train_batch_size 1 --gradient_accumulation_steps 4"
    command = f"torchrun --nproc_per_node=8 train.py {flags} --model_max_length 65536\n"
    (tmp_path / "run.sh").write_text(command, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "h100-sxm:4", "--verbose"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "effective batch 4, tokens per step" in told
    assert "of the longest sequence (65,536 tokens) each GPU then holds 16,384 instead of 8,192" in told


GROUPS = """
from transformers import HfArgumentParser, Trainer, TrainingArguments


class AnswerTrainer(Trainer):
    def __init__(self, model, args, **kwargs):
        self.num_generations = args.num_generations
        super().__init__(model=model, args=args, **kwargs)
        num_processes = self.accelerator.num_processes
        at_once = num_processes * args.per_device_train_batch_size
        whole = [n for n in range(2, at_once + 1) if at_once % n == 0]
        if self.num_generations not in whole:
            raise ValueError("no whole groups")


args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
AnswerTrainer(None, args).train()
"""


@pytest.mark.parametrize(
    ("micro", "told"),
    [(1, "per_device_train_batch_size to 4"), (4, "gradient_accumulation_steps to 8")],
)
def test_fewer_processes_take_whole_groups_still(micro, told, tmp_path, monkeypatch, capsys):
    (tmp_path / "train.py").write_text(GROUPS, "utf-8")
    flags = f"--output_dir out --bf16 True --num_generations 8 --per_device_train_batch_size {micro}"
    command = f"torchrun --nproc_per_node=8 train.py {flags} --gradient_accumulation_steps 2\n"
    (tmp_path / "run.sh").write_text(command, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "h200:2", "--framework", "transformers"]) == 1
    assert f"--nproc_per_node to 2 and {told}" in capsys.readouterr().out


ENGINE = """
from vllm import LLM
from transformers import Trainer


class SampledTrainer(Trainer):
    def __init__(self, model, args):
        self.num_generations = args.num_generations
"""


@pytest.mark.parametrize(
    ("engine", "told"), [("False", "per_device_train_batch_size to 4"), ("True", "accumulation")]
)
def test_trainers_with_an_engine_do_not_say_how_those_without_take_groups(
    engine, told, tmp_path, monkeypatch, capsys
):
    (tmp_path / "engine.py").write_text(ENGINE, "utf-8")
    (tmp_path / "train.py").write_text(f"from engine import SampledTrainer\n{GROUPS}", "utf-8")
    flags = "--output_dir out --bf16 True --num_generations 8 --per_device_train_batch_size 1"
    flags += f" --use_vllm {engine} --gradient_accumulation_steps 2"
    command = f"torchrun --nproc_per_node=8 train.py {flags}\n"
    (tmp_path / "run.sh").write_text(command, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "h200:2", "--framework", "transformers"]) == 1
    assert told in capsys.readouterr().out


WHEN_TOLD = """
from transformers import HfArgumentParser, Trainer, TrainingArguments

(training_args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
trainer = Trainer(args=training_args)
if training_args.do_train:
    trainer.train()
"""


@pytest.mark.parametrize(
    ("flags", "batch"), [("--do_train", True), ("--do_eval", False), ("--do_train False", False)]
)
def test_a_program_that_trains_when_told_has_no_batch_otherwise(flags, batch, tmp_path, monkeypatch, capsys):
    (tmp_path / "train.py").write_text(WHEN_TOLD, "utf-8")
    given = f"--output_dir out --bf16 --per_device_train_batch_size 1 --gradient_accumulation_steps 2 {flags}"
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node=8 train.py {given}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "h200:2", "--framework", "transformers"]) == 1
    told = capsys.readouterr().out
    assert "--nproc_per_node to 2" in told
    assert ("gradient_accumulation_steps to 8" in told) is batch


WEIGHED = """
from transformers import HfArgumentParser, Trainer, TrainingArguments


class Packed(Trainer):
    def compute_loss(self, model, inputs):
        loss = model(**inputs).loss
        return loss * torch.cuda.device_count() / inputs["weight"]


args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Packed(args=args).train()
"""


@pytest.mark.parametrize(("times", "moves"), [(" * torch.cuda.device_count()", True), ("", False)])
def test_fewer_gpus_change_a_loss_over_all_of_them(times, moves, tmp_path, monkeypatch, capsys):
    weighed = WEIGHED.replace("return loss", "loss = loss").replace(" * torch.cuda.device_count()", times)
    (tmp_path / "train.py").write_text(weighed, "utf-8")
    flags = "--output_dir out --bf16 True --per_device_train_batch_size 1 --gradient_accumulation_steps 1"
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node=8 train.py {flags}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.sh", "--gpu", "h200:2", "--framework", "transformers"]) == 1
    told = capsys.readouterr().out
    assert ("micro-batch whose tokens are averaged 8 → 2" in told) is moves


def test_the_parser_of_a_command_is_the_one_that_has_its_flags():
    names = [f"size_{letter}" for letter in "abcdefgh"]
    filled = "".join(f"parser.add_argument('--{name.replace('_', '-')}')\n" for name in names)
    text = f"parser = argparse.ArgumentParser()\n{filled}args = parser.parse_args()\n"
    assert plain_flags([_program(text)], names) == set(names)
    assert plain_flags([_program(text)], [*names, "other"]) is None  # of nine
    lenient = _program(text.replace("parse_args", "parse_known_args"))
    assert plain_flags([lenient], names) is None


@pytest.mark.parametrize(
    ("text", "applies"),
    [
        ("apply_liger_kernel_to_qwen2_vl()\n", True),
        ("apply_liger_kernel_to_llama(fused_linear_cross_entropy=False)\n", False),
        ("if args.liger:\n    apply_liger_kernel_to_llama()\n", False),
    ],
)
def test_a_program_that_puts_ligers_loss_into_its_model(text, applies):
    assert applies_liger(_program(text), _alone()) is applies


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("AutoLigerKernelForCausalLM.from_pretrained(path, fused_linear_cross_entropy=False)\n", True),
        ('kernels = {"rope": True, "fused_linear_cross_entropy": False}\n', True),
        ("fused(fused_linear_cross_entropy=False)\nfused(fused_linear_cross_entropy=True)\n", False),
        ("AutoLigerKernelForCausalLM.from_pretrained(path)\n", False),
    ],
)
def test_a_program_that_takes_the_logits_from_ligers_model(text, keeps):
    assert keeps_logits(_program(text), _alone()) is keeps


@pytest.mark.parametrize("told", ["min(", "int("])
def test_a_megatron_that_has_no_more_stages_than_its_processes_allow(told):
    text = f"args.pipeline_model_parallel_size = {told}args.pipeline_model_parallel_size)\n"
    assert clamps_sizes(_program(text), _alone()) is (told == "min(")


_PREPARED = "model = prepare_model_for_kbit_training(model)\nmodel = get_peft_model(model, config)"


@pytest.mark.parametrize(
    ("text", "unless"),
    [
        (f"if args.bits < 16:\n    {_PREPARED}", True),
        (f"if args.load_in_4bit:\n    log()\n    {_PREPARED}", True),
        (f"if args.lora:\n    {_PREPARED}", False),
        (_PREPARED, False),
        ("model = get_peft_model(model, config)", False),
    ],
)
def test_adapters_whose_model_is_prepared_where_it_is_quantized_alone(text, unless):
    assert starves_unless_quantized(_program(text), _alone()) is unless


_PADDED = "labels = pad_sequence(labels, padding_value=-100)\n"


@pytest.mark.parametrize(
    ("path", "text", "averages"),
    [
        ("sft.py", _PADDED + "loss = model(**batch).loss / args.accum\nloss.backward()\n", True),
        ("sft.py", _PADDED + "loss = output['loss']\naccelerator.backward(loss)\n", True),
        ("sft.py", _PADDED + "loss = F.cross_entropy(logits.view(-1, n), labels)\nloss.backward()\n", True),
        ("sft.py", "loss = (nll * loss_mask).sum() / loss_mask.sum()\nloss.backward()\n", True),
        ("sft.py", "c = DataCollatorForSeq2Seq(t)\nloss = model(**batch).loss\nloss.backward()\n", True),
        # full blocks, classes, a mean over each sample
        (
            "clm.py",
            "group_texts(d)\nc = DataCollatorForLanguageModeling(t)\nloss = o.loss\nloss.backward()\n",
            False,
        ),
        ("cls.py", "loss = F.cross_entropy(logits, labels)\nloss.backward()\n", False),
        ("grpo.py", "loss = ((l * loss_mask).sum(1) / loss_mask.sum(1)).mean()\nloss.backward()\n", False),
        # divided by the tokens of all passes
        (
            "sft.py",
            _PADDED + "loss = F.cross_entropy(x, labels, reduction='sum') / n\nloss.backward()\n",
            False,
        ),
        ("sft.py", _PADDED + "loss = model(**b).loss * n / step_tokens\nloss.backward()\n", False),
        # pairs, and a trainer's loop, which is not here
        ("step2_reward/main.py", _PADDED + "loss = outputs['loss']\nengine.backward(loss)\n", False),
        ("sft.py", _PADDED + "loss = model(**batch).loss\ntrainer.train()\n", False),
    ],
)
def test_the_tokens_of_a_pass(path, text, averages):
    assert averages_over_tokens(_program(text, path), _alone()) is averages


_MODEL = """
import torch
from torch.nn import CrossEntropyLoss


class Seeing(Base):
    def forward(self, input_ids, pixels=None, labels: Optional[torch.Tensor] = None{}):
        {}
        return loss


class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        {}
"""
_SHIFTED = "loss = CrossEntropyLoss()(logits[..., :-1, :], labels[..., 1:])"
_HANDED = "loss = self.language_model(inputs_embeds=self.see(pixels), labels=labels).loss"
_PLAIN = "return super().compute_loss(model, inputs)"


@pytest.mark.parametrize(
    ("more", "body", "own", "averages"),
    [
        ("", _SHIFTED, _PLAIN, True),
        (", **kwargs", _SHIFTED, _PLAIN, True),
        ("", _HANDED, _PLAIN, True),
        (", **kwargs", _HANDED.replace("labels)", "labels, **kwargs)"), _PLAIN, False),
        (", num_items_in_batch=None", _SHIFTED + " / num_items_in_batch", _PLAIN, False),
        ("", "loss = CrossEntropyLoss()(logits, labels)", _PLAIN, False),  # a label for each sample
        (
            "",
            "loss = 0",
            "return CrossEntropyLoss()(logits.view(-1, self.vocab_size), inputs['labels'])",
            True,
        ),
        ("", _HANDED, "return own(model, inputs, num_items_in_batch)", False),
    ],
)
def test_a_model_that_is_not_told_of_the_tokens_of_a_step(more, body, own, averages):
    assert means_tokens(_program(_MODEL.format(more, body, own)), _alone()) is averages


@pytest.mark.parametrize(
    ("text", "starves", "unused"),
    [
        ("model = get_peft_model(model, config)", True, True),
        ("model.enable_input_require_grads()\nmodel = get_peft_model(model, config)", False, True),
        (
            "model = prepare_model_for_kbit_training(model)\nmodel = get_peft_model(model, config)",
            False,
            True,
        ),
        ("model.gradient_checkpointing_enable()\nmodel = get_peft_model(model, config)", False, True),
        ("model = get_peft_model(model, config)\nargs.ddp_find_unused_parameters = False", True, False),
        ("model = FastLanguageModel.get_peft_model(model)", False, False),
        ("# get_peft_model(model)\nmodel = build()", False, False),
    ],
)
def test_adapters_around_a_model_whose_layers_are_recomputed(text, starves, unused):
    """PEFT makes inputs need gradients where layers are recomputed before it wraps the model."""
    assert starves_adapters(_program(text), _alone()) is starves
    assert finds_unused(_program(text), _alone()) is unused


@pytest.mark.parametrize(
    ("text", "says", "takes"),
    [
        ("engine, _, loader, _ = deepspeed.initialize(args, model=model, training_data=data)\n", False, True),
        ("loader = DataLoader(data, batch_size=engine.train_micro_batch_size_per_gpu())\n", False, True),
        ("config['train_micro_batch_size_per_gpu'] = args.batch\n", True, True),
        ("config = {'train_batch_size': args.batch * world_size}\n", True, False),
        ("loader = DataLoader(data, batch_size=args.batch)\n", False, False),
    ],
)
def test_whose_a_batch_of_an_engine_is(text: str, says: bool, takes: bool) -> None:
    program = _program(text)
    assert (says_sizes(program, _alone()), takes_sizes(program, _alone())) == (says, takes)


_SERVED = """
from vllm import LLM


class VLLMTrainer:
    def __init__(self, args):
        self.num_generations = args.num_generations
        num_processes = self.accelerator.num_processes
        at_once = args.per_device_train_batch_size * num_processes
        whole = [
            n
            for n in range(2, at_once + 1)
            if (at_once) % n == 0
        ]

        if self.num_generations not in whole:
            raise ValueError("no whole groups")
"""


def test_a_trainer_with_an_engine_takes_whole_groups():
    assert takes_whole_groups_served(_program(_SERVED), _alone())
    assert not takes_whole_groups_served(_program(_SERVED.replace("not in whole", "is None")), _alone())
    assert not takes_whole_groups_served(_program(_SERVED.replace("from vllm import LLM", "")), _alone())
