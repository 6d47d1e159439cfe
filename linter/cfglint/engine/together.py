"""What to type for all that a verdict lacks, at once: what would be asked after the first answer, too."""

from __future__ import annotations

import re

from cfglint.engine.asks import answer, asked, example
from cfglint.engine.cases import TOTAL, cases_of
from cfglint.lang.values import needs_of
from cfglint.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.facts import Values

_MODEL = ("model_path", "model_config")
_ANY_MODEL = "Qwen/Qwen2.5-7B"  # stands for the model that somebody will name
_RANK = 8  # of adapters, which ask for more than a job without any
_SETS = re.compile(r"--set (?:\"[^\"]+\"|\[[^\]]*\]|[^\s,;\[])+(?: \([^)]*\))?")
_CONFIG = "--model-config PATH"
_FRAMEWORK = re.compile(
    r"(the program|\S+) may have defaults of its own; add (--framework \S+) if it keeps those of (\S+)"
)
_MOST = 8  # settings to type at once
_STEPS = 3  # questions after the first


def asked_together(values: Values, names: Iterable[str]) -> str | None:
    """Return what to type to settle what is missing, and what would then be asked; None for nothing.

    An answer is put in as one that it may be; what that makes needless is not asked for.
    """
    document = values.view.document if values.view is not None else None
    before = document is not None and document.vouched
    try:
        return _asked_on(values, names)
    finally:
        if document is not None:
            document.vouched = before


def _asked_on(values: Values, names: Iterable[str]) -> str | None:
    told = first = asked(values, names)
    more: list[str] = []
    for _ in range(_STEPS):
        after = _after(values, names, first) if first is not None else None
        if told is None or after is None:
            break
        values, names = after, open_in(after)
        first = asked(values, names) if names else None
        if first is not None and _is_told_by(told, values) and _FRAMEWORK.search(first):
            values = _vouched(values) or values  # the program is gone through with what was typed
            names = open_in(values)
            first = asked(values, names) if names else None
        fresh = [each for each in _flags(first or "") if each not in (*_flags(told), *more)]
        if not fresh or len(_flags(told)) + len(more) + len(fresh) > _MOST:
            break
        more += fresh
    return told and _joined(told, more)


def open_in(values: Values) -> frozenset[str]:
    """Return what is missing for the memory, in any case of a job."""
    needs = (needs_of(case.values[TOTAL]) for case in cases_of(values))
    return needs_of(values["gpu.vram"]).union(*needs)


def _after(values: Values, names: Iterable[str], told: str) -> Values | None:
    """Return the facts once what is asked for was typed; None where nothing can be."""
    if _FRAMEWORK.search(told):
        return _vouched(values)
    given: dict[str, object] = {_MODEL[0]: _ANY_MODEL} if _CONFIG in told else {}
    for name in names:
        typed = answer(name, values).typed
        if typed and any(f"{flag} ".startswith(f"--set {typed} ") for flag in _flags(told)):
            if name in _MODEL:
                given[_MODEL[0]] = _ANY_MODEL
            elif name in values.pack.facts:
                given[name] = _RANK if name == "lora_rank" else example(name, values)
    return values.but(given) if given else None


def _is_told_by(told: str, values: Values) -> bool:
    """Whether what is typed decides which branches a program takes, as its model's name may."""
    program = values.view.document.program if values.view is not None else None
    keys = (each.removeprefix("--set ").partition("=")[0] for each in _flags(told))
    return program is not None and any(program.rests_on(key) for key in keys)


def _vouched(values: Values) -> Values | None:
    """Return the facts of a job whose program has its framework's defaults, as somebody would say."""
    view = values.view
    if view is None:
        return None
    view.document.vouched = True
    return values.but({}, own=True, seen=replace(view))


def _flags(told: str) -> list[str]:
    """Return the flags that somebody is to type."""
    framework = _FRAMEWORK.search(told)
    kept = [f"{framework[2]} if {framework[1]} keeps the defaults of {framework[3]}"] if framework else []
    return kept + _SETS.findall(told)


def _joined(told: str, more: list[str]) -> str:
    if not more:
        return told
    framework = [each for each in more if each.startswith("--framework")]
    typed = " ".join(each for each in more if each not in framework)
    if typed:
        last = _SETS.findall(told)[-1:]
        told += f" {typed}" if last and told.endswith(last[0]) and last[0][-1] != ")" else f", and {typed}"
    return ", and ".join((told, *framework))
