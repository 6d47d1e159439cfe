"""What collectors share: reading a repository at a commit, and writing rows into benchmarks/data."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "data"
GIB = 2**30
MOST = 25  # rows of a group and statistic, so that one sweep does not drown the rest
ALL_LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A public repository, bare or not, at one commit."""

    name: str  # owner/name
    git: Path
    commit: str

    def read(self, path: str) -> str:
        """Return a file's text at the commit."""
        return self._git("show", f"{self.commit}:{path}")

    def names(self, folder: str) -> list[str]:
        """Return the paths of all files in a folder."""
        return self._git("ls-tree", "-r", "--name-only", self.commit, folder).split("\n")[:-1]

    def at(self, where: str) -> str:
        """Return where a row comes from, as its ``source`` has it."""
        return f"{self.name}:{where} @{self.commit[:12]}"

    def _git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "--git-dir", str(self.git), *words], check=True, capture_output=True, text=True
        ).stdout


def checkout(folder: Path, name: str, commit: str) -> Checkout | None:
    """Return the repository in ``folder``: OWNER+NAME/repo, OWNER+NAME or OWNER/NAME, bare or with .git.

    Without a commit it is a folder of files, found under $CFGLINT_SHARED's parent.
    """
    if not commit:
        path = Path(os.environ.get("CFGLINT_SHARED", folder / "shared")).parent / name
        return Checkout(name, path, commit) if path.is_dir() else None
    for path in (folder / name.replace("/", "+") / "repo", folder / name.replace("/", "+"), folder / name):
        for git in (path / ".git", path):
            if (git / "HEAD").is_file():
                return Checkout(name, git, commit)
    return None


def measured(  # noqa: PLR0913 - a row's fields, by name
    ident: str,
    source: str,
    family: str,
    peak: float | Sequence[float],
    statistic: str,
    gpu: str | None,
    facts: Row,
    *,
    framework: str,
    assumed: Iterable[str] = (),
    ready: bool = True,
    confidence: str = "high",
    **more: Any,
) -> Row:
    """Return a row of published.yaml; ``more`` are fields that few rows have."""
    low, high = (peak, peak) if isinstance(peak, (int, float)) else peak
    row: Row = {"id": ident, "framework": framework, "source": source, "group": group_of(source, family)}
    row |= {"estimator_ready": ready, "statistic": statistic}
    if "likely" in more:
        row["likely"] = more.pop("likely")
    row |= {"scope": more.pop("scope", "per_gpu"), "of": more.pop("of", "trainer")}
    row |= {"peak_gib": [round(low, 3), round(high, 3)], "gpu": gpu, "gpus": facts["num_gpus"], "ran": True}
    row |= {"seq_reached": more.pop("seq_reached", True), "confidence": confidence}
    missing = more.pop("missing", [])
    row |= {name: more[name] for name in sorted(more) if more[name] is not None}
    row |= {"facts": facts}
    return row | ({"assumed": list(assumed)} if assumed else {}) | {"missing": missing}


def outcome(  # noqa: PLR0913 - a row's fields, by name
    ident: str,
    source: str,
    family: str,
    result: str,
    gpu: str,
    facts: Row,
    *,
    framework: str,
    assumed: Iterable[str] = (),
    stated: bool | None = None,
    confidence: str = "high",
    **more: Any,
) -> Row:
    """Return a row of outcomes.yaml; recall is counted on out-of-memory runs unless ``stated`` is false."""
    row: Row = {"id": ident, "framework": framework, "source": source, "group": group_of(source, family)}
    row |= {"result": result, "gpu": gpu, "gpus": facts["num_gpus"], "device": "gpu"}
    row |= {"states_what_is_needed": result == "oom" if stated is None else stated, "confidence": confidence}
    missing = more.pop("missing", [])
    row |= {name: more[name] for name in sorted(more) if more[name] is not None}
    row |= {"facts": facts}
    return row | ({"assumed": list(assumed)} if assumed else {}) | {"missing": missing}


def group_of(source: str, family: str) -> str:
    """Return what the split goes by: the project that published, and the model's family."""
    return f"{source.split(':', maxsplit=1)[0].split('#', maxsplit=1)[0]}|{family}"


def thinned(rows: Iterable[Row], most: int = MOST) -> list[Row]:
    """Return at most ``most`` rows of each group and statistic (or result), evenly in the source's order."""
    piles: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        piles[row["group"], row.get("statistic") or row["result"]].append(row)
    kept = {
        id(pile[index * len(pile) // min(most, len(pile))])
        for pile in piles.values()
        for index in range(min(most, len(pile)))
    }
    return [row for pile in piles.values() for row in pile if id(row) in kept]


def write(name: str, prefix: str, rows: Sequence[Row]) -> None:
    """Put ``rows`` into a data file in place of those whose id starts with ``prefix``, or at its end."""
    path = DATA / f"{name}.yaml"
    head, *blocks = path.read_text(encoding="utf-8").rstrip("\n").split("\n- id: ")
    old = [index for index, block in enumerate(blocks) if block.startswith(prefix)]
    where = old[0] if old else len(blocks)
    blocks = [block for block in blocks if not block.startswith(prefix)]
    blocks[where:where] = [_text(row).removeprefix("- id: ") for row in rows]
    path.write_text("\n- id: ".join([head, *blocks]) + "\n", encoding="utf-8")


def _text(row: Row) -> str:
    return "- " + "\n  ".join(f"{name}: {_value(value)}" for name, value in row.items())


def _value(value: object) -> str:
    """Return a value as YAML of one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
    return text.removesuffix("...\n").strip()
