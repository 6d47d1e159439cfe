"""Every binding of the checked facts is bound with its default, or stands here with the reason why not.

The facts are not part of this repository; CFGLINT_SHARED names the folder that has them.
"""

import os
from pathlib import Path

import pytest
import yaml

from cfglint.lang import tree as t
from cfglint.lang.pack import load
from cfglint.lang.show import show

SHARED = os.environ.get("CFGLINT_SHARED")
pytestmark = pytest.mark.skipif(not SHARED, reason="CFGLINT_SHARED does not name the folder with the facts")

# What the facts call otherwise than the rules.
BLOCKS = {"transformers": ("transformers", "trl"), "sb3_zoo": ("sb3",)}

# Keys that no rules file mentions.
NOT_BOUND = {
    (
        "openrlhf",
        "--ds.zpg",
    ): "ZeRO++'s second copies of weights are not in the memory model, and no flag check reads it",
    (
        "deepspeed",
        "zero_optimization.reduce_bucket_size",
    ): "the memory model has one range for all of DeepSpeed's buckets",
    ("accelerate", "fp8_config"): "mixed_precision says that FP8 is on; this only how",
    (
        "llamafactory",
        "vllm_gpu_util",
    ): "chat, api and the batch script read it; a training run starts no engine",
    ("llamafactory", "sglang_mem_fraction"): "chat and api read it; a training run starts no engine",
    (
        "llamafactory",
        "vllm_maxlen",
    ): "chat, api and the batch script read it; a training run starts no engine",
    (
        "llamafactory",
        "preprocessing_num_workers",
    ): "processes that tokenize before the run; nothing rests on them",
    ("torchtune", "inference.engine"): "the asynchronous recipe starts vLLM whatever it says",
    ("sglang", "--watchdog-timeout"): "kills a server that hangs; nothing rests on it",
    ("torchtitan", "model.hf_assets_path"): "a folder with a tokenizer; flavor says which model it is",
    (
        "torchtitan",
        "comm.init_timeout_seconds",
    ): "before the first step alone; comm_timeout is the training's",
}

# Frameworks whose defaults in the facts are those of one shipped config: code has none, so a file that leaves
# the key out says nothing.
OF_ONE_CONFIG = ("torchtune", "nemo_rl")

# Defaults that are ours in another form, or not at all.
OTHERWISE = {
    ("vllm", "--gpu-memory-utilization"): "0.92 since v0.17, 0.9 before",
    ("openrlhf", "--train.max_tokens_per_gpu"): "16192, times the ranks that share a sequence",
    ("areal", "actor.optimizer.type"): "adam, where the file has an optimizer at all",
    ("verl", "actor_rollout_ref.model.path"): "a folder in somebody's home: which model that is nobody knows",
    (
        "verl",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    ): "the same number; times sp and cp it is a micro-batch",
    ("verl", "actor_rollout_ref.model.use_remove_padding"): "on since v0.7, and always under Megatron",
    ("verl", "actor_rollout_ref.rollout.max_num_seqs"): "256 since v0.9, 1024 before",
    ("verl", "actor_rollout_ref.rollout.enforce_eager"): "off since v0.6, on before",
    ("verl", "trainer.total_epochs"): "30 in PPO's config; that of SFT has 4",
    ("transformers", "optim"): "default_optim is adamw_torch_fused",
    ("trl", "max_completion_length"): "512 since v1.10, 256 before",
    ("trl", "packing"): "off, but padding_free packs as well",
    ("openrlhf", "--train.micro_batch_size"): "1 in PPO; each program has a default of its own",
    ("openrlhf", "--data.max_len"): "2048 in PPO and SFT, 512 in the others",
    ("deepspeed", "tensor_parallel.autotp_size"): "0 is off: one rank",
    ("llamafactory", "disable_gradient_checkpointing"): "the switch is the other way round: full",
    ("llamafactory", "flash_attn"): "auto is transformers' own choice: sdpa",
    ("llamafactory", "infer_backend"): "the enumeration's value: huggingface",
    ("llamafactory", "ray_num_workers"): "1 under Ray alone; torchrun starts a process on each GPU",
    ("axolotl", "bf16"): "auto asks the GPU",
    ("axolotl", "tf32"): "auto asks the GPU",
    ("vllm", "--max-num-seqs"): "the classes of GPUs by memory",
    ("vllm", "--max-num-batched-tokens"): "the classes of GPUs by memory",
    ("torchtitan", "parallelism.fsdp_reshard_after_forward"): "default is a let: unless there is a pipeline",
    ("torchtitan", "model.converters"): "the factory's empty list",
    ("prime_rl", "trainer.model.ep"): "auto rests on the model's code: unknown",
    ("prime_rl", "trainer.model.ac"): "the class's own defaults: full, every layer",
    ("prime_rl", "trainer.model.compile"): "the class's own defaults; None turns it off",
    ("slime", "--rollout-num-gpus-per-engine"): "1, unless an array that is not here may say another",
    ("slime", "--offload"): "off, but --colocate turns it on",
    ("slime", "--n-samples-per-prompt"): "1, unless an array that is not here may say another",
    ("slime", "--use-dynamic-batch-size"): "off, unless an array that is not here may turn it on",
}


def normal(value):
    """Return a default in one form, None for nothing."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return float(value)
    text = value.strip().lower()
    if text in ("", "null", "none", "<required>", "???", "???(missing)"):
        return None
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        return {"bfloat16": "bf16", "float32": "fp32", "float16": "fp16"}.get(text, text)


def of_tree(node):
    match node:
        case t.Number(value) | t.Text(value) | t.Truth(value) | t.Name(value):
            return normal(value)
        case t.Negative(t.Number(value)):
            return -value
    return show(node)


def steps_of(key):
    """Return how a key may stand in rules: as it is, or with dashes for underscores and the reverse."""
    bare = key.lstrip("-")
    return {tuple(form.split(".")) for form in (bare, bare.replace("-", "_"), bare.replace("_", "-"))}


def paths_in(node):
    return {each.steps for each in t.walk(node) if isinstance(each, t.Path)}


@pytest.fixture(scope="module")
def facts():
    path = Path(SHARED) / "facts" / "frameworks.yaml"
    found = yaml.safe_load(path.read_text("utf-8"))["frameworks"]
    rows = [
        (name, one["key"], one["default"])
        for name, framework in found.items()
        for several in framework["bindings"].values()
        for one in several
    ]
    assert len(rows) == 429
    return rows


@pytest.fixture(scope="module")
def symbols():
    return load().symbols()


def blocks_of(symbols, name):
    return [node for block in BLOCKS.get(name, (name,)) for node in symbols.frameworks[block]]


def mentions(symbols, name):
    """Return every path that a framework's block, what it names, and the rules for it alone read."""
    blocks = set(BLOCKS.get(name, (name,)))
    trees = [*blocks_of(symbols, name)]
    trees += [rule for rule in symbols.rules.values() if {s.framework for s in rule.scope} & blocks]
    found, seen = set(), set()
    while trees:
        node = trees.pop()
        found |= paths_in(node)
        for each in t.walk(node):
            if isinstance(each, (t.Name, t.Call)):
                named = each.name if isinstance(each, t.Name) else each.function
                let = symbols.lets.get(named) or symbols.functions.get(named)
                if let is not None and named not in seen:
                    seen.add(named)
                    trees.append(let)
    return found


def test_every_binding_is_mentioned(facts, symbols):
    known = {name: mentions(symbols, name) for name in {name for name, _, _ in facts}}
    missing = {
        (name, key)
        for name, key, _ in facts
        if not any(path[: len(steps)] == steps for steps in steps_of(key) for path in known[name])
    }
    assert missing == set(NOT_BOUND)


def ours(symbols, name, key):
    """Return what rules say where a key is absent; None where they do not bind the key itself."""
    bindings = [e for node in blocks_of(symbols, name) for e in node.entries if isinstance(e, t.Binding)]
    own = [b for b in bindings if steps_of(key) & paths_in(b.source)]
    if not own:
        return None
    names = {b.name for b in own}
    found = [b.default for b in own if b.default is not None] or [
        b.default for b in bindings if b.name in names and b.default is not None
    ]
    found += [b.source for b in bindings if b.name in names and not paths_in(b.source)]
    return [of_tree(node) for node in found]


def test_every_default_is_the_checked_one(facts, symbols):
    wrong = {}
    for name, key, default in facts:
        wanted = normal(default)
        said = ours(symbols, name, key)
        if wanted is None or said is None or name in OF_ONE_CONFIG:
            continue
        if wanted not in said and not (wanted is False and None in said):
            wrong[name, key] = (default, said)
    assert set(wrong) == set(OTHERWISE), {k: v for k, v in wrong.items() if k not in OTHERWISE}


def test_most_defaults_are_compared(facts, symbols):
    compared = sum(
        normal(default) is not None and name not in OF_ONE_CONFIG and ours(symbols, name, key) is not None
        for name, key, default in facts
    )
    assert compared > 200
