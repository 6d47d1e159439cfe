"""Commands that run further commands: a text handed to a shell or another machine, a script by its name."""

from __future__ import annotations

from cfglint.document.shell.words import BREAK, Piece, Word, joined, unknown, values_of
from cfglint.document.tree import SCRIPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.shell.words import Pieces

SHELLS = ("bash", "sh", "zsh", "dash")
_BATCH = ("sbatch", "qsub", "bsub")
# What stands in front of a script, and runs it as it is.
_IN_FRONT = (
    *_BATCH, "srun", "mpirun", "mpiexec", "env", "nohup", "time", "exec", "sudo", "numactl", "taskset",
    "command", "timeout", "nice", "setsid", "stdbuf", "conda", "uv", "singularity", "apptainer", "xargs",
)  # fmt: skip
# They run a text on other machines, or in another terminal; of these flags, the next word is no command.
_REMOTE = ("ssh", "pdsh", "clush", "pssh", "parallel-ssh")
_REMOTE_FLAGS = ("-i", "-p", "-l", "-o", "-F", "-J", "-w", "-x", "-f", "-t", "-R", "-h", "-H", "-L")
# They run the text behind a flag.
_COMMANDS = ("su", "script", "flock", "gcloud")
_TERMINALS = ("tmux", "screen")
# Documents on their input are scripts.
READS_SCRIPT = (*SHELLS, *_BATCH, "ssh")
_MOST = 200  # words of a command among which is what it runs


def text_given(words: list[Word]) -> Pieces | None:
    """Return the script that a command is given as a text: ``bash -c``, ``--wrap``, ``ssh HOST TEXT``."""
    nested = given_to_shell(words)
    if nested is not None:
        return nested.pieces
    name = base(words[0]) if words else ""
    if name in _BATCH:
        wrapped = next(values_of(words, ("--wrap",)), None)
        if wrapped is None and name == "bsub" and " " in words[-1].spelled.strip():
            wrapped = words[-1]
        return wrapped.pieces if wrapped is not None else None
    if name in _COMMANDS:  # `su USER -c TEXT`, `gcloud compute ssh HOST --command TEXT`
        told = next(values_of(words[1:], ("-c", "--command")), None)
        return told.pieces if told is not None and " " in told.spelled.strip() else None
    if name in _REMOTE:
        rest = _after_flags(words[1:])
        return joined(rest if name in ("pdsh", "clush") else rest[1:]) or None
    if name in _TERMINALS:
        texts = [word for word in words[1:_MOST] if " " in word.spelled.strip()]
        lines = [piece for word in texts for piece in (*word.pieces, Piece("\n", -1, -1))]
        return tuple(lines) or None
    return None


def _after_flags(words: list[Word]) -> list[Word]:
    at = 0
    while at < len(words) and words[at].spelled.startswith("-"):
        at += 2 if words[at].spelled in _REMOTE_FLAGS else 1
    return words[at:]


def given_to_shell(words: list[Word]) -> Word | None:
    """Return the script of ``bash -c SCRIPT``, also after srun or docker."""
    for at, word in enumerate(words[:-2]):
        text = word.text
        if text is None or text.rpartition("/")[2] not in SHELLS:
            continue
        for i in range(at + 1, len(words) - 1):
            flag = words[i].text
            if flag is None or not flag.startswith("-"):
                break
            if not flag.startswith("--") and flag.endswith("c"):
                return words[i + 2 if words[i + 1].text == "--" and i + 2 < len(words) else i + 1]
    return None


def is_shell(words: list[Word]) -> bool:
    """Whether a command is a shell or a batch system that reads its script from its input."""
    options = all(word.spelled.startswith("-") and word.text != "-c" for word in words[1:])
    return bool(words) and base(words[0]) in (*SHELLS, *_BATCH) and (options or base(words[0]) in _BATCH)


def printed(words: list[Word]) -> Pieces | None:
    """Return what ``echo`` or ``printf`` with one text prints; None for other commands."""
    name = base(words[0]) if words else ""
    rest = [word for word in words[1:] if name != "echo" or word.text not in ("-e", "-n", "-E")]
    return joined(rest) if name == "echo" or (name == "printf" and len(rest) == 1) else None


def script_given(words: list[Word]) -> tuple[Word, list[Word]] | None:
    """Return the script that a command runs by its name, and what it is given: ``srun bash FILE WORD…``."""
    for at, word in enumerate(words[:_MOST]):
        name = base(word)
        if name in SHELLS:
            after = at + 1
            while after < len(words) and (words[after].text or "").startswith(("-", "+")):
                after += 2 if words[after].text in ("-o", "-O", "+O") else 1
            if after < len(words) and not words[after].maybe:
                return words[after], words[after + 1 :]
            return None
        if name.endswith(SCRIPTS) and not word.maybe and (at == 0 or base(words[0]) in _IN_FRONT):
            return word, words[at + 1 :]
        if at == 0 and name not in _IN_FRONT:
            return None
    return None


def base(word: Word) -> str:
    """Return the last component of a program's path; nothing where that is not known."""
    last = word.pieces[-1] if word.pieces else None
    if last is None or last.unknown or last.maybe:
        return ""
    known = max((i for i, piece in enumerate(word.pieces) if piece.unknown or piece.maybe), default=-1)
    text = "".join(piece.text for piece in word.pieces[known + 1 :])
    return text.rpartition("/")[2] if known < 0 or "/" in text else ""


def filled(words: list[Word]) -> list[Word]:
    """Return a command of ``xargs`` or ``parallel`` without their own flags; what they fill in is unknown."""
    last = next((i for i, word in enumerate(words) if word.text in (":::", "::::")), len(words))
    words = words[:last]
    at = 1
    while at < len(words) and words[at].spelled.startswith("-"):
        flag = words[at].spelled
        at += 2 if flag in ("-n", "-P", "-I", "-L", "-d", "-a", "-s", "-E", "-j", "-N", "--jobs") else 1
    mark = next((word.spelled for word in values_of(words[:at], ("-I",))), "{}")
    mark = next(
        (w.spelled[2:] for w in words[1:at] if w.spelled.startswith("-I") and w.spelled != "-I"), mark
    )
    why = f"what {base(words[0])} fills in"
    return [
        Word((unknown(why),), word.start, word.end) if mark in word.spelled else word for word in words[at:]
    ]


def arguments(words: Sequence[Word]) -> list[Pieces]:
    """Return words as the items of an array."""
    return [tuple(piece for piece in word.pieces if piece is not BREAK) for word in words]
