"""Megatron's flags: what each fact comes from, what a model counts, and what is not known."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

LAUNCH = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py "
LLAMA = (
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--num-query-groups 8 --group-query-attention --swiglu --normalization RMSNorm --disable-bias-linear "
    "--position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 128256 "
)
GPT = "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --max-position-embeddings 1024 "
MOE = LLAMA.replace("14336", "12288") + "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 14336 "
SIZES = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --seq-length 4096 "
BATCH = "--micro-batch-size 1 --global-batch-size 128 --train-iters 1000 --bf16 "
RUN = LAUNCH + LLAMA + SIZES + BATCH
# DeepSeek-V2-Lite and V3: latent attention, without and with a latent vector of queries.
LATENT = LAUNCH + (
    "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --qk-layernorm "
    "--untie-embeddings-and-output-weights --multi-latent-attention --kv-lora-rank 512 "
)
V2_LITE = LATENT + (
    "--num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --num-experts 64 "
    "--moe-ffn-hidden-size 1408 --moe-shared-expert-intermediate-size 2816 --moe-layer-freq '([0]*1+[1]*26)' "
    "--moe-router-topk 6 --padded-vocab-size 102400 " + SIZES + BATCH
)
V3 = LATENT + (
    "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --num-experts 256 "
    "--moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --moe-layer-freq '([0]*3+[1]*58)' "
    "--moe-router-topk 8 --q-lora-rank 1536 --padded-vocab-size 129280 " + SIZES + BATCH
)
UNDERSCORES = (
    "torchrun --nproc_per_node 8 finetune.py --tensor_model_parallel_size 4 --micro_batch_size 2 "
    "--global_batch_size 64 --train_iters 10 --seq_length 1024 --use_distributed_optimizer"
)
FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
TABLE = [
    (RUN, {"framework.name": "megatron", "task": "pretrain", "train_tp": 2, "pp": 2, "train_dp": 4, "cp": 1}),
    (RUN, {"micro_batch_size": 1, "grad_accum": 32, "effective_batch_size": 128, "seq_len": 4096}),
    (RUN, {"dtype": "bf16", "grad_dtype": "fp32", "master_weights": True, "optimizer": "adamw_fused"}),
    (RUN, {"gradient_checkpointing": "none", "shard_stage": 0, "num_nodes": 2, "train_gpus": 16}),
    (RUN + "--use-distributed-optimizer", {"shard_stage": 1}),
    (RUN + "--grad-reduce-in-bf16", {"grad_dtype": "bf16"}),
    (RUN + "--recompute-activations", {"gradient_checkpointing": "selective"}),
    (RUN + FULL, {"gradient_checkpointing": "full"}),
    (RUN + "--checkpoint-activations", {"gradient_checkpointing": "full"}),
    (RUN.replace("--global-batch-size 128 ", ""), {"grad_accum": 1}),
    # The checkpoints that have these shapes: Llama 3 8B, GPT-2 (with a padded vocabulary), Mixtral 8x7B.
    (RUN, {"model.params": 8_030_261_248, "model.vocab": 128_256}),
    (
        LAUNCH + GPT + BATCH + "--tokenizer-type GPT2BPETokenizer",
        {"model.params": 124_475_904, "model.vocab": 50_304},
    ),
    # MegaBlocks' fork, and DeepSpeed's experts; one expert is a dense model.
    (
        LAUNCH + GPT + BATCH + "--tokenizer-type GPT2BPETokenizer --moe-num-experts 64 --moe-top-k 1",
        {"model.params": None},
    ),
    (
        LAUNCH + GPT + BATCH + "--tokenizer-type GPT2BPETokenizer --num-experts 64 --mlp-type residual",
        {"model.params": None},
    ),
    (
        LAUNCH + GPT + BATCH + "--tokenizer-type GPT2BPETokenizer --num-experts 1 --mlp-type standard",
        {"model.params": 124_475_904},
    ),
    (
        LAUNCH + MOE.replace("128256", "32000") + BATCH,
        {"model.params": 46_702_792_704, "model.experts": 8, "model.dense_layers": 0},
    ),
    (LAUNCH + MOE + BATCH + "--moe-layer-freq '[1]*32'", {"model.dense_layers": 0}),
    (LAUNCH + MOE + BATCH + "--moe-layer-freq '([0]*3+[1]*29)'", {"model.dense_layers": 3}),
    (RUN.replace("--vocab-size 128256", "--tokenizer-model Qwen/Qwen2.5-7B"), {"model.vocab": 152_064}),
    (RUN.replace("--vocab-size 128256", "--tokenizer-model /data/tokenizer"), {"model.params": None}),
    # epfLLM's Megatron-LLM and Megatron-DeepSpeed.
    (
        UNDERSCORES,
        {"framework.name": "megatron", "train_tp": 4, "grad_accum": 16, "seq_len": 1024},
    ),
    (
        "deepspeed --num_gpus 8 pretrain_gpt.py " + LLAMA + SIZES + BATCH + "--deepspeed --zero-stage 2",
        {"train_backend": "deepspeed", "zero_stage": 2, "shard_stage": 2},
    ),
    # More than a decoder of equal layers is not counted.
    (RUN.replace("gpt", "vlm") + "--img-h 448", {"model.params": None, "train_tp": 2}),
    (V2_LITE, {"model.params": 15_706_484_224, "model.latent_dim": 576}),
    (V3, {"model.params": 671_026_404_352, "model.dense_layers": 3}),
    # Flags that the script gets from elsewhere may say more.
    (RUN + "${MORE[@]}", {"gradient_checkpointing": None, "optimizer": None, "cp": None, "dtype": "bf16"}),
]


@pytest.mark.parametrize(("command", "expected"), TABLE, ids=[str(i) for i in range(len(TABLE))])
def test_flags_are_read(pack, command, expected):
    assert _facts(pack, command + "\n", expected) == expected


def test_options_that_branches_choose_are_not_known(pack):
    """A list of flags in a variable that each branch sets is no value of the flag before."""
    script = (
        'if [ $PR = fp16 ]; then\n  pr_options=" \\\n    --fp16"\n'
        'elif [ $PR = bf16 ]; then\n  pr_options="--bf16"\nfi\n'
        f'options="{LLAMA} {SIZES} --micro-batch-size 1 --train-iters 10"\n'
        'run_cmd="torchrun --nproc_per_node 8 pretrain.py ${options} ${pr_options}"\neval ${run_cmd}\n'
    )
    assert _facts(pack, script, ("dtype", "grad_accum")) == {"dtype": None, "grad_accum": None}


def test_memory_follows_the_tables_of_megatron(pack):
    """docs/user-guide/features/dist_optimizer.md: 18 bytes per parameter in bf16, 6 + 12/d if sharded."""
    one = "torchrun --nproc_per_node 8 pretrain_gpt.py " + LLAMA + BATCH + "--seq-length 4096 "
    names = ("weights.resident", "states.gradients", "states.optimizer")
    for flag, optimizer in (("", 12), ("--use-distributed-optimizer", 12 / 8)):
        held = _facts(pack, one + flag + "\n", names)
        assert [held[name] / 8_030_261_248 for name in names] == [2, 4, optimizer]


def _facts(pack, script, names):
    run = Run(pack, [parse_target("a100-80gb-sxm:8")])
    (subject,) = run.subjects(read_text(script, "train.sh"), judge_broken=True)
    values = run.judged(subject)[0].values
    return {name: point(values[name]) for name in names}


# Peaks of real runs on eight B200, published with SimuMax (MooreThreads/SimuMax @4dcaae5:
# docs/b200/b200_release_v1.2_summary.md, scripts in simu_tools/megatron_scripts): layers of Llama 3 70B or
# 405B, tp, pp, cp, tokens, GiB allocated.
PEAKS = [
    (70, 1, 2, 1, 4096, 66.55),
    (70, 2, 1, 1, 4096, 60.68),
    (70, 4, 1, 1, 4096, 39.07),
    (70, 8, 1, 1, 4096, 28.29),
    (405, 1, 2, 1, 4096, 87.08),
    (405, 2, 1, 1, 4096, 81.59),
    (405, 4, 1, 1, 4096, 52.89),
    (405, 8, 1, 1, 4096, 38.57),
    (70, 2, 1, 4, 32768, 68.43),
    (70, 1, 1, 8, 32768, 104.51),
    (405, 2, 1, 4, 32768, 87.03),
    (405, 1, 1, 8, 32768, 139.22),
    (70, 2, 1, 4, 131072, 112.67),
    (70, 1, 1, 8, 131072, 147.99),
    (405, 2, 1, 4, 131072, 118.13),
]
SHAPES = {
    70: "--num-layers 12 --hidden-size 8192 --ffn-hidden-size 28672 "
    "--num-attention-heads 64 --num-query-groups 8 ",
    405: "--num-layers 4 --hidden-size 16384 --ffn-hidden-size 53248 "
    "--num-attention-heads 128 --num-query-groups 16 ",
}


@pytest.mark.parametrize(("size", "tp", "pp", "cp", "tokens", "peak"), PEAKS)
def test_measured_peaks_of_pipelines_and_context_parallelism(pack, size, tp, pp, cp, tokens, peak):
    command = (
        "torchrun --nproc_per_node 8 pretrain_gpt.py --group-query-attention --swiglu --disable-bias-linear "
        "--normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights "
        "--vocab-size 128256 --attention-dropout 0 --hidden-dropout 0 --use-distributed-optimizer "
        "--use-flash-attn --sequence-parallel --bf16 --train-iters 10 --micro-batch-size 1 "
        "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --cp-comm-type a2a "
        f"{SHAPES[size]} --tensor-model-parallel-size {tp} --seq-length {tokens} "
        f"--pipeline-model-parallel-size {pp} --context-parallel-size {cp} "
        f"--global-batch-size {64 // (tp * pp * cp)}\n"
    )
    run = Run(pack, [parse_target("b200:8")])
    (subject,) = run.subjects(read_text(command, "train.sh"), judge_broken=True)
    told = run.judged(subject)[0].values["trainer.allocated"]
    assert abs((told.lo + told.hi) / 2 / (peak * 2**30) - 1) < 0.015


def test_an_interleaved_schedule_keeps_more(pack):
    """theoretical_memory_usage.py: 1 + (pp - 1) / (pp * v) times as many micro-batches."""
    facts = _facts(pack, RUN + "--num-virtual-stages-per-pipeline-rank 4\n", ("in_flight", "pp_virtual"))
    assert facts == {"in_flight": 2 * (1 + 1 / (2 * 4)), "pp_virtual": 4}
    per_stage = _facts(pack, RUN + "--num-layers-per-virtual-pipeline-stage 4\n", ("in_flight", "pp_virtual"))
    assert per_stage == {"in_flight": 2.25, "pp_virtual": 4}
    few = _facts(pack, RUN.replace("--global-batch-size 128", "--global-batch-size 4") + "\n", ("in_flight",))
    assert few == {"in_flight": 1}
