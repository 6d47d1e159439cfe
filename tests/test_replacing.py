"""How a file is written: nobody else's edit is lost, whenever it comes, and all but the text stays."""

import contextlib
import errno
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from cfglint import files, replacing
from cfglint.errors import UsageError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
READ, FIXED = b"a: 1\n", b"a: 2 # fixed\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(READ)
    return path


def left(folder):
    return sorted(name for name in os.listdir(folder) if name != "a.yaml")


# ── the ways in which people's programs save ─────────────────────────────────────────────────────────────
def emptied(path, text):
    path.write_bytes(text)


def appended(path, text):
    with path.open("ab") as stream:
        stream.write(text)


def patched(path, text):
    with path.open("r+b") as stream:
        stream.write(text)


def renamed(path, text):
    new = path.with_name("new")
    new.write_bytes(text)
    new.replace(path)


SAVED = {"emptied": emptied, "appended": appended, "patched": patched, "renamed": renamed}
MINE = b"a: 7 # mine\n"


def begun(save, path, text):
    """Let another thread save; it may have to wait until this one has done with the file."""
    saving = threading.Thread(target=SAVED[save], args=(path, text))
    saving.start()
    saving.join(0.05)
    return saving


@pytest.fixture(params=["one step", "no exchange", "no leases"])
def system(request, monkeypatch):
    if request.param == "no exchange":
        monkeypatch.setattr(replacing, "_swapped", lambda *_: False)
    if request.param == "no leases":
        monkeypatch.setattr(replacing, "_lease", lambda *_, **__: None)
        monkeypatch.setattr(replacing, "_lease_of", lambda _: None)
    return request.param


@pytest.mark.parametrize("save", SAVED)
@pytest.mark.parametrize("moment", ["before the check", "before the exchange", "after it"])
def test_an_edit_at_any_moment_stands(path, monkeypatch, system, moment, save):
    owner, name, at = {
        "before the check": (replacing, "_Watched", 0),
        "before the exchange": (replacing, "_exchange", 0),
        "after it": (replacing._Watched, "holds", 1),
    }[moment]
    original, calls, saving = getattr(owner, name), [], []

    def edited(*arguments):
        if len(calls) == at:
            saving.append(begun(save, path, MINE))
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(owner, name, edited)
    if moment == "after it":  # it was made to what is the new file then
        with contextlib.suppress(UsageError):
            files.write(str(path), FIXED, over=READ)
        saving[0].join()
        assert MINE in path.read_bytes()
    else:
        with pytest.raises(UsageError, match="changed by somebody else since it was read, so nothing was"):
            files.write(str(path), FIXED, over=READ)
        saving[0].join()
        assert path.read_bytes() == (READ + MINE if save == "appended" else MINE)
    assert left(path.parent) == []


@pytest.mark.parametrize("save", SAVED)
def test_two_edits_in_one_instant_are_both_kept(path, monkeypatch, save):
    original, calls, saving = replacing._exchange, [], []

    def edited(*arguments):
        if len(calls) < 2:
            saving.append(begun(save, path, b"%d" % len(calls) + MINE))
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(replacing, "_exchange", edited)
    with pytest.raises(UsageError, match=r"and twice; the first of these texts is \S+, so nothing") as error:
        files.write(str(path), FIXED, over=READ)
    for each in saving:
        each.join()
    (kept,) = left(path.parent)
    assert str(path.with_name(kept)) in str(error.value)
    assert b"1" + MINE in path.read_bytes()  # the latest
    assert b"0" + MINE in path.with_name(kept).read_bytes()


@LINUX
@pytest.mark.parametrize("how", ["r+b", "ab"])
def test_what_somebody_is_about_to_write_is_waited_for(path, how):
    with path.open(how) as stream:
        with pytest.raises(UsageError, match="changed by somebody else"):
            files.write(str(path), FIXED, over=READ)
        stream.write(MINE)
    assert MINE in path.read_bytes()
    assert left(path.parent) == []
    files.write(str(path), FIXED, over=path.read_bytes())
    assert path.read_bytes() == FIXED


def test_a_file_that_is_gone_stays_so(path, monkeypatch):
    original = replacing._exchange

    def removed(*arguments):
        path.unlink()
        return original(*arguments)

    monkeypatch.setattr(replacing, "_exchange", removed)
    with pytest.raises(UsageError, match="cannot be written: no such file or directory"):
        files.write(str(path), FIXED, over=READ)
    assert os.listdir(path.parent) == []


def test_a_link_that_leads_elsewhere_by_now(tmp_path, path):
    link, other = tmp_path / "link.yaml", tmp_path / "other.yaml"
    link.symlink_to(path)
    other.write_bytes(b"another's\n")
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(UsageError, match="changed by somebody else"):
        files.write(str(link), FIXED, over=READ)
    assert (path.read_bytes(), other.read_bytes()) == (READ, b"another's\n")


@pytest.mark.parametrize("made", [emptied, lambda path, _: path.symlink_to("nowhere")])
def test_a_new_file_is_new(path, made):
    path.unlink()
    made(path, MINE)
    with pytest.raises(UsageError, match="made by somebody else meanwhile, so nothing was written"):
        files.write(str(path), FIXED, new=True)
    assert left(path.parent) == []
    assert os.readlink(path) == "nowhere" if path.is_symlink() else path.read_bytes() == MINE


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("links", [False, True])
def test_a_new_file(path, monkeypatch, named, links):
    if named:
        monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
        if not links:
            monkeypatch.setattr(os, "link", _no_links)
    path.unlink()
    files.write(str(path), FIXED, new=True)
    assert path.read_bytes() == FIXED
    assert left(path.parent) == []
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def _no_links(*_, **__):
    raise OSError(errno.EPERM, "no links here")


def test_without_second_names_the_check_before_is_what_there_is(path, monkeypatch):
    monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
    monkeypatch.setattr(os, "link", _no_links)
    monkeypatch.setattr(replacing, "_swapped", lambda *_: False)
    files.write(str(path), FIXED, over=READ)
    assert path.read_bytes() == FIXED
    with pytest.raises(UsageError, match="changed by somebody else"):
        files.write(str(path), FIXED, over=READ)
    assert left(path.parent) == []


# ── all but the text stays ───────────────────────────────────────────────────────────────────────────────
def test_hard_links_stay(path):
    other = path.with_name("b.yaml")
    os.link(path, other)
    before = path.stat()
    assert files.write(str(path), FIXED, over=READ) == 2
    assert (path.read_bytes(), other.read_bytes()) == (FIXED, FIXED)
    after = path.stat()
    assert (before.st_ino, before.st_mode, after.st_nlink) == (after.st_ino, after.st_mode, 2)
    with pytest.raises(UsageError, match="changed by somebody else"):
        files.write(str(path), b"a: 3\n", over=READ)
    assert other.read_bytes() == FIXED
    assert left(path.parent) == ["b.yaml"]


@LINUX
def test_a_hard_link_that_somebody_has_open(path):
    os.link(path, path.with_name("b.yaml"))
    with path.open("rb"), pytest.raises(UsageError, match="open in another program"):
        files.write(str(path), FIXED, over=READ)
    assert path.read_bytes() == READ


@pytest.mark.parametrize("data", [FIXED, b"a\n", b""])
def test_a_disk_that_is_full_while_a_hard_link_is_written(path, monkeypatch, data):
    os.link(path, path.with_name("b.yaml"))
    original, calls = os.write, []

    def full(descriptor, text):
        calls.append(text)
        if len(calls) == 2:  # the copy has been made
            original(descriptor, bytes(text)[:1])
            raise OSError(errno.ENOSPC, "no space left on device")
        return original(descriptor, text)

    monkeypatch.setattr(os, "write", full)
    if data:
        with pytest.raises(
            UsageError, match="cannot be written: no space left on device; it was not changed"
        ):
            files.write(str(path), data, over=READ)
        assert path.read_bytes() == READ
    else:
        files.write(str(path), data, over=READ)
        assert path.read_bytes() == b""
    assert left(path.parent) == ["b.yaml"]


@LINUX
def test_attributes_stay(path):
    try:
        os.setxattr(path, "user.who", b"me")
    except OSError:
        pytest.skip("this file system has no attributes")
    files.write(str(path), FIXED, over=READ)
    assert path.read_bytes() == FIXED
    assert os.getxattr(path, "user.who") == b"me"


@LINUX
@pytest.mark.parametrize("where", ["file", "folder"])
def test_access_lists_stay(path, where):
    """A list of the folder is given to new files in it, but not to this one."""
    acl = bytes.fromhex(
        "0200000001000600ffffffff02000600e803000004000400ffffffff10000600ffffffff20000000ffffffff"
    )
    name = "system.posix_acl_access" if where == "file" else "system.posix_acl_default"
    try:
        os.setxattr(path if where == "file" else path.parent, name, acl)
    except OSError:
        pytest.skip("this file system has no access lists")
    before = {name: os.getxattr(path, name) for name in os.listxattr(path)}, path.stat().st_mode
    files.write(str(path), FIXED, over=READ)
    assert path.read_bytes() == FIXED
    assert ({name: os.getxattr(path, name) for name in os.listxattr(path)}, path.stat().st_mode) == before


@pytest.mark.parametrize("refused", ["setxattr", "mount"])
def test_where_a_new_file_would_not_do_the_old_one_is_written_to(path, monkeypatch, refused):
    def refuse(*_, **__):
        raise OSError(errno.EBUSY if refused == "mount" else errno.EPERM, "no")

    if refused == "mount":
        monkeypatch.setattr(replacing, "_exchange", refuse)
    else:
        monkeypatch.setattr(os, "listxattr", lambda _: ["user.x"], raising=False)
        monkeypatch.setattr(os, "getxattr", lambda *_: b"x", raising=False)
        monkeypatch.setattr(os, "setxattr", refuse, raising=False)
    inode = path.stat().st_ino
    files.write(str(path), FIXED, over=READ)
    assert (path.read_bytes(), left(path.parent)) == (FIXED, [])
    assert path.stat().st_ino == inode or (refused == "setxattr" and sys.platform != "linux")


# ── processes of their own ───────────────────────────────────────────────────────────────────────────────
KILLED = """
import os, signal, sys
from cfglint import files, replacing
original = replacing._fill
def half(descriptor, data):
    os.write(descriptor, data[:3])
    os.kill(os.getpid(), signal.SIGKILL)
replacing._fill = half
files.write(sys.argv[1], b"a: 2 # fixed\\n", over=b"a: 1\\n")
"""


@LINUX
def test_a_crash_leaves_the_original_and_nothing_else(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == READ
    assert left(path.parent) == []


WRITER = """
import os, random, sys, time
path, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
for i in range(rounds):
    time.sleep(chance.random() * 0.002)
    line = f"# {i}\\n"
    way = chance.randrange(4)
    if way == 0:
        with open(path, "a") as stream:
            stream.write(line)
    elif way == 1:
        text = open(path).read()
        with open(path, "w") as stream:
            stream.write(text + line)
    elif way == 2:
        with open(path, "r+") as stream:
            stream.seek(0, 2)
            time.sleep(chance.random() * 0.001)
            stream.write(line)
    else:
        text = open(path).read()
        with open(path + "~", "w") as stream:
            stream.write(text + line)
        os.replace(path + "~", path)
"""


@LINUX
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_no_line_of_a_busy_writer_is_ever_lost(path, seed):
    """One process adds lines, in all ways; this one puts a line before them, as fast as it can."""
    rounds = 600 if seed == 1 else 20_000
    path.write_bytes(b"")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(rounds), str(seed)])
    told = {True: 0, False: 0}
    kept, others = b"", 0
    while writer.poll() is None:
        read = path.read_bytes()
        lines = [line for line in read.splitlines(keepends=True) if line.startswith(b"#")]
        try:
            files.write(str(path), b"".join([b"fixed: %d\n" % told[True], *lines]), over=read)
            told[True] += 1
        except UsageError as error:
            told[False] += 1
            others += "changed by somebody else" not in str(error)
    assert (writer.returncode, others) == (0, 0)
    for name in left(path.parent):
        kept += path.with_name(name).read_bytes()
    found = {line for line in (path.read_bytes() + kept).splitlines() if line.startswith(b"#")}
    assert [i for i in range(rounds) if b"# %d" % i not in found] == []
    assert min(told.values()) > 10, told


@pytest.mark.long
def test_an_edit_while_fix_runs(cfglint, config, small):
    """The other edits at a moment within the run; either the fix gives way, or the edit came after it."""
    original = config.read_bytes()
    chance = random.Random(17)
    seen = set()
    for i in range(300):
        config.write_bytes(original)
        command = [sys.executable, "-m", "cfglint", "fix", str(config), *small]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(chance.random() * 0.8)
        mine = f"# mine {i}\n".encode()
        if i % 3 == 0:
            appended(config, mine)
        elif i % 3 == 1:
            emptied(config, config.read_bytes() + mine)
        else:
            renamed(config, config.read_bytes() + mine)
        _, told = run.communicate()
        text = config.read_bytes()
        assert mine in text, (i, told)
        fixed = b"mem_fraction_static: 0.5" in text
        assert fixed or run.returncode == 2 or i % 3, told
        seen.add((fixed, run.returncode))
        assert [name for name in os.listdir(config.parent) if name.startswith(".cfglint-")] == []
    assert len(seen) > 1
