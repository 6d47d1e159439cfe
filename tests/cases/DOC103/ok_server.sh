docker run --rm --gpus 4 --ipc=host vllm/vllm-openai:v0.11.0 \
    --model Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 4 --max-model-len 8192
