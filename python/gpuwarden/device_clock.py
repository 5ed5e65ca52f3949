"""The GPU's own times of a step's phases, by CUDA events between them. Nothing here waits for the GPU.

Events are asked from the training thread alone, and never while a CUDA graph is captured: a call from another thread would break it.
"""
from __future__ import annotations

import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from .deferred import Deferred

#: Phases by the GPU's clock are sent under the name of the phase and this.
DEVICE_SUFFIX = "@gpu"
#: A step is timed about this often: events cost more than all the rest.
_EVERY_SECONDS = 0.25
#: A step whose events have not passed by then is sent without them.
_GIVE_UP_SECONDS = 5.0
_MOST_MARKS = 128
_MOST_PENDING = 8


class DeviceSeconds(Deferred):
    """How long the GPU was in a phase: known once the GPU has come there. Nobody else's thread may ask, so it waits to be told."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        super().__init__(None, 0)
        self._since: Optional[float] = time.monotonic()

    def has_come(self) -> bool:
        since = self._since
        return since is None or time.monotonic() - since > _GIVE_UP_SECONDS

    def settle(self, seconds: Optional[float]) -> None:
        self.value = seconds
        self._since = None


class DeviceClock:
    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._is_initialized = torch.cuda.is_initialized
        self._is_capturing = torch.cuda.is_current_stream_capturing
        self._free: List[Any] = []
        self._marks: Optional[List[Tuple[Optional[str], Any]]] = None
        self._pending: Deque[Tuple[List[Tuple[Optional[str], Any]], Dict[str, DeviceSeconds]]] = deque()
        self._mean_seconds = 0.0

    def mark(self, phase: Optional[str]) -> None:
        """The GPU's work from here on belongs to `phase`."""
        if self._pending:
            self._resolve()
        marks = self._marks
        if marks is None:
            return
        if len(marks) >= _MOST_MARKS or self._is_capturing():
            self._drop(marks)
            self._marks = None
            return
        marks.append((phase, self._record()))

    def rename(self, before: str, after: str) -> None:
        if self._marks is not None:
            self._marks = [(after if phase == before else phase, event) for phase, event in self._marks]

    def end_step(self, phase: Optional[str], number: int, seconds: Optional[float]) -> "Optional[Dict[str, DeviceSeconds]]":
        """Ends the step and may begin to time the next one, which has this number. None: this one was not timed."""
        marks, self._marks = self._marks, None
        if not self._is_initialized() or self._is_capturing():
            if marks is not None:
                self._drop(marks)
            return None
        values: "Optional[Dict[str, DeviceSeconds]]" = None
        wants_next = self._is_due(number, seconds) and len(self._pending) < _MOST_PENDING
        if marks is None and not wants_next:
            return None
        if marks is not None:
            marks.append((None, self._record()))
            values = {name: DeviceSeconds() for name, _ in marks[:-1] if name is not None and " " not in name}
            self._pending.append((marks, values))
        if wants_next:
            self._marks = [(phase, self._record())]
        return values

    def _is_due(self, number: int, seconds: Optional[float]) -> bool:
        """By the number of the step, so that all ranks time the same ones: their steps take equally long."""
        if seconds is not None:
            self._mean_seconds += (seconds - self._mean_seconds) / (8 if self._mean_seconds else 1)
        every = 1
        while every * self._mean_seconds < _EVERY_SECONDS and every < 1024:
            every *= 2
        return number % every == 0

    def forget(self) -> None:
        """Events of another process are of no use here."""
        self._free = []
        self._marks = None
        self._pending.clear()

    def _record(self) -> Any:
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def _resolve(self) -> None:
        marks, values = self._pending[0]
        if self._is_capturing() or not marks[-1][1].query():
            return
        self._pending.popleft()
        sums: Dict[str, float] = {}
        for (name, event), (_, after) in zip(marks, marks[1:]):
            if name in values and name is not None:
                sums[name] = sums.get(name, 0.0) + event.elapsed_time(after) / 1000.0
        for name, value in values.items():
            value.settle(sums.get(name))
        self._drop(marks)

    def _drop(self, marks: "List[Tuple[Optional[str], Any]]") -> None:
        self._free.extend(event for _, event in marks)
