#!/bin/bash
#SBATCH --gpus=4
#SBATCH --gres=gpumem:20g

# Any GPUs that have so much memory.
deepspeed --num_gpus=4 scripts/train_rm.py \
    --pretrain Qwen/Qwen3-4B \
    --micro_train_batch_size 8 \
    --accumulated_gradient 2 \
    --max_len 2048 \
    --zero_stage 3 \
    --bf16 --flash_attn --adam_offload \
    --gradient_checkpointing
