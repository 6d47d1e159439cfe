"""Whether a program of the project writes a config anew when it is started: what it says is the program's."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.project import Project

# What a path is put together from, before the file's name: the working folder, the program's own, and words.
_BEFORE = (
    r"""(?:os\.path\.(?:join|dirname|abspath)|os\.getcwd|Path|__file__|["'][\w./-]*["']|[()/,\s])*"""
    r"""["'](?:[\w./-]*/)?"""
)


def is_generated(project: Project, path: str) -> bool:
    """Whether a program in a file's folder, or above, writes the file, and does not look if it is there."""
    folder, base = os.path.split(os.path.abspath(path))
    named = rf"""{_BEFORE}{re.escape(base)}["']"""
    for _, text in project.above(folder):
        if base not in text or "open(" not in text:
            continue
        held = re.findall(rf"(?m)^[ \t]*([\w.]+)[ \t]*=[ \t]*{named}", text)
        spelled = "|".join([named, *map(re.escape, dict.fromkeys(held))])
        writes = rf"""\bopen\(\s*(?:{spelled})\s*,\s*(?:mode\s*=\s*)?["']w"""
        looks = rf"exists\(\s*(?:{spelled})|\b(?:{spelled})\.exists\("
        if re.search(writes, text) and not re.search(looks, text):
            return True
    return False
