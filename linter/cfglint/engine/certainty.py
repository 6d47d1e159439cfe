"""How sure a finding is: what may make it wrong in the job that it is about, and so lowers its level."""

from __future__ import annotations

import re

from cfglint.engine.ages import is_told_older, spares
from cfglint.engine.describe import names_of, paths_of, traces
from cfglint.engine.judge import decides
from cfglint.lang.tree import paths_in
from cfglint.lang.versions import spelled
from cfglint.schema.judge import BY_SCHEMA, mistakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.trace import Trace
    from cfglint.engine.describe import Origins
    from cfglint.engine.subject import Judged, Verdict
    from cfglint.lang import tree as t

_COUNTS = frozenset({"num_nodes", "gpus_per_node", "num_gpus"})
_DEFAULT = re.compile(r"\$\{\d+:?-")
_ARGUMENT = re.compile(_DEFAULT.pattern + r"[\"']?\Z")
_LONGEST_ARGUMENT = 8  # letters before a default
_TOLD = ("file", "target", "registry")
_BY_SCHEMA = {f"document.{kind}" for kind in BY_SCHEMA}
# What a framework's loader makes of a file, which another program or version may read otherwise.
_BY_LOADER = {
    f"document.{kind}"
    for kind in ("duplicate_keys", "unresolved", "cycles", "float_strings", "impossible_values")
}
_REFUSED = {
    ("launch", each) for each in ("packs", "frees_eagerly", "asks_npus", "counts_prompts")
}  # what the program's own code says that it refuses
_OLDER = "This was checked against {} {} and later, and may differ in {}."
_OWN = "The repository has a package {} of its own, in {}, which may differ from what was released."
_UNTOLD = "Nothing here says which version of {} reads it: name it with --framework, or pin it."
_AGED = (
    "Of {0} {1} it may not be true, and nothing here says which version is used: name it with --framework."
)
_HIDDEN = "cfglint cannot read the flags in {}, which may say otherwise."
_UNUSED = "No program, script or requirement of the repository names {0}; another program may read this."
_GIVEN = "A launch of the repository gives {} itself."
_ELSEWHERE = "The script goes to a folder that is not here, which may have other files of these names."
_NAMED = "The model is known by its name alone: add --model-config, the folder of its config.json."
_OTHER = "The program is not {}'s as it was released, and may differ."


def doubt(rule: t.Rule, judged: Judged, origins: Origins, listed: str) -> tuple[int, str]:
    """Return how many levels lower than its rule a finding is, and what the reader should know of that.

    What a framework refuses, another program with its flags may take. ``listed`` names the list whose items
    the rule speaks of, if any.
    """
    document = judged.subject.document
    scoped = _is_of_framework(rule, judged, listed)
    own = _is_told_by_program(rule, judged, origins)
    other = _by_another(judged) or _by_version(judged, rule) if scoped and not own else ""
    lower = int(bool(other) or _inherits_gpus(rule, judged, origins) or _takes_arguments(rule, origins))
    # What another program may not have: the framework's default, its classes, or what a version changed.
    lower += bool(other) and (
        document.away or _rests_on_default(rule, origins) or _is_of_versions(rule, judged)
    )
    if decides(rule) and judged.values["model.named"] is True:
        return lower + 1, f"{other} {_NAMED}".strip()
    given = _given_by_launches(rule, judged, origins)
    more = _GIVEN.format(given) if given else _ELSEWHERE if _is_of_others(rule, judged, origins) else ""
    if more:
        return lower + 1, f"{other} {more}".strip()
    hidden = _hidden(judged) if scoped else ""
    if hidden and (_rests_on_default(rule, origins) or _rests_on_absence(rule, origins)):
        return 2, f"{other} {_HIDDEN.format(hidden)}".strip()
    return lower, other


def _is_told_by_program(rule: t.Rule, judged: Judged, origins: Origins) -> bool:
    """Whether the very program that reads a document says what a rule requires."""
    view = judged.subject.view
    refused = {path for path in _REFUSED if view.has(path)}
    asked = [node for node in (rule.requirement, rule.condition) if node is not None and refused]
    read = (path for node in asked for path in (*origins.read_by(node), *paths_in(node)))
    return any(path in refused for path in read)


def _is_of_framework(rule: t.Rule, judged: Judged, listed: str) -> bool:
    """Whether a rule tells what a framework, its schema or its loader makes of a config."""
    by_schema = listed in _BY_SCHEMA and (rule.level == "error" or _is_composed(judged))
    return bool(rule.scope) or listed in _BY_LOADER or by_schema


def _is_composed(judged: Judged) -> bool:
    """Whether a program of the project's own has Hydra compose the file."""
    composed = judged.subject.document.composed
    return composed is not None and composed()


def _knows_more(judged: Judged) -> bool:
    """Whether the keys of a document say that another version or program reads them."""
    noted = mistakes(judged.subject.framework, judged.subject.view)
    keys = (*noted.get("ignored_keys", ()), *noted.get("own_keys", ()))
    return any(mistake.text == "foreign" for mistake in keys)


def _by_another(judged: Judged) -> str:
    """Say that the program is not the framework's."""
    framework, document = judged.subject.framework, judged.subject.document
    if document.foreign or _knows_more(judged) or _is_composed(judged):
        return _OTHER.format(framework)
    return _UNUSED.format(framework) if document.used is not None and not document.used() else ""


def _by_version(judged: Judged, rule: t.Rule) -> str:
    """Say that the program may be older than what the framework's errors were checked against.

    A rule that names versions was checked against those; a key that one removed is wrong only since.
    """
    subject, version = judged.subject, judged.values.version
    if rule.level != "error" or subject.framework is None:
        return ""
    if subject.version is None and subject.version_source:
        return _OWN.format(subject.framework, subject.version_source.rpartition(":")[0])
    checked = subject.pack.frameworks[subject.framework]["checked"]
    limits = [each.operators for each in rule.scope if each.framework == subject.framework]
    if subject.version is None and any(limits) and rule.code.startswith("CFG"):
        return _UNTOLD.format(subject.framework)
    if version >= checked or any(limits):
        return ""
    return _OLDER.format(subject.framework, spelled(checked), spelled(version))


def by_age(verdict: Verdict, judged: Judged) -> tuple[int, str]:
    """Say that an error may be none in an older release, which may read the document as well.

    Then it is no error; and probably nothing where the document tells that it is for an older one.
    """
    release = spares(verdict.rule, judged) if verdict.truth is False else None
    if release is None:
        return 0, ""
    return 1 + is_told_older(judged), _AGED.format(judged.subject.framework, spelled(release))


def _is_of_versions(rule: t.Rule, judged: Judged) -> bool:
    """Whether a rule holds for some versions, and the package that is here does not say its own."""
    subject = judged.subject
    said = subject.version is not None or not subject.version_source
    return not said and any(each.operators for each in rule.scope if each.framework == subject.framework)


def _rests_on_default(rule: t.Rule, origins: Origins) -> bool:
    """Whether a requirement names a fact that has its framework's default."""
    return any(origins.of(name).kind == "default" for name in origins.names_in(rule.requirement))


def _hidden(judged: Judged) -> str:
    """Return the lists of flags in a command that nobody can read here."""
    lists = judged.subject.view.get(("launch", "unread")) if judged.subject.is_launch else None
    return ", ".join(f"${name}" for name in lists) if isinstance(lists, list) else ""


def _rests_on_absence(rule: t.Rule, origins: Origins) -> bool:
    """Whether nothing that is known tells a name of the requirement: it is what it is for want of a key."""
    told = [
        any(origins.of(leaf).kind in _TOLD for leaf in origins.with_leaves([name]))
        for name in origins.names_in(rule.requirement)
    ]
    keys = [trace.present for trace in traces(paths_in(rule.requirement), origins)]
    return not all(told) or not all(keys)


def _inherits_gpus(rule: t.Rule, judged: Judged, origins: Origins) -> bool:
    """Whether a framework's rule counts GPUs that a base file states; a launch may give others."""
    if not rule.scope or judged.subject.is_launch:
        return False
    counts = _COUNTS.intersection(names_of(rule, origins))
    paths = (path for name in counts for path in origins.of(name).paths)
    return any(trace.present and trace.source is not None for trace in traces(paths, origins))


def _given_by_launches(rule: t.Rule, judged: Judged, origins: Origins) -> str:
    """Return the keys of a launcher's config that a rule rests on, and a launch has a flag for."""
    replaced = judged.subject.document.replaced
    paths = origins.read_by(rule.requirement) if replaced else ()
    read = dict.fromkeys(str(path[0]) for path in paths if path)
    return ", ".join(key for key in read if key in replaced and judged.subject.view.has((key,)))


def _is_of_others(rule: t.Rule, judged: Judged, origins: Origins) -> bool:
    """Whether a rule rests on a file that a command names in a folder that is not known."""
    if not judged.subject.document.elsewhere:
        return False
    read = traces(origins.read_by(rule.requirement), origins)
    return any(trace.present and trace.source is not None for trace in read)


def _takes_arguments(rule: t.Rule, origins: Origins) -> bool:
    """Whether a rule rests on the default of an argument that a script is started with: ``N=${1:-8}``."""
    view = origins.values.view
    sources = () if view is None or view.sources is None else view.sources.values()
    files = {id(source.file): source.file for source in sources}.values()
    if view is None or not any(_DEFAULT.search(file.text) for file in (view.document.file, *files)):
        return False  # as hardly any file has one
    for trace in traces(paths_of(names_of(rule, origins), origins), origins):
        if trace.present and _ARGUMENT.search(_ahead(trace)):
            return True
    return False


def _ahead(trace: Trace) -> str:
    start = trace.span[0]
    return trace.file.text[max(0, start - _LONGEST_ARGUMENT) : start]
