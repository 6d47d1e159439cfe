"""Pages of expected output: what is read from them, what is refused, and what ``CFGLINT_UPDATE=1`` writes."""

import pytest

import golden
from golden import Page

FILE = "# A page\n\n```yaml bad_a.yaml\na: 1\n```\n"
SHOWN = "\n```console\n$ cfglint check bad_a.yaml\nfound\n```\n"
REST = "\nMore words.\n\n````yaml dir/b.yaml\nb: |\n```\n````\n"
WORDS = ("check", "bad_a.yaml")


@pytest.fixture
def read(tmp_path):
    """Return the page that has a text."""

    def of(text):
        path = tmp_path / "page.md"
        path.write_text(text)
        return Page(path)

    return of


def test_files_and_commands(read, tmp_path):
    page = read(FILE + SHOWN + REST)
    assert page.title == "A page"
    assert page.files == {"bad_a.yaml": "a: 1\n", "dir/b.yaml": "b: |\n```\n"}
    assert page.expected(WORDS, "") == "found\n"
    assert page.expected(("check", "dir/b.yaml"), "found\n", needed=False) == ""
    with pytest.raises(AssertionError, match="CFGLINT_UPDATE"):
        page.expected(("check", "dir/b.yaml"), "found\n")
    assert (page.write_files(tmp_path) / "dir" / "b.yaml").read_text() == "b: |\n```\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("```yaml\na: 1\n```\n", "without a file name"),
        (FILE + FILE, "two fences for bad_a.yaml"),
        (SHOWN + SHOWN, "two fences for"),
        ("```yaml bad_a.yaml\na: 1\n", "without its end"),
        ("```\na: 1\n```\n", "without a language"),
        ("```console\n$ ls\n```\n", "no `\\$ cfglint"),
    ],
)
def test_a_page_that_would_check_less_than_it_shows_is_refused(read, text, what):
    with pytest.raises(AssertionError, match=what):
        read(text)


@pytest.mark.parametrize(
    ("before", "printed", "after"),
    [
        (FILE + REST, "found\n", FILE + SHOWN + REST),
        (FILE + SHOWN.replace("found\n", "") + REST, "found\n", FILE + SHOWN + REST),
        (FILE + SHOWN + REST, "found\n", FILE + SHOWN + REST),
        (FILE + SHOWN + REST, "", FILE + REST),
        (FILE, "```\n", FILE + SHOWN.replace("found\n", "```\n").replace("\n```", "\n````", 1)[:-1] + "`\n"),
    ],
)
def test_update(read, before, printed, after, monkeypatch):
    page = read(before)
    monkeypatch.setattr(golden, "UPDATE", True)
    assert page.expected(WORDS, printed, below="bad_a.yaml", needed=False) == printed
    assert page.path.read_text() == after
    monkeypatch.setattr(golden, "UPDATE", False)
    assert Page(page.path).expected(WORDS, "", needed=False) == printed
