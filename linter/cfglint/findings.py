"""What a run found: the data behind every report format and the editor protocol."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.text import Edit

LEVELS = ("info", "warning", "error")


class Place:
    """A span in a file, in code points from 0; lines and columns are computed when it is printed."""

    __slots__ = ("end", "path", "start")

    def __init__(self, path: str, start: int, end: int) -> None:
        self.path = path
        self.start = start
        self.end = end


class Related:
    """A second place that a finding speaks of, such as where a duplicate key was first defined."""

    __slots__ = ("message", "place")

    def __init__(self, place: Place, message: str) -> None:
        self.place = place
        self.message = message


class UsedFact:
    """A number that the finding rests on: printed ``value`` and where it comes from.

    ``source`` reads like ``"line 98"``, ``"default of areal 1.0.4 (cli_args.py:1771)"``, ``"catalogue"``,
    ``"NVML"``, ``"--set"`` or ``"derived"``.
    """

    __slots__ = ("name", "source", "value")

    def __init__(self, name: str, value: str, source: str) -> None:
        self.name = name
        self.value = value
        self.source = source


class MemoryChange:
    """GiB of a ``part`` (engine, trainer, or the headroom), low and high, before and after a fix."""

    __slots__ = ("after", "before", "part")

    def __init__(self, part: str, before: tuple[float, float], after: tuple[float, float]) -> None:
        self.part = part
        self.before = before
        self.after = after


class Fix:
    """A repair that was proven by linting its result.

    ``edits`` are non-overlapping edits of the finding's file. ``applicability`` is ``"safe"``, ``"unsafe"``
    or ``"display"``; ``certainty`` is ``"sure"`` or ``"may"``. ``number`` is shared by the findings that one
    repair resolves. ``notes`` holds, per edit, the text that ``--annotate`` appends to its line. ``effect``
    is what is lost, ``cost`` how much, as the knobs have it; ``memory`` is what it does to the fullest GPU.
    ``target`` is the one that it is right for, None where it is right for all. ``next`` is what to try if
    memory still runs out.
    """

    __slots__ = (
        "applicability", "certainty", "cost", "edits", "effect", "memory", "next", "notes", "number",
        "target", "title",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        title: str,
        edits: tuple[Edit, ...],
        *,
        applicability: str,
        certainty: str = "sure",
        effect: str = "",
        notes: tuple[str, ...] = (),
        cost: float = 0,
        memory: tuple[MemoryChange, ...] = (),
        target: str | None = None,
    ) -> None:
        self.number = number
        self.cost = cost
        self.memory = memory
        self.target = target
        self.next: tuple[str, ...] = ()
        self.title = title
        self.edits = edits
        self.applicability = applicability
        self.certainty = certainty
        self.effect = effect
        self.notes = notes


class Finding:
    """One rule broken at one place for one target (``target`` is None where no target plays a part).

    ``level`` is the level reported, ``rule_level`` the rule's own; they differ where ``possible`` is true.
    ``arithmetic`` is the requirement with the numbers put in, ``why`` the rule's reason, ``see`` its source.
    ``unfixed`` says why there is no fix, where one was searched.
    """

    __slots__ = (
        "alternatives", "arithmetic", "code", "facts", "fix", "level", "message", "name", "place",
        "possible", "related", "rule_level", "see", "target", "unfixed", "why",
    )  # fmt: skip

    def __init__(
        self,
        place: Place,
        code: str,
        name: str,
        level: str,
        rule_level: str,
        message: str,
        *,
        possible: bool = False,
        target: str | None = None,
        arithmetic: str = "",
        why: str = "",
        see: str = "",
        facts: tuple[UsedFact, ...] = (),
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        alternatives: tuple[Fix, ...] = (),
    ) -> None:
        self.place = place
        self.code = code
        self.name = name
        self.level = level
        self.rule_level = rule_level
        self.message = message
        self.possible = possible
        self.target = target
        self.arithmetic = arithmetic
        self.why = why
        self.see = see
        self.facts = facts
        self.related = related
        self.fix = fix
        self.alternatives = alternatives
        self.unfixed = ""


class Undecided:
    """A rule that could not be decided, and the names of the facts that it wants."""

    __slots__ = ("code", "needs", "path", "target")

    def __init__(self, path: str, target: str | None, code: str, needs: tuple[str, ...]) -> None:
        self.path = path
        self.target = target
        self.code = code
        self.needs = needs


class TargetInfo:
    """A target as reports name it; memory in GiB, None where unknown."""

    __slots__ = ("count", "gpu", "name", "vram_gib")

    def __init__(self, name: str, gpu: str, count: int | None, vram_gib: float | None) -> None:
        self.name = name
        self.gpu = gpu
        self.count = count
        self.vram_gib = vram_gib


class Report:
    """All that a run found. ``texts`` maps a path to its decoded text (no BOM), for lines and carets."""

    __slots__ = ("files", "findings", "notices", "skipped", "targets", "texts", "undecided")

    def __init__(self) -> None:
        self.targets: list[TargetInfo] = []
        self.findings: list[Finding] = []
        self.undecided: list[Undecided] = []
        self.notices: list[str] = []
        self.texts: dict[str, str] = {}
        self.files = 0
        self.skipped = 0

    def count(self, level: str) -> int:
        """Return how many findings have ``level``."""
        return sum(finding.level == level for finding in self.findings)
