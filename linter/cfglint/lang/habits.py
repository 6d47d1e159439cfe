# ruff: noqa: E501 (a pattern is read as one line)
"""What to write instead: habits of other languages, recognised where the parser or the compiler gives up.

Imported only when something is wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cfglint.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_RULE = r"^rule[ \t]+[A-Z]{3}[0-9]{3}[ \t]+"
_FIRST = rf"{_BEGIN}(?P<first>(?!\((?:if|when)\b)[^\s{{}}\"#][^{{}}\n\"#]*?(?<=[\w)\]]))[ \t]+"
_EXAMPLES = ("bad", "may", "good", "open")
_TEXTS = ("say", "why", "see", "next")
_CLAUSES = (*_TEXTS, "at", *_EXAMPLES, "given")
_LEFT = r"(?P<left>[\w.$\[\]*]+)[ \t]*"
_TEXT = r"[ \t]*[\"/](?P<text>[^\"/\n]*)[\"/]"
_NUMBER = r"[0-9][0-9_]*(?:\.[0-9]+)?"


def _by_word(table: dict[str, str]) -> dict[str, str]:
    return {word: instead for words, instead in table.items() for word in words.split()}


_LEVELS = _by_word({
    "error err critical fatal severe high major blocker must": "error",
    "warning warn warns medium moderate caution should": "warning",
    "info information note notice hint low minor debug": "info",
})  # fmt: skip
_MEANT = _by_word({  # clauses, by what others call them
    "message msg text description desc says": "say",
    "reason because note rationale": "why",
    "url link source ref reference": "see",
    "fail fails violation invalid": "bad",
    "pass passes ok valid": "good",
})  # fmt: skip
_UNITS = _by_word({  # what others write behind a number, and how that is written
    "k K thousand": "{binary} or {decimal}",
    "M mil million millions": "{n}e6, or {n} MiB for a memory",
    "m": "{n} min, or {n}e6 for millions",
    "b bn billion billions": "{n}e9",
    "G g gig gigs": "{n} GiB or {n} GB",
    "T t": "{n} TiB or {n} TB",
    "Ki Mi Gi Ti": "{n} {unit}B",
    "msec msecs millisecond milliseconds": "{n} ms",
    "sec secs second seconds": "{n} s",
    "mins minute minutes": "{n} min",
    "hr hrs hour hours": "{n} h",
    "day days": "{n} d",
    "percent pct": "{n} %",
    "gpu gpus": "{n} GPUs",
    "node token step": "{n} {unit}s",
})  # fmt: skip
# Functions of other languages, by their names in small letters without "_".
_CALLS = _by_word({
    "sum any all": "({function} x in {0}: x)",
    "count len size": "length({0})",
    "avg mean average": "(sum x in {0}: x) / length({0})",
    "contains includes": '{0} like "*{text}*", or {1} in {0} for a list',
    "matches regex rematch regexmatch glob fnmatch": '{0} like "*{text}*"',
    "startswith hasprefix": '{0} like "{text}*"',
    "endswith hassuffix": '{0} like "*{text}"',
    "exists defined isset isdefined haskey present": "{asked}",
    "isnull isnone": "{0} == null",
    "int trunc": "floor({0})",
    "ceiling": "ceil({0})",
    "log ln log10": "log2({0})",
    "pow": "{0} * {0} for a square",
    "mod modulo": "{0} mod {1}",
    "between": "{0} in {1} .. {2}",
    "ifelse iff cond iif ternary": "(if {0} then {1} else {2})",
    "implies": "{0} -> {1}",
    "range": "{0} .. {1}",
    "coalesce nvl get getattr": "first({0}, {1})",
})  # fmt: skip

# The first word of the statement that a line belongs to ("bare" for a rule without one, "hole" for the braces of
# a message, nothing for any), what the line holds, and what to write: {at} is where it is wrong, and is where the
# complaint stands. Further words in braces are those of `_words`.
_ROWS: tuple[tuple[str, ...], ...] = (
    # messages
    ("hole", r"^(?P<name>(?!.*\bin\b)[^:\n]*?)[ \t]*(?P<at>:)[ \t]*[<>^+]?[0-9,]*(?:\.[0-9]+)?[a-z%]?$",
     r"^(?P<name>[^!\n]*?)[ \t]*(?P<at>!)[rsa]$",
     "no format after '{at}': cfglint rounds numbers itself; write {{{name}}}"),
    # quantifiers
    ("", rf"\b(?P<kind>all|any|sum|count|min|max)[ \t]+{_ITEM}[ \t]*(?P<at>,|\{{|->|\|)[ \t]*{_REST}",
     "write : after the list: {kind} {item} in {list}: {rest}"),
    ("", rf"\b(?P<kind>all|any)[ \t]+{_ITEM}[ \t]+(?P<at>where|if|when)[ \t]+(?P<when>[^:{{}}\n#]+?)[ \t]*:[ \t]*{_REST}",
     "write the condition behind the colon: {kind} {item} in {list}: {inner}"),
    ("", r"\b(?P<kind>all|any|sum|count|min|max)[ \t]+(?P<item>\w+)[ \t]+(?P<at>of)\b", "write {kind} {item} in"),
    ("", r"\b(?P<at>all|any)[ \t]+(?P<key>\$[\w.-]*)\.(?P<name>[\w-]+)[ \t]*(?P<rest>[<>=!][^\n#}]*?)[ \t]*(?=[}#]|$)",
     "write {at} x in {key}: x.{name} {rest}"),
    ("", r"\b(?:all|any|sum|count|min|max)[ \t]+(?P<item>\w+)[ \t]+in\b.*?\b(?P=item)(?P<at>\[)\"?(?P<name>[A-Za-z_][\w-]*)\"?\]",
     "write {item}.{name}"),
    ("", rf"\b{_KINDS}[ \t]*\([ \t]*{_ITEM}[ \t]*[:,|][ \t]*(?P<rest>[^()\n#]*(?:\([^()\n#]*\)[^()\n#]*)*)\)",
     rf"\b{_KINDS}[ \t]*\([ \t]*(?P<rest>.+?)[ \t]+for[ \t]+{_ITEM}[ \t]*\)",
     "write ({at} {item} in {list}: {rest}), without brackets after {at}"),
    ("", rf"(?P<at>\bfor|\bforall|\bfor all|\bforeach|\bfor each|\bevery)[ \t]+{_ITEM}[ \t]*:[ \t]*{_REST}",
     "write all {item} in {list}: {rest} (for is for frameworks)"),
    ("", rf"(?P<at>\bexists|\bsome)[ \t]+{_ITEM}[ \t]*:[ \t]*{_REST}", "write any {item} in {list}: {rest}"),
    # statements
    ("", (r"^(?P<at>def|function|func|fn|define|const|var|set)[ \t]+(?P<name>[\w.]+(?:\([^)\n]*\))?)"
         r"[ \t]*(?::?=|:)[ \t]*(?P<rest>[^\n#]*)"),
     r"^let[ \t]+(?P<name>[\w.]+(?:\([^)\n]*\))?)[ \t]*(?P<at>:(?!=)|<-|->|=>)[ \t]*(?P<rest>[^\n#]*)",
     "write let {name} = {rest}"),
    ("let", r"^let[ \t]+(?P<name>[\w.]+)[ \t]+(?P<at>)(?P<item>\w+)[ \t]*=[ \t]*(?P<rest>[^\n#]*)",
     r"^let[ \t]+(?P<name>[\w.]+)[ \t]*=[ \t]*(?P<at>)\(?(?P<item>\w+)\)?[ \t]*=>[ \t]*(?P<rest>[^\n#]*)",
     "write let {name}({item}) = {rest}"),
    ("bare", r"^(?P<at>[A-Z]{3}[0-9]{3}|error|warning|warn|info)[ \t]*:[ \t]*(?P<rest>[^\n#]*)",
     "write rule ABC101 rate-too-high error {{ {rest} }}"),
    ("bare", r"^(?P<at>use|import|include|package|require)[ \t]+[\"\w]",
     "no file names another: --rules loads several, and pack NAME v1.0 names those of a folder"),
    ("fact", rf"^fact[ \t]+{_NAME}(?![\w.])[ \t]*(?P<at>=|(?=\w))[ \t]*(?P<rest>\w[^\n#]*)", "write fact {name}: {rest}"),
    ("fact", r"^fact[ \t]+(?P<at>\$)\.?(?P<name>[\w.]*)",
     "a fact has a name of its own, such as acme.{name}: a rule reads the key itself as $.{name}"),
    ("fact", r"(?P<at>\benum|\boneof|\bone of)\b[ \t]*[\[({][ \t]*(?P<members>\w[^\])}\n]*?)[ \t]*[\])}]",
     r"(?P<at>\benum|\boneof)\b[ \t]*(?P<members>\w[^\n#\"]*)",
     r":[ \t]*(?P<at>[\[({])[ \t]*(?P<members>[\w\"][^\])}\n]*?)[ \t]*[\])}]",
     r":[ \t]*(?P<members>\w+[ \t]*(?P<at>[,|])[ \t]*\w[^\n#]*)", "write one of {members}"),
    ("fact", r":[ \t]*(?P<kind>\w+)[ \t]*(?P<at>>=|>)[ \t]*(?P<low>[0-9.]+)", "write {kind} {low} .. for a lower limit"),
    ("fact", r":[ \t]*(?P<kind>\w+)[ \t]+(?P<at>default\b|=)[ \t]*(?P<rest>[^\s#]*)",
     "a fact has no default: write let NAME = {rest} instead, or default in a framework block"),
    ("knob", r"(?P<at>\bcost\b)", "write costs instead of cost"),
    ("knob", r"^knob[ \t]+[\w.]+[ \t]*(?P<at>[:=])", "write what a knob may be without {at}"),
    ("knob", r"\.\.[ \t]*[0-9][\w.]*(?P<at>)[ \t]*(?:#.*)?$", "the step is missing: write it after the range, such as step 1"),
    ("each", r"^each\b.*?[ \t](?P<at>-?[0-9][\w.]*)", 'write "{at}" in quotes: words of each are names or texts'),
    ("each", r"^each\b.*?[ \t](?P<at>\$\.?)(?P<name>[\w.]+)",
     "write {name} here and $.NAME where it is read: words of each are names or texts"),
    ("each", r"\bin[ \t]+(?P<at>\[)[ \t]*(?P<list>[^\]\n]*)", "write the words without brackets: in {list}"),
    # frameworks
    ("framework", rf"^[ \t]*{_NAME}[ \t]*(?P<at>:=|==?|:|<=|->|=>)[ \t]*(?P<key>\$[^\s#]*)",
     rf"^[ \t]*(?P<at>)(?P<key>\$[^\s]*)[ \t]*(?:->|=>|=|:)[ \t]*{_NAME}", "write {name} <- {key} to read a key"),
    ("framework", rf"^[ \t]*{_NAME}[ \t]*(?P<at>:=|==?)[ \t]*(?P<rest>[^\s#][^\n#]*?)[ \t]*(?=#|$)",
     "write {name} <- $.key to read a key, or let {name} = {rest} to fix it"),
    ("framework", rf"^[ \t]*{_NAME}[ \t]*:[ \t]*(?P<at>[0-9\"][^\n#]*?)[ \t]*(?=#|$)",
     "a type stands after the colon: write let {name} = {at} to fix it"),
    # a rule's head, clauses and examples
    ("rule", r"^rule[ \t]+(?P<name>[A-Z]{3}[0-9]{3})(?P<at>:)", "write {name} without {at}"),
    ("rule", rf"{_RULE}(?P<at>)(?P<level>error|warning|info)\b(?!-)[ \t]*\{{?", "the name is missing: write it before {level}, such as rate-too-high"),
    ("rule", r"^rule\b(?![ \t]+(?:[A-Z]{3}[0-9]{3}\b|[a-z]{3}[0-9]{3}\b))[ \t]*(?P<at>)[^\n]*$",
     "a rule begins with a code, a name and a level: rule ABC101 rate-too-high error {{"),
    ("rule", rf"{_RULE}(?P<at>[\w-]*_[\w-]*)", rf"{_RULE}(?P<at>\"[^\"\n]*\"|\w+(?:[ \t]+\w+)+)(?=[ \t]+(?:error|warning|info)\b)",
     "a rule's name is words joined by hyphens: write {kebab}"),
    ("rule", rf"{_RULE}[\w-]+[ \t]+(?P<at>(?!(?:error|warning|info)\b)(?i:{'|'.join(_LEVELS)})\b)", "the level is error, warning or info: write {level}"),
    ("rule", rf"{_BEGIN}(?P<at>(?!(?:{'|'.join(_CLAUSES)}|for|rule)\b)[A-Za-z]+)[ \t]*:?[ \t]*(?:\"|(?:but[ \t]*)?\{{)",
     "no clause is named {at}{meant}"),
    ("rule", rf"{_RULE}[\w-]+[ \t]+(?:error|warning|info)[ \t]+(?P<at>if|when|where)[ \t]+(?P<rest>[^{{}}\n#]+?)[ \t]*\{{",
     "write the condition in the braces: {rest} -> REQUIREMENT"),
    ("rule", rf"{_RULE}[\w-]+[ \t]+(?:error|warning|info)[ \t]+(?P<at>in|on|of)[ \t]+(?P<rest>[\w.]+)", "write for {rest}"),
    ("rule", r"[{,][ \t]*(?P<name>\$[^\s,{}=:]*|[\w.]+)[ \t]*:[ \t]*(?P<at>[<>=!]=?)[ \t]*(?P<value>[^\s,}]+)",
     "an example gives a value or a range, such as {name}: {value}"),
    ("rule", rf"{_BEGIN}(?P<clause>{'|'.join(_CLAUSES)}|for)[ \t]*(?P<at>[:=])", "write {clause}{form}, without {at}"),
    ("rule", rf"{_BEGIN}(?P<clause>{'|'.join(_TEXTS)})[ \t]+(?P<at>(?!when\b)[^\s\":=](?:[^\"\n]*[^\s\"])?)[ \t]*$",
     'write texts in quotes: {clause} "{at}"'),
    ("rule", rf"[{{,][ \t]*(?P<name>\$[^\s,{{}}=]*|[\w.]+)[ \t]*(?P<at>==?|<-)[ \t]*{_VALUE}",
     r"[{,][ \t]*(?P<name>\$[^\s,{}=:]*|[\w.]+)[ \t]+(?P<at>)(?P<value>[\w\"][^,}\n]*?)[ \t]*(?=[,}]|$)",
     "write {name}: {value} in an example"),
    ("rule", r"[{,][ \t]*(?P<at>\")(?P<name>[^\"\n]*)\"[ \t]*:", "write {name} without quotes, or $.{name} for a key"),
    ("rule", rf"\b(?P<clause>{'|'.join(_EXAMPLES)})[ \t]+(?P<at>(?!but\b)[$\w][^{{}}\n]*:[^{{}}\n]*)",
     "write {clause} {{ {at} }}"),
    ("rule", rf"\b(?:{'|'.join(_EXAMPLES)})\b[^}}\n]*(?P<at>;)", "write , between what an example gives"),
    # conditions
    ("rule bare", (rf"{_BEGIN}(?P<at>if|when)[ \t]+(?P<when>(?:(?!\bthen\b)[^{{}}\n#])+?)[ \t]*"
                  rf"(?:\bthen\b|:|->|=>|\{{)[ \t]*(?P<rest>(?:(?!\belse\b)[^{{}}\n#])+?)[ \t]*(?=[}}#]|$)"),
     "write {when} -> {rest}; if … then … also needs else"),
    ("rule bare", r"^[ \t]*(?P<at>)then[ \t].*$", rf"{_BEGIN}(?P<at>if)[ \t]+(?![^\n]*\bthen\b)[^{{}}\n#]*$",
     "write CONDITION -> REQUIREMENT, without if and then; if … then … also needs else"),
    ("rule bare", rf"{_BEGIN}(?P<at>unless)[ \t]+(?P<when>[^{{}}\n#]+?)[ \t]*(?:\bthen\b|:|->|=>|,)[ \t]*{_REST}",
     "write not ({when}) -> {rest}"),
    ("rule bare", rf"{_BEGIN}(?P<when>(?!all\b|any\b)[^{{}}\n#:]*?(?:[<>=!]=|[<>]|\bin\b|\blike\b)[^{{}}\n#:]*?)[ \t]*(?P<at>:)[ \t]*{_REST}",
     "write {when} -> {rest}"),
    ("rule bare", rf"{_FIRST}(?P<at>only[ \t]+(?:if|when)|when|if|where|while|provided(?:[ \t]+that)?|given|as[ \t]+long[ \t]+as)[ \t]+{_REST}",
     "write the condition first: {rest} -> {first}"),
    ("rule bare", rf"{_FIRST}(?P<at>unless)[ \t]+{_REST}", "write the condition first: not ({rest}) -> {first}"),
    ("rule bare", rf"(?!.*\b(?:if|else)\b){_FIRST}(?P<at>then)[ \t]+{_REST}", "write {first} -> {rest}"),
    ("rule", rf"{_BEGIN}(?P<at>when)\b:?[ \t]*(?P<rest>[^{{}}\n#]+?)[ \t]*$", "write {rest} -> REQUIREMENT, in one clause"),
    ("", r"\b(?P<word>and|or)[ \t]+(?P<at>[<>=!]=|[<>])[ \t]*(?P<rest>[\w.$]+)", "write what is compared: {word} NAME {at} {rest}"),
    ("rule bare", rf"{_BEGIN}(?P<at>requires?|assert|check|ensure|expect|must|condition|expr)\b:?[ \t]*{_REST}",
     "write the requirement alone: {rest}"),
    # keys and columns
    ("", rf"{_PATH}(?P<at>\[)[\"'](?P<name>[^\"'\n]*)[\"']\]", 'write {key}."{name}"'),
    ("", rf"{_PATH}(?P<at>\.\*|\[[0-9]*:?[0-9]*\])", "write {key}[*] for every item"),
    ("", rf"{_NAME}(?P<at>\[)(?P<row>\"[^\"\n]*\"|\w+)\]", "a column is a function: write {name}({row})"),
    ("", rf"(?P<left>\$[\w.-]*)\.(?P<at>)(?:contains|includes|matches)\({_TEXT}\)",
     rf"{_LEFT}(?P<at>=~|~=|~|\b(?:contains|matches|includes|regex)\b){_TEXT}",
     r"\"(?P<text>[^\"\n]*)\"[ \t]+(?P<at>like)[ \t]+(?P<left>[\w.$]+)", 'write {left} like "*{text}*"'),
    ("", rf"(?P<left>\$[\w.-]*)\.(?P<at>)starts_?[wW]ith\({_TEXT}\)",
     rf"{_LEFT}(?P<at>\b(?:starts?|begins?)[ _]?[wW]ith\b){_TEXT}", 'write {left} like "{text}*"'),
    ("", rf"(?P<left>\$[\w.-]*)\.(?P<at>)ends_?[wW]ith\({_TEXT}\)",
     rf"{_LEFT}(?P<at>\bends?[ _]?[wW]ith\b){_TEXT}", 'write {left} like "*{text}"'),
    ("", r"(?P<left>\$[\w.-]*)\.(?P<at>)(?:size|length|len|count)\(\)", "write length({left})"),
    ("", r"(?P<at>\$)(?P<name>[A-Za-z_][\w.]*)", "write $.{name}"),
    ("", rf"{_PATH}(?P<at>\.)(?P<n>[0-9]+)", 'write {key}[{n}] for an item, or {key}."{n}" for a key'),
    ("", rf"{_KEY}[ \t]+(?P<at>exists|is[ \t]+(?:set|present|defined|there)\b)", "write has({key})"),
    ("", rf"{_KEY}[ \t]+(?P<at>is[ \t]+(?:missing|absent|unset|undefined|not[ \t]+(?:set|there|present))\b)",
     "write not has({key})"),
    # lists, ranges
    ("", rf"{_LEFT}like[ \t]+(?P<at>[\w.*?-]+)", 'write {left} like "{at}"'),
    ("", r"\bin[ \t]*(?P<at>[({])[ \t]*(?P<members>[^(){}:\n]*[,;][^(){}:\n]*?)[ \t]*[)}]",
     r"\bin[ \t]+(?P<members>[\w.\"-]+(?P<at>[ \t]*[,|;])[ \t]*[\w.\"-]+(?:[ \t]*[,|;][ \t]*[\w.\"-]+)*)",
     r"\bin[ \t]*(?P<at>\[)[ \t]*(?P<members>[\w.\"-]+(?:[ \t]*[|;][ \t]*[\w.\"-]+)+)[ \t]*\]",
     "write in [{members}]"),
    ("", r"(?P<left>[\w.$]+)[ \t]*==[ \t]*(?P<members>[\w.\"-]+[ \t]*(?P<at>,|\|)[ \t]*[\w.\"-]+(?:[ \t]*[,|][ \t]*[\w.\"-]+)*)(?![\w.(]|[ \t]*[<>=!])",
     "write {left} in [{members}]"),
    ("", rf"{_LEFT}(?P<at>\b(?:contains|includes))[ \t]+(?P<value>[\w.]+)", "write {value} in {left}"),
    ("", r"(?P<at>\bbetween)[ \t]+(?P<low>[^\s(){}]+)[ \t]+and[ \t]+(?P<high>[^\s(){}]+)", "write in {low} .. {high}"),
    ("", r"(?:^knob\b.*|\bin)[ \t]+(?P<low>[0-9][\w.]*)[ \t]*(?P<at>to|through|-)[ \t]*(?P<high>[0-9][\w.]*)", "write {low} .. {high}"),
    ("", r"\[[^\[\]\n]*[\w\"][ \t]+(?P<at>[\w\"]+)[^\[\]\n]*\]", "write a comma between items"),
    # numbers
    ("", r"(?<![\w.)\]])(?P<at>\.[0-9]+)", "write 0{at}"),
    ("", r"(?P<low>[0-9]+)[ \t]*(?P<at>\^)", "write the number itself: there is no ^"),
    ("", r"(?<![\w,])(?P<low>[0-9]{1,3})(?P<at>,)(?P<rest>[0-9]{3})(?![0-9])", r"(?<![\w.])(?P<low>[0-9]{1,3})[ ](?P<at>)(?P<rest>[0-9]{3})(?!\w)",
     "write {low}_{rest}"),
    ("", rf"(?<![\w.])(?P<low>{_NUMBER})[ \t]*(?P<at>{'|'.join(_UNITS)})\b(?![/.])",
     "write {amount}"),
    ("", rf"(?P<low>{_NUMBER}[ \t]*%)[ \t]*(?P<at>of\b)[ \t]*(?P<rest>[\w.$]+)", "write {low} * {rest}"),
    ("", (rf"(?P<low>{_NUMBER}(?:[ \t]*%)?)[ \t]*(?P<at>(?<=[ \t%])\$\.[\w.]+|(?<=[ \t%])[A-Za-z]+[._][\w.]+)"
         r"(?![\w.]|[ \t]*(?:[<>=!]|in\b|like\b|not\b))"),
     rf"(?<![\w.])(?P<low>{_NUMBER})(?P<at>[A-Za-z]+[._][\w.]+)", rf"(?:^|[({{]|->|\band\b|\bor\b)[ \t]*(?P<low>{_NUMBER})[ \t]+(?P<at>[A-Za-z]+[._][\w.]+)",
     "write {low} * {at}"),
    ("", rf"(?<![\w.])(?P<low>{_NUMBER})[ \t]*(?P<at>\()", "write {low} * ("),
)  # fmt: skip
_HABITS = [
    (heads.split(), [re.compile(pattern, re.MULTILINE) for pattern in patterns], instead)
    for heads, *patterns, instead in _ROWS
]
# Signs and words: what stands before a mistake, what at it, and what to write for both.
_SIGNS = tuple(
    (re.compile(rf"{before}\Z"), re.compile(after), instead)
    for before, after, instead in (
        (r"<", r">", "!="),
        (r"=", r">", "->"),
        (r"!=", r"=", "!="),
        (r"==", r"=", "=="),
        (r"-+", r"-*>", "->"),
        (r"\.\.", r"\.", ".."),
        (r"/", r"/", "floor(… / …)"),
        (r"\*", r"\*", "x * x"),
        (r"%[ \t]*", r"(?=[\d($])", "mod"),
        (r"\b(?:NOT|Not)[ \t]+", r"", "not"),
        (r"\bis[ \t]+", r"not\b", "!="),
        ("", r"&&?|∧|AND\b|And\b", "and"),
        ("", r"\|\|?|\u2228|OR\b|Or\b", "or"),
        ("", r"!==?|≠|is[ \t]+not\b", "!="),
        ("", r"!(?=[\w($])|¬|NOT\b|Not\b", "not"),
        ("", r"=>|→|⇒|⟹|implies\b", "->"),
        ("", r"∈|IN\b|is[ \t]+in\b", "in"),
        ("", r"===|is\b", "=="),
        ("", r"≤|=<", "<="),
        ("", r"≥", ">="),
        ("", r"\u00d7|·|⋅", "*"),
        ("", r"÷", "/"),
        ("", r"elif\b", "else (if … then … else …)"),
        ("", r"%", "mod"),
        ("", r"…|\.\.\.", ".."),
        ("", r"between\b", "in low .. high"),
        ("", r"\?", "if … then … else …"),
        ("", r";", "a new line"),
        ("", r"\u2013|\u2212", "-"),
    )
)
_WORDS = {
    "True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "nil": "null",
    "NULL": "null", "Null": "null", "yes": "true", "no": "false",
    "on": "true", "off": "false",
}  # fmt: skip
_DEFINED = re.compile(r"let[ \t]+[\w.]+(?:\([^)\n]*\))?[ \t]*(==|:=)")
_COMMENT = re.compile(r"//|/\*|--|%|;")
_HEAD = re.compile(
    r"^(pack|prefix|source|for|where|given|table|each|fact|knob|let|role|registry|framework|rule)\b",
    re.MULTILINE,
)
_BLOCK = re.compile(
    r"(?:rule\b[^\n{}#]*?\b(?:error|warning|info)|framework|role|table|each)\b[^\n{}#]*?(?P<end>:?)[ \t]*(?:#[^\n]*)?$",
    re.MULTILINE,
)
_MISSING = re.compile(
    r"(?:(?P<arrow>->)|\b(?P<where>where|when)|(?P<binds><-)|(?P<word>\b(?:and|or|not))|(?P<sign>[<>=!]=|[-+*/<>=]|\.\.|\b(?:in|mod|like)))"
    r"[ \t]*(?:#[^\n]*)?\s*\Z"
)


def habit(text: str, at: int, *, ends: bool = False, hole: bool = False) -> tuple[int, str] | None:
    """Return where a habit of another language stands and what to write for it; None for other mistakes.

    ``at`` is where the parser gave up; ``ends`` says that a line or bracket ends there, ``hole`` that the text
    stands in the braces of a message.
    """
    return (
        (ends and _missing(text, at)) or _in_line(text, at, "hole" if hole else "") or _sign(text, at) or None
    )


def _missing(text: str, at: int) -> tuple[int, str] | None:
    """Return what is missing where a line ends after an operator."""
    found = _MISSING.search(text, max(0, at - 400), at)
    if found is None or found.lastgroup is None:
        return None
    what = {
        "arrow": "the requirement is missing after ->",
        "where": "the condition is missing after {} (it must be on this line or on an indented one)",
        "word": "a condition is missing after {}",
    }.get(found.lastgroup, "a value is missing after {}")
    return found.end(found.lastgroup), what.format(found[found.lastgroup])


def _in_line(text: str, at: int, head: str) -> tuple[int, str] | None:
    """Return what a line holds that is written in another way."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    heads = [] if head else list(_HEAD.finditer(text, max(0, start - MAX_BEFORE), at))
    if heads and "{" not in text[(top := heads[-1].start()) : at] and (block := _BLOCK.match(text, top)):
        place = block.start("end")
        if at >= place:
            what = "clauses" if heads[-1][1] == "rule" else "lines"
            return (
                place,
                f"the {what} of a {heads[-1][1]} stand in braces: write {{ here, at the end of the line",
            )
    if len(line) > MAX_LINE:
        return None
    head = head or (heads[-1][1] if heads else "bare")
    if head != "hole" and line[:1].strip() and not _HEAD.match(line):
        head = "bare"
    for wanted, patterns, instead in _HABITS:
        if wanted and head not in wanted:
            continue
        for found in (found for pattern in patterns for found in pattern.finditer(line)):
            if found.start() <= at - start <= found.end():
                parts = {name: part or "" for name, part in found.groupdict().items()}
                return start + found.start("at"), instead.format(**_words(parts))
    return None


def _words(parts: dict[str, str]) -> dict[str, str]:
    """Return what stands in a line by its names in a message, and the words that follow from it."""
    at, clause = parts["at"], parts.get("clause", "")
    known = f"clauses are {', '.join(_CLAUSES[:-1])} and {_CLAUSES[-1]}"
    meant = [_MEANT[at]] if at in _MEANT else nearest(at, _CLAUSES, most=1)
    return parts | {
        "level": _LEVELS.get(at.lower(), parts.get("level", "")),
        "kebab": re.sub(r"[^a-z0-9]+", "-", at.lower()).strip("-"),
        "members": re.sub(r"[ \t]*[,;|][ \t]*", ", ", parts.get("members", "")),
        "text": _pattern(parts.get("text", "")),
        "form": _form(clause),
        "inner": ("not ({when}) or ({rest})" if parts.get("kind") == "all" else "{when} and {rest}").format(
            when=parts.get("when", ""), rest=parts.get("rest", "")
        ),
        "meant": f": write {meant[0]}{_form(meant[0])}" if meant else f"; {known}",
        "amount": _amount(parts.get("low", ""), at),
    }


def _form(clause: str) -> str:
    return ' "…"' if clause in _TEXTS else " {…}" if clause in _EXAMPLES else ""


def _pattern(text: str) -> str:
    """Return the text that a pattern or regular expression looks for."""
    return text.strip("^$").replace(".*", "*").strip("*")


def _amount(number: str, unit: str) -> str:
    if unit not in _UNITS or not re.fullmatch(_NUMBER, number):
        return ""
    value = float(number.replace("_", ""))
    return _UNITS[unit].format(
        n=number, unit=unit, binary=f"{value * 1024:.0f}", decimal=f"{value * 1000:.0f}"
    )


def _sign(text: str, at: int) -> tuple[int, str] | None:
    """Return what to write for the sign or word at a mistake."""
    line = text.rfind("\n", 0, at) + 1
    before = text[line:at]
    if (found := _DEFINED.match(text, line)) is not None and at <= found.end():
        return found.start(1), _written("=", found[1])
    if not before.strip() and (found := _COMMENT.match(text, at)) is not None:
        return at, _written("#", found[0])
    if text[at : at + 1] in ("'", "`", "\u2018", "\u2019", "“", "”"):
        return at, 'write texts in "…"'
    for start, end, instead in _SIGNS:
        head, tail = start.search(before), end.match(text, at)
        if head is not None and tail is not None:
            return line + head.start(), _written(instead, (head[0] + tail[0]).strip())
    return None


def word_instead_of(name: str) -> str | None:
    """Return what to write for another language's name of a value; None for any other name."""
    return _written(_WORDS[name], name) if name in _WORDS else None


def call_instead_of(function: str, arguments: Sequence[str]) -> str | None:
    """Return what to write for a call of another language's function, of arguments as they are written."""
    subject, _, method = function.rpartition(".")
    instead = _CALLS.get(method.replace("_", "").lower())
    given = [*([subject] if subject else []), *arguments]
    if instead is None or not given:
        return None
    if method in ("all", "any", "sum", "count", "min", "max") and len(given) == 2 and " in " in given[0]:
        return f"write ({method} {given[0]}: {given[1]}), without brackets after {method}"
    text = _pattern(given[1].strip('"')) if len(given) > 1 else "…"
    asked = f"has({given[0]})" if given[0].startswith("$") else f"known({given[0]})"
    given += ["…"] * 2
    return f"write {instead.format(*given, function=method, text=text, asked=asked)}"


def _written(instead: str, found: str) -> str:
    return f"write {instead} instead of {found}"
