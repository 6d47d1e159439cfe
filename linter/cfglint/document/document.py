"""A config file: its bytes decoded, its documents parsed. Nothing here touches the disk."""

from __future__ import annotations

from cfglint.document.tree import Mapping
from cfglint.document.yaml_tree import MAX_BYTES, Parsed, parse_yaml
from cfglint.errors import DocumentError
from cfglint.text import LineIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.job import Job
    from cfglint.document.tree import Node, Scalar

SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
# The words of which one stands in every script that launches a job.
STARTERS = (
    "python", "torchrun", "deepspeed", "accelerate", "tune", "llamafactory-cli", "trl", "axolotl", "vllm",
    "sglang", "rl @", "vllm-openai",
)  # fmt: skip
MAX_SCRIPT = 2**20  # characters; launch scripts have a few thousand
# Keys of a SkyPilot task beside `run`, and of a RunPod pod (REST, Python, GraphQL).
_TASK = {"resources", "num_nodes", "setup", "envs", "workdir", "file_mounts"}
_POD = {"gpuTypeIds", "gpuTypeId", "gpu_type_id", "dockerStartCmd", "dockerArgs", "docker_args"}
_BOM = b"\xef\xbb\xbf"


class Document:
    """One document of a file. With ``error`` set, ``root`` is what stood before it, and may be None.

    ``over`` are the scalars that name files which the document is laid over (a launch's ``--config``).
    A section of a document is one itself: ``key`` is its name, ``whole`` the document that it stands in,
    ``lent`` the spans of definitions in it that other sections read.
    """

    __slots__ = (
        "_lax", "_loader", "duplicates", "end", "error", "file", "format", "index", "job", "key", "lent",
        "listed", "over", "root", "start", "whole",
    )  # fmt: skip

    def __init__(self, file: File, index: int, parsed: Parsed) -> None:
        self.file = file
        self.index = index
        self.root: Node | None = parsed.root
        self.start = parsed.start
        self.end = parsed.end
        self.duplicates: list[tuple[Scalar, Scalar]] = parsed.duplicates
        self.error: DocumentError | None = parsed.error
        self._loader = ""
        self._lax = self.error is not None and self.error is parsed.lax
        self.over: tuple[Scalar, ...] = parsed.over
        self.format = parsed.form or file.format  # a command in a manifest reads as one in a script
        self.listed = parsed.listed
        self.job: Job | None = parsed.job  # what the job asks for that it is part of
        self.key: Scalar | None = None
        self.whole = self
        self.lent: tuple[tuple[int, int], ...] = ()

    def sections(self) -> list[Document]:
        """Return the mappings at the top as documents; none where something else stands there, too."""
        from cfglint.document.sections import sections

        return sections(self)

    def taken_by(self, dialect: str) -> None:
        """Forget a mistake that is none to a loader: hjson takes comments and a comma too many."""
        self._loader = dialect
        if self._lax and dialect == "hjson":
            self.error = None

    def again(self, file: File) -> Document | None:
        """Return this document in an edited version of its file; None where it cannot be found in it."""
        if len(file.documents) != len(self.file.documents):
            return None
        found = file.documents[self.index]
        found.taken_by(self._loader)
        if found.error is not None:
            return None
        if self.key is None:
            return found
        return next((part for part in found.sections() if part.key.text == self.key.text), None)  # type: ignore[union-attr]

    def owns(self, start: int, end: int) -> bool:
        """Whether what stands there is this document's alone, and no other section's as well."""
        return self.key is None or (
            self.start <= start
            and end <= self.end
            and not any(first <= start and end <= last for first, last in self.lent)
        )


class File:
    """A decoded file; ``text`` is without its byte order mark, and its line ends are as they were."""

    __slots__ = ("_lines", "bom", "documents", "format", "path", "text")

    def __init__(self, path: str, text: str, format: str, *, bom: bool) -> None:  # noqa: A002 (the field's term)
        self.path = path
        self.text = text
        self.bom = bom
        self.format = format
        self.documents: list[Document] = []
        self._lines: LineIndex | None = None

    @property
    def lines(self) -> LineIndex:
        """Line and column of an offset."""
        if self._lines is None:
            self._lines = LineIndex(self.text)
        return self._lines

    def encode(self, text: str) -> bytes:
        """Return ``text``, an edited version of this file's, as the bytes to write."""
        data = text.encode("utf-8")
        return _BOM + data if self.bom else data


def read(data: bytes, path: str) -> File:
    """Decode and parse ``data``; what is no UTF-8 gives a file whose one document carries the error."""
    if len(data) > MAX_BYTES:
        return _broken(path, "", f"larger than {MAX_BYTES // 2**20} MiB: no config is", None)
    bom = data.startswith(_BOM)
    if bom:
        data = data[3:]
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _broken(path, "", "encoded as UTF-16: save it as UTF-8", 0)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + (3 if bom else 0)
        message = f"byte {at} (0x{data[error.start]:02x}) is not UTF-8: save the file as UTF-8"
        offset = len(data[: error.start].decode("utf-8", "replace"))
        return _broken(path, data.decode("utf-8", "replace"), message, offset, bom=bom)
    return read_text(text, path, bom=bom)


def read_text(text: str, path: str, *, bom: bool = False) -> File:
    """Parse ``text``; ``path`` tells the format: JSON, TOML, a shell script, else YAML."""
    if text.startswith("\ufeff"):
        text, bom = text[1:], True
    form = format_of(path)
    most = MAX_SCRIPT if form == "shell" else MAX_BYTES
    if len(text) > most:
        return _broken(path, text, f"larger than {most // 2**20} MiB: no config is", None, bom=bom)
    file = File(path, text, form, bom=bom)
    if form == "shell":
        from cfglint.document.shell.script import parse_script

        parsed = parse_script(text)
    elif form == "json":
        from cfglint.document.json_tree import parse_json

        parsed = parse_json(text)
    elif form == "toml":
        from cfglint.document.toml_tree import parse_toml

        parsed = parse_toml(text)
    else:
        parsed = parse_yaml(text)
    if form in ("yaml", "json"):
        parsed = [launch for one in parsed for launch in (_launches(text, one) or (one,))]
    file.documents = [Document(file, i, p) for i, p in enumerate(parsed)]
    return file


def _launches(text: str, parsed: Parsed) -> list[Parsed]:
    """Return the commands that a manifest launches: of SkyPilot, Kubernetes, compose, RunPod."""
    root = parsed.root
    if not isinstance(root, Mapping) or parsed.error is not None:
        return []
    names = root.entries.keys()
    if not (
        ("kind" in names and "apiVersion" in names)
        or ("run" in names and not _TASK.isdisjoint(names))
        or "services" in names
        or not _POD.isdisjoint(names)
    ):
        return []
    from cfglint.document.shell.manifest import launches_of

    return launches_of(text, root)


def format_of(path: str) -> str:
    """Return what the name of a file says of its form: json, toml, shell or yaml."""
    lowered = path[-7:].lower()
    if lowered.endswith((".json", ".toml")):
        return lowered[-4:]
    return "shell" if lowered.endswith(SCRIPTS) else "yaml"


def _broken(path: str, text: str, message: str, offset: int | None, *, bom: bool = False) -> File:
    file = File(path, text, format_of(path), bom=bom)
    parsed = Parsed(0)
    parsed.end = len(text)
    parsed.error = DocumentError(message, offset)
    file.documents = [Document(file, 0, parsed)]
    return file
