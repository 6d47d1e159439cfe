#!/bin/bash
# slime: GRPO on one machine. An unknown flag is Megatron's or SGLang's: nothing is said of it.
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node 8 \
   --colocate \
   --hf-checkpoint /data/Qwen3-4B \
   --prompt-data /data/sums.jsonl \
   --rollout-batch-size 32 \
   --n-samples-per-prompt 8 \
   --rollout-max-response-len 4096 \
   --global-batch-size 256 \
   --advantage-estimator grpo \
   --tensor-model-parallel-size 2 \
   --some-flag-of-megatron yes \
   --rollout-stop-token-ids 151643 151645 \
   --sglang-mem-fraction-static 0.7
