"""The cache between runs: what makes an entry stale, and whose is read. (Damage to it: test_cli_input.py.)"""

import importlib.util
import marshal
import os
import pickle
import shutil
from zlib import crc32

import pytest

from cfglint import cache, files

BUILDER = "def make(calls):\n    return lambda: calls.append(1) or len(calls)\n"


@pytest.fixture
def builder(tmp_path, monkeypatch):
    """A module of its own whose ``make(calls)`` returns a function to cache, which counts its calls."""
    monkeypatch.setenv("CFGLINT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "code" / "built_here.py"
    path.parent.mkdir()
    path.write_text(BUILDER)
    spec = importlib.util.spec_from_file_location("built_here", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, module.make([])


def test_the_same_sources_are_built_once(builder):
    _, build = builder
    assert [cache.cached("x", {"a": "1"}, build) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("sources", [{"a": "2"}, {"b": "1"}, {"a": "1", "b": ""}, {}])
def test_other_sources_are_built_again(builder, sources):
    _, build = builder
    cache.cached("x", {"a": "1"}, build)
    assert cache.cached("x", sources, build) == 2
    assert cache.cached("x", sources, build) == 2


def test_another_version_builds_again(builder, monkeypatch):
    _, build = builder
    cache.cached("x", {"a": "1"}, build)
    monkeypatch.setattr(cache, "_STAMP", "0.0.0 another")
    assert cache.cached("x", {"a": "1"}, build) == 2


@pytest.mark.parametrize("name", ["built_here.py", "beside.py", "grammar.lark"])
def test_in_a_checkout_changed_code_builds_again(builder, name):
    path, build = builder
    cache.cached("x", {"a": "1"}, build)
    changed = path.with_name(name)
    changed.write_text(BUILDER)
    later = path.stat().st_mtime_ns + 10**9
    os.utime(changed, ns=(later, later))
    assert cache.cached("x", {"a": "1"}, build) == 2
    assert cache.cached("x", {"a": "1"}, build) == 2


def test_an_installed_package_looks_at_no_code(builder, monkeypatch):
    path, build = builder
    monkeypatch.setattr(cache, "_IN_CHECKOUT", False)
    cache.cached("x", {"a": "1"}, build)
    os.utime(path, ns=(0, 10**18 * 2))
    assert cache.cached("x", {"a": "1"}, build) == 1


def test_switched_off(builder, monkeypatch, tmp_path):
    _, build = builder
    monkeypatch.setenv("CFGLINT_CACHE", "")
    assert [cache.cached("x", {}, build) for _ in range(2)] == [1, 2]
    assert not (tmp_path / "cache").exists()


def test_an_edit_of_a_shipped_file_is_noticed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "shipped_folder", lambda name: str(tmp_path / name))
    inner = tmp_path / "rules" / "frameworks"
    inner.mkdir(parents=True)
    (tmp_path / "rules" / "b.rules").write_text("let a = 1\n")
    (inner / "a.rules").write_text("let b = 1\n")
    (inner / "a.txt").write_text("no rules\n")
    before = files.shipped_changes("rules", ".rules")
    assert [path.rpartition("rules/")[2] for path in before] == ["b.rules", "frameworks/a.rules"]
    assert files.shipped_contents("rules", ".rules") == {
        "b.rules": b"let a = 1\n",
        "frameworks/a.rules": b"let b = 1\n",
    }
    assert files.shipped_changes("rules", ".rules") == before
    os.utime(inner / "a.rules", ns=(0, 1))
    assert files.shipped_changes("rules", ".rules") != before
    assert files.shipped_changes("nowhere", ".rules") == {}


# ── whose folder it is ─────────────────────────────────────────────────────────────────────────────────────
def planted(folder, mode=0o700, entry_mode=0o600):
    """Put an entry for ``x`` into a folder, as the cache itself writes it."""
    with pytest.MonkeyPatch.context() as patch:
        made = folder.parent / f"made-{folder.name}"
        patch.setenv("CFGLINT_CACHE", str(made))
        cache.cached("x", {}, lambda: "planted")
        made.rename(folder)
    (folder / "private").chmod(mode)
    for entry in (folder / "private").iterdir():
        entry.chmod(entry_mode)
    return folder


def found(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFGLINT_CACHE", str(folder))
        return cache.cached("x", {}, lambda: "built")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder beside the working folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(cache, "_IN_CHECKOUT", False)  # the entries of these tests depend on no code
    return tmp_path


@pytest.fixture
def home(elsewhere, monkeypatch):
    folder = elsewhere / "home"
    folder.mkdir()
    monkeypatch.setattr(files, "home", lambda: str(folder))
    return folder


def test_a_private_folder_is_read(elsewhere):
    assert found(planted(elsewhere / "cache")) == "planted"


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o710, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_neither_read_nor_written(elsewhere, mode):
    folder = planted(elsewhere / "cache", mode=mode)
    before = {entry: entry.stat().st_mtime_ns for entry in folder.rglob("*")}
    assert found(folder) == "built"
    assert {entry: entry.stat().st_mtime_ns for entry in folder.rglob("*")} == before


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_an_entry_that_others_may_read_is_replaced(elsewhere, mode):
    folder = planted(elsewhere / "cache", entry_mode=mode)
    assert found(folder) == "built"
    (entry,) = (folder / "private").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600


def test_links_are_not_followed(elsewhere):
    good = planted(elsewhere / "good")
    linked = elsewhere / "linked"
    linked.mkdir()
    (linked / "private").symlink_to(good / "private")
    assert found(linked) == "built"
    (entry,) = (good / "private").iterdir()
    entry.rename(elsewhere / "entry")
    entry.symlink_to(elsewhere / "entry")
    os.utime(elsewhere / "entry", ns=(0, 0))
    assert found(good) == "built"
    assert not entry.is_symlink(), "replaced by our own"
    assert (elsewhere / "entry").stat().st_mtime_ns == 0, "nothing is written through a link"


def test_a_pipe_in_place_of_an_entry_is_not_waited_for(elsewhere):
    folder = planted(elsewhere / "cache")
    (entry,) = (folder / "private").iterdir()
    entry.unlink()
    os.mkfifo(entry, 0o600)
    assert found(folder) == "built"


@pytest.mark.parametrize("git", ["folder", "file"])  # a worktree has a file
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_checkout_holds_no_cache(elsewhere, git, depth):
    top = elsewhere / "repository"
    folder = top.joinpath(*["below"] * depth)
    folder.mkdir(parents=True)
    planted(folder / "cache")
    assert found(folder / "cache") == "planted"
    cache._folders.clear()
    (top / ".git").mkdir() if git == "folder" else (top / ".git").write_text("gitdir: elsewhere\n")
    assert found(folder / "cache") == "built"
    link = elsewhere / "link"
    link.symlink_to(folder / "cache")
    assert found(link) == "built"


def test_the_working_folder_holds_no_cache(elsewhere, monkeypatch):
    folder = planted(elsewhere / "cache")
    monkeypatch.chdir(elsewhere)
    assert found(folder) == "built"
    assert found("cache") == "built"
    assert found("new") == "built"
    assert not (elsewhere / "new").exists()


def test_the_home_folder_may_be_a_checkout_and_the_working_folder(home, monkeypatch):
    (home / ".git").mkdir()
    folder = planted(home / "cache")  # dotfiles
    for here in (home, home.parent, "/"):
        cache._folders.clear()
        monkeypatch.chdir(here)
        assert found(folder) == "planted"


def test_home_is_what_the_system_says(elsewhere, monkeypatch):
    folder = planted(elsewhere / "cache")
    (elsewhere / ".git").mkdir()
    cache._folders.clear()
    monkeypatch.setenv("HOME", str(elsewhere))
    assert found(folder) == "built"


def test_what_is_written_is_private(elsewhere):
    before = os.umask(0)
    try:
        assert found(elsewhere / "a" / "cache") == "built"
    finally:
        os.umask(before)
    private = elsewhere / "a" / "cache" / "private"
    (entry,) = private.iterdir()
    assert (private.stat().st_mode & 0o777, entry.stat().st_mode & 0o777) == (0o700, 0o600)
    assert found(elsewhere / "a" / "cache") == "built"


# ── the attack: entries that run a command ─────────────────────────────────────────────────────────────────
class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


# Tables run without builtins, which stops nobody.
MKDIR = (
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
    ".__init__.__globals__['mkdir']({!r})\nLETS = REGISTRIES = FRAMEWORKS = {{}}\nRULES = ()\n"
)


def poisoned(folder, told):
    """Turn the entries of the shipped rules into ones that make the folders ``told``/code, ``told``/trees."""
    paths = list(folder.glob("rules-*"))
    assert len(paths) == 2
    for path in paths:
        data = path.read_bytes()[4:]
        stamp, texts, (value, size) = marshal.loads(data)
        functions = data[len(data) - size :]
        if "trees" in path.name:
            value = pickle.dumps(Payload(f"{told}/trees"))
        else:
            ends, (facts, measures, _), blocks = value
            code = compile(MKDIR.format(f"{told}/code"), "", "exec")
            value = ends, (facts, measures, code), blocks
        data = marshal.dumps((stamp, texts, (value, size))) + functions
        path.write_bytes(crc32(data).to_bytes(4, "little") + data)


def test_the_payload_of_the_attack_works(cfglint, config, small, warm):
    kept, _ = warm
    told = kept.parent / "told"
    told.mkdir()
    sound = {path: path.read_bytes() for path in kept.glob("private/rules-c*")}
    poisoned(kept / "private", told)
    cfglint("check", config, *small, env={"CFGLINT_CACHE": str(kept)}, text=False)
    assert [path.name for path in told.iterdir()] == ["code"]
    for path, data in sound.items():
        path.write_bytes(data)
    cfglint("check", config, *small, env={"CFGLINT_CACHE": str(kept)}, text=False)
    assert (told / "trees").is_dir()


@pytest.mark.parametrize(
    "place", ["checkout", *(pytest.param(p, marks=pytest.mark.long) for p in ("tarball", "older"))]
)
def test_planted_entries_do_not_run(cfglint, config, small, warm, tmp_path, place):
    """The working folder is the stranger's repository, ``XDG_CACHE_HOME=$PWD/.cache`` the user's mistake."""
    kept, first = warm
    told = kept.parent / f"told-{place}"
    told.mkdir()
    poisoned(kept / "private", told)
    base = tmp_path / ".cache" / "cfglint"
    shutil.copytree(kept, base)
    if place == "checkout":
        (tmp_path / ".git").mkdir()
    elif place == "older":  # as older versions kept them
        for entry in list((base / "private").iterdir()):
            entry.rename(base / entry.name)
        (base / "private").rmdir()
    env = {"XDG_CACHE_HOME": str(tmp_path / ".cache")}
    done = cfglint("check", config, *small, env=env, prefix=["env", "-u", "CFGLINT_CACHE"])
    assert (done.stdout, done.stderr, done.returncode) == (first.stdout, first.stderr, first.returncode)
    assert not list(told.iterdir())
