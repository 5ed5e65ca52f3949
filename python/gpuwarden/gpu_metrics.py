"""One GPU at one moment, under the names of the log files. None: the device does not report it; 0 is always a real reading."""
from __future__ import annotations

import datetime
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .agent_link import AgentLink, Unreachable

MIB = 1024.0 * 1024.0


class GPUMetrics(NamedTuple):
    timestamp: str
    gpu_index: int
    utilization_percent: Optional[float]
    memory_used_mb: Optional[float]
    memory_total_mb: Optional[float]
    memory_percent: Optional[float]
    temperature_celsius: Optional[float]
    power_draw_watts: Optional[float]
    fan_speed_percent: Optional[float]
    sm_clock_mhz: Optional[float]
    memory_clock_mhz: Optional[float]
    name: Optional[str]
    label: str
    gpu_id: str
    simulated: bool
    #: False: the reading is old, or the driver does not answer.
    live: bool
    at_ms: int

    def to_dict(self) -> Dict[str, Any]:
        return dict(self._asdict())


def read_gpus(link: AgentLink) -> List[GPUMetrics]:
    answer = link.get("/api/v1/gpus")
    if not answer.ok or not isinstance(answer.body, dict):
        raise Unreachable("HTTP %d %s" % (answer.status, answer.message), sent=True, answered=True)
    return [metrics for metrics in map(_metrics, answer.body.get("gpus", [])) if metrics is not None]


def read_findings(link: AgentLink) -> List[Dict[str, Any]]:
    answer = link.get("/api/v1/findings")
    if not answer.ok or not isinstance(answer.body, dict):
        raise Unreachable("HTTP %d %s" % (answer.status, answer.message), sent=True, answered=True)
    return [finding for finding in answer.body.get("findings", []) if isinstance(finding, dict)]


def _metrics(view: Mapping[str, Any]) -> Optional[GPUMetrics]:
    info, sample = view.get("info") or {}, view.get("sample")
    if not sample:
        return None
    used, total = sample.get("memoryUsedBytes"), sample.get("memoryTotalBytes")
    return GPUMetrics(
        timestamp=iso(sample["at"]),
        gpu_index=int(info.get("index", -1)),
        utilization_percent=_times(sample.get("utilizationRatio"), 100.0),
        memory_used_mb=_times(used, 1 / MIB),
        memory_total_mb=_times(total, 1 / MIB),
        memory_percent=100.0 * used / total if used is not None and total else None,
        temperature_celsius=sample.get("temperatureCelsius"),
        power_draw_watts=sample.get("powerWatts"),
        fan_speed_percent=_times(sample.get("fanRatio"), 100.0),
        sm_clock_mhz=_times(sample.get("smClockHertz"), 1e-6),
        memory_clock_mhz=_times(sample.get("memoryClockHertz"), 1e-6),
        name=info.get("name"),
        label=str(info.get("label", info.get("index", "?"))),
        gpu_id=str(info.get("id", "")),
        simulated=info.get("provenance") == "simulated",
        live=bool(view.get("live")),
        at_ms=int(sample["at"]),
    )


def iso(at_ms: float) -> str:
    moment = datetime.datetime.fromtimestamp(at_ms / 1000.0, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (moment.microsecond // 1000)


def _times(value: Optional[float], factor: float) -> Optional[float]:
    return None if value is None else value * factor
