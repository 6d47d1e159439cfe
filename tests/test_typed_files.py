"""Files that ``--set KEY=FILE`` names: where they are looked for, and that what they say counts."""

import json
import os

import pytest

from tiers import mostly_long

YAML = "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: a/b\noutput_dir: out\nmax_length: 1024\n"
FLAGS = "--model_name_or_path Qwen/Qwen2.5-0.5B --output_dir out --per_device_train_batch_size 1 --bf16 true"
PROGRAM = """\
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="out", max_length=1024)
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data()).train()
"""
KINDS = {
    "sft.yaml": YAML,
    "run.sh": f"torchrun --nproc_per_node 8 train.py {FLAGS} --do_train\n",
    "train.py": PROGRAM,
}
OFFLOADS = '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}'
ACCELERATE = """\
distributed_type: DEEPSPEED
deepspeed_config: {deepspeed_config_file: ds/z3.json, zero3_init_flag: true}
num_machines: 1
num_processes: 8
"""


@pytest.fixture
def project(folder):
    """A repository with a config of each kind in a folder, and DeepSpeed's file in another."""
    for name in (".git", "configs", "ds"):
        (folder / name).mkdir()
    for name, text in KINDS.items():
        (folder / "configs" / name).write_text(text)
    (folder / "ds" / "z3.json").write_text(OFFLOADS)
    return folder


def facts(cfglint, path, *typed):
    """Return the sharding and offload of a job, and what the command complains of."""
    words = [word for each in typed for word in ("--set", each)]
    done = cfglint("facts", path, "--gpu", "a100-80gb-sxm:8", "--format", "json", *words)
    assert done.returncode in (0, 2)
    (job,) = json.loads(done.stdout)["jobs"] if done.returncode == 0 else ({"facts": {}},)
    named = {name: fact["value"] for name, fact in job["facts"].items()}
    return named.get("zero_stage"), named.get("offload_params"), done.stderr


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("start", mostly_long([".", "configs", "ds"], 3))
def test_a_typed_file_counts_wherever_it_is_found(cfglint, project, monkeypatch, name, start):
    monkeypatch.chdir(project / start)
    path = os.path.relpath(project / "configs" / name)
    here = {".": "ds/z3.json", "configs": "../ds/z3.json", "ds": "z3.json"}[start]
    for typed in (here, project / "ds" / "z3.json", "ds/z3.json"):  # the last as the root has it
        stage, offloads, said = facts(cfglint, path, f"deepspeed={typed}")
        assert (stage, offloads) == (3, True), (typed, said)


def test_the_working_folder_goes_first(cfglint, project):
    (project / "configs" / "z.json").write_text('{"zero_optimization": {"stage": 1}}')
    assert facts(cfglint, "configs/sft.yaml", "deepspeed=z.json")[0] == 1
    (project / "z.json").write_text('{"zero_optimization": {"stage": 2}}')
    assert facts(cfglint, "configs/sft.yaml", "deepspeed=z.json")[0] == 2


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("key", mostly_long(["deepspeed", "fsdp_config", "launch.flags.config_file"], 3))
def test_a_typed_file_that_is_nowhere_is_refused(cfglint, project, name, key):
    for typed in ("nope.json", "../nope.yaml", "ds/nope"):
        *_, said = facts(cfglint, f"configs/{name}", f"{key}={typed}")
        assert f"--set {key}={typed}: no such file; looked for {typed}, configs/" in said.replace(
            "../nope.yaml, nope.yaml", "../nope.yaml, configs/../nope.yaml"
        )


def test_a_typed_file_may_name_another(cfglint, project):
    (project / "acc.yaml").write_text(ACCELERATE)
    for key in ("accelerate_config", "launch.flags.config_file"):
        rule = ["--rule", "zero_stage == 0", "--select", "CLI", "--set", f"{key}=acc.yaml"]
        done = cfglint("check", "configs/sft.yaml", "--gpu", "a100-80gb-sxm:8", *rule)
        assert "zero_stage is 3" in done.stdout, key


def test_a_key_in_a_typed_file_may_be_typed_too(cfglint, project):
    typed = ["deepspeed=ds/z3.json", "deepspeed.zero_optimization.stage=2"]
    assert facts(cfglint, "configs/sft.yaml", *typed)[0] == 2


def test_a_file_of_fsdp_is_read_where_a_config_names_it(cfglint, project):
    (project / "configs" / "fsdp.json").write_text('{"version": 2, "cpu_offload": true}')
    (project / "configs" / "fsdp.yaml").write_text(f"{YAML}fsdp: full_shard\nfsdp_config: fsdp.json\n")
    rule = ["--rule", "not offload_params", "--select", "CLI", "--gpu", "a100-80gb-sxm:8"]
    assert "CLI001" in cfglint("check", "configs/fsdp.yaml", *rule).stdout


def test_a_file_that_a_followed_program_names_counts(cfglint, project):
    program = PROGRAM.replace("max_length", 'deepspeed="ds/z3.json", max_length')
    (project / "configs" / "train.py").write_text(program)
    (project / "configs" / "run.sh").write_text("deepspeed --num_gpus 8 train.py\n")
    assert facts(cfglint, "configs/run.sh")[:2] == (3, True)


def test_what_settings_name_stays_inside_the_repository(cfglint, project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "z3.json"
    outside.write_text(OFFLOADS)
    (project / "cfglint.toml").write_text(f'set = ["deepspeed={outside}"]\n')
    done = cfglint("check", "configs/sft.yaml", "--gpu", "a100-80gb-sxm:8")
    assert "CFG022" in done.stdout
    assert facts(cfglint, "configs/sft.yaml")[1] is not True
    assert facts(cfglint, "configs/sft.yaml", f"deepspeed={outside}")[1] is True
    (project / "ds" / "link.json").symlink_to(outside)
    assert "a link that leads out of" in facts(cfglint, "configs/sft.yaml", "deepspeed=ds/link.json")[2]
