"""How many processes and machines a command is for, where a fix moves the processes of one machine.

A target may have fewer machines than the command is for, which would wait for the others.
"""

from __future__ import annotations

from cfglint.lang.show import path as path_text
from cfglint.lang.types import is_number
from cfglint.record import Record
from cfglint.repair.invert import Written
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cfglint.document.view import View
    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps
    from cfglint.repair.found import Repair
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal, Trials
    from cfglint.repair.write import Writer

_EACH, _ALL, _NODES = (("launch", name) for name in ("processes_per_node", "processes", "nodes"))
_BY_HAND = "change that by hand"


def waits_for_others(repair: Repair, goals: Sequence[Goal]) -> str:
    """Say of a repair for memory that the command waits for machines which the target does not have.

    Without a number of processes, memory and batch are counted for the target's GPUs alone. How many the
    others have is not known, so that no edit to one machine keeps the batch.
    """
    judged = next((each.judged for each in goals if each.code.startswith("MEM")), None)
    if judged is None:
        return ""
    view, there = judged.subject.view, judged.values.given.get("gpu.nodes")
    machines = view.get(_NODES)
    alone = not (view.has(_EACH) or view.has(_ALL) or any(each.path == _NODES for each in repair.written))
    if not (alone and is_number(machines) and is_number(there) and there < machines):
        return ""
    told = f"the command stays one for {machines} machines, and waits for the others"
    return f"{told}, whose GPUs are not counted here: {_BY_HAND}, and the batch with it"


class Machines(Record):
    """The numbers of one command; ``rewritten`` gives the text as it is read with an option in it."""

    judged: Judged
    writer: Writer
    trials: Trials
    rewritten: Callable[[Option], View | None]

    def count(self, option: Option) -> None:
        """Move the number of all processes with that of one machine, where a command says both.

        Of ``-n 128 -ppn 8``, a smaller second number alone asks for more machines. Where the target has
        fewer machines than the command is for, it becomes one for those.
        """
        each, view = option.facts.get(path_text(_EACH)), self.judged.subject.view
        there, machines = self.judged.values.given.get("gpu.nodes"), view.get(_NODES)
        if not is_number(machines):
            machines = there if not view.has(_NODES) else None
        if not is_number(machines):
            return
        fewer = is_number(there) and there < machines
        if fewer:
            self._fewer_in_all(option, int(there), int(machines))  # type: ignore[call-overload]
        machines = int(there if fewer else machines)  # type: ignore[call-overload]
        if isinstance(each, int) and is_number(view.get(_ALL)):
            if fewer and self._follows(option, each, machines):
                return
            self._along(_ALL, each * machines, option, beside=_EACH)
        if fewer and not self._has_machines(option, machines):
            self._along(_NODES, machines, option, beside=_EACH)
            if not self._has_machines(option, machines):
                option.risk = worse(option.risk, "optimization")
                option.effects.append(f"the command stays one for {view.get(_NODES)} machines: {_BY_HAND}")

    def _follows(self, option: Option, each: int, machines: int) -> bool:
        """Write the machines along where the number of all processes is computed from both; whether it is.

        ``NGPU=$((NGPU_PER_NODE*NUM_NODES))`` of ``mpirun -n $NGPU -ppn $NGPU_PER_NODE``.
        """
        facts, written = dict(option.facts), list(option.written)
        self._along(_NODES, machines, option, beside=_EACH)
        again = self.rewritten(option)
        if again is not None and again.get(_ALL) == each * machines and again.get(_EACH) == each:
            return True
        option.facts, option.written = facts, written
        return False

    def _fewer_in_all(self, option: Option, machines: int, before: int) -> None:
        """Give fewer machines as many processes each as an option gives those that there were."""
        own = self.writer.definition(_ALL).key
        for written in option.written:
            if self.writer.definition(written.path).key == own and isinstance(written.value, int):
                written.value = max(1, written.value * machines // before)
                option.facts[path_text(written.path)] = written.value

    def _has_machines(self, option: Option, machines: int) -> bool:
        """Whether a command is for so many machines once an option is written."""
        again = self.rewritten(option)
        return again is not None and again.get(_NODES) == machines

    def _along(self, path: Steps, value: int, option: Option, *, beside: Steps) -> None:
        """Write a number of the command along, where it has a definition of its own."""
        definition = self.writer.definition(path)
        if not definition.editable or definition.key == self.writer.definition(beside).key:
            return
        option.facts[path_text(path)] = value
        self.trials.keys |= {path_text(path): path}
        option.written = [each for each in option.written if each.path != path]
        option.written.append(Written(path, value))
