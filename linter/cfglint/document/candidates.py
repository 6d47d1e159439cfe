"""Which texts may hold a job: the words that are in every one, which cost less to find than to parse."""

from __future__ import annotations

# The words of which one is in every script that launches a job; of "rl @", both.
STARTERS = (
    "python", "torchrun", "deepspeed", "accelerate", "tune", "llamafactory-cli", "lmf", "trl", "axolotl",
    "vllm", "sglang", "swift", "megatron", "colossalai", "composer", "xtuner", "rl @",
)  # fmt: skip
# One of these is in every program that trains with the classes that cfglint reads.
_TRAINS = (
    *("TrainingArguments", "SFTConfig", "POConfig", "KTOConfig", "LOOConfig", "RewardConfig"),
    *("GKDConfig", "MDConfig", "PRMConfig", "BCOConfig"),
)


def may_launch(text: str) -> bool:
    """Whether a script has a word that starts a job, or a program of Python."""
    return any(word in text for word in (*STARTERS[:-1], ".py")) or ("rl" in text and "@" in text)


def may_train(text: str) -> bool:
    """Whether a program or a notebook names the class of a trainer's arguments."""
    return ("Config" in text or "Arguments" in text) and any(word in text for word in _TRAINS)


def may_be_settings(text: str) -> bool:
    """Whether a program may be a config of XTuner: a module of names that `dict(…)` calls make."""
    return "xtuner" in text and "dict(" in text and "model" in text


def may_submit(text: str) -> bool:
    """Whether a program may start commands on a platform's GPUs: those of Modal or SageMaker."""
    if "modal" in text and "gpu=" in text:
        return "subprocess" in text or "os.system" in text
    return "sagemaker" in text and "entry_point" in text and "instance_type" in text


def may_return_configs(text: str) -> bool:
    """Whether a program may have functions that return a config of torchtitan's."""
    named = "Trainer.Config" in text or "TrainingConfig" in text or "config_registry" in text
    return named and "torchtitan" in text and "\ndef " in text
