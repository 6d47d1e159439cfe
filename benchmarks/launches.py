"""How cfglint reads launch scripts, against what bash really starts: recognition, facts, every flag's value.

    python benchmarks/launches.py FOLDER... [--index FILE --side dev] [--list seen|WHAT] [--keep FILE]

Each script of the checkouts is run under bash with stubs for all programs (launches_run.py says how that
is kept harmless), and what it started is read by a table of flags of its own (launches_truth.py). A
command in a loop is one launch; of what changes from round to round, or between the two worlds that each
script runs in, the script says no value. Printed are, for each project and in all: the launches, how many
of them cfglint sees as documents and recognises a framework of; of each fact how many are told, right
(recall) and wrong (precision), of all flags' values how many are right, missing, wrong. ``--list`` names
them: ``seen``, ``recognised``, a fact, or ``flags``. ``--keep`` keeps what bash started in a file, and
reads it from there the next time.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linter"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from cfglint.boundary import Boundary
from cfglint.command import inputs
from cfglint.document.reading import Library
from cfglint.document.tree import (
    SCRIPTS,
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unresolved,
    target,
)
from cfglint.engine.run import Run
from cfglint.errors import OverBudgetError, UsageError
from cfglint.lang.pack import load
from launches_run import Sandbox, Start
from launches_truth import Launch, base_name, facts_of, launch_of

if TYPE_CHECKING:
    from cfglint.engine.subject import Subject

FACTS = {
    "model": "model_path",
    "micro_batch": "micro_batch_size",
    "accumulation": "grad_accum",
    "sequence": "seq_len",
    "lora": "lora_rank",
    "zero": "zero_stage",
    "gpus": "train_gpus",
}
# What no script that starts a job does without.
_STARTS = re.compile(
    r"python|\.py\b|run|accelerate|deepspeed|trl|axolotl|swift|xtuner|vllm|sglang|litgpt|\.sh\b|rl @"
)
_WORKERS = 2
_MOST = 200  # launches of one script


class Truth(NamedTuple):
    """A command that bash started, once or in a loop: its launches in both worlds."""

    line: int
    launches: list[Launch]
    facts: dict[str, set[str]]
    told: dict[str, str]  # facts with one value in all of them

    @property
    def base(self) -> str:
        """The program's name without its folder."""
        return self.launches[0].base


# ── what bash starts ───────────────────────────────────────────────────────────────────────────────────────
def scripts_of(checkout: Path) -> list[str]:
    found = []
    for folder, below, names in os.walk(checkout):
        below[:] = sorted(name for name in below if name not in (".git", "node_modules"))
        found += [os.path.relpath(os.path.join(folder, name), checkout) for name in sorted(names)]
    scripts = [name for name in found if name.lower().endswith(SCRIPTS) and (checkout / name).is_file()]
    return [name for name in scripts if _STARTS.search((checkout / name).read_text("utf-8", "replace"))]


def started(sandbox: Sandbox, checkout: Path, script: str) -> list[list[Start]]:
    """Return what a script starts in either world, from the folder in which it finds most of its programs."""
    folder = os.path.dirname(script)
    folders = [""]
    while folder:
        folders.insert(1, folder)
        folder = os.path.dirname(folder)
    best: tuple[int, int, str] | None = None
    first: list[Start] = []
    for number, cwd in enumerate([folders[0], *folders[:0:-1]][:4]):
        starts = sandbox.run(checkout, script, cwd, 1)
        found = _found(checkout, starts)
        if best is None or found > best[0]:
            best, first = (found, -number, cwd), starts
        if found == len({s.argv for s in starts}) or not starts:
            break
    assert best is not None
    return [first, sandbox.run(checkout, script, best[2], 2) if first else []]


def _found(checkout: Path, starts: list[Start]) -> int:
    """Return how many of the commands name a program of the checkout."""
    found = 0
    for start in {start.argv: start for start in starts}.values():
        here = start.cwd.partition(f"/{checkout.name}")[2].lstrip("/")
        found += any(word.endswith(".py") and (checkout / here / word).is_file() for word in start.argv)
    return found


def truths_of(checkout: Path, script: str, worlds: list[list[Start]]) -> list[Truth]:
    """Return the launches of a script."""
    groups: dict[str, list[tuple[Start, Launch]]] = defaultdict(list)
    for start in (start for world in worlds for start in world):
        launch = launch_of(start.argv)
        if launch is not None:
            groups[f"{start.at} {launch.base}"].append((start, launch))
    truths = []
    for place, held in list(groups.items())[:_MOST]:
        facts: dict[str, set[str]] = defaultdict(set)
        whole: list[set[str]] = []
        for start, launch in held:
            here = start.cwd.partition(f"/{checkout.name}")[2].lstrip("/")
            folders = [checkout / here, checkout / os.path.dirname(script), checkout]
            own = facts_of(launch, folders)
            whole.append(set(own))
            for fact, value in own.items():
                facts[fact].add(value)
        told = {
            fact: next(iter(values))
            for fact, values in facts.items()
            if len(values) == 1 and all(fact in each for each in whole)
        }
        launches = [launch for _, launch in held]
        truths.append(Truth(_line(place, script), launches, facts, told))
    return truths


def _line(place: str, script: str) -> int:
    """Return the line of the script in which a command stands, in a function's body where it is in one."""
    frame = place.strip("|").partition("|")[0].partition(" ")[0]
    name, _, rest = frame.partition(":")
    number = re.match(r"\d+", rest)
    same = os.path.basename(name) == os.path.basename(script)
    return int(number.group()) if number and same else 0


# ── what cfglint reads ─────────────────────────────────────────────────────────────────────────────────────
class Read(NamedTuple):
    """A command as cfglint reads it."""

    line: int
    document: Document
    subject: Subject | None
    values: Any

    @property
    def base(self) -> str:
        """The program's name without its folder."""
        return _text(_at(self.document.root, "launch", "program")).rpartition("/")[2].replace("\u2026", "")


def reads_of(run: Run, boundary: Boundary, path: Path) -> list[Read]:
    try:
        file, _ = inputs.load(str(path), boundary, named=True)
        subjects = run.subjects(file, judge_broken=False)
    except (OverBudgetError, UsageError):
        return []
    reads = []
    for document in file.documents:
        subject = next((one for one in subjects if one.document is document), None)
        if document.error is not None or not isinstance(document.root, Mapping):
            continue
        values = run.on(None, subject).values if subject is not None else None
        program = _at(document.root, "launch", "program")
        at = program.start if program is not None and program.start >= 0 else document.start
        line = file.lines.position(min(max(at, 0), len(file.text)))[0]
        reads.append(Read(line, document, subject, values))
    return reads


def _at(node: Node | None, *path: str) -> Node | None:
    for name in path:
        entry = node.entries.get(name) if isinstance(node, Mapping) else None
        node = target(entry.value) if entry is not None else None
    return node


def _text(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) else ""


def _value(node: Node | None) -> tuple[str, ...] | None:
    """Return a flag's words; None where cfglint does not know them."""
    if isinstance(node, Unresolved):
        return None
    if isinstance(node, Scalar):
        return (node.text,)
    if isinstance(node, Sequence):
        items = [target(item) for item in node.items]
        if any(isinstance(item, Unresolved) or not isinstance(item, Scalar) for item in items):
            return None
        return tuple(_text(item) for item in items)
    return None


# ── both beside each other ─────────────────────────────────────────────────────────────────────────────────
def matched(truths: list[Truth], reads: list[Read]) -> list[tuple[Truth, Read | None]]:
    """Return the command that cfglint reads for each launch: the same program, the most equal flags."""
    ways = []
    for number, truth in enumerate(truths):
        for place, read in enumerate(reads):
            near = abs(truth.line - read.line)
            same = truth.base == read.base
            if same or (truth.line and near <= 1 and not read.base):
                ways.append((-same, -_equal(truth, read), near, number, place))
    taken: dict[int, Read] = {}
    used: set[int] = set()
    for *_, number, place in sorted(ways):
        if number not in taken and place not in used:
            taken[number] = reads[place]
            used.add(place)
    for *_, number, place in sorted(
        ways
    ):  # a function that is called several times is read as often as it runs
        taken.setdefault(number, reads[place])
    return [(truth, taken.get(number)) for number, truth in enumerate(truths)]


def _equal(truth: Truth, read: Read) -> int:
    return sum(
        _value(_at(read.document.root, *name.split("."))) == value
        for name, value in truth.launches[0].pairs.items()
    )


def flags_of(truth: Truth, read: Read) -> list[tuple[str, str, object, object]]:
    """Return how cfglint reads each flag whose value the script says: name, verdict, truth, reading."""
    own = getattr(read.document.root, "entries", {})
    server = any("-" in key for key in own)
    rows = []
    for name, value in truth.launches[0].pairs.items():
        if any(launch.pairs.get(name) != value for launch in truth.launches[1:]) or not value:
            continue
        key = name.replace("_", "-") if server else name
        path = key.split(".") if not key.startswith(".") else [key]
        node = _at(read.document.root, *path) or _at(read.document.root, key)
        known = _value(node)
        right = known == value or _same_file(read.document.file.path, known, value)
        verdict = "right" if right else "missing" if known is None else "wrong"
        rows.append((name, verdict, value, known))
    return rows


def _same_file(script: str, known: object, value: object) -> bool:
    """Whether a path seen from the script's folder is one seen from where the script was started."""
    texts = [each[0] for each in (known, value) if isinstance(each, tuple) and len(each) == 1]
    if len(texts) < 2 or not all(isinstance(text, str) and "/" in text for text in texts):
        return False
    ours = os.path.normpath(os.path.join(os.path.dirname(script), texts[0]))
    return ours.endswith(os.sep + os.path.normpath(texts[1]))


def fact_of(read: Read, fact: str) -> str | None:
    """Return what cfglint knows of a fact, as the truth spells it; None where it knows nothing."""
    if read.values is None:
        return None
    value = read.values[FACTS[fact]]
    if fact == "model" and getattr(value, "tail", ""):
        return base_name(value.tail)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if fact == "model":
        return base_name(str(value))
    return str(int(value)) if float(value) == int(value) else str(value)


class Score:
    """The counts of a project, or of all."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def row(self, name: str) -> str:
        """Return a line of the table."""
        counts = self.counts
        launches = counts["launches"]
        cells = [f"{name[:34]:<34}{counts['scripts']:>6}{launches:>6}"]
        cells += [_share(counts[what], launches) for what in ("seen", "recognised")]
        cells += [_share(counts[f"{fact} right"], counts[f"{fact} told"]) for fact in FACTS]
        told = sum(counts[f"flags {verdict}"] for verdict in ("right", "missing", "wrong"))
        return "".join(cells) + _share(counts["flags right"], told) + f"{counts['flags wrong']:>6}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:>8.1f}" if whole else f"{'-':>8}"


def judge(score: Score, listed: list[tuple[str, str]], where: str, pair: tuple[Truth, Read | None]) -> None:
    """Count one launch, and note what is missed."""
    truth, read = pair
    score.counts["launches"] += 1
    place = f"{where}:{truth.line} {truth.launches[0].launcher} {truth.launches[0].program}"
    if read is None:
        listed.append(("seen", place))
    if read is None or read.subject is None:
        listed.append(("recognised", place))
        score.counts["seen"] += read is not None
    else:
        score.counts["seen"] += 1
        score.counts["recognised"] += 1
        score.counts[f"by {read.subject.framework}"] += 1
    for fact, value in truth.told.items():
        known = fact_of(read, fact) if read is not None else None
        verdict = "right" if known == value else "missing" if known is None else "wrong"
        score.counts[f"{fact} told"] += 1
        score.counts[f"{fact} {verdict}"] += 1
        if read is None or read.subject is None:
            continue
        if verdict != "right":
            listed.append((fact, f"{verdict:<8}{place}: {value}, read {known}"))
    for fact in FACTS if read is not None else ():
        known = fact_of(read, fact) if read is not None and fact in truth.facts else None
        if fact not in truth.told and known is not None and known not in truth.facts[fact]:
            score.counts[f"{fact} wrong"] += 1
            listed.append((fact, f"{'wrong':<8}{place}: one of {sorted(truth.facts[fact])}, read {known}"))
    for name, verdict, value, found in flags_of(truth, read) if read is not None else ():
        score.counts[f"flags {verdict}"] += 1
        if verdict != "right":
            listed.append(("flags", f"{verdict:<8}{place} {name}: {value}, read {found}"))


def main() -> None:
    args = _arguments()
    kept = _kept(args.keep)
    run = Run(load())
    sandbox = Sandbox()
    total, listed = Score(), []
    print(f"{'project':<34}{'files':>6}{'runs':>6}" + "".join(
        f"{name[:7]:>8}" for name in ("seen", "recognised", *FACTS, "flags")) + f"{'wrong':>6}")  # fmt: skip
    try:
        for checkout in args.checkouts:
            score = Score()
            rows: list[tuple[str, str]] = []
            boundary = Boundary([str(checkout)])
            own = run.but(library=Library(inputs.second, boundary))
            for script, worlds in _all_started(sandbox, checkout, kept):
                truths = truths_of(checkout, script, worlds)
                score.counts["scripts"] += bool(truths)
                reads = reads_of(own, boundary, checkout / script) if truths else []
                for pair in matched(truths, reads):
                    judge(score, rows, f"{checkout.name}/{script}", pair)
            if score.counts["launches"]:
                print(score.row(checkout.name), flush=True)
            total.counts.update(score.counts)
            listed += rows
    finally:
        sandbox.close()
        if args.keep:
            Path(args.keep).write_text(json.dumps(kept))
    print(total.row("all"))
    _print_facts(total)
    for kind, row in listed:
        if kind in args.list or "all" in args.list:
            print(f"{kind}: {row}")


def _all_started(sandbox: Sandbox, checkout: Path, kept: dict[str, Any]) -> Any:
    own = kept.setdefault(checkout.name, {})
    scripts = scripts_of(checkout)
    new = [script for script in scripts if script not in own]
    with ThreadPoolExecutor(_WORKERS) as pool:
        for script, worlds in zip(
            new, pool.map(lambda each: started(sandbox, checkout, each), new), strict=True
        ):
            own[script] = worlds
    for script in scripts:
        yield script, [[Start(tuple(argv), *rest) for argv, *rest in world] for world in own[script]]


def _kept(path: str) -> dict[str, Any]:
    if not path or not Path(path).exists():
        return {}
    held: dict[str, Any] = json.loads(Path(path).read_text())
    return held


def _print_facts(total: Score) -> None:
    print(f"\n{'fact':<14}{'told':>7}{'right':>7}{'wrong':>7}{'recall':>9}{'precision':>11}")
    for fact in FACTS:
        told, right, wrong = (total.counts[f"{fact} {word}"] for word in ("told", "right", "wrong"))
        shares = f"{_share(right, told):>9}{_share(right, right + wrong):>11}"
        print(f"{fact:<14}{told:>7}{right:>7}{wrong:>7}{shares}")
    by = {key[3:]: number for key, number in total.counts.most_common() if key.startswith("by ")}
    print("frameworks: " + ", ".join(f"{name} {number}" for name, number in by.items()))
    right, missing, wrong = (total.counts[f"flags {word}"] for word in ("right", "missing", "wrong"))
    print(f"flags: {right} right, {missing} missing, {wrong} wrong")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="*", type=Path, help="a checkout, or with --index the folder of all")
    parser.add_argument("--index", type=Path, help="a table with columns repo and side")
    parser.add_argument("--side", default="dev")
    parser.add_argument("--list", action="append", default=[])
    parser.add_argument("--keep", default="")
    args = parser.parse_args()
    args.checkouts = args.folder
    if args.index:
        with args.index.open(newline="") as table:
            rows = [row for row in csv.DictReader(table, delimiter="\t") if row["side"] == args.side]
        folder = args.folder[0] if args.folder else args.index.parent
        args.checkouts = [folder / row["repo"].replace("/", "+") for row in rows]
    return args


if __name__ == "__main__":
    main()
