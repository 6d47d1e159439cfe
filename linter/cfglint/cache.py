"""Keeps what is slow to build (compiled rules, catalogues) between runs, keyed by what it came from.

An entry is used only if every source text, the cfglint version and the Python version are the same. Of files
that come with cfglint, size and time of change (in nanoseconds) stand for the text, as Python has it for its
own compiled modules. In a checkout the newest change of the modules that build an entry counts too. So a
stale entry cannot be read. The folder is ``$CFGLINT_CACHE``, else ``$XDG_CACHE_HOME/cfglint``, else
``~/.cache/cfglint``; an empty ``CFGLINT_CACHE`` switches the cache off. A folder that cannot be written, an
entry that is damaged or that belongs to somebody else, costs time and nothing more.
"""

from __future__ import annotations

import marshal
import os
import sys
from zlib import crc32

from cfglint import files
from cfglint.about import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_STAMP = f"{VERSION} {sys.version} 4"  # the last is that of an entry's own form
_IN_CHECKOUT = files.in_checkout()


def _folder() -> str | None:
    chosen = os.environ.get("CFGLINT_CACHE")
    if chosen is not None:
        return chosen or None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cfglint") if os.path.isabs(base) else None


def _read(path: str) -> memoryview | None:
    # Marshal may hold code, so only what this user wrote is ever loaded; a damaged entry can crash it, hence
    # the checksum.
    try:
        data = memoryview(files.read_own(path))
    except OSError:
        return None
    sound = len(data) > 4 and crc32(data[4:]) == int.from_bytes(data[:4], "little")
    return data[4:] if sound else None


def _write(folder: str, path: str, data: bytes) -> None:
    try:
        files.make_folder(folder, mode=0o700)
        files.write_kept(path, crc32(data).to_bytes(4, "little") + data)
    except OSError:
        return


def _builder(build: Callable[[], object]) -> int:
    """Return when the modules beside the one that defines ``build`` last changed; 0 outside a checkout."""
    code: Any = getattr(build, "__code__", None)
    if not _IN_CHECKOUT or code is None:
        return 0
    try:
        return files.newest(os.path.dirname(code.co_filename), (".py", ".lark"))
    except OSError:
        return 0


def cached(name: str, sources: Mapping[str, str], build: Callable[[], object]) -> object:
    """Return ``build()``, or what it gave when it last ran on the same ``sources``.

    ``sources`` are texts by their paths, or what changes with each of them (files.shipped_changes).

    The value must be of the types that marshal knows: numbers, texts, tuples, lists, dicts, code. ``build``
    is a function of the module whose folder holds all the code that the value depends on.
    """
    return cached_beside(name, sources, lambda: (build(), b""), build)[0]


def cached_beside(
    name: str,
    sources: Mapping[str, str],
    build: Callable[[], tuple[object, bytes]],
    by: Callable[[], object] | None = None,
) -> tuple[object, bytes | memoryview]:
    """Return the same for a value and bytes that go with it, which are not copied when they are read."""
    folder = _folder()
    if folder is None:
        return build()
    texts = tuple(sources.items())
    stamp = f"{_STAMP} {_builder(by or build)}"
    file = f"{name}-{sys.implementation.cache_tag}-{crc32(repr(sorted(sources)).encode()):08x}.bin"
    path = os.path.join(folder, file)
    raw = _read(path)
    if raw is not None:
        kept_stamp, kept, held = marshal.loads(raw)  # noqa: S302 (see _read; the bytes after it are left alone)
        if kept_stamp == stamp and kept == texts:
            value, size = held
            return value, raw[len(raw) - size :]
    value, beside = build()
    entry: Any = (stamp, texts, (value, len(beside)))
    _write(folder, path, marshal.dumps(entry) + beside)
    return value, beside
