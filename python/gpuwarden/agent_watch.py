"""A thread that looks at something repeatedly until it is stopped. A failed look is tried again, with growing pauses."""
from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any, Callable, List, Optional

from .agent_link import AgentLink, Unreachable
from .agent_process import ensure_agent
from .settings import Settings

log = logging.getLogger("gpuwarden")

_LONGEST_PAUSE = 10.0
#: An agent that is starting takes a moment: only a longer outage is worth a line.
_QUIET_SECONDS = 5.0


class Monitoring:
    """What everything that watches can be asked to do."""

    _watch: "Watch"

    def start_monitoring(self) -> None:
        """Returns at once; what is seen comes from a thread of its own."""
        self._watch.start()

    def stop_monitoring(self) -> None:
        self._watch.stop()

    @property
    def is_monitoring(self) -> bool:
        return self._watch.is_running

    @property
    def reason(self) -> Optional[str]:
        """Why nothing is seen, in words; None while something is."""
        return self._watch.reason


class Watch:
    """`look` is called on another thread; Unreachable from it means that the agent is away."""

    def __init__(
        self,
        settings: Settings,
        interval: float,
        look: Callable[[AgentLink], None],
        flags: Optional[List[str]] = None,
        last_look: Optional[Callable[[AgentLink], None]] = None,
    ) -> None:
        self._settings = settings
        self._interval = interval
        self._look = look
        self._flags = flags or []
        self._last_look = last_look
        self._thread: Optional[threading.Thread] = None
        self._stop = threading.Event()
        self._pid = 0
        self.looks = 0
        self.reason: Optional[str] = None
        self._failing_since: Optional[float] = None
        self._is_told = False

    @property
    def is_running(self) -> bool:
        # The child of a fork has inherited the object, but not the thread.
        return self._thread is not None and self._pid == os.getpid() and self._thread.is_alive()

    def start(self) -> None:
        if self.is_running or self._settings.disabled:
            return
        log.debug("gpuwarden: watching %s every %s s", self._settings.url, self._interval)
        self._stop = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, args=(self._stop,), name="gpuwarden-watch", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            # No thread can be started: the program continues without.
            self.reason = "no thread could be started: %s" % error
            log.warning("gpuwarden: %s", self.reason)

    def stop(self, seconds: float = 1.0) -> None:
        if not self.is_running or self._thread is None:
            return
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    def wait_for_look(self, seconds: float) -> bool:
        """Whether there was a first look within `seconds`."""
        deadline = time.monotonic() + seconds
        while self.looks == 0 and time.monotonic() < deadline and self.is_running:
            time.sleep(0.02)
        return self.looks > 0

    def _work(self, stop: Any) -> None:
        link = AgentLink(self._settings)
        pause = 0.0
        is_first = True
        while not stop.is_set():
            began = time.monotonic()
            try:
                if is_first:
                    ensure_agent(self._settings, self._flags)
                    is_first = False
                self._look(link)
                self.looks += 1
                self.reason = self._failing_since = None
                self._is_told = False
                pause = 0.0
            except Unreachable as error:
                self._note("%s at %s: %s" % ("the agent" if error.answered else "no agent answers", self._settings.url, error))
                pause = min(_LONGEST_PAUSE, max(0.5, pause * 2))
            except Exception as error:  # An error here must not end the watching.
                self._note("%s: %s" % (type(error).__name__, error))
                pause = min(_LONGEST_PAUSE, max(0.5, pause * 2))
            stop.wait(max(0.0, pause or self._interval - (time.monotonic() - began)))
        if self._last_look is not None and self.looks > 0 and self.reason is None:
            try:
                self._last_look(link)
            except Exception as error:
                log.debug("gpuwarden: the last look failed: %s: %s", type(error).__name__, error)
        log.debug("gpuwarden: stopped watching %s", self._settings.url)
        link.close()

    def _note(self, reason: str) -> None:
        self.reason = reason
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if not self._is_told and now - self._failing_since >= _QUIET_SECONDS:
            self._is_told = True
            log.warning("gpuwarden: %s", reason)
