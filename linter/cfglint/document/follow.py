"""The program that a command starts, where its file is here: what it reads, and what its flags are worth.

A ``@hydra.main`` says which config lies beneath the command's overrides. What the program makes of its flags
(``TrainingArguments(per_device_train_batch_size=args.batch)``) is laid over the command, and the defaults of
its flags beneath. Where two files could be meant, or two trainers, nothing is joined.
"""

from __future__ import annotations

import os
import re

from cfglint.document.abbreviated import spell_out
from cfglint.document.layers import Source, read_override
from cfglint.document.python import learns
from cfglint.document.python.adapts import adapters_of, takes_peft_config
from cfglint.document.python.documents import Reader, is_known, trainers_of
from cfglint.document.python.groups import groups_of
from cfglint.document.python.hybrid import hybrid_of
from cfglint.document.python.loaders import sizes_of
from cfglint.document.python.megatron import clamps_sizes, older_megatron, recomputes_nothing
from cfglint.document.python.modules import Linked, Modules
from cfglint.document.python.optimizers import makes_optimizer
from cfglint.document.python.ppo import batch_of_ppo
from cfglint.document.python.refuses import refused
from cfglint.document.python.samplers import draws
from cfglint.document.python.stores import stored_keys, unsettled
from cfglint.document.python.totals import total_of
from cfglint.document.python.trains import config_of, trains_one, trains_plainly, trains_with
from cfglint.document.python.values import Flag, Items, Literal, Span
from cfglint.document.scalars import PYYAML, resolve
from cfglint.document.shell.hydra import hydra_beside
from cfglint.document.shell.processes import text_at
from cfglint.document.shell.programs import program_of
from cfglint.document.shell.substituted import ends_of
from cfglint.document.started import Started
from cfglint.document.tree import (
    Alias,
    Composite,
    Document,
    Entry,
    File,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unresolved,
    child,
    target,
)
from cfglint.document.unsaid import lay_defaults, note_sizes
from cfglint.files import is_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Listed
    from typing import Any

    from cfglint.document.layers import Layers
    from cfglint.document.reading import Library

_SOMEWHERE = "…/"  # a folder in a variable that is not known
_ADAPTERS = ("LoraConfig(", "modules_to_save", "get_peft_config")
_ASKED = {
    "takes_peft_config": takes_peft_config,
    "clamps_sizes": clamps_sizes,
    "makes_optimizer": makes_optimizer,
}
_MODEL_CALLS = {"LoraConfig": "adapts", "get_peft_model": "adapts", "BitsAndBytesConfig": "quantizes"}
_ONE_WORD = ("adapter_switch", "adapter_ranks", "adapter_bits")
_PLAIN = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
_READS = {"yaml", "omegaconf", "ruamel", "toml", "tomli", "tomllib", "hydra"}
# As HfArgumentParser reads a truth (transformers/hf_argparser.py: string_to_bool).
_TRUTHS = dict.fromkeys(("yes", "true", "t", "y", "1"), True)
_TRUTHS |= dict.fromkeys(("no", "false", "f", "n", "0"), False)
_PARTS_OF_PATH = 2  # folders and name that tell a program of a project from others
_MODULE = re.compile(r"[A-Za-z_][\w.]*\Z")


def follow(document: Document, library: Library) -> None:
    """Find the program of a command, and note what it says; nothing where its file is not surely here."""
    head = child(document.root, "launch")
    node = target(child(head, "program"))
    if not isinstance(head, Mapping) or not isinstance(node, Scalar) or isinstance(node, Unresolved):
        return
    if text_at(head, "suite"):
        return
    folders = text_at(head, "pythonpath").split(":") if text_at(head, "module") == "true" else None
    file = _file(document, library, node.text, folders)
    program = None if file is None else _program(file, library)
    if file is None or program is None:
        return
    _forget_written(document, head, file.text, program)
    general = Started(file, node, program, None, program, plain=_trains_plainly(file, library))
    document.program = started = _as_started(document, general)
    program = started.program
    _note(head, node, "program_file", file.path)
    if program.flags:
        _note(head, node, "base", "arguments")
    _note_hydra(document, started, head)
    started.sets = _once("sets", stored_keys, file, library)
    started.share = _once("total", total_of, file, library)
    started.sizes = _once("sizes", sizes_of, file, library)
    started.drawn = _once("draws", draws, file, library)
    if _trains_one(started, library):
        _note(head, node, "trains_one", "true")
    _note_step(started, library, head)
    _note_groups(document, started, library, head)
    loaded, saved = (target(child(document.root, name)) for name in ("load", "save"))
    if isinstance(loaded, Scalar) and isinstance(saved, Scalar) and loaded.text == saved.text:
        _note(head, node, "resumes", "true")  # whatever the script's variable is
    _note_hybrid(document, started, library, head)
    trainer = started.trainer[1] if started.trainer is not None else None
    if trainer is None or not is_known(trainer):  # what it does with these is not followed
        for call in program.calls.values():
            if call.name in _MODEL_CALLS:
                _note(head, node, _MODEL_CALLS[call.name], "true")


def _forget_written(document: Document, head: Mapping, text: str, program: Linked) -> None:
    """Take no file for a config that a program but writes its arguments to (ColossalAI's --config_file)."""
    alone = len(document.over) == 1 and type(document.over[0]) in (Scalar, Composite, Unresolved)
    if alone and learns.only_writes_config(text) and _READS.isdisjoint(program.imports):
        document.over = ()
        head.entries.pop("config", None)


def _note_step(started: Started, library: Library, head: Mapping) -> None:
    """Note what a program's own code says of a step: whose trainer takes it, and whether it accumulates."""
    file, node = started.file, started.node
    if whose := _once("trains_with", trains_with, file, library):
        _note(head, node, "trains_with", whose)
        if taken := _once("trl_config", config_of, file, library):
            _note(head, node, "trl_config", taken)
    if loss := _once("compares", learns.compares, file, library):
        _note(head, node, "compares", loss)
    if not _once("accumulates", learns.accumulates, file, library):
        _note(head, node, "one_pass", "true")
    if _once("older_megatron", older_megatron, file, library):
        _note(head, node, "older_megatron", "true")
        if _once("recomputes_nothing", recomputes_nothing, file, library):
            _note(head, node, "recomputes_nothing", "true")
    if sharing := _once("shares_sequences", learns.splits_sequences, file, library):
        _note(head, node, "shares_sequences", sharing)
    for key, asks in {**learns.ASKED, **_ASKED}.items():
        if _once(key, asks, file, library):
            _note(head, node, key, "true")
    for key, size in batch_of_ppo(started.program).items():
        _enter(head, node, key, Composite(size, node.start, node.end))
    adapters = _once("adapters", adapters_of, file, library)
    told = adapters.told(started.program.flags) if adapters is not None else {}
    for name, words in {**_once("refused", refused, file, library), **told}.items():
        plain = words == ("true",) or words[0].isdigit()
        items = [Composite(each, node.start, node.end, "" if plain else '"') for each in words]
        one = items[0] if plain or name in _ONE_WORD else None
        _enter(head, node, name, one or Sequence(node.start, flow=True, end=node.end, items=list(items)))


def _note_groups(document: Document, started: Started, library: Library, head: Mapping) -> None:
    """Note which flag says how many processes share a model, where a command gives it."""
    groups = _once("groups", groups_of, started.file, library)
    if groups is None:
        return
    given = [each for each in (groups.flag, groups.switch) if each]
    if all(child(document.root, name) is not None for name in given):
        _note(head, started.node, "grouped_by", groups.flag)
        if groups.shrink:
            _note(head, started.node, "groups_shrink", "true")


def _note_hybrid(document: Document, started: Started, library: Library, head: Mapping) -> None:
    """Note how many processes share a model under ColossalAI's hybrid plugin, where a command takes it."""
    root, node, flags = document.root, started.node, started.program.flags
    hybrid = _once("hybrid", hybrid_of, started.file, library)
    if hybrid is None or not isinstance(root, Mapping):
        return
    hidden = child(head, "unread") is not None
    said = {name: _said(root, {}, flag, open_ended=hidden) for name, flag in flags.items()}
    if shared := hybrid.shared({name: each.value for name, each in said.items() if each is not None}):
        _enter(head, node, "hybrid", Composite(str(shared), node.start, node.end))


def _note(head: Mapping, node: Scalar, key: str, text: str) -> None:
    style = "" if text == "true" else '"'
    _enter(head, node, key, Composite(text, node.start, node.end, style))


def _enter(head: Mapping, node: Scalar, key: str, value: Node) -> None:
    head.entries[key] = Entry(Scalar(key, node.start, node.end, '"'), value)


def _file(document: Document, library: Library, name: str, folders: Listed[str] | None) -> File | None:
    """Return the file of a program; None where none is here, or where it may be one of several.

    A module may be in some ``folders``, too. Where a path begins with a variable, what is behind it counts.
    """
    if folders is not None and _MODULE.match(name):
        path = name.replace(".", "/")
        within = [each for each in folders if "…" not in each]
        names = [os.path.join(each, path + end) for each in ("", *within) for end in (".py", "/__main__.py")]
    elif folders is None and name.endswith(".py"):
        names = [name.removeprefix(_SOMEWHERE)]
        if os.path.isabs(name) and not is_there(name):  # of a checkout on another machine
            names += [*ends_of(name, ()), os.path.basename(name)]
    else:
        return None
    here = document.file.path
    around = [place for each in names for place in library.around(here, each)]
    inside = os.path.join(os.path.dirname(here), document.folder)  # where the script goes before
    entered = [os.path.join(inside, each) for each in names] if document.folder else []
    for places in (entered, around, names):  # the working folder is asked where the project has none
        files = [file for place in places if (file := library.file(place, here)) is not None]
        found = {os.path.abspath(file.path): file for file in files if file.format == "program"}
        if found:
            return next(iter(found.values())) if len(found) == 1 else None
    return _elsewhere(document, library, name) if folders is None else None


def _elsewhere(document: Document, library: Library, name: str) -> File | None:
    """Return the nearest program of a project that ends so: its guide says into which folder to go before."""
    here = document.file.path
    tail = os.sep + os.path.normpath(name)
    if library.project is None or os.path.isabs(name) or ".." in tail or tail.count(os.sep) < _PARTS_OF_PATH:
        return None
    path = library.project.nearest(here, tail)
    if path and not document.folder:  # its other files are seen from there, too
        folder = os.path.abspath(path).removesuffix(tail)
        document.folder = os.path.relpath(folder, os.path.dirname(os.path.abspath(here)))
    return library.file(path, here) if path else None


def _program(file: File, library: Library) -> Linked | None:
    """Go through a program, each once."""
    known: dict[str, Linked | None] = library.programs
    if file.path not in known:
        known[file.path] = None
        code = modules_of(library).code(file)
        if code is not None:
            known[file.path] = program = Linked(code, file, modules_of(library))
            program.run()
    return known[file.path]


def modules_of(library: Library) -> Modules:
    """Return the modules of the programs, of which each is parsed once."""
    found: Modules = library.programs.setdefault("", Modules(library.find, library.project))
    return found


def _as_started(document: Document, general: Started, overrides: Listed[str] = ()) -> Started:
    """Go through a program again where what is said of its flags tells which branches it takes."""
    root, head, program = document.root, child(document.root, "launch"), general.general
    assert program is not None
    unread = child(head, "unread") is not None or child(head, "config") is not None or bool(document.over)
    if program.wondered and isinstance(root, Mapping) and (overrides or not unread):
        spell_out(root, program.flags, all_known=False)
        typed = _typed(overrides)
        program = program.again(lambda flag: _said(root, typed, flag, open_ended=unread))
    found = [pair for pair in trainers_of(program, plain=general.plain) if pair[0] is not None]
    trainer = found[0] if len(found) == 1 else None
    return Started(general.file, general.node, program, trainer, general.general, general.plain, general.sets)


def _typed(overrides: Listed[str]) -> dict[str, Node | None]:
    """Return the flags that overrides speak of."""
    return {each.keys[0]: each.value for each in map(read_override, overrides) if len(each.keys) == 1}


def _said(root: Mapping, typed: dict[str, Node | None], flag: Flag, *, open_ended: bool) -> Literal | None:
    """Return what a command, or one who types more, says of a flag, else its default; None if not known."""
    given = target(typed[flag.name] if flag.name in typed else child(root, flag.name))
    if open_ended and flag.name not in typed:
        return None
    if given is None:
        return flag.default if isinstance(flag.default, Literal) else None
    if not isinstance(given, Scalar) or isinstance(given, Unresolved):
        return None
    truth = isinstance(flag.default, Literal) and isinstance(flag.default.value, bool)
    text = isinstance(flag.default, Literal) and isinstance(flag.default.value, str)
    value = given.text if text else resolve(given, PYYAML)
    if truth and str(value).lower() in _TRUTHS:
        value = _TRUTHS[str(value).lower()]
    return Literal(value, flag.span)


def _once(name: str, asks: Callable[[File, Modules], Any], file: File, library: Library) -> Any:
    """Return what is asked of a program and its modules, found out once."""
    key = f"{file.path}:{name}"
    if key not in library.programs:
        library.programs[key] = asks(file, modules_of(library))
    return library.programs[key]


def _trains_plainly(file: File, library: Library) -> bool:
    """Whether the trainers of a program are those of transformers, or its own made of them."""
    return bool(_once("trains_with", trains_with, file, library) == "transformers")


def _trains_one(started: Started, library: Library) -> bool:
    """Whether a program trains one causal language model on texts, found out once."""
    trainer = started.trainer[1] if started.trainer is not None else None
    plainly = trainer is not None and trainer.cls is None and trainer.kind in _PLAIN
    key = f"{started.file.path}:trains_one:{plainly}"
    if key not in library.programs:
        flags, modules = started.program.flags, modules_of(library)
        library.programs[key] = trains_one(started.file, modules, flags, plainly=plainly) or trains_plainly(
            started.file, modules, flags
        )
    found: bool = library.programs[key]
    return found


def _note_hydra(document: Document, started: Started, head: Mapping) -> None:
    """Add the config of a ``@hydra.main`` to those that the command is laid over."""
    start = program_of(document.words)
    for made, _ in started.program.decorators:
        if made.kind != "hydra.main" or start is None:
            continue
        folder, name = (_text(made.get(key)) for key in ("config_path", "config_name"))
        beside = os.path.dirname(started.file.path) or "."
        own = os.path.dirname(document.file.path) or "."
        reference = hydra_beside(start, os.path.relpath(beside, own), folder, name)
        if reference is not None and not any(type(each) is type(reference) for each in document.over):
            document.over = (*document.over, reference)
        _note(head, started.node, "base", "hydra")


def _text(value: object) -> str | None:
    found = value.value if isinstance(value, Literal) else None
    return found if isinstance(found, str) else None


# ── one tree ───────────────────────────────────────────────────────────────────────────────────────────────
def lay(layers: Layers, document: Document, overrides: Listed[str], *, defaults: bool) -> None:
    """Lay what a program makes of its flags over them, and the ``defaults`` of its flags beneath."""
    root = layers.root
    started: Started = document.program
    wondered = started.program.wondered
    typed = tuple(text for text in overrides if wondered and read_override(text).keys[0] in wondered)
    if typed:  # another branch may be taken
        if typed not in started.told:
            started.told[typed] = _as_started(document, started, typed)
        started = started.told[typed]
    if not isinstance(root, Mapping):
        return
    spell_out(root, started.program.flags, all_known=False)
    head = child(root, "launch")
    if started.parsed and isinstance(head, Mapping):  # of whose trainer it is, what it imports says most
        _say_imports(head, started)
    # A program that reads a config by itself may make anything of it.
    by_itself = child(head, "config") is not None and not _READS.isdisjoint(started.program.imports)
    open_ended = child(head, "unread") is not None or bool(layers.unread) or by_itself
    if isinstance(head, Mapping):
        note_sizes(head, root, started, _typed(overrides), open_ended=open_ended)
    if started.trainer is not None:
        source = Source(started.file, started.node, "program", hung=True)
        said = _typed(overrides)
        reader = Reader(
            started.program, lambda flag, span: _worth(root, said, flag, span, open_ended=open_ended)
        )
        tree = reader.tree(*started.trainer)
        if started.parsed:
            reader.unread.pop((), None)
        trainer = started.trainer[1]
        if started.parsed and (trainer is None or not is_known(trainer)):
            # Its flags say best which framework's it is.
            del tree.entries["python"]
        layers.adopt(tree, source)
        layers.files.append(source)
        layers.unread |= reader.unread
        layers.root = layers.lay(tree, root)
    if started.sets:
        source = Source(started.file, started.node, "program", hung=True)
        layers.adopt(own := unsettled(started.sets, started.file), source)
        layers.files.append(source)
        layers.root = layers.lay(own, layers.root)
    if defaults and not open_ended:
        lay_defaults(layers, started)


def _say_imports(head: Mapping, started: Started) -> None:
    node = started.node
    names: list[Node] = [Composite(name, node.start, node.end) for name in sorted(started.program.imports)]
    listed = Sequence(node.start, flow=True, end=node.end, items=names)
    head.entries["imports"] = Entry(Scalar("imports", node.start, node.end, '"'), listed)
    texts = started.program.texts()
    if {word for word in _ADAPTERS for text in texts if word in text} == {_ADAPTERS[0]}:
        _note(head, node, "plain_adapter", "true")  # it trains nothing beside its adapters


def _worth(root: Mapping, typed: dict[str, Node | None], flag: Flag, span: Span, *, open_ended: bool) -> Node:
    """Return what is typed, or the command says, of a flag, else its default."""
    told = typed.get(flag.name)
    if told is not None:
        return told
    given = target(child(root, flag.name)) if flag.name not in typed else None
    if given is not None:
        return Alias(f"--{flag.name}", given, *span)
    if isinstance(flag.default, Literal) and not open_ended:
        style = '"' if isinstance(flag.default.value, str) else ""
        start, end = flag.default.span
        return Composite(str(flag.default.value), start, end, style, flag=flag.name)
    if isinstance(flag.default, Items) and flag.default.items and not open_ended:
        texts = [_text(each) for each in flag.default.items]
        start, end = flag.default.span
        if None not in texts:
            items: list[Node] = [Composite(str(text), start, end, '"', flag=flag.name) for text in texts]
            return Sequence(start, flow=True, end=end, items=items)
    return Unresolved(
        f"--{flag.name}", *span, why=f"--{flag.name} is not given, and its default is not known"
    )
