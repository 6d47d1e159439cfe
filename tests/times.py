"""Write ``long.txt``, the tests that are left to the slow tier, from the times that a run of all took.

``pytest -m "" --junitxml=times.xml``, then ``python tests/times.py times.xml``. A test that takes more than
``MOST`` seconds a case is long; its first case stays in the fast tier where that takes at most ``FIRST``.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

MOST, FIRST = 0.25, 0.45  # seconds
KEPT = ("tests.test_readme::",)  # what a newcomer types is tried at every change
WHERE = Path(__file__).with_name("long.txt")
HEAD = "# Tests of the slow tier, by their times (times.py). With a +, the first case is of the fast tier.\n"


def long_tests(report: str) -> list[str]:
    """Return the lines of ``long.txt`` for a report of all tests in JUnit's form."""
    times: dict[str, list[float]] = {}
    for case in ET.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '').partition('[')[0]}"
        times.setdefault(name, []).append(float(case.get("time", 0)))
    means = {name: sum(each) / len(each) for name, each in times.items()}
    return [
        f"{name}{' +' * (times[name][0] <= FIRST)}"
        for name in sorted(times)
        if means[name] > MOST and not name.startswith(KEPT)
    ]


if __name__ == "__main__":
    lines = long_tests(Path(sys.argv[1]).read_text(encoding="utf-8"))
    WHERE.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")
