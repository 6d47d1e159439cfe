"""Which files a run may touch: those of the repository that a config is in, or of the folder that was named.

The command line is trusted; what a repository holds is not, be it a config, a setting, a rule file or a link.
Whatever one of those names is touched only if its real path lies in the same repository (see SECURITY.md).
"""

from __future__ import annotations

import os

from cfglint import files
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DEEPEST = 64  # folders that are looked through for a project
_REPOSITORY = (".git",)  # a folder, or in a worktree a file
# A project without its repository, such as an archive that somebody downloaded.
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "LICENSE", "LICENSE.md", "LICENSE.txt", ".github")
# Where there is none of these: examples in folders of a project may have such files of their own, too.
_NEEDS = ("requirements.txt", "environment.yml", "environment.yaml")
ADVICE = "--allow-outside reads and writes it all the same"


class Boundary:
    """The folders that files may not lead out of; ``named`` are the paths of the command line.

    With ``everywhere`` there is none.
    """

    def __init__(self, named: Sequence[str] = (), *, everywhere: bool = False) -> None:
        self.named = named
        self.everywhere = everywhere
        self._roots: dict[str, str] = {}
        self._real: dict[str, str] = {}

    def holds(self, path: str, by: str) -> bool:
        """Whether what stands at ``path`` may be touched for the file ``by``, which may be the same."""
        if self.everywhere:
            return True
        root = self.root(by)
        place = os.path.abspath(path)
        straight = ".." not in path.split(os.sep)  # else a link before it may lead elsewhere than it seems
        if straight and inside(place, root) and not any(map(files.is_link, _below(place, root))):
            return not _is_git(place, root)
        if root not in self._real:
            self._real[root] = files.real(root)
        around = self._real[root]
        ends = {files.real(place), files.real(path)}
        return all(inside(real, around) and not _is_git(real, around) for real in ends)

    def check(self, path: str, *, given: bool = False) -> None:
        """Raise UsageError for a path that a link leads out of its repository.

        One that is ``given`` on the command line may be a stream of the process, such as /dev/stdin.
        """
        by = os.path.join(path, "any") if files.is_folder(path) else path
        if not self.holds(path, by) and (not given or files.is_ordinary(path)):
            raise UsageError(f"{path}: a link that leads out of {self.root(by)}; {ADVICE}")

    def root(self, path: str) -> str:
        """Return the folder that the file at ``path`` may not lead out of, before any link is followed.

        That is its repository, else the folder on the command line that it is in, else the nearest folder
        that looks like a project's, else the nearest that says what it needs, else the working folder if the
        file is in it, else the file's own.
        """
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in self._roots:
            self._roots[folder] = self._around(self._before_links(folder)) or folder
        return self._roots[folder]

    def repository(self, folder: str) -> str | None:
        """Return the repository that a folder is in, by its name; None where it is in none."""
        return _nearest(self._before_links(os.path.abspath(folder)), _REPOSITORY)

    def _around(self, folder: str) -> str | None:
        return (
            _nearest(folder, _REPOSITORY)
            or self._named(folder)
            or _nearest(folder, _PROJECT)
            or _nearest(folder, _NEEDS)
            or _here(folder)
        )

    def _before_links(self, folder: str) -> str:
        """Return where the first link of a root on the way to a folder is; without one, the folder.

        What lies behind such a link has no say in where the root is, a ``.git`` least of all.
        """
        if files.real(folder) != folder:
            for at in reversed(list(upwards(folder))):
                if files.is_link(at) and self._around(os.path.dirname(at)) is not None:
                    return os.path.dirname(at)
        return folder

    def _named(self, folder: str) -> str | None:
        around = [at for at in map(os.path.abspath, self.named) if inside(folder, at)]
        return max(around, key=len, default=None)


def _nearest(folder: str, signs: Sequence[str]) -> str | None:
    wide = _too_wide()
    for at in upwards(folder):
        if at in wide:
            return None
        if any(files.exists(os.path.join(at, sign)) for sign in signs):
            return at
    return None


def _here(folder: str) -> str | None:
    here = os.getcwd()
    return here if inside(folder, here) and here not in _too_wide() else None


def _below(path: str, root: str) -> Iterator[str]:
    """Yield a path and the folders between it and the root, the nearest first."""
    while path != root:
        yield path
        path = os.path.dirname(path)


def _is_git(path: str, root: str) -> bool:
    """Whether a path is git's own: its settings may hold a token, and its hooks are run."""
    return ".git" in path[len(root) :].split(os.sep)


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the nearest first."""
    at = os.path.abspath(folder)
    for _ in range(_DEEPEST):
        yield at
        above = os.path.dirname(at)
        if above == at:
            return
        at = above


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder's, or the folder itself; both are absolute."""
    return path == folder or path.startswith(os.path.join(folder, ""))


def _too_wide() -> list[str]:
    """Return the folders that are nobody's project: the home folder, whatever is in it, and those above."""
    return [os.path.abspath(os.sep), *upwards(files.home() or os.path.expanduser("~"))]
