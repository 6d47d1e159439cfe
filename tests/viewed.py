"""What a loader makes of a text's values, for the tests of documents."""

import math

from cfglint.document.reading import read_text
from cfglint.document.scalars import OMEGACONF
from cfglint.document.tree import ALL
from cfglint.document.view import View


def view(text, *overrides, dialect=OMEGACONF, environ=None):
    """Return the first document of a text as a loader sees it."""
    return View(read_text(text, "c.yaml").documents[0], dialect, overrides, environ)


def path(text):
    """Return the path that ``a.0.b`` spells; ``*`` is all items."""
    return tuple(int(p) if p.isdigit() else ALL if p == "*" else p for p in text.split(".")) if text else ()


def value(text, where, *overrides, **options):
    """Return what is at a path."""
    return view(text, *overrides, **options).get(path(where))


def same(one, other):
    """Whether two values are equal, their types too; what is no number is the same as itself."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other
