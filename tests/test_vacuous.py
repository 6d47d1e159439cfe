"""A rule that can never fire is reported, with a proof; a rule that may fire never is."""

from __future__ import annotations

import random

from cfglint.document.tree import ABSENT
from cfglint.facts import Values
from cfglint.features.test.examples import GivenView
from cfglint.features.test.vacuous import vacuous
from cfglint.lang.pack import load


def _told(*rules: str) -> list[str]:
    """Return what is said of rules, each on a line of its own."""
    return [str(each) for each in vacuous(load({"own.rules": "\n".join(rules)}), None, ())]


_NEVER = (
    (
        "num_gpus < 0 -> colocated",
        "`num_gpus < 0` is never true (num_gpus is a whole number, at least 0)",
    ),
    (
        "micro_batch_size > 8 and micro_batch_size < 4 -> colocated",
        "`micro_batch_size > 8` and `micro_batch_size < 4` are never true together",
    ),
    (
        "colocated and rollout_engine == vllm and rollout_engine == sglang -> seq_len <= 8",
        "`rollout_engine == vllm` and `rollout_engine == sglang` are never true together",
    ),
    ("mem_fraction <= 1", "`mem_fraction <= 1` is always true (mem_fraction is 0 to 1)"),
    ("seq_len > 8 -> seq_len > 4", "`seq_len > 4` always follows from `seq_len > 8`"),
    ("colocated and seq_len > 8 -> seq_len > 4", "`seq_len > 4` always follows from `seq_len > 8`"),
    ("pp > num_gpus -> pp >= num_gpus", "`pp >= num_gpus` always follows from `pp > num_gpus`"),
    ("pp > num_gpus and num_gpus > pp -> colocated", "are never true together"),
    ("1 <= seq_len < 4 and seq_len in 8..16 -> colocated", "are never true together"),
    ("micro_batch_size > 1 and micro_batch_size < 2 -> colocated", "are never true together"),
    ("micro_batch_size >= 4 or micro_batch_size < 8", "is always true"),
    ("gpu.vram < 24 GiB and gpu.vram > 48 -> colocated", "are never true together"),
    ("mem_fraction * gpu.vram > 10 GiB and gpu.vram < 5 GiB -> colocated", "are never true together"),
    ("seq_len mod pp == 0 and seq_len mod pp == 1 -> colocated", "are never true together"),
    ("colocated and not colocated -> seq_len <= 8", "are never true together"),
    ("$.a > 8 and $.a < 4 -> colocated", "`$.a > 8` and `$.a < 4` are never true together"),
    ('$.b == "x" and $.b in ["y", "z"] -> colocated', "are never true together"),
    ('$.b in ["x", "y"] -> $.b != "z"', "always follows from"),
    ("$.flag and not $.flag -> colocated", "are never true together"),
    ("$.wait > 5 min and $.wait < 4 min -> colocated", "are never true together"),
    ("has($.a) and not has($.a) -> colocated", "are never true together"),
    ("all s in $.servers: s.port >= 1 or s.port < 5", "is always true"),
)


def test_what_can_never_fire() -> None:
    told = _told(*(rule for rule, _ in _NEVER))
    assert len(told) == len(_NEVER)
    for number, (line, (_, why)) in enumerate(zip(told, _NEVER, strict=True), 1):
        assert line.startswith(f"own.rules:{number}:")
        assert f": USR{number:03} can never fire: " in line
        assert why in line


def test_through_lets_and_functions() -> None:
    lets = (
        "let big = micro_batch_size > 8",
        "let ratio = seq_len / micro_batch_size",
        "let beyond(a, b) = a > b",
    )
    assert len(_told(*lets, "big and micro_batch_size < 4 -> colocated")) == 1
    assert len(_told(*lets, "ratio > 2 and ratio < 1 -> colocated")) == 1
    assert len(_told(*lets, "beyond(seq_len, 8) and beyond(4, seq_len) -> colocated")) == 1
    assert _told(*lets, "big and seq_len < 4 -> colocated", "ratio > 1 and ratio < 2 -> colocated") == []


def test_a_let_that_a_framework_replaces() -> None:
    """What one framework derives otherwise, or binds, may be true there."""
    rule = "few and micro_batch_size > 4 -> colocated"
    block = "framework mine {{ detect has($.mine)\n{} }}"
    assert len(_told("let few = micro_batch_size < 4", rule)) == 1
    assert len(_told("let few = micro_batch_size < 4", rule, block.format("seq_len <- $.s"))) == 1
    assert _told("let few = micro_batch_size < 4", rule, block.format("let few = micro_batch_size < 8")) == []


_MAY = (
    "gpu.vram < 48 and colocated -> mem_fraction <= 0.5",
    "mem_fraction < 1",
    "num_gpus > 0",
    "num_gpus in [1, 2, 4, 8]",
    "pp > num_gpus and etp > num_gpus -> colocated",
    "seq_len > 4 -> seq_len > 8",
    "seq_len mod pp == 0 or pp > 8",
    "$.a > 8 or $.a < 4 -> colocated",
    '$.a == "auto" or $.a > 4 -> colocated',
    '$.b like "x*" and $.b like "*y" -> colocated',
    'gpu.name like "*H100*" and gpu.name != "NVIDIA H100" -> colocated',
    "known(seq_len) and seq_len < 4 -> colocated",
    "not known(seq_len) -> micro_batch_size <= 4",
    "lowest(need.total) > gpu.vram and highest(need.total) < gpu.vram -> colocated",
    "all s in $.servers: s.port >= 1024",
    "any s in $.servers: s.port < 0",
    "(count s in $.servers: s.tls) <= 4",
    "framework.version >= v1.0 and framework.version < v1.1 -> colocated",
    "observed.gpu_util < 10 % -> num_gpus <= 1",
    "has($.a) and $.a == null -> colocated",
    "length($.layers) == 0 -> colocated",
    'gpu.name == "a" and rollout_engine == vllm -> dtype == bf16 or dtype == fp16',
    "0.1 * mem_fraction + 0.2 * mem_fraction <= 0.3 * mem_fraction",  # rounding may break it
    "mem_fraction in 30..95 % -> mem_fraction <= 0.95",  # 95 * 0.01 is a little more
)


def test_what_may_fire() -> None:
    assert _told(*_MAY) == []


def test_a_fact_that_nothing_binds() -> None:
    fact = 'fact our.thing: count "nobody gives it"'
    assert _told(fact, "our.thing > 4 -> colocated") == []
    assert len(_told(fact, "our.thing < 0 -> colocated")) == 1


def test_shipped_rules_may_fire() -> None:
    assert vacuous(load(), None, ()) == []


def test_the_command(cfglint, folder) -> None:
    head = "rule ABC101 too-much error {\n  mem_fraction <= 1\n"
    (folder / "own.rules").write_text(head + "  good { mem_fraction: 0.5 }\n}\n")
    done = cfglint("test", "own.rules")
    assert done.returncode == 1
    assert done.stdout == (
        "own.rules:2:3: ABC101 can never fire: `mem_fraction <= 1` is always true (mem_fraction is 0 to 1); "
        "fix it; if a file may hold another value, add a bad example that has it\n"
        "1 example, 0 wrong, 1 rule that can never fire\n"
    )
    # The way out that it names: an example is the proof of the contrary.
    (folder / "own.rules").write_text(head + "  bad { mem_fraction: 1.5 }\n}\n")
    assert cfglint("test", "own.rules").returncode == 0


# ── against all values ─────────────────────────────────────────────────────────────────────────────────
_ATOMS = (
    "micro_batch_size {op} {n}", "seq_len {op} {n}", "mem_fraction {op} 0.{n}", "$.a {op} {n}",
    "micro_batch_size {op} seq_len", "micro_batch_size + seq_len {op} {n}", "twice {op} {n}", "colocated",
    "dtype == bf16", "dtype in [bf16, fp16]", '$.b == "x"', '$.b in ["x", "y"]', "$.b == null",
    "$.a mod 2 == {n}", "seq_len in {n}..6", "min(seq_len, {n}) {op} 4", "has($.a)",
)  # fmt: skip


def _expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        atom = rng.choice(_ATOMS).format(
            op=rng.choice(["<", "<=", ">", ">=", "==", "!="]), n=rng.randint(1, 5)
        )
        return f"not {atom}" if rng.random() < 0.2 else atom
    parts = [_expression(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    return f"({rng.choice([' and ', ' or ']).join(parts)})"


def test_no_value_makes_a_reported_rule_fire() -> None:
    rng = random.Random(13)
    rules = [f"{_expression(rng, 2)} -> {_expression(rng, 1)}" for _ in range(150)]
    pack = load({"own.rules": "\n".join(("let twice = 2 * micro_batch_size", *rules))})
    reported = {each.code for each in vacuous(pack, None, ())}
    assert len(reported) > 10  # else this tests nothing
    own = [rule for rule in pack.rules if rule.code.startswith("USR")]
    fired = set()
    for _ in range(800):
        given = {
            "micro_batch_size": rng.randint(1, 7), "seq_len": rng.randint(1, 7),
            "colocated": rng.random() < 0.5, "dtype": rng.choice(["bf16", "fp16", "fp32"]),
            "mem_fraction": rng.choice([0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.55, 1]),
        }  # fmt: skip
        keys = [(("a",), rng.choice([1, 2, 3.5, 4, 5, -1, "x", True, None, ABSENT]))]
        keys += [(("b",), rng.choice(["x", "y", "z", 1, None, True, ABSENT]))]
        view = GivenView([(path, value) for path, value in keys if value is not ABSENT])
        values = Values(pack, view, None, None, given)  # type: ignore[arg-type]
        fired |= {rule.code for rule in own if rule.test(values) is False}
    assert not fired & reported
    assert len(fired) > 100
