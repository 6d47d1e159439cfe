"""`cfglint facts --lengths DATA` writes a sheet of lengths; `--lengths SHEET` bounds micro-batches by it."""

import json
from pathlib import Path

import pytest

from cfglint.cli import main
from cfglint.features.facts import lengths
from cfglint.features.facts.lengths import sheet

SFT = """\
stage: sft
do_train: true
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
finetuning_type: lora
dataset: alpaca_en_demo
template: qwen
cutoff_len: 4096
per_device_train_batch_size: 4
bf16: true
output_dir: out
"""
SHEET = "cfglint: lengths\ndata: train.jsonl\nlength: {p50: 210, p99: 812, max: 1733}\nprompt: {p99: 300}\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def figures(text):
    """Return what a sheet says, by its own words."""
    import yaml

    return yaml.safe_load(text)


def words(monkeypatch):
    """Count words, as if a tokenizer had one token for each."""
    monkeypatch.setattr(lengths, "_by_tokenizer", lambda _: lambda texts: [len(t.split()) for t in texts])


def written(path, records):
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return figures(sheet(path, "tokenizer.json", None))


def test_percentiles_of_a_field(here, monkeypatch):
    words(monkeypatch)
    told = written("a.jsonl", [{"text": "w " * n} for n in range(1, 201)])
    assert told == {"cfglint": "lengths", "data": "a.jsonl", "length": {"p50": 100, "p99": 198, "max": 200}}


@pytest.mark.parametrize(
    ("record", "length", "prompt"),
    [
        (
            {"messages": [{"role": "user", "content": "a b"}, {"role": "assistant", "content": "c d e"}]},
            15,
            7,
        ),
        ({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}, 12, 6),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a b"}]}]}, None, 7),
        ({"instruction": "a b", "input": "c", "output": "d"}, 14, 8),
        ({"prompt": "a b c", "completion": "d"}, 14, 8),
        ({"question": "a b c"}, None, 8),
        ({"prompt": [{"role": "user", "content": "a b c"}]}, None, 8),
    ],
)
def test_what_a_record_holds(here, monkeypatch, record, length, prompt):
    """Five tokens frame each message."""
    words(monkeypatch)
    told = written("a.jsonl", [record])
    assert (told.get("length") or {}).get("max") == length
    assert told["prompt"]["max"] == prompt


def test_a_pair_is_two_samples(here, monkeypatch):
    words(monkeypatch)
    told = written("a.jsonl", [{"prompt": "a", "chosen": "b c", "rejected": "d e f g"}])
    assert told["length"] == {"p50": 13, "p99": 15, "max": 15}


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        '{"text": "a b"}\n{"text": "c [ü] \\" }"}\n',
        '[{"text": "a b"}, {"text": "c [ü] \\" }"}]',
        '[\n  {\n  "text": "a b"\n },\n {"text": "c [ü] \\" }"}\n]\n',
        '\ufeff{"text": "a b"}{"text": "c [ü] \\" }"}',
        '{"version": 1, "data": [{"text": "a b"}, {"text": "c [ü] \\" }"}]}',
    ],
)
def test_the_data_is_read_piece_by_piece(here, monkeypatch, text, chunk):
    words(monkeypatch)
    monkeypatch.setattr(lengths, "_CHUNK", chunk)
    Path("a.json").write_text(text, "utf-8")
    assert figures(sheet("a.json", "t.json", None))["length"] == {"p50": 2, "p99": 4, "max": 4}


def test_without_a_tokenizer_lengths_are_ranges(here):
    Path("a.jsonl").write_text('{"text": "' + "x" * 1100 + '"}\n', "utf-8")
    text = sheet("a.jsonl", None, None)
    assert "without a tokenizer" in text
    assert figures(text)["length"]["max"] == "220..500"


def test_a_real_tokenizer_counts_the_same(here):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save("tokenizer.json")
    Path("a.jsonl").write_text('{"text": "a b a b c"}\n{"text": "a"}\n', "utf-8")
    for path in ("tokenizer.json", "."):
        assert figures(sheet("a.jsonl", path, None))["length"] == {"p50": 1, "p99": 5, "max": 5}


LOGS = {
    "verl.log": "".join(
        f"(Run pid=7) step:{n} - loss:0.1 - response_length/mean:{100 + n} - response_length/max:{n}00.0"
        f" - response_length/min:3.0 - prompt_length/mean:50.5 - prompt_length/max:np.float64(9{n}.0)\n"
        for n in range(5, 10)
    ),
    "trl.out": "{'loss': 0.0, 'completions/mean_length': 107.0, 'completions/min_length': 1.0,"
    " 'completions/max_length': 900.0, 'completions/max_terminated_length': 7.0}\n",
}
VERL = {"prompt": {"p50": 50, "p99": 97, "max": 99}, "answer": {"p50": 107, "p99": 700, "max": 900}}


@pytest.mark.parametrize(
    ("name", "told"), [("verl.log", VERL), ("trl.out", {"answer": {"p50": 107, "p99": 900, "max": 900}})]
)
def test_a_log_says_how_long_answers_are(here, name, told, monkeypatch):
    monkeypatch.setattr(lengths, "_CHUNK", 100)
    Path(name).write_text(LOGS[name], "utf-8")
    assert figures(sheet(name, None, None)) == {"cfglint": "lengths", "data": name, **told}


def test_a_log_without_lengths(here, capsys):
    Path("a.log").write_text("step 1\n", "utf-8")
    assert main(["facts", "--lengths", "a.log"]) == 2
    assert "no step says how long" in capsys.readouterr().err


GRPO = """\
data: {train_files: a, train_batch_size: 64, max_prompt_length: 1024, max_response_length: 8192}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-7B-Instruct}
  actor: {ppo_mini_batch_size: 64, ppo_micro_batch_size_per_gpu: 4}
  rollout: {name: vllm, n: 8, gpu_memory_utilization: 0.4, log_prob_micro_batch_size_per_gpu: 8}
algorithm: {adv_estimator: grpo}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""


def test_a_log_narrows_the_need_of_the_next_run(here, capsys):
    Path("sft.yaml").write_text(GRPO, "utf-8")
    Path("verl.log").write_text(LOGS["verl.log"], "utf-8")
    assert main(["facts", "--lengths", "verl.log", "--output-file", "lengths.yaml"]) == 0
    before = need(capsys, gpu="h100-sxm:8")
    after = need(capsys, "--lengths", "lengths.yaml", gpu="h100-sxm:8")
    assert after[1] - after[0] < 0.5 * (before[1] - before[0])


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        (
            '{"a": "b"}\n',
            [],
            "record 1 has no text, messages or prompt; its fields are: a; name one with --field",
        ),
        ('{"a": "b"}\n', ["--field", "c"], "record 1 has no field 'c'"),
        ('{"text": "b"\n', [], "not JSON"),
        ("", [], "no samples"),
    ],
)
def test_what_is_wrong_with_the_data(here, capsys, text, arguments, told):
    Path("a.jsonl").write_text(text, "utf-8")
    assert main(["facts", "--lengths", "a.jsonl", *arguments]) == 2
    assert told in capsys.readouterr().err


def need(capsys, *arguments, gpu="a100-80gb-sxm:1"):
    assert main(["fit", "sft.yaml", "--gpu", gpu, "--format", "json", *arguments]) in (0, 1)
    return json.loads(capsys.readouterr().out)["rows"][0]["need_gib"]


def test_a_sheet_narrows_the_need(here, capsys):
    Path("sft.yaml").write_text(SFT, "utf-8")
    Path("lengths.yaml").write_text(SHEET, "utf-8")
    low, high = need(capsys)
    short, long = need(capsys, "--lengths", "lengths.yaml")
    assert short < long < high
    assert long - short < 0.5 * (high - low)
    typed = ("--set", "observed.length_p99=812", "--set", "observed.length_max=1733")
    assert need(capsys, *typed) == pytest.approx([short, long], abs=1e-3)
    longest = ("--set", "observed.length_p99=9999", "--set", "observed.length_max=99999")
    assert need(capsys, *longest)[1] == pytest.approx(high, abs=1e-3)


def test_a_plan_takes_a_sheet(here, capsys):
    Path("sft.yaml").write_text(SFT, "utf-8")
    Path("lengths.yaml").write_text(SHEET, "utf-8")

    def needs(*arguments):
        assert main(["plan", "sft.yaml", "--gpu", "a100-80gb-sxm:1", "--format", "json", *arguments]) == 0
        return [
            row["need_gib"][1]
            for row in json.loads(capsys.readouterr().out)["plans"][0]["batches"][0]["rows"]
        ]

    before, after = needs(), needs("--lengths", "lengths.yaml")
    assert all(less < more for less, more in zip(after, before, strict=True))


def test_settings_name_a_sheet(here, capsys):
    Path("sft.yaml").write_text(SFT, "utf-8")
    Path("lengths.yaml").write_text(SHEET, "utf-8")
    high = need(capsys)[1]
    Path("cfglint.toml").write_text('lengths = "lengths.yaml"\n', "utf-8")
    assert need(capsys)[1] < high


def test_what_is_written_is_read(here, capsys):
    Path("sft.yaml").write_text(SFT, "utf-8")
    Path("a.jsonl").write_text('{"instruction": "sum up", "output": "' + "x" * 2000 + '"}\n', "utf-8")
    assert main(["facts", "--lengths", "a.jsonl", "--output-file", "lengths.yaml"]) == 0
    assert need(capsys, "--lengths", "lengths.yaml")[1] < need(capsys)[1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"text": "a"}\n', "it is no sheet of lengths; cfglint facts --lengths"),
        ("cfglint: lengths\nlength: {p98: 3}\n", "length.p98 is not known; did you mean"),
        ("cfglint: lengths\nlength: {p99: many}\n", "length.p99 is no number of tokens"),
    ],
)
def test_what_is_no_sheet(here, capsys, text, told):
    Path("sft.yaml").write_text(SFT, "utf-8")
    Path("lengths.yaml").write_text(text, "utf-8")
    assert main(["fit", "sft.yaml", "--gpu", "a40", "--lengths", "lengths.yaml"]) == 2
    assert told in capsys.readouterr().err


def test_facts_needs_a_path_or_data(capsys):
    assert main(["facts"]) == 2
    assert "cfglint facts needs PATH" in capsys.readouterr().err


SWIFT = """\
#!/bin/bash
swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset a --max_length 8192 \\
  --per_device_train_batch_size 4 --torch_dtype bfloat16
"""
TRL = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
dataset_name: trl-lib/tldr
use_vllm: true
vllm_mode: colocate
vllm_gpu_memory_utilization: 0.3
per_device_train_batch_size: 8
num_generations: 8
max_completion_length: 2048
output_dir: out
"""


def tokens(text, name, **seen):
    from cfglint.document.reading import read_text
    from cfglint.engine.judge import values_for
    from cfglint.engine.run import Run
    from cfglint.hardware.target import parse_target
    from cfglint.lang.pack import load
    from cfglint.lang.values import Interval

    run = Run(load())
    document = read_text(text, name, scripts=True).documents[0]
    given = {fact: value for fact, (value, _) in parse_target("h100-sxm:1").facts.items()}
    given |= {f"observed.{figure}": value for figure, value in seen.items()}
    value = values_for(run.subject_of(document, run.recognise(document)), given)["micro.tokens"]
    return (value.lo, value.hi) if isinstance(value, Interval) else (value, value)


@pytest.mark.parametrize(
    ("text", "name", "seen", "told"),
    [
        (SFT, "a.yaml", {}, (4 * 1024, 4 * 4096)),  # the prior: up to 1024 the limit is reached
        (SFT.replace("4096", "1024"), "a.yaml", {}, (4 * 1024, 4 * 1024)),
        (SFT, "a.yaml", {"length_max": 1000}, (4 * 1000, 4 * 1000)),
        (SFT, "a.yaml", {"length_p99": 700, "length_max": 1000}, (4 * 700, 4 * 1000)),
        (SFT, "a.yaml", {"length_p99": 5000, "length_max": 9000}, (4 * 4096, 4 * 4096)),
        (SFT + "packing: true\n", "a.yaml", {"length_p99": 700, "length_max": 1000}, (4 * 4096, 4 * 4096)),
        (SWIFT, "a.sh", {}, (0.1 * 4 * 8192, 4 * 8192)),
        (SWIFT, "a.sh", {"length_p99": 700, "length_max": 1000}, (4 * 700, 4 * 1000)),
        # TRL says no longer how long prompts may be.
        (TRL, "a.yaml", {"prompt_max": 400}, (0.25 * 8 * 2448, 8 * 2448)),
        (TRL, "a.yaml", {"prompt_p99": 300, "prompt_max": 400, "answer_p99": 900, "answer_max": 1500},
         (8 * 1200, 8 * 1900)),
        (GRPO, "a.yaml", {"prompt_p50": 100, "prompt_max": 400, "answer_p50": 300, "answer_max": 1500},
         (4 * 400, 4 * 1900)),  # without padding, the lengths of four
    ],
)  # fmt: skip
def test_tokens_of_a_micro_batch(text, name, seen, told):
    assert tokens(text, name, **seen) == pytest.approx(told)
