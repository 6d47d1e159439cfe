"""Pages of fit, plan, compare and diagnose: a config or a log, the flags, and the page that they must give.

``tests/<folder>/<name>.cmd`` holds the flags (for compare both paths, too), ``<name>.out`` the page; the last
line of a diagnosis is the exit status.
"""

from pathlib import Path

import pytest

from golden import expect, words_of

HERE = Path(__file__).parent
CASES = [(command, case) for command in ("fit", "plan", "compare") for case in (HERE / command).glob("*.cmd")]
LOGS = sorted((HERE / "logs").glob("*.log"))


@pytest.mark.parametrize(("command", "case"), sorted(CASES), ids=lambda part: getattr(part, "stem", part))
def test_page(command, case, terminal):
    config = [] if command == "compare" else [f"{case.stem}.yaml"]
    status, page = terminal.run(command, case.parent, [*config, *words_of(case), "--no-detect"])
    assert status == 0
    expect(case, page)
    assert "not-a-real-key" not in page


@pytest.mark.parametrize("case", LOGS, ids=lambda case: case.stem)
def test_diagnosis(case, terminal):
    status, page = terminal.run("diagnose", case.parent, [case.name, *words_of(case)])
    expect(case, f"{page}exit {status}\n")
