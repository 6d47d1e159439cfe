#!/bin/bash
# --max_le is what argparse takes for --max_len, since no other flag begins so.
deepspeed --module openrlhf.cli.train_sft \
   --max_le 2048 \
   --dataset Open-Orca/OpenOrca \
   --pretrain Qwen/Qwen2.5-0.5B \
   --micro_train_batch_size 2 \
   --train_batch_size 256 \
   --zero_stage 2 \
   --learning_rate 5e-6
