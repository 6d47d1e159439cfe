"""Which configs the paths of a command line mean, and what is in them."""

from __future__ import annotations

import errno
import os

from cfglint import files
from cfglint.command.output import say
from cfglint.document.reading import read
from cfglint.document.tree import MAX_BYTES, SCRIPTS, STARTERS, File
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.boundary import Boundary
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject

SUFFIXES = (".yaml", ".yml", ".json", ".toml", *SCRIPTS)
STDIN = "<stdin>"
_NOT_ENTERED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
# In folders, a file larger than this is data; a file named on its own is read up to MAX_BYTES.
_BIGGEST_FOUND = 2**20
# One of these is in every script that launches a job; scripts of a folder without are not parsed.
_LAUNCHERS = tuple(word.encode() for word in STARTERS)
# A link to nowhere, or removed since the folder was listed.
_GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)


def find(paths: list[str], complain: Callable[[str], None]) -> Iterator[tuple[str, bool]]:
    """Yield the files that ``paths`` mean, each once, with whether it was named itself.

    ``complain`` is told of folders that cannot be read.
    """

    def unreadable(error: OSError) -> None:
        complain(f"{error.filename}: cannot be read: {files.why(error)}")

    folders = {path for path in paths if path != "-" and files.is_folder(path)}
    seen = {os.path.normpath(path) for path in paths if path not in folders}
    for path in dict.fromkeys(paths):
        if path not in folders:
            yield path, True
            continue
        for at, below, names in files.walk(path, unreadable):
            below[:] = sorted(f for f in below if not f.startswith(".") and f not in _NOT_ENTERED)
            for name in sorted(names):
                if name.endswith(SUFFIXES) and not name.startswith("."):
                    place = os.path.normpath(os.path.join(at, name))
                    if place not in seen:
                        seen.add(place)
                        yield place, False


def load(path: str, boundary: Boundary, *, named: bool) -> tuple[File, bytes] | None:
    """Read and parse a file; None for one found in a folder that is not a config by its size or kind.

    Returns the bytes as well, for whoever writes the file unchanged. Raises UsageError.
    """
    if path == "-":
        data = files.stdin(MAX_BYTES + 1)
        return read(data, STDIN), data
    if named:
        boundary.check(path)
    elif not boundary.holds(path, path):
        return None
    content = _bytes(path, named=named)
    if content is None:
        return None
    try:
        return read(content, path), content
    except UsageError as error:  # the extra is not installed: said once, and the configs are judged
        if named:
            raise
        if not _left_out:
            _left_out.append(path)
            say(f"launch scripts are skipped: {error}")
        return None


def _bytes(path: str, *, named: bool) -> bytes | None:
    """Return the bytes of what may be a config; None for what else a folder holds. Raises UsageError."""
    try:
        data = files.read_config(path, MAX_BYTES, None if named else _BIGGEST_FOUND)
    except OSError as error:
        if not named and error.errno in _GONE:
            return None
        missing = isinstance(error, FileNotFoundError)
        why = "no such file or folder" if missing else f"cannot be read: {files.why(error)}"
        raise UsageError(f"{path}: {why}") from None
    if data is None:
        return None
    binary = b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if named and binary:
        raise UsageError(f"{path}: a binary file, not a config")
    idle = path.endswith(SCRIPTS) and not any(word in data for word in _LAUNCHERS)
    return None if not named and (binary or idle) else data


_left_out: list[str] = []


SKIP = ", or pass --skip-unknown"


def unknown(path: str, otherwise: str = "") -> str:
    """Say that no framework recognises a file, and how to name one."""
    return (
        f"{path}: no framework recognises this file; name one with --framework NAME "
        f"(cfglint frameworks lists them){otherwise}"
    )


def named(path: str, boundary: Boundary) -> File:
    """Read the one file that a command is about. Raises UsageError."""
    loaded = load(path, boundary, named=True)
    assert loaded is not None
    return loaded[0]


def recognised(run: Run, file: File, path: str) -> list[Subject]:
    """Return the documents of a file that parses, as their frameworks see them. Raises UsageError."""
    for document in file.documents:
        if document.error is not None:
            line, column = file.lines.position(min(document.error.offset or 0, len(file.text)))
            raise UsageError(f"{file.path}:{line}:{column}: {document.error}; run cfglint check on it first")
    subjects = run.subjects(file, judge_broken=False)
    if not subjects:
        raise UsageError(unknown(path))
    return subjects


def second(path: str) -> bytes | None:
    """Return the bytes of a file that a config names; None where none can be read there."""
    try:
        if not files.is_regular(path):  # a folder, or a pipe that would be emptied
            return None
        return files.read_config(path, MAX_BYTES)
    except (OSError, UsageError, ValueError):
        return None
