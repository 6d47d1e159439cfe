"""How many processes a launcher starts, by its flags or by variables of its environment."""

from __future__ import annotations

from cfglint.document.tree import Composite, Entry, Mapping, Node, Scalar, Unresolved, child, target
from cfglint.record import Value
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cfglint.document.shell.words import Command


class Counts(Value):
    """The flags, or variables of the ``environment``, that say how many processes a launcher starts.

    ``single`` are the numbers that are one where nothing is said. With ``pet``, a variable stands for a flag
    that is absent.
    """

    per_node: str = ""
    nodes: str = ""
    total: str = ""
    single: tuple[str, ...] = ()
    environment: bool = False
    pet: bool = False


UNSTARTED = "what starts this script once for each process is not known"
PET = "PET_"  # before the name of a flag (torch/distributed/argparse_util.py)
_TORCHRUN = Counts("nproc_per_node", "nnodes", single=("per_node", "nodes"), pet=True)
_ACCELERATE = Counts(nodes="num_machines", total="num_processes")
COUNTS = {
    "torchrun": _TORCHRUN,
    "tune": _TORCHRUN,
    "accelerate": _ACCELERATE,
    "trl": _ACCELERATE,
    "deepspeed": Counts("num_gpus", "num_nodes"),
    # one machine without a list of hosts (colossalai/cli/launcher/__init__.py)
    "colossalai": Counts("nproc_per_node"),
    # one machine unless it says how many processes there are in all (composer/cli/launcher.py)
    "composer": Counts("nproc", total="world_size"),
    # torchrun, on all GPUs unless these say otherwise
    "llamafactory-cli": Counts("NPROC_PER_NODE", "NNODES", single=("nodes",), environment=True),
    # torchrun where these are there (swift/cli/main.py), else one process
    "swift": Counts("NPROC_PER_NODE", "NNODES", single=("per_node", "nodes"), environment=True),
    # torchrun where these are more than one (xtuner/entry_point.py: cli)
    "xtuner": Counts("NPROC_PER_NODE", "NNODES", single=("per_node", "nodes"), environment=True),
    "megatron": Counts("NPROC_PER_NODE", "NNODES", single=("per_node", "nodes"), environment=True),
}


VISIBLE = "CUDA_VISIBLE_DEVICES"
PIXELS = "MAX_PIXELS"
_XLA = "PJRT_DEVICE"  # what torch_xla computes on (torch_xla/runtime.py: device_type)
_NO_GPUS = ("TPU", "NEURON")
# What AWS Neuron's runtime and compiler read (aws-neuron-sdk @v2.28.0: nrt-configurable-parameters.rst), and
# what compiles a command's graphs before it runs (pytorch-neuron-programming-guide.rst).
_NEURON = ("NEURON_RT_", "NEURON_CC_FLAGS", "NEURON_LOGICAL_NC_CONFIG")
_NEURON_COMPILES = "neuron_parallel_compile"
# Variables in which a launcher finds numbers, or the program its GPUs and the size of its pictures.
ENVIRONMENT = (
    VISIBLE,
    PIXELS,
    _XLA,
    *dict.fromkeys(
        name
        for counts in COUNTS.values()
        for name in (counts.per_node, counts.nodes, counts.total)
        if counts.environment and name
    ),
)


class Beside(Value):
    """A command of a script: its ``head``, and the GPUs that it sees; nothing where these are not known."""

    head: Mapping
    visible: str
    running: bool  # while the script goes on
    repeated: bool


def tell_beside(commands: Sequence[Beside]) -> None:
    """Say of commands that others run beside them on GPUs of their own, or may: how many is not counted."""
    if not any(command.running for command in commands):
        return
    several = len(commands) > 1
    same = len({command.visible for command in commands}) == 1
    for each in commands:
        again = each.running and each.repeated and not each.visible
        if again or (several and not (same and each.visible)):
            name = each.head.entries["name"]
            value = Composite("true", name.value.start, name.value.end)
            each.head.entries["beside"] = Entry(name.key, value)
            if each.running:
                each.head.entries["running"] = Entry(name.key, value)


def machines(
    launcher: str, flags: Mapping, said: dict[str, Node | None], one: Node
) -> dict[str, Node | None]:
    """Return what a launcher's list of hosts, or that there is none, adds to the numbers that are said."""
    if launcher == "deepspeed":
        return _slots(flags, said["nodes"], one)
    if launcher == "colossalai":
        return _hosts(flags, one)
    if launcher == "composer":
        per_node = said["per_node"] or child(flags, "n")
        return {"per_node": per_node, "total": said["total"] or per_node}
    return {}


def _slots(flags: Mapping, nodes: Node | None, one: Node) -> dict[str, Node | None]:
    """Return what DeepSpeed's ``--include host:0,1@other:0,1`` says; without it or hosts, one node."""
    included = child(flags, "include") or child(flags, "i")
    text = included.text if isinstance(included, Scalar) and not isinstance(included, Unresolved) else ""
    hosts = [host.partition(":")[2].split(",") for host in text.split("@")] if text else []
    if included is not None and hosts and all(slot.strip().isdigit() for host in hosts for slot in host):
        place = included.start, included.end
        total = Composite(str(sum(map(len, hosts))), *place)
        listed = text.partition(":")[2] if len(hosts) == 1 else ""
        end = _list_end(included, listed)
        there = included.there if isinstance(included, Composite) else None
        if end >= 0 and listed:  # fewer or more may be there
            total = Composite(total.text, end - len(listed), end, counts=True)
        elif listed and there is not None and there[1].startswith(text, there[2]):
            at = there[2] + len(text) - len(listed)
            total = Composite(total.text, *place, counts=True, there=(*there[:2], at))
        return {"total": total, "nodes": Composite(str(len(hosts)), *place)}
    if nodes is None and child(flags, "hostfile") is None and child(flags, "H") is None:
        return {"nodes": one}
    return {}


def _list_end(included: Node, listed: str) -> int:
    """Return where a list of GPUs ends in the file: in the flag's word, or in the variable that has it."""
    if type(included) is Scalar:
        return included.end
    reads = included.reads if isinstance(included, Composite) else ()
    own = [scalar for scalar in reads if scalar.text == listed]
    return own[0].end if len(own) == 1 else -1


def _hosts(flags: Mapping, one: Node) -> dict[str, Node | None]:
    """Return how many machines ``colossalai run --host a,b`` names; without any, this one."""
    named = child(flags, "host") or child(flags, "H")
    text = text_at(named)
    if named is None:
        return {} if child(flags, "hostfile") is not None else {"nodes": one}
    return {"nodes": Composite(str(len(text.split(","))), named.start, named.end)} if text else {}


def below(node: Node | None, *path: str) -> Node | None:
    """Return the node at some keys below another."""
    for name in path:
        node = child(node, name)
    return target(node)


def text_at(node: Node | None, *path: str) -> str:
    """Return the text of a scalar; nothing where there is none."""
    held = below(node, *path)
    return held.text if isinstance(held, Scalar) else ""


def visible_gpus(node: Scalar) -> Composite:
    """Return how many GPUs a list of them has, which may become another where it has the first ones."""
    number = len(node.text.split(","))
    counts = type(node) is Scalar and node.text == first_numbers(number)
    return Composite(str(number), node.start, node.end, counts=counts)


def least_gpus(node: Scalar) -> Composite | None:
    """Return how many GPUs a machine has at least that has those of a list; None where it is none of numbers.

    It becomes the list of as many where that has other numbers than the first.
    """
    numbers = [small_number(word.strip()) for word in node.text.split(",")]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    counts = type(node) is Scalar and node.text != first_numbers(len(known))
    return Composite(str(max(known) + 1), node.start, node.end, counts=counts)


def first_numbers(number: int) -> str:
    """Return the list of the first GPUs: ``0,1,2``."""
    return ",".join(map(str, range(number)))


def list_of_numbers(text: str, start: int) -> str:
    """Return the list of GPUs that stands at a place of a text."""
    end = start
    while end < len(text) and (text[end] in "0123456789,"):
        end += 1
    return text[start:end]


def on_no_gpu(variable: Callable[[str], Node | None], command: Command) -> bool:
    """Whether a command's processes are a TPU's or AWS Neuron's cores, by its environment or its words."""
    heads = (word.spelled.partition("=")[0] for word in command.words)  # `env NAME=value`, too
    names = (*command.environment, *command.exported, *heads)
    if text_at(variable(_XLA)) in _NO_GPUS or any(name.startswith(_NEURON) for name in names):
        return True
    return any(word.spelled.rpartition("/")[2] == _NEURON_COMPILES for word in command.words)


def whole(node: Node | None) -> int | None:
    """Return a node's whole number, None where it is not one."""
    node = target(node)
    text = node.text if isinstance(node, Scalar) and not isinstance(node, Unresolved) else ""
    return small_number(text)


def is_ranked(size: Node | None, *ranks: Node | None) -> bool:
    """Whether a script is started once for each process: it says how many there are, and which one it is.

    Programs take these variables as a launcher's (accelerate/state.py @v1.6.0: _prepare_backend).
    """
    return size is not None and whole(size) != 1 and any(isinstance(rank, Unresolved) for rank in ranks)


def product(per_node: Node, nodes: Node) -> Node:
    """Return how many processes there are on all nodes."""
    each, number = whole(per_node), whole(nodes)
    if each is None or number is None:
        return hidden(per_node if each is None else nodes, "how many")
    return target(per_node) if number == 1 else Composite(str(each * number), per_node.start, per_node.end)


def fixed(nodes: Node) -> Scalar | None:
    """Return the number of nodes where torchrun is told the same least and most, ``4:4``; else None.

    https://github.com/pytorch/pytorch/blob/v2.7.0/torch/distributed/run.py (parse_min_max_nnodes)
    """
    node, (least, _, most) = target(nodes), text_at(nodes).partition(":")
    if not isinstance(node, Scalar) or isinstance(node, Unresolved) or least != most or not least.isdecimal():
        return None
    said = {(read.start, read.end): read for read in node.reads} if isinstance(node, Composite) else {}
    own = next(iter(said.values())) if len(said) == 1 else None
    return own if own is not None and own.text == least else Composite(least, node.start, node.end)


def factor(total: Node, each: Node) -> Scalar | None:
    """Return the number of nodes that a script multiplies with the processes of each, to get all of them."""
    several, here, number = target(total), target(each), whole(each)
    if not isinstance(several, Composite) or number is None:
        return None
    others = {(read.start, read.end): read for read in several.reads if read is not here}
    other = next(iter(others.values())) if len(others) == 1 else None
    count = None if other is None else whole(other)
    return other if count is not None and count * number == whole(several) else None


def hidden(node: Node, what: str) -> Unresolved:
    """Return the node of a number that is not known, with the reason."""
    why = node.why if isinstance(node, Unresolved) else f"{what} is not known before the script runs"
    return Unresolved(text_at(node), node.start, node.end, why=why)
