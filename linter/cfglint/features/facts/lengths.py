"""``cfglint facts --lengths DATA``: how long the samples of a data set are, as a sheet to commit.

A log is data, too: what its steps say of prompts and answers.

The data is read piece by piece: JSON lines, a JSON array, or Parquet. A tokenizer counts; without one, the
tokens are a range by the bytes of the texts.
"""

from __future__ import annotations

import codecs
import json
import os
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from cfglint import files
from cfglint.errors import UsageError
from cfglint.record import Record, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    Texts: TypeAlias = list[str]
    Sample: TypeAlias = tuple[Texts, Texts, int]  # the prompt, what follows it, and the messages of both
    Count: TypeAlias = Callable[[Texts], list[int]]

_CHUNK = 1 << 20
_LONGEST = 1 << 26  # characters of one record
_BATCH = 1_000  # samples that are tokenized at once
_MOST_TOKENIZER = 1 << 28
# Bytes of UTF-8 per token: 3.2 with Llama 2's tokenizer and 3.9 with Llama 3's in English (arXiv 2407.21783),
# more in plain prose, less in code, numbers and other languages.
_BYTES_PER_TOKEN = (2.2, 5.0)
_FRAME = 5  # tokens by which a chat template frames a message: <|im_start|>, role, line, <|im_end|>, line
_LOGS = (".log", ".out", ".err")
_CHATS = ("messages", "conversations", "conversation", "chat")
_PROMPTS = ("prompt", "instruction", "question", "problem", "query", "input")
_ANSWERS = ("completion", "response", "output", "answer", "solution", "answers", "chosen")
_BEFORE = ("system", "context", "history")
_ROLES, _CONTENTS = ("role", "from"), ("content", "value", "text")
_ANSWERING = ("assistant", "gpt", "model", "bot", "chatgpt")


class Lengths(Record):
    """The lengths of samples, and of their prompts, each with how often it came by."""

    samples: Counter[int] = field(factory=Counter)
    prompts: Counter[int] = field(factory=Counter)
    answered: bool = False  # whether there is more than prompts

    def add(self, prompt: int, rest: int, *, known: bool) -> None:
        """Take in a sample's tokens; of a plain text the prompt is not known."""
        self.samples[prompt + rest] += 1
        self.answered = self.answered or rest > 0
        if known:
            self.prompts[prompt] += 1


def sheet(path: str, tokenizer: str | None, name: str | None) -> str:
    """Return the sheet of a data file. ``name`` is the field to read. Raises UsageError."""
    if path.endswith(_LOGS):
        return _of_log(path)
    count, exact = (_by_bytes, False) if tokenizer is None else (_by_tokenizer(tokenizer), True)
    found = Lengths()
    try:
        for batch in _batches(_samples(_records(path), name, path)):
            _count(batch, count, found)
    except OSError as error:
        raise UsageError(f"{path}: cannot read the data: {files.why(error)}") from None
    if not found.samples:
        raise UsageError(f"{path}: no samples: it has no record")
    return _written(path, tokenizer if exact else None, found)


def _of_log(path: str) -> str:
    """Return the sheet of a run's log: what the steps said of prompts and answers."""
    from cfglint.features.facts.logs import metrics

    try:
        found = metrics(files.chunks(path, _CHUNK))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the log: {files.why(error)}") from None
    figures = {what: figures for what in ("prompt", "answer") if (figures := found.figures(what))}
    if not figures:
        raise UsageError(
            f"{path}: no step says how long prompts or answers are (response_length/max and the like)"
        )
    steps = max(len(longest) for longest in found.longest.values())
    head = f"# Lengths in tokens that {steps:,} steps of a run printed: for cfglint's --lengths."
    lines = [head, "cfglint: lengths", f"data: {json.dumps(os.path.basename(path), ensure_ascii=False)}"]
    return "\n".join([*lines, *(f"{what}: {text}" for what, text in figures.items())]) + "\n"


# ── records ─────────────────────────────────────────────────────────────────────────────────────────────────
def _records(path: str) -> Iterator[Any]:
    """Yield the records of a data file."""
    if path.endswith(".parquet"):
        yield from _parquet(path)
        return
    for value in _values(files.chunks(path, _CHUNK), path):
        lists = [v for v in value.values() if _is_table(v)] if isinstance(value, dict) else []
        if len(lists) == 1 and not any(key in value for key in (*_CHATS, *_PROMPTS)):
            yield from lists[0]  # {"data": [{…}, …]}
        else:
            yield value


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _parquet(path: str) -> Iterator[Any]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=_BATCH):
        yield from batch.to_pylist()


def _values(chunks: Iterable[bytes], path: str) -> Iterator[Any]:
    """Yield JSON values that stand one after the other, or in one list."""
    decoder, read = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest, begun = "", False
    for chunk in _with_end(chunks):
        rest += read.decode(chunk or b"", final=chunk is None)
        at = 0
        while True:
            while at < len(rest) and (
                rest[at].isspace() or rest[at] == "," or (rest[at] == "[" and not begun)
            ):
                begun = begun or rest[at] == "["
                at += 1
            if at == len(rest) or (begun and rest[at] == "]"):
                break
            try:
                value, at = decoder.raw_decode(rest, at)
            except ValueError as error:
                if chunk is None or len(rest) - at > _LONGEST:
                    raise UsageError(f"{path}: not JSON: {error}") from None
                break  # the record goes on
            begun = True
            yield value
        rest = rest[at:]


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    yield from chunks
    yield None


# ── a record's texts ────────────────────────────────────────────────────────────────────────────────────────
def _samples(records: Iterable[Any], name: str | None, path: str) -> Iterator[Sample]:
    """Yield the samples of records; a preference pair is two."""
    for number, record in enumerate(records, 1):
        if isinstance(record, str):
            yield [], [record], 0
            continue
        own = _of_record(record, name) if isinstance(record, dict) else []
        if not own:
            keys = ", ".join(record) if isinstance(record, dict) else "none"
            wanted = f"field {name!r}" if name else "text, messages or prompt"
            advice = f"its fields are: {keys}; name one with --field"
            raise UsageError(f"{path}: record {number} has no {wanted}; {advice}")
        yield from own


def _of_record(record: dict[str, Any], name: str | None) -> list[Sample]:
    if name is not None:
        sample = _plain_or_chat(record.get(name), alone=name in _PROMPTS)
        return [] if sample is None else [sample]
    if isinstance(record.get("text"), str):
        return [([], [record["text"]], 0)]
    for key in _CHATS:
        if isinstance(record.get(key), list):
            return [_chat(record[key])]
    prompt = next((key for key in _PROMPTS if _has_text(record.get(key))), None)
    if prompt is None:
        pair = [record[key] for key in ("chosen", "rejected") if _has_text(record.get(key))]
        return [s for each in pair if (s := _plain_or_chat(each, alone=False)) is not None]
    asked, _, messages = _plain_or_chat(record[prompt], alone=True) or ([], [], 0)
    if prompt == "instruction" and isinstance(record.get("input"), str):
        asked = [*asked, record["input"]]
    asked = [*(t for key in _BEFORE if isinstance(t := record.get(key), str) and t), *asked]
    answers = [record[key] for key in _ANSWERS if _has_text(record.get(key))][:1]
    if _has_text(record.get("rejected")):
        answers.append(record["rejected"])
    return [_answered(asked, messages, answer) for answer in answers] or [(asked, [], max(1, messages))]


def _answered(asked: Texts, messages: int, answer: Any) -> Sample:
    before, after, more = _plain_or_chat(answer, alone=False) or ([], [], 0)
    if more and before:  # a chat that repeats its prompt
        return before, after, more
    return asked, after, max(1, messages) + 1


def _has_text(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (_is_table(value) and _said(value[0]) is not None)


def _plain_or_chat(value: Any, *, alone: bool) -> Sample | None:
    """Return a text, or a chat; what stands ``alone`` is a prompt."""
    if isinstance(value, str):
        return ([value], [], 1) if alone else ([], [value], 0)
    if not isinstance(value, list):
        return None
    before, after, messages = _chat(value)
    return ([*before, *after], [], messages) if alone else (before, after, messages)


def _chat(messages: list[Any]) -> Sample:
    """Return a chat's texts: what stands before the last answer, and that."""
    said = [_said(message) or "" for message in messages if isinstance(message, dict)]
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    answers = any(last.get(key) in _ANSWERING for key in _ROLES)
    return (said[:-1], said[-1:], len(said)) if answers else (said, [], len(said))


def _said(message: dict[str, Any]) -> str | None:
    """Return a message's text; of several parts the texts."""
    content = next((message[key] for key in _CONTENTS if message.get(key) is not None), None)
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────
def _by_tokenizer(path: str) -> Count:
    """Return what counts with a tokenizer.json, or the one of a folder. Raises UsageError."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UsageError("--tokenizer needs tokenizers: pip install 'cfglint-gpu[lengths]'") from None
    at = path if path.endswith(".json") else os.path.join(path, "tokenizer.json")
    try:
        made = Tokenizer.from_str(files.read_text(at, most=_MOST_TOKENIZER))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{at}: cannot read the tokenizer: {getattr(error, 'strerror', None) or error}"
        ) from None
    except Exception as error:  # noqa: BLE001 (the library raises no other kind)
        raise UsageError(f"{at}: not a tokenizer.json: {error}") from None
    made.no_truncation()
    made.no_padding()
    return lambda texts: [len(one.ids) for one in made.encode_batch_fast(texts, add_special_tokens=False)]


def _by_bytes(texts: Texts) -> list[int]:
    return [len(text.encode("utf-8", "replace")) for text in texts]


def _batches(samples: Iterator[Sample]) -> Iterator[list[Sample]]:
    while batch := list(islice(samples, _BATCH)):
        yield batch


def _count(batch: list[Sample], count: Count, found: Lengths) -> None:
    numbers = iter(count([text for before, after, _ in batch for text in (*before, *after)]))
    exact = count is not _by_bytes
    for before, after, messages in batch:
        prompt, rest = sum(islice(numbers, len(before))), sum(islice(numbers, len(after)))
        frame = _FRAME * messages if exact else round(_FRAME * messages * sum(_BYTES_PER_TOKEN) / 2)
        last = min(frame, frame // max(1, messages)) if after else 0
        found.add(prompt + frame - last, rest + last, known=messages > 0)


# ── the sheet ───────────────────────────────────────────────────────────────────────────────────────────────
def _written(path: str, tokenizer: str | None, found: Lengths) -> str:
    how = (
        f"with {os.path.basename(os.path.abspath(tokenizer))}"
        if tokenizer
        else "by bytes, without a tokenizer"
    )
    lines = [
        f"# Lengths in tokens of {found.samples.total():,} samples, counted {how}: for cfglint's --lengths.",
        "cfglint: lengths",
        f"data: {json.dumps(os.path.basename(path), ensure_ascii=False)}",
    ]
    if found.answered:
        lines.append(f"length: {_figures(found.samples, tokenizer)}")
    if found.prompts:
        lines.append(f"prompt: {_figures(found.prompts, tokenizer)}")
    return "\n".join(lines) + "\n"


def _figures(lengths: Counter[int], tokenizer: str | None) -> str:
    figures = (("p50", 50), ("p99", 99), ("max", 100))
    return "{" + ", ".join(f"{name}: {_at(lengths, percent, tokenizer)}" for name, percent in figures) + "}"


def _at(lengths: Counter[int], percent: int, tokenizer: str | None) -> str:
    """Return a percentile, or its range where bytes were counted."""
    left = -(-lengths.total() * percent // 100)
    value = 0
    for value in sorted(lengths):
        left -= lengths[value]
        if left <= 0:
            break
    if tokenizer:
        return str(value)
    least, most = _BYTES_PER_TOKEN
    return f"{int(value / most)}..{-int(-value // least)}"
