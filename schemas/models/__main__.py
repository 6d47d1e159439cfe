"""Writes linter/cfglint/models/configs.yaml: architectures of models, from configs in public repositories.

    python schemas/models MIRROR [--check] [--only WORD]

MIRROR is a folder with git directories OWNER+NAME/repo. What is read stands in sources.yaml beside this
file: for each row its ids, and where its config is, as `owner/name:path` or `owner/name:path#name`, at the
commit that `commits` names. A file may be JSON, Python (the name is that of a dictionary, a call of a
configuration class, a data class, or a function that fills one in; nothing is run), or a shell script with
Megatron's arguments. From `transformers#Class` comes what a configuration class of transformers takes where
nothing is said. `set` adds or replaces keys of the config, and `why` says where those are from; with
`by_hand` all of it is in `set`, read by a person in what `from` names. `family` stands for that of the text
model where the memory model has no terms for what is beside it (a tower of sound).

A config is read as a user's config.json is (cfglint.models.hf_config). The parameters are counted by the
closed form and by the class of transformers on the meta device, where there is one; what the class has
beside the form is other_params, of it vision_params what the vision tower has. It takes Python with
transformers 5.23, torch and PyYAML (for Gemma 3n, timm too).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "linter"))

from configs import ConfigSourceError, config_of
from rows import RowError, row_of

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "linter" / "cfglint" / "models" / "configs.yaml"
HEAD = """\
# Architectures of models, read from configs in public repositories by schemas/models, which says how; not
# by hand. Columns are those of models.yaml. counted is `transformers` where sum(p.numel()) of the class of
# transformers 5.23 on the meta device gave the parameters, `form` where the closed form did. other_params
# is what a model has beside the closed form: its vision tower with what joins it to the text model
# (vision_params), audio, and what is the family's own (below zero where a family without a form has less
# than a Llama of its shape).
models:
"""


def main() -> int:
    """Write the rows, or check them."""
    parser = argparse.ArgumentParser(prog="python schemas/models", description=__doc__.partition("\n")[0])
    parser.add_argument("mirror", type=Path, metavar="MIRROR")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where the file would change"
    )
    parser.add_argument("--only", metavar="WORD", help="print the rows whose ids have a word, write nothing")
    args = parser.parse_args()
    sources = yaml.safe_load((HERE / "sources.yaml").read_text("utf-8"))
    texts, failed = [], 0
    for entry in sources["rows"]:
        if args.only is not None and args.only.lower() not in " ".join(entry["ids"]).lower():
            continue
        try:
            config = config_of(entry, sources["commits"], args.mirror)
            row = row_of(config, form_only="form" in entry, family=entry.get("family", ""))
            texts.append(written(entry, row, sources["commits"]))
        except (ConfigSourceError, RowError) as error:
            failed += 1
            print(f"{entry['ids'][0]}: {error}", file=sys.stderr)
    if args.only is not None:
        print("".join(texts))
        return int(failed > 0)
    text = HEAD + "".join(texts)
    changed = not OUT.exists() or OUT.read_text("utf-8") != text
    if changed and not args.check and not failed:
        OUT.write_text(text, "utf-8")
    print(f"{OUT.name}: {len(texts)} rows, {'differs' if changed else 'unchanged'}, {failed} failed")
    return int(failed > 0 or (args.check and changed))


def written(entry: dict[str, Any], row: dict[str, Any], commits: dict[str, str]) -> str:
    """Return a row as YAML, a line for each of its parts."""
    figures = ", ".join(f"{name}: {str(value).lower()}" for name, value in row["figures"].items())
    place = entry["from"]
    repository = place.partition(":")[0]
    source = f"{place} @{commits[repository][:9]}" if repository in commits else place
    source += f"; {entry['why']}" if "why" in entry else ""
    lines = [
        f"- ids: [{', '.join(entry['ids'])}]",
        f"  family: {row['family']}",
        f"  figures: {{{figures}}}",
        f"  counted: {row['counted']}",
        "  source: " + yaml.safe_dump(source, width=10**6).removesuffix("...\n").strip(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
