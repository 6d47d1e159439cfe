"""Keys as reports print them."""

import pytest

from cfglint.document.spoken import spoken


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("train", "lr"), "train.lr"),
        (("launch",), "launch"),
        (("launch", "flags", "num_processes"), "--num_processes"),
        (("launch", "processes"), "the command's number of processes"),
        (("launch", "kept_number"), "the number of GPUs of the script's other commands"),
        (("launch", "trains_one"), "the command's program"),
    ],
)
def test_what_a_command_says_is_no_key_of_the_file(path, text):
    assert spoken(path) == text
