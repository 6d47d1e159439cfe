"""Fixes of slips of the pen: an unknown key that was surely another one, a number that was meant as a share.

An unknown key at which the loader stops, and that is like no other, can only be taken away.

No knob moves, and what they do is proven likewise.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cfglint.document.json import trailing_commas
from cfglint.document.overrides import ADDED, HAS, said, said_again
from cfglint.document.python.values import Literal
from cfglint.document.removal import joined, remove_keys
from cfglint.document.shell.ends import rejoined
from cfglint.document.spoken import spoken
from cfglint.document.trace import Trace
from cfglint.document.tree import Mapping
from cfglint.engine.halts import STOPS
from cfglint.engine.judge import IMPOSSIBLE, meant_number
from cfglint.findings import LEVELS, Fix
from cfglint.lang import tree as t
from cfglint.repair.halted import HALTED, added
from cfglint.repair.invert import Written
from cfglint.repair.stale import stale
from cfglint.schema.judge import keys_of, knows, mistakes
from cfglint.schema.table import table
from cfglint.schema.wording import fits, meant
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.tree import Document, Scalar
    from cfglint.engine.find import Found
    from cfglint.engine.subject import Judged
    from cfglint.repair.solve import Solver
    from cfglint.repair.trials import Trials
    from cfglint.schema.table import Mistake, Problem

RENAMED = {"CFG011": "document.refused_keys", "CFG012": "document.ignored_keys"}
_REFUSED = "CFG011"
_ENDS, _LOST = "DOC107", "document.lost_lines"
_STRANGE, _STRANGE_FLAGS = "DOC109", "document.strange_flags"
_HYDRAS, _OVERRIDES = "CFG033", "document.refused_overrides"
_NUMBERS = "document.impossible_values"
_TYPES, _OF_TYPE = "document.misfits", "CFG009"
_JOINS = "join the command's lines: take out what stands between them"
_SPARES = "take out the backslash at the end of the command"
_CONVERTS = "take out the carriage returns at the ends of the file's lines, as dos2unix does"
_TEXTS, _FLOATS = "CFG004", "document.float_strings"
_FLOAT = re.compile(r"([-+]?)(\d*)\.?(\d*)([eE])([-+]?)(\d+)")
_SYNTAX, _ERRORS = "CFG001", "document.syntax_errors"
_DOUBLED, _DUPLICATES = "CFG002", "document.duplicate_keys"
_GOES_ON = ":|>-+{[,\\\"'"  # at the end of a line whose value may go on below
_COUNTS, _SHARES = "_steps", "_ratio"  # what a key may count, and its neighbour that takes a share of all
_LISTS = {**RENAMED, IMPOSSIBLE: _NUMBERS, _OF_TYPE: _TYPES}


def slips(solver: Solver, found: Sequence[Found], least: str) -> Iterator[tuple[Found, Fix]]:
    """Yield the findings of slips whose meaning is plain, each with its fix; a command's flags have one."""
    pairs = list(_slips(solver, found, least))
    for code, fact in ((_STRANGE, _STRANGE_FLAGS), (_HYDRAS, _OVERRIDES)):
        own = [fix for each, fix in pairs if each.finding.code == code]
        plain = len({fix.applicability for fix in own}) == 1
        whole = _as_one(solver.trials, own, fact) if plain and len({fix.edits for fix in own}) > 1 else None
        pairs = [(each, whole if whole and each.finding.code == code else fix) for each, fix in pairs]
    yield from pairs


def _as_one(trials: Trials, fixes: Sequence[Fix], fact: str) -> Fix | None:
    """Return fixes of a command as one: the program stops at the first flag or override that is left over."""
    distinct = list({fix.edits: fix for fix in fixes}.values())
    noted = {edit.start: note for fix in distinct for edit, note in zip(fix.edits, fix.notes, strict=True)}
    every = {edit for fix in distinct for edit in fix.edits}
    renamed = [edit for edit in every if edit.new]
    edits = tuple(sorted((*renamed, *joined(every.difference(renamed))), key=lambda edit: edit.start))
    apart = all(one.end < other.start for one, other in pairwise(edits))
    if not apart or not _leaves_less(trials, edits, fact, len(distinct)):
        return None
    titles = [fix.title for fix in distinct]
    effects = dict.fromkeys(fix.effect for fix in distinct if fix.effect)
    return Fix(
        0,
        f"{', '.join(titles[:-1])} and {titles[-1]}",
        edits,
        applicability=distinct[0].applicability,
        effect="; ".join(effects),
        risk=distinct[0].risk,
        notes=tuple(noted[edit.start] for edit in edits),
    )


def _slips(solver: Solver, found: Sequence[Found], least: str) -> Iterator[tuple[Found, Fix]]:
    for each in found:
        finding = each.finding
        given = added(each.judged) if finding.code == HALTED else None
        if given is not None and _leaves_one_less(solver.trials, given.edits, STOPS):
            yield each, given
        told = LEVELS.index(finding.level) >= LEVELS.index(least)
        place = finding.place.start, finding.place.end
        here = _AT_A_PLACE[finding.code] if told and finding.code in _AT_A_PLACE else None
        at_once = None if here is None else here(solver.trials, each.judged, place)
        if at_once is not None:
            yield each, at_once
        whole = _UNREAD[finding.code](solver.trials, each.judged) if finding.code in _UNREAD else None
        if whole is not None:
            yield each, whole
        listed = _LISTS.get(finding.code, "")
        if not listed or not told:
            continue
        own = [m for m in _noted(each.judged, listed) if (m.start, m.end) == place]
        if len(own) == 1:
            fix = _fixed(solver, each.judged, own[0], finding.code)
            if fix is None and finding.code == _REFUSED:
                fix = _removal(solver.trials, own[0])
            if fix is not None:
                yield each, fix


def _rejoined(trials: Trials, judged: Judged) -> Fix | None:
    """Return what makes the lines of a command one; what is then wrong with it is told."""
    if not judged.values[_LOST]:
        return None
    edits = rejoined(judged.subject.document)
    text = judged.subject.document.file.text
    returns = bool(edits) and text[edits[0].start : edits[0].end] == "\r"
    spare = len(edits) == 1 and text[edits[0].start : edits[0].end].strip() == "\\"
    title = _CONVERTS if returns else _SPARES if spare else _JOINS
    note = f"cfglint: the command ended here ({_ENDS})"
    return _readable(trials, judged, _LOST, edits, (title, note, "its flags are read then"))


def _parsing(trials: Trials, judged: Judged) -> Fix | None:
    """Return what takes out commas before closing brackets, where a file of JSON is read without them."""
    document = judged.subject.document
    places = trailing_commas(document) if document.format == "json" and document.key is None else []
    several = "s" * (len(places) > 1)
    title = f"remove the comma{several} before the closing bracket{several}"
    edits = tuple(Edit(at, at + 1, "") for at in places)
    note = f"cfglint: the file did not parse ({_SYNTAX})"
    return _readable(trials, judged, _ERRORS, edits, (title, note, "the file is read then"))


def _said_twice(trials: Trials, judged: Judged) -> Fix | None:
    """Return what takes out lines of keys that are there twice: empty ones, and those that say the same."""
    document = judged.subject.document
    pairs = document.duplicates if document.format == "yaml" else ()
    spare = [_spare(document.file.text, *pair) for pair in pairs]
    edits = tuple(edit for edit in spare if edit is not None)
    named = ", ".join(dict.fromkeys(later.text for later, _ in pairs))
    title = f"remove the line of {named} that is empty, or says the same"
    note = f"cfglint: the key was there twice ({_DOUBLED})"
    return _readable(trials, judged, _DUPLICATES, edits, (title, note, "the file is read then"))


def _spare(text: str, later: Scalar, first: Scalar) -> Edit | None:
    """Return what takes out the line of one of two keys that says nothing, or the same; None for another."""
    lines = {}
    for key in (first, later):
        start, end = text.rfind("\n", 0, key.start) + 1, text.find("\n", key.end) + 1 or len(text)
        line, indent = text[start:end].strip(), key.start - start
        below = (
            each for each in text[end:].splitlines() if each.strip() and not each.lstrip().startswith("#")
        )
        following = next(below, "")
        inside = (
            len(following) - len(following.lstrip()) + following.lstrip().startswith("-") if following else 0
        )
        if line == f"{key.text}:" and inside <= indent:
            return Edit(start, end, "")
        lines[line] = Edit(start, end, "")
    same = len(lines) == 1 and next(iter(lines))[-1] not in _GOES_ON
    return next(iter(lines.values())) if same else None


_UNREAD = {_ENDS: _rejoined, _SYNTAX: _parsing, _DOUBLED: _said_twice}


def _readable(
    trials: Trials, judged: Judged, fact: str, edits: tuple[Edit, ...], words: tuple[str, str, str]
) -> Fix | None:
    """Return edits that let a loader read what it did not; what is then wrong is told.

    ``words`` are the title, the note, and what is read.
    """
    title, note, what = words
    after = (trials.judged_after(edits) if edits else None) or ()
    new = next((each for each in after if each.target == judged.target), None)
    if new is None or new.values[fact]:
        return None
    before = trials.base(judged).before
    broken = sorted(
        f"{verdict.rule.code} ({verdict.rule.name})"
        for verdict in new.verdicts
        if verdict.truth is False and verdict.rule.level == "error"
        and (verdict.rule.code not in before or before[verdict.rule.code].truth is not False)
    )  # fmt: skip
    effect = f"{what}, and there is still {' and '.join(broken)}" if broken else ""
    sure = "may" if broken else "sure"
    notes = (note,) * len(edits)
    return Fix(0, title, edits, applicability="safe", certainty=sure, effect=effect, notes=notes)


def _fixed(solver: Solver, judged: Judged, mistake: Mistake, code: str) -> Fix | None:
    if code == IMPOSSIBLE:
        return _number(solver, judged, mistake)
    return _of_another(solver.trials, mistake) if code == _OF_TYPE else _rename(solver.trials, mistake, code)


def _of_another(trials: Trials, mistake: Mistake) -> Fix | None:
    """Return the key that takes a value: a share, where steps are counted, or a section, by its keys."""
    view, framework = trials.subject.view, trials.subject.framework
    root, path = view.document.root, () if mistake.problem is None else mistake.problem.path
    old = str(path[-1]) if len(path) == 1 else ""
    entry = root.entries.get(old) if isinstance(root, Mapping) else None
    if entry is None:
        return None
    new, what = old.removesuffix(_COUNTS) + _SHARES, "a share of all steps"
    if isinstance(entry.value, Mapping):
        keys = tuple(entry.value.entries)
        fitting = [name for name in keys_of(framework) if _holds(framework, name, old, keys)]
        new, what = fitting[0] if len(fitting) == 1 else "", "these keys"
    elif not (old.endswith(_COUNTS) and _is_share(view.get(path))):
        return None
    if not knows(framework, (new,)) or view.has((new,)):
        return None
    if view.document.file.text[entry.key.start : entry.key.end] != old:
        return None
    edits = (Edit(entry.key.start, entry.key.end, new),)
    if not _leaves_one_less(trials, edits, _TYPES):
        return None
    title = f"rename {old} to {new}, which takes {what}"
    return Fix(0, title, edits, applicability="unsafe", notes=(f"cfglint: was {old} ({_OF_TYPE})",))


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _holds(framework: str | None, name: str, old: str, keys: Sequence[str]) -> bool:
    """Whether a section whose name is a longer one has all the keys."""
    return bool(keys) and name.endswith(f"_{old}") and all(knows(framework, (name, key)) for key in keys)


def _noted(judged: Judged, listed: str) -> Sequence[Mistake]:
    if listed == _NUMBERS:
        return judged.values[listed]  # type: ignore[return-value]
    subject = judged.subject
    return mistakes(subject.framework, subject.view).get(listed.removeprefix("document."), ())


def _rename(trials: Trials, mistake: Mistake, code: str) -> Fix | None:
    """Return the rename; a key that had no effect gets one, so it may change results and is never safe."""
    view = trials.subject.view
    if mistake.problem is None:
        return None
    new = _probably(trials, mistake.problem)
    old = str(mistake.problem.path[-1])
    source = view.document.file.text[mistake.start : mistake.end]
    if new is None or source.count(old) != 1:  # of an override, or spelled with escapes
        return None
    edits = (Edit(mistake.start, mistake.end, source.replace(old, new)),)
    if not _leaves_one_less(trials, edits, RENAMED[code]):
        return None
    title = f"rename {mistake.key} to {new}"
    return Fix(0, title, edits, applicability="unsafe", notes=(f"cfglint: was {old} ({code})",))


def _probably(trials: Trials, problem: Problem) -> str | None:
    """Return the key that was meant, if it takes the value."""
    view, schema = trials.subject.view, table(trials.subject.framework or "")
    name = meant(problem, view)
    return name if name and schema is not None and fits(name, problem, schema, view) else None


def _removal(trials: Trials, mistake: Mistake) -> Fix | None:
    """Return what takes a key away that no loader takes; what it was to do is not known, so it is never safe.

    A key that is like another one is misspelled, if its value fits: its setting would be lost.
    """
    view = trials.subject.view
    if mistake.problem is None or _probably(trials, mistake.problem) is not None:
        return None
    path = mistake.problem.path
    trace = Trace(view, path)
    if not trace.editable or trace.at != path or trace.steps or trace.shared:
        return None
    edits = remove_keys(view.document, [path])
    if edits is None or not _leaves_one_less(trials, edits, RENAMED[_REFUSED]):
        return None
    if not trials.recognised(edits):
        return None
    effect = (
        f"no loader of {trials.subject.framework} that cfglint knows has the key; what it was to do is lost"
    )
    title = f"remove {spoken(path)}"
    notes = (f"cfglint: removed ({_REFUSED})",) * len(edits)
    return Fix(0, title, edits, applicability="unsafe", effect=effect, risk="optimization", notes=notes)


def _flag(trials: Trials, judged: Judged, place: tuple[int, int]) -> Fix | None:
    """Return what renames a flag at which a program stops, or takes it out with its words."""
    view = trials.subject.view
    listed: Sequence[Mistake] = judged.values[_STRANGE_FLAGS]  # type: ignore[assignment]
    for each in listed:
        if (each.start, each.end) != place or view.document.file.text[each.start : each.start + 2] != "--":
            continue
        edits: tuple[Edit, ...] | None = (Edit(each.start + 2, each.end, each.note),)
        title, effect = f"rename --{each.key} to --{each.note}", ""
        if each.kind or not _takes(trials, each):  # without it, the program would train something else
            return None
        if not each.note:
            program = each.text.endswith(".py")
            edits = remove_keys(view.document, [(each.key,) if program else ("launch", "flags", each.key)])
            title, where = f"remove --{each.key}", " of this checkout" if program else ""
            effect = f"{each.text}{where} has nothing that it sets; what it was to do is lost"
        if edits is None or not _leaves_one_less(trials, edits, _STRANGE_FLAGS):
            return None
        notes = (f"cfglint: was {each.key} ({_STRANGE})",) * len(edits)
        return Fix(0, title, edits, applicability="unsafe", effect=effect, risk="optimization", notes=notes)
    return None


def _takes(trials: Trials, mistake: Mistake) -> bool:
    """Whether the flag that was meant takes what the strange one is given, by its type and its choices."""
    program, value = trials.subject.document.program, trials.subject.view.get((mistake.key,))
    flag = None if program is None else program.program.flags.get(mistake.note)
    if flag is None:
        return True
    default = flag.default.value if isinstance(flag.default, Literal) else None
    return bool(flag.accepts(value)) and not (type(default) in (int, float) and isinstance(value, str))


def _override(trials: Trials, judged: Judged, place: tuple[int, int]) -> Fix | None:
    """Return what lets Hydra take an override: a + less; or what takes one out that nothing reads."""
    view, document = trials.subject.view, trials.subject.document
    listed: Sequence[Mistake] = judged.values[_OVERRIDES]  # type: ignore[assignment]
    each = next((each for each in listed if (each.start, each.end) == place), None)
    start = place[0]
    if each is None:
        return None
    moved = next((fix for one in listed if (fix := _moved(trials, judged, one, each)) is not None), None)
    if moved is not None:
        return moved
    path, effect = tuple(each.key.split(".")), ""
    edits: tuple[Edit, ...] | None = (Edit(start, start + 1, ""),)
    title, applies = f"write {each.key} without its +", "safe"  # no run has started with it
    again = said_again(document, each.key)
    if again and document.reads_at is not None and document.reads_at(again.split(".")[-2], path[-1]):
        edits, title = remove_keys(view.document, [path]), f"remove {each.key}"
        effect = f"{again}, where the programs here read it, has the same value in this command"
    elif each.kind != ADDED:
        if "meant?" in each.note or may_be_asked(document, each, listed):
            return None
        edits, applies = remove_keys(view.document, [path]), "unsafe"
        read = f"a section {each.text}" if each.text else "the key"
        title, effect = f"remove {each.key}", f"no program of this checkout reads {read}"
    source = document.file.text[start : place[1]]
    if edits is None or not source.endswith(each.key) or not _leaves_one_less(trials, edits, _OVERRIDES):
        return None
    notes = (f"cfglint: Hydra refused it ({_HYDRAS})",) * len(edits)
    risk = "none" if applies == "safe" else "optimization"
    return Fix(0, title, edits, applicability=applies, effect=effect, risk=risk, notes=notes)


def may_be_asked(document: Document, each: Mistake, listed: Sequence[Mistake]) -> bool:
    """Whether a program may ask for what an override sets, here or in another section."""
    top, _, _ = each.key.partition(".")
    others = each.note.removeprefix(HAS).split(" and ") if each.note.startswith(HAS) else []
    strange = (one for one in listed if one is not each and one.key.startswith(f"{top}."))
    later = any(one.text or not one.note for one in strange)  # the command is for another version's section
    apart = bool(others) and later and not any(key.startswith(f"{top}.") for key in others)
    if (each.text or apart) and document.asks_for is not None:
        return document.asks_for(each.text or each.key)
    # a key of this name elsewhere may be the one that was meant
    return document.names is None or document.names(each.key.rpartition(".")[2] if each.note else each.key)


def _moved(trials: Trials, judged: Judged, one: Mistake, about: Mistake) -> Fix | None:
    """Return what sets the one key of an override's name that its config has, with which Hydra takes another.

    A choice of Hydra's may bring the keys that others set.
    """
    new = _meant_elsewhere(trials.subject.document, one)
    edits = (Edit(one.start, one.end, new),)
    after = next((a for a in (new and trials.judged_after(edits)) or () if a.target == judged.target), None)
    layers = None if after is None else after.subject.view.layers
    if after is None or layers is None or layers.unread or layers.troubles or _breaks(trials, judged, after):
        return None
    left = {each.key for each in after.values[_OVERRIDES]}  # type: ignore[attr-defined]
    known = {each.key for each in judged.values[_OVERRIDES]}  # type: ignore[attr-defined]
    if not left < known or {one.key, about.key} & left:
        return None
    others = len(known - left) - 1
    more = f"; with it come the keys of {others} other override{'s' * (others > 1)}" if others else ""
    return Fix(
        0,
        f"set {new} in place of {one.key}",
        edits,
        applicability="unsafe",
        effect=f"the config has a key of that name there alone{more}",
        risk="optimization",
        notes=(f"cfglint: Hydra refused it ({_HYDRAS})",),
    )


def _meant_elsewhere(document: Document, one: Mistake) -> str:
    """Return the one key of an override's name that a config has, where it may be meant; empty for none.

    It stands above or below the override's own section: in another part of a config it is another setting.
    """
    section, _, name = one.key.rpartition(".")
    new = one.note.removeprefix(HAS) if one.note.startswith(HAS) else ""
    there = new.rpartition(".")[0]
    nested = not there or f"{section}.".startswith(f"{there}.") or there.startswith(f"{section}.")
    if one.kind == ADDED or " and " in new or not nested or new in said(document):
        return ""
    if document.reads_at is not None and document.reads_at(section.rpartition(".")[2], name):
        return ""  # the program asks for it where it stands
    return new if document.file.text[one.start : one.end] == one.key else ""


def _breaks(trials: Trials, judged: Judged, after: Judged) -> bool:
    """Whether a rule about anything but memory is an error that it was not before."""
    before = trials.base(judged).before
    return any(
        verdict.truth is False and verdict.rule.level == "error" and not verdict.rule.code.startswith("MEM")
        and (verdict.rule.code not in before or before[verdict.rule.code].truth is not False)
        for verdict in after.verdicts
    )  # fmt: skip


def _number(solver: Solver, judged: Judged, mistake: Mistake) -> Fix | None:
    """Return what writes the number that was meant; a percentage in a fraction's place is safe to tell."""
    probably = meant_number(solver.trials.run.pack, mistake.kind, float(mistake.text))
    if probably is None:
        return None
    writer = solver.writer(judged)
    bindings = writer.origins.bindings.get(mistake.kind, ())
    paths = (binding.source for binding in bindings if isinstance(binding.source, t.Path))
    path = next((p.steps for p in paths if ".".join(map(str, p.steps)) == mistake.key), None)
    if path is None:
        return None
    value, sure = probably
    patch = writer.patch([Written(path, int(value) if value == int(value) else value)])
    if patch is None or not _leaves_one_less(solver.trials, patch.edits, _NUMBERS):
        return None
    notes = tuple(f"cfglint: was {change.old} ({IMPOSSIBLE})" for change in patch.changes)
    untrue = tuple(stale(writer.subject.document, patch.changes, ()))
    applicability = "safe" if sure else "unsafe"
    return Fix(0, patch.title, patch.edits, applicability=applicability, notes=notes, stale=untrue)


def _as_float(trials: Trials, _judged: Judged, place: tuple[int, int]) -> Fix | None:
    """Return what spells a number so that YAML 1.1 reads one: with a dot, and a sign in its exponent."""
    start, end = place
    old = trials.subject.document.file.text[start:end]
    told = _FLOAT.fullmatch(old)
    if told is None:
        return None
    sign, whole, part, mark, direction, exponent = told.groups()
    edits = (Edit(start, end, f"{sign}{whole or 0}.{part or 0}{mark}{direction or '+'}{exponent}"),)
    if not _leaves_one_less(trials, edits, _FLOATS):
        return None
    title = f"write {edits[0].new} for {old}, which is a number then"
    return Fix(0, title, edits, applicability="safe", notes=(f"cfglint: was {old} ({_TEXTS})",))


_AT_A_PLACE = {_STRANGE: _flag, _HYDRAS: _override, _TEXTS: _as_float}


def _leaves_one_less(trials: Trials, edits: tuple[Edit, ...], fact: str) -> bool:
    """Whether edits leave one mistake of a list less, and break no rule that held."""
    return _leaves_less(trials, edits, fact, 1)


def _leaves_less(trials: Trials, edits: tuple[Edit, ...], fact: str, less: int) -> bool:
    """Whether edits leave so many mistakes of a list less, and break no rule that held.

    What a number that could not be had left open may now be decided either way.
    """
    after = trials.judged_after(edits)
    if after is None:
        return False
    for old, new in zip(trials.judgements, after, strict=True):
        before = trials.base(old).before
        broken = [verdict.rule.code for verdict in new.verdicts if verdict.truth is False]
        if any(
            code not in before or (fact != _NUMBERS and before[code].truth is not False) for code in broken
        ):
            return False
        if len(new.values[fact]) != len(old.values[fact]) - less:  # type: ignore[arg-type]
            return False
    return True
