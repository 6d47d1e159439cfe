#!/usr/bin/bash
set -e
torchrun --nproc_per_node=8 -m torchtitan.train \
   --module llama3 \
   --config llama3_8b \
   --training.num_tokens_per_microbatch_per_dp_rank 16384 \
   --training.num_tokens_per_train_step 65536 \
   --parallelism.data_parallel_shard_degree 8 \
   --parallelism.data_parallel_replicate_degree 1
