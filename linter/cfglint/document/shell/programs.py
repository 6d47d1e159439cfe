"""Which program a command starts, and how: the launchers and command lines of training and serving.

What stands in front of a program (srun, env, uv run, docker run …) is passed over.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from cfglint.document.shell.words import Word

    Words: TypeAlias = list[Word]

_PREFIXES = frozenset((
    "srun", "mpirun", "mpiexec", "env", "nohup", "time", "exec", "sudo", "numactl", "taskset",
    "stdbuf", "uv", "uvx", "poetry", "pdm", "pixi", "conda", "mamba", "micromamba", "pipenv", "docker",
    "podman", "nerdctl", "apptainer", "singularity", "enroot", "nsys", "ncu", "ray", "command", "timeout",
    "nice", "ionice", "sky", "xvfb-run", "setsid", "tini", "dumb-init", "kubectl",
))  # fmt: skip
# `uv pip install deepspeed` starts nothing.
_INSTALLS = frozenset(
    ("pip", "add", "sync", "install", "create", "remove", "build", "pull", "update", "lock")
)
# Behind these stands the name of an environment or a package.
_NAMES = (
    "-n",
    "--name",
    "-p",
    "--prefix",
    "--with",
    "--extra",
    "--group",
    "--container-name",
    "--job-name",
    "-J",
)
VLLM_IMAGE = "vllm-openai"
# Flags of launchers that take no value; all others take one.
_SWITCHES = {
    "torchrun": "standalone m module no_python run_path virtual_local_rank use_env",
    "accelerate": (
        "quiet cpu multi_gpu tpu ipex use_mps_device use_deepspeed use_fsdp use_megatron_lm use_xpu"
        " use_parallelism_config same_network m module no_python debug fp8_enable dynamo_use_dynamic"
        " dynamo_use_fullgraph dynamo_use_regional_compilation enable_cpu_affinity"
    ),
    "deepspeed": (
        "module no_python no_local_rank no_ssh no_ssh_check save_pid force_multi elastic_training"
        " bind_cores_to_rank"
    ),
}
_PYTHON = re.compile(r"python(3(\.\d+)?)?\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
CONFIG_SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "deepspeed.launcher.runner": "deepspeed",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
}
_SERVERS = {"sglang.launch_server": "sglang", "vllm.entrypoints.openai.api_server": "vllm"}
# Short names of the servers' flags.
_SHORT = {
    "vllm": {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size"},
    "sglang": {"tp": "tp-size", "dp": "dp-size", "pp": "pp-size", "model": "model-path"},
}
_MODULE = re.compile(r"--module(?:=|\Z)")
_CONFIG = re.compile(r"--(?:config|config[-_]file|job\.config[-_]file)(?:=|\Z)")
HYDRA = ("--config-name", "-cn")
_TRL = ("sft", "dpo", "grpo", "kto", "reward", "rloo")


class Start:
    """A program that a command starts.

    ``options`` are the launcher's own words, ``rest`` the program's. ``suite`` names the framework whose own
    command it is; a server's flags have dashes, as in its config file. ``positional`` is the key of what has
    no flag. ``environment`` is what stands before the program as ``NAME=value``.
    """

    __slots__ = ("environment", "launcher", "module", "name", "options", "positional", "rest", "suite")

    def __init__(
        self,
        launcher: str,
        options: Words,
        name: Word,
        rest: Words,
        *,
        module: bool = False,
        suite: str = "",
        positional: str = "",
    ) -> None:
        self.launcher = launcher
        self.options = options
        self.name = name
        self.rest = rest
        self.module = module
        self.suite = suite
        self.positional = positional
        self.environment: dict[str, Word] = {}

    def configs(self) -> tuple[Words, Words]:
        """Return the files that the program is told to read, and the arguments without them."""
        files: Words = []
        rest: Words = []
        at = 0
        # torchtitan's `--module llama3 --config llama3_8b` names a function of a Python module.
        python = any(_MODULE.match(word.spelled) for word in self.rest)
        while at < len(self.rest):
            word = self.rest[at]
            text = word.spelled
            at += 1
            found = None if python and text.startswith("--config") else _CONFIG.match(text)
            if found is not None and text.endswith("=") and found.end() == len(text):
                files.append(word.from_(found.end()))  # `--config=$FILE`
            elif found is not None and "=" in text:
                files.append(word.from_(found.end()))
            elif (found is not None or text == "@") and at < len(self.rest):
                files.append(self.rest[at])
                at += 1
            elif not files and not rest and not text.startswith("-") and text.endswith(CONFIG_SUFFIXES):
                if "=" in text:  # Hydra's `data=x.yaml` is a setting like others
                    rest.append(word)
                else:
                    files.append(word)
            else:
                rest.append(word)
        return files, rest

    def key(self, flag: str) -> str:
        """Return the key that a flag sets."""
        key = flag.lstrip("-")
        if self.suite not in _SHORT:
            return key.replace("-", "_")
        key = key.replace("_", "-")
        return _SHORT[self.suite].get(key, key)


def program_of(words: Words) -> Start | None:
    """Return the program that a command starts; None where it is none that trains or serves."""
    at = 0
    environment: dict[str, Word] = {}
    while at < len(words):
        word = words[at]
        name = _base(word)
        named = at > 0 and words[at - 1].text in _NAMES
        found = _started(words, at, name) if not named else None
        if found is not None:
            found.environment = environment
            return found
        if at == 0 and name not in _PREFIXES and word.spelled and not word.maybe:
            return None
        if at < 2 and word.text in _INSTALLS:
            return None
        assigned = _ASSIGNMENT.match(word.spelled)
        if assigned is not None:
            environment[assigned.group()[:-1]] = word.from_(assigned.end())
        at += 1
    return None


def _started(words: Words, at: int, name: str) -> Start | None:
    if _PYTHON.match(name):
        return _python(words, at + 1)
    if name.partition(":")[0] == VLLM_IMAGE:
        return Start("vllm", [], words[at], words[at + 1 :], suite="vllm")  # its entry point is the server
    starter = _STARTERS.get(name)
    return starter(words, at + 1) if starter is not None else None


def _base(word: Word) -> str:
    """Return the name of a program; also of one that is there on some ways only."""
    if any(piece.unknown for piece in word.pieces):
        return ""
    return word.spelled.rpartition("/")[2]


def _python(words: Words, at: int) -> Start | None:
    while at < len(words):
        text = words[at].text
        if text is None and not words[at].maybe:
            return None
        text = words[at].spelled
        if _PYTHON.match(_base(words[at])):
            at += 1  # `python3` in either of two branches
        elif text == "-m" and at + 1 < len(words):
            return _module(words, at + 1)
        elif text in ("-c", "-", "--version", "-V") or text.startswith("-c"):
            return None
        elif text in ("-W", "-X"):
            at += 2
        elif text.startswith("-"):
            at += 1
        else:
            return Start("python", [], words[at], words[at + 1 :]) if words[at].text else None
    return None


def _module(words: Words, at: int) -> Start | None:
    module = words[at]
    text = module.text
    if text in _MODULES:
        skipped = text == "accelerate.commands.accelerate_cli" and at + 1 < len(words)
        return _after(words, at + 1 + skipped, _MODULES[text])
    if not text:
        return None
    return Start("python", [], module, words[at + 1 :], module=True, suite=_SERVERS.get(text, ""))


def _after(words: Words, at: int, launcher: str) -> Start | None:
    """Return the program behind a launcher's own flags."""
    switches = _SWITCHES[launcher].split()
    options: Words = []
    module = False
    while at < len(words):
        text = words[at].spelled
        if not text.startswith("-"):
            if words[at].text:
                return Start(launcher, options, words[at], words[at + 1 :], module=module)
            if text:
                return None
            at += 1  # `$OPTIONS`, which nobody set
            continue
        key = text.lstrip("-").partition("=")[0].replace("-", "_")
        options.append(words[at])
        module |= key in ("m", "module")
        at += 1
        if key not in switches and "=" not in text and at < len(words):
            options.append(words[at])
            at += 1
    return None


# ── command lines of one framework each ────────────────────────────────────────────────────────────────────
def _word_is(words: Words, at: int, *wanted: str) -> bool:
    return at < len(words) and words[at].text in wanted


def _accelerate(words: Words, at: int) -> Start | None:
    return _after(words, at + 1, "accelerate") if _word_is(words, at, "launch") else None


def _tune(words: Words, at: int) -> Start | None:
    """``tune run [torchrun's flags] RECIPE --config FILE key=value``."""
    if not _word_is(words, at, "run"):
        return None
    found = _after(words, at + 1, "torchrun")
    if found is not None:
        found.launcher, found.suite = "torchrun" if found.options else "tune", "torchtune"
    return found


def _llamafactory(words: Words, at: int) -> Start | None:
    if not _word_is(words, at, "train"):
        return None
    return Start("llamafactory-cli", [], words[at], words[at + 1 :], suite="llamafactory")


def _trl(words: Words, at: int) -> Start | None:
    if not _word_is(words, at, *_TRL):
        return None
    return Start("trl", [], words[at], words[at + 1 :], suite="trl")


def _axolotl(words: Words, at: int) -> Start | None:
    """``axolotl train FILE [--launcher NAME] [--key value] [-- launcher's flags]``."""
    if not _word_is(words, at, "train"):
        return None
    rest = words[at + 1 :]
    cut = next((i for i, word in enumerate(rest) if word.text == "--"), len(rest))
    return Start("axolotl", rest[cut + 1 :], words[at], rest[:cut], suite="axolotl")


def _prime_rl(words: Words, at: int) -> Start | None:
    """``rl @ FILE --key value``."""
    given = any(word.text == "@" for word in words[at:])
    return Start("rl", [], words[at - 1], words[at:], suite="prime_rl") if given else None


def _vllm(words: Words, at: int) -> Start | None:
    if not _word_is(words, at, "serve"):
        return None
    return Start("vllm", [], words[at], words[at + 1 :], suite="vllm", positional="model")


def _sglang(words: Words, at: int) -> Start | None:
    if not _word_is(words, at, "serve"):
        return None
    return Start("sglang", [], words[at], words[at + 1 :], suite="sglang", positional="model-path")


_STARTERS: dict[str, Callable[[Words, int], Start | None]] = {
    "torchrun": lambda words, at: _after(words, at, "torchrun"),
    "deepspeed": lambda words, at: _after(words, at, "deepspeed"),
    "deepspeed.exe": lambda words, at: _after(words, at, "deepspeed"),
    "accelerate": _accelerate,
    "tune": _tune,
    "llamafactory-cli": _llamafactory,
    "lmf": _llamafactory,
    "trl": _trl,
    "axolotl": _axolotl,
    "rl": _prime_rl,
    "vllm": _vllm,
    "sglang": _sglang,
}
