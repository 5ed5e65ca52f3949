"""`LeakDetector` and `FragmentationAnalyzer`: the agent's verdicts on memory that grows, and on what memory is used for."""
from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .memory_session import MemorySession

log = logging.getLogger("gpuwarden")


class LeakVerdict(NamedTuple):
    #: "gpu", "process", "run" or "host memory".
    subject: str
    device_id: Optional[int]
    pid: Optional[int]
    user: Optional[str]
    run: Optional[str]
    run_name: Optional[str]
    #: "leak", "no leak", "too short to tell" or "not known".
    answer: str
    #: 0 to 1; None when nothing is claimed.
    confidence: Optional[float]
    bytes_per_minute: Optional[float]
    grown_bytes: Optional[float]
    #: When the growth began, ISO 8601; None: no growth.
    since: Optional[str]
    watched_seconds: float
    message: str
    advice: Tuple[str, ...]
    simulated: bool

    @property
    def is_leak(self) -> bool:
        return self.answer == "leak"


class LeakDetector(MemorySession):
    """`warning_callback` gets each LeakVerdict that is a leak, once, on a thread of the detector. `threshold`: MB below which growth is none."""

    def __init__(
        self,
        threshold: float = 100.0,
        warning_callback: Optional[Callable[[LeakVerdict], None]] = None,
        devices: Optional[Sequence[int]] = None,
        sampling_interval: float = 1.0,
        url: Optional[str] = None,
    ) -> None:
        if not threshold >= 0:
            raise ValueError("threshold: expected MB of growth, 0 or more, got %r" % (threshold,))
        super().__init__(sampling_interval, devices, url, self._warn, leak_threshold_mb=float(threshold))
        self.threshold = float(threshold)
        self.warning_callback = warning_callback
        self._said: Set[Tuple[Any, ...]] = set()

    def check_for_leaks(self) -> List[LeakVerdict]:
        """The verdict for each GPU, process and run so far."""
        return leak_verdicts(self.fresh_report())

    def get_status_report(self) -> List[LeakVerdict]:
        return self.check_for_leaks()

    def _warn(self, report: Dict[str, Any]) -> None:
        for verdict in leak_verdicts(report):
            key = (verdict.subject, verdict.device_id, verdict.pid, verdict.run)
            if not verdict.is_leak or key in self._said:
                continue
            self._said.add(key)
            log.debug("gpuwarden: a leak: %s", verdict.message)
            if self.warning_callback is None:
                continue
            try:
                self.warning_callback(verdict)
            except Exception as error:
                log.warning("gpuwarden: the warning_callback failed: %s: %s", type(error).__name__, error)


class FragmentationAnalyzer(MemorySession):
    """What the memory of each GPU is used for, and how much of it is fragmented in training runs."""

    def __init__(self, devices: Optional[Sequence[int]] = None, sampling_interval: float = 1.0, url: Optional[str] = None) -> None:
        super().__init__(sampling_interval, devices, url)

    def analyze(self) -> Dict[str, Any]:
        """`runs` (empty where none reported its allocator) and `devices`, as `gpuwarden frag --json` has them."""
        return dict(self.fresh_report().get("memory_ledger") or {"runs": [], "devices": {}})

    def get_status_report(self) -> Dict[str, Any]:
        return self.analyze()


def leak_verdicts(report: Dict[str, Any]) -> List[LeakVerdict]:
    return [_verdict(one) for one in report.get("leaks", [])]


def _verdict(record: Dict[str, Any]) -> LeakVerdict:
    known = {name: record.get(name) for name in LeakVerdict._fields if name not in ("answer", "advice")}
    return LeakVerdict(answer=str(record.get("verdict", "not_known")).replace("_", " "), advice=tuple(record.get("advice") or ()), **known)
