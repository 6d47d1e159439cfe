"""What a command's options come to: targets, rules, a run. Every command derives its run here."""

from __future__ import annotations

import os
import sys

from cfglint import files
from cfglint.api import selector
from cfglint.command import output, settings
from cfglint.command.inputs import second
from cfglint.document.reading import Library
from cfglint.engine.run import Run
from cfglint.errors import UsageError, did_you_mean
from cfglint.hardware.target import Target, parse_target
from cfglint.lang.pack import Pack, load, read_rules
from cfglint.models.registry import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.command.options import Options


def codes(values: Sequence[str]) -> list[str]:
    """Split ``MEM,RUN001`` into codes."""
    return [code.strip().upper() for value in values for code in value.split(",") if code.strip()]


def targets(args: Options) -> tuple[list[Target], list[str]]:
    """Return the targets and what there is to say about them. Raises HardwareError."""
    named = [parse_target(name) for name in args.gpu]
    if args.hardware is not None:
        from cfglint.hardware.host import load_sheet

        try:
            sheet = files.read_text(args.hardware)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"{args.hardware}: no hardware sheet can be read here: {why.lower()}") from None
        named += load_sheet(sheet, args.hardware)
    notices = [notice for target in named for notice in target.notices]
    if not named and not args.no_detect and _driver_in_sight():
        from cfglint.hardware.nvml import detect

        detection = detect()
        named = list(detection.targets)
        if detection.problem is not None:
            notices.append(f"no target: {detection.problem}; name one with --gpu")
        for target in named:
            notices += [f"judged for this machine's {target.gpu}; name another with --gpu", *target.notices]
    unique = {target.name: target for target in named}
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


def by_path(args: Options, pack: Pack) -> settings.ByPath | None:
    """Return the frameworks that the settings name for some files. Raises UsageError."""
    if not args.frameworks:
        return None
    path, globs = args.frameworks
    where = f"{path}: frameworks: "
    return settings.ByPath(path, [(glob, _named(named, pack, where, "")) for glob, named in globs.items()])


def _named(words: str, pack: Pack, where: str, flag: str) -> tuple[str, tuple[float, ...] | None]:
    """Read NAME[==VERSION], which stands at ``where``. Raises UsageError."""
    name, equals, version = words.partition("==")
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
    return load(read_rules(args.rules) if args.rules else None, args.rule)


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
    result = Run(
        rules,
        judged,
        framework=name,
        version=version,
        by_path=by_path(args, rules),
        overrides=args.set,
        selected=chosen,
        guarded=selector([], codes(args.ignore), [rule.code for rule in rules.rules]),
        tables=tables((os.getcwd(),), args.online, tell=None if args.quiet else output.say),
        given={"model_config": (described, "--model-config")} if described is not None else {},
        named=bool(args.gpu or args.hardware),
        library=Library(second),
    )
    result.report.notices += notices
    return result
