"""LoRA as a repair: what it says of later commands that load what was saved as a whole model."""

from types import SimpleNamespace

import pytest

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.lang.values import Interval
from cfglint.repair.adapters import for_adapters, whole_model_behind, whole_model_within

TRAIN = """llamafactory-cli train --stage sft --do_train --model_name_or_path Qwen/Qwen2.5-7B-Instruct \\
  --dataset alpaca_en_demo --template qwen --finetuning_type full --cutoff_len 2048 --bf16 true \\
  --per_device_train_batch_size 1 --output_dir {}
"""


def _told(script: str) -> str:
    return whole_model_behind(read_text(script, "run.sh").documents[0])


@pytest.mark.parametrize(
    ("output", "later", "told"),
    [
        ("saves/full", "python eval.py --model_path saves/full", "line 4, eval.py"),
        ("saves/full/", "vllm serve saves/full --port 80", "line 4, vllm serve"),
        ('"$OUT"', "python eval.py --model=$OUT/checkpoint-100", "line 4, eval.py"),
        (
            '"$OUT"',
            'lm_eval --model hf --model_args "pretrained=${OUT},dtype=bfloat16"',
            "line 4, lm_eval --model",
        ),
        ('"$OUT"', 'LAST=$(ls -d $OUT/check* | tail -1)\npython e.py --ckpt "$LAST"', "line 5, e.py"),
        ('"runs/$1/model"', 'python e.py --policy_path "runs/$1/model"', "line 4, e.py"),
        ("saves/full", "python tools/eval_math.py saves/full 5", "line 4, eval_math.py"),
        ("./saves/full", "bash scripts/evaluate.sh saves/full", "line 4, evaluate.sh"),
        ("saves/full", "python tools/plot.py saves/full", ""),
        ("saves/full", "python more.py --resume_from_checkpoint saves/full/checkpoint-10", ""),
        ("saves/full", "llamafactory-cli export --adapter_name_or_path saves/full --export_dir x", ""),
        ("saves/full", "python eval.py --model_path saves/fuller", ""),
        ("saves/full", "python eval.py --model_path base --output_dir saves/full", ""),
        ("saves/full", "python eval.py --tokenizer_name saves/full", ""),
        ('"$ROOT/full"', "python eval.py --model_path $ROOT/base", ""),
        ("saves/full", "echo --model saves/full", ""),
    ],
)
def test_which_command_loads_what_was_saved(output: str, later: str, told: str) -> None:
    assert _told(TRAIN.format(output) + later + "\n") == told


def test_a_command_before_the_training_loads_an_older_one() -> None:
    assert _told("python eval.py --model_path saves/full\n" + TRAIN.format("saves/full")) == ""


@pytest.mark.parametrize("later", ["", "vllm serve saves/full\n"])
def test_lora_says_what_it_saves_and_who_loads_it(tmp_path, monkeypatch, capsys, later: str) -> None:
    (tmp_path / "run.sh").write_text(TRAIN.format("saves/full") + later, "utf-8")
    monkeypatch.chdir(tmp_path)
    main(["check", "run.sh", "--no-detect", "--gpu", "rtx-4090:1"])
    out = " ".join(capsys.readouterr().out.split())
    assert "set finetuning_type to lora" in out
    assert "(checkpoints hold adapters alone)" in out
    assert ("(line 4, vllm serve, then needs base model and adapter, or a merge before it)" in out) is bool(
        later
    )


CONFIG = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
dataset: alpaca_en_demo
template: qwen
cutoff_len: 2048
output_dir: ./saves/full
per_device_train_batch_size: 1
bf16: true
"""


def test_the_folder_may_stand_in_the_config(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "sft.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "run.sh").write_text("llamafactory-cli train sft.yaml\nvllm serve saves/full\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    main(["check", "run.sh", "--no-detect", "--gpu", "rtx-4090:1"])
    assert "(line 2, vllm serve, then needs" in " ".join(capsys.readouterr().out.split())


PROGRAM = """
from vllm import LLM
trainer.train()
trainer.save_model(args.output_dir)
engine = LLM(model=args.{})
"""


@pytest.mark.parametrize(
    ("saved", "told"), [("output_dir", "line 5 of the program, LLM"), ("model_name", "")]
)
def test_a_program_that_hands_what_it_saved_to_vllm(saved: str, told: str) -> None:
    file = SimpleNamespace(path="train.py", text=PROGRAM.format(saved))
    assert whole_model_within(SimpleNamespace(program=SimpleNamespace(file=file))) == told


FSDP = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_offload_params: false
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: FULL_STATE_DICT
  fsdp_version: 2
mixed_precision: bf16
num_machines: 1
num_processes: 2
"""


def test_an_offload_by_accelerates_flag_comes_before_lora(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "fsdp.yaml").write_text(FSDP, "utf-8")
    launch = "accelerate launch --config_file fsdp.yaml src/train.py --gradient_checkpointing true"
    (tmp_path / "run.sh").write_text(
        TRAIN.format("out").replace("llamafactory-cli train", launch).replace("7B", "3B"), "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    main(["check", "run.sh", "--no-detect", "--gpu", "rtx-4090:2"])
    out = " ".join(capsys.readouterr().out.split())
    assert "fix (safe): set --fsdp_offload_params to true" in out


@pytest.mark.parametrize(
    ("more", "told"), [("", True), ("--use_asft_loss true", False), ("--add_tokens '<a>'", False)]
)
def test_what_does_not_go_with_adapters_has_none_offered(
    tmp_path, monkeypatch, capsys, more: str, told: bool
) -> None:
    (tmp_path / "run.sh").write_text(TRAIN.format(f"out {more}"), "utf-8")
    monkeypatch.chdir(tmp_path)
    main(["check", "run.sh", "--no-detect", "--gpu", "rtx-4090:1"])
    assert ("set finetuning_type to lora" in capsys.readouterr().out) is told


def test_variables_that_hold_each_other_many_times_are_filled_in_in_time():
    sets = "".join(f'v{i}="{f"$v{i + 1}" * 60}"\n' for i in range(9, -1, -1))
    script = f"{sets}{TRAIN.format('saves/full')}python eval.py --model_path $v0\n"
    assert _told(script) == ""


def test_a_rank_that_hangs_on_the_launch_is_no_rank_that_is_added():
    values = {"lora_rank": Interval(0, 16), "adapters.whole": False}
    writer = SimpleNamespace(origins=SimpleNamespace(values=values))
    option = SimpleNamespace(facts={"lora_rank": 8}, notes=[])
    for_adapters(option, writer)
    assert option.notes == []
