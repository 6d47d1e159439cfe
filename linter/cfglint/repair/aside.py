"""What edits break in the other documents of a file: commands that read what is set, further configs."""

from __future__ import annotations

from cfglint.document.compose import edited
from cfglint.document.shell.processes import below, text_at
from cfglint.repair.hopeless import too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.tree import Document
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject
    from cfglint.text import Edit


def told(run: Run, own: Document, edits: tuple[Edit, ...]) -> str:
    """Say what edits break in another document of the file: the number against it, or the rule's message.

    Nothing where they break none.
    """
    run = run.but()  # with a report of its own
    for subject, codes in broken(run, own, edits):
        whose = _whose(subject)
        again = edited(subject.document, edits)
        if again is None:
            return f"{whose} reads what is set, and cannot be read with it"
        judgements = run.judged(run.subject(again, subject.framework))
        if numbers := next(filter(None, (too_large(each.values, states=True) for each in judgements)), ""):
            return f"{whose} reads what is set, too: {numbers}"
        for finding in (each.finding for each in run.findings(judgements)):
            if finding.code in codes:
                return f"{finding.code} ({finding.name}) would break for {whose}: {finding.message}"
        return f"{whose} reads what is set, too, and breaks {' and '.join(sorted(codes))} with it"
    return ""


def broken(run: Run, own: Document, edits: tuple[Edit, ...]) -> Iterator[tuple[Subject, set[str]]]:
    """Yield the documents beside one's ``own`` that edits break, with the rules that hold no longer."""
    run = run.but()
    for subject in run.subjects(own.file, judge_broken=False):
        if subject.document.index == own.index:
            continue
        again = edited(subject.document, edits)
        if again is None:
            yield subject, set()
            continue
        before = _surely(run.judged(subject))
        after = _surely(run.judged(run.subject(again, subject.framework)))
        stopped = {code for code in before if code[2] == "error"}
        if stopped and {code for code in after if code[2] == "error"} <= stopped:
            continue  # it does not run as it is either
        if not after <= before:
            yield subject, {code for _, code, _ in after - before}


def _surely(judgements: Sequence[Judged]) -> set[tuple[str | None, str, str]]:
    """Return the rules that are broken for certain: on which targets, and how bad that is."""
    return {
        (each.name, v.rule.code, v.rule.level)
        for each in judgements
        for v in each.verdicts
        if v.truth is False
    }


def _whose(subject: Subject) -> str:
    """Return what a document is called: a command by its program and line, another by its line."""
    document = subject.document
    name, program = text_at(document.root, "launch", "name"), below(document.root, "launch", "program")
    line = document.file.lines.position(document.start if program is None else program.start)[0]
    return f"{name} (line {line})" if name else f"what begins in line {line}"
