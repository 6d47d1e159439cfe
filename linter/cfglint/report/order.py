"""What all forms share: the order of findings, one for several targets, positions, the summary."""

from __future__ import annotations

from cfglint.document.spoken import named
from cfglint.findings import IN_PART, question
from cfglint.lang.values import UNRULED
from cfglint.record import Record, field, replace
from cfglint.report import verdicts
from cfglint.text import LineIndex, shown, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from cfglint.findings import Finding, Fix, Report, Undecided

    T = TypeVar("T")

_MEMORY = "MEM"  # the rules of which the verdicts tell
_FILES = (".yaml", ".yml", ".json", ".toml")
JOBS = 8  # jobs of which each has its lines
_ASKS = 4  # questions that are listed for many jobs
_WANTED = 3  # names that the line on unchecked rules lists


class Group(Record):
    """One finding as it is printed: the same one for several targets is reported once.

    ``members`` are the findings of the single targets; what they share is read from ``first``.
    """

    members: list[Finding]

    @property
    def first(self) -> Finding:
        """The first target's finding."""
        return self.members[0]

    @property
    def label(self) -> str:
        """The targets in brackets, ``[a40, rtx-5090]``, or nothing where none plays a part."""
        names = ", ".join(dict.fromkeys(shown(m.target) for m in self.members if m.target))
        return f"[{names}]" if names else ""

    def variants(
        self, read: Callable[[Finding], T], same: Callable[[T], object] = lambda value: value
    ) -> list[tuple[T, str]]:
        """Return what ``read`` gives for the members, once each, with the targets it holds for.

        The targets are empty where all members agree, since the header names them already.
        """
        values: dict[object, tuple[T, list[str]]] = {}
        for member in self.members:
            value = read(member)
            values.setdefault(same(value), (value, []))[1].append(shown(member.target or ""))
        apart = len(values) > 1
        return [(value, ", ".join(names) if apart else "") for value, names in values.values()]

    def fixes(self) -> list[tuple[Fix | None, str]]:
        """Return the group's distinct fixes with their targets; None stands for the targets without one."""
        return self.variants(lambda m: m.fix, lambda fix: fix and fix_key(fix))


def fix_key(fix: Fix) -> tuple[object, ...]:
    """Return what makes two fixes the same to a reader: all but the number, which counts per target."""
    return fix.applicability, fix.certainty, fix.title, fix.effect, tuple(fix.edits)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by path, place, code and target; the rest only makes the order total."""
    return sorted(
        findings,
        key=lambda f: (f.place.path, f.place.start, f.code, f.target or "", f.place.end, f.message, f.level),
    )


def undecided_in_order(report: Report) -> list[Undecided]:
    """Return the rules that were left undecided, each with the facts that it needs once, in order."""
    rules = (
        replace(rule, target=rule.target or None, needs=tuple(sorted(set(rule.needs))))
        for rule in report.undecided
    )
    return sorted(rules, key=lambda rule: (rule.path, rule.target or "", rule.code, rule.needs))


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """Put the findings in order, with those that differ in nothing but their target told once."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in ordered(findings):
        place = finding.place
        key = (
            place.path, place.start, place.end,
            finding.code, finding.name, finding.level, finding.possible, finding.message,
        )  # fmt: skip
        groups.setdefault(key, []).append(finding)
    return list(map(Group, groups.values()))


class Lines(Record):
    """Positions in all files of a report, given by path, each indexed when it is first asked for."""

    texts: Mapping[str, str]
    indexes: dict[str, LineIndex] = field(factory=dict, init=False)

    def index(self, path: str) -> LineIndex:
        """Return the line index of ``path``; a file that could not be read counts as empty."""
        if path not in self.indexes:
            self.indexes[path] = LineIndex(self.texts.get(path, ""))
        return self.indexes[path]

    def position(self, path: str, offset: int) -> tuple[int, int]:
        """Return line and column of ``offset``; what lies after the text counts as its end."""
        index = self.index(path)
        return index.position(min(offset, len(index.text)))

    def where(self, path: str, offset: int) -> str:
        """Return ``path:line:column``."""
        line, column = self.position(path, offset)
        return f"{shown(path)}:{line}:{column}"


# ── a report in short: all that a clean run prints ───────────────────────────────────────────────────────
def as_clean(report: Report, *, width: int, verbose: bool) -> str:
    """Return the verdicts of a report without findings, and the closing lines."""
    lines = [*opening(report, verbose=verbose), *closing(report, [], verbose=verbose)]
    told = [(line.lstrip(), line[: len(line) - len(line.lstrip())]) for line in lines]
    return "".join(f"{part}\n" for text, indent in told for part in wrap(text, width, indent, "    "))


def opening(report: Report, *, verbose: bool) -> list[str]:
    """Return the verdicts; of many jobs those that may not fit, and what all others ask for."""
    every = verdicts.grouped(report.jobs)
    if len(every) <= JOBS or verbose:
        return [line for jobs in every for line in verdicts.block(jobs, verbose=verbose)]
    harmful = [jobs for jobs in every if any(job.memory.verdict in ("oom", "tight") for job in jobs)]
    asked: dict[str, int] = {}
    for jobs in every:
        if jobs not in harmful and jobs[0].memory.verdict == "unknown":
            text = verdicts.verdict(jobs[0].memory)
            asked[text] = asked.get(text, 0) + 1
    often = sorted(asked.items(), key=lambda item: (-item[1], item))
    rest = [f"{text} ({number} job{'s' * (number != 1)})" for text, number in often]
    return [*(line for jobs in harmful for line in verdicts.block(jobs)), *rest[:_ASKS]]


def as_concise(report: Report, *, verbose: bool) -> str:
    """Return the verdicts, ``path:line:column: level CODE message [target]`` per finding, and the rest."""
    lines = Lines(report.texts)
    groups = grouped(report.findings)
    rows = []
    for job in report.jobs:
        label = f" [{shown(job.memory.target)}]" if job.memory.target else ""
        line, _ = lines.position(job.path, job.start)
        rows.append(f"{shown(job.path)}:{line}: {verdicts.verdict(job.memory)}{label}\n")
    for group in groups:
        finding = group.first
        may = "(may) " if finding.possible else ""
        label = f" {group.label}" if group.label else ""
        where = lines.where(finding.place.path, finding.place.start)
        rows.append(f"{where}: {finding.level} {shown(finding.code)} {may}{shown(finding.message)}{label}\n")
    return "".join([*rows, *(f"{line}\n" for line in closing(report, groups, verbose=verbose))])


def closing(report: Report, groups: Sequence[Group], *, verbose: bool) -> list[str]:
    """Return the lines on what was not checked, with ``verbose`` the whole list, and the summary."""
    return [*unchecked(report, verbose=verbose), counts(report, groups), *coverage(report)]


def unchecked(report: Report, *, verbose: bool) -> list[str]:
    """Say which rules were not checked, and with ``verbose`` which files were not judged."""
    return [*_undecided(report, verbose=verbose), *(_unjudged(report) if verbose else ())]


def _unjudged(report: Report) -> list[str]:
    named = [(path, reason) for reason, paths in report.unjudged.items() for path in paths]
    lines = [f"  {shown(path)}: {reason}" for path, reason in sorted(named)]
    if lines:
        lines.insert(0, f"not judged: {len(lines)} file{'s' * (len(lines) != 1)} that may be configs")
    return lines


def _undecided(report: Report, *, verbose: bool) -> list[str]:
    """Say in one line how many rules were not checked and what to add; with ``verbose`` list them as well."""
    if not report.undecided:
        return []
    undecided = [rule for rule in report.undecided if not (report.jobs and rule.code.startswith(_MEMORY))]
    if not undecided:
        return []
    asked: dict[str, set[str]] = {}
    counted = bool(report.targets) and all(target.count is not None for target in report.targets)
    for open_rule in undecided:
        unmodelled = any(name.startswith(UNRULED) for name in open_rule.needs)
        for name in open_rule.needs:
            text = _wish(name, report.keys, counted=counted)
            if (
                not unmodelled or "?" in text or name.startswith(UNRULED)
            ):  # else a further name settles nothing
                asked.setdefault(text, set()).add(open_rule.code)
    codes = {open_rule.code for open_rule in undecided}
    files = len({open_rule.path for open_rule in undecided})
    what = (
        "memory"
        if all(code.startswith(_MEMORY) for code in codes)
        else f"{len(codes)} rules"[: -1 if len(codes) == 1 else None]
    )
    line = f"not checked: {what}{f' in {files} files' if files > 1 else ''}"
    wishes = sorted(asked, key=lambda wish: (-len(asked[wish]), wish))
    line = "; ".join([line, *_asked(wishes)])
    if not verbose:
        return [line + "; --verbose lists them"]
    lines = [line]
    for rule in undecided_in_order(report):
        label = f" [{shown(rule.target)}]" if rule.target else ""
        wants = f" needs {', '.join(shown(named(name)) for name in rule.needs)}" if rule.needs else ""
        lines.append(f"  {shown(rule.path)}: {shown(rule.code)}{wants}{label}")
    return lines


def _wish(name: str, keys: Mapping[str, str], *, counted: bool) -> str:
    """Return the question that settles a missing name, or its key; nothing for a name that only rules use."""
    asked = question(name, counted=counted)
    return asked if asked != name else keys.get(name, named(name))


def _asked(wishes: list[str]) -> Iterator[str]:
    """Yield what no answer settles, then the questions, files that are not here, and settings."""
    rest = [shown(wish) for wish in wishes if wish and "?" not in wish]
    unmodelled = [wish.removeprefix(UNRULED) for wish in rest if wish.startswith(UNRULED)]
    yield from (f"cfglint does not model {name}" for name in unmodelled)
    yield from (wish for wish in wishes if "?" in wish)
    others = [wish for wish in rest if not wish.startswith(UNRULED)]
    programs = [wish for wish in others if wish.endswith(".py")]
    files = [wish for wish in others if wish not in programs and ("/" in wish or wish.endswith(_FILES))]
    settings = [wish for wish in others if wish not in files and wish not in programs]
    if programs:
        yield f"cfglint does not read a config in Python: {_some(programs)}"
    if files:
        verb = "1 file that is" if len(files) == 1 else f"{len(files)} files that are"
        yield f"{verb} named but not here: {_some(files)}"
    if settings:
        yield f"unknown setting{'s' * (len(settings) != 1)}: {_some(settings)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _WANTED} more" if len(names) > _WANTED else ""
    return ", ".join(names[:_WANTED]) + more


def counts(report: Report, groups: Sequence[Group]) -> str:
    """Return ``2 errors, 1 warning in 3 files (5 skipped); 1 fixable with cfglint fix``.

    Counts what was printed: a finding that several targets share is one.
    """
    files = f"{report.files} file{'s' * (report.files != 1)}"
    unjudged = {reason: len(paths) for reason, paths in sorted(report.unjudged.items())}
    in_part = [f"{unjudged.pop(IN_PART)} {IN_PART}"] if IN_PART in unjudged else []
    reasons = ", ".join(f"{number} {reason}" for reason, number in unjudged.items())
    whole = [f"{report.skipped} skipped{f': {reasons}' if reasons else ''}"] if report.skipped else []
    skipped = f" ({'; '.join([*whole, *in_part])})" if whole or in_part else ""
    if not groups:
        judged = all(job.memory.verdict == "fits" for job in report.jobs)
        return f"no {'findings' if judged else 'other findings'} in {files}{skipped}"
    parts = []
    for level, many in (("error", "errors"), ("warning", "warnings"), ("info", "info")):
        number = sum(group.first.level == level for group in groups)
        if number:
            parts.append(f"{number} {level if number == 1 else many}")
    return f"{', '.join(parts)} in {files}{skipped}{_fixable(groups)}"


def coverage(report: Report) -> list[str]:
    """Say in a line what became of the jobs, and how many launches were seen and not read.

    Nothing where launches were not looked for.
    """
    if report.unread is None:
        return []
    line = f"{report.judged} job{'s' * (report.judged != 1)} checked"  # by rules that are not about memory
    if report.jobs:
        line = verdicts.tally(report.jobs)
    if report.unread:
        launches = f"{report.unread} launch{'es' * (report.unread != 1)}"
        line += f", {launches} not read: cfglint facts lists them"
    return [line]


def _fixable(groups: Sequence[Group]) -> str:
    by_flags: dict[str, int] = {}
    for group in groups:
        ways = [
            _flags(fix, group.first.level)
            for fix, _ in group.fixes()
            if fix and fix.applicability != "display"
        ]
        if ways:
            # What one target can have without a flag counts so, even if another target needs more.
            best = min(ways, key=lambda way: (len(way), way))
            by_flags[" ".join(best)] = by_flags.get(" ".join(best), 0) + 1
    parts: list[str] = []
    for flags, number in sorted(by_flags.items(), key=lambda item: (item[0].count("--"), item[0])):
        lead = "more with" if parts else "fixable with cfglint fix"
        parts.append(f"{number} {lead} {flags}".rstrip())
    return f"; {', '.join(parts)}" if parts else ""


def _flags(fix: Fix, level: str) -> tuple[str, ...]:
    """Return what ``cfglint fix`` must be told to apply ``fix``."""
    flags = ["--fix-level info"] if level == "info" else []
    if fix.applicability == "unsafe":
        flags.append("--unsafe")
    if fix.certainty == "may":
        flags.append("--accept-may")
    if fix.target is not None:  # no repair is right for all targets
        flags.append("--gpu NAME for one target at a time")
    return tuple(flags)
