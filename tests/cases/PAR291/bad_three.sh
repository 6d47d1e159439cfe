#!/usr/bin/bash
set -e
torchrun --nproc_per_node=8 -m torchtitan.train \
   --module deepseek_v3 \
   --config deepseek_v3_16b \
   --parallelism.data_parallel_shard_degree 4 \
   --parallelism.context_parallel_degree 1 \
   --parallelism.tensor_parallel_degree 2 \
   --parallelism.expert_parallel_degree 3
