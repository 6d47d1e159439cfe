#!/bin/bash
# ZeRO-3 by flags of accelerate, on eight GPUs of 80 GB.
#SBATCH --gpus=a100-80gb:8
accelerate launch --use_deepspeed --zero_stage 3 --num_processes 8 -m trl.scripts.sft \
    --config configs/sft.yaml --max_length 2048 --logging_steps 10
