"""``cfglint rules``, ``frameworks``, ``gpus``, ``hardware`` and ``schema``: what cfglint knows."""

from __future__ import annotations

import sys

from cfglint import files
from cfglint.budget import BUDGET, Alarm
from cfglint.command import Arguments, form, free, inputs, options, output, parse, setup, switch
from cfglint.errors import HardwareError, OverBudgetError, UsageError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.tree import File
    from cfglint.engine.run import Run
    from cfglint.features.catalogue.recognition import Recognition

_SCHEMA = ".schema.json"


class RulesOptions(options.Options):
    """The flags of ``rules``."""

    command = "rules"
    about = "List the rules."
    offers = ("rules",)


class FrameworksOptions(options.Options):
    """The flags of ``frameworks``."""

    command = "frameworks"
    about = "List the frameworks; with PATH, say which framework each document belongs to, and why."
    offers = ("framework", "set", "rules", "format", "verbose", "no_color")

    paths: list[str] = free("PATH", "files or folders, - for stdin (default: list the frameworks)", many=True)
    format: str | None = form(("text", "json"))
    verbose: bool = switch(
        "also list all keys, and the files that no framework recognises", short="v", group="output"
    )


class GpusArguments(Arguments):
    """The arguments of ``gpus``."""

    command = "gpus"
    about = "List the GPUs in the catalogue; * marks an estimate."

    name: str | None = free("NAME", "show one GPU in full")


class HardwareArguments(Arguments):
    """The arguments of ``hardware``."""

    command = "hardware"
    about = "Show this machine's GPUs, as NVML reports them."

    json: bool = switch("print a hardware sheet, for --hardware FILE")


class SchemaArguments(Arguments):
    """The arguments of ``schema``."""

    command = "schema"
    about = "Print the JSON Schema of a framework's keys, or of a file that cfglint reads or writes."

    list: bool = switch("list the names and what each schema describes")
    name: str | None = free("NAME", "a framework, settings, hardware, report, …")


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the columns as wide as they must be."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        output.tell("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


# ── rules and frameworks ───────────────────────────────────────────────────────────────────────────────────
def rules(arguments: list[str]) -> int:
    """List the rules: code, level, frameworks, name, and the pack where some are of one."""
    args = options.merged(parse(RulesOptions, arguments))
    pack = setup.pack(args)
    rows = [["code", "level", "for", "name"]]
    rows += [
        [rule.code, rule.level, ", ".join(dict.fromkeys(name for name, _ in rule.scope)) or "all", rule.name]
        for rule in sorted(pack.rules, key=lambda rule: rule.code)
    ]
    if args.rules and pack.symbols().packs:
        from cfglint.lang.show import version

        packs = [pack.pack_of(code) for code, *_ in rows[1:]]
        cells = ["pack", *("" if of is None else f"{of.name} {version(of.version)}" for of in packs)]
        rows = [[*row, cell] for row, cell in zip(rows, cells, strict=True)]
    _print_rows(rows)
    return 0


def frameworks(arguments: list[str]) -> int:
    """List the frameworks and how many names each binds; with paths, what each document is taken for."""
    args = parse(FrameworksOptions, arguments)
    by = "flag" if args.framework else "settings"
    args = options.merged(args)
    if args.paths:
        return _recognitions(args, by)
    if args.format == "json":
        raise UsageError("--format json needs a PATH: cfglint frameworks PATH --format json")
    from cfglint.lang.tree import Setting

    pack = setup.pack(args)
    about = {
        name: next(
            (e.value for n in nodes for e in n.entries if isinstance(e, Setting) and e.key == "about"), ""
        )
        for name, nodes in pack.symbols().frameworks.items()
    }
    rows = [
        (name, framework["dialect"], str(len(framework["bind"])), about.get(name, ""))
        for name, framework in sorted(pack.frameworks.items())
    ]
    _print_rows([("name", "dialect", "names", "about"), *rows])
    return 0


def _recognitions(args: FrameworksOptions, by: str) -> int:
    """Print what files are taken for; 1 where a named one is for no framework, 2 where one cannot be read."""
    from cfglint.features.catalogue.recognition import page
    from cfglint.report.encode import encode

    run = setup.run(args, ())
    wrong: list[str] = []
    shown: list[Recognition] = []
    unknown, hidden = False, 0
    for path, named in list(inputs.find(args.paths, args.boundary, wrong.append)):
        try:
            with BUDGET, Alarm():
                file = inputs.load(path, args.boundary, named=named)[0]
                documents = _documents(run, file, by, near=named or args.verbose)
        except inputs.Skipped:
            documents = []
        except OverBudgetError as error:
            wrong.append(f"{path}: {error}")
            continue
        except UsageError as error:
            wrong.append(str(error))
            continue
        if all(document.framework is None for document in documents):
            unknown = unknown or named
            if not named and not args.verbose:
                hidden += 1
                continue
            shown += documents
        else:  # of a script, the commands that train
            shown += [document for document in documents if document.framework is not None or args.verbose]
    output.complain(wrong)
    if args.format == "json" or shown or hidden or not wrong:
        output.emit_page(
            args,
            lambda _: page(shown, hidden, verbose=args.verbose),
            lambda: {"version": 1, "documents": encode(shown)},
        )
    return 2 if wrong else int(unknown)


def _documents(run: Run, file: File, by: str, *, near: bool) -> list[Recognition]:
    from cfglint.features.catalogue.recognition import recognition

    run.look_near(file.path)
    framework, _ = run.named_for(file.path)
    match = run.by_path.glob_of(file.path) if isinstance(run.by_path, options.ByPath) else None
    by, glob = ("settings", match[0]) if match is not None else (by, None)
    return [recognition(run, document, framework, by, glob, near=near) for document in file.documents]


# ── GPUs ───────────────────────────────────────────────────────────────────────────────────────────────────
def hardware(arguments: list[str]) -> int:
    """Print this machine's GPUs, as text or as a sheet to commit."""
    args = parse(HardwareArguments, arguments)
    from cfglint.hardware.nvml import detect

    detection = detect()
    if detection.host is None or detection.problem is not None:
        raise HardwareError(detection.problem or "NVML reports nothing here")
    if args.json:
        import json

        from cfglint.hardware.host import to_sheet

        output.tell(json.dumps(to_sheet(detection.host), indent=2))
        return 0
    output.tell(
        f"driver {detection.host.driver or 'not reported'}, CUDA {detection.host.cuda or 'not reported'}"
    )
    for device in detection.host.units():
        usable = "memory not reported" if device.usable_mib is None else f"{_gib(device.usable_mib)} usable"
        free_now = "" if device.free_mib is None else f", {_gib(device.free_mib)} free"
        capability = f"compute capability {device.capability or 'not reported'}"
        output.tell(f"{device.index}: {device.name}, {usable}{free_now}, {capability}")
    for target in detection.targets:
        output.tell(f"target: {target.name}")
        for notice in target.notices:
            output.say(notice)
    return 0


def _gib(mib: int) -> str:
    return f"{mib / 1024:.2f} GiB"


def gpus(arguments: list[str]) -> int:
    """Print the catalogue, or one entry with every figure's source."""
    args = parse(GpusArguments, arguments)
    if args.name is not None:
        return _gpu(args.name)
    from cfglint.hardware.catalogue import gpus as catalogue

    rows = [("name", "product", "usable", "capability", "bf16", "fp8")]
    for gpu in catalogue():
        estimated = "*" if "usable_mib" in gpu.estimated else ""
        usable = "not published" if gpu.usable_mib is None else f"{_gib(gpu.usable_mib)}{estimated}"
        bf16, fp8 = ("yes" if kind in gpu.formats else "no" for kind in ("bf16", "fp8"))
        rows.append((gpu.name, gpu.product, usable, str(gpu.capability or ""), bf16, fp8))
    _print_rows(rows)
    return 0


def _gpu(name: str) -> int:
    from cfglint.engine.describe import Evaluator, show_value
    from cfglint.hardware.target import parse_target
    from cfglint.lang.pack import load

    target = parse_target(name)
    output.tell(f"{target.name}: {target.gpu}")
    for notice in target.notices:
        output.tell(f"  {notice}")
    evaluator = Evaluator(load().symbols())
    for fact, (value, source) in sorted(target.facts.items()):
        output.tell(f"  {fact:<18} {show_value(value, evaluator.type_of(fact)):<16} {source}")
    return 0


# ── schemas ────────────────────────────────────────────────────────────────────────────────────────────────
def schema(arguments: list[str]) -> int:
    """Print a schema, or the names of all."""
    args = parse(SchemaArguments, arguments)
    schemas = {
        path.rpartition("/")[2].removesuffix(_SCHEMA): (path, data)
        for path, data in files.shipped_contents("schemas", _SCHEMA).items()
    }
    if args.list:
        names = sorted(schemas, key=lambda name: (not schemas[name][0].startswith("frameworks/"), name))
        _print_rows([("name", "keys", "of"), *(_schema_row(name, schemas[name][1]) for name in names)])
        return 0
    if args.name is None:
        raise UsageError("which schema? cfglint schema NAME; cfglint schema --list shows the names")
    if args.name not in schemas:
        near = did_you_mean(args.name, schemas) or "; cfglint schema --list shows the names"
        raise UsageError(f"unknown schema {args.name!r}{near}")
    sys.stdout.write(schemas[args.name][1].decode("utf-8"))
    return 0


def _schema_row(name: str, data: bytes) -> tuple[str, str, str]:
    import json

    content = json.loads(data)
    objects = [content, *content.get("$defs", {}).values()]
    keys = sum(len(part.get("properties", ())) for part in objects)
    return name, str(keys), str(content.get("title", ""))
