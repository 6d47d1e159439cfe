"""The size of a model that only names tell: its own, those of the file and the run, of a folder.

A name with a model's family in it tells a size. So does the file's or the run's without one, but not by
itself: it may be how much data there is, so that whoever asks looks whether the job's own GPUs could hold it.
"""

from __future__ import annotations

import re

from cfglint.document.tree import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.subject import Judged

_SIZE = re.compile(  # 7B, 30B-A3B, qwen30_a3b, 8x7B
    r"(?i)(?<![a-z0-9.])([0-9]{1,3}(?:\.[0-9]{1,2})?)b(?![a-z0-9])|([0-9]{2,3})b?[-_]a[0-9]{1,2}b(?![a-z0-9])"
    r"|(?<![a-z0-9.])([0-9]{1,2})x([0-9]{1,3})b(?![a-z0-9])"
)
# XTuner's classes of configs, each of one model: Qwen3MoE30BA3Config, Qwen3Dense0P6BConfig
# (xtuner/v1/model/__init__.py @b934f46).
_CLASS = re.compile(r"\b([A-Z]\w*?)([0-9]{1,3})(?:P([0-9]))?B(?:A[0-9]{1,2}(?:P[0-9])?B?)?(?:Split)?Config\(")
_FAMILY = re.compile(
    r"(?i)qwen|llama|mixtral|[a-z]stral|gemma|deepseek|intern|glm|phi|moonlight|kimi|olmo|falcon|granite|vicuna"
    r"|pythia|bloom|starcoder|baichuan|aquila|nemotron|minicpm|llava|(?<![a-z])(?:opt|gpt|yi|mpt)(?![a-z])"
)
_BEFORE = re.compile(r"(?i)([a-z]?)(?<![0-9.])([0-9])([_-])\Z")  # 1_5b, opt-6-7b: or a version, llama2_7b
_VERSION = re.compile(r"(?i)(?:llama|qwen|gemma|intern[lv][ml]|baichuan|glm|phi)[-_]?[2-4][-_]\Z")
_OF_DATA = re.compile(r"(?i)tok|data|corpus|sample|laion|pajama|fineweb|dclm|pile|webtext|coyo|(?<![a-z])c4")
_RUNS = ("experiment_name", "exper_name", "run_name", "exp_name")
_NAMES = (
    *("model_path", *_RUNS, "output_dir", "save_path"),
    "hf_assets_path",  # torchtitan's tokenizer and checkpoint
    *("checkpoint_dir", "resume_from_checkpoint"),  # of a loop of one's own
)
_HOLDERS = ((), ("trainer",), ("launch", "flags"))
_TEACHER = re.compile(r"(?i)teacher(?:_model)?(?:_name)?(?:_or)?(?:_path)?")
_SERVED = re.compile(r"(?i)teacher\w*(?:server|url|api|host|port|bit|quant|offload)")
_BILLION = 1e9
_OF_EXPERTS = 0.7  # they share their attention: 8x7B has 46.7 billion


def size_named(judged: Judged, skipped: re.Pattern[str]) -> tuple[float, str, bool]:
    """Return the least size that names tell, whose it is, and whether it is surely a model's; 0 without one.

    A config in which ``skipped`` stands tells none by its name.
    """
    texts = list(_texts(judged, skipped))
    for family in (True, False):
        told = [(text, where) for text, where, plain in texts if family or plain]
        told = [each for each in told if (_FAMILY.search(each[0]) is not None) == family]
        told = told if family else [each for each in told if not _OF_DATA.search(each[0])]
        sizes = [(size, where) for text, where in told for size in sizes_in(text)]
        if sizes:
            least, where = min(sizes)
            return least * _BILLION, where, family
    return 0, "", False


def teacher_named(judged: Judged) -> float:
    """Return the size of a teacher that a job loads beside its model, by its name; 0 without one.

    One that is served elsewhere, or packed, is not looked at.
    """
    view, root = judged.subject.view, judged.subject.document.root
    names = root.entries if isinstance(root, Mapping) else {}
    told = [view.get((name,)) for name in names if _TEACHER.fullmatch(name)]
    if any(_SERVED.search(name) for name in names):
        return 0
    sizes = [size for text in told if isinstance(text, str) for size in sizes_in(_end(text))]
    return min(sizes, default=0) * _BILLION


def sizes_in(text: str) -> Iterator[float]:
    """Yield the sizes in a name; where a number before one may be its whole part, the least."""
    for match in _SIZE.finditer(text):
        if match[3]:
            yield _OF_EXPERTS * int(match[3]) * int(match[4])
            continue
        told = match[1] or match[2]
        before = _BEFORE.search(text, 0, match.start()) if len(told) == 1 else None
        yield float(f"{before[2]}.{told}" if before is not None and _is_whole(before, text) else told)


def _is_whole(before: re.Match[str], text: str) -> bool:
    """Whether a digit before a size is rather its whole part than a version."""
    glued, digit, between = before.groups()
    if _VERSION.search(text, 0, before.end()):
        return False
    if glued:
        return between == "_" and digit in "01"
    return digit in "01" or between == "_" or _FAMILY.search(text) is None


def _end(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _texts(judged: Judged, skipped: re.Pattern[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield the names that may tell a model, whose they are, and whether they do so without a family's."""
    view, document = judged.subject.view, judged.subject.document
    yield _end(document.file.path), "the file's name", True
    configs = [each.file for each in view.layers.files] if view.layers is not None and document.over else []
    yield from (
        (_end(each.path), "its config's name", False) for each in configs if not skipped.search(each.text)
    )
    for each in view.layers.files if view.layers is not None else []:
        made = _CLASS.findall(each.file.text) if each.file.format == "program" else []
        yield from (
            (f"{name}-{whole}.{part or 0}b", "its config's model", False) for name, whole, part in made
        )
    names = [(name, view.get((*holder, name))) for holder in _HOLDERS for name in _NAMES]
    yield from ((_end(text), f"its {name}", name in _RUNS) for name, text in names if isinstance(text, str))
    own = judged.values["model_path"]
    if isinstance(own, str):
        yield _end(own), "the model's name", False
