#!/bin/bash
# Four processes where the DeepSpeed file's batch was made for eight.
torchrun --nproc_per_node 4 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --dataset_name wikitext --do_train \
    --output_dir out --block_size 1024 --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --bf16 \
    --deepspeed deepspeed/zero2_128.json
