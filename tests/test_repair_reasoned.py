"""A value whose comment cites an issue is not moved by an edit."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.document.scalars import PYYAML
from cfglint.document.view import View
from cfglint.repair.reasoned import has_reason

ISSUE = "https://github.com/huggingface/transformers/issues/34928"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"a:\n  # sizes differ with checkpointing, see {ISSUE}\n  key: true\n", True),
        (f"a:\n  key: true  # blocked by {ISSUE}\n", True),
        (f"a:\n  # see {ISSUE}\n  other: 1\n  key: true\n", False),
        (f"a:\n  key: true  # TODO: {ISSUE}\n", False),
        ("a:\n  key: true  # see the manual\n", False),
        (f"a:\n  other: 1  # {ISSUE}\n", False),
    ],
)
def test_has_reason(text: str, *, expected: bool) -> None:
    document = read_text(text, "a.yaml").documents[0]
    assert has_reason(View(document, PYYAML), ("a", "key")) is expected
