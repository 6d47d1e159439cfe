"""Manifests that launch jobs: what they ask for, their commands as documents, and edits at their places."""

import json
import math
import os
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.document.edits import insert_key, replace_value
from cfglint.document.json import parse_json
from cfglint.document.reading import read_text
from cfglint.document.scalars import SHELL
from cfglint.document.shell.words import pieces_of
from cfglint.document.trace import Trace
from cfglint.document.tree import Mapping, Scalar, walk
from cfglint.document.view import Missing, View
from cfglint.document.yaml import parse_yaml
from cfglint.errors import OverBudgetError
from cfglint.hardware.catalogue import gpus
from cfglint.hardware.host import declared
from cfglint.text import apply_edits
from golden import page_of
from tiers import tried

RUN = "torchrun --nproc_per_node 2 t.py --a 1 --b 2"


def one(text, path="x.yaml"):
    """Return the only command of a manifest, and its view."""
    (document,) = read_text(text, path).documents
    return document, View(document, SHELL)


def targets(text, path="x.yaml"):
    return [(t.name, t.count, t.vram_gib is None) for t in declared(one(text, path)[0].job)]


# ── scalars ────────────────────────────────────────────────────────────────────────────────────────────────
TEXTS = st.text(st.sampled_from("ab -\n'\"\\$é🙂\t={}"), min_size=1, max_size=30)


@settings(max_examples=tried(400), deadline=None)
@given(
    TEXTS, st.sampled_from([None, "'", '"', "|", ">"]), st.booleans(), st.sampled_from([8, 80]), st.booleans()
)
def test_each_character_of_a_scalar_keeps_its_place(value, style, plain, width, crlf):
    text = yaml.dump({"k": {"s": value}}, default_style=style, allow_unicode=plain, width=width)
    text = text.replace("\n", "\r\n") if crlf else text
    (parsed,) = parse_yaml(text)
    if parsed.error is None:
        _check(text, parsed.root)


@settings(max_examples=tried(200), deadline=None)
@given(TEXTS, st.booleans())
def test_each_character_of_a_json_text_keeps_its_place(value, escaped):
    text = json.dumps({"k": value}, ensure_ascii=escaped)
    _check(text, parse_json(text)[0].root)


def _check(text, root):
    for node in walk(root):
        if isinstance(node, Scalar):
            pieces = pieces_of(text, node)
            assert "".join(piece.text for piece in pieces) == node.text
            placed = [piece for piece in pieces if piece.start >= 0]
            for before, after in pairwise(placed):
                assert before.end <= after.start
            for piece in placed:
                assert node.start <= piece.start <= piece.end <= node.end
                if piece.verbatim:
                    assert text[piece.start : piece.end] == piece.text


BLOCKS = [
    f"run: |\n  set -e\n  {RUN}\nworkdir: .\n",
    f"run: |-\n  # a note\n\n  {RUN}\nworkdir: .\n",
    f"workdir: .\nrun: {RUN}\n",
    f"workdir: .\nrun: '{RUN}'\n",
    f'workdir: .\nrun: "A=\\"x\\"\\n{RUN}"\n',
    "workdir: .\nrun: >\n  torchrun --nproc_per_node 2\n  t.py --a 1\n  --b 2\n",
    "workdir: .\nrun: torchrun --nproc_per_node 2\n  t.py --a 1 --b 2\n",
    f"run: |\r\n  set -e\r\n  {RUN}\r\nworkdir: .\r\n",
]


@pytest.mark.parametrize("text", BLOCKS)
def test_a_script_in_a_scalar_is_edited_in_its_place(text):
    document, view = one(text)
    assert (view.get(("a",)), view.get(("launch", "processes"))) == (1, 2)
    trace = Trace(view, ("a",))
    assert trace.editable
    edited = apply_edits(document.file.text, [replace_value(document, trace.node, 77, SHELL)])
    assert edited == text.replace("--a 1", "--a 77")
    assert one(edited)[1].get(("a",)) == 77
    added = apply_edits(text, [insert_key(document, ("c",), 3, SHELL)])
    assert one(added)[1].get(("c",)) == 3
    assert added.replace("\n  --c 3", "").replace(" --c 3", "") == text


def test_a_line_that_goes_on_is_added_to_in_its_indentation():
    text = "workdir: .\nrun: |\n  torchrun t.py \\\n    --a 1 \\\n    --b 2\n\nname: x\n"
    document, _ = one(text)
    added = apply_edits(text, [insert_key(document, ("c",), 3, SHELL)])
    assert added == text.replace("    --b 2\n", "    --b 2 \\\n    --c 3\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("[--a=1, --b=2]", "[--a=1, --b=2, --c-d=3]"),
        ('["--a", "1", "--b", "2"]', '["--a", "1", "--b", "2", "--c_d", "3"]'),
        ("\n    - --a=1\n    - --x-y=2  # two\n", "\n    - --a=1\n    - --x-y=2  # two\n    - --c-d=3\n"),
        ("\n    - --a\n    - '1'\n    - --b\n    - '2'\n", "\n    - --a\n    - '1'\n    - --b\n    - '2'\n    - --c_d\n    - \"3\"\n"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_flag_is_added_to_a_list_as_an_item(arguments, expected):
    if "--x-y" not in arguments:
        expected = expected.replace("c-d", "c_d")
    text = POD.replace("ARGS", arguments)
    document, view = one(text)
    assert view.get(("a",)) == 1
    added = apply_edits(text, [insert_key(document, ("c_d",), 3, SHELL)])
    assert added == POD.replace("ARGS", expected)
    assert one(added)[1].get(("c_d",)) == 3


POD = """\
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: x
    command: [python, t.py]
    resources: {limits: {nvidia.com/gpu: 2}}
    args: ARGS
"""


# ── what is asked for ──────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("{accelerators: A100-80GB:8}", [("a100-80gb:8", 8)]),
        ("{accelerators: A40}", [("a40:1", 1)]),
        ("{accelerators: {A40: 4}}", [("a40:4", 4)]),
        ("{accelerators: {L40S:8, H200:8}}", [("l40s:8", 8), ("h200:8", 8)]),
        ("{accelerators: [L40S:2, H200]}", [("l40s:2", 2), ("h200:1", 1)]),
        ("{accelerators: {L40S: 2}, any_of: [{infra: aws}, {accelerators: A40:8}]}", [("l40s:2", 2), ("a40:8", 8)]),  # noqa: E501
        ("{ordered: [{accelerators: A40:8}, {accelerators: L40S:8}]}", [("a40:8", 8), ("l40s:8", 8)]),
        ("{instance_type: p4d.24xlarge}", [("a100-40gb-sxm:8", 8)]),
        ("{accelerators: tpu-v5e-8}", []),
        ("{accelerators: SomeNewGpu:8}", [("gpu:8", 8)]),
        ("{cpus: 8}", []),
    ],
)  # fmt: skip
def test_what_a_skypilot_task_asks_for(resources, expected):
    text = f"resources: {resources}\nrun: {RUN}\n"
    assert [(name, count) for name, count, _ in targets(text)] == expected
    two = f"num_nodes: 2\nresources: {resources}\nrun: {RUN}\n"
    assert [count for _, count, _ in targets(two)] == [2 * count for _, count in expected]


def test_a_task_tells_its_script_what_it_asks_for():
    text = (
        "resources: {accelerators: 'A40:4'}\nnum_nodes: 2\nenvs: {SIZE: 8, KEY: null}\nrun: |\n"
        "  torchrun --nnodes $SKYPILOT_NUM_NODES --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE t.py \\\n"
        "    --size $SIZE --key $KEY --rank $SKYPILOT_NODE_RANK\n"
    )
    document, view = one(text)
    assert view.get(("launch", "processes")) == 8
    assert view.get(("launch", "job", "gpus")) == 8
    assert view.get(("size",)) == 8
    assert text[slice(*Trace(view, ("size",)).span)] == "8"
    for key in ("key", "rank"):
        assert "set outside" in view.get((key,)).why
    assert document.format == "shell"


LIMITS = "resources: {limits: {nvidia.com/gpu: 4}}"
COMMAND = "command: [torchrun, --nproc_per_node, '4', t.py, --a, '1']"


def manifest(kind, spec, pod=""):
    template = f"{{spec: {{{pod}containers: [{{name: x, {COMMAND}, {LIMITS}}}]}}}}"
    return f"apiVersion: x/v1\nkind: {kind}\nspec: " + spec.replace("POD", template)


SELECTED = "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}, "
REQUIRED = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
    "[{matchExpressions: [{key: cloud.google.com/gke-accelerator, operator: In, values: [nvidia-l4, nvidia-tesla-t4]}]}]}}}, "  # noqa: E501
)
PREFERRED = REQUIRED.replace("required", "preferred")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (manifest("Job", "{template: POD}", SELECTED), [("h100-sxm:4", 4, False)]),
        (manifest("Job", "{template: POD}"), [("gpu:4", 4, True)]),
        (manifest("Job", "{template: POD}", REQUIRED), [("l4:4", 4, False), ("t4:4", 4, False)]),
        (manifest("Job", "{template: POD}", PREFERRED), [("gpu:4", 4, True)]),
        (manifest("Job", "{parallelism: 2, completionMode: Indexed, template: POD}", SELECTED), [("h100-sxm:8", 8, False)]),  # noqa: E501
        (manifest("Job", "{parallelism: 2, template: POD}", SELECTED), [("h100-sxm:4", 4, False)]),
        (manifest("CronJob", "{jobTemplate: {spec: {template: POD}}}", SELECTED), [("h100-sxm:4", 4, False)]),
        (manifest("Deployment", "{replicas: 3, template: POD}", SELECTED), [("h100-sxm:4", 4, False)]),
        (manifest("LeaderWorkerSet", "{replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: POD}}", SELECTED), [("h100-sxm:8", 8, False)]),  # noqa: E501
        (manifest("JobSet", "{replicatedJobs: [{replicas: 2, template: {spec: {parallelism: 2, template: POD}}}]}", SELECTED), [("h100-sxm:16", 16, False)]),  # noqa: E501
        (manifest("RayCluster", "{headGroupSpec: {template: {spec: {containers: []}}}, workerGroupSpecs: [{replicas: 2, template: POD}]}", SELECTED), [("h100-sxm:8", 8, False)]),  # noqa: E501
        (manifest("Job", "{tasks: [{replicas: 2, template: POD}]}", SELECTED), [("h100-sxm:8", 8, False)]),
    ],
)  # fmt: skip
def test_what_kubernetes_objects_ask_for(text, expected):
    assert targets(text) == expected


STATE = "{serviceName: x, replicas: 2, template: POD}"
SERVING = "{engineConfig: {runner: {" + COMMAND + ", " + LIMITS + "}}}"
MACHINE = "nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}, "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (manifest("StatefulSet", STATE, SELECTED), [("h100-sxm", None)]),
        (manifest("StatefulSet", STATE, MACHINE), [("a100-40gb-sxm", None)]),
        (manifest("StatefulSet", STATE), []),
        (manifest("NewServer", "{roles: [{replicas: 1, template: POD}]}", SELECTED), [("h100-sxm", None)]),
        (manifest("ClusterServingRuntime", SERVING), []),
        (manifest("Job", "{completionMode: Indexed, parallelism: '{{ .Values.n }}', template: POD}", SELECTED), [("h100-sxm", None)]),  # noqa: E501
        (manifest("HyperPodPyTorchJob", "{replicaSpecs: [{name: a, replicas: 2, template: POD}]}", SELECTED), [("h100-sxm:8", 8)]),  # noqa: E501
        (manifest("RayCluster", "{workerGroupSpecs: [{replicas: 2, numOfHosts: 2, template: POD}]}", SELECTED), [("h100-sxm:16", 16)]),  # noqa: E501
        (manifest("RayCluster", "{workerGroupSpecs: [{template: POD}]}", SELECTED), [("h100-sxm", None)]),
        (manifest("RayCluster", "{enableInTreeAutoscaling: true, workerGroupSpecs: [{replicas: 2, template: POD}]}", SELECTED), [("h100-sxm", None)]),  # noqa: E501
        (manifest("PyTorchJob", "{elasticPolicy: {maxReplicas: 9, metrics: []}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: POD}}}", SELECTED), [("h100-sxm", None)]),  # noqa: E501
        (manifest("PyTorchJob", "{elasticPolicy: {maxReplicas: 9}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: POD}}}", SELECTED), [("h100-sxm:8", 8)]),  # noqa: E501
        (manifest("Fleet", "{template: {spec: {workerGroupSpecs: [{replicas: 2, template: POD}]}}}", SELECTED), [("h100-sxm:8", 8)]),  # noqa: E501
        (manifest("Pod", "{containers: [{" + COMMAND + ", resources: {limits: {nvidia.com/mig-3g.40gb: 1}}}], "  # noqa: E501
                  "nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}}"), [("a100-80gb-sxm-mig-3g.40gb:1", 1)]),  # noqa: E501
        (manifest("Pod", "{containers: [{" + COMMAND + ", resources: {limits: {nvidia.com/gpu: $GPUS}}}]}"), []),  # noqa: E501
    ],
)  # fmt: skip
def test_pods_are_known_by_what_holds_them(text, expected):
    document, view = one(text)
    assert view.get(("launch", "processes_per_node")) == 4
    assert [(t.name, t.count) for t in declared(document.job)] == expected


@pytest.mark.parametrize(
    ("kind", "spec", "per_node", "processes"),
    [
        ("Job", "{template: POD}", 1, 1),
        ("PyTorchJob", "{nprocPerNode: '4', pytorchReplicaSpecs: {Worker: {replicas: 2, template: POD}}}", 4, None),  # noqa: E501
        ("PyTorchJob", "{elasticPolicy: {nProcPerNode: 4}, pytorchReplicaSpecs: {Worker: {template: POD}}}", 4, None),  # noqa: E501
        ("PyTorchJob", "{pytorchReplicaSpecs: {Worker: {replicas: 2, template: POD}}}", None, None),
        ("ClusterTrainingRuntime", "{mlPolicy: {torch: {}}, template: {spec: {replicatedJobs: [{template: {spec: {template: POD}}}]}}}", None, None),  # noqa: E501
        ("JobSet", "{replicatedJobs: [{template: {spec: {template: POD}}}]}", 1, 1),
    ],
)  # fmt: skip
def test_torchrun_is_told_by_the_operator(kind, spec, per_node, processes):
    _, view = one(manifest(kind, spec).replace("--nproc_per_node, '4', ", ""))
    for name, expected in (("processes_per_node", per_node), ("processes", processes)):
        value = view.get(("launch", name))
        assert value == expected if expected else "PET_" in value.why


@pytest.mark.parametrize(("asked", "per_node"), [("4", 4), ("auto", None), ("", None)])
def test_a_train_job_may_leave_numbers_to_its_runtime(asked, per_node):
    trainer = f"{{numNodes: 2, numProcPerNode: {asked}, resourcesPerNode: {LIMITS[11:]}, {COMMAND}}}"
    text = manifest("TrainJob", f"{{trainer: {trainer}}}").replace("--nproc_per_node, '4', ", "")
    document, view = one(text)
    assert [(t.name, t.count) for t in declared(document.job)] == [("gpu:8", 8)]
    value = view.get(("launch", "processes_per_node"))
    assert value == per_node if per_node else "PET_" in value.why
    (target,) = declared(one(text.replace("numNodes: 2", "x: 2"))[0].job) or [None]
    assert target is None


def test_what_a_template_puts_in_is_unknown():
    text = POD.replace("ARGS", "['--a={{ .Values.a }}', '--b=$B', '--c=${C}x', '--d=$$B', --e=1]")
    _, view = one(text)
    for key in ("a", "b", "c"):
        assert isinstance(view.get((key,)), Missing)
    assert (view.get(("d",)), view.get(("e",))) == ("$B", 1)
    script = (
        "run: |\n  torchrun --nproc_per_node {{ gpus }} t.py --a {% if x %}1{% endif %} --b 2\nworkdir: .\n"
    )
    _, view = one(script)
    assert isinstance(view.get(("launch", "processes_per_node")), Missing)
    assert isinstance(view.get(("a",)), Missing)
    assert view.get(("b",)) == 2


DSTACK = """\
type: task
nodes: 2
env: [A=1]
commands:
- pip install x
- torchrun --nproc-per-node=$DSTACK_GPUS_PER_NODE
  --nnodes=$DSTACK_NODES_NUM t.py --a $A
resources:
  gpu: GPU
"""


@pytest.mark.parametrize(
    ("gpu", "expected", "per_node"),
    [
        ("H100:8", [("h100-pcie:16", 16)], 8),
        ("nvidia:H100:8", [("h100-pcie:16", 16)], 8),
        ("A100:80GB:2", [("a100-80gb:4", 4)], 2),
        ("80GB:8", [("80gb:16", 16)], 8),
        ("24GB..48GB", [("24gb", None)], None),
        ("H100", [("h100-pcie", None)], None),  # one or more
        ("1..8", [], None),
        ("8", [("gpu:16", 16)], 8),
        ("A40,L40S:2", [("a40:4", 4), ("l40s:4", 4)], 2),
        ("{name: [A40, L40S], count: 2, memory: 40GB..}", [("a40:4", 4), ("l40s:4", 4)], 2),
        ("{count: 2..4}", [], None),
        ("tpu-v5e:8", [], None),
    ],
)
def test_what_a_dstack_task_asks_for(gpu, expected, per_node):
    document, view = one(DSTACK.replace("GPU\n", gpu + "\n"))
    assert [(t.name, t.count) for t in declared(document.job)] == expected
    value = view.get(("launch", "processes_per_node"))
    assert value == per_node if per_node else "DSTACK_GPUS_PER_NODE" in value.why
    assert view.get(("a",)) == 1


def test_the_memory_of_a_gpu_is_that_of_any_with_so_much_on_its_box():
    def vram(asked):
        (target,) = declared(one(DSTACK.replace("GPU\n", asked + "\n"))[0].job)
        return target.facts["gpu.vram"][0]

    sizes = [gpu.usable_mib * 2**20 for gpu in gpus() if gpu.nominal_gb == 24 and gpu.usable_mib]
    assert len(set(sizes)) > 1
    assert (vram("24GB").lo, vram("24GB").hi) == (min(sizes), max(sizes))
    assert (vram("24GB..").lo, vram("24GB..").hi) == (min(sizes), math.inf)
    assert vram("24GB..80GB").hi > 75 * 2**30


AZURE = """\
command: >-
  python t.py --a ${{inputs.a}} --b ${{inputs.b}}
inputs: {a: 1, b: {type: uri_folder}}
environment: azureml:x@latest
resources: {instance_count: 2, instance_type: Standard_ND96asr_v4}
distribution: {type: pytorch, process_count_per_instance: 8}
"""


def test_azure_starts_the_processes_itself():
    document, view = one(AZURE)
    assert [(t.name, t.count) for t in declared(document.job)] == [("a100-40gb-sxm:16", 16)]
    assert (view.get(("launch", "processes")), view.get(("launch", "processes_per_node"))) == (16, 8)
    assert AZURE[slice(*Trace(view, ("launch", "processes")).span)] == "8"
    assert (view.get(("a",)), isinstance(view.get(("b",)), Missing)) == (1, True)
    _, view = one(AZURE.replace("python t.py", "torchrun --nproc_per_node 4 t.py"))
    assert view.get(("launch", "processes_per_node")) == 4
    steps = "type: pipeline\njobs:\n  x:\n" + "".join(f"    {line}\n" for line in AZURE.splitlines())
    assert one(steps)[1].get(("launch", "processes")) == 16


@pytest.mark.parametrize(
    ("text", "expected", "processes"),
    [
        ("entrypoint: python3 -m determined.launch.torch_distributed python3 t.py --a 1\nresources: {slots_per_trial: 8}\n", [("gpu:8", 8)], 8),  # noqa: E501
        ("entrypoint: [python3, -m, determined.launch.deepspeed, python3, t.py, --a, '1']\nresources: {slots_per_trial: 8}\n", [("gpu:8", 8)], 8),  # noqa: E501
        ("entrypoint: torchrun --nproc_per_node 4 t.py --a 1\nresources: {slots_per_trial: 4}\n", [("gpu:4", 4)], 4),  # noqa: E501
        ("command: |\n  torchrun --nproc_per_node 8 t.py --a 1\ncompute: {gpus: 8, gpu_type: h100_80gb}\n", [("h100-pcie:8", 8)], 8),  # noqa: E501
        ("entrypoint: torchrun --nproc_per_node 4 t.py --a 1\ncompute_config: mine:1\n", [], 4),
    ],
)  # fmt: skip
def test_what_other_platforms_ask_for(text, expected, processes):
    document, view = one(text)
    assert [(t.name, t.count) for t in declared(document.job)] == expected
    assert (view.get(("a",)), view.get(("launch", "processes"))) == (1, processes)


def test_a_task_runs_a_script_that_is_here():
    asked = []

    def scripts(name):
        asked.append(name)
        return (
            "torchrun --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE t.py --a 1\n" if name == "go.sh" else None
        )

    text = "resources: {accelerators: A40:4}\nrun: |\n  cd x\n  bash go.sh\n"
    (document,) = read_text(text, "x.yaml", scripts=scripts).documents
    view = View(document, SHELL)
    assert (view.get(("a",)), view.get(("launch", "processes")), asked) == (1, 4, ["./x/go.sh", "go.sh"])
    assert text[document.root.start : document.root.end] == "go.sh"
    assert not Trace(view, ("a",)).editable


def test_many_aliases_of_pods_cost_no_more_than_the_text():
    pod = "metadata: &l0 {containers: [{command: [python, t.py, --a, '1']}]}"
    levels = ["", *(f"  l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 30))]
    bomb = f"apiVersion: v1\nkind: Pod\n{pod}\nspec:" + "\n".join(levels) + "\n"
    assert [d.format for d in read_text(bomb, "x.yaml").documents] == ["shell"]


PODS = f"{{template: {{spec: {{containers: [{', '.join(['{name: x, image: y}'] * 5000)}]}}}}}}"
KINDS = f"[{', '.join(['A40:1'] * 5000)}]"
MANY = ", ".join(["*a"] * 20000)
SCRIPT = "python t.py " + "--a 1 " * 10000


@pytest.mark.parametrize(
    "text",
    [
        f"apiVersion: v1\nkind: X\nx: &a {PODS}\nspec: {{workerGroupSpecs: [{MANY}]}}\n",
        f"type: task\nx: &a {SCRIPT}\ncommands: [{MANY}]\n",
        f"apiVersion: v1\nkind: Pod\nx: &a {SCRIPT}\nspec: {{containers: [{{command: [python, {MANY}]}}]}}\n",
        f"type: task\nx: &a {{A: {SCRIPT}}}\nenv: [{MANY}]\ncommands: [python t.py]\n",
        f"run: python t.py\nx: &a {{accelerators: {KINDS}}}\nresources: {{any_of: [{MANY}]}}\n",
        f"run: python t.py\nresources: {{accelerators: {KINDS}, any_of: [{', '.join(['{}'] * 9000)}]}}\n",
    ],
)
def test_what_stands_at_many_places_ends(text):
    with pytest.raises(OverBudgetError):
        read_text(text, "x.yaml")


def test_a_pytorch_job_is_its_master_and_its_workers():
    spec = (
        "{pytorchReplicaSpecs: {Master: {replicas: 1, template: POD}, Worker: {replicas: 3, template: POD}}}"
    )
    documents = read_text(manifest("PyTorchJob", spec, SELECTED), "x.yaml").documents
    assert len(documents) == 2
    assert {t.name for d in documents for t in declared(d.job)} == {"h100-sxm:16"}


def test_a_ray_job_runs_its_entry_point_on_all_workers():
    text = (
        "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  entrypoint: python -m verl.trainer.main_ppo trainer.nnodes=2\n"  # noqa: E501
        "  rayClusterSpec:\n    headGroupSpec: {template: {spec: {containers: [{name: h}]}}}\n    workerGroupSpecs:\n"  # noqa: E501
        f"    - {{replicas: 2, template: {{spec: {{containers: [{{name: w, {LIMITS}}}]}}}}}}\n"
    )
    document, view = one(text)
    assert view.get(("trainer", "nnodes")) == 2
    assert view.get(("launch", "job", "gpus")) == 8
    assert document.job.everywhere


def test_a_container_knows_its_own_environment():
    text = POD.replace("ARGS", "['--a=$(A)', '--b=$(B)', '--c=$(C)', '--d=$$(A)', --e=1]").replace(
        "    command", "    env: [{name: A, value: '8'}, {name: B, valueFrom: {x: y}}]\n    command"
    )
    _, view = one(text)
    assert view.get(("a",)) == 8
    assert text[slice(*Trace(view, ("a",)).span)] == "8"
    assert "set outside" in view.get(("b",)).why
    assert (view.get(("c",)), view.get(("d",))) == ("$(C)", "$(A)")


def test_the_image_of_a_server_is_its_command():
    text = POD.replace("    command: [python, t.py]\n", "    image: vllm/vllm-openai:v0.11.0\n")
    _, view = one(text.replace("ARGS", "[--model, Qwen/Qwen3-8B, --tensor-parallel-size, '2']"))
    assert (view.get(("launch", "suite")), view.get(("model",))) == ("vllm", "Qwen/Qwen3-8B")


@pytest.mark.parametrize(
    ("service", "gpus", "count"),
    [
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 4, capabilities: [gpu]}]}}}", 4, "4"),  # noqa: E501
        ("gpus: [{device_ids: ['0', '3']}]", 2, "4"),
        ("gpus: all", None, "4"),
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}", None, "4"),  # noqa: E501
        ("deploy: {replicas: 2}", None, "4"),
    ],
)  # fmt: skip
def test_what_a_compose_file_asks_for(service, gpus, count):
    commands = (
        f"torchrun --nproc_per_node {count} t.py --a ${{A:-1}} --b $B",
        f"[torchrun, --nproc_per_node, '{count}', t.py, --a, '${{A:-1}}', --b, $B]",
        'bash -c "torchrun --nproc_per_node $$N t.py --a ${A:-1} --b $B"',
    )
    for command in commands:
        text = f"services:\n  x:\n    image: y\n    {service}\n    environment: [N={count}]\n    command: {command}\n"  # noqa: E501
        document, view = one(text)
        assert (document.job is None) == (gpus is None)
        assert document.job is None or document.job.count("gpus") == gpus
        assert (view.get(("a",)), view.get(("launch", "processes"))) == (1, 4)
        assert "set outside" in view.get(("b",)).why


@pytest.mark.parametrize(
    ("line", "kind", "gpus"),
    [
        ("docker run --gpus 2 img python t.py --a 1", "", 2),
        ("docker run --gpus=2 img python t.py --a 1", "", 2),
        ("sudo docker run --gpus '\"device=0,1,3\"' img python t.py --a 1", "", 3),
        ("docker run --gpus device=0 img bash -lc 'cd /w && python t.py --a 1'", "", 1),
        ("docker run --gpus '\"device=0,1\",\"capabilities=compute\"' img python t.py --a 1", "", 2),
        ("runpodctl create pod --gpuType 'NVIDIA A40' --gpuCount 2 --imageName x --args 'python t.py --a 1'", "NVIDIA A40", 2),  # noqa: E501
        ("runpodctl create pod --gpuType 'NVIDIA A40' --args \"bash -c 'python t.py --a 1'\"", "NVIDIA A40", 1),  # noqa: E501
    ],
)  # fmt: skip
def test_what_a_container_gets(line, kind, gpus):
    document, view = one(line + "\n", "x.sh")
    assert view.get(("a",)) == 1
    assert (document.job.kind, document.job.count("gpus")) == (kind, gpus)


@pytest.mark.parametrize(
    "line", ["docker run --gpus all img python t.py --a 1", "docker run --gpus $N i python t.py"]
)
def test_all_gpus_of_a_machine_are_no_number(line):
    assert one(line, "x.sh")[0].job is None


def test_a_container_of_a_batch_job_is_on_its_gpus():
    (document,) = read_text("#SBATCH --gpus=a100:8\ndocker run --gpus 2 i python t.py\n", "x.sh").documents
    assert (document.job.kind, document.job.count("gpus")) == ("a100", 2)


def test_a_runpod_pod_may_come_with_any_of_its_gpus():
    text = '{"gpuTypeIds": ["NVIDIA A40", "NVIDIA L40S"], "gpuCount": 2, "dockerStartCmd": ["python", "t.py", "--a", "1"]}'  # noqa: E501
    assert targets(text, "x.json") == [("a40:2", 2, False), ("l40s:2", 2, False)]
    template = '{"imageName": "x", "dockerArgs": "bash -c \'python t.py --a 1\'", "env": [{"key": "A", "value": "1"}]}'  # noqa: E501
    document, view = one(template, "x.json")
    assert (view.get(("a",)), document.job) == (1, None)


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: ConfigMap\ndata: {x: python t.py}\n",
        "apiVersion: v1\nkind: Service\nspec: {ports: []}\n",
        "services:\n  db: {image: postgres, command: postgres -c x=1}\n",
        "run: {name: x}\nresources: {}\n",
        "resources: {accelerators: A40:1}\nrun: echo hello\n",
        "apiVersion: v1\nkind: List\nitems: [1, 2]\n",
        "gpuTypeIds: 7\n",
        "services: 1\n",
        "kind: [x]\napiVersion: {}\n",
    ],
)
def test_what_launches_nothing_stays_the_file_that_it_is(text):
    (document,) = read_text(text, "x.yaml").documents
    assert document.format == "yaml"
    assert document.job is None


NAMES = ["apiVersion", "kind", "spec", "template", "containers", "run", "services", "type", "commands", "nodes", "gpu",  # noqa: E501
         "entrypoint", "compute", "distribution", "workerGroupSpecs", "replicas", "leaderWorkerTemplate", "trainer", "resources", "accelerators", "command",  # noqa: E501
         "args", "env", "name", "value", "envs", "gpuTypeIds", "dockerStartCmd", "limits", "nvidia.com/gpu", "image"]  # fmt: skip  # noqa: E501
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 99), st.sampled_from([*NAMES, RUN, "Job", "Pod", "A40:8", "$(A) $$ ${A:-1}"])  # noqa: E501
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
)


@settings(max_examples=tried(300), deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), TREES, max_size=6))
def test_no_manifest_crashes_the_reader(tree):
    text = yaml.dump(tree)
    file = read_text(text, "x.yaml")
    for document in file.documents:
        if document.format == "shell":
            assert isinstance(document.root, Mapping)
            for node in walk(document.root):
                if type(node) is Scalar:
                    assert text[node.start : node.end] == node.text
        declared(document.job)


# ── the command line ───────────────────────────────────────────────────────────────────────────────────────
CASES = page_of("MEM104").files
TASK = CASES["bad_skypilot_task.yaml"]


def test_fit_judges_for_what_the_task_asks_for(folder, cfglint):
    (folder / "t.yaml").write_text(TASK.replace("RTX4090:4", "[RTX4090:4, H100:4]"))
    done = cfglint("fit", "t.yaml")
    assert "using the GPUs that the job asks for, rtx-4090:4 and h100-pcie:4" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == ["rtx-4090:4", "h100-pcie:4"]


def test_a_number_of_gpus_alone_leaves_memory_unknown(folder, cfglint):
    (folder / "t.yaml").write_text(TASK.replace("RTX4090:4", "SomeNewGpu:4"))
    done = cfglint("check", "t.yaml", "--verbose")
    assert (done.returncode, "MEM104 needs gpu.vram" in done.stdout) == (0, True)


def test_the_memory_that_a_job_asks_for_counts_where_it_names_no_gpu(folder, cfglint):
    script = "#SBATCH --gpus={}4\n#SBATCH --gres=gpumem:10g\ntorchrun --nproc_per_node 4 t.py --a 1\n"
    assert targets(script.format(""), "x.sh") == [("10.00gib:4", 4, True)]
    assert targets(script.format("some_new_gpu:"), "x.sh") == [("10.00gib:4", 4, True)]
    assert targets(script.format("rtx_4090:"), "x.sh") == [("rtx-4090:4", 4, False)]
    (target,) = declared(one("#SBATCH --gres=gpumem:10g\ntorchrun t.py --a 1\n", "x.sh")[0].job)
    assert (target.name, target.count) == ("10.00gib", None)
    vram, source = target.facts["gpu.vram"]
    assert (vram.lo, vram.hi, set(vram.needs)) == (10 * 2**30, math.inf, {"gpu.vram"})  # or a larger one
    assert source == "#SBATCH --gres=gpumem"
    (folder / "t.sh").write_text(CASES["ok_gpumem_more.sh"])
    done = cfglint("check", "t.sh", "--verbose")
    assert (done.returncode, "MEM104 needs gpu.vram" in done.stdout) == (0, True)


def test_without_tree_sitter_a_task_says_what_to_install(folder, cfglint, tmp_path_factory):
    hidden = tmp_path_factory.mktemp("hidden")
    (hidden / "tree_sitter_bash.py").write_text("raise ImportError('not here')\n")
    path = os.pathsep.join([str(hidden), str(Path(__file__).parents[1] / "linter")])
    (folder / "t.yaml").write_text(TASK)
    done = cfglint("check", "t.yaml", env={"PYTHONPATH": path})
    assert done.returncode == 2
    assert "pip install --force-reinstall tree-sitter" in done.stderr
    (folder / "c.yaml").write_text("cfglint: facts\nnum_gpus: 1\n")
    done = cfglint("check", ".", env={"PYTHONPATH": path})
    assert (done.returncode, done.stderr.count("pip install --force-reinstall tree-sitter")) == (0, 1)
    # Words of a list need no parser of bash.
    (folder / "k.yaml").write_text(CASES["bad_kubernetes_arguments.yaml"])
    assert "k.yaml:" in cfglint("check", "k.yaml", env={"PYTHONPATH": path}).stdout
