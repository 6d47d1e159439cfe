"""Whether the parser of shell scripts gets through a text, tried in a process of its own with limits.

Of mistakes in each other it tries all ways to mend them, in C and at once: time and memory grow with the
square of the text, nothing here can end that, and a want of memory ends the process.
"""

from __future__ import annotations

import subprocess

from cfglint import files

_SECONDS = 5  # of the processor; the largest script that is read takes one
_MEMORY = 3 * 2**28  # bytes of address space; that one takes a third of it
_WAIT = 20.0  # seconds, on a machine that does other things
_TRIAL = f"""
import tree_sitter_bash
from tree_sitter import Language, Parser
parser = Parser(Language(tree_sitter_bash.language()))
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, ({_SECONDS}, {_SECONDS}))
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
except (ImportError, OSError, ValueError):  # such limits are not known to this system
    pass
parser.parse(sys.stdin.buffer.read())
"""


def is_bounded(data: bytes) -> bool:
    """Whether a text is parsed in bounded time and memory."""
    try:
        done = subprocess.run(  # noqa: S603 (this Python, and a text of this module)
            files.own_python(_TRIAL),
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):  # or no more processes
        return False
    return done.returncode == 0
