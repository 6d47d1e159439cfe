"""What settings and flags say, as one typed record that all commands share.

Settings are ``[tool.cfglint]`` of the nearest pyproject.toml, or the nearest cfglint.toml, upwards;
``ByPath`` is what their ``frameworks`` say of each file.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from cfglint import files
from cfglint.boundary import Boundary, upwards
from cfglint.command import (
    LIST,
    NUMBER,
    OPPOSITE,
    PATH,
    SAME,
    SWITCH,
    TABLE,
    TEXT,
    Arguments,
    Flag,
    flags,
    form,
    free_words,
    number,
    offered,
    switch,
    table,
    text,
    texts,
)
from cfglint.errors import UsageError, did_you_mean
from cfglint.findings import LEVELS
from cfglint.record import field
from cfglint.report import FORMATS
from cfglint.text import deep_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar, TypeAlias, TypeVar

    Named: TypeAlias = tuple[str, tuple[float, ...] | None]  # a framework, and its version if one is named
    Own = TypeVar("Own", bound="Options")

PATHS = "files or folders, - for stdin (default: .)"
FAIL_ON = ("error", "warning", "info", "never", "tight", "not-judged", "skipped")


class Options(Arguments):
    """What settings and flags come to. A command's record adds its own, and names those that it offers.

    The order is that of the settings' keys in messages. Of a setting whose flag a command does not offer,
    ``also`` says that it holds all the same.
    """

    also: ClassVar[tuple[str, ...]] = ()

    gpu: list[str] = texts(
        "check for this GPU: N per machine on NODES machines (default: as many as the config asks for)",
        "NAME[:N[xNODES]][,...]",
        group="hardware",
        setting=SAME,
    )
    rules: list[str] = texts(
        "your own rules: a file or a folder of rule files", "PATH", group="rules", setting=PATH
    )
    rule: list[str] = texts(
        "a rule, like 'gpu.vram<48 -> mem_fraction<=0.5'", "EXPR", group="rules", setting=SAME
    )
    select: list[str] = texts(
        "only these codes or prefixes (MEM,RUN001)", "CODES", group="rules", setting=SAME
    )
    ignore: list[str] = texts("all rules but these codes or prefixes", "CODES", group="rules", setting=SAME)
    set: list[str] = texts(
        "override a key, as the framework's own command line does", "KEY=VALUE", group="rules", setting=SAME
    )
    hardware: str | None = text(
        "check for the machine in FILE, written by `cfglint hardware --json`",
        "FILE",
        group="hardware",
        setting=PATH,
    )
    prices: str | None = text(
        "what an hour of each GPU costs, to rank other hardware: a sheet of yours (default: a dated one)",
        "FILE",
        group="hardware",
        setting=PATH,
    )
    lengths: str | None = text(
        "how long the samples of the data are: a sheet, written by `cfglint facts --lengths`",
        "FILE",
        group="model",
        setting=PATH,
    )
    framework: str | None = text(
        "the files' framework (default: recognised from their keys)",
        "NAME[==VERSION]",
        group="rules",
        setting=SAME,
    )
    model_config: str | None = text(
        "config.json of the trained model, or its folder", "PATH", group="model", setting=PATH
    )
    format: str | None = form(FORMATS, setting=SAME)
    fail_on: str | None = text(
        "exit with 1 on a finding of this level or a higher one: error, warning, info, never; "
        "with ,tight also on a job whose memory is tight, with ,not-judged on one that is not judged, "
        "with ,skipped on a file that may be a config and could not be read (default: error)",
        "LEVEL[,tight][,not-judged][,skipped]",
        choices=FAIL_ON,
        several=True,
        group="output",
        setting=SAME,
    )
    fix_level: str | None = text(
        "fix findings of this level and above: info, warning, error (default: warning)",
        "LEVEL",
        choices=LEVELS,
        group="fixes",
        setting=SAME,
    )
    no_detect: bool = switch("do not look for a GPU in this machine", group="hardware", setting=OPPOSITE)
    skip_unknown: bool = switch(
        "skip files that no framework recognises instead of failing", group="rules", setting=SAME
    )
    annotate: bool = switch(
        "add a comment with the old value and the rule to each changed line, and mark those that quote it",
        group="fixes",
        setting=SAME,
    )
    online: bool = switch(
        "download the config.json of unknown models from the Hugging Face Hub",
        group="model",
        setting=SAME,
    )
    jobs: int | None = number("check files in N processes (default: 1)", "N", group="output", setting=SAME)
    frameworks: tuple[str, dict[str, str]] | None = table()
    allow_outside: bool = switch(
        "read and write files outside the repository, where configs, settings and links name them",
        group="rules",
    )
    isolated: bool = switch("ignore the settings of the repository", group="rules")
    settings: str | None = text(
        "settings to use instead of the repository's: a cfglint.toml or pyproject.toml", "FILE", group="rules"
    )
    output_file: str | None = text("write the report to FILE instead of printing it", "FILE", group="output")
    quiet: bool = switch("print errors only", short="q", group="output")
    verbose: bool = switch(
        "also print reasons, sources and every rule that could not be checked", short="v", group="output"
    )
    no_color: bool = switch("no colors", group="output")
    typed: list[str] = field(factory=list)  # what --set says on this command line, without the settings'

    @property
    def boundary(self) -> Boundary:
        """What files of this run may be touched."""
        return _boundary(tuple(free_words(self)), self.allow_outside)


@cache
def _boundary(paths: tuple[str, ...], everywhere: bool) -> Boundary:
    return Boundary(paths, everywhere=everywhere)


# What says which model on which GPU.
MODEL = (
    *("gpu", "hardware", "no_detect", "framework", "set", "rules", "model_config", "lengths", "online"),
    *("isolated", "settings", "allow_outside"),
)
# The flags of `check`, as its help has them; other commands offer some.
SHARED = (
    *(
        "gpu",
        "hardware",
        "no_detect",
        "framework",
        "set",
        "model_config",
        "prices",
        "lengths",
        "online",
        "rules",
        "rule",
    ),
    *("isolated", "settings", "allow_outside"),
    *("select", "ignore", "skip_unknown", "format", "output_file", "fail_on", "jobs"),
    *("quiet", "verbose", "no_color"),
)


# The keys of the settings; schemas/settings.schema.json says the same to editors, which a test compares.
SETTINGS: dict[str, tuple[str, Flag]] = {
    field.replace("_", "-").removeprefix("no-" if flag.setting == OPPOSITE else ""): (field, flag)
    for field, flag in flags(Options)
    if flag.setting
}


_KINDS: dict[str, tuple[Any, str]] = {
    SWITCH: (bool, "true or false"),
    NUMBER: (int, "a whole number, 1 or more"),
    TEXT: (str, "a text"),
}


_MOST_PARTS = 200  # of a key with dots
_MOST_ENTRIES = 200  # of a list or a table: each may cost time for each file
_LONGEST_GLOB = 200


# ── settings ───────────────────────────────────────────────────────────────────────────────────────────────
def find_settings(start: str, boundary: Boundary) -> tuple[str, dict[str, Any]] | None:
    """Return the path and table of the settings that hold in the folder ``start``, None without any.

    Those above the repository do not, nor those in a folder that everybody may write to, such as /tmp.
    """
    start = os.path.abspath(start)
    top = boundary.repository(start)
    for at in upwards(start):
        if at != start and files.is_open_to_all(at):
            continue
        for name in ("cfglint.toml", "pyproject.toml"):
            path = os.path.join(at, name)
            if files.exists(path) and not boundary.holds(path, path):
                if name == "cfglint.toml":
                    raise UsageError(f"{path}: a link leads out of the repository; use --settings FILE")
                continue
            text = _read(path)
            if text is None or (name == "pyproject.toml" and not _may_speak_of_us(text)):
                continue
            table = _table(path, text)
            if table is not None:
                return path, table
        if at == top:
            break
    return None


def _named_settings(path: str) -> tuple[str, dict[str, Any]]:
    """Return the path and table of ``--settings``. Raises UsageError."""
    text = _read(path)
    if text is None:
        raise UsageError(f"{path}: no such file")
    table = _table(path, text)
    if table is None:
        raise UsageError(f"{path}: it has no settings: write them below [tool.cfglint]")
    return path, table


def _may_speak_of_us(text: str) -> bool:
    """Whether parsing a pyproject.toml may be worth it: that costs more than linting a file."""
    squeezed = text.replace(" ", "").replace('"', "")
    return "cfglint" in text and ("tool.cfglint" in squeezed or "[tool]" in squeezed)


def _read(path: str) -> str | None:
    try:
        return files.read_text(path, pipe=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {files.why(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text, which TOML has to be") from None


def _table(path: str, text: str) -> dict[str, Any] | None:
    """Return the settings of a file, None where it has no table for cfglint."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    if deep_key(text, _MOST_PARTS) is not None:
        raise UsageError(f"{path}: it has a key of more than {_MOST_PARTS} parts")
    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    except ValueError:  # a limit of Python's own
        raise UsageError(f"{path}: it has a number with too many digits") from None
    except RecursionError:
        raise UsageError(f"{path}: its lists or tables are nested too deeply") from None
    if os.path.basename(path) == "pyproject.toml":
        tool = table.get("tool")
        table = tool.get("cfglint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: tool.cfglint must be a table: write [tool.cfglint] and the keys below it")
    return table


def placed(path: str, value: str) -> str:
    """Return a path of the settings file as seen from here."""
    return value if os.path.isabs(value) else os.path.relpath(os.path.join(os.path.dirname(path), value))


def settings_of(start: str, boundary: Boundary) -> dict[str, Any]:
    """Return the settings that hold in the folder ``start``; paths in them are relative to their file.

    What they name must be inside the repository, too. What they give for ``frameworks`` is the file that it
    is in, and the table.
    """
    path, given = find_settings(start, boundary) or ("", {})
    for key in SETTINGS.keys() & given.keys():
        if SETTINGS[key][1].setting == PATH:
            _check_inside(path, key, given[key], boundary)
    return {key: _checked(path, key, value) for key, value in given.items()}


def _settings(args: Options) -> dict[str, Any]:
    """Return the settings that the command line names, which may name any file, or the repository's."""
    if args.isolated and args.settings is not None:
        raise UsageError("--isolated ignores all settings: leave it or --settings out")
    if args.isolated:
        return {}
    if args.settings is None:
        return settings_of(os.getcwd(), args.boundary)
    path, given = _named_settings(args.settings)
    return {key: _checked(path, key, value) for key, value in given.items()}


def _check_inside(path: str, key: str, value: Any, boundary: Boundary) -> None:
    for name in [value] if isinstance(value, str) else value if isinstance(value, list) else []:
        if isinstance(name, str) and not boundary.holds(placed(path, name), path):
            advice = f"name it on the command line with --{key}, or add --allow-outside"
            raise UsageError(f"{path}: {key}: {name} leads out of {boundary.root(path)}; {advice}")


def _checked(path: str, key: str, value: Any) -> Any:
    """Return a setting as its option has it. Raises UsageError."""
    if key not in SETTINGS:
        near = did_you_mean(key, SETTINGS) or f"; known: {', '.join(SETTINGS)}"
        raise UsageError(f"{path}: unknown setting {key!r}{near}")
    flag = SETTINGS[key][1]
    if isinstance(value, (list, dict)) and len(value) > _MOST_ENTRIES:
        raise UsageError(f"{path}: {key} has {len(value):,} entries; cfglint takes up to {_MOST_ENTRIES}")
    if flag.kind == LIST:
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list) or not all(isinstance(v, str) for v in several):
            raise UsageError(f"{path}: {key} must be a string or a list of strings")
        return [placed(path, v) for v in several] if flag.setting == PATH else several
    if flag.kind == TABLE:
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise UsageError(
                f'{path}: {key} must be a table of globs and framework names: {{ "old/*.yaml" = "areal" }}'
            )
        if any(len(glob) > _LONGEST_GLOB for glob in value):
            raise UsageError(f"{path}: {key} has a glob of more than {_LONGEST_GLOB} characters")
        return path, value
    kind, wanted = _KINDS[flag.kind]
    if type(value) is not kind or (kind is int and value < 1):
        raise UsageError(f"{path}: {key} must be {wanted}")
    wrong = flag.wrong(value) if flag.choices else None
    if wrong is not None:
        near = did_you_mean(wrong, flag.choices)
        raise UsageError(f"{path}: {key} must be one of {', '.join(flag.choices)}, not {wrong!r}{near}")
    return placed(path, value) if flag.setting == PATH else value


def merged(args: Own) -> Own:
    """Put the settings' values where no flag was given."""
    given = _settings(args)
    args.typed = list(args.set)
    if args.gpu or args.hardware:  # these take the place of all targets in the settings
        given = {key: value for key, value in given.items() if key not in ("gpu", "hardware")}
    if args.framework:  # goes before what settings say of some files, and that before what they say of all
        given.pop("frameworks", None)
    own = dict(flags(type(args)))
    holds = {*(field for field, _, _ in offered(type(args))), *args.also, "frameworks"}
    for key, value in given.items():
        name = SETTINGS[key][0]
        if name in holds and own[name].setting and not getattr(args, name):
            setattr(args, name, not value if own[name].setting == OPPOSITE else value)
    return args


# ── frameworks by path ─────────────────────────────────────────────────────────────────────────────────────
class ByPath:
    """The frameworks of files by globs, relative to the settings' folder; the last that fits wins."""

    def __init__(self, settings: str, named: Sequence[tuple[str, Named]]) -> None:
        from cfglint.command.globs import Glob  # few settings have globs

        self.settings = settings
        self._folder = os.path.dirname(os.path.abspath(settings))
        self._named = [(glob, Glob(glob.removeprefix("./")), meant) for glob, meant in reversed(named)]

    def glob_of(self, path: str) -> tuple[str, Named] | None:
        """Return the glob that holds for a file, and what it names; None where none does."""
        if path.startswith("<"):  # stdin is nowhere
            return None
        try:
            relative = os.path.relpath(path, self._folder).replace(os.sep, "/")
        except ValueError:  # another drive
            return None
        return next(((glob, meant) for glob, like, meant in self._named if like.matches(relative)), None)

    def __call__(self, path: str) -> Named | None:
        """Return the framework that the settings name for ``path``, None where no glob matches."""
        _, named = self.glob_of(path) or ("", None)
        return named
