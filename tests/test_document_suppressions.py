"""Comments that switch rules off; only real comments do."""

from __future__ import annotations

from cfglint.document.reading import read_text
from cfglint.document.suppressions import suppressions


class TestSuppressions:
    def test_places(self):
        text = (
            "# cfglint: ignore-file[DOC]\n"
            "a: 1  # cfglint: ignore[MEM101, PAR]\n"
            "# cfglint: ignore[RUN001]\n"
            "b: 2  # why # cfglint:ignore[PRF]\n"
            "c: 'x # cfglint: ignore[NO1]'\n"
            "d: |  # cfglint: ignore[YES]\n"
            "  # cfglint: ignore[NO2]\n"
            "e: x#cfglint: ignore[NO3]\n"
            "f: 1  # cfglint: ignore[]\n"
            "g: [1,  # cfglint: ignore[FLO]\n"
            "  2]\n"
        )
        assert suppressions(read_text(text, "c.yaml").documents[0]) == [
            (0, ("DOC",)),
            (2, ("MEM101", "PAR")),
            (4, ("RUN001",)),
            (4, ("PRF",)),
            (6, ("YES",)),
            (10, ("FLO",)),
        ]

    def test_other_documents_and_json(self):
        file = read_text("a: 1 # cfglint: ignore[A]\n---\nb: 1 # cfglint: ignore[B]\n", "c.yaml")
        assert [suppressions(d) for d in file.documents] == [[(1, ("A",))], [(3, ("B",))]]
        assert suppressions(read_text('{"a": "# cfglint: ignore[A]"}', "c.json").documents[0]) == []

    def test_many_are_fast(self):
        text = "a: 1  # cfglint: ignore[A]\n" + "".join(
            f"k{i}: 1  # cfglint: ignore[B]\n" for i in range(20_000)
        )
        assert len(suppressions(read_text(text, "c.yaml").documents[0])) == 20_001
