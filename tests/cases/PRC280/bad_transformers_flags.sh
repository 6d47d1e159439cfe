#!/bin/bash
# DeepSpeed and its precision by flags of accelerate alone.
accelerate launch --use_deepspeed --zero_stage 3 --num_processes 8 --mixed_precision fp16 train.py \
    --model_name_or_path Qwen/Qwen2.5-7B --output_dir out --per_device_train_batch_size 1 --logging_steps 10
