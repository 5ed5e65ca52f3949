"""`OOMDetector`: warnings before memory runs out, from the agent's forecast where there is one, else from the level alone."""
from __future__ import annotations

import enum
import logging
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .agent_link import AgentLink
from .formats import format_percent
from .gpu_metrics import GPUMetrics, read_findings, read_gpus
from .settings import settings_for
from .agent_watch import Monitoring, Watch

log = logging.getLogger("gpuwarden")

_FORECASTERS = ("oom", "memory_pressure")
_LEVEL_ADVICE = ("Prepare to release cache", "Consider reducing batch size")
#: The same warning is not repeated within this time, unless it becomes more serious.
_REPEAT_SECONDS = 60.0


class RiskLevel(enum.Enum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


_ORDER = [RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH, RiskLevel.CRITICAL]


class OOMPrediction(NamedTuple):
    device_id: int
    risk_level: RiskLevel
    #: Percent of the device's memory; None when the device does not report it.
    current_usage: Optional[float]
    #: Seconds from now; None when only the level is high and nothing says that it rises.
    predicted_time: Optional[float]
    predicted_earliest: Optional[float]
    predicted_latest: Optional[float]
    #: 0 to 1.
    confidence: float
    recommendations: Tuple[str, ...]
    message: str
    run_id: Optional[str]
    #: The GPU is simulated.
    simulated: bool = False

    @property
    def predicted_oom_time(self) -> Optional[float]:
        return self.predicted_time

    def __str__(self) -> str:
        where = "%d (SIMULATED)" % self.device_id if self.simulated else str(self.device_id)
        lines = ["[WARNING] OOM Warning: GPU %s" % where, "   Risk Level: %s" % self.risk_level.value]
        if self.current_usage is not None:
            lines.append("   Current Usage: %.1f%%" % self.current_usage)
        if self.predicted_time is not None:
            lines.append("   Predicted OOM Time: %.1f seconds later" % self.predicted_time)
        lines.append("   Confidence: %.2f" % self.confidence)
        lines.extend("   Recommendation: %s" % text for text in self.recommendations)
        return "\n".join(lines)


def print_warning(prediction: OOMPrediction) -> None:
    sys.stderr.write(str(prediction) + "\n")


class OOMDetector(Monitoring):
    """`warning_callback` gets each OOMPrediction, on a thread of the detector; without one, warnings go to standard error."""

    def __init__(
        self,
        threshold: float = 85.0,
        warning_callback: Optional[Callable[[OOMPrediction], None]] = None,
        devices: Optional[Sequence[int]] = None,
        check_interval: float = 1.0,
        url: Optional[str] = None,
    ) -> None:
        if not 0 < threshold <= 100:
            raise ValueError("threshold: expected a percentage above 0 and at most 100, got %r" % (threshold,))
        self.threshold = float(threshold)
        self.warning_callback = warning_callback or print_warning
        self.predictions: List[OOMPrediction] = []
        self._devices = None if devices is None else set(devices)
        self._said: Dict[int, Tuple[RiskLevel, float]] = {}
        self._watch = Watch(settings_for(url), check_interval, self._look)

    def _look(self, link: AgentLink) -> None:
        self.predictions = self.assess(read_gpus(link), read_findings(link), time.time() * 1000)
        for prediction in self.predictions:
            if self._is_news(prediction):
                try:
                    self.warning_callback(prediction)
                except Exception as error:
                    log.warning("gpuwarden: the warning_callback failed: %s: %s", type(error).__name__, error)

    def assess(self, gpus: Sequence[GPUMetrics], findings: Sequence[Dict[str, Any]], now_ms: float) -> List[OOMPrediction]:
        """At most one prediction for each GPU: the most serious that is true now."""
        found: Dict[int, OOMPrediction] = {}
        usage = {gpu.gpu_index: gpu.memory_percent for gpu in gpus if gpu.live}
        # A recording, or an agent on another host, has another clock: a forecast is ahead of the samples it came from.
        seen_ms = {gpu.gpu_index: float(gpu.at_ms) for gpu in gpus}
        candidates = [prediction for prediction in (self._forecast(one, usage, seen_ms, now_ms) for one in findings) if prediction]
        candidates += [self._level(index, percent) for index, percent in usage.items() if percent is not None and percent >= self.threshold]
        for prediction in candidates:
            if self._devices is not None and prediction.device_id not in self._devices:
                continue
            known = found.get(prediction.device_id)
            # Forecasts come first in the list: a level alone counts only where it is more serious.
            if known is None or _ORDER.index(prediction.risk_level) > _ORDER.index(known.risk_level):
                found[prediction.device_id] = prediction
        simulated = {gpu.gpu_index for gpu in gpus if gpu.simulated}
        return [one._replace(simulated=one.device_id in simulated) for one in found.values()]

    def _forecast(
        self, finding: Dict[str, Any], usage: Dict[int, Optional[float]], seen_ms: Dict[int, float], now_ms: float
    ) -> Optional[OOMPrediction]:
        subject = finding.get("subject") or {}
        index, risk = subject.get("gpuIndex"), finding.get("riskLevel")
        if finding.get("detector") not in _FORECASTERS or finding.get("state") != "active" or index is None:
            return None
        level = RiskLevel(risk) if risk in [one.value for one in RiskLevel] else _from_severity(finding.get("severity"))
        now_ms = max((at for at in (finding.get("at"), seen_ms.get(int(index))) if at is not None), default=now_ms)
        return OOMPrediction(
            device_id=int(index),
            risk_level=level,
            current_usage=usage.get(int(index)),
            predicted_time=_ahead(finding.get("predictedAt"), now_ms),
            predicted_earliest=_ahead(finding.get("predictedEarliestAt"), now_ms),
            predicted_latest=_ahead(finding.get("predictedLatestAt"), now_ms),
            confidence=float(finding.get("confidence") or 0.0),
            recommendations=tuple(finding.get("advice") or ()),
            message=str(finding.get("message", "")),
            run_id=subject.get("run"),
        )

    def _level(self, index: int, percent: float) -> OOMPrediction:
        # Full memory may be a cache that the program would return: the level alone says little.
        level = RiskLevel.HIGH if percent >= self.threshold + (100.0 - self.threshold) * 0.75 else RiskLevel.MEDIUM
        message = "GPU %d: %s of its memory is in use; there is no forecast of when it will be full" % (index, format_percent(percent / 100.0))
        return OOMPrediction(index, level, percent, None, None, None, 0.3, _LEVEL_ADVICE, message, None)

    def _is_news(self, prediction: OOMPrediction) -> bool:
        level, at = self._said.get(prediction.device_id, (RiskLevel.LOW, -1e9))
        now = time.monotonic()
        if _ORDER.index(prediction.risk_level) > _ORDER.index(level) or now - at >= _REPEAT_SECONDS:
            self._said[prediction.device_id] = (prediction.risk_level, now)
            return True
        return False


def _from_severity(severity: Any) -> RiskLevel:
    return {"critical": RiskLevel.CRITICAL, "warning": RiskLevel.HIGH}.get(str(severity), RiskLevel.MEDIUM)


def _ahead(at_ms: Optional[float], now_ms: float) -> Optional[float]:
    return None if at_ms is None else max(0.0, (at_ms - now_ms) / 1000.0)
