"""What a run learns from, before and after a repair: which repairs are safe.

The rules name it ``results.…`` (rules/results.rules). A repair is safe if each of these is the same after
it. One that is not known is the same if it does not rest on what moves, or if it is the same for any number
in the place of what is missing: half the micro-batch and twice the accumulation keep the batch on any number
of GPUs.
"""

from __future__ import annotations

from cfglint.engine.describe import show_value
from cfglint.engine.knobs import tidy
from cfglint.findings import ResultChange
from cfglint.hardware.target import count_facts
from cfglint.lang.types import is_number
from cfglint.lang.values import Interval, Open, Unknown, needs_of
from cfglint.repair.price import regroups
from cfglint.repair.reads import reads_the_same
from cfglint.repair.tracks import RISKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.document.view import View
    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.trials import Trials

_TOLD = ("results.batch", "results.tokens", "results.longest")
_OTHERS = {  # told where they move
    "results.optimizer": "optimizer states",
    "results.compute": "precision",
    "results.weights": "stored weights",
    "results.sums": "summed gradients",
    "results.bits": "quantization",
    "results.rank": "LoRA rank",
    "results.schedule": "learning-rate schedule",
    "results.groups": "groups of weights in the optimizer",
    "results.clipping": "clipping of gradients",
    "results.scaling": "scaling of the loss",
    "results.negatives": "samples that the loss compares",
    "results.summed": "passes whose gradients are added up undivided",
    "results.grouping": "micro-batch whose tokens are averaged",
    "results.apart": "replicas whose tokens are averaged apart",
    "results.balance": "micro-batch over which experts are balanced",
    "results.seen": "samples that its steps see",
    "results.drawn": "samples that are grouped together",
    "results.dealt": "processes that read the data (its code deals it to a fixed number)",
    "results.round": "answers generated at a time",
    "results.parts": "parts of a matrix that Muon makes orthogonal apart",
}
_RISKS = {
    "results.longest": "data",
    "results.compute": "numerics",
    "results.weights": "numerics",
    "results.sums": "numerics",
    "results.apart": "numerics",
    "results.grouping": "numerics",
    "results.balance": "numerics",
    "results.bits": "numerics",
    "results.scaling": "numerics",
}
_OF_A_FILE = ("results.schedule", "results.groups", "results.clipping", "results.scaling")
_MANY = 1 << 20  # GPUs
_PROBES = (3, 7)  # in the place of what is missing


def risk_to_results(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> str:
    """Return what of the results is not surely the same after some facts have moved (tracks.py: RISKS)."""
    if _is_unread(judged) and regroups(facts):
        return "optimization"
    base = trials.base(judged)
    kept = base.moved(facts).kept  # what does not rest on what moves
    moved = (name for name in base.results if name not in kept and not _stays(trials, judged, facts, name))
    return max((_RISKS.get(name, "optimization") for name in moved), key=list(RISKS).index, default="none")


def _stays(trials: Trials, judged: Judged, facts: Mapping[str, object], name: str) -> bool:
    own = {key: value for key, value in facts.items() if key in trials.keys}
    keys = own if len(own) == len(facts) else {}
    written = trials.rewritten(judged, keys) if keys else None
    if written is not None:  # of keys that no knob moves, the text with them tells
        if _reads_alike(trials, judged, name, written.view):
            return True
        before, after = judged.values, judged.values.but({}, seen=written.view)
        lost = needs_of(after[name]) - needs_of(before[name])  # what was known, and no longer is
        return not lost and is_same(name, before, after)
    if name in trials.base(judged).moved(facts).kept:  # it does not rest on what moves
        return True
    if is_same(name, as_if_it_ran(trials, judged), trials.values(judged, facts)):
        return True
    said = trials.values(judged, own) if own else None  # also what is computed from the keys
    rest = {
        key: value
        for key, value in facts.items()
        if key not in own and (said is None or (said[key] == value) is not True)
    }
    apart = not rest or name in trials.base(judged).moved(rest).kept  # what is no key does not reach it
    again = trials.rewritten(judged, own) if own and apart else None
    return again is not None and _reads_alike(trials, judged, name, again.view)


def _reads_alike(trials: Trials, judged: Judged, name: str, view: View) -> bool:
    """Whether all that a fact is made of is the same in another text.

    What is not known of a program that is not here may rest on anything that its command says.
    """
    before, after = judged.values, judged.values.but({}, seen=view)
    document = judged.subject.document
    here = document.format != "shell" or document.program is not None

    def stays(fact: str) -> bool:
        return here and is_known_same(fact, before, after)

    origins = trials.run.finder.origins(judged)
    return reads_the_same(name, origins, judged.subject.view, view, stays)


def _is_unread(judged: Judged) -> bool:
    """Whether a launch is of a program that no framework reads, which may train: its batch may count GPUs."""
    unread = judged.subject.framework is None and judged.subject.is_launch
    return unread and judged.values["user_script.does_other"] is not True


def rests_apart(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether no result rests on what moves, nor one of another config that reads the same values.

    What a DeepSpeed file says of them is that file's: no config of a program names one.
    """
    if judged.subject.document.format == "shell":
        return False
    kept = trials.base(judged).moved(facts).kept
    return all(name in kept or name in _OF_A_FILE for name in trials.base(judged).results)


def as_if_it_ran(trials: Trials, judged: Judged, facts: Mapping[str, object] | None = None) -> Values:
    """Return what holds before a repair, or after one that moves some ``facts``.

    A job with too few GPUs to start is taken to have as many as it needs.
    """
    values = trials.values(judged, facts) if facts else judged.values
    replicas, least = values["train_dp"], values["replicas.least"]
    fewest = least if is_number(least) else 1
    if is_number(replicas) and 0 < replicas < fewest:
        return trials.values(judged, {**(facts or {}), "train_dp": fewest})
    return values


def is_same(name: str, before: Values, after: Values) -> bool:
    """Whether a fact is surely worth the same in two sets of facts."""
    old, new = before[name], after[name]
    needs = needs_of(old) | needs_of(new)
    if not needs:
        return _equal(old, new)
    probed = [(probe(name, before, needs, n), probe(name, after, needs, n)) for n in _PROBES]
    return all(not needs_of(a) and not needs_of(b) and _equal(a, b) for a, b in probed) or old is new


def is_known_same(name: str, before: Values, after: Values) -> bool:
    """Whether a fact is known in two sets of facts, and worth the same."""
    old, new = before[name], after[name]
    return not needs_of(old) | needs_of(new) and _equal(old, new)


def has_stayed(old: object, new: object) -> bool:
    """Whether a fact has stayed; what is not known is the same where it says the same."""
    return (old == new) is True or (isinstance(old, (Interval, Open, Unknown)) and repr(old) == repr(new))


def probe(name: str, values: Values, needs: frozenset[str], number: int = _PROBES[0]) -> object:
    """Return what a fact is worth with a number in the place of each that is missing."""
    specs = values.pack.facts
    given = {need: number for need in needs if need in specs and specs[need][0] in ("count", "number")}
    return values.but(given)[name]


def _equal(old: object, new: object) -> bool:
    if isinstance(old, Interval) and isinstance(new, Interval):
        return (old.lo, old.hi) == (new.lo, new.hi)
    if isinstance(old, (Interval, Open, Unknown)) or isinstance(new, (Interval, Open, Unknown)):
        return old is new
    return old == new


def result_changes(
    trials: Trials, judged: Judged, facts: Mapping[str, object], *, doubt: bool = False
) -> tuple[ResultChange, ...]:
    """Return the effective batch, tokens per step and longest sequence, and what else moves.

    With ``doubt``, a batch that nobody knows may be another one: other GPUs take it.
    """
    return tuple(_changes(trials, judged, facts, doubt=doubt))


def _changes(
    trials: Trials, judged: Judged, facts: Mapping[str, object], *, doubt: bool
) -> Iterator[ResultChange]:
    before, after = as_if_it_ran(trials, judged), trials.values(judged, facts)
    if before["trains"] is not True:
        return
    doubtful = _is_unread(judged) and regroups(facts)
    for name in _TOLD:
        spec = trials.run.finder.symbols.facts[name]
        yield ResultChange(
            spec.about or name,
            _shown(trials, name, before),
            _shown(trials, name, after),
            _stays(trials, judged, facts, name)
            and not (doubtful and name in _TOLD[:2])
            and not (doubt and name in _TOLD[:2] and needs_of(before[_TOLD[0]])),
        )
    for name, told in _OTHERS.items():
        if not _stays(trials, judged, facts, name) and not needs_of(before[name]) | needs_of(after[name]):
            yield ResultChange(told, _shown(trials, name, before), _shown(trials, name, after), same=False)


def _shown(trials: Trials, name: str, values: Values) -> str:
    kind = trials.run.finder.evaluator.type_of(name)
    value = values[name]
    if not needs_of(value):
        return show_value(value, kind)
    if values.given.get("gpu.count") is None and name != "results.longest":
        counts = {fact: worth for fact, (worth, _) in count_facts(_MANY, 1, "").items()}
        many = values.but(counts)[name]
        if needs_of(many):
            return ""
        if isinstance(many, Interval):
            return f"{show_value(Interval(many.lo / _MANY, many.hi / _MANY), kind)} per GPU"
        if is_number(many):  # of so many GPUs that all parallel sizes divide them
            return f"{show_value(tidy(many / _MANY), kind)} per GPU"
    return ""
