#!/bin/bash
#SBATCH --gpus=a100-80gb:4
# The batch is a flag, what else counts stands in the file.
trl sft --config configs/sft.yaml --accelerate_config zero2 --num_processes 4 \
    --per_device_train_batch_size 16 --gradient_accumulation_steps 1
