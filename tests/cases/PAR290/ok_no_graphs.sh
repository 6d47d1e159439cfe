#!/usr/bin/bash
set -e
torchrun --nproc_per_node=8 -m torchtitan.train \
   --module llama3 \
   --config llama3_8b \
   --parallelism.pipeline_parallel_degree 2 \
   --training.disable_cuda_graphs
