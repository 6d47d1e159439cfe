#!/bin/bash
# The file of accelerate says DeepSpeed and fp16; the number of processes is a flag over it.
accelerate launch --config_file configs/zero2_fp16.yaml --num_processes 4 train.py \
    --model_name_or_path Qwen/Qwen2.5-7B --output_dir out --per_device_train_batch_size 1 --logging_steps 10
