"""The flags of ``cfglint plan``."""

from __future__ import annotations

from cfglint.command.flags import form, free, number, switch, text
from cfglint.command.options import MODEL, Options
from cfglint.features.plan.compute import OFF, ON
from cfglint.features.plan.page import FORMATS

CHECKPOINTING = {"both": (OFF, ON), "on": (ON,), "off": (OFF,)}
FAIL_ON = ("oom", "never")


class PlanOptions(Options):
    """The flags of ``plan``."""

    command = "plan"
    about = "What makes up an effective batch exactly: the memory and time of each way, and the one to take."
    offers = (
        *("effective_batch", "gpus", "micro_batch", "zero_stage", "checkpointing"),
        *("samples", "sample_tokens", *MODEL, "write", "diff", "row"),
        *("all", "verbose", "format", "output_file", "fail_on", "quiet", "no_color"),
    )
    also = ("rule",)

    path: str = free("PATH", "a config, - for stdin", needed=True)
    effective_batch: str | None = text(
        "sequences per optimizer step, such as 64,128,256 (default: what the config comes to)",
        "N,…",
        group="what to combine",
    )
    gpus: str | None = text(
        "numbers of GPUs, such as 4,8,16 (default: the target's, the config's, or 1,2,4,…)",
        "N,…",
        group="what to combine",
    )
    micro_batch: str | None = text(
        "sequences per GPU and pass, or tokens where the trainer counts those (default: all that divide)",
        "N,…",
        group="what to combine",
    )
    zero_stage: str | None = text(
        "ZeRO stages 0,1,2,3, or all (default: the config's)", "N,…", group="what to combine"
    )
    checkpointing: str | None = text(
        "both, on or off (default: the config's, and on where nothing fits)",
        "WHICH",
        choices=tuple(CHECKPOINTING),
        group="what to combine",
    )
    samples: int | None = number("samples of the data set: steps and time per epoch", "N", group="time")
    sample_tokens: int | None = number(
        "tokens of a sample on average (default: the longest sequence)", "N", group="time"
    )
    write: bool = switch("put the recommended row into the file", group="the row to take")
    diff: bool = switch("show what --write would change, as a patch", group="the row to take")
    row: int | None = number(
        "another row than the recommended one; alone, shows the patch", "K", group="the row to take"
    )
    all: bool = switch("every row, not only those that matter", group="output")
    verbose: bool = switch("as --all", short="v", group="output")
    format: str | None = form(FORMATS)
    fail_on: str | None = text(
        "exit with 1 where a batch has no row that fits for sure: oom (default: never)",
        "VERDICT",
        choices=FAIL_ON,
        group="output",
    )
    quiet: bool = switch("no notices", short="q", group="output")
