"""Whether a program reads its config where nothing else is on the command line, and stops at anything more.

``if len(sys.argv) == 2 and sys.argv[1].endswith(".yaml"): parser.parse_yaml_file(…)`` is what programs of
transformers' HfArgumentParser do, and what LLaMA-Factory did before it merged what follows the file
(https://github.com/hiyouga/LLaMA-Factory/blob/v0.9.1/src/llamafactory/hparams/parser.py: _parse_args;
https://github.com/hiyouga/LLaMA-Factory/blob/ff6d4d1/src/llamafactory/hparams/parser.py: read_args).
"""

from __future__ import annotations

import re

from cfglint.document.follow import modules_of
from cfglint.document.shell.processes import text_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.reading import Library
    from cfglint.document.tree import Document

_FIRST = re.compile(r"\bsys\.argv\[-?1\]")
_MORE = re.compile(r"\bfrom_cli\(|\bparse_yaml_and_args\(|\bparse_args_and_config\(|\bsys\.argv\[[2-9]")
_WHOLE = re.compile(r"\.parse_(?:yaml|json)_file\(")
_LOADS = re.compile(r"\b(?:safe_load|yaml\.load|json\.loads?)\(")
_PARSER = re.compile(r"Parser\(|\b(?:fire\.Fire|click|typer|tyro)\b")


def reads_alone(document: Document, library: Library) -> bool:
    """Whether the program of a command reads the file that it is given, and takes nothing beside it."""
    named = document.over[0] if len(document.over) == 1 else None
    at = next((i for i, word in enumerate(document.words) if named and word.start == named.start), 0)
    if named is None or not at or document.words[at - 1].spelled.startswith("-"):
        return False  # a flag's file has others beside it
    key = f"{document.file.path}:{text_at(document.root, 'launch', 'program')}:alone"
    if key not in library.programs:
        # The first file that reads the command's first word as a file is the parser.
        found = (text for text in _texts(document, library) if _FIRST.search(text) and _reads(text))
        library.programs[key] = not _MORE.search(next(found, "from_cli("))
    return bool(library.programs[key])


def _reads(text: str) -> bool:
    """Whether code reads a whole file, by a parser of arguments or with no parser of a command beside it."""
    return _WHOLE.search(text) is not None or (_LOADS.search(text) is not None and not _PARSER.search(text))


def _texts(document: Document, library: Library) -> Iterator[str]:
    """Yield the code of a command's program: its modules, or its project's own copy of a framework."""
    if document.program is not None:
        for file in modules_of(library).files(document.program.file):
            yield file.text
    elif (suite := text_at(document.root, "launch", "suite")) and library.project is not None:
        yield from library.project.copy_of(document.file.path, (suite,))
