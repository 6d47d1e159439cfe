"""Launch scripts: words as bash makes them, launches as trees, edits at the value's definition."""

import shutil
import subprocess
import textwrap

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cfglint.document.edits import insert_key, replace_value
from cfglint.document.job import read_job
from cfglint.document.reading import read, read_text
from cfglint.document.scalars import SHELL
from cfglint.document.shell.run import Runner
from cfglint.document.trace import Trace
from cfglint.document.tree import Alias, Mapping, Scalar, Several, walk
from cfglint.document.view import Missing, View
from cfglint.text import apply_edits
from tiers import tried

BASH = shutil.which("bash")
UNKNOWN = object()


def words(script, command="show"):
    runner = Runner()
    runner.script(textwrap.dedent(script))
    return [
        [UNKNOWN if word.text is None else word.text for word in one.words[1:]]
        for one in runner.commands
        if one.words and one.words[0].text == command
    ]


def real_words(script, folder, arguments=()):
    """Return what bash itself hands to ``show``."""
    told = 'show() { printf "\\x01"; for w in "$@"; do printf "%s\\x02" "$w"; done; }\n'
    done = subprocess.run(
        [BASH, "-c", told + script, "script", *arguments],
        cwd=folder,
        capture_output=True,
        timeout=20,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    calls = done.stdout.decode("utf-8", "replace").split("\x01")[1:]
    return [call.split("\x02")[:-1] for call in calls]


SCRIPTS = [
    "A=8\nshow $A ${A} \"$A\" '$A' x$A.y",
    "show ${A:-8} ${A-9} ${B:=7} $B ${B:+set}",
    'A=\nshow ${A:-8} ${A-9} "$A" $A end',
    "A='1  2'\nshow $A \"$A\" x$A",
    'A=(1 \'2 3\' $((4+1)))\nA+=(--x "y z")\nshow "${A[@]}" ${A[1]} ${A[@]}',
    'A=a; A+=b; A+=" c"\nshow $A "$A"',
    "A=6; B=4\nshow $((A * B + 2)) $(($A / 4)) $((-7 / 2)) $((-7 % 3)) $((2 ** 5))",
    'show a\\ b "a\\"b" \'a"b\' "a\\nb" "c\\$d" $\'t\\tx\' a\'b\'"c"',
    'A="--x 1"\nB="\\\n  --y 2 \\\n"\nshow $A \\\n  $B',
    'A="--x 1"\nC=" \\\n  $A \\\n  $A \\\n  ${A} \\\n  $(echo z) \\\n"\nshow $C',
    'D=a\nA=(\n  one\n  "d=${V:-[\\"${D}/t1\\",\\"${D}/t2\\"]}"\n  two\n)\nshow "${A[@]}"\nshow ${E:=[x]} $E',
    "show one \\\n  two \\\n  three # four\nshow '#' a#b",
    "read -r -d '' T <<EOF\n  --a 1 \\\n  --b \"2\" \nEOF\nshow $T",
    "X=3\nread -r -d '' T <<EOF\n--a $X --b ${Y:-5} \\$Z\nEOF\nshow $T \"$T\"",
    "read -r -d '' T <<'EOF'\n--a $X\nEOF\nshow $T",
    "f() { show \"$1\" $2; }\nf 'a b' c\nf x",
    "f() { show \"$@\" end; }\nf 'a b' c\nf",
    "A=1\nf() { local A=2 B=3; local C; C=4; show $A $B $C; }\nf\nshow $A ${B:-5} ${C:-6}",
    "A=1\nf() { declare A=2; declare -g B=3; A=4; }\nf\nshow $A $B",
    "A=1\nf() { local A=2; g; show $A; }\ng() { show $A; A=3; }\nf\nshow $A\nf\nshow $A",
    "f() { local A=$1; if [ $A = 1 ]; then local B=2; fi; return; }\nf 1\nshow ${A:-7} ${B:-8}",
    "show [\\] a[\\]b [a] x",
    'E=()\nshow "${E[@]}" end ${E[@]} ""',
    'A=1\nif [ -n "$NOPE" ]; then A=2; exit 1; fi\nshow $A',
    "A=1\n(A=2; show $A)\nshow $A",
    'A=1; unset A\nshow "$A" ${A:-2}',
    "export A=1 B='2 3'\nreadonly C=4\ndeclare -a D=(5 6)\nshow $A $B $C ${D[@]}",
    'CMD="show --a 1 \\\n --b 2"\n$CMD --c',
    'A=x B=y\nshow $A$B ${A}_${B} "${A} $B"',
    'L="p q"\nM="$L r"\nshow $M',
    "eval \"show a 'b c'\"",
    'A=1\neval "A=2"\nshow $A',
    "show --k=v --f='a b' \"--g=$A\"",
    "A=1 B=2\nshow $A $B",
    "A=1\nB=2 C=3\n\nD=4 show $A $B",
    'show ä é "ü x" 日本',
    "A=2\nshow --x 1 \\ \\\n --y $A 'a \\ b' \"c \\ d\" \\ \nshow 3 \\ b",
    'A="x \\ y"\nshow "$A" $A',
    'A=2\nshow a 2> /dev/null b "c $A" < /dev/null e\ntrue && show x </dev/null y \\\n  z',
]


def test_what_a_person_has_to_put_in_is_a_word():
    """To bash it is a redirection from one file and to another."""
    assert words("show --data <my folder> --lr 1 > log") == [["--data", UNKNOWN, "--lr", "1"]]


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize("script", SCRIPTS)
def test_words_are_those_of_bash(script, tmp_path):
    ours, real = words(script), real_words(script, tmp_path)
    assert len(ours) == len(real)
    compared = 0
    for mine, theirs in zip(ours, real, strict=True):
        if UNKNOWN not in mine:
            assert mine == theirs
            compared += 1
        elif len(mine) == len(theirs):
            known = [(m, t) for m, t in zip(mine, theirs, strict=True) if m is not UNKNOWN]
            assert all(m == t for m, t in known)
            compared += bool(known)
    assert compared, "this test would compare nothing"


NAMES = st.sampled_from(["A", "B", "C"])
PLAIN = st.text("ab1-_./=, ", max_size=6)


@st.composite
def atoms(draw):
    """One word of a script, in one of the ways of quoting."""
    kind = draw(st.integers(0, 7))
    name, text = draw(NAMES), draw(PLAIN)
    bare = text.replace(" ", "") or "w"
    return (
        f"${name}",
        f"${{{name}}}",
        f'"{text}${name}"',
        f"'{text}'",
        f"{bare}${{{name}:-{bare}}}",
        '"${L[@]}"',
        f"$(({draw(st.integers(0, 9))} {draw(st.sampled_from('+-*'))} {draw(st.integers(0, 9))}))",
        f'--x="{text}"',
    )[kind]


@st.composite
def scripts(draw):
    """A small script that assigns and shows."""
    lines = ["L=(1 '2 3')"]
    for _ in range(draw(st.integers(1, 5))):
        name = draw(NAMES)
        value = " ".join(draw(st.lists(atoms(), min_size=1, max_size=3)))
        kind = draw(st.integers(0, 6))
        ways = draw(st.permutations(["a*) A=$1; shift;;", "--) shift; break;;", "*1*) shift; continue;;"]))
        loop = f"while [ $# -gt 0 ]; do case $1 in {' '.join(ways)} *) B=$#; shift;; esac; C+=$1; done"
        lines.append(
            (
                f'f() {{ {loop}; L=("$@"); }}\nf {value}',
                f"{name}={draw(atoms())}",
                f"{name}+={draw(atoms())}",
                f"L+=({value})",
                f"L=({value})",
                f'if [ -n "$NOPE" ]; then {name}=9; else {name}={draw(atoms())}; fi',
                f"show {value}",
            )[kind]
        )
    lines.append('show $A "$B" ${C} "${L[@]}"')
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(BASH is None, reason="no bash")
@settings(max_examples=tried(60), deadline=None)
@given(scripts())
def test_known_words_of_random_scripts_are_those_of_bash(script):
    ours, real = words(script), real_words(script, "/nonexistent" if BASH is None else "/usr/share")
    assert len(ours) == len(real), script
    for mine, theirs in zip(ours, real, strict=True):
        if UNKNOWN not in mine:
            assert mine == theirs, script


@pytest.mark.parametrize(
    "script",
    [
        "show $1",
        "show $(nproc)",
        "show `nproc`",
        "show *.py",
        "show ~/x",
        "show {a,b}",
        "if x; then A=1; else A=2; fi\nshow $A",
        "for A in 1 2; do show $A; done",
        "A=1\nfor i in 1 2; do A=$i; done\nshow $A",
        "read A\nshow $A",
        "case $1 in a) A=1;; b) A=2;; esac\nshow $A",
        '[ -n "$X" ] && A=1\nshow $A',
        "show ${A%.*}",
        "A=1\n((A++))\nshow $A",
        "show $NUM_GPUS",
    ],
)
def test_what_the_script_does_not_tell_is_unknown(script):
    assert [UNKNOWN] in words(script)


def view(script, path="run.sh", index=0):
    file = read_text(textwrap.dedent(script), path)
    return file, View(file.documents[index], SHELL)


def value(script, path):
    return view(script)[1].get(tuple(path.split(".")))


LAUNCHES = [
    ("deepspeed --num_gpus 4 train.py --a 1", "deepspeed", "train.py", 4),
    ("deepspeed --num_gpus=$N --module pkg.mod --a 1", "deepspeed", "pkg.mod", None),
    ("deepspeed --include localhost:0,1,2 train.py --a 1", "deepspeed", "train.py", 3),
    ("torchrun --nproc_per_node=8 --nnodes 2 train.py --a 1", "torchrun", "train.py", 16),
    ("torchx run -s slurm dist.ddp -j 2x8 --gpu 8 --script train.py -- --a 1", "torchrun", "train.py", 16),
    ("N=2 G=4; torchx run dist.ddp -j ${N}x$G -m x.train -- --a 1", "torchrun", "x.train", 8),
    ("torchx run dist.ddp -j 4 --script train.py -- --a 1", "torchrun", "train.py", 4),
    ("torchx run dist.ddp --script train.py -- --a 1", "torchrun", "train.py", 2),
    ("torchx run dist.ddp -j 1:4x8 --script train.py -- --a 1", "torchrun", "train.py", None),
    ("torchx run dist.ddp -j ${N}x8 --script train.py -- --a 1", "torchrun", "train.py", None),
    ("torchrun --standalone --nproc-per-node 2 -m pkg.mod --a 1", "torchrun", "pkg.mod", 2),
    ("python -m torch.distributed.run --nproc_per_node 2 train.py --a 1", "torchrun", "train.py", 2),
    ("accelerate launch --num_processes 4 --multi_gpu train.py --a 1", "accelerate", "train.py", 4),
    ("srun --ntasks=2 env X=1 nohup python3 -u train.py --a 1", "python", "train.py", 2),
    ("CUDA_VISIBLE_DEVICES=0,1 python train.py --a 1", "python", "train.py", None),
    ("ray job submit --address=x -- python3 -m pkg.mod --a 1", "python", "pkg.mod", None),
    ('srun bash -c "cd /x && torchrun --nproc_per_node 2 train.py --a 1"', "torchrun", "train.py", 2),
    (
        "docker run --gpus all img bash -lc 'torchrun --nproc_per_node 2 train.py --a 1'",
        "torchrun",
        "train.py",
        2,
    ),
    ("timeout 5 /opt/bin/torchrun train.py --a 1 2>&1 | tee log", "torchrun", "train.py", 1),
    ("uv run --with 'a==1' --env-file .env -m pkg.mod --a 1", "python", "pkg.mod", None),
    ("torchrun $DIST_ARGS --nproc_per_node 2 $SCRIPT --a 1", "torchrun", "\u2026", 2),
    ("python $1 --a 1", "python", "\u2026", None),
    ("go() { torchrun --nproc_per_node $1 train.py --a 1; }\ngo 4", "torchrun", "train.py", 4),
]


@pytest.mark.parametrize(("script", "launcher", "program", "processes"), LAUNCHES)
def test_what_a_command_launches(script, launcher, program, processes):
    _, seen = view(script)
    assert seen.get(("launch", "launcher")) == launcher
    assert seen.get(("launch", "program")) == program
    assert seen.get(("a",)) == 1
    found = seen.get(("launch", "processes"))
    assert found == processes if processes is not None else not isinstance(found, int)


@pytest.mark.parametrize(
    "script",
    [
        "pip install deepspeed",
        "echo torchrun train.py",
        "which python",
        "python -c 'import torch'",
        "python --version",
        "cat <<EOF\ntorchrun train.py --a 1\nEOF",
        "# torchrun train.py --a 1",
        "ray start --head",
        "uv pip install deepspeed train.py",
        "accelerate config",
        "trl env",
        "vllm bench serve",
        "torchrun $DIST_ARGS",
        "python $PY_ARGS --a 1",
        "docker run -m 16g image",
        # torch_xla's own processes, on no GPU
        "export PJRT_DEVICE=TPU\npython train.py --a 1",
        "PJRT_DEVICE=TPU python train.py --a 1",
        "export PJRT_DEVICE=NEURON\ntorchrun --nproc_per_node 32 train.py --a 1",
        "export NEURON_RT_NUM_CORES=32\ntorchrun --nproc_per_node 32 train.py --a 1",
        "NEURON_CC_FLAGS=--cache_dir=/c torchrun --nproc_per_node 32 train.py --a 1",
        "env NEURON_RT_VISIBLE_CORES=0-3 python train.py --a 1",
        'NEURON_CC_FLAGS="$NEURON_CC_FLAGS -O1"\nexport NEURON_CC_FLAGS\ntorchrun train.py --a 1',
        "neuron_parallel_compile torchrun --nproc_per_node 32 train.py --a 1",
    ],
)
def test_what_launches_nothing_is_no_document(script):
    assert read_text(script, "x.sh").documents == []


def test_a_setting_may_name_a_yaml_file():
    seen = view("python -m verl.trainer.main_ppo tools.path=tools.yaml data.train_batch_size=8\n")[1]
    assert seen.get(("data", "train_batch_size")) == 8
    seen = view("python -m verl.trainer.main_ppo --config-path=config --config-name='ppo.yaml' a.b=1\n")[1]
    assert (seen.get(("config_name",)), seen.get(("a", "b"))) == ("ppo.yaml", 1)


def test_flags_and_overrides_become_keys():
    script = """
        torchrun t.py --a.b.c 1 --some-flag x --switch -lr 1e-5 --neg -1 --many p q r --t=True \\
            data.n=4 +new.key=null ++deep.er='[1,2]' ~gone --text "a b"
    """
    seen = view(script)[1]
    expected = {
        "a.b.c": 1, "some_flag": "x", "switch": True, "lr": 1e-5, "neg": -1, "many": ["p", "q", "r"], "t": True,  # noqa: E501
        "data.n": 4, "new.key": None, "deep.er": "[1,2]", "text": "a b",
    }  # fmt: skip
    assert {key: seen.get(tuple(key.split("."))) for key in expected} == expected
    assert not seen.has(("gone",))


def test_a_flag_of_one_branch_is_unknown():
    script = 'A=(--x 1)\nif [ -n "$Y" ]; then A+=(--y 2); fi\ntorchrun t.py "${A[@]}" --z 3\n'
    seen = view(script)[1]
    assert (seen.get(("x",)), seen.get(("z",))) == (1, 3)
    assert seen.has(("y",))
    assert not isinstance(seen.get(("y",)), int)


@pytest.mark.parametrize(
    ("script", "key", "new", "result"),
    [
        ("N=${N:-8} # n\ntorchrun t.py --n $N\n", "n", 4, "N=${N:-4} # n\ntorchrun t.py --n $N\n"),
        ('N="8"\ntorchrun t.py a.n=$N\n', "a.n", 16, 'N="16"\ntorchrun t.py a.n=$N\n'),
        ("torchrun t.py a.n='x'\n", "a.n", "y", "torchrun t.py a.n='y'\n"),
        ('torchrun t.py --n="8" \\\n --m 2\n', "n", 4, 'torchrun t.py --n="4" \\\n --m 2\n'),
        ("torchrun t.py a=False b=1\n", "a", True, "torchrun t.py a=True b=1\n"),
        ("torchrun t.py --a 1 \\\n  --off \\\n  --b 2\n", "off", False, "torchrun t.py --a 1 \\\n  --b 2\n"),
        ("M=8\nN=$M\ntorchrun t.py --n $N\n", "n", 4, "M=4\nN=$M\ntorchrun t.py --n $N\n"),
        ("torchrun t.py --p ä --n 8\n", "n", 4, "torchrun t.py --p ä --n 4\n"),
        ('srun bash -c "torchrun t.py --n 8"\n', "n", 4, 'srun bash -c "torchrun t.py --n 4"\n'),
        ("read -r -d '' T <<EOF\nt.py \\\n --n 8\nEOF\ntorchrun $T\n", "n", 4, "read -r -d '' T <<EOF\nt.py \\\n --n 4\nEOF\ntorchrun $T\n"),  # noqa: E501
        ("torchrun t.py --n 8\r\n", "n", 4, "torchrun t.py --n 4\r\n"),
        ("A=8\ntorchrun t.py --n $((A*2))\n", "n", 4, "A=8\ntorchrun t.py --n 4\n"),
        ('A=8\nB=$((A*2))\ntorchrun t.py a.n="${B}"\n', "a.n", 4, 'A=8\nB=$((A*2))\ntorchrun t.py a.n="4"\n'),
        ("A=8\nB=$((A*2))\ntorchrun t.py --n=$B\n", "n", 4, "A=8\nB=$((A*2))\ntorchrun t.py --n=4\n"),
    ],
)  # fmt: skip
def test_an_edit_changes_the_value_where_it_is_defined(script, key, new, result):
    file, seen = view(script)
    trace = Trace(seen, tuple(key.split(".")))
    assert trace.editable
    edit = replace_value(file.documents[0], trace.node, new, SHELL)
    assert apply_edits(file.text, [edit]) == result
    again = View(read_text(result, "x.sh").documents[0], SHELL)
    assert again.get(tuple(key.split("."))) == (new if new is not False else again.get(("nowhere",)))


@pytest.mark.parametrize(
    ("script", "key"),
    [
        ("A=8\ntorchrun t.py --n x$A\n", "n"),
        ("A=8\ntorchrun t.py --n $((A*2))x\n", "n"),
        ("torchrun t.py --n $1\n", "n"),
    ],
)
def test_what_is_put_together_is_not_edited(script, key):
    assert not Trace(view(script)[1], (key,)).editable


def test_a_sum_of_a_function_that_is_called_twice_stays():
    script = "A=8\nrun() { torchrun t.py --n $((A*2)) --m $1; }\nrun 1\nrun 2\n"
    assert not Trace(view(script)[1], ("n",)).editable


def test_what_several_commands_read_is_theirs_together():
    trace = Trace(view("A=8\ntorchrun t.py --n $A\ntorchrun u.py --m $A\n")[1], ("n",))
    assert trace.editable
    assert isinstance(trace.node, Several)


def test_an_array_of_flags_that_nothing_sets_is_no_value():
    """``--colocate ${MODEL_ARGS[@]}``: the list is more flags, and which ones is not known."""
    script = (
        "source models.sh\nOWN=(--b 2 --path $HOME/x)\n"
        'python3 train.py --colocate ${MODEL_ARGS[@]} --n 8 "${MORE[@]}" ${OWN[@]} --one ${ONE}\n'
    )
    seen = view(script)[1]
    assert {key: seen.get((key,)) for key in ("colocate", "n", "b")} == {"colocate": True, "n": 8, "b": 2}
    assert seen.get(("launch", "unread")) == ["MODEL_ARGS", "MORE"]


def test_what_a_command_prints_may_be_flags_unless_it_counts():
    assert view("python train.py --n 1 $(flags.sh)\n")[1].get(("launch", "unread")) == ["(flags.sh)"]
    assert not isinstance(view("python train.py --n 1 $(seq 8 8 64)\n")[1].get(("launch", "unread")), list)


def test_an_array_of_a_launcher_s_flags_that_nothing_sets_may_say_how_many_processes_there_are():
    seen = view("torchrun ${RUN_ARGS[@]} train.py --n 8\n")[1]
    assert isinstance(seen.get(("launch", "processes")), Missing)
    assert view("torchrun train.py --n 8\n")[1].get(("launch", "processes")) == 1


def test_a_definition_that_two_flags_read_names_both():
    seen = view("A=8\ntorchrun t.py --n $A --m $A --p run-$A\n")[1]
    trace = Trace(seen, ("n",))
    assert trace.editable
    assert set(trace.shared) == {"m", "p"}


@pytest.mark.parametrize(
    ("script", "key", "new", "result"),
    [
        ("torchrun t.py \\\n  --a 1 \\\n  --b 2\n", "c", 3, "torchrun t.py \\\n  --a 1 \\\n  --b 2 \\\n  --c 3\n"),  # noqa: E501
        ("torchrun t.py --a 1 --b 2\n", "on", True, "torchrun t.py --a 1 --b 2 --on\n"),
        ("torchrun t.py x.a=1 x.b=2\n", "x.c", 3, "torchrun t.py x.a=1 x.b=2 x.c=3\n"),
        ("A=(\n  --a 1\n  --b 2\n)\ntorchrun t.py ${A[@]}\n", "c", 3, "A=(\n  --a 1\n  --b 2\n  --c 3\n)\ntorchrun t.py ${A[@]}\n"),  # noqa: E501
        # Of several words, all are the last flag's; so is one that the script sets.
        ("torchrun t.py --a 1 --b 2 'x' y*\n", "c", 3, "torchrun t.py --a 1 --b 2 'x' y* --c 3\n"),
        ("A=2\ntorchrun t.py --a $A --b $A\n", "c", 3, "A=2\ntorchrun t.py --a $A --b $A --c 3\n"),
        ("A=2\ntorchrun t.py --a 1 --b x $A\n", "c", 3, "A=2\ntorchrun t.py --a 1 --b x $A --c 3\n"),
        (f"torchrun t.py --a 1 --b {'x' * 500}\n", "c", 3, f"torchrun t.py --a 1 --b {'x' * 500} --c 3\n"),
    ],
)  # fmt: skip
def test_a_flag_is_added_behind_the_last_one(script, key, new, result):
    file, _ = view(script)
    edit = insert_key(file.documents[0], tuple(key.split(".")), new, SHELL)
    assert apply_edits(file.text, [edit]) == result
    assert View(read_text(result, "x.sh").documents[0], SHELL).get(tuple(key.split("."))) == new


@pytest.mark.parametrize(
    ("script", "key", "new", "result"),
    [
        ("trl sft --config x.yaml > log 2>&1\n", "c", 3, "trl sft --config x.yaml --c 3 > log 2>&1\n"),
        ("C=x.yaml\ntrl sft \\\n  --config $C\n", "c_d", 3, "C=x.yaml\ntrl sft \\\n  --config $C \\\n  --c_d 3\n"),  # noqa: E501
        ("B=1\ntrl sft --config x.yaml --b-b $B | tee y\n", "c_d", 3, "B=1\ntrl sft --config x.yaml --b-b $B --c-d 3 | tee y\n"),  # noqa: E501
        ("tune run r --config x.yaml\n", "a.b", 3, "tune run r --config x.yaml a.b=3\n"),
        ("llamafactory-cli train x.yaml\n", "c", 3, "llamafactory-cli train x.yaml c=3\n"),
        ("axolotl train x.yaml\n", "c_d", 3, "axolotl train x.yaml --c-d 3\n"),
        ("srun bash -c 'trl sft --config x.yaml' &\n", "c", True, "srun bash -c 'trl sft --config x.yaml --c' &\n"),  # noqa: E501
        ("python t.py --config x.yaml a.b=1\n", "a.c", 3, "python t.py --config x.yaml a.b=1 a.c=3\n"),
        ("python t.py --config x.yaml\n", "a.b", 3, None),
    ],
)  # fmt: skip
def test_a_command_with_a_config_takes_flags_at_its_end(script, key, new, result):
    document = read_text(script, "x.sh").documents[0]
    edit = insert_key(document, tuple(key.split(".")), new, SHELL)
    assert (edit and apply_edits(script, [edit])) == result
    if result is not None:
        assert View(read_text(result, "x.sh").documents[0], SHELL).get(tuple(key.split("."))) == new
        assert [node.text for node in document.over] == ["x.yaml"]


@pytest.mark.parametrize(
    ("head", "kind", "figures", "memory"),
    [
        ("--gpus=rtx_4090:4\n#SBATCH --gres=gpumem:23872m", "rtx_4090", {"gpus": 4}, 23872),
        ("--gres=gpu:a100:8\n#SBATCH --nodes=2", "a100", {"gpus_per_node": 8, "nodes": 2, "gpus": 16}, None),
        ("-N 2 -G 8 # all", "", {"gpus": 8, "nodes": 2, "gpus_per_node": 4}, None),
        ("--gpus-per-node 4\n#SBATCH --ntasks-per-node=4", "", {"gpus_per_node": 4, "gpus": 4, "tasks_per_node": 4}, None),  # noqa: E501
        ("--nodes=1-4 --gpus=h100", "", {}, None),
        ("--gpus=2\n#SBATCH --gres=gpumem:10g", "", {"gpus": 2}, 10240),
        ("--gres=gpu:1,gpumem:10737418240", "", {"gpus_per_node": 1, "gpus": 1}, 10240),
    ],
)  # fmt: skip
def test_what_a_batch_script_asks_for(head, kind, figures, memory):
    job = read_job(f"#!/bin/bash\n\n# a note\n#SBATCH {head}\n\necho\n#SBATCH --gpus=99\n")
    assert (job.kind, {k: v[0] for k, v in job.figures.items()}, job.memory_mib) == (kind, figures, memory)


TRICKY = ["$(", "${", "((((", "if", "A=(", "<<EOF", "'", "\x00", "torchrun $A", "\ud800", "a=$((1/0))", "\\"]


@settings(max_examples=tried(150), deadline=None)
@example("torchrun t.py --a {\U0009c19f..\U000f02fd} ${\U000cf946} $((\U000e4956))")
@example("torchrun t.py " + "$(" * 500)
@example("torchrun t.py " + "(" * 5000)
@example("A=" + '"${A:-' * 300)
@example("f() { f; f; }\nf\n")
@example("A=x\n" + "A=$A$A\n" * 60 + "torchrun t.py $A\n")
@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(
            st.sampled_from(
                ["torchrun t.py", "--a",  "$A", "${A:-1}", "A=1", "\n", "\\\n", '"', "'", "((", ")", "{", "}", "if", "fi",  # noqa: E501
                 "then", "<<EOF\n", "EOF\n", "|", "&&", ";", "=", "$(", "`", "[[", "#SBATCH --gpus=a40:2\n", "ä", "for", "do"]  # noqa: E501
            ),
            max_size=14,
        ).map(" ".join),
    )
)  # fmt: skip
def test_no_script_crashes_the_reader_and_edits_replace_their_span(text):
    file = read_text(text, "x.sh")
    for document in file.documents:
        if document.error is not None:
            continue
        assert isinstance(document.root, Mapping)
        for node in walk(document.root):
            assert 0 <= node.start <= node.end <= len(file.text) or node.start == node.end == -1
            if type(node) is Scalar:
                assert file.text[node.start : node.end] == node.text
                edit = replace_value(document, node, 77, SHELL)
                assert edit is None or (edit.start, edit.end, edit.new) == (node.start, node.end, "77")
            assert not isinstance(node, Alias) or isinstance(node.target, Scalar | Mapping)


@settings(max_examples=tried(100), deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(data):
    read(b"torchrun t.py --a " + data, "x.sh")


def test_a_script_has_a_limit():
    (document,) = read_text("# x\n" * 300_000, "x.sh").documents
    assert "larger than 1 MiB" in str(document.error)


def test_letters_of_all_languages_stand_in_words_as_they_are():
    file, seen = view("N='日本 é'\ntorchrun t.py --a 名 --b \"$N 🙂\" --d é=1 --e 2\n")
    assert (seen.get(("b",)), seen.get(("e",))) == ("日本 é 🙂", 2)
    (start, end) = Trace(seen, ("e",)).span
    assert file.text[start:end] == "2"


def test_an_item_of_a_list_of_one_is_that_one_whatever_its_number():
    script = "M=(one)\nL=(one two)\nI=$((N / 4))\nshow {}\n"
    assert words(script.format("${M[$I]}")) == [["one"]]
    assert words(script.format("${L[$I]}")) == [[UNKNOWN]]
