"""Versions of frameworks that files beside a config pin: lock files, requirements, images, packages.

Only what leaves one version counts: an entry of a lock file, ``==`` in requirements or in a Dockerfile, a tag
of an image or of a clone. Of a range with an upper end, pip takes the newest; another range says nothing, and
neither do two versions in files of one kind. A guide counts where nothing else says it.
"""

from __future__ import annotations

import posixpath
import re

from cfglint.budget import spend
from cfglint.lang.versions import towards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_STEP = 2_000  # characters that are searched for a step
_MOST = 5 * _STEP  # of a file of a package
_ANY_TORCH = "torch"
_NUMBER = r"v?(\d+(?:\.\d+)+)(?![\d.]*\*)"  # of 0.9.6, 1.0.dev0, 2.1+cu121, and not of 0.9.*
_LINUX = (
    r"(?![^\n,;]*;[^\n,]*==[ \t]*[\"'](?:darwin|win32|windows))"  # not where a marker names another system
)
_KINDS = (
    re.compile(r"(?:uv|poetry|pdm)\.lock"),
    re.compile(r"requirements[\w.-]*\.txt|constraints[\w.-]*\.txt"),
    re.compile(r"pyproject\.toml"),
    re.compile(r"(?:environment|conda)[\w.-]*\.ya?ml|(?:[\w.-]*[_.-])?env\.ya?ml"),
    re.compile(r"(?:[\w.-]*\.)?[Dd]ockerfile[\w.-]*"),
    re.compile(r"(?i:readme)[\w.-]*\.md"),
)
# Where a package says its version, seen from its folder; what may be another project's says its name, too.
_PACKAGE = (
    "version/version", "version.py", "_version.py", "package_info.py", "__init__.py", "extras/env.py",
    "../version.txt", "../VERSION", "../assets/version.txt",
    "../setup.py", "../pyproject.toml", "../../setup.py", "../../pyproject.toml",
)  # fmt: skip
# A package, and one without a file of its own at the top, as AReaL's was before v0.3.1.
_MARKS = ("__init__.py", "utils/__init__.py")
_IN_SRC = ("../../VERSION", "../../version.txt")  # of a package in src, which is its project's alone
# What ends a range: <=4.29.2, <4.30, ~=4.29.1.
_UP_TO = r"(?:>=?[ \t]*v?[\d.]+[ \t]*,[ \t]*)?(<=|<|~=)[ \t]*v?(\d+(?:\.\d+)*)(?![\d.]*\*)"
_OWN = re.compile(rf"(?m)^(?:(?:__version__|VERSION|[ \t]*version)(?:: str)?[ \t]*=[ \t]*[\"'])?{_NUMBER}")
_NAMED = re.compile(r"""\bname[ \t]*=[ \t]*["']([\w.-]+)""")
_DEVELOPED = re.compile(r"\.?(?:dev|a|b|rc)")
# NVIDIA's packages say the parts of theirs apart.
_APART = re.compile(r"""MAJOR = (\d+)\nMINOR = (\d+)\nPATCH = (\d+)\nPRE_RELEASE = ["'](\w*)["']""")
_LOCK, _REQUIREMENTS, _PROJECT, _CONDA, _DOCKER, _GUIDE = range(len(_KINDS))
_CLONE = r"git[ \t]+clone\b[^\n]*"
_NEXT = r"(?:(?!git[ \t]+clone)[^\0]){0,300}?git[ \t]+checkout[ \t]+(?:tags/)?"  # a few lines on


def pinned(
    names: Sequence[str], framework: str, read: Callable[[str], str | None]
) -> tuple[tuple[float, ...], str, int] | None:
    """Return the version that files of one folder pin a framework to, the file, and the line.

    ``read`` gives the text of a file by its name. Lock files go before requirements, these before the rest.
    """
    for kind, pattern in enumerate(_KINDS):
        found: dict[tuple[float, ...], tuple[str, int]] = {}
        for name in sorted(name for name in names if pattern.fullmatch(name)):
            text = read(name)
            if text is None:
                continue
            spend(1 + len(text) // _STEP, "versions")
            package = framework.replace("_", "-")
            if kind == _GUIDE and package == _ANY_TORCH:  # people take the one that their GPU needs
                continue
            for place, version in (*_exact(kind, text, package), *_newest(kind, text, package)):
                found.setdefault(version, (name, text.count("\n", 0, place) + 1))
        if len(found) == 1:
            ((version, (name, line)),) = found.items()
            return version, name, line
        if found:
            return None
    return None


def of_package(
    framework: str, read: Callable[[str], str | None]
) -> tuple[tuple[float, ...] | None, str, int] | None:
    """Return the version of a framework whose package is in one folder, the file that says it, and the line.

    The version is None where the package does not say one. A clone of its project may lie in the folder. Of
    packages of one name, the framework's is the one with a file that the name goes on with.
    """
    framework, _, own = framework.partition("/")
    places = (framework, f"src/{framework}")
    for folder in (*places, *(f"{framework}/{place}" for place in places)):
        marks = (f"{folder}/{mark}" for mark in ((own,) if own else _MARKS))
        mark = next((each for each in marks if read(each) is not None), None)
        if mark is None:
            continue
        for name in (*_PACKAGE, *(_IN_SRC if posixpath.dirname(folder).endswith("src") else ())):
            place = posixpath.normpath(f"{folder}/{name}")
            text = read(place) if not place.startswith("..") else None
            if text is None or not _is_of(framework, place, text):
                continue
            text = _APART.sub(r'VERSION = "\1.\2.\3\4"', text[:_MOST])
            if (found := _OWN.search(text)) is not None:
                numbers = _numbers(found[1])
                version = towards(numbers) if _DEVELOPED.match(text, found.end(1)) else numbers
                return version, place, text.count("\n", 0, found.start(1)) + 1
        return None, mark, 1
    return None


def _is_of(framework: str, place: str, text: str) -> bool:
    """Whether a file is the framework's: what builds a package says its name."""
    if not place.endswith(("setup.py", "pyproject.toml")):
        return True
    named = _NAMED.search(text[:_MOST])
    return named is not None and re.sub("[-_.]+", "_", named[1]).lower() == framework


def of_image(text: str, framework: str) -> tuple[tuple[int, ...], int] | None:
    """Return the version in the tags of the images that a manifest runs a framework in, and the line."""
    found = {
        _numbers(number): text.count("\n", 0, place) + 1
        for place, number in _tags(
            r"(?m)^[ \t-]*image(?:_id)?:[ \t]*[\"']?", text, framework.replace("_", "-")
        )
    }
    return next(iter(found.items())) if len(found) == 1 else None


def of_installs(text: str, framework: str) -> tuple[tuple[int, ...], int] | None:
    """Return the version of a framework that a script or a notebook installs itself, and the line."""
    found = {
        _numbers(number): text.count("\n", 0, place) + 1
        for place, number in _pins(_DOCKER, text, framework.replace("_", "-"))
    }
    return next(iter(found.items())) if len(found) == 1 else None


def _numbers(text: str) -> tuple[int, ...]:
    numbers = [int(part[:9]) for part in text.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _pins(kind: int, text: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield the versions that a file pins a package to, each with its place."""
    name = re.sub("[-_.]+", "[-_.]+", re.escape(package).replace(r"\-", "-"))
    exact = rf"{name}[ \t]*(?:\[[^\]\n]*\])?[ \t]*==[ \t]*{_NUMBER}{_LINUX}"
    patterns = {
        _LOCK: [rf"(?mi)^name = \"{name}\"\r?\nversion = \"{_NUMBER}"],
        _REQUIREMENTS: [rf"(?mi)^[ \t]*{exact}"],
        _PROJECT: [rf"(?mi)^[^#\n]*[\"']{exact}", rf"(?mi)^{name}[ \t]*=[ \t]*[\"']=={_NUMBER}"],
        _CONDA: [rf"(?mi)^[ \t]*-[ \t]+{name}==?{_NUMBER}", rf"(?mi)^[ \t]*-[ \t]+{exact}"],
        _DOCKER: [rf"(?mi)^[^#\n]*(?<![\w./-]){exact}", *_clones(name)],
        _GUIDE: [
            rf"(?mi)^[^#\n]*install[ \t][^#\n]*(?<![\w./-]){exact}",
            rf"(?mi)\brequire[sd]?\b[^\n`]*`{exact}`",
            *_clones(name),
        ],
    }[kind]
    # A project that takes any version pins none: others are of an extra, such as one for an accelerator.
    bare = rf"(?mi)(?:^|[\[,])[ \t]*[\"']{name}[\"'][ \t]*(?:[,\]]|$)"
    if kind == _PROJECT and re.search(bare, text):
        patterns = []
    for pattern in patterns:
        yield from ((found.start(1), found[1]) for found in re.finditer(pattern, text))
    if kind == _DOCKER:
        yield from _tags(r"(?mi)^FROM[ \t]+(?:--\S+[ \t]+)?", text, package)
    if kind == _PROJECT:
        yield from _own(text, name)


def _clones(name: str) -> list[str]:
    """Return the patterns of commands that take a package from a tag of its repository."""
    home = rf"/{name}(?:\.git)?(?![\w.-])"
    return [
        rf"(?mi)^[^#\n]*git\+https?://[\w./-]*{home}@{_NUMBER}",
        rf"(?mi)^[^#\n]*{_CLONE}(?:-b|--branch)[ \t=]+{_NUMBER}[^\n]*{home}",
        rf"(?mi)^[^#\n]*{_CLONE}{home}{_NEXT}{_NUMBER}",
    ]


def _exact(kind: int, text: str, package: str) -> Iterator[tuple[int, tuple[float, ...]]]:
    yield from ((place, _numbers(number)) for place, number in _pins(kind, text, package))


def _newest(kind: int, text: str, package: str) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Yield what ranges with an upper end come to, each with its place."""
    start = {_REQUIREMENTS: r"^[ \t]*", _PROJECT: r"^[^#\n]*[\"']"}.get(kind)
    if start is None:
        return
    name = re.sub("[-_.]+", "[-_.]+", re.escape(package).replace(r"\-", "-"))
    ends = rf"(?mi){start}{name}[ \t]*(?:\[[^\]\n]*\])?[ \t]*{_UP_TO}{_LINUX}"
    for found in re.finditer(ends, text):
        numbers = _numbers(found[2])
        if found[1] == "~=":
            first = [int(part[:9]) for part in found[2].split(".")][:-1]
            numbers = (*first[:-1], first[-1] + 1) if first else ()
        if numbers:
            yield found.start(2), numbers if found[1] == "<=" else towards(numbers)


def _own(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield the version of a project that is the framework itself."""
    section = re.search(r"(?ms)^\[project\][ \t]*\r?$(.*?)(?=^\[|\Z)", text)
    if section is not None and re.search(rf"(?mi)^name[ \t]*=[ \t]*[\"']{name}[\"']", section[1]):
        own = re.search(rf"(?m)^version[ \t]*=[ \t]*[\"']{_NUMBER}", section[1])
        if own is not None:
            yield section.start(1) + own.start(1), own[1]


def _tags(before: str, text: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield the versions in tags of images that are named after a package: ``vllm/vllm-openai:v0.8.4``."""
    images = re.finditer(rf"{before}(?:[\w.:-]+/)*{re.escape(package)}(?:-openai)?:{_NUMBER}", text)
    yield from ((found.start(1), found[1]) for found in images)
