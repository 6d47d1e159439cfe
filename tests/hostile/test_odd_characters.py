"""Commands in manifests, with characters that YAML, a shell and an editor take in different ways."""

import json
import random

import pytest

from cfglint.api import check_text, fix_text
from cfglint.text import apply_edits
from tiers import LONG

ODD = (
    "\x85", "\u2028", "\u2029", "\r", "\r\n", "\t", "\ufeff", "\0", "\x0b", "\x0c", "\x1b", "\xa0",
    "e\u0301", "\u200d", "\U0001f600", "\\", "'", '"', "\ud800",
)  # fmt: skip
COMMAND = "python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B{} --mem-fraction-static 0.97 --tp 1{}"
POD = (
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n"
    "    command: [bash, -c]\n    args:\n    - {}\n"
)
MANIFESTS = {
    "SkyPilot": (4, "resources:\n  accelerators: A100:8\nrun: {}\n"),
    "Kubernetes": (12, POD),
    "compose": (8, "services:\n  a:\n    image: x\n    command: {}\n"),
    "RunPod": (4, "gpuTypeIds: [NVIDIA A100]\ngpuCount: 8\ndockerArgs: {}\n"),
    "RunPod's list": (4, "gpuTypeIds: [NVIDIA A100]\ngpuCount: 8\ndockerStartCmd: [bash, -c, {}]\n"),
}


def places(odd):
    """Return where a character goes: within words, between them, at the end, in quotes."""
    yield f" {odd} ", ""
    yield odd, odd
    yield "", f" {odd}"
    yield f" --served-model-name a{odd}b", ""
    yield "", f" --served-model-name 'a{odd}b'"


def styles(command, indent):
    """Return the ways to write a text in YAML."""
    pad = " " * indent
    yield command
    yield "'" + command.replace("'", "''") + "'"
    yield '"' + command.replace("\\", "\\\\").replace('"', '\\"') + '"'
    yield json.dumps(command)
    for head in ("|", "|-", "|+", ">", ">-", ">+"):
        yield f"{head}\n{pad}" + command.replace("--mem", f"\\\n{pad}--mem")
        yield f"{head}\n{pad}" + command.replace(" --tp", f"\n{pad}  --tp")


@pytest.mark.parametrize("manifest", MANIFESTS)
@pytest.mark.parametrize("odd", ODD if LONG else ODD[::8], ids=ascii)
def test_findings_and_fixes_are_in_the_file(odd, manifest):
    indent, form = MANIFESTS[manifest]
    texts = [form.format(own) for place in places(odd) for own in styles(COMMAND.format(*place), indent)]
    for text in random.Random(f"{odd!r} {manifest}").sample(texts, 8 if LONG else 3):
        report = check_text(text, path="a.yaml", hardware="rtx-4090:8")
        for finding in report.findings:
            assert 0 <= finding.place.start <= finding.place.end <= len(text), text
            for fix in (finding.fix, *finding.alternatives):
                if fix is not None and fix.edits:  # without a place, it is only shown
                    assert apply_edits(text, fix.edits) != text
        fixed, left = fix_text(text, path="a.yaml", hardware="rtx-4090:8", unsafe=True)
        was_broken = any(finding.code == "CFG001" for finding in report.findings)
        assert was_broken or not any(finding.code == "CFG001" for finding in left.findings), fixed
