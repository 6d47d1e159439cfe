"""Nothing outside the repository is read for what the repository says, and nothing of it is printed."""

import os
import shutil
import subprocess

import pytest

from hostile.conftest import SECRET
from tiers import LONG

NUMBER = 48151623

# One value is printed where it is wrong: a text for a number, a misspelled choice, an unknown key.
LEAKY = f"""\
model_path: {SECRET}
policy:
  dtype: {SECRET}
  train_global_batch_size: {SECRET}
  train_micro_batch_size: {SECRET}
  {SECRET.replace("-", "_")}: 1
cluster: {{gpus_per_node: {SECRET}, num_nodes: 1}}
"""
NEMO = """\
defaults: {outside}
policy:
  model_name: Qwen/Qwen2.5-1.5B-Instruct
  train_global_batch_size: 511
  train_micro_batch_size: 4
  max_total_sequence_length: 512
  dtensor_cfg: {{enabled: true}}
  precision: ${{policy.dtype}}
cluster: {{gpus_per_node: 8, num_nodes: 1}}
grpo: {{num_prompts_per_step: 32, num_generations_per_prompt: 16}}
"""
VERL = f"""\
# @package _global_
actor_rollout_ref: {{rollout: {{name: {SECRET}}}, actor: {{strategy: {SECRET}}}}}
data: {{max_prompt_length: {SECRET}}}
"""
DEEPSPEED = f'{{"train_micro_batch_size_per_gpu": {NUMBER}, "comment": "{SECRET}"}}'
HYDRA = """\
hydra:
  searchpath: [{outside}]
defaults: [secret, _self_]
actor_rollout_ref:
  model: {{path: Qwen/Qwen2.5-7B}}
  actor: {{ppo_mini_batch_size: 256, ppo_micro_batch_size_per_gpu: 4}}
  rollout: {{tensor_model_parallel_size: 1, gpu_memory_utilization: 0.6}}
data: {{train_batch_size: 256}}
trainer: {{n_gpus_per_node: 8, nnodes: 1}}
algorithm: {{adv_estimator: grpo}}
"""
TRL = """\
model_name_or_path: Qwen/Qwen2.5-7B
per_device_train_batch_size: 8
gradient_accumulation_steps: 1
num_train_epochs: 1
output_dir: out
deepspeed: {outside}
"""


SHAPE = (
    f'{{"model_type": "{SECRET}", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, '
    '"intermediate_size": 128, "vocab_size": 1000}'
)


def leaks(text):
    return SECRET in text or str(NUMBER) in text or f"{NUMBER:,}" in text


def reads(strange, name, config):
    """Return what is said of a config; with leave to read outside, the secret is in it."""
    strange.write({name: config})
    assert leaks(strange.run("check", name, "--gpu", "a40:8", "--allow-outside", "-v").stdout)
    return strange.everything("check", name, "--gpu", "a40:8") + strange.everything("fix", "--diff", name)


@pytest.mark.parametrize(
    "outside", ["../home/secret.yaml", "{home}/secret.yaml", "sub/../../home/secret.yaml"]
)
def test_a_parent_outside(strange, outside):
    path = strange.secret("secret.yaml", LEAKY)
    said = reads(strange, "train.yaml", NEMO.format(outside=outside.format(home=path.parent)))
    assert SECRET not in said
    assert "secret.yaml" in said  # it says what it did not read


@pytest.mark.parametrize("outside", ["file://{home}", "file://../home", "file:///{home}/"])
def test_a_search_path_outside(strange, outside):
    path = strange.secret("secret.yaml", VERL)
    assert not leaks(reads(strange, "train.yaml", HYDRA.format(outside=outside.format(home=path.parent))))


@pytest.mark.parametrize("name", ["/../../home/secret", "../../home/secret", "./../../home/secret"])
def test_a_default_outside(strange, name):
    strange.secret("secret.yaml", VERL)
    config = HYDRA.format(outside="pkg://x").replace("secret", name)
    assert not leaks(reads(strange, "conf/train.yaml", config))


@pytest.mark.parametrize("outside", ["../home/ds.json", "{home}/ds.json"])
def test_a_second_file_outside(strange, outside):
    path = strange.secret("ds.json", DEEPSPEED)
    assert not leaks(reads(strange, "sft.yaml", TRL.format(outside=outside.format(home=path.parent))))


def test_a_link_to_a_second_file(strange):
    path = strange.secret("ds.json", DEEPSPEED)
    (strange.repo / "ds.json").symlink_to(path)
    assert not leaks(reads(strange, "sft.yaml", TRL.format(outside="ds.json")))


@pytest.mark.parametrize("link", ["train.yaml", "sub/train.yaml"])
def test_a_link_that_is_checked(strange, link):
    path = strange.secret("train.yaml", NEMO.format(outside=SECRET))
    (strange.repo / "sub").mkdir()
    (strange.repo / link).symlink_to(path)
    assert SECRET not in strange.everything("check", "--gpu", "a40:8")
    done = strange.run("check", link, "--gpu", "a40:8")
    assert done.returncode == 2
    assert "a link that leads out of" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_a_folder_that_is_a_link(strange):
    strange.secret("conf/train.yaml", NEMO.format(outside=SECRET))
    (strange.repo / "conf").symlink_to(strange.home / "conf")
    assert SECRET not in strange.everything("check", "--gpu", "a40:8")
    assert SECRET not in strange.everything("check", "conf/train.yaml", "--gpu", "a40:8")


@pytest.mark.parametrize("sign", [".git/HEAD", "LICENSE", "pyproject.toml"])
@pytest.mark.parametrize("archive", [False, True])
@pytest.mark.parametrize("word", ["conf", "conf/private/train.yaml", "conf/private"])
def test_a_linked_folder_with_a_repository_behind_it(strange, sign, archive, word):
    path = strange.secret("around/private/train.yaml", NEMO.format(outside=SECRET))
    (path.parent / sign).parent.mkdir(exist_ok=True)
    (path.parent / sign).write_text("")
    (strange.repo / "conf").symlink_to("../home/around")
    if archive:
        (strange.repo / ".git" / "HEAD").unlink()
        (strange.repo / ".git").rmdir()
    assert SECRET not in strange.everything("check", word, "--gpu", "a40:8")
    assert SECRET in strange.everything("check", word, "--gpu", "a40:8", "--allow-outside")


def test_a_link_of_the_users_own_leads_to_a_repository(strange):
    strange.write({"conf/train.yaml": NEMO.format(outside="x")})
    (strange.home / "proj").symlink_to(strange.repo)
    assert "in 1 file" in strange.run("check", strange.home / "proj/conf").stdout
    done = strange.run("check", "proj", where=strange.home)  # where a strange archive may be unpacked
    assert done.returncode == 2
    assert "--allow-outside" in done.stderr


@pytest.mark.parametrize("setting", ["rules = ['{}']", "hardware = '{}'", "model-config = '{}'"])
@pytest.mark.parametrize(
    "place",
    ["../home/token", "{home}/token", "link", "{repo}/folder/../token", "/proc/self/cwd/folder/../token"],
)
def test_a_setting_that_names_a_file_outside(strange, setting, place):
    path = strange.secret("token", SECRET)
    (strange.repo / "link").symlink_to(path)
    (path.parent / "inner").mkdir()
    (strange.repo / "folder").symlink_to(path.parent / "inner")
    strange.write({"train.yaml": NEMO.format(outside="x")})
    strange.write({"cfglint.toml": setting.format(place.format(home=path.parent, repo=strange.repo))})
    done = strange.run("check", "train.yaml")
    assert done.returncode == 2
    assert "leads out of" in done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["rules", "/proc/self/cwd/rules", "/dev/fd/../../proc/self/cwd/rules"])
def test_a_folder_of_rules_with_a_link(strange, folder):
    path = strange.secret("token", SECRET)
    strange.write(
        {"train.yaml": NEMO.format(outside="x"), "cfglint.toml": f"rules = ['{folder}']", "rules/a.txt": ""}
    )
    (strange.repo / "rules" / "x.rules").symlink_to(path)
    for words in (["check", "train.yaml"], ["check", "train.yaml", "--rules", "rules"], ["test", "rules"]):
        done = strange.run(*words)
        assert done.returncode == 2
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["cfglint.toml", "pyproject.toml"])
def test_settings_that_are_a_link(strange, name):
    path = strange.secret("s.toml", f"[tool.cfglint]\n'{SECRET}' = 1\n")
    (strange.repo / name).symlink_to(path)
    strange.write({"train.yaml": NEMO.format(outside="x")})
    done = strange.run("check", "train.yaml")
    assert SECRET not in done.stdout + done.stderr


def test_no_text_of_a_models_config(strange):
    """Numbers may come from anywhere, since weights lie where they lie; texts may not."""
    for shape in (
        f'{{"hidden_size": "{SECRET}", "model_type": "llama"}}',
        SHAPE,
        f'["{SECRET}"]',
        SECRET,
    ):
        path = strange.secret("m/config.json", shape)
        strange.secret("m/adapter_config.json", f'{{"base_model_name_or_path": "{SECRET}"}}')
        config = NEMO.format(outside="x").replace("Qwen/Qwen2.5-1.5B-Instruct", str(path.parent))
        strange.write({"train.yaml": config})
        assert SECRET not in strange.everything("check", "train.yaml", "--gpu", "a40:8")


@pytest.mark.parametrize("place", ["m", "m/config.json", "m/token.json"])
def test_what_is_no_models_config_is_as_if_it_were_absent(strange, place):
    said = []
    for content in ("", '{"auths": 1, "hidden_size": "%"}', '["%"]', None):
        if content is not None:
            strange.secret("m/config.json", content.replace("%", SECRET) or SECRET)
            strange.secret("m/token.json", content.replace("%", SECRET) or SECRET)
        else:
            shutil.rmtree(strange.home / "m")
        config = NEMO.format(outside="x").replace("Qwen/Qwen2.5-1.5B-Instruct", f"{strange.home}/{place}")
        strange.write({"train.yaml": config})
        said += [strange.everything("check", "train.yaml", "--gpu", "a40:8")]
    assert len(set(said)) == 1


# A commit may hold a folder that git takes for a repository, and an archive a repository with settings.
BARE = """\
[core]
\trepositoryformatversion = 1
\tbare = false
\tworktree = .
[extensions]
\tpartialClone = origin
[remote "origin"]
\turl = none::x
\tpromisor = true
[alias]
\tremote-none = "!touch {mark}"
"""


@pytest.mark.parametrize("folder", ["sub", ".git"])
def test_a_repository_of_strange_settings_runs_nothing(strange, tmp_path, monkeypatch, folder):
    old_git = tmp_path / "bin" / "git"  # one that does not know how to be kept from fetching
    old_git.parent.mkdir()
    old_git.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    old_git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old_git.parent}:{os.environ['PATH']}")
    mark = tmp_path / "ran"
    strange.write(
        {
            f"{folder}/HEAD": "ref: refs/heads/main\n",
            f"{folder}/refs/heads/main": "1" * 40 + "\n",
            f"{folder}/objects/.keep": "",
            f"{folder}/config": BARE.format(mark=mark),
            f"{'' if folder == '.git' else folder}/train.yaml".lstrip("/"): "{{{",
        }
    )
    assert "1 with syntax errors" in strange.run("check").stdout
    assert not mark.exists()


@pytest.mark.parametrize("way", ["alternates", "objects", "refs", "embedded"])
def test_no_objects_of_another_repository_are_asked_for(strange, way):
    """Whether another repository has a config of that name is nobody's business."""
    other, inner = strange.home / "other", strange.repo / (".git" if way != "embedded" else "sub")
    other.mkdir()
    (other / "train.yaml").write_text(NEMO.format(outside="x"))
    name = ["-c", "user.name=x", "-c", "user.email=x@y.z", "-c", "commit.gpgsign=false"]
    for words in (["init"], ["add", "."], ["commit", "-m", "first"], ["gc"]):
        subprocess.run(["git", *name, *words], cwd=other, check=True, capture_output=True)
    place = "train.yaml" if way != "embedded" else "sub/train.yaml"
    strange.write({place: "{{{"})
    for part in ("HEAD", "packed-refs", "config"):
        strange.write({f"{inner.name}/{part}": (other / ".git" / part).read_bytes()})
    if way == "objects":
        (inner / "objects").mkdir()
        (inner / "objects" / "pack").symlink_to(other / ".git" / "objects" / "pack")
    elif way == "refs":
        shutil.copytree(other / ".git" / "objects", inner / "objects")
        (inner / "packed-refs").unlink()
        (inner / "packed-refs").symlink_to(other / ".git" / "packed-refs")
    else:
        strange.write({f"{inner.name}/objects/info/alternates": f"{other}/.git/objects\n"})
        (inner / "refs").mkdir()
    done = strange.run("check")
    assert "CFG001" not in done.stdout
    assert "1 with syntax errors" in done.stdout
    if way != "embedded":
        shutil.rmtree(inner)
        (other / ".git").rename(strange.repo / ".git")
        assert "CFG001" in strange.run("check").stdout


def test_the_environment(strange):
    config = NEMO.format(outside="x").replace("511", "${oc.env:TOKEN}").replace("4\n", "${env:TOKEN}\n")
    strange.write({"train.yaml": config, "run.sh": 'torchrun train.py --config $TOKEN --lr "$TOKEN"\n'})
    assert SECRET not in strange.everything("check", "--gpu", "a40:8", TOKEN=SECRET)


def test_what_the_command_line_allows(strange):
    """The same parent is read where the user says so."""
    path = strange.secret("secret.yaml", LEAKY)
    strange.write({"train.yaml": NEMO.format(outside="../home/secret.yaml")})
    done = strange.run("check", "train.yaml", "--gpu", "a40:8", "--allow-outside", "--verbose")
    assert SECRET in done.stdout
    strange.write({"mine.toml": f"rules = ['{path.parent}/x.rules']\n"})
    (path.parent / "x.rules").write_text(f'rule ABC001 x error {{ num_gpus <= 4\n  say "{SECRET}" }}\n')
    done = strange.run("check", "train.yaml", "--gpu", "a40:8", "--settings", "mine.toml")
    assert SECRET in done.stdout


def test_settings_of_the_repository_can_be_ignored(strange):
    strange.write({"train.yaml": NEMO.format(outside="x"), "cfglint.toml": 'ignore = ["CFG021"]\n'})
    assert "CFG021" not in strange.run("check", "train.yaml").stdout
    assert "CFG021" in strange.run("check", "train.yaml", "--isolated").stdout


def test_settings_above_the_repository_do_not_hold(strange):
    (strange.repo.parent / "cfglint.toml").write_text(f"'{SECRET}' = 1\n")
    strange.write({"train.yaml": NEMO.format(outside="x")})
    assert "CFG021" in strange.run("check", "train.yaml").stdout


def test_a_download_without_its_repository(strange):
    """An archive has no .git; the folder that was named, or what looks like a project, stands for it."""
    strange.secret("secret.yaml", LEAKY)
    (strange.repo / ".git" / "HEAD").unlink()
    (strange.repo / ".git").rmdir()
    strange.write({"train.yaml": NEMO.format(outside="../home/secret.yaml")})
    above = strange.repo.parent
    assert SECRET not in strange.everything("check", "repo", "--gpu", "a40:8", where=above)
    strange.write({"LICENSE": "none"})
    done = strange.run("check", os.path.join("repo", "train.yaml"), "--gpu", "a40:8", "-v", where=above)
    assert SECRET not in done.stdout + done.stderr


def test_a_page_of_cases_that_is_a_link(strange):
    path = strange.secret("notes.md", f"# {SECRET}\n\n```console\n$ cfglint check {SECRET}\n{SECRET}\n```\n")
    strange.write({"pack/x.rules": "rule ABC001 x error { num_gpus <= 4 }\n", "pack/tests/a.txt": ""})
    (strange.repo / "pack" / "tests" / "notes.md").symlink_to(path)
    for words in (["test", "pack"], ["test", "pack", "--update"]):
        done = strange.run(*words)
        assert done.returncode == 2
        assert SECRET not in done.stdout + done.stderr
    assert path.read_text().count(SECRET) == 3


SLOW = [pytest.param(name, marks=pytest.mark.long) for name in ("pyproject.toml", "ds.json", "a.log")]
QUICK = ["cfglint.toml", "train.yaml", "x.rules"]
IRREGULAR = (
    os.mkfifo,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("/dev/tty"),
)


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_pipes_and_devices_are_not_waited_for(strange, name):
    strange.write({"sft.yaml": TRL.format(outside="ds.json")})
    commands = (
        ["check"], ["check", "sft.yaml"], ["check", "train.yaml"], ["fix"], ["diagnose", "a.log"],
        ["check", "--rules", "x.rules"], ["check", "--settings", "cfglint.toml"], ["test", "x.rules"],
        ["check", "--hardware", "ds.json"], ["check", "--model-config", "ds.json"], ["frameworks", "."],
    )  # fmt: skip
    for kind, make in enumerate(IRREGULAR):
        make(strange.repo / name)
        for number, words in enumerate(commands):
            # Those that read the very file always, the others in turn.
            if LONG or name in words or (number + kind) % 3 == 0:
                strange.apart(*words)
        (strange.repo / name).unlink()


def test_a_device_is_no_log(strange):
    done = strange.apart("diagnose", "/dev/zero")
    assert "cannot read the log: not a regular file" in done.stderr


@pytest.mark.parametrize("flag", ["--rules", "--settings", "--hardware", "--model-config", "--output-file"])
def test_a_page_of_cases_names_no_files(strange, flag):
    path = strange.secret("token", SECRET)
    page = (
        f"```yaml bad_a.yaml\nnum_gpus: 8\n```\n\n```console\n$ cfglint check bad_a.yaml {flag} {path}\n```\n"
    )
    strange.write({"pack/x.rules": "rule ABC001 x error { num_gpus <= 4 }\n", "pack/tests/ABC001.md": page})
    done = strange.run("test", "pack", "--update")
    assert f"has no flag {flag}" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert path.read_text() == SECRET
