"""What a file was in the commits that git compares with, asked so that no repository can make git act."""

from __future__ import annotations

import os
import subprocess

from cfglint import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 5
_LARGEST = 2**24  # bytes
MAX_FILES = 20  # that git is asked for in a run
# What a pull request or a merge request is compared with, as CI systems name it.
_BRANCHES = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "CHANGE_TARGET",
    "BITBUCKET_PR_DESTINATION_BRANCH",
)
_COMMITS = ("CI_MERGE_REQUEST_DIFF_BASE_SHA",)
# No hook, no monitor of files, no transport, no question; a repository's own settings cannot take these back.
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
_ALONE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
}


def former(path: str, most: int) -> Iterator[bytes]:
    """Yield up to ``most`` bytes of what a file was: in HEAD, in its parent, in the branch to merge into."""
    git = files.program("git")
    if git is None:
        return
    folder, name = os.path.split(os.path.abspath(path))
    branches = [f"origin/{os.environ[name]}" for name in _BRANCHES if os.environ.get(name)]
    commits = [os.environ[name] for name in _COMMITS if os.environ.get(name)]
    for commit in ("HEAD", "HEAD^", *branches, *commits):
        ask, blob = [git, "-C", folder, *_QUIET, "cat-file"], f"{commit}:./{name}"
        size = _asked([*ask, "-s", blob]).strip()
        if size.isdigit() and len(size) < 12 and 0 < int(size) <= _LARGEST:
            yield _asked([*ask, "blob", blob])[:most]


def _asked(command: list[str]) -> bytes:
    environ = {**os.environ, **_ALONE}
    with subprocess.Popen(  # noqa: S603 (git itself, by its absolute path)
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            return process.communicate(timeout=_SECONDS)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return b""
