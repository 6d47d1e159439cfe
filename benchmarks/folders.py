"""The configs of folders, read as the command reads them; what it would pass over is passed over."""

from __future__ import annotations

from cfglint.boundary import Boundary
from cfglint.command import inputs, options, parse, setup
from cfglint.errors import OverBudgetError, UsageError
from cfglint.features import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.tree import File
    from cfglint.engine.run import Run


def paths_of(folders: list[str]) -> list[str]:
    """Return the paths of the files in folders, sorted."""
    return sorted(path for path, _ in inputs.find(folders, Boundary(folders), print))


def run_of(folder: str, gpu: str) -> Run:
    """Return a run as ``cfglint check FOLDER --gpu GPU`` makes it: what configs build on is followed."""
    args = options.merged(parse(check.CheckOptions, [folder, "--no-detect", "--gpu", gpu]))
    return setup.run(args)


def read(folders: list[str], paths: Iterable[str]) -> Iterator[tuple[str, File]]:
    """Yield what of the files is a config or a script, parsed."""
    boundary = Boundary(folders)
    for path in paths:
        try:
            yield path, inputs.load(path, boundary, named=False)[0]
        except (OverBudgetError, UsageError, inputs.Skipped):
            continue
