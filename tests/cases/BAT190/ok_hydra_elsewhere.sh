#!/bin/bash
# verl's own folder, which is not here: how many answers there are is verl's default, or what the command says.
python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_trainer' \
    data.train_batch_size=100 actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 \
    actor_rollout_ref.actor.ppo_mini_batch_size=50
