"""The one gate to the disk: whatever cfglint reads, writes, lists or asks of a path passes here.

Everything else gets texts, bytes and answers. What may be read is thus decided in one place. Functions raise
OSError as they come, unless they say otherwise: callers know what the file was wanted for.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from cfglint.about import DISTRIBUTION
from cfglint.errors import UsageError
from cfglint.replacing import ChangedError, create, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import IO, Any, NoReturn, TextIO

_HERE = os.path.dirname(os.path.abspath(__file__))
_CHECKOUT = os.path.dirname(os.path.dirname(_HERE))


def why(error: OSError) -> str:
    """Return the system's words for an error, as they follow a colon."""
    return (error.strerror or str(error)).lower()


# ── what is there ──────────────────────────────────────────────────────────────────────────────────────────
exists = os.path.exists
is_taken = os.path.lexists  # be it by a link to nowhere
is_file = os.path.isfile
is_folder = os.path.isdir
is_link = os.path.islink
real = os.path.realpath


def is_same(first: str, second: str) -> bool:
    """Whether two paths lead to one file."""
    return exists(first) and exists(second) and os.path.samefile(first, second)


def is_there(path: str) -> bool:
    """Whether something lies at a path of this machine."""
    return os.path.lexists(path)


def is_regular(path: str) -> bool:
    """Whether a file is there, and no folder, pipe or device."""
    return stat.S_ISREG(os.stat(path).st_mode)


def program(name: str) -> str | None:
    """Return the absolute path of an installed program; one that the working folder offers is none."""
    from shutil import which

    found = which(name)
    return found if found is not None and os.path.isabs(found) else None


def become(words: Sequence[str]) -> NoReturn:
    """Replace this process by a command of the user's. Raises OSError where that cannot be."""
    os.execvp(words[0], list(words))


def own_python(code: str, *words: str) -> list[str]:
    """Return the command that runs ``code`` in this Python, with ``words`` from sys.argv[1] on.

    It finds modules where this process does, but for a stranger's working folder, and runs nothing else.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    path = [entry for entry in sys.path if entry not in ("", here) or entry == os.path.dirname(_HERE)]
    start = f"import sys; n = 2 + int(sys.argv[1]); sys.path[:] = sys.argv[2:n]; del sys.argv[1:n]\n{code}"
    return [sys.executable or "python3", "-I", "-S", "-c", start, str(len(path)), *path, *words]


def is_ordinary(path: str) -> bool:
    """Whether a path is not one by which a process gets at its own streams."""
    return not os.path.abspath(path).startswith(("/dev/", "/proc/"))


def is_open_to_all(folder: str) -> bool:
    """Whether everybody on this machine may put files into a folder."""
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)
    except OSError:
        return False


def walk(
    folder: str, onerror: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str], list[str]]]:
    """Yield each folder below with its folders, which the caller may thin out, its files, and its links.

    Links are not followed. As deep as it gets, which os.walk is not before Python 3.12.
    """
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        try:
            with os.scandir(at) as entries:
                found = [(entry.name, _kind(entry)) for entry in entries]
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        below, names, links = ([name for name, kind in found if kind == wanted] for wanted in _KINDS)
        yield at, below, names, links
        waiting += reversed([os.path.join(at, name) for name in below])


_KINDS = _FOLDER, _FILE, _LINK = range(3)


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return _LINK
    return _FOLDER if entry.is_dir(follow_symlinks=False) else _FILE


def stamp(path: str) -> str:
    """Return what changes with every edit of a file: its size and time."""
    about = os.stat(path)
    return f"{about.st_size} {about.st_mtime_ns}"


def newest(folder: str, suffixes: tuple[str, ...]) -> int:
    """Return when the files of a folder last changed, in nanoseconds."""
    latest = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            changed = entry.stat().st_mtime_ns
            if changed > latest and entry.name.endswith(suffixes):
                latest = changed
    return latest


# ── reading ────────────────────────────────────────────────────────────────────────────────────────────────
MOST = 2**20  # bytes of a text that cfglint needs for itself: settings, rules, a sheet


def _opened(path: str, mode: str = "rb", *, pipe: bool = False, **how: Any) -> IO[Any]:
    """Open a file to read it, and nothing that may never end: no device; a pipe if ``pipe`` says so.

    Raises OSError.
    """
    # Opening a pipe without a writer would wait forever, unless it is opened without waiting.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    kind = os.fstat(descriptor).st_mode
    if pipe and stat.S_ISFIFO(kind):
        os.set_blocking(descriptor, True)
    elif not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(descriptor, mode, **how)


def read_bytes(path: str, most: int) -> bytes:
    """Return the bytes of a regular file, up to ``most``."""
    with _opened(path) as stream:
        return stream.read(most)  # type: ignore[no-any-return]


def read_text(
    path: str, encoding: str = "utf-8", *, most: int = MOST, errors: str = "strict", pipe: bool = False
) -> str:
    """Return the text of a regular file, or of a ``pipe``. Raises OSError for more than ``most`` characters.

    Raises UnicodeDecodeError, too.
    """
    with _opened(path, "r", pipe=pipe, encoding=encoding, errors=errors) as stream:
        text: str = stream.read(most + 1)
    if len(text) > most:
        raise OSError(errno.EFBIG, f"larger than {most // 1024:,} KiB", path)
    return text


def chunks(path: str, size: int) -> Iterator[bytes]:
    """Yield a file, or stdin for ``-``, piece by piece."""
    if path == "-":
        while chunk := stdin(size):
            yield chunk
        return
    with _opened(path, pipe=True) as stream:
        while chunk := stream.read(size):
            yield chunk


def stdin(most: int) -> bytes:
    """Return up to ``most`` bytes of stdin, which may have been replaced by a stream of text.

    Raises UsageError where the caller closed it.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer.read(most)
    return sys.stdin.read(most).encode("utf-8", "surrogateescape")


def read_config(path: str, most: int) -> bytes:
    """Return the bytes of a file that may be a config, or of a pipe. Raises UsageError, too."""
    # Opening a pipe without a writer would wait forever, unless it is opened without waiting.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        regular = stat.S_ISREG(about.st_mode)
        if about.st_size > most:
            size = about.st_size / 2**20
            raise UsageError(
                f"{path}: {size:.0f} MiB is too large for a config; cfglint reads up to {most // 2**20} MiB"
            )
        if not regular and hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        data = stream.read(most + 1)
        if not data and stat.S_ISFIFO(about.st_mode):
            raise UsageError(f"{path}: a pipe without a writer")
        return data


# ── writing ────────────────────────────────────────────────────────────────────────────────────────────────
def make_folder(path: str) -> None:
    """Make a folder, and those above it, unless it is there."""
    os.makedirs(path, exist_ok=True)


def scratch_folder() -> AbstractContextManager[str]:
    """Return a folder of our own that nobody else may enter, gone with the context."""
    from tempfile import TemporaryDirectory

    return TemporaryDirectory(prefix="cfglint-")


def nowhere() -> TextIO:
    """Return a stream that drops what is written to it."""
    return open(os.devnull, "w", encoding="utf-8")


def write(path: str, data: bytes, *, over: bytes | None = None, new: bool = False) -> int:
    """Give a file new content; returns how many names it has, all of which lead to that then.

    Mode, owner, attributes and names stay, and a symbolic link goes on pointing to where it points. What is
    not a file, such as /dev/stdout, is written to. Raises UsageError, also where the file no longer holds
    ``over``, which was read, or where a ``new`` one is there by now; it is then as it was.
    """
    try:
        if new or not os.path.exists(path):
            create(path if new else os.path.realpath(path), data)
            return 1
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            with open(path, "wb") as stream:
                stream.write(data)
            return 1
        if not (about.st_mode & 0o222 and os.access(path, os.W_OK)):
            raise UsageError(
                f"{path}: read-only, so nothing was written; make it writable, or use --output FILE"
            )
        replace(os.path.realpath(path), data, over)
    except FileExistsError:
        raise UsageError(f"{path}: made by somebody else meanwhile, so nothing was written") from None
    except ChangedError as error:
        raise UsageError(f"{path}: {error}, so nothing was written; run cfglint again") from None
    except OSError as error:
        left = "; it was not changed" if os.path.isfile(path) else ""
        raise UsageError(f"{path}: cannot be written: {why(error)}{left}") from None
    return about.st_nlink


# ── the private folder: what lies in it may be code, so nobody else may have put it there ──────────────────
def private_folder(base: str) -> str:
    """Return the path of the folder in ``base`` that only this user can write to. It need not be there yet.

    Raises PermissionError where it is a link or somebody else's, where others may enter it, and where it
    would be part of a checkout or of the working folder: what came with a repository belongs to the user,
    too. Windows has no modes: there, only the place counts.
    """
    folder = f"{os.path.realpath(base)}{os.sep}private"
    if _comes_with_files(folder):
        raise PermissionError(folder)
    try:
        about = os.lstat(folder)
    except FileNotFoundError:
        return folder
    if not stat.S_ISDIR(about.st_mode) or not _is_private(about):
        raise PermissionError(folder)
    return folder


def _is_private(about: os.stat_result) -> bool:
    return os.name != "posix" or (about.st_uid == os.getuid() and not about.st_mode & 0o077)


def _comes_with_files(folder: str) -> bool:
    """Whether a checkout or the working folder holds ``folder``; neither counts where it holds the home."""
    doubtful = []
    above = folder
    while above := above[: above.rfind(os.sep)]:
        if os.access(above + "/.git", os.F_OK):
            doubtful.append(above)
    here = os.getcwd()
    if _holds(here, folder):
        doubtful.append(here)
    if not doubtful:
        return False
    at_home = home()
    return at_home is None or not all(_holds(place, at_home) for place in doubtful)


def _holds(folder: str, path: str) -> bool:
    return f"{path}{os.sep}".startswith(folder if folder.endswith(os.sep) else f"{folder}{os.sep}")


def home() -> str | None:
    """Return the home folder as the system has it: $HOME may have been set to a checkout."""
    if os.name != "posix":
        return os.path.realpath(os.path.expanduser("~"))
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def read_private(path: str) -> bytes:
    """Return the bytes of a file in the private folder. Raises PermissionError for one that is not."""
    no_links = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | no_links)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or not _is_private(about):
            raise PermissionError(path)
        return os.read(descriptor, about.st_size)
    finally:
        os.close(descriptor)


def write_private(path: str, data: bytes) -> None:
    """Write a file of the private folder in one step, and make the folder where it is not there."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        private_folder(os.path.dirname(folder))
    # A short name of its own: another run may be at work.
    temporary = os.path.join(folder, f".cfglint-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)  # an entry of the cache may be lost when the machine goes down
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# ── the files that come with cfglint, from a wheel, a zip or its checkout ──────────────────────────────────
def in_checkout() -> bool:
    """Whether this module is in a checkout, where it may change."""
    return is_file(os.path.join(_CHECKOUT, "pyproject.toml"))


def shipped_folder(name: str) -> str:
    """Return the path of the ``rules`` or ``schemas`` folder.

    An editable install leaves copies of both in site-packages; they are never looked up, since only
    the folder beside this module or the checkout's own counts.
    """
    packaged = os.path.join(_HERE, name)
    checkout = os.path.join(_CHECKOUT, name)
    return checkout if not os.path.isdir(packaged) and os.path.isdir(checkout) else packaged


def shipped_bytes(*path: str) -> bytes:
    """Return a file of this package, by an absolute path or one below the package."""
    place = os.path.join(_HERE, *path)
    try:
        with open(place, "rb") as stream:
            return stream.read()
    except OSError:  # inside a zip only the loader can read it
        return globals()["__loader__"].get_data(place)  # type: ignore[no-any-return]


def shipped_text(*path: str) -> str:
    """Return the text of such a file."""
    return shipped_bytes(*path).decode("utf-8")


def shipped_contents(name: str, suffix: str) -> dict[str, bytes]:
    """Return the bytes of the files below a shipped folder that end in ``suffix``, by path in it, sorted."""
    contents = {}
    for inside, entry in _shipped(name, suffix):
        with open(entry.path, "rb", buffering=0) as stream:
            contents[inside] = stream.read()
    return dict(sorted(contents.items())) or _zipped(name, suffix)


def shipped_changes(name: str, suffix: str) -> dict[str, str]:
    """Return what changes with every edit of those files, and reads none: size and time; {} in a zip."""
    stats = {inside: entry.stat() for inside, entry in _shipped(name, suffix)}
    base = shipped_folder(name)
    return {
        f"{base}/{inside}": f"{about.st_size} {about.st_mtime_ns}" for inside, about in sorted(stats.items())
    }


def _shipped(name: str, suffix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    waiting = [("", shipped_folder(name))]
    while waiting:
        prefix, at = waiting.pop()
        try:
            entries = os.scandir(at)
        except OSError:  # inside a zip
            return
        with entries:
            for entry in entries:
                if entry.name.endswith(suffix):
                    yield prefix + entry.name, entry
                elif entry.is_dir():
                    waiting.append((f"{prefix}{entry.name}/", entry.path))


def _zipped(name: str, suffix: str) -> dict[str, bytes]:
    from importlib.resources import files  # slow to import, and needed nowhere else

    contents = {}
    waiting = [("", files("cfglint") / name)]
    while waiting:
        prefix, node = waiting.pop()
        for entry in node.iterdir():
            if entry.is_dir():
                waiting.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.endswith(suffix):
                contents[f"{prefix}{entry.name}"] = entry.read_bytes()
    return dict(sorted(contents.items()))


def shipped_from() -> str | None:
    """Return the record of PEP 610 of where this was installed from; None where that is a package index.

    Raises ModuleNotFoundError where nothing is installed.
    """
    from importlib import metadata

    return metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
