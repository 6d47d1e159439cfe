"""Proves a repair: apply the edits to the text, parse it again, lint it again, compare.

Nothing counts as a fix before it went through here.
"""

from __future__ import annotations

from cfglint.document.compose import again_in
from cfglint.document.reading import read_text
from cfglint.engine.judge import judge
from cfglint.repair.trials import is_hint
from cfglint.text import apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.trials import Trials
    from cfglint.text import Edit


def judged_after(trials: Trials, edits: tuple[Edit, ...]) -> Sequence[Judged] | None:
    """Return the edited document, judged; None where it does not parse. The same edits are judged once."""
    if edits not in trials.edited:
        document = trials.subject.document
        file = document.file
        again = again_in(document, read_text(apply_edits(file.text, edits), file.path, bom=file.bom))
        run = trials.run
        trials.edited[edits] = (
            run.judged(run.subject(again, trials.subject.framework)) if again is not None else None
        )
    return trials.edited[edits]


def proven(
    trials: Trials,
    mended: Collection[tuple[Judged, str]],
    watched: Collection[Judged],
    edits: tuple[Edit, ...],
    *,
    sure: bool,
) -> bool:
    """Whether the edited text breaks none of the rules ``mended``, and on ``watched`` no other that held.

    ``mended`` has a judgement and a rule's code. A repair that is not ``sure`` may leave its rules possible,
    no longer certain to break.
    """
    after = judged_after(trials, edits)
    if after is None:
        return False
    for old, new in zip(trials.judgements, after, strict=True):
        if old not in watched:
            continue
        before = trials.base(old).before
        aside = judge(trials.run.aside(new.subject, new.values), new.values)
        for verdict in (*new.verdicts, *aside):
            code = verdict.rule.code
            if is_hint(verdict.rule) and (old, code) not in mended:
                continue
            if code not in before or (verdict.truth is False and before[code].truth is not False):
                return False
            if (old, code) in mended and (sure or verdict.truth is False or verdict.needs):
                return False
    return True
