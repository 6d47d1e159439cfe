"""Where a value of a derivation comes from, in words and as a place of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.show import path as path_text
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from cfglint.engine.describe import Origins
    from cfglint.engine.evaluation_scope import Bound
    from cfglint.facts import Steps


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from; line and column count from 1, and are None where it is not in the file.

    ``kind`` is file, default, target, registry, derived, item, missing or expression.
    """

    kind: str
    source: str = ""
    line: int | None = None
    column: int | None = None


class Whence:
    """Tells of each name what gives its value; ``target`` is the GPU's name, None without one."""

    def __init__(self, origins: Origins, scope: Bound, target: str | None) -> None:
        self.origins = origins
        self.symbols = origins.symbols
        self.values = origins.values
        self.framework = origins.framework
        self.scope = scope
        self.target = target

    def at(self, steps: Steps) -> Source:
        """Return where a key of the file is written."""
        view = self.values.view
        if view is None or ("*" not in steps and not view.has(steps)):
            return Source("missing", "not in the file")
        trace = self.origins.trace(steps)
        if trace is None or not trace.present:
            return Source("file", "this file")
        if any(step.kind == "override" for step in trace.steps):
            return Source("file", trace.where)
        line, column = view.document.file.lines.position(trace.own_span[0])
        return Source("file", trace.where, line, column)

    def of(self, name: str, value: object) -> tuple[Source, t.Expr | None, tuple[str, ...]]:
        """Return a name's origin, the expression that gives its value (None: a leaf), and what chose it."""
        origin = self.origins.of(name)
        binding = origin.binding
        chosen: tuple[str, ...] = ()
        if binding is not None and binding.when is not None:
            chosen = (self.scope.said(binding.when, self.scope.truth(binding.when)),)
        let = self.origins.own_lets.get(name) or self.symbols.lets.get(name)
        if origin.kind == "file" and origin.paths:
            view = self.values.view
            present = next((p for p in origin.paths if view is not None and view.has(p)), origin.paths[0])
            source = self.at(present)
            source = Source("file", origin.source, source.line, source.column)
            if binding is None:
                return source, None, chosen
            if view is not None and len(origin.paths) == 1 and view.get(present) is None:
                if binding.null is None and needs_of(value):
                    return (
                        Source("missing", f"null at {source.source}", source.line, source.column),
                        None,
                        chosen,
                    )
                return source, binding.null, (*chosen, f"{path_text(present)} is null")
            return source, None if isinstance(binding.source, t.Path) else binding.source, chosen
        if origin.kind == "default":
            given = binding.default if binding is not None else None
            return Source("default", origin.source), given or (let.body if let is not None else None), chosen
        if origin.kind == "derived":
            if binding is not None and name in self.values.bindings:
                return Source("derived", f"framework {self.framework}"), binding.source, chosen
            where = self.symbols.where.get(f"let {name}", "")
            own = name in self.origins.own_lets
            return Source("derived", "" if own else where), let.body if let is not None else None, chosen
        if origin.kind == "missing":
            return Source("missing", self.wanted(name, value)), None, chosen
        return Source(origin.kind, origin.source), None, chosen

    def wanted(self, name: str, value: object) -> str:
        """Say what would give a missing name its value."""
        if name.startswith("gpu."):
            return "the GPU's data lacks it: --hardware FILE" if self.target else "name one: --gpu NAME"
        keys = [
            path_text(steps)
            for binding in self.origins.bindings.get(name, ())
            for steps in t.paths_in(binding.source)
        ]
        if keys:
            return f"not in the file: {' or '.join(dict.fromkeys(keys))} would give it"
        prefix = name.partition(".")[0]
        registry = self.symbols.registries.get(prefix)
        if registry is not None and name not in registry.keys:
            wanted = sorted(needs_of(value) - {name}) or list(registry.keys)
            return f"the table {registry.table} has no such figure; {' or '.join(wanted)} would give it"
        wanted = sorted(needs_of(value) - {name})
        return f"wants {', '.join(wanted)}" if wanted else "nothing gives it; a let in --rules FILE would"
