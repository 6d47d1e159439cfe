"""Whether Python's parser gets through a text, tried in a process of its own with limits.

It is C, and nothing here can end it; of what is nested deeply, some versions overflow the stack, and of long
lines, time and memory may grow with the square.
"""

from __future__ import annotations

import subprocess

from cfglint import files

_SECONDS = 5  # of the processor
_MEMORY = 2**30  # bytes of address space
_WAIT = 20.0  # seconds, on a machine that does other things
_TRIAL = f"""
import ast, warnings
warnings.simplefilter("ignore")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, ({_SECONDS}, {_SECONDS}))
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
except (ImportError, OSError, ValueError):  # such limits are not known to this system
    pass
try:
    ast.parse(sys.stdin.buffer.read().decode("utf-8", "replace"))
except (SyntaxError, ValueError):
    pass
"""


def is_bounded(text: str) -> bool:
    """Whether a text is parsed in bounded time and memory, be it Python or not."""
    try:
        done = subprocess.run(  # noqa: S603 (this Python, and a text of this module)
            files.own_python(_TRIAL),
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # or no more processes
        return False
    return done.returncode == 0
