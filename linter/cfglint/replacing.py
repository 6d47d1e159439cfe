"""Gives a file new content so that no edit of somebody else's is lost, at whatever moment it comes.

A new file takes the place of the old one, and whoever reads it sees one of them, whole. The two change places
in one step: what was there by then is in hand, and goes back if it is not what was read, or if somebody has
it open to write (Linux refuses a lease on it). Where the system cannot do that, a second name holds the old
file meanwhile; only another program that replaces the file itself in that very instant is not noticed.

Where only the old file will do, as it has several names, or an owner or attributes that a new one cannot get,
it is written to beside a copy of what it held, while others wait to open it.

Only `files` calls this.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

    from typing_extensions import Self

_CHANGED = "changed by somebody else since it was read"
_IN_USE = "open in another program, which may change it"
_HERE = -100  # AT_FDCWD
_SWAP = 2  # RENAME_EXCHANGE of renameat2(2), RENAME_SWAP of renamex_np(2)
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)  # no names can change places here
_MOUNTED = (errno.EBUSY, errno.EXDEV)  # a container was given this one file


class ChangedError(Exception):
    """Somebody else wrote, or is about to, so the file is as they left it; the text says so."""


class _OnlyTheOldError(Exception):
    """A new file cannot stand for the old one."""


def create(path: str, data: bytes) -> None:
    """Make a file. Raises FileExistsError where one is there by now, and OSError."""
    with _Draft(path, 0o666) as draft:
        draft.fill(data)
        draft.become(path)


def replace(path: str, data: bytes, over: bytes | None) -> None:
    """Give a file new content, where ``over`` is given only if it still holds that.

    Raises ChangedError and OSError; the file is then as it was.
    """
    try:
        _replace(path, data, over)
    except _OnlyTheOldError:
        _write_into(path, data, over)


# ── a new file in the place of the old one ─────────────────────────────────────────────────────────────────
def _replace(path: str, data: bytes, over: bytes | None) -> None:
    about = os.stat(path)
    if about.st_nlink > 1:
        raise _OnlyTheOldError
    with _Draft(path, 0o600) as draft:
        draft.fill(data)
        draft.resemble(path, about)
        draft.become(draft.path)
        draft.close()  # else this program is one that has it open to write
        with _Watched(path) as old:  # who opens it to write waits, from the look before to the look after
            if over is not None and not old.holds(over):
                raise ChangedError(_CHANGED)
            try:
                in_hand = _exchange(draft.path, path)
            except OSError as error:
                if error.errno in _MOUNTED:
                    raise _OnlyTheOldError from None
                raise
            if over is None or not in_hand:
                return
            same = False
            try:
                # Another file may have come in its place, and until that goes back, somebody may read the new
                # text and save it with a line more: so this is asked first.
                same = old.is_at(draft.path) and old.holds(over)
            finally:  # whatever happened
                if not same:
                    _put_back(draft, path, data)


def _put_back(draft: _Draft, path: str, data: bytes) -> None:
    """Let what was there stand again. Raises ChangedError."""
    try:
        _exchange(draft.path, path)
        with _Watched(draft.path) as new:
            alone = new.holds(data)
        if not alone:  # somebody wrote to the new file, too: the latest text stands
            _exchange(draft.path, path)
    except OSError:
        alone = False
    if alone:
        raise ChangedError(_CHANGED)
    draft.named = False
    raise ChangedError(f"{_CHANGED}, and twice; the first of these texts is {draft.path}")


class _Watched:
    """A file that is open, with a lease where there is such a thing: who opens it to write waits."""

    def __init__(self, path: str) -> None:
        flags = ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK")
        self.descriptor = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
        self.lease = _lease(self.descriptor, to_write=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def holds(self, content: bytes) -> bool:
        """Whether it holds this, and nobody has it open to write, or waits for that."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with open(self.descriptor, "rb", closefd=False) as stream:
            same = stream.read(len(content) + 1) == content
        return same and self.lease == _lease_of(self.descriptor)

    def is_at(self, path: str) -> bool:
        """Whether a path is one of this file's names."""
        return os.path.samestat(os.lstat(path), os.fstat(self.descriptor))


def _exchange(first: str, second: str) -> bool:
    """Let two files change places; returns whether what was the second is the first now, and not gone."""
    if _swapped(first, second):
        return True
    held = f"{first}-"
    try:
        os.link(second, held)
    except OSError:
        os.replace(first, second)
        return False
    try:
        os.replace(first, second)
    except OSError:
        os.unlink(held)
        raise
    os.replace(held, first)
    return True


@cache
def _system() -> ctypes.CDLL:
    """Return the system's library, loaded once: two names must not be apart for longer than that takes."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _swapped(first: str, second: str) -> bool:
    """Let two files change places in one step; returns whether this system can. Raises OSError."""
    if os.name != "posix":
        return False
    import ctypes

    names = os.fsencode(first), os.fsencode(second)
    try:
        if sys.platform == "darwin":
            failed = _system().renamex_np(*names, _SWAP)
        else:
            failed = _system().renameat2(_HERE, names[0], _HERE, names[1], _SWAP)
    except AttributeError:
        return False
    error = ctypes.get_errno()
    if failed and error not in _UNABLE:
        raise OSError(error, os.strerror(error), second)
    return not failed


# ── leases: who else has a file open ───────────────────────────────────────────────────────────────────────
def _lease(descriptor: int, *, to_write: bool) -> int | None:
    """Make those wait who open a file to write, or also to read; returns the kind, -1 where somebody has it.

    None where there is no such thing. It ends when the file is closed.
    """
    if sys.platform != "linux":
        return None
    import fcntl
    from signal import SIGURG

    kind = fcntl.F_WRLCK if to_write else fcntl.F_RDLCK
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, SIGURG)  # which does nothing; SIGIO would end this process
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
    except OSError as error:  # another's file, or a file system that has none
        return -1 if error.errno == errno.EAGAIN else None
    return kind


def _lease_of(descriptor: int) -> int | None:
    """Return the lease that this program has and nobody waits for; None where there is none."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        kind = fcntl.fcntl(descriptor, fcntl.F_GETLEASE)
    except OSError:
        return None
    return None if kind == fcntl.F_UNLCK else kind


# ── the old file, written to ───────────────────────────────────────────────────────────────────────────────
def _write_into(path: str, data: bytes, over: bytes | None) -> None:
    with open(path, "r+b", buffering=0) as stream:
        descriptor = stream.fileno()
        if _lease(descriptor, to_write=True) == -1:
            raise ChangedError(_IN_USE)
        old = stream.read()
        moved = not os.path.samestat(os.stat(path), os.fstat(descriptor))
        if moved or (over is not None and old != over):
            raise ChangedError(_CHANGED)
        with _Draft(path, 0o600) as copy:
            copy.fill(old)
            copy.become(copy.path)
            try:
                _fill(descriptor, data)
            except BaseException:
                _fill(descriptor, old)
                raise


def _fill(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


class _Draft:
    """A new file beside another; it has no name as long as can be, so that a crash leaves nothing of it."""

    def __init__(self, beside: str, mode: int) -> None:
        folder = os.path.dirname(beside)
        # A short name of its own: the other's may be as long as names get, and another run may be at work.
        self.path = os.path.join(folder, f".cfglint-{os.getpid()}-{os.urandom(4).hex()}")
        self.named = False
        self.descriptor = -1
        nameless = getattr(os, "O_TMPFILE", 0)
        if nameless and os.path.isdir("/proc/self/fd"):
            with suppress(OSError):  # this file system has none
                self.descriptor = os.open(folder, os.O_RDWR | nameless, mode)
        if self.descriptor < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self.descriptor = os.open(self.path, flags, mode)
            self.named = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self.named and os.path.lexists(self.path):
            os.unlink(self.path)

    def close(self) -> None:
        """Close it; its name stays."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def fill(self, data: bytes) -> None:
        """Write its content."""
        _fill(self.descriptor, data)

    def become(self, path: str) -> None:
        """Give it a name, its own or a new one. Raises FileExistsError."""
        own = path == self.path
        if self.named and own:
            return
        try:
            if self.named:
                os.link(self.path, path)
            else:
                at = f"/proc/self/fd/{self.descriptor}"
                os.link(at, path, src_dir_fd=self.descriptor, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:
            if not self.named or os.path.lexists(path):
                raise
            os.rename(self.path, path)  # where a file has one name only
        self.named = self.named or own

    def resemble(self, path: str, about: os.stat_result) -> None:
        """Give it the owner, the attributes (access lists are some) and the mode of a file."""
        try:
            if hasattr(os, "fchown"):
                now = os.fstat(self.descriptor)
                if (now.st_uid, now.st_gid) != (about.st_uid, about.st_gid):
                    os.fchown(self.descriptor, about.st_uid, about.st_gid)
            if sys.platform == "linux":
                wanted = {name: os.getxattr(path, name) for name in os.listxattr(path)}
                for name in os.listxattr(self.descriptor):
                    if name not in wanted:
                        os.removexattr(self.descriptor, name)
                for name, value in wanted.items():
                    os.setxattr(self.descriptor, name, value)
            os.chmod(
                self.descriptor if os.chmod in os.supports_fd else self.path, stat.S_IMODE(about.st_mode)
            )
        except OSError:
            raise _OnlyTheOldError from None
