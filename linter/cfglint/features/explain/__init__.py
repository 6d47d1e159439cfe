"""``cfglint explain CODE [PATH]``: a rule with its reason and source, or how it comes out on a file."""

from __future__ import annotations

import sys

from cfglint import files
from cfglint.budget import Alarm
from cfglint.command import form, free, inputs, number, options, output, parse, setup
from cfglint.errors import UsageError, did_you_mean

_DEPTH = 4
_FORMS = ("text", "json")
_DEEP = 20_000  # frames: rules nest up to 60 deep, in expressions and in lets, and both are walked


class ExplainOptions(options.Options):
    """The flags of ``explain``."""

    command = "explain"
    about = (
        "Show a rule, its reason and its source; with PATH, its arithmetic on that file, number by number."
    )
    offers = (
        *("gpu", "hardware", "no_detect", "framework", "set", "model_config", "online", "rules", "rule"),
        *("no_color", "depth", "format"),
    )

    words: list[str] = free(
        "CODE [PATH]",
        "a rule's code, such as CFG002 (cfglint rules lists them), and a file",
        many=True,
        counted=True,
        needed=True,
    )
    depth: int | None = number(f"levels of the tree to show (default: {_DEPTH})", "N", group="output")
    format: str | None = form(_FORMS)


def main(arguments: list[str]) -> int:
    """Print a rule: what it demands, why, where that is from; with a file, how it comes out there."""
    args = options.merged(parse(ExplainOptions, arguments))
    if not args.words:
        raise UsageError("cfglint explain needs a CODE; see cfglint explain --help")
    code, *paths = args.words
    if len(paths) > 1:
        raise UsageError(f"cfglint explain takes one CODE and one PATH; {paths[1]!r} is one too many")
    pack = setup.pack(args)
    symbols = pack.symbols()
    rule = symbols.rules.get(code.upper())
    if rule is None:  # said before the machine's own GPU is asked
        near = did_you_mean(code.upper(), symbols.rules) or "; list them: cfglint rules"
        raise UsageError(f"unknown rule code {code!r}{near}")
    if paths:
        return _file(args, rule.code, paths[0])
    from cfglint.lang.show import show_rule, version

    output.tell(f"{rule.code} {rule.name} ({rule.level}), defined at {symbols.where[f'rule {rule.code}']}")
    of = pack.pack_of(rule.code)
    if of is not None:
        output.tell(f"pack {of.name} {version(of.version)}: {of.about}")
    output.tell()
    output.tell(show_rule(rule))
    return 0


def _file(args: ExplainOptions, code: str, path: str) -> int:
    """Print how a rule comes out on a file."""
    run = setup.run(args)
    output.announce(run.report.notices, args)
    if files.is_folder(path):
        raise UsageError(f"{path}: a folder; cfglint explain takes one file")
    file = inputs.named(path, args.boundary)
    with Alarm():
        subjects = run.subjects(file, judge_broken=True)
    if not subjects:
        raise UsageError(inputs.unknown(path, inputs.SKIP))
    for subject in subjects:
        error = subject.document.error
        if error is not None and code != "CFG001":
            line, column = subject.document.file.lines.position(error.offset or 0)
            where = f"{path}:{line}:{column}: {error}"
            raise UsageError(f"{where}; only CFG001 applies to a file that does not parse")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEP))
    from cfglint.features.explain.compute import derivations
    from cfglint.features.explain.page import as_json, as_text

    with Alarm():
        judgements = [judged for subject in subjects for judged in run.judged(subject)]
    derived, depth = derivations(run, judgements, code), args.depth or _DEPTH
    if args.format == "json":
        output.emit(lambda _: as_json(derived, depth), args)
    else:
        output.emit(lambda style: as_text(derived, depth, style), args, "├─└│…")
    return 0
