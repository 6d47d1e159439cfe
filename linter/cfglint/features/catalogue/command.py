"""``cfglint rules`` and ``frameworks``: what cfglint knows."""

from __future__ import annotations

from cfglint.command import options
from cfglint.command.flags import TEXT, Flag, Parser
from cfglint.errors import UsageError
from cfglint.lang.pack import Pack, load, read_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cfglint.command.flags import Args

_SHARED = {flag.name: flag for flag in options.SHARED}
_FLAGS = (
    *(_SHARED[name] for name in ("framework", "set", "rules")),
    Flag(
        "format",
        "one of text, json (default: text)",
        kind=TEXT,
        metavar="FORM",
        choices=("text", "json"),
        group="output",
    ),
    Flag("verbose", "all keys, and the files of no framework", short="v", group="output"),
    _SHARED["no-color"],
)


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the columns as wide as they must be."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _pack(args: Args) -> Pack:
    return load(read_rules(args.rules) if args.rules else None)


def rules(arguments: list[str]) -> int:
    """List the rules: code, level, frameworks, name."""
    parser = Parser("rules", "The rules that cfglint knows.", (options.RULES,))
    pack = _pack(options.merged(parser.parse_args(arguments)))
    rows = [
        (rule.code, rule.level, ", ".join(dict.fromkeys(name for name, _ in rule.scope)) or "all", rule.name)
        for rule in sorted(pack.rules, key=lambda rule: rule.code)
    ]
    print_rows([("code", "level", "for", "name"), *rows])
    return 0


def frameworks(arguments: list[str]) -> int:
    """List the frameworks and how many names each binds; with paths, what each document is taken for."""
    parser = Parser(
        "frameworks",
        "The frameworks that cfglint recognises; with PATH, what each document is taken for, and why.",
        _FLAGS,
        positional=("paths", "PATH", "files or folders, - for stdin (default: list the frameworks)"),
        many=True,
    )
    args = parser.parse_args(arguments)
    form, args.flag, args.format = args.format, args.framework, None
    args = options.merged(args)
    args.format = form  # the settings' form is one of reports
    if args.paths:
        from cfglint.features.catalogue import recognition_command as recognised

        return recognised.tell(args)
    if form == "json":
        raise UsageError("--format json tells of files: cfglint frameworks PATH --format json")
    pack = _pack(args)
    from cfglint.lang.tree import Setting

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
    print_rows([("name", "dialect", "names", "about"), *rows])
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "rules": rules,
    "frameworks": frameworks,
}
