"""Programs that start commands on a platform's GPUs: Modal's functions and SageMaker's estimators."""

import pytest

from cfglint.document.reading import read_text
from cfglint.document.scalars import SHELL
from cfglint.document.tree import Missing, Scalar, walk
from cfglint.document.view import View
from cfglint.errors import OverBudgetError
from cfglint.hardware.host import declared

HEAD = "import modal, shlex, subprocess\nN = 8\napp = modal.App('x')\n"


def views(text):
    return [(d, View(d, SHELL)) for d in read_text(text, "x.py").documents]


def modal(body, gpu='"H100:8"'):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}@app.function(gpu={gpu}, timeout=9)\ndef train(cfg: str):\n{lines}"


@pytest.mark.parametrize(
    "body",
    [
        'subprocess.run(["torchrun", f"--nproc_per_node={N}", "t.py", "--a", "1", "--in", cfg], check=True)',
        'subprocess.run(f"torchrun --nproc_per_node {N} t.py --a 1 --in {cfg}", shell=True)',
        'subprocess.check_call(shlex.split(f"torchrun --nproc_per_node {N} t.py --a 1 --in {cfg}"))',
        'subprocess.Popen(("torchrun --nproc_per_node 8 t.py --a 1 --in " + cfg).split())',
        'import os\nos.system("cd /x && torchrun --nproc_per_node 8 t.py --a 1 --in " + cfg)',
        'c = ["torchrun", "--nproc_per_node", str(N), "t.py"]\nc += ["--a", "1", "--in"]\nc.append(cfg)\nGO(c)',  # noqa: E501
        'c = ["t.py", "--a", "1"] + ["--in", cfg]\nGO(" ".join(["torchrun --nproc_per_node 8", *c]), shell=True)',  # noqa: E501
        'subprocess.run(["bash", "-c", "torchrun --nproc_per_node 8 t.py --a 1 --in $CFG"])',
    ],
)
def test_what_a_function_of_modal_runs(body):
    text = modal(body.replace("GO", "subprocess.run"))
    ((document, view),) = views(text)
    assert [(t.name, t.count) for t in declared(document.job)] == [("h100-pcie:8", 8)]
    assert (view.get(("launch", "processes")), view.get(("a",))) == (8, 1)
    assert isinstance(view.get(("in",)), Missing)
    assert not [node for node in walk(document.root) if type(node) is Scalar]  # nothing is edited


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ('"H100"', [("h100-pcie:1", 1)]),
        ('f"H100:{N // 2}"', [("h100-pcie:4", 4)]),
        ('["H100:2", "A100-80GB:2"]', [("h100-pcie:2", 2), ("a100-80gb:2", 2)]),
        ('modal.gpu.A100(count=2, size="80GB")', [("a100-80gb:2", 2)]),
        ("modal.gpu.H100(count=cfg)", [("h100-pcie", None)]),
    ],
)  # fmt: skip
def test_what_a_function_of_modal_is_on(gpu, expected):
    text = modal('subprocess.run(["torchrun", "t.py", "--a", "1"])', gpu)
    ((document, _),) = views(text)
    assert [(t.name, t.count) for t in declared(document.job)] == expected


@pytest.mark.parametrize("gpu", ['"any"', "None", 'os.environ["GPU"]', "7"])
def test_what_runs_on_no_gpu_that_is_named_is_not_read(gpu):
    assert views(modal('subprocess.run(["torchrun", "t.py", "--a", "1"])', gpu)) == []


def test_a_class_and_a_cluster_of_modal():
    text = HEAD + (
        "def go(command, folder):\n    subprocess.call(command.split(), cwd=folder)\n"
        '@app.cls(gpu="A100-80GB:2")\nclass S:\n    @modal.enter()\n    def start(self):\n'
        '        c = ["vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2"]\n'
        '        if self.x:\n            c += ["--enforce-eager"]\n        go(" ".join(c), ".")\n'
        '@app.function(gpu="B200:8")\n@modal.experimental.clustered(size=2)\ndef train():\n'
        '    go("torchrun --nnodes 2 --nproc_per_node 8 t.py --a 1", ".")\n'
    )
    (server, seen), (trainer, view) = views(text)
    assert [(t.name, t.count) for t in declared(server.job)] == [("a100-80gb:2", 2)]
    assert (seen.get(("model",)), seen.get(("tensor-parallel-size",))) == ("Qwen/Qwen3-8B", 2)
    assert isinstance(seen.get(("enforce-eager",)), Missing)
    assert [(t.name, t.count) for t in declared(trainer.job)] == [("b200:16", 16)]
    assert view.get(("launch", "processes")) == 16


ESTIMATOR = """\
from sagemaker.huggingface import HuggingFace
values = {"model_id": "Qwen/Qwen3-8B", "per_device_train_batch_size": 2, "bf16": True}
values["a"] = 1
HuggingFace(entry_point="t.py", source_dir="./scripts", instance_type="ml.p4d.24xlarge", instance_count=2,
    hyperparameters=values, distribution={"torch_distributed": {"enabled": True}}).fit()
"""


def test_an_estimator_of_sagemaker():
    ((document, view),) = views(ESTIMATOR)
    assert [(t.name, t.count) for t in declared(document.job)] == [("a100-40gb-sxm:16", 16)]
    assert [view.get(("launch", key)) for key in ("launcher", "program", "nodes")] == ["torchrun", "t.py", 2]
    assert [view.get((key,)) for key in ("per_device_train_batch_size", "bf16", "a")] == [2, True, 1]
    assert document.folder.endswith("scripts")
    assert not [node for node in walk(document.root) if type(node) is Scalar]
    alone = ESTIMATOR.replace(', distribution={"torch_distributed": {"enabled": True}}', "")
    assert views(alone)[0][1].get(("launch", "launcher")) == "python"
    other = ESTIMATOR.replace("torch_distributed", "smdistributed")
    assert isinstance(views(other)[0][1].get(("launch", "processes")), Missing)


@pytest.mark.parametrize(
    "change",
    [
        ("hyperparameters=values", "hyperparameters=load()"),
        ("hyperparameters=values", "hyperparameters={**values, **load()}"),
        ('"ml.p4d.24xlarge"', "machine()"),
        ("HuggingFace(", "HuggingFace(**options, "),
    ],
)
def test_an_estimator_that_is_not_known_is_not_read(change):
    assert views(ESTIMATOR.replace(*change)) == []


@pytest.mark.parametrize(
    "body",
    [
        "c = ['python', 't.py']\n" + "c = c + c\n" * 40 + "subprocess.run(c)",
        "c = ['python', 't.py']\n" + "c += c\n" * 40 + "subprocess.run(c)",
        "c = 'python t.py'\n" + "c = f'{c} {c} {cfg}'\n" * 40 + "subprocess.run(c, shell=True)",
        "c = 'python t.py ' + cfg\n" + "c = c + c\n" * 40 + "subprocess.run(c, shell=True)",
        "\n".join("subprocess.run(['python', 't.py', '--a', cfg])" for _ in range(3000)),
    ],
)
def test_what_doubles_itself_ends(body):
    try:
        documents = read_text(modal(body), "x.py").documents
    except OverBudgetError:
        return
    assert len(documents) <= 1000
