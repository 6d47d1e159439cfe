"""What a repair may move: for each knob its tracks, and all that a move brings with it.

A value that is written at a definition which other keys read moves their facts too and costs what those
moves cost. Values that a knob keeps (`keeping effective_batch_size with grad_accum`) are kept by moving the
partner; keys that a framework ties to the knob's own are written along.
"""

from __future__ import annotations

from itertools import chain

from cfglint.document.trace import Trace
from cfglint.document.tree import dotted, split_key
from cfglint.engine.knobs import literal, move_of, move_of_all
from cfglint.facts import Values, convert
from cfglint.lang import tree as t
from cfglint.lang.show import path as path_text
from cfglint.lang.types import ANY, is_number
from cfglint.lang.values import Interval, Open, Unknown, needs_of
from cfglint.record import Record, replace
from cfglint.repair.beside import is_taken
from cfglint.repair.exchange import (
    even_ones,
    exchanged_for,
    in_proportion,
    is_even,
    may_grow,
    partners_of,
)
from cfglint.repair.halted import would_halt
from cfglint.repair.invert import ABSENT, Written
from cfglint.repair.keys import Asked
from cfglint.repair.laid import laid_over
from cfglint.repair.machines import Machines
from cfglint.repair.nearly import nearly_keeps
from cfglint.repair.newer import for_a_newer
from cfglint.repair.others import for_a_launcher, for_several, share_micro
from cfglint.repair.price import beyond_hosts, points, regroups
from cfglint.repair.reasoned import for_people
from cfglint.repair.results import as_if_it_ran, has_stayed, is_same, probe, rests_apart, risk_to_results
from cfglint.repair.shown import can_be_written, keep_what_is_shown
from cfglint.repair.tracks import OF_ITSELF, SHORT, UNPRICED, Broken, Option, Track, priced, risk_of, worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from cfglint.document.view import View
    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Way, Writer

_TRAIN, _ALL, _MICRO = "train_gpus", "num_gpus", "micro_batch_size"
_TROUBLE = 0.5  # of a knob's own points, where a step hardly takes longer: what the time does not tell
_MOST_TROUBLE = 200.0  # points: twenty times as long a step is no way to train
_STEPS = "grad_accum"
_LAUNCHER_STEPS = ("launch", "flags", "gradient_accumulation_steps")
_JOB = ("launch", "job", "gpus")
READER = 1.0  # the cost of a change in a key that no knob speaks of
_KEYS_EFFECT = "the value that the rule requires; other effects of the key are not modelled"
_SHRINKS = "a batch that is counted per GPU shrinks"  # of the words of rules/knobs.rules
_STAYS = "fewer GPUs: each does more, and takes longer"
_KEPT = "fewer GPUs: each accumulates more, which keeps a batch that is counted per GPU"
_REMOVAL_EFFECT = "what the removed text said is lost; other effects of the keys are not modelled"
_OF_KEYS = t.Move("any", READER, unsafe=True, effect=_KEYS_EFFECT)
_UNSETTLED = (Interval, Open, Unknown)


class Options(Record):
    """The options of one document, as it is on one target."""

    trials: Trials
    judged: Judged
    writer: Writer
    of_own: bool = False  # whether it is a rule of the user's, who means what it computes
    stops: bool = False  # whether no run starts as it is, which alone is worth what the text says

    def tracks(self, requirement: t.Expr, switches: Iterable[str] = ()) -> Iterator[Track]:
        """Yield the tracks of all knobs that a requirement depends on, through lets and bindings.

        Then those that its rule's condition itself asks for, and what the requirement asks of keys.
        """
        origins = self.writer.origins
        knobs = origins.symbols.knobs
        names = dict.fromkeys((*origins.derivation(origins.names_in(requirement)), *switches))
        if _TRAIN in names and origins.of(_TRAIN).paths == origins.of(_ALL).paths:  # one key says both
            names[_ALL] = None
        tracks = (
            track for name in names if name in knobs for track in self._tracks(knobs[name], requirement)
        )
        for number, track in enumerate(chain(tracks, self._of_keys(requirement)), 1):
            make = self._key_option if isinstance(track.values[0], dict) else self._option
            yield replace(track, number=number, make=make)

    def _of_keys(self, requirement: t.Expr) -> Iterator[Track]:
        """Yield a track for each group of keys that a requirement names and no knob moves, in order."""
        evaluator, view = self.trials.run.finder.evaluator, self.judged.subject.view
        asked = Asked(evaluator, self.judged.values, self.writer.home, tries=self.of_own, removes=self.stops)
        for group in asked.groups(requirement):
            ways = [{path_text(steps): (steps, value) for steps, value in way.items()} for way in group]
            names = sorted({name for way in ways for name in way})
            knob = self._knob_at(names[0], ways[0][names[0]][0]) if len(names) == 1 else None
            if knob is None:
                keys = [(self._knob_at(name, at), view.get(at), new) for name, (at, new) in ways[0].items()]
                common = move_of_all(keys, self._holds) if len(ways) == 1 else None
                yield Track(t.Knob(", ".join(names), "any"), None, ways, common or _OF_KEYS)
                continue
            gone = [way for way in ways if way[names[0]][1] is ABSENT]  # of which no knob speaks
            if gone:
                yield Track(t.Knob(names[0], "any"), None, gone, _OF_KEYS)
            old = view.get(ways[0][names[0]][0])
            for way in (*ways, *even_ones(names[0], old, ways)):
                value = way[names[0]][1]
                if value is ABSENT:
                    continue
                move = move_of(knob, old, value, ANY, self._holds)
                if move is not None:
                    yield Track(knob, old, [way], move)

    def _knob_at(self, name: str, steps: Steps) -> t.Knob | None:
        """Return the knob of a key, or of one that is read from it."""
        knobs = self.writer.origins.symbols.knobs
        shared = (f"$.{key}" for key in self.writer.definition(steps).shared)
        return next((knobs[each] for each in (name, *shared) if each in knobs), None)

    def _key_option(self, track: Track, i: int) -> Option | None:
        """Return what writing some keys comes to; None where no edit of the file can do it."""
        ways: Any = track.values
        way = ways[i]
        facts = {name: value for name, (_, value) in way.items()}
        written = [Written(steps, value) for steps, value in way.values()]
        cost = READER * len(way) if track.move is _OF_KEYS else track.move.cost
        option = Option(
            track.knob.name, i + 1, False, facts, written, cost, risk_of(track.move), [track.move.effect]
        )
        self._count_all(option)
        definitions = [self.writer.definition(each.path) for each in written]
        if track.move is _OF_KEYS:
            option.cost += READER * sum(len(definition.shared) for definition in definitions)
        self.trials.keys |= {name: steps for name, (steps, _) in way.items()}
        if not all(definition.editable for definition in definitions) or is_taken(self.judged, facts):
            return None
        if self.trials.rewritten(self.judged, facts) is None or not self._keep(track.knob, option):
            return None
        knobs = self.writer.origins.symbols.knobs.values()
        partners = {partner for knob in knobs for partner in knob.partners}
        for name, worth in self._brought_along(partners, option).items():
            option.facts[name] = worth
            option.exchanged[name] = self.judged.values[name], set()
        definitions = [self.writer.definition(each.path) for each in option.written]
        option.writable = can_be_written(option, definitions)
        option.places = [(d.key, w.value) for d, w in zip(definitions, option.written, strict=True)]
        option.factors = frozenset(chain.from_iterable(each.factors for each in definitions))
        option.results = risk_to_results(self.trials, self.judged, option.facts)
        if ABSENT in facts.values():
            self._price_removal(option)
        for name, value in facts.items():  # a null stands for a key that is not there: no cheaper than that
            if value is None and any(other[name][1] is ABSENT for other in ways if name in other):
                option.cost += READER
        for_several(option, definitions, self.writer, self._apart)
        for_a_newer(option, self.writer)
        return option

    def _apart(self, option: Option) -> bool:
        """Whether no result of a job rests on what an option moves; of keys that no knob knows, who knows."""
        known = all(name in self.writer.origins.symbols.types for name in option.facts)
        return known and not option.exchanged and rests_apart(self.trials, self.judged, option.facts)

    def _price_removal(self, option: Option) -> None:
        """Say what taking keys away puts at risk: nothing where all that they say is said elsewhere, too.

        It costs more than another value would.
        """
        gone = [written.path for written in option.written if written.value is ABSENT]
        option.cost += READER * len(gone)
        if len(gone) < len(option.written) or not all(self._is_said_again(p, option) for p in gone):
            option.risk = option.results if option.results != "none" else option.risk
            option.effects = [_REMOVAL_EFFECT]
        else:
            option.risk, option.effects = "none", []

    def _is_said_again(self, path: Steps, option: Option) -> bool:
        """Whether a fact that is read from a key is worth the same without it, and what the key says."""
        before, after = self.judged.values, self.trials.values(self.judged, option.facts)
        said = self.judged.subject.view.get(path)
        for name, bindings in self.writer.origins.bindings.items():
            if any(binding.source == t.Path(path) for binding in bindings):
                worth = convert(name, said, self.trials.run.pack.facts[name])
                settled = not isinstance(worth, _UNSETTLED) and worth is not None
                if settled and has_stayed(worth, before[name]) and has_stayed(worth, after[name]):
                    return True
        return False

    def _tracks(self, knob: t.Knob, requirement: t.Expr) -> list[Track]:
        """Return a knob's tracks, with the options that were made of them for another requirement."""
        known, key = self.trials.tracks, (self.judged, knob.name, knob.domain in OF_ITSELF or requirement)
        known[key] = known[key] if key in known else self._new_tracks(knob, requirement)
        return known[key]

    def _new_tracks(self, knob: t.Knob, requirement: t.Expr) -> list[Track]:
        old = self.judged.values[knob.name]
        binding, stated = self.writer.origins.of(knob.name).binding, self.writer.stated(knob.name)
        source = binding.source if binding is not None else None
        # What follows another knob moves with it.
        follows = isinstance(source, t.Name) and source.name in self.writer.origins.symbols.knobs
        if isinstance(old, _UNSETTLED) or (not stated and (binding is None or follows)):
            return []
        evaluator = self.trials.run.finder.evaluator
        kind = evaluator.type_of(knob.name)

        def with_value(value: object) -> Values:
            moved = value is not old
            return self.trials.values(self.judged, {knob.name: value}) if moved else self.judged.values

        return Broken(knob, old, kind, requirement, evaluator, with_value, self._holds).tracks()

    def _holds(self, condition: t.Expr) -> bool:
        """Whether a condition holds as things stand."""
        return self.trials.run.finder.evaluator(condition, self.judged.values)[0] is True

    def _option(self, track: Track, i: int) -> Option | None:
        """Return what moving a knob to a place of its track comes to; None where that cannot be had."""
        knob, value = track.knob, track.values[i]
        own, cost_before = self.writer.writes(knob.name, value, track.spelling), track.cost_before
        if own is None:
            return None
        if any(move.leaving is not None for move in knob.moves):
            move = self._move_to(track, {knob.name: value}) or self._move_along(track, value, own)
            if move is None:
                return None
            track = replace(track, move=move)
        option = Option(
            knob.name,
            track.steps(i),
            value in track.asked,
            {knob.name: value},
            list(own.keys),
            track.cost(i),
            risk_of(track.move),
            [track.move.effect],
        )
        if not self._carry(knob, option, plain=own.plain) or would_halt(self.trials, option, self._rewritten):
            return None
        if len(track) <= SHORT and track.move.kind == "time":
            if beyond_hosts(self.trials, self.judged, option):
                return None
            told = points(self.trials, self.judged, option.facts, option.cost)
            if told > _MOST_TROUBLE and not regroups(option.facts):
                return None
            option.cost = max(told, option.cost * _TROUBLE)
            if regroups(option.facts):  # nobody leaves GPUs idle for a faster step by an estimate
                option.cost = max(option.cost, cost_before(i))
        for name in tuple(option.facts):
            self._tie(name, option)
        for written in tuple(option.written):
            self._share(written, option)
        option.results = risk_to_results(self.trials, self.judged, option.facts)
        definitions = [self.writer.definition(written.path) for written in option.written]
        option.writable = can_be_written(option, definitions) and not for_people(self.judged, option)
        option.places = [self.writer.place(written) for written in option.written]
        option.factors = frozenset(chain.from_iterable(each.factors for each in definitions))
        for_several(option, definitions, self.writer, self._apart)
        self._for_a_job(option)
        for_a_newer(option, self.writer)
        if all(written.path != _LAUNCHER_STEPS for written in option.written):
            for_a_launcher(option, self.judged.subject.view)
        option.effects = list(dict.fromkeys(filter(None, option.effects)))
        return option

    def _count_all(self, option: Option) -> None:
        """Move the numbers of all processes and of machines along."""
        Machines(self.judged, self.writer, self.trials, self._rewritten).count(option)

    def _for_a_job(self, option: Option) -> None:
        """Say of an option that the file asks a cluster for GPUs, which no edit of the command changes.

        What is then still asked for is told of the whole repair (leftover.py).
        """
        asked, there = self.judged.subject.view.get(_JOB), self.judged.values["gpu.count"]
        if not (regroups(option.facts) and is_number(asked) and is_number(there) and asked > there):
            return
        again = self._rewritten(option)  # a command may take its numbers from where the file asks
        if again is None or again.get(_JOB) == asked:
            option.risk = worse(option.risk, "optimization")

    def _move_along(self, track: Track, value: object, own: Way) -> t.Move | None:
        """Return what a move costs by what it leaves behind with all that its edits bring along."""
        if len(track) > SHORT or len(own.keys) < 2:
            return None
        facts = self.read_with(track.knob.name, value, own)
        return None if facts is None else self._move_to(track, facts)

    def read_with(self, name: str, value: object, own: Way) -> dict[str, object] | None:
        """Return a fact's new value with all that its edits bring along; None where it is not read back."""
        option = Option(name, 1, True, {name: value}, list(own.keys), 0, "none", [])
        if not self._read_back(option):
            return None
        for written in own.keys:
            self._share(written, option)
        return option.facts

    def _move_to(self, track: Track, facts: Mapping[str, object]) -> t.Move | None:
        """Return what a move costs by what it leaves behind."""
        evaluator, value = self.trials.run.finder.evaluator, facts[track.knob.name]
        after = self.trials.values(self.judged, dict(facts))

        def leaves(condition: t.Expr) -> bool:
            return evaluator(condition, after)[0] is True

        kind = evaluator.type_of(track.knob.name)
        return move_of(track.knob, track.old, value, kind, self._holds, leaves)

    def _carry(self, knob: t.Knob, option: Option, *, plain: bool) -> bool:
        """Move all that reads what is written, and keep what the knob keeps; false where that cannot be."""
        if plain:
            return self._keep(knob, option)
        if not self._read_back(option):
            return False
        written = len(option.written)
        return self._keep(knob, option) and (len(option.written) == written or self._read_back(option))

    def _keep(self, knob: t.Knob, option: Option) -> bool:
        """Move the knob's partner so that what it keeps stays; false where no whole value does that.

        What is not known is kept in proportion: any number stands for what is missing.
        """
        if knob.keeping is None:
            return True
        values, moved = (as_if_it_ran(self.trials, self.judged, facts) for facts in (None, option.facts))
        if is_same(knob.keeping, values, moved):
            if not needs_of(moved[knob.keeping]).isdisjoint(option.facts):  # what moves is not known itself
                keep_what_is_shown(self.trials, self.judged, knob, option)
            elif self.judged.subject.view.unread is None:
                _reword(option, _STAYS)
            return True
        brought = self._brought_along(knob.partners, option)
        if brought and is_same(knob.keeping, values, self.trials.values(self.judged, option.facts | brought)):
            option.facts.update(brought)
            option.exchanged.update((name, (values[name], set())) for name in brought)
            _reword(option, _KEPT)
            return True
        needs = needs_of(values[knob.keeping]) | needs_of(moved[knob.keeping])
        ratio = probe(knob.keeping, values, needs), probe(knob.keeping, moved, needs)
        shown = self.writer.patch(option.written) is None  # no edit can do it: it is told alone
        partners, why = partners_of(self.judged, knob)
        together = _STEPS in partners and share_micro(option, self.writer)
        for partner in (_MICRO, *partners) if together else partners:
            value = in_proportion(*ratio, values[partner])
            grows = partner == _MICRO and _more(value, values[partner])
            if value is None or (grows and not (why or together)):
                continue
            facts = {**option.facts, **exchanged_for(self.judged, partner, value)}
            if grows and not why and not may_grow(self.trials, self.judged, facts):
                continue  # accumulation takes no more memory
            way = self.writer.writes(partner, value)
            if way is None or not (shown or self._is_told(way) or self.writer.patch(way.keys)):
                continue
            even = not why or partner == partners[-1] or is_even(self.trials, self.judged, facts)
            if even and is_same(knob.keeping, values, as_if_it_ran(self.trials, self.judged, facts)):
                option.facts = facts
                option.written += way.keys
                option.exchanged[partner] = values[partner], {written.path for written in way.keys}
                option.effects += [why] if why and partner == _MICRO else []
                _reword(option, _STAYS if partner == _MICRO else _KEPT)
                return True
        if not needs:
            return nearly_keeps(self.trials, self.judged, self.writer, knob, option, ratio)
        keep_what_is_shown(self.trials, self.judged, knob, option)
        return True  # what nobody states

    def _is_told(self, way: Way) -> bool:
        """Whether a file that the document attaches says something, which nothing beside it can say."""
        return any(self.judged.subject.view.hangs(written.path) is not None for written in way.keys)

    def _brought_along(self, names: Iterable[str], option: Option) -> dict[str, object]:
        """Return what facts become that are computed from what is written, as accumulation in a script is."""
        brought: dict[str, object] = {}
        for written in option.written:
            for key in self.writer.definition(written.path).shared:
                for name in self.writer.facts_at(key):
                    if name in names and name not in option.facts:
                        worth = self._read_at(key, written, option)
                        brought[name] = convert(name, worth, self.trials.run.pack.facts[name])
        return brought

    def _read_back(self, option: Option) -> bool:
        """Move the facts that are read from keys which a framework writes; whether the knob is among them.

        The keys are not the fact's own, so the text that has them is read.
        """
        view = laid_over(self.writer, option.written) or self._rewritten(option)
        if view is None:
            return True  # no edit can do it, and the option says so
        after = self.judged.values.but({}, seen=view)
        for name in self.writer.read_from(written.path for written in option.written):
            if name not in option.facts and not has_stayed(after[name], self.judged.values[name]):
                option.facts[name] = after[name]
                if name in self.writer.origins.symbols.knobs:
                    self._bear(name, option)
        return has_stayed(after[option.knob], option.facts[option.knob])

    def _rewritten(self, option: Option) -> View | None:
        """Return the edited text as it is read."""
        named = {f"{path_text(each.path)} {i}": each for i, each in enumerate(option.written)}
        self.trials.keys |= {name: written.path for name, written in named.items()}
        new = {name: written.value for name, written in named.items()}
        again = self.trials.rewritten(self.judged, new)
        return None if again is None else again.view

    def _tie(self, name: str, option: Option) -> None:
        """Write the keys that the framework moves along, where they say the same as the fact's own key."""
        view = self.writer.subject.view
        paths = self.writer.origins.of(name).paths
        own = next((written for written in option.written if written.path in paths), None)
        if own is None:
            return
        definition = self.writer.definition(own.path)
        for path in self.writer.tied(name):
            if not view.has(path) or view.get(path) != view.get(own.path) or Trace(view, path).overrides:
                continue  # what lies beneath the file, such as a program's default, nobody wrote
            if self.writer.definition(path).key != definition.key:
                option.written.append(Written(path, own.value))
                self._follow(dotted(path), own.value, option)

    def _share(self, written: Written, option: Option) -> None:
        """Move what other keys read from the same definition; that costs what moving them costs."""
        definition = self.writer.definition(written.path)
        for key in definition.shared:
            if any(along.key == key for along in option.written):
                continue
            names = self.writer.facts_at(key)
            if not names and key != definition.holder:
                option.cost += READER
            for name in names:
                if name not in option.facts:
                    self._follow(key, self._read_at(key, written, option), option)
                    self._pay(name, option)
                    if self.writer.definition(tuple(split_key(key))).key != definition.key:  # it is computed
                        option.exchanged[name] = self.judged.values[name], set()

    def _read_at(self, key: str, written: Written, option: Option) -> object:
        """Return what another key is worth that reads what is written: the same, or what it makes of that."""
        path = tuple(split_key(key))
        if self.writer.definition(path).key == self.writer.definition(written.path).key:
            return written.value
        again = self._rewritten(option)
        return written.value if again is None else again.get(path)

    def _pay(self, name: str, option: Option) -> None:
        """Add to an option what moving a fact beside the knob's own costs."""
        cost, move = self._priced(name, option)
        option.cost += cost
        option.risk = worse(option.risk, risk_of(move))
        option.effects.append(move.effect)

    def _bear(self, name: str, option: Option) -> None:
        """Take in another knob that reads what is written: the dearer price, and words if there are none."""
        cost, move = self._priced(name, option)
        option.cost = max(option.cost, cost)
        option.risk = worse(option.risk, risk_of(move))
        if not any(option.effects):
            option.effects = [move.effect]

    def _priced(self, name: str, option: Option) -> tuple[float, t.Move]:
        """Return what moving a fact beside the knob's own costs."""
        knob = self.writer.origins.symbols.knobs.get(name)
        if knob is None:
            return READER, UNPRICED
        old = self.judged.values[name]
        new = option.facts.get(name, old)
        kind = self.trials.run.finder.evaluator.type_of(name)
        listed = knob.domain != "values" or any((new == literal(node, kind)) is True for node in knob.values)
        if not listed or (knob.domain == "halving" and _more(new, old)):  # a step the other way
            return READER, UNPRICED
        evaluator, after = self.trials.run.finder.evaluator, self.trials.values(self.judged, option.facts)

        def leaves(condition: t.Expr) -> bool:
            return evaluator(condition, after)[0] is True

        move = move_of(knob, old, new, kind, self._holds, leaves) or UNPRICED
        return priced(knob, move, kind, old, new), move

    def _follow(self, key: str, value: object, option: Option) -> None:
        for name in self.writer.facts_at(key):
            if name not in option.facts:
                option.facts[name] = convert(name, value, self.trials.run.pack.facts[name])


def _more(value: object, old: object) -> bool:
    """Whether a number is larger than it was."""
    return is_number(value) and is_number(old) and value > old


def _reword(option: Option, told: str) -> None:
    """Say of a batch that nobody knows that it stays, whatever it is, instead of that it may shrink."""
    option.effects = [told if _SHRINKS in each else each for each in option.effects]
