#!/bin/bash
# The flag for plain data parallel wins over the DeepSpeed of the file, and autocast knows fp16 on older GPUs.
accelerate launch --config_file configs/zero2_fp16.yaml --num_processes 4 --multi_gpu train.py \
    --model_name_or_path Qwen/Qwen2.5-7B --output_dir out --per_device_train_batch_size 1 --logging_steps 10
