"""A job that runs on one GPU only is told how to start it on one of those that are there."""

from __future__ import annotations

from found import found_in

APOLLO = """\
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
do_train: true
finetuning_type: full
use_apollo: true
apollo_layerwise: {}
apollo_target: all
apollo_rank: 128
dataset: identity
template: llama3
cutoff_len: 2048
output_dir: out
per_device_train_batch_size: 1
gradient_accumulation_steps: 1
pure_bf16: true
"""


def test_one_of_the_gpus_is_told() -> None:
    finding = found_in(APOLLO.format("true"), "rtx-3090:2", "apollo.yaml")["PAR141"]
    assert finding.fix is None
    told = finding.alternatives[0]
    assert told.title.startswith(
        "start it on one of the 2 GPUs here, by CUDA_VISIBLE_DEVICES=0, where it may fit"
    )
    assert finding.unfixed.startswith("nothing in the file has to change")


def test_what_is_about_memory_asks_for_other_hardware() -> None:
    found = found_in(APOLLO.format("false"), "rtx-3090:2", "apollo.yaml")
    titles = [fix.title for each in found.values() for fix in each.alternatives]
    assert not any("of the 2 GPUs here" in title for title in titles)
