"""What of a script to change by hand where its workers have GPUs by number that are not there."""

from __future__ import annotations

import re

from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Judged

WORKERS = "DOC115"
_ONE = re.compile(r"(?m)^[^\n#]*?\bCUDA_VISIBLE_DEVICES=[\"']?(\d{1,3})[\"']?[ \t]+\S")
# How many workers there are, as a flag or a variable says it: --num_shards 8, my_world_size=8.
_NAMES = r"world_size|n(?:um)?_?(?:datasets|shards|splits|parts|chunks|gpus|processes)"
_COUNT = re.compile(rf"(?m)^[^\n#]*?(?<![\w-])((?:--)?\w*(?:{_NAMES}))[ \t=]+(\d{{1,3}})\b")


def leave_out(judged: Judged) -> str:
    """Say which lines to leave out, and which numbers count the workers; nothing where no line is one's."""
    text, there = judged.subject.document.file.text, judged.values["gpu.per_node"]
    if not is_number(there):
        return ""
    own = {text.count("\n", 0, each.end()) + 1: int(each[1]) for each in _ONE.finditer(text)}
    beyond = [line for line, gpu in own.items() if gpu >= there]
    number = len(set(own.values()))
    if not beyond:
        return ""
    *most, last = map(str, beyond)
    lines = f"lines {', '.join(most)} and {last}" if most else f"line {last}"
    if len(beyond) > 2 and beyond[-1] - beyond[0] == len(beyond) - 1:
        lines = f"lines {beyond[0]} to {beyond[-1]}"
    counts = [
        f"{each[1]} {number} (line {text.count(chr(10), 0, each.end()) + 1})"
        for each in _COUNT.finditer(text)
        if int(each[2]) == number and number != there
    ]
    told = f"leave out {lines} by hand, whose GPUs are not there"
    return f"{told}, and write {int(there)} for {' and '.join(dict.fromkeys(counts))}" if counts else told
