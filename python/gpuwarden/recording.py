"""Which lines make memory that stays: recorded for some steps while the training goes on, when the agent or the program asks for it.

The training thread takes part at the end of each step; between recordings that costs it one test. Whatever fails ends the recording, never the training.
"""
from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional

from . import device_recording, host_recording
from .window import Refused, Window

log = logging.getLogger("gpuwarden")

#: Fewer steps tell a leak from a buffer no more.
FEWEST_STEPS = 6
MOST_STEPS = 1000
#: A recording that takes longer, or that has cost more than this on top of the steps' own time, ends with the steps it has.
_LONGEST_SECONDS = 60.0
_MOST_EXTRA_SECONDS = 2.0
_RECENT_STEPS = 32
_KINDS: Dict[str, Callable[[], Window]] = {"gpu": device_recording.DeviceWindow, "host": host_recording.HostWindow}


class Recording:
    """One request, and what came of it."""

    def __init__(self, kind: str, steps: int, recording_id: Optional[str] = None, trigger: str = "program") -> None:
        self.id = recording_id or uuid.uuid4().hex[:16]
        self.kind = kind
        self.steps = max(FEWEST_STEPS, min(MOST_STEPS, int(steps)))
        self.trigger = trigger
        #: What is sent to the agent; None until it is over.
        self.result: Optional[Dict[str, Any]] = None

    @property
    def is_over(self) -> bool:
        return self.result is not None

    @property
    def lines(self) -> List[Dict[str, Any]]:
        """The lines whose memory stays, largest first."""
        return list(self.result.get("lines") or []) if self.result is not None else []

    @property
    def reason(self) -> Optional[str]:
        """Why nothing was recorded."""
        return self.result.get("reason") if self.result is not None else None


class Recorder:
    def __init__(self, send: Callable[[Dict[str, Any]], None], rank: int, may_record: bool) -> None:
        #: Read by the training thread at each step.
        self.is_wanted = False
        self.recent: Deque[float] = deque(maxlen=_RECENT_STEPS)
        self._send = send
        self._rank = rank
        self._may_record = may_record
        self._heard: Optional[str] = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._recording: Optional[Recording] = None
        self._window: Optional[Window] = None
        self._began_at = 0.0
        self._before: Optional[float] = None
        self._during: List[float] = []
        self._count = 0
        self._last = 0

    def ask(self, asked: Any) -> None:
        """What the agent answered; it repeats a request until there is a result. Called by the sender's thread."""
        if not isinstance(asked, Mapping) or asked.get("kind") not in _KINDS or not isinstance(asked.get("id"), str):
            return
        if asked["id"] == self._heard:
            return
        self._heard = asked["id"]
        steps = asked.get("steps")
        recording = Recording(asked["kind"], steps if type(steps) is int else 20, asked["id"], str(asked.get("trigger", "hand"))[:20])
        if not self._may_record:
            self._end(recording, Refused("recording is off in this program (GPUWARDEN_NO_RECORDING)"))
        else:
            self.start(recording)

    def start(self, recording: Recording) -> Recording:
        with self._lock:
            is_free = not self._is_closed and self._recording is None
            if is_free:
                self._recording = recording
                self.is_wanted = True
        if not is_free:
            self._end(recording, Refused("the run is over" if self._is_closed else "another recording is under way"))
        return recording

    def on_step(self, step: int, step_seconds: Optional[float]) -> None:
        """At the end of a step, on the training thread."""
        recording = self._recording
        if recording is None:
            self.is_wanted = False
            return
        try:
            if self._window is None:
                self._begin(recording, step)
            else:
                self._go_on(recording, self._window, step, step_seconds)
        except Exception as error:  # PyTorch's private functions, or a bug of ours: the training goes on without the recording.
            self._stop(error if isinstance(error, Refused) else Refused("%s: %s" % (type(error).__name__, error)))

    def close(self) -> None:
        """The run is over."""
        self._is_closed = True
        if self.is_wanted:
            self._stop(Refused("the run ended before the recording"))

    def _begin(self, recording: Recording, step: int) -> None:
        window = self._window = _KINDS[recording.kind]()
        window.begin(recording.trigger)
        self._began_at = time.monotonic()
        self._before = _median(self.recent)
        self._during = []
        self._count = 0
        self._last = recording.steps
        window.mark("begin", step)
        if window.is_complete:
            self._stop(None)

    def _go_on(self, recording: Recording, window: Window, step: int, step_seconds: Optional[float]) -> None:
        self._count += 1
        if step_seconds is not None:
            self._during.append(step_seconds)
        elapsed = time.monotonic() - self._began_at
        extra = elapsed - self._count * self._before if self._before is not None else 0.0
        is_too_much = elapsed > _LONGEST_SECONDS or extra > _MOST_EXTRA_SECONDS
        if is_too_much and self._count >= FEWEST_STEPS // 2 and self._last - self._count > 4:
            self._last = self._count + (2 if window.has("middle") else 4)
        if not window.has("middle") and self._count >= min(self._last // 2, self._last - 4):
            window.mark("middle", step)
        left = self._last - self._count
        if left in (2, 1, 0):
            window.mark(("end", "before", "old")[left], step)
        if left == 0:
            self._stop(None)

    def _stop(self, refused: Optional[Refused]) -> None:
        recording, window = self._recording, self._window
        self._recording = self._window = None
        self.is_wanted = False
        try:
            if window is not None:
                window.end()
        except Exception as error:
            refused = refused or Refused("%s: %s" % (type(error).__name__, error))
        if recording is not None:
            self._end(recording, refused, window)

    def _end(self, recording: Recording, refused: Optional[Refused], window: Optional[Window] = None) -> None:
        result: Dict[str, Any] = {"kind": recording.kind, "rank": self._rank, "trigger": recording.trigger, "at": int(time.time() * 1000)}
        if refused is None and window is not None:
            result.update(window.verdict())
            result.update(steps=self._count, step_seconds_before=self._before, step_seconds_during=_median(self._during))
        else:
            result["reason"] = str(refused)[:500]
        recording.result = result
        self._send(dict(result, id=recording.id))
        log.info("gpuwarden: recording %s: %s", recording.id, result.get("reason") or "%d lines keep memory" % len(result.get("lines", [])))


def _median(values: Any) -> Optional[float]:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None
