"""A launch script as documents: one for each training job that it starts.

What a command launches becomes a tree like a config file's: ``--train.batch_size 8`` and
``train.batch_size=8`` are the key ``train.batch_size``; what the launch itself says (what starts the program,
how many processes) is below ``launch``.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cfglint.document.job import Job, read_job, slurm_variables
from cfglint.document.shell.containers import container_job, detaches
from cfglint.document.shell.hydra import HYDRA, registered, sought
from cfglint.document.shell.processes import (
    COUNTS,
    PET,
    PIXELS,
    UNSTARTED,
    VISIBLE,
    Beside,
    Counts,
    factor,
    fixed,
    hidden,
    is_ranked,
    least_gpus,
    machines,
    on_no_gpu,
    product,
    tell_beside,
    text_at,
    visible_gpus,
    whole,
)
from cfglint.document.shell.programs import OPTIONS, Start, program_of
from cfglint.document.shell.run import Runner
from cfglint.document.shell.shared import part
from cfglint.document.shell.substituted import ending_of, is_placed, placed, spot_of, tail_of
from cfglint.document.shell.words import (
    ALL,
    Command,
    Piece,
    Pieces,
    Word,
    hidden_flags,
    prints_words,
)
from cfglint.document.shell.workers import tell_gpus
from cfglint.document.tree import (
    Alias,
    Composite,
    Document,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unresolved,
    child,
    target,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.run import Scripts

_OVERRIDE = re.compile(r"(?:\+\+|\+|~)?[A-Za-z_][\w./@-]*=")
_NUMBER = re.compile(r"-\.?[0-9]")
_PLAIN = re.compile(r"-?[0-9.]+(?:[eE]-?[0-9]+)?\Z|(?:[Tt]rue|[Ff]alse)\Z")
_CHOSEN = re.compile(r"(activation-checkpoint):[a-z-]+\Z")
MAX_DEPTH = 20
_SOMETIMES = "only some branches of the script set it"


def parse_script(text: str, scripts: Scripts | None = None) -> list[Document]:
    """Return a document for each command of a script that launches a job.

    ``scripts`` gives the text of another script by its name, as the script says it.
    """
    job = read_job(text)
    told = slurm_variables(text, job) if job is not None else {}
    runner = Runner({name: (Piece(*value),) for name, value in told.items()}, scripts)
    runner.script(text)
    documents = launched(text, runner, job)
    if runner.broken:
        from cfglint.document.shell.skipped import never_run, unparsed  # most scripts parse

        documents = [*never_run(text, documents), *unparsed(text, runner)]
    return documents


def numbers(counts: dict[str, int | None]) -> dict[str, Pieces]:
    """Return variables with the numbers that are counts."""
    return {name: (Piece(str(number), -1, -1),) for name, number in counts.items() if number is not None}


def launched(text: str, runner: Runner, job: Job | None, *, listed: bool = False) -> list[Document]:
    """Return the documents of the commands that were met in a script or a manifest, the whole of ``text``."""
    documents = []
    commands = []
    heads = []
    for number, command in enumerate(runner.commands):
        start = program_of(command.words)
        if start is None or start.only_tells():
            continue
        reader = _Reader(text, command, start)
        if on_no_gpu(reader.variable, command):
            continue
        root = reader.root
        document = Document(root.start, max(command.end, root.start), root)
        document.format, document.listed, document.over = "shell", listed, reader.over
        document.words, document.outer, document.repeated = command.words, command.outer, command.repeated
        document.behind = runner.commands, number + 1
        where = command.exported.get("PWD")
        document.folder = placed(where) or "" if isinstance(where, tuple) else ""
        document.elsewhere = isinstance(where, tuple) and not is_placed(where)
        document.job = asked = _own(container_job(command.outer) or container_job(command.words), job)
        if asked is not None:
            _add_job(root, asked, each=asked.everywhere or _is_spread(start))
        documents.append(document)
        running = command.beside or detaches([*command.outer, *command.words])
        heads.append((number, reader.head))
        commands.append(Beside(reader.head, reader.visible, running, command.repeated))
    part(documents)
    tell_beside(commands)
    tell_gpus(heads, runner.commands)
    return documents


def _own(own: Job | None, job: Job | None) -> Job | None:
    """Return what a command asks for itself, of the GPUs that the job around it is on."""
    if own is not None and job is not None and not own.kind:
        own.kind, own.others, own.memory_mib = job.kind, job.others, job.memory_mib
        own.memory_gb = job.memory_gb
    return own or job


def _is_spread(start: Start) -> bool:
    """Whether srun or mpirun starts a launcher in several nodes, or may."""
    name, number = start.spread()
    return bool(name) and (number is None or number.text != "1")


def _add_job(root: Mapping, job: Job, *, each: bool) -> None:
    """Say what a job asks for, of one node where ``each`` starts the launcher and it sees no other."""
    head = root.entries["launch"].value
    if not isinstance(head, Mapping) or not job.figures:
        return
    figures = dict(job.figures)
    nodes = head.entries.get("nodes")
    alone = nodes is not None and whole(nodes.value) == 1
    if each and (job.count("nodes") or 1) > 1 and alone and "gpus_per_node" in figures:
        figures["gpus"] = figures["gpus_per_node"]
    entries = {
        name: Entry(Scalar(name, start, end, '"'), Composite(str(number), start, end))
        for name, (number, start, end) in figures.items()
    }
    first = next(iter(entries.values())).key
    asked = Mapping(first.start, flow=True, end=first.end, entries=entries)
    head.entries["job"] = Entry(Scalar("job", first.start, first.end, '"'), asked)


class _Reader:
    """Reads one command; a definition that it reads twice is an alias the second time."""

    def __init__(self, text: str, command: Command, start: Start) -> None:
        self.text = text
        self._scalars: dict[tuple[object, ...], Scalar] = {}
        self._more: list[str] = []  # variables behind a value that may hold further flags
        self._command = command
        self._start = start
        name = start.name
        places = [(word.start, word.end) for word in command.words if word.start >= 0]
        begun = min((start for start, _ in places), default=0)
        end = max((end for _, end in places), default=begun)
        self.root, head, flags = (Mapping(begun, flow=True, end=end) for _ in range(3))
        self.head = head
        _add(self.root, "launch", head, name)
        _add(head, "launcher", self._computed(start.launcher), name)
        program = self._program(name)
        _add(head, "program", program, name)
        last = text_at(program).rpartition("." if start.module else "/")[2]
        _add(head, "name", self._computed(last), name)
        behind = start.submitted()
        if behind:
            _add(head, "submits", self._computed(behind), name)
        _add(head, "module", self._computed("true" if start.module else "false"), name)
        if start.suite:
            _add(head, "suite", self._computed(start.suite), name)
        path = self.variable("PYTHONPATH") if start.module else None
        if isinstance(path, Scalar):
            _add(head, "pythonpath", self._computed(path.text), name)
        self._flags(flags, start.options, dotted=False)
        _add(head, "flags", flags, name)
        files, rest = start.configs()
        self._flags(self.root, rest, dotted=True)
        self._topology(head, self.root if start.launcher == "trl" else flags)
        lists = [self._list(word) or self._made(before, word) for before, word in pairwise([name, *rest])]
        unread = dict.fromkeys(each for each in (*lists, *self._more) if each)
        if unread:
            named: list[Node] = [self._computed(array) for array in unread]
            _add(head, "unread", Sequence(name.start, flow=True, end=name.end, items=named), name)
        self.over: tuple[Scalar, ...] = tuple(target(self.scalar(file)) for file in files)  # type: ignore[misc]
        if files:
            _add(head, "config", Alias("config", self.over[0], files[0].start, files[0].end), name)
        if any(word.spelled.startswith(HYDRA) for word in rest):  # most programs are not Hydra applications
            self.over += sought(start)
        self.over += registered(start)

    # ── words to nodes ─────────────────────────────────────────────────────────────────────────────────
    def _computed(self, text: str) -> Composite:
        return Composite(text, self._start.name.start, self._start.name.end)

    def scalar(self, word: Word) -> Node:
        text = word.text
        if text is None:
            below = placed(word.pieces)
            if below is not None:
                return Composite(below, word.start, word.end, ending=ending_of(word.pieces))
            return self._unread(word, _why(next(p for p in word.pieces if p.unknown or p.maybe)))
        if "${" in text:  # in single quotes: the program's own interpolation
            return self._unread(word, "the program itself replaces ${…}")
        whole = [piece for piece in word.pieces if piece.text]
        joined = all(first.end == second.start for first, second in pairwise(whole))
        counts = len(whole) == 1 and whole[0].counts  # of a list in the script: it changes with that
        if not counts and not (whole and joined and all(piece.verbatim for piece in whole)):
            return self._composed(word, text, whole)
        key = whole[0].start, whole[-1].end
        if key in self._scalars:
            return Alias(self.text[word.start : word.end], self._scalars[key], word.start, word.end)
        scalar = self._scalars[key] = Composite(text, *key, counts=True) if counts else Scalar(text, *key)
        return scalar

    def _composed(self, word: Word, text: str, whole: list[Piece]) -> Node:
        """Return what is put together, or what a script says that this one runs: that once."""
        there = whole[0].there if len(whole) == 1 else None
        if there is not None and there in self._scalars:
            return Alias(text, self._scalars[there], word.start, word.end)
        reads = self._reads(word.pieces)
        spot = spot_of(self.text[word.start : word.end], text, word.start) or ending_of(whole)
        at, end = whole[0].product if len(whole) == 1 else (-1, -1)
        product = self.text.startswith("$((", at) and len(reads) == len(whole[0].reads) if at >= 0 else False
        spot = (at, end) if product else spot
        node = Composite(text, word.start, word.end, reads=reads, ending=spot, there=there, product=product)
        return node if there is None else self._scalars.setdefault(there, node)

    def _unread(self, word: Word, why: str) -> Unresolved:
        spelled = self.text[word.start : word.end] if word.start >= 0 else word.spelled
        return Unresolved(spelled, word.start, word.end, why=why, tail=tail_of(word.pieces) or "")

    def _program(self, name: Word) -> Node:
        """Return the program's path; of one in a folder that is not known, what is known of it."""
        node = self.scalar(name)
        tail = node.tail.lstrip("/") if isinstance(node, Unresolved) else ""
        if not tail and isinstance(node, Unresolved):
            return Composite("\u2026", name.start, name.end)
        return Composite(f"\u2026/{tail}", name.start, name.end) if tail else node

    def _reads(self, pieces: Pieces) -> tuple[Scalar, ...]:
        scalars: list[Scalar] = []
        for piece in pieces:
            if piece.verbatim and piece.text:
                key = piece.start, piece.end
                scalars.append(self._scalars.setdefault(key, Scalar(piece.text, *key)))
            scalars.extend(self._reads(piece.reads))
        return tuple(scalars)

    def _list(self, word: Word) -> str:
        return hidden_flags(word, self.text)

    def _made(self, before: Word, word: Word) -> str:
        """Return the variable that a program filled, where it is no flag's value: flags or overrides."""
        piece = word.pieces[0] if len(word.pieces) == 1 else None
        if piece is None or not prints_words(piece):
            return ""
        if before.spelled.startswith("-") or word.start < 0:
            return ""
        return self.text[word.start : word.end].strip("${}")

    def _is_more(self, value: Word, word: Word) -> bool:
        """Whether an unknown variable after a value is rather further flags than a second value.

        Nothing is read of one that only the environment may set; others may say anything.
        """
        name = word.pieces[0].unknown if len(word.pieces) == 1 else ""
        if not name.isidentifier() or not value.text or self.text[max(word.start, 0)] in "\"'":
            return False
        more = _PLAIN.match(value.text) is not None or OPTIONS.search(name) is not None
        if more and name in self._command.exported:
            self._more.append(name)
        return more

    def _flags(self, root: Mapping, words: list[Word], *, dotted: bool) -> None:
        """Set what flags and overrides say; a launcher's own are not ``dotted``."""
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            text = word.spelled
            if not text.startswith("-") or _NUMBER.match(text) or text in ("-", "--"):
                if dotted:
                    self._argument(root, word)
                continue
            name, equals, _ = text.partition("=")
            key = self._start.key(name) if dotted else self._start.own(name)
            if not key or (any(piece.unknown for piece in word.pieces) and not equals):
                continue
            if equals:
                value = self.scalar(word.from_(len(name) + 1))
            else:
                end = at
                while end < len(words) and not (
                    _is_flag(words[end], dotted=dotted) or self._list(words[end])
                ):
                    if end > at and self._is_more(words[end - 1], words[end]):
                        break
                    end += 1
                value = self._value(words[at:end], words[max(at - 2, 0) : at], word)
                at = end
            self._put(root, _names(key) if dotted else [key], value, word)

    def _argument(self, root: Mapping, word: Word) -> None:
        """Set what an override says, or the first word without a flag where a program takes one."""
        text, positional = word.spelled, self._start.positional
        override = _OVERRIDE.match(text) if not text.startswith("-") else None
        chosen = _CHOSEN.match(text) if self._start.module else None
        if chosen is not None:  # tyro's subcommand for a field that is one of several classes
            names = [chosen[1].replace("-", "_"), "subcommand"]
            self._put(self.root, names, self.scalar(word.from_(chosen.end(1) + 1)), word)
            return
        if override is not None and text.startswith("~"):
            return
        if override is not None:
            names = _names(override.group()[:-1].lstrip("+"))
            self._put(root, names, self.scalar(word.from_(override.end())), word)
        elif positional and positional not in root.entries and not self._list(word):
            self._put(root, [positional], self.scalar(word), word)

    def _value(self, values: list[Word], flag: list[Word], word: Word) -> Node:
        """Return what follows a flag; ``flag`` is its word, after the one before."""
        if not values:
            return Composite("true", word.start, word.end, cut=self._cut(flag))
        if len(values) == 1:
            return self.scalar(values[0])
        several = Sequence(values[0].start, flow=True, items=[self.scalar(value) for value in values])
        several.end = values[-1].end
        return several

    def _cut(self, words: list[Word]) -> int:
        """Return where the blanks before a flag begin, if they can go with it."""
        if len(words) < 2:
            return -1
        before, own = words
        between = self.text[before.end : own.start] if 0 <= before.end <= own.start else "?"
        return before.end if between and not between.strip(" \t\r\n\\") else -1

    def _put(self, root: Mapping, names: list[str], value: Node, word: Word) -> None:
        """Set ``a.b.c``, making the mappings on the way."""
        if not all(names) or len(names) > MAX_DEPTH:
            return
        holder = root
        for name in names[:-1]:
            entry = holder.entries.get(name)
            if entry is None or not isinstance(entry.value, Mapping):
                fresh = Mapping(word.start, flow=True, end=word.end)
                _add(holder, name, fresh, word)
                holder = fresh
            else:
                holder = entry.value
        old = holder.entries.get(names[-1])
        if old is None or not isinstance(old.value, Mapping):
            _add(holder, names[-1], self._unread(word, _SOMETIMES) if word.maybe else value, word)

    # ── how many processes ─────────────────────────────────────────────────────────────────────────────
    def _topology(self, head: Mapping, flags: Mapping) -> None:
        launcher, name = self._start.launcher, self._start.name
        if launcher == "axolotl":  # hands what follows `--` on
            launcher = (
                "accelerate" if "num_processes" in flags.entries else "torchrun" if flags.entries else ""
            )
        if launcher == "xtuner" and text_at(self.root, "launcher") == "slurm":
            launcher = "python"  # once for each task of srun, and no torchrun (xtuner/entry_point.py: cli)
        if launcher == "python":
            self._spread(head)
        counts = COUNTS.get(launcher, Counts())
        sources: dict[str, Node | None] = {
            number: self.variable(source)
            if counts.environment
            else child(flags, source) or (self.variable(PET + source.upper()) if counts.pet else None)
            for number in ("per_node", "nodes", "total")
            if (source := getattr(counts, number))
        }
        more = self._start.hidden if sources.get("per_node") is None else None
        one = self._computed("1") if more is None else self._unread(more, _why(more.pieces[0]))
        sources |= {number: one for number in counts.single if sources[number] is None}
        sources |= machines(launcher, flags, sources, one)
        per_node, nodes, total = sources.get("per_node"), sources.get("nodes"), sources.get("total")
        if nodes is not None and whole(nodes) is None:
            nodes = fixed(nodes) or hidden(nodes, "the number of nodes")
        if per_node is not None and whole(per_node) is None and text_at(per_node) in ("gpu", "auto"):
            per_node = None  # as many as the machine has
        if total is None and per_node is not None and nodes is not None:
            total = product(per_node, nodes)
        for key, value in (("processes_per_node", per_node), ("nodes", nodes), ("processes", total)):
            if value is not None:
                self._tell(head, key, value)
        self._tell_visible(head, name)
        pixels = self.variable(PIXELS)
        if isinstance(pixels, Scalar):
            _add(head, "max_pixels", Alias("max_pixels", pixels, pixels.start, pixels.end), name)

    def _tell_visible(self, head: Mapping, name: Word) -> None:
        """Say which GPUs CUDA_VISIBLE_DEVICES leaves to the command."""
        visible = self.variable(VISIBLE)
        self.visible = "" if isinstance(visible, Unresolved) else text_at(visible)
        if isinstance(visible, Unresolved):
            one = Composite("1", visible.start, visible.end) if self._command.alone else visible
            _add(head, "visible_gpus", one, name)
        elif isinstance(visible, Scalar) and visible.text.strip():
            _add(head, "visible_gpus", visible_gpus(visible), name)
            if (least := least_gpus(visible)) is not None:
                _add(head, "visible_least", least, name)

    def _spread(self, head: Mapping) -> None:
        """Say how often srun or mpirun starts the program, one for each GPU."""
        name, number = self._start.spread()
        if not name:
            if is_ranked(*(self.variable(key) for key in ("WORLD_SIZE", "LOCAL_RANK", "RANK"))):
                self._tell(head, "processes", self._unread(self._start.name, UNSTARTED))
            return
        nodes, each = (None if word is None else self.scalar(word) for word in self._start.machines())
        node = self.scalar(number) if number is not None else None
        if node is None and nodes is not None and each is not None:
            node = product(each, nodes)
        if node is not None and whole(node) == 1:
            return  # such a program starts its own processes, by Ray, as threads, or uses one GPU
        if node is None or whole(node) is None:
            node = self._unread(self._start.name, f"how many tasks {name} starts is not known")
        self._tell(head, "processes", node)
        number, several = self._start.per_machine()
        if nodes is None and number is not None:
            nodes = factor(node, self.scalar(number))
        if nodes is not None:
            self._tell(
                head, "nodes", nodes if whole(nodes) is not None else hidden(nodes, "the number of nodes")
            )
        if number is not None or several:
            here = self.scalar(number) if number is not None else None
            if here is None or whole(here) is None:
                here = self._unread(self._start.name, f"how many machines {name} uses is not known")
            self._tell(head, "processes_per_node", here)

    def _tell(self, head: Mapping, key: str, node: Node) -> None:
        """Set what is told of a launch."""
        _add(head, key, Alias(key, target(node), node.start, node.end), self._start.name)

    def variable(self, name: str) -> Node | None:
        """Return what the program finds in its environment; None where the script does not set it."""
        word, command = self._start.environment.get(name), self._command
        around = command.environment.get(name) or command.exported.get(name)
        pieces = around if word is None else word.pieces
        if not isinstance(pieces, tuple):
            return None
        return target(self.scalar(Word(pieces, *_span(pieces, self._start.name))))


def _add(mapping: Mapping, key: str, value: Node, word: Word) -> None:
    mapping.entries[key] = Entry(Scalar(key, word.start, word.end, '"'), value)


def _names(key: str) -> list[str]:
    return key.replace("/", ".").split(".") if not key.startswith(".") else [key]


def _span(pieces: Pieces, name: Word) -> tuple[int, int]:
    placed = [piece for piece in pieces if piece.start >= 0]
    if not placed or placed[-1].end < placed[0].start:
        return name.start, name.end
    return placed[0].start, placed[-1].end


def _why(piece: Piece) -> str:
    if not piece.unknown:
        return _SOMETIMES
    if (name := piece.unknown.removesuffix(ALL)).isidentifier():
        return f"{name} is set outside of the script, or in some of its branches"
    return f"{piece.unknown} is not known before the script runs"


def _is_flag(word: Word, *, dotted: bool) -> bool:
    text = word.spelled
    if any(piece.unknown for piece in word.pieces[:1]):
        return False
    if text.startswith("-") and not _NUMBER.match(text) and text != "-":
        return True
    return dotted and (_OVERRIDE.match(text) or _CHOSEN.match(text)) is not None
