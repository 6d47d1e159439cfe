"""Rules that an edit decides and does not move: its keys tell which program they are for."""

from __future__ import annotations

from cfglint.lang.values import needs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfglint.engine.subject import Verdict
    from cfglint.facts import Values


def only_shown(verdict: Verdict, stands: Sequence[tuple[Mapping[str, Verdict], Values]]) -> bool:
    """Whether a rule that the edited text breaks was open, and would stay so with the moved facts alone.

    ``fsdp_cpu_offload`` shows that a file is for torchtune's distributed recipe, and so which rules break:
    the same as before, whatever its value. ``stands`` are what did not hold before, and the moved facts.
    """
    if verdict.truth is not False or not stands:
        return False
    for verdicts, moved in stands:
        before = verdicts.get(verdict.rule.code)
        if before is None or not before.needs or needs_of(verdict.rule.test(moved)) != before.needs:
            return False
    return True
