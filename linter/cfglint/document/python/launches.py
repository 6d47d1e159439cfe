"""Commands that a program starts on a platform's GPUs, as documents of a script's kind.

Modal: what ``subprocess`` runs in a function with ``gpu=``. SageMaker: the script of an estimator with its
``hyperparameters``, on ``instance_count`` machines. What the program computes is unknown; nothing is edited.
"""

from __future__ import annotations

import ast

from cfglint.budget import spend
from cfglint.document.job import Job
from cfglint.document.python.run import Program
from cfglint.document.python.source import PYTHON, read_python
from cfglint.document.python.values import SOMETIMES, Items, Literal, Object, Unknown
from cfglint.document.shell.forms import Asked, counted, take
from cfglint.document.shell.launch import launched
from cfglint.document.shell.run import Runner
from cfglint.document.shell.shared import part
from cfglint.document.shell.words import HERE, LITERAL, QUOTED, Array, Command, Piece, Word, unknown
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.python.source import Code
    from cfglint.document.python.values import Span
    from cfglint.document.shell.words import Pieces
    from cfglint.document.tree import Document

_SUBPROCESS = ("run", "call", "check_call", "check_output", "Popen")
_STARTS = frozenset((*(f"subprocess.{name}" for name in _SUBPROCESS), "os.system", "os.execvp"))
_ESTIMATORS = ("sagemaker.pytorch.", "sagemaker.huggingface.", "sagemaker.estimator.")
# Of these distributions, SageMaker runs torchrun on each machine, with one process for each GPU
# (sagemaker-training-toolkit: src/sagemaker_training/torch_distributed.py).
_TORCHRUN = "torch_distributed"
_MOST = 1_000  # words of a command, and commands of a program


class Text(Unknown):
    """A text of which some ``parts`` are known."""

    parts: list[object] = field(factory=list)


class Perhaps(Unknown):
    """A word that is there on some ways through the program only."""

    word: object = None


class Started(Record):
    """A call that starts something, and the functions of the program that it is in."""

    call: Object
    functions: tuple[int, ...]


class Submitter(Program):
    """A program of which the commands that it starts are noted, put together from texts and lists."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.started: list[Started] = []
        self._made: dict[int, tuple[Items, tuple[int, ...]]] = {}  # lists, and where they were made

    def made(self, made: Object, node: ast.Call) -> object:
        """Note what is started."""
        if (made.kind in _STARTS or made.kind.startswith(_ESTIMATORS)) and len(self.started) < _MOST:
            self.started.append(Started(made, tuple(self._active)))
        first = made.positional[0] if len(made.positional) == 1 else None
        if made.kind == "shlex.split":
            return self._split(first, node)
        if made.kind == "shlex.join" and isinstance(first, Items):
            return self._joined(Literal(" ", (0, 0)), first, node)
        return super().made(made, node)

    def of_value(self, owner: object, given: Object, node: ast.Call) -> object:
        """Return what a method of a text or a list gives; what it does to a list is noted in it."""
        first = given.positional[0] if len(given.positional) == 1 and not given.items else None
        if isinstance(owner, Items):
            self._grow(owner, given.kind, first)
        elif given.kind == "join" and isinstance(owner, Literal) and isinstance(first, Items):
            return self._joined(owner, first, node)
        elif given.kind in ("split", "strip", "format") and not given.positional and not given.items:
            return self._split(owner, node) if given.kind == "split" else owner
        return super().of_value(owner, given, node)

    def _grow(self, owner: Items, method: str, first: object) -> None:
        _, branch = self._made.get(id(owner), (owner, None))
        new = [first] if method == "append" else first.items if isinstance(first, Items) else [None]
        spend(len(new), PYTHON)
        if method in ("copy", "index", "count"):
            return
        if method not in ("append", "extend") or None in new or len(owner.items) + len(new) > _MOST:
            owner.items[_MOST:] = [Unknown(f"{method} changes the list")]
        elif branch == self.branch:
            owner.items += new
        else:
            owner.items += [Perhaps(SOMETIMES, (0, 0), word) for word in new]

    def _augassign(self, node: ast.AugAssign) -> None:
        owner = (
            self.value(ast.Name(node.target.id, ast.Load())) if isinstance(node.target, ast.Name) else None
        )
        if isinstance(owner, Items) and isinstance(node.op, ast.Add):
            self._grow(owner, "extend", self.value(node.value))
        else:
            super()._augassign(node)

    def combined(self, first: object, second: object, node: ast.BinOp) -> object:
        """Return what an operator makes of two values: longer lists and texts, too."""
        value = super().combined(first, second, node)
        if not isinstance(value, Unknown) or not isinstance(node.op, ast.Add):
            return value
        if isinstance(first, Items) and isinstance(second, Items):
            spend(len(first.items) + len(second.items), PYTHON)
            return self._listed([*first.items, *second.items], node)
        texts = [
            isinstance(each, Text) or (isinstance(each, Literal) and isinstance(each.value, str))
            for each in (first, second)
        ]
        return self._text([first, second], node) if any(texts) else value

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> object:
        items: list[object] = []
        for item in node.elts:
            value = self.value(item.value if isinstance(item, ast.Starred) else item)
            spread = isinstance(item, ast.Starred)
            items += (
                value.items if spread and isinstance(value, Items) else [Unknown("…")] if spread else [value]
            )
            spend(len(items) // 16, PYTHON)
        return self._listed(items, node)

    def _listed(self, items: list[object], node: ast.AST) -> object:
        if len(items) > _MOST:
            return self.unknown("a longer list than anybody writes", node)
        made = Items(items, self.code.span(node))
        self._made[id(made)] = made, self.branch
        return made

    _tuple = _set = _list

    def _joinedstr(self, node: ast.JoinedStr) -> object:
        parts = [
            self.value(part.value)
            if isinstance(part, ast.FormattedValue) and part.format_spec is None and part.conversion < 0
            else self.unknown("a format", part)
            if isinstance(part, ast.FormattedValue)
            else self.value(part)
            for part in node.values
        ]
        return self._text(parts, node)

    def _joined(self, between: Literal, items: Items, node: ast.AST) -> object:
        parts = [part for item in items.items for part in (between, item)][1:]
        return self._text(parts, node)

    def _text(self, parts: list[object], node: ast.AST) -> object:
        flat = [each for part in parts for each in (part.parts if isinstance(part, Text) else [part])]
        known = [part for part in flat if isinstance(part, Literal)]
        spend(len(flat), PYTHON)
        if len(known) == len(flat):
            return self._bounded("".join(str(part.value) for part in known), node, tuple(known))
        why = "a part of it is not known before the program runs"
        return Text(why, self.code.span(node), flat) if len(flat) <= _MOST else self.unknown(why, node)

    def _split(self, value: object, node: ast.AST) -> object:
        """Return the words of a text; of one with unknown parts, the text, which a shell splits as well."""
        if isinstance(value, Literal) and isinstance(value.value, str):
            words = value.value.split()[:_MOST]
            return Items([Literal(word, value.span) for word in words], self.code.span(node))
        return value if isinstance(value, Text) else self._computed(node, value)


def submitted(text: str, *, notebook: bool) -> list[Document]:
    """Return a document for each command that a program starts on GPUs that it names."""
    code = read_python(text, notebook=notebook)
    if code is None:
        return []
    program = Submitter(code)
    program.run()
    jobs = dict(_modal(program))
    documents: list[Document] = []
    seen: set[tuple[Span, str]] = set()
    for started in program.started:
        call = started.call
        if call.kind.startswith(_ESTIMATORS):
            runner, job = _estimated(call)
        else:
            job = next((jobs[name] for name in started.functions if name in jobs), None)
            runner = _commanded(call)
        spelled = "\n".join(" ".join(word.spelled for word in command.words) for command in runner.commands)
        if job is None or (call.span, spelled) in seen:
            continue
        seen.add((call.span, spelled))
        documents += launched(text, runner, job, listed=True)
    part(documents)
    return documents


# ── Modal ──────────────────────────────────────────────────────────────────────────────────────────────────
def _modal(program: Submitter) -> Iterator[tuple[int, Job]]:
    """Yield the functions that run on GPUs, by the identity of their nodes, with what they ask for.

    https://modal.com/docs/guide/gpu: "H100:8", a list of which any will do, one GPU where no number is said.
    """
    for node in program.code.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        job, nodes = Job("gpu="), None
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = call.func.attr if call is not None and isinstance(call.func, ast.Attribute) else ""
            if call is None or name not in ("function", "cls", "clustered"):
                continue
            given = {keyword.arg: program.value(keyword.value) for keyword in call.keywords}
            if name == "clustered":
                first = program.value(call.args[0]) if call.args else given.get("size")
                nodes, job.spread = first, True
            elif "gpu" in given:
                take(job, [asked for value in _several(given["gpu"]) for asked in _gpu(value)])
        if isinstance(nodes, Literal) and isinstance(nodes.value, int):
            job.say("nodes", nodes.value, *nodes.span)
            job.spread = False
        if job.kind or job.figures:
            job.add_up()
            yield from ((id(inner), job) for inner in _functions(node))


def _functions(node: ast.stmt) -> list[ast.stmt]:
    inner = node.body if isinstance(node, ast.ClassDef) else [node]
    return [each for each in inner if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _several(value: object) -> list[object]:
    return value.items if isinstance(value, Items) else [value]


def _gpu(value: object) -> list[Asked]:
    if isinstance(value, Literal) and isinstance(value.value, str):
        return [asked for asked in counted(value.value, value.span) if asked.kind.lower() != "any"]
    if isinstance(value, Object) and value.kind.startswith("modal.gpu."):  # before 0.73
        count, size = value.get("count"), value.get("size")
        many = 1 if count is None else count.value if isinstance(count, Literal) else None
        memory = f"-{size.value}" if isinstance(size, Literal) else ""
        if value.name != "Any":
            return [Asked(f"{value.name}{memory}", many if isinstance(many, int) else None, value.span)]
    return []


def _commanded(call: Object) -> Runner:
    """Go through what a call of ``subprocess`` runs."""
    given = call.positional[0] if call.positional else call.get("args")
    runner = Runner()
    if isinstance(given, Items):
        runner.argv([_word(item, given.span) for item in given.items], {})
    elif isinstance(given, (Literal, Text)):
        runner.pieces(_pieces(given, LITERAL))
    return runner


# ── SageMaker ──────────────────────────────────────────────────────────────────────────────────────────────
def _estimated(call: Object) -> tuple[Runner, Job | None]:
    """Return the command of an estimator: its script with a flag for each hyperparameter."""
    runner = Runner()
    script, machine, count = (call.get(name) for name in ("entry_point", "instance_type", "instance_count"))
    flags = call.get("hyperparameters") or Object("dict", call.span)
    told = isinstance(flags, Object) and flags.kind == "dict" and not (flags.rest or call.rest)
    if not isinstance(script, Literal) or not isinstance(machine, Literal) or not told:
        return runner, None
    job = Job("instance_type=", kind=str(machine.value), spread=True)
    if isinstance(count, Literal) and isinstance(count.value, int):
        job.say("nodes", count.value, *count.span)
        job.spread = False
    words = [*_launcher(call.get("distribution"), count, script), _word(script, script.span)]
    assert isinstance(flags, Object)
    for name, (span, value) in flags.items.items():
        words += [_known(f"--{name}", span), _word(value, span)]
    folder = call.get("source_dir")
    inside = str(folder.value).removeprefix("./") if isinstance(folder, Literal) else ""
    exported: dict[str, Pieces | Array] = {}
    if inside:
        exported["PWD"] = unknown(HERE), Piece(f"/{inside}", -1, -1)
    runner.commands.append(Command(words, {}, exported))
    return runner, job


def _launcher(distribution: object, count: object, script: Literal) -> list[Word]:
    """Return what starts the script; a way that is not known starts an unknown number of processes."""
    if distribution is None:
        return [_known("python", script.span)]
    enabled = isinstance(distribution, Object) and _TORCHRUN in distribution.items
    many = "gpu" if enabled else None
    return [
        _known("torchrun", script.span),
        _known("--nnodes", script.span),
        _word(count, script.span),
        _known("--nproc_per_node", script.span),
        _known(many, script.span) if many else _word(distribution, script.span),
    ]


# ── values to words ────────────────────────────────────────────────────────────────────────────────────────
def _known(text: str, span: Span) -> Word:
    return Word((Piece(text, *span, QUOTED, loose=True),), *span)


def _word(value: object, span: Span) -> Word:
    own = getattr(value, "span", span)
    return Word(_pieces(value, QUOTED), *(own if own != (0, 0) else span))


def _pieces(value: object, mode: str) -> Pieces:
    """Return a value as the text that a command gets; nothing of it is edited."""
    if isinstance(value, Literal):
        return (Piece(str(value.value), *value.span, mode, loose=True),)
    if isinstance(value, Perhaps):
        return tuple(piece.doubtful() for piece in _pieces(value.word, mode))
    if isinstance(value, Text):
        return tuple(piece for part in value.parts for piece in _pieces(part, mode))
    return (unknown(value.why if isinstance(value, Unknown) else "a value that the program computes"),)
