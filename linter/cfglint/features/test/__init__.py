"""``cfglint test``: rules that are at odds with their own examples, or with each other.

Each example that a rule carries states an outcome, and the rule has to come to it (examples.py). Rules must
not be at odds with each other either (conflicts.py), and each must be able to fire (vacuous.py).
"""

from __future__ import annotations

from cfglint.command import Arguments, free, parse
from cfglint.features.test.conflicts import clashes
from cfglint.features.test.examples import run_examples
from cfglint.features.test.vacuous import vacuous
from cfglint.lang.pack import load, read_rules


class TestArguments(Arguments):
    """The arguments of ``test``."""

    command = "test"
    about = "Run the examples in rule files, and look for rules that contradict each other."

    rules: list[str] = free("RULES", "rule files or folders (default: the shipped rules)", many=True)


def main(arguments: list[str]) -> int:
    """Run the rules' own examples, and rules against rules; exit 1 if something is wrong."""
    args = parse(TestArguments, arguments)
    pack = load(read_rules(args.rules) if args.rules else None)
    mine = None
    if args.rules:
        own, symbols = {source.path for source in pack.sources()}, pack.symbols()
        mine = {c for c in symbols.rules if symbols.where[f"rule {c}"].rpartition(":")[0] in own}
    outcomes = run_examples(pack, mine)
    wrong = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in wrong:
        print(outcome)
    fires = {outcome.code for outcome in outcomes if outcome.ok and outcome.expected in ("bad", "may")}
    idle = vacuous(pack, mine, fires)
    for rule in idle:
        print(rule)
    at_odds = clashes(pack, mine)
    for clash in at_odds:
        print(clash)
    summary = [f"{len(outcomes)} examples, {len(wrong)} wrong"]
    if idle:
        summary.append(f"{len(idle)} rule{'s' * (len(idle) != 1)} that can never fire")
    if at_odds:
        summary.append(f"{len(at_odds)} clash{'es' * (len(at_odds) != 1)}")
    print(", ".join(summary))
    return int(bool(wrong or idle or at_odds))
