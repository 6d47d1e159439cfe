"""Facts by name: registries with several keys, and files whose keys are the facts' own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.describe import Origins
from cfglint.engine.find import Finder
from cfglint.engine.run import Run
from cfglint.facts import Values
from cfglint.lang.pack import load
from cfglint.lang.values import Interval, Open, needs_of
from cfglint.repair.apply import repair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.lang.pack import Pack

RULES = """
fact t.config: text "a description"
fact t.path: text "a name"
fact t.size: count 1 .. "a size, where nothing else tells"
registry toy from toys by t.config, t.path, t.size
fact toy.layers: count 1 .. "layers"
fact toy.memory: memory in MB "memory"
fact toy.kind: one of small, large "kind"
fact toy.tied: bool "tied"
fact toy.told: count 1 .. "a name that no table has"
let toy.told = 7
registry other from toys by other.path
fact other.path: text "a name"
fact other.layers: count 1 .. "layers"
fact other.there: bool "a switch"
let other.path = t.path
rule MEM901 checkpointed error for facts { gradient_checkpointing == full }
rule MEM902 small error for facts { micro_batch_size <= 2 }
rule MEM903 small-base error for facts { quantization == 4 }
rule MEM904 kernel error for facts { attn_impl in ["flash_attention_2"] }
rule MEM905 sleeps error for facts { sleep_mode }
rule MEM906 offloaded error for facts { cache.reserve <= 2 GiB }
fact cache.reserve: memory "a user's own fact"
fact cache.kind: one of paged or block, ring, none or null "how it is laid out"
knob cache.reserve any costs 1 "less"
knob quantization [4] costs 5 unsafe "rounder weights"
framework mine {
  detect has($.mine)
  names are keys
  cache.kind <- $.mine.kind default ring
}
"""

ROWS: dict[str | float, Mapping[str, object]] = {
    "config.json": {"layers": 3},
    "a/b": {"layers": 28, "memory": 5, "kind": "large", "tied": True},
    1.5e9: {"layers": Interval(20, 30), "memory": Interval(1, 2)},
}


@pytest.fixture(scope="module")
def pack() -> Pack:
    return load({"t.rules": RULES})


def _given(pack: Pack, **given: object) -> Values:
    facts = {name.replace("_", ".", 1): value for name, value in given.items()}
    return Values(pack, None, None, None, facts, {"toys": ROWS.get})


def _values(pack: Pack, text: str, *overrides: str) -> Values:
    run = Run(pack, overrides=overrides)
    return run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])[0].values


def _facts(pack: Pack, text: str, *overrides: str) -> Values:
    return _values(pack, "cfglint: facts\n" + text, *overrides)


# ── registries ─────────────────────────────────────────────────────────────────────────────────────────────
def test_the_first_key_that_the_table_has_decides(pack: Pack) -> None:
    assert _given(pack, t_path="a/b")["toy.layers"] == 28
    assert _given(pack, t_path="a/b", t_config="config.json")["toy.layers"] == 3
    assert _given(pack, t_path="a/b", t_config="other.json")["toy.layers"] == 28
    assert _given(pack, t_path="a/b")["toy.memory"] == 5_000_000


def test_a_row_may_hold_estimates(pack: Pack) -> None:
    values = _given(pack, t_path="local", t_size=1.5e9)
    layers, memory = values["toy.layers"], values["toy.memory"]
    assert isinstance(layers, Interval)
    assert isinstance(memory, Interval)
    assert (layers.lo, layers.hi, layers.needs) == (20, 30, frozenset())
    assert (memory.lo, memory.hi) == (1_000_000, 2_000_000)


@pytest.mark.parametrize("name", ["toy.layers", "toy.memory", "toy.kind", "toy.tied"])
def test_what_a_registry_lacks_asks_for_a_useful_name(pack: Pack, name: str) -> None:
    assert needs_of(_given(pack)[name]) == {"t.path"}
    assert needs_of(_given(pack, t_path="who/knows")[name]) == {"t.config"}
    assert needs_of(_given(pack, t_config="config.json")[name]) == ({name} - {"toy.layers"})


def test_missing_figures_keep_their_type(pack: Pack) -> None:
    values = _given(pack)
    layers = values["toy.layers"]
    assert isinstance(layers, Interval)
    assert (layers.lo, layers.hi) == (1, float("inf"))
    assert isinstance(values["toy.tied"], Open)


def test_a_let_goes_before_the_table_and_a_key_is_no_column(pack: Pack) -> None:
    assert _given(pack)["toy.told"] == 7
    values = _given(pack, t_path="a/b")
    assert values["other.path"] == "a/b"
    assert values["other.layers"] == 28
    assert needs_of(_given(pack)["other.layers"]) == {"t.path"}
    assert needs_of(_given(pack, t_path="x/y")["other.layers"]) == {"other.layers"}
    assert needs_of(values["other.there"]) == {"other.there"}


# ── the facts file ─────────────────────────────────────────────────────────────────────────────────────────
TEN_LINES = """\
model_path: Qwen/Qwen2.5-1.5B-Instruct
task: sft
num_gpus: 8
dp_shard: 8
micro_batch_size: 2
seq_len: 2048
packing: true
gradient_checkpointing: full
optimizer: adamw
"""


def test_ten_lines_are_complete(pack: Pack) -> None:
    values = _facts(pack, TEN_LINES)
    expected = {
        "num_nodes": 1, "gpus_per_node": 8, "train_gpus": 8, "rollout_gpus": 0, "train_tp": 1, "pp": 1,
        "cp": 1, "sp": 1, "ep": 1, "etp": 1, "train_dp": 8, "dp_shard": 8, "dp_replicate": 1, "zero_stage": 0,
        "grad_accum": 1, "attn_impl": "flash_attention_2", "dtype": "bf16", "param_dtype": "bf16",
        "master_weights": False, "lora_rank": 0, "quantization": "none", "fused_loss": "none", "kl_coef": 0,
        "colocated": False, "generates": False, "trains": True, "rollout_tp": 1, "packing": True,
        "model.layers": 28, "gradient_checkpointing": "full", "reference.present": False,
        "framework.converts_strings": True,
    }  # fmt: skip
    assert {name: values[name] for name in expected} == expected
    for name in ("max_tokens_per_microbatch", "lora_targets"):
        assert needs_of(values[name]) == {name}


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("rollout_cpu_offload: 4", "rollout_cpu_offload", 4 * 10**9),  # the fact's own unit
        ("rollout_cpu_offload: 4 GiB", "rollout_cpu_offload", 4 * 2**30),
        ("rollout_cpu_offload: '1e3 MB'", "rollout_cpu_offload", 10**9),
        ("gpu: {vram: 44.42}", "gpu.vram", 44.42 * 2**30),
        ("gpu.vram: 44 GB", "gpu.vram", 44 * 10**9),
        ("request_timeout: 2 h", "request_timeout", 7200),
        ("mem_fraction: 80 %", "mem_fraction", 0.8),
        ("model_params: 1.5e9", "model_params", 1_500_000_000),
        ("kl_coef: 1e-3", "kl_coef", 0.001),
        ("seq_len: 8192 tokens", "seq_len", 8192),
        ("reference: {model_path: a/b}", "reference.model_path", "a/b"),
        ("reference.model_path: a/b", "reference.model_path", "a/b"),
        ("gradient_checkpointing: true", "gradient_checkpointing", "full"),
        ("gradient_checkpointing: off", "gradient_checkpointing", "none"),
        ("quantization: 4", "quantization", "4"),
        ("quantization: null", "quantization", "none"),
        ("attn_impl: flash", "attn_impl", "flash_attention_2"),
        ("attn_impl: eager", "attn_impl", "eager"),
        ("lora_rank: none", "lora_rank", 0),
        ("grad_accum: null", "grad_accum", 1),
        ("lora_targets: all-linear", "lora_targets", ["all-linear"]),
        ("lora_targets: [q_proj, v_proj]", "lora_targets", ["q_proj", "v_proj"]),
        ("num_nodes: 2\ngpus_per_node: 8", "num_gpus", 16),
        ("task: inference", "trains", False),
        ("task: inference", "rollout_gpus", 1),
        ("num_gpus: 2\nrollout_engine: vllm", "colocated", True),
        ("num_gpus: 2\nrollout_engine: vllm\ncolocated: false", "colocated", False),
        ("num_gpus: 8\nrollout_engine: vllm\ntrain_gpus: 4\nrollout_gpus: 4", "colocated", False),
        ("num_gpus: 8\nrollout_engine: vllm\ncolocated: false\nrollout_gpus: 2", "train_gpus", 6),
        ("cache: {kind: block}", "cache.kind", "paged"),  # a user's own fact
    ],
)
def test_a_key_is_a_name(pack: Pack, line: str, name: str, value: object) -> None:
    found = _facts(pack, line)[name]
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    "line",
    ["micro_batch_size: two", "micro_batch_size: 2.5", "micro_batch_size: 0", "optimizer: adamq",
     "packing: 3", "mem_fraction: 80", "rollout_cpu_offload: 4 h", "seq_len: true", "lora_targets: 4"],
)  # fmt: skip
def test_a_value_of_another_type_is_told_and_not_known(pack: Pack, line: str) -> None:
    name = line.partition(":")[0]
    assert needs_of(_facts(pack, line)[name]) == {name}
    run = Run(pack, selected=lambda code: code == "CFG009")
    run.add(read_text("cfglint: facts\n" + line, "c.yaml"))
    (finding,) = run.report.findings
    assert finding.message.startswith(f"{name} is ")
    assert finding.place.start == len("cfglint: facts\n") + line.index(": ") + 2


def test_overrides_and_the_flag_work_as_the_key_does(pack: Pack) -> None:
    assert _facts(pack, "micro_batch_size: 2", "micro_batch_size=4")["micro_batch_size"] == 4
    assert _facts(pack, "seq_len: 2", "reference.model_path=a/b")["reference.model_path"] == "a/b"
    run = Run(pack, framework="facts")
    (subject,) = run.subjects(read_text("micro_batch_size: 2", "c.yaml"), judge_broken=True)
    assert run.judged(subject)[0].values["micro_batch_size"] == 2


def _told(pack: Pack, text: str) -> list[str]:
    run = Run(pack, selected=lambda code: code == "CFG010")
    run.add(read_text(text, "c.yaml"))
    return [f"{text[f.place.start : f.place.end]}: {f.message}" for f in run.report.findings]


def test_an_unknown_name_is_told_at_its_key(pack: Pack) -> None:
    told = _told(
        pack, "cfglint: facts\nmicro_batchsize: 2\nreference: {modelpath: x}\nframework: {name: x}\nzzz: 1"
    )
    assert [line.partition(":")[0] for line in told] == ["micro_batchsize", "modelpath", "name", "zzz"]
    assert told[0].startswith(
        "micro_batchsize: unknown name micro_batchsize; did you mean 'micro_batch_size'"
    )
    assert "reference.model_path" in told[1]
    assert "rules/vocabulary.rules" in told[3]


def test_a_framework_of_ones_own_reads_names_beside_its_bindings(pack: Pack) -> None:
    values = _values(pack, "mine: {kind: paged}\nmicro_batch_size: 3\ncache.reserve: 4")
    assert (values["cache.kind"], values["micro_batch_size"], values["cache.reserve"]) == ("paged", 3, 2**32)
    assert _values(pack, "mine: {}\ncache.kind: paged")["cache.kind"] == "ring"  # it has a binding
    assert not _told(pack, "mine: {kind: paged}\nmicro_batch_size: 3")


def test_where_a_fact_comes_from(pack: Pack) -> None:
    values = _facts(pack, "micro_batch_size: 2\nreference.offload: true")
    origins = Origins(Finder(pack).symbols, values, {}, "facts")
    assert (origins.of("micro_batch_size").kind, origins.of("micro_batch_size").source) == ("file", "line 2")
    assert origins.of("reference.offload").paths == (("reference.offload",),)
    assert (origins.of("dtype").kind, origins.of("dtype").source) == ("default", "default of facts")
    assert origins.of("gpus_per_node").kind == "derived"
    assert origins.of("cache.reserve").kind == "missing"


# ── repairs of a facts file, and how they spell ────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("MEM901", "gradient_checkpointing: false", "gradient_checkpointing: true"),
        ("MEM901", "gradient_checkpointing: none", "gradient_checkpointing: full"),
        ("MEM901", "gradient_checkpointing: selective", "gradient_checkpointing: full"),
        ("MEM901", "gradient_checkpointing: 'off'", "gradient_checkpointing: 'on'"),
        ("MEM901", "seq_len: 8", "seq_len: 8\ngradient_checkpointing: full"),
        ("MEM902", "micro_batch_size: 4\ngrad_accum: 1", None),
        ("MEM903", "quantization: 8", "quantization: 4"),
        ("MEM903", "seq_len: 8", "seq_len: 8\nquantization: 4"),
        ("MEM904", "attn_impl: eager", "attn_impl: flash"),
        ("MEM905", "seq_len: 8", "seq_len: 8\nsleep_mode: true"),
        ("MEM906", "cache.reserve: 3 GiB", "cache.reserve: 2"),
        ("MEM906", "cache: {reserve: 3}", "cache: {reserve: 2}"),
    ],
)
def test_a_repair_writes_the_name(pack: Pack, code: str, before: str, after: str | None) -> None:
    run = Run(pack, selected=lambda other: other == code)
    text = f"cfglint: facts\n{before}\n"
    fixed = repair(run, read_text(text, "c.yaml"), unsafe=True, least="info", notes=False).text
    if after is None:
        assert "micro_batch_size: 4" not in fixed
    else:
        assert fixed == f"cfglint: facts\n{after}\n"


def test_a_key_that_own_rules_read_is_no_unknown_name() -> None:
    own = (
        "framework mine {\n  detect has($.mine)\n  names are keys\n  extends facts\n}\n"
        "rule ACM101 a error for mine { $.optim.lr <= 1 }\n"
        "rule ACM102 b error for trl { $.other <= 1 }\n"
        "let ready = has($.flag)\n"
        "all d in $.sets: d.weight > 0\n"
    )
    pack = load({"own.rules": own})
    keys = "optim: {lr: 1, x: 2}\nsets: [{weight: 1}]\nflag: 1\nother: 1\nothers: 1\n"
    told = _told(pack, f"mine: 1\n{keys}")
    assert [line.partition(":")[0] for line in told] == ["other", "others"]
    assert [line.partition(":")[0] for line in _told(load(None), f"cfglint: facts\n{keys}")] == [
        "optim", "sets", "flag", "other", "others",
    ]  # fmt: skip


def test_only_names_that_are_alike_are_suggested(pack: Pack) -> None:
    near = {
        "datasets": "",
        "optim": "",
        "scheduling": "",
        "optimizr": "'optimizer'?",
        "seqlen": "'seq_len'?",
        "num_gpu": "'num_gpus'?",
        "batchsize": "'minibatch_size' or 'eval_batch_size'?",
        "batch_size": "'minibatch_size', 'eval_batch_size' or 'train_batch_size'?",
    }
    told = dict(
        line.split(": ", 1) for line in _told(pack, "cfglint: facts\n" + "".join(f"{n}: 1\n" for n in near))
    )
    for name, names in near.items():
        nothing = f"; rules/vocabulary.rules lists the names, and a rule of yours reads $.{name}"
        assert told[name] == f"unknown name {name}" + (f"; did you mean {names}" if names else nothing)
