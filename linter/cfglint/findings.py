"""What a run found: the data behind every report format, its fields in the order of the JSON report."""

from __future__ import annotations

from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.text import Edit

LEVELS = ("info", "warning", "error")
_MODEL = ("model_path", "model_config")
_COUNTS = ("num_gpus", "num_nodes", "gpus_per_node", "gpu.count", "gpu.nodes", "gpu.per_node")


class Place(Record):
    """A span in a file, in code points from 0; lines and columns are computed when it is printed."""

    path: str
    start: int
    end: int


class Related(Record):
    """A second place that a finding speaks of, such as where a duplicate key was first defined."""

    place: Place
    message: str


class UsedFact(Record):
    """A number that the finding rests on: printed ``value`` and where it comes from.

    ``source`` reads like ``"line 98"``, ``"default of areal 1.0.4 (cli_args.py:1771)"``, ``"catalogue"``,
    ``"NVML"``, ``"--set"`` or ``"derived"``.
    """

    name: str
    value: str
    source: str


class MemoryChange(Record):
    """GiB of a ``part`` (engine, trainer, or the headroom), low and high, before and after a fix.

    ``on_more`` says that those before are on the file's own number of GPUs, which are not all there.
    """

    part: str
    before_gib: tuple[float, float]
    after_gib: tuple[float, float]
    on_more: bool = False


class ResultChange(Value):
    """A number that a run's results rest on, before and after a fix: ``effective batch``, ``64``, ``64``.

    An empty text is one that is not known; ``same`` says that it surely stays, which may be known even then.
    """

    name: str
    before: str
    after: str
    same: bool


class Stale(Value):
    """A comment, whose words begin at an offset, that after a fix still ``says`` what belongs to ``was``."""

    start: int
    says: str
    was: str


class Fix(Record):
    """A repair that was proven by linting its result.

    ``edits`` are non-overlapping edits of the finding's file. ``applicability`` is ``"safe"``, ``"unsafe"``
    or ``"display"``; ``certainty`` is ``"sure"`` or ``"may"``, and ``unjudged`` whether nobody knows what
    other GPUs hold. ``number`` is shared by the findings that one repair resolves. ``notes``
    holds, per edit, the text that ``--annotate`` appends to its line. ``effect``
    says what the repair costs and ``cost`` how much, in the knobs' points; ``slower`` is by which share a
    training step takes longer, least and most, None where that is not known or nothing. ``risk`` is what may
    change of the results: none, numerics, optimization or data. ``memory`` is the memory of the
    most loaded GPU before and after, ``results`` what the run learns from. ``stale`` are the comments that it
    makes untrue. ``target`` is the only target
    that it is right for, or None. ``next`` is what to try if memory still runs out.
    """

    number: int
    applicability: str = field(kw_only=True)
    certainty: str = field(default="sure", kw_only=True)
    unjudged: bool = field(default=False, kw_only=True)
    title: str
    effect: str = field(default="", kw_only=True)
    cost: float = field(default=0, kw_only=True)
    slower: tuple[float, float] | None = field(default=None, kw_only=True)
    risk: str = field(default="none", kw_only=True)
    target: str | None = field(default=None, kw_only=True)
    memory: tuple[MemoryChange, ...] = field(default=(), kw_only=True)
    results: tuple[ResultChange, ...] = field(default=(), kw_only=True)
    next: tuple[str, ...] = field(default=(), init=False)
    edits: tuple[Edit, ...]
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    stale: tuple[Stale, ...] = field(default=(), kw_only=True)


class Finding(Record):
    """One rule broken at one place for one target (``target`` is None where no target plays a part).

    ``level`` is the level reported, ``rule_level`` the rule's own; they differ where ``possible`` is true.
    ``arithmetic`` is the requirement with the numbers put in, ``why`` the rule's reason, ``see`` its source.
    ``range_reason`` says what makes a memory in it a wide range. ``unfixed`` says why there is no fix, where
    one was searched.
    """

    place: Place
    code: str
    name: str
    level: str
    rule_level: str
    possible: bool = field(default=False, kw_only=True)
    target: str | None = field(default=None, kw_only=True)
    message: str
    arithmetic: str = field(default="", kw_only=True)
    range_reason: str = field(default="", kw_only=True)
    why: str = field(default="", kw_only=True)
    see: str = field(default="", kw_only=True)
    facts: tuple[UsedFact, ...] = field(default=(), kw_only=True)
    related: tuple[Related, ...] = field(default=(), kw_only=True)
    fix: Fix | None = field(default=None, kw_only=True)
    unfixed: str = field(default="", init=False)
    alternatives: tuple[Fix, ...] = field(default=(), kw_only=True)


class Span(Value):
    """An interval in GiB; ``high`` is infinite where nothing bounds it from above."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the bounds, in GiB."""
        return self.high - self.low


class MemoryCase(Value):
    """What a job needs where facts that it leaves open have the values ``given``."""

    given: dict[str, str]
    verdict: str
    need_gib: Span
    bound_gib: Span


_CALLED = {
    "attn_impl": "attention kernel",
    "transformers.weights": "precision of the weights",
    "hf.checkpoint": "precision of the checkpoint",
    "hf.layout": "layout of the experts",
}


def called(name: str) -> str:
    """Return what people call a fact that cases are told apart by: ``launcher``."""
    return _CALLED.get(name) or name.rpartition(".")[2].replace("_", " ")


class Memory(Value):
    """What a job needs on the most loaded GPU of a target, in GiB, and the verdict on it.

    ``need_gib`` is a 90 % interval, ``bound_gib`` holds one-sided 99 % bounds, which the verdict rests on:
    fits, tight, oom, or unknown. ``target`` is empty where none is named. ``cases`` are told apart where the
    job leaves a fact open that has few values; the verdict is then that of all of them together. ``gpus`` is
    the number of GPUs that was taken where nothing says it. ``ask`` is the one thing to type that would
    settle or sharpen the verdict, or what a wide need rests on.
    """

    target: str
    capacity_gib: float | None
    need_gib: Span
    bound_gib: Span
    verdict: str
    cases: tuple[MemoryCase, ...] = ()
    gpus: int | None = None
    ask: str | None = None


def lean(verdict: str, need: Span, bound: Span, capacity_gib: float | None) -> str:
    """Return what a tight job probably does, ``fits`` or ``oom``: where its 90 % interval lies; or nothing.

    One of which only a rule says that it may not run, such as an engine that may not start, leans nowhere.
    """
    if verdict != "tight" or capacity_gib is None or bound.high <= capacity_gib:
        return ""
    return "oom" if need.low > capacity_gib else "fits" if need.high <= capacity_gib else ""


class Job(Value):
    """A job of a file, the one that starts at the offset ``start``, and its memory on one target."""

    path: str
    start: int
    framework: str
    model: str | None
    memory: Memory


class Undecided(Record):
    """A rule that could not be decided, and the names of the facts that it needs."""

    path: str
    target: str | None
    code: str
    needs: tuple[str, ...]


def question(name: str, *, counted: bool = False) -> str:
    """Return the question that settles a missing name, or the name itself where no flag does.

    ``counted`` says that the targets have a number already: what a file leaves open is then a key of its own.
    """
    if name in _COUNTS and not counted:
        return "how many GPUs? add :N to --gpu"
    if name.startswith("gpu."):
        return "which GPU? add --gpu NAME"
    return "which model? add --model-config PATH" if name.startswith("model.") or name in _MODEL else name


class TargetInfo(Record):
    """A target as reports name it; memory in GiB, None where unknown."""

    name: str
    gpu: str
    count: int | None
    vram_gib: float | None


IN_PART = "followed in part"  # a file that is judged, but for a launch in it


class Report(Record):
    """All that a run found. ``texts`` maps a path to its decoded text (no BOM), for lines and carets.

    ``keys`` maps the facts that are missing to the keys that they are read from; "" where there is none.
    ``skipped`` counts what was found in folders and not judged; most of that is for no framework. The rest,
    which may be configs all the same, is in ``unjudged``, the paths by what is wrong with them; so are files
    that are judged IN_PART. ``taken`` are the overrides that reach something in a file, ``seen`` the
    frameworks of the files that were asked. ``unread`` counts the launches that were seen and not read,
    where they were looked for.
    """

    targets: list[TargetInfo] = field(factory=list, init=False)
    findings: list[Finding] = field(factory=list, init=False)
    undecided: list[Undecided] = field(factory=list, init=False)
    notices: list[str] = field(factory=list, init=False)
    keys: dict[str, str] = field(factory=dict, init=False)
    texts: dict[str, str] = field(factory=dict, init=False)
    files: int = field(default=0, init=False)
    jobs: list[Job] = field(factory=list, init=False)
    judged: int = field(default=0, init=False)
    unread: int | None = field(default=None, init=False)
    taken: set[str] = field(factory=set, init=False)
    seen: set[str] = field(factory=set, init=False)
    skipped: int = field(default=0, init=False)
    unjudged: dict[str, list[str]] = field(factory=dict, init=False)

    def pass_over(self, reason: str, path: str) -> None:
        """Count a file that is not judged; without a reason, it is for no framework."""
        self.skipped += 1
        if reason:
            self.unjudged.setdefault(reason, []).append(path)

    def count(self, level: str) -> int:
        """Return how many findings have ``level``."""
        return sum(finding.level == level for finding in self.findings)
