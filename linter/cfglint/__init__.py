"""cfglint: a rules engine and a linter for GPU training configs."""

from __future__ import annotations

from cfglint.about import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.api import check_text, fix_text

__version__ = VERSION
__all__ = ["__version__", "check_text", "fix_text"]


def __getattr__(name: str) -> object:
    # The command line must not pay for what only Python callers use.
    if name in {"check_text", "fix_text"}:
        from cfglint import api

        return getattr(api, name)
    raise AttributeError(f"module 'cfglint' has no attribute {name!r}")
