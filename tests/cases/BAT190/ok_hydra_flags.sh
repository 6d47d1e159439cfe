#!/bin/bash
# The command chooses another file for its rollout: 100 prompts of four answers.
CONFIG_PATH="$(pwd)/exp"
python3 -m verl.trainer.main_ppo --config-path="$CONFIG_PATH" --config-name='math' \
    data.train_batch_size=100 rollout=four_answers \
    actor_rollout_ref.actor.ppo_mini_batch_size=50
