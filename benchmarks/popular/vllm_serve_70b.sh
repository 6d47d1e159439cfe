# target: a100-80gb-sxm:4
vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --max-model-len 16384 \
    --gpu-memory-utilization 0.9
