"""The defaults of a framework whose own program lies in the repository, perhaps older or changed."""

from __future__ import annotations

from cfglint.document.tree import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from cfglint.document.project import Project
    from cfglint.document.view import View

    Paths: TypeAlias = tuple[tuple[str | int, ...], ...]


def default_of(view: View | None, default: Callable[[], object], paths: Paths, blank: object) -> object:
    """Return the release's default for keys where the program surely has the same, else ``blank``."""
    value = default() if _left_out(view, paths) or _has_same(view, paths, default) else ABSENT
    if value is not ABSENT:
        return value
    value = default() if _lacks(view, paths) else blank
    return value if _is_off(value) else blank


def _has_same(view: View | None, paths: Paths, default: Callable[[], object]) -> bool:
    """Whether the classes of the framework's copy in the repository have the release's default for a flag."""
    document = view.document if view is not None else None
    if document is None or not document.vendored or document.default_in is None or len(paths) != 1:
        return False
    name = ".".join(map(str, paths[0]))
    if document.program is not None and name in document.program.program.flags:
        return False  # the program's own counts
    worth, value = document.default_in(name), default()
    return type(worth) is type(value) and worth == value


def default_in(project: Project, path: str, homes: tuple[str, ...], name: str) -> object:
    """Return the default of a field in the project's copy of a framework; ABSENT for none, or no literal."""
    from cfglint.document.python.declared import field_defaults  # few projects hold their framework

    file, text = project.home_of(path, homes)
    if file not in project.defaults:
        project.defaults[file] = field_defaults(text)
    return project.defaults[file].get(name, ABSENT)


def _is_off(value: object) -> bool:
    """Whether a default is what a program without the key does: nothing, one of something, plain Adam."""
    return (
        value is False
        or value in ("none", "adam", "adamw")
        or (type(value) in (int, float) and value in (0, 1))
    )


def _left_out(view: View | None, paths: Paths) -> bool:
    """Whether the framework's own program, as the repository has it, gives flags no default of their own."""
    document = view.document if view is not None else None
    if document is None or not document.vendored or document.program is None:
        return False
    flags = document.program.program.flags
    named = [flags[name] for path in paths if (name := ".".join(map(str, path))) in flags]
    return bool(named) and all(getattr(flag.default, "value", ABSENT) is None for flag in named)


def _lacks(view: View | None, paths: Paths) -> bool:
    """Whether the repository's copy of the program, all of whose flags are known, has none of some.

    It is older then, or cut down: what they would switch on is not in it.
    """
    document = view.document if view is not None else None
    if document is None or not document.vendored or document.program is None or not paths:
        return False
    program = document.program.program
    names = {".".join(map(str, path)) for path in paths}
    return program.parsers == {"whole"} and names.isdisjoint(program.flags)
