"""Which arguments the code of a project declares: the fields of its classes, and the flags of its parsers.

A key that the released framework does not know may be an argument of the project's own fork or program.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# `    name: int = 1` of a class, not `    name: int,` of a function; and `"--name"`.
_DECLARED = r"""(?m)^[ \t]+{0}[ \t]*:[ \t]*[A-Za-z"'][^\n]*(?<!,)(?<!,\r)$|["']--{0}["']"""


def declares(code: Iterable[str], name: str, choice: str | None = None) -> bool:
    r"""Whether one of some Python files declares an argument, and names a ``choice`` of it, if one is given.

    >>> declares(["class Arguments:\n    meta_k: int = 4\n"], "meta_k")
    True
    >>> declares(["parser.add_argument('--meta-k')\n"], "meta_k", "many")
    False
    """
    field, flag = name.replace("-", "_"), name.replace("_", "-")
    spelled = "[-_]".join(map(re.escape, field.split("_")))
    pattern = re.compile(_DECLARED.format(spelled))
    quoted = ("",) if choice is None else (f'"{choice}"', f"'{choice}'")
    return any(
        (field in text or flag in text)  # most files are passed over by this alone
        and any(each in text for each in quoted)
        and pattern.search(text) is not None
        for text in code
    )
