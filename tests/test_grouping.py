"""Which losses of transformers' Trainer and its kin stay with another micro-batch, or with fewer GPUs."""

import json

import pytest

from cfglint.cli import main

LLAMA = "meta-llama/Llama-3.2-1B-Instruct"
SEEING = "Qwen/Qwen2.5-VL-3B-Instruct"
RUN = "torchrun --nproc_per_node {} run_clm.py --output_dir o --model_name_or_path {} --bf16 True {}\n"
BATCH = "--per_device_train_batch_size 8 --gradient_accumulation_steps 1"
FACTORY = (
    "model_name_or_path: {}\nstage: {}\ndo_train: true\nfinetuning_type: lora\ndataset: a\nbf16: true\n"
    "template: qwen2_vl\noutput_dir: o\nper_device_train_batch_size: 8\ngradient_accumulation_steps: 1\n"
    "cutoff_len: 512\n"
)
AXOLOTL = (
    f"base_model: {LLAMA}\ndatasets: [{{path: a, type: alpaca}}]\nmicro_batch_size: 8\nbf16: true\n"
    "gradient_accumulation_steps: 1\nsequence_len: 512\nsample_packing: true\noutput_dir: o\nadapter: lora\n"
)
TRL = (
    f"model_name_or_path: {LLAMA}\ndataset_name: a/b\noutput_dir: x-sft\nbf16: true\nmax_seq_length: 512\n"
    "per_device_train_batch_size: 8\ngradient_accumulation_steps: 1\n"
)
GRPO = TRL.replace("x-sft", "x-grpo") + "num_generations: 8\nmax_completion_length: 64\n"
INTERNVL = (
    "torchrun --nproc_per_node {} internvl/train/internvl_chat_finetune.py --model_name_or_path a/b "
    f"--output_dir o --use_packed_ds True --max_packed_tokens 4096 --bf16 True {BATCH} {{}}\n"
)


@pytest.fixture
def fixed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def of(text, pins, *flags):
        name = "run.sh" if text.startswith("torchrun") else "config.yaml"
        (tmp_path / "requirements.txt").write_text(pins + "\n", "utf-8")
        (tmp_path / name).write_text(text, "utf-8")
        main(["check", name, "--format", "json", *flags])
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        return finding["fix"]

    return of


@pytest.mark.parametrize(
    ("text", "pins", "applicability"),
    [
        (RUN.format(8, LLAMA, BATCH), "transformers==4.47.0", "safe"),
        (RUN.format(8, LLAMA, BATCH + " --label_smoothing_factor 0.1"), "transformers==4.47.0", "unsafe"),
        (RUN.format(8, LLAMA, BATCH), "", "safe"),
        (RUN.format(8, LLAMA, BATCH + " --evaluation_strategy no"), "", "unsafe"),  # until v4.48
        (RUN.format(8, SEEING, BATCH), "transformers==4.57.0", "unsafe"),
        (RUN.format(8, LLAMA, BATCH).replace("run_clm", "run_glue"), "transformers==4.40.0", "safe"),
        (INTERNVL.format(8, ""), "transformers==4.55.0", "unsafe"),
        (FACTORY.format(LLAMA, "sft"), "llamafactory==0.9.3", "safe"),
        (FACTORY.format(LLAMA, "sft"), "llamafactory==0.9.0", "unsafe"),
        (FACTORY.format(LLAMA, "pt"), "llamafactory==0.9.0", "safe"),
        (FACTORY.format(SEEING, "sft"), "llamafactory==0.9.3", "unsafe"),
        (AXOLOTL, "axolotl==0.4.0", "unsafe"),
        (AXOLOTL, "axolotl==0.10.0", "safe"),
        (TRL, "trl==0.9.6\ntransformers==4.42.0", "unsafe"),
        (TRL + "packing: true\n", "trl==0.9.6\ntransformers==4.42.0", "safe"),
        (TRL, "trl==0.15.0", "safe"),
        (GRPO, "trl==0.15.2", "safe"),
        (GRPO, "trl==0.17.0", "unsafe"),
        (GRPO + "loss_type: grpo\n", "trl==0.17.0", "safe"),
        (GRPO + "loss_type: bnpo\n", "trl==0.24.0", "unsafe"),
    ],
)
def test_another_micro_batch(fixed, text, pins, applicability):
    rule = ("--rule", "micro_batch_size <= 4", "--select", "CLI")
    assert fixed(text, pins, "--gpu", "h100-sxm:8", *rule)["applicability"] == applicability


APART, TOGETHER = "replicas whose tokens are averaged apart", "micro-batch whose tokens are averaged"
GATHERS = INTERNVL.format(8, "--loss_reduction_all_gather True")


@pytest.mark.parametrize(
    ("text", "pins", "told"),
    [
        (RUN.format(8, LLAMA, BATCH), "transformers==4.53.0", {APART}),
        (
            RUN.format(8, LLAMA, BATCH + " --average_tokens_across_devices True"),
            "transformers==4.53.0",
            set(),
        ),
        (RUN.format(8, LLAMA, BATCH), "transformers==4.54.0", set()),
        (RUN.format(8, LLAMA, BATCH), "transformers==4.40.0", set()),  # a mean of each micro-batch
        (RUN.format(8, LLAMA, BATCH + " --block_size 512"), "transformers==4.53.0", set()),
        (INTERNVL.format(8, ""), "transformers==4.37.2", set()),
        (GATHERS, "transformers==4.37.2", {TOGETHER}),
    ],
)
def test_fewer_gpus(fixed, text, pins, told):
    moved = {
        each["name"]
        for each in fixed(text, pins, "--gpu", "h100-sxm:4", "--select", "DOC104")["results"]
        if not each["same"]
    }
    assert moved & {APART, TOGETHER} == told
