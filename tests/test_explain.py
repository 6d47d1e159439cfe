"""``cfglint explain CODE PATH``: the real command on the examples and on files written for it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tiers import sampled

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "grpo_one_gpu.yaml"
MINE = """\
rule USR101 share-of-mine warning {
  gpu.vram < 48 and colocated -> mem_fraction * gpu.vram <= 24 GiB
  say "the engine takes {mem_fraction * gpu.vram}"
}
"""


@pytest.fixture
def explain(cfglint, folder):
    (folder / "mine.rules").write_text(MINE)

    def run(*arguments, **how):
        return cfglint("explain", *arguments, "--rules", "mine.rules", "--no-detect", **how)

    return run


def test_a_rule_on_the_example(explain):
    done = explain("usr101", EXAMPLE, "--gpu", "a40")
    assert (done.returncode, done.stderr) == (0, "")
    page = done.stdout
    assert page.startswith("USR101 share-of-mine (warning): breaks on a40\n")
    assert "the engine takes 35.54 GiB" in page
    assert "= 44.42 GiB < 48 and true\n" in page
    assert "= 0.8 * 44.42 GiB <= 24 GiB\n" in page
    assert "mem_fraction  0.8        line 66\n" in page
    assert "gpu.vram      44.42 GiB  catalogue" in page or "gpu.vram      44.42 GiB  (above)" in page
    assert "down to 0.75: 2.22 GiB less, 33.31 GiB in all" in page


@pytest.mark.parametrize(
    ("flags", "verdict"),
    [
        (["--gpu", "a40", "--set", "sglang.mem_fraction_static=0.5"], "holds on a40"),
        (["--gpu", "h100-sxm"], "does not apply on h100-sxm\n"),
        ([], "undecided\n"),
        (["--framework", "areal==1.0.3", "--gpu", "a40:2"], "does not apply on a40:2\n"),
    ],
)
def test_the_verdict_never_sets_the_exit_status(explain, flags, verdict):
    done = explain("USR101", EXAMPLE, *flags)
    assert done.returncode == 0, done.stderr
    assert verdict in done.stdout


def test_an_override_is_named(explain):
    done = explain("USR101", EXAMPLE, "--gpu", "a40", "--set", "sglang.mem_fraction_static=0.5")
    assert "--set sglang.mem_fraction_static=0.5" in done.stdout


def test_several_targets_show_one_tree_for_each_verdict(explain):
    done = explain("USR101", EXAMPLE, "--gpu", "a40", "--gpu", "l40s", "--gpu", "h100-sxm")
    heads = [line for line in done.stdout.splitlines() if line.startswith("USR101")]
    assert [head.rpartition(": ")[2] for head in heads] == ["breaks on a40", "does not apply on h100-sxm"]
    assert "; the same on l40s" in done.stdout


def test_cases_of_an_unknown_launch_have_the_verdict_that_their_memory_has(explain, folder):
    (folder / "sft.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: me/chats\nper_device_train_batch_size: 1\n"
        "max_length: 512\noutput_dir: out\npacking: true\nbf16: true\n"
    )
    page = explain("MEM104", "sft.yaml", "--gpu", "h100-sxm:8", "--framework", "trl").stdout
    assert page.startswith("MEM104 trainer-out-of-memory (error): holds on h100-sxm:8\n")
    assert "  with trl.launcher zero3" in page


def test_json(explain):
    done = explain("USR101", EXAMPLE, "--gpu", "a40", "--gpu", "h100-sxm", "--format", "json")
    data = json.loads(done.stdout)
    assert (data["version"], data["code"], data["verdict"], data["target"]) == (1, "USR101", "breaks", "a40")
    assert data["path"] == str(EXAMPLE)
    assert [other["verdict"] for other in data["others"]] == ["does not apply"]
    _, requirement = data["tree"]["children"]
    share = requirement["children"][0]
    assert (share["name"], share["value"], share["unit"]) == ("mem_fraction", 0.8, None)
    assert share["origin"] == {"kind": "file", "source": "line 66", "line": 66, "column": 24}


def test_depth(explain):
    shallow = explain("USR101", EXAMPLE, "--gpu", "a40", "--depth", "1").stdout
    deep = explain("USR101", EXAMPLE, "--gpu", "a40", "--depth", "30").stdout
    assert "…" in shallow
    assert " …  " not in deep
    assert len(shallow.splitlines()) < len(deep.splitlines())


def test_a_pipe_gets_no_colours_and_ascii_where_it_must(explain):
    plain = explain("USR101", EXAMPLE, "--gpu", "a40", env={"PYTHONIOENCODING": "ascii"})
    plain.stdout.encode("ascii")
    assert "|- gpu.vram" in plain.stdout
    assert "\x1b" not in explain("USR101", EXAMPLE, "--gpu", "a40").stdout


def test_a_terminal_gets_its_width_and_colours(folder):
    (folder / "mine.rules").write_text(MINE)
    command = [
        sys.executable,
        "-m",
        "cfglint",
        "explain",
        "USR101",
        str(EXAMPLE),
        "--gpu",
        "a40",
        "--no-detect",
    ]
    out, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 70, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    env |= {"PYTHONPATH": str(ROOT / "linter"), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [*command, "--rules", "mine.rules", "--depth", "1"],
        stdout=inside,
        stderr=subprocess.PIPE,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = os.read(out, 65536).decode()
    os.close(inside)
    os.close(out)
    assert "\x1b[" in page
    lines = re.sub(r"\x1b\[[0-9;]*m", "", page).splitlines()
    long = [line for line in lines if len(line) > 70 and str(EXAMPLE) not in line]
    assert not long


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["USR10l", "a.yaml"], "unknown rule code 'USR10l'; did you mean 'USR101'"),
        (["USR101", "nowhere.yaml"], "nowhere.yaml: no such file or folder"),
        (
            ["USR101", "plain.yaml"],
            "plain.yaml: no framework recognises this file; name one with --framework NAME",
        ),
        (["USR101", "broken.yaml"], "broken.yaml:2:"),
        (["USR101", "."], ".: a folder; cfglint explain takes one file"),
        (["USR101", "a.yaml", "b.yaml"], "'b.yaml' is one too many"),
        ([], "cfglint explain needs a CODE"),
        (
            ["USR101", "plain.yaml", "--framework", "areals"],
            "unknown framework 'areals'; did you mean 'areal'?",
        ),
        (["USR101", "plain.yaml", "--depth", "0"], "--depth takes a whole number, 1 or more"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(explain, folder, arguments, said):
    (folder / "plain.yaml").write_text("a: 1\n")
    (folder / "broken.yaml").write_text("a: [1\nb: {\n")
    done = explain(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_path_the_rule_itself(explain):
    page = explain("usr101").stdout
    assert page.startswith("USR101 share-of-mine (warning), defined at mine.rules:1\n\nrule USR101")


def test_help(cfglint):
    page = cfglint("explain", "--help").stdout
    assert page.startswith("usage: cfglint explain CODE [PATH] [options]\n")
    for flag in (
        "--gpu",
        "--set",
        "--framework",
        "--rules",
        "--depth",
        "--format",
        "--hardware",
        "--no-color",
    ):
        assert flag in page


def test_stdin(explain):
    done = explain("USR101", "-", "--gpu", "a40", stdin=EXAMPLE.read_bytes())
    assert done.stdout.splitlines()[1].startswith("<stdin>, areal")


def test_the_settings_form_is_the_reports(explain, folder):
    (folder / "cfglint.toml").write_text('format = "github"\ngpu = ["a40"]\nselect = ["CFG"]\n')
    done = explain("USR101", EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "breaks on a40" in done.stdout


def test_every_shipped_rule_can_be_explained(folder):
    """No rule and no example makes it fail: they hold all kinds of expressions."""
    from cfglint.document.reading import read_text
    from cfglint.engine.run import Run
    from cfglint.features.explain.compute import Deriver
    from cfglint.features.explain.page import as_json, as_text
    from cfglint.hardware.target import parse_target
    from cfglint.lang.pack import load
    from cfglint.report import Style

    run = Run(load(), [parse_target("a40")])
    (subject,) = run.subjects(read_text(EXAMPLE.read_text(), "a.yaml"), judge_broken=True)
    (one,) = run.judged(subject)
    for rule in sampled(list(run.pack.rules)):
        deriver = Deriver(run, one, rule.code)
        found = deriver.derivation()
        expected = next((v for v in one.verdicts if v.rule.code == rule.code), None)
        if expected is None:
            assert found.verdict in ("holds", "does not apply"), rule.code
        elif expected.truth is False:
            assert found.verdict == "breaks", rule.code
        text = as_text([found], 3, Style(width=80))
        assert text.startswith(rule.code)
        json.loads(as_json([found], 3))


def test_a_script_whose_config_is_not_here(explain, folder):
    words = "rollout.backend=sglang:d4p1t1 actor.backend=fsdp:d4p1t1 cluster.n_nodes=2"
    (folder / "a.sh").write_text(f"python -m areal.infra.launcher.slurm x.py --config nowhere.yaml {words}\n")
    done = explain("MEM101", "a.sh", "--gpu", "h100-sxm:8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("MEM101 server-starves-trainer (error): undecided on h100-sxm:8\n")
