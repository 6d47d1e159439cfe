"""Reads the files that come with cfglint, whether it runs from a wheel, a zip or its checkout."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = os.path.dirname(os.path.abspath(__file__))
_CHECKOUT = os.path.dirname(os.path.dirname(_HERE))


def folder(name: str) -> str:
    """Return the path of the ``rules`` or ``schemas`` folder, for ``texts`` and ``read``.

    An editable install leaves copies of both in site-packages; they are never looked up, since only
    the folder beside this module or the checkout's own counts.
    """
    packaged = os.path.join(_HERE, name)
    checkout = os.path.join(_CHECKOUT, name)
    return checkout if not os.path.isdir(packaged) and os.path.isdir(checkout) else packaged


def read(path: str) -> str:
    """Return the text of a file of this package; inside a zip only the loader can read it."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        data = globals()["__loader__"].get_data(path)
    return data.decode("utf-8")


def contents(name: str, suffix: str) -> dict[str, bytes]:
    """Return the bytes of all files below a folder that end in ``suffix``, by their path in it, sorted."""
    found = {}
    for inside, entry in _entries(name, suffix):
        with open(entry.path, "rb", buffering=0) as stream:
            found[inside] = stream.read()
    return dict(sorted(found.items())) or _zipped(name, suffix)


def changes(name: str, suffix: str) -> dict[str, str]:
    """Return what changes with every edit of those files, and reads none: size and time; {} in a zip."""
    stats = {inside: entry.stat() for inside, entry in _entries(name, suffix)}
    base = folder(name)
    return {
        f"{base}/{inside}": f"{stat.st_size} {stat.st_mtime_ns}" for inside, stat in sorted(stats.items())
    }


def _entries(name: str, suffix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    waiting = [("", folder(name))]
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

    found = {}
    waiting = [("", files("cfglint") / name)]
    while waiting:
        prefix, node = waiting.pop()
        for entry in node.iterdir():
            if entry.is_dir():
                waiting.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.endswith(suffix):
                found[f"{prefix}{entry.name}"] = entry.read_bytes()
    return dict(sorted(found.items()))
