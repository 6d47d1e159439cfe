"""Looks models up by id; the catalogue is read when a rule first asks for one."""

from __future__ import annotations

import os

from cfglint.cache import cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_models: dict[str, dict[str, object]] = {}


def _read() -> str:
    path = os.path.join(os.path.dirname(__file__), "models.yaml")
    if not os.path.exists(path):  # inside a zip only the loader can read it
        data = __spec__.loader.get_data(path)  # type: ignore[union-attr]
        return str(data, "utf-8")
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def _build(text: str) -> dict[str, dict[str, object]]:
    import yaml

    rows = yaml.load(text, Loader=yaml.CSafeLoader)["models"]
    return {row["id"].lower(): {**row["figures"], "family": row["family"]} for row in rows}


def find(name: str) -> Mapping[str, object] | None:
    """Return the figures of a model by its Hugging Face id, None for one that is not known.

    Ids compare without case, as the Hub resolves them; a local path is none.
    """
    if not _models:
        text = _read()
        _models.update(cached("models1", {"models.yaml": text}, lambda: _build(text)))  # type: ignore[call-overload]
    return _models.get(name.strip().strip("/").lower())


TABLES = {"models": find}
