"""What a program trains, as documents: one for each trainer, or set of its arguments, that the program makes.

At the top are the keyword arguments of the trainer's own class (``SFTConfig``, ``TrainingArguments``, …);
what else decides is below the name of its class or function: ``LoraConfig``, ``BitsAndBytesConfig``,
``from_pretrained``, ``get_peft_model`` (unsloth's), ``prepare_model_for_kbit_training``. Below ``python`` are
the names of classes and libraries, so that frameworks know their own.
"""

from __future__ import annotations

import re
from functools import partial

from cfglint.budget import spend
from cfglint.document.candidates import may_submit, may_train
from cfglint.document.python.installs import newest
from cfglint.document.python.run import Program
from cfglint.document.python.source import PYTHON, read_python
from cfglint.document.python.values import Flag, Items, Literal, Object, Span, Symbol, Unknown
from cfglint.document.tree import (
    Alias,
    Composite,
    Document,
    Entry,
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    Several,
    Unresolved,
    walk,
)
from cfglint.record import Record, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cfglint.document.python.source import Code

LIBRARIES = ("transformers", "trl", "unsloth", "sentence_transformers")
_PREFIXES = [
    "SFT",
    "GRPO",
    "DPO",
    "ORPO",
    "CPO",
    "KTO",
    "RLOO",
    "Reward",
    "PPO",
    "GKD",
    "OnlineDPO",
    "NashMD",
    "XPO",
    "PRM",
    "BCO",
    "IterativeSFT",
    "AlignProp",
    "DDPO",
]
ARGUMENTS = frozenset(
    [f"{prefix}Config" for prefix in _PREFIXES]
    + [f"{prefix}TrainingArguments" for prefix in ("", "Seq2Seq", "SentenceTransformer", "Unsloth")]
)
TRAINERS = frozenset(
    f"{prefix}Trainer" for prefix in [*_PREFIXES, "", "Seq2Seq", "SentenceTransformer", "Unsloth"]
)
# Arguments that TRL's trainers themselves took, until their config classes did (v0.9 to v0.16).
_MOVED = [
    "max_seq_length",
    "packing",
    "dataset_text_field",
    "dataset_num_proc",
    "beta",
    "loss_type",
    "max_length",
    "max_prompt_length",
    "precompute_ref_log_probs",
    "reference_free",
    "sync_ref_model",
]
_DTYPES = ("bfloat16", "float16", "float32", "half", "float", "float64")
_SHORT_DTYPES = {"half": "float16", "float": "float32"}
_MODEL = (
    "from_pretrained",
    "LoraConfig",
    "BitsAndBytesConfig",
    "get_peft_model",
    "prepare_model_for_kbit_training",
)
_PATH = "pretrained_model_name_or_path"
_NESTED = 6
_CALLS = 20  # that make a model of another
_LONGEST = 1_000  # items of a list
_WRAPPERS = ("torch.compile", "copy.deepcopy")
_ADAPTS = {"add_adapter", "load_adapter", "set_adapter"}
_CASTS = {"half", "float", "bfloat16"}
# A loop that lifts what is trained to fp32: all weights, where no adapter was added before.
_LIFTS = re.compile(
    r"(?m)^( *)for (\w+) in [^\n]*\.parameters\(\)[^\n]*:\n\s+(?:if \2\.requires_grad:\s+)?"
    r"\2\.data = \2(?:\.data)?\.(?:to\(torch\.float32\)|float\(\))"
)
_PLAIN_INDENT = 4


class Site(Record):
    """Where a call's arguments are written: the span of the last one, and the call's own.

    ``several``: more than one config has what the call makes.
    """

    last: Span | None
    call: Span
    spaced: bool
    several: bool = False


class Reader(Record):
    """Makes the tree of one trainer; ``flag`` says what an argument of the program is worth."""

    program: Program
    flag: Callable[[Flag, Span], Node]
    unread: dict[Path, str] = field(factory=dict, init=False)
    sites: dict[Path, Site] = field(factory=dict, init=False)
    _scalars: dict[Span, Scalar] = field(factory=dict, init=False)

    # ── values to nodes ────────────────────────────────────────────────────────────────────────────────
    def node(self, value: object, span: Span, depth: int = 0) -> Node:
        """Return a value as a node; ``span`` is where it is asked for."""
        spend(2, PYTHON)
        if isinstance(value, Literal):
            return self._literal(value, span)
        if isinstance(value, Flag):
            return self.flag(value, span)
        if depth < _NESTED and isinstance(value, Items) and len(value.items) <= _LONGEST:
            items = [self.node(item, value.span, depth + 1) for item in value.items]
            return Sequence(value.span[0], flow=True, end=value.span[1], items=items)
        if depth < _NESTED and isinstance(value, Object) and value.kind == "dict" and not value.rest:
            return self.mapping(value, depth + 1)
        if isinstance(value, Symbol):
            module, _, name = value.name.rpartition(".")
            if module == "torch" and name in _DTYPES:
                return Composite(_SHORT_DTYPES.get(name, name), *span, '"')
        why = value.why if isinstance(value, Unknown) else ""
        own = getattr(value, "span", span)
        return Unresolved(
            self._text(own), *own, why=why or f"{self._text(own)} is not known before the program runs"
        )

    def _text(self, span: Span) -> str:
        text = " ".join(self.program.code.file[slice(*span)].split())
        return text if len(text) <= 40 else text[:39] + "…"

    def _literal(self, value: Literal, span: Span) -> Node:
        style = '"' if isinstance(value.value, str) else ""
        if is_sum(value):
            return self._scalar(value, str(value.value))
        if not value.whole:
            start, end = value.span if value.span != (0, 0) else span
            reads = tuple(self._scalar(read) for read in value.reads if read.whole)
            return Composite(str(value.value), start, end, style, reads=reads)
        if value.span in self._scalars:
            return Alias("", self._scalars[value.span], *value.span)
        return self._scalar(value)

    def _scalar(self, value: Literal, text: str = "") -> Scalar:
        found = self._scalars.get(value.span)
        if found is None:
            style = '"' if isinstance(value.value, str) else ""
            text = text or (str(value.value) if style else self.program.code.file[slice(*value.span)])
            found = self._scalars[value.span] = Scalar(text, *value.span, style)
        return found

    def mapping(self, value: Object, depth: int = 0) -> Mapping:
        """Return the arguments of a call, or the entries of a dictionary."""
        made = Mapping(value.span[0], flow=True, end=value.span[1])
        for name, (span, inner) in value.items.items():
            place = getattr(inner, "span", span)
            made.entries[name] = Entry(_key(name, span), self.node(inner, place, depth))
        return made

    # ── a trainer ──────────────────────────────────────────────────────────────────────────────────────
    def tree(self, arguments: Object | None, trainer: Object | None) -> Mapping:
        """Return the tree of a trainer with its arguments, either of which may not be known."""
        made = arguments or trainer
        assert made is not None
        root = Mapping(made.span[0], flow=True, end=made.span[1])
        if arguments is not None:
            root = self._of(arguments, ())
        python = Mapping(made.span[0], flow=True, end=made.span[1])
        for key, part in (("args", arguments), ("trainer", trainer)):
            self._say(
                python, key, part.name if part is not None and is_known(part) else "", (part or made).span
            )
        self._say(python, "library", made.kind.partition(".")[0], made.span)
        # unsloth changes what the others do as soon as it is imported; else whoever loads the model says it.
        self._say(python, "loader", "unsloth" if "unsloth" in self.program.imports else "", made.span)
        cells = self.program.code.file if self.program.code.places is not None else ""
        self._say(python, "newest", f" {' '.join(newest(cells))} ", made.span)
        self._say(python, "freezes", self.program.frozen, made.span)
        self._say(python, "gradient_checkpointing_enable", False, made.span)
        root.entries["python"] = Entry(_key("python", made.span), python)
        if trainer is not None:
            for name in _MOVED:
                if name in trainer.items and name not in root.entries:
                    span, value = trainer.items[name]
                    root.entries[name] = Entry(_key(name, span), self.node(value, span))
            if trainer.rest:
                self.unread.setdefault((), trainer.rest)
        self._model(root, python, trainer, arguments)
        self._say(python, "followed", "from_pretrained" in root.entries, made.span)  # the model
        return root

    def _say(self, holder: Mapping, key: str, value: object, span: Span) -> None:
        style = '"' if isinstance(value, str) else ""
        holder.entries[key] = Entry(_key(key, span), Composite(str(value), span[0], span[1], style))

    def _of(self, call: Object, path: Path) -> Mapping:
        """Return the arguments of a call, and note where they are written."""
        made = self.mapping(call)
        if call.rest:
            self.unread[path] = call.rest
        if call.cls is not None:  # its own defaults are the class's
            for name, (span, value) in call.cls.all_fields().items():
                if name not in made.entries:
                    made.entries[name] = Entry(_key(name, span), self.node(value, span))
        self.sites[path] = Site(call.last, call.span, call.spaced)
        return made

    def _put(self, root: Mapping, call: Object) -> None:
        if call.name not in root.entries:
            root.entries[call.name] = Entry(_key(call.name, call.span), self._of(call, (call.name,)))

    def _model(
        self, root: Mapping, python: Mapping, trainer: Object | None, arguments: Object | None
    ) -> None:
        """Follow the model from the trainer to where it is loaded."""
        value: object = None
        config: object = None
        if trainer is not None:
            value = trainer.get("model") or (trainer.positional[0] if trainer.positional else None)
            config = trainer.get("peft_config")
            self._quantized(root, trainer.get("quantization_config"))
        self._adapter(root, config)
        for _ in range(_CALLS):
            if not isinstance(value, Object):
                break
            self._note_calls(python, value)
            followed = self._step(root, python, value)
            if followed is None:
                value = None if value.name == "from_pretrained" else value
                break
            value = followed
        else:
            value = Unknown("too many functions are laid over each other")
        if value is None and "from_pretrained" in root.entries:
            return
        if isinstance(value, (Literal, Flag)):
            self._named(root, value, arguments)
        else:
            for name in _MODEL:
                self.unread.setdefault((name,), "the program's model")

    def _named(self, root: Mapping, value: Literal | Flag, arguments: Object | None) -> None:
        """Take a model that the trainer loads by its name, with ``model_init_kwargs``."""
        made = Mapping(value.span[0], flow=True, end=value.span[1])
        made.entries[_PATH] = Entry(_key(_PATH, value.span), self.node(value, value.span))
        given = arguments.get("model_init_kwargs") if arguments is not None else None
        if isinstance(given, Object) and given.kind == "dict" and not given.rest:
            made.entries |= self.mapping(given).entries
            self._quantized(root, given.get("quantization_config"))
        elif given is not None and not (isinstance(given, Literal) and given.value is None):
            self.unread["from_pretrained",] = "model_init_kwargs"
        root.entries["from_pretrained"] = Entry(_key("from_pretrained", value.span), made)

    def _step(self, root: Mapping, python: Mapping, value: Object) -> object:
        """Take one call in that makes a model of another; returns that, None where there is no other."""
        first = value.get("model") or (value.positional[0] if value.positional else None)
        if value.name == "from_pretrained":
            if "Peft" in value.kind:
                self.unread["LoraConfig",] = "the adapter's own config"
                return first
            self._loaded(root, value, first)
            if "unsloth" not in self.program.imports:
                self._say(python, "loader", value.kind.partition(".")[0], value.span)
            return None
        if value.name == "get_peft_model":
            if value.kind.startswith("unsloth."):
                self._put(root, value)
            else:
                second = value.positional[1] if len(value.positional) > 1 else None
                self._adapter(root, value.get("peft_config") or second or Unknown("its config is not known"))
            return first
        if value.name == "prepare_model_for_kbit_training":
            self._put(root, value)
            return first
        return first if value.kind in _WRAPPERS else None

    def _loaded(self, root: Mapping, value: Object, first: object) -> None:
        """Take in what a model is loaded with."""
        items = dict(value.items)
        if first is not None and "model" not in items:
            items[_PATH] = getattr(first, "span", value.span), first
        for name in ("model_name_or_path", "model_name", "model"):
            if name in items:
                items[_PATH] = items.pop(name)
        adapter = items.pop("peft_config", None)  # of TRL's models with a value head
        if adapter is not None:
            self._adapter(root, adapter[1])
        value = replace(value, items=items, positional=[])
        self._put(root, value)
        made = root.entries["from_pretrained"].value
        assert isinstance(made, Mapping)
        loader = value.kind.split(".")[-2:][0]
        self._say(made, "class", loader, value.span)
        self._lifted(made)
        self._quantized(root, value.get("quantization_config"))

    def _lifted(self, made: Mapping) -> None:
        """Note that the program lifts all weights to fp32 before it trains them."""
        text = self.program.code.file
        lift = _LIFTS.search(text)
        if lift is None or "get_peft_model(" in text[: lift.start()]:
            return
        if len(lift[1]) > _PLAIN_INDENT:
            self.unread["from_pretrained",] = "the model's precision"
            return
        made.entries.pop("torch_dtype", None)
        self._say(made, "dtype", "float32", lift.span())

    def _quantized(self, root: Mapping, config: object) -> None:
        """Take in how a model is quantized where it is loaded, by the program or by its trainer."""
        if isinstance(config, Object) and config.name == "BitsAndBytesConfig":
            self._put(root, config)
        elif config is not None and not (isinstance(config, Literal) and config.value is None):
            self.unread["BitsAndBytesConfig",] = "quantization_config"

    def _adapter(self, root: Mapping, config: object) -> None:
        """Take an adapter's config in."""
        if isinstance(config, Object) and config.name == "LoraConfig":
            self._put(root, config)
        elif config is not None and not (isinstance(config, Literal) and config.value is None):
            self.unread["LoraConfig",] = "peft_config"

    def _note_calls(self, python: Mapping, value: Object) -> None:
        if "gradient_checkpointing_enable" in value.calls:
            self._say(python, "gradient_checkpointing_enable", True, value.span)
        elif "gradient_checkpointing_enable?" in value.calls:
            held = python.entries["gradient_checkpointing_enable"]
            held.value = self.node(Unknown("some branches of the program enable it", value.span), value.span)
        calls = {name.rstrip("?") for name in value.calls}
        if calls & _ADAPTS:
            self.unread["LoraConfig",] = "an adapter of the model"
        if calls & _CASTS:
            self.unread["from_pretrained",] = "the model's precision"


def is_sum(value: Literal) -> bool:
    """Whether a number is computed of numbers that stand in its own place: ``4 * 4096``."""
    return (
        not value.whole
        and type(value.value) in (int, float)
        and len(value.reads) > 1
        and all(
            read.whole and value.span[0] <= read.span[0] and read.span[1] <= value.span[1]
            for read in value.reads
        )
    )


def _key(name: str, span: Span) -> Scalar:
    return Scalar(name, span[0], span[1], '"')


# ── which trainers ─────────────────────────────────────────────────────────────────────────────────────────
def trainers_of(program: Program, *, plain: bool = False) -> list[tuple[Object | None, Object | None]]:
    """Return the trainers of a program with their arguments, and arguments that no trainer here takes.

    Somebody's own trainer does with TRL's arguments what it likes, but what transformers' mean is known,
    and a ``plain`` one, made of transformers' own, takes those of TRL's that are transformers'.
    """
    made = list(program.calls.values())
    found: list[tuple[Object | None, Object | None]] = []
    taken: set[Span] = set()
    for call in made:
        if "Trainer" not in call.name:
            continue
        value = call.get("args") or next((p for p in call.positional[1:2]), None)
        arguments = value if isinstance(value, Object) and is_arguments(value) else None
        if arguments is not None:
            taken.add(arguments.span)
        known = call.name in TRAINERS and is_known(call)
        if known or (arguments is not None and (plain or arguments.name.endswith("TrainingArguments"))):
            found.append((arguments, call))
    at_start = program.at_start - taken
    return found + [(call, None) for call in made if is_arguments(call) and call.span in at_start]


def is_arguments(call: Object) -> bool:
    """Whether a call makes the arguments of a trainer."""
    return call.name in ARGUMENTS and is_known(call)


def is_known(call: Object) -> bool:
    """Whether a call is of something that the libraries have."""
    return call.kind.partition(".")[0] in LIBRARIES


def parse_program(text: str, *, notebook: bool) -> list[Document]:
    """Return a document for each trainer of a program or a notebook, and for each command that it submits."""
    submits: list[Document] = []
    if may_submit(text):
        from cfglint.document.python.launches import submitted  # few programs do

        submits = submitted(text, notebook=notebook)
    code = read_python(text, notebook=notebook) if may_train(text) else None
    if code is None:
        return submits
    program = Program(code)
    documents = _trained(program)
    if program.flags:
        for document in documents:
            document.flags = frozenset(program.flags)
            document.asked = partial(_asked, code, document)
    return [*documents, *submits]


def _trained(program: Program) -> list[Document]:
    """Return a document for each trainer of a program."""
    program.run()
    documents = []
    for arguments, trainer in trainers_of(program):
        if arguments is None or "parsed" in arguments.calls:
            continue  # its flags say it
        reader = Reader(program, _by_itself)
        root = reader.tree(arguments, trainer)
        document = Document(root.start, root.end, root)
        document.unread, document.sites = reader.unread, reader.sites
        documents.append(document)
    close(documents)
    return documents


def _asked(code: Code, like: Document, given: dict[str, object]) -> Document | None:
    """Return a trainer of a program that is started with these flags; None where it makes no such trainer."""
    span = like.start, like.end
    found = next(
        (each for each in _trained(Program(code, asked=given)) if (each.start, each.end) == span), None
    )
    if found is not None:
        found.file, found.format, found.index = like.file, like.format, like.index
    return found


def _by_itself(flag: Flag, span: Span) -> Node:
    """Return what a flag is worth where nothing says how the program is started."""
    return Unresolved(f"--{flag.name}", *span, why=f"the flag --{flag.name} of the program sets it")


def close(documents: Iterable[Document], *, several: bool = False) -> None:
    """Leave definitions that several trainers read to people: a fix of one would change the others.

    With ``several`` they may be edited for all of them.
    """
    readers: dict[Span, int] = {}
    roots = [document.root for document in documents]
    for root in roots:
        for span in {(n.start, n.end) for n in walk(root) if type(n) is Scalar}:
            readers[span] = readers.get(span, 0) + 1
    for root in roots:
        closed: dict[int, Scalar] = {}
        for holder in walk(root):
            if isinstance(holder, Mapping):
                for entry in holder.entries.values():
                    node = entry.value
                    if type(node) is Scalar and readers[node.start, node.end] > 1:
                        kind = Several if several else Composite
                        entry.value = closed[id(node)] = kind(node.text, node.start, node.end, node.style)
        for node in walk(root):
            if isinstance(node, Alias) and id(node.target) in closed:
                node.target = closed[id(node.target)]
