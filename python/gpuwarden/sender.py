"""The thread that takes steps from the training thread's queue to the agent, or to the spool file while no agent answers.

The training thread only appends to a deque. Everything that can block, fail or take long happens here.
"""
from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Mapping, Optional

from .agent_link import AgentLink, Answer, Unreachable
from .lifecycle import watch_for_sigterm
from .settings import Settings
from .spool import Leftover, Spool, leftovers, read_lines
from .steps import Step, encode, is_ready

log = logging.getLogger("gpuwarden")

TICK_SECONDS = 0.25
BATCH_LINES = 1000
BATCH_BYTES = 1024 * 1024
QUEUE_STEPS = 20_000
#: Steps that the sender holds in memory when neither the agent nor the disk takes them.
HELD_LINES = 20_000
#: A number that is still on the GPU after this long is sent without.
DEFERRED_SECONDS = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_LEFTOVER_SECONDS = 300.0
#: Encoding holds the interpreter's lock: after this many lines others get a turn.
_TURN_LINES = 50


class Stopped(Exception):
    """Time is up."""


class Sender:
    def __init__(self, settings: Settings, run: Dict[str, Any], fixed: Mapping[str, int], queue: "Deque[Step]", first_seq: int, spool_name: str) -> None:
        self.run = run
        self.delivered = 0
        self.dropped = 0
        self.rejected = 0
        self.spooled = 0
        self._settings = settings
        self._fixed = fixed
        self._queue = queue
        self._spool_name = spool_name
        self._head = {"run": run, "url": settings.url, "format": 1}
        self._spool = Spool(settings.spool_folder, spool_name, self._head)
        self._link = AgentLink(settings, trace_id=run.get("correlation_id"))
        self._held: Deque[bytes] = deque()
        self._reports: Deque[Dict[str, Any]] = deque(maxlen=8)
        self._end: Optional[Dict[str, Any]] = None
        self._announced = False
        self._next_seq = first_seq
        self._pause = 0.0
        self._retry_at = 0.0
        self._leftovers_at = 0.0
        self._said: Dict[str, float] = {}
        self._wake = threading.Event()
        self._deadline: Optional[float] = None
        self._thread: Optional[threading.Thread] = None

    # --- called by the training thread

    def start(self) -> None:
        thread = threading.Thread(target=self._work, name="gpuwarden-sender", daemon=True)
        self._thread = thread
        thread.start()

    def wake(self) -> None:
        self._wake.set()

    def report(self, report: Dict[str, Any]) -> None:
        self._reports.append(report)
        self._wake.set()

    def describe(self, changes: Mapping[str, Any]) -> None:
        """What became known after the start; the agent is told with the next batch."""
        self.run.update(changes)
        self._announced = False

    def finish(self, end: Optional[Dict[str, Any]], seconds: float) -> None:
        """Sends or keeps what is left, within `seconds`, whatever the network does."""
        began = time.monotonic()
        self._end = end
        self._deadline = began + seconds * 0.6
        self._wake.set()
        thread = self._thread
        if thread is None:
            return
        thread.join(seconds * 0.6)
        if thread.is_alive():
            self._link.abort()
            thread.join(max(0.05, began + seconds * 0.85 - time.monotonic()))
        if thread.is_alive():
            self._keep_from_outside()

    def join(self, seconds: float) -> None:
        if self._thread is not None and self._deadline is not None:
            self._thread.join(seconds)

    # --- the thread

    def _work(self) -> None:
        while self._deadline is None:
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()
            try:
                watch_for_sigterm()
                self._tick()
            except Exception as error:  # A fault of ours must not end the thread for good: the next tick may do better.
                self._say("fault", "sending failed: %s: %s" % (type(error).__name__, error))
        try:
            self._last_tick()
        except Exception as error:
            self._say("fault", "the last steps could not be kept: %s: %s" % (type(error).__name__, error))
        self._link.close()

    def _tick(self) -> None:
        self._take()
        now = time.monotonic()
        if now < self._retry_at:
            self._store()
            return
        if not (self._held or self._reports or self._end) and self._spool.is_empty and self._announced and now < self._leftovers_at:
            return
        try:
            self._deliver()
            if now >= self._leftovers_at and self._deadline is None:
                self._leftovers_at = now + _LEFTOVER_SECONDS
                self._deliver_leftovers()
        except Unreachable as error:
            self._offline(str(error), None)
        except Stopped:
            self._store()

    def _last_tick(self) -> None:
        self._take(everything=True)
        try:
            self._deliver()
        except (Unreachable, Stopped) as error:
            log.debug("gpuwarden: the rest goes to the spool: %s", error)
        self._store()
        tail = [_line({"report": report}) for report in self._reports]
        if self._end is not None:
            tail.append(_line({"end": self._end}))
        if tail:
            kept, reason = self._spool.append(tail)
            if kept < len(tail):
                self._say("spool", "the end of the run could not be kept: %s" % reason)
        if self._held:
            self.dropped += len(self._held)
            log.warning("gpuwarden: %d steps were lost at exit: neither the agent nor the disk took them", len(self._held))
        self._spool.close()

    def _take(self, everything: bool = False) -> None:
        """Moves what is ready from the queue to `_held`, as lines."""
        queue = self._queue
        taken = 0
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
                self._say("dropped", "steps come faster than they can be sent: %d were dropped so far" % self.dropped)
            self._next_seq = step.seq + 1
            self._held.append(encode(step, self._fixed))
            taken += 1
            if taken % _TURN_LINES == 0:
                time.sleep(0)
            if taken >= 10 * BATCH_LINES and not everything:
                self._wake.set()
                break
        while len(self._held) > HELD_LINES:
            self._held.popleft()
            self.dropped += 1

    def _deliver(self) -> None:
        if not self._announced:
            self._announce()
        while not self._spool.is_empty:
            lines, offset = self._spool.read(BATCH_LINES, BATCH_BYTES)
            if not lines:
                break
            self._post_steps(self.run, lines)
            self._spool.advance(offset)
        while self._held:
            batch: List[bytes] = []
            size = 0
            for line in self._held:
                size += len(line)
                if batch and (size > BATCH_BYTES or len(batch) == BATCH_LINES):
                    break
                batch.append(line)
            self._post_steps(self.run, batch)
            for _ in batch:
                self._held.popleft()
        while self._reports:
            self._settle(self._ask("/report", self._reports[0]))
            self._reports.popleft()
        if self._end is not None:
            self._settle(self._ask("/end", self._end))
            self._end = None
        self._pause = 0.0

    def _announce(self) -> None:
        answer = self._request(lambda: self._link.post_json("/api/v1/runs", self.run))
        if not answer.ok:
            # An agent too old to know runs, a wrong token, an id it will not have: all may be mended while we wait.
            raise Unreachable(_reason(answer), sent=False)
        self._announced = True

    def _post_steps(self, run: Mapping[str, Any], lines: List[bytes]) -> None:
        path = "/api/v1/runs/%s/steps" % run["id"]
        answer = self._request(lambda: self._link.post_lines(path, b"".join(lines)))
        if answer.status == 404 and answer.code == "unknown_run":
            self._reannounce(run)
            answer = self._request(lambda: self._link.post_lines(path, b"".join(lines)))
        if answer.status in (400, 413, 415, 422):
            if len(lines) > 1:
                half = len(lines) // 2
                self._post_steps(run, lines[:half])
                self._post_steps(run, lines[half:])
                return
            self.rejected += 1
            self._say("rejected", "the agent refused a step: %s" % _reason(answer))
            return
        if not answer.ok:
            raise Unreachable(_reason(answer), sent=False)
        body = answer.body if isinstance(answer.body, dict) else {}
        refused = body.get("rejected")
        count = int(body.get("rejected_count") or (len(refused) if isinstance(refused, list) else refused) or 0)
        if count:
            self.rejected += count
            self._say("rejected", "the agent refused %d steps: %s" % (count, str(refused)[:300]))
        self.delivered += len(lines) - count

    def _reannounce(self, run: Mapping[str, Any]) -> None:
        answer = self._request(lambda: self._link.post_json("/api/v1/runs", run))
        if not answer.ok:
            raise Unreachable(_reason(answer), sent=False)

    def _ask(self, what: str, body: Mapping[str, Any], run: Optional[Mapping[str, Any]] = None) -> Answer:
        owner = self.run if run is None else run
        path = "/api/v1/runs/%s%s" % (owner["id"], what)
        answer = self._request(lambda: self._link.post_json(path, body))
        if answer.status == 404 and answer.code == "unknown_run":
            self._reannounce(owner)
            answer = self._request(lambda: self._link.post_json(path, body))
        return answer

    def _settle(self, answer: Answer) -> None:
        """For what is sent once: refused for good is over, anything else is tried again."""
        if answer.ok:
            return
        if answer.status in (400, 404, 405, 409, 413, 415, 422):
            self._say("rejected", "the agent refused the end or a report: %s" % _reason(answer))
            return
        raise Unreachable(_reason(answer), sent=False)

    def _request(self, ask: Any) -> Answer:
        deadline = self._deadline
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0.01:
                raise Stopped("time is up")
            self._link.timeout = left
        answer: Answer = ask()
        if answer.retry_after is not None and answer.status in (429, 503):
            self._pause = max(self._pause, min(answer.retry_after, _LONGEST_PAUSE))
        return answer

    # --- when nobody answers

    def _offline(self, reason: str, pause: Optional[float]) -> None:
        self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2)) if pause is None else pause
        self._retry_at = time.monotonic() + self._pause
        self._announced = False
        self._say(
            "offline",
            "no agent takes steps at %s (%s); they are kept in %s" % (self._settings.url, reason, self._spool.path or "memory"),
            every_seconds=3600,
        )
        self._store()

    def _store(self) -> None:
        if not self._held:
            return
        lines = list(self._held)
        kept, reason = self._spool.append(lines)
        for _ in range(kept):
            self._held.popleft()
        self.spooled += kept
        if kept < len(lines) and self._settings.spool_folder is not None:
            self._say("spool", "steps cannot be kept on disk: %s; the newest %d stay in memory" % (reason, HELD_LINES))

    def _keep_from_outside(self) -> None:
        """The thread is stuck in a call: the thread that ends the program keeps what is left in a file of its own."""
        spool = Spool(self._settings.spool_folder, self._spool_name + ".exit", self._head)
        lines: List[bytes] = []
        for source in (self._held, self._queue):
            for item in _copy(source):
                lines.append(item if isinstance(item, bytes) else encode(item, self._fixed))
        lines.extend(_line({"report": report}) for report in _copy(self._reports))
        if self._end is not None:
            lines.append(_line({"end": self._end}))
        kept, reason = spool.append(lines)
        spool.close()
        if kept < len(lines):
            log.warning("gpuwarden: %d lines were lost at exit: %s", len(lines) - kept, reason)

    # --- files of processes that are gone

    def _deliver_leftovers(self) -> None:
        for leftover in leftovers(self._settings.spool_folder, self._settings.url):
            delivered: Optional[bool] = False
            try:
                delivered = self._deliver_leftover(leftover)
            finally:
                if delivered is not None:
                    leftover.release(delivered)

    def _deliver_leftover(self, leftover: Leftover) -> Optional[bool]:
        """True: all of it. False: not now. None: never, it has been set aside."""
        run = leftover.head["run"]
        answer = self._request(lambda: self._link.post_json("/api/v1/runs", run))
        if answer.status in (400, 409, 413, 422):
            self._say("leftover", "%s is refused: %s" % (leftover.path, _reason(answer)))
            leftover.set_aside()
            return None
        if not answer.ok:
            return False
        offset = leftover.start
        while True:
            if self._deadline is not None:
                return False
            lines, offset = read_lines(leftover.file, offset, BATCH_LINES, BATCH_BYTES)
            if not lines:
                return True
            self._deliver_lines(run, lines)
            self._take()

    def _deliver_lines(self, run: Mapping[str, Any], lines: List[bytes]) -> None:
        steps: List[bytes] = []
        after: List[Any] = []
        for line in lines:
            if line.startswith((b'{"report"', b'{"end"')):
                after.append(json.loads(line.decode("utf-8")))
            else:
                steps.append(line)
        if steps:
            self._post_steps(run, steps)
        for one in after:
            for what in ("report", "end"):
                if what in one:
                    self._settle(self._ask("/" + what, one[what], run))

    def _say(self, what: str, message: str, every_seconds: float = 60) -> None:
        """The same trouble is not mentioned again and again."""
        now = time.monotonic()
        if now - self._said.get(what, -1e9) >= every_seconds:
            self._said[what] = now
            log.warning("gpuwarden: %s", message)
        else:
            log.debug("gpuwarden: %s", message)


def _line(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value) + "\n").encode("utf-8")


def _reason(answer: Answer) -> str:
    hint = ": set GPUWARDEN_TOKEN or GPUWARDEN_TOKEN_FILE" if answer.status == 401 else ""
    return ("HTTP %d %s %s" % (answer.status, answer.code, answer.message)).strip() + hint


def _copy(items: Any) -> List[Any]:
    for _ in range(5):
        try:
            return list(items)
        except RuntimeError:  # The other thread changed it while we looked.
            continue
    return []
