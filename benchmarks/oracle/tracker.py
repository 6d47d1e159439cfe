"""Count the bytes of all storages that are alive, through each phase of a training step."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import active_fake_mode
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

# Operators between two looks at which storages have become gradients or gathered parameters: categories lag
# by as much, totals do not.
_OPS_BETWEEN_LOOKS = 64

# What a storage is called that an operator allocates, by the phase of its birth. What the backward pass
# computes anew counts as temporary; the loss has a backward pass of its own inside.
_BORN = {"forward": "activations", "loss": "activations", "backward": "temporary", "step": "step_temporary"}


@dataclass(slots=True)
class _Storage:
    size: int
    category: str
    watch: weakref.ref[Any] | None = None


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that were alive at once, and what they were."""

    total: int
    categories: dict[str, int]


class Tracker(TorchDispatchMode):
    """Counts what operators allocate and what is freed; `phase` says what the count is booked under.

    PyTorch's own MemTracker finds the same peaks, to the third digit in all that were compared. This one also
    takes frozen parameters and several passes through one module, and does not walk all modules each time.
    """

    def __init__(self, look: Callable[[], Iterable[tuple[torch.Tensor, str]]]) -> None:
        super().__init__()
        self.phase = "forward"
        self.asleep = False
        self.total = 0
        self.peaks: dict[str, Peak] = {}
        self._look = look
        self._since_look = 0
        self._storages: dict[int, _Storage] = {}
        self._by_category: Counter[str] = Counter()
        self._resize = torch.UntypedStorage.resize_
        self._mode: object = None

    def hold(self, tensor: torch.Tensor, category: str) -> None:
        """Count a tensor that exists already, or book one that is counted under another category."""
        local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor  # noqa: SLF001 — its own storage is empty
        storage = local.untyped_storage()
        known = self._storages.get(storage._cdata)  # noqa: SLF001 — the identity of a storage
        if known is None:
            self._add(storage, category)
        elif known.category != category:
            self._by_category[known.category] -= known.size
            self._by_category[category] += known.size
            known.category = category

    def enter(self, phase: str) -> None:
        """Book what follows under a phase; what is alive now is its first candidate for a peak."""
        self.phase = phase
        self._note_peak()

    def categories(self) -> dict[str, int]:
        """Return what is alive now, by category."""
        for tensor, category in self._look():
            self.hold(tensor, category)
        return {name: size for name, size in sorted(self._by_category.items()) if size}

    def __enter__(self) -> Self:
        self._mode = active_fake_mode()
        original, storages = self._resize, self._storages

        # FSDP frees and restores gathered parameters by resizing their storage, which no operator shows.
        def resize(storage: Any, size: int) -> Any:
            result = original(storage, size)
            known = storages.get(storage._cdata)  # noqa: SLF001
            if known is not None:
                self._change(known, size)
            return result

        torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign,assignment]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        torch.UntypedStorage.resize_ = self._resize  # type: ignore[method-assign]
        super().__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # it runs operators on its local shard, which come by here
        if func is torch.ops._c10d_functional.wait_tensor.default:  # noqa: SLF001
            result = args[0]  # the fake version would allocate, the real one does not
        else:
            result = func(*args, **(kwargs or {}))
        if self.asleep or active_fake_mode() is not self._mode:
            return result  # DTensor works out shapes: nothing is there
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                known = self._storages.get(storage._cdata)  # noqa: SLF001
                if known is None:
                    self._add(storage, _BORN.get(self.phase, self.phase))
                else:
                    self._change(known, storage.nbytes())
        if func is torch.ops.aten._softmax_backward_data.default:  # noqa: SLF001
            # CUDA's multiplies the gradient with the softmax first (native/cuda/SoftMax.cu).
            product = args[0].numel() * args[0].element_size()
            self.total += product
            self._note_peak()
            self.total -= product
        self._since_look += 1
        if self._since_look == _OPS_BETWEEN_LOOKS:
            self._since_look = 0
            for tensor, category in self._look():
                self.hold(tensor, category)
        self._note_peak()
        return result

    def _note_peak(self) -> None:
        best = self.peaks.get(self.phase)
        if best is None or self.total > best.total:
            held = {name: size for name, size in sorted(self._by_category.items()) if size}
            self.peaks[self.phase] = Peak(self.total, held)

    def _add(self, storage: torch.UntypedStorage, category: str) -> None:
        key, entry = storage._cdata, _Storage(0, category)  # noqa: SLF001

        def gone(_: weakref.ref[Any]) -> None:
            self._change(entry, 0)
            if self._storages.get(key) is entry:
                del self._storages[key]

        entry.watch = weakref.ref(storage, gone)
        self._storages[key] = entry
        self._change(entry, storage.nbytes())

    def _change(self, entry: _Storage, size: int) -> None:
        if size != entry.size:
            self.total += size - entry.size
            self._by_category[entry.category] += size - entry.size
            entry.size = size
