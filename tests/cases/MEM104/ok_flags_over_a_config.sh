#!/bin/bash
#SBATCH --gpus=a100-80gb:4
trl sft --config configs/sft.yaml --accelerate_config zero2 --num_processes 4
