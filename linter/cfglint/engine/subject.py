"""A document as one framework sees it: which one it is written for, what its values are, how it was judged.

Runs for every file, so it stays lean: no trees, no sources, no places (see find.py).
"""

from __future__ import annotations

from functools import partial

from cfglint.budget import spend
from cfglint.document.foreign import is_foreign
from cfglint.document.generated import is_generated
from cfglint.document.reading import sections
from cfglint.document.recorded import is_recorded
from cfglint.document.scalars import HYDRA, JSON, OMEGACONF, PYTHON, PYYAML, SHELL, TOML, UNRESOLVED
from cfglint.document.tree import Document, Scalar
from cfglint.document.tree import Mapping as Tree
from cfglint.document.view import View
from cfglint.facts import Values
from cfglint.lang.values import NOTHING, needs_of
from cfglint.models.registry import TABLES
from cfglint.record import Record, field
from cfglint.vendored import default_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from cfglint.document.layers import Layers
    from cfglint.document.project import Project
    from cfglint.document.reading import Library
    from cfglint.document.scalars import Dialect
    from cfglint.document.tree import File
    from cfglint.engine.describe import Origins
    from cfglint.engine.typed import Given
    from cfglint.facts import Tables
    from cfglint.hardware.target import Target
    from cfglint.lang.pack import CompiledRule, Pack

# Steps of reading a document, of asking for a sign of a framework, and of putting its files together for one.
_DOCUMENT, _SIGN, _FILES = 20, 3, 200
_DOCUMENTS = "documents"
_COMMANDS = ("shell", "python", "notebook")  # forms of documents that name their own program
_HYDRA = frozenset(("defaults", "hydra", "_target_"))  # at the top of a file of Hydra's
_COMPOSED = ("dialect", "composes", "files", "knows", "resolvers")  # what a view of files rests on
_BY_FORM: dict[str, Dialect] = {
    "json": JSON,
    "toml": TOML,
    "shell": SHELL,
    "python": PYTHON,
    "notebook": PYTHON,
}
_DIALECTS: dict[str, Dialect] = {
    "pyyaml": PYYAML,
    "omegaconf": OMEGACONF,
    "omegaconf_unresolved": UNRESOLVED,
    "json": JSON,
    "hjson": JSON,
    "toml": TOML,
}


class Subject(Record):
    """A document as one framework sees it; ``framework`` is None where none recognises it."""

    pack: Pack
    document: Document
    view: View
    framework: str | None
    version: tuple[float, ...] | None
    tables: Tables  # a path in the document is seen from its folder
    version_source: str = field(default="", init=False)  # the file that pins it
    stated: Mapping[str, tuple[object, str]] = field(factory=dict, kw_only=True)  # facts, and by what
    spare: Mapping[str, tuple[object, str]] = field(factory=dict, kw_only=True)  # where nothing else tells

    @property
    def is_launch(self) -> bool:
        """Whether it is a command that starts a program, and not a config file."""
        return self.document.format == "shell"


class Verdict(Record):
    """A rule that does not hold: ``truth`` is False, or Open (possible without ``needs``, else undecided)."""

    rule: CompiledRule
    truth: object
    needs: frozenset[str] = field(default=NOTHING, init=False)

    def __post_init__(self) -> None:
        """Note what the rule needs to be decided."""
        self.needs = needs_of(self.truth)


class Case(Record):
    """The facts of a job where some that it leaves open have a value.

    ``chosen`` are those of which another case has another value, or, in the ``usual`` case, all that were
    taken; ``gpus`` is the number of GPUs that was taken where neither the target nor the config says one;
    ``defaults`` says whose are taken that may be others: the release's, for a package of which the repository
    has another copy, or those of a program's flags.
    """

    values: Values
    chosen: dict[str, object] = field(factory=dict)
    gpus: int | None = None
    usual: bool = False
    defaults: str = ""


class Judged(Record):
    """A subject on one target: its facts, and the rules that do not simply hold."""

    subject: Subject
    target: Target | None
    values: Values
    sources: Mapping[str, str]  # of the facts that were given
    verdicts: list[Verdict] = field(factory=list)
    origins: Origins | None = field(default=None, init=False)  # once there is something to tell (find.py)
    case: Case | None = field(default=None, init=False)  # where facts were assumed (cases.py)

    @property
    def name(self) -> str | None:
        """The target's printed name."""
        return self.target.name if self.target is not None else None


class Reading(Record):
    """How documents are read: for whom, with which overrides, and with which files beside them.

    Without a ``library``, what other files say is unknown.
    """

    pack: Pack
    overrides: Sequence[str] = field(default=(), kw_only=True)
    environ: Mapping[str, str] | None = field(default=None, kw_only=True)
    tables: Tables = field(default=TABLES, kw_only=True)
    library: Library | None = field(default=None, kw_only=True)

    def subject_of(
        self,
        document: Document,
        framework: str | None,
        version: tuple[float, ...] | None = None,
        more: Sequence[str] = (),
    ) -> Subject:
        """Return the document as ``framework`` sees it, with ``more`` overrides after its own."""
        view = self._view(document, framework, more)
        if framework is not None:
            block = self.pack.frameworks[framework]
            packages = _packages(framework, block)
            document.vendored = self._is_vendored(document, framework, packages, view)
            document.foreign = is_anothers(document, block) or is_foreign(block, framework, view)
            if self.library is not None and self.library.project is not None:
                self._ask(self.library.project, document, block, packages)
        subject = Subject(self.pack, document, view, framework, version, self.tables)
        if self.overrides:
            if view.layers is not None:
                view.layers.refuse_missing()
            given = self._given(document, framework)
            subject.stated, subject.spare = given.facts, given.spare
        return subject

    def _given(self, document: Document, framework: str | None) -> Given:
        """Tell the overrides that are keys to a framework from those that state facts."""
        from cfglint.engine.typed import sorted_for  # few runs override anything

        return sorted_for(self.pack, self.overrides, document, framework)

    def _keys(self, document: Document, framework: str | None) -> Sequence[str]:
        """Return the overrides that are keys."""
        return self._given(document, framework).keys if self.overrides else ()

    def _ask(
        self, project: Project, document: Document, block: Mapping[str, Any], packages: tuple[str, ...]
    ) -> None:
        """Note what the project of a document says of its reader, most of it to be asked where it counts."""
        path, begun = document.file.path, document.format == "shell"
        document.away = project.lacks(path, block["home"])
        document.foreign |= document.away
        document.declares = partial(project.declares, path, begun=begun)
        if block["classes"] and (document.vendored or not block["programs"]):
            document.has_field = partial(project.has_field, path, block["classes"])
            document.default_in = partial(default_in, project, path, block["classes"])
        elif block["composes"] == "hydra":
            document.has_field = partial(project.mentions, path, packages)
            document.names = partial(project.may_read, path)
            document.reads_at = partial(project.reads_at, path)
            document.asks_for = partial(project.asks_for, path)
        document.namesake = partial(project.namesake, path)
        document.makes_optimizer = partial(project.makes_optimizer, path)
        if document.format in ("json", "yaml"):
            document.started = partial(_launched, project, path)
            document.generated = partial(is_generated, project, path)
        if document.format == "yaml" and not block["composes"]:
            document.composed = partial(project.composed, path)
        if document.format == "yaml" and block["composes"] == "hydra":
            document.base_of = partial(_base_of, project, path)
        released = block["checked"] and not block["home"]  # it is a package, then
        if released and document.format not in _COMMANDS:
            document.used = partial(project.uses, document.file, (*packages, *block["packages"]))

    def _is_vendored(self, document: Document, framework: str, packages: tuple[str, ...], view: View) -> bool:
        """Whether a command or a file of Hydra's is for a package that its repository holds.

        Or for one that the command puts on Python's path, in a folder that is named like a copy.
        """
        composes = self.pack.frameworks[framework]["composes"] == "hydra"
        if self.library is None or not (composes or document.format == "shell"):
            return False
        path = view.get(("launch", "pythonpath"))
        folders = path.split(":") if isinstance(path, str) else []
        if any(_is_copy(folder, package) for folder in folders for package in packages):
            return True
        names = (
            f"{folder}{package}/__init__.py" for package in packages for folder in ("", "src/", f"{package}/")
        )
        at = document.file.path
        return self.library.has_any(at, framework, names) or bool(self.library.copies(at, packages))

    def _follow(self, document: Document) -> None:
        """Find the program that a command starts, once."""
        if document.followed or document.format != "shell" or self.library is None:
            return
        document.followed = True
        from cfglint.document.absent import lost_program
        from cfglint.document.alone import reads_alone
        from cfglint.document.follow import follow  # scripts alone start programs
        from cfglint.document.strange import strange_flags

        follow(document, self.library)
        document.strange = partial(strange_flags, document, self.library)
        document.lost = partial(lost_program, document, self.library)
        document.alone = partial(reads_alone, document, self.library)

    def _view(
        self,
        document: Document,
        framework: str | None,
        more: Sequence[str] = (),
        *,
        defaults: bool = True,
        typed: bool = True,
    ) -> View:
        """Return a document's values as a framework's loader sees them, with those of its other files."""
        dialect = dialect_of(self.pack, framework, document)
        block = self.pack.frameworks[framework] if framework is not None else None
        layers: Layers | None = None
        overrides: Sequence[str] = (*(self._keys(document, framework) if typed else ()), *more)
        self._follow(document)
        names = block is not None and _names_files(document, block, overrides)
        if document.over or document.program or names:
            from cfglint.document.compose import compose  # most files are one file
            from cfglint.document.layers import Way  # most files are one file

            way = Way() if block is None else Way(block["composes"], block["files"], block["knows"])
            layers, overrides = compose(document, self.library, way, overrides, defaults=defaults)
            if layers is not None and layers.files:
                from cfglint.document.shelved import shelved  # few configs name a file of DeepSpeed

                document.shelved = partial(shelved, layers, self.library)
            if layers is not None and layers.beneath is not None:
                from cfglint.document.siblings import siblings  # few commands are Hydra's

                document.siblings = partial(siblings, layers, self.library)
        if block is None:
            return View(document, dialect, overrides, self.environ, layers, PYYAML)
        beneath = _DIALECTS[block["dialect"]]
        return View(document, dialect, overrides, self.environ, layers, beneath, block["resolvers"])

    def recognise(self, document: Document, *, whole: bool | None = None) -> str | None:
        """Return the framework that a document is written for, by its content alone, else None.

        Of several that claim it, the one with the most signs wins; then the first by name. Where none does,
        and the document names bases, what they make together is asked (``whole``).
        """
        if is_recorded(document.root):
            return None
        self._follow(document)
        composed = bool(document.over or document.program) if whole is None else whole
        found = [(-signs, name) for name, signs, _ in self.claims(document, composed=composed) if signs]
        if found:
            best, *others = (name for _, name in sorted(found))
            if document.format == "shell":  # a program is its framework's
                others = []
            base = self.pack.frameworks[best]["extends"]  # whose keys it takes
            document.claimed = tuple(name for name in others if name not in base)
            return best
        if names_bases(document) and self.library is not None and not composed:
            return self.recognise(document, whole=True)
        return None

    def recognise_broken(self, document: Document) -> str | None:
        """Return the framework of a document that does not parse, by what is left of it."""
        from cfglint.document.outline import outline, variants, without_mistakes

        text = document.file.text
        if is_template(document):
            return None
        if document.format == "shell":
            return self.recognise_command(text[document.start : document.end], document.file)
        whole = without_mistakes(document.file)
        for part in whole.documents if whole is not None else ():
            if (framework := self.recognise(part)) is not None:
                return framework
        for root in variants(outline(text[document.start :], document.format), self._signs()):
            part = Document(0, root=root, format=document.format)
            part.file = document.file
            if (framework := self.recognise(part)) is not None:
                return framework
        return None

    def recognise_command(self, text: str, file: File) -> str | None:
        """Return the framework of a command of a file that is not followed, or does not parse."""
        from cfglint.document.shell.launch import parse_script
        from cfglint.document.shell.skipped import plain

        for part in parse_script(plain(text)):
            part.file, part.followed = file, True  # by its own words alone
            if (framework := self.recognise(part)) is not None:
                return framework
        return None

    def _signs(self) -> set[str]:
        """Return the keys at the top that frameworks are recognised by."""
        return {
            key
            for framework in self.pack.frameworks.values()
            for needed, _ in framework["detect"]
            for key in needed or ()
        }

    def claims(self, document: Document, *, composed: bool) -> Iterator[tuple[str, int, Values | None]]:
        """Yield the frameworks that may claim a document, how many of their signs it has, and what they see.

        One that claims last is asked where no other has a sign, about what the document says itself. Those
        whose sections are jobs see one of them here, the one with the most signs.
        """
        seen: dict[object, Values] = {}
        root = document.root
        spend(_DOCUMENT, _DOCUMENTS)
        merges = isinstance(root, Tree) and root.merges
        plain = not merges and not self.overrides and not composed
        keys = frozenset(root.entries) if isinstance(root, Tree) else NOTHING
        claimed = False
        for name, framework in sorted(self.pack.frameworks.items(), key=lambda item: bool(item[1]["last"])):
            if framework["last"] and claimed:
                return
            if document.format == "yaml" and framework["dialect"] == "toml":
                continue  # its loader reads TOML, and perhaps JSON
            if framework["sections"]:
                yield name, *self._in_sections(name, document)
                continue
            asked = [
                test
                for needed, test in framework["detect"]
                if needed is None or not plain or not keys.isdisjoint(needed)
            ]
            if not asked:
                continue
            spend(_SIGN * len(asked), _DOCUMENTS)
            dialect = dialect_of(self.pack, name, document)
            last = framework["last"]
            key: object = (*(framework[part] for part in _COMPOSED), last) if composed else (dialect, last)
            values = seen.get(key)
            if values is None:
                spend(_FILES if composed else 0, _DOCUMENTS)
                view = (
                    self._view(document, name, defaults=False, typed=not last)
                    if composed
                    else View(document, dialect, () if last else self._keys(document, None))
                )
                values = seen[key] = Values(self.pack, view)
            signs = sum(test(values) is True for test in asked)
            claimed = claimed or signs > 0
            yield name, signs, values

    def _in_sections(self, framework: str, document: Document) -> tuple[int, Values | None]:
        """Return the most signs that a section of a document has, and what it sees."""
        root = document.root
        if document.error is not None or not isinstance(root, Tree):
            return 0, None
        if any(entry.value.__class__ is Scalar for entry in root.entries.values()):
            return 0, None  # as most files
        dialect = dialect_of(self.pack, framework, document)
        tests = [test for _, test in self.pack.frameworks[framework]["detect"]]
        parts = [Values(self.pack, View(part, dialect)) for part in sections(document)]
        seen = [(sum(test(values) is True for test in tests), values) for values in parts]
        if 2 * sum(signs > 0 for signs, _ in seen) < len(seen):
            return 0, None  # sections of another framework that a few could be of, too
        return max(seen, key=lambda each: each[0], default=(0, None))


def _base_of(project: Project, path: str) -> str:
    from cfglint.document.based import base_of  # few files are Hydra's

    return base_of(project, path)


def _launched(project: Project, path: str, what: str) -> list[Any]:
    from cfglint.document import launched  # few rules ask

    if (what, path) not in project.launched:
        project.launched[what, path] = getattr(launched, what)(project, path)
    return project.launched[what, path]


def dialect_of(pack: Pack, framework: str | None, document: Document) -> Dialect:
    """Return how the framework's loader reads scalars."""
    if document.format != "yaml":
        return _BY_FORM.get(document.format, SHELL)
    if framework is None:
        return PYYAML
    block = pack.frameworks[framework]
    return HYDRA if is_anothers(document, block) else _DIALECTS[block["dialect"]]


def names_bases(document: Document) -> bool:
    """Whether a document has a list of others that it is laid over."""
    return isinstance(document.root, Tree) and "defaults" in document.root.entries


def is_anothers(document: Document, block: Mapping[str, Any]) -> bool:
    """Whether a program of one's own reads a document, with Hydra, by keys that the framework has not."""
    root = document.root
    if document.format != "yaml" or block["composes"] or _DIALECTS[block["dialect"]].name == "omegaconf":
        return False
    if not isinstance(root, Tree):
        return False
    below = [entry.value for entry in root.entries.values()]
    made = any("_target_" in value.entries for value in below if isinstance(value, Tree))
    return made or not _HYDRA.isdisjoint(root.entries)


def _names_files(document: Document, block: Mapping[str, Any], overrides: Sequence[str]) -> bool:
    """Whether a document, or an override of it, has a key that names a file to its framework."""
    root = document.root
    names = set(root.entries) if isinstance(root, Tree) else set()
    if block["composes"] and "defaults" in names:
        return True
    names.update(text.lstrip("+~").partition("=")[0].partition(".")[0].strip() for text in overrides)
    return any(steps[0] in names for steps, _ in block["files"])


def _packages(framework: str, block: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the packages that a framework's own programs are in."""
    modules = (pattern.partition(".")[0] for pattern in block["programs"])
    return tuple(sorted({module for module in (framework, *modules) if module.isidentifier()}))


def _is_copy(folder: str, package: str) -> bool:
    """Whether a folder's name is a package's with something added, such as ``verl_agents``."""
    name = folder.rstrip("/").rpartition("/")[2]
    return package in name and name != package


def is_template(document: Document) -> bool:
    """Whether a document does not parse because a program is to fill it in."""
    from cfglint.document import outline  # most files parse

    error = document.error
    return error is not None and outline.is_template(document.file.text, error.offset or 0)
