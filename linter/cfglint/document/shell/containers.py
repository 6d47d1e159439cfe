"""The GPUs that a container or a pod is given on the command line that creates it."""

from __future__ import annotations

import re

from cfglint.document.job import Job
from cfglint.document.shell.words import Word, values_of
from cfglint.text import small_number

_ENGINES = ("docker", "podman", "nerdctl")
_DETACHED = re.compile(r"-[a-zA-Z]*d[a-zA-Z]*\Z")  # among flags of one letter, as in -itd
_POD_KIND = ("--gpuType", "--gpu-id", "--gpu-type")
_POD_COUNT = ("--gpuCount", "--gpu-count")
_POD_SCRIPT = ("--args", "--docker-args")


def pod_script(words: list[Word]) -> Word | None:
    """Return the command that a RunPod pod is created with (``--args``)."""
    return next(values_of(words, _POD_SCRIPT), None) if _creates_pod(words) else None


def container_job(words: list[Word]) -> Job | None:
    """Return the GPUs that a container gets; None where the command says nothing of them."""
    if _creates_pod(words):
        return _pod(words)
    if not any(_name(word) in _ENGINES for word in words):
        return None
    asked = next(values_of(words, ("--gpus",)), None)
    count = _count(asked.text or "") if asked is not None else None
    if asked is None or count is None:
        return None
    job = Job("--gpus")
    job.say("gpus_per_node", count, asked.start, asked.end)
    job.add_up()
    return job


def detaches(words: list[Word]) -> bool:
    """Whether a container or a terminal goes on in the background: ``docker run -d``, ``tmux new -d``."""
    for at, word in enumerate(words):
        if _name(word) in (*_ENGINES, "tmux", "screen"):
            flags = [each.text or "" for each in words[at + 1 :]]
            return any(flag == "--detach" or _DETACHED.match(flag) is not None for flag in flags)
    return False


def _creates_pod(words: list[Word]) -> bool:
    rest = [word.text for word in words[1:3]]
    return bool(words) and _name(words[0]) == "runpodctl" and rest in (["create", "pod"], ["pod", "create"])


def _pod(words: list[Word]) -> Job:
    job = Job("--gpuCount")
    kind, count = next(values_of(words, _POD_KIND), None), next(values_of(words, _POD_COUNT), None)
    if kind is not None:
        job.kind = kind.text or ""
    if count is None and kind is not None:
        job.say("gpus_per_node", 1, kind.start, kind.end)  # one where nothing is said
    elif count is not None and (number := small_number(count.text or "")) is not None:
        job.say("gpus_per_node", number, count.start, count.end)
    job.add_up()
    return job


def _name(word: Word) -> str:
    return (word.text or "").rpartition("/")[2]


def _count(text: str) -> int | None:
    """Return how many GPUs ``--gpus`` names: ``2``, ``count=2``, ``device=0,1``, ``"device=0,1",…``."""
    text = text.strip("'")
    number = small_number(text)
    if number is not None:
        return number
    quoted = text.partition('"')[2].partition('"')[0] if '"' in text else text.partition(",capabilities")[0]
    key, _, value = quoted.partition("=")
    if key == "device":
        return len([device for device in value.split(",") if device])
    return small_number(value) if key == "count" else None
