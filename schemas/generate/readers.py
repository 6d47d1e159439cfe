"""Reads one version of each framework's sources: the root object, and the classes that it uses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import loose
from python import Module, Package
from shapes import Shaper, Style, pydantic_extra
from since import keys_of
from sources import SourceError
from unions import Schema, merged

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sources import Tree


def classes(
    package: Package,
    path: str,
    names: tuple[str, ...],
    style: Style,
    extra: Mapping[str, Schema] | None = None,
) -> tuple[Schema, dict[str, Schema]]:
    """Return one object with the keys of several classes of a module, and the classes that these use."""
    shaper = Shaper(package, style)
    module = package.module(path)
    if module is None:
        raise SourceError(f"{package.tree.label} has no {path}")
    parts = [found for name in names if (found := _record(shaper, module, name)) is not None]
    return joined(parts, extra or {}), shaper.defs


def _record(shaper: Shaper, module: Module, name: str) -> Schema | None:
    found = shaper.package.find(module, name)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return None
    return shaper.record(found[0], found[1])


def joined(parts: list[Schema], extra: Mapping[str, Schema]) -> Schema:
    """Return one object with the keys of all ``parts`` and of ``extra``."""
    keys: dict[str, list[Schema]] = {}
    for part in parts:
        for key, schema in part["properties"].items():
            keys.setdefault(key, []).append(schema)
    properties = {key: merged(schemas, newest=False) for key, schemas in keys.items()}
    return {"type": "object", "properties": {**properties, **extra}, "additionalProperties": False}


# ── AReaL ──────────────────────────────────────────────────────────────────────────────────────────────────
_HYDRA = {"defaults": {}, "hydra": {}}  # Hydra's own keys of a primary config
_AREAL_ROOTS = ("SFTConfig", "RWConfig", "DPOConfig", "GRPOConfig", "PPOConfig", "BaseExperimentConfig")


def areal(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["areal"])
    return classes(
        package,
        "areal/api/cli_args.py",
        _AREAL_ROOTS,
        Style(extra=lambda *_: "section", names_too=True, private=True),
        _HYDRA,
    )


# ── transformers and TRL ───────────────────────────────────────────────────────────────────────────────────
def transformers(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["transformers"])
    path = "transformers/training_args_seq2seq.py"
    return classes(package, path, ("Seq2SeqTrainingArguments",), HF)


HF = Style(any_class=frozenset({"JsonObject"}))
_TRL_ROOTS = {
    "trl/trainer/{}_config.py": {
        "sft": "SFTConfig",
        "dpo": "DPOConfig",
        "grpo": "GRPOConfig",
        "kto": "KTOConfig",
        "rloo": "RLOOConfig",
        "reward": "RewardConfig",
        "orpo": "ORPOConfig",
        "ppo": "PPOConfig",
        "gkd": "GKDConfig",
        "cpo": "CPOConfig",
        "bco": "BCOConfig",
        "online_dpo": "OnlineDPOConfig",
        "xpo": "XPOConfig",
        "nash_md": "NashMDConfig",
        "prm": "PRMConfig",
    },
    "trl/experimental/{0}/{0}_config.py": {
        "async_grpo": "AsyncGRPOConfig",
        "bco": "BCOConfig",
        "cpo": "CPOConfig",
        "gkd": "GKDConfig",
        "distillation": "DistillationConfig",
        "gold": "GOLDConfig",
        "minillm": "MiniLLMConfig",
        "nash_md": "NashMDConfig",
        "online_dpo": "OnlineDPOConfig",
        "orpo": "ORPOConfig",
        "ppo": "PPOConfig",
        "prm": "PRMConfig",
        "sdft": "SDFTConfig",
        "sdpo": "SDPOConfig",
        "tpo": "TPOConfig",
        "xpo": "XPOConfig",
    },
}
# What `trl sft --config` takes beside the scripts' classes: its own keys, and those of the launcher.
_TRL_OWN = {
    "env": {"type": "object"},
    "accelerate_config": {"type": "string"},
    "deepspeed_config": {},
    "config": {},
}


def trl(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["trl"], others=(Package(trees["transformers"]),))
    shaper = Shaper(package, HF)
    parts = []
    for pattern, roots in _TRL_ROOTS.items():
        for short, name in roots.items():
            module = package.module(pattern.format(short))
            parts += [part for part in (_record(shaper, module, name),) if part] if module is not None else []
    for path, names in (
        ("trl/trainer/model_config.py", ("ModelConfig",)),
        ("trl/scripts/utils.py", ("ScriptArguments", "DatasetMixtureConfig")),
        ("trl/trainer/utils.py", ("ScriptArguments", "ModelConfig")),
        ("trl/utils.py", ("ScriptArguments",)),
        ("trl/scripts/grpo.py", ("GRPOScriptArguments",)),
        ("trl/scripts/rloo.py", ("RLOOScriptArguments",)),
        ("trl/scripts/sft.py", ("SFTScriptArguments",)),
        ("trl/scripts/dpo.py", ("DPOScriptArguments",)),
    ):
        module = package.module(path)
        for name in names if module is not None else ():
            part = _record(shaper, module, name)
            parts += [part] if part is not None else []
    return joined(parts, _TRL_OWN), shaper.defs


# ── LLaMA-Factory, accelerate, torchtitan ──────────────────────────────────────────────────────────────────
_LLAMAFACTORY = {
    "model_args": ("ModelArguments",),
    "data_args": ("DataArguments",),
    "training_args": ("TrainingArguments",),
    "finetuning_args": ("FinetuningArguments",),
    "generating_args": ("GeneratingArguments",),
    "evaluation_args": ("EvaluationArguments",),
    "megatron_bridge_args": ("MegatronBridgeArguments",),
    "parser": ("_KTransformersRuntimeArguments",),
}


def llamafactory(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["llamafactory"], "src/", (Package(trees["transformers"]),))
    shaper = Shaper(package, HF)
    parts = []
    for file, names in _LLAMAFACTORY.items():
        module = package.module(f"src/llamafactory/hparams/{file}.py")
        for name in names if module is not None else ():
            part = _record(shaper, module, name)
            parts += [part] if part is not None else []
    base = package.imported(
        "transformers.training_args_seq2seq"
    )  # the class that TrainingArguments is made from
    if base is not None:
        parts += [part for part in (_record(shaper, base, "Seq2SeqTrainingArguments"),) if part]
    return joined(parts, {}), shaper.defs


def accelerate(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["accelerate"], "src/")
    path = "src/accelerate/commands/config/config_args.py"
    legacy = {
        "fp16": {"type": "boolean"},
        "dynamo_backend": {"type": "string"},
    }  # what process_config converts
    shape, defs = classes(package, path, ("ClusterConfig", "SageMakerConfig"), HF, legacy)
    # It is handed to torchrun as it stands, which takes that word for all GPUs (utils/launch.py).
    number = shape["properties"]["num_processes"]
    kind = {"type": number.pop("type")}
    shape["properties"]["num_processes"] = {"anyOf": [kind, {"enum": ["gpu"]}], **number}
    return shape, defs


def torchtitan(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["torchtitan"])
    return classes(
        package, "torchtitan/config/job_config.py", ("JobConfig",), Style(extra=lambda *_: "subclass")
    )


# ── Axolotl, prime-rl ──────────────────────────────────────────────────────────────────────────────────────
_AXOLOTL_PLUGINS = (
    "cut_cross_entropy",
    "densemixer",
    "diffusion",
    "expert_parallel",
    "grokfast",
    "hatchery",
    "kd",
    "kernels",
    "liger",
    "llm_compressor",
    "lm_eval",
    "mora",
    "nemo_gym",
    "spectrum",
    "swanlab",
)


def axolotl(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["axolotl"], "src/")
    shaper = Shaper(package, Style(extra=pydantic_extra("ignored"), qualified=True))
    parts = []
    for path in (
        "src/axolotl/utils/schemas/config.py",
        "src/axolotl/utils/config/models/input/v0_4_1/__init__.py",
    ):
        module = package.module(path)
        for name in ("AxolotlInputConfig", "AxolotlConfigWCapabilities") if module is not None else ():
            part = _record(shaper, module, name)
            parts += [part] if part is not None else []
    for plugin in _AXOLOTL_PLUGINS:
        module = package.module(f"src/axolotl/integrations/{plugin}/args.py")
        for node in module.classes.values() if module is not None else ():
            if shaper.is_record(module, node):
                parts.append(shaper.record(module, node))
    return joined(parts, {}), shaper.defs


def prime_rl(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    prefix = "packages/prime-rl-configs/src/"
    package = Package(trees["prime-rl"], prefix)
    style = Style(extra=pydantic_extra(None), qualified=True)
    return classes(package, f"{prefix}prime_rl/configs/rl.py", ("RLConfig",), style)


# ── DeepSpeed, verl, OpenRLHF, servers ─────────────────────────────────────────────────────────────────────
_DEEPSPEED = (
    "runtime/config.py",
    "runtime/activation_checkpointing/config.py",
    "runtime/zero/config.py",
    "monitor/config.py",
    "profiling/config.py",
    "autotuning/config.py",
    "comm/config.py",
    "nebula/config.py",
    "runtime/swap_tensor/aio_config.py",
    "compression/config.py",
    "runtime/data_pipeline/config.py",
    "runtime/precision_config.py",
    "runtime/engine.py",
    "runtime/compiler.py",
    "runtime/tensor_parallel/config.py",
    "utils/timer.py",
    "runtime/pipe/engine.py",
    "datastates/config.py",
    "runtime/checkpoint_engine/datastates_checkpoint_engine.py",
    "utils/config.py",
    "__init__.py",
)


def deepspeed(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["deepspeed"])
    style = Style(
        extra=lambda _shaper, _module, node: None if node.name.startswith("DeepSpeedZero") else "own"
    )
    shaper = Shaper(package, style)
    keys: dict[str, Schema] = {}
    for path in _DEEPSPEED:
        module = package.module(f"deepspeed/{path}")
        keys.update(loose.read_keys(package, module) if module is not None else {})
    zero = package.module("deepspeed/runtime/zero/config.py")
    if zero is not None:
        shaper.defs["DeepSpeedZeroConfig"] = {}
        shaper.defs["DeepSpeedZeroConfig"] = shaper.record(zero, zero.classes["DeepSpeedZeroConfig"])
        old = {"type": "boolean"}  # true alone is stage 1
        keys["zero_optimization"] = {"anyOf": [old, {"$ref": "#/$defs/DeepSpeedZeroConfig"}]}
    return {"type": "object", "properties": keys}, shaper.defs


_VERL = (
    "_generated_ppo_trainer",
    "_generated_ppo_megatron_trainer",
    "_generated_ppo_torchtitan_trainer",
    "_generated_ppo_veomni_trainer",
    "ppo_trainer",
    "ppo_megatron_trainer",
    "sft_trainer",
    "sft_trainer_engine",
    "generation",
    "evaluation",
)


def verl(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    found = [loose.of_yaml(trees["verl"], f"verl/trainer/config/{name}.yaml") for name in _VERL]
    parts = [loose.of_values(one) for one in found if one]
    root = merged(parts, newest=False)
    keys = {**root["properties"], "defaults": {}, "hydra": {}}
    return {"type": "object", "properties": keys}, {}


def verl_keys(trees: Mapping[str, Tree]) -> Collection[str]:
    """Return the keys of all configs, also of sections that the schema leaves open to several engines."""
    found = [loose.of_yaml(trees["verl"], f"verl/trainer/config/{name}.yaml") for name in _VERL]
    return {key for one in found if one for key in keys_of(loose.of_values(one), {})}


def openrlhf(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["openrlhf"])
    found: list[tuple[list[str], Schema]] = []
    for script in ("sft", "dpo", "rm", "ppo_ray", "ppo", "kto", "kd", "prm", "knowledge_distillation"):
        module = package.module(f"openrlhf/cli/train_{script}.py")
        if module is not None:
            found += loose.flags(package, module)
    return loose.nested(iter(found)), {}


def sglang(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["sglang"])
    shaper = Shaper(package, Style())
    found: list[tuple[list[str], Schema]] = []
    for name in (
        "device",
        "disagg",
        "exec_",
        "lora",
        "memory",
        "mm",
        "model",
        "observability",
        "parallel",
        "schedule",
        "serving",
        "spec",
    ):
        module = package.module(f"sglang/srt/arg_groups/fields/{name}.py")
        found += loose.annotated_flags(shaper, module) if module is not None else []
    module = package.module("sglang/srt/server_args.py")
    if module is not None:
        found += [*loose.annotated_flags(shaper, module), *loose.flags(package, module)]
    return loose.both_spellings(iter(found)), {}


def vllm(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    package = Package(trees["vllm"])
    found: list[tuple[list[str], Schema]] = []
    for path in (
        "vllm/engine/arg_utils.py",
        "vllm/entrypoints/common/cli_args.py",
        "vllm/entrypoints/cli/serve.py",
    ):
        module = package.module(path)
        found += loose.flags(package, module) if module is not None else []
    shaper = Shaper(package, Style())
    module = package.module("vllm/entrypoints/common/cli_args.py")
    for node in module.classes.values() if module is not None else ():
        fields = shaper.record(module, node)["properties"]
        found += [([name.replace("_", "-")], {}) for name in fields]  # what they take, their parsers say
    return loose.both_spellings(iter([*found, (["model-tag", "config", "model"], {})]), negated=True), {}


# ── NeMo-RL ────────────────────────────────────────────────────────────────────────────────────────────────
_NEMO_RL = ("grpo", "sft", "dpo", "rm", "ppo", "distillation", "xtoken_off_policy_distillation")


def nemo_rl(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    """Return the keys of the algorithms' classes and of NeMo-RL's own examples; both take any other key."""
    package = Package(trees["nemo-rl"])
    shaper = Shaper(package, Style(extra=lambda *_: "own", qualified=True))
    parts = []
    for algorithm in _NEMO_RL:
        module = package.module(f"nemo_rl/algorithms/{algorithm}.py")
        part = _record(shaper, module, "MasterConfig") if module is not None else None
        parts += [part] if part is not None else []
    return joined(parts, {"defaults": {}}), shaper.defs


# ── slime ──────────────────────────────────────────────────────────────────────────────────────────────────
def slime(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    """Return slime's own flags; those of Megatron and SGLang are parsed elsewhere."""
    package = Package(trees["slime"])
    module = package.module("slime/utils/arguments.py")
    if module is None:
        raise SourceError(f"{package.tree.label} has no slime/utils/arguments.py")
    return loose.flat(loose.flags(package, module)), {}


# ── Stable-Baselines3 and the RL Zoo ───────────────────────────────────────────────────────────────────────
_ALGORITHMS = {
    "stable-baselines3": {
        f"stable_baselines3/{name}/{name}.py": name.upper()
        for name in ("ppo", "a2c", "dqn", "sac", "td3", "ddpg")
    },
    "sb3-contrib": {
        "sb3_contrib/trpo/trpo.py": "TRPO",
        "sb3_contrib/ppo_recurrent/ppo_recurrent.py": "RecurrentPPO",
        "sb3_contrib/ars/ars.py": "ARS",
        "sb3_contrib/qrdqn/qrdqn.py": "QRDQN",
        "sb3_contrib/tqc/tqc.py": "TQC",
        "sb3_contrib/crossq/crossq.py": "CrossQ",
    },
}
# What the Zoo gives the constructor itself (exp_manager.py, setup_experiment).
_ZOO_GIVES = ("self", "env", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")
# What the Zoo makes of a value before the algorithm sees it (exp_manager.py, _preprocess_schedules and
# _preprocess_hyperparams; utils.py, get_wrapper_class).
_SCHEDULE = {"type": ["number", "string"]}
_ZOO = {
    **dict.fromkeys(("learning_rate", "clip_range", "clip_range_vf", "delta_std"), _SCHEDULE),
    "n_timesteps": {"type": "number"},
    "n_envs": {"type": "integer", "default": 1},
    "frame_stack": {"type": ["null", "integer"]},
    "noise_std": {"type": "number"},
    "train_freq": {"type": ["array", "integer"]},
    "policy": {"type": "string"},
}


def sb3(trees: Mapping[str, Tree]) -> tuple[Schema, dict[str, Schema]]:
    """Return the keys of a section: what the Zoo takes out of it, and the arguments of all algorithms."""
    base = Package(trees["stable-baselines3"])
    parts = []
    for source, files in _ALGORITHMS.items():
        package = base if source == "stable-baselines3" else Package(trees[source], "", (base,))
        shaper = Shaper(package, Style())
        for path, name in files.items():
            module = package.module(path)
            parts += [loose.arguments(shaper, module, name)] if module is not None else []
    zoo = Package(trees["rl-baselines3-zoo"])
    own: set[str] = set()
    for path in ("rl_zoo3/exp_manager.py", "rl_zoo3/utils.py"):
        module = zoo.module(path)
        own |= loose.taken(zoo, module, "hyperparams") if module is not None else set()
    root = joined(parts, {})
    keys = {key: schema for key, schema in root["properties"].items() if key not in _ZOO_GIVES}
    for key in sorted(own - keys.keys()):
        keys[key] = {}
    for key, schema in _ZOO.items():
        keys[key] = {
            **schema,
            **({"default": keys[key]["default"]} if "default" in keys.get(key, {}) else {}),
        }
    # A class is the text that names it, and a mapping may be the text of one: no kind is told.
    keys = {key: {} if "kwargs" in key or "class" in key else schema for key, schema in keys.items()}
    return {**root, "properties": keys}, {}
