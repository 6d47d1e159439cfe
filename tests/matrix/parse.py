"""Parses jobs as their own projects do, in whatever Python has these; nothing is trained.

    python parse.py KIND < texts.json

The texts are pairs of a number and a text, the first of which is the job before any fix. It prints the
numbers of those that are refused, with the reason, or what is not installed. Arguments are parsed and not put
to use: what a class makes of them may need a GPU.
"""

import contextlib
import io
import json
import os
import shlex
import sys
import tempfile

os.environ |= {"DISABLE_VERSION_CHECK": "1", "HF_HUB_OFFLINE": "1"}


def words(text):
    """Return the flags of a command, or those that a file's keys are."""
    if text.lstrip().startswith(("torchrun", "accelerate", "python")):
        given = shlex.split(text.replace("\\\n", " "))
        return given[next(i for i, word in enumerate(given) if word.endswith((".py", ".sft"))) + 1 :]
    given = []
    for key, value in loaded(text).items():
        if value is not None:
            said = json.dumps(value) if isinstance(value, dict) or value == [] else value
            given += [f"--{key}", *map(str, said if isinstance(said, list) else [said])]
    return given


def loaded(text):
    """Return a file's keys, without the one that holds an anchor."""
    import yaml

    def without(value):
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items() if key != "zz"}
        return value

    return without(yaml.safe_load(text))


def arguments(*classes):
    """Return what parses flags into some classes; what none of them has is in the first text, too."""
    from transformers import HfArgumentParser

    known = set()

    def parse(text, first):
        parser = HfArgumentParser(classes)
        _, rest = parser.parse_known_args(words(text))
        strange = {word for word in rest if word.startswith("--")}
        if first:
            known.update(strange)
        if strange - known:
            raise ValueError(f"no argument is named {sorted(strange - known)}")

    return parse


def transformers():
    from transformers import TrainingArguments

    return arguments(TrainingArguments)


def trl_sft():
    from trl import ModelConfig, ScriptArguments, SFTConfig

    return arguments(ScriptArguments, SFTConfig, ModelConfig)


def trl_grpo():
    from trl import GRPOConfig, ModelConfig
    from trl.scripts.grpo import GRPOScriptArguments

    return arguments(GRPOScriptArguments, GRPOConfig, ModelConfig)


def llamafactory():
    from llamafactory.hparams.parser import _TRAIN_ARGS

    return arguments(*_TRAIN_ARGS)


def accelerate():
    from accelerate.commands.config.config_args import load_config_from_file

    def parse(text, _):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(loaded(text), file)
            file.flush()
            load_config_from_file(file.name)

    return parse


def axolotl():
    from types import ModuleType

    from axolotl.utils.schemas.config import AxolotlInputConfig

    sys.modules.setdefault("ring_flash_attn", ModuleType("ring_flash_attn"))  # a validator imports it
    return lambda text, _: AxolotlInputConfig.model_validate(loaded(text))


def torchtune():
    sys.path.insert(0, os.environ.get("CFGLINT_TORCHTUNE", "."))  # newer than its last release
    from omegaconf import OmegaConf
    from torchtune.config import validate

    return lambda text, _: validate(OmegaConf.create(loaded(text)))


def hydra(folder, name):
    """Return what composes a command's overrides with a project's own config."""
    from hydra import compose, initialize_config_dir

    def parse(text, _):
        overrides = [word for word in shlex.split(text.replace("\\\n", " ")) if "=" in word]
        with initialize_config_dir(os.path.abspath(folder), version_base=None):
            compose(name, [word for word in overrides if not word.startswith("--config")])

    return parse


def verl(name="ppo_trainer"):
    return hydra(os.path.join(os.environ["CFGLINT_VERL"], "verl", "trainer", "config"), name)


def verl_megatron():
    return verl("ppo_megatron_trainer")


def main():
    kind = sys.argv[1]
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            parse = globals()[kind]()
    except (ImportError, KeyError) as error:
        sys.stdout.write(json.dumps({"missing": f"{type(error).__name__}: {error}"[:200]}))
        return
    refused = {}
    for number, text in json.load(sys.stdin):
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                parse(text, number == 0)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}" if str(error) not in ("", "2") else said.getvalue()
            refused[number] = reason.strip()[-400:]
    sys.stdout.write(json.dumps({"refused": refused}))


if __name__ == "__main__":
    main()
