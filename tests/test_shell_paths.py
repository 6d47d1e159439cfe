"""How words, tests and other scripts are read: each script, and what the flags of its last launch come to."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.document.scalars import SHELL
from cfglint.document.tree import Mapping, Unresolved, child, target
from cfglint.document.view import View
from cfglint.engine.run import Run
from cfglint.lang.pack import load
from cfglint.lang.values import needs_of

LAUNCH = "torchrun t.py --learning_rate 1e-5"


def flags(script, **scripts):
    """Return the flags of the last launch: values, None where one is unknown."""
    file = read_text(
        script, "x.sh", scripts=lambda name: scripts.get(name.removeprefix("./").partition(".")[0])
    )
    root = file.documents[-1].root
    assert isinstance(root, Mapping)
    seen = View(file.documents[-1], SHELL)
    values = {}
    for key, entry in root.entries.items():
        unknown = isinstance(target(entry.value), Unresolved)
        if key not in ("launch", "learning_rate"):
            values[key] = None if unknown else seen.get((key,))
    return values


# What the words come to in bash, started in an empty environment.
WORDS = {
    "A=a\nB=b\nC=c\n{} --x $A/$B/$C --y z": {"x": "a/b/c", "y": "z"},
    "A=a\nB=b\n{} --x=$A/$B/d --y ${{A}}/$B.json": {"x": "a/b/d", "y": "a/b.json"},
    "A=a\nX=$A/$A/$A\n{} --x $X": {"x": "a/a/a"},
    'A=a\n{} --x $A$A$A/z --y "$A"/$A-$A': {"x": "aaa/z", "y": "a/a-a"},
    "A=a\n{} --x '$A/$A/b' --y \\$A/\\$A": {"x": "$A/$A/b", "y": "$A/$A"},
    "A=a\n{} --x $A/$U/b": {"x": None},
    "A=6\nB=3\n{} --x $(($A/$B*2))": {"x": 4},
    # What the grammar takes for a command's output: arithmetic in a default.
    'A=6\nB=${{C:-$((A * 2))}}\nD="${{C:-$((A+1))}}"\n{} --x $B --y $D --z ${{C:-$(true)}}': {
        "x": 12,
        "y": 7,
        "z": None,
    },
    # How scripts count the GPUs of a list, and change the letters of a name.
    'A=0,1,2\n{} --x $(echo $A | tr "," "\\n" | wc -l) --y $(echo "$A" | tr , " " | wc -w)': {"x": 3, "y": 3},
    "A=0,1,2\n{} --x $(echo $A | awk -F',' '{{print NF}}') --y $(echo $U | awk -F, '{{print NF}}')": {
        "x": 3,
        "y": None,
    },
    "A=0,1,2\n{} --x $(( $(echo ${{A}} | tr -cd ',' | wc -c) + 1 )) --y $(echo $A | grep -o , | wc -l)": {
        "x": 3,
        "y": None,
    },
    "A=Org/Model-7B\n{} --x $(echo $A | tr / _ | tr '[:upper:]' '[:lower:]')": {"x": "org_model-7b"},
    # No target has an Ascend NPU.
    "A=${{B:-$(python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu)}}\n{} --x $A": {"x": "gpu"},
    "A=$(npu-smi info > /dev/null 2>&1 && echo 16 || echo 8)\n{} --x $A": {"x": 8},
    "A=8\nif command -v npu-smi >/dev/null 2>&1; then A=16; fi\n{} --x $A": {"x": 8},
    'A=8\nD=${{D:-$(python -c "import torch_npu" && echo npu || echo gpu)}}\n'
    "case $D in npu) A=16;; gpu) ;; esac\n{} --x $A": {"x": 8},
    "A=$(nvidia-smi -L | wc -l || echo 8)\n{} --x $A": {"x": None},
    '{} --x $PWD/a --y $(pwd)/b --z "$(dirname "$0")"/../c': {"x": "./a", "y": "./b", "z": "./../c"},
    'D=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)\n{} --x $D/a.json': {"x": "./a.json"},
    'D=$(cd -- "$(dirname "$0")" >/dev/null 2>&1 ; pwd -P)\n{} --x $D/a.json': {"x": "./a.json"},
    "cd /data\n{} --x $PWD/a": {"x": "/data/a"},
    "cd sub\n{} --x $PWD/a": {"x": "./sub/a"},
    "{} --x $(basename $HOME/models/m-7b) --y $(basename /a/b.sh .sh)": {"x": "m-7b", "y": "b"},
    "{} --x $(dirname a/b/c) --y $(dirname c) --z $(echo 3)": {"x": "a/b", "y": ".", "z": 3},
    "N=3\n{} --x $(expr 16 / $N) --y `expr $N \\* 2` --z $(expr 1 / 0)": {"x": 5, "y": 6, "z": None},
    "{} --x ${{U:-3}} --y ${{SLURM_NNODES:-1}}": {"x": 3, "y": None},
    "A=(--x a* --y 3)\n{} ${{A[@]}} --z 1": {"x": None, "y": 3, "z": 1},
    'N=3\nA=(--x [0]*$N+[1]*$N --y $N)\n{} "${{A[@]}}" --z 1': {"x": None, "y": 3, "z": 1},
    'A="--x 1"\n{} $(echo $A) --y 2': {"x": 1, "y": 2},
    "{} --x 1 \\\n  `# how much` \\\n  --y 2": {"x": 1, "y": 2},
    # A variable that nobody set, behind a value, is rather further flags; one that is set may say anything.
    "{} --x 3 $U --y a $EXTRA_ARGS --z $V": {"x": 3, "y": "a", "z": None},
    'P=$U/a\nP="${{P:-b}}"\n{} --x ${{P:-c}} y=/a/*.b --z=/a/*.txt': {
        "x": None,
        "y": "/a/*.b",
        "z": "/a/*.txt",
    },
    "{} --x <MODEL_PATH> --y 2 --z <the model>/a < in > out": {"x": None, "y": 2, "z": None},
    "A=<PATH> \\ \n (e.g., /b)\n{} --y 2": {"y": 2},
    "{} --x $(dirname $U) --y $(hostname) --z ~/a": {"x": None, "y": None, "z": None},
}

TESTS = {
    '[ -z "$X" ] && X=4\n{} --x $X': {"x": 4},
    'if [ -z "$X" ]; then\n  X=4\nfi\n{} --x $X': {"x": 4},
    'F="--x 1"\nif [ -n "$X" ]; then\n  F="$F --y 2"\nfi\n{} $F': {"x": 1, "y": None},
    "A=a\nif [ $A = a ]; then X=1; else X=2; fi\n{} --x $X": {"x": 1},
    "A=abc\nif [[ $A == ab* ]]; then X=1; else X=2; fi\n{} --x $X": {"x": 1},
    'A=abc\nif [[ $A == "ab*" ]]; then X=1; else X=2; fi\n{} --x $X': {"x": 2},
    "N=8\nif [ $N -gt 4 ] && [ $N -lt 9 ]; then X=1; else X=2; fi\n{} --x $X": {"x": 1},
    "N=8\nif (( N >= 9 )); then X=1; elif (( N == 8 )); then X=3; else X=2; fi\n{} --x $X": {"x": 3},
    "A=b\ncase $A in a|b) X=1;; *) X=2;; esac\n{} --x $X": {"x": 1},
    "A=$U\ncase $A in a|b) X=1;; *) X=2;; esac\n{} --x $X": {"x": None},
    "X=1\nwhile [[ $# -gt 0 ]]; do case $1 in --x) X=$2; shift 2;; esac; done\n{} --x $X": {"x": 1},
    "X=1\nwhile getopts x: o; do X=$OPTARG; done\n{} --x $X": {"x": 1},
    'X=1\nfor a in "$@"; do X=$a; done\n{} --x $X': {"x": 1},
    "for X in 3; do {} --x $X; done": {"x": 3},
    "for X in 3 4; do {} --x $X; done": {"x": None},
    "if [ $# -lt 1 ]; then exit 1; fi\n{} --x 1": {"x": 1},
    'if [ -z "$1" ]; then echo usage; exit 1; fi\nX=$1\n{} --x $X': {"x": None},
    "if [ -f a ]; then X=1; else X=2; fi\n{} --x $X": {"x": None},
    "X=1\nif [ $U = a ]; then X=2; fi\n{} --x $X": {"x": None},
    "X=1\nuntil [ $X = 2 ]; do X=2; done\n{} --x $X": {"x": None},
}

LOOP = "f() {{ while [[ $# -gt 0 ]]; do case $1 in -x) X=$2; shift 2;; --) shift; break;; esac; done"
ARGUMENTS = {
    'f() {{ local n=$1; shift; {} --n $n "$@"; }}\nf 3 --z 4': {"n": 3, "z": 4},
    'set -- --a 1 --b 2\n{} "$@"': {"a": 1, "b": 2},
    "f() {{ while [ $# -gt 0 ]; do case $1 in -x) X=$2; shift 2;; esac; done; }}\nf -x 5\n{} --x $X": {
        "x": 5
    },
    "f() {{ {} --n $#; }}\nf a b": {"n": 2},
    f"{LOOP}; {{}} --x $X --y $#; }}}}\nf -x 5 -- --z 4": {"x": 5, "y": 2},
    # A loop that is left before what is not known; of that, how much there is at least.
    f'{LOOP}; O=("$@"); }}}}\nf -x 5 -- --y 2 --w "${{{{U[@]}}}}"\nA=()\n'
    'if [ ${{#O[@]}} -gt 0 ]; then A+=("${{O[@]}}"); fi\n{} --x $X "${{A[@]}}" --z 3': {
        "x": 5,
        "y": 2,
        "w": True,
        "z": 3,
    },
    'A=(1 "${{U[@]}}")\nif (( ${{#A[@]}} > 1 )); then X=1; else X=2; fi\n{} --x $X --y ${{#A[@]}}': {
        "x": None,
        "y": None,
    },
    "A=(1 2)\nB=abc\nif [ ${{#A[@]}} -lt 2 ]; then X=1; else X=2; fi\n{} --x $X --y ${{#A[@]}} --z ${{#B}}": {
        "x": 2,
        "y": 2,
        "z": 3,
    },
    "for a in 1; do if [ $a = 1 ]; then X=2; continue; fi; X=3; done\n{} --x $X": {"x": 2},
    "X=1\nfor a in 1; do if [ $U = 1 ]; then X=2; break; fi; X=3; done\n{} --x $X": {"x": None},
    "X=1\nbreak\n{} --x $X": {"x": 1},
    # However often another function was called.
    "l() {{ echo $*; shift; }}\n" + "l a\n" * 30 + 'f() {{ shift; l a; "$@"; }}\nf 1 {} --z 4': {"z": 4},
    "f() {{ if [ $U ]; then shift; fi; {} --n $1; }}\nf a b": {"n": None},
    # Arguments that are not known have a place all the same, if each is one word.
    'f() {{ local n="$1"; shift 2; "$@" > log & }}\nf $U "$V/log" env A=1 {} --z 4': {"z": 4},
    "f() {{ {} --x ${{1:-1}} --y ${{2:-2}} --z ${{3:-3}}; }}\nf $U 5": {"x": None, "y": 5, "z": 3},
    'f() {{ {} --x ${{1:-1}} --y ${{2:-2}}; }}\nf "${{U[@]}}" 5': {"x": None, "y": None},
    'f() {{ shift; {} "$@" --z 1; }}\nf "${{U[@]}}" 5': {"z": 1},
}


@pytest.mark.parametrize("script", [*WORDS, *TESTS, *ARGUMENTS])
def test_what_bash_makes_of_it(script):
    assert flags(script.format(LAUNCH) + "\n") == {**WORDS, **TESTS, **ARGUMENTS}[script]


OTHERS = {
    "source env.sh\n{} --x $X": ("X=5\n", {"x": 5}),
    ". ./env.sh\n{} --x $X": ("X=5\n", {"x": 5}),
    "X=1\nsource $(dirname $0)/env.sh\n{} --x $X": ("X=5\nexport Y=2\n", {"x": 5}),
    "X=1\nsource env.sh\n{} --x $X": ("return\nX=5\n", {"x": 1}),
    "X=1\nsource gone.sh\n{} --x $X": ("", {"x": 1}),
    "X=1\nsource $WORK/project/conf/env.sh\n{} --x $X": ("", {"x": 1}),
    "export X=1\nY=2\nbash env.sh 7": ("{} --x $X --y $Y --z $1\n", {"x": 1, "y": None, "z": 7}),
    "Z=3 sbatch -N 1 env.sh 7 8": ("{} --x ${{Z:-1}} --y $# \n", {"x": 3, "y": 2}),
    "./env.sh -x 9": ("while [ $# -gt 0 ]; do case $1 in -x) X=$2;; esac; shift; done\n{} --x $X", {"x": 9}),
    "cat > run.sh <<'E'\n{} --x $1\nE\nbash run.sh 4": ("", {"x": 4}),
    "cd sub && bash env.sh 3": ("{} --x $1 --y $PWD/a", {"x": 3, "y": "./sub/a"}),
    'C="{} --x 1"\necho "$C" | bash': ("", {"x": 1}),
    'C="{} --x 1"\nbash <<< "$C"': ("", {"x": 1}),
    "printf '{} --x 1' | sbatch -N 1": ("", {"x": 1}),
    "bash env.sh 4 5": (
        "read -r -d '' A <<E\n--x $1 --y \\$1 --z a-$2\nE\n{} $A", {"x": 4, "y": "$1", "z": "a-5"},
    ),
    "J=$(sbatch --parsable env.sh 4)": ("{} --x $1", {"x": 4}),
    "bsub -q long '{} --x 1'": ("", {"x": 1}),
    "gcloud compute ssh host --zone z --command='{} --x 1'": ("", {"x": 1}),
    "while ! {} --x 1; do sleep 1; done": ("", {"x": 1}),
    "A=$(cat <<E\n--x 1 \\\n--y $U\nE\n)\n{} $A --z 3": ("", {"x": 1, "y": None, "z": 3}),
    "A=$(cat <<'E'\n--x $U\nE\n)\n{} $A --z 3": ("", {"x": "$U", "z": 3}),
    "N=2\ncat <<E | sbatch\n{} --x $N --y \\$N\nE": ("", {"x": 2, "y": 2}),
    "sbatch <<E\nsrun {} --x 1\nE": ("", {"x": 1}),
    "sbatch --wrap='{} --x 1'": ("", {"x": 1}),
    "ssh -p 22 host 'cd a && {} --x 1'": ("", {"x": 1}),
    "parallel -j 2 {} --x {{}} --y 2 ::: 3 4": ("", {"x": None, "y": 2}),
    "#SBATCH --gres=gpu:4\n#SBATCH -c 8\n#SBATCH --job-name=j\n"
    "{} --x $SLURM_GPUS_ON_NODE --y $SLURM_CPUS_PER_TASK --z $SLURM_JOB_NAME": (
        "", {"x": 4, "y": 8, "z": "j"},
    ),
    "#SBATCH --job-name=%x\n{} --x $SLURM_JOB_NAME --y $SLURM_GPUS_PER_NODE": ("", {"x": None, "y": None}),
    "echo 1 2 | xargs -n 1 -I N {} --x N --y 2": ("", {"x": None, "y": 2}),
}  # fmt: skip


@pytest.mark.parametrize("folder", ["/work/me/project", "$WORK/project", "$WORK/$ME/project"])
def test_a_script_of_a_checkout_elsewhere_is_the_one_that_is_here(folder):
    script = f"X=1\nsource {folder}/conf/env.sh\n{LAUNCH} --x $X\n"
    assert flags(script, **{"conf/env": "X=5\n"}) == {"x": 5}
    assert flags(script, env="X=5\n") == {"x": 1}, "a name alone is no place"


@pytest.mark.parametrize("script", OTHERS)
def test_scripts_in_scripts(script):
    other, expected = OTHERS[script]
    assert flags(script.format(LAUNCH) + "\n", env=other.format(LAUNCH)) == expected


OWN_LAUNCH = 'FLAGS="t.py --learning_rate 1e-5"\n{test}\n'
UNLESS = 'if [[ ${1} != "slurm" ]]; then torchrun $FLAGS --x 1; fi'
CASE = "case $MODE in\na) torchrun $FLAGS --x 1;;\n*) torchrun $FLAGS --x 2;;\nesac"


@pytest.mark.parametrize(
    ("caller", "test", "starts"),
    [
        ("source ./env.sh slurm", UNLESS, [3]),
        ("source ./env.sh local", UNLESS, [1, 3]),
        ("source ./env.sh", UNLESS, [1, 3]),  # with the arguments of the script itself
        ("source ./env.sh slurm", "[[ $1 == slurm ]] && return\ntorchrun $FLAGS --x 1", [3]),
        ("MODE=a\nsource ./env.sh", CASE, [1, 3]),
        ("MODE=b\nsource ./env.sh", CASE, [2, 3]),
        ("source ./env.sh", CASE, [1, 2, 3]),
    ],
)
def test_a_script_that_another_calls_starts_what_it_does_for_that_one(caller, test, starts):
    file = read_text(
        f"{caller}\ntorchrun $FLAGS --x 3\n", "x.sh", scripts=lambda name: OWN_LAUNCH.format(test=test)
    )
    assert [View(each, SHELL).get(("x",)) for each in file.documents] == starts


def test_what_a_function_is_called_with_decides_what_it_starts():
    body = f"local how=$1\nif [ $how = test ]; then {LAUNCH} --x 1; else {LAUNCH} --x 2; fi"
    file = read_text(f"run() {{\n{body}\n}}\nrun train\n", "x.sh")
    assert [View(each, SHELL).get(("x",)) for each in file.documents] == [2]


@pytest.mark.parametrize(
    "command",
    [
        "uv run t.py",
        "$PYTHON t.py",
        '"$PYTHON_BIN" -u t.py',
        "$(which torchrun) t.py",
        "$(command -v python) t.py",
        "viztracer -o out t.py",
        "accelerate-launch t.py",
        "horovodrun -np 4 python t.py",
        "hatch run python t.py",
        "gdb --args python t.py",
        "uv run --isolated --env-file .env --extra a -m t.py",
        "python -m coverage run -a t.py",
        "python -m debugpy --listen 5678 --wait-for-client t.py",
        "nsys profile -o out python t.py",
        "torchrun --no-python python t.py",
        "torchrun -m coverage run t.py",
        "python $U/t.py",
        "$U/bin/python $(dirname $0)/t.py",
        "colossalai run --nproc_per_node 8 t.py",
    ],
)
def test_the_program_is_the_one_that_runs(command):
    (document,) = read_text(f"{command} --learning_rate 1e-5 --x 1\n", "x.sh").documents
    program = target(child(child(document.root, "launch"), "program"))
    assert program.text.rpartition("/")[2] == "t.py"
    assert View(document, SHELL).get(("x",)) == 1


# A launch of a program of one's own, and what is read of it; None is unknown.
ADAPTERS = {
    "--lora_r 8": ("lora_rank", 8),
    "--lora_enable True --lora_r 8": ("lora_rank", 8),
    "--lora_enable False --lora_r 8": ("lora_rank", 0),
    "--use_peft_lora True": ("lora_rank", None),
    "--use_llm_lora 16 --freeze_llm True": ("lora_rank", 16),
    "--freeze_backbone True": ("lora_rank", 0),
    "--freeze_backbone False": ("lora_rank", 0),
    "--seed 1": ("lora_rank", 0),
    "--use_4bit_quantization True": ("quantization", "4"),
    "--bits 8": ("quantization", "8"),
    "--double_quant": ("quantization", None),
    "--fp8 True": ("fp8_training", True),
}
OWN = (
    "accelerate launch t.py --model_name_or_path $HOME/m/Llama-2-7b-hf --output_dir o"
    " --per_device_train_batch_size 2"
)


@pytest.mark.parametrize("more", ADAPTERS)
def test_what_a_program_of_ones_own_adapts(more):
    run = Run(load())
    (subject,) = run.subjects(read_text(f"{OWN} --bf16 True {more}\n", "x.sh"), judge_broken=True)
    assert subject.framework == "transformers"
    values = run.on(None, subject).values
    fact, expected = ADAPTERS[more]
    value = None if needs_of(values[fact]) else values[fact]
    assert value == expected or str(value) == expected
    assert needs_of(values["model_path"])
    assert values["model.layers"] == 32  # the folder is not known, the model is


USER = {
    "deepspeed main.py --model_name_or_path x/y --zero_stage 3 --deepspeed --lora_dim 128 --max_seq_len 512"
    " --per_device_train_batch_size 4 --learning_rate 1e-5": (4, 512, 128, 3),
    "python dist_train.py --pretrain x/y --lr 1e-5 --train-batch-size-per-device 2 --seq-len 99": (
        2,
        99,
        0,
        None,
    ),
    "colossalai run --nproc_per_node 4 train_dpo.py --pretrain x/y --max_length 77 --zero_stage 2": (
        None,
        77,
        0,
        2,
    ),
    "python -m a.train model.name_or_path=x/y optim.lr=1e-5 data.micro_batch_size_per_gpu=3": (
        3,
        None,
        0,
        None,
    ),
}


@pytest.mark.parametrize("command", USER)
def test_programs_that_no_framework_knows(command):
    run = Run(load())
    (subject,) = run.subjects(read_text(f"{command}\n", "x.sh"), judge_broken=True)
    assert subject.framework == "user_script"
    values = run.on(None, subject).values
    names = ("micro_batch_size", "seq_len", "lora_rank", "zero_stage")
    assert tuple(None if needs_of(values[name]) else values[name] for name in names) == USER[command]
    assert needs_of(values["optimizer"])  # a default of the program, which is not here


# What tells a program of one's own that trains: how it is started, what it is called, what it is told.
CLAIMED = {
    "torchrun --nproc_per_node 4 finetune.py --foo 1": ("user_script", 4),
    "torchrun --nproc_per_node 4 $SCRIPT --lr 1e-5": ("user_script", 4),
    "deepspeed --num_gpus 2 --module pkg.sft --config $CONFIG": ("user_script", 2),
    "colossalai run --nproc_per_node 4 train.py --lr 1": ("user_script", 4),
    "colossalai run --nproc_per_node 4 --host a,b train.py --lr 1": ("user_script", 8),
    "colossalai run --nproc_per_node 4 --hostfile f train.py --lr 1": ("user_script", None),
    "composer -n 8 train.py --lr 1": ("user_script", 8),
    "composer --nproc 8 --world_size 16 train.py --lr 1": ("user_script", 16),
    "mpirun -np 4 python train.py --config c.yaml": ("user_script", 4),
    "torchrun --nproc_per_node 4 evaluate.py --lr 1e-5": (None, None),
    "python evaluate.py --model x/y --batch_size 4": (None, None),
    "python train.py --foo 1": (None, None),
    "vllm serve x/y": ("vllm", None),
}


@pytest.mark.parametrize("command", CLAIMED)
def test_what_tells_a_program_that_trains(command):
    run = Run(load())
    subjects = run.subjects(read_text(f"{command}\n", "x.sh"), judge_broken=True)
    framework, number = CLAIMED[command]
    assert [subject.framework for subject in subjects] == [framework] * (framework is not None)
    if framework == "user_script":
        gpus = run.on(None, subjects[0]).values["train_gpus"]
        assert (None if needs_of(gpus) else gpus) == number


def test_what_is_typed_makes_no_job():
    run = Run(load(), overrides=["lr=1e-5"])
    assert run.subjects(read_text("torchrun main.py --foo 1\n", "x.sh"), judge_broken=True) == []
