"""Whose program reads a document: its framework's, as released, or one that may have other defaults."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cfglint.document.tree import Document
    from cfglint.document.view import View


def is_own(framework: str, block: Mapping[str, Any], document: Document | None, view: View | None) -> bool:
    """Whether a framework's defaults hold: in its config files, and where a launch starts its own program.

    A package of the framework in the repository may differ from the one that is known, but a whole config of
    Hydra's settles what it reads; keys that it lacks, the package does not know. Another program has the
    defaults if it makes its arguments of the framework's classes, or is not here and is given a config;
    so has one that somebody says the framework reads (``--framework``).
    """
    if document is None or document.format != "shell" or view is None or not block["programs"]:
        return True
    if (
        document.vouched
        or view.get(("launch", "suite")) == framework
        or not is_foreign(block, framework, view)
    ):
        return True
    based = view.layers is not None and view.layers.based
    return based and (bool(block["composes"]) or document.vendored or document.program is None)


def is_foreign(block: Mapping[str, Any], framework: str, view: View) -> bool:
    """Whether the program that reads a document may differ from the framework's, as it was released.

    So does one of another name, unless it makes its arguments of the framework's classes, and each of a
    package that the repository of the document holds.
    """
    document = view.document
    if document.vendored:
        return True
    if document.format != "shell" or not block["programs"]:
        return False
    if document.program is not None and document.program.trainer is not None:
        return False
    return not starts_own(block, framework, view)


def starts_own(block: Mapping[str, Any], framework: str, view: View) -> bool:
    """Whether a command starts a program of the framework, by its name."""
    if view.get(("launch", "suite")) == framework:
        return True
    from fnmatch import fnmatchcase  # most files are no scripts

    program = view.get(("launch", "program"))
    return isinstance(program, str) and any(fnmatchcase(program, pattern) for pattern in block["programs"])
