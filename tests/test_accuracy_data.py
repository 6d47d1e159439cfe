"""The data that benchmarks/accuracy.py judges: every row speaks the vocabulary and names real targets."""

import json
from pathlib import Path

import pytest
import yaml

from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.errors import HardwareError
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import needs_of

DATA = Path(__file__).resolve().parents[1] / "benchmarks" / "data"
STATISTICS = {"allocated", "active", "reserved", "nvidia-smi", "unknown"}
SCOPES = {"per_gpu", "fullest_gpu", "sum_over_gpus", "process"}
SUBJECTS = {"trainer", "engine", "engine.pool", "engine.graphs"}


@pytest.fixture(scope="module")
def rows():
    """The rows of both files, by file."""
    return {
        name: yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("published", "outcomes")
    }


@pytest.fixture(scope="module")
def pack():
    """The shipped rules."""
    return load()


def replayed(pack, row):
    """A row as a facts file, as benchmarks/accuracy.py reads it."""
    text = json.dumps({"cfglint": "facts", **row["facts"]})
    run = Run(pack, tables={})
    return values_for(run.subject_of(read_text(text, "row.json").documents[0], "facts"), {})


def test_ids_are_unique_over_both_files(rows):
    ids = [row["id"] for some in rows.values() for row in some]
    assert len(ids) == len(set(ids))


def test_there_are_as_many_rows_as_were_collected(rows):
    assert {name: len(some) for name, some in rows.items()} == {"published": 366, "outcomes": 188}
    assert sum(row["estimator_ready"] for row in rows["published"]) == 201
    assert sum(row["states_what_is_needed"] for row in rows["outcomes"]) == 38


def test_every_fact_is_in_the_vocabulary_and_has_a_value_of_its_type(rows, pack):
    wrong = []
    for some in rows.values():
        for row in some:
            values = replayed(pack, row)
            wrong += [
                (row["id"], name, value)
                for name, value in row["facts"].items()
                if name not in pack.facts or needs_of(values[name])
            ]
    assert wrong == []


def test_what_is_assumed_is_given_and_what_is_untold_is_not(rows, pack):
    for some in rows.values():
        for row in some:
            assert set(row.get("assumed", ())) <= set(row["facts"]), row["id"]
            assert not set(row.get("untold", ())) & set(row["facts"]), row["id"]
            assert set(row.get("untold", ())) <= set(pack.facts), row["id"]


def test_every_target_is_in_the_catalogue(rows):
    for some in rows.values():
        for row in some:
            if row["gpu"] is None:
                assert row["missing"], row["id"]  # says why
                continue
            try:
                target = parse_target(row["gpu"])
            except HardwareError as error:
                pytest.fail(f"{row['id']}: {error}")
            assert target.name == row["gpu"], f"{row['id']}: {row['gpu']} is another name for {target.name}"


def test_every_row_names_its_source(rows):
    for some in rows.values():
        for row in some:
            assert ":" in row["source"] or "#" in row["source"], row["id"]


def test_published_numbers_are_intervals_of_a_known_statistic(rows):
    for row in rows["published"]:
        assert row["statistic"] in STATISTICS, row["id"]
        assert row.get("likely", "reserved") in STATISTICS, row["id"]
        assert row["scope"] in SCOPES, row["id"]
        assert row["of"] in SUBJECTS, row["id"]
        peak = row["peak_gib"]
        if peak is None:
            assert "at_least_gib" in row, row["id"]
        else:
            assert 0 < peak[0] <= peak[1] <= peak[0] * 1.1, row["id"]  # a GB is at most 7.4 % off a GiB
        if row["estimator_ready"]:
            assert peak is not None, row["id"]


def test_only_gpus_that_ran_out_can_state_what_is_needed(rows):
    for row in rows["outcomes"]:
        assert row["result"] in {"oom", "fits", "other"}, row["id"]
        assert row["device"] in {"gpu", "host"}, row["id"]
        if row["states_what_is_needed"]:
            assert row["result"] == "oom", row["id"]
            assert row["device"] == "gpu", row["id"]
            assert row["gpu"] or "gpu.vram" in row["facts"], row["id"]
            assert not row.get("opinion"), row["id"]
