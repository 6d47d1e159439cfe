"""One run: files through recognition, judgement and finding-making, into a report."""

from __future__ import annotations

import os

from cfglint.budget import BUDGET
from cfglint.document.abbreviated import spell_out
from cfglint.document.reading import sections
from cfglint.document.scalars import PYYAML
from cfglint.document.shell.ends import ends_early
from cfglint.document.tree import Document, child
from cfglint.document.view import View
from cfglint.engine.judge import decides, is_job, judge, key_of, values_for
from cfglint.engine.subject import Judged, Reading, Subject, is_template
from cfglint.errors import OverBudgetError, UsageError
from cfglint.findings import Job, Memory, Report, Span, TargetInfo, Undecided, question
from cfglint.models.registry import near
from cfglint.record import Record, field, replace
from cfglint.schema.judge import flags_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from cfglint.document.tree import File
    from cfglint.engine.find import Finder, Found
    from cfglint.facts import Values
    from cfglint.findings import Finding
    from cfglint.hardware.prices import Prices
    from cfglint.hardware.target import Target
    from cfglint.history import History
    from cfglint.lang.pack import CompiledRule

    ByPath: TypeAlias = Callable[[str], tuple[str, tuple[float, ...] | None] | None]
    _RuleSet: TypeAlias = tuple[str | None, tuple[float, ...]]  # a framework and a version of it
    Pinned: TypeAlias = Callable[[Document, str], tuple[tuple[float, ...] | None, str] | None]
    Mender: TypeAlias = Callable[["Run", Sequence[Judged], Sequence[Found]], None]

_PROGRAMS = ("python", "notebook", "shell")  # of those in a folder, few are configs
_ANYTHING = Span(0, float("inf"))
_CUT_OFF = "the command ends before its last flags"
_DOUBTED = "it would run out of memory, but what it rests on may not hold"
_BESIDE = ("torch", "vllm", "transformers", "deepspeed")  # whose versions are facts, where files pin them
_SYNTAX, _LAST = "CFG001", "CFG023"  # asks whether the other rules came to an end


def _every(_code: str) -> bool:
    return True


def _is_last(rule: CompiledRule) -> bool:
    return rule.code == _LAST


class Launches(Record):
    """What the scripts of a folder do with the config files in it, by the absolute paths of these.

    ``parts`` are what programs are started with, and judged there, as parts of a job. ``beside`` are the
    flags that launchers are given beside a config of theirs: they go before what it says.
    """

    parts: frozenset[str] = frozenset()
    beside: Mapping[str, frozenset[str]] = field(factory=dict)


class Run(Reading):
    """The rules, targets and flags of a run, the same for all its files; `but` returns a changed copy.

    ``selected`` says which codes are reported; ``guarded`` which a repair may not break, by default the same.
    ``given`` are facts of every file, each with its source. ``named`` is false where a file that asks for
    GPUs itself (a batch script) is checked for those and not for ``targets``. ``framework`` is what all files
    are for, ``by_path`` gives what some are for, with a version or None; the others are recognised.
    ``pinned`` gives the version that files beside a document pin its framework to, and the place; the version
    is None where the framework's package is here and does not say it.
    ``prices`` rank hardware, where they are not those that come with cfglint.
    ``tables`` are those of the file at hand: a path in it is seen from its folder. ``launches`` say what
    scripts beside a file do with it. ``typed`` are overrides that must reach something: in the one file where
    it is ``alone``, else in one of those that were judged.
    """

    targets: Sequence[Target] = ()
    framework: str | None = field(default=None, kw_only=True)
    version: tuple[float, ...] | None = field(default=None, kw_only=True)
    by_path: ByPath | None = field(default=None, kw_only=True)
    selected: Callable[[str], bool] = field(default=_every, kw_only=True)
    guarded: Callable[[str], bool] | None = field(default=None, kw_only=True)
    given: Mapping[str, tuple[object, str]] = field(factory=dict, kw_only=True)
    named: bool = field(default=True, kw_only=True)
    pinned: Pinned | None = field(default=None, kw_only=True)
    made: Finder | None = field(default=None, kw_only=True)  # of the rules' trees; what it compiled, it keeps
    launches: Launches = field(factory=Launches, kw_only=True)
    prices: Prices | None = field(default=None, kw_only=True)
    typed: Sequence[str] = field(default=(), kw_only=True)
    alone: bool = field(default=True, kw_only=True)
    report: Report = field(factory=Report, init=False)
    fixes: int = field(default=0, init=False)  # numbered over the whole run
    histories: dict[str, History] = field(factory=dict, init=False)  # of the repositories that were asked
    _folder: str | None = field(default=None, init=False)
    _rules: dict[_RuleSet, list[CompiledRule]] = field(factory=dict, init=False)
    _aside: dict[_RuleSet, list[CompiledRule]] = field(factory=dict, init=False)

    def __post_init__(self) -> None:
        """Name the targets in the report."""
        self._announce(self.targets)

    def but(self, **changes: object) -> Run:
        """Return a run with a report of its own that is as this one, but for ``changes``."""
        return replace(self, **changes)

    def _announce(self, targets: Iterable[Target]) -> None:
        """Name targets in the report, each once."""
        for target in targets:
            if all(info.name != target.name for info in self.report.targets):
                info = TargetInfo(target.name, target.gpu, target.count, target.vram_gib)
                self.report.targets.append(info)

    def targets_of(self, document: Document) -> Sequence[Target]:
        """Return the targets to check a document for: those that its job asks for if none are named."""
        if self.named or document.job is None:
            return self.targets
        from cfglint.hardware.host import declared

        asked = declared(document.job)
        self._announce(asked)
        return asked or self.targets

    # ── from file to subjects ──────────────────────────────────────────────────────────────────────────
    def subjects(self, file: File, *, judge_broken: bool) -> list[Subject]:
        """Return the documents of a file that a framework recognises.

        One that does not parse is judged as well, for its syntax alone, if ``judge_broken`` says so or if
        it is recognised by what its lines still say.
        """
        with BUDGET:
            return self._subjects(file, judge_broken)

    def _subjects(self, file: File, judge_broken: bool) -> list[Subject]:
        self.look_near(file.path)
        subjects = []
        named, _ = self.named_for(file.path)
        for document in file.documents:
            if not (named or judge_broken) and is_template(document):
                continue
            framework = named or self.recognise(document)
            if framework is None and document.error is not None:
                framework = self.recognise_broken(document)
            if framework is None and not (document.error is not None and judge_broken):
                continue
            parts = [document]
            if framework is not None:
                block = self.pack.frameworks[framework]
                document.taken_by(block["dialect"])
                if block["sections"]:
                    parts = sections(document) or parts
            subjects += [self.subject(part, framework) for part in parts]
        if self.typed and subjects:
            self._note_typed(subjects)
        return subjects

    def _note_typed(self, subjects: Sequence[Subject]) -> None:
        """Note which overrides reach something in a file. Raises UsageError where it is the only one."""
        from cfglint.engine.typed import takes

        broken = any(subject.document.error is not None for subject in subjects)
        seen = [(each.view, each.framework) for each in subjects]
        taken = (text for text in self.typed if broken or any(takes(self.pack, *each, text) for each in seen))
        self.report.taken.update(taken)
        self.report.seen.update(subject.framework for subject in subjects if subject.framework is not None)
        if self.alone:
            self.refuse()

    def refuse(self) -> None:
        """Refuse what was typed and changes nothing anywhere. Raises UsageError."""
        lost = [text for text in self.typed if text not in self.report.taken]
        if lost and self.report.seen:
            from cfglint.engine.typed import refusal

            raise UsageError(refusal(self.pack, lost[0], self.report.seen))

    def named_for(self, path: str) -> tuple[str | None, tuple[float, ...] | None]:
        """Return the framework and version that flags or settings name for a file; None where they do not."""
        own = None if self.by_path is None else self.by_path(path)
        return own or (self.framework, self.version)

    def look_near(self, path: str) -> None:
        """See paths of models from a file's folder."""
        folder = os.path.dirname(path)
        if folder != self._folder:
            self._folder = folder
            boundary = self.library.boundary if self.library is not None else None
            top = boundary.root(path) if boundary is not None and not path.startswith("<") else folder
            self.tables = near(self.tables, folder, top)

    def subject(self, document: Document, framework: str | None) -> Subject:
        """Return a document as a framework sees it, in the version that is named for it."""
        named, version = self.named_for(document.file.path)
        version, source = (version if framework == named else None), ""
        if version is None and framework is not None and self.pinned is not None:
            for package in self.pack.frameworks[framework]["packages"] or (framework,):
                found = self.pinned(document, package)
                if found is not None:
                    version, source = found
                    break
        document.vouched = named is not None and framework == named
        if child(document.root, "launch") is not None and (flags := flags_of(framework)):
            spell_out(document.root, flags, all_known=True)
        subject = self.subject_of(document, framework, version)
        subject.version_source = source
        for package in _BESIDE:
            beside = self.pinned(document, package) if framework and self.pinned is not None else None
            if beside is not None and beside[0] is not None:
                subject.stated = {f"{package}.version": beside, **subject.stated}
        if named is not None:  # somebody says who reads it
            document.used = None
        if self.launches.beside and not subject.is_launch:
            document.replaced = self.launches.beside.get(os.path.abspath(document.file.path), frozenset())
        return subject

    # ── from subject to verdicts ───────────────────────────────────────────────────────────────────────
    def judged(self, subject: Subject) -> list[Judged]:
        """Judge a subject on every target; without targets, once."""
        judgements = [self.on(target, subject) for target in self.targets_of(subject.document) or (None,)]
        for judged in judgements:
            rules = self.rules(subject, judged.values)
            judgeable: tuple[str, ...] = ()
            if ends_early(subject.document):  # what was cut off is the cause of what is missing
                judgeable = ("CFG", "DOC")
            elif self._is_part(subject, judged.values):  # what a launch still gives decides the rest
                judgeable = ("CFG",)
            if judgeable:
                own = self.pack.rules[self.pack.shipped :] if self.pack.shipped else ()
                rules = [rule for rule in rules if rule.code.startswith(judgeable) or rule in own]
            judged.verdicts = judge(rules, judged.values)
        return judgements

    def _is_part(self, subject: Subject, values: Values) -> bool:
        """Whether a document is a part of jobs alone: a base, or what a launch of another file names."""
        path = subject.document.file.path
        parts = self.launches.parts
        launched = bool(parts) and not subject.is_launch and os.path.abspath(path) in parts
        return launched or not is_job(subject, values)

    def on(self, target: Target | None, subject: Subject) -> Judged:
        """Return a subject's facts on a target, not yet judged."""
        facts = {**subject.stated, **({} if target is None else target.facts), **self.given}
        values = values_for(subject, {name: value for name, (value, _) in facts.items()})
        facts = {**subject.spare, **facts}
        return Judged(subject, target, values, {name: source for name, (_, source) in facts.items()})

    def rules(self, subject: Subject, values: Values) -> list[CompiledRule]:
        """Return the rules that speak of a subject; of a file that does not parse, the syntax rules alone."""
        only = _LAST if subject.document.overrun else _SYNTAX if subject.document.error is not None else ""
        if only:
            return [rule for rule in self.pack.rules if rule.code == only and self.selected(rule.code)]
        key = (subject.framework, values.version)
        if key not in self._rules:
            rules = [rule for rule in self.pack.rules if rule.covers(*key) and self.selected(rule.code)]
            if subject.framework is None and subject.document.format == "shell":
                rules = [rule for rule in rules if rule.code.startswith("DOC")]  # its launcher alone is known
            rules.sort(key=_is_last)
            self._rules[key] = rules
        return self._rules[key]

    def aside(self, subject: Subject, values: Values) -> list[CompiledRule]:
        """Return the rules that are not reported, and that a repair may not break all the same."""
        if self.guarded is None or subject.document.error is not None:
            return []
        key = (subject.framework, values.version)
        if key not in self._aside:
            self._aside[key] = [
                rule
                for rule in self.pack.rules
                if rule.covers(*key) and self.guarded(rule.code) and not self.selected(rule.code)
            ]
        return self._aside[key]

    def without_target(self, rule: CompiledRule, judged: Judged) -> bool:
        """Whether a rule's verdict rests on nothing that the target gave."""
        alone = values_for(judged.subject, judged.values.given)
        rule.test(alone)
        own = {*self.given, *judged.subject.stated, *judged.subject.spare}
        return not any(name in alone for name in judged.values.given if name not in own)

    # ── from verdicts to the report ────────────────────────────────────────────────────────────────────
    def findings(self, judgements: Sequence[Judged], *, told: bool = True) -> list[Found]:
        """Return a subject's findings, ``told`` in words; one mistake has one, whichever rules see it."""
        found = list(self._findings(judgements))
        found = self.finder.once(found, len(judgements)) if len(found) > 1 else found
        for each in found if told else ():
            self.finder.tell(each)
        return found

    def _findings(self, judgements: Sequence[Judged]) -> Iterator[Found]:
        """Yield what the rules find; what no target plays a part in comes once."""
        everywhere: set[str] = set()
        for judged in judgements:
            for verdict in judged.verdicts:
                code = verdict.rule.code
                if verdict.needs or code in everywhere:
                    continue
                alone = judged.target is None or self.without_target(verdict.rule, judged)
                if alone:
                    everywhere.add(code)
                yield from self.finder.findings(verdict, judged, None if alone else judged.name)

    def _assumed(self, judgements: Sequence[Judged], found: Sequence[Found]) -> list[Found]:
        """Return what is likely of open memory rules, for processes of which nothing else was ``found``."""
        if not any(v.needs and v.rule.code.startswith("MEM") for j in judgements for v in j.verdicts):
            return []  # as most files without a target
        from cfglint.engine.cases import asked_again
        from cfglint.engine.find import process_of

        assumed = [again for each in judgements if (again := asked_again(each)) is not None]
        told = {(process_of(each.finding), each.finding.target) for each in found}
        return [
            each
            for each in self.findings(assumed)
            if each.finding.level != "info" and (process_of(each.finding), each.finding.target) not in told
        ]

    @property
    def finder(self) -> Finder:
        """The maker of findings; the rules' trees are loaded when it is first needed."""
        if self.made is None:
            from cfglint.engine.find import Finder

            self.made = Finder(self.pack)
        return self.made

    def add(self, file: File, *, explicit: bool = True, mend: Mender | None = None) -> bool:
        """Judge a file and add what was found to the report; False if no framework recognises it.

        ``mend`` attaches fixes to the findings of a document. A file that costs too much gets a finding.
        """
        with BUDGET:
            try:
                return self._add(file, explicit, mend)
            except OverBudgetError as why:
                self.overran(file, str(why), asked=explicit)
                return True

    def overran(self, file: File, why: str, *, asked: bool = True) -> None:
        """Add to the report that a file costs too much to judge; a program must be ``asked`` for."""
        BUDGET.renew()
        if not self.selected(_LAST) or (not asked and file.format in _PROGRAMS):
            self.report.pass_over("over budget", file.path)
            return
        document = Document(0, len(file.text), format=file.format)
        document.file, document.overrun = file, why
        judged = self.on(None, Subject(self.pack, document, View(document, PYYAML), None, None, self.tables))
        judged.verdicts = judge(self.rules(judged.subject, judged.values), judged.values)
        self.report.files += file.path not in self.report.texts
        self.report.texts[file.path] = file.text
        self.report.findings += [found.finding for found in self.findings([judged])]

    def _add(self, file: File, explicit: bool, mend: Mender | None) -> bool:
        subjects = self.subjects(file, judge_broken=explicit)
        subjects += self._unknown_programs(file, subjects)
        if not subjects:
            return False
        broken = sum(subject.document.error is not None for subject in subjects)
        if broken and not self.selected(_SYNTAX):
            self.report.pass_over("with syntax errors", file.path)
            if broken == len(subjects):
                return True
        self.report.files += 1
        self.report.texts[file.path] = file.text
        first = len(self.report.undecided)
        reported: set[tuple[object, ...]] = set()
        for subject in subjects:
            judgements = self.judged(subject)
            sound = subject.document.error is None and subject.framework is not None
            whole = sound and not self._is_part(subject, judgements[0].values)
            self.report.judged += whole
            self._undecided(judgements, file.path, first)
            found = self.findings(judgements)
            found += self._assumed(judgements, found)
            if whole and self.asks_for_memory:
                jobs = self.report.jobs
                jobs += [job for job in self._jobs(judgements, found) if job not in jobs]
            if found and len(subjects) > 1:  # sections that share a part by an anchor share its mistake
                own = [each.finding for each in found]
                keys = [(f.code, f.target, f.place.start, f.place.end, f.message) for f in own]
                found = [each for each, key in zip(found, keys, strict=True) if key not in reported]
                reported.update(keys)
            if found and mend is not None:
                mend(self, judgements, found)
            if found:
                self.report.findings += unsuppressed([f.finding for f in found], file, subject.document)
                if subject.view.layers is not None:
                    self.report.texts |= {s.file.path: s.file.text for s in subject.view.layers.files}
        return True

    @property
    def asks_for_memory(self) -> bool:
        """Whether a rule on memory is selected that decides whether a job fits."""
        return any(self.selected(rule.code) for rule in self.pack.rules if decides(rule))

    def _jobs(self, judgements: Sequence[Judged], found: Sequence[Found]) -> Iterator[Job]:
        """Yield the memory of a job on each target; out of memory where an error says so, too."""
        for judged in judgements:
            subject, values = judged.subject, judged.values
            if judged.target is None:
                memory = Memory("", None, _ANYTHING, _ANYTHING, "unknown", ask=question("gpu.name"))
            else:
                from cfglint.engine.memory import memory_of

                memory, _ = memory_of(values, judged.target)
            if memory.ask is not None and any(memory.ask == each.finding.message for each in found):
                memory = replace(memory, ask=None)  # a finding says it, at its line
            if ends_early(subject.document) is not None:
                memory = replace(memory, verdict="unknown", cases=(), ask=_CUT_OFF)
            errors = {
                each.finding.target
                for each in found
                if each.finding.level == "error" and decides(each.verdict.rule)
            }
            if memory.verdict == "oom" and errors.isdisjoint((judged.name, None)):
                memory = replace(memory, verdict="unknown", ask=_DOUBTED)
            document, model = subject.document, values["model_path"] if judged.target is not None else None
            start = document.key.start if document.key is not None else document.start
            if document.root is not None and document.key is None:
                start = document.root.start
            name = model if isinstance(model, str) else None
            yield Job(document.file.path, start, subject.framework or "", name, memory)

    def _unknown_programs(self, file: File, recognised: Sequence[Subject]) -> list[Subject]:
        """Return the commands of no framework that end too early, or contradict what their job asks for."""
        subjects = []
        for document in file.documents:
            if document.format != "shell" or any(s.document.whole is document for s in recognised):
                continue
            if document.job is None and not ends_early(document):
                continue
            subject = self.subject(document, None)
            if any(v.truth is False for judged in self.judged(subject) for v in judged.verdicts):
                subjects.append(subject)
        return subjects

    def _undecided(self, judgements: Sequence[Judged], path: str, first: int) -> None:
        """Add what was left undecided; what every target leaves alike is said once, for none of them.

        So is what other sections of the file left undecided alike: those from number ``first`` on.
        """
        sections = bool(judgements) and judgements[0].subject.document.key is not None
        before = {(u.target, u.code, u.needs) for u in self.report.undecided[first:]} if sections else ()
        each = [
            {v.rule.code: tuple(sorted(v.needs)) for v in judged.verdicts if v.needs} for judged in judgements
        ]
        for i, (judged, open_rules) in enumerate(zip(judgements, each, strict=True)):
            for name in {name for needs in open_rules.values() for name in needs}:
                if not self.report.keys.get(name) and name in self.pack.facts:
                    plain = "" if "." in name else name  # which is for people
                    key = key_of(name, judged.values) or plain
                    self.report.keys[name] = self.pack.asks.get(name) or key
            own = {rule.code for rule in self.pack.rules[self.pack.shipped :]} if self.pack.shipped else set()
            for name in {name for code in own & open_rules.keys() for name in open_rules[code]}:
                if name.startswith("$.") and (told := _misspelled(name, judged.subject.view, path)):
                    self.report.keys[name] = told
            for code, needs in open_rules.items():
                common = all(rules.get(code) == needs for rules in each)
                target = None if common else judged.name
                if not (common and i) and (target, code, needs) not in before:
                    self.report.undecided.append(Undecided(path, target, code, needs))


def _misspelled(name: str, view: View, path: str) -> str:
    """Return the complaint about a key of somebody's own rule that a file spells in another way, if so."""
    from cfglint.document.trace import near_keys

    near = near_keys(view, tuple(name[2:].split(".")))
    return f"{name[2:]} is not in {path}{near}" if near else ""


def unsuppressed(findings: Sequence[Finding], file: File, document: Document) -> list[Finding]:
    """Return the findings without those that a comment of the file switches off.

    A file that a program writes anew, nobody edits.
    """
    if findings and document.generated is not None and document.generated():
        return []
    if "cfglint:" not in file.text:
        return list(findings)
    from cfglint.document.suppressions import suppressions

    off: dict[int, set[str]] = {}
    for line, codes in suppressions(document.whole):
        off.setdefault(line, set()).update(codes)
    everywhere = tuple(off.pop(0, ()))

    def is_on(finding: Finding) -> bool:
        line = file.lines.position(finding.place.start)[0]
        return not finding.code.startswith((*everywhere, *off.get(line, ())))

    return [finding for finding in findings if is_on(finding)]
