"""What to type so that a job can be judged: the flag or key that gives what is missing, or what that is."""

from __future__ import annotations

from cfglint.document.spoken import spoken
from cfglint.document.tree import dotted
from cfglint.facts import NO_KEYS, Values
from cfglint.findings import question
from cfglint.lang.types import digits
from cfglint.lang.values import ODD, UNRULED, Open, needs_of
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from cfglint.document.tree import Path
    from cfglint.facts import Steps
    from cfglint.hardware.target import Target

_MODEL = ("model_path", "model_config")
_FIRST = ("model_path", "model_config", "task")  # what most else follows from
_LAUNCH = "launch"  # what a command says; no key of a file
_FILES = (".yaml", ".yml", ".json", ".toml")
_LISTED = 3  # keys to type, one by one
_DEEPEST = 4  # facts that a key depends on
_TRY, _NOTHING = "try cfglint fit", "nothing says "


class Answer(Value):
    """Why something is not known, and what to type, as ``add --set KEY=VALUE``; nothing if nothing helps."""

    why: str
    do: str = ""
    key: str = ""  # the key of the file that would give it

    @property
    def vague(self) -> bool:
        """Whether no key gives it and no question stands for it."""
        return self.why.startswith(_NOTHING)

    def __str__(self) -> str:
        if self.key or not self.do:
            return self.do or self.why
        return f"{self.why}{'' if self.why.endswith('?') else ';'} {self.do}"


def answer(name: str, values: Values) -> Answer:
    """Say why a fact or a key has no value, and the one thing to type that gives it one."""
    if _is_file(name, values):
        return Answer(f"the file {name} is named, but not here")
    if " " in name or name.endswith("()"):
        return Answer(_unread(name))
    if name in _MODEL and "model_path" not in values.bindings and not values.named:
        return Answer("the file that starts the job says which model it is")
    return _asking(name, values) or _setting(name, values)


def _asking(name: str, values: Values) -> Answer | None:
    """Return the question that stands for a fact, in general or by its declaration."""
    counted = "gpu.count" in values.given
    if name.startswith("gpu.") and name != "gpu.vram" and counted and "gpu.name" in values.given:
        return Answer(_about(name, values), "add --hardware FILE, a sheet of the machine")
    told = question(name, counted=counted)
    if told == name:
        told = values.pack.asks.get(name, "")
    why, ends, do = told.partition("? ")
    return Answer(why + ends.strip(), do) if told else None


def _setting(name: str, values: Values) -> Answer:
    """Return the key that gives a fact, or what else a fact is that no key gives in such a file."""
    keys = settling(name, values)
    if keys:
        return Answer(_about(name, values), f"add --set {keys[0]}=VALUE", keys[0])
    paths = [tuple(name[2:].split("."))] if name.startswith("$.") else read_from(name, values)
    path = next((path for path in paths if path[0] == _LAUNCH), None)
    about = _about(name, values)
    told = spoken(path) if path is not None else name if about == name else f"{name} ({about})"
    return Answer(f"{_NOTHING}{told}", f"{_TRY} --vary {name}=VALUE" if name in values.pack.facts else "")


def _about(name: str, values: Values) -> str:
    fact = values.pack.symbols().facts.get(name)
    return (fact.about if fact is not None else "") or name


def asked(values: Values, names: Iterable[str]) -> str | None:
    """Return what to type to settle what is missing, or in words what is missing; None for nothing."""
    ordered = sorted(names, key=lambda name: (name not in _FIRST, name))
    hopeless = [name for name in ordered if name.endswith("()")] + [name for name in ordered if " " in name]
    hopeless += [name for name in ordered if _is_file(name, values)]
    answers = [answer(name, values) for name in hopeless[:1] or ordered]
    first = next((each for each in answers if not each.vague), answers[0] if answers else None)
    if first is None or not first.key:
        return None if first is None else str(first)
    return _sets(list(dict.fromkeys(each.key for each in answers if each.key)))


def _is_file(name: str, values: Values) -> bool:
    """Whether what is missing is a file that the job names."""
    fact = name in values.pack.facts or name.startswith("$.") or " " in name
    return not fact and (name.endswith(_FILES) or "/" in name or "$" in name)


def _unread(name: str) -> str:
    """Return what stands for a value that is there, and says nothing to the rules."""
    if name.startswith(UNRULED):
        return f"cfglint does not model {name.removeprefix(UNRULED)}"
    return "a value has another type than its key takes" if name == ODD else f"cfglint cannot read {name}"


def _sets(keys: list[str]) -> str:
    if len(keys) == 1:
        return f"add --set {keys[0]}=VALUE"
    more = f" and {len(keys) - _LISTED} more; cfglint facts lists them" if len(keys) > _LISTED else ""
    return f"add --set KEY=VALUE for {', '.join(keys[:_LISTED])}{more}"


class _Reader(Values):
    """Facts that note which keys they were read from."""

    __slots__ = ("noted",)

    def __init__(self, *context: object) -> None:
        super().__init__(*context)  # type: ignore[arg-type]
        self.noted: set[Steps] = set()

    def key(self, steps: Steps) -> object:
        """Return the value of a key."""
        self.noted.add(steps)
        return super().key(steps)

    def has(self, steps: Steps) -> bool | Open:
        """Whether there is a key."""
        self.noted.add(steps)
        return super().has(steps)


def _asks_for(when: Callable[[Values], Any] | None, path: Path, values: Values) -> bool:
    """Whether a binding holds only where the key is there, which it is not."""
    if when is None or when(values) is not False:
        return False
    reader = values.again(_Reader)
    when(reader)
    return isinstance(reader, _Reader) and any(steps[: len(path)] == path for steps in reader.noted)


def settling(name: str, values: Values, depth: int = 0) -> list[str]:
    """Return the key that gives a missing fact, or what decides where it is read from; empty without one."""
    if name.startswith("$."):
        return [name[2:]] if not name.startswith(f"$.{_LAUNCH}.") else []
    steps = tuple(name.split("."))
    own = values.named and name in values.pack.facts and steps[0] not in NO_KEYS
    written = name not in values.pack.facts and values.view is not None and values.view.has(steps)
    if name not in values.bindings and (own or written):  # a file of facts, or a key that says ???
        return [name]
    needs: set[str] = set()
    for _, when, _, _, paths, _ in values.bindings.get(name, ()):
        truth = True if when is None else when(values)
        keys = [dotted(path) for path in paths if path[0] != _LAUNCH]
        if truth is True and keys:
            return keys[:1]
        needs |= needs_of(truth)
    for _, when, _, _, paths, _ in values.bindings.get(name, ()):
        keys = [dotted(path) for path in paths if path[0] != _LAUNCH and _asks_for(when, path, values)]
        if keys:
            return keys[:1]
    below = (settling(each, values, depth + 1) for each in sorted(needs - {name}) if depth < _DEEPEST)
    return next((keys for keys in below if keys), [])


def read_from(name: str, values: Values) -> list[Path]:
    """Return the keys that a fact may be read from in a file like this one."""
    return [path for alternative in values.possible(name) for path in alternative[4]]


def more_gpus(target: Target, here: float) -> str:
    """Say that a job is on more GPUs of a machine than there are, for the place that says how many."""
    count, source = target.facts.get("gpu.count", (target.count, ""))
    name = target.name.partition(":")[0] if "gpu.model" in target.facts else "NAME"
    takes = f"it takes {digits(here)} GPUs of a machine"
    if source.startswith("--gpu"):
        return f"{takes}: use --gpu {name}:{digits(here)}"
    return f"{takes}, and {source} has {count}: correct one of them, or add --gpu {name}:{digits(here)}"
