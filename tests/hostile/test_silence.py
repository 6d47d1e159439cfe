"""A file that may be a config is judged, or it is said that it was not."""

import json
import os
import subprocess

import pytest

from cfglint.document.candidates import STARTERS, may_launch
from cfglint.document.shell.programs import _CLIS, VLLM_IMAGE
from tiers import LONG, in_turn

CONFIGS = {
    "areal.yaml": "allocation_mode: sglang.d1p1t1+d1p1t1\nactor:\n  path: x\nsglang:\n  dtype: half\n",
    "axolotl.yaml": "base_model: x\nadapter: qlora\nmicro_batch_size: 2\ndatasets:\n  - path: d\n",
    "ds.json": '{\n  "train_batch_size": 8,\n  "zero_optimization": {\n    "stage": 3\n  }\n}\n',
    "titan.toml": "[job]\nx = 1\n[training]\nlocal_batch_size = 8\nseq_len = 512\n"
    "[parallelism]\ntensor_parallel_degree = 1\n[model]\nname = 'llama3'\nflavor = '8B'\n",
    "task.yaml": "resources:\n  cpus: 8\nrun: |\n  trl sft --model_name_or_path x --output_dir y\n",
}
MISTAKES = {
    "no colon": lambda line: line.replace(":", "", 1).replace("=", "", 1),
    "a tab": lambda line: "\t" + line,
    "a quote": lambda line: line + ' "x',
    "a bracket": lambda line: line + " ]",
    "a NUL": lambda line: line + "\0",
    "an escape": lambda line: line + "\x1b",
    "a conflict": lambda line: "<<<<<<< HEAD\n" + line,
    "no UTF-8": lambda line: line + "\udcff",
}


def broken(text, number, mistake):
    lines = text.split("\n")
    lines[number] = mistake(lines[number])
    return "\n".join(lines).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("name", CONFIGS)
def test_one_mistake_on_any_line(strange, name, mistake):
    text = CONFIGS[name]
    assert strange.run("check").returncode == 0
    for number in range(text.count("\n")):
        data = broken(text, number, MISTAKES[mistake])
        strange.write({name: data})
        for words in in_turn((["check"], ["check", name, "--skip-unknown"], ["fix"]), number, 3):
            done = strange.run(*words, "--fail-on", "error,skipped", "--format", "concise")
            judged = "in 1 file" in done.stdout  # a mistake that is none to this loader
            assert done.returncode or judged, (number, words, done.stdout)


def test_a_recognised_file_that_does_not_parse_is_an_error(strange):
    for name, text in CONFIGS.items():
        strange.write({name: broken(text, 1, MISTAKES["a NUL"])})
    done = strange.run("check", "--format", "concise")
    assert done.stdout.count("CFG001") == len(CONFIGS)


@pytest.mark.parametrize("padding", ["# " + "x" * 200 + "\n", " " * 300 + "\n", "#\n\n"])
def test_padding(strange, padding):
    pad = padding * (2**21 // len(padding))
    strange.write({"areal.yaml": pad + CONFIGS["areal.yaml"], "end.yaml": CONFIGS["areal.yaml"] + pad})
    done = strange.run("check")
    assert "in 2 files" in done.stdout


def test_what_is_large_and_looks_like_a_config_is_an_error(strange):
    much = "".join(f"key_{i}: {i}\n" for i in range(120_000))
    strange.write({"areal.yaml": CONFIGS["areal.yaml"] + much, "data.yaml": much})
    done = strange.run("check", "--format", "concise")
    assert "areal.yaml:1:1: error CFG001 larger than 1 MiB" in done.stdout
    assert "(1 skipped: 1 larger than 1 MiB)" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("folder", ["build", "dist", "venv", "env", "out", ".hidden", ".github", "a/b/c"])
def test_folders_of_any_name(strange, folder):
    strange.write({f"{folder}/areal.yaml": CONFIGS["areal.yaml"]})
    assert "in 1 file" in strange.run("check").stdout


@pytest.mark.parametrize("name", ["node_modules/x", "a/site-packages", "env/pyvenv.cfg", "b/.c/CACHEDIR.TAG"])
def test_folders_that_are_not_entered_are_counted(strange, name):
    folder = os.path.dirname(name) if "." in os.path.basename(name) else name
    strange.write(
        {name if folder != name else f"{name}/x": "", f"{folder}/areal.yaml": CONFIGS["areal.yaml"]}
    )
    assert "0 files (1 skipped: 1 not entered)" in strange.run("check").stdout
    assert strange.run("check", "--fail-on", "error,skipped").returncode == 1
    assert "in 1 file" in strange.run("check", folder).stdout


def test_links(strange):
    (strange.home / "areal.yaml").write_text(CONFIGS["areal.yaml"])
    (strange.repo / "file.yaml").symlink_to(strange.home / "areal.yaml")
    (strange.repo / "folder").symlink_to(strange.home)
    os.mkfifo(strange.repo / "pipe.yaml")
    done = strange.run("check", "--format", "json", "--fail-on", "error,skipped")
    assert json.loads(done.stdout)["summary"]["unjudged"] == {"linked from outside": 2, "not regular": 1}
    assert done.returncode == 1
    assert strange.run("check").returncode == 0


def test_a_folder_in_the_tree_is_checked_once(strange):
    strange.write({"conf/areal.yaml": CONFIGS["areal.yaml"]})
    (strange.repo / "link").symlink_to("conf")
    assert "in 1 file" in strange.run("check").stdout


def _git(repo, *words):
    name = ["-c", "user.name=x", "-c", "user.email=x@y.z", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *name, *words], cwd=repo, check=True, capture_output=True)


@pytest.fixture
def committed(strange):
    """A strange repository with a commit that holds a config, which is broken since."""
    (strange.repo / ".git" / "HEAD").unlink()
    (strange.repo / ".git").rmdir()
    _git(strange.repo, "init")
    strange.write({"conf/areal.yaml": CONFIGS["areal.yaml"]})
    _git(strange.repo, "add", ".")
    _git(strange.repo, "commit", "-m", "first")
    strange.write({"conf/areal.yaml": "{{{ nothing is left of it"})
    return strange


def test_what_was_recognised_in_the_last_commit(committed):
    done = committed.run("check", "--format", "concise")
    assert "conf/areal.yaml:1:" in done.stdout
    assert "CFG001" in done.stdout
    assert committed.run("check", "conf/areal.yaml", "--skip-unknown").returncode == 1


@pytest.mark.parametrize("how", [["pack-refs", "--all"], ["gc"], ["checkout", "--detach"]], ids=" ".join)
def test_wherever_git_keeps_the_last_commit(committed, how):
    _git(committed.repo, *how)
    assert "CFG001" in committed.run("check").stdout


def test_what_a_commit_without_the_file_hides_is_in_the_branch_to_merge_into(committed):
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=committed.repo, text=True).strip()
    _git(committed.repo, "update-ref", "refs/remotes/origin/main", head)
    for message in ("second", "third"):
        _git(committed.repo, "commit", "-am", message, "--allow-empty")
    assert "CFG001" not in committed.run("check").stdout
    assert "CFG001" in committed.run("check", GITHUB_BASE_REF="main").stdout


@pytest.mark.parametrize("name", ["big.yaml", "parent.sh", "a\\nb.yaml", "a://b.yaml"])
def test_a_parent_that_is_here_is_read(strange, name):
    own, parent = "cluster: {gpus_per_node: 8, num_nodes: 1}\n", "policy: {train_global_batch_size: many}\n"
    child = f'defaults: "{name}"\n{own}grpo: {{num_prompts_per_step: 32}}\n'
    padding = "#\n" * 2**23 if name == "big.yaml" else ""
    strange.write({"x.yaml": child, name.replace("\\n", "\n"): parent + padding})
    done = strange.run("check", "x.yaml", "--format", "concise")
    assert "CFG021" not in done.stdout
    assert done.returncode == 1


def test_data_that_a_command_names_are_no_config(strange):
    entries = ",".join(f'{{"{i}": {{"words": ["a", "b", "c"]}}}}' for i in range(40_000))
    script = "path=data\npython convert.py $path/train.json $path/train.jsonl\n"
    program = "import json, sys\njson.load(open(sys.argv[1]))\n"
    strange.write({"x.sh": script, "convert.py": program, "data/train.json": f'{{"entries": [{entries}]}}'})
    assert "CFG023" not in strange.run("check", "x.sh").stdout


def test_a_tag_that_merges(strange):
    text = "".join(f"  {line}\n" for line in CONFIGS["areal.yaml"].splitlines())
    strange.write({"x.yaml": f"!!merge any:\n{text}"})
    assert "in 1 file" in strange.run("check").stdout


@pytest.mark.parametrize("form", ["utf-16", "utf-32"])
def test_what_is_not_utf_8_is_recognised(strange, form):
    strange.write({"x.yaml": CONFIGS["areal.yaml"].encode(form)})
    assert "CFG001" in strange.run("check", "x.yaml", "--skip-unknown").stdout


def test_a_few_keys_of_another_framework_hide_nothing(strange):
    strange.write({"x.yaml": f"{CONFIGS['axolotl.yaml']}\n{CONFIGS['areal.yaml']}"})
    assert "CFG024" in strange.run("check").stdout
    assert "CFG024" not in strange.run("check", "--framework", "areal").stdout


def test_what_fails_because_it_was_not_judged_is_named(strange):
    strange.write({"a.yaml": "{{{", "b.json": "[", "c.yaml": "x: 1"})
    done = strange.run("check", "--fail-on", "skipped")
    assert done.returncode == 1
    assert "not judged: a.yaml, b.json; --verbose says why" in done.stderr
    assert "a.yaml: with syntax errors" in strange.run("check", "--verbose").stdout


@pytest.mark.parametrize("store", [".hg", ".svn", "sub/.hg"])
def test_a_folder_that_hides_by_its_name(strange, store):
    strange.write({f"{store}/train.yaml": CONFIGS["areal.yaml"]})
    (strange.repo / "conf").symlink_to(store)
    assert "in 1 file" in strange.run("check").stdout


def test_a_link_to_what_is_not_entered_is_counted(strange):
    strange.write({"other/areal.yaml": CONFIGS["areal.yaml"], "conf/x.yaml": "a: 1"})
    (strange.repo / "conf" / "sub").symlink_to("../other")
    done = strange.run("check", "conf", "--format", "json")
    assert json.loads(done.stdout)["summary"]["unjudged"] == {"not entered": 1}


@pytest.mark.parametrize("target", ["../home", "../home/absent", "../home/file"])
def test_a_link_that_leads_out_says_nothing_of_what_is_there(strange, target):
    (strange.home / "file").write_text("x")
    (strange.repo / "link").symlink_to(target)
    done = strange.run("check", "--format", "json", "--fail-on", "skipped")
    assert json.loads(done.stdout)["summary"]["unjudged"] == {"linked from outside": 1}


def test_settings_say_what_a_file_is(strange):
    strange.write({"x.yaml": "{{{", "cfglint.toml": "frameworks = { '*.yaml' = 'trl' }"})
    assert strange.run("check").returncode == 1


@pytest.mark.parametrize(
    "text",
    [
        "{{ if .Values.x }}\nbase_model: {{ .Values.model }}\n{{ end }}\n",
        "jobs:\n  build: [\n",
        "a: b: c\n",
        "- just\n- a list: of: things\n",
    ],
)
def test_other_files_that_do_not_parse_are_no_errors(strange, text):
    strange.write({"x.yaml": text})
    done = strange.run("check")
    assert done.returncode == 0
    assert "(1 skipped: 1 with syntax errors)" in done.stdout
    assert strange.run("check", "--fail-on", "error,skipped").returncode == 1


BAD = "base_model: x\nadapter: qlora\nmicro_batch_size: 2\ndatasets: [{path: d}]\nload_in_8bit: true\n"


@pytest.mark.parametrize(
    "name", ["train.YAML", "train.Yml", "__pycache__/train.yaml", ".train.yaml", ".x/train.yaml"]
)
def test_spellings_of_a_name(strange, name):
    strange.write({name: BAD, "pyvenv.cfg": ""})
    assert strange.run("check").returncode == 1


@pytest.mark.parametrize(
    "more",
    [
        "services: {a: {image: x, command: python a.py}}\n",
        "run: python a.py\nenvs: {}\n",
        "gpuTypeId: x\ndockerArgs: python a.py\n",
        "gpu_type_id: x\ndocker_args: python a.py\nimage_name: i\n",
        "kind: Pod\napiVersion: v1\nspec: {containers: [{command: [python, a.py]}]}\n",
    ],
)
def test_a_key_of_a_manifest_hides_nothing(strange, more):
    strange.write({"train.yaml": BAD + more})
    assert strange.run("check").returncode == 1


@pytest.mark.parametrize(
    "name", ["--settings=evil/s.toml", "--output-file=out.json", "--fail-on=never", "-q"]
)
def test_names_of_files_are_no_flags(strange, name):
    strange.write({"evil/s.toml": "fail-on = 'never'\n", "out.json": "mine", "train.yaml": BAD})
    (strange.repo / name).parent.mkdir(parents=True, exist_ok=True)
    (strange.repo / name).write_text("")
    done = strange.run("check", name, "train.yaml")
    assert done.returncode == 2
    assert "is the name of a file here" in done.stderr
    assert (strange.repo / "out.json").read_text() == "mine"


def test_folders_of_any_depth(strange):
    here = os.getcwd()
    os.chdir(strange.repo)
    try:
        for _ in range(1100):
            os.mkdir("d")
            os.chdir("d")
        with open("train.yaml", "w", encoding="utf-8") as stream:
            stream.write(BAD)
        strange.write({"train.yaml": BAD})
        done = strange.run("check", "--format", "concise")
        assert "in 2 files" in done.stdout
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", str(strange.repo / "d")], check=True)  # deeper than Python removes


FLAGS = "--model_name_or_path x --output_dir y --per_device_train_batch_size 2 --bf16 true --fp16 true"
JOB = "trl sft --model_name_or_path x --output_dir y --bf16 true --fp16 true"
BROKEN = {
    "a bracket": "{}\n)\n",
    "an open if": "{}\nif [ x\n",
    "an open case": "{}\ncase x in\n",
    "a quote": "{}\n'\n",
    "a double quote": '{}\n"\n',
    "a function": "echo a\nf() {{\n{}\n",
    "behind srun": "CUDA_VISIBLE_DEVICES=0 srun {}\n)\n",
    "given to a shell": "bash -c '{}\n",
    "among commands that parse": "echo a\ntrl sft --model_name_or_path x --output_dir y\n)\n{}\n'\n",
}
# What the parser gives up on, and bash may take.
GARBLED = ["{}\n<<\n", "{}\n\0", "{{{{ x }}}}\n{}\n", "{{{{ x }}}} {}\n"]
COUNTED = {
    "not followed": [
        "x=$({})\n",
        "x=`{}`\n",
        "f() {{\n{}\n}}\n",
        *(f"{starter} {{}}\n" for starter in ("./wrap.sh", "doas")),
        "source <(echo '{}')\n",
        "trap '{}' EXIT\n",
        "alias go='{}'\ngo\n",
        "find . -maxdepth 0 -exec {} \\;\n",
        "coproc {}\n",
        "make -f- <<< 'a:; {}'\n",
        f"x=$(/opt/bin/python3 -m torch.distributed.run x.py {FLAGS})\n",
    ],
}


FOLLOWED = [
    "bash <<EOF\n{}\nEOF\n",
    "cat <<E | bash\n{}\nE\n",
    "echo a | xargs {}\n",
    "ssh host '{}'\n",
    "sbatch --wrap='{}'\n",
    'set -- {}\n"$@"\n',
    "# a comment \\\nssh host {}\n",
    f"FLAGS='{FLAGS}'\nssh host python train.py $FLAGS\n",
    "tmux new -d '{}'\n",
    "pdsh -w a,b '{}'\n",
    "cat > job.sh <<'E'\n{}\nE\nsbatch job.sh\n",
    "bash wrap.sh\n",
    "./wrap.sh\n",
    "sbatch -N 1 wrap.sh\n",
    ". ./wrap.sh\n",
    "source wrap.sh\n",
    *(f"{starter} {{}}\n" for starter in ("salloc -N1", "bsub -n 1", "hatch run")),
    "echo '{}' | bash\n",
    "bash <<< '{}'\n",
    f'"$PYTHON" train.py {FLAGS}\n',
]


@pytest.mark.parametrize("form", BROKEN.values(), ids=BROKEN)
def test_a_script_that_does_not_parse(strange, form):
    strange.write({"a.sh": form.format(JOB)})
    done = strange.run("check", "--format", "concise")
    assert done.returncode == 1
    assert "CFG001 this part of the script does not parse" in done.stdout


@pytest.mark.parametrize("form", FOLLOWED)
def test_a_job_that_is_handed_on_is_judged(strange, form):
    strange.write({"a.sh": form.format(JOB), "wrap.sh": f"{JOB}\n"})
    done = strange.run("check", "a.sh", "--format", "concise")
    assert "PRC130" in done.stdout
    assert "followed" not in done.stdout


@pytest.mark.parametrize("how", ["source {}", "bash {}", ". {}", "sbatch {}"])
def test_a_script_outside_of_the_repository_is_not_read(strange, how):
    secret = strange.secret("job.sh", f"# hunter2-5f1c\n{JOB}\n")
    strange.write({"link.sh": ""})
    (strange.repo / "link.sh").unlink()
    (strange.repo / "link.sh").symlink_to(secret)
    for name in (str(secret), "../home/job.sh", "link.sh"):
        strange.write({"a.sh": f"{how.format(name)}\npython x.py\n"})
        assert "PRC130" not in strange.run("check", "a.sh", "--skip-unknown").stdout
        strange.write({"a.yaml": f"type: task\ncommands:\n- {how.format(name)}\n- python x.py\n"})
        assert "PRC130" not in strange.run("check", "a.yaml", "--skip-unknown").stdout


def test_a_manifest_runs_a_script_of_the_repository(strange):
    strange.write({"job.sh": f"{JOB}\n", "a.yaml": "type: task\ncommands:\n- bash job.sh\n"})
    assert "a.yaml:3:" in strange.run("check", "a.yaml", "--format", "concise").stdout


def test_a_fix_sees_what_is_sourced_and_leaves_it_alone(strange):
    sourced = "MODEL=Qwen/Qwen2.5-1.5B-Instruct\nN=8\n"
    launch = "torchrun --nproc_per_node $N t.py --model_name_or_path $MODEL --output_dir o --bf16 True"
    more = "--per_device_train_batch_size $B --max_seq_length 4096 --deepspeed z.json"
    more += " --attn_implementation sdpa --use_liger_kernel False"
    strange.write({"env.sh": sourced, "z.json": '{"zero_optimization": {"stage": 3}}'})
    strange.write({"a.sh": f"source env.sh\nB=512\n{launch} {more} --gradient_checkpointing True\n"})
    assert "MEM104" in strange.run("check", "a.sh", "--gpu", "h100-sxm:8").stdout
    strange.run("fix", "a.sh", "--unsafe", "--gpu", "h100-sxm:8")
    assert "MEM104" not in strange.run("check", "a.sh", "--gpu", "h100-sxm:8").stdout
    assert "B=512" not in (strange.repo / "a.sh").read_text()
    assert (strange.repo / "env.sh").read_text() == sourced


def test_scripts_that_run_each_other_end(strange, monkeypatch):
    if not LONG:  # a thousand jobs, each of which is judged
        monkeypatch.setattr("cfglint.document.shell.run._MOST_OPEN", 5)
    files = {f"{i}.sh": f"source {(i + 1) % 30}.sh\nbash {(i + 2) % 30}.sh\n{JOB}\n" for i in range(30)}
    strange.write(files)
    assert "PRC130" in strange.run("check", "0.sh", "--format", "concise").stdout


@pytest.mark.parametrize(
    ("reason", "form"),
    [(why, form) for why, forms in COUNTED.items() for form in forms]
    + [("not followed", form) for form in GARBLED],
)
def test_a_script_that_is_not_followed_is_counted(strange, reason, form):
    strange.write({"a.sh": form.format(JOB)})
    assert f"(1 skipped: 1 {reason})" in strange.run("check").stdout
    assert strange.run("check", "--fail-on", "error,skipped").returncode == 1


@pytest.mark.parametrize("form", COUNTED["not followed"])
@pytest.mark.parametrize("first", ["python prepare.py", "trl sft --model_name_or_path x --output_dir y"])
def test_what_else_is_in_a_script_hides_no_launch(strange, first, form):
    strange.write({"a.sh": f"{first}\n{form.format(JOB)}"})
    done = strange.run("check", "--format", "json", "--fail-on", "error,skipped")
    reason = "not followed" if "prepare" in first else "followed in part"
    assert json.loads(done.stdout)["summary"]["unjudged"] == {reason: 1}
    assert done.returncode == 1
    assert strange.run("fix", "--fail-on", "error,skipped").returncode == 1


def test_a_file_that_is_judged_in_part(strange):
    strange.write({"a.sh": f"trl sft --model_name_or_path x --output_dir y\ndoas {JOB}\n"})
    assert "in 1 file (1 followed in part)" in strange.run("check").stdout
    strange.write({"b.sh": "echo python a.py\n", "c.sh": f"doas {JOB}\n"})
    assert "in 1 file (2 skipped: 1 not followed; 1 followed in part)" in strange.run("check").stdout


@pytest.mark.parametrize(
    "before",
    ["return 2>/dev/null", "exit 0 &", "exit() { :; }\nexit", "(exit 0)", "f() { return; }\nf", "x=$(exit)"],
)
def test_what_ends_no_script(strange, before):
    strange.write({"a.sh": f"{before}\n{JOB}\n"})
    assert "PRC130" in strange.run("check", "--format", "concise").stdout


@pytest.mark.parametrize("before", ["./train.py", "uv run train.py", "uv run coverage run -a train.py"])
def test_programs_of_python(strange, before):
    strange.write({"a.sh": f"{before} {FLAGS}\n"})
    assert "PRC130" in strange.run("check", "--format", "concise").stdout


LIST = json.dumps(JOB.split())
POD = f"containers: [{{command: {LIST}}}]"
MANIFESTS = [
    f"apiVersion: v1\nkind: ConfigMap\ndata:\n  run.sh: |\n    {JOB}\n",
    f"apiVersion: v1\nkind: Pod\nspec: {{containers: [{{command: [/entry.sh], args: {LIST}}}]}}\n",
    f"apiVersion: x/v1\nkind: Workflow\nspec:\n  templates:\n  - script:\n      source: |\n        {JOB}\n",
    f"on: push\njobs:\n  a:\n    steps:\n    - run: |\n        {JOB}\n",
    f"pipeline:\n- cmds:\n  - {JOB}\n",
    f"services:\n  a:\n    image: i\n    post_start: [{{command: '{JOB}'}}]\n",
    f"resources: {{cpus: 1}}\nrun: |\n  doas {JOB}\n",
    f"resources: {{cpus: 1}}\nsetup: |\n  {JOB}\nrun: echo a\n",
    "tasks:\n- args:\n" + "".join(f"  - {json.dumps(word)}\n" for word in JOB.split()),
    json.dumps({"script": f"#!/bin/bash\n{JOB}"}),
]


@pytest.mark.parametrize(
    "text",
    [
        f"num_nodes: null\nrun: |\n  {JOB}\n",
        f"type: task\ncommands:\n- {JOB}\n",
        f"entrypoint: {JOB}\nresources: {{slots_per_trial: 1}}\n",
        f"type: pipeline\njobs: {{a: {{command: {JOB}, environment: x}}}}\n",
        f"apiVersion: x/v1\nkind: NewServer\nspec: {{roles: [{{template: {{spec: {{{POD}}}}}}}]}}\n",
        f"apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Pod, spec: {{{POD}}}}}\n",
        f"services: {{a: {{image: i, command: 'sh -c \"cd x && {JOB}\"'}}}}\n",
        f"services:\n  a:\n    image: i\n    command: |\n      bash -c '\n      echo a\n      {JOB}'\n",
    ],
)
def test_a_manifest_that_is_followed(strange, text):
    strange.write({"a.yaml": text})
    done = strange.run("check", "--format", "concise")
    assert "PRC130" in done.stdout
    assert "in 1 file" in done.stdout


@pytest.mark.parametrize("text", MANIFESTS)
def test_a_manifest_that_is_not_followed_is_counted(strange, text):
    strange.write({"a.yaml": text})
    assert "(1 skipped: 1 not followed)" in strange.run("check").stdout
    assert strange.run("check", "--fail-on", "error,skipped").returncode == 1


def test_a_manifest_that_is_followed_in_part(strange):
    run = "trl sft --model_name_or_path x --output_dir y"
    strange.write({"a.yaml": f"resources: {{cpus: 1}}\nsetup: |\n  {JOB}\nrun: {run}\n"})
    assert "in 1 file (1 followed in part)" in strange.run("check").stdout


@pytest.mark.parametrize(
    "text",
    [
        "on: push\njobs:\n  a:\n    steps:\n    - run: |\n        pip install trl\n        pytest a.py\n",
        f"# {JOB}\nimage: python:3.11\n",
        "python: {requires: '>=3.10'}\nvllm: {version: 1, model: x}\n",
        "files: [a/train.py, b/train.py]\n",
    ],
)
def test_manifests_that_launch_nothing_are_not_counted(strange, text):
    strange.write({"a.yaml": text})
    assert "(1 skipped)" in strange.run("check").stdout


def test_the_words_that_start_a_job_are_those_of_the_programs():
    assert {word.split()[0] for word in STARTERS} == {
        *("python", VLLM_IMAGE.partition("-")[0]),
        *(name.partition(".")[0].partition("-launch")[0] for name in _CLIS),
    }
    assert all(may_launch(f"{name} {cli.needs}") for name, cli in _CLIS.items())


@pytest.mark.parametrize(
    "text",
    [
        f"# {JOB}\necho a\n)\n",
        "echo 'use python for it'\npython --version\nx=$(python -c 'print(1)')\n",
        f"# {JOB}\npip install trl\n",
        "python -m pip install trl\n",
    ],
)
def test_scripts_that_launch_nothing_are_not_counted(strange, text):
    strange.write({"a.sh": text})
    assert "(1 skipped)" in strange.run("check").stdout
    assert strange.run("check", "--fail-on", "error,skipped").returncode == 0


def test_a_manifest_whose_script_does_not_parse(strange):
    strange.write({"t.yaml": f"resources:\n  cpus: 8\nrun: |\n  {JOB}\n  )\n"})
    done = strange.run("check", "--format", "concise")
    assert "t.yaml:4:3: error CFG001 this part of the script does not parse" in done.stdout
    assert done.returncode == 1


def test_a_mistake_without_a_launch_leaves_the_launches_judged(strange):
    strange.write({"a.sh": f"{JOB}\necho )\n"})
    done = strange.run("check", "--format", "concise")
    assert "PRC130" in done.stdout
    assert "CFG001" not in done.stdout
