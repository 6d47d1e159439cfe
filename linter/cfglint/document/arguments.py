"""Which arguments the code of a project declares: the fields of its classes, and the flags of its parsers.

A key that the released framework does not know may be an argument of the project's own fork or program.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# A field of a class and no argument `name: int,` of a function; a flag; a key taken out, or a name for one;
# what a config is asked for.
_FIELD = r"""(?m)^[ \t]+{0}[ \t]*:[ \t]*[A-Za-z"'][^\n]*(?<!,)(?<!,\r)$"""
_FLAG = r"""["']--{0}["']"""
_BEGUN = r"""["']--{0}[\w-]*["']"""  # argparse takes the beginning of a flag for the flag
_KEY = r"""(?:\bpop\(|^[A-Z_]+ = |\bkey == )["']{0}["']"""
_ASKED = r"""\b(?:cfg|conf|config|args|\w+_(?:cfg|config|args))\.(?:get\(["'])?{0}\b(?!\()"""


def declares(code: Iterable[str], name: str, choice: str | None = None, *, begun: bool = False) -> bool:
    r"""Whether one of some Python files declares an argument, and names a ``choice`` of it, if one is given.

    ``begun`` says that the beginning of a flag will do.

    >>> declares(["class Arguments:\n    meta_k: int = 4\n"], "meta_k")
    True
    >>> declares(["parser.add_argument('--meta-k')\n"], "meta_k", "many")
    False
    >>> [declares(["parser.add_argument('--meta-k')\n"], "meta", begun=begun) for begun in (True, False)]
    [True, False]
    >>> declares(["_KEY = '_base_'\n"], "_base_"), declares(["kwargs.get('_base_')\n"], "_base_")
    (True, False)
    >>> declares(["if cfg.meta_k:"], "meta_k"), declares(["config.get('meta_k')"], "meta_k")
    (True, True)
    """
    field, flag = name.replace("-", "_"), name.replace("_", "-")
    spelled = "[-_]".join(map(re.escape, field.split("_")))
    pattern = re.compile(f"{_FIELD}|{_BEGUN if begun else _FLAG}|{_KEY}|{_ASKED}".format(spelled))
    quoted = ("",) if choice is None else (f'"{choice}"', f"'{choice}'")
    return any(
        (field in text or flag in text)  # most files are passed over by this alone
        and any(each in text for each in quoted)
        and pattern.search(text) is not None
        for text in code
    )
