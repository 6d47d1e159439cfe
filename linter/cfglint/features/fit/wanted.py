"""The facts that a need misses, in words, and what would give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.tree import dotted
from cfglint.engine.memory import Wanted
from cfglint.lang import tree as t
from cfglint.lang.tree import paths_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.facts import Values
    from cfglint.lang.pack import Pack
    from cfglint.lang.symbols import Symbols


def wanted(pack: Pack, values: Values, framework: str | None, needs: Iterable[str]) -> tuple[Wanted, ...]:
    """Say what missing facts are and what would give them; the figures of one model are told together."""
    symbols = pack.symbols()
    by_model: dict[str, list[str]] = {}
    found: list[Wanted] = []
    for name in needs:
        prefix = name.partition(".")[0]
        if name == "model_config":  # what stands for all the figures of a model that no table has
            by_model.setdefault("model", []).append(name)
        elif prefix in symbols.registries:
            by_model.setdefault(prefix, []).append(name)
        elif name.startswith("gpu."):
            found.append(Wanted((name,), _about(symbols, name), "a sheet of the machine: --hardware FILE"))
        elif name.startswith("$."):
            found.append(Wanted((name[2:],), "a key of the file", f"a value: --set {name[2:]}=VALUE"))
        else:
            found.append(Wanted((name,), _about(symbols, name), _advice(symbols, framework, name)))
    models = [_figures(values, prefix, names) for prefix, names in by_model.items()]
    return (*models, *found)


def _figures(values: Values, prefix: str, names: list[str]) -> Wanted:
    about = "figures of the model" if prefix == "model" else f"figures of the {prefix}'s model"
    path = values["model_path" if prefix == "model" else f"{prefix}.model_path"]
    if isinstance(path, str):
        about += f" {path} that cfglint does not have"
    if prefix == "model":
        return Wanted(tuple(names), about, "its config.json: --model-config PATH")
    return Wanted(tuple(names), about, f"a value to reckon with: --vary {names[0]}=VALUE")


def _advice(symbols: Symbols, framework: str | None, name: str) -> str:
    keys = dict.fromkeys(
        dotted(path)
        for node in symbols.frameworks.get(framework or "", ())
        for entry in node.entries
        if isinstance(entry, t.Binding) and entry.name == name
        for path in paths_in(entry.source)
    )
    stated = f"--vary {name}=VALUE"
    if not keys:
        return f"a value to reckon with: {stated}"
    return f"the key {' or '.join(list(keys)[:3])}, or a value to reckon with: {stated}"


def _about(symbols: Symbols, name: str) -> str:
    fact = symbols.facts.get(name)
    return fact.about if fact is not None else ""
