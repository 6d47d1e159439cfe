"""What a program says of a command's flags: their defaults, and what it makes of a batch's sizes."""

from __future__ import annotations

from cfglint.document.layers import Source
from cfglint.document.python.loaders import Sizes
from cfglint.document.python.values import Literal
from cfglint.document.tree import Alias, Composite, Entry, Mapping, Off, Scalar, Unresolved, child, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.layers import Layers
    from cfglint.document.python.values import Span
    from cfglint.document.started import Started
    from cfglint.document.tree import Node

_WHOLE = 2**53
_OFF = ("false", "0", "no", "f", "n", "none")
_MOST = 3  # numbers that passes follow from


def note_sizes(
    head: Mapping, root: Mapping, started: Started, typed: dict[str, Node | None], *, open_ended: bool
) -> None:
    """Note the flags that a program's passes follow from, and what its groups of samples go with."""
    start, end = started.node.start, started.node.end
    asked = (root, started, typed)
    for drawn in started.drawn:
        if _is_on(*asked, drawn.switch, open_ended=open_ended):
            _enter(head, f"draws_{drawn.with_}", Composite("true", start, end))
    _note_own(head, asked, open_ended=open_ended)
    share = started.share
    if share is None or (child(root, share.name) is not None and share.name not in share.above):
        return  # a command that sets the passes themselves may mean these
    named = {"total": share.above[0]} | {f"total_part{n or ''}": name for n, name in enumerate(share.below)}
    found = {key: _node(*asked, name, open_ended=open_ended) for key, name in named.items()}
    if None in found.values() or len(named) > _MOST:
        return
    if len(share.below) == 1:
        found["total_part_of"] = Composite(share.below[0], start, end, '"')
    if share.replicas:
        found["total_of_replicas"] = Composite("true", start, end)
    for key, value in found.items():
        if value is not None:
            _enter(head, key, value)


def _note_own(
    head: Mapping, asked: tuple[Mapping, Started, dict[str, Node | None]], *, open_ended: bool
) -> None:
    """Note the flags of what a loop of the program's own takes at a time."""
    started = asked[1]
    start, end, sizes = started.node.start, started.node.end, started.sizes or Sizes()
    launcher = child(head, "launcher")
    if sizes.splits and isinstance(launcher, Scalar) and launcher.text == "python":
        sizes = Sizes(passes=sizes.passes)
    if sizes.loads:
        _enter(head, "own_loads", Composite("true", start, end))
    flags = {
        "own_batch": sizes.batch,
        "own_passes": sizes.passes,
        "own_whole": sizes.whole,
        "own_divided": sizes.divided,
    }
    for key, name in flags.items():
        if name and (value := _node(*asked, name, open_ended=open_ended)) is not None:
            _enter(head, key, value)
            _enter(head, f"{key}_of", Composite(name, start, end, '"'))
    if sizes.once and not open_ended:
        _enter(head, "own_passes", Composite("1", start, end))


def _enter(head: Mapping, key: str, value: Node) -> None:
    head.entries[key] = Entry(Scalar(key, value.start, value.end, '"'), value)


def _is_on(
    root: Mapping, started: Started, typed: dict[str, Node | None], name: str, *, open_ended: bool
) -> bool:
    """Whether a flag may be on; none is."""
    given = typed.get(name) or target(child(root, name))
    if not name or given is not None:
        return not name or not isinstance(given, Scalar) or given.text.lower() not in _OFF
    flag = started.program.flags.get(name)
    default = flag.default if flag is not None else None
    return open_ended or not isinstance(default, Literal) or bool(default.value)


def _node(
    root: Mapping, started: Started, typed: dict[str, Node | None], name: str, *, open_ended: bool
) -> Node | None:
    """Return what is typed, or the command says, of a flag; else its default, or the constant of its name."""
    given = typed.get(name) or target(child(root, name))
    if given is not None:
        plain = isinstance(given, Scalar) and not isinstance(given, Unresolved)
        return Alias(f"--{name}", given, given.start, given.end) if plain else None
    flag, node = started.program.flags.get(name), started.node
    default = flag.default.value if flag is not None and isinstance(flag.default, Literal) else None
    constants = dict(started.share.numbers) if started.share is not None and flag is None else {}
    number = default if type(default) is int else constants.get(name)
    return None if number is None or open_ended else Composite(str(number), node.start, node.end)


def lay_defaults(layers: Layers, started: Started) -> None:
    """Lay the defaults of a program's flags beneath its command."""
    source = Source(started.file, started.node, "program")
    base = Mapping(0, flow=True)
    for name, flag in started.program.flags.items():
        value = flag.default.value if isinstance(flag.default, Literal) else None
        if value in (None, "") or not isinstance(flag.default, Literal):
            continue  # what is not set says nothing, and a rule that asks for the key would take it for said
        if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
            value = int(value)  # `1e8` where argparse takes a whole number from people
        style = '"' if isinstance(value, str) else ""
        start, end = flag.default.span
        holder = base
        *sections, last = name.split(".")
        for section in sections:
            holder = _section(holder, section, flag.span)
        made = Off if flag.kind == "switch" and value is False else Scalar
        holder.entries[last] = Entry(Scalar(last, *flag.span, '"'), made(str(value), start, end, style))
    if base.entries:
        layers.adopt(base, source)
        if source.file not in [each.file for each in layers.files]:
            layers.files.append(source)
        layers.root = layers.lay(layers.root, base)


def _section(holder: Mapping, name: str, span: Span) -> Mapping:
    """Return the mapping under a name, made where there is none."""
    if not isinstance(child(holder, name), Mapping):
        holder.entries[name] = Entry(Scalar(name, *span, '"'), Mapping(span[0], flow=True))
    found = child(holder, name)
    assert isinstance(found, Mapping)
    return found
