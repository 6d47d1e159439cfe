"""From options to targets, rules and a run; and files shared among processes."""

from __future__ import annotations

import os
import sys

from cfglint import files
from cfglint.api import selector
from cfglint.boundary import upwards
from cfglint.budget import BUDGET, Alarm
from cfglint.command import output
from cfglint.command.inputs import Skipped, folders, launched_by, second, telling
from cfglint.command.options import ByPath, Options
from cfglint.document.project import Project
from cfglint.document.reading import Library, unread
from cfglint.document.tree import SCRIPTS
from cfglint.engine.run import Launches, Run
from cfglint.errors import CfglintError, OverBudgetError, UsageError, bug, did_you_mean
from cfglint.findings import Report
from cfglint.hardware.target import Target, parse_target
from cfglint.lang.pack import Pack, load, read_rules
from cfglint.models.registry import Checkpoints, Models
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias, TypeVar

    from cfglint.boundary import Boundary
    from cfglint.document.tree import Document

    Own = TypeVar("Own", bound=Options)
    # Judges one file, named or found in a folder, and completes the outcome; the report is the run's own.
    Task: TypeAlias = Callable[[Run, Own, str, bool, "Outcome"], None]

_MOST_TARGETS = 200
_LOCKS = ("uv.", "poetry.", "pdm.")
_PINNING = (*_LOCKS, "requirements", "constraints", "pyproject.", "environment", "conda", "env.")
_CONDA = tuple(f"{sign}env{end}" for sign in "_.-" for end in (".yml", ".yaml"))  # train_env.yml
_TORCH, _PROJECTS = "torch", frozenset(("pyproject.toml", "setup.py", "setup.cfg"))
_GUIDE = "readme"
_PARTS = ("requirements", "setup")  # folders of a project that may have them
_MOST_PINS = 40  # files of a folder that are looked into
_CHUNK = 8  # files that a process takes at once


def codes(values: Sequence[str]) -> list[str]:
    """Split ``MEM,RUN001`` into codes."""
    return [code.strip().upper() for value in values for code in value.split(",") if code.strip()]


def gpu_names(values: Sequence[str]) -> list[str]:
    """Split ``a40,h100-sxm:8`` into names."""
    return [name for value in values for name in value.split(",")]


def targets(args: Options) -> tuple[list[Target], list[str]]:
    """Return the targets and notes on them. Raises HardwareError."""
    named = [parse_target(name) for name in gpu_names(args.gpu)]
    if args.hardware is not None:
        from cfglint.hardware.host import load_sheet

        try:
            sheet = files.read_text(args.hardware, pipe=True)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"{args.hardware}: cannot read the hardware sheet: {why.lower()}") from None
        named += load_sheet(sheet, args.hardware)
    notices = [notice for target in named for notice in target.notices]
    if not named and not args.no_detect and _driver_in_sight():
        from cfglint.hardware.nvml import detect

        detection = detect()
        named = list(detection.targets)
        if detection.problem is not None:
            notices.append(f"no GPU found: {detection.problem}; name one with --gpu")
        for target in named:
            notices += [
                f"checking for this machine's {target.gpu}; choose another with --gpu",
                *target.notices,
            ]
    unique = {target.name: target for target in named}
    if len(unique) > _MOST_TARGETS:
        raise UsageError(f"{len(unique):,} targets to check for; cfglint takes up to {_MOST_TARGETS} at once")
    return list(unique.values()), list(dict.fromkeys(notices))


def _driver_in_sight() -> bool:
    """Whether an NVIDIA driver seems to be here; asking NVML itself costs a third of a clean run."""
    if sys.platform == "win32":
        return True
    places = ["/proc/driver/nvidia/version", "/dev/nvidiactl", "/usr/lib/wsl/lib/libnvidia-ml.so.1"]
    places += [
        os.path.join(p, "libnvidia-ml.so.1") for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p
    ]
    return any(files.exists(place) for place in places)


def framework(args: Options, pack: Pack) -> tuple[str | None, tuple[float, ...] | None]:
    """Return the framework and version of ``--framework``. Raises UsageError."""
    return (None, None) if args.framework is None else _named(args.framework, pack, "", "--framework ")


def by_path(args: Options, pack: Pack) -> ByPath | None:
    """Return the frameworks that the settings name for some files. Raises UsageError."""
    if not args.frameworks:
        return None
    path, globs = args.frameworks
    where = f"{path}: frameworks: "
    return ByPath(path, [(glob, _named(named, pack, where, "")) for glob, named in globs.items()])


def _named(words: str, pack: Pack, where: str, flag: str) -> tuple[str, tuple[float, ...] | None]:
    """Read NAME[==VERSION], which is at ``where``. Raises UsageError."""
    name, equals, version = words.partition("==")
    if name not in pack.frameworks:
        near = did_you_mean(name, pack.frameworks) or f"; known: {', '.join(sorted(pack.frameworks))}"
        raise UsageError(f"{where}unknown framework {name!r}{near}")
    if not equals:
        return name, None
    parts = version.removeprefix("v").split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"{where}{version!r} is not a version; write {flag}{name}==1.0.4")
    numbers = [int(part[:9]) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return name, tuple(numbers)


def model_config(args: Options) -> str | None:
    """Return the absolute path of ``--model-config``, None without it. Raises UsageError."""
    path = args.model_config
    if path is None:
        return None
    if not files.exists(path):
        advice = "--model-config takes a config.json, or the folder that it is in"
        raise UsageError(f"{path}: no such file or folder; {advice}")
    from cfglint.models.hf_config import read

    read(path)  # what is wrong is said once, before any file
    return os.path.abspath(path)


def pack(args: Options) -> Pack:
    """Return the shipped rules and those of the flags."""
    if not args.rules and not args.rule:
        return load()
    with Alarm("loading these rules", ""):
        return load(read_rules(args.rules, args.boundary), args.rule)


def run(args: Options, fixed: Sequence[Target] | None = None) -> Run:
    """Return what the flags come to; ``fixed`` are the targets where they were already found."""
    judged, notices = targets(args) if fixed is None else (fixed, [])
    if args.set:
        from cfglint.document.layers import read_override

        for override in args.set:
            read_override(override)  # what is wrong is said once, before any file
    rules = pack(args)
    name, version = framework(args, rules)
    chosen = selector(codes(args.select), codes(args.ignore), [rule.code for rule in rules.rules])
    described = model_config(args)
    if args.online:
        from cfglint.models.hf_config import ready

        ready()
    given: dict[str, tuple[object, str]] = {}
    if described is not None:
        given["model_config"] = described, "--model-config"
    if args.lengths is not None:
        from cfglint.command.lengths import lengths

        given.update(lengths(args.lengths, rules))
    prices = None
    if args.prices is not None:
        from cfglint.hardware.prices import own

        prices = own(args.prices)
    result = Run(
        rules,
        judged,
        framework=name,
        version=version,
        by_path=by_path(args, rules),
        overrides=args.set,
        typed=getattr(args, "typed", ()),
        selected=chosen,
        guarded=selector([], codes(args.ignore), [rule.code for rule in rules.rules]),
        tables={
            "models": Models((os.getcwd(),), online=args.online, tell=None if args.quiet else output.say),
            "checkpoints": Checkpoints(args.boundary, (os.getcwd(),)),
        },
        given=given,
        prices=prices,
        named=bool(args.gpu or args.hardware),
        library=Library(
            second,
            args.boundary,
            folders,
            Project(second, args.boundary, telling),
            getattr(args, "typed", ()),
        ),
        pinned=Pins(args.boundary),
    )
    result.report.notices += notices
    return result


# ── versions that files beside a config pin ────────────────────────────────────────────────────────────────
_INSTALLS = ("pip install", "git clone")


class Pins:
    """The versions of frameworks, by the files in a document's folder and those above it in its repository.

    The nearest folder that pins a framework decides. Most files of a run lie in a few folders.
    """

    def __init__(self, boundary: Boundary) -> None:
        self.boundary = boundary
        self._folders: dict[str, tuple[list[str], list[str]]] = {}
        self._found: dict[tuple[str, str], tuple[tuple[float, ...] | None, str] | None] = {}

    def __call__(self, document: Document, framework: str) -> tuple[tuple[float, ...] | None, str] | None:
        """Return the version of a document's framework, and where it is pinned; None where it is not.

        The version is None where the framework's package is here, but does not say which it is.
        """
        file = document.file
        if document.format == "shell" and file.format != "shell" and "image" in file.text:
            from cfglint.command.pins import of_image

            tagged = of_image(file.text, framework)
            if tagged is not None:
                return tagged[0], f"{file.path}:{tagged[1]}"
        if file.format in ("shell", "notebook") and any(each in file.text for each in _INSTALLS):
            from cfglint.command.pins import of_installs

            installed = of_installs(file.text, framework)
            if installed is not None:
                return installed[0], f"{file.path}:{installed[1]}"
        folder = os.path.dirname(os.path.abspath(file.path))
        key = folder, framework
        if key not in self._found:
            self._found[key] = self._near(folder, framework, file.path)
        return self._found[key]

    def _near(self, folder: str, framework: str, by: str) -> tuple[tuple[float, ...] | None, str] | None:
        top = self.boundary.root(by)
        for at in upwards(folder):
            below, names = self._listed(at)
            parts = [os.path.join(at, each) for each in _PARTS if each in below]
            found = next(filter(None, (self._inside(each, framework, by) for each in (at, *parts))), None)
            if found is not None:
                return found
            if at == top or (framework == _TORCH and not _PROJECTS.isdisjoint(names)):
                break  # what a project lies in does not pin its PyTorch
        return None

    def _inside(self, at: str, framework: str, by: str) -> tuple[tuple[float, ...] | None, str] | None:
        """Return the version that the files of one folder pin, and where."""
        below, names = self._listed(at)
        here = framework.partition("/")[0] in below or "src" in below
        if not names and not here:
            return None
        from cfglint.command.pins import of_package, pinned  # few folders have such files

        read = self._reader(at, by)
        found = (of_package(framework, read) if here else None) or pinned(names, framework, read)
        if found is None:
            return None
        version, name, line = found
        return version, f"{os.path.relpath(os.path.join(at, name))}:{line}"

    def _listed(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the folders in one, and its files with the names of those that pin versions."""
        if folder not in self._folders:
            _, below, names, _ = next(files.walk(folder, lambda _: None), ("", [], [], []))
            marks = (".lock", ".txt", ".toml", ".yml", ".yaml")
            likely = [
                n
                for n in names
                if (n.startswith(_PINNING) and n.endswith(marks))
                or n.endswith(_CONDA)
                or "ockerfile" in n
                or n in _PROJECTS
                or (n.lower().startswith(_GUIDE) and n.endswith(".md"))
            ]
            self._folders[folder] = below, sorted(likely)[:_MOST_PINS]
        return self._folders[folder]

    def _reader(self, folder: str, by: str) -> Callable[[str], str | None]:
        def read(name: str) -> str | None:
            path = os.path.join(folder, name)
            data = second(path) if self.boundary.holds(path, by) else None
            return None if data is None else data.decode("utf-8", "replace")

        return read


# ── one run over many files (``--jobs``): the same results in the same order as one process gives ────────
class Outcome(Record):
    """What came of one file: what was found, and ``error``, the line to print where it could not be judged.

    ``content``, ``applied`` and ``diff`` are what ``fix`` makes of it: the new bytes (None: leave the file
    alone), a line for each fix, and the patch. ``before`` is what was read. ``skipped`` says why it was not
    judged (inputs.Skipped), ``in_part`` why a part of it was not.
    """

    path: str
    error: str | None = None
    report: Report = field(factory=Report)
    fixes: int = 0
    skipped: str | None = None
    in_part: str = ""
    before: bytes | None = None
    content: bytes | None = None
    applied: list[str] = field(factory=list)
    diff: str = ""


def outcomes(run: Run, args: Own, files: Sequence[tuple[str, bool]], task: Task[Own]) -> Iterator[Outcome]:
    """Yield what ``task`` makes of each file, in order; then gather what its report has in the run's."""
    run.launches = _launches(run, args, files)
    run.alone = len(files) == 1 and files[0][1]
    for outcome in _each(run, args, files, task):
        yield outcome
        _gather(run, outcome)
    run.refuse()


def _launches(run: Run, args: Own, files: Sequence[tuple[str, bool]]) -> Launches:
    """Return which config files of folders the scripts among the files launch, and with which flags."""
    scripts = [each for each in files if each[0].lower().endswith(SCRIPTS)]
    stems = {os.path.splitext(os.path.basename(path))[0] for path, named in files if not named}
    parts: set[str] = set()
    beside: dict[str, frozenset[str]] = {}
    if not scripts or len(scripts) == len(files):
        return Launches()

    def task(run: Run, args: Own, path: str, named: bool, _outcome: Outcome) -> None:
        words = set(re.findall(rb"[\w-]+", second(path) or b""))
        if not any(stem.encode() in words for stem in stems):
            return
        for config, flags in launched_by(run, path, args.boundary, named=named):
            if flags is None:
                parts.add(config)
            else:
                beside[config] = beside.get(config, flags) | flags

    import re

    for path, named in scripts:
        _apart(run, args, path, named, task)
    return Launches(frozenset(parts) - {os.path.abspath(path) for path, named in files if named}, beside)


def _each(run: Run, args: Own, files: Sequence[tuple[str, bool]], task: Task[Own]) -> Iterator[Outcome]:
    # Only this process has the user's stdin.
    jobs = args.jobs or 1
    if jobs == 1 or len(files) < 2 or any(path == "-" for path, _ in files):
        for path, named in files:
            yield _apart(run, args, path, named, task)
        return
    from concurrent.futures import ProcessPoolExecutor

    os.environ.setdefault("PYTHONSAFEPATH", "1")  # a worker imports nothing from the working folder
    # There is nothing to do for more, and no core that does it; settings may ask for any number.
    processes = min(jobs, -(-len(files) // _CHUNK), os.cpu_count() or 1)
    with ProcessPoolExecutor(
        processes, initializer=_begin, initargs=(args, run.targets, run.launches, task)
    ) as pool:
        yield from pool.map(_one, files, chunksize=_CHUNK)


def _apart(run: Run, args: Own, path: str, named: bool, task: Task[Own]) -> Outcome:
    """Judge one file into a report of its own, its fixes numbered from 1; what fails, fails alone."""
    outcome = Outcome(path)
    whole, fixes = run.report, run.fixes
    run.report, run.fixes = outcome.report, 0
    try:
        with BUDGET, Alarm():
            task(run, args, path, named, outcome)
    except OverBudgetError as why:
        run.overran(unread(b"", path, str(why)), str(why), asked=named)
    except Skipped as why:
        outcome.skipped = why.args[0]
    except CfglintError as error:
        outcome.error = str(error)
    except Exception as error:
        if "CFGLINT_TRACEBACK" in os.environ:
            raise
        outcome.error = f"{path}: {bug(error)}"
    outcome.fixes = run.fixes
    run.report, run.fixes = whole, fixes
    return outcome


def _gather(run: Run, outcome: Outcome) -> None:
    report, part = run.report, outcome.report
    fixes = (fix for finding in part.findings for fix in (finding.fix, *finding.alternatives))
    for fix in {id(fix): fix for fix in fixes if fix is not None and fix.number}.values():
        fix.number += run.fixes
    run.fixes += outcome.fixes
    names = {target.name for target in report.targets}
    report.targets += [target for target in part.targets if target.name not in names]
    report.findings += part.findings
    report.undecided += part.undecided
    report.keys.update(part.keys)
    report.texts.update(part.texts)
    report.files += part.files
    report.jobs += part.jobs
    report.judged += part.judged
    report.taken |= part.taken
    report.seen |= part.seen
    if report.unread is not None:
        report.unread += part.unread or 0
    if outcome.skipped is not None:
        part.pass_over(outcome.skipped, outcome.path)
    elif outcome.in_part:
        part.unjudged.setdefault(outcome.in_part, []).append(outcome.path)
    report.skipped += part.skipped
    for reason, paths in part.unjudged.items():
        report.unjudged.setdefault(reason, []).extend(paths)


_state: list[tuple[Run, Any, Task[Any]]] = []


def _begin(args: Own, targets: Sequence[Target], launches: Launches, task: Task[Own]) -> None:
    """Set a worker up. The main process has said all that there is to say about flags and targets."""
    _state[:] = [(run(args, targets), args, task)]
    _state[0][0].launches = launches
    _state[0][0].alone = False


def _one(file: tuple[str, bool]) -> Outcome:
    run, args, task = _state[0]
    return _apart(run, args, *file, task)
