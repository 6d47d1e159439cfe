"""Whether a program gives its trainer an optimizer of its own, and not AdamW with other groups of weights.

DeepSpeed's offload takes it for Adam (accelerate/utils/deepspeed.py: map_pytorch_optim_to_deepspeed).
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_GIVEN = re.compile(r"(?m)^[^#\n]*\boptimizers[ ]*=[ ]*\([ ]*(?!None\b)([A-Za-z_][\w.]*)")
_MADE = re.compile(
    r"(?m)^(?P<blank>[ \t]+)def[ ]create_optimizer\(self\b[^\n]*\n"
    r"(?P<body>(?:(?P=blank)[ \t][^\n]*\n|[ \t]*\n)+)"
)
_USUAL = re.compile(r"\b(?:\w*Adam|AdamW|Adam\w*Fused)\(|get_optimizer_cls_and_kwargs|\bAdamW\b")
_SETS = re.compile(r"self\.optimizer[ ]*=(?!=)")
_TRAINERS = "Trainer"


def makes_optimizer(program: File, project: Modules) -> bool:
    """Whether a program's trainer has an optimizer that is none of Adam's."""
    files = [file for file in project.files(program) if _TRAINERS in file.text]
    for file in files:
        given = _GIVEN.search(file.text)
        if given is not None and not _is_usual(file.text, given[1]):
            return True
        for made in _MADE.finditer(f"{file.text}\n"):
            if _SETS.search(made["body"]) and not _USUAL.search(made["body"]):
                return True
    return False


def _is_usual(text: str, name: str) -> bool:
    """Whether what a name stands for is Adam: where it is set, or in the function that gives it."""
    set_to = re.search(rf"(?m)^[ \t]*{re.escape(name)}[ ]*(?:,[^=\n]*)?=[ ]*([\w.]+)\(", text)
    if set_to is None:
        return True  # an argument, or what is not followed
    if _USUAL.search(f"{set_to[1]}("):
        return True
    body = re.search(
        rf"(?ms)^[ \t]*def[ ]{re.escape(set_to[1].rpartition('.')[2])}\(.*?(?=^[^ \t\n)]|\Z)", text
    )
    return body is not None and _USUAL.search(body[0]) is not None
