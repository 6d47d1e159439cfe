"""Commands that start a job in a container: ``docker run --gpus 2 …``, ``runpodctl create pod …``."""

from __future__ import annotations

from cfglint.document.tree import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.words import Word

_ENGINES = ("docker", "podman", "nerdctl")
_KIND = ("--gpuType", "--gpu-id", "--gpu-type")
_COUNT = ("--gpuCount", "--gpu-count")
_SCRIPT = ("--args", "--docker-args")


def pod_script(words: list[Word]) -> Word | None:
    """Return the command that a RunPod pod is created with (``--args``)."""
    return _given(words, _SCRIPT) if _creates_pod(words) else None


def container_job(words: list[Word]) -> Job | None:
    """Return the GPUs that a container gets; None where the command says nothing of them."""
    if _creates_pod(words):
        return _pod(words)
    if not any(_name(one) in _ENGINES for one in words):
        return None
    asked = _given(words, ("--gpus",))
    count = _count(asked.text) if asked is not None else None
    if asked is None or count is None:
        return None
    job = Job("--gpus")
    job.say("gpus_per_node", count, asked.start, asked.end)
    job.add_up()
    return job


def _creates_pod(words: list[Word]) -> bool:
    rest = [one.text for one in words[1:3]]
    return bool(words) and _name(words[0]) == "runpodctl" and rest in (["create", "pod"], ["pod", "create"])


def _pod(words: list[Word]) -> Job:
    job = Job("--gpuCount")
    kind, count = _given(words, _KIND), _given(words, _COUNT)
    if kind is not None:
        job.kind = kind.text or ""
    if count is None and kind is not None:
        job.say("gpus_per_node", 1, kind.start, kind.end)  # one where nothing is said
    elif count is not None and (count.text or "").isdigit():
        job.say("gpus_per_node", int((count.text or "0")[:6]), count.start, count.end)
    job.add_up()
    return job


def _name(word: Word) -> str:
    return (word.text or "").rpartition("/")[2]


def _given(words: list[Word], names: tuple[str, ...]) -> Word | None:
    """Return the value of a flag, behind it or behind ``=``."""
    for at, word in enumerate(words):
        name, equals, _ = word.spelled.partition("=")
        if name in names and equals:
            return word.from_(len(name) + 1)
        if name in names and at + 1 < len(words):
            return words[at + 1]
    return None


def _count(text: str | None) -> int | None:
    """Return how many GPUs ``--gpus`` names: ``2``, ``count=2``, ``device=0,1``, ``"device=0,1",…``."""
    if text is None:
        return None
    text = text.strip("'")
    if text.isdigit():
        return int(text[:6])
    quoted = text.partition('"')[2].partition('"')[0] if '"' in text else text.partition(",capabilities")[0]
    key, _, value = quoted.partition("=")
    if key == "device":
        return len([one for one in value.split(",") if one])
    return int(value[:6]) if key == "count" and value.isdigit() else None
