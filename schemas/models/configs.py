"""Reads the config of one model from where sources.yaml says that it is; nothing that is read is run."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class ConfigSourceError(Exception):
    """A config is not where it is said to be; the text says what is missing."""


def config_of(entry: dict[str, Any], commits: dict[str, str], mirror: Path) -> dict[str, Any]:
    """Return the config of an entry of sources.yaml, with what it sets."""
    place, _, name = entry["from"].partition("#")
    repository, _, path = place.partition(":")
    if entry.get("by_hand"):
        config: dict[str, Any] = {}
    elif repository == "transformers":
        config = _default(name)
    else:
        if repository not in commits:
            raise ConfigSourceError(f"commits has no {repository}")
        text = _text(mirror / repository.replace("/", "+") / "repo", commits[repository], path)
        config = _read(text, path, name)
    return _merged(config, entry.get("set", {}))


def _merged(config: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = dict(config)
    for key, value in more.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return {key: value for key, value in merged.items() if value != "absent"}


@cache
def _text(root: Path, commit: str, path: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(root), "show", f"{commit}:{path}"], check=False, capture_output=True
    )
    if done.returncode:
        raise ConfigSourceError(f"{root} has no {path} at {commit}")
    return done.stdout.decode()


def _read(text: str, path: str, name: str) -> dict[str, Any]:
    if path.endswith(".json"):
        config = dict(json.loads(text))
        nested = "text_config" in config or "hidden_size" in config
        return config if nested else {_FIELDS.get(key, key): value for key, value in config.items()}
    if path.endswith(".py"):
        return _Python(ast.parse(text)).named(name)
    if path.endswith(".sh"):
        return _of_arguments(text)
    raise ConfigSourceError(f"{path} is neither JSON, nor Python, nor a shell script")


# ── transformers ───────────────────────────────────────────────────────────────────────────────────────────
def _default(name: str) -> dict[str, Any]:
    import transformers

    return dict(getattr(transformers, name)().to_dict())


@cache
def _types() -> dict[str, str]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return {name: kind for kind, name in CONFIG_MAPPING_NAMES.items()}


# ── Python ─────────────────────────────────────────────────────────────────────────────────────────────────
class _Python:
    """Values of literal expressions in a module: dictionaries, calls, attributes set one by one."""

    def __init__(self, module: ast.Module) -> None:
        self.names: dict[str, ast.AST] = {}
        self.updates: dict[str, list[tuple[str, ast.expr]]] = {}  # key and value; all of it where no key is
        for node in ast.walk(module):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names.setdefault(node.targets[0].id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                self.names.setdefault(node.target.id, node.value)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.names.setdefault(node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                self._changes(node.targets[0], node.value)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "update" and node.args:
                self._changes(node.func.value, node.args[0])  # type: ignore[attr-defined]

    def _changes(self, target: ast.expr, value: ast.expr) -> None:
        """Keep `name["key"] = value`, `name.update(value)` and `name["key"].update(value)`."""
        key = ""
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            key, target = str(target.slice.value), target.value
        if isinstance(target, ast.Name):
            self.updates.setdefault(target.id, []).append((key, value))

    def named(self, name: str) -> dict[str, Any]:
        """Return the config that has a name, or a key in a dictionary: `NAME` or `NAME.key`."""
        first, *keys = name.split("/")
        if first not in self.names:
            raise ConfigSourceError(f"nothing is named {first}")
        value = self._value(self.names[first])
        for key, update in self.updates.get(first, ()):
            value = _merged(value, {key: self._value(update)} if key else self._value(update))
        for key in keys:
            value = value[key]
        if not isinstance(value, dict):
            raise ConfigSourceError(f"{name} is no dictionary")
        return value

    def _value(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            whole: dict[str, Any] = {}
            for key, value in pairs:
                if key is None:
                    whole.update(self._value(value))
                else:
                    whole[str(self._value(key))] = self._value(value)
            return whole
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.FunctionDef):
            return self._function(node)
        if isinstance(node, ast.ClassDef):
            return {_FIELDS.get(key, key): value for key, value in self._fields(node).items()}
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.named(node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = self._value(node.value)
            return held.get(node.slice.value) if isinstance(held, dict) else None
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(item) for item in node.elts]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._value(node.left) * self._value(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._value(node.left) + self._value(node.right)
        try:
            return ast.literal_eval(node)  # type: ignore[arg-type]
        except ValueError:
            return None

    def _call(self, node: ast.Call) -> Any:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("copy", "deepcopy") and isinstance(node.func, ast.Attribute):
            return self._value(node.func.value)
        whole: dict[str, Any] = {}
        for word in node.keywords:
            whole.update({word.arg: self._value(word.value)} if word.arg else self._value(word.value))
        if name in _types():
            whole.setdefault("model_type", _types()[name])
        return whole

    def _fields(self, node: ast.ClassDef) -> dict[str, Any]:
        """Return the fields of a data class, its bases' first, or what a config's __init__ defaults to."""
        whole: dict[str, Any] = {}
        for base in reversed(node.bases):
            if isinstance(base, ast.Name) and isinstance(self.names.get(base.id), ast.ClassDef):
                whole.update(self._fields(self.names[base.id]))  # type: ignore[arg-type]
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.value:
                whole[part.target.id] = self._value(part.value)
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                whole[part.targets[0].id] = self._value(part.value)
            elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
                words = part.args.args[len(part.args.args) - len(part.args.defaults) :]
                whole.update({a.arg: self._value(v) for a, v in zip(words, part.args.defaults, strict=True)})
        return whole

    def _flavor(self, node: ast.FunctionDef) -> dict[str, Any]:
        """Return what a flavor of torchtitan gives to the builders of its layers and its vision encoder."""
        names = {
            part.targets[0].id: part.value
            for part in ast.walk(node)
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
        }
        whole: dict[str, Any] = (
            {"vocab_size": self._value(names["vocab_size"])} if "vocab_size" in names else {}
        )
        tower: dict[str, Any] = {}
        for part in ast.walk(node):
            called = getattr(part.func, "id", "") if isinstance(part, ast.Call) else ""
            if not isinstance(part, ast.Call) or not called.startswith("_"):
                continue
            words = {
                word.arg: self._value(names.get(word.value.id, word.value))
                if isinstance(word.value, ast.Name)
                else self._value(word.value)
                for word in part.keywords
                if word.arg and not isinstance(word.value, ast.Call)
            }
            if "vision" in called:
                tower = {_TOWER.get(key, key): value for key, value in words.items()}
            elif called.startswith("_build"):
                whole.update({_FIELDS.get(key, key): value for key, value in words.items()})
        return {"text_config": whole, "vision_config": tower} if tower else whole

    def _function(self, node: ast.FunctionDef) -> dict[str, Any]:
        """Return what a function that makes a config sets: `config.hidden_size = 4096`, or returns."""
        whole = self._flavor(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Dict) and not whole:
                whole = self._value(part.value)
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Attribute):
                whole[part.targets[0].attr] = self._value(part.value)
            elif isinstance(part, ast.Return) and isinstance(part.value, (ast.Dict, ast.Call)) and not whole:
                whole = _merged(self._value(part.value), whole)
        return whole


# Fields of NeMo's and Megatron's data classes and of torchtitan's flavors, by what a config.json calls them.
_FIELDS = {
    "num_layers": "num_hidden_layers", "ffn_hidden_size": "intermediate_size",
    "num_query_groups": "num_key_value_heads", "kv_channels": "head_dim",
    "num_moe_experts": "n_routed_experts",
    "moe_router_topk": "num_experts_per_tok", "moe_ffn_hidden_size": "moe_intermediate_size",
    "moe_shared_expert_intermediate_size": "shared_expert_intermediate_size",
    "share_embeddings_and_output_weights": "tie_word_embeddings",
    "mamba_num_groups": "n_groups", "mamba_state_dim": "ssm_state_size",
    "n_layers": "num_hidden_layers", "dim": "hidden_size", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size",
    "moe_hidden_dim": "moe_intermediate_size",
    "top_k": "num_experts_per_tok", "shared_expert_hidden_dim": "shared_expert_intermediate_size",
    "n_key_heads": "linear_num_key_heads", "n_value_heads": "linear_num_value_heads",
    "key_head_dim": "linear_key_head_dim", "value_head_dim": "linear_value_head_dim",
}  # fmt: skip
_TOWER = {"dim": "hidden_size", "ffn_dim": "intermediate_size", "num_layers": "depth"}


# ── Megatron's arguments ───────────────────────────────────────────────────────────────────────────────────
_ARGUMENTS = {
    "num-layers": "num_hidden_layers", "hidden-size": "hidden_size", "ffn-hidden-size": "intermediate_size",
    "num-attention-heads": "num_attention_heads", "num-query-groups": "num_key_value_heads",
    "kv-channels": "head_dim", "padded-vocab-size": "vocab_size", "vocab-size": "vocab_size",
    "num-experts": "n_routed_experts",
    "moe-router-topk": "num_experts_per_tok", "moe-ffn-hidden-size": "moe_intermediate_size",
    "moe-shared-expert-intermediate-size": "shared_expert_intermediate_size",
    "q-lora-rank": "q_lora_rank", "kv-lora-rank": "kv_lora_rank", "qk-head-dim": "qk_nope_head_dim",
    "v-head-dim": "v_head_dim", "qk-pos-emb-head-dim": "qk_rope_head_dim",
}  # fmt: skip


def _of_arguments(text: str) -> dict[str, Any]:
    """Return a config of `--num-layers 28 …` in a shell script, whose variables are put in."""
    names = dict(re.findall(r"^\s*([A-Z_]+)=([0-9]+|\$\(\(.*\)\))\s*$", text, re.MULTILINE))
    config: dict[str, Any] = {}
    for option, key in _ARGUMENTS.items():
        found = re.search(rf"--{option}[ =]+(\$\(\(.*?\)\)|\S+)", text)
        if found is not None:
            config[key] = _number(found[1], names)
    config["tie_word_embeddings"] = "--untie-embeddings-and-output-weights" not in text
    dense = re.search(r"--moe-layer-freq\s+\[0\]\*(\S+?)\+", text)
    if dense is not None:
        config["first_k_dense_replace"] = _number(dense[1], names)
    return config


def _number(text: str, names: dict[str, str]) -> int:
    for _ in range(3):  # a variable may be of others
        text = re.sub(r"\$\{?([A-Z_]+)\}?|\b([A-Z_]+)\b", lambda m: names.get(m[1] or m[2], "?"), text)
    inner = text.removeprefix("$((").removesuffix("))")
    if not re.fullmatch(r"[0-9+* ]+", inner):
        inner = re.sub(r"\$\(\(|\)\)", "", inner)
    if not re.fullmatch(r"[0-9+* ]+", inner):
        raise ConfigSourceError(f"{text} is no number")
    return sum(_product(term) for term in inner.split("+"))


def _product(text: str) -> int:
    result = 1
    for factor in text.split("*"):
        result *= int(factor)
    return result
