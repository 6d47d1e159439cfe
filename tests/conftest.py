"""What tests share: a cache of their own, and the real command in a process of its own."""

import gc
import io
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from golden import terminal  # noqa: F401 (a fixture for all)
from tiers import long_tests

# In CI a run finds what the last one found; new examples are for a developer's machine.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

gc.set_threshold(50_000, 20, 20)  # as rarely as the command looks for garbage, or nearly (cli/__init__.py)

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "grpo_one_gpu.yaml"
SMALL = ["--select", "CLI", "--rule", "gpu.vram<48 and colocated -> mem_fraction<=0.5", "--gpu", "a40"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave to the slow tier what takes long (long.txt), and cases that have others like them (``alike``).

    Who asks for tests by a word, or updates pages, gets them all.
    """
    if config.option.keyword or os.environ.get("CFGLINT_UPDATE"):
        return
    known, seen = long_tests(), set()
    for item in items:
        file, *within = item.nodeid.partition("[")[0].split("::")
        name = "::".join((".".join((file.removesuffix(".py").replace("/", "."), *within[:-1])), within[-1]))
        first, more = name not in seen, known.get(name)
        seen.add(name)
        if item.get_closest_marker("alike") or (more is not None and not (first and more == "+")):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep what tests compile away from the user's cache, and tests away from the user's.

    The processes of one session share it: the rules are compiled once.
    """
    before = os.environ.get("CFGLINT_CACHE")
    session = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent
    os.environ["CFGLINT_CACHE"] = str(session / "cfglint-cache")
    yield
    if before is None:
        del os.environ["CFGLINT_CACHE"]
    else:
        os.environ["CFGLINT_CACHE"] = before


@pytest.fixture(scope="session")
def pack():
    """The shipped rules, loaded once."""
    from cfglint.lang.pack import load

    return load()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def config(folder):
    """A config in the working folder whose mem_fraction is too high for one A40 (see ``small``)."""
    path = folder / "grpo.yaml"
    path.write_bytes(EXAMPLE.read_bytes())
    return path


@pytest.fixture
def small():
    """Flags for one rule that ``config`` breaks, once."""
    return list(SMALL)


# What these test is said by the command, and not how a process of its own fares: they run it in theirs, which
# saves the start and half of the time. All others, and all runs with an input, limits or processes of their
# own, start one.
WITHIN = {
    *(
        "test_certainty",
        "test_cli_check",
        "test_cli_fix",
        "test_compare_cli",
        "test_example_packs",
        "test_explain",
    ),
    *("test_fit_cli", "test_launch", "test_models_registry", "test_packs", "test_plan_cli"),
    *("test_repair_keys", "test_verdict_words", "test_verify"),
}


def _within(words, environment):
    """Run the command in this process; it ends as one of its own would."""
    from cfglint.cli import main

    before, variables = (sys.stdout, sys.stderr), dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in _ERRORS)
    try:
        try:
            status = main(words)
        except SystemExit as end:  # of --help
            status = end.code
        out, err = (stream.detach().getvalue().decode() for stream in (sys.stdout, sys.stderr))
    finally:
        sys.stdout, sys.stderr = before
        os.environ.clear()
        os.environ.update(variables)
    return subprocess.CompletedProcess(words, status, out, err)


_ERRORS = ("strict", "backslashreplace")  # as those of standard output and standard error are


def _sound(done):
    assert "Traceback" not in done.stderr, done.stderr
    assert "internal error" not in done.stderr, done.stderr
    return done


@pytest.fixture
def cfglint(request):
    """Run the real command, with limits on time and memory if asked; no GPU of this machine plays a part."""
    within = request.module.__name__.rpartition(".")[2] in WITHIN

    def run(*arguments, stdin=b"", seconds=60, megabytes=None, env=(), prefix=(), text=True):
        def limit():
            if megabytes is not None:
                resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

        environment = {
            **{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PYTHONDONTWRITEBYTECODE")},
            "PYTHONPATH": str(ROOT / "linter"),
            **dict(env),
        }
        words = [*map(str, arguments)]
        if arguments and arguments[0] in ("check", "fix", "init"):
            words.append("--no-detect")
        apart = "--jobs" in words or any(word.startswith("/dev/") for word in words)
        apart = apart or any(not name.startswith(("HF_", "HUGGINGFACE_")) for name in dict(env))
        if within and text and not (stdin or megabytes or prefix or apart):
            return _sound(_within(words, environment))
        command = [*prefix, sys.executable, "-m", "cfglint", *words]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            env=environment,
            timeout=seconds,
            preexec_fn=limit,
            check=False,
        )
        if text:
            done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
            _sound(done)
        return done

    return run


@pytest.fixture
def warm(cfglint, config, small, tmp_path_factory):
    """A cache of its own that holds what ``check config *small`` compiles; and what that prints."""
    done = cfglint("check", config, *small)
    folder = tmp_path_factory.mktemp("warm")  # not below the working folder: such a cache is not used
    shutil.copytree(os.environ["CFGLINT_CACHE"], folder, dirs_exist_ok=True)
    return folder, done


@pytest.fixture
def without_privileges():
    """A command's prefix under which permissions count, for root too."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if shutil.which("setpriv") is None or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("root, and setpriv cannot drop its privileges here")
    return prefix
