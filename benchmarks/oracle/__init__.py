"""Memory oracle: what a training step of a real transformers model allocates, counted without a GPU.

The step runs with fake tensors (shapes and dtypes, no data), and every storage that an operator allocates is
counted while it lives. From `benchmarks/`, with an interpreter that has torch, transformers and peft (cfglint
itself needs none of them):

    python -m oracle measure '{"model_path": "Qwen/Qwen2.5-0.5B", "seq_len": 4096}'
    python -m oracle grid --out data/oracle.jsonl
    python -m oracle trainers --out data/oracle_trainers.jsonl

The last measures what trainers' losses take per logit. It wants their packages, all of which install without
a GPU, beside torch, transformers, accelerate and datasets: `pip install --no-deps trl verl litgpt
megatron-core tensordict lightning lightning-utilities torchmetrics`. Run it for each version of TRL.

What it cannot see: the CUDA context, NCCL, workspaces of cuBLAS, and what the caching allocator adds by
rounding and fragmentation.
"""
