"""Steps that neither the agent nor the spool file has yet: first in the training thread's queue, then as lines in memory."""
from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable, Deque, List, Mapping

from .steps import Step, encode, is_ready

BATCH_LINES = 1000
BATCH_BYTES = 1024 * 1024
#: Steps that the sender holds in memory when neither the agent nor the disk takes them.
HELD_LINES = 20_000
#: A number that is still on the GPU after this long is left out.
DEFERRED_SECONDS = 10.0
#: Encoding holds the interpreter's lock: after this many lines others get a turn.
_TURN_LINES = 50


class HeldSteps:
    def __init__(self, queue: "Deque[Step]", fixed: Mapping[str, int], first_seq: int, say: Callable[[str, str], None]) -> None:
        self.dropped = 0
        self._queue = queue
        self._fixed = fixed
        self._next_seq = first_seq
        self._say = say
        self._lines: Deque[bytes] = deque()

    def __len__(self) -> int:
        """How many lines can be sent."""
        return len(self._lines)

    @property
    def is_queue_empty(self) -> bool:
        return not self._queue

    def take(self, everything: bool = False) -> bool:
        """Moves what is ready from the queue to the lines. True: it stopped early, and there may be more."""
        queue = self._queue
        taken = 0
        stopped_early = False
        while queue:
            step = queue[0]
            if not everything and not is_ready(step) and time.time() - step.at_ms / 1000 < DEFERRED_SECONDS:
                break
            try:
                step = queue.popleft()
            except IndexError:
                break
            if step.seq > self._next_seq:
                self.dropped += step.seq - self._next_seq
                self._say("dropped", "steps come faster than they can be sent: %d dropped so far" % self.dropped)
            self._next_seq = step.seq + 1
            self._lines.append(encode(step, self._fixed))
            taken += 1
            if taken % _TURN_LINES == 0:
                time.sleep(0)
            if taken >= 10 * BATCH_LINES and not everything:
                stopped_early = True
                break
        while len(self._lines) > HELD_LINES:
            self._lines.popleft()
            self.dropped += 1
        return stopped_early

    def batch(self) -> List[bytes]:
        """The oldest lines, as many as one request may have."""
        batch: List[bytes] = []
        size = 0
        for line in self._lines:
            size += len(line)
            if batch and (size > BATCH_BYTES or len(batch) == BATCH_LINES):
                break
            batch.append(line)
        return batch

    def lines(self) -> List[bytes]:
        return list(self._lines)

    def release(self, count: int) -> None:
        """The oldest `count` lines are safe elsewhere."""
        for _ in range(count):
            self._lines.popleft()

    def all_from_outside(self) -> List[bytes]:
        """Lines and queue, for another thread than the sender's."""
        return copy_of(self._lines) + [encode(step, self._fixed) for step in copy_of(self._queue)]


def copy_of(items: Any) -> List[Any]:
    """A list of what another thread may be changing."""
    for _ in range(5):
        try:
            return list(items)
        except RuntimeError:  # The other thread changed it while we looked.
            continue
    return []
