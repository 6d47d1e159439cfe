"""A pack's test pages: configs that a rule must find something in, and configs in which it must not.

``tests/<CODE>.md`` below a pack's folder is a page of fences. One with a language and a name, such as
``yaml bad_plain.yaml``, is a file: the rule must find something in those named ``bad_*`` and nothing in
those named ``ok_*``; files in folders are there for a config to name. A ``console`` fence is a command,
``$ cfglint check bad_plain.yaml --select CODE``, with the flags of that case, and below it what must be
printed: the report, and what ``$ cfglint fix --diff --unsafe`` makes of it. Pages without it are fine.
"""

from __future__ import annotations

import os
import re
import shlex

from cfglint import files
from cfglint.api import check_file
from cfglint.boundary import Boundary
from cfglint.command import free, options, parse, setup
from cfglint.document.project import Project
from cfglint.document.reading import Library, read
from cfglint.errors import CfglintError, UsageError
from cfglint.record import Record, Value, field
from cfglint.repair.apply import repair
from cfglint.report import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.run import Run

_FENCE = re.compile(r"(?ms)^(?P<ticks>`{3,})(?P<language>\w+) ?(?P<name>\S*)\n(?P<text>.*?)^(?P=ticks)$\n?")
_KINDS = ("bad_", "ok_")
_NOTHING = "no findings in 1 file\n"
_FIX = "$ cfglint fix --diff --unsafe\n"
_WIDTH = 100
_MOST = 2**20  # bytes of a page


class CaseOptions(options.Options):
    """The flags of a case's command: none that names a file, since the page may be a stranger's."""

    command = "check"
    offers = ("gpu", "framework", "set", "rule", "select", "ignore", "verbose", "no_detect")

    paths: list[str] = free("PATH", options.PATHS, many=True)


class Failure(Value):
    """A case that does not come out as its page says; ``place`` is ``file:line``."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Page(Record):
    """A page: its files, each with its line, and by case the flags and where what must be printed stands.

    ``content`` is what the disk has.
    """

    path: str
    source: str
    content: bytes = b""
    texts: dict[str, str] = field(factory=dict)
    lines: dict[str, int] = field(factory=dict)
    flags: dict[str, tuple[str, ...]] = field(factory=dict)
    printed: dict[str, tuple[int, int]] = field(factory=dict)

    @property
    def code(self) -> str:
        """The rule's code, which is the page's name."""
        return os.path.splitext(os.path.basename(self.path))[0]

    def read(self, path: str) -> bytes | None:
        """Return a file of the page, as a config names it."""
        text = self.texts.get(os.path.normpath(os.path.relpath(path)).replace(os.sep, "/"))
        return None if text is None else text.encode()

    def programs(self, _folder: str) -> list[str]:
        """Return the page's Python files."""
        return [name for name in self.texts if name.endswith(".py")]


def read_pages(folders: Sequence[str]) -> list[Page]:
    """Return the pages in folders named ``tests`` below some folders. Raises UsageError."""
    paths = [
        os.path.join(at, name)
        for folder in folders
        for at, _, names, links in files.walk(folder)
        if os.path.basename(at) == "tests"
        for name in (*names, *links)
        if name.endswith(".md")
    ]
    boundary = Boundary(folders)
    for path in paths:
        boundary.check(path)
    return [_page(path) for path in sorted(paths)]


def _page(path: str) -> Page:
    source = files.read_text(path, most=_MOST)
    page = Page(path, source, files.read_bytes(path, _MOST))
    for fence in _FENCE.finditer(source):
        line = source.count("\n", 0, fence.start()) + 1
        name, text = fence["name"], fence["text"]
        if fence["language"] == "console":
            command = text.partition("\n")[0]
            try:
                words = shlex.split(command)
            except ValueError:  # a quote is open
                words = []
            if words[:3] != ["$", "cfglint", "check"] or len(words) < 4:
                raise UsageError(f"{path}:{line}: a console fence begins with $ cfglint check NAME")
            page.flags[words[3]] = tuple(words[4:])
            page.printed[words[3]] = fence.start("text") + len(command) + 1, fence.end("text")
        elif not name:
            raise UsageError(f"{path}:{line}: a fence names its file: ```yaml bad_plain.yaml")
        elif "/" not in name and not name.startswith(_KINDS):
            raise UsageError(f"{path}:{line}: {name}: a case is named bad_… or ok_…")
        else:
            page.texts[name], page.lines[name] = text, line
    unknown = [name for name in page.flags if name not in page.texts]
    if unknown:
        raise UsageError(f"{path}: unknown file {unknown[0]!r} in a console fence")
    return page


# ── cases ──────────────────────────────────────────────────────────────────────────────────────────────
class Cases(Record):
    """Runs the cases of pages with the rules at ``paths``; ``codes`` are these rules' own.

    An ``update`` writes into the pages what is printed, where they say what must be.
    """

    paths: Sequence[str]
    codes: frozenset[str]
    update: bool = False
    count: int = field(default=0, init=False)
    _runs: dict[tuple[str, ...], Run] = field(factory=dict, init=False)

    def failures(self, page: Page) -> Iterator[Failure]:
        """Yield what does not come out as a page says."""
        if page.code not in self.codes:
            yield Failure(
                f"{page.path}:1", f"no rule of these has the code {page.code}; a page is named for one"
            )
            return
        for name, line in reversed(page.lines.items()):  # an update moves what stands below
            if "/" in name:
                continue
            self.count += 1
            try:
                what = self._failure(page, name)
            except CfglintError as error:
                what = str(error)
            if what:
                yield Failure(f"{page.path}:{line}", f"{name}: {what}")

    def _failure(self, page: Page, name: str) -> str:
        """Return what is wrong with a case; empty where nothing is."""
        library = Library(page.read, project=Project(page.read, None, page.programs))
        run = self._run(page.flags.get(name, ())).but(library=library)
        start, end = page.printed.get(name, (0, 0))
        told = page.source[start:end] or (self.update and bool(end))
        if told:
            run = run.but(selected=lambda code: code == page.code)
        file = read(page.texts[name].encode(), name)
        if not (check_file(run, file) if told else run.add(file)):
            command = f"$ cfglint check {name} --select {page.code} --framework NAME"
            return f"no framework recognises it: give it a console fence with {command}"
        found = [finding for finding in run.report.findings if finding.code == page.code]
        if name.startswith("ok_") and found:
            line, _ = file.lines.position(found[0].place.start)
            return f"{page.code} finds something at line {line}: {found[0].message}"
        if name.startswith("bad_") and not found:
            needs = [", ".join(open_.needs) for open_ in run.report.undecided if open_.code == page.code]
            return f"{page.code} finds nothing" + (f" because {needs[0]} is missing" if needs else "")
        printed = self._printed(run, name, page) if told else ""
        if not told or told == printed:
            return ""
        if self.update:
            page.source = page.source[:start] + printed + page.source[end:]
            content = page.source.encode()
            files.write(page.path, content, over=page.content)
            page.content = content
            return ""
        return _difference(page.source[start:end], printed)

    def _run(self, flags: tuple[str, ...]) -> Run:
        kept = tuple(word for i, word in enumerate(flags) if "--select" not in flags[max(0, i - 1) : i + 1])
        if kept not in self._runs:
            args = parse(CaseOptions, ["x.yaml", "--no-detect", *kept])
            args.rules = [*self.paths, *args.rules]
            run = setup.run(args)
            self._runs[kept] = run.but(
                selected=self.codes.__contains__, made=run.finder
            )  # shared by all cases
        return self._runs[kept]

    def _printed(self, run: Run, name: str, page: Page) -> str:
        """Return what the two commands print of a case."""
        from cfglint.report.changes import unified

        report = render(run.report, "text", color=False, width=_WIDTH, verbose=True)
        text = page.texts[name]
        mended = repair(run.but(), read(text.encode(), name), unsafe=True, least="info", notes=False)
        diff = unified(name, text, mended.text)
        return ("" if report == _NOTHING else report) + (f"\n{_FIX}{diff}" if diff else "")


def _difference(told: str, printed: str) -> str:
    from difflib import unified_diff

    lines = unified_diff(
        told.splitlines(), printed.splitlines(), "as the page says", "as it is", "", "", 1, ""
    )
    return "\n".join(("another report is printed", *(f"  {line}" for line in lines)))
