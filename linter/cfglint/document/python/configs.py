"""Training configs that functions of a program return, as documents: one for each of torchtitan's.

At the top are the sections as the config class has them (``training``, ``parallelism``, …), each with the
name of its own class below ``class``; below ``python`` are the function and the class of the whole. Nothing
is run: what the function computes in ways that are not followed is unknown.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.python.documents import Reader, Site, close
from cfglint.document.python.registry import SPEC, Registry, is_config
from cfglint.document.python.source import PYTHON, read_python
from cfglint.document.python.values import Function, Items, Literal, Object, Span, Symbol, Unknown
from cfglint.document.tree import Document, Entry, Mapping, Node, Path, Scalar, Sequence, Unresolved
from cfglint.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.values import Modules

_DEEPEST = 6
_LONGEST = 100  # items of a list
# The trainers' configs; those of its RL experiment hold a trainer, a generator and more.
_TRAINER = re.compile(r"torchtitan\.(?!experiments\.rl\.)(?:\w+\.)*\w*Trainer\.Config\Z")
_REGISTRY = re.compile(r"torchtitan\.(?:models|experiments)\.(?!rl\.)[\w.]*\bconfig_registry\.\w+\Z")
_TRAINING = re.compile(r"torchtitan\.(?:\w+\.)*TrainingConfig\Z")


class _Reader(Reader):
    """Makes the tree of one config."""

    def config(self, value: Object, function: Function) -> Mapping:
        """Return the tree of a config that a function returns."""
        root = self._section(value, ())
        span = self.program.code.span(function.node)
        root.start, root.end = span
        head = Mapping(span[0], flow=True, end=span[1])
        self._say(head, "library", "torchtitan", span)
        self._say(head, "function", getattr(function.node, "name", ""), span)
        self._say(head, "class", value.kind if value.name.endswith("Config") else "", span)
        root.entries["python"] = Entry(Scalar("python", *span, '"'), head)
        return root

    def _section(self, value: Object, path: Path) -> Mapping:
        """Return an object with its fields, and note where they are written."""
        spend(5, PYTHON)
        made = Mapping(value.span[0], flow=True, end=value.span[1])
        fields = dict(value.items)
        if value.cls is not None:  # its own defaults are the class's
            own = value.cls.all_fields()
            fields = {n: own[n] for n in own if not isinstance(own[n][1], Unknown)} | fields
        if value.name == SPEC and "model" in fields:
            why = "the program changes the model"
            fields["flavor"] = fields["model"][0], Unknown(why, fields["model"][0])
        for name, (span, inner) in fields.items():
            key = Scalar(name, span[0], span[1], '"')
            made.entries[name] = Entry(key, self._field(inner, span, (*path, name)))
        if value.kind:
            self._say(made, "class", _class(value), value.span)
            self._name(made, value)
        if value.rest:
            self.unread[path] = value.rest
        elif not value.elsewhere:
            self.sites[path] = Site(value.last, value.span, value.spaced)
        return made

    def _name(self, made: Mapping, value: Object) -> None:
        """Note where a class is named, ``FullAC`` of ``FullAC.Config()``: another may take its place."""
        name, start = _class(value), value.span[0]
        if name and not value.elsewhere and self.program.code.file.startswith(f"{name}.Config(", start):
            made.entries["class"].value = Scalar(name, start, start + len(name), '"')

    def _field(self, value: object, span: Span, path: Path) -> Node:
        spend(2, PYTHON)
        own = getattr(value, "span", span)
        if own == (0, 0):
            own = span
        if isinstance(value, Items) and len(path) < _DEEPEST and len(value.items) <= _LONGEST:
            items = [self._field(item, own, (*path, at)) for at, item in enumerate(value.items)]
            return Sequence(own[0], flow=True, end=own[1], items=items)
        if isinstance(value, Object) and len(path) < _DEEPEST:
            if value.kind == "dict" and not value.rest:
                return self.mapping(value, len(path))
            if is_config(value) or value.name.startswith("default_"):
                return self._section(value, path)
        if len(path) == 1 and not isinstance(value, (Literal, Symbol)):  # a section of which nothing is known
            self.unread[path] = value.why if isinstance(value, Unknown) else self._text(own)
            return Mapping(own[0], flow=True, end=own[1])
        return self.node(value, own)


def _class(value: Object) -> str:
    """Return the name of an object's class: ``FullAC`` of ``FullAC.Config``."""
    name = value.kind.removesuffix(".Config").rpartition(".")[2]
    return name if name != "Config" else ""


def parse_configs(text: str, modules: Modules | None) -> list[Document]:
    """Return a document for each config function of a program; ``modules`` has the texts of other files."""
    code = read_python(text, notebook=False)
    if code is None:
        return []
    registry = Registry(code, modules)
    documents = [
        document for each in registry.functions() if (document := _document(registry, each)) is not None
    ]
    close(documents, several=True)
    _share_sites(documents)
    return documents


def config_of(text: str, name: str, modules: Modules | None) -> Document | None:
    """Return the config that one function of a program returns; None where there is no such function."""
    code = read_python(text, notebook=False)
    if code is None:
        return None
    registry = Registry(code, modules)
    named = (each for each in registry.functions() if getattr(each.node, "name", "") == name)
    function = next(named, None)
    return None if function is None else _document(registry, function, asked=True)


def _document(registry: Registry, function: Function, *, asked: bool = False) -> Document | None:
    """Return the config of a function; None where it returns none of torchtitan's."""
    said = registry.returns(function)
    name = getattr(function.node, "name", "_")
    if (name.startswith("_") and not asked) or (said and not said.endswith("Config")):
        return None
    value = registry.made_by(function)
    if not isinstance(value, Object) or not _is_titans(value, said):
        return None
    reader = _Reader(registry, lambda flag, span: Unresolved(flag.name, *span, why=f"--{flag.name} sets it"))
    root = reader.config(value, function)
    document = Document(root.start, root.end, root)
    document.unread, document.sites = reader.unread, reader.sites
    return document


def _is_titans(value: Object, said: str) -> bool:
    """Whether a config is one of torchtitan's trainers: by its class, or by its sections."""
    if _TRAINER.match(value.kind) or ".experiments.rl." in value.kind:
        return ".experiments.rl." not in value.kind
    training = value.get("training")
    if (
        value.get("model_spec") is not None
        and isinstance(training, Object)
        and _TRAINING.match(training.kind)
    ):
        return True
    if value.name.endswith("Config"):
        return _TRAINER.match(said) is not None
    return bool(value.rest) and (_TRAINER.match(said) or _REGISTRY.match(value.kind)) is not None


def _share_sites(documents: list[Document]) -> None:
    """Note which calls several configs read."""
    count: dict[Span, int] = {}
    for document in documents:
        for span in {site.call for site in (document.sites or {}).values()}:
            count[span] = count.get(span, 0) + 1
    for document in documents:
        sites = document.sites or {}
        document.sites = {p: replace(site, several=count[site.call] > 1) for p, site in sites.items()}
