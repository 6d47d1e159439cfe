"""A strange repository beside files that are none of its business, and the command on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2-5f1c"
TIME = 60  # seconds after which a command counts as hanging; none of these takes two


class Strange:
    """A repository and, beside it, the home of whoever checks it."""

    def __init__(self, base: Path) -> None:
        self.home, self.repo = base / "home", base / "repo"
        for folder in (self.home, self.repo / ".git"):
            folder.mkdir(parents=True)
        (self.repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def write(self, files):
        """Write files by their paths in the repository."""
        for name, text in files.items():
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)

    def secret(self, name, text):
        """Write a file that the repository must not see; its text holds the secret."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        assert SECRET in text
        return path

    def run(self, *words, where=None, detect=False, **environ):
        """Run the command in the repository; it ends in time, and with a word of its own."""
        command = [sys.executable, "-m", "cfglint", *map(str, words)]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "linter"), "HOME": str(self.home), "COLUMNS": "200", **environ}
        if not detect and words[0] in ("check", "fix", "fit"):
            command.append("--no-detect")
        done = subprocess.run(
            command, cwd=where or self.repo, env=env, capture_output=True, text=True, timeout=TIME, check=False
        )
        assert done.returncode in (0, 1, 2), done.stderr
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        return done

    def everything(self, *words, **how):
        """Return all that the command prints, in every form."""
        forms = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")
        runs = [self.run(*words, "--format", form, "--verbose", **how) for form in forms]
        return "".join(done.stdout + done.stderr for done in runs)


@pytest.fixture
def strange(tmp_path):
    """A strange repository."""
    return Strange(tmp_path)
