"""``cfglint test``: run the examples that rules carry, and rules against rules."""

from __future__ import annotations

from cfglint.command.flags import Arguments, free, parse
from cfglint.lang.pack import load, read_rules


class TestArguments(Arguments):
    """The arguments of ``test``."""

    command = "test"
    about = "Run the examples that rules carry, and look for rules that are at odds with each other."

    rules: list[str] = free("RULES", "rule files or folders (default: the shipped rules)", many=True)


def main(arguments: list[str]) -> int:
    """Run the rules' own examples, and rules against rules; exit 1 if something is wrong."""
    args = parse(TestArguments, arguments)
    from cfglint.features.test.compute import clashes, run_examples

    pack = load(read_rules(args.rules) if args.rules else None)
    own = {source.path for source in pack.sources()} if args.rules else None
    outcomes = [o for o in run_examples(pack) if own is None or o.place.partition(":")[0] in own]
    wrong = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in wrong:
        print(outcome)
    mine = None
    if own is not None:
        symbols = pack.symbols()
        mine = {c for c in symbols.rules if symbols.where[f"rule {c}"].rpartition(":")[0] in own}
    at_odds = clashes(pack, mine)
    for clash in at_odds:
        print(clash)
    odds = f", {len(at_odds)} clash{'es' * (len(at_odds) != 1)}" if at_odds else ""
    print(f"{len(outcomes)} examples, {len(wrong)} wrong{odds}")
    return int(bool(wrong or at_odds))
