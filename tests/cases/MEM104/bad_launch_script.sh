#!/bin/bash
#SBATCH --gpus=rtx_4090:4

# Qwen3-4B over four 24 GB cards, with the optimizer on the host.
NUM_GPUS=${NUM_GPUS:-4}
MICRO_BATCH_SIZE=${MICRO_BATCH_SIZE:-8}   # per GPU
ACCUMULATED_GRADIENT="2"
ARGS=(
    --pretrain Qwen/Qwen3-4B
    --micro_train_batch_size "$MICRO_BATCH_SIZE"   # see above
    --accumulated_gradient $ACCUMULATED_GRADIENT
)
if [ -n "$RESUME" ]; then
    ARGS+=(--load_checkpoint)
fi

deepspeed --num_gpus=$NUM_GPUS scripts/train_rm.py "${ARGS[@]}" \
    --max_len 2048 \
    --zero_stage 3 \
    --bf16 --flash_attn --adam_offload \
    --gradient_checkpointing
