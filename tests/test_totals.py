"""How a program's passes follow from a batch of all processes, and what its groups of samples go with."""

import pytest

from cfglint.document.python.loaders import Sizes, sizes_of
from cfglint.document.python.modules import Modules
from cfglint.document.python.samplers import Drawn, draws
from cfglint.document.python.totals import Share, loads_passes, total_of
from cfglint.document.tree import File

ALPACA = """
def train(batch_size, micro_batch_size):
    gradient_accumulation_steps = batch_size // micro_batch_size
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    if world_size != 1:
        gradient_accumulation_steps = gradient_accumulation_steps // world_size
"""
TOKENS = """
tokens = args.device_batch_size * args.max_seq_len
world_tokens = tokens * ddp_world_size
grad_accum_steps = args.total_batch_size // world_tokens
"""
NANO = "gradient_accumulation_steps = 40\nif ddp:\n    gradient_accumulation_steps //= ddp_world_size\n"
RECIPES = "args.grad_accum_steps = args.whole // (args.micro * int(os.environ['WORLD_SIZE']))\n"
GIVEN = "plugin = Accelerator(gradient_accumulation_steps=max(1, cfg.total // cfg.micro // dp_size))\n"
ALONE = "if world_size == 1:\n    accum_steps = 1\nelse:\n    accum_steps = args.total // world_size\n"

PARTS = """
part = args.whole // fs.get_data_parallel_world_size()
for index in range((part - 1) // args.micro + 1):
    micro_batch(index).backward()
"""
STEPS = """
part = args.whole // world_size
for _ in range(0, part, args.micro):
    loss = model(micro_batch).backward()
"""


def _modules():
    return Modules(lambda path, name: None)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        (ALPACA, Share(("batch_size",), ("micro_batch_size",), processes=-1)),
        (TOKENS, Share(("total_batch_size",), ("device_batch_size", "max_seq_len"), processes=-1)),
        (NANO, Share(("gradient_accumulation_steps",), (), processes=-1)),
        (RECIPES, Share(("whole",), ("micro",), processes=-1)),
        (GIVEN, Share(("total",), ("micro",), replicas=-1)),
        (ALONE, Share(("total",), (), processes=-1)),
        (PARTS, Share(("whole",), ("micro",), replicas=-1)),
        (STEPS, Share(("whole",), ("micro",), processes=-1)),
        (STEPS.replace("0, part, args.micro", "part"), Share(("whole",), (), processes=-1)),
        (STEPS.replace(".backward()", ""), None),
        (STEPS + "    optimizer.step()\n", None),  # a loop of steps
        ("gradient_accumulation_steps = args.batch_size // args.micro\n", None),  # of each process
        ("accum_steps = compute(args) // world_size\n", None),
        ("accumulated_loss /= world_size\n", None),
        (ALPACA + TOKENS, None),  # of two, nobody knows which
    ],
)
def test_a_total_that_passes_follow_from(text, share):
    assert total_of(File("train.py", text, "program"), _modules()) == share


SAMPLER = """
class Own(Trainer):
    def _get_train_sampler(self):
        if self.args.grouped:
            return {}
Own(model=model)
"""


@pytest.mark.parametrize(
    ("made", "drawn"),
    [
        ("SourceSampler(data, self.args.train_batch_size * self.args.gradient_accumulation_steps)", "passes"),
        ("LengthSampler(args.batch_size, world_size=args.world_size * args.accumulation)", ""),
        ("LengthSampler(args.batch_size * args.accumulation, world_size=args.world_size)", ""),
        ("LengthSampler(args.batch_size, world_size=args.world_size)", "processes"),
        ("SomeSampler(args.batch_size, num_replicas=args.world_size, rank=args.rank)", ""),
        ("LengthSampler(args.batch_size)", ""),
    ],
)
def test_what_groups_of_samples_go_with(made, drawn):
    program = File("train.py", SAMPLER.format(made), "program")
    assert draws(program, _modules()) == ((Drawn(drawn, "grouped"),) if drawn else ())


def test_a_trainer_that_is_not_made_draws_nothing():
    text = SAMPLER.format("LengthSampler(args.batch_size, world_size=args.world_size)")
    assert draws(File("train.py", text.replace("Own(model", "Other(model"), "program"), _modules()) == ()


LOOP = """
accelerator = Accelerator(gradient_accumulation_steps=args.every)
loader = DataLoader(data, batch_size=args.batch, shuffle=True)
eval_loader = DataLoader(eval_data, batch_size=args.eval_batch)
loss.backward()
"""
PLAIN = """
sampler = DistributedSampler(data)
loader = DataLoader(data, sampler=sampler, batch_size=args.batch)
loss.backward()
"""
DIVIDED = """
args.train_batch_size = args.train_batch_size // args.gradient_accumulation_steps
loader = DataLoader(data, sampler=DistributedSampler(data), batch_size=args.train_batch_size)
loss.backward()
if (step + 1) % args.gradient_accumulation_steps == 0:
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (LOOP, Sizes("batch", "every")),
        (PLAIN, Sizes("batch", once=True)),
        (PLAIN.replace("args.batch)", "args.batch // args.gpus)"), Sizes()),
        (PLAIN.replace("(data, sampler=sampler, batch_size=", "(data, "), Sizes("batch", once=True)),
        (
            PLAIN.replace("args.batch)", "int(args.batch / dist.get_world_size()))"),
            Sizes(whole="batch", once=True),
        ),
        (
            PLAIN + "accum = args.every\nif (step + 1) % accum == 0: optimizer.step()\n",
            Sizes("batch", "every"),
        ),
        (
            PLAIN + "scale(loss, update_grad=(step + 1) % args.accum_iter == 0)\n",
            Sizes("batch", "accum_iter"),
        ),
        (PLAIN + "if step % args.every == 0: log(accum)\n", Sizes("batch", once=True)),
        ("loss.backward()\nif step % args.accum == 0: optimizer.step()\n", Sizes(passes="accum")),
        (PLAIN.replace("DistributedSampler", "RandomSampler"), Sizes()),  # of all, or of one process
        (PLAIN + "model = nn.DataParallel(model)\n", Sizes("batch", once=True, splits=True)),
        (DIVIDED, Sizes(passes="gradient_accumulation_steps", divided="train_batch_size")),
        (PLAIN + "engine, *_ = deepspeed.initialize(model)\n", Sizes("batch")),
        (PLAIN + "if step % update_freq == 0: optimizer.step()\n", Sizes("batch")),
    ],
)
def test_what_a_loop_takes_at_a_time(text, sizes):
    assert sizes_of(File("train.py", text, "program"), _modules()) == sizes


@pytest.mark.parametrize(
    ("more", "loads"),
    [("(model)", True), ("(model, training_data=data)", False)],  # the engine makes a loader, too
)
def test_who_makes_the_loader_where_an_engine_takes_the_steps(more, loads):
    text = f"{PLAIN}engine, *_ = deepspeed.initialize{more}\n"
    assert sizes_of(File("train.py", text, "program"), _modules()).loads is loads


LOADED = """
def parse():
    args.local_batch_size = args.micro * args.gradient_accumulation_steps * args.minibatches
loader = DataLoader(data, batch_size=args.local_batch_size)
"""


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        (LOADED, True),
        ("loader = DataLoader(data, batch_size=args.micro * args.gradient_accumulation_steps)\n", True),
        (LOADED.replace("size = args.micro", "size = args.micro // world_size"), False),
        (LOADED.replace("batch_size=args.local_batch_size)", "batch_size=args.micro)"), False),
        ("loader = DataLoader(data, batch_size=args.gradient_accumulation_steps)\n", False),
    ],
)
def test_a_loader_of_what_all_passes_take(text, loads):
    assert loads_passes(File("train.py", text, "program"), _modules()) == loads
