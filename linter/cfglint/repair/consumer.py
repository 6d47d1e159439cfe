"""What will read a repaired text: whether it takes a value at a key, and how the key has to be said.

What takes a command's flags is its program, where that is at hand (document/follow.py), and the framework's
schema. Where neither says anything, anything is taken.
"""

from __future__ import annotations

import re

from cfglint.document.foreign import starts_own
from cfglint.document.tree import Mapping
from cfglint.engine.ages import came
from cfglint.engine.entries import blocks_of, has_words
from cfglint.record import Record, field
from cfglint.schema.judge import closed, keys_of, knows, takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.trace import Trace
    from cfglint.document.tree import Entry
    from cfglint.engine.ages import Came
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps
    from cfglint.lang import tree as t
    from cfglint.lang.symbols import Symbols

_SIGNED = re.compile(r"""["']?\+{1,2}[A-Za-z_][\w.]*=""")  # an override that Hydra alone reads
_STALE = 8  # of so many flags of a framework's parser, one may be of another version's
# Flags of transformers.TrainingArguments (transformers/training_args.py) that no parser of one's own has.
_OF_TRAINER = {
    *("save_strategy", "evaluation_strategy", "eval_strategy", "logging_strategy", "load_best_model_at_end"),
    *("remove_unused_columns", "ddp_find_unused_parameters", "logging_first_step", "ddp_timeout"),
}


class Consumer(Record):
    """The reader of one document."""

    subject: Subject
    symbols: Symbols
    _given: list[str] | None = field(default=None, init=False)  # the flags of the command

    @property
    def flags(self) -> bool:
        """Whether the keys are a command's."""
        return self.subject.document.format == "shell"

    def takes(self, path: Steps, value: object) -> bool:
        """Whether a value at a key is taken."""
        framework, view = self.subject.framework, self.subject.view
        there = view.has(path)
        if self.flags and path[0] == "launch":
            return True  # the launcher's, not the program's
        if view.hangs(path) is not None or self._is_files(path):
            return takes(framework, view, path, value)  # what reads the file that a flag names
        if self.flags and not self.of_hydra:
            accepted = self._accepted(path, value)
            dots = self._has_words and len(path) > 1 and not there and not self._merges
            if accepted is False or dots:  # it has none
                return False
            there = there or accepted is True
        elif self.flags:
            if not there and not self._may_be_added(path):
                return False  # ++ would put it where no line of the program reads it
            there = True  # and where it is not, ++ says so
        newer = self.came(path)
        if (newer is not None and newer.surely) or (
            not there and (closed(framework, view, path) or self._lacks_field(path))
        ):
            return False
        return takes(framework, view, path, value)

    def reads_flags(self, path: Steps) -> bool:
        """Whether a flag may stand on the command: not where its program reads a file in place of flags."""
        document = self.subject.document
        program = document.program if document.over and path[0] != "launch" else None
        return program is None or not program.program.reads_file_alone

    def may_be_given(self, path: Steps) -> bool:
        """Whether a flag may be put on the command: what reads it surely has the flag.

        A program of one's own has what its parser shows, and what the classes of transformers and TRL have
        where it fills those. One that is not here fills them where the command has flags of nothing else.
        """
        framework, key = self.subject.framework or "", ".".join(map(str, path))
        program, block = self.subject.document.program, self.subject.pack.frameworks[framework]
        if not self.flags or path[0] == "launch" or self.of_hydra or self.subject.view.hangs(path):
            return True
        if any(_SIGNED.match(word.spelled) for word in self.subject.document.words):
            return True  # overrides of a config, as Hydra has them
        if not self.reads_flags(path):
            return False
        own = block["programs"] or block["last"]
        if not own or starts_own(block, framework, self.subject.view):
            return True
        plain = key in keys_of("transformers") or knows(framework, path)
        if program is None:
            strange = sum(not knows(framework, tuple(each.split("."))) for each in self._flags_given)
            few = strange * _STALE < len(self._flags_given)
            return plain and (few or not _OF_TRAINER.isdisjoint(self._flags_given))
        words, fills = program.program.declared()
        shown = key in program.program.flags or self._accepted(path, None) is not None
        return shown or (plain and (fills or not (_OF_TRAINER - words).isdisjoint(self._flags_given)))

    @property
    def _flags_given(self) -> list[str]:
        root = self.subject.document.root
        if self._given is None:
            entries = root.entries.items() if isinstance(root, Mapping) else ()
            self._given = [key for name, entry in entries if name != "launch" for key in _keys(name, entry)]
        return self._given

    def _accepted(self, path: Steps, value: object) -> bool | None:
        """Whether the program at hand takes a flag; None where none is, or where that is not known."""
        program, root = self.subject.document.program, self.subject.document.root
        if program is None or not isinstance(root, Mapping):
            return None
        if self.subject.view.has(path) and path[0] not in root.entries:
            return None  # what the program makes of its flags
        key = ".".join(map(str, path))
        if key in self._flags_given and key not in program.program.flags:
            return None  # as deepspeed.add_config_arguments declares some, in no file of the project
        accepted: bool | None = program.accepts(key, value, self._flags_given)
        if accepted is None and program.fills_plain and key not in keys_of("transformers"):
            return False
        return accepted

    def _lacks_field(self, path: Steps) -> bool:
        """Whether the project's own copy of the framework has no field for a key: its loader stops then."""
        has_field, view = self.subject.document.has_field, self.subject.view
        if has_field is None:
            return False
        steps = zip(("", *path), path, strict=False)  # each with the section that it is in
        new = ((name, str(section)) for i, (section, name) in enumerate(steps, 1) if not view.has(path[:i]))
        return not all(has_field(name, section) for name, section in new if isinstance(name, str))

    def came(self, path: Steps) -> Came | None:
        """Return what a key came with that is not there, where its reader is older or may be."""
        view = self.subject.view
        if view.has(path) or view.hangs(path) is not None or path[0] == "launch":
            return None
        release = came(self.subject, path)
        plain = release is None or not self.flags or self.of_hydra
        return release if plain or self._accepted(path, None) is not True else None

    def offers(self, path: Steps, binding: t.Binding) -> bool:
        """Whether a key that is not there can be given: a program need not have all flags of its kind."""
        return not self.flags or binding.default is not None or knows(self.subject.framework, path)

    def said(self, path: Steps) -> Steps:
        """Return a key as its document has to say it where it is not there yet.

        Hydra takes no override of what its config does not have, unless that says so: ``++a.b=c``. A command
        with such overrides starts a program that reads them by Hydra, whosever it is.
        """
        if not self.flags or not isinstance(path[0], str):
            return path
        if not self.of_hydra and not any(_SIGNED.match(word.spelled) for word in self.subject.document.words):
            return path
        known = self.of_hydra and not self.subject.document.over and knows(self.subject.framework, path)
        return path if known else (f"++{path[0]}", *path[1:])

    def config_for(self, path: Steps, trace: Trace, old: str | None = None) -> str:
        """Return the file that has to say a key where the command's program takes nothing beside it.

        Empty for what the command itself says, which is the ``old`` text.
        """
        document, layers = self.subject.document, self.subject.view.layers
        alone = document.takes_no_more or self._is_files(path)
        if path[0] == "launch" or old is not None or not alone:
            return ""
        if trace.source is not None:
            return trace.file.path
        return layers.files[0].file.path if layers is not None and layers.files else document.over[0].text

    def _is_files(self, path: Steps) -> bool:
        """Whether a command's config says a key, and its program has a parser without such a flag."""
        document = self.subject.document
        program = document.program.program if self.flags and document.over and document.program else None
        flag = ".".join(map(str, path))
        if program is None or program.parsers != {"whole"} or flag in program.flags:
            return False
        own = document.root.entries if isinstance(document.root, Mapping) else {}
        return self.subject.view.has(path) and path[0] not in own

    def _may_be_added(self, path: Steps) -> bool:
        """Whether the config that is overridden has a key's place: a mapping that is left open for more.

        A program that stands beside its config, as a fork or an older checkout does, reads the keys that
        are there. Where the config, or the framework's own below it, is not at hand, the schema tells.
        """
        view = self.subject.view
        if not self.subject.document.over or view.has(("defaults",)):
            return True
        above = next((path[:i] for i in range(len(path) - 1, 0, -1) if view.has(path[:i])), None)
        return above is not None and view.get(above) in ({}, None)

    @property
    def of_hydra(self) -> bool:
        """Whether overrides are of a config whose keys are known: composed here, or by the schema."""
        subject = self.subject
        hydra = subject.pack.frameworks[subject.framework or ""]["composes"] == "hydra"
        return hydra and (bool(subject.document.over) or knows(subject.framework, ()))

    def is_switch(self, path: Steps) -> bool:
        """Whether a key is a flag that is not there, which says false of a switch."""
        return self.flags and not self._has_words and not self.of_hydra and not self.subject.view.has(path)

    def word(self, path: Steps, value: object) -> object:
        """Return what a flag's word is for a value: a switch of HfArgumentParser takes true and false.

        Without a word, it would not take one whose default is None (``tf32``).
        """
        words = isinstance(value, bool) and self.flags and self._has_words and not self._is_bare(path)
        return str(value) if words else value

    def _is_bare(self, path: Steps) -> bool:
        """Whether the program at hand has a flag that takes no word."""
        program = self.subject.document.program
        flag = None if program is None else program.program.flags.get(".".join(map(str, path)))
        return flag is not None and flag.kind == "switch"

    @property
    def _merges(self) -> bool:
        """Whether a command's overrides are laid over its config by OmegaConf, which takes dots."""
        subject = self.subject
        dialect = str(subject.pack.frameworks[subject.framework or ""]["dialect"])
        return bool(subject.document.over) and dialect.startswith("omegaconf")

    @property
    def _has_words(self) -> bool:
        return has_words(blocks_of(self.symbols, self.subject.framework))

    def strangeness(self, path: Steps) -> int:
        """Return how unlike the command's own flags a key is: in its dots first, then in its section.

        A fork that has ``--adam_offload`` does not have ``--ds.adam_offload``.
        """
        root = self.subject.document.root
        if not self.flags or not isinstance(root, Mapping) or self.subject.view.has(path):
            return 0
        entries = {key: each.value for key, each in root.entries.items() if key != "launch"}
        dotted = any(isinstance(value, Mapping) for value in entries.values())
        return 2 * ((len(path) > 1) != dotted) + (dotted and path[0] not in entries)


def _keys(name: str, entry: Entry) -> Iterator[str]:
    """Yield the flags of a command at a key, and below it where they have dots."""
    if not isinstance(entry.value, Mapping):
        yield name
        return
    for inner, each in entry.value.entries.items():
        yield from _keys(f"{name}.{inner}", each)
