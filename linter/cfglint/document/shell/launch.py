"""The training jobs that a script launches: what starts them, the program, its flags, and how many processes.

Each becomes a tree like a config file's: ``--train.batch_size 8`` and ``train.batch_size=8`` are the key
``train.batch_size``; what the launch itself says stands below ``launch``.
"""

from __future__ import annotations

import re

from cfglint.document.shell.words import Array, Piece, Word
from cfglint.document.tree import Alias, Built, Entry, Mapping, Scalar, Sequence, Unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.run import Command
    from cfglint.document.tree import Node

_PREFIXES = frozenset((
    "srun", "mpirun", "mpiexec", "env", "nohup", "time", "exec", "sudo", "numactl", "taskset",
    "stdbuf", "uv", "poetry", "pdm", "conda", "mamba", "micromamba", "pipenv", "docker",
    "podman", "apptainer", "singularity", "enroot", "nsys", "ncu", "ray", "command", "timeout",
    "nice", "ionice", "sky", "xvfb-run",
))  # fmt: skip
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
_OVERRIDE = re.compile(r"(?:\+\+|\+|~)?[A-Za-z_][\w./@-]*=")
_NUMBER = re.compile(r"-\.?[0-9]")
MAX_DEPTH = 20


class Launch:
    """One command that starts a job: ``root`` is its tree, ``[start, end)`` where the file has it."""

    __slots__ = ("end", "root", "start")

    def __init__(self, root: Mapping, start: int, end: int) -> None:
        self.root = root
        self.start = start
        self.end = end


class Reader:
    """Reads the commands of one script; definitions that several of them read belong to none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._known: dict[tuple[int, int], Scalar] = {}

    def read(self, command: Command) -> Launch | None:
        """Return what a command launches, None where it launches nothing."""
        words = command.words
        started = _program(words)
        if started is None:
            return None
        launcher, options, name, rest, module = started
        self._known = {}
        places = [(w.start, w.end) for w in words if w.start >= 0]
        start = min((s for s, _ in places), default=0)
        root = Mapping(start, flow=True)
        root.end = max((e for _, e in places), default=start)
        head = Mapping(start, flow=True)
        _add(root, "launch", head, name)
        _add(head, "launcher", Built(launcher, name.start, name.end), name)
        _add(head, "program", self.scalar(name), name)
        _add(head, "module", Built("true" if module else "false", name.start, name.end), name)
        flags = Mapping(start, flow=True)
        flags.end = root.end
        self._flags(flags, options, dotted=False)
        _add(head, "flags", flags, name)
        self._topology(head, launcher, flags, command, name)
        head.end = root.end
        self._flags(root, rest, dotted=True)
        if _reads_config(rest):
            return None  # its flags are laid over a file: alone, they are not what the job runs with
        return Launch(root, start, root.end)

    # ── words to nodes ─────────────────────────────────────────────────────────────────────────────────
    def scalar(self, word: Word) -> Node:
        """Return a word as a node; one definition that is read twice is an alias the second time."""
        if word.text is None:
            piece = next(p for p in word.pieces if p.unknown or p.maybe)
            why = piece.unknown or "a branch"
            named = why.isidentifier()
            said = (
                f"{why} is set outside of the script, or in some of its branches"
                if named
                else f"{why} is not known before the script runs"
            )
            if not piece.unknown:
                said = "it is given in some branches of the script only"
            return Unread(self.spelled(word), word.start, word.end, why=said)
        if "${" in word.text:  # in single quotes: the program's own interpolation
            return Unread(self.spelled(word), word.start, word.end, why="the program fills ${…} in")
        whole = [piece for piece in word.pieces if piece.text]
        if (
            whole
            and all(piece.verbatim for piece in whole)
            and all(one.start == whole[i].end for i, one in enumerate(whole[1:]))
        ):
            key = whole[0].start, whole[-1].end
            if key in self._known:
                return Alias(self.text[word.start : word.end], self._known[key], word.start, word.end)
            found = self._known[key] = Scalar(word.text, *key)
            return found
        return Built(word.text, word.start, word.end, reads=self._reads(word.pieces))

    def _reads(self, pieces: tuple[Piece, ...]) -> tuple[Scalar, ...]:
        found: list[Scalar] = []
        for piece in pieces:
            if piece.verbatim and piece.text:
                key = piece.start, piece.end
                found.append(self._known.setdefault(key, Scalar(piece.text, *key)))
            found.extend(self._reads(piece.reads))
        return tuple(found)

    def spelled(self, word: Word) -> str:
        """Return how the file spells a word."""
        return self.text[word.start : word.end] if word.start >= 0 else word.spelled

    def _flags(self, root: Mapping, words: list[Word], *, dotted: bool) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            text = word.spelled
            found = _OVERRIDE.match(text) if not text.startswith("-") else None
            if found is not None and dotted:
                if text[0] != "~":
                    key = found.group()[:-1].lstrip("+")
                    self._put(root, key, self._doubted(word, self.scalar(word.from_(found.end()))), word)
                continue
            if not text.startswith("-") or _NUMBER.match(text) or text in ("-", "--"):
                continue
            name, equals, _ = text.partition("=")
            key = name.lstrip("-").replace("-", "_")
            if not key or (any(piece.unknown for piece in word.pieces) and not equals):
                continue
            value: Node
            if equals:
                value = self.scalar(word.from_(len(name) + 1))
            else:
                values: list[Word] = []
                while at < len(words) and not _is_flag(words[at], dotted=dotted):
                    values.append(words[at])
                    at += 1
                if not values:
                    value = Built("true", word.start, word.end, cut=self._cut(words[at - 2 : at]))
                elif len(values) == 1:
                    value = self.scalar(values[0])
                else:
                    value = Sequence(values[0].start, flow=True)
                    value.items = [self.scalar(one) for one in values]
                    value.end = values[-1].end
            value = self._doubted(word, value)
            if dotted:
                self._put(root, key, value, word)
            else:
                _add(root, key, value, word)

    def _doubted(self, word: Word, value: Node) -> Node:
        if not word.maybe:
            return value
        why = "it is given in some branches of the script only"
        return Unread(self.spelled(word), word.start, word.end, why=why)

    def _cut(self, words: list[Word]) -> int:
        """Return where the blanks before a flag begin, if they can go with it."""
        if len(words) < 2:
            return -1
        before, own = words
        between = self.text[before.end : own.start] if 0 <= before.end <= own.start else "?"
        return before.end if between and not between.strip(" \t\r\n\\") else -1

    def _put(self, root: Mapping, key: str, value: Node, word: Word) -> None:
        """Set ``a.b.c``, making the mappings on the way."""
        names = key.replace("/", ".").split(".") if not key.startswith(".") else [key]
        if not all(names) or len(names) > MAX_DEPTH:
            return
        holder = root
        for name in names[:-1]:
            entry = holder.entries.get(name)
            if entry is None or not isinstance(entry.value, Mapping):
                fresh = Mapping(word.start, flow=True)
                fresh.end = word.end
                _add(holder, name, fresh, word)
                holder = fresh
            else:
                holder = entry.value
        if holder is root and names[-1] == "launch":
            return
        old = holder.entries.get(names[-1])
        if old is not None and isinstance(old.value, Mapping) and not isinstance(value, Mapping):
            return
        _add(holder, names[-1], value, word)

    # ── how many processes ─────────────────────────────────────────────────────────────────────────────
    def _topology(self, head: Mapping, launcher: str, flags: Mapping, command: Command, name: Word) -> None:
        def given(*names: str) -> Node | None:
            for one in names:
                entry = flags.entries.get(one)
                if entry is not None:
                    return entry.value
            return None

        nodes: Node | None = None
        total: Node | None = None
        per_node: Node | None = None
        if launcher == "torchrun":
            nodes = given("nnodes") or Built("1", name.start, name.end)
            per_node = given("nproc_per_node") or Built("1", name.start, name.end)
        elif launcher == "deepspeed":
            per_node = given("num_gpus")
            nodes = given("num_nodes")
            included = given("include", "i")
            text = included.text if isinstance(included, Scalar) and not isinstance(included, Unread) else ""
            hosts = [host.partition(":")[2].split(",") for host in text.split("@")] if text else []
            if hosts and all(all(one.strip().isdigit() for one in slots) for slots in hosts):
                total = Built(str(sum(map(len, hosts))), included.start, included.end)  # type: ignore[union-attr]
                nodes = Built(str(len(hosts)), included.start, included.end)  # type: ignore[union-attr]
            if nodes is None and given("hostfile", "H") is None:
                nodes = Built("1", name.start, name.end)
        elif launcher == "accelerate":
            total = given("num_processes")
            nodes = given("num_machines")
        if nodes is not None and _whole(nodes) is None:
            nodes = Unread(_said(nodes), nodes.start, nodes.end, why=_why(nodes, "the number of nodes"))
        if per_node is not None and _whole(per_node) is None and _said(per_node) in ("gpu", "auto"):
            per_node = None  # as many as the machine has
        if total is None and per_node is not None and nodes is not None:
            one, two = _whole(per_node), _whole(nodes)
            if one is not None and two is not None:
                target = per_node.target if isinstance(per_node, Alias) else per_node
                total = target if two == 1 else Built(str(one * two), per_node.start, per_node.end)
            else:
                hidden = per_node if one is None else nodes
                total = Unread(_said(hidden), hidden.start, hidden.end, why=_why(hidden, "how many"))
        for key, value in (("processes_per_node", per_node), ("nodes", nodes), ("processes", total)):
            if value is not None:
                target = value.target if isinstance(value, Alias) else value
                _add(head, key, Alias(key, target, value.start, value.end), name)
        visible = command.environment.get("CUDA_VISIBLE_DEVICES") or command.exported.get(
            "CUDA_VISIBLE_DEVICES"
        )
        if visible is not None and not isinstance(visible, Array):
            word = Word(visible, *_span(visible, name))
            listed = word.text
            if listed is None:
                _add(head, "visible_gpus", self.scalar(word), name)
            elif listed.strip():
                _add(head, "visible_gpus", Built(str(len(listed.split(","))), word.start, word.end), name)


def _reads_config(words: list[Word]) -> bool:
    """Whether a program is told to read a config file."""
    named = False
    # torchtitan's `--module llama3 --config llama3_8b` names a function of a Python module.
    python = any(re.match(r"--module(?:=|\Z)", word.spelled) for word in words)
    for word in words:
        if python and re.match(r"--config(?:=|\Z)", word.spelled):
            continue
        if _OVERRIDE.match(word.spelled):
            continue  # `tools.config=tools.yaml` is a setting like others
        if re.match(r"--config[-_](?:name|path|dir)(?:=|\Z)", word.spelled):
            named = "=" not in word.spelled  # Hydra's: most often a config that comes with the program
            continue
        if named:
            named = False
            continue
        text = word.spelled.partition("=")[2] or word.spelled
        if text.endswith((".yaml", ".yml", ".toml")) or re.match(
            r"--config(?:[-_]file)?(?:=|\Z)", word.spelled
        ):
            return True
    return False


def _add(mapping: Mapping, key: str, value: Node, word: Word) -> None:
    mapping.entries[key] = Entry(Scalar(key, word.start, word.end, '"'), value)


def _span(pieces: tuple[Piece, ...], name: Word) -> tuple[int, int]:
    placed = [piece for piece in pieces if piece.start >= 0]
    if not placed or placed[-1].end < placed[0].start:
        return name.start, name.end
    return placed[0].start, placed[-1].end


def _said(node: Node) -> str:
    node = node.target if isinstance(node, Alias) else node
    return node.text if isinstance(node, Scalar) else ""


def _whole(node: Node) -> int | None:
    node = node.target if isinstance(node, Alias) else node
    text = node.text if isinstance(node, Scalar) and not isinstance(node, Unread) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _why(node: Node, what: str) -> str:
    return node.why if isinstance(node, Unread) else f"{what} is not known before the script runs"


def _is_flag(word: Word, *, dotted: bool) -> bool:
    text = word.spelled
    if any(piece.unknown for piece in word.pieces[:1]):
        return False
    if text.startswith("-") and not _NUMBER.match(text) and text != "-":
        return True
    return dotted and _OVERRIDE.match(text) is not None


def _base(word: Word) -> str:
    """Return the name of a program; also of one that is there on some ways only."""
    if any(piece.unknown for piece in word.pieces):
        return ""
    return word.spelled.rpartition("/")[2]


def _program(words: list[Word]) -> tuple[str, list[Word], Word, list[Word], bool] | None:
    """Return the launcher's name and flags, the program, its arguments, and whether it is a module."""
    at = 0
    while at < len(words):
        name = _base(words[at])
        if _PYTHON.match(name):
            return _python(words, at + 1)
        if name in ("torchrun", "deepspeed", "deepspeed.exe"):
            return _after(words, at + 1, name)
        if name == "accelerate" and at + 1 < len(words) and words[at + 1].text == "launch":
            return _after(words, at + 2, name)
        if at == 0 and name not in _PREFIXES and words[0].spelled and not words[0].maybe:
            return None
        at += 1
    return None


def _python(words: list[Word], at: int) -> tuple[str, list[Word], Word, list[Word], bool] | None:
    while at < len(words):
        text = words[at].text
        if text is None and not words[at].maybe:
            return None
        text = words[at].spelled
        if _PYTHON.match(_base(words[at])):
            at += 1  # `python3` in either of two branches
        elif text == "-m" and at + 1 < len(words):
            module = words[at + 1]
            if module.text in ("torch.distributed.run", "torch.distributed.launch"):
                return _after(words, at + 2, "torchrun")
            if module.text == "deepspeed.launcher.runner":
                return _after(words, at + 2, "deepspeed")
            if module.text == "accelerate.commands.launch":
                return _after(words, at + 2, "accelerate")
            return ("python", [], module, words[at + 2 :], True) if module.text else None
        elif text in ("-c", "-", "--version", "-V") or text.startswith("-c"):
            return None
        elif text in ("-W", "-X"):
            at += 2
        elif text.startswith("-"):
            at += 1
        else:
            return ("python", [], words[at], words[at + 1 :], False) if words[at].text else None
    return None


def _after(
    words: list[Word], at: int, launcher: str
) -> tuple[str, list[Word], Word, list[Word], bool] | None:
    """Return the program behind a launcher's own flags."""
    switches = _SWITCHES[launcher].split()
    options: list[Word] = []
    module = False
    while at < len(words):
        text = words[at].spelled
        if not text.startswith("-"):
            if words[at].text:
                return launcher, options, words[at], words[at + 1 :], module
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
