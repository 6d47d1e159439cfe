"""Numbers a step apart, of which a knob may have millions: none is made before it is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from cfglint.engine.knobs import tidy


class Grid(Sequence[float]):
    """Every ``step`` from the place ``first`` on, up or down by ``sign``, to the end of the domain."""

    def __init__(self, low: float, step: float, first: int, sign: int, last: int) -> None:
        self.low = low
        self.step = step
        self.first = first
        self.sign = sign
        self.last = last
        self.size = max(0, last - first + 1 if sign > 0 else first + 1)

    def after(self, start: int) -> Grid:
        """Return the grid without its first places."""
        return Grid(self.low, self.step, self.first + self.sign * start, self.sign, self.last)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> float:  # type: ignore[override]
        return tidy(self.low + (self.first + self.sign * i) * self.step)

    def place(self, value: float) -> float:
        """Return where ``value`` would stand, a whole number where it does."""
        return ((value - self.low) / self.step - self.first) * self.sign
