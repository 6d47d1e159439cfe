"""Edits of a launch script: another value in the place of one, or a flag after the command's last."""

from __future__ import annotations

import re
from collections import Counter

from cfglint.document.shell.processes import first_numbers, text_at
from cfglint.document.shell.started import insert_flag, insert_number
from cfglint.document.tree import (
    Composite,
    Document,
    Mapping,
    Node,
    Path,
    Scalar,
    Several,
    Unresolved,
)
from cfglint.text import Edit, OutsideEdit

# Means itself in every context: bare, in either kind of quotes, after `:-`, in a here-document.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-]+\Z")
_OVERRIDING = ("torchtune", "llamafactory")  # their commands take `key=value`
# What a command says of its launch, and of the config that Hydra reads, whose settings are `key=value`.
_HYDRA = ("config_name", "config_path", "config_dir", "cn", "cp", "cd")
_HYDRA_NAMES = frozenset(("config_name", "cn"))
_NO_SETTINGS = ("launch", *_HYDRA)
_CONTINUED = re.compile(r"[ \t]+\\\r?\n[ \t]*")
_OPENED = re.compile(r"\$\{\w+:?[-=]\Z")
_GAP = re.compile(r"(?:[ \t]|\\\r?\n)+\Z")
_ONE_FLAG = re.compile(r"[^\s=]+(?:=|[ \t]+)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"']+)\Z")  # and its value
_FLAG = re.compile(r"--([\w.-]+)")
_VARIABLE = re.compile(r"([A-Za-z_][\w.]*)=\$(?:\w+|\{\w+\})(?=[ \t\r\n]|\Z)")
_OVERRIDE = re.compile(r"(?:\+\+|\+)?([A-Za-z_][\w./@-]*)=")


def spelled(value: object) -> str | None:
    """Return a value as a word that needs no quotes, None where it needs some."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "null"
    elif isinstance(value, (int, float, str)):
        text = str(value)
    else:
        return None
    return text if _PLAIN.match(text) else None


def replace(document: Document, node: Node, value: object) -> Edit | None:
    """Return the edit that puts ``value`` in the place of ``node``; false takes a flag without value away."""
    if isinstance(node, Unresolved) or node.start < 0 or node.start >= node.end:
        return None
    if isinstance(node, Composite):
        if node.ending[0] >= 0:
            return _replace_ending(node, value)
        return _replace_composite(node, value, document.file.text[node.start : node.end])
    new = spelled(value) or _spaced(value, document.file.text, node)
    if new is None or (value is None and document.file.text[node.start - 1 : node.start] != "="):
        return None  # a flag's word is no null
    if isinstance(node, Scalar) and isinstance(value, bool) and node.text[:1].isupper():
        new = new.capitalize()
    return Edit(node.start, node.end, new)  # in the place of a list, one word


def _spaced(value: object, text: str, node: Node) -> str | None:
    """Return a text with blanks where it takes the place of one in quotes; None where it would be cut up."""
    quoted = (
        node.start > 0
        and text[node.start - 1] in "\"'"
        and text[node.end : node.end + 1] == text[node.start - 1]
    )
    return value if quoted and isinstance(value, str) and _PLAIN.match(value.replace(" ", "")) else None


def _replace_ending(node: Composite, value: object) -> Edit | None:
    """Return the edit that names another file in the same place, or a number in the place of a sum."""
    start, end = node.ending
    if node.text.isdecimal():
        return Edit(start, end, str(value)) if type(value) is int else None
    head = node.text[: start - end]
    if not isinstance(value, str) or not value.startswith(head) or spelled(value) is None:
        return None
    return Edit(start, end, value[len(head) :])


def _replace_composite(node: Composite, value: object, text: str) -> Edit | None:
    """Return the edit of a list of GPUs, with commas or as an array, or of a flag without value."""
    if node.counts:
        apart = " " if len(text.split()) > 1 and "," not in text else ","
        listed = first_numbers(value).replace(",", apart) if type(value) is int else ""
        return Edit(node.start, node.end, listed) if listed else None
    if node.cut < 0:
        return None
    if isinstance(value, str):  # the word of a flag that had none
        new = spelled(value)
        return None if new is None else Edit(node.end, node.end, f" {new}")
    return Edit(node.cut, node.end, "") if value is False else None


def insert(document: Document, path: Path, value: object) -> Edit | None:
    """Return the edit that gives the command one more flag, written and set apart as its last one is."""
    names = [part for part in path if isinstance(part, str)]
    root = document.root
    if path[:2] == ("launch", "flags"):
        return insert_flag(document, names, value)
    if path[:1] == ("launch",):
        return insert_number(document, names, value)
    started = document.program  # which may not take such a flag
    takes = len(names) == len(path) and (started is None or started.takes(names[0]))
    if not takes or not isinstance(root, Mapping):
        return None
    if text_at(root, "launch", "suite") == "xtuner":
        return _config_option(document, names, value)
    return _more_flags(document, root, names, value)


def _more_flags(document: Document, root: Mapping, names: list[str], value: object) -> Edit | None:
    """Return the edit that adds a flag after the command's last, or at its end."""
    text = document.file.text
    # Keys know the word of their flag.
    leaves = [
        n for key, e in root.entries.items() if key not in _NO_SETTINGS for n in _leaves(e.value, e.key)
    ]
    # What another file says, or an expansion, is all at one place: the file does not say where each is.
    at = Counter(flag.start for flag, _ in leaves)
    placed = sorted((leaf for leaf in leaves if at[leaf[0].start] == 1), key=lambda leaf: leaf[0].start)
    if len(placed) < min(len(leaves), 2):
        return None
    leaves = placed
    if len(leaves) < 2:
        return _behind(document, names, value, leaves)
    (_, before), (flag, last) = leaves[-2:]
    override = _is_override(document, leaves)
    if not 0 <= flag.start <= last.start or (last.end > document.end and not document.listed):
        return _behind(document, names, value, leaves)  # where the word itself ends is not kept
    end = max(_word_end(text, last.start, last.end), flag.end)
    word = spelled(value)
    if word is None or not _can_say(value, word, override=override):
        return None
    words = _flag(document, names, value, word, dashes=_has_dashes(text, leaves), override=override)
    joined = len(words) > 1 and _is_joined(text, leaves)
    if document.listed:
        return _items(text, flag.start, end, ["=".join(words)] if joined else words)
    gap = text[_word_end(text, before.start, before.end) : flag.start]
    if gap.strip(" \t\r\n\\") or not gap:
        gap = " "
    return Edit(end, end, gap + ("=" if joined else " ").join(words))


def insert_last(document: Document, path: Path, value: object) -> Edit | None:
    """Return the edit that has the command itself say what its config says, whatever its program takes."""
    word, end = spelled(value), document.end
    if document.format != "shell" or document.listed or end <= document.start or word is None:
        return None
    return Edit(end, end, f" --{'.'.join(map(str, path))} {word}")


def insert_there(document: Document, path: Path, value: object) -> OutsideEdit | None:
    """Return the edit that gives a command one more flag, where another script has it."""
    names, text = [part for part in path if isinstance(part, str)], spelled(value)
    started, words = document.program, document.words
    takes = len(names) == len(path) and (started is None or started.takes(names[0]))
    last = next((word for word in reversed(words) if len(word.pieces) == 1 and word.pieces[0].there), None)
    flags = [word.spelled for word in words if word.spelled.startswith("--")]
    if last is None or (last.spelled.startswith("-") and last is not words[-1]):  # it waits for a value
        return None
    override = _reads_overrides(document)
    if path[:1] == ("launch",) or not takes or text is None or (len(flags) < 2 and not override):
        return None
    if not _can_say(value, text, override=override):
        return None
    apart = any("-" in flag[2:] for flag in flags) and not any("_" in flag for flag in flags)
    words = _flag(document, names, value, text, dashes=apart, override=override)
    script, whole, start = last.pieces[0].there
    end = _word_end(whole, start, start + len(last.spelled))
    more = ("=" if flags and "=" in flags[-1] else " ").join(words)  # some parsers split there
    return OutsideEdit(end, end, f" {more}", script, whole)


def remove(document: Document, path: Path) -> Edit | None:
    """Return the edit that takes a flag away with its value, and what sets it apart from the others."""
    found, text = _flag_at(document, path), document.file.text
    if found is None:
        place = _variable_at(document, ".".join(map(str, path)))
        return None if place is None else _taken_out(text, *place)
    key, value = found
    start = key.start
    switch = isinstance(value, Composite) and value.start == start
    end = value.end if switch else _word_end(text, value.start, value.end)
    said = text[start:end]
    plain = (_FLAG.fullmatch if switch else _ONE_FLAG.match)(said)
    if plain is None or not (_FLAG.match(said) or _OVERRIDE.match(said)):
        return None
    return _taken_out(text, start, end)


def _taken_out(text: str, start: int, end: int) -> Edit | None:
    """Return the edit that takes words away with what sets them apart; a line of their own with its break."""
    if text[end : end + 1] and text[end] not in " \t\r\n\"')":
        return None
    gap = _GAP.search(text[:start])
    before = gap.group() if gap is not None else ""
    blanks = len(text[end:]) - len(text[end:].lstrip(" \t"))
    onward = text[end + blanks : end + blanks + 1]
    goes_on = bool(blanks) and onward not in ("", "\\", "\n", "\r", "#", "|", "&", ";", ">", "<")
    if goes_on and (not before or "\n" in before):  # the first of its line: the next one takes its place
        return Edit(start, end + blanks, "")
    return Edit(start - len(before), end, "") if before.strip("\\\r\n") else None


def _variable_at(document: Document, key: str) -> tuple[int, int] | None:
    """Return the place of the one override of a key, where its whole value is a variable's."""
    starts = [word.start for word in document.words if word.spelled.startswith(f"{key}=")]
    found = _VARIABLE.match(document.file.text, starts[0]) if len(starts) == 1 and starts[0] >= 0 else None
    if document.listed or found is None or found[1] != key or found.end() > document.end:
        return None
    return found.span()


def _flag_at(document: Document, path: Path) -> tuple[Scalar, Scalar] | None:
    """Return the one flag of a command at a path, with its value, where the script itself has both."""
    root = document.root
    if document.listed or not isinstance(root, Mapping) or path[:1] in ((), ("launch",)):
        return None
    leaves = [n for key, e in root.entries.items() if key != "launch" for n in _leaves(e.value, e.key)]
    node: Node = root
    key: Scalar | None = None
    for part in path:
        entry = node.entries.get(part) if isinstance(node, Mapping) and isinstance(part, str) else None
        if entry is None:
            return None
        key, node = entry.key, entry.value
    own = isinstance(node, Scalar) and not isinstance(node, (Unresolved, Several)) and node.origin is None
    if key is None or key.start < 0 or not own or not isinstance(node, Scalar):
        return None
    alone = sum(flag.start == key.start for flag, _ in leaves) == 1
    within = document.start <= key.start <= node.start <= node.end <= max(document.end, key.start)
    return (key, node) if alone and within else None


def _config_option(document: Document, names: list[str], value: object) -> Edit | None:
    """Return the edit that changes what XTuner's config says: ``--cfg-options a.b=c`` at a command's end."""
    root, word, end = document.root, spelled(value), document.end
    told = isinstance(root, Mapping) and "cfg_options" in root.entries  # a second one would undo the first
    if told or document.listed or end <= document.start or word is None:
        return None
    if isinstance(value, bool) or value is None:
        word = str(value)  # mmengine.config.DictAction: _parse_int_float_bool
    goes_on = _CONTINUED.findall(document.file.text, document.start, end)
    return Edit(end, end, f"{goes_on[-1] if goes_on else ' '}--cfg-options {'.'.join(names)}={word}")


def _reads_overrides(document: Document) -> bool:
    """Whether a program reads settings as ``key=value`` only, whatever its last words are.

    LLaMA-Factory hands what follows a YAML or JSON file to OmegaConf.from_cli, which makes ``--key value``
    two keys that no class has; without such a file these are flags.
    https://github.com/hiyouga/LLaMA-Factory/blob/ff6d4d1/src/llamafactory/hparams/parser.py (read_args)
    """
    return document.loader == "omegaconf" or (
        document.loader == "omegaconf_unresolved" and bool(document.over)
    )


def _is_override(document: Document, leaves: list[tuple[Scalar, Node]]) -> bool:
    """Whether a command says settings as ``key=value``: OmegaConf's do, others as the last flag does."""
    if _reads_overrides(document):
        return True
    text = document.file.text
    said = (bool(_OVERRIDE.match(text, flag.start)) for flag, _ in reversed(leaves) if flag.start >= 0)
    return next(said, False)


def _can_say(value: object, word: str, *, override: bool) -> bool:
    """Whether a command can say a value; a comma is a sweep to Hydra, and no flag takes a null."""
    return "," not in word if override else value is not None and value is not False


def _flag(
    document: Document, names: list[str], value: object, word: str, *, dashes: bool, override: bool
) -> list[str]:
    """Return the words of an override, or of a flag: spelled as the program has it, where that is here."""
    name = ".".join(names)
    if override:
        return [f"{name}={word}"]
    option = f"--{name.replace('_', '-') if dashes else name}"
    if document.program is not None:
        option = document.program.spelled(name, dashes=dashes)
    return [option] if value is True else [option, word]


def _behind(
    document: Document, names: list[str], value: object, leaves: list[tuple[Scalar, Node]]
) -> Edit | None:
    """Return the edit that adds a flag at the end of a command."""
    text, end = document.file.text, document.end
    word = spelled(value)
    if document.listed or end <= document.start or word is None:
        return None
    suite = text_at(document.root, "launch", "suite")  # the framework whose own command it is
    hydra = isinstance(document.root, Mapping) and not _HYDRA_NAMES.isdisjoint(document.root.entries)
    if leaves or _reads_overrides(document):
        overrides = _is_override(document, leaves)
    elif len(names) > 1 and suite not in (*_OVERRIDING, "prime_rl") and not hydra:
        return None  # `--a.b c` to some, `a.b=c` to others
    else:
        overrides = suite in _OVERRIDING or hydra
    if not _can_say(value, word, override=overrides):
        return None
    dashes = suite == "axolotl" or _has_dashes(text, leaves)
    goes_on = _CONTINUED.findall(text, document.start, end)
    words = _flag(document, names, value, word, dashes=dashes, override=overrides)
    apart = "=" if _is_joined(text, leaves) else " "
    return Edit(end, end, (goes_on[-1] if goes_on else " ") + apart.join(words))


def _has_dashes(text: str, leaves: list[tuple[Scalar, Node]]) -> bool:
    """Whether flags of several words are written with dashes."""
    words = [match.group(1) for flag, _ in leaves if (match := _FLAG.match(text, flag.start)) is not None]
    return any("-" in word for word in words) and not any("_" in word for word in words)


def _is_joined(text: str, leaves: list[tuple[Scalar, Node]]) -> bool:
    """Whether the last flag with a value is written ``--name=value``: some parsers split there."""
    said = (_FLAG.match(text, flag.start) for flag, last in reversed(leaves) if 0 <= flag.start < last.start)
    return next((text[match.end() : match.end() + 1] == "=" for match in said if match is not None), False)


def _items(text: str, flag: int, end: int, items: list[str]) -> Edit | None:
    """Return the edit that adds items to the list that the item at ``flag`` ends, written as that one is."""
    quote = text[flag] if text[flag] in "\"'" else ""
    line = text.rfind("\n", 0, flag) + 1
    lead = text[line:flag]
    # A number alone would be none of a list of texts.
    spelled_items = [
        f"{quote}{item}{quote}" if quote or item.startswith("-") else f'"{item}"' for item in items
    ]
    if lead.strip(" ") == "-":  # one item a line
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        newline = "\r\n" if text[stop - 1 : stop] == "\r" else "\n"
        stop -= newline == "\r\n"
        return Edit(stop, stop, "".join(f"{newline}{lead}{item}" for item in spelled_items))
    return Edit(end, end, "".join(f", {item}" for item in spelled_items))


def _leaves(node: Node, key: Scalar) -> list[tuple[Scalar, Node]]:
    """Return the flags below ``node`` with all that is their value: one word, several, or what one reads."""
    if isinstance(node, Mapping):
        return [leaf for entry in node.entries.values() for leaf in _leaves(entry.value, entry.key)]
    return [(key, node)]


def _word_end(text: str, start: int, end: int) -> int:
    """Return where the word ends that a value is in: after its own quotes, and after ``${NAME:-…}``."""
    while end < len(text):
        opened = _OPENED.search(text, max(start - 80, 0), start) if text[end] == "}" else None
        if opened is not None:
            start, end = opened.start(), end + 1
        elif text[end] in "\"'" and start > 0 and text[start - 1] == text[end]:
            start, end = start - 1, end + 1
        elif text[end : end + 2] == '\\"' and text[max(start - 2, 0) : start] == '\\"':
            start, end = start - 2, end + 2
        else:
            break
    return end
