"""Flags that are called after data or a model, and name none for the program."""

from __future__ import annotations

import pytest

from cfglint.document.python.vain import vain_flags
from cfglint.document.tree import File

_FIELDS = """
@dataclass
class Arguments:
    dataset_name: str | None = None
    dataset_list: list[str] = field(default_factory=lambda: ["own/texts", "1.0"])
    dataset_dir: str | None = field(default=None, metadata={"help": "Where to save the mixed dataset."})
    corpus: str | None = None
    data_path: str | None = None

    def __post_init__(self):
        if self.dataset_name is not None and self.dataset_list is not None:
            raise ValueError("two ways to name the data")

data = load(args.dataset_name or args.dataset_list, args.dataset_dir, args.data_path)
"""
_PARSER = """
parser.add_argument("--dataset", default=None)
parser.add_argument("--data-file", default="texts.jsonl")
parser.add_argument("--data-dir", default=None, help="texts are saved to it")
args = parser.parse_args()
data = load(args.dataset, args.data_file, args.data_dir)
"""
_NAMES = frozenset(("dataset_name", "dataset_list", "dataset_dir", "corpus", "data_path"))


@pytest.mark.parametrize(
    ("text", "flags", "vain"),
    [
        (_FIELDS, _NAMES, {"dataset_name", "dataset_dir", "corpus"}),
        (_FIELDS.replace("] = field(", "] | None = None  # ("), _NAMES, {"dataset_dir", "corpus"}),
        (_FIELDS.replace("is not None:", "is None:"), _NAMES, {"dataset_dir", "corpus"}),
        (_FIELDS.partition("data =")[0].replace("self.", "own_"), _NAMES, {"dataset_dir"}),
        (_PARSER, frozenset(("dataset", "data_file", "data_dir")), {"data_dir"}),
    ],
)  # fmt: skip
def test_flags_that_say_nothing_of_the_data(text, flags, vain):
    assert vain_flags([File("train.py", text, "program")], flags) == vain
