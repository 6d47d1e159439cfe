"""Keeps what is slow to build (compiled rules, catalogues) between runs, keyed by what it came from.

An entry is used only if every source text, the cfglint version and the Python version are the same. Of files
that come with cfglint, size and time of change (in nanoseconds) stand for the text, as Python has it for its
own compiled modules. In a checkout the newest change of the modules that build an entry counts too. So a
stale entry cannot be read. The folder is ``private`` in ``$CFGLINT_CACHE``, else in
``$XDG_CACHE_HOME/cfglint``, else in ``~/.cache/cfglint``; an empty ``CFGLINT_CACHE`` switches the cache off.

Entries may hold code, so a folder that others could have filled is neither read nor written (see
files.private_folder). That, a folder that cannot be written, or an entry that is damaged or not private costs
time and nothing more. Little time for the shipped rules: they come compiled with a wheel (see ``shipped``).
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
COMPILED = "compiled"  # the folder of the package that a build fills (see build_compiled.py)
_DIGEST = 32  # bytes of a digest
_folders: dict[str, str | None] = {}  # what was found of each that was asked for


def _folder() -> str | None:
    chosen = os.environ.get("CFGLINT_CACHE")
    if chosen is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        chosen = os.path.join(base, "cfglint") if os.path.isabs(base) else ""
    if chosen not in _folders:
        try:
            _folders[chosen] = files.private_folder(chosen) if chosen else None
        except (OSError, ValueError):
            _folders[chosen] = None
    return _folders[chosen]


def _read(path: str) -> memoryview | None:
    # A damaged entry can crash marshal, hence the checksum.
    try:
        data = memoryview(files.read_private(path))
    except OSError:
        return None
    sound = len(data) > 4 and crc32(data[4:]) == int.from_bytes(data[:4], "little")
    return data[4:] if sound else None


def _write(path: str, data: bytes) -> None:
    try:
        files.write_private(path, crc32(data).to_bytes(4, "little") + data)
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
    entry = cached_beside(name, sources, lambda: (build(), b""), build)
    assert entry is not None
    return entry[0]


def cached_beside(
    name: str,
    sources: Mapping[str, str],
    build: Callable[[], tuple[object, bytes] | None],
    by: Callable[[], object] | None = None,
) -> tuple[object, bytes | memoryview] | None:
    """Return the same for a value and bytes that go with it, which are not copied when they are read.

    None where there is no entry and ``build`` makes none.
    """
    folder = _folder()
    if folder is None:
        return build()
    texts = tuple(sources.items())
    stamp = f"{_STAMP} {_builder(by or build)}"
    file = f"{name}-{sys.implementation.cache_tag}-{crc32(repr(sorted(sources)).encode()):08x}.bin"
    path = os.path.join(folder, file)
    raw = _read(path)
    if raw is not None:
        kept_stamp, kept, held = marshal.loads(raw)  # noqa: S302 (private; the bytes after it are left alone)
        if kept_stamp == stamp and kept == texts:
            value, size = held
            return value, raw[len(raw) - size :]
    built = build()
    if built is not None:
        value, beside = built
        entry: Any = (stamp, texts, (value, len(beside)))
        _write(path, marshal.dumps(entry) + beside)
    return built


def asked_before(name: str, sources: Mapping[str, str]) -> bool:
    """Whether this was asked before of the same sources; never where nothing is kept."""
    first = []

    def build() -> object:
        first.append(True)
        return None

    cached(name, sources, build)
    return not first


# ── what the package was built with ────────────────────────────────────────────────────────────────────────
def shipped(name: str, sources: Mapping[str, str]) -> Any:
    """Return what was built from the same sources when the wheel was; None where nothing was."""
    try:
        data = files.shipped_bytes(COMPILED, f"{name}.bin")
    except OSError:
        return None
    if data[:_DIGEST] != _digest(sources):
        return None
    import pickle

    return pickle.loads(data[_DIGEST:])  # noqa: S301 (part of the package, as its modules are)


def to_ship(sources: Mapping[str, str], value: object) -> bytes:
    """Return what ``shipped`` reads: the same for any Python, so ``value`` must hold no code."""
    import pickle

    return _digest(sources) + pickle.dumps(value, protocol=4)


def _digest(sources: Mapping[str, str]) -> bytes:
    import hashlib

    return hashlib.sha256(repr((VERSION, *sorted(sources.items()))).encode()).digest()
