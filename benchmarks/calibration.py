"""Whether memory findings are calibrated: what is said of jobs that are known to run, or to die.

    python benchmarks/calibration.py RUNS.yaml FOLDER [--show] [--most N]

RUNS.yaml lists real configs with their target and outcome; FOLDER holds their repositories at those commits,
as ``owner+name@COMMIT`` (eight digits). Of jobs that run, at most 2 % may get a memory error or warning.
Silence is no way to get there: faults are put into the same jobs (a micro-batch, length or model eight
times as large, or 32 times where eight is not fatal; checkpointing or sharding dropped; half of the GPUs),
and those that a textbook formula puts at one and a half times the GPU's memory have to be told in nine of
ten cases.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linter"))

from cfglint.boundary import Boundary
from cfglint.command import inputs
from cfglint.command.setup import Pins
from cfglint.document.reading import Library, read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import Pack, load
from cfglint.lang.values import needs_of
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_WORST = ("oom", "unknown", "tight", "fits")  # of the jobs of one file
_TIMES = (8, 32)
_FATAL = 1.5  # of the GPU's memory, by the textbook
_HALF = "half the GPUs"
_TARGET = re.compile(r"(?P<gpu>[^:]+):(?P<count>\d+)(?P<nodes>x\d+)?\Z")


class Job(Record):
    """A row with its config, and one change to it: ``given`` facts, or another ``target``."""

    row: dict[str, Any]
    path: str
    data: bytes
    fault: str = ""
    given: dict[str, object] | None = None
    target: str = ""

    def run(self, pack: Pack) -> Run:
        """Return a run for the job's target and overrides, in the versions that its repository pins."""
        given = {name: (value, "fault") for name, value in (self.given or {}).items()}
        boundary = Boundary([str(Path(self.path).parent)])
        library, target = Library(inputs.second, boundary), parse_target(self.target or self.row["target"])
        pins, changed = Pins(boundary), self.row.get("set", ())
        return Run(pack, [target], overrides=changed, given=given, library=library, pinned=pins)


def job_of(row: dict[str, Any], folder: Path) -> Job | None:
    """Return a row's job; None where the folder lacks its file."""
    if "path" in row or "launch" in row:
        checkout = folder / f"{row['repo'].replace('/', '+')}@{row['commit'][:8]}"
        path = checkout / row.get("path", f"{row['id']}.sh")
        if "path" not in row:  # a command that a page gives, typed in the repository's root
            return Job(row, str(path), f"{row['launch']}\n".encode()) if checkout.is_dir() else None
        return Job(row, str(path), path.read_bytes()) if path.is_file() else None
    if "config" not in row:
        return None
    form = row.get("config_format", "yaml")
    text = "".join(_toml(row["config"], ())) if form == "toml" else json.dumps(row["config"])
    return Job(row, str(folder / f"{row['id']}.{form}"), text.encode())


def _toml(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"[{'.'.join(path)}]\n"] * bool(path)
    lines += [f"{key} = {json.dumps(value)}\n" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        lines += _toml(value, (*path, key)) if isinstance(value, dict) else []
    return lines


def said(pack: Pack, job: Job) -> tuple[list[str], str] | None:
    """Return the memory errors and warnings on a job, and the verdict; None where it is not judged."""
    run = job.run(pack)
    if not run.add(read(job.data, job.path), explicit=False):
        return None
    memory = [f for f in run.report.findings if f.code.startswith("MEM") and f.level != "info"]
    verdicts = {each.memory.verdict for each in run.report.jobs}
    worst = next((verdict for verdict in _WORST if verdict in verdicts), "no job")
    return [f"{finding.code} {finding.level} {finding.message}" for finding in memory], worst


# ── faults ─────────────────────────────────────────────────────────────────────────────────────────────────
def faults(pack: Pack, job: Job) -> Iterator[Job]:
    """Yield a job's faults that a textbook calls fatal."""
    facts = _facts(pack, job)
    if facts is None or textbook(facts) > _FATAL * facts["gpu.vram"]:
        return  # it runs as it is, so the formula is not for it
    lengths = [name for name in ("micro_batch_size", "seq_len", "max_tokens_per_microbatch") if facts[name]]
    changes: list[tuple[str, dict[str, Any], str]] = [
        (name, {name: facts[name] * times}, "")
        for name in lengths
        for times in _TIMES[
            : 1 if name == "max_tokens_per_microbatch" else None
        ]  # 32 of it may be all of a step
    ]
    if facts["gradient_checkpointing"] == "full":
        changes.append(("no checkpointing", {"gradient_checkpointing": "none"}, ""))
    if facts["zero_stage"]:
        changes.append(("no sharding", {"zero_stage": 0}, ""))
    size = {f"model.{name}": facts[f"model.{name}"] for name in ("params", "layers", "hidden")}
    for times, side in zip(_TIMES, (2, 3), strict=True):
        wide = {"model.layers": size["model.layers"] * side, "model.hidden": size["model.hidden"] * side}
        changes.append(("larger model", {"model.params": size["model.params"] * times, **wide}, ""))
    half = _TARGET.match(job.row["target"])
    if half is not None and half["nodes"] is None and int(half["count"]) > 1:
        changes.append((_HALF, {}, f"{half['gpu']}:{int(half['count']) // 2}"))
    fatal: set[str] = set()
    for fault, given, target in changes:
        changed = Job(job.row, job.path, job.data, fault, given, target)
        after = None if fault in fatal else _facts(pack, changed)
        if fault == _HALF and after is not None and after["train_gpus"] == facts["train_gpus"]:
            continue  # the job asks for its GPUs: it does not start
        if after is not None and textbook({**after, **given}) > _FATAL * after["gpu.vram"]:
            fatal.add(fault)
            yield changed


_USED = (
    *("model.params", "model.layers", "model.hidden", "model.vocab", "model.experts"),
    *("train_gpus", "train_tp", "pp", "cp", "zero_stage", "dp_shard", "offload_params", "offload_optimizer"),
    *("micro_batch_size", "seq_len", "max_tokens_per_microbatch", "gradient_checkpointing"),
    *("sequences_per_step", "train_dp", "longest_sequence"),
    *("lora_rank", "quantization", "gpu.vram"),
)


def _facts(pack: Pack, job: Job) -> dict[str, Any] | None:
    """Return what the textbook needs of the one document of a job; None where it is unknown."""
    run = job.run(pack)
    subjects = [s for s in run.subjects(read(job.data, job.path), judge_broken=False) if s.framework]
    if len(subjects) != 1:
        return None
    values = run.judged(subjects[0])[0].values
    facts = {name: None if needs_of(values[name]) else values[name] for name in _USED}
    facts = {name: value if isinstance(value, (int, float, str)) else None for name, value in facts.items()}
    needed = ("model.params", "model.layers", "model.hidden", "model.vocab", "train_gpus", "gpu.vram")
    return facts if all(facts[name] for name in needed) else None


def textbook(facts: dict[str, Any]) -> float:
    """Return the bytes of a trainer's GPU: weights, gradients, Adam's states, activations and logits.

    Sixteen bytes per parameter over the GPUs that share it (Rajbhandari et al. 2020, table 1), two with
    adapters; per token and layer 34 bytes times the hidden size, or 2 with checkpointing (Korthikanti et al.
    2022, section 4), and 6 bytes per logit. What is not known counts nothing: all GPUs share the states, and
    there may be adapters and checkpointing. A step's sequences are all that a micro-batch can hold.
    """
    model_parallel = (facts["train_tp"] or 1) * (facts["pp"] or 1)
    ranks = max(1, facts["train_gpus"] / model_parallel)
    unknown = facts["zero_stage"] is None or facts["dp_shard"] is None
    shared = ranks if unknown or facts["zero_stage"] == 3 or facts["dp_shard"] != 1 else 1
    quantized = facts["quantization"] != "none"
    if facts["offload_params"] or facts["offload_optimizer"] or quantized or facts["model.experts"]:
        return 0.0
    states = facts["model.params"] * (16 if facts["lora_rank"] == 0 else 2) / model_parallel / shared
    tokens = facts["max_tokens_per_microbatch"] or (facts["micro_batch_size"] or 0) * (facts["seq_len"] or 0)
    longest = max(facts["longest_sequence"] or 0, facts["seq_len"] or 0)
    if facts["max_tokens_per_microbatch"] and facts["sequences_per_step"] and facts["train_dp"] and longest:
        tokens = min(tokens, facts["sequences_per_step"] / facts["train_dp"] * longest)
    tokens /= (facts["cp"] or 1) * (facts["train_tp"] or 1)
    kept = 34 if facts["gradient_checkpointing"] == "none" else 2
    activations = tokens * kept * facts["model.hidden"] * facts["model.layers"] / (facts["pp"] or 1)
    return float(states + activations + tokens * facts["model.vocab"] * 6)


def main() -> int:
    """Print what is said; exits with 1 if jobs that run get too many alarms, or faults too few."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--show", action="store_true", help="print alarms on jobs that run, and faults not told"
    )
    parser.add_argument("--most", type=int, default=30, help="faults of a family of jobs (default: 30)")
    args = parser.parse_args()
    pack = load()
    counts: dict[str, Counter[str]] = {}
    kinds: Counter[str] = Counter()
    verdicts: dict[str, Counter[str]] = {}
    for row in yaml.load(args.runs.read_text(), yaml.CSafeLoader):
        job = job_of(row, args.folder)
        found, verdict = (job and said(pack, job)) or (None, "not judged")
        what = "not judged" if found is None else "told" if found else "silent"
        counts.setdefault(f"{row['framework']} {row['outcome']}", Counter())[what] += 1
        verdicts.setdefault(row["outcome"], Counter())[verdict] += 1
        runs = row["outcome"] == "runs"
        if args.show and ((what == "told") == runs or verdict == ("oom" if runs else "fits")):
            print(row["id"], verdict, what, row["target"], row.get("path", ""), *(found or ()))
        if job is None or found is None or not runs:
            continue
        for fault in faults(pack, job):
            kinds[row["family"]] += 1
            if kinds[row["family"]] > args.most:
                break
            after = said(pack, fault)
            told = "told" if after and after[0] else "silent"
            verdicts.setdefault("fault", Counter())[after[1] if after else "not judged"] += 1
            counts.setdefault(f"fault: {fault.fault}", Counter())[told] += 1
            if args.show and told == "silent":
                print(row["id"], fault.fault, after and after[1], row["target"], row.get("path", ""))
    for name, count in sorted(counts.items()):
        print(f"{name:36} {dict(count)}")
    for outcome, count in verdicts.items():
        print(f"verdicts on {outcome:24} {dict(count.most_common())}")
    return _judged(counts)


def _judged(counts: dict[str, Counter[str]]) -> int:
    runs = sum((c for name, c in counts.items() if name.endswith(" runs")), Counter())
    broken = sum((c for name, c in counts.items() if name.startswith("fault")), Counter())
    alarms = runs["told"] / max(1, runs["told"] + runs["silent"])
    told = broken["told"] / max(1, broken.total())
    judged = runs["told"] + runs["silent"]
    print(f"\njobs that run: {runs.total()}, judged {judged}, alarms {100 * alarms:.1f} %")
    print(f"faults: {broken.total()}, told {100 * told:.1f} %")
    return int(alarms > 0.02 or told < 0.9)


if __name__ == "__main__":
    sys.exit(main())
