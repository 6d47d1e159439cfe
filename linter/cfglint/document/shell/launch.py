"""The training jobs that a script launches: what starts them, the program, its flags, and how many processes.

Each becomes a tree like a config file's: ``--train.batch_size 8`` and ``train.batch_size=8`` are the key
``train.batch_size``; what the launch itself says stands below ``launch``.
"""

from __future__ import annotations

import re

from cfglint.document.shell.containers import container_job
from cfglint.document.shell.programs import HYDRA, Start, program_of
from cfglint.document.shell.words import Array, Piece, Word
from cfglint.document.tree import Alias, Built, Entry, Mapping, Scalar, Sequence, Unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.run import Command
    from cfglint.document.tree import Job, Node

_OVERRIDE = re.compile(r"(?:\+\+|\+|~)?[A-Za-z_][\w./@-]*=")
_NUMBER = re.compile(r"-\.?[0-9]")
_LIST = re.compile(r'"?\$\{(\w+)\[[@*]\]\}"?')
MAX_DEPTH = 20


class Launch:
    """One command that starts a job: ``root`` is its tree, ``[start, end)`` where the file has it.

    ``job`` is what the command itself asks for (``docker run --gpus 2``).
    """

    __slots__ = ("end", "job", "over", "root", "start")

    def __init__(self, root: Mapping, start: int, end: int) -> None:
        self.job: Job | None = None
        self.over: tuple[Scalar, ...] = ()  # the files that its flags are laid over
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
        start = program_of(words)
        if start is None:
            return None
        self._known = {}
        name = start.name
        places = [(w.start, w.end) for w in words if w.start >= 0]
        begun = min((s for s, _ in places), default=0)
        root = Mapping(begun, flow=True)
        root.end = max((e for _, e in places), default=begun)
        head = Mapping(begun, flow=True)
        _add(root, "launch", head, name)
        _add(head, "launcher", Built(start.launcher, name.start, name.end), name)
        _add(head, "program", self.scalar(name), name)
        _add(head, "module", Built("true" if start.module else "false", name.start, name.end), name)
        if start.suite:
            _add(head, "suite", Built(start.suite, name.start, name.end), name)
        flags = Mapping(begun, flow=True)
        flags.end = root.end
        self._flags(flags, start.options, None)
        _add(head, "flags", flags, name)
        files, rest = start.configs()
        self._flags(root, rest, start)
        self._topology(head, start, root if start.launcher == "trl" else flags, command)
        unread = dict.fromkeys(one for word in rest if (one := self._list(word)))
        if unread:
            named = Sequence(name.start, flow=True)
            named.items = [Built(one, name.start, name.end) for one in unread]
            named.end = name.end
            _add(head, "unread", named, name)
        head.end = root.end
        launch = Launch(root, begun, command.end)
        under = [self.scalar(file) for file in files]
        launch.over = tuple(one.target if isinstance(one, Alias) else one for one in under)  # type: ignore[misc]
        if any(word.spelled.startswith(HYDRA) for word in rest):
            from cfglint.document.shell.hydra_flags import sought  # most programs are no Hydra application

            launch.over += sought(start)
        launch.job = container_job(command.outer) or container_job(words)
        return launch

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

    def _list(self, word: Word) -> str:
        """Return the name of an array that nothing in the script sets: more flags, no value of the last."""
        if len(word.pieces) != 1 or not word.pieces[0].unknown or word.start < 0:
            return ""
        found = _LIST.fullmatch(self.text[word.start : word.end])
        return found[1] if found and found[1] == word.pieces[0].unknown else ""

    def _flags(self, root: Mapping, words: list[Word], start: Start | None) -> None:
        """Set what flags and overrides say; a launcher's own (``start`` is None) have no dots."""
        dotted = start is not None
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
                free = start is not None and start.positional and start.positional not in root.entries
                if start is not None and free and not self._list(word):
                    _add(root, start.positional, self._doubted(word, self.scalar(word)), word)
                continue
            name, equals, _ = text.partition("=")
            key = start.key(name) if start is not None else name.lstrip("-").replace("-", "_")
            if not key or (any(piece.unknown for piece in word.pieces) and not equals):
                continue
            value: Node
            if equals:
                value = self.scalar(word.from_(len(name) + 1))
            else:
                values: list[Word] = []
                while at < len(words) and not (_is_flag(words[at], dotted=dotted) or self._list(words[at])):
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
    def _topology(self, head: Mapping, start: Start, flags: Mapping, command: Command) -> None:
        launcher, name = start.launcher, start.name

        def given(*names: str) -> Node | None:
            for one in names:
                entry = flags.entries.get(one)
                if entry is not None:
                    return entry.value
            return None

        nodes: Node | None = None
        total: Node | None = None
        per_node: Node | None = None
        if launcher == "axolotl":  # hands what stands behind `--` on
            launcher = (
                "accelerate" if "num_processes" in flags.entries else "torchrun" if flags.entries else ""
            )
        if launcher == "llamafactory-cli":  # torchrun, on all GPUs unless these say otherwise
            per_node = self._variable(start, command, "NPROC_PER_NODE")
            nodes = self._variable(start, command, "NNODES") or Built("1", name.start, name.end)
        elif launcher in ("torchrun", "tune"):
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
        elif launcher in ("accelerate", "trl"):
            total = given("num_processes")
            nodes = given("num_machines")
        if nodes is not None and whole(nodes) is None:
            nodes = Unread(_said(nodes), nodes.start, nodes.end, why=_why(nodes, "the number of nodes"))
        if per_node is not None and whole(per_node) is None and _said(per_node) in ("gpu", "auto"):
            per_node = None  # as many as the machine has
        if total is None and per_node is not None and nodes is not None:
            one, two = whole(per_node), whole(nodes)
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
        visible = self._variable(start, command, "CUDA_VISIBLE_DEVICES")
        if isinstance(visible, Unread):
            _add(head, "visible_gpus", visible, name)
        elif isinstance(visible, Scalar) and visible.text.strip():
            listed = str(len(visible.text.split(",")))
            _add(head, "visible_gpus", Built(listed, visible.start, visible.end), name)

    def _variable(self, start: Start, command: Command, name: str) -> Node | None:
        """Return what the program finds in its environment; None where the script does not set it."""
        word = start.environment.get(name)
        pieces = (
            word.pieces if word is not None else command.environment.get(name) or command.exported.get(name)
        )
        if pieces is None or isinstance(pieces, Array):
            return None
        found = self.scalar(Word(pieces, *_span(pieces, start.name)))
        return found.target if isinstance(found, Alias) else found


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


def whole(node: Node) -> int | None:
    """Return a node's whole number, None where it is none."""
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
