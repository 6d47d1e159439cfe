"""From broken rules to repairs that are written and proven: one for several rules, the safest first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.repair.goals import Found, Goal
from cfglint.repair.options import Options, combined
from cfglint.repair.prove import proven
from cfglint.repair.search import LIMIT, SAFE_LIMIT, Search
from cfglint.repair.trials import key_of
from cfglint.repair.write import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.subject import Judged, Verdict
    from cfglint.repair.options import Option, Track
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Patch

_TRIES = 3  # repairs that cannot be written or proven, before the search gives up
_ROUNDS = 4  # times that rules which stand in the way are taken in


@dataclass(frozen=True, slots=True)
class Repair:
    """Moves that were proven to reach ``goals``, on all targets or on ``only`` one.

    ``patch`` is None where no edit of the file can do it.
    """

    found: Found
    goals: tuple[Goal, ...]
    patch: Patch | None
    only: Judged | None = None

    @property
    def applicability(self) -> str:
        """``safe``, ``unsafe`` or ``display``."""
        if self.patch is None:
            return "display"
        return "unsafe" if self.found.unsafe else "safe"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which moves a search may make; ``without`` are knobs that stay."""

    unsafe: bool = True
    display: bool = False
    without: frozenset[str] = frozenset()
    limit: int = LIMIT

    def admits(self, track: Track) -> bool:
        """Whether a track may be used."""
        option = track.option(0)
        return (
            option is not None
            and track.knob.name not in self.without
            and (self.unsafe or not option.unsafe)
            and (self.display or option.writable)
        )


@dataclass(slots=True)
class Solver:
    """Repairs of one document. ``exhausted`` has the rules whose search ended at its limit of work.

    ``helpful`` has, by rule, the knobs with which the rule could be mended.
    """

    trials: Trials
    exhausted: set[str] = field(default_factory=set)
    helpful: dict[str, set[str]] = field(default_factory=dict)
    _goals: dict[tuple[int, str], Goal] = field(default_factory=dict)
    _repairs: dict[tuple[object, ...], Repair | None] = field(default_factory=dict)
    _writers: dict[int, Writer] = field(default_factory=dict)
    _tracks: dict[tuple[object, ...], list[Track]] = field(default_factory=dict)

    def goals(self, code: str, ones: Sequence[Judged]) -> list[Goal]:
        """Return what is to hold: a rule's requirement, on each target where it is broken or possible."""
        return [
            self._goal(one, v) for one in ones for v in one.verdicts if v.rule.code == code and to_mend(v)
        ]

    def _goal(self, one: Judged, verdict: Verdict) -> Goal:
        key = id(one), verdict.rule.code
        if key not in self._goals:
            self._goals[key] = Goal.of(one, verdict.rule, self.trials.run.finder.symbols.rules[key[1]])
        return self._goals[key]

    def writer(self, one: Judged) -> Writer:
        """Return what writes facts of the document, as it stands on a target."""
        writer = self._writers.get(id(one))
        if writer is None:
            finder = self.trials.run.finder
            writer = self._writers[id(one)] = Writer(finder.symbols, one.subject, finder.origins(one))
        return writer

    def tracks(self, goals: Sequence[Goal]) -> list[Track]:
        """Return the tracks of all knobs that the goals' requirements depend on."""
        one = goals[0].one
        needed = tuple(dict.fromkeys(goal.rule.requirement for goal in goals))
        key = (id(one), *(id(goal) for goal in goals))
        if key not in self._tracks:
            options = Options(self.trials, one, self.writer(one))
            whole = needed[0] if len(needed) == 1 else t.Junction("and", needed)
            switches = sorted(name for goal in goals if not goal.held for name in goal.switches)
            self._tracks[key] = list(options.tracks(whole, switches))
        return self._tracks[key]

    # ── one search ─────────────────────────────────────────────────────────────────────────────────────
    def cheapest(
        self, goals: Sequence[Goal], watched: Sequence[Judged], allowed: Allowed, known: Found | None = None
    ) -> Repair | None:
        """Return the cheapest proven repair that reaches all goals and harms nothing on ``watched``."""
        key = (tuple(map(id, goals)), tuple(map(id, watched)), allowed)
        if key not in self._repairs:
            self._repairs[key] = self._cheapest(goals, watched, allowed, known)
        return self._repairs[key]

    def _cheapest(
        self, goals: Sequence[Goal], watched: Sequence[Judged], allowed: Allowed, known: Found | None
    ) -> Repair | None:
        search = Search(self.trials, list(goals), watched, allowed.limit)
        for _ in range(_TRIES):
            found = self._extended(search, goals, allowed, known)
            if found is None:
                return None
            repair = self.written(found, goals, watched)
            if repair is not None:
                return repair
            facts = combined(found.options)
            assert facts is not None
            search.refused.add(key_of(facts))
            known = None
        return None

    def _extended(
        self, search: Search, goals: Sequence[Goal], allowed: Allowed, known: Found | None
    ) -> Found | None:
        """Search, and again with the rules that stood in the way as goals, while that may be cheaper."""
        wanted = list(goals)
        found: Found | None = None
        for _ in range(_ROUNDS):
            search.goals = wanted
            search.forget()
            tracks = [track for track in self.tracks(wanted) if allowed.admits(track)]
            found = search.cheapest(tracks, found or known)
            if search.exhausted and not allowed.without:
                self.exhausted.update(goal.compiled.code for goal in goals)
            for goal in goals:
                self.helpful.setdefault(goal.compiled.code, set()).update(search.helpful)
            codes = {goal.compiled.code for goal in wanted}
            new = [code for code in search.blockers(found) if code not in codes]
            moved = {track.knob.name for track in tracks}
            held = [goal for code in new for goal in self._held(code, search.watched)]
            if not held or all(track.knob.name in moved for track in self.tracks(held)):
                break
            wanted += held
        return found

    def _held(self, code: str, watched: Sequence[Judged]) -> Iterator[Goal]:
        rule = self.trials.run.finder.symbols.rules[code]
        for one in watched:
            compiled = next((r for r in self.trials.rules(one) if r.code == code), None)
            if compiled is not None and code not in self.trials.before(one):
                yield Goal.of(one, compiled, rule, held=True)

    def nearest(self, goals: Sequence[Goal], watched: Sequence[Judged], allowed: Allowed) -> Repair | None:
        """Return the single move that comes nearest, where none reaches the goals for certain."""
        search = Search(self.trials, list(goals), watched)
        for _ in range(_TRIES):
            found = search.nearest(track for track in self.tracks(goals) if allowed.admits(track))
            repair = None if found is None else self.written(found, goals, watched)
            if found is None or repair is not None:
                return repair
            search.refused.add(key_of(combined(found.options) or {}))
        return None

    def written(self, found: Found, goals: Sequence[Goal], watched: Sequence[Judged]) -> Repair | None:
        """Return moves as a repair: written into the text and proven; None where the proof fails."""
        only = watched[0] if 0 < len(watched) < len(self.trials.judgements) else None
        if not found.writable:
            return Repair(found, tuple(goals), None, only)
        values = [written for option in found.options for written in option.written]
        patch = self.writer(goals[0].one).patch(values)
        if patch is None:
            return Repair(found, tuple(goals), None, only)
        mended = {(id(goal.one), goal.compiled.code) for goal in goals if not goal.held}
        if not proven(self.trials, mended, watched, tuple(patch.edits), sure=found.sure):
            return None
        return Repair(found, tuple(goals), patch, only)

    # ── the best of several searches ───────────────────────────────────────────────────────────────────
    def best(self, goals: Sequence[Goal], watched: Sequence[Judged], allowed: Allowed) -> Repair | None:
        """Return the cheapest repair that is safe, else the cheapest that is allowed at all."""
        among = replace(allowed, unsafe=False, limit=min(allowed.limit, SAFE_LIMIT))
        safe = self.cheapest(goals, watched, among)
        if safe is not None or not allowed.unsafe:
            return safe
        return self.cheapest(goals, watched, allowed)

    def together(self, moves: Sequence[Option], goals: Sequence[Goal], watched: Sequence[Judged]) -> bool:
        """Whether moves that were found apart reach all goals together, and harm nothing."""
        search = Search(self.trials, list(goals), watched)
        return combined(moves) is not None and search.reading(moves).holds and not search.harms(moves)


def to_mend(verdict: Verdict) -> bool:
    """Whether there is something to mend: a rule that is broken, or possible; not one that is undecided."""
    return verdict.truth is False or not verdict.needs
