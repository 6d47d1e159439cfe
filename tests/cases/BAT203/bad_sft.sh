read -r -d '' training_commands <<EOF
openrlhf.cli.train_sft \
   --data.max_len 2048 \
   --train.batch_size 100 \
   --train.micro_batch_size 4 \
   --model.model_name_or_path Qwen/Qwen2.5-0.5B \
   --ds.zero_stage 2 \
   --model.gradient_checkpointing_enable
EOF
deepspeed --num_gpus 8 --module $training_commands
