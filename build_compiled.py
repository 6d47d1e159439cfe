"""Compiles the shipped rules when a wheel is built: hatchling runs ``CompiledRules``, that runs this file.

What is written is the same for every Python (see ``cfglint.cache.shipped``). An editable install has none: a
checkout's rules change. Where the build's Python lacks lark, the wheel works without; its first run takes
seconds instead of a fraction of one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent


def write(folder: Path) -> None:
    """Write a file for each thing that is slow to build."""
    from cfglint.cache import to_ship
    from cfglint.lang import pack, parse

    texts = pack.shipped_rules()
    for name, value in pack.to_ship().items():
        (folder / f"{name}.bin").write_bytes(to_ship(texts, value))
    (folder / "grammar.bin").write_bytes(to_ship(*parse.grammar_to_ship()))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class CompiledRules(BuildHookInterface):
        """Puts the compiled rules into the wheel."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, in a process of its own with a fixed hash seed: the same rules give the same bytes."""
            if version == "editable":
                return
            if find_spec("lark") is None or find_spec("yaml") is None:
                self.app.display_warning("without lark and pyyaml the rules are not compiled into this wheel")
                return
            self.folder = TemporaryDirectory()
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(HERE / "linter"), *filter(None, sys.path)]),
                "PYTHONHASHSEED": "0",
                "CFGLINT_CACHE": "",
            }
            command = [sys.executable, __file__, self.folder.name]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"the rules do not compile:\n{done.stderr}")
            build_data["force_include"][self.folder.name] = "cfglint/compiled"

        def finalize(self, *_: object) -> None:
            """Remove what was written."""
            if hasattr(self, "folder"):
                self.folder.cleanup()
