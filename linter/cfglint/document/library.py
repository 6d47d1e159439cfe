"""The other files that configs name: looked for beside them, read through a function from above, parsed once.

Nothing here touches the disk. A `Reader` comes from whoever may (the command line); without one, what a
second file would say is unknown.
"""

from __future__ import annotations

import os

from cfglint.document.document import format_of, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from cfglint.document.document import File

    Reader: TypeAlias = Callable[[str], bytes | None]

_DEEPEST_FOLDER = 64


class Library:
    """Files by their paths; ``read`` gives a file's bytes, and None for what is no file."""

    __slots__ = ("_files", "_roots", "read")

    def __init__(self, read: Reader) -> None:
        self.read = read
        self._files: dict[str, File | None] = {}
        self._roots: dict[str, str | None] = {}

    def file(self, path: str) -> File | None:
        """Return the file at ``path``, parsed; None where there is none, or where it is a script."""
        path = os.path.normpath(path)
        key = os.path.abspath(path)
        if key not in self._files:
            data = self.read(path) if format_of(path) != "shell" else None
            self._files[key] = None if data is None else read(data, path)
        return self._files[key]

    def beside(self, path: str, name: str) -> File | None:
        """Return the file ``name`` as seen from the folder of the file ``path``, and from nowhere else."""
        return self.file(os.path.join(os.path.dirname(path), name)) if _is_name(name) else None

    def find(self, path: str, name: str) -> File | None:
        """Return the file that a config at ``path`` names, and a job would find from where people start it.

        That is seen from the config's own folder, then the working folder, then the folders above the config,
        the nearest first, up to the one that holds ``.git``.
        """
        if not _is_name(name):
            return None
        for place in self._places(path, name):
            found = self.file(place)
            if found is not None:
                return found
        return None

    def _places(self, path: str, name: str) -> Iterator[str]:
        yield os.path.join(os.path.dirname(path), name)
        if os.path.isabs(name):
            return
        yield name
        folder = os.path.dirname(path)
        top = self.root(folder)
        at = os.path.abspath(folder)
        while top is not None and at != top:
            at = os.path.dirname(at)
            above = os.path.join(at, name)
            yield above if os.path.isabs(path) else os.path.relpath(above)

    def root(self, folder: str) -> str | None:
        """Return the folder of the repository that ``folder`` is in, None where it is in none."""
        folder = os.path.abspath(folder)
        if folder not in self._roots:
            at = folder
            self._roots[folder] = None
            for _ in range(_DEEPEST_FOLDER):
                git = os.path.join(at, ".git")  # a folder, or in a worktree a file
                if self.read(os.path.join(git, "HEAD")) is not None or self.read(git) is not None:
                    self._roots[folder] = at
                    break
                above = os.path.dirname(at)
                if above == at:
                    break
                at = above
        return self._roots[folder]


def same(one: str, other: str) -> bool:
    """Whether two paths lead to one file, as far as their spelling tells."""
    return os.path.abspath(one) == os.path.abspath(other)


def _is_name(name: str) -> bool:
    return 0 < len(name) < 4096 and "\0" not in name and "\n" not in name and "://" not in name
