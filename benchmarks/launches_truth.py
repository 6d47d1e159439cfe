"""What a recorded start says: its program, its flags and the facts that they give, by a table of its own.

Nothing here knows cfglint: the names of flags come from frameworks' sources and from how people call theirs.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from pathlib import Path


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LAUNCHERS = {
    "torchrun": "standalone m module no_python run_path virtual_local_rank use_env",
    "accelerate": (
        "quiet cpu multi_gpu tpu ipex use_mps_device use_deepspeed use_fsdp use_megatron_lm use_xpu"
        " same_network m module no_python debug fp8_enable dynamo_use_dynamic dynamo_use_fullgraph"
        " enable_cpu_affinity dynamo_use_regional_compilation use_parallelism_config main_process_only"
    ),
    "colossalai": "m",
    "tune": "standalone m module no_python run_path virtual_local_rank use_env",
    "composer": "module_mode command_mode v verbose",
    "deepspeed": (
        "module no_python no_local_rank no_ssh no_ssh_check save_pid force_multi elastic_training"
        " bind_cores_to_rank"
    ),
}
_CLIS = {
    "trl": ("sft", "dpo", "grpo", "kto", "reward", "rloo"),
    "swift": ("sft", "pt", "rlhf"),
    "megatron": ("sft", "pt", "rlhf"),
    "llamafactory-cli": ("train",),
    "lmf": ("train",),
    "axolotl": ("train",),
    "vllm": ("serve",),
    "sglang": ("serve",),
    "xtuner": ("train",),
    "litgpt": ("finetune", "finetune_lora", "finetune_full", "pretrain"),
    "rl": ("@",),
}
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "deepspeed.launcher.runner": "deepspeed",
    "accelerate.commands.launch": "accelerate",
}
_AROUND = ("coverage", "debugpy", "cProfile", "pdb", "viztracer", "memray", "scalene", "kernprof")
_RUNNERS = ("uv", "poetry", "pdm", "pixi", "pipenv", "coverage", "conda", "mamba", "micromamba")
_AROUND_VALUES = ("--listen", "--connect", "-o", "--outfile", "--rcfile", "--data-file", "--source", "-s")
_PYTHON = re.compile(r"(?:python|ipython)[\d.]*\Z")
_KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@-]*\Z")
_NUMBER = re.compile(r"-\.?\d")

Pairs = dict[str, tuple[str, ...]]

# The flags that give a fact, without dashes and with underscores; the first that is there counts.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "model": _words(
        "model_name_or_path actor_rollout_ref.model.path worker.actor.model.model_path model.partial_pretrain"
        " pretrained_model_name_or_path pretrain model_path policy.model_name hf_checkpoint base_model"
        " actor_model_name_or_path model_id model.name_or_path model.path model model_name"
    ),
    "micro_batch": _words(
        "per_device_train_batch_size per_gpu_train_batch_size train_micro_batch_size_per_gpu"
        " actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu data.micro_batch_size_per_gpu"
        " worker.actor.micro_batch_size_per_device_for_update micro_train_batch_size micro_batch_size"
    ),
    "accumulation": _words("gradient_accumulation_steps grad_accum grad_accum_steps gradient_accumulation"),
    "sequence": _words(
        "max_seq_length max_seq_len model_max_length cutoff_len max_sequence_length block_size"
        " data.max_length max_length seq_length max_len seq_len"
    ),
    "lora": _words(
        "lora_r lora_rank lora_dim actor_rollout_ref.model.lora_rank model.lora_rank use_llm_lora peft_lora_r"
    ),
}
# Flags without which a rank means nothing, where the program has them.
_LORA_SWITCHES = _words("use_lora lora_enable use_peft use_peft_lora enable_lora peft use_lora_adapter lora")
_LORA_KINDS = _words("finetuning_type train_type tuner_type sft_type peft_type training_mode")
_NO = ("false", "0", "no", "none", "null", "")
_TRAINS = {
    *SYNONYMS["micro_batch"],
    *SYNONYMS["accumulation"],
    *SYNONYMS["lora"],
    *_words(
        "learning_rate lr num_train_epochs num_epochs epochs max_steps train_iters train_batch_size"
        " batch_size warmup_ratio warmup_steps deepspeed deepspeed_config zero_stage optim"
        " actor_learning_rate optim.lr actor_rollout_ref.actor.optim.lr data.train_batch_size"
        " trainer.total_epochs algorithm.adv_estimator trainer.total_training_steps global_batch_size"
        " rollout_batch_size weight_decay gradient_checkpointing data.rollout_batch_size"
        " worker.actor.optim.lr train_micro_batch_size"
    ),
}
# Programs that do something else, though they take some of the same flags.
_OTHERS = re.compile(
    r"api_server|launch_server|eval|infer|generat|gen_data|benchmark|chatbot|rewards|run_model|merge|convert"
    r"|preprocess|tokenize|download|test|hf2|2hf|2mcore|2megatron|\b(?:sample|sampling|label|score|annotate)\b"
)
_CONFIGS = (".yaml", ".yml", ".toml", ".json")
# Flags that name a config; a file behind another one is data, or what the program writes.
_NAMES_CONFIG = re.compile(r"config|cfg|deepspeed|recipe|settings|args|params|yaml", re.IGNORECASE)


class Launch(NamedTuple):
    """A program with its launcher's flags and its own."""

    launcher: str
    program: str
    flags: Pairs
    pairs: Pairs
    files: tuple[str, ...]

    @property
    def base(self) -> str:
        """The program's name without its folder."""
        return self.program.rpartition("/")[2]


def launch_of(argv: tuple[str, ...]) -> Launch | None:
    """Return the training or serving job that a command starts; None for other programs.

    A carriage return at a word's end is the file's, of a script with the line ends of Windows.
    """
    found = _program([word.rstrip("\r") for word in argv])
    if found is None:
        return None
    launcher, options, program, rest = found
    launch = Launch(launcher, program, pairs_of(options), pairs_of(rest), _files(rest))
    return launch if _is_job(launch) else None


def _is_job(launch: Launch) -> bool:
    if launch.launcher in _CLIS or launch.launcher == "tune":
        return True
    if _OTHERS.search(f"{launch.base}.{launch.program.replace('/', '.')[-30:]}"):
        return False
    signs = _TRAINS & {key.lower() for key in launch.pairs}
    named = any(file.endswith(_CONFIGS) for file in launch.files)
    if launch.launcher != "python":
        return bool(signs) or named
    return len(signs) > 1 or (named and "train" in launch.program) or "verl.trainer" in launch.program


def _program(argv: list[str]) -> tuple[str, list[str], str, list[str]] | None:
    if not argv:
        return None
    name, rest = argv[0].rpartition("/")[2], argv[1:]
    if _PYTHON.match(name):
        return _python(rest)
    if name in _RUNNERS:
        run = rest.index("run") if "run" in rest else -1
        return _program(_after_options(rest[run + 1 :])) if run >= 0 else None
    if name in ("accelerate", "colossalai", "tune"):
        return _launched(name, rest[1:]) if rest[:1] in (["launch"], ["run"]) else None
    if name in LAUNCHERS:
        return _launched(name, rest)
    verbs = _CLIS.get(name, ())
    found = (name, [], rest[0], rest[1:]) if rest[:1] and rest[0] in verbs else None
    return ("python", [], argv[0], rest) if name.endswith(".py") else found


def _after_options(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "--module"):
        takes = "=" not in words[at] and words[at] in (
            *("-n", "-p", "--name", "--prefix", "--with", "--extra", "--group", "--python", "--env-file"),
            *_AROUND_VALUES, "--project", "--directory", "--package",
        )  # fmt: skip
        at += 2 if takes else 1
    words = words[at:]
    return ["python", *words] if words[:1] == ["-m"] else words


def _python(rest: list[str]) -> tuple[str, list[str], str, list[str]] | None:
    at = 0
    while at < len(rest):
        word = rest[at]
        if word == "-m" and at + 1 < len(rest):
            module, after = rest[at + 1], rest[at + 2 :]
            if module in _MODULES:
                return _launched(_MODULES[module], after)
            if module in _AROUND:
                after = after[1:] if after[:1] == ["run"] else after
                words = _after_options(after)
                return _program(words if words[:1] == ["python"] else ["python", *words])
            return "python", [], module, after
        if word in ("-c", "-", "--version", "-V"):
            return None
        if word in ("-W", "-X"):
            at += 2
        elif word.startswith("-"):
            at += 1
        else:
            return "python", [], word, rest[at + 1 :]
    return None


def _launched(launcher: str, rest: list[str]) -> tuple[str, list[str], str, list[str]] | None:
    switches = LAUNCHERS[launcher].split()
    options: list[str] = []
    bare = False
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        key = rest[at].lstrip("-").partition("=")[0].replace("-", "_")
        bare |= key == "no_python"
        options.append(rest[at])
        at += 1
        if key not in switches and "=" not in options[-1] and at < len(rest):
            options.append(rest[at])
            at += 1
    if at >= len(rest):
        return None
    if rest[at] in _AROUND:
        inner = _python(["-m", *rest[at:]])
        return (launcher, options, inner[2], inner[3]) if inner is not None else None
    if bare or _PYTHON.match(rest[at].rpartition("/")[2]):
        inner = _program(rest[at:])
        return (launcher, options, inner[2], inner[3]) if inner is not None else None
    module = any(option in ("-m", "--module") for option in options)
    if not module and not rest[at].endswith(".py") and launcher != "tune":  # which names a recipe
        return None  # flags without a value took the program for theirs: the launcher would stop here
    return launcher, options, rest[at], rest[at + 1 :]


def pairs_of(words: list[str]) -> Pairs:
    """Return what flags and overrides say: ``--a b c``, ``--a=b``, ``a.b=c``; a bare flag says nothing."""
    pairs: Pairs = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("-") and not _NUMBER.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            if equals:
                pairs[name.replace("-", "_")] = (value,)
                continue
            end = at
            while end < len(words) and not _starts_pair(words[end]):
                end += 1
            pairs[name.replace("-", "_")] = tuple(words[at:end])
            at = end
        elif "=" in word and _KEY.match(word.partition("=")[0]) and not word.startswith("~"):
            name, _, value = word.partition("=")
            pairs[name.lstrip("+")] = (value,)
    return {name: value for name, value in pairs.items() if name}


def _starts_pair(word: str) -> bool:
    if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
        return True
    return "=" in word and _KEY.match(word.partition("=")[0]) is not None


def _files(words: list[str]) -> tuple[str, ...]:
    files = []
    for before, word in zip(["", *words], words, strict=False):
        name, equals, value = word.partition("=")
        flag, file = (name, value) if equals else (before if before.startswith("-") else "", word)
        if file.endswith(_CONFIGS) and not file.startswith("-") and (not flag or _NAMES_CONFIG.search(flag)):
            files.append(file)
    return tuple(files)


# ── facts ──────────────────────────────────────────────────────────────────────────────────────────────────
def facts_of(launch: Launch, folders: list[Path]) -> dict[str, str]:
    """Return what a launch's flags say of the job, by the facts' names; files are sought in ``folders``."""
    pairs = {key.lower(): value for key, value in launch.pairs.items()}
    facts: dict[str, str] = {}
    for fact, names in SYNONYMS.items():
        value = next((pairs[name][0] for name in names if len(pairs.get(name, ())) == 1), None)
        if value is not None:
            facts[fact] = value
    lengths = [pairs.get(f"data.max_{part}_length", ("",))[0] for part in ("prompt", "response")]
    if all(length.isdigit() for length in lengths):
        facts["sequence"] = str(sum(map(int, lengths)))
    if "model" in facts:
        facts["model"] = base_name(facts["model"])
    if facts.get("model") == "":
        del facts["model"]  # a variable that nobody set
    if not _has_lora(pairs):
        facts.pop("lora", None)
    if any(name.endswith("use_dynamic_bsz") and _said(pairs[name]) for name in pairs):
        facts.pop("micro_batch", None)  # a budget of tokens takes its place
    for fact in ("micro_batch", "accumulation", "sequence", "lora"):
        if fact in facts and not re.fullmatch(r"\d+", facts[fact]):
            del facts[fact]
    stage = _stage(launch, pairs, folders)
    if stage is not None:
        facts["zero"] = stage
    gpus = _gpus(launch)
    if gpus is not None:
        facts["gpus"] = str(gpus)
    return facts


def base_name(path: str) -> str:
    """Return a model's last component, as names of models are compared."""
    return path.rstrip("/").rpartition("/")[2].lower()


def _has_lora(pairs: Pairs) -> bool:
    on = [_said(pairs[name]) for name in _LORA_SWITCHES if name in pairs]
    kinds = [pairs[name][0] for name in _LORA_KINDS if pairs.get(name)]
    if kinds:
        return any("lora" in kind.lower() for kind in kinds)
    return all(on)


def _said(value: tuple[str, ...]) -> bool:
    return not value or value[0].lower() not in _NO


def _stage(launch: Launch, pairs: Pairs, folders: list[Path]) -> str | None:
    for flags in (pairs, launch.flags):
        for name in ("zero_stage", "actor_zero_stage"):
            if len(flags.get(name, ())) == 1 and (flags is pairs or "use_deepspeed" in flags):
                return flags[name][0]
    for name in ("deepspeed", "deepspeed_config", "deepspeed_config_file"):
        file = (pairs.get(name) or launch.flags.get(name) or ("",))[0]
        if file.endswith((".json", ".yaml")):
            return _stage_in(file, folders)
    file = (launch.flags.get("config_file") or ("",))[0]
    if not file or launch.launcher != "accelerate":
        return None
    config = _loaded(file, folders)
    deepspeed = config.get("deepspeed_config") if config.get("distributed_type") == "DEEPSPEED" else None
    if isinstance(deepspeed, dict):
        named = deepspeed.get("deepspeed_config_file")
        return _stage_in(str(named), folders) if named else str(deepspeed.get("zero_stage", 2))
    return None


def _stage_in(file: str, folders: list[Path]) -> str | None:
    config = _loaded(file, folders)
    zero = config.get("zero_optimization")
    return str(zero.get("stage", 0)) if isinstance(zero, dict) else ("0" if config else None)


def _loaded(file: str, folders: list[Path]) -> dict[str, object]:
    for folder in folders:
        path = (folder / file).resolve()
        if path.is_file() and path.is_relative_to(folders[-1].resolve()):
            try:
                text = path.read_text("utf-8", "replace")
                config = json.loads(text) if file.endswith(".json") else yaml.safe_load(text)
            except (ValueError, yaml.YAMLError):
                return {}
            return config if isinstance(config, dict) else {}
    return {}


def _gpus(launch: Launch) -> int | None:
    flags = launch.flags

    def number(name: str) -> int | None:
        value = (flags.get(name) or ("",))[0]
        return int(value) if value.isdigit() else None

    if launch.launcher == "torchrun":
        per_node, nodes = number("nproc_per_node"), number("nnodes")
        if per_node is None or ("nnodes" in flags and nodes is None):
            return None
        return per_node * (nodes or 1)
    if launch.launcher in ("accelerate", "colossalai"):
        listed = {"host", "H", "hostfile"} & set(flags)
        return number(
            "num_processes" if launch.launcher == "accelerate" else "" if listed else "nproc_per_node"
        )
    if launch.launcher == "deepspeed":
        hosts = (flags.get("include") or ("",))[0]
        if hosts:
            slots = [host.partition(":")[2] for host in hosts.split("@")]
            return sum(len(slot.split(",")) for slot in slots) if all(slots) else None
        per_node, nodes = number("num_gpus"), number("num_nodes")
        many = "hostfile" in flags or ("num_nodes" in flags and nodes is None)
        return None if per_node is None or many else per_node * (nodes or 1)
    return None
