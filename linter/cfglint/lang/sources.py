"""Rule files and ``--rule`` expressions as parsed sources; a rule without a code gets one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.errors import Complaint, RulesError
from cfglint.lang import tree as t
from cfglint.lang.symbols import Source
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def read_sources(texts: Mapping[str, str], expressions: Sequence[str]) -> list[Source]:
    """Parse rule files and ``--rule`` expressions. Raises RulesError with the complaints of all of them."""
    from cfglint.lang.parse import parse, parse_rule

    sources: list[Source] = []
    complaints: list[Complaint] = []
    bare = 0
    for path, text in texts.items():
        try:
            statements = list(parse(text, path))
        except RulesError as error:
            complaints += error.complaints
            continue
        for i, statement in enumerate(statements):
            if isinstance(statement, t.Rule) and not statement.code:
                bare += 1
                statements[i] = _named(statement, f"USR{bare:03}", text)
        sources.append(Source(path, text, tuple(statements)))
    for i, text in enumerate(expressions, 1):
        try:
            rule = parse_rule(text, f"--rule {i}")
        except RulesError as error:
            complaints += error.complaints
            continue
        sources.append(Source(f"--rule {i}", text, (_named(rule, f"CLI{i:03}", text),)))
    if complaints:
        raise RulesError(complaints)
    return sources


def _named(rule: t.Rule, code: str, text: str) -> t.Rule:
    written = " ".join(text[slice(*rule.span)].split())
    return replace(rule, code=code, name="rule-of-yours", say="", why=f"Your own rule: {written}")
