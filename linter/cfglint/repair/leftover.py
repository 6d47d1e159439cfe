"""What still asks for more GPUs than there are, once a job was moved to fewer.

Rules judge the keys that facts are read from. Another that is named like a size, and stays larger than all
the GPUs of the target, is told, and the repair may not be enough: most launchers and trainers refuse it.
"""

from __future__ import annotations

import re
from itertools import islice

from cfglint.document.spoken import spoken
from cfglint.document.tree import nodes_with_paths
from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.subject import Judged
    from cfglint.repair.write import Writer

_SIZE = re.compile(
    r"(?i)(\A|[_.-])(n?gpus|nproc|num_processes|world_size|shard_(degree|size)|fsdp_size"
    r"|(tensor|pipeline|context|sequence|expert)(_model)?_parallel(_size|_degree|_dim)?)(\Z|[_.-])"
)
_NODES = 5000  # of a document that are looked at
_TOLD = 2
_LAUNCH = "launch"  # under which a command is read once more


def left_over(before: Judged, after: Judged, writer: Writer) -> str:
    """Say which sizes of a repaired document are larger than the target; nothing where none is."""
    there = before.values["gpu.count"]
    nodes = before.values["gpu.nodes"]
    if not is_number(there):
        return ""
    most = int(there) * (int(nodes) if is_number(nodes) else 1)
    told = list(islice(_larger(after, most, writer), _TOLD))
    if not told:
        return ""
    return f"{' and '.join(told)} {'stays' if len(told) == 1 else 'stay'}, for more GPUs than there are"


def _larger(judged: Judged, most: int, writer: Writer) -> Iterator[str]:
    view = judged.subject.view
    seen = set()
    for path, _ in islice(nodes_with_paths(judged.subject.document.root), _NODES):
        name = path[-1] if path else None
        if path[:1] == (_LAUNCH,) or not isinstance(name, str) or not _SIZE.search(name) or path in seen:
            continue
        seen.add(path)
        value, steps = view.get(path), tuple(part for part in path if isinstance(part, (str, int)))
        large = isinstance(value, int) and not isinstance(value, bool) and value > most
        if large and not writer.read_from([steps]):
            yield f"{spoken(path)} {value}"
