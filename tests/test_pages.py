"""Pages of fit, plan, compare and diagnose: commands, and what they must print (golden.py).

``tests/<folder>/pages.md`` names files that lie beside it. A diagnosis ends with the exit status.
"""

from pathlib import Path

import pytest

from golden import Page

HERE = Path(__file__).parent
PAGES = [Page(HERE / folder / "pages.md") for folder in ("fit", "plan", "compare", "logs")]
COMMANDS = [pytest.param(page, words, id=" ".join(words)) for page in PAGES for words in page.shown]


@pytest.mark.parametrize(("page", "words"), COMMANDS)
def test_page(page, words, terminal):
    command, *rest = words
    if command == "diagnose":
        status, printed = terminal.run(command, page.path.parent, rest)
        printed += f"exit {status}\n"
    else:
        status, printed = terminal.run(command, page.path.parent, [*rest, "--no-detect"])
        assert status == 0
    assert printed == page.expected(words, printed)
    assert "not-a-real-key" not in printed


def test_every_file_has_a_page():
    for page in PAGES:
        files = {path.name for suffix in ("yaml", "log") for path in page.path.parent.glob(f"*.{suffix}")}
        assert files <= {word for words in page.shown for word in words}
