"""Whether a parser written in C gets through a text, tried in a process of its own with limits.

Nothing here can end such a parser, a want of memory or of stack ends its process, and of some texts time and
memory grow with the square.
"""

from __future__ import annotations

import subprocess

from cfglint import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

_SECONDS = 5  # of the processor; the largest text that is read takes one
_MEMORY = 2**30  # bytes of address space
_WAIT = 20.0  # seconds, on a machine that does other things
_LIMITS = f"""
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, ({_SECONDS}, {_SECONDS}))
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
except (ImportError, OSError, ValueError):  # such limits are not known to this system
    pass
data = sys.stdin.buffer.read()
"""


class Known:
    """``with Known():`` texts are tried no more: they are one that was, with a few words of a fix in it."""

    deep: ClassVar[int] = 0

    def __enter__(self) -> None:
        Known.deep += 1

    def __exit__(self, *_: object) -> None:
        Known.deep -= 1


def is_bounded(prepare: str, parse: str, data: bytes) -> bool:
    """Whether the code ``parse`` gets through ``data`` in bounded time and memory, after ``prepare``."""
    if Known.deep:
        return True
    try:
        done = subprocess.run(  # noqa: S603 (this Python, and code of two modules here)
            files.own_python(f"{prepare}\n{_LIMITS}{parse}"),
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # or no more processes
        return False
    return done.returncode == 0
