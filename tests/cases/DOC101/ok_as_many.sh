#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus=rtx_4090:8
#SBATCH --gres=gpumem:23872m

MODEL="Qwen/Qwen3-0.6B"
NUM_GPUS=${NUM_GPUS:-8}
MICRO=4

deepspeed --num_gpus=$NUM_GPUS scripts/train_rm.py \
    --pretrain $MODEL \
    --micro_train_batch_size $MICRO \
    --accumulated_gradient 4 \
    --max_len 2048 \
    --zero_stage 2 \
    --bf16 \
    --flash_attn \
    --gradient_checkpointing
