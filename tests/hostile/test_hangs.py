"""Nothing in a repository keeps a command from ending: what it costs grows with its size, or it is said."""

import json
import shlex

import pytest

from cfglint.api import check_text
from cfglint.budget import BUDGET, STEPS
from tiers import mostly_long

AREAL = "allocation_mode: sglang.d1p1t1+d1p1t1\nactor:\n  path: x\nsglang:\n  context_length: 9\n"
AXOLOTL = "base_model: x\nadapter: qlora\nmicro_batch_size: 2\ndatasets:\n  - path: d\nsequence_len: 9\n"
NEMO = "grpo:\n  num_prompts_per_step: 32\npolicy:\n  model_name: x\n"
VERL = "actor_rollout_ref:\n  model:\n    path: x\n  rollout:\n    name: sglang\ndata:\n  train_files: x\n"
TITAN = (
    "[job]\nx = 1\n[training]\nlocal_batch_size = 8\nseq_len = 512\n[parallelism]\n"
    "tensor_parallel_degree = 1\n[model]\nname = 'llama3'\nflavor = '8B'\n"
)
DEEPSPEED = '{"train_batch_size": 8, "zero_optimization": {"stage": 3}'
TRL = "trl sft --model_name_or_path x --output_dir y"
SCRIPT = "#!/bin/bash\n#SBATCH --gpus=8\n"
RULE = 'rule USR901 own error {{\n  {}\n  say "{}"\n  why "y"\n  see "z"\n}}\n'


def lines(form, n):
    """Return ``form`` for each number: ``{i}``, with ``{j}`` for the one before and ``{k}`` for the next."""
    return "".join(
        form.replace("{i}", str(i)).replace("{j}", str(i - 1)).replace("{k}", str(i + 1)) for i in range(n)
    )


def bomb(levels):
    """Return aliases of aliases: each level stands for ten times the one below."""
    text = "a0: &a0 {x: 1}\n"
    for i in range(1, levels):
        text += f"a{i}: &a{i} {{" + ", ".join(f"k{j}: *a{i - 1}" for j in range(10)) + "}\n"
    return text


def listed(names):
    return "defaults:\n" + "".join(f"  - {name}\n" for name in names) + "  - _self_\n" + VERL


# What the repository holds, by the number that makes it large; the first file is checked.
FILES = {
    # several files that make one
    "child twice": (
        20,
        lambda n: {
            **{f"c{i}.yaml": f"defaults: [c{i + 1}.yaml, c{i + 1}.yaml]\n{NEMO}" for i in range(n)},
            f"c{n}.yaml": NEMO,
        },
    ),
    "parents in circles": (
        14,
        lambda n: {
            f"c{i}.yaml": f"defaults: [{', '.join(f'c{j}.yaml' for j in range(n) if j != i)}]\n{NEMO}"
            for i in range(n)
        },
    ),
    "one parent again and again": (
        20_000,
        lambda n: {
            "c.yaml": f"defaults: [{', '.join(['p.yaml'] * n)}]\n{NEMO}",
            "p.yaml": "grpo:\n  a: 1\n",
        },
    ),
    "one default again and again": (
        20_000,
        lambda n: {"c.yaml": listed(["p"] * n), "p.yaml": "trainer: {nnodes: 1}\n"},
    ),
    "defaults of defaults": (
        14,
        lambda n: {
            "c.yaml": listed(["s0"]),
            **{f"s{i}.yaml": f"defaults:\n  - s{i + 1}@a\n  - s{i + 1}@b\nx: 1\n" for i in range(n)},
        },
    ),
    "defaults in circles": (
        12,
        lambda n: {
            "c.yaml": listed(["c0"]),
            **{
                f"c{i}.yaml": "defaults:\n" + "".join(f"  - c{j}@p{j}\n" for j in range(n) if j != i)
                for i in range(n)
            },
        },
    ),
    "a large file at many packages": (
        300,
        lambda n: {
            "c.yaml": listed([f"p@p{i}" for i in range(n)]),
            "p.yaml": lines("k{i}: 1\n", 20_000),
        },
    ),
    "aliases in child and parent": (
        9,
        lambda n: {
            "c.yaml": f"defaults: p.yaml\n{NEMO}{bomb(n)}",
            "p.yaml": bomb(n),
        },
    ),
    "aliases in config and default": (9, lambda n: {"c.yaml": listed(["p"]) + bomb(n), "p.yaml": bomb(n)}),
    # YAML
    "aliases": (9, lambda n: {"c.yaml": AREAL + bomb(n)}),
    "duplicate keys": (20_000, lambda n: {"c.yaml": AREAL + "x: 1\n" * n}),
    "pairs of duplicate keys": (5_000, lambda n: {"c.yaml": AREAL + lines("x{i}: 1\nx{i}: 2\n", n)}),
    "dangling references": (8_000, lambda n: {"c.yaml": AREAL + lines("x{i}: ${y{i}}\n", n)}),
    "dangling references that are near": (
        8_000,
        lambda n: {"c.yaml": AREAL + lines("abcdefgh{i}: ${abcdefgh{i}x}\n", n)},
    ),
    "references in a row": (10_000, lambda n: {"c.yaml": AREAL + lines("s{i}: ${s{k}}\n", n)}),
    "references in a circle": (
        5_000,
        lambda n: {"c.yaml": AREAL + lines("s{i}: ${s{k}}\n", n) + f"s{n}: ${{s0}}\n"},
    ),
    "references that double": (
        40,
        lambda n: {
            "c.yaml": AREAL + "s0: ab\n" + "".join(f"s{i}: ${{s{i - 1}}}${{s{i - 1}}}\n" for i in range(1, n))
        },
    ),
    "references in each other": (20_000, lambda n: {"c.yaml": AREAL + "x: " + "${" * n + "a" + "}" * n}),
    "numbers that are texts": (8_000, lambda n: {"c.yaml": AREAL + lines("x{i}: 1e-5\n", n)}),
    "unknown keys": (8_000, lambda n: {"c.yaml": AXOLOTL + lines("micro_batch_siz{i}: 1\n", n)}),
    "unknown nested keys": (
        8_000,
        lambda n: {"c.yaml": AREAL + "actor:\n" + lines("  optimizerr{i}: 1\n", n)},
    ),
    "items of a list": (
        20_000,
        lambda n: {"c.yaml": AXOLOTL.replace("  - path: d\n", "  - path: d\n    type: x\n" * n)},
    ),
    "merges in a chain": (
        4_000,
        lambda n: {
            "c.yaml": AREAL
            + "m0: &m0 {a: 1}\n"
            + "".join(f"m{i}: &m{i}\n  <<: *m{i - 1}\n  k{i}: 1\n" for i in range(1, n))
        },
    ),
    "merges of a large mapping": (
        4_000,
        lambda n: {"c.yaml": AREAL + "m: &m\n" + lines("  k{i}: 1\n", n) + lines("n{i}:\n  <<: *m\n", n)},
    ),
    "deep nesting": (100_000, lambda n: {"c.yaml": AREAL + "x: " + "[" * n}),
    "huge numbers": (100_000, lambda n: {"c.yaml": AXOLOTL + "learning_rate: 1" + "9" * n + "\n"}),
    "huge hexadecimal numbers": (
        100_000,
        lambda n: {"c.yaml": AXOLOTL + "learning_rate: 0x" + "f" * n + "\n"},
    ),
    "huge base-60 numbers": (100_000, lambda n: {"c.yaml": AXOLOTL + "learning_rate: 1" + ":59" * n + "\n"}),
    "a long line": (900_000, lambda n: {"c.yaml": AREAL + "x: " + "a" * n + "\n"}),
    "blanks": (900_000, lambda n: {"c.yaml": AREAL + "x:" + " " * n + "a\n"}),
    "marks on one line": (20_000, lambda n: {"c.yaml": AREAL + "x: 1 #" + "# cfglint: ignore[" * n + "\n"}),
    "marks on many lines": (
        20_000,
        lambda n: {"c.yaml": AREAL + "# cfglint: ignore[CFG002]\n" * n + "x: 1\nx: 2\n" * 500},
    ),
    "documents": (50_000, lambda n: {"c.yaml": AREAL + "---\na: 1\n" * n}),
    "too many documents": (400_000, lambda n: {"c.yaml": AREAL + "---\n" * n}),
    "documents that merge": (
        20_000,
        lambda n: {"c.yaml": AREAL + "m: &m {a: 1}\n" + "---\n<<: {a: 1}\n" * n},
    ),
    "documents that are configs": (5_000, lambda n: {"c.yaml": (AREAL + "---\n") * n}),
    # JSON and TOML
    "duplicate keys of JSON": (20_000, lambda n: {"c.json": DEEPSPEED + ', "x": 1' * n + "}"}),
    "nesting of JSON": (100_000, lambda n: {"c.json": DEEPSPEED + ', "x": ' + '{"a":' * n}),
    "escapes of JSON": (200_000, lambda n: {"c.json": DEEPSPEED + ', "x": "' + "\\\\" * n}),
    "quotes of broken JSON": (100_000, lambda n: {"c.json": DEEPSPEED + ', "x": \\"' + '\\"' * n}),
    "comments of JSON": (200_000, lambda n: {"c.json": DEEPSPEED + "/*" * n}),
    "digits of JSON": (200_000, lambda n: {"c.json": DEEPSPEED + ', "x": ' + "1" * n + "e"}),
    "unknown keys of JSON": (
        8_000,
        lambda n: {"c.json": DEEPSPEED + lines(', "train_batch_siz{i}": 1', n) + "}"},
    ),
    "nesting of TOML": (100_000, lambda n: {"c.toml": TITAN + "[a]\nx = " + "[" * n}),
    "tables of TOML": (10_000, lambda n: {"c.toml": TITAN + lines("[x{i}.y]\na = 1\n", n)}),
    "arrays of tables": (10_000, lambda n: {"c.toml": TITAN + "[[x.y]]\na = 1\n" * n}),
    "dotted keys": (
        1_000,
        lambda n: {"c.toml": TITAN + "[x]\n" + lines(".".join(["a"] * 150) + ".k{i} = 1\n", n)},
    ),
    "strings of TOML": (200_000, lambda n: {"c.toml": TITAN + 'x = """' + "a\n" * n}),
    # scripts
    "branches": (
        3_000,
        lambda n: {"c.sh": SCRIPT + lines("if [ $X ]; then A{i}=1; else A{i}=2; fi\n", n) + TRL},
    ),
    "branches that append": (
        3_000,
        lambda n: {
            "c.sh": SCRIPT + "A=()\n" + lines("if [ $X ]; then A+=(--b{i} 1); fi\n", n) + TRL + ' "${A[@]}"\n'
        },
    ),
    "cases": (
        5_000,
        lambda n: {"c.sh": SCRIPT + "case $1 in\n" + lines(" a{i}) X{i}=1;;\n", n) + f"esac\n{TRL}\n"},
    ),
    "scripts that run each other": (
        9,
        lambda n: {
            f"{'c' if i == 0 else i}.sh": SCRIPT + f"source {i + 1}.sh\nbash {i + 1}.sh 1\n" * 9 + TRL + "\n"
            for i in range(n)
        },
    ),
    "defaults in each other's place": (
        2_000,
        lambda n: {
            "c.sh": SCRIPT
            + "if a; then :\n"
            + lines('elif [ -z "$A{i}" ]; then A{i}=1\n', n)
            + f"fi\n{TRL}\n"
        },
    ),
    "loops over arguments": (
        12,
        lambda n: {
            "c.sh": SCRIPT + "set -- a b\n" + "while [ $# -gt 0 ]; do\n" * n + TRL + "\n" + "done\n" * n
        },
    ),
    "texts that grow": (3_000, lambda n: {"c.sh": SCRIPT + lines('A="$A --b{i} 1"\n', n) + f"{TRL} $A\n"}),
    "texts that double": (25, lambda n: {"c.sh": SCRIPT + "A=ab\n" + 'A="$A$A"\n' * n + f"{TRL} --lr $A\n"}),
    "arrays that double": (
        25,
        lambda n: {"c.sh": SCRIPT + "A=(ab)\n" + 'A+=("${A[@]}")\n' * n + TRL + ' "${A[@]}"\n'},
    ),
    "a long text again and again": (
        400_000,
        lambda n: {"c.sh": f'{SCRIPT}A={"a" * n}\nB="{"$A" * 1000}"\n{TRL} --lr $B\n'},
    ),
    "functions of functions": (
        14,
        lambda n: {
            "c.sh": SCRIPT
            + "f0() { A=1; }\n"
            + "".join(f"f{i}() {{ f{i - 1}; f{i - 1}; f{i - 1}; }}\n" for i in range(1, n))
            + f"f{n - 1}\n{TRL}\n"
        },
    ),
    "variables of many commands": (
        5_000,
        lambda n: {"c.sh": SCRIPT + lines("A{i}=1\n", n) + lines(f"B={{i}}\n{TRL} --lr $B\n", n // 3)},
    ),
    "here-documents": (3_000, lambda n: {"c.sh": SCRIPT + "cat <<EOF > x\nabc $A\nEOF\n" * n + TRL + "\n"}),
    "substitutions in each other": (
        2_000,
        lambda n: {"c.sh": SCRIPT + "A=" + "$(echo " * n + "a" + ")" * n + f"\n{TRL}\n"},
    ),
    "nested branches": (300, lambda n: {"c.sh": SCRIPT + "if a; then\n" * n + TRL + "\nfi\n" * n}),
    "nested loops": (
        25,
        lambda n: {
            "c.sh": SCRIPT + "for i in 1 2; do\n" * n + "A=1\n" * 1000 + "done\n" * n + f"{TRL} --lr $A\n"
        },
    ),
    "the same flag": (20_000, lambda n: {"c.sh": SCRIPT + TRL + " --lr 1" * n + "\n"}),
    "commands": (600, lambda n: {"c.sh": SCRIPT + f"{TRL}\n" * n}),
    "commands with configs": (
        2_000,
        lambda n: {"c.sh": SCRIPT + lines("trl sft --config c{i}.yaml --model_name_or_path x\n", n)},
    ),
    "broken statements": (3_000, lambda n: {"c.sh": SCRIPT + "if then (((\n" * n + TRL}),
    # manifests
    "containers": (
        600,
        lambda n: {
            "c.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
            + f"  - command: [{', '.join(TRL.split())}]\n" * n
        },
    ),
    "aliases of a manifest": (
        9,
        lambda n: {"c.yaml": f"{bomb(n)}resources: *a{n - 1}\nenvs: *a{n - 1}\nrun: {TRL}\n"},
    ),
    "sections": (
        3_000,
        lambda n: {"c.yaml": lines("s{i}:\n  policy: MlpPolicy\n  n_timesteps: 1e5\n  n_envs: 8\n", n)},
    ),
}
RULES = {
    "functions that double": (
        30,
        lambda n: (
            "let f0(x) = x\n"
            + "".join(f"let f{i}(x) = f{i - 1}(x) + f{i - 1}(x)\n" for i in range(1, n))
            + RULE.format(f"f{n - 1}(1) < 2", "x")
        ),
    ),
    "large functions again and again": (
        200,
        lambda n: (
            "let f0(x) = x * 2\n"
            + "".join(f"let f{i}(x) = f{i - 1}(x) + f{i - 1}(x + {i})\n" for i in range(1, 11))
            + "".join(
                RULE.format(f"f10({i}) < 2", "x").replace("901", str(100 + i)).replace("own", f"x{i}")
                for i in range(n)
            )
        ),
    ),
    "quantifiers": (3_000, lambda n: RULE.format("all a in $.items: (count b in $.items: b == a) == 1", "x")),
    "quantifiers in each other": (
        3_000,
        lambda n: RULE.format("all a in $.items: all b in $.items: all c in $.items: a + b + c > 0", "x"),
    ),
    "patterns": (400, lambda n: RULE.format(f'$.text like "{"*a" * n}*b"', "x")),
    "patterns of letters": (
        400,
        lambda n: RULE.format(f'$.text like "*{"a" * n}b*{"a?" * n}{{x:word}}b"', "x"),
    ),
    "messages that grow": (100, lambda n: RULE.format("all i in $.items: false", "{$.text}" * n)),
    "brackets": (4_000, lambda n: RULE.format("(" * n + "1 == 1" + ")" * n, "x")),
    "unknown names": (3_000, lambda n: lines("let aa{i} = micro_batch_siz{i}\n", n)),
    "broken rules": (10_000, lambda n: "rule (((\n" * n),
    "words": (100_000, lambda n: RULE.format("a " * n, "x")),
    "quotes": (100_000, lambda n: "let x = " + '"' * n + "\n"),
    "blanks": (100_000, lambda n: f"let x {' ' * n}\nif {' ' * n}x\nlet a({'b, ' * n}\n"),
}
# Those of the files above that cannot be judged in fewer steps than a file may take.
FILES |= {
    "a search path": (
        1_000,
        lambda n: {
            "c.yaml": "hydra:\n  searchpath:\n"
            + lines("    - file://a{i}\n", n)
            + "defaults:\n"
            + lines("  - optional m{i}: x\n", n)
            + VERL
        },
    ),
    "defaults that are nowhere": (
        1_000,
        lambda n: {"c.yaml": "defaults:\n" + lines("  - optional m{i}: x\n", n) + VERL},
    ),
    "an unclosed text of quotes": (16_000, lambda n: {"c.json": '{"a": "' + '\\"' * n}),
    "a table of many parts": (200_000, lambda n: {"c.toml": f"{TITAN}[a{'.a' * n}]\nx = 1\n"}),
    "a key of many parts": (200_000, lambda n: {"c.toml": f"{TITAN}\na{'.a' * n} = 1\n"}),
    "a key of many quoted parts": (
        50_000,
        lambda n: {"c.toml": f"""{TITAN}\nx = {{ a{".'='" * n} = 1 }}\n"""},
    ),
    # time and memory that grow with the square, in a parser that nothing ends
    "pipes": (40_000, lambda n: {"c.sh": f"{TRL}\n{'a | ' * n}\n"}),
    "loops in loops": (40_000, lambda n: {"c.sh": f"{TRL}\n{'for((' * n}\n"}),
    "pipes of shells": (60, lambda n: {"c.sh": f"{TRL}\n" + f"bash -c '{'a | ' * 2000}'\n" * n}),
    "commands that share a variable": (
        4_000,
        lambda n: {"c.sh": f"{TRL}\nA=x\n" + "python train.py $A $A\n" * n},
    ),
    "blanks in a command": (
        200_000,
        lambda n: {"c.yaml": f'resources: {{}}\nrun: "{TRL}{" " * n}\\n{TRL}"\n'},
    ),
    "flags": (40_000, lambda n: {"c.sh": f"{TRL}{lines(' --a{i} 1', n)}\n"}),
    "launches that do not parse": (50_000, lambda n: {"c.sh": "python\n" * n + f"{TRL}\n'\n"}),
}
OVER = {
    "a search path", "pipes", "loops in loops", "pipes of shells",
    "too many documents", "documents that merge", "commands with configs",
    "a large file at many packages", "aliases in child and parent", "aliases in config and default",
    "a long text again and again", "scripts that run each other",
    "variables of many commands", "nested branches", "documents that are configs", "sections",
}  # fmt: skip


SLOW = (
    "containers",
    "commands",
    "scripts that run each other",
    "dangling references that are near",
    "broken statements",
    "loops in loops",
    "documents that are configs",
    "unknown keys",
    "sections",
    "child twice",
    "dotted keys",
    "parents in circles",
    "defaults in circles",
    "too many documents",
    "commands with configs",
    "commands that share a variable",
    "tables of TOML",
    "flags",
    "one default again and again",
    "documents that merge",
    "arrays of tables",
    "documents",
    "pipes of shells",
    "a large file at many packages",
    "duplicate keys of JSON",
    "dangling references",
)
IN_CI = [pytest.param(name, marks=pytest.mark.long) for name in FILES if name in SLOW]
IN_CI += mostly_long([name for name in FILES if name not in SLOW], 5)


@pytest.mark.parametrize("name", IN_CI)
def test_a_file_is_judged_or_said_to_cost_too_much(strange, name):
    n, make = FILES[name]
    files = make(n)
    strange.write(files)
    done = strange.apart("check", next(iter(files)), "--gpu", "rtx-4090:8", "--format", "json")
    report = json.loads(done.stdout or '{"findings": []}')
    codes = {finding["code"] for finding in report["findings"]}
    assert ("CFG023" in codes) == (name in OVER), done.stderr
    assert "seconds" not in str([f["message"] for f in report["findings"] if f["code"] == "CFG023"])


@pytest.mark.long
@pytest.mark.parametrize("name", RULES)
def test_rules_of_the_repository_end(strange, name):
    n, make = RULES[name]
    items = ", ".join(str(i) for i in range(n))
    strange.write(
        {
            "c.yaml": f"{AREAL}items: [{items}]\ntext: {'a' * 99_000}\n",
            "r.rules": make(n),
            "cfglint.toml": 'rules = ["r.rules"]\n',
        }
    )
    done = strange.apart("check", "c.yaml", "--format", "json")
    assert len(done.stdout) < 3_000_000


@pytest.mark.parametrize(
    "test",
    [
        "a in $.items",
        pytest.param("$.items == $.items", marks=pytest.mark.long),
        'not ($.text like "*a*a*b")',
    ],
)
def test_rules_that_compare_lists_again_and_again(strange, test):
    items = ", ".join(str(i) for i in range(8_000))
    strange.write(
        {
            "c.yaml": f"{AREAL}items: [{items}]\ntext: {'a' * 9_000}\n",
            "r.rules": RULE.format(f"all a in $.items: {test}", "x"),
            "cfglint.toml": 'rules = ["r.rules"]\n',
        }
    )
    done = strange.apart("check", "c.yaml", "--format", "concise")
    assert "CFG023 judging this file takes more than 2,000,000 steps" in done.stdout


def test_a_circle_of_many_lets(strange):
    circle = "".join(f"let acme.f{i} = acme.f{(i + 1) % 2_000}\n" for i in range(2_000))
    strange.write({"c.yaml": AREAL, "r.rules": circle, "cfglint.toml": 'rules = ["r.rules"]\n'})
    done = strange.run("check", "c.yaml")
    assert "r.rules:1:1: cyclic definition: acme.f0 -> acme.f1" in done.stderr
    assert len(done.stderr) < 500


# An alarm that rings in a destructor is swallowed there, and rings again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_rules_that_take_too_long_to_load(strange, monkeypatch):
    monkeypatch.setattr("cfglint.budget.SECONDS", 0.5)
    slow = "".join(f"let aa{i} = micro_batch_siz{i}\n" for i in range(20_000))
    strange.write(
        {"c.yaml": AREAL, "a.rules": "", "r.rules": slow, "cfglint.toml": 'rules = ["a.rules", "r.rules"]\n'}
    )
    strange.run("check", "c.yaml", "--isolated")  # compiles the shipped rules, where they are not kept
    done = strange.run("check", "c.yaml")
    assert done.returncode == 2
    assert done.stderr == "cfglint: error: r.rules: loading these rules takes more than 0.5 seconds\n"


def test_standard_input_that_is_closed(strange, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert strange.run("check", "-").stderr == "cfglint: error: standard input is closed\n"


@pytest.mark.parametrize(
    "text",
    [
        f"[a{'.a' * 200_000}]\n",
        f"x = {{ a{'.a' * 200_000} = 1 }}\n",
        f"set = ['a{'.a' * 300_000}=1']\n",
        f"gpu = {[f'a40:{i}' for i in range(1, 2_000)]}\n",
        f"rules = {['r.rules'] * 2_000}\n",
        "[frameworks]\n" + lines("'**/*a{i}' = 'areal'\n", 2_000),
        f"[frameworks]\n'{'**/*a' * 2_000}' = 'areal'\n",
    ],
)
def test_settings_of_many_parts(strange, text):
    strange.write({"c.yaml": AREAL, "cfglint.toml": text})
    done = strange.apart("check", "c.yaml")
    assert done.returncode == 2
    assert "more than 200" in done.stderr or "takes up to 200" in done.stderr
    assert len(done.stderr) < 1_000


def test_numbers_and_texts_with_dots_are_no_keys(strange):
    items = ", ".join(["0.5"] * 300)
    strange.write({"c.toml": f"{TITAN}[own]\nx = [{items}]\ny = '{'.' * 300}'\n"})
    assert "CFG001" not in strange.run("check", "c.toml", "--format", "concise").stdout


def test_git_is_not_asked_for_large_files(strange, monkeypatch):
    asked = []

    def answer(git, name):
        asked.append((name, git._whole))
        return ("blob" if ":" in name else "commit", 3_000_000_000, b"x")

    monkeypatch.setattr("cfglint.history._commits", lambda store: ["1" * 40])
    monkeypatch.setattr("cfglint.history._Git.answer", answer)
    (strange.repo / ".git" / "objects").mkdir()
    strange.write({f"{i}.yaml": "{{{" for i in range(30)})
    strange.run("check")
    assert len({name for name, _ in asked if ":" in name}) == 30
    assert not any(whole for name, whole in asked if ":" in name)


TRACE = "Traceback (most recent call last):\n"
MORE = "only the first 1,000 were read"
LONG = "longer than 64 KiB"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (("oom_kill" * 8_000 + "\n") * 20, MORE),
        (TRACE + ("x y z " * 8_000 + "\n") * 20 + "oom_kill" * 1_000, ""),
        (TRACE + ("_dummy_run" * 6_000 + "\n") * 200 + "oom_kill\n", ""),
        ("oom_kill\n" * 50_000, MORE),
        ("mem_fraction_static=0.5\noom_kill\n" * 20_000, MORE),
        (("graph" + "NCCL" * 60_000 + "\n") * 20 + "oom_kill\n", LONG),
        (f"Free memory on device cuda:{'1' * 9_000} (1.0/2.0 GiB) on startup is less than", ""),
    ],
)
def test_a_log_is_read_in_time(strange, text, said):
    strange.write({"a.log": text})
    done = strange.apart("diagnose", "a.log")
    assert done.returncode == ("oom_kill" not in text)
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
    assert len(done.stdout) < 3_000


def test_what_a_log_has_too_much_of_hides_nothing_else(strange):
    error = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB"
    strange.write({"a.log": "oom_kill\n" * 5_000 + "step 1\n" * 2_000 + f"{error}\n"})
    assert strange.run("diagnose", "a.log").stdout.startswith("GPU 0 (23.69 GiB): PyTorch ran out of memory")


def steps(text, path="c.yaml"):
    check_text(text, path=path, hardware="rtx-4090:8")
    return STEPS - BUDGET.left


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("duplicate keys", "c.yaml"),
        ("dangling references", "c.yaml"),
        ("items of a list", "c.yaml"),
        ("merges of a large mapping", "c.yaml"),
        pytest.param("documents that are configs", "c.yaml", marks=pytest.mark.long),
        ("branches", "c.sh"),
        ("cases", "c.sh"),
        pytest.param("commands", "c.sh", marks=pytest.mark.long),
        ("here-documents", "c.sh"),
    ],
)
def test_twice_as_much_takes_twice_the_steps(name, path):
    _, make = FILES[name]
    once, twice = (steps(make(n)[path], path) for n in (100, 200))
    assert twice < 2.2 * once + 1000


def test_nested_shells(strange):
    command = TRL
    for _ in range(10):
        command = f"bash -c {shlex.quote(command)}"
    strange.write({"c.sh": f"{SCRIPT}{command}\n"})
    assert strange.apart("check", "c.sh").returncode == 0


def test_the_clock_is_the_last_resort(strange, monkeypatch):
    def sleeper(*_, **__):
        while True:
            pass

    monkeypatch.setattr("cfglint.budget.SECONDS", 1)
    monkeypatch.setattr("cfglint.features.check.check_file", sleeper)
    strange.write({"a.yaml": AREAL, "b.yaml": AREAL})
    done = strange.run("check", "--format", "concise")
    assert done.returncode == 1
    assert done.stdout.count("CFG023 judging this file takes more than 1 seconds: it was not judged") == 2


def test_a_search_that_takes_too_long_leaves_the_findings(strange, monkeypatch):
    monkeypatch.setattr("cfglint.budget.REPAIR_STEPS", 100)
    strange.write({"a.yaml": AREAL.replace("d1p1t1\n", "d1p1t2\n", 1)})
    done = strange.run("check", "--gpu", "rtx-4090:8", "--format", "json")
    findings = json.loads(done.stdout)["findings"]
    assert findings
    assert {f["unfixed"] for f in findings if f["fix"] is None} == {"the search took too long"}


@pytest.mark.parametrize("words", [("check",), ("fix", "--diff"), ("fix",)])
@pytest.mark.parametrize("broken", [False, True])
def test_what_was_not_judged_is_said_by_every_command(strange, monkeypatch, words, broken):
    strange.write({"a.yaml": AREAL + "x: [\n" * broken})
    if not broken:
        monkeypatch.setattr("cfglint.budget.STEPS", 100)
        monkeypatch.setattr("cfglint.budget.REPAIR_STEPS", 100)
    done = strange.run(*words, "a.yaml")
    assert done.returncode == 1
    assert f"error CFG0{'01' if broken else '23'}" in done.stdout + done.stderr
    aside = strange.run(*words, "a.yaml", "--select", "MEM", "--fail-on", "error,skipped")
    assert ("with syntax errors" if broken else "over budget") in aside.stdout + aside.stderr
    assert aside.returncode == ("--diff" not in words)


def test_frameworks_are_told_of_the_other_files(strange, monkeypatch):
    monkeypatch.setattr("cfglint.budget.STEPS", 1_000)
    strange.write({"a.yaml": AREAL + "---\n" * 200, "b.yaml": AREAL})
    done = strange.run("frameworks", ".")
    assert done.returncode == 2
    assert "a.yaml: judging this file takes more than" in done.stderr
    assert "b.yaml" in done.stdout


@pytest.mark.parametrize(
    "words", [("frameworks", "c.yaml"), ("explain", "CFG002", "c.yaml"), ("fit", "c.yaml")]
)
def test_the_clock_runs_for_every_command(strange, monkeypatch, words):
    def sleeper(*_, **__):
        while True:
            pass

    monkeypatch.setattr("cfglint.budget.SECONDS", 1)
    monkeypatch.setattr("cfglint.engine.subject.Reading.claims", sleeper)
    strange.write({"c.yaml": AREAL})
    done = strange.run(*words)
    assert done.returncode == 2
    assert "judging this file takes more than 1 seconds" in done.stderr


def test_a_script_that_the_parser_does_not_survive(strange):
    pipes = "a | " * 40_000
    task = f"resources: {{}}\nrun: |\n  {TRL}\n  {pipes}\n"
    strange.write({"a.sh": f"{TRL}\n{pipes}", "t.yaml": task, "z.yaml": AREAL + "x: 1\nx: 2\n"})
    done = strange.run("check", "a.sh", "t.yaml", "z.yaml", "--format", "concise")
    message = "CFG023 parsing this script takes too much time or memory: it was not judged"
    assert done.stdout.count(message) == 2
    assert "z.yaml:7:1: error CFG002" in done.stdout
    (strange.repo / "t.yaml").unlink()
    assert "1 over budget" in strange.run("check").stdout  # the script, for which nobody asked


def test_a_large_script_is_judged(strange):
    strange.write({"a.sh": f"{SCRIPT}{TRL} --bf16 true --fp16 true\n" + "echo 'x' | cat\n" * 20_000})
    assert "PRC130" in strange.run("check", "--format", "concise").stdout


def test_a_file_that_costs_too_much_does_not_stop_the_others(strange):
    bombs = {"a.yaml": f"defaults: p.yaml\n{NEMO}{bomb(9)}", "p.yaml": bomb(9)}
    strange.write({**bombs, "b.yaml": AREAL + "x: 1\nx: 2\n"})
    done = strange.run("check", "--format", "concise")
    assert done.returncode == 1
    assert "a.yaml:1:1: error CFG023" in done.stdout
    assert "b.yaml:7:1: error CFG002" in done.stdout
