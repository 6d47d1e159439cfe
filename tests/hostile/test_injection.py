"""What a file's name or text says is shown, never obeyed: by a terminal, or by the runner of a workflow."""

import re
from subprocess import CompletedProcess

import pytest

from tiers import in_turn, mostly_long

# GitHub's runner takes `::name …::` where a line begins, after blanks, and `##[name]` anywhere.
COMMANDS = (
    "::error::pwned",
    "::stop-commands::x",
    "##[set-output name=x]pwned",
    "##vso[task.complete result=Succeeded;]",
    "::add-mask::a",
)
TRL = (
    "model_name_or_path: x\nper_device_train_batch_size: {0}\nnum_train_epochs: 1\noutput_dir: out\n{1}: 2\n"
)
BAD = "a: [1\n"


def orders(done):
    """Return the lines of a run that a terminal or a runner would obey."""
    lines = (done.stdout + done.stderr).splitlines()
    text = [line for line in lines if line.lstrip().startswith("::") or re.search(r"##\w*\[", line)]
    return text + [line for line in lines if not line.replace("\t", "").isprintable()]


NAMES = [
    *(f"{command}.yaml".replace("/", "") for command in COMMANDS),
    *(f"x\n{command}.yaml" for command in COMMANDS),
    "a\x1b[2Jb.yaml",
    "a\x9b2Jb.yaml",
    "a\rb.yaml",
    "a\u202eb.yaml",
    "a\u2028::error::b.yaml",
    "a\x85::error::b.yaml",
    "a\x0b::error::b.yaml",
]


@pytest.mark.parametrize("name", mostly_long(NAMES, 5))
def test_names_of_files(strange, name):
    texts = (BAD, "no: config\n", TRL.format("many", "zz"), b"\xff\xfe", "\0")
    number = NAMES.index(name)
    for text in in_turn(texts, number, len(texts)):
        strange.write({name: text})
        commands = (
            ["check", name], ["check", "."], ["check", "--format", "concise"], ["fix", name], ["fit", name],
            ["check", "--rules", name], ["check", f"{name}.gone"], ["diagnose", name], ["frameworks", name],
            ["check", "--settings", name], ["compare", name, name], ["test", name],
        )  # fmt: skip
        for words in in_turn(commands, number // len(texts), 2):
            assert orders(strange.run(*words)) == [], words
    strange.write({name: TRL.format("many", "zz")})
    for form in ("text", "sarif", "junit"):
        strange.run("check", name, "--format", form, "--output-file", "said")
        assert orders(CompletedProcess([], 0, (strange.repo / "said").read_text(), "")) == [], form
    assert orders(strange.run("explain", "CFG009", name, "--format", "json")) == []
    (strange.repo / name).unlink()


VALUES = [*COMMANDS, "a\x1b[2J", "a\\x1b[2J", "a\u202eb", "x\\n::error::y", "x\\r\\n##[error]y", "a\x85b"]


@pytest.mark.parametrize("value", mostly_long(VALUES, 5))
def test_texts_of_files(strange, value):
    quoted = '"' + value.replace('"', "") + '"'
    strange.write(
        {
            "train.yaml": TRL.format(quoted, quoted),
            "cfglint.toml": f"frameworks = {{ {quoted} = 'trl' }}\n".replace("\\r", "").replace("\\x1b", ""),
            "x.rules": f"rule ABC001 x error {{ $.a <= 1\n say {quoted} }}\nrule {value} y {{}}\n",
            "run.sh": f"accelerate launch train.py --lr {quoted} --config {quoted}\n",
            "a.log": f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {value}\n",
        }
    )
    commands = (
        *(["check", "--format", form] for form in ("concise", "markdown", "gitlab", "json", "junit")),
        ["check"], ["check", "-v"], ["check", "--rules", "x.rules"], ["check", "run.sh"],
        ["check", "--gpu", value],
        ["check", "--isolated", "--framework", "trl", "train.yaml"], ["check", "--isolated", f"--{value}"],
        ["check", "--rule", f"$.{quoted} <= 1"], ["check", "--select", value], [value],
        ["fit", "train.yaml"], ["compare", "train.yaml", "train.yaml"], ["explain", "CFG009", "train.yaml"],
        ["test", "x.rules"], ["rules", "--rules", "x.rules"], ["diagnose", "a.log"], ["frameworks", "."],
    )  # fmt: skip
    for words in in_turn(commands, VALUES.index(value), 3):
        assert orders(strange.run(*words)) == [], words
