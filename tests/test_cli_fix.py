"""``cfglint fix`` through the real command: what it writes, how, and what it leaves alone."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

UNSAFE = ["--select", "CLI", "--rule", "max_new_tokens <= 256", "--gpu", "a40"]


def git(folder, *words, stdin=None):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=folder, input=stdin, env=env, capture_output=True, check=True
    ).stdout


def no_leftovers(folder):
    return not [name for name in os.listdir(folder) if "cfglint" in name]


@pytest.fixture
def fixed(config):
    """The bytes that ``fix`` should write."""
    return config.read_bytes().replace(b"mem_fraction_static: 0.8", b"mem_fraction_static: 0.5")


def test_in_place_and_idempotent(cfglint, config, small, fixed):
    done = cfglint("fix", config, *small)
    assert done.returncode == 0, done.stdout + done.stderr
    assert config.read_bytes() == fixed
    assert f"cfglint: {config}: set sglang.mem_fraction_static to 0.5 (safe, CLI001)" in done.stderr
    assert "no findings in 1 file" in done.stdout
    before = config.stat()
    again = cfglint("fix", config, *small)
    assert (again.returncode, again.stderr) == (0, "")
    assert (config.stat().st_mtime_ns, config.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert no_leftovers(config.parent)


@pytest.mark.parametrize("frame", [(b"", b"\n"), (b"\xef\xbb\xbf", b"\r\n")])
def test_other_bytes_stay(cfglint, config, small, frame):
    bom, end = frame
    original = bom + config.read_bytes().replace(b"\n", end).rstrip() + b"  # \xe4\xb8\xad\xe6\x96\x87 \t"
    config.write_bytes(original)
    assert cfglint("fix", config, *small).returncode == 0
    assert config.read_bytes() == original.replace(b"static: 0.8", b"static: 0.5")


def test_diff_is_taken_by_git(cfglint, config, small, fixed):
    folder = config.parent
    (folder / "sub dir").mkdir()
    other = folder / "sub dir" / "é.yaml"
    other.write_bytes(b"\xef\xbb\xbf" + config.read_bytes().replace(b"\n", b"\r\n").rstrip())
    wanted = other.read_bytes().replace(b"static: 0.8", b"static: 0.5")
    git(folder, "init", "-q")
    done = cfglint("fix", "--diff", ".", *small, text=False)
    assert done.returncode == 1
    assert done.stderr == b""
    assert b"static: 0.8" in config.read_bytes(), "--diff changes nothing"
    git(folder, "apply", stdin=done.stdout)
    assert (config.read_bytes(), other.read_bytes()) == (fixed, wanted)
    done = cfglint("fix", "--diff", ".", *small)
    assert (done.returncode, done.stdout) == (0, "")


def test_diff_to_a_file(cfglint, config, small, fixed):
    done = cfglint("fix", "--diff", config.name, *small, "--output-file", "it.patch")
    assert (done.returncode, done.stdout) == (1, "")
    git(config.parent, "apply", "it.patch")
    assert config.read_bytes() == fixed


def test_output_leaves_the_original(cfglint, config, small, fixed):
    original = config.read_bytes()
    done = cfglint("fix", config, *small, "--gpu", "rtx-4090:1", "--output", "a40.yaml")
    assert done.returncode == 0, done.stderr
    assert config.read_bytes() == original
    assert (config.parent / "a40.yaml").read_bytes() == fixed
    mode = stat.S_IMODE((config.parent / "a40.yaml").stat().st_mode)
    assert mode & 0o600 == 0o600
    done = cfglint("fix", "a40.yaml", *small, "--output", "copy.yaml")
    assert done.returncode == 0
    assert (config.parent / "copy.yaml").read_bytes() == fixed, "without a fix, a copy"


def test_annotate(cfglint, config, small):
    assert cfglint("fix", config, *small, "--annotate").returncode == 0
    line = next(text for text in config.read_text().splitlines() if "mem_fraction_static" in text)
    assert "0.5" in line
    assert "cfglint: was 0.8 (CLI001)" in line


def test_unsafe_needs_the_flag(cfglint, config):
    original = config.read_bytes()
    done = cfglint("fix", config, *UNSAFE)
    assert done.returncode == 1
    assert config.read_bytes() == original
    assert cfglint("fix", config, *UNSAFE, "--unsafe").returncode == 0
    assert b"max_new_tokens: 256" in config.read_bytes()


def test_stdin_to_stdout(cfglint, config, small, fixed):
    done = cfglint("fix", "-", *small, stdin=config.read_bytes(), text=False)
    assert done.returncode == 0
    assert done.stdout == fixed
    assert b"set sglang.mem_fraction_static" in done.stderr
    done = cfglint("fix", "-", "--diff", *small, stdin=config.read_bytes())
    assert done.returncode == 1
    assert done.stdout.startswith("--- a/stdin.yaml\n")


def test_a_filter_gives_back_what_it_cannot_fix(cfglint, folder, small):
    for data in (b"a: 1\r\n", b"\xff\xfe\x00bad", b"a: \xff\n", b""):
        done = cfglint("fix", "-", "--skip-unknown", *small, stdin=data, text=False)
        assert done.stdout == data


def test_a_text_that_is_no_utf8_is_not_garbled(cfglint, config, small):
    data = config.read_bytes() + b"# caf\xe9\n"
    config.write_bytes(data)
    done = cfglint("fix", config, *small, "--output", "copy.yaml")
    assert done.returncode == 0
    assert (config.parent / "copy.yaml").read_bytes() == data == config.read_bytes()


def test_mode_and_symlink_stay(cfglint, config, small, fixed):
    config.chmod(0o640)
    link = config.parent / "link.yaml"
    link.symlink_to(config.name)
    assert cfglint("fix", link, *small).returncode == 0
    assert link.is_symlink()
    assert config.read_bytes() == fixed
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_stays(cfglint, config, small, fixed):
    os.chown(config, 12345, 12346)
    assert cfglint("fix", config, *small).returncode == 0
    assert config.read_bytes() == fixed
    assert (config.stat().st_uid, config.stat().st_gid) == (12345, 12346)


def test_read_only(cfglint, config, small):
    original = config.read_bytes()
    config.chmod(0o444)
    done = cfglint("fix", config, *small)
    assert done.returncode == 2
    assert (
        f"{config}: read-only, so nothing was written; make it writable, or use --output FILE" in done.stderr
    )
    assert done.stderr.count("\n") == 1
    assert config.read_bytes() == original
    assert cfglint("fix", config, *small, "--output", "copy.yaml").returncode == 0
    assert cfglint("fix", config, *small, "--diff").returncode == 1


def test_one_that_fails_does_not_hide_the_others(cfglint, config, small, fixed):
    other = config.parent / "b.yaml"
    other.write_bytes(config.read_bytes())
    config.chmod(0o444)
    done = cfglint("fix", config, other, "nowhere.yaml", *small)
    assert done.returncode == 2
    assert done.stderr.count("cfglint: error: ") == 2
    assert other.read_bytes() == fixed


def test_disk_full(cfglint, config, small):
    """A limit on the size of files stands in for a full disk."""
    original = config.read_bytes()
    cfglint("check", config, *small)  # that nothing is left to compile, and to be kept
    limited = ["sh", "-c", 'ulimit -f 1; trap "" XFSZ; exec "$@"', "sh"]
    # Python would keep the first bytes of a module that it compiles.
    done = cfglint("fix", config, *small, prefix=["env", "PYTHONDONTWRITEBYTECODE=1", *limited])
    assert done.returncode == 2
    assert "cannot be written: file too large; it was not changed" in done.stderr
    assert config.read_bytes() == original
    assert no_leftovers(config.parent)


def test_all_names_of_a_file_have_the_new_text(cfglint, config, small, fixed):
    other = config.parent / "b.yaml"
    os.link(config, other)
    done = cfglint("fix", config, *small)
    assert done.returncode == 0
    assert f"cfglint: {config}: has 2 names (hard links), and the new text is in all" in done.stderr
    assert (config.read_bytes(), other.read_bytes()) == (fixed, fixed)
    assert config.samefile(other)
    assert no_leftovers(config.parent)


@pytest.mark.parametrize("output", [[], ["--output", "./grpo.yaml"]])
def test_an_edit_during_the_search_stays(cfglint, config, small, monkeypatch, output):
    from cfglint.repair import apply

    original = apply.repair

    def edited(*arguments, **options):
        result = original(*arguments, **options)
        config.write_text("mine: 1\n")
        return result

    monkeypatch.setattr(apply, "repair", edited)
    done = cfglint("fix", config, *small, *output)
    assert done.returncode == 2
    assert (
        "changed by somebody else since it was read, so nothing was written; run cfglint again" in done.stderr
    )
    assert done.stdout == "", "of what was not written there is nothing to tell"
    assert config.read_text() == "mine: 1\n"
    assert no_leftovers(config.parent)


def test_a_folder_that_takes_no_new_file(cfglint, config, small, without_privileges):
    original = config.read_bytes()
    config.parent.chmod(0o555)
    try:
        done = cfglint("fix", config, *small, prefix=without_privileges)
    finally:
        config.parent.chmod(0o755)
    assert done.returncode == 2
    assert "cannot be written: permission denied; it was not changed" in done.stderr
    assert config.read_bytes() == original


def test_the_longest_name(cfglint, config, small, fixed):
    path = config.rename(config.parent / f"{'x' * 250}.yaml")
    assert cfglint("fix", path, *small).returncode == 0
    assert path.read_bytes() == fixed


def test_json_and_several_documents(cfglint, config, small):
    text = config.read_text()
    config.write_text(text + "---\n" + text)
    assert cfglint("fix", config, *small).returncode == 0
    assert config.read_text().count("mem_fraction_static: 0.5") == 2


def test_jobs_change_nothing(cfglint, config, small):
    outputs = []
    for jobs in ("1", "3"):
        folder = config.parent / f"jobs{jobs}"
        folder.mkdir()
        for i in range(6):
            (folder / f"c{i}.yaml").write_bytes(config.read_bytes())
        os.chdir(folder)
        done = cfglint("fix", ".", *small, "--jobs", jobs)
        os.chdir(config.parent)
        outputs.append(
            (
                done.returncode,
                done.stdout,
                done.stderr,
                [p.read_bytes() for p in sorted(Path(folder).iterdir())],
            )
        )
    assert outputs[0] == outputs[1]
    assert outputs[0][2].count("set sglang.mem_fraction_static") == 6


TABLED = """prefix toy
table .precisions: of {
  "bfloat16" or "bf16": bf16
  "half" or "float16":  fp16
}
let .switch(word) = match word { "on": true, "off": false }
fact .precision: one of bf16, fp16 "precision"
fact .compiled: bool "compiles"
knob .precision [bf16, fp16] costs 1
knob .compiled [true, false] costs 1
framework toy {
  about "toy"
  detect has($.toy)
  .precision <- .precisions.of($.toy.dtype) default bf16
  .compiled  <- .switch($.toy.compile)
}
for toy
.precision == bf16
not .compiled
"""


def test_a_fix_is_written_through_a_table_and_a_function(cfglint, tmp_path):
    (tmp_path / "toy.rules").write_text(TABLED)
    job = tmp_path / "job.yaml"
    job.write_text('toy:\n  dtype: "half" # was\n  compile: "on"\n')
    done = cfglint(
        "fix", job, "--rules", tmp_path / "toy.rules", "--select", "USR", "--unsafe", "--no-detect"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert job.read_text() == 'toy:\n  dtype: "bfloat16" # was\n  compile: "off"\n'


@pytest.mark.parametrize(("program", "label"), [("glue.py", "unsafe"), ("run_eval.py", "safe")])
def test_what_nobody_reads_may_train(cfglint, tmp_path, program, label):
    script = tmp_path / "own.sh"
    asked = "#!/bin/bash\n#SBATCH --gres=gpu:4\n"
    script.write_text(
        f"{asked}accelerate launch --num_processes 4 /opt/own/{program} --mixed_precision fp16\n"
    )
    done = cfglint("check", script, "--gpu", "l40s:2")
    assert f"fix ({label}, memory not judged): set --num_processes to 2" in done.stdout
    assert ("effective batch may change" in done.stdout) == (label == "unsafe")


def test_a_diff_without_a_change_says_what_would_be_taken(cfglint, config):
    result = cfglint("fix", config, "--diff", *UNSAFE)
    assert (result.returncode, result.stdout) == (0, "")
    assert "1 fixable with cfglint fix --unsafe" in result.stderr
