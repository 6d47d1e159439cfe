"""Where the local cache of the Hugging Face Hub keeps a model's config.json."""

from __future__ import annotations

import os

from cfglint import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def folder(environ: Mapping[str, str]) -> str:
    """Return the cache's folder, found as huggingface_hub finds it."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return home(environ[name], environ)
    base = environ.get("HF_HOME")
    if not base:
        base = os.path.join(environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface")
    return os.path.join(home(base, environ), "hub")


def home(path: str, environ: Mapping[str, str]) -> str:
    """Return a path with its ``~`` replaced."""
    if path == "~" or path.startswith(("~/", "~\\")):
        own = environ.get("HOME") or os.path.expanduser("~")
        return own + path[1:]
    return path


def is_id(name: str) -> bool:
    """Whether a name may be that of a model on the Hub: ``name`` or ``org/name``."""
    return name.count("/") <= 1 and not name.startswith((".", "~", "/")) and not set(name) & set(":\\ \0")


def config(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of the config.json of a model that the cache holds; None where it holds none."""
    if not name or not is_id(name):
        return None
    base = os.path.join(folder(environ), "models--" + name.replace("/", "--"))
    try:
        revision = files.read_text(os.path.join(base, "refs", "main"), "ascii", most=200).strip()
    except (OSError, ValueError):
        return None
    path = os.path.join(base, "snapshots", revision, "config.json")
    return path if files.is_file(path) else None
