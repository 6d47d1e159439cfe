"""Text of every statement of a rule file; ``parse(show_file(tree))`` gives the same tree again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.show import number, quote, show, show_rule, version

if TYPE_CHECKING:
    from collections.abc import Sequence


def _word(word: str) -> str:
    return word if word.isidentifier() and word.isascii() and word not in ("of", "or") else quote(word)


def _type(node: t.TypeOf) -> str:
    if node.members:
        return "one of " + ", ".join(" or ".join(_word(w) for w in spellings) for spellings in node.members)
    text = node.name
    if node.low is not None:
        text += f" {show(node.low)} .." + (f" {show(node.high)}" if node.high is not None else "")
    return text + (f" in {node.unit}" if node.unit else "")


def _move(move: t.Move) -> str:
    where = "" if move.direction == "any" else f"{move.direction} "
    if move.to:
        where = f"to {' or '.join(map(show, move.to))} "
    where += f"when {show(move.when)} " if move.when is not None else ""
    where += f"leaving {show(move.leaving)} " if move.leaving is not None else ""
    text = f"{where}costs {number(move.cost)}"
    text += " per step" * move.per_step + " per halving" * move.per_halving
    if move.kind:
        text += f" {move.kind}"
        if move.low is not None and move.high is not None:
            text += f" {number(move.low)} .. {number(move.high)}"
    text += (f" unsafe {move.risk}" if move.unsafe else "") + (
        f" {quote(move.effect)}" if move.effect else ""
    )
    return text + (f" see {quote(move.see)}" if move.see else "")


def _domain(knob: t.Knob) -> str:
    if knob.domain == "step" and knob.low and knob.high and knob.step:
        return f"{show(knob.low)} .. {show(knob.high)} step {show(knob.step)}"
    if knob.domain in ("halving", "doubling") and knob.low:
        return f"{knob.domain} to {show(knob.low)}"
    return show(t.ListOf(knob.values)) if knob.domain == "values" else "any"


def _entry(entry: t.Entry) -> str:
    match entry:
        case t.Binding():
            text = f"{entry.name} <- {show(entry.source)}"
            if entry.when is not None:
                text += f" when {show(entry.when)}"
            if entry.default is not None:
                text += f" default {show(entry.default)}" + (
                    f" {quote(entry.citation)}" if entry.citation else ""
                )
            return text + (f" null -> {show(entry.null)}" if entry.null is not None else "")
        case t.Setting(key, value):
            return f"{key} {quote(value)}"
        case t.NamesAreKeys():
            return "names are keys"
        case t.SectionsAreJobs():
            return "sections are jobs"
        case t.Detect(condition):
            return f"detect {show(condition)}"
        case t.Tie(name, path, citation):
            return f"tied {name} with {show(path)}" + (f" {quote(citation)}" if citation else "")
        case t.Write(name, value, keys, when, citation):
            given = ", ".join(f"{show(key)}: {show(to)}" for key, to in keys)
            text = f"write {name} {'' if value is None else show(value) + ' '}as {given}"
            text += f" when {show(when)}" if when is not None else ""
            return text + (f" {quote(citation)}" if citation else "")
        case t.NamesFile(path, dialect):
            return f"file {show(path)}" + (f" by {dialect}" if dialect else "")
        case t.Since(number_of, when):
            return f"version {version(number_of)}" + (f" when {show(when)}" if when is not None else "")
        case t.Checked(number_of):
            return f"checked from {version(number_of)}"
        case t.Let():
            return show_statement(entry)


def show_statement(node: t.Statement) -> str:
    """Return the text of a statement, without a newline at its end."""
    match node:
        case t.Pack(name, number_of, about):
            return f"pack {name} {version(number_of)} {quote(about)}"
        case t.Fact(name, type_of, about):
            return f"fact {name}: {_type(type_of)}" + (f" {quote(about)}" if about else "")
        case t.Knob():
            keeping = f" keeping {node.keeping}" if node.keeping else ""
            if node.partners:
                keeping += f" with {', '.join(node.partners)}"
            return f"knob {node.name} {_domain(node)}{keeping}" + "".join(f" {_move(m)}" for m in node.moves)
        case t.Let(name, parameters, body):
            return f"let {name}{'(' + ', '.join(parameters) + ')' if parameters else ''} = {show(body)}"
        case t.Role(name, when, fields):
            inner = ", ".join(f"{k}: {show(v)}" for k, v in fields)
            return f"role {name}{f' when {show(when)}' if when is not None else ''} {{{inner}}}"
        case t.Registry(prefix, table, keys):
            return f"registry {prefix} from {table} by {', '.join(keys)}"
        case t.Framework(name, entries):
            return "\n  ".join([f"framework {name} {{", *map(_entry, entries)]) + "\n}"
        case t.Rule():
            return show_rule(node)


def show_file(statements: Sequence[t.Statement]) -> str:
    """Return the text of a rule file."""
    return "".join(show_statement(s) + "\n" for s in statements)
