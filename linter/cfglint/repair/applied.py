"""What of all that findings are told to do is applied: what is sure, for which no reasons are needed."""

from __future__ import annotations

from cfglint.repair.fixes import fix_of
from cfglint.repair.wants import Wants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged
    from cfglint.findings import Fix
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Goal, Group

_NOT_SURE = "nothing is sure to mend it"


class Applied(Wants):
    """The same fixes, as far as they are sure; other hardware and reasons are not looked for."""

    def _fixes_of(self, group: Group, judged: Judged, repair: Repair | None) -> list[Fix]:
        if repair is not None and repair.patch is not None and repair.risk != "data":  # which comes last
            fix = fix_of(repair, self.solver.trials, judged)
            if fix.certainty == "sure":
                return [fix]
        return super()._fixes_of(group, judged, repair)

    def _near(self, goals: Sequence[Goal], judged: Judged, *, unsafe: bool = False) -> list[Fix]:
        alone = len({goal.code for goal in goals}) == 1  # its own search found all that is sure
        return [] if alone else super()._near(goals, judged, unsafe=unsafe)

    def _elsewhere(self, _: Judged, __: Sequence[Goal], *, may: bool = True) -> list[Fix]:  # noqa: ARG002
        return []

    def _runs_elsewhere(self, judged: Judged, goals: Sequence[Goal]) -> bool:
        return bool(super()._elsewhere(judged, goals, may=False))

    def _without_fix(self, _: Group, __: Judged, fixes: list[Fix]) -> tuple[list[Fix], str]:
        return fixes, _NOT_SURE

    def _given_up(self, _: Group, __: Judged, elsewhere: list[Fix]) -> tuple[list[Fix], str]:
        return elsewhere, _NOT_SURE
