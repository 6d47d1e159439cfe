"""Reads config files: bytes to documents by their format, and the files that a config names.

Nothing here touches the disk. A `Reader` comes from whoever may (the command line); without one, what a
second file would say is unknown.
"""

from __future__ import annotations

import os
from bisect import bisect_right

from cfglint.budget import BUDGET, spend
from cfglint.document.candidates import may_be_settings, may_return_configs
from cfglint.document.tree import (
    BOM,
    MAX_BYTES,
    PROGRAMS,
    SCRIPTS,
    Alias,
    Document,
    File,
    Mapping,
    Node,
    Scalar,
    target,
    walk,
)
from cfglint.document.yaml import parse_yaml
from cfglint.errors import DocumentError
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Sequence as Listed
    from typing import Any, TypeAlias

    from cfglint.boundary import Boundary
    from cfglint.document.project import Project
    from cfglint.document.shell.run import Scripts

    Reader: TypeAlias = Callable[[str], bytes | None]
    Lister: TypeAlias = Callable[[str], list[str]]

MAX_SCRIPT = 2**20  # characters; launch scripts have a few thousand
# Keys that a manifest has a command at, and what stands beside it (shell/forms.py has the forms).
_RUN = {"run", "command", "commands", "entrypoint", "jobs"}
_TASK = {"resources", "num_nodes", "setup", "envs", "workdir", "file_mounts"}
_BESIDE = _TASK | {"type", "compute", "compute_config", "distribution", "environment", "$schema"}
# Further keys of SkyPilot, Kubernetes, compose, dstack, AzureML, Determined, Anyscale and MosaicML.
_MANIFEST = _RUN | _BESIDE | {
    *("name", "service", "pool", "config", "secrets", "volumes", "inputs", "outputs", "image_id"),
    *("apiVersion", "kind", "metadata", "spec", "status", "data"),
    *("services", "version", "networks", "configs", "include"),
    *("image", "python", "env", "nodes", "ports", "port", "model", "replicas", "scaling", "files", "repos"),
    *("code", "environment_variables", "display_name", "experiment_name", "description", "tags", "settings"),
    *("searcher", "workspace", "project", "max_restarts", "image_uri", "cloud", "env_vars", "working_dir"),
    *("integrations", "env_variables", "scheduling", "max_retries"),
}  # fmt: skip
_POD = {"gpuTypeIds", "gpuTypeId", "gpu_type_id", "dockerStartCmd", "dockerArgs", "docker_args"}
# The other arguments of runpod.create_pod (runpod-python, runpod/api/ctl_commands.py).
_POD_TOO = {
    *("image_name", "cloud_type", "support_public_ip", "start_ssh", "data_center_id", "country_code"),
    *("gpu_count", "volume_in_gb", "container_disk_in_gb", "min_vcpu_count", "min_memory_in_gb", "ports"),
    *("env", "volume_mount_path", "template_id", "network_volume_id", "allowed_cuda_versions"),
    *("min_download", "min_upload", "instance_id"),
}
_DEEPEST_FOLDER = 64
_LARGEST = 1 << 19  # bytes of a JSON that another file names: what is larger is data
_NAMED = {"shell": "yaml", "python": "program", "notebook": "program"}


def read(data: bytes, path: str, form: str = "", scripts: Scripts | None = None) -> File:
    """Decode and parse ``data``; what is not UTF-8 gives a file whose one document carries the error.

    The form is that of the path's suffix, unless it is given. ``scripts`` gives the text of a script that
    another one sources or runs, by the name that it is called there.
    """
    if len(data) > MAX_BYTES:
        return _broken(path, "", _too_large(MAX_BYTES), None)
    bom = data.startswith(BOM)
    if bom:
        data = data[3:]
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        wide = "utf-32" if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) else "utf-16"
        said = f"encoded as {wide.upper()}: save it as UTF-8"
        return _broken(path, data.decode(wide, "replace"), said, 0)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + (3 if bom else 0)
        message = f"byte {at} (0x{data[error.start]:02x}) is not UTF-8: save the file as UTF-8"
        offset = len(data[: error.start].decode("utf-8", "replace"))
        return _broken(path, data.decode("utf-8", "replace"), message, offset, bom=bom)
    return read_text(text, path, bom=bom, form=form, scripts=scripts)


def unread(data: bytes, path: str, why: str) -> File:
    """Return a file that is not parsed, for the reason ``why``."""
    return _broken(path, data.decode("utf-8", "replace"), why, None)


def read_text(
    text: str, path: str, *, bom: bool = False, form: str = "", scripts: Scripts | None = None
) -> File:
    """Parse ``text``; ``path`` determines the format: JSON, TOML, a shell script, Python, else YAML."""
    if text.startswith("\ufeff"):
        text, bom = text[1:], True
    form = form or ("json" if path.endswith(".conf") and text.lstrip().startswith("{") else format_of(path))
    most = MAX_SCRIPT if form == "shell" else MAX_BYTES
    if len(text) > most:
        return _broken(path, text, _too_large(most), None, bom=bom)
    with BUDGET:  # of the file that names this one, or its own
        documents = parsed(text, form, scripts)
        if form in ("yaml", "json"):
            documents = [part for document in documents for part in _parts(text, document, scripts)]
    file = _file(path, text, documents, bom=bom, form=form)
    file.scripts = scripts
    return file


def parsed(text: str, form: str, scripts: Scripts | None = None) -> list[Document]:
    """Return the documents of a text, a manifest as it is written."""
    if form == "shell":
        from cfglint.document.shell.launch import parse_script

        return parse_script(text, scripts)
    if form in ("program", "python", "notebook"):
        return _parsed_program(text, form, scripts)
    if form == "json":
        from cfglint.document.json import parse_json

        return parse_json(text)
    if form == "toml":
        from cfglint.document.toml import parse_toml

        return parse_toml(text)
    return parse_yaml(text)


def _parsed_program(text: str, form: str, scripts: Scripts | None) -> list[Document]:
    """Return what a program trains; of a command's program, which asks for what it needs, only a config."""
    if form != "notebook" and may_be_settings(text):
        from cfglint.document.python.settings import parse_settings

        if settings := parse_settings(text):
            return settings
    if form == "program":
        return []
    from cfglint.document.python.documents import parse_program

    documents = parse_program(text, notebook=form == "notebook")
    if form == "python" and may_return_configs(text):
        from cfglint.document.python.configs import parse_configs  # few programs do

        documents += parse_configs(text, scripts)
    return documents


def _parts(text: str, document: Document, scripts: Scripts | None) -> list[Document]:
    """Return what a manifest launches, else the document itself; both for a config with a manifest's keys."""
    launches = _launches(text, document, scripts)
    names = set(document.root.entries) if isinstance(document.root, Mapping) else set()
    own = names - _MANIFEST - _POD
    if not names.isdisjoint(_POD):  # the keys of its REST interface are in camel case
        own = {name for name in own - _POD_TOO if name == name.lower()}
    if launches and own:
        return [*launches, document]
    return launches or [document]


def _launches(text: str, document: Document, scripts: Scripts | None) -> list[Document]:
    """Return the commands that a manifest launches."""
    root = document.root
    if not isinstance(root, Mapping) or document.error is not None:
        return []
    names = root.entries.keys()
    if not (
        ("kind" in names and "apiVersion" in names)
        or not (_RUN.isdisjoint(names) or _BESIDE.isdisjoint(names))
        or "services" in names
        or not _POD.isdisjoint(names)
    ):
        return []
    from cfglint.document.shell.manifest import launches_of

    return launches_of(text, root, scripts)


def format_of(path: str) -> str:
    """Return what the name of a file says of its form: json, toml, shell, python, notebook or yaml."""
    lowered = path[-7:].lower()
    if lowered.endswith((".json", ".toml")):
        return lowered[-4:]
    if lowered.endswith(PROGRAMS):
        return "python" if lowered.endswith(".py") else "notebook"
    return "shell" if lowered.endswith(SCRIPTS) else "yaml"


def _file(path: str, text: str, documents: list[Document], *, bom: bool, form: str = "") -> File:
    file = File(path, text, form or format_of(path), bom=bom)
    file.documents = documents
    for index, document in enumerate(documents):
        document.file, document.index = file, index
        document.format = document.format or file.format  # a command in a manifest reads as one in a script
    return file


def _too_large(most: int) -> str:
    return f"larger than {most // 2**20} MiB: not read, since configs are smaller"


def _broken(path: str, text: str, message: str, offset: int | None, *, bom: bool = False) -> File:
    document = Document(0, len(text), error=DocumentError(message, offset))
    return _file(path, text, [document], bom=bom)


# ── sections of a document, each a document itself ─────────────────────────────────────────────────────────
def sections(document: Document) -> list[Document]:
    """Return the mappings at the top as documents; none where something else is there, too."""
    root = document.root
    if not isinstance(root, Mapping) or root.merges:
        return []
    nodes = [entry.value for entry in root.entries.values()]
    if not all(isinstance(target(node), Mapping) for node in nodes):
        return []
    parts = [_section(document, entry.key, entry.value) for entry in root.entries.values()]
    spend(len(parts) * (10 + len(document.duplicates)), "sections")
    by_start = sorted(parts, key=lambda part: part.start)
    starts = [part.start for part in by_start]
    lent: dict[int, dict[tuple[int, int], None]] = {}
    for reader, node in zip(parts, nodes, strict=True):  # what others read of it, through an alias or a merge
        for alias in walk(node):
            if isinstance(alias, Alias):
                owner = by_start[max(bisect_right(starts, alias.target.start) - 1, 0)]
                if owner is not reader:
                    lent.setdefault(id(owner), {})[alias.target.start, alias.target.end] = None
    for part in parts:
        part.lent = tuple(lent.get(id(part), ()))
    return parts


def _section(document: Document, key: Scalar, node: Node) -> Document:
    part = Document(
        node.start, node.end, target(node), format=document.file.format, index=document.index, key=key
    )
    part.file, part.whole = document.file, document
    part.duplicates = [pair for pair in document.duplicates if node.start <= pair[0].start < node.end]
    last = key  # of a name that stands twice, the later section is the one that counts
    for later, first in reversed(document.duplicates):
        if later is last:
            part.duplicates.append((later, first))
            last = first
    return part


def nothing(_path: str) -> list[str]:
    """Return no folders and no files, where nobody may list any."""
    return []


class Library(Record):
    """Files by their paths; ``read`` gives a file's bytes, and None for what is not a file.

    ``folders`` gives the names of the folders in one, ``project`` tells what the code around a file says.

    A file is read for the one that names it, ``by``, and only inside the ``boundary``, if there is one. One
    that the override of a key names is trusted where it is among those that were ``typed``.
    """

    read: Reader
    boundary: Boundary | None = None
    folders: Lister = nothing
    project: Project | None = None
    typed: Listed[str] = ()
    _files: dict[str, File | None] = field(factory=dict, init=False)
    _roots: dict[str, str | None] = field(factory=dict, init=False)
    programs: dict[str, Any] = field(factory=dict, init=False)  # that were gone through, by their paths

    _packages: dict[tuple[str, str], bool] = field(factory=dict, init=False)
    _copies: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(factory=dict, init=False)

    def has_any(self, path: str, what: str, names: Iterable[str]) -> bool:
        """Whether one of some files is here for the file at ``path``, asked once a folder and ``what``."""
        key = os.path.dirname(path), what
        if key not in self._packages:
            self._packages[key] = any(self.find(path, name) is not None for name in names)
        return self._packages[key]

    def copies(self, path: str, packages: tuple[str, ...]) -> tuple[str, ...]:
        """Return the folders beside the file at ``path``, or above it, that hold one of some packages."""
        here = os.path.dirname(path)
        if (here, packages) not in self._copies:
            around = (here or ".", *self.above(here))
            beside = (os.path.join(at, name) for at in around for name in self.folders(at))
            self._copies[here, packages] = tuple(f for f in beside if self._holds(f, packages, path))
        return self._copies[here, packages]

    def _holds(self, folder: str, packages: tuple[str, ...], by: str) -> bool:
        """Whether a folder has one of some packages in it, or in its ``src``."""
        for package in packages:
            for inner in ("", "src"):
                path = os.path.join(folder, inner, package, "__init__.py")
                allowed = self.boundary is None or self.boundary.holds(path, by)
                if allowed and self.read(path) is not None:
                    return True
        return False

    def file(self, path: str, by: str) -> File | None:
        """Return the file at ``path``, parsed; None where there is none for ``by``.

        What a config names is no script, whatever its suffix says, and what a command starts is a program.
        Data are no config.
        """
        path = os.path.normpath(path)
        if self.boundary is not None and not self.boundary.holds(path, by):
            return None
        key = os.path.abspath(path)
        if key not in self._files:
            data = self.read(path)
            form = format_of(path)
            large = data is not None and len(data) > _LARGEST and form == "json"
            self._files[key] = None if data is None or large else read(data, path, _NAMED.get(form, form))
        return self._files[key]

    def beside(self, path: str, name: str) -> File | None:
        """Return the file ``name`` as seen from the folder of the file ``path``, and from nowhere else."""
        return self.file(os.path.join(os.path.dirname(path), name), path) if _is_name(name) else None

    def find(self, path: str, name: str) -> File | None:
        """Return the file that a config at ``path`` names, and a job would find from where people start it.

        That is seen from the config's own folder, then the top of its project, from where most people start,
        then the folders between them, the nearest first. What is in none of these is looked for in the
        working folder, so that elsewhere the answer is the same wherever cfglint runs.
        """
        if not _is_name(name):
            return None
        files = (self.file(place, path) for place in self.places(path, name))
        return next((file for file in files if file is not None), None)

    def named(self, path: str, name: str) -> File | None:
        """Return the file that somebody typed for the config at ``path``, seen from the working folder first.

        Like each path of a command line it may lie anywhere. Raises UsageError for a link that leads astray.
        """
        for place in (name, *self.places(path, name)) if _is_name(name) else ():
            if self.boundary is not None:
                self.boundary.check(place)
            if (file := self.file(place, place)) is not None:
                return file
        return None

    def script(self, path: str, name: str) -> str | None:
        """Return the text of a script that the one at ``path`` sources or runs; None where it is not here."""
        if not _is_name(name):
            return None
        for place in map(os.path.normpath, self.places(path, name)):
            allowed = self.boundary is None or self.boundary.holds(place, path)
            data = self.read(place) if allowed and not same(place, path) else None
            if data is not None and len(data) <= MAX_SCRIPT and b"\0" not in data:
                return data.decode("utf-8", "replace").removeprefix("\ufeff")
        return None

    def places(self, path: str, name: str) -> Iterator[str]:
        """Yield where `find` looks."""
        yield from self.around(path, name)
        if not os.path.isabs(name):
            yield name

    def around(self, path: str, name: str) -> Iterator[str]:
        """Yield where a project may have a file that the one at ``path`` names."""
        yield os.path.join(os.path.dirname(path), name)
        if os.path.isabs(name):
            return
        *between, top = list(self.above(os.path.dirname(path))) or [""]
        for folder in (top, *between) if top else ():
            above = os.path.join(folder, name)
            yield above if os.path.isabs(path) else os.path.relpath(above)

    def sought(self, path: str, name: str) -> list[str]:
        """Return where `named` looks, each place once."""
        places = map(os.path.normpath, (name, *self.places(path, name)))
        return list({os.path.abspath(place): place for place in places}.values())

    def outside(self, path: str, name: str) -> bool:
        """Whether a name leads out of what may be read for the file at ``path``, be there a file or not."""
        if self.boundary is None or not _is_name(name):
            return False
        return not self.boundary.holds(os.path.join(os.path.dirname(path), name), path)

    def above(self, folder: str) -> Iterator[str]:
        """Yield the folders above one, up to the top of its project."""
        top, at = self.root(folder), os.path.abspath(folder)
        while top is not None and at != top:
            at = os.path.dirname(at)
            yield at

    def root(self, folder: str) -> str | None:
        """Return the top of the project that ``folder`` is in, None where it is in none."""
        if self.boundary is not None:
            return self.boundary.root(os.path.join(folder, "any"))
        folder = os.path.abspath(folder)
        if folder not in self._roots:
            at = folder
            self._roots[folder] = None
            for _ in range(_DEEPEST_FOLDER):
                git = os.path.join(at, ".git")  # a folder, or in a worktree a file
                if self.read(os.path.join(git, "HEAD")) is not None or self.read(git) is not None:
                    self._roots[folder] = at
                    break
                above = os.path.dirname(at)
                if above == at:
                    break
                at = above
        return self._roots[folder]


def same(first: str, second: str) -> bool:
    """Whether two paths lead to one file, as far as their spelling shows."""
    return os.path.abspath(first) == os.path.abspath(second)


def _is_name(name: str) -> bool:
    return 0 < len(name) < 4096 and "\0" not in name
