#!/bin/bash
# A script on transformers' Trainer, by flags: which file DeepSpeed reads is one of them.
deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --data_path data.json --output_dir out \
    --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --bf16 True --save_strategy steps \
    --deepspeed deepspeed/zero3.json
