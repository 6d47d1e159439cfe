"""The words of which one stands in every script that launches a job."""

STARTERS = (
    "python", "torchrun", "deepspeed", "accelerate", "tune", "llamafactory-cli", "trl", "axolotl", "vllm",
    "sglang", "rl @", "vllm-openai",
)  # fmt: skip
