"""Memory oracle: what a training step of a real transformers model allocates, counted without a GPU.

The step runs with fake tensors (shapes and dtypes, no data), and every storage that an operator allocates is
counted while it lives. From `benchmarks/`, with an interpreter that has torch, transformers and peft (cfglint
itself needs none of them):

    python -m oracle measure '{"model_path": "Qwen/Qwen2.5-0.5B", "seq_len": 4096}'
    python -m oracle grid --out data/oracle.jsonl

What it cannot see: the CUDA context, NCCL, workspaces of cuBLAS, and what the caching allocator adds by
rounding and fragmentation.
"""
