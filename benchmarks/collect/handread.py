"""handread.yaml: small tables that a person read, each row with the words of the source that say so.

A quote that does not stand in the source's file at its commit stops the collection; threads are not
fetched. ``settings`` are what the run's own config or launch sets, by the names of the block that reads
them (``reader``, the framework's by default): a row's lie over its source's, and null takes one away. With
them the facts are only what they do not tell, unless a row's ``settings`` is null. A row's ``flags`` go
after its source's ``command``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from rows import GIB, checkout, measured, outcome

if TYPE_CHECKING:
    from rows import Row

PREFIX = "read-"
SOURCES = Path(__file__).with_name("handread.yaml")
HERE = (
    "unchecked",
    "repo",
    "commit",
    "path",
    "config",
    "settings",
    "flags",
    "family",
    "measured",
    "outcomes",
    "id",
    "quote",
    "result",
    "peak",
    "gb",
    "bytes",
)
GB = 1e9


def collect_from(folder: Path, path: Path = SOURCES, prefix: str = PREFIX) -> tuple[list[Row], list[Row]]:
    """Return the measured rows and the outcomes of all sources, checked against ``folder``'s repositories."""
    for source in _sources(path):
        if not source.get("unchecked"):
            _check(source, folder)
    return rows_of_all(path, prefix)


def rows_of_all(path: Path = SOURCES, prefix: str = PREFIX) -> tuple[list[Row], list[Row]]:
    """Return the measured rows and the outcomes of all sources."""
    published: list[Row] = []
    outcomes: list[Row] = []
    for source in _sources(path):
        published += [_measured(source | row, source, prefix) for row in source.get("measured", ())]
        outcomes += [_outcome(source | row, source, prefix) for row in source.get("outcomes", ())]
    return published, outcomes


def _sources(path: Path) -> list[Row]:
    found: list[Row] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _check(source: Row, folder: Path) -> None:
    found = checkout(folder, source["repo"], source["commit"])
    if found is None:
        raise SystemExit(f"handread: no checkout of {source['repo']} in {folder}")
    for row in (*source.get("measured", ()), *source.get("outcomes", ())):
        path = row.get("path", source["path"])
        if row["quote"] not in found.read(path):
            raise SystemExit(f"handread: {row['id']}: not in {found.at(path)}: {row['quote']}")


def _measured(row: Row, source: Row, prefix: str) -> Row:
    fields = _fields(row, source)
    statistic, gpu, facts = fields.pop("statistic"), fields.pop("gpu"), fields.pop("facts")
    around = fields.pop("around", 0.0)
    if "gb" in row:
        peak: Any = [(row["gb"] - around) * GB / GIB, row["gb"] + around]
    elif "bytes" in row:
        peak = row["bytes"] / GIB
    else:
        peak = [row["peak"] - around, row["peak"] + around]
    return measured(prefix + row["id"], _where(row), row["family"], peak, statistic, gpu, facts, **fields)


def _outcome(row: Row, source: Row, prefix: str) -> Row:
    fields = _fields(row, source)
    gpu, facts = fields.pop("gpu"), fields.pop("facts")
    for name in ("statistic", "likely", "around", "of", "ready"):
        fields.pop(name, None)
    return outcome(prefix + row["id"], _where(row), row["family"], row["result"], gpu, facts, **fields)


def _where(row: Row) -> str:
    config = f" + {row['config']}" if "config" in row else ""
    if "issue" in row:
        commit = f" @{row['commit'][:12]}" if "commit" in row else ""
        return f"{row['repo']}#{row['issue']}{config}{commit}"
    return f"{row['repo']}:{row['path']}{config} @{row['commit'][:12]}"


def _fields(row: Row, source: Row) -> Row:
    """Return the row's other fields; facts and settings lie over its source's, and null takes one away."""
    fields = {name: value for name, value in row.items() if name not in HERE}
    facts = _over(source["facts"], row["facts"])
    if row.get("settings") is not None:
        fields["config"] = _over(source.get("settings", {}), row["settings"])
    else:
        fields.pop("reader", None)
    if "assumed" in fields:  # by the source: some of its rows may not have it
        told = {*facts, *fields.get("config", ())}
        fields["assumed"] = [name for name in fields["assumed"] if name in told]
    if "flags" in row:
        fields["command"] = f"{row['command']} {row['flags']}"
    return fields | {"facts": facts}


def _over(below: Row, above: Row) -> Row:
    return {name: value for name, value in (below | above).items() if value is not None}
