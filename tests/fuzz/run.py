"""The long run of fuzzing: ``.ci/fuzz [KIND] [MINUTES]``, or one input again: ``.ci/fuzz KIND FILE``.

Guided by coverage where atheris is installed (``pip install atheris``), else by chance alone. What
reached new code lies in .fuzz/KIND, inputs that fail in .fuzz/failures; both stay for the next run.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".fuzz"
FIRST = 300  # seeds that a corpus starts with

sys.path[:0] = [str(ROOT / "linter"), str(ROOT / "tests")]
os.environ.setdefault("CFGLINT_CACHE", str(Path.home() / ".cache" / "cfglint-fuzz"))


class Session:
    """Counts inputs of one kind, and keeps those that fail, one for each place of failure."""

    def __init__(self, kind: str, minutes: float) -> None:
        self.kind, self.start, self.end = kind, time.monotonic(), time.monotonic() + 60 * minutes
        self.inputs = 0
        self.failures: dict[str, tuple[Path, int]] = {}

    def one(self, data: bytes) -> None:
        """Try an input; what fails is kept and told once."""
        from fuzz.targets import tried

        self.inputs += 1
        try:
            tried(self.kind, data)
        except Exception as error:
            self._failed(data, error)

    def _failed(self, data: bytes, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in frames if "cfglint" in frame.filename or "fuzz" in frame.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        what = f"{type(error).__name__} {place}"
        if what in self.failures:
            path, count = self.failures[what]
            self.failures[what] = path, count + 1
            if len(data) < path.stat().st_size:
                path.write_bytes(data)  # the shortest is kept
            return
        path = KEPT / "failures" / f"{self.kind}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.failures[what] = path, 1
        said = "".join(traceback.format_exception(error)[-4:])
        print(f"FAILED {what}\n{said}again: .ci/fuzz {self.kind} {path.relative_to(ROOT)}\n", flush=True)

    def over(self) -> bool:
        return time.monotonic() > self.end

    def close(self, how: str) -> int:
        """Print what was done; returns the exit status."""
        seconds = time.monotonic() - self.start
        print(
            f"{self.kind}: {self.inputs:,} inputs in {seconds / 60:.1f} minutes, {self.inputs / seconds:.1f} "
            f"a second, {how}; {len(self.failures)} failures"
        )
        for what, (path, count) in self.failures.items():
            print(f"  {count:6,} × {what}: {path.relative_to(ROOT)}")
        sys.stdout.flush()
        return 1 if self.failures else 0


def guided(session: Session, atheris: Any) -> None:
    """Let libFuzzer choose inputs by what they reach; it never returns."""
    import logging

    import cfglint

    logging.disable(logging.INFO)  # a line for each module
    with atheris.instrument_imports(include=["cfglint"], enable_loader_override=False):
        for module in pkgutil.walk_packages(cfglint.__path__, "cfglint."):
            if not module.name.endswith("__main__"):
                __import__(module.name)
    from fuzz.mutate import mutated
    from fuzz.seeds import seeds

    corpus = KEPT / session.kind
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        texts = sorted(seeds(session.kind), key=len)
        for text in texts[:: len(texts) // FIRST + 1]:
            data = text.encode()
            (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)

    def one(data: bytes) -> None:
        if session.over():
            os._exit(session.close("guided by coverage"))  # libFuzzer would print its own end over ours
        session.one(data)

    def change(data: bytes, size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.randrange(4) == 0:
            return atheris.Mutate(data, size)  # type: ignore[no-any-return]
        return mutated(
            random, session.kind, data.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()
        )[:size]

    options = [
        "-verbosity=0",
        "-timeout=1200",
        "-report_slow_units=1200",
        "-rss_limit_mb=4096",
        "-max_len=20000",
        "-print_final_stats=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=change)
    atheris.Fuzz()


def by_chance(session: Session) -> int:
    """Try mutated seeds until the time is over."""
    from fuzz.mutate import mutated

    random = Random()
    while not session.over():
        session.one(mutated(random, session.kind))
    return session.close("by chance, since atheris is not installed")


def main(arguments: list[str]) -> int:
    """Run one kind, or all of them; returns 1 where something failed."""
    from fuzz.seeds import KINDS

    if len(arguments) == 2 and Path(arguments[1]).is_file():
        from fuzz.targets import tried

        tried(arguments[0], Path(arguments[1]).read_bytes())
        return 0
    kind = arguments[0] if arguments else "all"
    minutes = float(arguments[1]) if len(arguments) > 1 else 10.0
    if kind == "all":  # each in a process of its own, which libFuzzer ends
        return max(
            os.waitstatus_to_exitcode(os.system(f"{sys.executable} {__file__} {k} {minutes}")) for k in KINDS
        )
    if kind not in KINDS:
        print(f"no kind {kind!r}; there are {', '.join(KINDS)}, and all", file=sys.stderr)
        return 2
    session = Session(kind, minutes)
    try:
        import atheris
    except ImportError:
        return by_chance(session)
    guided(session, atheris)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
