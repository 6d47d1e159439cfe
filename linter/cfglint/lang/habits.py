# ruff: noqa: E501 (a pattern is read as one line)
"""What to write for a line that does not parse: mistakes that writers make often, by what the line holds."""

from __future__ import annotations

import re

MAX_LINE = 200  # characters; the time that the patterns take grows faster than the line
MAX_BEFORE = 20_000  # characters above the line in which the head of its statement is looked for

_KINDS = r"(?P<at>all|any|sum|count|min|max)"
_ITEM = r"(?P<item>\w+)[ \t]+in[ \t]+(?P<list>[^\s,:{}|]+)"
_NAME = r"(?P<name>[A-Za-z_.][\w.]*)"
_KEY = r"(?P<key>\$[\w.\[\]*-]*)"
_PATH = r"(?P<key>\$[\w.-]*)"
_VALUE = r"(?P<value>[^\s,{}=#][^,}\n#]*?)[ \t]*(?=[,}#]|$)"
_REST = r"(?P<rest>[^{}\n#]+?)[ \t]*(?=[}#]|$)"
_BEGIN = r"(?:^[ \t]*|\{[ \t]*)"
_CLAUSE = rf"{_BEGIN}(?P<clause>%s)"
_FIRST = rf"{_BEGIN}(?P<first>(?!\((?:if|when)\b)[^\s{{}}\"#][^{{}}\n\"#]*?(?<=[\w)\]]))[ \t]+"
_EXAMPLES = "bad|may|good|open"
_TEXTS = "say|why|see|next"
_LEFT = r"(?P<left>[\w.$\[\]*]+)[ \t]*"
_TEXT = r"[ \t]*\"(?P<text>[^\"\n]*)\""

# The first word of the statement that a line belongs to ("bare" for a rule without one, nothing for any), what the
# line holds, and what to write: {at} is where it is wrong, and is where the complaint stands.
_ROWS: tuple[tuple[str, str, str], ...] = (
    # quantifiers
    ("", rf"\b(?P<kind>all|any|sum|count|min|max)[ \t]+{_ITEM}[ \t]*(?P<at>,|\{{|->|\|)[ \t]*{_REST}",
     "write : after the list: {kind} {item} in {list}: {rest}"),
    ("", rf"\b{_KINDS}[ \t]*\([ \t]*{_ITEM}[ \t]*:[ \t]*(?P<rest>[^()\n#]*(?:\([^()\n#]*\)[^()\n#]*)*)\)",
     "write ({at} {item} in {list}: {rest}), without brackets after {at}"),
    ("", rf"\b{_KINDS}[ \t]*\([ \t]*(?P<rest>.+?)[ \t]+for[ \t]+{_ITEM}[ \t]*\)",
     "write ({at} {item} in {list}: {rest}), without brackets after {at}"),
    ("", rf"(?P<at>\bfor|\bforall|\bfor all|\bforeach|\bfor each|\bevery)[ \t]+{_ITEM}[ \t]*:[ \t]*{_REST}",
     "write all {item} in {list}: {rest} (for is for frameworks)"),
    ("", rf"(?P<at>\bexists|\bsome)[ \t]+{_ITEM}[ \t]*:[ \t]*{_REST}", "write any {item} in {list}: {rest}"),
    # statements
    ("", (r"^(?P<at>def|function|func|fn|define|const|var|set)[ \t]+(?P<name>[\w.]+(?:\([^)\n]*\))?)"
         r"[ \t]*(?::?=|:)[ \t]*(?P<rest>[^\n#]*)"), "write let {name} = {rest}"),
    ("let", r"^let[ \t]+(?P<name>[\w.]+(?:\([^)\n]*\))?)[ \t]*(?P<at>:(?!=)|<-)[ \t]*(?P<rest>[^\n#]*)",
     "write let {name} = {rest}"),
    ("let", r"^let[ \t]+(?P<name>[\w.]+)[ \t]+(?P<at>\w+)[ \t]*=[ \t]*(?P<rest>[^\n#]*)",
     "write let {name}({at}) = {rest}"),
    ("fact", rf"^fact[ \t]+{_NAME}[ \t]*(?P<at>=|(?=\w))[ \t]*(?P<rest>\w[^\n#]*)", "write fact {name}: {rest}"),
    ("fact", r"^fact[ \t]+(?P<at>\$)\.?(?P<name>[\w.]*)",
     "a fact has a name of its own, such as acme.{name}: a rule reads the key itself as $.{name}"),
    ("fact", (r"(?P<at>\benum|\boneof|\bone of)\b[ \t]*(?:[\[({][ \t]*(?P<set>\w[^\])}\n]*?)[ \t]*[\])}]"
             r"|(?P<list>\w[^\n#\"]*))"), "write one of {set}{list}"),
    ("fact", r":[ \t]*(?P<at>[\[({])[ \t]*(?P<list>[\w\"][^\])}\n]*?)[ \t]*[\])}]", "write one of {list}"),
    ("fact", r":[ \t]*(?P<list>\w+)(?P<at>,)[ \t]*(?P<rest>\w[^\n#]*)", "write one of {list}, {rest}"),
    ("fact", r":[ \t]*(?P<list>\w+)[ \t]*(?P<at>\|)[ \t]*(?P<rest>\w+)", "write one of {list}, {rest}"),
    ("fact", r":[ \t]*(?P<kind>\w+)[ \t]*(?P<at>>=|>)[ \t]*(?P<low>[0-9.]+)", "write {kind} {low} .. for a lower limit"),
    ("fact", r":[ \t]*(?P<kind>\w+)[ \t]+(?P<at>default\b|=)[ \t]*(?P<rest>[^\s#]*)",
     "a fact has no default: write let NAME = {rest} instead, or default in a framework block"),
    ("knob", r"^knob[ \t]+(?P<at>\$[^\s]*)",
     'a knob is a fact: declare fact acme.name: number "…", bind it to {at}, then write knob acme.name …'),
    ("knob", r"(?P<at>\bcost\b)", "write costs instead of cost"),
    ("knob", r"\b(?P<low>[0-9][\w.]*)[ \t]*(?P<at>to|-)[ \t]*(?P<high>[0-9][\w.]*)", "write {low} .. {high}"),
    ("knob", r"^knob[ \t]+[\w.]+[ \t]*(?P<at>[:=])", "write what a knob may be without {at}"),
    ("knob", r"\.\.[ \t]*[0-9][\w.]*(?P<at>)[ \t]*(?:#.*)?$", "the step is missing: write step 0.1 after the range"),
    ("each", r"^each\b.*?[ \t](?P<at>-?[0-9][\w.]*)", 'write "{at}" in quotes: words of each are names or texts'),
    ("each", r"^each\b.*?[ \t](?P<at>\$\.?)(?P<name>[\w.]+)",
     "write {name} here and $.NAME where it is read: words of each are names or texts"),
    ("each", r"\bin[ \t]+(?P<at>\[)[ \t]*(?P<list>[^\]\n]*)", "write the words without brackets: in {list}"),
    # frameworks
    ("framework", rf"^[ \t]*{_NAME}[ \t]*(?P<at>:=|==?|:|<=|->|=>)[ \t]*(?P<key>\$[^\s#]*)",
     "write {name} <- {key} to read a key"),
    ("framework", rf"^[ \t]*(?P<at>\$[^\s]*)[ \t]*(?:->|=>|=|:)[ \t]*{_NAME}", "write {name} <- {at}"),
    ("framework", rf"^[ \t]*{_NAME}[ \t]*(?P<at>:=|==?)[ \t]*(?P<rest>[^\s#][^\n#]*?)[ \t]*(?=#|$)",
     "write {name} <- $.key to read a key, or let {name} = {rest} to fix it"),
    ("framework", rf"^[ \t]*{_NAME}[ \t]*:[ \t]*(?P<at>[0-9\"][^\n#]*?)[ \t]*(?=#|$)",
     "a type stands after the colon: write let {name} = {at} to fix it"),
    # a rule's head, clauses and examples
    ("rule", r"^rule\b(?=[^\n{]*$)[^\n{#]*?(?P<at>:?)[ \t]*(?:#.*)?$", "the clauses stand in braces: write {{ here, at the end of the line"),
    ("rule", r"^rule[ \t]+[A-Z]{3}[0-9]{3}[ \t]+[\w-]+[ \t]+(?P<at>(?:[Ww]arn|W[Aa][Rr][Nn](?:ING|ing)?)\b)", "the level is error, warning or info: write warning"),
    ("rule", r"^rule[ \t]+[A-Z]{3}[0-9]{3}[ \t]+[\w-]+[ \t]+(?P<at>(?:Error|ERROR|err|critical|fatal|high|severe)\b)", "the level is error, warning or info: write error"),
    ("rule", r"^rule[ \t]+[A-Z]{3}[0-9]{3}[ \t]+[\w-]+[ \t]+(?P<at>(?:Info|INFO|note|hint|low)\b)", "the level is error, warning or info: write info"),
    ("rule", r"^rule[ \t]+[A-Z]{3}[0-9]{3}[ \t]+(?P<at>[\w-]*_[\w-]*)", "a rule's name is words joined by hyphens: write - instead of _ in {at}"),
    ("rule", rf"{_BEGIN}(?P<at>message|msg|text|description|desc|says)[ \t]*:?[ \t]*\"", 'no clause is named {at}: write say "…"'),
    ("rule", rf"{_BEGIN}(?P<at>reason|because|note|rationale)[ \t]*:?[ \t]*\"", 'no clause is named {at}: write why "…"'),
    ("rule", rf"{_BEGIN}(?P<at>url|link|source|ref|reference)[ \t]*:?[ \t]*\"", 'no clause is named {at}: write see "…"'),
    ("rule", rf"{_BEGIN}(?P<at>(?!(?:say|why|see|next|at|bad|may|good|open|given|for)\b)[a-z]+)[ \t]*:?[ \t]*(?:\"|(?:but[ \t]*)?\{{)",
     "no clause is named {at}; clauses are say, why, see, next, at, bad, may, good, open and given"),
    ("rule", rf"{_CLAUSE % _EXAMPLES}[ \t]*(?P<at>[:=])", "write {clause} {{…}}, without {at}"),
    ("rule", rf"{_CLAUSE % _TEXTS}[ \t]*(?P<at>[:=])", 'write {clause} "…", without {at}'),
    ("rule", rf"{_CLAUSE % 'for|at'}[ \t]*(?P<at>[:=])", "write {clause} without {at}"),
    ("rule", rf"{_CLAUSE % _TEXTS}[ \t]+(?P<at>(?!when\b)[^\s\":=](?:[^\"\n]*[^\s\"])?)[ \t]*$",
     'write texts in quotes: {clause} "{at}"'),
    ("rule", rf"[{{,][ \t]*(?P<name>\$[^\s,{{}}=]*|[\w.]+)[ \t]*(?P<at>==?|<-)[ \t]*{_VALUE}",
     "write {name}: {value} in an example"),
    ("rule", r"[{,][ \t]*(?P<name>\$[^\s,{}=:]*|[\w.]+)[ \t]+(?P<at>[\w\"][^,}\n]*?)[ \t]*(?=[,}]|$)",
     "write {name}: {at} in an example"),
    ("rule", r"[{,][ \t]*(?P<at>\")(?P<name>[^\"\n]*)\"[ \t]*:", "write {name} without quotes, or $.{name} for a key"),
    ("rule", rf"\b(?P<clause>{_EXAMPLES})[ \t]+(?P<at>(?!but\b)[$\w][^{{}}\n]*:[^{{}}\n]*)",
     "write {clause} {{ {at} }}"),
    ("rule", rf"\b(?:{_EXAMPLES})\b[^}}\n]*(?P<at>;)", "write , between what an example gives"),
    # conditions
    ("rule bare", (rf"{_BEGIN}(?P<at>if|when)[ \t]+(?P<when>(?:(?!\bthen\b)[^{{}}\n#])+?)[ \t]*"
                  rf"(?:\bthen\b|:|->|=>)[ \t]*(?P<rest>(?:(?!\belse\b)[^{{}}\n#])+?)[ \t]*(?=[}}#]|$)"),
     "write {when} -> {rest}; if … then … also needs else"),
    ("rule bare", rf"{_FIRST}(?P<at>when|if|where|provided|given)[ \t]+{_REST}",
     "write the condition first: {rest} -> {first}"),
    ("rule bare", rf"{_FIRST}(?P<at>unless)[ \t]+{_REST}", "write the condition first: not ({rest}) -> {first}"),
    ("rule bare", rf"(?!.*\bif\b){_FIRST}(?P<at>then)[ \t]+{_REST}", "write {first} -> {rest}"),
    ("rule", rf"{_BEGIN}(?P<at>when|if)\b:?[ \t]*(?P<rest>[^{{}}\n#]+?)[ \t]*$", "write {rest} -> REQUIREMENT, in one clause"),
    ("rule bare", rf"{_BEGIN}(?P<at>requires?|assert|check|ensure|expect|must|condition|expr)\b:?[ \t]*{_REST}",
     "write the requirement alone: {rest}"),
    # keys and columns
    ("", rf"{_PATH}(?P<at>\[)[\"'](?P<name>[^\"'\n]*)[\"']\]", 'write {key}."{name}"'),
    ("", rf"{_NAME}(?P<at>\[)(?P<row>\"[^\"\n]*\"|\w+)\]", "a column is a function: write {name}({row})"),
    ("", r"(?P<at>\$)(?P<name>[A-Za-z_][\w.]*)", "write $.{name}"),
    ("", rf"{_PATH}(?P<at>\.)(?P<n>[0-9]+)", 'write {key}[{n}] for an item, or {key}."{n}" for a key'),
    ("", rf"{_KEY}[ \t]+(?P<at>exists|is[ \t]+(?:set|present|defined|there)\b)", "write has({key})"),
    ("", rf"{_KEY}[ \t]+(?P<at>is[ \t]+(?:missing|absent|unset|undefined|not[ \t]+(?:set|there|present))\b)",
     "write not has({key})"),
    # texts, lists, ranges
    ("", rf"{_LEFT}(?P<at>=~|~=|~|\b(?:contains|matches|includes|regex)\b){_TEXT}", 'write {left} like "*{text}*"'),
    ("", rf"{_LEFT}(?P<at>\b(?:starts?|begins?)[ _]?[wW]ith\b){_TEXT}", 'write {left} like "{text}*"'),
    ("", rf"{_LEFT}(?P<at>\bends?[ _]?[wW]ith\b){_TEXT}", 'write {left} like "*{text}"'),
    ("", rf"{_LEFT}like[ \t]+(?P<at>[\w.*?-]+)", 'write {left} like "{at}"'),
    ("", r"\bin[ \t]*(?P<at>[({])[ \t]*(?P<list>[^(){}:\n]*,[^(){}:\n]*?)[ \t]*[)}]", "write in [{list}]"),
    ("", r"\bin[ \t]+(?P<list>[\w.\"-]+)(?P<at>[ \t]*,)[ \t]*(?P<rest>[\w.\"-]+(?:[ \t]*,[ \t]*[\w.\"-]+)*)",
     "write in [{list}, {rest}]"),
    ("", r"\bin[ \t]+(?P<low>[0-9][\w.]*)[ \t]+(?P<at>to|through)[ \t]+(?P<high>[0-9][\w.]*)", "write in {low} .. {high}"),
    ("", r"\[[^\[\]\n]*[\w\"][ \t]+(?P<at>[\w\"]+)[^\[\]\n]*\]", "write a comma between items"),
    # numbers
    ("", r"(?<![\w.)\]])(?P<at>\.[0-9]+)", "write 0{at}"),
    ("", r"(?P<low>[0-9]+)[ \t]*(?P<at>\^)", "write the number itself: there is no ^"),
    ("", r"(?<![\w,])(?P<low>[0-9]{1,3})(?P<at>,)(?P<rest>[0-9]{3})(?![0-9])", "write {low}_{rest}"),
    ("", r"(?P<low>[0-9][0-9_.]*[ \t]*%)[ \t]*(?P<at>of\b)[ \t]*(?P<rest>[\w.$]+)", "write {low} * {rest}"),
    ("", (r"(?P<low>[0-9][0-9_.]*(?:[ \t]*%)?)[ \t]*(?P<at>(?<=[ \t%])\$\.[\w.]+|(?<=[ \t%])[A-Za-z]+[._][\w.]+)"
         r"(?![\w.]|[ \t]*(?:[<>=!]|in\b|like\b|not\b))"), "write {low} * {at}"),
    ("", r"(?<![\w.])(?P<low>[0-9][0-9_.]*)[ \t]*(?P<at>\()", "write {low} * ("),
)  # fmt: skip
_HABITS = [(heads.split(), re.compile(pattern, re.MULTILINE), instead) for heads, pattern, instead in _ROWS]
_HEAD = re.compile(
    r"^(pack|prefix|source|for|where|given|table|each|fact|knob|let|role|registry|framework|rule)\b",
    re.MULTILINE,
)
_MISSING = re.compile(
    r"(?:(?P<arrow>->)|\b(?P<where>where|when)|(?P<binds><-)|(?P<word>\b(?:and|or|not))|(?P<sign>[<>=!]=|[-+*/<>=]|\.\.|\b(?:in|mod|like)))"
    r"[ \t]*(?:#[^\n]*)?\s*\Z"
)


def in_line(text: str, at: int) -> tuple[int, str] | None:
    """Return where the line at ``at`` is wrong and what to write; None for a mistake that is not known."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    if len(line) > MAX_LINE:
        return None
    heads = [found[1] for found in _HEAD.finditer(text, max(0, start - MAX_BEFORE), at)]
    head = heads[-1] if heads else "bare"
    if line[:1].strip() and not _HEAD.match(line):
        head = "bare"
    for wanted, pattern, instead in _HABITS:
        if wanted and head not in wanted:
            continue
        for found in pattern.finditer(line):
            if found.start() <= at - start <= found.end():
                parts = {name: part or "" for name, part in found.groupdict().items()}
                return start + found.start("at"), instead.format(**parts)
    return None


def missing(text: str, at: int) -> tuple[int, str] | None:
    """Return what is missing where a line ends after an operator; None where it does not."""
    found = _MISSING.search(text, max(0, at - 400), at)
    if found is None or found.lastgroup is None:
        return None
    what = {
        "arrow": "the requirement is missing after ->",
        "where": "the condition is missing after {} (it must be on this line or on an indented one)",
        "word": "a condition is missing after {}",
    }.get(found.lastgroup, "a value is missing after {}")
    return found.end(found.lastgroup), what.format(found[found.lastgroup])
