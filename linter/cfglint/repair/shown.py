"""Accumulation steps that keep a batch as far as a config shows, where something may set more.

A file that is not here, or a trainer of one's own, may set sizes of groups: nobody knows the batch then. What
is written of it still has to go along with fewer GPUs, and so has what a variable says that nobody knows
(product.py). Such a repair is never safe.
"""

from __future__ import annotations

from cfglint.document.compose import edited
from cfglint.document.view import View
from cfglint.lang.types import is_number
from cfglint.lang.values import equal, needs_of
from cfglint.record import replace
from cfglint.repair.exchange import in_proportion, partners_of
from cfglint.repair.invert import Written
from cfglint.repair.price import regroups
from cfglint.repair.product import Times
from cfglint.repair.results import probe
from cfglint.repair.tracks import worse
from cfglint.repair.write import Definition, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged, Subject
    from cfglint.lang import tree as t
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Trials

_STEPS, _BATCH = "grad_accum", "effective_batch_size"
_KEEPS = "which keeps a batch that is counted per GPU"


def keep_what_is_shown(trials: Trials, judged: Judged, knob: t.Knob, option: Option) -> None:
    """Write as many more accumulation steps as keep the batch that is shown, if one is."""
    partners = partners_of(judged, knob)[0]
    if judged.subject.view.unread is None and _STEPS in partners and knob.keeping == _BATCH:
        _multiply(trials, judged, option)
    if judged.subject.view.unread is None or knob.keeping != _BATCH or _STEPS not in partners:
        return
    before = _alone(trials, judged, judged.subject)
    writer = Writer(before.subject, trials.run.finder.origins(before))
    moved = _batch(trials, before, writer, option.written)
    steps = in_proportion(before.values[_BATCH], moved, before.values[_STEPS])
    if not is_number(steps) or equal(steps, before.values[_STEPS]) is True:
        return
    way = writer.writes(_STEPS, steps)
    batch = None if way is None else _batch(trials, before, writer, (*option.written, *way.keys))
    if way is None or equal(batch, before.values[_BATCH]) is not True:
        return
    option.written += way.keys
    option.risk = worse(option.risk, "optimization")
    hides = " and ".join(dict.fromkeys((judged.subject.view.unread or {}).values()))
    told = f"the effective batch stays, unless {hides} says otherwise"
    option.effects = [told] if regroups(option.facts) else [*option.effects, told]


def can_be_written(option: Option, definitions: Sequence[Definition]) -> bool:
    """Whether all that an option writes has a place; so many times what is there needs none of its own."""
    pairs = zip(option.written, definitions, strict=True)
    return all(isinstance(written.value, Times) or place.editable for written, place in pairs)


def _multiply(trials: Trials, judged: Judged, option: Option) -> None:
    """Accumulate as many times more as there are fewer GPUs, where a variable alone says how much."""
    values, moved = judged.values, trials.values(judged, option.facts)
    needs = needs_of(values[_BATCH]) | needs_of(moved[_BATCH])
    by = in_proportion(probe(_BATCH, values, needs), probe(_BATCH, moved, needs), 1)
    if not isinstance(by, int) or by == 1 or not regroups(option.facts):
        return
    writer = Writer(judged.subject, trials.run.finder.origins(judged))
    way = writer.writes(_STEPS, by)
    written = [Written(each.path, Times(by)) for each in way.keys] if way is not None else []
    if len(written) == 1 and writer.patch(written) is not None:
        option.written += written
        option.risk = worse(option.risk, "optimization")
        option.effects = [f"fewer GPUs: each accumulates {by} times as much, {_KEEPS}"]


def _alone(trials: Trials, judged: Judged, subject: Subject) -> Judged:
    """Return a document as if nothing set what it does not show."""
    view = subject.view
    bare = View(
        view.document, view.dialect, view.overrides, view.environ, view.layers, view.beneath, view.resolvers
    )
    bare.unread = None
    return trials.run.on(judged.target, replace(subject, view=bare))


def _batch(trials: Trials, judged: Judged, writer: Writer, written: Sequence[Written]) -> object:
    """Return the batch that is shown after some edits; None where they cannot be had."""
    patch = writer.patch(written)
    again = None if patch is None else edited(judged.subject.document, patch.edits)
    if again is None:
        return None
    subject = trials.run.subject(again, judged.subject.framework)
    return _alone(trials, judged, subject).values[_BATCH]
