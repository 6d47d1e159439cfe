#!/bin/bash
#SBATCH --gpus=a100:8
# A server on four of the eight, the trainer on the others.
CUDA_VISIBLE_DEVICES=4,5,6,7 torchrun --nproc_per_node 4 serve.py &
CUDA_VISIBLE_DEVICES=0,1,2,3 deepspeed --num_gpus 4 --module openrlhf.cli.train_sft \
    --model.model_name_or_path Qwen/Qwen3-0.6B --train.micro_batch_size 1 --data.max_len 512
