"""Writes an assignment into the text and proves it: parse again, lint again, compare.

Nothing counts as a fix before it went through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.document import read_text
from cfglint.document.edits import annotate, insert_key, replace_value
from cfglint.document.scalars import spell
from cfglint.document.tree import Scalar
from cfglint.document.view import dotted
from cfglint.findings import Fix
from cfglint.repair.solve import solve
from cfglint.text import apply_edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.judge import Subject, Verdict
    from cfglint.engine.run import Judged, Run
    from cfglint.repair.inverse import Written
    from cfglint.repair.solve import Assignment
    from cfglint.text import Edit

_MOST_PROVEN = 4  # assignments written and linted for one finding: the fix and up to three alternatives


def fixes_for(run: Run, verdict: Verdict, one: Judged, judgements: Sequence[Judged]) -> list[Fix]:
    """Return proven fixes of a verdict, the best first; their numbers are given by the caller."""
    fixes = []
    for assignment in solve(run, verdict, one, judgements):
        fix = _written(run, verdict, one, judgements, assignment)
        if fix is not None:
            fixes.append(fix)
        if len(fixes) == _MOST_PROVEN:
            break
    return fixes


def _written(
    run: Run, verdict: Verdict, one: Judged, judgements: Sequence[Judged], assignment: Assignment
) -> Fix | None:
    subject = one.subject
    edits: list[Edit] = []
    notes: list[str] = []
    titles: list[str] = []
    readers: list[str] = []
    for written in assignment.written:
        made = _edit(subject, written)
        if made is None:
            return _display(assignment)
        edit, old, shared = made
        edits.append(edit)
        readers += shared
        notes.append(f"cfglint: {f'was {old}' if old is not None else 'added'} ({verdict.rule.code})")
        titles.append(f"set {dotted(written.path)} to {_shown(written.value)}")
    if not _proven(run, verdict, judgements, subject, edits, sure=assignment.sure):
        return None
    title = " and ".join(titles)
    if readers:
        named = ", ".join(readers[:3]) + (" and others" if len(readers) > 3 else "")
        title += f", which {named} read{'s' * (len(readers) == 1)} too"
    return Fix(
        0, title, tuple(edits), applicability="unsafe" if assignment.unsafe else "safe",
        certainty="sure" if assignment.sure else "may", effect=assignment.effect, notes=tuple(notes),
    )  # fmt: skip


def _display(assignment: Assignment) -> Fix:
    title = " and ".join(f"set {dotted(w.path)} to {_shown(w.value)}" for w in assignment.written)
    return Fix(0, title, (), applicability="display", effect=assignment.effect)


def _shown(value: object) -> str:
    return (
        {True: "true", False: "false", None: "null"}.get(value, str(value))
        if isinstance(value, (bool, type(None)))
        else str(value)
    )


def _edit(subject: Subject, written: Written) -> tuple[Edit, str | None, list[str]] | None:
    """Return the edit for one value, the text that it replaces, and who else reads the same definition."""
    view, document = subject.view, subject.document
    trace = view.trace(written.path)
    if trace.present:
        if not trace.editable or not isinstance(trace.node, Scalar):
            return None
        value = written.value
        if trace.node.style in ("'", '"') and not isinstance(value, str):
            value = spell(
                value, None, view.dialect
            )  # a number in quotes stays in quotes: its loader converts it
        edit = replace_value(document, trace.node, value, view.dialect)
        if edit is None:
            return None
        return edit, document.file.text[trace.node.start : trace.node.end], list(trace.shared)
    edit = insert_key(document, written.path, written.value, view.dialect)
    return None if edit is None else (edit, None, [])


def _proven(
    run: Run,
    verdict: Verdict,
    judgements: Sequence[Judged],
    subject: Subject,
    edits: Sequence[Edit],
    *,
    sure: bool,
) -> bool:
    """Whether the edited text no longer breaks the rule where it can be mended, and breaks no other.

    A repair that is not ``sure`` may leave the rule possible, no longer certain to break.
    """
    text = apply_edits(subject.document.file.text, edits)
    again = read_text(text, subject.document.file.path)
    if len(again.documents) != len(subject.document.file.documents):
        return False
    document = again.documents[subject.document.index]
    if document.error is not None:
        return False
    after = run.judged(run.subject(document, subject.framework))
    mended = False
    for old, new in zip(judgements, after, strict=True):
        before = {v.rule.code: v.truth is False for v in old.verdicts}
        for found in new.verdicts:
            code = found.rule.code
            if code not in before or (found.truth is False and not before[code]):
                return False
        left = [v for v in new.verdicts if v.rule.code == verdict.rule.code]
        if verdict.rule.code in before and not (left if sure else [v for v in left if v.truth is False]):
            mended = True
    return mended


def annotated(subject: Subject, fix: Fix) -> tuple[Edit, ...]:
    """Return a fix's edits and, behind each edited line, a comment with the old value and the rule."""
    extra = [annotate(subject.document, edit, note) for edit, note in zip(fix.edits, fix.notes, strict=True)]
    return (*fix.edits, *(edit for edit in extra if edit is not None))
