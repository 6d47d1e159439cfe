#!/bin/bash
# Nothing of it is in the command but the file and the number of machines: 96 prompts on 80 GPUs.
python3 train.py --config-path exp --config-name math trainer.nnodes=10
