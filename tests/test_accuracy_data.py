"""The data that benchmarks/accuracy.py judges: every row speaks the vocabulary and names real targets."""

import json
import sys
from collections import Counter
from importlib import import_module
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

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import accuracy_rows  # noqa: E402

DATA = BENCHMARKS / "data"
COUNTED = {"published": 1151, "outcomes": 516}
READY, STATED = 775, 208
MOST = 25  # collected rows of a group and statistic: one sweep must not drown the rest
STATISTICS = {"allocated", "active", "reserved", "nvidia-smi", "unknown"}
SCOPES = {"per_gpu", "fullest_gpu", "sum_over_gpus", "process"}
SUBJECTS = {"trainer", "engine", "engine.pool", "engine.graphs"}
# What benchmarks/collect makes.
COLLECTED = ("adapters-", "arctic-", "fmsaccel-", "foundry-", "fsdpqlora-", "primerl-", "read-", "simumax-")


@pytest.fixture(scope="module")
def rows():
    """The rows of all files, by file."""
    texts = {name: (DATA / f"{name}.yaml").read_text(encoding="utf-8") for name in COUNTED}
    return {
        name: yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) for name, text in texts.items()
    }


@pytest.fixture(scope="module")
def pack():
    """The shipped rules."""
    return load()


@pytest.fixture
def collect(monkeypatch):
    """The modules of benchmarks/collect, which are no package."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS / "collect"), *sys.path])


def replayed(pack, row):
    """A row as a facts file, as benchmarks/accuracy.py reads it."""
    text = json.dumps({"cfglint": "facts", **row["facts"]})
    run = Run(pack, tables={})
    return values_for(run.subject_of(read_text(text, "row.json").documents[0], "facts"), {})


def test_ids_are_unique_over_both_files(rows):
    ids = [row["id"] for some in rows.values() for row in some]
    assert len(ids) == len(set(ids))


def test_there_are_as_many_rows_as_were_collected(rows):
    assert {name: len(some) for name, some in rows.items()} == COUNTED
    assert sum(row["estimator_ready"] for row in rows["published"]) == READY
    assert sum(row["states_what_is_needed"] for row in rows["outcomes"]) == STATED


def test_a_row_names_its_group_by_the_project_it_is_from(rows):
    for some in rows.values():
        for row in some:
            project, family = row["group"].split("|")
            assert row["source"].split(":")[0].split("#")[0].strip() == project, row["id"]
            assert family, row["id"]


def test_no_sweep_gives_more_rows_than_the_rest(rows):
    collected = Counter(
        (row["group"], row.get("statistic", "outcome"))
        for some in rows.values()
        for row in some
        if row["id"].startswith(COLLECTED)
    )
    assert [group for group, count in collected.items() if count > MOST] == []


@pytest.mark.parametrize("module", ["handread", "freshread"])
def test_what_was_read_by_hand_is_what_the_data_files_hold(rows, collect, module):
    import handread

    read = import_module(module)
    made = handread.rows_of_all(read.SOURCES, read.PREFIX)
    for name, some in zip(("published", "outcomes"), made, strict=True):
        kept = [row for row in rows[name] if row["id"].startswith(read.PREFIX)]
        assert kept == [json.loads(json.dumps(row)) for row in some]


def test_a_row_of_a_config_or_a_launch_is_read_by_its_block(rows, pack):
    for some in rows.values():
        for row in some:
            if "config" in row or "command" in row:
                values = accuracy_rows.values_of(row)
                assert not needs_of(values["task"]), row["id"]
                assert values["framework.name"] in pack.frameworks.keys() - {"facts"}, row["id"]


def test_rows_are_thinned_evenly_and_by_group_and_statistic(collect):
    from rows import thinned

    made = [{"group": "a|b", "statistic": kind, "id": number} for number in range(100) for kind in ("x", "y")]
    kept = thinned(made, 4)
    assert [row["id"] for row in kept if row["statistic"] == "x"] == [0, 25, 50, 75]
    assert len(kept) == 8
    assert thinned(made[:3], 4) == sorted(made[:3], key=lambda row: row["statistic"])


def test_a_collectors_rows_replace_those_with_its_prefix_and_no_others(collect, tmp_path, monkeypatch):
    import rows as module

    monkeypatch.setattr(module, "DATA", tmp_path)
    path = tmp_path / "published.yaml"
    path.write_text("# head\n- id: old-1\n  a: 1\n- id: new-1\n  a: 1\n", encoding="utf-8")
    module.write("published", "new-", [{"id": "new-2", "facts": {"task": "sft", "lora_targets": ["q_proj"]}}])
    text = path.read_text(encoding="utf-8")
    assert text == "# head\n- id: old-1\n  a: 1\n- id: new-2\n  facts: {task: sft, lora_targets: [q_proj]}\n"


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
            assert set(row.get("assumed", ())) <= {*row["facts"], *row.get("config", ())}, row["id"]
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
            assert 0 < peak[0] <= peak[1] <= peak[0] * 1.15, row["id"]  # of GB or GiB, and whole ones
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
