"""Disk access of the command line: which files a path means, reading them, and writing them safely."""

from __future__ import annotations

import errno
import os
import stat
import sys

from cfglint.document.document import SCRIPTS, STARTERS, read
from cfglint.document.yaml_tree import MAX_BYTES
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.document import File

SUFFIXES = (".yaml", ".yml", ".json", ".toml", *SCRIPTS)
STDIN = "<stdin>"
_NOT_ENTERED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
_BIGGEST_FOUND = (
    2**20
)  # in folders, a file larger than this is data; a file named on its own is read up to MAX_BYTES
# One of these stands in every script that launches a job; scripts of a folder without are not parsed.
_LAUNCHERS = tuple(word.encode() for word in STARTERS)
_GONE = (
    errno.ENOENT,
    errno.ELOOP,
    errno.ENOTDIR,
)  # a link to nowhere, or removed since the folder was listed


def find(paths: list[str], complain: Callable[[str], None]) -> Iterator[tuple[str, bool]]:
    """Yield the files that ``paths`` mean, each once, with whether it was named itself.

    ``complain`` is told of folders that cannot be read.
    """

    def unreadable(error: OSError) -> None:
        complain(f"{error.filename}: cannot be read: {_why(error)}")

    folders = {path for path in paths if path != "-" and os.path.isdir(path)}
    seen = {os.path.normpath(path) for path in paths if path not in folders}
    for path in dict.fromkeys(paths):
        if path not in folders:
            yield path, True
            continue
        for at, below, names in os.walk(path, onerror=unreadable):
            below[:] = sorted(f for f in below if not f.startswith(".") and f not in _NOT_ENTERED)
            for name in sorted(names):
                if name.endswith(SUFFIXES) and not name.startswith("."):
                    found = os.path.normpath(os.path.join(at, name))
                    if found not in seen:
                        seen.add(found)
                        yield found, False


def load(path: str, *, named: bool) -> tuple[File, bytes] | None:
    """Read and parse a file; None for one found in a folder that is no config by its size or kind.

    Returns the bytes as well, for whoever writes the file unchanged. Raises UsageError.
    """
    if path == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        return read(data, STDIN), data
    try:
        found = _bytes(path, named=named)
    except OSError as error:
        if not named and error.errno in _GONE:
            return None
        why = (
            "no such file or folder"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read: {_why(error)}"
        )
        raise UsageError(f"{path}: {why}") from None
    if found is None:
        return None
    if b"\0" in found[:8192] and not found.startswith((b"\xff\xfe", b"\xfe\xff")):
        if not named:
            return None
        raise UsageError(f"{path}: a binary file, not a config")
    if not named and path.endswith(SCRIPTS) and not any(word in found for word in _LAUNCHERS):
        return None
    try:
        return read(found, path), found
    except UsageError as error:  # the extra is not installed: said once, and the configs are judged
        if named:
            raise
        if not _told:
            _told.append(path)
            print(f"cfglint: scripts are left out: {error}", file=sys.stderr)
        return None


_told: list[str] = []


def second(path: str) -> bytes | None:
    """Return the bytes of a file that a config names; None where none can be read there."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a folder, or a pipe that would be emptied
            return None
        return _bytes(path, named=True)
    except (OSError, UsageError, ValueError):
        return None


def _bytes(path: str, *, named: bool) -> bytes | None:
    # Opening a pipe that nobody writes to would wait forever, unless it is opened without waiting.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        regular = stat.S_ISREG(about.st_mode)
        if not named and (not regular or about.st_size > _BIGGEST_FOUND):
            return None
        if about.st_size > MAX_BYTES:
            size = about.st_size / 2**20
            raise UsageError(
                f"{path}: {size:.0f} MiB is no config; cfglint reads up to {MAX_BYTES // 2**20} MiB"
            )
        if not regular and hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        data = stream.read(MAX_BYTES + 1)
        if not data and stat.S_ISFIFO(about.st_mode):
            raise UsageError(f"{path}: a pipe that nobody writes to")
        return data


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def write(path: str, data: bytes) -> None:
    """Give a file new content in one step: whoever reads it sees the old or the new one, whole.

    Mode and owner stay, and a symbolic link goes on pointing to where it points. What is no file, such as
    /dev/stdout, is written to. Raises UsageError; the file is then as it was.
    """
    try:
        try:
            about = os.stat(path)
        except FileNotFoundError:
            about = None
        if about is None or stat.S_ISREG(about.st_mode):
            if about is not None and not (about.st_mode & 0o222 and os.access(path, os.W_OK)):
                raise UsageError(
                    f"{path}: read-only, so nothing was written; make it writable, or use --output FILE"
                )
            _replace(os.path.realpath(path), data, about)
            return
        with open(path, "wb") as stream:
            stream.write(data)
    except OSError as error:
        left = "; it is as it was" if os.path.isfile(path) else ""
        raise UsageError(f"{path}: cannot be written: {_why(error)}{left}") from None


def _replace(real: str, data: bytes, about: os.stat_result | None) -> None:
    # A short name of its own: the target's may be as long as names get, and another run may be at work.
    temporary = os.path.join(os.path.dirname(real), f".cfglint-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(
        temporary,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0),
        0o666 if about is None else 0o600,
    )
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if about is not None:
                if hasattr(os, "fchown"):
                    now = os.fstat(descriptor)
                    if (now.st_uid, now.st_gid) != (about.st_uid, about.st_gid):
                        os.fchown(descriptor, about.st_uid, about.st_gid)
                os.chmod(temporary, stat.S_IMODE(about.st_mode))
            os.fsync(descriptor)
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise
