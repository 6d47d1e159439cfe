"""What edits break in other documents: commands that read what is set, further configs."""

from __future__ import annotations

import os

from cfglint.document.compose import edited
from cfglint.document.shell.processes import below, text_at
from cfglint.repair.hopeless import too_large
from cfglint.repair.importers import built_anew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cfglint.document.tree import Document
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject
    from cfglint.text import Edit

    _Broken = tuple[Subject, Subject | None, set[str]]

_MEMORY = "MEM1"  # the rules about what a GPU must hold


def told(run: Run, own: Document, edits: tuple[Edit, ...]) -> str:
    """Say what edits break in another document of the file: the number against it, or the rule's message.

    Nothing where they break none.
    """
    return _told(run, own, broken(run, own, edits))


def told_elsewhere(run: Run, own: Document, edits: tuple[Edit, ...]) -> str:
    """Say what edits break in a config of another file that builds on one; nothing where they do not."""
    return _told(run, own, _broken(run.but(), built_anew(run.but(), own, edits)))


def _told(run: Run, own: Document, found: Iterator[_Broken]) -> str:
    run = run.but()  # with a report of its own
    for subject, again, codes in found:
        whose = _whose(subject, own)
        if again is None:
            return f"{whose} reads what is set, and cannot be read with it"
        judgements = run.judged(again)
        if numbers := next(filter(None, (too_large(each.values, states=True) for each in judgements)), ""):
            return f"{whose} reads what is set, too: {numbers}"
        for finding in (each.finding for each in run.findings(judgements)):
            if finding.code in codes:
                return f"{finding.code} ({finding.name}) would break for {whose}: {finding.message}"
        return f"{whose} reads what is set, too, and breaks {' and '.join(sorted(codes))} with it"
    return ""


def broken(run: Run, own: Document, edits: tuple[Edit, ...]) -> Iterator[_Broken]:
    """Yield the documents beside one's ``own`` that edits break, after them, with the rules that break."""
    run = run.but()
    return _broken(run, _of_the_file(run, own, edits))


def _broken(run: Run, changed: Iterable[tuple[Subject, Subject | None]]) -> Iterator[_Broken]:
    for subject, again in changed:
        if again is None:
            yield subject, None, set()
            continue
        before = _surely(run.judged(subject))
        after = _surely(run.judged(again))
        stopped = {code for code in before if code[2] == "error"}
        new = after - before
        if stopped and {code for code in after if code[2] == "error"} <= stopped:
            if not all(code.startswith(_MEMORY) for _, code, _ in stopped):
                continue  # it does not run as it is either
            # It may on GPUs with more memory: what has to do with that is no matter here.
            new = {code for code in new if not code[1].startswith(_MEMORY)}
        if new:
            yield subject, again, {code for _, code, _ in new}


def _of_the_file(
    run: Run, own: Document, edits: tuple[Edit, ...]
) -> Iterator[tuple[Subject, Subject | None]]:
    """Yield the other documents of a file as they are, and after edits: None where they cannot be read."""
    others = [each for each in run.subjects(own.file, judge_broken=False) if each.document.index != own.index]
    first = edited(others[0].document, edits) if others else None  # the whole file is read again, and once
    for subject in others:
        document, again = subject.document, first
        if document.key is not None:
            again = edited(document, edits)
        elif first is not None and document.index != first.index:
            again = first.file.documents[document.index]
            again.taken_by(document.loader)
        if again is not None and again.error is not None:
            again = None
        yield subject, None if again is None else run.subject(again, subject.framework)


def _surely(judgements: Sequence[Judged]) -> set[tuple[str | None, str, str]]:
    """Return the rules that are broken for certain: on which targets, and how bad that is."""
    return {
        (each.name, v.rule.code, v.rule.level)
        for each in judgements
        for v in each.verdicts
        if v.truth is False
    }


def _whose(subject: Subject, own: Document) -> str:
    """Return what a document is called: by its program or function, and its line; by its file if another."""
    document = subject.document
    name, program = text_at(document.root, "launch", "name"), below(document.root, "launch", "program")
    line = document.file.lines.position(document.start if program is None else program.start)[0]
    name = name or text_at(document.root, "python", "function")
    if document.file.path != own.file.path:
        return f"{name}, which builds on it ({os.path.relpath(document.file.path)})"
    return f"{name} (line {line})" if name else f"what begins in line {line}"
