"""``cfglint test``: rules that are at odds with their own examples, or with each other.

Each example that a rule carries states an outcome, and the rule has to come to it (examples.py). Rules must
not be at odds with each other either (conflicts.py), and each must be able to fire (vacuous.py). A GPU
that they name must be one (gpus.py). A folder of rules may have pages of configs beside them (pages.py).
"""

from __future__ import annotations

from cfglint import files
from cfglint.boundary import Boundary
from cfglint.command import Arguments, free, output, parse, switch
from cfglint.features.test.conflicts import clashes
from cfglint.features.test.examples import run_examples
from cfglint.features.test.gpus import misnamed
from cfglint.features.test.vacuous import vacuous
from cfglint.lang.pack import load, read_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.features.test.pages import Failure


class TestArguments(Arguments):
    """The arguments of ``test``."""

    command = "test"
    about = "Run the examples in rule files, and look for rules that contradict each other."

    rules: list[str] = free(
        "RULES", "rule files, or folders with tests/*.md (default: the shipped rules)", many=True
    )
    update: bool = switch("write what is printed into the pages, to be read before it is committed")


def main(arguments: list[str]) -> int:
    """Run the rules' own examples and pages, and rules against rules; exit 1 if something is wrong."""
    args = parse(TestArguments, arguments)
    pack = load(read_rules(args.rules, Boundary(args.rules)) if args.rules else None)
    mine = frozenset(pack.own()) if args.rules else None
    outcomes = run_examples(pack, mine)
    wrong = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in wrong:
        output.tell(outcome)
    failures, cases = _pages(args, mine or frozenset())
    for failure in failures:
        output.tell(failure)
    fires = {outcome.code for outcome in outcomes if outcome.ok and outcome.expected in ("bad", "may")}
    idle = vacuous(pack, mine, fires)
    for rule in idle:
        output.tell(rule)
    unmet = misnamed(pack)
    for complaint in unmet:
        output.tell(complaint)
    at_odds = clashes(pack, mine)
    for clash in at_odds:
        output.tell(clash)
    counted = f"{len(outcomes)} example{'s' * (len(outcomes) != 1)}"
    counted += f" and {cases} case{'s' * (cases != 1)}" if cases else ""
    summary = [f"{counted}, {len(wrong) + len(failures)} wrong"]
    if idle:
        summary.append(f"{len(idle)} rule{'s' * (len(idle) != 1)} that can never fire")
    if unmet:
        summary.append(f"{len(unmet)} name{'s' * (len(unmet) != 1)} that no GPU has")
    if at_odds:
        summary.append(f"{len(at_odds)} clash{'es' * (len(at_odds) != 1)}")
    output.tell(", ".join(summary))
    return int(bool(wrong or failures or idle or unmet or at_odds))


def _pages(args: TestArguments, codes: frozenset[str]) -> tuple[list[Failure], int]:
    """Return what does not come out as pages say, and how many cases these have."""
    folders = [path for path in args.rules if files.is_folder(path)]
    if not folders:
        return [], 0
    from cfglint.features.test.pages import Cases, read_pages

    cases = Cases(args.rules, codes, args.update)
    failures = [failure for page in read_pages(folders) for failure in cases.failures(page)]
    return sorted(failures, key=lambda failure: failure.place), cases.count
