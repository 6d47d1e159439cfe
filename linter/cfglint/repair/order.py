"""Places of several axes, the cheapest first: what a search over combinations goes through."""

from __future__ import annotations

from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


def cheapest_first(
    sizes: Sequence[int], price: Callable[[tuple[int, ...]], Any]
) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Yield the places of axes that are as long as ``sizes``, in the order of their price."""
    start = (0,) * len(sizes)
    heap = [(price(start), start)]
    while heap:
        cost, places = heappop(heap)
        yield cost, places
        last = max((k for k, i in enumerate(places) if i), default=0)
        for k in range(last, len(sizes)):
            if places[k] + 1 < sizes[k]:
                after = (*places[:k], places[k] + 1, *places[k + 1 :])
                heappush(heap, (price(after), after))
