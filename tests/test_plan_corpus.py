"""Real configs: a plan for each comes to rows that make up its batch, or says in one line why there is none.

The configs are not part of the project; the tests run where CFGLINT_SHARED names the folder that holds them.
"""

import json
import os
from pathlib import Path

import pytest

from cfglint.errors import CfglintError
from cfglint.features import plan

SHARED = os.environ.get("CFGLINT_SHARED")
pytestmark = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
CORPUS = Path(SHARED or ".") / "corpus"
FILES = sorted(CORPUS.glob("areal*/**/*.yaml")) if SHARED else []
SAID = (
    "this config trains nothing",
    "no framework recognises",
    "is not in the catalogue",
    "cannot be computed",
    "cannot be reached",
    "run cfglint check on it first",
)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CORPUS)))
def test_real_config(path, capsys):
    try:
        status = plan.main([str(path), "--gpu", "h100-sxm", "--no-detect", "--format", "json"])
    except CfglintError as error:
        status, why = 2, str(error)
    if status == 2:
        assert any(said in why for said in SAID), why
        return
    data = json.loads(capsys.readouterr().out)
    for batch in data["plans"][0]["batches"]:
        assert batch["rows"] or batch["without"]
        for row in batch["rows"]:
            assert row["data_parallel"] <= row["gpus"]
            if row["micro_batch"] is not None:
                assert (
                    row["micro_batch"] * row["accumulation"] * row["data_parallel"]
                    == batch["effective_batch"]
                )
