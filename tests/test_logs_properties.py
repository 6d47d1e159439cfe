"""A message reads back the same however a terminal wrapped it and whoever put a prefix before its lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.features.diagnose.log import read
from tiers import tried

GIB, MIB = 2**30, 2**20
PREFIXES = [
    "",
    "[rank3]: ",
    "trainer-1  | ",
    "2025-11-22T16:40:43.207735638Z ",
    "2025-11-22 16:40:43,207 ",
    "[2025-11-22 16:40:43 TP0] ",
    "(TrainActor pid=4711) ",
    "\x1b[36m(WorkerDict pid=81, ip=10.0.0.3)\x1b[0m ",
    "[1,7]<stderr>:",
    "12: ",
    "gpu-node-7 | 2025-11-22T16:40:43Z [rank11]: ",
    "(EngineCore_DP0 pid=49825) ERROR 03-14 05:16:58 [core.py:843] ",
    "\x1b[31m20251122-16:40:43.652 \x1b[0m",
]


@st.composite
def amounts(draw, least=1):
    unit, size = draw(st.sampled_from([("GiB", GIB), ("MiB", MIB), ("KiB", 2**10)]))
    number = draw(st.integers(least, 99_999)) / 100
    return f"{number:.2f} {unit}", round(number * size)


@st.composite
def messages(draw):
    """A message of PyTorch 2 and what it says."""
    gpu = draw(st.integers(0, 15))
    asked, capacity, free = (draw(amounts()) for _ in range(3))
    others = draw(st.lists(st.tuples(st.integers(1, 4_194_304), amounts()), max_size=4))
    own = draw(st.none() | amounts())
    allocated, cached = draw(amounts()), draw(amounts())
    pools = draw(st.none() | amounts())
    device = draw(st.sampled_from(["CUDA", "HIP"]))
    name = draw(st.sampled_from(["torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError", "RuntimeError"]))
    capac = draw(st.sampled_from(["capacity", "capacty"]))
    text = f"{name}: {device} out of memory. Tried to allocate {asked[0]}. GPU {gpu} has a total {capac} of "
    text += f"{capacity[0]} of which {free[0]} is free. "
    text += "".join(f"Process {pid} has {held[0]} memory in use. " for pid, held in others)
    if own is not None:
        text += f"Including non-PyTorch memory, this process has {own[0]} memory in use. "
    text += f"Of the allocated memory {allocated[0]} is allocated by PyTorch"
    text += f", with {pools[0]} allocated in private pools (e.g., CUDA Graphs)" if pools else ""
    text += f", and {cached[0]} is reserved by PyTorch but unallocated."
    processes = [(pid, held[1], False) for pid, held in others]
    processes += [(None, own[1], True)] if own is not None else []
    told = (
        gpu, asked[1], capacity[1], free[1], allocated[1], cached[1], pools[1] if pools else None, processes,
    )  # fmt: skip
    return text, told


@st.composite
def old_messages(draw):
    """A message of PyTorch 1 and what it says: it reserved in total, and names no process."""
    gpu = draw(st.integers(0, 15))
    asked, capacity, free, allocated = (draw(amounts()) for _ in range(4))
    more = draw(st.integers(0, 1000)) / 100
    reserved = f"{float(allocated[0].split()[0]) + more:.2f} {allocated[0].split()[1]}"
    size = {"GiB": GIB, "MiB": MIB, "KiB": 2**10}[reserved.split()[1]]
    text = (
        f"RuntimeError: CUDA out of memory. Tried to allocate {asked[0]} (GPU {gpu}; {capacity[0]} "
        f"total capacity; "
        f"{allocated[0]} already allocated; {free[0]} free; {reserved} reserved in total by PyTorch)"
    )
    cached = round(float(reserved.split(maxsplit=1)[0]) * size) - allocated[1]
    return text, (gpu, asked[1], capacity[1], free[1], allocated[1], cached, None, [])


def wrapped(text, width, prefix, where):
    """Return ``text`` in lines: the prefix before the wrapping, or before each line after it."""
    if where == "before":
        text = prefix + text
        return [text[i : i + width] for i in range(0, len(text), width)]
    return [prefix + text[i : i + width] for i in range(0, len(text), width)]


def told(one):
    processes = [(p.pid, p.held, p.own) for p in one.processes]
    return (one.gpu, one.asked, one.capacity, one.free, one.allocated, one.cached, one.pools, processes)


@settings(max_examples=tried(300), deadline=None)
@given(
    st.one_of(messages(), old_messages()),
    st.integers(24, 400),
    st.sampled_from(PREFIXES),
    st.sampled_from(["before", "each"]),
    st.sampled_from([b"\n", b"\r\n"]),
    st.integers(1, 400),
)
def test_a_message_reads_back(message, width, prefix, where, end, piece):
    text, expected = message
    if where == "before":
        width = max(width, 40)  # of a prefix that is cut itself, the first part is nothing to read
    lines = ["step 12: loss 0.31", *wrapped(text, width, prefix, where), "Error in sys.excepthook:", "done"]
    data = end.join(line.encode() for line in lines)
    log = read((data[i : i + piece] for i in range(0, len(data), piece)), "x.log")
    assert [told(one) for one in log.incidents] == [expected]
    assert log.incidents[0].line in (2, 3, 4)  # the error's name may fill a line, a cut prefix another


@settings(max_examples=tried(200), deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_bytes_are_read(chunks):
    log = read(chunks, "x.log")
    assert log.lines <= sum(chunk.count(b"\n") for chunk in chunks) + 1


@settings(max_examples=tried(100), deadline=None)
@given(messages(), st.binary(max_size=400))
def test_garbage_before_a_message_hides_nothing(message, garbage):
    text, expected = message
    data = garbage.replace(b"\x1b", b"") + b"\n" + text.encode() + b"\n"
    assert told(read([data], "x.log").incidents[-1]) == expected


@pytest.mark.parametrize("line", [b"x" * 5_000_000, b"\xff\x00" * 1_000_000])
def test_a_line_without_end(line):
    log = read([line, b"\nCUDA out of memory. Tried to allocate 2.00 GiB.\n"], "x.log")
    assert [one.asked for one in log.incidents] == [2 * GIB]
