"""The flags that commands share, and what they come to: targets, rules, a run."""

from __future__ import annotations

import os
import sys

from cfglint import files
from cfglint.api import selector
from cfglint.command import settings
from cfglint.command.flags import LIST, NUMBER, TEXT, Flag
from cfglint.command.inputs import second
from cfglint.command.settings import FAIL_ON
from cfglint.document.reading import Library
from cfglint.engine.run import Run
from cfglint.errors import UsageError, did_you_mean
from cfglint.hardware.target import Target, parse_target
from cfglint.lang.pack import Pack, load, read_rules
from cfglint.models.registry import tables
from cfglint.report import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.command.flags import Args
    from cfglint.command.globs import ByPath

PATHS = ("paths", "PATH", "files or folders, - for stdin (default: .)")
RULES = Flag("rules", "a rule file, or a folder of them", kind=LIST, metavar="PATH", group="rules")
SHARED = (
    Flag(
        "gpu",
        "judge for this GPU: N in each of NODES machines; without :N, as many as the config asks for",
        kind=LIST,
        metavar="NAME[:N[xNODES]]",
        group="hardware",
    ),
    Flag(
        "hardware",
        "judge for a sheet that `cfglint hardware --json` wrote",
        kind=TEXT,
        metavar="FILE",
        group="hardware",
    ),
    Flag("no-detect", "never ask this machine's own GPU", group="hardware"),
    Flag(
        "framework",
        "what the files are for, instead of recognising it",
        kind=TEXT,
        metavar="NAME[==VERSION]",
        group="rules",
    ),
    Flag(
        "set",
        "override a key, as the framework's own command line does",
        kind=LIST,
        metavar="KEY=VALUE",
        group="rules",
    ),
    Flag(
        "model-config",
        "the config.json of the trained model, a file or a folder",
        kind=TEXT,
        metavar="PATH",
        group="model",
    ),
    Flag(
        "online",
        "fetch the config.json of models that are not known from the Hugging Face Hub",
        group="model",
    ),
    RULES,
    Flag("rule", "a rule, like 'gpu.vram<48 -> mem_fraction<=0.5'", kind=LIST, metavar="EXPR", group="rules"),
    Flag("select", "only these codes or prefixes (MEM,RUN001)", kind=LIST, metavar="CODES", group="rules"),
    Flag("ignore", "not these codes or prefixes", kind=LIST, metavar="CODES", group="rules"),
    Flag("skip-unknown", "skip a named file that no framework recognises", group="rules"),
    Flag(
        "format",
        f"one of {', '.join(FORMATS)} (default: text)",
        kind=TEXT,
        metavar="FORM",
        choices=FORMATS,
        group="output",
    ),
    Flag(
        "output-file",
        "write the report here instead of printing it",
        kind=TEXT,
        metavar="FILE",
        group="output",
    ),
    Flag(
        "fail-on",
        f"exit with 1 from this level on: {', '.join(FAIL_ON)} (default: error)",
        kind=TEXT,
        metavar="LEVEL",
        choices=FAIL_ON,
        group="output",
    ),
    Flag("jobs", "share the files among N processes (default: 1)", kind=NUMBER, metavar="N", group="output"),
    Flag("quiet", "print errors only", short="q", group="output"),
    Flag("verbose", "reasons, sources, and all that was left undecided", short="v", group="output"),
    Flag("no-color", "plain text", group="output"),
)


def merged(args: Args) -> Args:
    """Put the settings' values where no flag was given."""
    given = settings.load(os.getcwd())
    if getattr(args, "gpu", None) or getattr(
        args, "hardware", None
    ):  # these take the place of all targets in the settings
        given = {key: value for key, value in given.items() if key not in ("gpu", "hardware")}
    # A flag goes before what the settings say of some files, and that before what they say of all.
    args.frameworks = given.pop("frameworks", None)
    if getattr(args, "framework", None):
        args.frameworks = None
    for key, value in given.items():
        name = key.replace("-", "_")
        if key == "detect":
            args.no_detect = args.no_detect or not value
        elif hasattr(args, name) and getattr(args, name) in (None, False):
            setattr(args, name, value)
    return args


def codes(values: Sequence[str] | None) -> list[str]:
    """Split ``MEM,RUN001`` into codes."""
    return [code.strip().upper() for value in values or () for code in value.split(",") if code.strip()]


def targets(args: Args) -> tuple[list[Target], list[str]]:
    """Return the targets and what there is to say about them. Raises HardwareError."""
    found: list[Target] = [parse_target(name) for name in args.gpu or ()]
    if args.hardware is not None:
        from cfglint.hardware.host import load_sheet

        try:
            text = files.read_text(args.hardware)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"{args.hardware}: no hardware sheet can be read here: {why.lower()}") from None
        found += load_sheet(text, args.hardware)
    notices = [notice for target in found for notice in target.notices]
    if not found and not args.no_detect and _driver_in_sight():
        from cfglint.hardware.nvml import detect

        detection = detect()
        found = list(detection.targets)
        if detection.problem is not None:
            notices.append(f"no target: {detection.problem}; name one with --gpu")
        for target in found:
            notices += [f"judged for this machine's {target.gpu}; name another with --gpu", *target.notices]
    unique = {target.name: target for target in found}
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


def framework(args: Args, pack: Pack) -> tuple[str | None, tuple[float, ...] | None]:
    """Return the framework and version of ``--framework``. Raises UsageError."""
    return (None, None) if args.framework is None else _named(args.framework, pack, "", "--framework ")


def by_path(args: Args, pack: Pack) -> ByPath | None:
    """Return the frameworks that the settings name for some files. Raises UsageError."""
    if not getattr(args, "frameworks", None):
        return None
    from cfglint.command.globs import ByPath

    path, table = args.frameworks
    where = f"{path}: frameworks: "
    return ByPath(path, [(glob, _named(text, pack, where, "")) for glob, text in table.items()])


def _named(text: str, pack: Pack, where: str, flag: str) -> tuple[str, tuple[float, ...] | None]:
    """Read NAME[==VERSION], which stands at ``where``. Raises UsageError."""
    name, equals, version = text.partition("==")
    if name not in pack.frameworks:
        near = did_you_mean(name, pack.frameworks) or f"; known are {', '.join(sorted(pack.frameworks))}"
        raise UsageError(f"{where}no framework is named {name!r}{near}")
    if not equals:
        return name, None
    parts = version.removeprefix("v").split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"{where}{version!r} is no version; write {flag}{name}==1.0.4")
    numbers = [int(part[:9]) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return name, tuple(numbers)


def model_config(args: Args) -> str | None:
    """Return the absolute path of ``--model-config``, None without it. Raises UsageError."""
    path: str | None = args.model_config
    if path is None:
        return None
    if not files.exists(path):
        advice = "--model-config takes a config.json, or the folder that it is in"
        raise UsageError(f"{path}: no such file or folder; {advice}")
    from cfglint.models.hf_config import read

    read(path)  # what is wrong is said once, before any file
    return os.path.abspath(path)


def _complain(line: str) -> None:
    print(f"cfglint: {line}", file=sys.stderr)


def pack(args: Args) -> Pack:
    """Return the shipped rules and those of the flags."""
    return load(read_rules(args.rules) if args.rules else None, args.rule or ())


def run(args: Args, known: Sequence[Target] | None = None) -> Run:
    """Return what the flags come to; ``known`` are the targets where they were already found."""
    found, notices = targets(args) if known is None else (known, [])
    if args.set:
        from cfglint.document.layers import read_override

        for text in args.set:
            read_override(text)  # what is wrong is said once, before any file
    rules = pack(args)
    name, version = framework(args, rules)
    chosen = selector(codes(args.select), codes(args.ignore), [rule.code for rule in rules.rules])
    described = model_config(args)
    if args.online:
        from cfglint.models.hub import ready

        ready()
    result = Run(
        rules,
        found,
        framework=name,
        version=version,
        by_path=by_path(args, rules),
        overrides=args.set or (),
        selected=chosen,
        guarded=selector([], codes(args.ignore), [rule.code for rule in rules.rules]),
        tables=tables((os.getcwd(),), args.online, tell=None if getattr(args, "quiet", False) else _complain),
        given={"model_config": (described, "--model-config")} if described is not None else {},
        named=bool(args.gpu or args.hardware),
        library=Library(second),
    )
    result.report.notices += notices
    return result
