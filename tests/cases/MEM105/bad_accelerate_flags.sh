#!/bin/bash
# ZeRO-2 by flags of accelerate: each GPU holds the weights and gradients of 7.6 billion parameters.
#SBATCH --gpus=rtx_4090:8
accelerate launch --use_deepspeed --zero_stage 2 --num_processes 8 -m trl.scripts.sft \
    --config configs/sft.yaml --max_length 2048 --logging_steps 10
