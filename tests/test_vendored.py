"""A repository's own copy of transformers: a default that its class has as the release does is known."""

import pytest

ARGUMENTS = """\
from dataclasses import dataclass, field

@dataclass
class TrainingArguments:
    per_device_train_batch_size: int = field(default=8, metadata={{"help": "of one GPU"}})
    {passes}
    fp16: bool = False
"""
RUN = (
    "python -m torch.distributed.launch --nproc_per_node=8 examples/text-classification/run_glue.py"
    " --model_name_or_path roberta-large --max_seq_length 128 --per_device_train_batch_size 4"
    " --do_train --output_dir out --save_strategy epoch\n"
)


@pytest.mark.parametrize(
    ("passes", "kept"),
    [
        ("gradient_accumulation_steps: int = field(default=1)", True),
        ("gradient_accumulation_steps: int = 1", True),
        ("gradient_accumulation_steps: int = 2", False),
        ("gradient_accumulation_steps: int", False),
        ("seed: int = 1", False),
    ],
)
def test_the_passes_of_a_copy_keep_the_batch(cfglint, folder, passes: str, kept: bool) -> None:
    library = folder / "src" / "transformers"
    library.mkdir(parents=True)
    (folder / ".git").mkdir()
    (library / "__init__.py").write_text('__version__ = "4.4.2"\n')
    (library / "training_args.py").write_text(ARGUMENTS.format(passes=passes))
    (folder / "run.sh").write_text(RUN)
    done = cfglint("check", "run.sh", "--gpu", "l40s:4", "--select", "DOC104")
    assert ("gradient_accumulation_steps to 2" in done.stdout) == kept
    assert ("effective batch 32" in done.stdout) == kept
    assert "set --nproc_per_node to 4" in done.stdout
