"""What the agent gets about runs, and what its answers mean. Whatever may work later is `Unreachable`."""
from __future__ import annotations

import json
import logging
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from .agent_link import AgentLink, Answer, Unreachable
from .settings import Settings

log = logging.getLogger("gpuwarden")

LONGEST_PAUSE = 15.0
_REFUSED_STEPS = (400, 413, 415, 422)
_REFUSED = (400, 404, 405, 409, 413, 415, 422)


class Stopped(Exception):
    """Time is up."""


class Delivery:
    def __init__(self, settings: Settings, trace_id: Optional[str]) -> None:
        self.delivered = 0
        self.rejected = 0
        #: When everything must be over, on the monotonic clock; None: not yet.
        self.deadline: Optional[float] = None
        #: How long the agent asked us to wait.
        self.asked_pause = 0.0
        #: Called with the agent's answer to steps, which may ask for something.
        self.on_answer: Callable[[Mapping[str, Any]], None] = lambda _: None
        self.link = AgentLink(settings, trace_id=trace_id)
        self._said: Dict[str, float] = {}

    def announce(self, run: Mapping[str, Any]) -> Answer:
        return self._request(lambda: self.link.post_json("/api/v1/runs", run))

    def announce_or_wait(self, run: Mapping[str, Any]) -> None:
        answer = self.announce(run)
        if not is_acknowledged(answer, run):
            # An agent too old to know runs, a wrong token, a full disk: all may be fixed while we wait.
            raise unacknowledged(answer)

    def steps(self, run: Mapping[str, Any], lines: List[bytes], rank: Optional[int] = None) -> None:
        """A batch that is refused as a whole is halved, until only the bad steps are left out. None at all, of `rank`, is a sign of life."""
        body = b"".join(lines)
        answer = self._about(run, "steps" if rank is None else "steps?rank=%d" % rank, lambda path: self.link.post_lines(path, body))
        # A proxy may say so too, where an agent would take less at once.
        is_too_large = answer.status == 413 and len(lines) > 1
        if is_too_large or (answer.status in _REFUSED_STEPS and answer.code):
            if len(lines) > 1:
                half = len(lines) // 2
                self.steps(run, lines[:half])
                self.steps(run, lines[half:])
                return
            self.rejected += 1
            self.say("rejected", "the agent refused a step: %s" % reason_of(answer))
            return
        refused = _refused_of(answer, run, body)
        if refused is None:
            raise unacknowledged(answer)
        if refused:
            self.rejected += refused
            self.say("rejected", "the agent refused %d steps: %s" % (refused, str(answer.body.get("rejected"))[:300]))
        self.delivered += len(lines) - refused
        try:
            self.on_answer(answer.body)
        except Exception as error:  # The steps are delivered, whatever becomes of the request.
            self.say("request", "what the agent asks for failed: %s: %s" % (type(error).__name__, error))

    def once(self, run: Mapping[str, Any], what: str, body: Mapping[str, Any]) -> None:
        """The end of a run, or a report: a permanent refusal ends it, anything else is tried again."""
        answer = self._about(run, what, lambda path: self.link.post_json(path, body))
        if is_acknowledged(answer, run):
            return
        if answer.status not in _REFUSED or not answer.code:
            raise unacknowledged(answer)
        self.say("rejected", "the agent refused the %s of a run: %s" % (what, reason_of(answer)))

    def lines(self, run: Mapping[str, Any], lines: List[bytes]) -> None:
        """Lines of a spool file: steps, and what may be at the end. What is neither is left out."""
        steps: List[bytes] = []
        after: List[Any] = []
        for line in lines:
            if line.startswith((b'{"report"', b'{"end"')):
                try:
                    after.append(json.loads(line.decode("utf-8")))
                    continue
                except (ValueError, RecursionError):
                    pass
            elif line.startswith(b"{"):
                steps.append(line)
                continue
            self.rejected += 1
            self.say("unreadable", "a line of a spool file is damaged and left out: %r" % line[:60])
        if steps:
            self.steps(run, steps)
        for one in after:
            for what in ("report", "end"):
                if what in one:
                    self.once(run, what, one[what])

    def say(self, what: str, message: str, every_seconds: float = 60) -> None:
        """Logs the same problem only once in a while."""
        now = time.monotonic()
        if now - self._said.get(what, -1e9) >= every_seconds:
            self._said[what] = now
            log.warning("gpuwarden: %s", message)
        else:
            log.debug("gpuwarden: %s", message)

    def _about(self, run: Mapping[str, Any], what: str, ask: Callable[[str], Answer]) -> Answer:
        path = "/api/v1/runs/%s/%s" % (run["id"], what)
        answer = self._request(lambda: ask(path))
        if answer.status == 404 and answer.code == "unknown_run":
            # The agent has lost its memory, or is now another one.
            self.announce_or_wait(run)
            answer = self._request(lambda: ask(path))
        return answer

    def _request(self, ask: Callable[[], Answer]) -> Answer:
        if self.deadline is not None:
            left = self.deadline - time.monotonic()
            if left <= 0.01:
                raise Stopped("time is up")
            self.link.timeout = left
        answer = ask()
        if answer.retry_after is not None and answer.status in (429, 503):
            self.asked_pause = min(answer.retry_after, LONGEST_PAUSE)
        return answer


def is_acknowledged(answer: Answer, run: Mapping[str, Any]) -> bool:
    """Anybody may answer 200: only an agent names the run."""
    return answer.ok and isinstance(answer.body, dict) and answer.body.get("id") == run["id"]


def _refused_of(answer: Answer, run: Mapping[str, Any], lines: bytes) -> Optional[int]:
    """How many steps the agent refused; None unless it names the run and accounts for every step."""
    if not answer.ok or not isinstance(answer.body, dict) or answer.body.get("run") != run["id"]:
        return None
    counts = [answer.body.get(name) for name in ("accepted", "duplicates", "rejected_count")]
    if not all(type(count) is int and count >= 0 for count in counts):
        return None
    sent = sum(1 for line in lines.split(b"\n") if line.strip())
    return counts[2] if sum(counts) == sent else None


def unacknowledged(answer: Answer) -> Unreachable:
    """Without an error code it is something else that answers."""
    return Unreachable(reason_of(answer), sent=False, answered=not answer.code)


def reason_of(answer: Answer) -> str:
    if not answer.code:
        return "what answers is not a gpuwarden agent, or an older one: %s" % answer.sender
    hint = ": set GPUWARDEN_TOKEN or GPUWARDEN_TOKEN_FILE" if answer.status == 401 else ""
    return ("HTTP %d %s %s" % (answer.status, answer.code, answer.message)).strip() + hint
