"""What ``$(…)`` comes to where the words say it: folders and names of files, as scripts work them out.

``pwd``, ``dirname``, ``basename``, ``realpath``, ``readlink -f``, ``cd FOLDER && pwd``, ``expr``, ``echo``
also into a pipe; all else is unknown. A path whose beginning is unknown keeps its end. A program that
looks for an Ascend NPU finds none: no target has one.
"""

from __future__ import annotations

import re

from cfglint.document.shell.piped import piped
from cfglint.document.shell.words import (
    BESIDE,
    HERE,
    OUTPUT,
    QUOTED,
    SELF,
    Piece,
    Word,
    combined,
    uncertain,
    unknown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


_PLACES = (HERE, BESIDE)
_ECHO = re.compile(r"-[neE]+\Z")  # its options
_WHOLE = re.compile(r"-?[0-9]{1,18}\Z")
_DEEPEST = 20  # of substitutions in each other, with what is between them
_MOST_ENDS = 8  # of a path, that are looked for
_SILENT = ("file_redirect", "herestring_redirect")
# A flag's or a key's word, all of whose value is one variable or sum, perhaps in quotes.
_EXPANSION = re.compile(
    r"""(?:"?[-+\w./@]+=)?("?)(\$\{\w+\}|\$\w+|\$\(\([^()]*(?:\([^()]*\)[^()]*)*\)\))\1"?"""
)
_FILE = re.compile(r"/[\w.-]+\.(?:json|ya?ml)\Z")
_LOOKS_FOR_NPU = re.compile(
    r"(?:python[0-9.]*\s+-c\s+(['\"])\s*import torch_npu\s*;?\s*\1"
    r"|(?:(?:command\s+-v|which|hash|type(?:\s+-\w+)?)\s+)?npu-smi(?:\s+(?:info|-\w+))*)"
    r"(?:\s*(?:[0-9]?>&[0-9]|[0-9&]?>>?\s*[\w/]+))*\s*\Z"
)


def output_of(expander: Any, node: Any, depth: int) -> list[Piece]:
    """Return the pieces of what a substituted command prints."""
    source = expander.source
    why = [unknown(OUTPUT + source.text_of(node)[:60])]
    inner = [child for child in node.named_children if child.type != "comment"]
    if node.type != "command_substitution" or node.has_error or not 0 < len(inner) < 3:
        return why
    body = _other_way(source, inner[-1])
    first: list[Word] | None = None
    if len(inner) > 1:  # cd FOLDER; pwd
        first = _words(expander, inner[0], depth) or []
    elif body.type == "list" and len(body.named_children) == 2 and source.text_of(body.children[1]) == "&&":
        first = _words(expander, body.named_children[0], depth)
        body = body.named_children[1]
    told = _piped(expander, body, depth) if first is None else None
    told = _document(expander, body, depth) if told is None else told
    if told is not None:
        return told
    words = _words(expander, body, depth)
    if not words:
        return why
    if first is not None:
        if _name(first) != "cd" or _name(words) != "pwd" or len(first) < 2:
            return why
        return _absolute(list(first[-1].pieces)) or why
    return _printed(expander, words) or why


def _piped(expander: Any, node: Any, depth: int) -> list[Piece] | None:
    """Return what a pipeline prints that begins with an echo; None where that is not known."""
    commands = [_words(expander, child, depth) for child in node.named_children if node.type == "pipeline"]
    known = [words for words in commands if words]
    if not known or len(known) < len(commands) or _name(known[0]) != "echo":
        return None
    return piped(_printed(expander, known[0]), known[1:]) or None


def looks_for_npu(text: str) -> bool:
    """Whether a command asks if there is an Ascend NPU, which is false on every GPU."""
    return _LOOKS_FOR_NPU.match(text.strip()) is not None


def _other_way(source: Any, body: Any) -> Any:
    """Return what runs without an NPU: the last command of ``LOOK && echo npu || echo gpu``."""
    if body.type != "list" or body.child_count != 3 or source.text_of(body.children[1]) != "||":
        return body
    first = body.children[0]
    if first.type == "list" and first.child_count == 3 and source.text_of(first.children[1]) == "&&":
        first = first.children[0]
    return body.children[2] if looks_for_npu(source.text_of(first)) else body


def _document(expander: Any, node: Any, depth: int) -> list[Piece] | None:
    """Return the here-document that ``$(cat <<EOF …)`` prints; None where it is another command."""
    command = node.child_by_field_name("body") if node.type == "redirected_statement" else None
    parts = [c for c in node.named_children if c.type == "heredoc_redirect"] if command is not None else []
    if len(parts) != 1 or expander.source.text_of(command).strip() != "cat" or len(node.named_children) != 2:
        return None
    kinds = {child.type: child for child in parts[0].named_children}
    start, body = kinds.get("heredoc_start"), kinds.get("heredoc_body")
    if start is None or body is None or depth > _DEEPEST:
        return None
    if any(mark in expander.source.text_of(start) for mark in "'\"\\"):
        return list(expander.source.slice(body.start_byte, body.end_byte, QUOTED))
    return list(expander.mixed(body, body.start_byte, body.end_byte, depth + 1))


def _words(expander: Any, node: Any, depth: int) -> list[Word] | None:
    if node.type == "redirected_statement":
        body = node.child_by_field_name("body")
        if body is None or any(c.type not in _SILENT for c in node.named_children if c.id != body.id):
            return None
        node = body
    if node.type != "command" or node.child_by_field_name("name") is None or depth > _DEEPEST:
        return None
    parts = [child for child in node.named_children if child.type not in _SILENT]
    if any(part.type == "variable_assignment" for part in parts):
        return None
    words: list[Word] = []
    for part in parts:
        for child in part.named_children if part.type == "command_name" else [part]:
            words += expander.words(child, depth + 1)
    return words


def _name(words: list[Word]) -> str:
    return words[0].text or "" if words else ""


def _printed(expander: Any, words: list[Word]) -> list[Piece]:
    """Return what a command prints; nothing where that is not known."""
    name, arguments = _name(words), words[1:]
    if name == "which" or [word.text for word in words[:2]] == ["command", "-v"]:
        return [unknown("where programs are"), Piece(f"/{words[-1].text}", -1, -1)] if words[-1].text else []
    if name == "pwd":
        held = expander.variable("PWD", QUOTED)
        return held if held and not arguments else []
    if name == "echo" and arguments:
        spaced = [piece for word in arguments for piece in (Piece(" ", -1, -1), *word.pieces)][1:]
        return spaced if not _ECHO.match(arguments[0].spelled) else []
    if name == "expr" and len(arguments) == 3:
        return _computed(arguments)
    if name in ("realpath", "readlink"):
        arguments = [word for word in arguments if not word.spelled.startswith("-")]
    if arguments and arguments[0].text == "--":
        arguments = arguments[1:]
    if name == "basename" and len(arguments) in (1, 2):
        suffix = arguments[1].text if len(arguments) == 2 else ""
        return _base(list(arguments[0].pieces), suffix) if suffix is not None else []
    paths = {"dirname": _folder, "realpath": _absolute, "readlink": _absolute}
    return paths[name](list(arguments[0].pieces)) if len(arguments) == 1 and name in paths else []


def _computed(words: list[Word]) -> list[Piece]:
    """Return what ``expr A + B`` prints."""
    left, sign, right = (word.text or "" for word in words)
    if not (_WHOLE.match(left) and _WHOLE.match(right) and sign in ("+", "-", "*", "/", "%")):
        return []
    value = combined(int(left), sign, int(right))
    reads = tuple(piece for word in words for piece in word.pieces)
    return [Piece(str(value), -1, -1, reads=reads)] if value is not None else []


def _split(pieces: Sequence[Piece]) -> tuple[Piece | None, str] | None:
    """Return an unknown beginning and the known text behind it; None where more is unknown."""
    if not pieces or any(piece.maybe for piece in pieces):
        return None
    head = pieces[0] if pieces[0].unknown else None
    rest = pieces[1:] if head is not None else pieces
    return None if uncertain(rest) else (head, "".join(piece.text for piece in rest))


def _joined(head: Piece | None, text: str) -> list[Piece]:
    return [*([head] if head is not None else []), *([Piece(text, -1, -1)] if text else [])]


def _folder(pieces: list[Piece]) -> list[Piece]:
    parts = _split(pieces)
    if parts is None:
        return []
    head, text = parts
    text = text.rstrip("/") if len(text) > 1 else text
    if head is None:
        folder, slash, _ = text.rpartition("/")
        return _joined(None, folder.rstrip("/") or ("/" if slash else "."))
    if not text:
        if head.unknown == SELF:
            return [unknown(BESIDE)]
        return _joined(head, "/..") if head.unknown in _PLACES else []
    folder, slash, _ = text.rpartition("/")
    return _joined(head, folder) if slash else []


def _base(pieces: list[Piece], suffix: str) -> list[Piece]:
    tail = tail_of(pieces)
    if tail is None:
        return []
    base = tail.rstrip("/").rpartition("/")[2]
    return _joined(None, base.removesuffix(suffix) if base != suffix else base) if base else []


def _absolute(pieces: list[Piece]) -> list[Piece]:
    parts = _split(pieces)
    if parts is None:
        return []
    head, text = parts
    if head is not None:
        return _joined(head, text.rstrip("/"))
    if text.startswith("/"):
        return _joined(None, text)
    return _joined(unknown(HERE), "" if text in (".", "") else "/" + text.removeprefix("./"))


def tail_of(pieces: Sequence[Piece]) -> str | None:
    """Return the end of a path that is known, from a slash on; None where its last component is not known."""
    if not pieces or any(piece.maybe for piece in pieces):
        return None
    after = max((i for i, piece in enumerate(pieces) if piece.unknown), default=-1) + 1
    text = "".join(piece.text for piece in pieces[after:])
    if after and "/" not in text.rstrip("/"):
        return None
    return text


def ending_of(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return where the last part of a config's path is spelled out, with the file's name; else (-1, -1)."""
    last = pieces[-1] if pieces else None
    if last is None or not last.verbatim or last.maybe or last.unknown or not _FILE.search(last.text):
        return -1, -1
    return last.start, last.end


def spot_of(spelled: str, text: str, start: int) -> tuple[int, int] | None:
    """Return where a word says one number by one expansion, as in ``key=${N}``; None where it does not."""
    found = _EXPANSION.fullmatch(spelled) if text.isdecimal() and start >= 0 else None
    return None if found is None else (start + found.start(2), start + found.end(2))


def is_placed(pieces: Sequence[Piece]) -> bool:
    """Whether a path is the working folder's or the script's, or below it."""
    parts = _split(pieces)
    return parts is not None and parts[0] is not None and parts[0].unknown in _PLACES


def placed(pieces: Sequence[Piece]) -> str | None:
    """Return a path below the working folder or the script's as one that is seen from there."""
    parts = _split(pieces)
    if parts is None or parts[0] is None or parts[0].unknown not in _PLACES or not parts[1].startswith("/"):
        return None
    return "." + parts[1]


def ends_of(path: str | None, pieces: Sequence[Piece]) -> Iterator[str]:
    """Yield a script's path, or the ends of one in a folder of another machine, the longest first.

    A checkout of the repository lies there, too: ``$WORK/project/configs/env.sh`` may be ``configs/env.sh``.
    """
    if path:
        yield path
    end = tail_of(pieces) if path is None else path
    parts = end.strip("/").split("/") if end and (path is None or path.startswith("/")) else []
    yield from ("/".join(parts[at:]) for at in range(min(len(parts) - 1, _MOST_ENDS)))
