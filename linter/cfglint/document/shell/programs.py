"""Which program a command starts, and how: the launchers and command lines of training and serving.

What is in front of a program (srun, env, uv run, docker run …) is passed over, but for the GPUs that a
container gets. Which files the program is told to read is found here, too: ``--config FILE``, and Hydra's
``--config-path DIR --config-name NAME``.
"""

from __future__ import annotations

import re

from cfglint.document.shell.substituted import tail_of
from cfglint.document.shell.torchx import as_torchrun
from cfglint.document.shell.words import Word, values_of
from cfglint.record import Record, Value, field

Words = list[Word]

_PREFIXES = frozenset((
    "srun", "mpirun", "mpiexec", "env", "nohup", "time", "exec", "sudo", "numactl", "taskset",
    "stdbuf", "xargs", "uv", "uvx", "poetry", "pdm", "pixi", "conda", "mamba", "micromamba", "pipenv",
    "docker", "podman", "nerdctl", "apptainer", "singularity", "enroot", "nsys", "ncu", "ray",
    "command", "timeout", "nice", "ionice", "sky", "xvfb-run", "setsid", "tini", "dumb-init",
    "kubectl", "coverage", "parallel", "hatch", "rye", "unbuffer", "flock", "chrt", "watch", "gdb", "salloc",
    "horovodrun", "gantry", "jsrun", "aprun", "flux", "prun", "bsub", "qsub", "chroot", "py-spy",
))  # fmt: skip
# They start a program once for each task; by these flags, how many there are.
_SPREADERS = {
    "srun": ("-n", "--ntasks"),
    **dict.fromkeys(("mpirun", "mpiexec"), ("-n", "-np", "--np", "-c")),
    "horovodrun": ("-np", "--num-proc"),
}
_PER_MACHINE = {
    "srun": ("--ntasks-per-node", "--gpus-per-node"),
    **dict.fromkeys(("mpirun", "mpiexec"), ("-ppn", "-npernode", "--npernode", "-perhost")),
    "horovodrun": (),
}
_MACHINES = {"srun": ("-N", "--nodes")}
_EACH = {"srun": ("--ntasks-per-node",)}
_HOSTS = ("-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-host", "--host", "-H", "-hosts")
# `uv run FILE.py` is `python FILE.py`.
_RUNNERS = frozenset(("uv", "poetry", "pdm", "pixi", "pipenv", "coverage"))
# `uv pip install deepspeed` starts nothing.
_INSTALLS = ("pip", "add", "sync", "install", "create", "remove", "build", "pull", "update", "lock")
# Behind these stands the name of an environment or a package.
_NAMES = (
    "-n", "--name", "-p", "--prefix", "--with", "--extra", "--group", "--container-name", "--job-name", "-J",
)  # fmt: skip
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
_TELLS = re.compile(r"(?:^|\n)(?:--help|-h|--hydra-help|--cfg\n(?:job|hydra|all))(?:\n|\Z)")
_PYTHON = re.compile(r"i?python(3(\.\d+)?)?\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
CONFIG_SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "deepspeed.launcher.runner": "deepspeed",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
}
# Modules that run another program, and those of their flags that take a value.
_AROUND = ("coverage", "debugpy", "cProfile", "pdb", "viztracer", "memray", "scalene", "kernprof")
# Its launchers start one process for each slot (determined: harness/determined/launch/torch_distributed.py).
_DETERMINED = "determined.launch."
_PROFILERS = ("viztracer", "memray", "scalene", "kernprof")  # also by themselves
_AROUND_VALUES = (
    "--listen", "--connect", "-o", "--output_file", "--rcfile", "--data-file", "--source", "-s", "--log-to",
)  # fmt: skip
# The workers of Dynamo take the flags of their engines (dynamo: components/src/dynamo/vllm/args.py).
_SERVERS = {
    "sglang.launch_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "dynamo.vllm": "vllm",
    "dynamo.sglang": "sglang",
}
# Short names of the servers' flags.
_SHORT = {
    "vllm": {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size"},
    "sglang": {"tp": "tp-size", "dp": "dp-size", "pp": "pp-size", "model": "model-path"},
}
# XTuner's own program, whose first argument is a config in Python, started by torchrun, srun or python.
_TRAINS_XTUNER = re.compile(r"(?:\A|/)xtuner/tools/train\.py\Z|\Axtuner\.tools\.train\Z")
_MODULE = re.compile(r"--module(?:=|\Z)")
# `config=FILE` is the way of programs that read their command line with OmegaConf.from_cli.
_CONFIG = re.compile(r"--(?:config|config[-_]file|job\.config[-_]file)(?:=|\Z)|config=(?=.*\.ya?ml\Z)")
_VARIABLE = re.compile(r"\w+\Z")
# What variables are called that hold flags.
OPTIONS = re.compile(r"arg|opt|flag|param|conf|dist|launch|extra|\Acfg", re.IGNORECASE)
_SETTING = re.compile(r"\+{0,2}[A-Za-z_][\w.]*=")


class Cli(Value):
    """A command line that starts a program: ``VERB [flags] PROGRAM [arguments]``, or the program by itself.

    ``launcher`` is what reports call it, ``verbs`` are the words that must follow its name. One with
    ``switches`` has flags of a launcher in front of the program; where some are given, it is ``behind``. The
    others are programs of the framework ``suite``; ``positional`` is the key of what has no flag.
    """

    launcher: str
    verbs: tuple[str, ...] = ()
    suite: str = field(default="", kw_only=True)
    switches: str = field(default="", kw_only=True)
    behind: str = field(default="", kw_only=True)
    positional: str = field(default="", kw_only=True)
    needs: str = field(default="", kw_only=True)  # a word without which it is another program of that name
    cut: str = field(default="", kw_only=True)  # the word after which a launcher's flags stand


_TORCHRUN = Cli("torchrun", switches=_SWITCHES["torchrun"])
_DEEPSPEED = Cli("deepspeed", switches=_SWITCHES["deepspeed"])
_LLAMAFACTORY = Cli("llamafactory-cli", ("train",), suite="llamafactory")
_CLIS = {
    "torchrun": _TORCHRUN,
    "deepspeed": _DEEPSPEED,
    "deepspeed.exe": _DEEPSPEED,
    "accelerate": Cli("accelerate", ("launch",), switches=_SWITCHES["accelerate"]),
    "accelerate-launch": Cli("accelerate", switches=_SWITCHES["accelerate"]),
    # tune run [torchrun's flags] RECIPE --config FILE key=value
    "tune": Cli("tune", ("run",), suite="torchtune", switches=_SWITCHES["torchrun"], behind="torchrun"),
    "llamafactory-cli": _LLAMAFACTORY,
    "lmf": _LLAMAFACTORY,
    "swift": Cli("swift", ("pt", "sft", "rlhf"), suite="swift"),  # swift sft [FILE] --key value
    "trl": Cli("trl", ("sft", "dpo", "grpo", "kto", "reward", "rloo"), suite="trl"),
    # axolotl train FILE [--launcher NAME] [--key value] [-- launcher's flags]
    "axolotl": Cli("axolotl", ("train",), suite="axolotl", cut="--"),
    "megatron": Cli("megatron", ("sft", "pt", "rlhf"), suite="swift"),  # ms-swift's, too
    "colossalai": Cli("colossalai", ("run",), switches="m"),
    "composer": Cli("composer", switches="module_mode command_mode v verbose"),
    "rl": Cli("rl", suite="prime_rl", needs="@"),  # rl @ FILE --key value
    "vllm": Cli("vllm", ("serve",), suite="vllm", positional="model"),
    "sglang": Cli("sglang", ("serve",), suite="sglang", positional="model-path"),
    "xtuner": Cli("xtuner", ("train",), suite="xtuner"),  # xtuner train CONFIG [--deepspeed NAME]
}

_COUNTED = ("nnodes", "nproc_per_node")  # no other flag of torchrun begins with nn or np


class Start(Record):
    """A program that a command starts.

    ``options`` are the launcher's own words, ``rest`` the program's. ``suite`` names the framework whose own
    command it is; a server's flags have dashes, as in its config file. ``positional`` is the key of what has
    no flag. ``environment`` is what comes before the program as ``NAME=value``, ``hidden`` a word of the
    launcher's that may be any flags.
    """

    launcher: str
    options: Words
    name: Word
    rest: Words
    module: bool = field(default=False, kw_only=True)
    suite: str = field(default="", kw_only=True)
    positional: str = field(default="", kw_only=True)
    environment: dict[str, Word] = field(factory=dict, init=False)
    before: Words = field(factory=list, init=False)
    hidden: Word | None = field(default=None, init=False)

    def configs(self) -> tuple[Words, Words]:
        """Return the files that the program is told to read, and the arguments without them."""
        files: Words = []
        rest: Words = []
        if self.suite == "xtuner" or _TRAINS_XTUNER.search(self.name.spelled):
            at = _first_argument(self.rest)
            return ([], self.rest) if at is None else ([self.rest[at]], self.rest[:at] + self.rest[at + 1 :])
        # torchtitan's `--module llama3 --config llama3_8b` names a function of a Python module.
        python = any(_MODULE.match(word.spelled) for word in self.rest)
        words = iter(self.rest)
        for word in words:
            text = word.spelled
            flag = None if python and text.startswith("--config") else _CONFIG.match(text)
            if flag is not None and "=" in text:
                files.append(word.from_(flag.end()))  # `--config=$FILE`, too
                continue
            following = next(words, None) if flag is not None or text == "@" else None
            first = not files and not rest and not text.startswith("-")
            if following is not None:
                files.append(following)
            elif first and "=" not in text and text.endswith(CONFIG_SUFFIXES):  # `data=x.yaml` is a setting
                files.append(word)
            else:
                rest.append(word)
        return files, rest

    def spread(self) -> tuple[str, Word | None]:
        """Return what starts the program several times, and the word that says how often, if there are."""
        name, behind = self._spreader()
        return name, next(values_of(behind, _SPREADERS.get(name, ())), None)

    def machines(self) -> tuple[Word | None, Word | None]:
        """Return on how many machines srun starts the program, and how often on each, where it says so."""
        name, behind = self._spreader()
        return tuple(next(values_of(behind, flags.get(name, ())), None) for flags in (_MACHINES, _EACH))  # type: ignore[return-value]

    def per_machine(self) -> tuple[Word | None, bool]:
        """Return how many times mpirun or srun starts it on a machine, and whether there may be several."""
        name, behind = self._spreader()
        hosts = any(word.spelled.partition("=")[0] in _HOSTS for word in behind)
        return next(values_of(behind, _PER_MACHINE.get(name, ())), None), hosts

    def _spreader(self) -> tuple[str, Words]:
        """Return what starts the program several times, with its words."""
        names = [(_base(word), at) for at, word in enumerate(self.before)]
        name, at = next((pair for pair in reversed(names) if pair[0] in _SPREADERS), ("", len(names)))
        return name, self.before[at:]

    def only_tells(self) -> bool:
        """Whether a program says something and ends, by its flags; ``--cfg job`` is Hydra's."""
        return _TELLS.search("\n".join(word.text or "" for word in self.rest)) is not None

    def submitted(self) -> str:
        """Return the program behind `--` that a submitter hands on; nothing where it hands on none."""
        texts = [word.text or "" for word in self.rest]
        behind = texts[texts.index("--") + 1 :] if "--" in texts else []
        return next((text for text in behind if text.endswith(".py") and not text.startswith("-")), "")

    def key(self, flag: str) -> str:
        """Return the key that a flag sets."""
        key = flag.lstrip("-")
        if self.suite not in _SHORT:
            return key.replace("-", "_")
        key = key.replace("_", "-")
        return _SHORT[self.suite].get(key, key)

    def own(self, flag: str) -> str:
        """Return the key of one of the launcher's own flags: torchrun takes what they begin with, too."""
        key = flag.lstrip("-").replace("-", "_")
        begun = (name for name in _COUNTED if len(key) > 1 and name.startswith(key))
        return next(begun, key) if self.launcher == "torchrun" else key


def _first_argument(words: Words) -> int | None:
    """Return the place of the config among the arguments of XTuner's program, whose flags take a value each.

    ``--cfg-options`` takes all that are ``key=value`` (xtuner/tools/train.py: parse_args).
    """
    flag = ""
    for at, word in enumerate(words):
        text = word.spelled
        if text.startswith("-"):
            flag = "" if "=" in text else text
        elif flag == "--cfg-options" and "=" in text:
            continue
        elif flag and flag != "--cfg-options":
            flag = ""
        else:
            return at
    return None


def program_of(words: Words) -> Start | None:
    """Return the program that a command starts; None where it is not one that trains or serves."""
    at = 0
    run = False
    environment: dict[str, Word] = {}
    while at < len(words):
        word = words[at]
        name = _base(word)
        named = at > 0 and words[at - 1].text in _NAMES
        start = _started(words, at, name) if not named else None
        run = run or (at > 0 and word.text == "run" and _base(words[at - 1]) in _RUNNERS)
        # `uv run -m a.b` is `python -m a.b`; what nothing is known of may be Python, too.
        python = run or at == 0 or _is_unknown(words[at - 1 - (words[at - 1].text == "-u")])
        if start is None and name.endswith(".py") and python and not (named or word.maybe):
            start = Start("python", [], word, words[at + 1 :])
        if python and word.text in ("-m", "--module") and at + 1 < len(words):
            start = _module(words, at + 1)
        if start is not None:
            start.environment, start.before = environment, words[:at]
            return start
        if at == 0 and name not in _PREFIXES and word.spelled and not word.maybe:
            return None
        if at < 2 and word.text in _INSTALLS:
            return None
        assigned = _ASSIGNMENT.match(word.spelled)
        if assigned is not None:
            environment[assigned.group()[:-1]] = word.from_(assigned.end())
        at += 1
    return None


def given_before(words: Words, name: str) -> Word | None:
    """Return what ``nohup env NAME=value`` in front of a program gives it; None where it gives nothing."""
    for word in words:
        assigned = _ASSIGNMENT.match(word.spelled)
        if assigned is None and _base(word) not in _PREFIXES:
            return None
        if assigned is not None and assigned.group()[:-1] == name:
            return word.from_(assigned.end())
    return None


def _is_unknown(word: Word) -> bool:
    """Whether a word is a variable that nothing is known of."""
    return len(word.pieces) == 1 and _VARIABLE.match(word.pieces[0].unknown) is not None


def _started(words: Words, at: int, name: str) -> Start | None:
    if _PYTHON.match(name) or name in _PROFILERS:  # `viztracer -o x FILE`
        return (_around if name in _PROFILERS else _python)(words, at + 1)
    if name.partition(":")[0] == VLLM_IMAGE:
        return Start("vllm", [], words[at], words[at + 1 :], suite="vllm")  # its entry point is the server
    if name == "torchx":
        words, at, name = [words[at], *as_torchrun(words[at + 1 :])], 0, "torchrun"
    cli = _CLIS.get(name)
    if cli is None or (cli.verbs and not (at + 1 < len(words) and words[at + 1].text in cli.verbs)):
        return None
    at += 1 + bool(cli.verbs)
    if cli.switches:
        return _launched(words, at, cli)
    rest = words[at:]
    if cli.needs and all(word.text != cli.needs for word in rest):
        return None
    cut = next((i for i, word in enumerate(rest) if cli.cut and word.text == cli.cut), len(rest))
    program = words[at - 1]
    return Start(
        cli.launcher, rest[cut + 1 :], program, rest[:cut], suite=cli.suite, positional=cli.positional
    )


def _base(word: Word) -> str:
    """Return the name of a program; also of one in an unknown folder, or that is there on some ways only."""
    if any(piece.unknown for piece in word.pieces):
        return (tail_of(word.pieces) or "").rpartition("/")[2]
    return word.spelled.rpartition("/")[2]


def _python(words: Words, at: int) -> Start | None:
    while at < len(words):
        text = words[at].spelled
        if words[at].text is None and not words[at].maybe and not _base(words[at]):
            return Start("python", [], words[at], words[at + 1 :]) if _is_program(words, at) else None
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
            known = _base(words[at]) and not words[at].maybe
            return Start("python", [], words[at], words[at + 1 :]) if known else None
    return None


def _module(words: Words, at: int) -> Start | None:
    module = words[at]
    text = module.text
    if text in _MODULES:
        skipped = text == "accelerate.commands.accelerate_cli" and at + 1 < len(words)
        return _launched(words, at + 1 + skipped, _CLIS[_MODULES[text]])
    if not text:
        return None
    if text in _AROUND:
        return _around(words, at + 1)
    if text.startswith(_DETERMINED):
        inner = _around(words, at + 1)
        if inner is not None and inner.launcher == "python":
            inner.launcher = "determined"
        return inner
    return Start("python", [], module, words[at + 1 :], module=True, suite=_SERVERS.get(text, ""))


def _around(words: Words, at: int) -> Start | None:
    """Return the program that a profiler or debugger runs, after its own flags."""
    while at < len(words):
        text = words[at].spelled
        if text == "-m":
            return _python(words, at)
        if not text.startswith("-"):
            if text != "run":
                return _python(words, at)
            at += 1
        else:
            at += 2 if text in _AROUND_VALUES and "=" not in text else 1
    return None


def _launched(words: Words, at: int, cli: Cli) -> Start | None:
    """Return the program after a launcher's own flags."""
    switches = cli.switches.split()
    options: Words = []
    module = False
    unnamed: Start | None = None
    hidden: Word | None = None
    while at < len(words):
        text = words[at].spelled
        if not text.startswith("-"):
            around = module and words[at].text in _AROUND  # torchrun -m coverage run FILE
            if around or (_PYTHON.match(_base(words[at])) and not module):  # torchrun --no-python python FILE
                inner = (_around if around else _python)(words, at + 1)
                if inner is not None:
                    inner.launcher, inner.options = cli.launcher, options
                return inner
            if words[at].text or (_base(words[at]) and not words[at].maybe):
                launcher = cli.behind if cli.behind and options else cli.launcher
                start = Start(launcher, options, words[at], words[at + 1 :], module=module, suite=cli.suite)
                start.hidden = hidden
                return start
            if text:
                return unnamed
            if unnamed is None and _is_program(words, at):
                unnamed = Start(cli.launcher, list(options), words[at], words[at + 1 :], module=module)
            hidden = words[at]  # `$OPTIONS`, which nobody set
            at += 1
            continue
        key = text.lstrip("-").partition("=")[0].replace("-", "_")
        options.append(words[at])
        module |= key in ("m", "module")
        at += 1
        if key not in switches and "=" not in text and at < len(words):
            options.append(words[at])
            at += 1
    return unnamed


def _is_program(words: Words, at: int) -> bool:
    """Whether an unknown word stands for a program: flags follow it, and it is not called after flags."""
    name = words[at].pieces[0].unknown if len(words[at].pieces) == 1 else ""
    following = words[at + 1].spelled if at + 1 < len(words) else ""
    starts = following.startswith("--") or _SETTING.match(following) is not None
    return _VARIABLE.match(name) is not None and starts and not words[at].maybe and not OPTIONS.search(name)
