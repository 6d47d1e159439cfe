"""The TOML reader of the standard library, or tomli before Python 3.11."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError as TomlError
    from tomllib import loads
else:
    from tomli import TOMLDecodeError as TomlError
    from tomli import loads

__all__ = ["TomlError", "loads"]
