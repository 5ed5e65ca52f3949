"""The thread that takes steps from the training thread's queue to the agent, or to the spool file while no agent answers.

The training thread only appends to a deque. Everything that can block, fail or take long happens here.
"""
from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Tuple

from .agent_link import Unreachable
from .delivery import LONGEST_PAUSE, Delivery, Stopped
from .held_steps import BATCH_BYTES, BATCH_LINES, HELD_LINES, HeldSteps, copy_of
from .leftover_delivery import LeftoverDelivery
from .lifecycle import watch_for_sigterm
from .settings import Settings
from .spool import Spool
from .standstill import Standstill
from .steps import Step

log = logging.getLogger("gpuwarden")

TICK_SECONDS = 0.25
QUEUE_STEPS = 20_000
_FIRST_PAUSE = 0.5
#: An agent that is starting takes a moment: only a longer outage, or one until the end, is worth a line.
_QUIET_SECONDS = 5.0
_LEFTOVER_SECONDS = 300.0
_LEAVE_SECONDS = 5.0
#: Without a step for this long the agent is asked whether it wants something, again and again.
_SILENT_SECONDS = 1.0


class Sender:
    def __init__(
        self, settings: Settings, run: Dict[str, Any], fixed: Mapping[str, int], queue: "Deque[Step]", first_seq: int, spool_name: str
    ) -> None:
        self.run = run
        self.spooled = 0
        self._settings = settings
        self._spool_name = spool_name
        self._head = {"run": run, "url": settings.url, "format": 1}
        self._spool = Spool(settings.spool_folder, spool_name, self._head)
        self._delivery = Delivery(settings, run.get("correlation_id"))
        self._held = HeldSteps(queue, fixed, first_seq, self._delivery.say)
        # Training continues in the meantime.
        self._leftovers = LeftoverDelivery(settings, self._delivery, between_batches=self._take)
        self._reports: Deque[Dict[str, Any]] = deque(maxlen=8)
        #: What the agent asked for, by path; of no use to anybody once the run is over.
        self._results: Deque[Tuple[str, Dict[str, Any]]] = deque(maxlen=4)
        self._standstill: Optional[Standstill] = None
        self._rank = int(fixed.get("rank", 0))
        self._heard_at = 0.0
        self._end: Optional[Dict[str, Any]] = None
        self._announced = False
        self._pause = 0.0
        self._retry_at = 0.0
        self._offline_since: Optional[float] = None
        self._leftovers_at = 0.0
        self._wake = threading.Event()
        self._thread: Optional[threading.Thread] = None

    @property
    def delivered(self) -> int:
        return self._delivery.delivered

    @property
    def rejected(self) -> int:
        return self._delivery.rejected

    @property
    def dropped(self) -> int:
        return self._held.dropped

    @property
    def is_settled(self) -> bool:
        """Everything that was logged has been delivered or kept."""
        return self._held.is_queue_empty and len(self._held) == 0

    # --- called by the training thread

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="gpuwarden-sender", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def report(self, report: Dict[str, Any]) -> None:
        self._reports.append(report)
        self._wake.set()

    def on_requests(self, record: Callable[[Any], None], standstill: Standstill) -> None:
        """Who gets what the agent asks for; on the sender's thread."""
        self._standstill = standstill

        def take(answer: Mapping[str, Any]) -> None:
            standstill.ask(answer.get("stacks"))
            record(answer.get("record"))

        self._delivery.on_answer = take

    def result(self, path: str, result: Dict[str, Any]) -> None:
        self._results.append((path, result))
        self._wake.set()

    def describe(self, changes: Mapping[str, Any]) -> None:
        """What became known after the start; sent to the agent with the next batch."""
        self.run.update(changes)
        self._announced = False

    def finish(self, end: Optional[Dict[str, Any]], seconds: float) -> None:
        """Sends or keeps what is left, within `seconds`, whatever the network does."""
        began = time.monotonic()
        self._end = end
        self._delivery.deadline = began + seconds * 0.6
        self._wake.set()
        thread = self._thread
        if thread is None:
            return
        thread.join(seconds * 0.6)
        if thread.is_alive():
            self._delivery.link.abort()
            thread.join(max(0.05, began + seconds * 0.85 - time.monotonic()))
        if thread.is_alive():
            self._keep_from_outside()

    def leave(self) -> None:
        """Sends or keeps what is left, in its own time and without an end of the run."""
        self._delivery.deadline = time.monotonic() + _LEAVE_SECONDS
        self._wake.set()

    def join(self, seconds: float) -> None:
        if self._thread is not None and self._is_ending:
            self._thread.join(seconds)

    # --- the thread

    @property
    def _is_ending(self) -> bool:
        return self._delivery.deadline is not None

    def _work(self) -> None:
        while not self._is_ending:
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()
            try:
                watch_for_sigterm()
                self._tick()
            except Exception as error:  # An error of ours must not end the thread: the next tick may do better.
                self._delivery.say("fault", "sending failed: %s: %s" % (type(error).__name__, error))
        try:
            self._last_tick()
        except Exception as error:
            self._delivery.say("fault", "the last steps could not be kept: %s: %s" % (type(error).__name__, error))
        self._delivery.link.close()

    def _tick(self) -> None:
        self._take()
        if self._standstill is not None and self._standstill.is_wanted:
            self._standstill.tick()
        now = time.monotonic()
        if now < self._retry_at:
            self._store()
            return
        is_silent = now - self._heard_at >= _SILENT_SECONDS
        if not (self._held or self._reports or self._results or self._end or is_silent) and self._spool.is_empty and self._announced and now < self._leftovers_at:
            return
        try:
            self._deliver()
            if is_silent and now - self._heard_at >= _SILENT_SECONDS:
                self._delivery.steps(self.run, [], self._rank)
                self._heard_at = now
            if now >= self._leftovers_at and not self._is_ending:
                self._leftovers_at = now + _LEFTOVER_SECONDS
                self._leftovers.deliver()
        except Unreachable as error:
            self._offline(error)
        except Stopped:
            self._store()

    def _last_tick(self) -> None:
        self._await_numbers()
        self._take(everything=True)
        try:
            self._deliver()
        except (Unreachable, Stopped) as error:
            if isinstance(error, Unreachable):
                self._say_offline(str(error))
            else:
                log.debug("gpuwarden: the rest goes to the spool: %s", error)
        self._store()
        tail = self._tail()
        if tail:
            kept, reason = self._spool.append(tail)
            if kept < len(tail):
                self._delivery.say("spool", "the end of the run could not be kept: %s" % reason)
        if self._held:
            self._held.dropped += len(self._held)
            log.warning("gpuwarden: %d steps were lost at exit: neither the agent nor the disk took them", len(self._held))
        self._spool.close()

    def _await_numbers(self) -> None:
        """The last steps' numbers may still be on the GPU. The time left after this goes to sending."""
        deadline = self._delivery.deadline or 0.0
        share = (deadline - time.monotonic()) / 2
        while not self._held.is_queue_empty and time.monotonic() < deadline - share:
            self._take()
            if not self._held.is_queue_empty:
                time.sleep(0.002)

    def _take(self, everything: bool = False) -> None:
        if self._held.take(everything):
            self._wake.set()

    def _deliver(self) -> None:
        if not self._announced:
            self._delivery.announce_or_wait(self.run)
            self._announced = True
        while not self._spool.is_empty:
            lines, offset = self._spool.read(BATCH_LINES, BATCH_BYTES)
            if not lines:
                break
            self._delivery.steps(self.run, lines)
            self._spool.advance(offset)
        while self._held:
            batch = self._held.batch()
            self._delivery.steps(self.run, batch)
            self._held.release(len(batch))
            self._heard_at = time.monotonic()
        while self._reports:
            self._delivery.once(self.run, "report", self._reports[0])
            self._reports.popleft()
        if self._end is not None:
            self._delivery.once(self.run, "end", self._end)
            self._end = None
        # Last: the rest must not wait for an agent that does not take them.
        while self._results:
            path, result = self._results[0]
            self._delivery.once(self.run, path, result)
            self._results.popleft()
        self._pause = 0.0
        self._offline_since = None

    # --- when nobody answers

    def _offline(self, error: Unreachable) -> None:
        self._pause = min(LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2, self._delivery.asked_pause))
        self._delivery.asked_pause = 0.0
        now = time.monotonic()
        self._retry_at = now + self._pause
        self._announced = False
        if self._offline_since is None:
            self._offline_since = now
        # Something else at the agent's address stays there until somebody reads of it.
        if error.answered or now - self._offline_since >= _QUIET_SECONDS:
            self._say_offline(str(error))
        self._store()

    def _say_offline(self, reason: str) -> None:
        place = self._spool.path or "memory"
        self._delivery.say("offline", "no agent accepts steps at %s (%s); they are kept in %s" % (self._settings.url, reason, place), 3600)

    def _store(self) -> None:
        if not self._held:
            return
        lines = self._held.lines()
        kept, reason = self._spool.append(lines)
        self._held.release(kept)
        self.spooled += kept
        if kept < len(lines) and self._settings.spool_folder is not None:
            self._delivery.say("spool", "steps cannot be kept on disk: %s; the newest %d stay in memory" % (reason, HELD_LINES))

    def _keep_from_outside(self) -> None:
        """The thread is stuck in a call: the thread that ends the program writes what is left to another file."""
        spool = Spool(self._settings.spool_folder, self._spool_name + ".exit", self._head)
        lines = self._held.all_from_outside() + self._tail()
        kept, reason = spool.append(lines)
        spool.close()
        if kept < len(lines):
            log.warning("gpuwarden: %d lines were lost at exit: %s", len(lines) - kept, reason)

    def _tail(self) -> List[bytes]:
        tail = [_line({"report": report}) for report in copy_of(self._reports)]
        return tail if self._end is None else tail + [_line({"end": self._end})]


def _line(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value) + "\n").encode("utf-8")
