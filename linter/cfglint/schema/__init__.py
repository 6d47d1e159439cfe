"""What a framework's JSON Schema finds wrong with the keys and values of a document."""

from __future__ import annotations

from cfglint.document.scalars import SHELL
from cfglint.schema.judge import problems
from cfglint.schema.table import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.view import View
    from cfglint.schema.judge import Mistake, Problem
    from cfglint.schema.table import Table

BY_SCHEMA = ("refused_keys", "ignored_keys", "refused_values", "doubtful_values", "misfits")


def mistakes(framework: str | None, view: View) -> dict[str, list[Mistake]]:
    """Return what a framework's schema finds wrong with a document, by the lists of `BY_SCHEMA`.

    Nothing where no schema is shipped for it.
    """
    noted: dict[str, list[Mistake]] | None = view.memo.get("schema")
    if noted is None:
        schema = None if framework is None else table(framework)
        wrong = [] if schema is None else _problems_of(schema, view)
        noted = {}
        if schema is not None and wrong:
            from cfglint.schema import wording

            noted = wording.noted(wrong, schema, view)
        view.memo["schema"] = noted
    return noted


def _problems_of(schema: Table, view: View) -> list[Problem]:
    """Return what is wrong with a document; of a launch script's flags, another program's may be its own."""
    if view.dialect is not SHELL:
        return problems(schema, view)
    if not _starts_own_program(schema, view):
        return []
    wrong = problems(schema, view, skip=("launch",))
    return [problem for problem in wrong if problem.what != "key" or not _begins_another(problem)]


def _starts_own_program(schema: Table, view: View) -> bool:
    from fnmatch import fnmatchcase

    started = [view.get(("launch", key)) for key in ("program", "module")]
    return any(
        isinstance(program, str) and fnmatchcase(program, pattern)
        for program in started
        for pattern in schema.programs
    )


def _begins_another(problem: Problem) -> bool:
    """Whether argparse takes a flag for the one that it begins."""
    name = str(problem.path[-1])
    return any(key.startswith(name) for key in problem.node[3] or ())
