"""Mutation testing: how many small changes of the engine, the editor and the search some test notices.

``python benchmarks/mutation.py [GROUP…] [--minutes 10] [--seed 14]`` (``pip install cosmic-ray``), on a copy.
Of all places that can be changed, a random sample is, as many as the minutes of each group allow, with one
change at each. Prints the score of each module, and the diffs of what survived.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 180  # of the tests on one mutant: then it hangs, which counts as noticed
# What is changed, and the tests that should notice, the quickest first.
GROUPS = {
    "engine": (["engine"], ["blame", "engine", "facts", "clashes", "once", "repair", "explain"]),
    "editor": (
        ["document/edits.py", "repair/write.py"],
        ["mutants", "document_edits", "document_toml", "shell", "repair"],
    ),
    "search": (
        ["repair/search.py", "repair/solve.py"],
        ["repair", "repair_together", "repair_cheapest", "repair_keys"],
    ),
    "values": (["lang/values.py"], ["dsl_properties", "dsl_reference", "dsl_meaning"]),
}
# Annotations are never evaluated, identity of small numbers is equality, and arithmetic beyond +-*/ says
# nothing more.
LEFT_OUT = (
    "BitOr",
    "_Is",
    "_IsNot",
    "_Mod",
    "_Pow",
    "Shift",
    "_BitAnd",
    "_BitXor",
    "RemoveDecorator",
    "Variable",
)


def main() -> int:
    """Run the groups that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="default: all")
    parser.add_argument("--minutes", type=float, default=10, help="for each group")
    parser.add_argument("--seed", type=int, default=14)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cfglint-mutation-") as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(
            ROOT,
            copy,
            ignore=shutil.ignore_patterns(".git", ".fuzz", ".hypothesis", "__pycache__", ".*_cache"),
        )
        for group in given.groups or GROUPS:
            _run(copy, group, given.minutes, random.Random(given.seed))
    return 0


def _run(copy: Path, group: str, minutes: float, chance: random.Random) -> None:
    from cosmic_ray.commands import init
    from cosmic_ray.modules import find_modules
    from cosmic_ray.work_db import WorkDB, use_db

    places, tests = GROUPS[group]
    os.chdir(copy)
    files = [Path("linter/cfglint") / place for place in places]
    modules = sorted(m for m in find_modules(files) if m.name != "__init__.py")
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider"),
        *("-o", "addopts=--import-mode=importlib", "-m", "not long and not slow"),
        *(f"tests/test_{name}.py" for name in tests),
    ]
    env = {**os.environ, "PYTHONPATH": str(copy / "linter"), "CI": "true", "PYTHONDONTWRITEBYTECODE": "1"}
    if not _passes(command, env):
        sys.exit(f"{group}: the tests fail without any change: {' '.join(command)}")
    with use_db(str(copy.parent / f"{group}.sqlite"), WorkDB.Mode.create) as database:
        init(modules, database, {})
        chosen = _sample(database.work_items, chance)
    count: Counter[tuple[str, bool]] = Counter()
    survived: list[str] = []
    end = time.monotonic() + 60 * minutes
    for item in chosen:
        if time.monotonic() > end:
            break
        (mutation,) = item.mutations
        killed, diff = _try(mutation, command, env)
        count[mutation.module_path.name, killed] += 1
        print("·" if killed else "S", end="", flush=True)
        survived += [] if killed else [diff]
    print(f"\n{group}: of {len(chosen):,} places, changed were")
    for name in sorted({name for name, _ in count}):
        noticed, missed = count[name, True], count[name, False]
        print(f"  {name:24} {noticed + missed:4}, noticed {noticed:4} ({noticed / (noticed + missed):.0%})")
    print(*survived, sep="\n", flush=True)


def _sample(items: Any, chance: random.Random) -> list[Any]:
    """Return one change of each place, places in random order."""
    places: dict[tuple[str, object], list[Any]] = {}
    for item in items:
        (mutation,) = item.mutations
        if not any(word in mutation.operator_name for word in LEFT_OUT):
            places.setdefault((str(mutation.module_path), mutation.start_pos), []).append(item)
    chosen = [
        chance.choice(
            sorted(places[place], key=lambda i: (i.mutations[0].operator_name, i.mutations[0].occurrence))
        )
        for place in sorted(places)
    ]
    chance.shuffle(chosen)
    return chosen


def _try(mutation: Any, command: list[str], env: dict[str, str]) -> tuple[bool, str]:
    """Return whether the tests notice a change, and its diff."""
    from cosmic_ray.mutating import apply_mutation
    from cosmic_ray.plugins import get_operator

    before = mutation.module_path.read_text()
    try:
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        old, new = apply_mutation(mutation.module_path, operator, mutation.occurrence)
        if new is None:
            return True, ""
        return not _passes(command, env), _diff(str(mutation.module_path), old, new)
    finally:
        mutation.module_path.write_text(before)


def _passes(command: list[str], env: dict[str, str]) -> bool:
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _diff(path: str, old: str, new: str) -> str:
    import difflib

    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, n=1, lineterm="")
    return "\n".join(list(lines)[1:])


if __name__ == "__main__":
    sys.exit(main())
