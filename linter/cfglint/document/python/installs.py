"""Which packages a notebook installs in their newest version, before it runs.

A cell of a notebook may call pip (``!pip install -U trl``, ``%pip install git+https://…``): what is upgraded
there without a version, or taken from a repository's main branch, is of the day on which the notebook runs.
"""

from __future__ import annotations

import re

_CALL = re.compile(r"[!%]\s*(?:uv\s+)?pip3?\s+install\s+((?:[^\"\\\n]|\\\\?[\"'])*)")
_UPGRADE = re.compile(r"--upgrade$|-[a-zA-Z]*U[a-zA-Z]*$")
_PLAIN = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?$")
_MAIN = re.compile(r"git\+https://[\w.-]+/[\w.-]+/([\w.-]+?)(?:\.git)?/?$")
_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)")
_REPO = re.compile(r"git\+[a-z]+://[\w.@-]+/[\w.-]+/([\w.-]+?)(?:\.git)?(?:[@#].*)?$")


def newest(text: str) -> list[str]:
    """Return the packages that a notebook installs without a version of their own, by their names."""
    found: dict[str, bool] = {}
    for call in _CALL.finditer(text):
        words = call[1].replace('\\"', "").replace('"', "").replace("'", "").split()
        upgrades = any(_UPGRADE.match(word) for word in words)
        for word in words:
            if word.startswith("-"):
                continue
            plain, main = _PLAIN.match(word), _MAIN.match(word)
            named = main or plain or _REPO.match(word) or _NAMED.match(word)
            if named is not None:
                name = named[1].lower()
                free = main is not None or (plain is not None and upgrades)
                found[name] = free and found.get(name, True)
    return [name for name, free in found.items() if free]
