"""Input that nobody should have: a clear line, the right status, bounded time and memory, nothing lost."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A clean run takes 0.1 s and 60 MiB of address space with what Python maps.
LIMITS = {"seconds": 30, "megabytes": 1024}
AREAL = "actor:\n  path: x\nallocation_mode: sglang.d1p1t1+d1p1t1\n"


@pytest.fixture
def check(cfglint, folder):
    """Run ``check`` within limits; returns exit status, stdout and stderr."""

    def run(*words, **more):
        done = cfglint("check", *words, "--gpu", "a40", "--format", "concise", **{**LIMITS, **more})
        return done.returncode, done.stdout, done.stderr

    return run


def one_error(result, said):
    status, out, err = result
    assert status == 2, (out, err)
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("cfglint: error: ")
    assert said in err, err


def syntax_error(result, said, where=""):
    status, out, err = result
    assert status == 1, (out, err)
    assert err == ""
    assert out.count(" CFG001 ") == 1, out
    assert said in out, out
    assert where in out, out


def test_no_such_path(check):
    one_error(check("no/such/folder"), "no/such/folder: no such file or folder")


def test_binary(check, folder):
    (folder / "x.yaml").write_bytes(bytes(range(256)) * 8)
    one_error(check("x.yaml"), "x.yaml: a binary file, not a config")
    assert check(".")[:2] == (0, "no findings in 0 files (1 skipped: 1 with syntax errors)\n0 jobs checked\n")


def test_other_toml_is_passed_over(check, folder):
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (folder / "Cargo.toml").write_text("[package]\nname = \n")
    assert check(".")[:2] == (0, "no findings in 0 files (2 skipped: 1 with syntax errors)\n0 jobs checked\n")
    assert "no framework recognises this file" in check("pyproject.toml")[2]
    assert "Cargo.toml:2:7: error CFG001" in check("Cargo.toml")[1]


def test_a_hundred_megabytes(check, folder):
    with open("x.yaml", "wb") as stream:
        stream.writelines(b"a: 1  # ...........\n" * 52_429 for _ in range(100))
    one_error(check("x.yaml"), "x.yaml: 100 MiB is too large for a config; cfglint reads up to 16 MiB")
    assert check(".")[:2] == (0, "no findings in 0 files (1 skipped: 1 larger than 1 MiB)\n0 jobs checked\n")
    with open("x.yaml", "rb") as stream:
        syntax_error(check("-", stdin=stream.read()), "larger than 16 MiB")


def test_just_below_the_limit(check, folder):
    (folder / "x.yaml").write_bytes(AREAL.encode() + b"# " + b"x" * (15 << 20))
    status, out, _ = check("x.yaml", "--select", "CFG")
    assert (status, out) == (0, "no findings in 1 file\n1 job checked\n")


@pytest.mark.parametrize(
    ("opened", "inner", "closed"), [("[", "1", "]"), ("{a: ", "1", "}"), ("- ", "1", ""), ("? ", "1", "")]
)
def test_ten_thousand_levels(check, folder, opened, inner, closed):
    (folder / "x.yaml").write_text(opened * 10_000 + inner + closed * 10_000)
    syntax_error(check("x.yaml"), "nested more than 200 levels deep", "x.yaml:1:")


def test_ten_thousand_levels_of_json(check, folder):
    (folder / "x.json").write_text("[" * 10_000 + "]" * 10_000)
    syntax_error(check("x.json"), "nested more than 200 levels deep", "x.json:1:")


def test_billion_laughs(check, folder):
    names = "abcdefghi"
    lines = [f"a: &a [{', '.join(['lol'] * 9)}]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
    (folder / "x.yaml").write_text(AREAL + "\n".join(lines) + "\n")
    status, out, err = check("x.yaml", "--select", "CFG")
    assert (status, out, err) == (0, "no findings in 1 file\n1 job checked\n", "")


def test_billion_laughs_of_merge_keys(check, folder):
    lines = ["m0: &m0 {k: 1}"]
    lines += [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}" for i in range(1, 12)]
    (folder / "x.yaml").write_text(AREAL + "\n".join(lines) + "\n")
    status, _, err = check("x.yaml", "--select", "CFG")
    assert (status, err) in ((0, ""), (1, ""))


def test_billion_laughs_of_interpolations(check, folder):
    lines = ["v0: ha"] + [f"v{i}: {''.join([f'${{v{i - 1}}}'] * 9)}" for i in range(1, 12)]
    text = AREAL.replace("path: x", "path: ${v11}")
    (folder / "x.yaml").write_text(text + "\n".join(lines) + "\n")
    status, _, err = check("x.yaml")
    assert (status, err) in ((0, ""), (1, ""))


def test_many_interpolations_in_a_chain(check, folder):
    lines = ["v0: 1"] + [f"v{i}: ${{v{i - 1}}}" for i in range(1, 5000)]
    (folder / "x.yaml").write_text(AREAL.replace("path: x", "path: ${v4999}") + "\n".join(lines) + "\n")
    status, _, err = check("x.yaml", "--select", "CFG")
    assert (status, err) in ((0, ""), (1, ""))


@pytest.mark.parametrize(
    ("data", "said", "where"),
    [
        (AREAL.encode() + b"# caf\xe9\n", "is not UTF-8: save the file as UTF-8", "x.yaml:4:6:"),
        (AREAL.encode("utf-16"), "encoded as UTF-16: save it as UTF-8", "x.yaml:1:1:"),
        (AREAL.encode() + b"a: \x07\n", "the control character U+0007", "x.yaml:4:4:"),
        (AREAL.encode() + b"a: [1\n", "is not closed", "x.yaml:4:4:"),
    ],
)
def test_bytes_that_are_no_text(check, folder, data, said, where):
    (folder / "x.yaml").write_bytes(data)
    syntax_error(check("x.yaml"), said, where)


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"# only\n# comments\n", b"---\n", b"\xef\xbb\xbf", b"42\n", b"[]\n"]
)
def test_nothing_in_it(check, folder, data):
    (folder / "x.yaml").write_bytes(data)
    one_error(check("x.yaml"), "x.yaml: no framework recognises this file")
    assert check("x.yaml", "--skip-unknown")[0] == 0
    assert check("x.yaml", "--framework", "areal", "--select", "CFG")[:2] == (
        0,
        "no findings in 1 file\n1 job checked\n",
    )


@pytest.mark.long
def test_a_rule_file_with_a_thousand_mistakes(check, folder):
    lines = [f'rule USR{i:03} r error {{\n  mem_fractoin <= 0.5\n  say "x"\n}}\n' for i in range(1000)]
    (folder / "x.rules").write_text("".join(lines))
    status, out, err = check(".", "--rules", "x.rules")
    assert (status, out) == (2, "")
    told = err.splitlines()
    assert 2 <= len(told) <= 25
    assert told[0].startswith("x.rules:2:3: ")
    assert "mem_fraction" in told[0]
    assert told[-1].startswith("cfglint: error: the rules do not load: ")


def test_a_rule_file_that_does_not_parse_a_thousand_times(check, folder):
    (folder / "x.rules").write_text("rule rule {{{ ->\n" * 1000)
    status, out, err = check(".", "--rules", "x.rules")
    assert (status, out) == (2, "")
    assert "x.rules:1:" in err
    assert err.count("\n") <= 25


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\xff\xfe\x00", b"\0" * 100])
def test_a_rule_file_that_is_binary(check, folder, data):
    (folder / "x.rules").write_bytes(data)
    status, out, err = check(".", "--rules", "x.rules")
    assert (status, out) == (2, "")
    assert "x.rules" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "1" + ")" * 10_000 + " <= 2",
        "not " * 10_000 + "true",
        " and ".join(["mem_fraction<=0.5"] * 1000),
        " + ".join(["mem_fraction"] * 5000) + " <= 1",
        "mem_fraction <= " + "9" * 10_000,
        "mem_fraction <= 1e999",
        "mem_fraction <= 0.5 ->",
        "",
        "\0",
    ],
    ids=lambda text: text[:24],
)
def test_rules_from_a_stranger(check, folder, text):
    if "\0" in text:
        (folder / "x.rules").write_text(text)
        result = check(".", "--rules", "x.rules")
    else:
        result = check(".", "--rule", text)
    assert result[0] in (0, 2)
    assert result[2].count("\n") <= 1


def test_a_folder_without_permission(check, folder, without_privileges):
    (folder / "closed").mkdir()
    (folder / "closed" / "x.yaml").write_text(AREAL)
    (folder / "y.yaml").write_text(AREAL)
    (folder / "closed").chmod(0)
    try:
        status, out, err = check(".", "--select", "CFG", prefix=without_privileges)
        alone = check("closed", prefix=without_privileges)
    finally:
        (folder / "closed").chmod(0o755)
    assert (status, err) == (2, "cfglint: error: ./closed: cannot be read: permission denied\n")
    assert out == "no findings in 1 file\n1 job checked\n", "the rest is judged"
    one_error(alone, "closed: cannot be read: permission denied")


def test_a_file_without_permission(check, folder, without_privileges):
    (folder / "x.yaml").write_text(AREAL)
    (folder / "x.yaml").chmod(0)
    one_error(check("x.yaml", prefix=without_privileges), "x.yaml: cannot be read: permission denied")
    status, _, err = check(".", prefix=without_privileges)
    assert (status, err) == (2, "cfglint: error: x.yaml: cannot be read: permission denied\n")


def test_pipes(check, folder):
    os.mkfifo("x.yaml")
    one_error(check("x.yaml"), "x.yaml: a pipe without a writer")
    assert check(".")[:2] == (0, "no findings in 0 files (1 skipped: 1 not regular)\n0 jobs checked\n")


def test_a_pipe_from_the_shell(folder):
    """``cfglint check <(envsubst < template.yaml)``."""
    (folder / "x.txt").write_text(AREAL)
    command = f"{sys.executable} -m cfglint check <(sleep 0.3; cat x.txt) --no-detect --select CFG"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "linter")}
    done = subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "no findings in 1 file\n1 job checked\n", "")


def test_devices(check):
    one_error(check("/dev/null"), "/dev/null: no framework recognises this file")
    one_error(check("/dev/zero"), "/dev/zero: a binary file")


def test_a_folder_named_like_a_file(check, folder):
    (folder / "x.yaml").mkdir()
    (folder / "x.yaml" / "y.yaml").write_text(AREAL)
    assert check("x.yaml", "--select", "CFG")[:2] == (0, "no findings in 1 file\n1 job checked\n")
    assert check(".", "--select", "CFG")[:2] == (0, "no findings in 1 file\n1 job checked\n")


def test_links(check, folder):
    (folder / "a.yaml").symlink_to("b.yaml")
    (folder / "b.yaml").symlink_to("a.yaml")
    (folder / "gone.yaml").symlink_to("nowhere.yaml")
    (folder / "up").symlink_to("..")
    one_error(check("a.yaml"), "a.yaml: cannot be read: too many levels of symbolic links")
    one_error(check("gone.yaml"), "gone.yaml: no such file or folder")
    why = "4 skipped: 1 linked from outside, 3 unreadable"
    assert check(".") == (0, f"no findings in 0 files ({why})\n0 jobs checked\n", "")


def test_a_file_that_git_lfs_keeps_elsewhere(check, folder):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:dfbd0efc\nsize 1026\n"
    (folder / "ds_z3.json").write_text(pointer)
    job = "model_name_or_path: a/b\nstage: sft\ncutoff_len: 512\ndeepspeed: ds_z3.json\n"
    (folder / "sft.yaml").write_text(job)
    one_error(check("ds_z3.json"), "ds_z3.json: stands for a file in Git LFS; `git lfs pull` gets it")
    status, said, _ = check(".", "--framework", "llamafactory")
    assert (status, "error" in said) == (0, False)
    assert "(1 skipped: 1 in Git LFS)" in said


def test_a_file_that_vanishes(monkeypatch, folder):
    from cfglint.boundary import Boundary
    from cfglint.command import inputs
    from cfglint.errors import UsageError

    (folder / "x.yaml").write_text(AREAL)
    found = list(inputs.find(["."], Boundary(["."]), pytest.fail))
    (folder / "x.yaml").unlink()
    for path, named in found:
        with pytest.raises(inputs.Skipped, match="unreadable"):
            inputs.load(path, Boundary(["."]), named=named)
    with pytest.raises(UsageError, match="no such file or folder"):
        inputs.load("x.yaml", Boundary(), named=True)


def test_stdout_closed_early(folder):
    for i in range(12):
        (folder / f"x{i}.yaml").write_text(AREAL + "a: 1\n" * 600)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "linter")}
    command = f"{sys.executable} -m cfglint check . --no-detect --fail-on info --format concise"
    for tail in ("| head -1", "| true", ">&-", "> /dev/full"):
        done = subprocess.run(
            ["bash", "-c", f"{command} {tail}; exit ${{PIPESTATUS[0]}}"],
            env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr
        if tail == "> /dev/full":
            assert done.returncode == 2
            assert done.stderr == "cfglint: error: cannot write the output: no space left on device\n"
        else:
            assert done.returncode == 1
            assert done.stderr == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "sheet.json: $"),
        ('{"cfglint": "hardware", "version": 1, "devices": []}', "sheet.json: $.devices"),
        ('{"cfglint": "hardware", "version": 2, "devices": [{"name": "x"}]}', "sheet.json: $.version"),
        ("[" * 100_000, "sheet.json: not valid JSON"),
        ("\xff", "it is not utf-8 text"),
    ],
)
def test_a_broken_hardware_sheet(cfglint, folder, text, said):
    (folder / "sheet.json").write_bytes(text.encode("latin-1"))
    done = cfglint("check", ".", "--hardware", "sheet.json", **LIMITS)
    one_error((done.returncode, done.stdout, done.stderr), said)


def test_an_unknown_gpu(check):
    one_error(check(".", "--gpu", "a41"), "unknown GPU 'a41'; did you mean")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"x", marks=pytest.mark.long),
        pytest.param(b"", marks=pytest.mark.long),
        pytest.param(b"\0" * 5000, marks=pytest.mark.long),
        pytest.param(None, marks=pytest.mark.long),
    ],
)
def test_a_damaged_cache_costs_time_only(cfglint, config, small, warm, damage):
    cache, first = warm
    env = {"CFGLINT_CACHE": str(cache)}
    assert first.returncode == 1
    entries = {entry: len(entry.read_bytes()) > 5000 for entry in sorted(cache.glob("private/*"))}
    for entry in entries:
        data = entry.read_bytes()
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
        entry.write_bytes(flipped if damage is None else damage)
    again = cfglint("check", config, *small, env=env)
    assert (again.stdout, again.stderr, again.returncode) == (first.stdout, first.stderr, 1)
    rewritten = [entry for entry, large in entries.items() if large and len(entry.read_bytes()) > 5000]
    assert len(rewritten) > 2, "a damaged entry is written again"


@pytest.mark.long
def test_a_cache_that_cannot_be_written_costs_time_only(cfglint, config, small, tmp_path, without_privileges):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    (tmp_path / "file").write_text("")
    for cache in (str(closed / "below"), str(tmp_path / "file"), "/proc/nowhere", ""):
        done = cfglint("check", config, *small, env={"CFGLINT_CACHE": cache}, prefix=without_privileges)
        assert (done.returncode, done.stderr) == (1, "")
    closed.chmod(0o755)
    assert not list(closed.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_cache_of_somebody_else_is_not_read(cfglint, tmp_path):
    env = {"CFGLINT_CACHE": str(tmp_path / "cache")}
    assert cfglint("gpus", env=env).returncode == 0  # small entries, soon compiled
    entries = list((tmp_path / "cache" / "private").iterdir())
    assert entries
    for entry in entries:
        entry.write_bytes(b"\0" * 100)
        os.chown(entry, 12345, 12345)
    assert cfglint("gpus", env=env).returncode == 0
    for entry in entries:
        assert entry.stat().st_uid == 0, "replaced by our own"
