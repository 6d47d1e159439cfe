"""What a file was in the commits that git compares with, asked so that no repository can make git act.

git runs in an empty repository of our own, which borrows the objects of the strange one: nothing that came
with that is taken for settings, and what is no object of its own is not looked for elsewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading

from cfglint import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 5
_LARGEST = 2**24  # bytes
_MOST_OBJECTS = 50_000  # files of a repository's store that are looked at
# What a pull request or a merge request is compared with, as CI systems name it.
_BRANCHES = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "CHANGE_TARGET",
    "BITBUCKET_PR_DESTINATION_BRANCH",
)
_COMMITS = ("CI_MERGE_REQUEST_DIFF_BASE_SHA",)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_LINKS = 5  # from a reference to the next
# No settings but ours, no transport, no question, no second version of an object.
_ALONE = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


class History:
    """What the files of one repository were; ``root`` is its folder.

    Nothing comes from a worktree or a submodule, whose objects lie elsewhere, nor from a repository that
    leads to another one's.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._commits: list[str] = []
        store, git = os.path.join(root, ".git"), files.program("git")
        commits = _commits(store) if git is not None and _is_alone(store) else []
        if git is None or not commits:
            return
        with files.scratch_folder() as own:
            environ = _repository(own, store, len(commits[0]))
            self._sizes, self._contents = (_Git(git, how, environ) for how in ("--batch-check", "--batch"))
            if self._sizes.answer(commits[0]) and self._contents.answer(commits[0]):  # both have started
                self._commits = commits

    def former(self, path: str, most: int) -> Iterator[bytes]:
        """Yield up to ``most`` bytes of a file: in HEAD, in its parent, in the branch to merge into."""
        name = os.path.relpath(os.path.abspath(path), self.root).replace(os.sep, "/")
        if "\n" in name:
            return
        for commit in self._commits:
            kind, size, _ = self._sizes.answer(f"{commit}:{name}") or ("", 0, b"")
            found = self._contents.answer(f"{commit}:{name}") if kind == "blob" and size <= _LARGEST else None
            if found is not None and found[2]:
                yield found[2][:most]


class _Git:
    """A ``git cat-file`` that answers one question after the other; one that is late is asked no more."""

    def __init__(self, git: str, how: str, environ: dict[str, str]) -> None:
        self._whole = how == "--batch"
        self._process = subprocess.Popen(  # noqa: S603 (git itself, by its absolute path)
            [git, "cat-file", how],
            env=environ,
            cwd=os.path.abspath(os.sep),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __del__(self) -> None:
        self._process.communicate()  # nothing more to ask: it ends

    def answer(self, name: str) -> tuple[str, int, bytes] | None:
        """Return the kind, the size and, where it is asked for, the content of an object; None without it."""
        watch = threading.Timer(_SECONDS, self._process.kill)
        watch.start()
        try:
            return self._answer(name)
        except OSError:  # it has ended
            return None
        finally:
            watch.cancel()

    def _answer(self, name: str) -> tuple[str, int, bytes] | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(os.fsencode(f"{name}\n"))
        self._process.stdin.flush()
        _, _, said = self._process.stdout.readline().partition(b" ")
        kind, _, size = said.strip().rpartition(b" ")
        if not size.isdigit():  # such as "missing"
            return None
        content = self._process.stdout.read(int(size) + 1)[:-1] if self._whole else b""
        return kind.decode(), int(size), content


def _commits(store: str) -> list[str]:
    """Return the commits that a file is looked for in."""
    head = _commit(store, "HEAD")
    branches = [f"refs/remotes/origin/{os.environ[name]}" for name in _BRANCHES if os.environ.get(name)]
    named = [commit for branch in branches if (commit := _commit(store, branch))]
    named += [os.environ[name] for name in _COMMITS if _COMMIT.fullmatch(os.environ.get(name, ""))]
    return [*([head, f"{head}^"] if head else []), *named]


def _commit(store: str, reference: str) -> str:
    """Return the commit that a reference stands for, empty where none is found."""
    for _ in range(_MOST_LINKS):
        parts = reference.split("/")
        if ".." in parts or reference.startswith("/") or (parts[0] != "refs" and reference != "HEAD"):
            return ""
        text = _text(os.path.join(store, *parts)).strip() or _packed(store, reference)
        if not text.startswith("ref: "):
            return text if _COMMIT.fullmatch(text) else ""
        reference = text.removeprefix("ref: ").strip()
    return ""


def _packed(store: str, reference: str) -> str:
    lines = _text(os.path.join(store, "packed-refs")).splitlines()
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {reference}")), "")


def _text(path: str) -> str:
    at = path
    while os.path.basename(at) != ".git":  # a reference that a link leads to is another repository's
        if files.is_link(at):
            return ""
        at = os.path.dirname(at)
    try:
        return files.read_bytes(path, _LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _is_alone(store: str) -> bool:
    """Whether a repository's objects are its own, and not those of another one that it leads to."""
    objects = os.path.join(store, "objects")
    if any(files.is_link(place) or not files.is_folder(place) for place in (store, objects)):
        return False
    if files.is_taken(os.path.join(objects, "info", "alternates")) or files.is_taken(
        os.path.join(store, "commondir")
    ):
        return False
    seen = 0
    for _, below, names, links in files.walk(objects):
        seen += len(below) + len(names)
        if seen > _MOST_OBJECTS or links:
            return False
    return True


def _repository(folder: str, store: str, digits: int) -> dict[str, str]:
    """Make an empty repository in a folder; return the environment in which git reads the store's objects."""
    form = "\tobjectFormat = sha256\n" if digits > 40 else ""
    config = f"[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n{form}"
    files.write(os.path.join(folder, "config"), config.encode())
    files.write(os.path.join(folder, "HEAD"), b"ref: refs/heads/none\n")
    files.make_folder(os.path.join(folder, "refs"))
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**others, **_ALONE, "GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": os.path.join(store, "objects")}
