"""What ``cfglint plan`` combines and recommends: every row reaches its batch, none is missing."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.rows import fit_rows
from cfglint.engine.run import Run
from cfglint.errors import UsageError
from cfglint.features.plan.compute import (
    Ask,
    Choice,
    Planner,
    Shape,
    choices,
    divisors,
    gpu_counts,
    nearest,
    ranks,
    unreachable,
)
from cfglint.features.plan.ranking import advise, planned
from cfglint.hardware.target import Target, all_targets, parse_target
from tiers import tried

ZERO3 = """\
cfglint: facts
model_path: Qwen/Qwen3-0.6B
task: sft
num_gpus: 4
micro_batch_size: 2
grad_accum: 4
zero_stage: 3
seq_len: 1024
packing: true
"""
CATALOGUE = sorted((t for t in all_targets() if t.vram_gib), key=lambda t: (t.vram_gib, t.name))


def planner(pack, text=ZERO3, target="rtx-4090", **facts):
    run = Run(pack, [parse_target(target)])
    (subject,) = run.subjects(read_text(text, "c.yaml"), judge_broken=False)
    return Planner(subject, run.targets[0], facts)


def shape(**own):
    plain = {
        "copy": 1, "aside": 0, "colocated": False, "backend": "deepspeed", "shard": 0, "full_shard": False,
        "per_node": None, "tokens": None, "batch": 64, "gpus": 8, "micro": 1, "accum": 8, "stage": 3,
        "checkpointing": "full", "n_samples": 1, "n_minibatches": 1,
    }  # fmt: skip
    return Shape(**{**plain, **own})


# ── the enumeration ──────────────────────────────────────────────────────────────────────────────────────
@given(st.integers(1, 10_000))
def test_divisors(number):
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


@settings(max_examples=tried(200))
@given(
    batch=st.integers(1, 120),
    gpus=st.integers(1, 24),
    copy=st.integers(1, 4),
    aside=st.integers(0, 3),
    micros=st.sets(st.integers(1, 12), max_size=3),
    stages=st.sets(st.integers(0, 3), max_size=2),
    checkpointing=st.sets(st.sampled_from(["none", "full"]), max_size=2),
)
def test_all_and_only_what_makes_up_the_batch(batch, gpus, copy, aside, micros, stages, checkpointing):
    """Against brute force: each micro-batch and accumulation that multiplies to the batch, once a stage."""
    one = shape(copy=copy, aside=aside)
    ask = Ask(
        micros=tuple(sorted(micros)), stages=tuple(sorted(stages)), checkpointing=tuple(sorted(checkpointing))
    )
    found = list(choices(one, ask, batch, gpus))
    assert len(set(found)) == len(found)
    assert all(c.micro_batch * c.accumulation * c.data_parallel == batch for c in found)
    assert all(c.data_parallel * copy + aside == gpus for c in found)
    brute = {
        (micro, accum, stage, again)
        for micro, accum in itertools.product(range(1, batch + 1), repeat=2)
        for stage in stages or {None}
        for again in checkpointing or {None}
        if (gpus - aside) >= copy and (gpus - aside) % copy == 0
        if micro * accum * ((gpus - aside) // copy) == batch and (not micros or micro in micros)
    }
    assert {(c.micro_batch, c.accumulation, c.zero_stage, c.checkpointing) for c in found} == brute
    assert (unreachable(one, ask, batch, gpus) is None) == bool(found)


@given(st.integers(1, 300), st.sets(st.integers(1, 16), min_size=1, max_size=3), st.integers(1, 3))
def test_the_nearest_batches_can_be_reached_and_nothing_lies_between(batch, gpus, copy):
    one, ask, counts = shape(copy=copy), Ask(), tuple(sorted(gpus))
    near = nearest(one, ask, batch, counts)
    reached = [n for n in range(1, batch + 64) if any(unreachable(one, ask, n, g) is None for g in counts)]
    below = [n for n in reached if n <= batch]
    above = [n for n in reached if n >= batch]
    assert set(near) == {*below[-1:], *above[:1]}


def test_gpus_that_make_no_ranks_say_why():
    assert ranks(shape(copy=4), 2) == "the job needs at least 4"
    assert ranks(shape(copy=4), 6) == "6 is not a multiple of the 4 GPUs that share one copy of the model"
    assert ranks(shape(copy=4, aside=2), 10) == 2
    assert ranks(shape(shard=4), 6) == "6 ranks do not divide into shards of 4"
    assert ranks(shape(shard=4, full_shard=True), 6) == 6


def test_which_numbers_of_gpus():
    one, target = shape(gpus=6), parse_target("a40")
    assert gpu_counts(one, Ask(gpus=(3, 5)), target, stated=True) == (3, 5)
    assert gpu_counts(one, Ask(), parse_target("a40:8x2"), stated=True) == (16,)
    assert gpu_counts(one, Ask(), target, stated=True) == (6,)
    assert gpu_counts(one, Ask(), target, stated=False) == (1, 2, 4, 8, 16, 32, 64)
    assert gpu_counts(shape(copy=3, aside=1), Ask(), target, stated=False) == (4, 7, 13, 25, 49)


# ── what the config has ──────────────────────────────────────────────────────────────────────────────────
def test_the_shape_of_a_config(pack):
    found = planner(pack).shape
    assert (found.copy, found.batch, found.gpus, found.micro, found.accum, found.stage) == (1, 32, 4, 2, 4, 3)
    tensor = planner(pack, ZERO3.replace("zero_stage: 3", "train_tp: 2\ndp_shard: 2")).shape
    assert (tensor.copy, tensor.batch, tensor.backend, tensor.full_shard) == (2, 16, "fsdp", True)
    hybrid = planner(pack, ZERO3.replace("zero_stage: 3", "dp_shard: 2")).shape
    assert (hybrid.shard, hybrid.full_shard) == (2, False)


def test_nothing_to_plan_for(pack):
    with pytest.raises(UsageError, match="this config trains nothing"):
        planner(pack, ZERO3.replace("task: sft", "task: inference"))


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────
ASK = Ask((32, 96), (2, 4, 8), (), (0, 1, 2, 3), ("none", "full"))


def test_what_rows_share_changes_nothing(pack):
    """Each row alone, from a planner that has computed nothing, and through the rules as `fit` asks them."""
    shared = planner(pack)
    rows = [row for size in ASK.batches for row in shared.batch(ASK, size, ASK.gpus).rows]
    assert len(rows) > 150
    for row in rows[::7]:
        alone = planner(pack).row(row.choice)
        assert (alone.need_gib, alone.verdict, alone.step_s) == (row.need_gib, row.verdict, row.step_s)
        target = parse_target("rtx-4090")
        facts = {**target.facts, **{n: (v, "") for n, v in row.facts}, "gpu.count": (row.choice.gpus, "")}
        given_all = Target(target.name, target.gpu, facts)
        (plain,) = fit_rows(Run(pack, [given_all]), shared.subject)
        assert (plain.need_gib, plain.parts, plain.verdict) == (row.fit.need_gib, row.fit.parts, row.verdict)


def test_the_rules_come_to_the_batch_of_every_row(pack):
    one = planner(pack)
    for row in one.batch(ASK, 96, ASK.gpus).rows:
        values = values_for(one.subject, {**one.given, **dict(row.facts)})
        assert values["effective_batch_size"] == 96
        assert values["ranks.data"] == row.choice.data_parallel


def test_accumulation_counts_from_the_second_pass_on(pack):
    """Gradients wait beside the activations once a step has more than one pass, however many."""
    one = planner(pack, ZERO3.replace("zero_stage: 3", "zero_stage: 0"), "h200")
    need = {
        row.choice.accumulation: row.need_gib
        for size in (8, 16, 32)
        for row in one.batch(Ask(gpus=(4,), micros=(2,)), size, (4,)).rows
    }
    assert need[1].high < need[2].high == need[4].high


def test_full_sharding_follows_the_number_of_gpus(pack):
    one = planner(pack, ZERO3.replace("zero_stage: 3", "dp_shard: 4"))
    rows = {row.choice.gpus: row for row in one.batch(Ask(micros=(1,)), 32, (2, 4, 8)).rows}
    assert [dict(rows[n].facts)["dp_shard"] for n in (2, 4, 8)] == [2, 4, 8]
    assert rows[2].need_gib.high > rows[4].need_gib.high > rows[8].need_gib.high


def test_stage_0_of_deepspeed_keeps_its_optimizer(pack):
    (row,) = planner(pack).batch(Ask(micros=(1,), stages=(0,)), 32, (4,)).rows
    params = 596049920
    assert row.fit.parts["optimizer"].low * 2**30 >= params * 12


# ── the recommendation ───────────────────────────────────────────────────────────────────────────────────
def advised(pack, ask, target="rtx-4090", text=ZERO3):
    one = planner(pack, text, target)
    batches, added = planned(one, ask, ask.gpus, CATALOGUE)
    return one, batches[0].batch, batches[0].advice, added


def test_the_best_row_fits_and_none_costs_less(pack):
    _, batch, advice, _ = advised(pack, Ask((64,), (2, 4, 8), (), (0, 1, 2, 3), ("none", "full")))
    best = advice.best
    assert best.verdict == "fits"
    fitting = [row for row in batch.rows if row.verdict == "fits"]
    assert min(row.work.high for row in fitting) >= best.work.high * 0.99
    assert advice.fewest_gpus == min(row.choice.gpus for row in fitting)


def test_no_recomputation_where_it_fits_without(pack):
    _, _, advice, _ = advised(pack, Ask((64,), (4,), (1,), (), ("none", "full")), "h200")
    assert advice.best.choice.checkpointing == "none"


def test_the_largest_micro_batch_that_fits(pack):
    _, batch, advice, _ = advised(pack, Ask((256,), (4,)))
    sizes = [row.choice.micro_batch for row in batch.rows if row.verdict == "fits"]
    assert advice.best.choice.micro_batch == max(sizes)
    (rival,) = [r.row for r in advice.rivals if r.kind == "micro"]
    assert rival.verdict != "fits"
    assert rival.choice.micro_batch == min(
        c.choice.micro_batch for c in batch.rows if c.choice.micro_batch > max(sizes)
    )


def test_checkpointing_is_added_where_nothing_fits_without(pack):
    text = ZERO3.replace("seq_len: 1024", "seq_len: 8192")
    one, batch, advice, added = advised(pack, Ask((8,), (8,), (1,)), text=text)
    assert added
    assert {row.choice.checkpointing for row in batch.rows} == {"none", "full"}
    assert advice.best is None or advice.best.choice.checkpointing == "full"
    asked = planned(one, Ask((8,), (8,), (1,), (), ("none",)), (8,), CATALOGUE)
    assert not asked[1]


def test_what_would_be_needed(pack):
    text = ZERO3.replace("Qwen3-0.6B", "Qwen3-4B").replace(
        "seq_len: 1024", "gradient_checkpointing: full\nseq_len: 1024"
    )
    _, batch, advice, _ = advised(pack, Ask((64,), (2,)), text=text)
    assert advice.best is None
    assert advice.closest.need_gib.high == min(row.need_gib.high for row in batch.rows)
    name, size = advice.smallest_gpu.gpu, advice.smallest_gpu.capacity_gib
    fits = planner(pack, text, name).row(advice.closest.choice)
    assert fits.verdict == "fits"
    assert size == pytest.approx(parse_target(name).vram_gib)
    smaller = [t for t in CATALOGUE if t.vram_gib < size and t.facts["gpu.vendor"][0] == "nvidia"]
    assert all(planner(pack, text, t.name).row(advice.closest.choice).verdict != "fits" for t in smaller[-5:])
    assert advice.enough.verdict == "fits"
    assert advice.enough.choice.gpus > 2
    assert planner(pack, text).row(advice.enough.choice).verdict == "fits"


def test_advice_without_rows(pack):
    one = planner(pack)
    empty = one.batch(Ask(), 7, (4,))
    assert empty.rows == ()
    assert [(w.gpus, w.why) for w in empty.without] == [(4, "7 is not a multiple of the data-parallel ranks")]
    assert advise(one, empty, CATALOGUE).best is None


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────
def test_time_of_a_step_and_an_epoch(pack):
    one = planner(pack, target="h100-sxm", samples=1000)
    row = one.row(Choice(32, 4, 4, 2, 4))
    values = values_for(one.subject, {**one.given, **dict(row.facts)})
    per_token = 6 * 596049920 + 12 * 28 * 16 * 128 * 1024
    assert values["step.flops"] == 32 * 1024 * per_token
    compute = values["step.flops"] / (989e12 * 4)
    assert row.step_s.low == pytest.approx(compute / 0.65)
    assert row.step_s.high == pytest.approx(compute / 0.25)
    assert one.steps(32) == math.ceil(1000 / 32)
    assert row.epoch_s.low == pytest.approx(row.step_s.low * 1000 / 32)
    assert planner(pack, ZERO3 + "drop_last: true\n", samples=1000).steps(32) == 1000 // 32


def test_recomputation_adapters_and_stages_move_the_time(pack):
    plain = planner(pack, target="h100-sxm").row(Choice(32, 4, 4, 2, 4)).step_s.low
    again = planner(pack, target="h100-sxm").row(Choice(32, 4, 4, 2, 4, checkpointing="full")).step_s.low
    assert 1.2 < again / plain <= 4 / 3
    adapters = planner(pack, ZERO3 + "lora_rank: 8\nlora_targets: all-linear\n", "h100-sxm")
    assert 0.66 < adapters.row(Choice(32, 4, 4, 2, 4)).step_s.low / plain < 0.75
    pcie = planner(pack)
    highs = [pcie.row(Choice(32, 4, 4, 2, 4, zero_stage=stage)).step_s.high for stage in (1, 2, 3)]
    assert highs == sorted(highs)
    assert highs[0] < highs[2]
    few, many = pcie.row(Choice(32, 4, 4, 8, 1)), pcie.row(Choice(32, 4, 4, 1, 8))
    assert many.step_s.high > few.step_s.high  # the weights travel once for each pass


@pytest.mark.parametrize(
    "change",
    [
        ("task: sft", "task: grpo\nrollout_engine: vllm\nmax_prompt_len: 512\nmax_new_tokens: 512"),
        ("task: sft", "task: dpo"),
        ("task: sft", "task: sft\ndtype: fp32"),
        ("zero_stage: 3", "train_tp: 2\ndp_shard: 2"),
    ],
)
def test_no_time_where_the_rules_have_none(pack, change):
    one = planner(pack, ZERO3.replace(*change), samples=1000)
    row = next(r for r in one.batch(Ask(), 32, (4,)).rows)
    assert row.step_s is row.epoch_s is row.work is None
