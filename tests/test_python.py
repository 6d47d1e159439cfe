"""Programs in Python: what they train with, against what they really make; edits, notebooks, hostile ones."""

import ast
import json
import re
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfglint.document.edits import insert_key, replace_value
from cfglint.document.python.documents import parse_program
from cfglint.document.reading import read_text
from cfglint.document.scalars import PYTHON
from cfglint.document.tree import ABSENT, Missing, Scalar, Unresolved, nodes_with_paths
from cfglint.document.view import MappingView, View
from cfglint.errors import OverBudgetError
from cfglint.text import apply_edits

UNKNOWN = "UNKNOWN"
HEAD = """
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments
from trl import DPOConfig, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
"""
# Stands in for the libraries: every call of theirs is written down with its arguments, where they are plain.
STUBS = """
import json, sys, types
RECORDED = []
class Thing:
    def __init__(self, name): self.__dict__["name"] = name
    def __getattr__(self, key): return Thing(f"{self.name}.{key}")
    def __setattr__(self, key, value): RECORDED.append((f"{self.name}.{key}", [], {key: value}))
    def __call__(self, *words, **named):
        made = Made(self.name, named)
        RECORDED.append((self.name, words, named))
        return made
    def __iter__(self): return iter((Thing("first"), Thing("second")))
class Made:
    def __init__(self, name, named): self.__dict__.update(named, _name=name, _named=named)
    def __setattr__(self, key, value): self.__dict__[key] = value; self._named[key] = value
    def __getattr__(self, key): return Thing(f"{self._name}.{key}")
    def __iter__(self): return iter((self, Thing("second")))
class Module(types.ModuleType):
    def __getattr__(self, key):
        if key.startswith("__"): raise AttributeError(key)
        return Thing(key)
for name in ("torch", "transformers", "trl", "peft", "unsloth"):
    sys.modules[name] = Module(name)
def plain(value):
    if isinstance(value, Thing): return value.name.rpartition(".")[2]
    if isinstance(value, Made): return None
    if isinstance(value, dict): return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)): return [plain(inner) for inner in value]
    return value
source = sys.stdin.read()
try: exec(compile(source, "program", "exec"), {"__name__": "__main__"})
finally: print(json.dumps([(name, plain(words), plain(named)) for name, words, named in RECORDED]))
"""


def real_calls(program, *words):
    """Return what a program of ours calls when it really runs, with stubs in the place of the libraries."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", STUBS, *words],
        input=program,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return json.loads(done.stdout)


def documents(program, *, notebook=False):
    name = "train.ipynb" if notebook else "train.py"
    return read_text(program, name).documents


def seen(document, *path):
    """Return a value as the frameworks' blocks see it."""
    value = View(document, PYTHON).get(path)
    if isinstance(value, Missing):
        return UNKNOWN
    if isinstance(value, MappingView):
        return {key: seen(document, *path, key) for key in View(document, PYTHON).keys(path)}
    return (
        [UNKNOWN if isinstance(item, Missing) else item for item in value]
        if isinstance(value, list)
        else value
    )


PAGE = (Path(__file__).parent / "programs.md").read_text("utf-8")
PROGRAMS = [
    (text, told.split()) for told, text in re.findall(r"(?ms)^```python(?: unknown (.*?))?\n(.*?)^```$", PAGE)
]


@pytest.mark.parametrize(("program", "unknown"), PROGRAMS)
def test_what_is_read_is_what_python_makes(program, unknown):
    program = HEAD + program
    made = [named for name, _, named in real_calls(program) if name.endswith("SFTConfig")][-1]
    (document,) = documents(program)
    read = {key: seen(document, key) for key in document.root.entries if key != "python"}
    for key, value in made.items():
        got = read.pop(key, UNKNOWN if document.unread else ABSENT)
        if key in unknown:
            assert got is UNKNOWN or (isinstance(got, list) and UNKNOWN in got), key
        else:
            assert (got, type(got)) == (value, type(value)), key
    assert not [key for key, value in read.items() if value is not UNKNOWN]


LOAD = "model = AutoModelForCausalLM.from_pretrained('org/m'{})"
QUANTIZED = LOAD.format(", quantization_config=BitsAndBytesConfig(load_in_4bit=True)")
PREPARED = "model = get_peft_model(prepare_model_for_kbit_training(model), LoraConfig(r=8))"
BRANCHES = "import os\nif os.environ.get('X'):\n    {}\nelse:\n    {}"
# What makes the model, what the trainer gets for it, and what else it gets.
MODELS = {
    "plain": (LOAD.format(", torch_dtype=torch.bfloat16"), "model", ""),
    "positional": ("name = 'org/m'\nmodel = AutoModelForCausalLM.from_pretrained(name)", "model", ""),
    "named": ("", "'org/m'", ""),
    "adapter": (LOAD.format(""), "model", ", peft_config=LoraConfig(r=8)"),
    "wrapped": (f"{QUANTIZED}\n{PREPARED}", "model", ""),
    "moved": (LOAD.format("") + ".to('cuda')", "model", ""),
    "branches": (BRANCHES.format(LOAD.format(", use_cache=False"), LOAD.format("")), "model", ""),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_followed(name):
    made, model, more = MODELS[name]
    program = f"{HEAD}{made}\nargs = SFTConfig(output_dir='o')\nSFTTrainer(model={model}, args=args{more})\n"
    (document,) = documents(program)
    assert seen(document, "from_pretrained", "pretrained_model_name_or_path") == "org/m"
    assert seen(document, "LoraConfig", "r") == (8 if name in ("adapter", "wrapped") else ABSENT)
    assert seen(document, "BitsAndBytesConfig", "load_in_4bit") == (True if name == "wrapped" else ABSENT)
    assert View(document, PYTHON).has(("prepare_model_for_kbit_training",)) == (name == "wrapped")
    assert seen(document, "from_pretrained", "torch_dtype") == ("bfloat16" if name == "plain" else ABSENT)
    assert seen(document, "python", "trainer") == "SFTTrainer"


@pytest.mark.parametrize(
    "model",
    [
        "load('m')",
        "AutoModelForCausalLM.from_config(c)",
        "undefined",
        "pick(m for m in [])",
        "PeftModel.from_pretrained(b, 'a')",
    ],
)
def test_a_model_that_is_made_elsewhere_is_unknown(model):
    program = f"{HEAD}from peft import PeftModel\nfrom mine import load, pick, b, c\nargs = SFTConfig(a=1)\n"
    program += f"SFTTrainer(model={model}, args=args)"
    (document,) = documents(program)
    assert seen(document, "from_pretrained", "pretrained_model_name_or_path") == UNKNOWN
    assert seen(document, "LoraConfig", "r") == UNKNOWN
    assert seen(document, "a") == 1


def test_arguments_of_other_libraries_are_none():
    for line in (
        "from mine import SFTConfig",
        "from .configs import SFTConfig",
        "class SFTConfig:\n    a: int = 1",
        "",
    ):
        assert documents(f"{line}\nSFTConfig(a=2)") == []
    own = "from trl import SFTConfig\nclass Mine(SFTConfig):\n    batch: int = 3\n    bf16: bool = True\n"
    own += "Mine(bf16=False)"
    (document,) = documents(own)
    assert (seen(document, "batch"), seen(document, "bf16"), seen(document, "python", "args")) == (
        3,
        False,
        "SFTConfig",
    )


def test_flags_are_unknown_where_nothing_starts_the_program():
    program = HEAD + textwrap.dedent("""
        import argparse
        p = argparse.ArgumentParser()
        p.add_argument("--lr", type=float, default=1e-4)
        args = p.parse_args()
        SFTConfig(learning_rate=args.lr, bf16=True)
    """)
    (document,) = documents(program)
    assert (seen(document, "learning_rate"), seen(document, "bf16")) == (UNKNOWN, True)
    assert "--lr" in document.root.entries["learning_rate"].value.why


def test_what_double_stars_may_set_is_not_absent():
    (document,) = documents(HEAD + "import mine\nSFTConfig(output_dir='o', **mine.options())")
    view = View(document, PYTHON)
    assert (seen(document, "output_dir"), seen(document, "bf16")) == ("o", UNKNOWN)
    assert view.awaits(("bf16",))


# ── notebooks ──────────────────────────────────────────────────────────────────────────────────────────────
def notebook(*cells, indent=1, ensure_ascii=True):
    """Return a notebook with these cells, some of whose sources are lists of lines as Jupyter writes them."""
    made = [{"cell_type": "markdown", "metadata": {}, "source": ["SFTConfig(a=9)"]}]
    for i, cell in enumerate(cells):
        source = cell if i % 2 else cell.splitlines(keepends=True)
        outputs = [{"output_type": "stream", "text": ['{"cells": [', "x"]}]
        made.append(
            {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": outputs, "source": source}
        )
    return json.dumps(
        {"cells": made, "metadata": {}, "nbformat": 4}, indent=indent, ensure_ascii=ensure_ascii
    )


def test_a_notebook_is_its_cells():
    text = notebook(
        "%%bash\nfor x in 1; do echo $x; done",
        "!pip install -q trl \\\n  peft\n%matplotlib inline\nn = 4\nx = !ls\nhelp?",
        HEAD.strip(),
        '%%capture\nname = "größe \\"q\\""; m = 2',
        "if n:\n    !ls\n    k = 3",
        "SFTConfig(a=n, b=m, c=name, d=k, e=x, f='''q\n!no''')",
    )  # fmt: skip
    for document in (
        *documents(text, notebook=True),
        *documents(text.encode().decode("unicode_escape") and text, notebook=True),
    ):
        read = [seen(document, key) for key in "abcdef"]
        assert read == [4, 2, 'größe "q"', 3, UNKNOWN, "q\n!no"]
        for key, spelled in (("a", "4"), ("b", "2")):
            node = document.root.entries[key].value
            assert document.file.text[node.start : node.end] == spelled


def test_what_a_broken_cell_sets_is_unknown():
    text = notebook(HEAD, "n = 4\nm = 5", "n = = 3", "SFTConfig(n=n, m=m)")
    (document,) = documents(text, notebook=True)
    assert (seen(document, "n"), seen(document, "m")) == (UNKNOWN, 5)


# ── edits ──────────────────────────────────────────────────────────────────────────────────────────────────
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**9),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text("abc-_/ .ö", max_size=8),
)
KEYS = st.lists(
    st.sampled_from(["bf16", "lr", "batch", "steps", "größe", "name"]), min_size=1, max_size=5, unique=True
)


@st.composite
def programs(draw):
    """Make a program with a call whose arguments are literals, or names of some."""
    lines, arguments = [], []
    spaced = draw(st.booleans())
    for key in draw(KEYS):
        spelled = repr(draw(VALUES))
        if draw(st.booleans()):
            spelled = spelled.replace("'", '"')
        if draw(st.booleans()):
            lines.append(f"v_{key} = {spelled}  # ({{[")
            spelled = f"v_{key}"
        arguments.append(f"{key} = {spelled}" if spaced else f"{key}={spelled}")
    comma = draw(st.sampled_from(["", ",", ",  # last"]))
    between = draw(st.sampled_from([", ", ",\n    ", ",  # why\n    ", ",\r\n    "]))
    if "\n" in between or comma:
        call = f"SFTConfig(\n    {between.join(arguments)}{comma}\n)"
    else:
        call = f"SFTConfig({between.join(arguments)})"
    program = "\n".join(["from trl import SFTConfig", *lines, f"x = 'ü'; args = {call}"]) + "\n"
    return program, draw(st.booleans())


@given(programs(), VALUES, st.data())
def test_edits_change_one_value_and_still_parse(program, value, data):
    source, in_notebook = program
    text = notebook(source, ensure_ascii=data.draw(st.booleans())) if in_notebook else source
    (document,) = documents(text, notebook=in_notebook)
    before = {key: seen(document, key) for key in document.root.entries if key != "python"}
    assert UNKNOWN not in before.values()
    key = data.draw(st.sampled_from(sorted(before)))
    edit = replace_value(document, document.root.entries[key].value, value, PYTHON)
    assert edit is not None
    (after,) = documents(apply_edits(text, [edit]), notebook=in_notebook)
    changed = {name: seen(after, name) for name in before}
    assert changed == {**before, key: value}
    assert type(changed[key]) is type(value)
    new = insert_key(document, ("added",), value, PYTHON)
    (after,) = documents(apply_edits(text, [new]), notebook=in_notebook)
    assert {name: seen(after, name) for name in (*before, "added")} == {**before, "added": value}
    if in_notebook:
        json.loads(apply_edits(text, [new]))
    else:
        ast.parse(apply_edits(text, [new]))


@pytest.mark.parametrize(
    ("call", "added"),
    [
        ("SFTConfig()", "SFTConfig(n=1)"),
        ("SFTConfig(a=2)", "SFTConfig(a=2, n=1)"),
        ("SFTConfig(a = 2, b = 3)", "SFTConfig(a = 2, b = 3, n = 1)"),
        ("SFTConfig(\n    a=2,\n)", "SFTConfig(\n    a=2,\n    n=1,\n)"),
        ("SFTConfig(\n    a=2, # b=3\n    # c\n)", "SFTConfig(\n    a=2, # b=3\n    n=1,\n    # c\n)"),
        ("SFTConfig(\n    a=2\n)", "SFTConfig(\n    a=2,\n    n=1\n)"),
        ("SFTConfig(a=2,\n          b=3)", "SFTConfig(a=2,\n          b=3,\n          n=1)"),
    ],
)
def test_an_argument_is_added_as_the_others_are_written(call, added):
    text = f"from trl import SFTConfig\n{call}\n"
    (document,) = documents(text)
    edit = insert_key(document, ("n",), 1, PYTHON)
    assert apply_edits(text, [edit]) == text.replace(call, added)


def test_what_is_computed_or_shared_is_not_edited():
    (first, second) = documents(HEAD + "n = 4\nSFTConfig(a=n, b=2 * 3)\nSFTConfig(a=n, c=torch.bfloat16)")
    for document, key in ((first, "a"), (first, "b"), (second, "a"), (second, "c")):
        assert replace_value(document, document.root.entries[key].value, 8, PYTHON) is None
    assert replace_value(first, first.root.entries["a"].value, "x", PYTHON) is None


def test_every_span_is_the_literal():
    text = HEAD + "é = 'ü'; SFTConfig(a='ö', b=-1.5, c=é, d=True)  # ä"
    (document,) = documents(text)
    spelled = {n.text: text[n.start : n.end] for _, n in nodes_with_paths(document.root) if type(n) is Scalar}
    assert spelled == {"ö": "'ö'", "-1.5": "-1.5", "ü": "'ü'", "True": "True"}


# ── hostile ────────────────────────────────────────────────────────────────────────────────────────────────
CALL = "\nfrom trl import SFTConfig\nSFTConfig(n=x, m=1)\n"
CALLS = (
    "".join(f"def f{i}():\n    return f{i + 1}() + f{i + 1}()\n" for i in range(60))
    + "def f60():\n    return 1\n"
)
CLASSES = "".join(f"class A{i}(A{i - 1}, A{i - 1}): n = 1\n" for i in range(1, 60))
HOSTILE = {
    "brackets": "x = " + "(" * 90 + "1" + ")" * 90,
    "deeper brackets": "x = " + "[" * 5000 + "]" * 5000,
    "unclosed": "x = " + "(" * 10_000,
    "signs": "x = " + "-" * 50_000 + "1",
    "sum": "x = " + "1+" * 50_000 + "1",
    "attributes": "x = a" + ".a" * 50_000,
    "calls": "x = a" + "()" * 50_000,
    "conditions": "x = " + "1 if a else " * 20_000 + "1",
    "lambdas": "x = " + "lambda: " * 20_000 + "1",
    "elifs": "if a: x = 1\n" + "elif a: x = 1\n" * 5_000,
    "ifs": "".join(f"if a{i}: x = {i}\n" for i in range(5_000)),
    "nested ifs": "".join(f"{' ' * i}if a:\n" for i in range(90)) + " " * 90 + "x = 1",
    "loops": "".join(f"{' ' * i}for a in b:\n" for i in range(19)) + " " * 19 + "x = 1",
    "functions that call two": CALLS + "x = f0()",
    "recursion": "def f(n):\n    return f(n + 1)\nx = f(0)",
    "two that call each other": "def f():\n    return g()\ndef g():\n    return f()\nx = f()",
    "growing text": "x = 'ab'\n" + "x = x + x\n" * 200,
    "growing number": "x = 9\n" + "x = x * x\n" * 200 + "x = 2 ** 10 ** 10",
    "growing list": "x = [1]\n" + "x = [x, x]\n" * 200,
    "growing dictionary": "x = {}\n" + "x = {'a': x, 'b': x}\n" * 60 + "if q: x = {}\n",
    "growing objects": "x = q()\n" + "x = q(x, x)\nif q: x = q(x, x)\n" * 60,
    "itself": "x = {}\nx['x'] = x\nx.x = x",
    "one line": "x = [" + "1, " * 100_000 + "]",
    "one line of other letters": "x = ['ü', " + "1, " * 100_000 + "]",
    "one f-string": 'x = f"' + "{a}" * 50_000 + '"',
    "many names": "".join(f"x{i} = {i}\n" for i in range(20_000)) + "x = 1",
    "classes": "class A0: n = 1\n" + CLASSES + "x = A59().k",
    "nul": "x = 1\0",
    "half a pair": "x = '\ud800'",
    "form feed": "\f\v x = 1\r\rx = 2\x0c",
    "decorators": "@a\n" * 5_000 + "def f(): pass\nx = f()",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["train.py", pytest.param("train.ipynb", marks=pytest.mark.long)])
def test_a_hostile_program_ends(name, form):
    program = HOSTILE[name] + CALL
    text = (
        json.dumps({"cells": [{"cell_type": "code", "source": program}]}) if form.endswith("b") else program
    )
    begun = time.process_time()
    found = []
    with suppress(OverBudgetError):  # which becomes CFG023
        found = read_text(text, form).documents
    for document in found:
        assert seen(document, "m") == 1
        repr(seen(document, "n"))[:100]
    assert time.process_time() - begun < 6


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 1}', '{"cells": [{"source": [1, {"a": "SFTConfig("}]}]}', '"']
)
def test_what_is_no_notebook_has_nothing(text):
    assert parse_program(text, notebook=True) == []


def test_unresolved_says_why():
    (document,) = documents(HEAD + "import os\nSFTConfig(a=os.environ['N'], b=os.cpu_count() + 1)")
    nodes = [document.root.entries[key].value for key in "ab"]
    assert all(
        isinstance(node, Unresolved) and "not known before the program runs" in node.why for node in nodes
    )
