"""The flags of a launcher that its parser does not take: the command ends before the program starts.

The lists hold the flags of the newest versions and those that older ones had (accelerate/commands/launch.py
@16cb6eb8, torch/distributed/run.py and launch.py @v2.14.1, deepspeed/launcher/runner.py @v0.19.8). Families
that grow with each version are not judged.
"""

from __future__ import annotations

import re

from cfglint.document.shell.programs import program_of
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Document

_FLAG = re.compile(r"--([A-Za-z][\w-]*)(?==|\Z)")
_COMMANDS = {"accelerate": "accelerate launch", "torchrun": "torchrun", "deepspeed": "deepspeed"}
_FAMILIES = re.compile(
    r"(?:fsdp|megatron_lm|deepspeed|fp8|dynamo|parallelism_config|tpu|zero3|aws|numa|use|elastic)_"
)
_TAKEN = {
    "accelerate": (
        "config_file quiet cpu multi_gpu tpu ipex mixed_precision num_processes num_machines"
        " num_cpu_threads_per_process enable_cpu_affinity gpu_ids same_network machine_rank"
        " main_process_ip main_process_port tee log_dir role rdzv_backend rdzv_conf max_restarts"
        " monitor_interval module no_python main_training_function downcast_bf16 no_tpu_cluster vm env"
        " restart_tpuvm_pod_server debug zero_stage offload_optimizer_device offload_param_device"
        " offload_optimizer_nvme_path offload_param_nvme_path gradient_accumulation_steps"
        " gradient_clipping mpirun_hostfile mpirun_ccl num_cpu_processes fp16 bf16 pod_config_file"
        " metadata_server help"
    ),
    "torchrun": (
        "nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf standalone max_restarts"
        " monitor_interval start_method event_log_handler role module no_python run_path log_dir"
        " redirects tee local_ranks_filter node_rank master_addr master_port local_addr logs_specs"
        " log_line_prefix_template signals_to_handle shutdown_timeout virtual_local_rank"
        " duplicate_stdout_filters duplicate_stderr_filters print_completion local_rank logdir help"
        " with_etcd"
    ),
    "deepspeed": (
        "hostfile include exclude num_nodes min_elastic_nodes max_elastic_nodes num_gpus"
        " num_accelerators master_port master_addr node_rank launcher launcher_args module no_python"
        " no_local_rank no_ssh no_ssh_check force_multi save_pid enable_each_rank_log autotuning"
        " bind_cores_to_rank bind_core_list ssh_port venv_script detect_nvlink_pairs deepspeed"
        " log_level quiet local_rank help"
    ),
}


class Refused(Value):
    """A flag that a launcher's ``command`` does not take, where it stands, and the one that was ``meant``."""

    name: str
    command: str
    meant: str
    start: int
    end: int


def refused_flags(document: Document) -> list[Refused]:
    """Return the flags in front of a program that its launcher does not take."""
    start = program_of(document.words)
    taken = frozenset(_TAKEN.get(start.launcher, "").split()) if start is not None else frozenset()
    if start is None or not taken or document.listed:
        return []
    refused = []
    for word in start.options:
        match = _FLAG.match(word.spelled)
        name = match[1].replace("-", "_") if match is not None and word.start >= 0 else ""
        if not name or _FAMILIES.match(name) or any(flag.startswith(name) for flag in taken):
            continue
        command = _COMMANDS[start.launcher]
        refused.append(Refused(name, command, _meant(name, taken), word.start, word.start + 2 + len(name)))
    return refused


def _meant(name: str, taken: frozenset[str]) -> str:
    """Return the one flag that has all words of another, and more."""
    words = set(name.split("_"))
    longer = [flag for flag in taken if words < set(flag.split("_"))]
    return longer[0] if len(longer) == 1 and len(words) > 1 else ""
