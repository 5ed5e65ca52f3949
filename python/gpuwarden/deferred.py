"""Numbers that lie on the GPU, read without making anybody wait.

The number is copied to pinned host memory behind the work that is queued already, and read when the GPU has come to it, on a later step.
`float(tensor)` would stop the training thread until then.
"""
from __future__ import annotations

import sys
from collections import deque
from typing import Any, Deque, List, Optional

#: Numbers under way; one that waits for longer than this many others is given up.
_SLOTS = 256


class Deferred:
    """`done` once the number is here, or is known never to come (`value` None)."""

    __slots__ = ("value", "done", "_slot", "_event")

    def __init__(self) -> None:
        self.value: Optional[float] = None
        self.done = False
        self._slot = 0
        self._event: Any = None


class _Ring:
    """The pinned memory and what is under way. Only the training thread comes here: queries from another thread break graph captures."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.cells: List[Any] = list(torch.zeros(_SLOTS, dtype=torch.float32, pin_memory=True).unbind())
        self.waiting: Deque[Deferred] = deque()
        self.next = 0

    def put(self, value: Any) -> Deferred:
        cuda = self.torch.cuda
        if cuda.is_current_stream_capturing():
            return _never()
        if len(self.waiting) >= _SLOTS - 1:
            _give_up(self.waiting.popleft())
        deferred = Deferred()
        deferred._slot = self.next
        self.next = (self.next + 1) % _SLOTS
        self.cells[deferred._slot].copy_(value.detach().reshape(()), non_blocking=True)
        deferred._event = cuda.Event()
        deferred._event.record(cuda.current_stream(value.device))
        self.waiting.append(deferred)
        return deferred

    def settle(self) -> None:
        if self.torch.cuda.is_current_stream_capturing():
            return
        while self.waiting and self.waiting[0]._event.query():
            deferred = self.waiting.popleft()
            deferred.value = float(self.cells[deferred._slot])
            deferred._event = None
            deferred.done = True


_ring: Optional[_Ring] = None


def is_on_device(value: Any) -> bool:
    device = getattr(value, "device", None)
    return getattr(device, "type", "cpu") != "cpu"


def defer(value: Any) -> Optional[Deferred]:
    """None where the number cannot be fetched without waiting (another accelerator than CUDA, more than one element)."""
    global _ring
    torch = sys.modules.get("torch")
    if torch is None or not getattr(value, "is_cuda", False) or value.numel() != 1:
        return None
    if _ring is None:
        if torch.cuda.is_current_stream_capturing():
            return None
        _ring = _Ring(torch)
    return _ring.put(value)


def settle() -> None:
    """Reads what has arrived. Cheap when nothing is under way; never waits."""
    if _ring is not None and _ring.waiting:
        _ring.settle()


def pending() -> int:
    return 0 if _ring is None else len(_ring.waiting)


def forget_after_fork() -> None:
    global _ring
    _ring = None


def give_up() -> None:
    """At the end: what has not arrived by now is sent without its number."""
    if _ring is not None:
        while _ring.waiting:
            _give_up(_ring.waiting.popleft())


def _give_up(deferred: Deferred) -> None:
    deferred._event = None
    deferred.done = True


def _never() -> Deferred:
    deferred = Deferred()
    deferred.done = True
    return deferred
