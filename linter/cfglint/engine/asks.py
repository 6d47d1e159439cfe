"""What to type so that a job can be judged: the flag or key that gives what is missing, or what that is."""

from __future__ import annotations

from math import ceil

from cfglint.document.spoken import spoken
from cfglint.document.tree import dotted, split_key
from cfglint.engine.cases import listed
from cfglint.facts import NO_KEYS, Values
from cfglint.findings import question
from cfglint.lang.types import digits, is_number
from cfglint.lang.values import INF, ODD, UNRULED, Open, needs_of
from cfglint.record import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from cfglint.document.tree import Path
    from cfglint.facts import Steps
    from cfglint.hardware.target import Target

_MODEL = ("model_path", "model_config")
_FIRST = ("model_path", "model_config", "task")  # what most else follows from
_TOTAL = "need.total"
_LAUNCH = "launch"  # what a command says; no key of a file
_FILES = (".yaml", ".yml", ".json", ".toml", ".py")
_NODE = 8  # GPUs of a machine that clouds rent
_LISTED = 5  # settings to type at once
_OTHERS = 2  # values that are named beside the first
_FEW = 2  # facts in the place of a file
_MOST = 24  # facts that may rest on what cannot be read
_DEEPEST = 4  # facts that a key depends on
_MACHINE = 8  # GPUs of a machine that clouds rent
_NOTHING = "nothing says "
_TRAINED = {
    "max_prompt_len": "seq_len",
    "n_microbatches": "micro_batch_size",
    "rollout_batch_size": "micro_batch_size",
}
_OWN_MODEL = "the program's model"  # which is not followed
_LOADING = ("from_pretrained", "prepare_model_for_kbit_training")  # calls, whose arguments nobody types
_CALLS = (*_LOADING, "LoraConfig", "BitsAndBytesConfig", "get_peft_model")


class Answer(Value):
    """Why something is not known, and what to type, as ``add --set KEY=VALUE``; nothing if nothing helps.

    ``key`` is the key of the file that would give it, and ``typed`` what follows ``--set``.
    """

    why: str
    do: str = ""
    key: str = ""
    typed: str = ""

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
        python = name.endswith(".py")
        return Answer(
            f"cfglint does not read {name}" if python else f"the file {name} is named, but not here"
        )
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
    told = _which_model(values) if name in _MODEL else ""
    told = told or values.pack.asks.get(name, "") or question(name, counted=counted)
    if told == name:
        told = ""
    why, ends, do = told.partition("? ")
    typed = do.removeprefix("add --set ").partition(" ")[0] if do.startswith("add --set ") else ""
    return Answer(why + ends.strip(), do, typed=typed) if told else None


def _which_model(values: Values) -> str:
    """Ask for the key of the model where the job does not have it; nothing where it has one nobody knows."""
    told = values[_MODEL[0]]
    if told != "" and not needs_of(told):
        return ""
    first = next(
        (
            dotted(path)
            for _, when, _, _, paths, _ in values.bindings.get(_MODEL[0], ())
            for path in paths
            if path[0] != _LAUNCH
            and (when is None or when(values) is not False or _asks_for(when, path, values))
        ),
        "",
    )
    keys = [first] if first else settling(_MODEL[0], values)
    key = next((key for key in keys if not key.endswith("flavor")), "")  # of which only some are known
    if key.partition(".")[0] in _CALLS:
        key = _MODEL[0]
    return f"which model? add --set {key}=NAME" if key else ""


def _setting(name: str, values: Values) -> Answer:
    """Return the key that gives a fact, or what else a fact is that no key gives in such a file."""
    keys = settling(name, values)
    document = values.view.document if values.view is not None else None
    in_program = document is not None and document.format == "python"  # which reads no key by itself
    if keys and in_program and name in values.pack.facts and name in values.bindings:
        return _stating(name, values)
    public = _public(name, values) if keys and keys[0].partition(".")[0] in _CALLS else ""
    if public in values.pack.facts:
        return _stating(public, values)
    if keys:
        value = f"{keys[0]}={_fitting(name, keys[0], values)}"
        return Answer(_about(name, values), f"add --set {value}", keys[0], value)
    paths = [tuple(name[2:].split("."))] if name.startswith("$.") else read_from(name, values)
    path = next((path for path in paths if path[0] == _LAUNCH), None)
    about = _about(name, values)
    told = spoken(path) if path is not None else about
    if name not in values.pack.facts:
        return Answer(f"{_NOTHING}{told}")
    return replace(_stating(name, values), why=f"{_NOTHING}{told}")


def _fitting(name: str, key: str, values: Values) -> str:
    """Return the value to show for a key that gives a fact: its likeliest, where the key takes it."""
    kind = values.pack.facts.get(name, ("",))[0]
    if kind == "bool" or name == "gradient_checkpointing":
        return "true"
    several = listed(name, values) if kind == "text" else None
    if several is None:
        return "VALUE"
    path = tuple(split_key(key))
    sources = [source for source, *_, paths, _ in values.bindings.get(name, ()) if path in paths]
    if not sources or sources[0] is None:
        return str(several[0])
    for value in (several[0], True):
        reader = values.again(_Reader)
        reader.read[path] = value  # type: ignore[attr-defined]
        if sources[0](reader) == several[0]:
            return str(value).lower()
    return "VALUE"


def _stating(name: str, values: Values) -> Answer:
    """Return what states a fact by its own name."""
    value, others = choices(name, values)
    typed = f"{name}={value}" if " " not in value else f'"{name}={value}"'
    return Answer(_about(name, values), f"add --set {typed}{others}", typed=typed)


def _public(name: str, values: Values) -> str:
    """Return a fact of the vocabulary in place of a framework's own one that it rests on."""
    own = name.startswith("$.") or name.partition(".")[0] in values.pack.frameworks
    resting = [fact for fact in values.bindings if own and "." not in fact and name in needs_of(values[fact])]
    return min(resting, key=lambda fact: len(needs_of(values[fact])), default=name)


def choices(name: str, values: Values) -> tuple[str, str]:
    """Return the value to show for a fact, and others that it may have: ``("sft", " (or dpo, kto, …)")``."""
    kind, *_, spellings = values.pack.facts[name]
    several = listed(name, values)
    if several is not None:
        told = [str(value).lower() if isinstance(value, bool) else str(value) for value in several]
    else:
        told = ["true", "false"] if kind == "bool" else list(dict.fromkeys((spellings or {}).values()))
    if not told:
        return {"number": "N", "list": "[A,B]"}.get(kind, "VALUE"), ""
    first, *rest = told
    more = ", \u2026" * (len(rest) > _OTHERS)
    return first, f" (or {', '.join(rest[:_OTHERS])}{more})" if rest else ""


def _about(name: str, values: Values) -> str:
    fact = values.pack.symbols().facts.get(name)
    return (fact.about if fact is not None else "") or name


def asked(values: Values, names: Iterable[str]) -> str | None:
    """Return the one thing to type to settle what is missing, or why nothing helps; None for nothing."""
    if values["generates"] is False:  # lengths and batches of what generates stand in for a trainer's own
        names = {_TRAINED.get(name, name) for name in names}
    ordered = sorted(names, key=lambda name: (name not in _FIRST, name))
    if not ordered:
        return None
    first = next((name for name in ordered if name.startswith(UNRULED) or name.endswith("()")), None)
    if first is None and (file := next((name for name in ordered if _is_file(name, values)), None)):
        return _instead(file, values)
    if first is None and ordered[0] in _MODEL:
        first = ordered[0]
    if first is not None:
        return str(answer(first, values))
    return _vouch(ordered, values) or _settings(ordered, values)


def _settings(ordered: Sequence[str], values: Values) -> str:
    """Return the settings to type for what is missing, together where one does not wait for another."""
    unread = next((name for name in ordered if " " in name), None)
    if unread is not None:
        return _instead(unread, values)
    answers = {name: answer(name, values) for name in ordered}
    asking = next((each for each in answers.values() if not each.typed and not each.vague), None)
    if ordered[0] in _FIRST or asking is not None:
        return str(answers[ordered[0]] if ordered[0] in _FIRST else asking)
    settable = {name: each for name, each in answers.items() if each.typed}
    fewest = _fewest([name for name in settable if _may_state(name, values)], values)
    typed = list(dict.fromkeys(settable[name].typed for name in fewest or settable))
    if len(typed) == 1:
        return str(next(each for each in settable.values() if each.typed == typed[0]))
    return _sets(typed) if typed else _instead(ordered[0], values)


def _vouch(names: Sequence[str], values: Values) -> str | None:
    """Ask whether a program of one's own keeps the defaults of its framework, where that would help."""
    view = values.view
    if view is None or values.framework is None or view.document.vouched or view.document.vendored:
        return None
    keys = [key for name in names for key in settling(name, values)[:1]]
    loads = any(key.partition(".")[0] in _LOADING and not view.has(tuple(split_key(key))) for key in keys)
    if (
        _OWN_MODEL not in names
        and not loads
        and (values.own or not any(_has_default(name, values) for name in names))
    ):
        return None
    program = view.get(("launch", "program"))
    told = program.rpartition("/")[2] if isinstance(program, str) else "the program"
    framework = values.framework
    return (
        f"{told} may have defaults of its own; add --framework {framework} if it keeps those of {framework}"
    )


def _has_default(name: str, values: Values) -> bool:
    return any(alternative[2] is not None for alternative in values.bindings.get(name, ()))


def _instead(name: str, values: Values) -> str:
    """Say what cannot be read, and which facts to state in its place where a few do."""
    why, facts = str(answer(name, values)), _resting_on(name, values)
    if len(facts) > _FEW and _is_file(name, values):  # a config of its own is better read than told
        return why
    if len(facts) > 1:
        return f"{why}; {_sets([_stating(fact, values).typed for fact in facts])}"
    return f"{why}; {_stating(facts[0], values).do}" if facts else why


def _resting_on(name: str, values: Values) -> list[str]:
    """Return the facts that settle the need if they are stated, as far as a name matters; few, or none."""
    waiting = [
        fact for fact in values.bindings if name in needs_of(values[fact]) and _may_state(fact, values)
    ]
    chosen: list[str] = []
    while name in needs_of(values[_TOTAL]):
        if not waiting or len(waiting) > _MOST or len(chosen) == _LISTED:
            return []
        chosen.append(_best(waiting, values))
        values = values.but({chosen[-1]: example(chosen[-1], values)})
        waiting.remove(chosen[-1])
    return chosen


def _fewest(names: Sequence[str], values: Values) -> list[str]:
    """Return the names that are missing without those that others make needless, which come first."""
    waiting, chosen = list(names), []
    while waiting and len(names) <= _MOST:
        chosen.append(_best(waiting, values))
        values = values.but({chosen[-1]: example(chosen[-1], values)})
        needs = needs_of(values[_TOTAL])
        needs = needs.union(_TRAINED.get(name, name) for name in needs)
        waiting = [name for name in waiting if name in needs and name not in chosen]
    return chosen


def _best(names: Sequence[str], values: Values) -> str:
    """Return the fact that leaves least open when it is stated."""
    if len(names) == 1:
        return names[0]
    return min(names, key=lambda n: len(needs_of(values.but({n: example(n, values)})[_TOTAL])))


def _may_state(name: str, values: Values) -> bool:
    return name in values.pack.facts and name.partition(".")[0] not in (*NO_KEYS, "gpu")


def example(name: str, values: Values) -> object:
    """Return a value that a fact may have."""
    kind, _, low, high, spellings = values.pack.facts[name]
    if kind == "number":
        return high if high < INF else max(low, 0)
    plain = {"bool": False, "list": []}.get(kind, "")
    return next(iter(spellings.values())) if spellings else plain


def _is_file(name: str, values: Values) -> bool:
    """Whether what is missing is a file that the job names."""
    fact = name in values.pack.facts or name.startswith("$.") or " " in name
    return not fact and (name.endswith(_FILES) or "/" in name or "$" in name)


def _unread(name: str) -> str:
    """Return what stands for a value that is there, and says nothing to the rules."""
    if name.startswith(UNRULED):
        return f"cfglint does not model {name.removeprefix(UNRULED)}"
    return "a value has another type than its key takes" if name == ODD else f"cfglint cannot read {name}"


def _sets(typed: Sequence[str]) -> str:
    """Return the flags that give several settings; of many, the first."""
    flags = " ".join(f"--set {each}" for each in typed[:_LISTED])
    more = f" and {len(typed) - _LISTED} more; cfglint facts lists them" if len(typed) > _LISTED else ""
    return f"add {flags}{more}"


class _Reader(Values):
    """Facts that note which keys they were read from; some keys may be told."""

    __slots__ = ("noted", "read")

    def __init__(self, *context: object) -> None:
        super().__init__(*context)  # type: ignore[arg-type]
        self.noted: set[Steps] = set()
        self.read: dict[Steps, object] = {}

    def key(self, steps: Steps) -> object:
        """Return the value of a key."""
        self.noted.add(steps)
        return self.read[steps] if steps in self.read else super().key(steps)

    def has(self, steps: Steps) -> bool | Open:
        """Whether there is a key."""
        self.noted.add(steps)
        return steps in self.read or super().has(steps)


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
    if _is_bound_to_its_name(name, values):
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
    needs |= needs_of(values[name]) if name in values.bindings else needs
    below = (settling(each, values, depth + 1) for each in sorted(needs - {name}) if depth < _DEEPEST)
    return next((keys for keys in below if keys), [])


def _is_bound_to_its_name(name: str, values: Values) -> bool:
    """Whether a key of a fact's own name is one of those that give it."""
    mine = (when for _, when, _, _, paths, _ in values.bindings.get(name, ()) if (name,) in paths)
    return any(when is None or when(values) is True for when in mine)


def read_from(name: str, values: Values) -> list[Path]:
    """Return the keys that a fact may be read from in a file like this one."""
    return [path for alternative in values.possible(name) for path in alternative[4]]


def count_question(values: Values) -> str:
    """Ask for the number of GPUs, and say why a machine's own is not enough."""
    each = values.view is not None and values.view.get((_LAUNCH, "processes_per_node"))
    what = "machines" if is_number(each) else "processes"
    outside = f"its number of {what} is set outside the script"
    return f"{outside if _starts(values) else 'nothing says how many it runs on'}: add :N to --gpu"


def _starts(values: Values) -> bool:
    """Whether a command says how many processes it starts, be the number known or not."""
    keys = ("processes_per_node", "processes")
    return values.view is not None and any(values.view.has((_LAUNCH, key)) for key in keys)


def _each_process(values: Values) -> str:
    """Say who takes the GPUs, as ``, one for each process that torchrun starts``; nothing if unknown."""
    launcher = values.view.get((_LAUNCH, "launcher")) if values.view is not None else None
    counted = isinstance(launcher, str) and _starts(values)
    return f", one for each process that {launcher} starts" if counted else ""


def more_gpus(target: Target, here: float, values: Values) -> str:
    """Say that a job is on more GPUs of a machine than there are, for the place that says how many."""
    count, source = target.facts.get("gpu.count", (target.count, ""))
    name = target.name.partition(":")[0] if "gpu.model" in target.facts else "NAME"
    nodes, needed, size = values["num_nodes"], values["gpus_needed"], digits(here)
    takes = f"it takes {size} GPUs of a machine{_each_process(values)}"
    if not is_number(nodes) and here > _MACHINE and here % _MACHINE == 0 and not _starts(values):
        takes, size = f"it takes {size} GPUs", f"{_MACHINE}x{digits(here / _MACHINE)}"
    if is_number(count) and count >= here and is_number(nodes) and nodes > 1:  # of each of several machines
        takes, size = f"it takes {digits(here)} GPUs of {digits(nodes)} machines", f"{size}x{digits(nodes)}"
    elif is_number(needed) and needed >= here and needed > (each := min(here, _NODE)) >= 1:
        takes, size = (
            f"it takes {digits(needed)} GPUs",
            f"{digits(each)}x{ceil(needed / each)}",
        )  # on machines
    if source.startswith("--gpu"):
        return f"{takes}: use --gpu {name}:{size}"
    return f"{takes}, and {source} has {count}: correct one of them, or add --gpu {name}:{size}"
