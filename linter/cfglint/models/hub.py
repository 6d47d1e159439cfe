"""A model's config.json of the Hugging Face Hub: from its local cache; on ``--online``, fetched.

Nothing else is fetched.
"""

from __future__ import annotations

import os

from cfglint import files
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = (
    "--online wants the package huggingface_hub, and it is not installed; pip install 'cfglint-gpu[online]', "
    "or name the model's config.json with --model-config"
)


class FetchError(Exception):
    """The Hub did not give a config.json; the text says why. ``final``: it is out of reach for any model."""

    final = False


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


def ready() -> None:
    """Raise UsageError if what this takes is not installed."""
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        raise UsageError(MISSING)


def fetch(name: str) -> str:
    """Return the local path of a model's config.json. Raises FetchError; UsageError if it cannot try."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        raise UsageError(MISSING) from None
    import logging

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # what failed is said once, below
    try:
        return str(hf_hub_download(name, "config.json"))
    except LocalEntryNotFoundError:
        problem = FetchError("it cannot be reached; check the connection, or run without --online")
        problem.final = True
        raise problem from None
    except Exception as error:  # noqa: BLE001 (its own, of requests, of the disk: none is ours to tell apart)
        lines = str(error).strip().splitlines()
        raise FetchError(lines[0] if lines else type(error).__name__) from None
