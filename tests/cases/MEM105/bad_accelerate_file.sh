#!/bin/bash
# Two files make one job: how it is launched, and what it trains.
#SBATCH --gpus=rtx_4090:4
accelerate launch --config_file configs/zero3.yaml --num_processes 4 -m trl.scripts.sft \
    --config configs/sft.yaml --max_length 2048 --logging_steps 10
