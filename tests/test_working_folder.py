"""A file has one verdict, whichever folder cfglint runs in: what it names is looked for around itself."""

import json
import os

import pytest

from tiers import mostly_long

RUN = (
    "torchrun --nproc_per_node 8 train.py --deepspeed ds/z3.json --model_name_or_path models/own "
    "--output_dir out --per_device_train_batch_size 1 --bf16 true --do_train --learning_rate 1e-5\n"
)
TREE = {
    "examples/sft/run.sh": RUN,
    "examples/sft/sft.yaml": "model_name_or_path: models/own\ndataset_name: a/b\noutput_dir: out\n"
    "max_length: 64\ndeepspeed: ds/z3.json\n",
    "train.py": "from trl import SFTConfig, SFTTrainer, TrlParser\n"
    "(args,) = TrlParser(SFTConfig).parse_args_and_config()\n"
    "SFTTrainer(model=args.model, args=args).train()\n",
    "ds/z3.json": '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}',
    "models/own/config.json": json.dumps({
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896,
        "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
        "max_position_embeddings": 32768,
    }),
}  # fmt: skip
# What is in a folder beside the project says nothing of it.
STRAY = {"ds/z3.json": '{"zero_optimization": {"stage": 1}}', "train.py": "import transformers\n"}
MARKS = (".git/HEAD", "pyproject.toml", "LICENSE", ".github/x.yml", "requirements.txt")


@pytest.mark.parametrize("case", mostly_long([(m, n) for m in MARKS for n in ("run.sh", "sft.yaml")], 3))
def test_the_working_folder_changes_nothing(cfglint, tmp_path, monkeypatch, case):
    mark, name = case
    project, beside = tmp_path / "project", tmp_path / "beside"
    for folder, files in ((project, {**TREE, mark: ""}), (beside, STRAY)):
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    said = []
    for start in (
        project,
        project / "examples",
        project / "examples" / "sft",
        project / "ds",
        beside,
        tmp_path,
    ):
        monkeypatch.chdir(start)
        path = os.path.relpath(project / "examples" / "sft" / name)
        done = cfglint("facts", path, "--gpu", "a100-80gb-sxm:8", "--format", "json")
        (job,) = json.loads(done.stdout)["jobs"]
        facts = {key: fact["value"] for key, fact in job["facts"].items()}
        said.append((job["framework"], facts))
        assert (facts["zero_stage"], facts["offload_params"]) == (3, True)
        check = cfglint("check", path, "--gpu", "a100-80gb-sxm:8", "--format", "json")
        said[-1] += (json.loads(check.stdout)["jobs"][0]["need_gib"],)
    assert all(each == said[0] for each in said)


def test_the_project_goes_before_the_working_folder(cfglint, tmp_path, monkeypatch):
    (tmp_path / "LICENSE").touch()
    for path, stage in (("z.json", 1), ("a/b/z.json", 2), ("a/z.json", 3)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps({"zero_optimization": {"stage": stage}}))
    (tmp_path / "a/b/c").mkdir()
    (tmp_path / "a/b/c/sft.yaml").write_text(TREE["examples/sft/sft.yaml"].replace("ds/z3", "z"))
    for start in (".", "a", "a/b", "a/b/c"):
        monkeypatch.chdir(tmp_path / start)
        path = os.path.relpath(tmp_path / "a/b/c/sft.yaml")
        (job,) = json.loads(cfglint("facts", path, "--no-detect", "--format", "json").stdout)["jobs"]
        assert job["facts"]["zero_stage"]["value"] == 1
