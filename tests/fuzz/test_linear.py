"""Four times as much of anything takes about four times as many steps, in calls that Python makes."""

import sys

import pytest

from cfglint.lang.pack import load
from fuzz import targets

TRL = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 8\noutput_dir: out\nbf16: true\n"
ZERO = '{"zero_optimization": {"stage": 3}, '
RUN = "accelerate launch -m openrlhf.cli.train_sft --train.batch_size 8"
SMALL = 40
# An input of n parts, by the kind of input and what there is much of. What the parts cost together is in
# tests/hostile, as are the largest that are read.
GROWING = {
    "yaml keys": lambda n: TRL + "".join(f"key_{i}: {i}\n" for i in range(n)),
    "yaml lines of one list": lambda n: TRL + "a:\n" + "- x\n" * n,
    "yaml lists": lambda n: TRL + "a: [" + "[1, 2], " * n + "]\n",
    "yaml mappings": lambda n: TRL + "".join(f"m{i}: {{a: 1, b: 2}}\n" for i in range(n)),
    "yaml comments": lambda n: TRL + "# a: 1\n" * n,
    "yaml a long text": lambda n: TRL + "a: |\n" + "  x: 1\n" * n,
    "yaml a long line": lambda n: TRL + 'a: "' + "\\u0041 " * n + '"\n',
    "yaml suppressions": lambda n: TRL + "a: 1 # cfglint: ignore CFG009\n" + "# cfglint: ignore\n" * n,
    "json keys": lambda n: ZERO + ", ".join(f'"k{i}": {i}' for i in range(n)) + "}",
    "json items": lambda n: ZERO + '"a": [' + ", ".join("1" * n) + "]}",
    "toml keys": lambda n: '[model]\nname = "llama3"\n' + "".join(f"k{i} = {i}\n" for i in range(n)),
    "toml tables": lambda n: "".join(f"[t{i}]\na = 1\n" for i in range(n)),
    "toml arrays of tables": lambda n: "[[a]]\nb = 1\n" * n,
    "script flags": lambda n: RUN + "".join(f" --k{i} {i}" for i in range(n)) + "\n",
    "script variables": lambda n: "".join(f"V{i}={i}\n" for i in range(n)) + RUN + "\n",
    "script commands": lambda n: "echo x | cat > y\n" * n + RUN + "\n",
    "script quotes": lambda n: RUN + " --a " + "'x'\"y\"" * n + "\n",
    "manifest containers": lambda n: (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n" + "  - {name: a, command: [sleep, '1']}\n" * n
    ),
    "log lines": lambda n: "step 1 loss 2\n" * n + "CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    "settings globs": lambda n: "[frameworks]\n" + "".join(f'"{i}/*.yaml" = "trl"\n' for i in range(n)),
    "model keys": lambda n: '{"model_type": "x", ' + ", ".join(f'"k{i}": {i}' for i in range(n)) + "}",
}  # fmt: skip


def _steps(kind, text):
    count = 0

    def step(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(step)
    try:
        targets.TARGETS[kind](text.encode())
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.long
@pytest.mark.parametrize("name", GROWING)
def test_steps_grow_with_the_input(name, monkeypatch):
    monkeypatch.setattr(targets, "crc32", lambda _: 1)  # the same commands on each
    kind, make = name.split()[0], GROWING[name]
    load().symbols()  # the rules' trees, which the first finding loads
    _steps(kind, make(1))  # and what else is loaded once
    base, few, many = (_steps(kind, make(n)) for n in (1, SMALL, 4 * SMALL))
    assert many - base <= 5 * (few - base) + 5_000, (base, few, many)
