"""Fetches a model's config.json from the Hugging Face Hub, on ``--online``; nothing else is fetched."""

from __future__ import annotations

import logging

from cfglint.errors import UsageError

MISSING = (
    "--online wants the package huggingface_hub, and it is not installed; pip install 'cfglint[online]', "
    "or name the model's config.json with --model-config"
)


class FetchError(Exception):
    """The Hub did not give a config.json; the text says why. ``final``: it is out of reach for any model."""

    final = False


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
