"""What a program's own code refuses, where a framework's other versions may take it.

It is read in the text of the modules that the program leads to, and so holds of a fork whatever its version.
"""

from __future__ import annotations

import re

from cfglint.document.python.learns import texts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

# verl's list of models whose padding is removed (verl/models/registry.py), its check, and who asks for that.
_PACKED = re.compile(r"(?m)^_RE\w*PAD_MODELS\s*=\s*\{([^{}]*)\}")
_KEY = re.compile(r"""["'](\w+)["']\s*:""")
_CHECKS = re.compile(r"def check_model_support_rmpad\(.*?\braise ValueError\(", re.DOTALL)
_ASKS = re.compile(r"(?<!def )\bcheck_model_support_rmpad\(")


def packed(program: File, project: Modules) -> tuple[str, ...]:
    """Return the model types whose padding a program removes, where it stops at any other; else nothing."""
    found: tuple[str, ...] = ()
    asked = False
    for _, text in texts_of(program, project):
        models = _PACKED.search(text)
        if models is not None and _CHECKS.search(text):
            found = tuple(_KEY.findall(models[1]))
        asked = asked or _ASKS.search(text) is not None
    return found if asked else ()
