"""What ``--set KEY=VALUE`` gives: the value of a key that a document's program reads, or a fact by its name.

A key goes before a fact of the same name. What is neither changes nothing, which a run refuses to pass over.
"""

from __future__ import annotations

from contextlib import suppress

from cfglint.document.layers import read_override
from cfglint.document.scalars import PYYAML, resolve
from cfglint.document.tree import ABSENT, Scalar, child, dotted
from cfglint.document.view import View
from cfglint.errors import UsageError, did_you_mean
from cfglint.facts import NO_KEYS, Values, stated
from cfglint.lang.values import needs_of
from cfglint.record import Record, field
from cfglint.schema.table import table
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.document.tree import Document, Path
    from cfglint.facts import Steps
    from cfglint.lang.pack import Pack

OBSERVED = "observed."
_GPU = "gpu."
_PLACEHOLDERS = {
    "N": "a number", "VALUE": "a value of your own", "[A,B]": "the names of layers, such as [q_proj,v_proj]",
    "NAME": "a name of your own",
}  # fmt: skip


class Given(Record):
    """Overrides, sorted for one document: those of keys, and facts, each with the override that states it.

    ``spare`` are facts that have a key's name: they hold where the key tells nothing.
    """

    keys: list[str] = field(factory=list)
    facts: dict[str, tuple[object, str]] = field(factory=dict)
    spare: dict[str, tuple[object, str]] = field(factory=dict)


def sorted_for(pack: Pack, overrides: Sequence[str], document: Document, framework: str | None) -> Given:
    """Tell which overrides give keys of a document, and which state facts."""
    given = Given()
    for text in overrides:
        name = name_of(text)
        _refuse_placeholder(text)
        if is_fact(pack, text) and not _is_key(pack, document, framework, name):
            given.facts[name] = fact_of(pack, text)
            continue
        given.keys.append(text)
        if is_fact(pack, text):
            with suppress(UsageError):
                given.spare[name] = fact_of(pack, text)
    return given


def _refuse_placeholder(text: str) -> None:
    """Raise a UsageError for a value that messages print in place of one's own."""
    value = text.partition("=")[2].strip()
    if value in _PLACEHOLDERS:
        raise UsageError(f"--set {text}: {value} stands for {_PLACEHOLDERS[value]}")


def name_of(text: str) -> str:
    """Return the key that an override sets."""
    return text.lstrip("+~").partition("=")[0].strip()


def is_fact(pack: Pack, text: str) -> bool:
    """Whether an override may state a fact: the target's are flags' of their own."""
    name = name_of(text)
    of_file = name.partition(".")[0] in NO_KEYS or name.startswith(_GPU)
    return name in pack.facts and not of_file and text[:1] not in "+~"


def _is_key(pack: Pack, document: Document, framework: str | None, name: str) -> bool:
    first = name.partition(".")[0]
    if name.startswith(OBSERVED):
        return False
    return child(document.root, first) is not None or (
        framework is not None and _knows(pack, framework, tuple(name.split(".")), whole=True)
    )


def _knows(pack: Pack, framework: str, steps: Steps, *, whole: bool = False) -> bool:
    """Whether a framework's program knows a key, or its rules read it, or (if not ``whole``) a part of it."""
    schema = table(framework)
    if schema is not None and schema.at(steps) is not None:
        return True
    named = pack.frameworks[framework]["keys"] is not None
    fact = named and dotted(steps) in pack.facts and steps[0] not in NO_KEYS
    reads = keys_read(pack, framework)
    return fact or any(_meet(steps, read) for read in reads if not whole or len(read) <= len(steps))


def _meet(steps: Steps, read: Path) -> bool:
    """Whether one path begins with the other."""
    return all(a in (b, "*") or b == "*" for a, b in zip(steps, read, strict=False))


def keys_read(pack: Pack, framework: str) -> frozenset[Steps]:
    """Return the keys that the rules for a framework read, found out once."""
    if framework not in pack.read:
        pack.read[framework] = frozenset(_keys_read(pack, framework))
    return pack.read[framework]


def _keys_read(pack: Pack, framework: str) -> Iterable[Steps]:
    from cfglint.lang import tree as t

    symbols = pack.symbols()
    entries = [entry for block in symbols.frameworks.get(framework, ()) for entry in block.entries]
    own = {entry.name: entry.body for entry in entries if isinstance(entry, t.Let)}
    waiting: list[object] = [*entries]
    for rule in symbols.rules.values():
        if not rule.scope or any(scope.framework == framework for scope in rule.scope):
            waiting += [rule.condition, rule.requirement]
    waiting += [role.fields for role in symbols.roles.values()]
    followed: set[str] = set()
    while waiting:
        for part in t.walk(waiting.pop()):
            if isinstance(part, t.Path):
                yield part.steps
            name = part.name if isinstance(part, t.Name) else getattr(part, "function", None)
            if name is None or name in followed:
                continue
            followed.add(name)
            let = symbols.lets.get(name) or symbols.functions.get(name)
            waiting.append(own.get(name) or (let.body if let is not None else None))


def fact_of(pack: Pack, text: str) -> tuple[object, str]:
    """Return the value that an override states of a fact, and where it is said. Raises UsageError."""
    name, node = name_of(text), read_override(text).value
    value = stated(pack, name, resolve(node, PYYAML)) if isinstance(node, Scalar) else ABSENT
    if pack.facts[name][0] == "list" and node is not None and not isinstance(node, Scalar):
        items = [resolve(item, PYYAML) for item in getattr(node, "items", ()) if isinstance(item, Scalar)]
        value = items or ABSENT
    if value is ABSENT or needs_of(value):
        raise UsageError(f"--set {text}: {name} is {_wanted(pack, name, text)}")
    return value, f"--set {text}"


def _wanted(pack: Pack, name: str, text: str) -> str:
    """Say what values a fact takes, and which one is near what was typed."""
    kind, _, low, high, spellings = pack.facts[name]
    if spellings:
        members = list(dict.fromkeys(spellings.values()))
        near = did_you_mean(text.partition("=")[2], spellings)
        return f"one of {', '.join(members)}{near}"
    if kind == "number":
        if (low, high) == (0, 1):
            return "a share, such as 8% or 0.08"
        return "a number, such as 4500"
    return {"bool": "true or false", "list": "a list, such as [q_proj, v_proj]"}.get(kind, f"a {kind}")


# ── what nothing takes ─────────────────────────────────────────────────────────────────────────────────────
def takes(pack: Pack, view: View, framework: str | None, text: str) -> bool:
    """Whether an override of a key reaches something: a key of the document, or one that its program knows.

    Hydra takes a key that is new to it where a ``+`` says so.
    """
    name = name_of(text)
    if framework is None:
        return False
    if is_fact(pack, text):
        return True
    composed = pack.frameworks[framework]["composes"] == "hydra" and text.startswith("+")
    if composed or "@" in name or "/" in name:  # what is new to Hydra, or a group of its
        return True
    steps = tuple(part if (n := small_number(part)) is None else n for part in read_override(text).keys)
    bare = View(view.document, view.dialect, (), view.environ, view.layers, view.beneath, view.resolvers)
    program = view.document.program
    flags = view.document.flags if program is None else program.program.flags
    if bare.has(steps) or bare.awaits(steps) is not None or dotted(steps) in flags:
        return True
    if view.document.format != "python":
        return _knows(pack, framework, steps)
    schema = table(framework)  # a program reads no key by itself: only the framework's arguments count
    named = schema is not None and schema.at(steps) is not None
    return named or any(_meet(steps, path) for path in _looked_up(pack, framework, view))


def _looked_up(pack: Pack, framework: str, view: View) -> Iterable[Path]:
    """Return what the facts of a document are looked for in."""
    fresh = View(view.document, view.dialect, (), view.environ, view.layers, view.beneath, view.resolvers)
    values = Values(pack, fresh, framework)
    for name in values.bindings:
        values[name]
    return fresh.looked_up()


def refusal(pack: Pack, text: str, frameworks: Iterable[str]) -> str:
    """Say that nothing reads what was typed, with the nearest names that are read."""
    known = {dotted(steps) for framework in frameworks for steps in keys_read(pack, framework)}
    facts = {name for name in pack.facts if is_fact(pack, f"{name}=")}
    name = name_of(text)
    if name.startswith(_GPU):
        return f"--set {text}: the target says {name}: use --gpu NAME:N, or --hardware FILE"
    near = did_you_mean(name, {*known, *facts} - {name}) or "; cfglint facts lists what is read"
    return f"--set {text}: nothing here reads {name}, so it would change nothing{near}"
