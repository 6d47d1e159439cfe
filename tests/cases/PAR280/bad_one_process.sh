#!/bin/bash
set -e
accelerate launch --multi_gpu --num_processes 1 \
   -m openrlhf.cli.train_sft \
   --model.model_name_or_path Qwen/Qwen2.5-1.5B \
   --train.batch_size 16 \
   --train.micro_batch_size 2 \
   --data.max_len 2048 \
   --ds.zero_stage 2
