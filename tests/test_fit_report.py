"""The page of ``cfglint fit``: widths, colours, bars, what is not known; from rows made by hand."""

import json
import math
import re

import pytest
from rich.cells import cell_len

from cfglint.engine.estimates import Estimate
from cfglint.engine.rows import PARTS, Fit, FitRow, Remedy, Trainer, Wanted
from cfglint.features.fit import render_fit
from cfglint.features.fit.page import bar, headroom, shares
from cfglint.findings import Fix, Span
from cfglint.record import replace
from cfglint.report import Style
from cfglint.report.blocks import aligned, range_of, spread
from cfglint.report.forms import escaped
from cfglint.text import Edit

ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def row(name="a40", capacity=44.42, low=30.0, high=40.0, verdict="fits", **more):
    share, width = low / len(PARTS), (high - low) / len(PARTS)
    parts = {part: Span(share, share + width) for part in PARTS}
    trainer = Trainer(Span(12.69, 12.69), "loss", Span(12.7, 15.9))
    need = Span(low, high)
    return FitRow(name, capacity, need, need, verdict, parts=parts, trainer=trainer, **more)


def made(*rows, **more):
    return Fit("configs/grpo.yaml", "areal", "Qwen/Qwen2.5-7B", rows, **more)


def drawn(one, cells=40, **style):
    return "".join(text for text, _ in bar(one, cells, Style(**style)))


LONG = "a-machine-whose-sheet-gives-it-a-name-that-nobody-will-ever-type:1024"
FULL = made(
    row(),
    row("rtx-pro-6000-workstation:16", 94.97, 100.5, 180.25, "oom"),
    row(LONG, 1440.0, 1000.0, 1500.0, "tight"),
    row("mi300a", None, 0, math.inf, "unknown", needs=("gpu.vram",)),
    estimates=(Estimate("toy.held", "1024..4096", "of them " * 20, 4.1),),
    wanted=(Wanted(("gpu.vram",), "usable memory " * 9, "a hardware sheet: --hardware FILE"),),
)
FULL = replace(
    FULL,
    rows=(
        *FULL.rows[:2],
        replace(
            FULL.rows[2],
            fix=Remedy(
                Fix(0, "set a.b to 1", (Edit(0, 1, "1"),), applicability="safe", effect="slower " * 12),
                Span(1, 2),
                "fits",
            ),
        ),
        FULL.rows[3],
    ),
)


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("color", [True, False])
def test_no_line_is_wider_than_the_terminal(width, unicode, color):
    page = render_fit(FULL, "text", "", Style(color=color, width=width, unicode=unicode))
    for line in ESCAPE.sub("", page).splitlines():
        assert cell_len(line) <= width, line
    assert unicode or page.isascii()
    assert ("\x1b[" in page) == color


def test_what_stands_on_the_page():
    page = render_fit(made(row()), "text", "", Style(width=80))
    assert page.startswith("configs/grpo.yaml · areal · Qwen/Qwen2.5-7B · a40\n  fits: 30–40 of 44.4 GiB\n")
    assert "= need  " in page
    assert "peak at loss; PyTorch allocates 12.69 GiB, reserves 12.7–15.9" in page
    full = render_fit(FULL, "text", "", Style(width=80))
    assert "fix (safe)" in full
    assert "set a.b to 1 — slower slower" in " ".join(full.split())
    assert "4.10 GiB of the range" in " ".join(full.split())
    assert "a hardware sheet: --hardware FILE" in " ".join(full.split())
    assert "1 fits, 1 tight, 1 oom, 1 not judged; the smallest that fits is a40 (44.42 GiB)" in full


def test_a_pipe_is_not_wrapped():
    page = render_fit(FULL, "text", "", Style())
    assert max(map(len, page.splitlines())) > 150
    assert "\x1b" not in page


def test_bars_end_where_the_numbers_do():
    whole = 32  # of 40 cells; the capacity's line stands behind them
    fits, tight, oom = row(), row(low=30, high=60, verdict="tight"), row(low=50, high=60, verdict="oom")
    assert drawn(fits)[whole] == drawn(tight)[whole] == drawn(oom)[whole] == "│"
    assert "░" not in drawn(fits)[:21]
    assert drawn(fits)[whole + 1 :].strip() == ""
    assert drawn(tight)[whole + 1] in "░abcdefghijklmnopqrstuvwxyz"
    assert drawn(oom)[whole + 1] in "█EWGOALV"
    for one in (
        fits,
        tight,
        oom,
        row(low=0, high=math.inf),
        row(capacity=None),
        row(high=400),
        row(low=1e9, high=1e9),
    ):
        assert len(drawn(one)) == 40
    assert drawn(row(high=400))[-1] == "▶"
    assert drawn(row(high=400), unicode=False)[-1] == ">"


def test_a_need_just_over_the_capacity_is_drawn_over_it():
    assert drawn(row(low=44.43, high=44.43, verdict="oom"))[33] != " "
    assert drawn(row(low=44.42, high=44.42))[33] == " "


def test_letters_tell_parts_apart_where_there_is_no_colour():
    text = drawn(row(low=40, high=44), 100)
    assert [c for c in text if c.isalpha()] == list("EWGOALVewgoalv")
    assert not any(c.isalpha() for c in drawn(row(low=40, high=44), 100, color=True))


def test_shares_are_whole_and_complete():
    assert shares([1, 1, 2], 8) == [2, 2, 4]
    assert sum(shares([1, 1, 1], 10)) == 10
    assert shares([0, 0, 0], 5) == [0, 0, 5]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(1, 2, "1.00–2.00"), (1, 1, "1.00"), (1, 1.001, "1.00"), (0, math.inf, "?"), (3, math.inf, "3.00–?")],
)
def test_spread(low, high, said):
    assert spread(Span(low, high)) == said


def test_columns_are_flush():
    spans = [Span(1, 2), Span(9, 140.5), Span(7, 7), None, Span(0, math.inf)]
    cells = aligned(["?" if span is None else range_of(span) for span in spans])
    assert cells == ["1.00 –   2.00", "9.00 – 140.50", "  7.00", "?", "     ?"]


def test_headroom():
    assert headroom(row()) == "4.42 to 14.42 free"
    assert headroom(row(low=50, high=50)) == "5.58 short"
    assert headroom(row(low=40, high=math.inf)) == "at most 4.42 free"
    assert headroom(row(low=0, high=math.inf)) == "?"
    assert headroom(row(capacity=None)) == "?"


def test_what_a_terminal_would_obey_is_shown():
    page = render_fit(replace(made(row("evil\x1b[31m")), path="a\x1b]0;x.yaml"), "text", "", Style(width=80))
    assert "\x1b" not in page


def test_markdown_is_shown_as_it_is():
    assert escaped("a|b*c_<d> @me") == "a\\|b\\*c\\_\\<d\\> @\u200bme"
    page = render_fit(made(row("a|b")), "markdown", "", Style())
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert "a\\|b" in page
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table[:3]}) == 1


def many(*targets):
    return made(
        *(
            row(target, low=10 * n, high=12 * n, varied=(("micro_batch_size", str(n)),))
            for n in (1, 2, 4)
            for target in targets
        )
    )


def test_a_matrix_has_a_row_for_each_value():
    page = render_fit(many("a40", "h200"), "text", "", Style(width=80)).splitlines()
    assert page[2].split() == ["micro_batch_size", "a40", "h200"]
    assert [line.split()[0] for line in page[3:6]] == ["1", "2", "4"]
    assert "fits 10.0 – 12.0" in page[3]


def test_many_targets_stand_below_each_other():
    names = [f"gpu-{i}" for i in range(9)]
    page = render_fit(many(*names), "text", "", Style(width=80)).splitlines()
    assert [line.split()[0] for line in page[3:12]] == names
    narrow = render_fit(many("a40", "h200", "l4", "t4"), "text", "", Style(width=60))
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.count("micro_batch_size") == 2
    table = render_fit(many("a40", "h200"), "markdown", "", Style())
    assert "| 4 | ✅ fits 40.0–48.0 |" in table


TURNS = (
    "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\ndataset_name: d\nuse_vllm: true\nvllm_mode: colocate\n"
    "vllm_enable_sleep_mode: true\nvllm_gpu_memory_utilization: {share}\nper_device_train_batch_size: 4\n"
    "num_generations: 8\nmax_completion_length: 1024\nmax_prompt_length: 512\ngradient_checkpointing: true\n"
    "bf16: true\naccelerate_config: zero3\noutput_dir: o\n"
)


@pytest.mark.parametrize(("share", "phase"), [("0.6", "generation"), ("0.2", "training")])
def test_parts_of_two_phases_add_up_to_the_larger(cfglint, tmp_path, share, phase):
    (tmp_path / "a.yaml").write_text(TURNS.format(share=share), encoding="utf-8")
    words = ("fit", tmp_path / "a.yaml", "--framework", "trl==0.24.0", "--gpu", "h100-sxm:8")
    page = " ".join(cfglint(*words).stdout.split())
    assert f"parts are of the larger of two phases: {phase} " in page
    (row,) = json.loads(cfglint(*words, "--format", "json").stdout)["rows"]
    if phase == "generation":
        low, high = (sum(span[end] for span in row["parts"].values()) for end in (0, 1))
        assert [low, high] == pytest.approx(row["need_gib"], rel=0.01)
