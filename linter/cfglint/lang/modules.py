"""Which modules of a model the targets of an adapter mean, as PEFT matches them.

A name, with or without its parents, is the end of a module's path; what no path can hold is a pattern for the
whole path (peft/tuners/tuners_utils.py: check_target_module_exists). Patterns come from strangers' files, and
are tried only where matching them takes no more than cubic time.
"""

from __future__ import annotations

import re
from functools import lru_cache

from cfglint.budget import spend
from cfglint.lang.values import UNRULED, Interval, needs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.lang.values import Number

# Where the classes of transformers hold their layers, with and without a tower beside them.
_ROOTS = (
    "model.layers",
    "model.language_model.layers",
    "language_model.model.layers",
    "transformer.h",
    "gpt_neox.layers",
    "model.decoder.layers",
)
_NAME = re.compile(r"[\w.-]+")
_NUMBERED = re.compile(r"(?:^|.*\.)(\d+)\.")
_REPEATS = re.compile(r"(?<!\\)[*+{]")
_NESTED = re.compile(r"\)[*+{]|\\\d|\(\?P")  # repeated groups and what refers to groups
_MOST_REPEATS, _LONGEST, _MOST_LAYERS = 3, 300, 512


def adapted(targets: object, parents: object, names: object, layers: object) -> Number:
    """Return in how many of a model's layers one of some modules has an adapter."""
    most = min(int(layers), _MOST_LAYERS) if isinstance(layers, (int, float)) else 1
    needs = needs_of(targets).union(*map(needs_of, _items(targets)))
    if needs or not isinstance(targets, (list, tuple)):
        return Interval(0, most, needs)
    spend(most, "layers that adapters may be in")
    found = _counted(tuple(_flat(targets)), tuple(_flat(parents)), tuple(_flat(names)), most)
    return found if isinstance(found, int) else Interval(0, most, frozenset({f"{UNRULED}{found}"}))


@lru_cache(maxsize=1024)
def _counted(
    targets: tuple[str, ...], parents: tuple[str, ...], names: tuple[str, ...], most: int
) -> int | str:
    """Return a number of layers, or a target that cannot be tried."""
    wanted = [part.strip() for each in targets for part in _parted(each)]
    for each in wanted:
        if not _NAME.fullmatch(each) and _pattern(each) is None:
            return f"the pattern {each}"
    modules = [f"{parent}.{name}" for parent in parents for name in names]
    return sum(_in_layer(wanted, modules, layer) for layer in range(most))


def _items(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else ()


def _flat(value: object) -> Iterator[str]:
    for each in _items(value):
        if isinstance(each, str):
            yield each
        else:
            yield from _flat(each)


def _parted(text: str) -> list[str]:
    """Return the names of a text that lists them; a pattern may hold commas, too."""
    return text.split(",") if re.fullmatch(r"[\w.\-, ]+", text) else [text]


def _in_layer(wanted: list[str], modules: list[str], layer: int) -> bool:
    for target in wanted:
        if not _NAME.fullmatch(target):
            found = _pattern(target)
            paths = (f"{root}.{layer}.{module}" for root in _ROOTS for module in modules)
            if found is not None and any(map(found.fullmatch, paths)):
                return True
            continue
        number = _NUMBERED.match(target) if any(map(str.isdigit, target)) else None
        paths = (f".{module}" for module in modules)
        if number is not None and "experts" not in target:
            paths = (f".{root}.{layer}.{module}" for root in _ROOTS for module in modules)
        if any(path.endswith(f".{target}") for path in paths):
            return True
    return False


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str] | None:
    """Return a pattern that may be tried, or None."""
    if len(text) > _LONGEST or _NESTED.search(text) or len(_REPEATS.findall(text)) > _MOST_REPEATS:
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return None
