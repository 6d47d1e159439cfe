#!/bin/bash
# GRPO on one machine, engines and policy in turns.
set -ex
MODEL_ARGS=(
   --swiglu
   --num-layers 36
   --hidden-size 2560
   --ffn-hidden-size 9728
   --num-attention-heads 32
   --group-query-attention
   --num-query-groups 8
   --disable-bias-linear
   --qk-layernorm
   --kv-channels 128
   --vocab-size 151936
)
CKPT_ARGS=(
   --hf-checkpoint /data/Qwen3-4B
   --ref-load /data/Qwen3-4B_torch_dist
)
ROLLOUT_ARGS=(
   --prompt-data /data/sums.jsonl
   --num-rollout 300
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 4096
   --global-batch-size 256
)
PERF_ARGS=(
   --tensor-model-parallel-size 2
   --sequence-parallel
   --pipeline-model-parallel-size 1
   --context-parallel-size 1
   --recompute-granularity full
   --recompute-method uniform
   --recompute-num-layers 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu 9216
)
GRPO_ARGS=(
   --advantage-estimator grpo
   --use-kl-loss
   --kl-loss-coef 0.01
)
OPTIMIZER_ARGS=(
   --optimizer adam
   --lr 1e-6
)
SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 2
   --sglang-mem-fraction-static 0.7
)
MISC_ARGS=(
   --update-weight-mode delta
   --accumulate-allreduce-grads-in-fp32
)

ray start --head --num-gpus 8
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node 8 \
   --rollout-num-gpus 8 \
   ${MODEL_ARGS[@]} \
   ${CKPT_ARGS[@]} \
   ${ROLLOUT_ARGS[@]} \
   ${OPTIMIZER_ARGS[@]} \
   ${GRPO_ARGS[@]} \
   ${PERF_ARGS[@]} \
   ${SGLANG_ARGS[@]} \
   ${MISC_ARGS[@]}
