"""``cfglint compare`` of two configs and of the same two the other way round."""

import json
from pathlib import Path

import pytest

from golden import Page

CASES = Path(__file__).parent / "compare"
COMMANDS = Page(CASES / "pages.md").shown


def turned(data):
    """What comparing the other way round must say."""
    swap = {"a": "b", "b": "a"}
    for one in (data, *data["settings"], *data["derived"], *data["keys"], *data["targets"]):
        one["a"], one["b"] = one["b"], one["a"]
    for one in (*data["settings"], *data["derived"]):
        for effect in one["effects"]:
            effect["from"], effect["to"] = swap[effect["from"]], swap[effect["to"]]
        one["effects"].sort(key=lambda e: e["to"], reverse=True)
    for one in (*data["settings"], *data["derived"], *data["ratios"]):
        if one["b_by_a"] is not None:
            one["b_by_a"] = float(f"{1 / one['b_by_a']:.4g}")
    data["keys"].sort(key=lambda k: k["key"])
    return data


def rounded(data):
    for one in (*data["settings"], *data["derived"], *data["ratios"]):
        if one["b_by_a"] is not None:
            one["b_by_a"] = float(f"{one['b_by_a']:.4g}")
    for one in (*data["settings"], *data["derived"]):
        one["effects"].sort(key=lambda e: e["to"], reverse=True)
    data["keys"].sort(key=lambda k: k["key"])
    return data


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_other_way_round_is_the_mirror(words, terminal):
    _, one, other, *flags = words
    flags = [*flags, "--format", "json", "--no-detect", "--quiet"]
    there, back = (
        json.loads(terminal.run("compare", CASES, [*pair, *flags])[1])
        for pair in ([one, other], [other, one])
    )
    assert rounded(back) == turned(there)
