"""Where a framework's files are read from: a git directory at a revision, a checkout, or a wheel."""

from __future__ import annotations

import subprocess
import zipfile
from functools import cache
from pathlib import Path


class SourceError(Exception):
    """Something is not where the generator was told; the text says what to give it."""


class Tree:
    """The files of one framework in one version; ``label`` says which, as schemas cite it."""

    def __init__(self, root: str, version: str, label: str) -> None:
        self.root = root
        self.version = version
        self.label = label
        self.read: list[str] = []  # what was read, in that order

    def text(self, path: str) -> str | None:
        """Return a file's text; None where there is no such file."""
        found = _text(self.root, self.version, path)
        if found is not None and path not in self.read:
            self.read.append(path)
        return found


@cache
def _text(root: str, version: str, path: str) -> str | None:
    if (Path(root) / "HEAD").is_file():
        done = subprocess.run(
            ["git", "-C", root, "show", f"{version}:{path}"], check=False, capture_output=True
        )
        return done.stdout.decode() if done.returncode == 0 else None
    if root.endswith(".whl"):
        with zipfile.ZipFile(root) as archive:
            return archive.read(path).decode() if path in archive.namelist() else None
    file = Path(root) / path
    return file.read_text(encoding="utf-8") if file.is_file() else None


def tree(name: str, places: dict[str, str], version: str) -> Tree:
    """Return the files of ``name`` in a version: a tag or commit, or the version of a wheel in a folder."""
    place = places.get(name)
    if place is None:
        raise SourceError(
            f"say where {name} is: --from {name}=DIR (a git directory, a checkout or its wheels)"
        )
    root = Path(place)
    for inner in (root, root / ".git", root / "repo"):
        if (inner / "HEAD").is_file():
            commit = subprocess.run(
                ["git", "-C", str(inner), "rev-parse", "--short=8", f"{version}^{{commit}}"],
                check=False, capture_output=True, text=True,
            )  # fmt: skip
            if commit.returncode:
                raise SourceError(f"{name}: {inner} has no revision {version}; fetch its tags")
            return Tree(str(inner), version, f"{version} ({commit.stdout.strip()})")
    wheels = sorted(root.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if wheels:
        return Tree(str(wheels[0]), version, version)
    raise SourceError(f"{name}: {place} holds neither a git directory nor the wheel of {version}")
