#!/bin/bash
# The batch of the file would do; the one of the command, on top, is no multiple of 8 GPUs with one answer each.
CONFIG_PATH="$(pwd)/exp"
python3 -m verl.trainer.main_ppo --config-path="$CONFIG_PATH" --config-name='math' \
    data.train_batch_size=100 \
    actor_rollout_ref.actor.ppo_mini_batch_size=50
