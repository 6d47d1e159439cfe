"""Launch scripts on the command line: targets from #SBATCH, folders, the extra that reads them, real scripts."""  # noqa: E501

import json
import os
from pathlib import Path

import pytest

from cfglint.api import check_text, fix_text
from cfglint.command import parse, setup
from cfglint.document.reading import read
from cfglint.features.check import CheckOptions
from cfglint.lang.values import needs_of
from golden import page_of

SHARED = os.environ.get("CFGLINT_SHARED")
SCRIPT = page_of("MEM104").files["bad_launch_script.sh"]
# No package of that name can be imported where a file of it raises.
BLOCKED = "raise ImportError('not here')\n"


@pytest.fixture
def run_it(cfglint):
    """Run the command; returns its status, its output and its notices."""

    def run(*arguments, **given):
        done = cfglint(*arguments, **given)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def script(folder):
    path = folder / "train.sh"
    path.write_text(SCRIPT)
    return path


def test_the_job_is_the_target_unless_one_is_named(script, run_it):
    asked = json.loads(run_it("check", script, "--format", "json")[1])
    assert [t["name"] for t in asked["targets"]] == ["rtx-4090:4"]
    assert {f["target"] for f in asked["findings"]} >= {"rtx-4090:4"}
    named = json.loads(run_it("check", script, "--format", "json", "--gpu", "b300:4")[1])
    assert [t["name"] for t in named["targets"]] == ["b300:4"]
    assert not [f for f in named["findings"] if f["code"] == "MEM104"]


def test_settings_go_before_the_job(script, run_it):
    (script.parent / "cfglint.toml").write_text('gpu = ["h100-sxm:4"]\n')
    found = json.loads(run_it("check", script, "--format", "json")[1])
    assert [t["name"] for t in found["targets"]] == ["h100-sxm:4"]


def test_files_beside_a_job_keep_their_own_targets(script, run_it):
    other = script.parent / "b.sh"
    other.write_text(SCRIPT.replace("rtx_4090:4", "b300:4"))
    plain = script.parent / "c.yaml"
    plain.write_text(
        "cfglint: facts\nmodel_path: Qwen/Qwen2.5-7B\ntask: sft\nnum_gpus: 1\nmicro_batch_size: 1\nseq_len: 512\n"  # noqa: E501
    )
    for jobs in ("1", "2"):
        status, out, _ = run_it("check", script.parent, "--format", "json", "--jobs", jobs)
        found = json.loads(out)
        assert {t["name"].partition(":")[0] for t in found["targets"]} >= {"rtx-4090"}
        assert found["summary"]["files"] == 3
        assert status == 1
        by_file = {
            f["path"].rpartition("/")[2]: f["target"]
            for f in found["findings"]
            if f["code"].startswith("MEM1")
        }
        assert by_file == {"train.sh": "rtx-4090:4"}


def test_fit_judges_for_the_job(script, run_it):
    status, out, err = run_it("fit", script, "--format", "json")
    assert status == 0, err
    (row,) = json.loads(out)["rows"]
    assert (row["target"], row["verdict"]) == ("rtx-4090:4", "oom")
    assert "using the GPUs that the job asks for, rtx-4090:4" in err
    every = json.loads(run_it("fit", script, "--gpu", "all", "--format", "json")[1])["rows"]
    assert len(every) > 10


def test_fix_writes_the_script(script, run_it):
    status, _, err = run_it("fix", script)
    text = script.read_text()
    assert "${MICRO_BATCH_SIZE:-2}" in text, err
    assert 'ACCUMULATED_GRADIENT="128"' in text
    assert status == 0
    assert len(text) == len(SCRIPT)


def test_overrides_are_laid_over_the_flags(script, run_it):
    status, _, _ = run_it("check", script, "--set", "micro_train_batch_size=1", "--select", "MEM")
    assert status == 0


def test_a_folder_skips_scripts_that_launch_nothing(folder, run_it):
    (folder / "tidy.sh").write_text("rm -rf cache\n")
    (folder / "data.sh").write_text("python prepare.py --shards 8\n")
    status, out, err = run_it("check", folder)
    assert status == 0
    assert "error" not in out + err
    status, _, err = run_it("check", folder / "data.sh")
    assert status == 2
    assert "no framework recognises this file" in err
    assert run_it("check", folder / "data.sh", "--skip-unknown")[0] == 0


def test_without_tree_sitter_a_script_says_what_to_install(script, folder, run_it, tmp_path_factory):
    hidden = tmp_path_factory.mktemp("hidden")
    (hidden / "tree_sitter_bash.py").write_text(BLOCKED)
    path = os.pathsep.join([str(hidden), str(Path(__file__).parents[1] / "linter")])
    status, _, err = run_it("check", script, env={"PYTHONPATH": path})
    assert status == 2
    assert err.count("\n") == 1
    assert "pip install --force-reinstall tree-sitter" in err
    (folder / "c.yaml").write_text("cfglint: facts\nnum_gpus: 1\n")
    status, out, err = run_it("check", folder, env={"PYTHONPATH": path})
    assert status == 0
    assert err.count("pip install --force-reinstall tree-sitter") == 1
    assert "1 file" in out


def test_the_python_interface_reads_scripts():
    report = check_text(SCRIPT, path="train.sh", hardware="rtx-4090:4")
    assert "MEM104" in {finding.code for finding in report.findings}
    fixed, after = fix_text(SCRIPT, path="train.sh", hardware="rtx-4090:4")
    assert "${MICRO_BATCH_SIZE:-2}" in fixed
    assert not [f for f in after.findings if f.code == "MEM104"]


def test_a_comment_switches_a_rule_off(script, run_it):
    lines = SCRIPT.replace("# per GPU", "# cfglint: ignore[MEM]")
    script.write_text(lines)
    assert run_it("check", script)[0] == 0


# Read by eye from the scripts: GPUs, micro-batch, accumulation, effective batch, ZeRO stage, model, length, optimizer on  # noqa: E501
# the host, flash attention, checkpointing; and the verdict for the 24 GB card that the job asks for.
SCRIPTS = {
    "train_hh_4gpu.sh": (4, 8, 2, 64, 3, "Qwen/Qwen3-4B", 2048, True, True, True, "tight"),
    "train_pm_euler.sh": (2, 4, 8, 64, 2, "Qwen/Qwen3-0.6B", 2048, False, True, True, "fits"),
    "train_pm_euler_cyclic.sh": (2, 4, 1, 8, 2, "Qwen/Qwen3-0.6B", 1024, False, True, True, "fits"),
    "train_pm_euler_old.sh": (1, 8, 1, 8, 2, "Qwen/Qwen3-0.6B", 2048, False, False, False, "oom"),
    "train_pm_grouped_euler.sh": (2, 4, 1, 8, 2, "Qwen/Qwen3-0.6B", 2048, False, True, True, "fits"),
    "train_pm_hh_rlhf.sh": (2, 2, 16, 64, 3, "Qwen/Qwen3-4B", 2048, False, True, True, "oom"),
    "train_pm_hh_rlhf_0.6b.sh": (2, 4, 8, 64, 2, "Qwen/Qwen3-0.6B", 2048, False, True, True, "fits"),
    "train_pm_hh_rlhf_4gpu.sh": (4, 2, 16, 128, 3, "Qwen/Qwen3-4B", 2048, False, True, True, "tight"),
    "train_pm_hh_rlhf_4gpu_offload.sh": (4, 2, 16, 128, 3, "Qwen/Qwen3-4B", 2048, True, True, True, "fits"),
    "train_pm_hh_rlhf_bs256.sh": (16, 2, 8, 256, 3, "Qwen/Qwen3-4B", 2048, False, True, True, "fits"),
}


def _run():
    return setup.run(parse(CheckOptions, ["x", "--no-detect"]))


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no corpus")
@pytest.mark.parametrize("name", SCRIPTS)
def test_batch_scripts_are_read_right(name):
    from cfglint.engine.rows import fit_rows

    path = Path(SHARED) / "corpus" / "ma_gpo" / "scripts" / "rmpm" / name
    run = _run()
    (subject,) = run.subjects(read(path.read_bytes(), str(path)), judge_broken=True)
    assert subject.framework == "openrlhf"
    values = run.judged(subject)[0].values
    facts = (
        "num_gpus",
        "micro_batch_size",
        "grad_accum",
        "effective_batch_size",
        "zero_stage",
        "model_path",
        "seq_len",
        "offload_optimizer",
    )
    (row,) = fit_rows(run.but(targets=run.targets_of(subject.document)), subject)
    assert row.target == f"rtx-4090:{SCRIPTS[name][0]}"
    assert (
        *[values[fact] for fact in facts],
        values["attn_impl"] == "flash_attention_2",
        values["gradient_checkpointing"] == "full",
        row.verdict,
    ) == SCRIPTS[name]
    assert (values["lora_rank"], values["task"], values["dtype"]) == (0, "rm", "bf16")


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no corpus")
@pytest.mark.parametrize("corpus", ["openrlhf", "openrlhf_legacy"])
def test_the_projects_own_scripts_are_recognised(corpus):
    folder = Path(SHARED) / "corpus" / corpus / "examples" / "scripts"
    run, seen = _run(), {}
    for path in sorted(folder.glob("*.sh")):
        subjects = run.subjects(read(path.read_bytes(), str(path)), judge_broken=True)
        seen[path.name] = [subject.framework for subject in subjects]
    silent = {
        "docker_run.sh",
        "nvidia_docker_install.sh",
        "ckpt_ds_zero_to_universal.sh",
        "train_nonrl_slurm.sh",
    }
    assert {name for name, found in seen.items() if found != ["openrlhf"]} == silent
    assert len(seen) == 17


# Trainer and judge on one GPU, batch 1 to 128, L40S to H200: the third of the systems that cfglint was made for.  # noqa: E501
def test_ten_lines_judge_a_program_of_ones_own(run_it, folder, monkeypatch):
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    example = "examples/judged_trainer"
    block = Path(f"{example}.rules").read_text().partition("framework judged {\n")[2].partition("\n}")[0]
    assert block.count("\n") == 9  # ten lines
    given = ["--rules", str(root / f"{example}.rules"), "--no-detect"]
    for gpu in ("l40s", "a100-80gb-sxm", "h100-sxm", "h200"):
        given += ["--gpu", gpu]
    table = [*given, "--vary", "micro_batch_size=1,2,4,8,16,32,64,128"]
    status, page, err = run_it("fit", f"{example}.sbatch", *table)
    assert (status, err) == (0, "")
    expected = root / "tests" / "fit" / "judged_trainer.table"
    if "CFGLINT_UPDATE" in os.environ:
        expected.write_text(page)
    assert page == expected.read_text()
    # The facts file beside it describes the same job: the same numbers.
    described = run_it("fit", "examples/own_trainer.yaml", *table)[1]
    assert described.splitlines()[1:] == page.splitlines()[1:]
    # With models of 0.5B all of it fits, up to where the logits do not.
    small = folder / "small.sbatch"
    text = Path(f"{example}.sbatch").read_text()
    small.write_text(text.replace("2.5-7B", "2.5-0.5B").replace("2.5-14B", "2.5-0.5B"))
    rows = json.loads(run_it("fit", small, *table, "--format", "json")[1])["rows"]
    verdicts = {(row["target"], row["varied"]["micro_batch_size"]): row["verdict"] for row in rows}
    assert {verdicts[gpu, size] for gpu, size in verdicts if size in (1, 2, 4, 8)} == {"fits"}
    assert verdicts["l40s", 128] == "oom"


def test_the_job_of_ones_own_program_is_its_target(run_it):
    root = Path(__file__).parents[1]
    script, rules = root / "examples" / "judged_trainer.sbatch", root / "examples" / "judged_trainer.rules"
    status, out, _ = run_it("check", script, "--rules", rules, "--format", "json")
    found = json.loads(out)
    assert status == 1
    assert [t["name"] for t in found["targets"]] == ["l40s:1"]
    (error,) = [f for f in found["findings"] if f["level"] == "error"]
    assert (error["code"], error["start"]["line"]) == ("MEM104", 9)
    # Its flags are its own words: none is a key that cfglint does not know, and none is made up.
    assert not [f for f in found["findings"] if f["code"].startswith("CFG")]


# Programs on transformers' Trainer: launcher and flags, beside a DeepSpeed file and one of accelerate, and
# what is read: GPUs that train, batch of one step, ZeRO stage, precision. None is what the files leave open.
ARGS = (
    "--model_name_or_path Qwen/Qwen2.5-7B --output_dir out --per_device_train_batch_size 4"
    " --gradient_accumulation_steps 8 --logging_steps 1"
)
FLAGS = "accelerate launch --use_deepspeed --zero_stage 3 --num_processes 8"
ZERO_3 = (
    '{"gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 3, "offload_optimizer": '
    '{"device": "cpu"}}}\n'
)
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: bf16\n"
    "num_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n"
)
# An own program of transformers, whose defaults are those of TrainingArguments.
RUN = "examples/pytorch/language-modeling/run_clm.py"
TRAINERS = {
    f"deepspeed --num_gpus 4 {RUN} {ARGS} --bf16 True --deepspeed ds_z3.json": (4, 128, 3, "bf16"),
    f"torchrun --nproc_per_node 8 --nnodes 2 {RUN} {ARGS} --fp16": (16, 512, 0, "fp16"),
    f"torchrun --nproc_per_node 8 {RUN} {ARGS} --bf16 --deepspeed gone.json": (8, 256, None, "bf16"),
    f"torchrun --nproc_per_node 8 {RUN} {ARGS} --bf16 --fsdp 'full_shard auto_wrap'": (8, 256, 0, "bf16"),
    f"accelerate launch --config_file a.yaml {RUN} {ARGS}": (8, 256, 3, "bf16"),
    f"accelerate launch --config_file a.yaml --num_processes 2 {RUN} {ARGS}": (2, 64, 3, "bf16"),
    # The stage of the file and that of the flag: which one wins depends on accelerate's version.
    f"accelerate launch --config_file a.yaml --zero_stage 2 {RUN} {ARGS}": (8, 256, None, "bf16"),
    f"accelerate launch --config_file a.yaml --mixed_precision fp16 {RUN} {ARGS}": (8, 256, 3, "fp16"),
    f"accelerate launch --config_file a.yaml --multi_gpu {RUN} {ARGS}": (8, 256, 0, "bf16"),
    f"accelerate launch --config_file gone.yaml --num_processes 2 {RUN} {ARGS}": (2, 64, None, None),
    f"accelerate launch --config_file a.yaml {RUN} {ARGS} --deepspeed gone.json": (8, 256, None, "bf16"),
    f"{FLAGS} --mixed_precision bf16 {RUN} {ARGS}": (8, 256, 3, "bf16"),
    f"accelerate launch --use_fsdp --num_processes 8 {RUN} {ARGS} --bf16": (8, 256, 0, "bf16"),
    f"accelerate launch --use_deepspeed --num_processes 8 {RUN} {ARGS} --bf16": (8, 256, 2, "bf16"),
    f"accelerate launch --num_processes 8 {RUN} {ARGS}": (8, 256, None, None),
    # DeepSpeed's own file below accelerate's.
    f"accelerate launch --config_file j.yaml {RUN} {ARGS} --bf16": (8, 256, 3, "bf16"),
    f"{FLAGS} --deepspeed_config_file ds_z3.json {RUN} {ARGS} --bf16": (8, 256, 3, "bf16"),
    f"accelerate launch --use_deepspeed --deepspeed_config_file gone.json {RUN} {ARGS} --bf16": (
        None,
        None,
        None,
        "bf16",
    ),
    f"CUDA_VISIBLE_DEVICES=1 python {RUN} {ARGS} --bf16": (1, 32, 0, "bf16"),
    f"python {RUN} {ARGS} --bf16 --deepspeed ds_z3.json": (1, 32, 3, "bf16"),
    f"srun --ntasks=16 python {RUN} {ARGS} --bf16 --deepspeed ds_z3.json": (16, 512, 3, "bf16"),
    f"srun python {RUN} {ARGS} --bf16 --deepspeed ds_z3.json": (None, None, 3, "bf16"),
    f"mpirun -np 4 python {RUN} {ARGS} --bf16 --deepspeed ds_z3.json": (4, 128, 3, "bf16"),
}


@pytest.mark.parametrize("command", TRAINERS)
def test_flags_of_the_trainer_are_read(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    Path("ds_z3.json").write_text(ZERO_3)
    Path("a.yaml").write_text(ACCELERATE)
    Path("j.yaml").write_text(ACCELERATE.replace("zero_stage: 3", "deepspeed_config_file: ds_z3.json"))
    run = _run()
    (subject,) = run.subjects(read(command.encode(), "train.sh"), judge_broken=True)
    assert subject.framework == "transformers"
    values = run.judged(subject)[0].values
    names = ("train_gpus", "effective_batch_size", "zero_stage", "dtype")
    read_as = tuple(None if needs_of(values[name]) else values[name] for name in names)
    assert read_as == TRAINERS[command]
    assert needs_of(values["task"]) == {"task"}  # what a script trains is not in its flags


def test_another_program_has_defaults_of_its_own():
    flags = "--per_device_train_batch_size 4 --logging_steps 1 --output_dir out --fp16"
    known = ("micro_batch_size", "train_gpus")
    defaults = ("grad_accum", "gradient_checkpointing", "optimizer", "hf.bf16", "attn_impl")
    for program, own in ((RUN, True), ("train.py", False), ("tools/run_clm.py", False)):
        command = f"torchrun --nproc_per_node 8 {program} {flags}"
        run = _run()
        (subject,) = run.subjects(read(command.encode(), "train.sh"), judge_broken=True)
        values = run.judged(subject)[0].values
        assert [values[name] for name in known] == [4, 8]
        assert {name: not needs_of(values[name]) for name in defaults} == dict.fromkeys(defaults, own)


# Flags that others have too: each of these is somebody else's, or of a program that no framework here knows.
OTHERS = {
    f"torchrun src/train.py {ARGS} --stage sft --finetuning_type lora --template qwen": ["llamafactory"],
    f"accelerate launch trl/scripts/sft.py {ARGS} --dataset_name a/b": ["trl"],
    f"accelerate launch train_grpo.py {ARGS} --num_generations 8 --max_completion_length 512": ["trl"],
    f"accelerate launch run_dpo.py {ARGS} --beta 0.1 --loss_type sigmoid": ["transformers"],
    f"accelerate launch run_clm_no_trainer.py {ARGS}": ["user_script"],
    f"deepspeed main.py {ARGS} --zero_stage 3 --num_warmup_steps 10": ["user_script"],
    "torchrun --nproc_per_node 8 a.py --model_name_or_path x --per_device_train_batch_size 8": [
        "user_script"
    ],
    "torchrun --nproc_per_node 8 eval.py --model_name_or_path x --batch_size 8": [],
    "mpirun -np 8 python finetune.py --base-model a/b --micro-batch-size 1 --seq-length 8192 --lr 1e-5": [
        "user_script"
    ],
    "python plot.py --output_dir out --seed 1": [],
}


@pytest.mark.parametrize("command", OTHERS)
def test_flags_of_others_are_not_the_trainers(command):
    subjects = _run().subjects(read(command.encode(), "train.sh"), judge_broken=True)
    assert [subject.framework for subject in subjects] == OTHERS[command]


def test_a_file_of_hydras_is_read_by_a_program_of_ones_own(run_it, folder):
    keys = "model_name_or_path: a/b\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 1\n"
    keys += "output_dir: o\nbf16: true\nadam_epsilon: 1e-6\n"
    (folder / "c.yaml").write_text(keys)
    assert "CFG250" in run_it("check", "c.yaml")[1]  # PyYAML reads a text
    for marks in ("hydra: {run: {dir: .}}\n", "model: {_target_: my.Model}\n", "defaults: [_self_]\n"):
        (folder / "c.yaml").write_text(keys + marks)
        assert "CFG250" not in run_it("check", "c.yaml")[1]


def test_what_is_cut_off_is_one_finding(run_it, folder):
    whole = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a/b algorithm.adv_estimator=gae"
    whole += " actor_rollout_ref.rollout.name=vllm \\\n  trainer.n_gpus_per_node=8\n"
    (folder / "whole.sh").write_text(whole)
    (folder / "cut.sh").write_text(whole.replace("\\\n", "\\ \n"))
    judged, said, *_ = lines = run_it("check", "cut.sh", "--format", "concise")[1].splitlines()
    assert "memory not judged: the command ends before its last flags" in judged
    assert "DOC107" in said
    assert not [line for line in lines if "BAT" in line]
    assert "BAT199" in run_it("check", "whole.sh", "--format", "concise")[1]


def test_carriage_returns_are_taken_out_of_the_whole_script(cfglint, folder):
    text = "set -e\npython train.py \\\n  --model_name_or_path a/b --learning_rate 1e-5\necho 'a\rb \xe9'\n"
    path, plain = folder / "train.sh", text.encode()
    path.write_bytes(plain.replace(b"\n", b"\r\n"))
    fix = json.loads(cfglint("check", "train.sh", "--format", "json").stdout)["findings"][0]["fix"]
    assert fix["applicability"] == "safe"
    for _ in range(2):
        assert cfglint("fix", "train.sh", "--select", "DOC107").returncode == 0
        assert path.read_bytes() == plain  # a carriage return within a line stays


def test_a_quote_that_is_never_closed_keeps_a_command_from_running(run_it, folder):
    command = "torchrun --nproc_per_node=8 train.py \\\n  --per_device_train_batch_size 4"
    (folder / "last.sh").write_text(f"{command}\n{command}'\n")
    (folder / "none.sh").write_text(f"{command}\n{command}\n")
    (folder / "apart.sh").write_text(f"{command} '\n")  # a word of its own
    found = json.loads(run_it("check", "apart.sh", "--gpu", "rtx-3090:2", "--format", "json")[1])["findings"]
    assert [(each["code"], each["start"]["line"]) for each in found] == [("CFG001", 2)]
    found = json.loads(run_it("check", "last.sh", "--gpu", "rtx-3090:2", "--format", "json")[1])["findings"]
    assert [(each["code"], each["start"]["line"]) for each in found] == [("DOC104", 1), ("CFG001", 4)]
    assert "the ' in line 4 is never closed" in found[1]["message"]
    found = json.loads(run_it("check", "none.sh", "--gpu", "rtx-3090:2", "--format", "json")[1])["findings"]
    assert [each["code"] for each in found] == ["DOC104", "DOC104"]


def test_windows_line_ends_cut_a_command_off(run_it, folder):
    """As bash does, and dash: the backslash escapes the carriage return, and the line ends behind it."""
    for text in (
        "torchrun train.py \\\n  --per_device_train_batch_size 4\n",
        "read -r -d '' job <<EOF\ntrain.py \\\n  --per_device_train_batch_size 4\nEOF\ntorchrun $job\n",
    ):
        (folder / "a.sh").write_bytes(text.encode())
        (folder / "b.sh").write_bytes(text.replace("\n", "\r\n").encode())
        assert run_it("check", "a.sh", "--format", "concise")[0] == 0
        status, said, _ = run_it("check", "b.sh", "--format", "concise")
        assert (status, said.count("DOC107")) == (1, 1)
        assert "--per_device_train_batch_size and what follows" in said
        assert "micro_batch_size  4" in run_it("facts", "b.sh")[1], "meant all the same"


def test_a_flag_that_nobody_knows_is_of_another_version(run_it, folder):
    command = "deepspeed --module openrlhf.cli.train_sft --pretrain a/b --dataset c --max_len 512"
    command += " --micro_train_batch_size 1 --train_batch_size 8 --zero_stage 2moe"
    script = folder / "run.sh"
    script.write_text(f"{command}\n")
    check = ("check", ".", "--format", "concise")
    assert "error CFG009" in run_it(*check)[1]
    script.write_text(f"{command} --quaternion_rank 5\n")
    said = run_it(*check)[1]
    assert "error" not in said
    assert "warning CFG012" in said
    assert "warning CFG009" in said
    package = folder / "our-copy" / "openrlhf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    assert "CFG0" not in run_it(*check)[1]  # the copy here knows


def test_a_path_that_people_fill_in_makes_a_template(run_it, folder):
    text = "model_name_or_path: {your_models}/Qwen2.5-7B\nstage: sft\ncutoff_len: 512\n"
    (folder / "c.yaml").write_text(text)
    assert run_it("check", ".")[0] == 0
    (folder / "c.yaml").write_text(text.replace("{your_models}/", "{your_models: ,"))
    assert "CFG001" in run_it("check", "c.yaml", "--framework", "llamafactory")[1]


def test_a_config_that_a_script_launches_is_judged_there(run_it, folder):
    config = (
        "model_name_or_path: a/b\nnum_generations: 8\nmax_completion_length: 512\ngeneration_batch_size: 12\n"
    )
    (folder / "grpo.yaml").write_text(config)  # 12 completions are no whole number of groups of 8
    script = folder / "run.sh"
    script.write_text("trl grpo --config grpo.yaml --generation_batch_size 16\n")
    check = ("check", "--select", "BAT130", "--format", "concise")
    assert run_it(*check, ".")[:2] == (0, "no findings in 2 files\n1 job checked\n")
    assert run_it(*check, "grpo.yaml")[0] == 1  # named itself, it is the whole job
    script.write_text("trl grpo --config grpo.yaml\n")
    assert run_it(*check, ".")[1].startswith("run.sh:1:")
    script.unlink()
    assert run_it(*check, ".")[1].startswith("grpo.yaml:2:")
