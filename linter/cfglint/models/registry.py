"""Looks models up: by id in the catalogue, by their config.json, by the size in their name.

The catalogue is read when a rule first asks for a model; everything else is imported when that does not say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from cfglint import files
from cfglint.boundary import inside
from cfglint.budget import spend
from cfglint.cache import cached
from cfglint.models import NOT_DENSE, PARTS
from cfglint.record import Record, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from cfglint.boundary import Boundary

    Row: TypeAlias = Mapping[str, object]
    Tables: TypeAlias = Mapping[str, Callable[[str | float], Row | None]]

CATALOGUE = "catalogue"
CACHED = "Hugging Face cache"
FETCHED = "Hugging Face Hub"
NAMED = "the size in its name"
COUNTED = "the number of parameters"


_FILES = ("models.yaml", "configs.yaml", "lengths.yaml")  # by hand; written by schemas/models; by hand


def _build(texts: Mapping[str, str]) -> dict[str, dict[str, object]]:
    import yaml

    rows: dict[str, dict[str, object]] = {}
    entries = (yaml.load(text, Loader=yaml.CSafeLoader)["models"] for text in texts.values())
    for entry in (entry for several in entries for entry in several):
        names = [name.lower() for name in entry.get("ids") or (entry["id"],)]
        if "context" in entry:
            rows.update({name: {**rows[name], "context": entry["context"]} for name in names})
        else:
            row = {**entry["figures"], "family": entry["family"]}
            rows.update(dict.fromkeys(names, row))
    return rows


_ZEROS: Row = {**dict.fromkeys(NOT_DENSE, 0), "named": False}


def _whole(row: Row) -> Row:
    """Return a row with the columns that it does not state."""
    return {**_ZEROS, **dict.fromkeys(PARTS, row["layers"]), "active_params": row["params"], **row}


class Catalogue(Mapping[str, "Row"]):
    """The figures of models by their ids in lower case; made whole when they are asked for."""

    def __init__(self, kept: Mapping[str, Row]) -> None:
        self.kept = kept
        self._whole: dict[int, Row] = {}

    def __getitem__(self, name: str) -> Row:
        row = self.kept[name]
        if id(row) not in self._whole:
            self._whole[id(row)] = _whole(row)
        return self._whole[id(row)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)


@cache
def catalogue() -> Catalogue:
    """Return the figures of all known models."""
    texts = _texts()
    return Catalogue(cached("models6", texts, lambda: _build(texts)))  # type: ignore[arg-type]


def _texts() -> dict[str, str]:
    return {name: files.shipped_text("models", name) for name in _FILES}


# What says how a checkpoint is packed, by whom and for what use, and nothing of the architecture.
_PACKED = (
    r"(awq|gptq|bnb|gguf|mlx|int4|int8|fp8|nf4|nvfp4|mxfp4|fp4|w4a16|w8a8|w8a16|[48]-?bit|q[248](_k)?(_[sm])?"
    r"|bf16|fp16|bfloat16|dequantized|linearized|dynamic|static|block|unsloth|quantized|hf|mirror)"
)
_TUNED = (
    r"(instruct|base|chat|it|pt|thinking|reasoning|sft|dpo|mpo|kto|orpo|simpo|ppo|grpo|rlvr|rl|pretrained"
    r"|\d{4})"
)
_SHORTEST = 5  # letters of a name that says which model it is


def trunk(name: str) -> str:
    """Return what the last component of an id says of the architecture: ``qwen2.5-7b``, ``llama-3.1-8b``.

    ``unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit`` is the model of ``meta-llama/Llama-3.1-8B``, in 4 bits.
    """
    import re

    return re.sub(rf"([-_.]({_PACKED}|{_TUNED}))+$", "", leaf(name))


def leaf(name: str) -> str:
    """Return the last component of an id, without what not every copy has in front."""
    return name.rpartition("/")[2].lower().removeprefix("meta-")


_BITS = ("quantized_bits",)
_APART = (*_BITS, "max_positions", "context")  # differ between checkpoints of one architecture


@cache
def by_trunk() -> Catalogue:
    """Return the figures of models by their trunks, where all of that trunk have one architecture."""

    def built() -> dict[str, Row]:
        import re

        rows: dict[str, Row | None] = {}
        leaves: dict[str, Row | None] = {}
        ones: dict[int, Row] = {}
        packed: dict[str, object] = {}  # as it is published
        for name, row in catalogue().kept.items():
            alike = ones.setdefault(id(row), {key: row[key] for key in row if key not in _APART})
            key, own = trunk(name), leaf(name)
            rows[key] = alike if rows.get(key, alike) == alike else None
            exact = {**alike, **{key: row[key] for key in _BITS if key in row}}
            leaves[own] = exact if leaves.get(own, exact) == exact else None
            if not re.search(rf"[-_.]{_PACKED}\b", name):
                bits = row.get("quantized_bits", 0)
                if packed.setdefault(key, bits) != bits:  # Kimi-K2-Thinking, of all Kimi-K2 the one in 4 bits
                    rows[own] = {**alike, "quantized_bits": bits}
        for own, only in leaves.items():  # GLM-4-9B-0414 is another model than GLM-4-9B
            rows[own] = rows.get(own, only if rows[trunk(own)] is None else None)
        return {
            name: {**row, "quantized_bits": packed[name]} if packed.get(name) else row
            for name, row in rows.items()
            if row is not None
        }

    return Catalogue(cached("trunks6", _texts(), built))  # type: ignore[arg-type]


def of_trunk(name: str) -> Mapping[str, object] | None:
    """Return the figures of the model that a name is a copy of, as it is packed; None where none is known."""
    from cfglint.models.size import bits

    key = trunk(name)
    says = len(key) >= _SHORTEST and (any(letter.isdigit() for letter in key) or len(key) >= 2 * _SHORTEST)
    row = by_trunk().get(leaf(name)) or by_trunk().get(key) if says or _is_path(name) else None
    return None if row is None else {**row, "quantized_bits": bits(name) or _published(row, name)}


def _published(row: Mapping[str, object], name: str) -> object:
    """Return the bits of a checkpoint as its makers published it; 0 for a copy that is in 16 bits."""
    import re

    whole = re.search(r"(?i)[-_.](bf16|fp16|bfloat16|dequantized)\b", name) is not None
    return 0 if whole else row.get("quantized_bits", 0)


def _is_path(name: str) -> bool:
    """Whether a model is named by a folder, which is called as its id is, and not by an id of the Hub."""
    return name.count("/") != 1 or name.startswith((".", "/", "~", "\u2026"))


class Models(Record):
    """The look-up of models; what it once found, it keeps.

    Ids compare without case, as the Hub resolves them. What the catalogue lacks is looked for on this
    machine if ``disk`` allows it: a path (a relative one seen from the folders of ``base``) with a
    config.json, then the Hub's local cache; then, if ``online``, on the Hub. A folder that is called as a
    model of the catalogue is taken to hold it. What is left is the size in the name, or the number. ``tell``
    is given a line where a config.json is there and cannot be used.
    """

    base: Sequence[str] = ()
    disk: bool = field(default=True, kw_only=True)
    online: bool = field(default=False, kw_only=True)
    environ: Mapping[str, str] | None = field(default=None, kw_only=True)
    tell: Callable[[str], None] | None = field(default=None, kw_only=True)
    _usual: Sequence[str] | None = field(default=None, kw_only=True)
    _answers: dict[str | float, tuple[Row | None, str]] = field(factory=dict, kw_only=True)
    _files: dict[str, Row | None] = field(factory=dict, kw_only=True)
    _fetches: dict[str, Row | None] = field(factory=dict, kw_only=True)
    _offline: list[str] = field(factory=list, kw_only=True)  # the model at which the Hub was out of reach
    _beside: dict[str, Models] = field(factory=dict, kw_only=True)

    def __call__(self, key: str | float) -> Row | None:
        """Return the figures of a model by its id, its path, or its number of parameters; None if unknown."""
        row, _ = self._find(key)
        return row

    def source_of(self, key: str | float) -> str:
        """Say what told the figures of a model; an empty text where nothing does."""
        _, source = self._find(key)
        return source

    def near(self, folder: str, top: str) -> Models:
        """Return the same look-up for a config in ``folder``, which relative paths are seen from first.

        Then from the ``top`` of its project.
        """
        if not self.disk:
            return self
        if folder not in self._beside:
            usual = self.base if self._usual is None else self._usual
            base = list(dict.fromkeys(os.path.abspath(at) for at in (folder, top, *usual)))
            self._beside[folder] = replace(self, base=base, _usual=usual, _answers={})
        return self._beside[folder]

    def _find(self, key: str | float) -> tuple[Row | None, str]:
        if key not in self._answers:
            self._answers[key] = self._text(key) if isinstance(key, str) else self._number(key)
        return self._answers[key]

    def _number(self, key: float) -> tuple[Row | None, str]:
        from cfglint.models.size import by_number

        row = by_number(key, catalogue().values())
        return row, COUNTED if row is not None else ""

    def _text(self, key: str) -> tuple[Row | None, str]:
        name = key.strip()
        row: Row | None = catalogue().get(name.strip("/").lower())
        if row is not None:
            return row, CATALOGUE
        if self.disk and name:
            row, source = self._on_disk(name)
            if row is not None:
                return row, source
        row = of_trunk(name.strip("/"))
        if row is not None:
            return row, CATALOGUE
        from cfglint.models.size import bits, by_name
        from cfglint.models.within import within

        row = within(name, by_trunk)
        if row is not None:
            return {**row, "quantized_bits": bits(name)}, CATALOGUE
        row = by_name(name, catalogue().values())
        return row, NAMED if row is not None else ""

    def _on_disk(self, name: str) -> tuple[Row | None, str]:
        from cfglint.models import hf_config

        if "://" in name or "\0" in name:
            return None, ""
        environ = os.environ if self.environ is None else self.environ
        path = hf_config.home(name, environ)
        for place in (path,) if os.path.isabs(path) else [os.path.join(at, path) for at in self.base]:
            file = place if place.endswith(".json") else os.path.join(place, "config.json")
            own = self._is_beside(file)
            if not files.is_file(file) or not (own or os.path.basename(file) == "config.json"):
                continue
            row = self._read(file, quiet=not own)
            if row is not None:
                return row, f"config.json of {_shown(place) if own else name}"
        name = name.strip("/")
        kept = hf_config.kept(name, environ) if not os.path.isabs(path) else None
        row = self._read(kept) if kept is not None else None
        if row is not None:
            return row, CACHED
        if self.online and not self._offline and hf_config.is_id(path):
            row = self._fetched(name)
        return row, FETCHED if row is not None else ""

    def _fetched(self, name: str) -> Row | None:
        if name not in self._fetches:
            from cfglint.models.hf_config import FetchError, fetch

            try:
                self._fetches[name] = self._read(fetch(name))
            except FetchError as error:
                self._fetches[name] = None
                self._offline += [name] * error.final
                self._say(f"{name}: the Hugging Face Hub gives no config.json: {error}")
        return self._fetches[name]

    def _is_beside(self, file: str) -> bool:
        """Whether a file is in the config's or the working folder; of others nothing but numbers is told."""
        return any(inside(files.real(file), files.real(at)) for at in self.base)

    def _read(self, file: str, *, quiet: bool = False) -> Row | None:
        if file not in self._files:
            from cfglint.models.hf_config import ModelConfigError, read

            try:
                self._files[file] = read(file)
            except ModelConfigError as error:
                self._files[file] = None
                if not quiet:
                    self._say(f"{error}; until then its size is read from its name")
        return self._files[file]

    def _say(self, line: str) -> None:
        if self.tell is not None:
            self.tell(line)


def _shown(path: str) -> str:
    """Return a path as people know it: what is below the working folder, seen from there."""
    here = os.path.join(os.getcwd(), "")
    return os.path.normpath(path).removeprefix(here)


class Checkpoints(Record):
    """The look-up of DeepSpeed's checkpoints: how many data-parallel ranks saved one, by its folder.

    The folder is seen from those of ``base``, inside the ``boundary``. The names of its files tell: each rank
    saves its part of the optimizer's states (deepspeed/runtime/engine.py: _get_rank_zero_ckpt_name).
    """

    boundary: Boundary
    base: Sequence[str] = ()

    def __call__(self, key: str | float) -> Row | None:
        """Return ``{"ranks": number}``; None where nothing is there, or a part of it."""
        folders = self.base if isinstance(key, str) else ()
        rows = (self._row(os.path.join(at, str(key)), at) for at in dict.fromkeys(folders))
        return next((row for row in rows if row is not None), None)

    @staticmethod
    def source_of(key: str | float) -> str:
        """Say what told the ranks."""
        return f"the files in {key}"

    def near(self, folder: str, top: str) -> Checkpoints:
        """Return the same look-up for a config in ``folder``, of a project whose ``top`` is another one."""
        return replace(self, base=(folder, top, *self.base[-1:]))

    def _row(self, path: str, by: str) -> Row | None:
        latest = os.path.join(path, "latest")  # names the folder of the last step
        try:
            if not self.boundary.holds(latest, os.path.join(by, "any")):
                return None
            tag = files.read_bytes(latest, _LONGEST_TAG).decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return None
        step = os.path.join(path, tag)
        if (
            os.path.basename(tag) != tag
            or tag in (".", "..")
            or not self.boundary.holds(step, os.path.join(by, "any"))
        ):
            return None
        _, _, names, _ = next(files.walk(step), ("", [], [], []))
        spend(1 + len(names) // 100, "checkpoints")
        ranks = {
            name.partition(_RANK)[2].partition("_")[0]
            for name in names
            if name.removeprefix("bf16_").startswith(_RANK) and name.endswith("optim_states.pt")
        }
        return {"ranks": len(ranks)} if ranks and ranks == set(map(str, range(len(ranks)))) else None


_RANK = "zero_pp_rank_"
_LONGEST_TAG = 200


def near(tables: Tables, folder: str, top: str) -> Tables:
    """Return the look-ups for a config in ``folder``, of a project whose top is another one."""
    return {
        name: find.near(folder, top) if isinstance(find, (Models, Checkpoints)) else find
        for name, find in tables.items()
    }


find = Models(disk=False)
TABLES: Tables = {"models": find}
