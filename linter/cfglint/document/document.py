"""A config file: its bytes decoded, its documents parsed. Nothing here touches the disk."""

from __future__ import annotations

from cfglint.document.yaml_tree import MAX_BYTES, Parsed, parse_yaml
from cfglint.errors import DocumentError
from cfglint.text import LineIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.job import Job
    from cfglint.document.tree import Node, Scalar

SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
MAX_SCRIPT = 2**20  # characters; launch scripts have a few thousand
_BOM = b"\xef\xbb\xbf"


class Document:
    """One document of a file. With ``error`` set, ``root`` is what stood before it, and may be None.

    A section of a document is one itself: ``key`` is its name, ``whole`` the document that it stands in,
    ``lent`` the spans of definitions in it that other sections read.
    """

    __slots__ = ("duplicates", "end", "error", "file", "index", "key", "lent", "root", "start", "whole")

    def __init__(self, file: File, index: int, parsed: Parsed) -> None:
        self.file = file
        self.index = index
        self.root: Node | None = parsed.root
        self.start = parsed.start
        self.end = parsed.end
        self.duplicates: list[tuple[Scalar, Scalar]] = parsed.duplicates
        self.error: DocumentError | None = parsed.error
        self.key: Scalar | None = None
        self.whole = self
        self.lent: tuple[tuple[int, int], ...] = ()

    def sections(self) -> list[Document]:
        """Return the mappings at the top as documents; none where something else stands there, too."""
        from cfglint.document.sections import sections

        return sections(self)

    def again(self, file: File) -> Document | None:
        """Return this document in an edited version of its file; None where it cannot be found in it."""
        if len(file.documents) != len(self.file.documents) or file.documents[self.index].error is not None:
            return None
        found = file.documents[self.index]
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

    __slots__ = ("_lines", "bom", "documents", "format", "job", "path", "text")

    def __init__(self, path: str, text: str, format: str, *, bom: bool) -> None:  # noqa: A002 (the field's term)
        self.path = path
        self.text = text
        self.bom = bom
        self.format = format
        self.documents: list[Document] = []
        self.job: Job | None = None  # what a batch script asks for
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

        parsed, file.job = parse_script(text)
    elif form == "json":
        from cfglint.document.json_tree import parse_json

        parsed = parse_json(text)
    elif form == "toml":
        from cfglint.document.toml_tree import parse_toml

        parsed = parse_toml(text)
    else:
        parsed = parse_yaml(text)
    file.documents = [Document(file, i, p) for i, p in enumerate(parsed)]
    return file


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
