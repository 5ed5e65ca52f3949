"""A memory session of the agent: it looks at memory for us, as often as we ask, until we stop asking. What it finds is not computed here."""
from __future__ import annotations

import json
import logging
import os
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from .agent_link import AgentLink, Answer, Unreachable
from .settings import settings_for
from .agent_watch import Monitoring, Watch

log = logging.getLogger("gpuwarden")

_PATH = "/api/v1/memory/sessions"
_SHORTEST_INTERVAL = 0.1
#: Samples come in batches; who waits for a warning waits no longer than this.
_ASK_SECONDS = 1.0
#: Half an hour at ten a second; then every second sample is dropped.
_TIMELINE_LIMIT = 18_000
_STOP_SECONDS = 5.0
#: Of each second of an interval: others may ask the agent for more samples than we want, and ticks are not exact.
_NEARLY_MS = 800.0


class _Point(NamedTuple):
    at_ms: int
    used_bytes: int


class Timeline:
    """The samples of one GPU; its resolution is halved when it is full."""

    def __init__(self, shortest_ms: float) -> None:
        self._shortest_ms = shortest_ms
        self.points: List[_Point] = []
        self._stride = 1
        self.samples = self._sum = self._most = 0
        self._last_ms = 0

    def add(self, at_ms: int, used_bytes: Optional[int]) -> None:
        if used_bytes is None or at_ms < self._last_ms + self._shortest_ms:
            return
        self._last_ms = at_ms
        self._sum += used_bytes
        self._most = max(self._most, used_bytes)
        if self.samples % self._stride == 0:
            self.points.append(_Point(at_ms, used_bytes))
            if len(self.points) >= _TIMELINE_LIMIT:
                self.points = self.points[::2]
                self._stride *= 2
        self.samples += 1

    def statistics(self, total_bytes: Optional[int]) -> Dict[str, Any]:
        known = self.samples > 0 and total_bytes
        return {
            "avg_utilization": round(100.0 * self._sum / self.samples / total_bytes, 1) if known and total_bytes else None,
            "max_utilization": round(100.0 * self._most / total_bytes, 1) if known and total_bytes else None,
            "samples_count": self.samples,
        }


class MemorySession(Monitoring):
    """What the memory classes share: one session, asked on a thread of its own. An agent that was restarted gets a new one."""

    def __init__(
        self,
        sampling_interval: float,
        devices: Optional[Sequence[int]],
        url: Optional[str],
        on_report: Optional[Callable[[Dict[str, Any]], None]] = None,
        **request: Any,
    ) -> None:
        if not sampling_interval > 0:
            raise ValueError("sampling_interval: expected seconds above 0, got %r" % (sampling_interval,))
        self.sampling_interval = float(sampling_interval)
        interval = max(_SHORTEST_INTERVAL, self.sampling_interval)
        self._request = dict(request, interval_seconds=min(interval, 3600.0), devices=None if devices is None else list(devices))
        self._settings = settings_for(url)
        self._on_report = on_report
        self._lock = threading.Lock()
        self._id: Optional[str] = None
        self._since = 0
        self._written: Dict[str, str] = {}
        self.timelines: Dict[str, Timeline] = {}
        #: As the agent said it last; empty before.
        self.report: Dict[str, Any] = {}
        self._watch = Watch(self._settings, _ASK_SECONDS, self._look, ["--interval", str(interval)], self._last_look)

    def stop_monitoring(self) -> None:
        # The last words of the agent are fetched by the thread.
        self._watch.stop(_STOP_SECONDS)

    def fresh_report(self) -> Dict[str, Any]:
        """The latest; right after the start it waits for the first."""
        self._watch.wait_for_look(_STOP_SECONDS)
        return self.report

    def written_report(self, kind: str) -> str:
        """`html` or `txt`, as the agent writes it: of now, or of the end where it was stopped."""
        if self._watch.is_running:
            self._watch.wait_for_look(_STOP_SECONDS)
            link = AgentLink(self._settings)
            try:
                self._written[kind] = _text(link, "%s/%s/report.%s" % (_PATH, self._id, kind))
            except Unreachable as error:
                log.debug("gpuwarden: the report comes from before: %s", error)
            finally:
                link.close()
        if kind not in self._written:
            raise RuntimeError("there is no report yet: %s" % (self.reason or "start_monitoring was not called"))
        return self._written[kind]

    def _look(self, link: AgentLink) -> None:
        if self._id is None:
            self._id = str(_ok(link.post_json(_PATH, self._request))["id"])
            log.debug("gpuwarden: memory session %s at %s, a sample every %s s", self._id, self._settings.url, self._request["interval_seconds"])
        answer = link.get("%s/%s?since=%d" % (_PATH, self._id, self._since))
        if answer.code == "unknown_session":
            log.debug("gpuwarden: memory session %s is over; beginning another", self._id)
            self._id = None
            return self._look(link)
        report = _ok(answer)
        samples = report.pop("samples", {})
        with self._lock:
            for label, columns in samples.items():
                line = self.timelines.setdefault(label, Timeline(_NEARLY_MS * self.sampling_interval))
                for at_ms, used_bytes in zip(columns["at"], columns["used_bytes"]):
                    line.add(at_ms, used_bytes)
                    self._since = max(self._since, at_ms)
            self.report = report
        log.debug("gpuwarden: %d samples of %d GPUs so far", sum(line.samples for line in self.timelines.values()), len(self.timelines))
        if self._on_report is not None:
            self._on_report(report)

    def _last_look(self, link: AgentLink) -> None:
        self._look(link)
        path = "%s/%s" % (_PATH, self._id)
        for kind in ("html", "txt"):
            self._written[kind] = _text(link, "%s/report.%s" % (path, kind))
        link.delete(path)
        log.debug("gpuwarden: memory session %s ended", self._id)
        self._id = None


def write_report(path: str, session: MemorySession, report: Dict[str, Any]) -> None:
    """Whole or not at all; as a page with charts or as text by the end of the path, else as JSON."""
    suffix = os.path.splitext(str(path))[1].lower()
    if suffix in (".html", ".htm"):
        text = session.written_report("html")
    elif suffix == ".txt":
        text = session.written_report("txt")
    else:
        text = json.dumps(report, indent=2) + "\n"
    draft = "%s.%d.part" % (path, os.getpid())
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)
    log.debug("gpuwarden: wrote %s", path)


def _ok(answer: Answer) -> Dict[str, Any]:
    if not answer.ok or not isinstance(answer.body, dict):
        raise Unreachable(("HTTP %d %s" % (answer.status, answer.message)).strip() if answer.code else answer.sender, sent=True, answered=True)
    return answer.body


def _text(link: AgentLink, path: str) -> str:
    answer = link.get(path)
    if not answer.ok or answer.text is None:
        raise Unreachable("HTTP %d %s" % (answer.status, answer.message), sent=True, answered=True)
    return answer.text
