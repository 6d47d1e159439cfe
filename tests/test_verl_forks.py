"""What a fork of verl refuses by its own code, and what its first Megatron workers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfglint.cli import main
from cfglint.document.reading import Library, read_text
from cfglint.engine.describe import Origins
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.repair.write import Writer

REGISTRY = """
_REMOVEPAD_MODELS = {'llama': 1, 'qwen2': 2, KIND}


def check_model_support_rmpad(model_type: str):
    if model_type not in _REMOVEPAD_MODELS.keys():
        raise ValueError(f"{model_type} is not supported")
"""
WORKERS = """
def build(config, model_config):
    if config.model.use_remove_padding:
        from verl.models.registry import check_model_support_rmpad
        check_model_support_rmpad(model_config.model_type)
"""
MAIN = """
import hydra


@hydra.main(config_path='config', config_name='own', version_base=None)
def main(config):
    from verl.workers.fsdp_workers import build
    build(config.actor_rollout_ref, None)
"""
BASE = """
data: {train_batch_size: 256, max_prompt_length: 512, max_response_length: 1024}
actor_rollout_ref:
  hybrid_engine: true
  model: {path: null, enable_gradient_checkpointing: false, use_remove_padding: false}
  actor:
    strategy: fsdp
    ppo_mini_batch_size: 128
    ppo_micro_batch_size: 16
    use_dynamic_bsz: false
    ulysses_sequence_parallel_size: 1
    fsdp_config: {param_offload: false, optimizer_offload: false, fsdp_size: -1}
  ref: {log_prob_micro_batch_size: 16}
  rollout:
    name: vllm
    tensor_model_parallel_size: 1
    gpu_memory_utilization: 0.4
    log_prob_micro_batch_size: 16
    free_cache_engine: true
    n: 1
critic:
  strategy: fsdp
  cliprange_value: 0.5
  ppo_mini_batch_size: ${actor_rollout_ref.actor.ppo_mini_batch_size}
  ppo_micro_batch_size: 16
  use_dynamic_bsz: false
  model:
    path: null
    enable_gradient_checkpointing: false
    use_remove_padding: false
    fsdp_config: {param_offload: false, optimizer_offload: false}
algorithm: {adv_estimator: gae}
reward_model: {enable: false}
trainer: {n_gpus_per_node: 2, nnodes: 1, total_epochs: 1}
"""
RUN = """python3 -m verl.trainer.main_ppo \\
    actor_rollout_ref.model.path=google/gemma-2-2b-it \\
    actor_rollout_ref.model.use_remove_padding=True \\
    actor_rollout_ref.actor.ppo_micro_batch_size=8 \\
    critic.model.path=google/gemma-2-2b-it \\
    critic.model.use_remove_padding=True \\
    critic.ppo_micro_batch_size=8
"""


def _fork(kind: str) -> None:
    texts = {
        "verl/trainer/main_ppo.py": MAIN,
        "verl/trainer/config/own.yaml": BASE,
        "verl/workers/fsdp_workers.py": WORKERS,
        "verl/models/registry.py": REGISTRY.replace("KIND", kind),
        "run.sh": RUN,
    }
    Path(".git").mkdir()
    for name, text in texts.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8")


@pytest.mark.parametrize(("kind", "status"), [("'gemma': 3", 1), ("'gemma2': 3", 0)])
def test_what_a_fork_itself_refuses_is_an_error(kind, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _fork(kind)
    assert main(["check", "run.sh", "--gpu", "h200:2", "--select", "PAR363"]) == status, capsys.readouterr()


def test_what_starts_a_job_and_what_lets_it_fit_is_one_repair(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _fork("'gemma': 3")
    assert main(["check", "run.sh", "--gpu", "l40s:2", "--format", "concise"]) == 1
    assert {"MEM112", "PAR363"} <= set(capsys.readouterr().out.split())
    main(["fix", "run.sh", "--gpu", "l40s:2", "--unsafe", "--accept-may"])
    text = Path("run.sh").read_text("utf-8")
    assert text.count("use_remove_padding=False") == 2
    assert main(["check", "run.sh", "--gpu", "l40s:2"]) == 0, capsys.readouterr()


ROLLOUT = """
class Rollout:
    def __init__(self, config):
        assert not (not config.enforce_eager and config.free_cache_engine), "disable CUDA graphs"
        self.engine = LLM(enable_sleep_mode=True)
"""


@pytest.mark.parametrize(
    ("eager", "frees", "status"), [("False", "True", 1), ("True", "True", 0), ("False", "False", 0)]
)
def test_a_cache_that_is_freed_beside_graphs_is_refused(eager, frees, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _fork("'gemma2': 3")
    place = Path("verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py")
    place.parent.mkdir(parents=True)
    place.write_text(ROLLOUT, "utf-8")
    flags = f"    ++actor_rollout_ref.rollout.enforce_eager={eager} \\\n"
    flags += f"    actor_rollout_ref.rollout.free_cache_engine={frees} \\\n"
    Path("run.sh").write_text(RUN.replace("    critic.model.path", flags + "    critic.model.path"), "utf-8")
    assert main(["check", "run.sh", "--gpu", "h200:2", "--select", "ENG289"]) == status, capsys.readouterr()
    # it sleeps all the same
    main(["check", "run.sh", "--gpu", "l40s:2", "--select", "MEM101"])
    assert "MEM101" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("needs", "eager", "frees", "status"),
    [
        ("verl==0.4.1", "False", "True", 1),
        ("verl==0.4.1", "True", "True", 0),
        ("verl==0.5.0", "False", "True", 0),
    ],
)
def test_so_do_the_first_releases(needs, eager, frees, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _released(needs, eager, frees)
    assert main(["check", "run.sh", "--gpu", "h200:2", "--select", "ENG289"]) == status, capsys.readouterr()


@pytest.mark.parametrize(
    ("needs", "starves"), [("verl==0.4.1 vllm==0.6.3", True), ("verl==0.4.1 vllm==0.8.5", False)]
)
def test_what_frees_the_cache_goes_without_graphs(needs, starves, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _released(needs, "False", "False")
    main(["check", "run.sh", "--gpu", "l40s:2", "--select", "MEM101"])
    assert ("MEM101" in capsys.readouterr().out) == starves  # from 0.7 on, vLLM sleeps in any case
    main(["fix", "run.sh", "--gpu", "l40s:2", "--unsafe", "--accept-may"])
    text = Path("run.sh").read_text("utf-8")
    assert ("free_cache_engine=True" in text) == starves, text
    assert "free_cache_engine=True" not in text or "enforce_eager=True" in text


def _released(needs: str, eager: str, frees: str) -> None:
    """Write a job that runs a released verl."""
    Path(".git").mkdir()
    Path("train_env.yml").write_text(
        "dependencies:\n- pip:\n" + "".join(f"  - {need}\n" for need in needs.split()), "utf-8"
    )
    flags = f"""    data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size=8 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size=8 \\
    data.max_prompt_length=512 data.max_response_length=1024 \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.75 \\
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \\
    critic.model.fsdp_config.optimizer_offload=True \\
    actor_rollout_ref.actor.fsdp_config.param_offload=True critic.model.fsdp_config.param_offload=True \\
    actor_rollout_ref.rollout.enforce_eager={eager} \\
    actor_rollout_ref.rollout.free_cache_engine={frees} \\
    trainer.n_gpus_per_node=2 trainer.nnodes=1 \\
"""
    Path("run.sh").write_text(RUN.replace("    critic.model.path", flags + "    critic.model.path"), "utf-8")


KERNELS = "    use_fused_kernels = config.model.get('use_fused_kernels', False)\n"
NAMED = f"{KERNELS}    backend = config.model.get('fused_kernel_options', None)\n"
TORCH = ", fused_kernel_options: {impl_backend: torch}"


@pytest.mark.parametrize(
    ("version", "workers", "options", "takes"),
    [
        ((0.0, 4.0, 1.0), "", "", False),  # the forward is not patched without a backend's name
        ((0.0, 4.0, 1.0), "", TORCH, True),
        ((0.0, 4.0, 0.0), "", "", True),
        (None, "", "", False),
        (None, NAMED, "", False),
        (None, NAMED, TORCH, True),
        (None, KERNELS, "", True),
    ],
)
def test_fused_kernels_need_a_backend(version, workers, options, takes, tmp_path, monkeypatch, pack):
    monkeypatch.chdir(tmp_path)
    _fork("'gemma': 3")
    model = f"use_remove_padding: false, use_fused_kernels: false{options}}}\n  actor:\n    checkpoint: {{}}"
    base = BASE.replace("use_remove_padding: false}\n  actor:", model, 1)
    Path("verl/trainer/config/own.yaml").write_text(base, "utf-8")
    Path("verl/workers/fsdp_workers.py").write_text(WORKERS + workers, "utf-8")
    if not workers:
        Path("verl").rename("own")
        Path("run.sh").write_text(RUN.replace("-m verl.", "-m own."), "utf-8")
    here = {str(path): path.read_bytes() for path in Path().rglob("*.*") if path.is_file()}
    run = Run(pack, selected=lambda _: False, framework="verl", version=version)
    run = run.but(library=Library(lambda by, path=None: here.get(path or by)))
    script = read_text(Path("run.sh").read_text("utf-8"), "run.sh")
    subject = next(iter(run.subjects(script, judge_broken=True)))
    writer = Writer(subject, Origins(run.finder.symbols, values_for(subject, {}), {}, subject.framework))
    way = writer.writes("fused_loss", "chunked")
    assert (way is not None and writer.patch(way.keys) is not None) == takes


DIVIDED = "        self.config.actor.ppo_micro_batch_size //= (self.device_mesh.shape[0] // 1)\n"
TIMES = "        self.config.actor.ppo_micro_batch_size *= self.config.rollout.n\n"


@pytest.mark.parametrize(
    ("shares", "least"), [(DIVIDED + TIMES, "16"), (TIMES + DIVIDED, "4"), (DIVIDED, "16")]
)
def test_a_number_over_all_gpus_is_shared_as_the_copy_does(shares, least, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _fork("'gemma2': 3")
    Path("verl/workers/fsdp_workers.py").write_text(
        f"{WORKERS}\n\nclass Worker:\n    def run(self):\n{shares}"
    )
    flags = "    actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=16 \\\n"
    text = RUN.replace("micro_batch_size=8", "micro_batch_size=2", 1)
    Path("run.sh").write_text(text.replace("    critic.model.path", flags + "    critic.model.path"), "utf-8")
    assert main(["check", "run.sh", "--gpu", "h200:16", "--select", "BAT198"]) == 1
    assert f"Set it to {least} or more" in capsys.readouterr().out.replace("\n    ", "")
    main(["fix", "run.sh", "--gpu", "h200:16", "--select", "BAT198", "--unsafe"])
    assert f"actor.ppo_micro_batch_size={least} " in Path("run.sh").read_text("utf-8")


@pytest.mark.parametrize(("rollout", "status"), [("LLM(max_num_seqs=config.max_num_seqs)", 0), ("LLM()", 1)])
def test_requests_are_as_many_as_the_copy_tells_its_engine(rollout, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _fork("'gemma2': 3")
    place = Path("verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py")
    place.parent.mkdir(parents=True)
    place.write_text(f"class Rollout:\n    def __init__(self, config):\n        self.engine = {rollout}\n")
    flags = "    ++actor_rollout_ref.rollout.max_num_seqs=64 \\\n"
    Path("run.sh").write_text(RUN.replace("    critic.model.path", flags + "    critic.model.path"), "utf-8")
    rule = ["--select", "CLI001", "--rule", "max_running_requests == 64"]
    assert main(["check", "run.sh", "--gpu", "h200:2", *rule]) == status, capsys.readouterr()
