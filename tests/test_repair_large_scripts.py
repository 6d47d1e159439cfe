"""A script too large to be parsed unwatched is tried once in a process of its own, and not for each fix."""

from __future__ import annotations

from cfglint.document import trial
from cfglint.document.compose import edited
from cfglint.document.reading import read_text
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

SCRIPT = "# a long story about this run\n" * 400 + "torchrun --nproc_per_node 8 train.py --max_length 1024\n"


def test_a_text_with_a_fix_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    real = trial.subprocess.run

    def run(*args: object, **rest: object) -> object:
        tried.append(args)
        return real(*args, **rest)  # type: ignore[call-overload]

    monkeypatch.setattr(trial.subprocess, "run", run)
    file = read_text(SCRIPT, "train.sh")
    assert len(tried) == 1
    at = SCRIPT.index("8 train")
    after = edited(file.documents[0], [Edit(at, at + 1, "2")])
    assert after is not None
    assert len(tried) == 1
    read_text(SCRIPT.replace("1024", "2048"), "train.sh")
    assert len(tried) == 2
