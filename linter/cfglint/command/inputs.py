"""Which configs the paths of a command line mean, and what is in them."""

from __future__ import annotations

import errno
import os
from functools import partial

from cfglint import files
from cfglint.boundary import inside
from cfglint.budget import Alarm
from cfglint.command.output import say
from cfglint.document.candidates import may_be_settings, may_launch, may_return_configs, may_submit, may_train
from cfglint.document.project import TELLING
from cfglint.document.reading import Library, format_of, parsed, read
from cfglint.document.reading import unread as not_parsed
from cfglint.document.tree import MAX_BYTES, PROGRAMS, SCRIPTS, File
from cfglint.errors import OverBudgetError, UsageError
from cfglint.findings import IN_PART

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.boundary import Boundary
    from cfglint.document.tree import Document
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject

SUFFIXES = (".yaml", ".yml", ".json", ".toml", *SCRIPTS, *PROGRAMS)
STDIN = "<stdin>"
_STORES = (".git", ".hg", ".svn")  # of commits; each is left out of its own checkouts
_PACKAGES = frozenset({"node_modules", "site-packages"})  # of others; that they are not entered is counted
_MARKS = ("pyvenv.cfg", "CACHEDIR.TAG")  # of a virtual environment, and of a cache
# In folders, a file with more to say than this is data; a file named on its own is read up to MAX_BYTES.
_MOST_FOLDERS = 100  # of one, that are looked through for a package
_LAUNCHER = "launch.flags."  # where a launcher's config hangs in a launch
_MOST_TELLING = 20_000  # files of a project
_BIGGEST_FOUND = 2**20
_PADDING = rb"(?m)^[ \t]*(?:#[^\n]*)?\r?\n|[ \t]{16,}"  # lines that say nothing, and blanks
# Why a file is not judged, as a count of such files has it.
_LINK = "linked from outside"
_NOT_FOLLOWED = "not followed"
_POINTER = b"version https://git-lfs.github.com/spec/"
_LARGE = "larger than 1 MiB"
_BY_VARIABLE = rb"\$\S+\s+-m\s"  # `$PY -m a.b`
_TRAINING = ("train", "sft", "dpo", "grpo", "ppo", "tune")  # in the name of a program
# A link to nowhere, or removed since the folder was listed.
_GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)


class Skipped(Exception):  # noqa: N818 (nothing is wrong with the command)
    """A file that was found in a folder is not judged; the text is why, as a count of such files has it.

    It is empty for what is no config of any framework, and None for a program, of which a folder may hold
    thousands: these are not counted.
    """


def find(paths: list[str], boundary: Boundary, complain: Callable[[str], None]) -> Iterator[tuple[str, bool]]:
    """Yield the files that ``paths`` mean, each once, with whether it was named itself.

    What is not entered comes, too, so that it is counted: packages and environments of others, and links.
    ``complain`` is told of folders that cannot be read, or that a link leads out to.
    """

    def unreadable(error: OSError) -> None:
        complain(f"{error.filename}: cannot be read: {files.why(error)}")

    folders = {path for path in paths if path != "-" and files.is_folder(path)}
    seen = {os.path.normpath(path) for path in paths if path not in folders}
    for path in dict.fromkeys(paths):
        if path not in folders:
            yield path, True
            continue
        try:
            boundary.check(path, given=True)
        except UsageError as error:
            complain(str(error))
            continue
        # A commit of git's may hold folders of these names, and what is in them is then like all else.
        hidden = _STORES if boundary.repository(path) is None else (".git",)
        for at, below, names, links in files.walk(path, unreadable):
            if at != path and any(mark in names for mark in _MARKS):
                below[:] = names[:] = links[:] = []
                yield at, False
            packages = [name for name in below if name in _PACKAGES]
            below[:] = sorted(name for name in below if name not in hidden and name not in packages)
            named = [name for name in (*names, *links) if name.lower().endswith(SUFFIXES)]
            # A link without a suffix may lead to a folder; not even that is asked where it leads out.
            perhaps = [name for name in links if not name.lower().endswith(SUFFIXES)]
            for name in sorted((*named, *packages, *perhaps)):
                place = os.path.normpath(os.path.join(at, name))
                if place not in seen:
                    seen.add(place)
                    yield place, False


def load(path: str, boundary: Boundary, *, named: bool) -> tuple[File, bytes]:
    """Read and parse a file; returns its bytes as well, for whoever writes it unchanged.

    Raises UsageError, and Skipped for one that was found in a folder and is not judged.
    """
    if path in _launching:
        return _launching.pop(path)
    if path == "-":
        data = files.stdin(MAX_BYTES + 1)
        return read(data, STDIN), data
    if named:
        boundary.check(path, given=True)
    elif not boundary.holds(path, path):
        raise Skipped(_LINK)
    content = _bytes(path, boundary, named=named)
    large = len(content) > _BIGGEST_FOUND and format_of(path) != "notebook"  # a notebook holds its pictures
    if not named and large and _says_much(content):
        return not_parsed(content[:_BIGGEST_FOUND], path, _LARGE), content
    library = Library(second, boundary)
    try:
        return read(content, path, scripts=partial(library.script, path)), content
    except UsageError as error:  # the extra is not installed: said once, and the configs are judged
        if named:
            raise
        if not _left_out:
            _left_out.append(path)
            say(f"launch scripts are skipped: {error}")
        raise Skipped("not parsed") from None


def launched_by(
    run: Run, path: str, boundary: Boundary, *, named: bool
) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield the absolute paths of the config files that the launches of a script name.

    What a program is started with is part of a job, which is judged where it is launched. With what its
    launcher is given, the launcher's flags beside it are told. Raises UsageError and Skipped as `load`.
    """
    file, content = load(path, boundary, named=named)
    _launching[path] = file, content
    for subject in run.subjects(file, judge_broken=False):
        layers = subject.view.layers
        if not subject.is_launch or layers is None:
            continue
        flags = frozenset(subject.view.keys(("launch", "flags")))
        for source in layers.files:
            at = os.path.abspath(source.file.path)
            if layers.based:
                yield at, None
            elif source.hung and source.key.startswith(_LAUNCHER) and source.by is None:
                yield at, flags - {source.key[len(_LAUNCHER) :]}


def _says_much(content: bytes) -> bool:
    """Whether a file is large by what it says, and not by blanks and comments."""
    import re

    return len(re.sub(_PADDING, b"", content)) > _BIGGEST_FOUND


def _bytes(path: str, boundary: Boundary, *, named: bool) -> bytes:
    """Return the bytes of what may be a config. Raises UsageError, and Skipped for what is no file."""
    try:
        if not named and not (path.lower().endswith(SUFFIXES) and files.is_regular(path)):
            raise Skipped(_why_passed(path, boundary))
        data = files.read_config(path, MAX_BYTES)
    except UsageError:
        if named:
            raise
        raise Skipped(_LARGE) from None
    except OSError as error:
        if not named and error.errno in _GONE:
            raise Skipped("unreadable") from None
        missing = isinstance(error, FileNotFoundError)
        why = "no such file or folder" if missing else f"cannot be read: {files.why(error)}"
        raise UsageError(f"{path}: {why}") from None
    if data.startswith(_POINTER):
        if named:
            raise UsageError(f"{path}: stands for a file in Git LFS; `git lfs pull` gets it")
        raise Skipped("in Git LFS")
    if named and b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError(f"{path}: a binary file, not a config")
    if not named and path.lower().endswith(SCRIPTS) and not _may_launch(data):
        raise Skipped("")
    if not named and path.lower().endswith(PROGRAMS):
        text = data.decode("latin-1")
        if not (may_train(text) or may_submit(text) or may_be_settings(text) or may_return_configs(text)):
            raise Skipped(None)
    return data


def _may_launch(data: bytes) -> bool:
    """Whether a script of a folder is parsed: most launch nothing."""
    if may_launch(data.decode("latin-1")):
        return True
    import re

    return re.search(_BY_VARIABLE, data) is not None


def was_recognised(run: Run, file: File) -> bool:
    """Whether a file that does not parse was a config in a commit that git compares with."""
    if file.path == STDIN or all(document.error is None for document in file.documents):
        return False
    boundary = run.library.boundary if run.library is not None else None
    root = boundary.repository(os.path.dirname(file.path)) if boundary is not None else None
    if root is None:
        return False
    if root not in run.histories:
        from cfglint.history import History

        run.histories[root] = History(root)
    return any(
        run.subjects(read(content, file.path), judge_broken=False)
        for content in run.histories[root].former(file.path, _BIGGEST_FOUND)
    )


def _why_passed(path: str, boundary: Boundary) -> str:
    """Return why what is no file is passed over; empty where it leads to what is found where it is."""
    if not files.is_folder(path):
        return "not regular" if path.lower().endswith(SUFFIXES) else ""
    real = files.real(path)
    found = any(inside(real, files.real(folder)) for folder in boundary.named)
    if files.is_link(path) and found and not any(store in real.split(os.sep) for store in _STORES):
        return ""
    return "not entered"


def why_unknown(file: File, missed: list[int]) -> str:
    """Return why a file of a folder is not judged that no framework recognises; empty where it is sound."""
    errors = [document.error for document in file.documents if document.error is not None]
    if not errors:
        return _NOT_FOLLOWED if missed else ""
    return next((reason for reason in (_LARGE,) if reason in str(errors[0])), "with syntax errors")


def why_in_part(missed: list[int]) -> str:
    """Return why a part of a judged file is not judged; empty where nothing is left."""
    return IN_PART if missed else ""


def launches_missed(run: Run, file: File, *, judged: bool) -> list[int]:
    """Return the places of the commands in a file that would be judged if they were followed.

    A config that is ``judged`` is so as a whole, whatever commands its texts hold.
    """
    commands = [document for document in file.documents if document.format == "shell"]
    if judged and not commands:
        return []
    import re

    if file.format in (
        "python",
        "notebook",
    ):  # what it starts by itself is not followed, as in other programs
        return []
    if not (may_launch(file.text) or re.search(_BY_VARIABLE, file.text.encode("utf-8", "replace"))):
        return []
    from cfglint.document.shell.skipped import unfollowed  # few files of a folder launch something

    whole = file.documents
    try:
        followed = [document for document in commands if _is_judged(run, document)]
    except OverBudgetError:  # as has been said
        return []
    try:
        if file.format != "shell" and commands:
            whole = parsed(file.text, file.format)
        return [
            place
            for place, text, sure in unfollowed(file, followed, whole)
            if sure or run.recognise_command(text, file)
        ]
    except OverBudgetError:
        return [0]


def unread(run: Run, file: File, missed: list[int]) -> list[tuple[int, str]]:
    """Return the launches of a file that no job is made of: their places, and why; ``missed`` are some."""
    launches = [(place, "what starts it is not followed") for place in missed]
    for document in file.documents:
        if document.format != "shell":
            continue
        if document.error is not None:
            launches.append((document.start, str(document.error)))
        elif (program := _trained(run, document)) is not None and not _is_judged(run, document):
            why = f"no framework recognises {program}: if one runs it, name that with --framework"
            launches.append((document.start, why))
    return sorted(launches)


def _is_judged(run: Run, document: Document) -> bool:
    named, _ = run.named_for(document.file.path)
    return named is not None or run.recognise(document) is not None


def _trained(run: Run, document: Document) -> str | None:
    """Return the program of a command that starts processes on GPUs, or that is named after training."""
    view = run.subject(document, None).view
    program = view.get(("launch", "program"))
    if not isinstance(program, str):
        program = "its program"
    named = any(word in program.rpartition("/")[2].lower() for word in _TRAINING)
    return program if named or view.get(("launch", "launcher")) != "python" else None


_left_out: list[str] = []
_launching: dict[str, tuple[File, bytes]] = {}  # scripts that were parsed for what they launch


SKIP = ", or pass --skip-unknown"


def unknown(path: str, otherwise: str = "") -> str:
    """Say that no framework recognises a file, and how to name one."""
    return (
        f"{path}: no framework recognises this file; name one with --framework NAME "
        f"(cfglint frameworks lists them){otherwise}"
    )


def named(path: str, boundary: Boundary) -> File:
    """Read the one file that a command is about. Raises UsageError."""
    with Alarm():
        return load(path, boundary, named=True)[0]


def recognised(run: Run, file: File, path: str) -> list[Subject]:
    """Return the documents of a file that parses, as their frameworks see them. Raises UsageError."""
    for document in file.documents:
        if document.error is not None:
            line, column = file.lines.position(min(document.error.offset or 0, len(file.text)))
            raise UsageError(f"{file.path}:{line}:{column}: {document.error}; run cfglint check on it first")
    with Alarm():
        subjects = run.subjects(file, judge_broken=False)
    if not subjects:
        raise UsageError(unknown(path))
    return subjects


def folders(path: str) -> list[str]:
    """Return the names of the folders in one, of the first hundred; none where it cannot be read."""
    return sorted(next(files.walk(path), ("", [], [], []))[1])[:_MOST_FOLDERS]


def telling(path: str) -> list[str]:
    """Return what tells of a project below a folder, but for environments, up to some thousands of files."""
    found: list[str] = []
    for at, below, names, _links in files.walk(path):
        inner = any(mark in names for mark in _MARKS)
        below[:] = [
            name for name in below if not inner and name not in _PACKAGES and not name.startswith(".")
        ]
        found += [os.path.join(at, name) for name in names if TELLING.search(name) and not inner]
        if len(found) > _MOST_TELLING:
            break
    return found


def second(path: str) -> bytes | None:
    """Return the bytes of a file that a config names; None where none can be read there.

    What stands for a file that Git LFS keeps elsewhere is not the file.
    """
    try:
        data = files.read_bytes(path, MAX_BYTES + 1)  # of one byte too many it is said that it is too large
    except (OSError, ValueError):
        return None
    return None if data.startswith(_POINTER) else data
