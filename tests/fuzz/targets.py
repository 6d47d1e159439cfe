"""One function per kind of input: runs cfglint on bytes, in this process, and asserts what must always hold.

No input makes a traceback or takes long; a fix changes only the values that it names, is idempotent, and
leaves a file that an independent parser still reads, if that read it before.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import tomllib
import yaml

from cfglint.api import check_file
from cfglint.budget import BUDGET
from cfglint.cli import main
from cfglint.document.edits import insert_key, replace_value
from cfglint.document.reading import read, read_text
from cfglint.document.scalars import JSON, PYTHON, PYYAML, SHELL, TOML
from cfglint.document.tree import Alias, Mapping, Node, Scalar, Sequence, nodes_with_paths
from cfglint.engine.run import Run
from cfglint.errors import CfglintError, HardwareError, OverBudgetError, RulesError
from cfglint.findings import Report
from cfglint.hardware.host import load_sheet
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.repair.apply import repair
from cfglint.report import FORMATS, render
from cfglint.text import apply_edits
from fuzz.seeds import BETWEEN, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.tree import Document, File
    from cfglint.hardware.target import Target
    from cfglint.repair.apply import Repaired
    from cfglint.text import Edit

SECONDS = 30  # of processor time for one input of at most 40 kB; most take a hundredth of one
GPUS = ("", "a40:8", "h100-sxm:8x2", "rtx-4090:1")
EXAMPLE = (ROOT / "examples" / "grpo_one_gpu.yaml").read_bytes()
SMALL = (ROOT / "examples" / "sft_zero3.yaml").read_bytes()
LOG = (ROOT / "examples" / "out_of_memory.log").read_bytes()
COMMANDS = (
    "check",
    "fix",
    "fit",
    "compare",
    "plan",
    "explain",
    "diagnose",
    "gpus",
    "rules",
    "frameworks",
    "schema",
    "test",
)


class Slow(Exception):  # noqa: N818 (what it says)
    """An input took more than its time."""


@contextlib.contextmanager
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    """Raise Slow where what is inside takes more processor time than that."""

    def stop(*_: object) -> None:
        raise Slow(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@cache
def _run(gpu: str) -> Run:
    return Run(load(), [parse_target(gpu)] if gpu else [])


# ── a file: checked, fixed, and fixed again ────────────────────────────────────────────────────────────────
def config(data: bytes, name: str, run: Run | None = None) -> None:
    """Check and fix one file."""
    number = crc32(data)
    run = run or _run(GPUS[number % len(GPUS)])
    try:
        with BUDGET:
            file = read(data, name)
    except OverBudgetError:  # the command reports it
        return
    report = checked(run, file)
    codes = [finding.code for finding in report.findings] if report is not None else []
    if report is None or "CFG023" in codes:
        return
    notes, may = number % 3 == 0, number % 5 == 0
    result = repair(run, file, unsafe=number % 7 > 0, least="info", notes=notes, accept_may=may)
    if not result.applied:
        assert result.text == file.text, "a fix without a word"
        return
    again = read(file.encode(result.text), name)
    assert again.text == result.text
    if not result.over:  # else the search ended before all was fixed
        twice = repair(run, again, unsafe=number % 7 > 0, least="info", notes=notes, accept_may=may)
        assert twice.text == result.text, f"fixed twice: {_titles(twice)} after {_titles(result)}"
    _only_its_spans(file, again, result)
    after = checked(run, again)
    assert after is not None, f"not recognised after {_titles(result)}"
    # A number in quotes stays in quotes, which CFG013 tells once the number itself is right.
    new = {f.code for f in after.findings if f.level == "error"} - {*codes, "CFG013"}
    assert not new, f"{new} after {_titles(result)}"


def checked(run: Run, file: File) -> Report | None:
    """Return the report on a file, printed in every form; None where no framework recognises it."""
    run.report, run.fixes = Report(), 0
    if not check_file(run, file):
        return None
    for finding in run.report.findings:
        assert (
            0 <= finding.place.start <= finding.place.end <= len(file.text) or finding.place.path != file.path
        )
    for form in FORMATS:
        page = render(run.report, form, color=form == "text", width=60, verbose=True)
        if form in ("json", "sarif", "gitlab"):
            json.loads(page)
        elif form == "junit":
            from xml.etree import ElementTree as ET

            ET.fromstring(page)
    return run.report


def _titles(result: Repaired) -> list[str]:
    return [fix.title for _, fix in result.applied]


def _only_its_spans(before: File, after: File, result: Repaired) -> None:
    titles = _titles(result)
    # one edit may add several words of a pod's command
    edits = sum(max(1, len(edit.new.split())) for _, fix in result.applied for edit in fix.edits)
    broken = [document.error for document in before.documents]
    now = [document.error for document in after.documents]
    assert len(now) == len(broken), f"{len(broken)} documents became {len(now)} by {titles}"
    assert sum(map(bool, now)) <= sum(map(bool, broken)), f"{now} after {titles}"
    old, new = before.text.split("\n"), after.text.split("\n")
    changed = (
        [line for line in difflib.ndiff(old, new) if line.startswith(("+ ", "- "))] if len(old) < 400 else []
    )
    assert len(set(changed)) <= 4 * edits, f"{changed} by {titles}"
    first = values(before)
    if first is None:
        return
    second = values(after)
    assert second is not None, f"no longer parsed by others after {titles}"
    if any(title.startswith(("rename", "join")) for title in titles):  # a joined command has more flags
        return
    lost = {
        path for path in first.keys() - second.keys() if first[path] not in ("", None, "{}", "null", "[]")
    }
    if before.format not in ("yaml", "json", "toml"):
        lost = {path for path in lost if first[path] != "true"}  # a flag without a value, which is taken away
    assert not lost, f"{lost} lost by {titles}"
    other = {path for path in first.keys() & second.keys() if first[path] != second[path]}
    other |= second.keys() - first.keys()
    assert len(other) <= edits, f"{other} changed by {titles}"


def values(file: File) -> dict[object, object] | None:
    """Return a file's values by their paths, as an independent parser reads them; None where it does not."""
    with contextlib.suppress(RecursionError):
        if file.format == "yaml":
            return _of_yaml(file.text)
        if file.format == "json":
            with contextlib.suppress(ValueError):
                return _flat(json.loads(file.text, object_pairs_hook=_Pairs))
        elif file.format == "toml":
            with contextlib.suppress(ValueError):
                return _flat(tomllib.loads(file.text))
        elif file.format == "python":
            return _of_program(file.text)
        else:
            return _of_nodes(file.documents)
    return None


class _Pairs(dict[str, Any]):
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        for key, value in pairs:
            while key in self:
                key += "'"  # noqa: PLW2901 (a duplicate keeps its place)
            self[key] = value


def _flat(value: object, path: tuple[object, ...] = ()) -> dict[object, object]:
    if isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: leaf for name, inner in items for key, leaf in _flat(inner, (*path, name)).items()}
    return {path: repr(value)}


def _of_yaml(text: str) -> dict[object, object] | None:
    """Return the scalars of YAML, each once, however many aliases lead to it."""
    found: dict[object, object] = {}
    seen: set[int] = set()

    def visit(node: yaml.Node, path: tuple[object, ...]) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, inner in node.value:
                name = key.value if isinstance(key.value, str) else "?"
                place: tuple[object, ...] = (*path, name)
                while place in found:
                    place = (*place[:-1], f"{place[-1]}'")
                visit(inner, place)
        elif isinstance(node, yaml.SequenceNode):
            for index, inner in enumerate(node.value):
                visit(inner, (*path, index))
        else:
            found[path] = node.value

    try:
        roots = list(yaml.compose_all(text, yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, IndexError, TypeError, AttributeError):
        return None
    for number, root in enumerate(roots):
        if root is not None:
            visit(root, (number,))
    return found


def _of_program(text: str) -> dict[object, object] | None:
    """Return what a program gives to calls by name, and to variables, where that has no call in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    found: dict[object, ast.expr] = {
        (n, k.arg): k.value for n, call in enumerate(calls) for k in call.keywords
    }
    found |= {n: node.value for n, node in enumerate(each for each in nodes if isinstance(each, ast.Assign))}
    return {
        place: ast.unparse(value)
        for place, value in found.items()
        if not any(isinstance(inner, ast.Call) for inner in ast.walk(value))
    }


def _of_nodes(documents: list[Document]) -> dict[Any, object]:
    """Return what the commands of a script say, each word once."""
    found: dict[tuple[object, ...], object] = {}
    seen: set[tuple[int, int]] = set()

    def visit(node: Node | None, path: tuple[object, ...]) -> None:
        if isinstance(node, Mapping):
            for name, entry in node.entries.items():
                visit(entry.value, (*path, name))
        elif isinstance(node, Sequence):
            for index, item in enumerate(node.items):
                visit(item, (*path, index))
        elif isinstance(node, Scalar) and not isinstance(node, Alias) and (node.start, node.end) not in seen:
            seen.add((node.start, node.end))
            found[path] = node.text

    for number, document in enumerate(documents):
        visit(document.root, (number,))
    # What the launch comes to is computed, of several words at once.
    return {path: text for path, text in found.items() if path[1:2] != ("launch",)}


# ── the editor alone: quick, and of every value ────────────────────────────────────────────────────────────
_NEW = (7, 0.5, "x", "x: y # z", True, None, "")
_DIALECTS = {"yaml": PYYAML, "json": JSON, "toml": TOML, "shell": SHELL, "python": PYTHON}


def edits(data: bytes, name: str) -> None:
    """Give some values of a file another one, and some of its mappings a key: nothing else changes."""
    number = crc32(data)
    with BUDGET:
        file = read(data, name)
        first = values(file)
        if first is None or any(document.error is not None for document in file.documents):
            return
        for document in file.documents:
            dialect = _DIALECTS[document.format]
            nodes = nodes_with_paths(document.root)
            for place, (path, node) in enumerate(nodes[number % 5 :: 5][:12]):
                new = _NEW[(number + place) % len(_NEW)]
                if path[:1] in (("launch",), ("python",)):
                    continue
                if isinstance(node, Scalar):
                    edit = replace_value(document, node, new, dialect)
                elif isinstance(node, Mapping):
                    edit = insert_key(document, (*path, "zzq"), new, dialect)
                else:
                    continue
                if edit is not None:
                    _one_change(file, first, edit, path)


def _one_change(file: File, first: dict[object, object], edit: Edit, path: object) -> None:
    after = read_text(apply_edits(file.text, [edit]), file.path, bom=file.bom)
    what = f"{edit} at {path}"
    assert not any(document.error is not None for document in after.documents), what
    second = values(after)
    assert second is not None, what
    same = first.keys() & second.keys()
    other = [place for place in same if first[place] != second[place]]
    lost = [place for place in first.keys() - second.keys() if first[place] not in ("", "{}", "true")]
    added = second.keys() - first.keys()
    most = 2 if edit.start == edit.end and file.documents[0].format == "shell" else 1  # a flag and its value
    assert len(other) + len(added) <= most, f"{other}, {added}: {what}"
    assert not lost, f"{lost} lost by {what}"


# ── the command, in a folder of its own ────────────────────────────────────────────────────────────────────
@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="cfglint-fuzz-"))
    os.environ["HF_HUB_OFFLINE"] = "1"
    return folder / "repo"


def _write(files: dict[str, bytes]) -> Path:
    folder = _folder()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".git").mkdir(parents=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def command(files: dict[str, bytes], *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run cfglint in a repository that consists of ``files``; returns its status and what it printed."""
    folder = _write(files)
    before, where = (sys.stdin, sys.stdout, sys.stderr), os.getcwd()
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in "12")
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), out, err
    os.environ["CFGLINT_TRACEBACK"] = "1"
    os.chdir(folder)
    try:
        status = main(list(words))
        printed, said = (stream.detach().getvalue().decode("utf-8", "replace") for stream in (out, err))
    finally:
        os.chdir(where)
        sys.stdin, sys.stdout, sys.stderr = before
        del os.environ["CFGLINT_TRACEBACK"]
    assert status in (0, 1, 2), status
    assert "Traceback" not in said
    assert "internal error" not in said
    assert status < 2 or said, f"status 2 without a word: {words}"
    return status, printed, said


def _commands(data: bytes, name: str) -> None:
    """Run the other commands on a file, one of them for each input."""
    gpu = ["--gpu", "a40:8"]
    lines: tuple[tuple[str, ...], ...] = (
        ("fit", name, *gpu),
        ("fit", name, "--gpu", "all"),
        ("plan", name, *gpu),
        ("compare", name, "example.yaml", *gpu),
        ("compare", "example.yaml", name),
        ("explain", "MEM104", name, *gpu),
        ("explain", "CFG009", name),
        ("frameworks", name),
        ("diagnose", "out.log", "--config", name),
        ("fix", "--diff", name, *gpu),
    )
    command({name: data, "example.yaml": EXAMPLE, "out.log": LOG}, *lines[crc32(data) // 64 % len(lines)])


def _file(name: str) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        with contextlib.suppress(OverBudgetError):
            edits(data, name)
        config(data, name)
        if crc32(data) % 16 == 3:
            _commands(data, name)

    return target


# ── the other kinds ────────────────────────────────────────────────────────────────────────────────────────
def manifest(data: bytes) -> None:
    """Check a manifest, as JSON where it looks like that."""
    _file("job.json" if data.lstrip()[:1] == b"{" else "job.yaml")(data)


def rules(data: bytes) -> None:
    """Load a rule file, and judge and fix configs by it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if crc32(data) % 8 == 0:
        command({"own.rules": data, "x.yaml": EXAMPLE}, "test", "own.rules")
    try:
        pack = load({"own.rules": text})
    except RulesError as error:
        _has_places(error)
        return
    run = Run(pack, [parse_target("a40:8")])
    for example in (EXAMPLE, SMALL):
        file = read(example, "x.yaml")
        if checked(run, file) is not None:
            # Own rules may contradict each other, which is said; a traceback is not.
            with contextlib.suppress(CfglintError):
                repair(run, file, unsafe=True, least="info", notes=False)


def _has_places(error: RulesError) -> None:
    assert error.complaints
    assert all(complaint.line >= 1 and complaint.column >= 1 for complaint in error.complaints)


def _names(error: CfglintError, file: str) -> None:
    assert str(error).startswith(file)


def settings(data: bytes) -> None:
    """Check a file under settings, in a cfglint.toml or a pyproject.toml."""
    name = "cfglint.toml"
    if crc32(data) % 4 == 0:
        name, data = (
            "pyproject.toml",
            b"[tool.cfglint]\n" + data.replace(b"[frameworks]", b"[tool.cfglint.frameworks]"),
        )
    files = {name: data, "x.yaml": SMALL, "own.rules": b"", "sheet.json": b"{}", "config.json": b"{}"}
    command(files, "fix" if crc32(data) % 3 == 0 else "check", "x.yaml", "--no-detect")


def sheet(data: bytes) -> None:
    """Judge a config for the machine of a hardware sheet."""
    try:
        targets: list[Target] = load_sheet(data.decode("utf-8", "replace"), "sheet.json")
    except HardwareError as error:
        _names(error, "sheet.json")
        return
    run = Run(load(), targets)
    checked(run, read(EXAMPLE, "x.yaml"))
    if crc32(data) % 8 == 0:
        command({"sheet.json": data, "x.yaml": EXAMPLE}, "fit", "x.yaml", "--hardware", "sheet.json")


def model(data: bytes) -> None:
    """Judge a config whose model is described by a config.json."""
    files = {"config.json": data, "x.yaml": EXAMPLE}
    words = ("fit",) if crc32(data) % 2 else ("check", "--verbose")
    command(files, *words, "x.yaml", "--gpu", "a40:8", "--model-config", "config.json")


def log(data: bytes) -> None:
    """Read why memory ran out from a job's log, with and without its config."""
    number = crc32(data)
    form = ("text", "json", "markdown")[number % 3]
    command({"a.log": data}, "diagnose", "a.log", "--format", form)
    if number % 4 == 0:
        command(
            {"a.log": data, "x.yaml": EXAMPLE}, "diagnose", "a.log", "--config", "x.yaml", "--format", form
        )


_HARMLESS = re.compile(r"/|\.\.|--online|--jobs|\x00")


def flags(data: bytes) -> None:
    """Run a command line: a word to a line of the input. Paths stay in the folder, and nothing is started."""
    words = [_HARMLESS.sub("", word) for word in data.decode("utf-8", "replace").split("\n")][:40]
    if not words or words[0] not in COMMANDS:
        words.insert(0, COMMANDS[crc32(data) % len(COMMANDS)])
    if words[0] in ("check", "fix", "fit", "plan"):
        words.append("--no-detect")
    if "*" in words or "." in words[1:]:
        words = [word for word in words if word != "test"] or ["rules"]
    files = {
        "x.yaml": EXAMPLE,
        "sft.yaml": SMALL,
        "out.log": LOG,
        "own.rules": b"",
        "run.sh": b"python a.py --b 1\n",
    }
    command(files, *words, stdin=SMALL)


def layers(data: bytes) -> None:
    """Check and fix a folder of files that name each other."""
    files: dict[str, bytes] = {}
    for number, part in enumerate(re.split(rb"(?m)^" + BETWEEN.encode(), data)):
        first, _, rest = part.partition(b"\n")
        name = (
            re.sub(r"[^\w./-]|\.\.+|^/+", "", first.decode("utf-8", "replace"))[:60].strip("/")
            or f"x{number}.yaml"
        )
        if number and not any(
            name.startswith(f"{other}/") or other.startswith(f"{name}/") for other in files
        ):
            files[name] = rest
    with contextlib.suppress(OSError):
        _write(files)
        paths = list(files)[:1]
        for words in (("check", "."), ("check", *paths), ("fix", "--unsafe", ".")):
            command(files, *words, "--no-detect", "--gpu", "a40:8")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "yaml": _file("c.yaml"),
    "json": _file("c.json"),
    "toml": _file("c.toml"),
    "script": _file("run.sh"),
    "program": _file("train.py"),
    "manifest": manifest,
    "rules": rules,
    "settings": settings,
    "sheet": sheet,
    "model": model,
    "log": log,
    "flags": flags,
    "layers": layers,
}


def tried(kind: str, data: bytes) -> None:
    """Run the target of a kind on one input, in time."""
    deepest = sys.getrecursionlimit()  # loading rules raises it
    try:
        with in_time():
            TARGETS[kind](data)
    finally:
        sys.setrecursionlimit(deepest)
