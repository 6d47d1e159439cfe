"""``cfglint check`` through the real command: what it prints where, and how it exits."""

import json
import os

import pytest

BAD = "gpu.vram<48 and colocated -> mem_fraction<=0.5"


def test_version_and_help(cfglint):
    assert cfglint("--version").stdout.startswith("cfglint 0.")
    for words in ([], ["--help"]):
        page = cfglint(*words)
        assert page.returncode == 0
        for command in ("check", "fix", "explain", "hardware", "gpus", "rules", "frameworks", "test", "init"):
            assert f"cfglint {command}" in page.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc"], "unknown command 'chekc'; did you mean 'check'?"),
        (["--gpu", "a40"], "put the command first: cfglint check --gpu"),
        (["grpo.yaml"], "unknown command 'grpo.yaml'; to check that file: cfglint check grpo.yaml"),
        (["check", "--gpuu", "a40"], "has no flag --gpuu; did you mean '--gpu'?"),
        (["check", "--gpu", "a4"], "unknown GPU 'a4'; did you mean"),
        (["check", "--gpu", "a40:x"], "write --gpu a40:8"),
        (["check", "--framework", "areel"], "unknown framework 'areel'; did you mean 'areal'?"),
        (["check", "--framework", "areal==new"], "'new' is not a version; write --framework areal==1.0.4"),
        (["check", "--select", "MEN"], "unknown rule code 'MEN'; did you mean 'MEM'"),
        (["check", "--ignore", "XYZ999"], "unknown rule code 'XYZ999'"),
        (["check", "--set", "novalue"], "--set novalue: no value; write novalue=VALUE"),
        (
            ["check", "--format", "sarf"],
            "--format takes text, concise, json, sarif, github, gitlab, junit, markdown, not 'sarf'",
        ),
        (
            ["check", "--fail-on", "fatal"],
            "--fail-on takes error, warning, info, never, tight, not-judged, skipped, not 'fatal'",
        ),
        (["check", "--rules", "no.rules"], "no.rules: no such rule file"),
        (["check", "--hardware", "no.json"], "no.json: cannot read the hardware sheet: no such file"),
        (["check", "nowhere"], "nowhere: no such file or folder"),
        (["explain", "CFG0O1"], "unknown rule code 'CFG0O1'; did you mean"),
        (["gpus", "zzz"], "unknown GPU 'zzz'"),
        (["fix", "--diff", "--output", "x.yaml", "grpo.yaml"], "--diff shows what --output would write"),
        (["fix", "--output", "x.yaml"], "--output takes exactly one PATH, a file"),
        (["fix", "--output", "x.yaml", "grpo.yaml", "b.yaml"], "--output takes exactly one PATH, a file"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(cfglint, config, words, said):
    done = cfglint(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("cfglint: error: ")
    assert said in done.stderr


TRL = "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: a/b\noutput_dir: out\nmax_length: 1024\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "max_lenght=512",
            "nothing here reads max_lenght, so it would change nothing; did you mean 'max_length'",
        ),
        ("nonsense.of=1", "nothing here reads nonsense.of"),
        ("task=stf", "task is one of pretrain, sft"),
        ("lora_rank=many", "lora_rank is a number"),
        ("gpu.vram=40", "use --gpu NAME:N"),
    ],
)
def test_what_changes_nothing_is_refused(cfglint, tmp_path, typed, said):
    file = tmp_path / "sft.yaml"
    file.write_text(TRL, encoding="utf-8")
    for words in (["check", file], ["check", tmp_path], ["fit", file], ["fix", file, "--diff"]):
        done = cfglint(*words, "--gpu", "a40:1", "--set", typed)
        assert done.returncode == 2
        assert said in done.stderr


def test_a_fact_takes_effect_by_its_own_name(cfglint, tmp_path):
    (tmp_path / "sft.yaml").write_text(TRL, encoding="utf-8")
    words = ["check", tmp_path / "sft.yaml", "--gpu", "a40:1", "--format", "json"]
    needs = [
        json.loads(cfglint(*words, *more).stdout)["jobs"][0]["need_gib"]
        for more in (["--set", "task=sft"], ["--set", "task=dpo"])
    ]
    assert needs[0] != needs[1]


def test_the_finding_of_the_issue(cfglint, config):
    done = cfglint("check", config, "--gpu", "a40", "--rule", BAD)
    line = (
        config.read_text()
        .splitlines()
        .index(next(text for text in config.read_text().splitlines() if "mem_fraction_static" in text))
    )
    assert done.returncode == 1
    assert f"grpo.yaml:{line + 1}:24: error CLI001" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ([], 1),
        (["--fail-on", "warning"], 1),
        (["--fail-on", "never"], 0),
        (["--ignore", "CLI001,MEM"], 0),
        (["--select", "CFG"], 0),
        (["--select", "cli"], 1),
        (["--set", "sglang.mem_fraction_static=0.4"], 0),
        (["--gpu", "a100-80gb"], 1),
        (["--quiet"], 1),
    ],
)
def test_exit_status(cfglint, config, small, flags, status):
    if flags[:1] == ["--select"] or flags[:1] == ["--ignore"]:
        small = small[2:]
    assert cfglint("check", config, *small, *flags).returncode == status


def test_levels(cfglint, config):
    (config.parent / "mine.rules").write_text(
        'rule USR001 soft info {\n  mem_fraction <= 0.5\n  say "soft"\n}\n'
    )
    flags = ["check", config, "--rules", "mine.rules", "--select", "USR"]
    assert cfglint(*flags).returncode == 0
    assert cfglint(*flags, "--fail-on", "warning").returncode == 0
    assert cfglint(*flags, "--fail-on", "info").returncode == 1
    quiet = cfglint(*flags, "--fail-on", "info", "--quiet")
    assert (quiet.returncode, quiet.stdout) == (1, ""), "quiet changes what is shown, not the verdict"


def test_several_targets(cfglint, config, small):
    done = cfglint("check", config, *small, "--gpu", "rtx-4090:1", "--gpu", "a100-80gb:1", "--format", "json")
    report = json.loads(done.stdout)
    assert [t["name"] for t in report["targets"]] == ["a40", "rtx-4090:1", "a100-80gb:1"]
    assert [f["target"] for f in report["findings"]] == ["a40", "rtx-4090:1"]


def test_notices_go_to_stderr(cfglint, config):
    done = cfglint("check", config, "--gpu", "a100", "--select", "CFG", "--format", "json")
    assert "is ambiguous: using" in done.stderr
    assert json.loads(done.stdout)["summary"]["files"] == 1
    assert cfglint("check", config, "--gpu", "a100", "--select", "CFG", "-q").stderr == ""


def test_stdin(cfglint, config, small):
    done = cfglint("check", "-", *small, "--format", "concise", stdin=config.read_bytes())
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:")


def test_output_file(cfglint, config, small):
    done = cfglint("check", config, *small, "--format", "json", "--output-file", "out.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads((config.parent / "out.json").read_text())["summary"]["error"] == 1
    done = cfglint("check", config, *small, "--output-file", "no/where.txt")
    assert done.returncode == 2
    assert "no/where.txt: cannot be written: no such file or directory" in done.stderr
    assert cfglint("check", config, *small, "--output-file", "/dev/stdout").stdout.count("CLI001") == 1


@pytest.fixture
def many(config):
    """A folder with twelve configs, one in a hidden folder, and some other YAML."""
    text = config.read_text()
    for i in range(12):
        folder = config.parent / f"d{i % 3}"
        folder.mkdir(exist_ok=True)
        (folder / f"c{i:02}.yaml").write_text(text.replace("0.8", f"0.{i % 9 + 1}"))
    (config.parent / "other.yml").write_text("a: 1\n")
    (config.parent / "data.json").write_text("[1, 2]\n")
    (config.parent / ".hidden").mkdir()
    (config.parent / ".hidden" / "c.yaml").write_text(text)
    config.unlink()
    return config.parent


def test_folders(cfglint, many, small):
    done = cfglint("check", *small, "--format", "json")
    summary = json.loads(done.stdout)["summary"]
    assert (summary["files"], summary["skipped"]) == (13, 2)
    paths = [f["path"] for f in json.loads(done.stdout)["findings"]]
    assert paths == sorted(paths)
    assert paths[0].startswith(".hidden/")
    again = cfglint("check", "d0", "d0", "./d0/c00.yaml", "d0/c00.yaml", *small, "--format", "json")
    assert json.loads(again.stdout)["summary"]["files"] <= 5, (
        "a file is judged once however often it is named"
    )


FORMS = ["text", "json", "sarif", "concise", "github", "gitlab", "junit", "markdown"]


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.long if i > 2 else ()) for i, form in enumerate(FORMS)]
)
def test_jobs_change_nothing(cfglint, many, small, form):
    (many / "broken.yaml").write_text("allocation_mode: [\n")
    paths = [".", "missing.yaml", "broken.yaml"]
    one, four = (cfglint("check", *paths, *small, "--format", form, "--jobs", n) for n in (1, 4))
    assert one.returncode == 2
    assert (one.stdout, one.stderr, one.returncode) == (four.stdout, four.stderr, four.returncode)


def test_unknown_files(cfglint, config, small):
    (config.parent / "other.yaml").write_text("a: 1\n")
    done = cfglint("check", "other.yaml", config, *small)
    assert done.returncode == 2
    assert "other.yaml: no framework recognises this file; name one with --framework NAME (" in done.stderr
    assert "CLI001" in done.stdout, "the other file is judged all the same"
    done = cfglint("check", "other.yaml", *small, "--skip-unknown")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 skipped" in done.stdout
    assert cfglint("check", "other.yaml", *small, "--framework", "areal").returncode in (0, 1)


def test_a_config_that_does_not_parse_is_a_finding(cfglint, config, small):
    (config.parent / "broken.yaml").write_text("actor:\n  path: x\n  - y\n")
    done = cfglint("check", "broken.yaml", config, "--gpu", "a40", "--rule", BAD, "--format", "concise")
    assert done.returncode == 1
    assert "broken.yaml:3:" in done.stdout
    assert "error CFG001" in done.stdout
    assert "CLI001" in done.stdout


def test_detection_is_announced_or_off(cfglint, config, tmp_path):
    done = cfglint("check", config, "--select", "CFG")
    assert done.stderr == ""


def test_catalogues(cfglint, folder):
    assert "NVIDIA A40" in cfglint("gpus").stdout
    assert "44.42 GiB" in cfglint("gpus", "a40").stdout
    assert "CFG002" in cfglint("rules").stdout
    assert "areal" in cfglint("frameworks").stdout
    page = cfglint("explain", "cfg002").stdout
    assert page.startswith("CFG002 ")
    assert "why" in page
    (folder / "my.rules").write_text('rule USR001 mine error {\n  mem_fraction <= 0.5\n  say "x"\n}\n')
    assert "USR001" in cfglint("rules", "--rules", "my.rules").stdout
    assert "USR001 mine" in cfglint("explain", "USR001", "--rules", "my.rules").stdout


def test_hardware_without_a_driver_says_so_in_one_line(cfglint, folder):
    done = cfglint("hardware", env={"LD_LIBRARY_PATH": "/nowhere", "PATH": os.environ["PATH"]})
    assert done.returncode in (0, 2)
    if done.returncode == 2:
        assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_the_rules_own_examples(cfglint, folder):
    done = cfglint("test")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(" examples, 0 wrong\n")
    (folder / "my.rules").write_text(
        'rule USR001 mine error {\n  mem_fraction <= 0.5\n  say "x"\n'
        "  bad { mem_fraction: 0.8 }\n  good { mem_fraction: 0.6 }\n}\n"
    )
    done = cfglint("test", "my.rules")
    assert done.returncode == 1
    assert "my.rules:5" in done.stdout
    assert done.stdout.endswith("2 examples, 1 wrong\n")


def test_a_misspelled_key_of_an_own_rule(cfglint, folder) -> None:
    (folder / "k.yaml").write_text("cfglint: facts\noptimizer: adamw\n")
    rule = ["check", "k.yaml", "--no-detect", "--select", "CLI001", "--rule"]
    assert cfglint(*rule, "$.optimiser == 1").stdout == (
        "not checked: 1 rule; optimiser is not in k.yaml; did you mean 'optimizer'?; --verbose lists them\n"
        "no findings in 1 file\n1 job checked\n"
    )
    assert "not checked: 1 rule; unknown setting: rate;" in cfglint(*rule, "$.rate == 1").stdout


def test_the_last_line_says_what_was_judged(cfglint, folder):
    """A job is a command, a config, or a section of one; what was seen and not read is counted, too."""
    (folder / "train.sh").write_text(
        "trl sft --model_name_or_path a/b --dataset_name c\n"
        "trl dpo --model_name_or_path a/b --dataset_name c\n"
        "torchrun --nproc_per_node 2 own.py --lr 1\n"
        "python evaluate.py --model a/b --all\n"
        "submit 'trl sft --model_name_or_path a/b --dataset_name c'\n"
    )
    (folder / "c.yaml").write_text("base_model: a/b\nsequence_len: 512\nmicro_batch_size: 2\n")
    (folder / "notes.yaml").write_text("a: 1\n")
    done = cfglint("check", ".", "--select", "CFG001")
    assert done.stdout == (
        "no findings in 2 files (1 skipped; 1 followed in part)\n"
        "4 jobs checked, 1 launch not read: cfglint facts lists them\n"
    )
    done = cfglint("check", "train.sh", "--select", "CFG001", "--format", "json", "--jobs", "2")
    assert {key: json.loads(done.stdout)["summary"][key] for key in ("files", "jobs", "unread")} == {
        "files": 1,
        "jobs": 3,
        "unread": 1,
    }
    assert "judged" not in cfglint("fix", "c.yaml", "--select", "CFG001").stdout, (
        "fix does not look for launches"
    )


def test_what_neither_trains_nor_serves_does_not_fit(cfglint, tmp_path):
    script = tmp_path / "convert.sh"
    script.write_text(
        "torchrun --nproc_per_node 8 tools/convert_checkpoint.py --num-layers 80 --hidden-size 8192 \\\n"
        "  --num-attention-heads 64 --seq-length 4096 --micro-batch-size 1 \\\n"
        "  --max-position-embeddings 4096 --tensor-model-parallel-size 8 --bf16\n",
        encoding="utf-8",
    )
    done = cfglint("check", script, "--gpu", "a40:8", "--format", "json")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["verdict"] == "unknown"
    assert job["ask"].startswith("it neither trains nor generates")


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len 8192 --tensor-parallel{} 8",
        "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-70B-Instruct --tensor-parallel{} 8",
    ],
)
def test_flags_of_a_server_may_be_cut_short(cfglint, tmp_path, command):
    script = tmp_path / "serve.sh"
    jobs = []
    for end in ("-size", "", "-s"):
        script.write_text(command.format(end) + "\n", encoding="utf-8")
        done = cfglint("check", script, "--gpu", "h100-sxm:8", "--format", "json")
        jobs.append(json.loads(done.stdout))
    assert jobs[0]["jobs"][0]["verdict"] == "fits"
    assert [each["jobs"][0]["need_gib"] for each in jobs[1:]] == [jobs[0]["jobs"][0]["need_gib"]] * 2
    assert not any(finding["code"] == "PRF101" for each in jobs for finding in each["findings"])


LONG = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
dataset_name: AI-MO/NuminaMath-TIR
torch_dtype: bfloat16
bf16: true
use_vllm: true
accelerate_config: zero3
num_processes: 7
num_generations: 8
per_device_train_batch_size: 4
max_prompt_length: 512
max_completion_length: 8192
gradient_checkpointing: true
output_dir: out-grpo
"""


def test_a_short_text_tells_the_package_that_a_fix_needs(tmp_path, terminal):
    (tmp_path / "c.yaml").write_text(LONG)
    words = ["c.yaml", "--select", "MEM104", "--framework", "trl==0.14.0", "--gpu", "a100-80gb-sxm"]
    printed = " ".join(terminal.run("check", tmp_path, [*words, "--no-detect"])[1].split())
    assert "gradient_accumulation_steps to 4 (needs liger-kernel)" in printed
    assert "same loss up to rounding" not in printed  # for which there is no room
