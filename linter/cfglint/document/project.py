"""What the code of a project says of the files in it: which program reads them, and with which arguments."""

from __future__ import annotations

import os
import re

from cfglint.document.tree import SCRIPTS
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    from cfglint.boundary import Boundary
    from cfglint.document.tree import File

    Reader: TypeAlias = Callable[[str], bytes | None]
    Lister: TypeAlias = Callable[[str], list[str]]

_MOST = 2**20  # characters of one file
_MOST_CODE = 2**25  # characters of a project's files that are searched
_HYDRA_MAIN = re.compile(r"""@hydra\.main\([^)]{0,200}?\bconfig_path[ ]*=[ ]*["']([^"'\n]*)["']""")
# Names of files that say what a project runs and needs: programs, scripts, requirements, images, guides.
TELLING = re.compile(
    r"(?i)\.(?:py|ipynb|sh|bash|slurm|sbatch|toml|cfg|lock|md|rst|ya?ml)$"
    r"|^(?:.*requirements.*\.txt|.*dockerfile.*|makefile|justfile)$"
)
GUIDES = (".md", ".rst")
_COMMANDS = re.compile(r"(?ms)^[ ]*(?:```|~~~).*?^[ ]*(?:```|~~~)|^(?:\t| {4})[^\n]*$")  # in a guide
# How a package is used: by its name in scripts and requirements, in programs and guides by more than that.
_NAMED = r"(?i)(?<![a-z0-9])(?:{})(?![a-z0-9])"
_BY_PROGRAM = (
    r"""(?i)(?:\b(?:import|from)[ ]+|-m["', ]{{1,4}}|\binstall\b[^\n]{{0,200}}[ '"])(?:{})(?![a-z0-9])"""
)
_BY_GUIDE = (
    r"(?im)(?:^[ \t$>-]*(?:\w+:[ ]+)?(?:\w+=\S+[ ]+)*|-m[ ]|\binstall\b[^\n]{{0,200}}[ '\"])"
    r"(?:{})(?![a-z0-9])"
)
_USED = {
    **dict.fromkeys((".py", ".ipynb"), _BY_PROGRAM), "": _NAMED,
    **dict.fromkeys((*GUIDES, ".yaml", ".yml"), _BY_GUIDE),
}  # fmt: skip

# A field of a class and no argument `name: int,` of a function; a flag; a key taken out, or a name for one;
# what a config is asked for.
_A_COPY = 20  # files of a package, from which on a project has it as its own
_CLASS = re.compile(r"(?m)^class[ ]+")
_FIELD = r"""(?m)^[ \t]+{0}[ \t]*:[ \t]*[A-Za-z"'][^\n]*(?<!,)(?<!,\r)$"""
_FLAG = r"""["']--{0}["']"""
_BEGUN = r"""["']--{0}[\w-]*["']"""  # argparse takes the beginning of a flag for the flag
_KEY = r"""(?:\bpop\(|^[A-Z_]+ = |\bkey == )["']{0}["']"""
_ASKED = (
    r"""\b(?:cfg|conf|config|args|\w+_(?:cfg|config|args))"""
    r"""(?:\.{0}\b(?!\()|(?:\[|\.(?:get|setdefault)\()["']{0}["'])"""
)

# A switch that is read, and that is read to make an optimizer, on the same line or the next.
_READ = r"""(?:\w*args\.|["']){0}\b"""
_MAKES = _READ + r"""[^\n]*(?:\n[^\n]*)?ptimizer"""


class Project(Record):
    """The repositories that files are in; ``files`` gives the programs, scripts and the like below a folder.

    ``read`` gives a file's bytes, and None for what is not a file.
    """

    read: Reader
    boundary: Boundary | None
    files: Lister
    _here: dict[str, list[str]] = field(factory=dict, init=False)
    _lacking: dict[tuple[str, str], bool] = field(factory=dict, init=False)
    _using: dict[tuple[str, tuple[str, ...]], bool] = field(factory=dict, init=False)
    _code: dict[str, tuple[tuple[str, str], ...]] = field(factory=dict, init=False)
    _composed: dict[str, bool] = field(factory=dict, init=False)
    _asked: dict[tuple[str, str], bool] = field(factory=dict, init=False)  # keys, by folder
    based: dict[str, str] = field(
        factory=dict, init=False
    )  # whose defaults a config of Hydra's is (based.py)
    launched: dict[tuple[str, str], list[Any]] = field(
        factory=dict, init=False
    )  # what its commands do with a file (launched.py), whatever the file says
    defaults: dict[str, dict[str, object]] = field(
        factory=dict, init=False
    )  # of the fields of its framework's classes (vendored.py)
    _texts: dict[str, str] = field(factory=dict, init=False)

    def lacks(self, path: str, home: str) -> bool:
        """Whether the project of the file at ``path`` has Python files, but none in the folder ``home``."""
        if not home or self.boundary is None:
            return False
        key = self.boundary.root(path), home
        if key not in self._lacking:
            found = [f"/{each.replace(os.sep, '/')}" for each in self._programs(key[0])]
            self._lacking[key] = bool(found) and not any(f"/{home}/" in each for each in found)
        return self._lacking[key]

    def uses(self, file: File, packages: tuple[str, ...]) -> bool:
        """Whether a program that uses one of some packages may read a file of a repository.

        The file names one, or a program, command or requirement of the repository does. Without programs of
        its own, or where it is too large to be searched, a repository may use any.
        """
        root = self.boundary.repository(os.path.dirname(file.path)) if self.boundary is not None else None
        if root is None:
            return True
        named = "|".join(re.sub("[-_.]+", "[-_.]?", package) for package in packages)
        if (root, packages) not in self._using:
            self._using[root, packages] = not self._programs(root) or self._says(root, named)
        return self._using[root, packages] or re.search(_NAMED.format(named), file.text) is not None

    def declares(self, path: str, name: str, choice: str | None = None, *, begun: bool = False) -> bool:
        """Whether code of the project of the file at ``path`` declares an argument, or a choice of it.

        A command may give a flag by what it ``begun`` with.
        """
        around = self._code_around(os.path.dirname(os.path.abspath(path)))
        return declares((text for _, text in around), name, choice, begun=begun)

    def makes_optimizer(self, path: str, name: str) -> bool | None:
        """Whether code of the project of the file at ``path`` makes an optimizer where a switch is on.

        None where none of it reads the switch.
        """
        around = self._code_around(os.path.dirname(os.path.abspath(path)))
        read = [text for _, text in around if name in text and re.search(_READ.format(name), text)]
        return any(re.search(_MAKES.format(name), text) for text in read) if read else None

    def has_field(self, path: str, homes: tuple[str, ...], name: str, section: str) -> bool:
        """Whether the files ``homes`` of the project of the file at ``path`` have a class with a field.

        A project may hold several copies of a framework: the nearest counts. Without any, it may. A class
        that bears the name of the ``section``, OptimConfig of ``optim``, speaks for it alone.
        """
        around = self._code_around(os.path.dirname(os.path.abspath(path)))
        found = {home: next((text for each, text in around if _ends(each, home)), None) for home in homes}
        if None in found.values():
            return True
        classes = [each for text in found.values() for each in _CLASS.split(text or "")]
        own = [each for each in classes if re.match(rf"(?i){re.escape(section)}\w*config\b", each)]
        pattern = re.compile(_FIELD.format(re.escape(name)))
        return any(pattern.search(each) for each in (section and own) or classes)

    def home_of(self, path: str, homes: tuple[str, ...]) -> tuple[str, str]:
        """Return the nearest of such files and its text; empty where there is none."""
        around = self._code_around(os.path.dirname(os.path.abspath(path)))
        return next((found for found in around if any(_ends(found[0], home) for home in homes)), ("", ""))

    def mentions(self, path: str, packages: tuple[str, ...], name: str, _section: str = "") -> bool:
        """Whether code of the project's own copy of ``packages`` has a name; without a copy, it may.

        Without ``packages``, all code of the project counts.
        """
        own = self.copy_of(path, packages)
        word = re.compile(rf"\b{re.escape(name)}\b")
        return (len(own) < _A_COPY and packages != ()) or any(
            name in text and word.search(text) for text in own
        )

    def copy_of(self, path: str, packages: tuple[str, ...]) -> list[str]:
        """Return the code of the project's own copy of ``packages``, the nearest first; without them, all."""
        return [
            text
            for each, text in self._code_around(os.path.dirname(os.path.abspath(path)))
            if not packages or any(f"/{package}/" in each for package in packages)
        ]

    def may_read(self, path: str, key: str) -> bool:
        """Whether code of the project may ask for a key: not where it reads the name in other sections alone.

        A section is told where a config is asked for it first: ``config.actor.get("name")``, and not
        ``config.get("name")``, which may be of any. A name alone may be read wherever it stands.
        """
        *_, section, name = ("", *key.split("."))
        spelled = re.escape(name)
        word = re.compile(rf"\b{spelled}\b")
        read = re.compile(
            r"\b\w*(?:config|cfg)(?:\.\w+)*\.(\w+)"
            rf"""(?:\.{spelled}\b|(?:\.get\([ ]*|\[)["']{spelled}["'])"""
        )
        for text in self.copy_of(path, ()):
            if name not in text:
                continue
            named, sections = len(word.findall(text)), read.findall(text)
            if named > len(sections) or section in sections or (named and not section):
                return True
        return False

    def asks_for(self, path: str, key: str) -> bool:
        """Whether code of the project may ask for a key that its config does not have.

        In the key's section, by a name that is given that, or of some ``config``, with what to do where it is
        not there. A file that never names the section has no part of it for its config; tests are not run.
        """
        here = os.path.dirname(os.path.abspath(path))
        if (here, key) not in self._asked:
            self._asked[here, key] = self._asks_for(here, key)
        return self._asked[here, key]

    def _asks_for(self, here: str, key: str) -> bool:
        *_, section, name = ("", *key.split("."))
        spelled, above = re.escape(name), re.escape(section) if section else r"\w*(?:config|cfg)"
        step = rf"""(?:\.{spelled}\b|(?:\.get\(\s*|\[)["']{spelled}["'])"""
        there, other = re.compile(rf"\b{above}{step}"), re.compile(rf"""["']{spelled}["']""")
        given = re.compile(rf"\b(\w+)\s*=\s*[\w.]*\b{above}\b\s*$", re.MULTILINE)
        bare = re.compile(
            rf"""(?:\b\w*(?:config|cfg)(?:\.get\(\s*|\[)|getattr\([^,()]*,\s*){other.pattern}"""
            rf"""|{other.pattern}\s+(?:not\s+)?in\s+[\w.]*(?:config|cfg|{above})\b"""
        )
        around = self._code_around(here)
        for each, text in around:
            if name not in text or os.path.basename(each).startswith("test_"):
                continue
            own = section.replace("_", "").lower() in text.replace("_", "").lower()
            if there.search(text) or (own and bare.search(text)):
                return True
            if any(re.search(rf"\b{held}{step}", text) for held in set(given.findall(text))):
                return True
        return False

    def reads_at(self, path: str, section: str, name: str) -> bool:
        """Whether code of the project reads a name of a section, and of nothing else."""
        code = self._code_around(os.path.dirname(os.path.abspath(path)))
        around = [text for _, text in code if name in text]
        spelled, inside = re.escape(name), re.escape(section)
        other = re.compile(rf"""(?<!\b{inside})\.{spelled}\b|["']{spelled}["']""")
        there = re.compile(rf"\b{inside}\.{spelled}\b")
        return any(map(there.search, around)) and not any(map(other.search, around))

    def composed(self, path: str) -> bool:
        """Whether a program of the project has Hydra compose what is in the folder of ``path``, or above.

        A program at the root with its config beside it has not all the repository composed.
        """
        here = os.path.dirname(os.path.abspath(path))
        if here not in self._composed:
            folders = {
                os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(program)), found[1]))
                for program, text in self._code_around(here)
                for found in _HYDRA_MAIN.finditer(text)
            }
            top = self._root(here)
            self._composed[here] = any(
                each == here or (each != top and _is_in(each, top) and _is_in(here, each)) for each in folders
            )
        return self._composed[here]

    def has(self, path: str) -> bool:
        """Whether the project of a file has it, as a program, a script or the like."""
        own = os.path.abspath(path)
        return any(os.path.abspath(each) == own for each in self._listed(self._root(os.path.dirname(own))))

    def above(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the programs in a folder and in those above it, the nearest first, with their texts."""
        root = self._root(folder)
        here = [os.path.abspath(each) for each in self._programs(root)]
        here = [each for each in here if _is_in(folder, os.path.dirname(each))]
        for each in sorted(here, key=lambda each: (-len(os.path.dirname(each)), each)):
            yield each, self.text(each)

    def told(self, path: str, endings: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Yield the scripts and guides of the project of a file, with their texts, up to a limit."""
        left = _MOST_CODE
        for each in self._listed(self._root(os.path.dirname(os.path.abspath(path)))):
            if each.endswith(endings) and left > 0:
                text = self.text(each)
                left -= len(text)
                yield each, text

    def namesake(self, path: str) -> str:
        """Return the text of the program beside a file that has its name; empty where there is none."""
        beside = f"{os.path.splitext(os.path.abspath(path))[0]}.py"
        here = self._listed(self._root(os.path.dirname(beside)))
        return self.text(beside) if any(os.path.abspath(each) == beside for each in here) else ""

    def programs(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield the programs and scripts of the project of a file, with their texts, up to a limit."""
        return self.told(path, (".py", *SCRIPTS))

    def nearest(self, path: str, tail: str) -> str:
        """Return the program of a file's project that ends so and is nearest; empty for none or several."""
        folder = os.path.dirname(os.path.abspath(path))
        ends = [each for each in self._programs(self._root(folder)) if os.path.abspath(each).endswith(tail)]
        shared = {each: len(_common(os.path.abspath(each), folder)) for each in ends}
        best = [each for each in ends if shared[each] == max(shared.values())]
        return best[0] if len(best) == 1 else ""

    def _root(self, folder: str) -> str:
        return self.boundary.root(os.path.join(folder, "any")) if self.boundary is not None else folder

    def _programs(self, root: str) -> list[str]:
        return [path for path in self._listed(root) if path.endswith(".py")]

    def _listed(self, root: str) -> list[str]:
        if root not in self._here:
            self._here[root] = self.files(root)
        return self._here[root]

    def _says(self, root: str, named: str) -> bool:
        patterns = {form: re.compile(pattern.format(named)) for form, pattern in _USED.items()}
        left = _MOST_CODE
        for path in self._listed(root):
            text = self.text(path)
            left -= len(text)
            form = os.path.splitext(path)[1] if not path.endswith("setup.py") else ""
            if left < 0 or patterns.get(form, patterns[""]).search(commands_in(path, text)):
                return True
        return False

    def _code_around(self, folder: str) -> tuple[tuple[str, str], ...]:
        """Return the Python files of the project that a folder is in, the nearest first, up to a limit."""
        root = self._root(folder)
        known = self._code.get(root, self._code.get(folder))
        if known is None:
            left, texts = _MOST_CODE, []
            for path in sorted(self._programs(root), key=lambda path: (-len(_common(path, folder)), path)):
                left -= len(text := self.text(path))
                if left < 0:
                    break
                texts.append((path, text))
            known = self._code[root if left >= 0 else folder] = tuple(texts)
        return known

    def text(self, path: str) -> str:
        """Return the beginning of a file of the project, as text."""
        if path not in self._texts:
            data = self.read(path)
            self._texts[path] = "" if data is None else data[:_MOST].decode("utf-8", "replace")
        return self._texts[path]


def commands_in(path: str, text: str) -> str:
    """Return the commands that a guide shows; of another file, all."""
    return "\n".join(_COMMANDS.findall(text)) if path.endswith(GUIDES) else text


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _ends(path: str, tail: str) -> bool:
    return f"/{path.replace(os.sep, '/')}".endswith(f"/{tail}")


def _common(path: str, folder: str) -> str:
    """Return the folder that a file shares with another one's folder."""
    return os.path.commonpath((os.path.dirname(os.path.abspath(path)), folder))


def declares(code: Iterable[str], name: str, choice: str | None = None, *, begun: bool = False) -> bool:
    r"""Whether one of some Python files declares an argument, and names a ``choice`` of it, if one is given.

    ``begun`` says that the beginning of a flag will do.

    >>> declares(["class Arguments:\n    meta_k: int = 4\n"], "meta_k")
    True
    >>> declares(["parser.add_argument('--meta-k')\n"], "meta_k", "many")
    False
    >>> [declares(["parser.add_argument('--meta-k')\n"], "meta", begun=begun) for begun in (True, False)]
    [True, False]
    >>> declares(["_KEY = '_base_'\n"], "_base_"), declares(["kwargs.get('_base_')\n"], "_base_")
    (True, False)
    >>> declares(["if cfg.meta_k:"], "meta_k"), declares(["config.get('meta_k')"], "meta_k")
    (True, True)
    >>> declares(["if config['meta_k'] == 'many':"], "meta_k", "many"), declares(["row['meta_k']"], "meta_k")
    (True, False)
    """
    field, flag = name.replace("-", "_"), name.replace("_", "-")
    spelled = "[-_]".join(map(re.escape, field.split("_")))
    pattern = re.compile(f"{_FIELD}|{_BEGUN if begun else _FLAG}|{_KEY}|{_ASKED}".format(spelled))
    quoted = ("",) if choice is None else (f'"{choice}"', f"'{choice}'")
    return any(
        (field in text or flag in text)  # most files are passed over by this alone
        and any(each in text for each in quoted)
        and pattern.search(text) is not None
        for text in code
    )
