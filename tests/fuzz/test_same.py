"""A report is the same whatever the hash seed and however many processes make it."""

import json
from random import Random

from fuzz.mutate import mutated
from fuzz.seeds import seeds
from tiers import LONG

NAMES = {
    "yaml": "c{}.yaml",
    "json": "c{}.json",
    "toml": "c{}.toml",
    "script": "c{}.sh",
    "manifest": "job{}.yaml",
}


def test_reports_are_equal(cfglint, folder):
    random = Random(14)
    for number in range(300 if LONG else 24):
        kind, name = random.choice(list(NAMES.items()))
        text = random.choice(seeds(kind))
        data = text.encode() if random.randrange(3) == 0 else mutated(random, kind, text)
        (folder / name.format(number)).write_bytes(data)
    runs = [(0, 1), (1, 2), (2, 1), (0, 2), (1, 1), (2, 2)] if LONG else [(0, 1), (1, 2)]
    for words in (("check", "--format", "json"), ("fix", "--diff", "--unsafe")):
        first = None
        for seed, jobs in runs:
            done = cfglint(
                *words,
                ".",
                "--gpu",
                "a40:8",
                "--jobs",
                jobs,
                env={"PYTHONHASHSEED": str(seed)},
                seconds=300,
                text=False,
            )
            said = done.returncode, done.stdout, done.stderr
            first = first or said
            assert said == first, f"seed {seed}, {jobs} processes: {words}"
        if "json" in words:
            assert len(json.loads(first[1])["findings"]) > 10  # that there is something to differ in
        else:
            assert first[1].count(b"\n+++ ") > 2
