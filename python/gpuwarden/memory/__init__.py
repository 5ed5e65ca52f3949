"""`MemoryProfiler` and `MemoryDebugger`."""
from __future__ import annotations

import datetime
import logging
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .. import allocator, snapshots
from ..agent_link import AgentLink
from ..gpu_metrics import read_findings
from ..leak_detector import FragmentationAnalyzer, LeakDetector, LeakVerdict, leak_verdicts
from ..memory_session import MemorySession, write_report
from ..oom_detector import OOMDetector, OOMPrediction, RiskLevel
from ..python_memory import PythonMemory
from ..snapshot_verdict import analyze_snapshot
from ..settings import settings_for
from ..agent_watch import Watch

log = logging.getLogger("gpuwarden")

__all__ = [
    "FragmentationAnalyzer",
    "LeakDetector",
    "LeakVerdict",
    "MemoryDebugger",
    "MemoryProfiler",
    "OOMDetector",
    "OOMPrediction",
    "RiskLevel",
    "analyze_snapshot",
]

class MemoryProfiler(MemorySession):
    """Follows the memory of the GPUs. The agent reads them every `sampling_interval` for as long as this runs, however rarely it does otherwise."""

    def __init__(self, sampling_interval: float = 0.1, devices: Optional[Sequence[int]] = None, url: Optional[str] = None, **thresholds: float) -> None:
        super().__init__(sampling_interval, devices, url, **thresholds)

    def get_status_report(self) -> Dict[str, Any]:
        """Each device with its memory use now and since the start, and all of them together. A device without readings is left out."""
        with self._lock:
            seen = self.report
            devices = {
                label: dict(
                    device,
                    simulated=device["provenance"] == "simulated",
                    statistics=dict(device["statistics"], **self.timelines[label].statistics(device["current_usage"]["total"])),
                )
                for label, device in seen.get("devices", {}).items()
                if label in self.timelines and device["current_usage"]["allocated"] is not None
            }
        summary = seen.get("summary", {})
        return {
            "timestamp": datetime.datetime.now().replace(microsecond=0).isoformat(),
            "devices": devices,
            "summary": {
                "total_devices": len(devices),
                "total_memory_gb": summary.get("total_memory_gb") if devices else 0.0,
                "overall_utilization": summary.get("overall_utilization"),
                "simulated": any(device["simulated"] for device in devices.values()),
            },
            "started_at": seen.get("started_at"),
            "ended_at": seen.get("ended_at"),
            "reason": self.reason,
        }

    def generate_report(self, path: Optional[str] = None) -> Dict[str, Any]:
        """The status report with a timeline of each device. With a `path` also written there: as JSON, as text (.txt), as a page with charts (.html)."""
        report = self.get_status_report()
        with self._lock:
            for label, device in report["devices"].items():
                points = self.timelines[label].points
                device["timeline"] = {"at": [point.at_ms for point in points], "used_bytes": [point.used_bytes for point in points]}
            report["findings"] = self.report.get("findings", [])
        report["allocator"] = allocator.figures()
        if path is not None:
            write_report(path, self, report)
        return report


class MemoryDebugger:
    """All about memory: use of the GPUs, forecast, leaks and fragmentation as the agent finds them, and Python's own memory."""

    def __init__(
        self,
        python_memory: bool = False,
        sampling_interval: float = 1.0,
        threshold: float = 85.0,
        warning_callback: Optional[Callable[[OOMPrediction], None]] = None,
        devices: Optional[Sequence[int]] = None,
        python_interval: float = 30.0,
        leak_threshold: float = 100.0,
        url: Optional[str] = None,
    ) -> None:
        self.profiler = MemoryProfiler(sampling_interval, devices, url, leak_threshold_mb=float(leak_threshold))
        self.oom_detector = OOMDetector(threshold, warning_callback, devices, url=url)
        self.python_memory = PythonMemory(python_interval) if python_memory else None
        self._findings: List[Dict[str, Any]] = []
        self._watch = Watch(settings_for(url), 1.0, self._look)

    def start_monitoring(self) -> None:
        self.profiler.start_monitoring()
        self.oom_detector.start_monitoring()
        self._watch.start()
        if self.python_memory is not None:
            self.python_memory.start()

    def stop_monitoring(self) -> None:
        self.profiler.stop_monitoring()
        self.oom_detector.stop_monitoring()
        self._watch.stop()
        if self.python_memory is not None:
            self.python_memory.stop()

    def get_status_report(self) -> Dict[str, Any]:
        report = self.profiler.get_status_report()
        report["predictions"] = [
            {
                "device_id": one.device_id,
                "risk_level": one.risk_level.value,
                "current_usage": one.current_usage,
                "predicted_time": one.predicted_time,
                "confidence": one.confidence,
                "recommendations": list(one.recommendations),
                "simulated": one.simulated,
            }
            for one in self.oom_detector.predictions
        ]
        report["leaks"] = [one for one in self._findings if one.get("detector") == "leak"]
        report["leak_verdicts"] = [verdict._asdict() for verdict in leak_verdicts(self.profiler.report)]
        report["findings"] = [one for one in self._findings if one.get("detector") != "leak"]
        report["allocator"] = _with_fragmentation(allocator.figures())
        report["memory_by_line"], report["fragmentation"] = _from_segments()
        report["memory_ledger"] = self.profiler.report.get("memory_ledger")
        if self.python_memory is not None:
            report["python_memory"] = self.python_memory.report()
        return report

    def generate_report(self, path: Optional[str] = None) -> Dict[str, Any]:
        """The status report; with a `path` also written there: as JSON, as text (.txt), as a page with charts (.html)."""
        report = self.get_status_report()
        if path is not None:
            write_report(path, self.profiler, report)
        return report

    def __enter__(self) -> "MemoryDebugger":
        self.start_monitoring()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop_monitoring()

    def _look(self, link: AgentLink) -> None:
        self._findings = [finding for finding in read_findings(link) if finding.get("state") == "active"]


def _from_segments() -> "Tuple[List[Dict[str, Any]], Optional[Dict[str, Any]]]":
    """Who holds memory, where the program records its history, and how what is free is cut up; of this process's own GPU."""
    cuda = allocator.torch_cuda()
    read = getattr(getattr(cuda, "memory", None), "memory_snapshot", None)
    if cuda is None or read is None:
        return [], None
    try:
        segments = read()
        device = int(cuda.current_device())
        return snapshots.holders({"segments": segments}, device), snapshots.fragmentation(segments, device)
    except Exception as error:  # PyTorch's own functions, in whatever state the program is.
        log.debug("gpuwarden: the segments could not be read: %s", error)
        return [], None


def _with_fragmentation(figures: Optional[Dict[str, int]]) -> Optional[Dict[str, Any]]:
    """Fragmented memory is split and unused; a cache that can be returned is not."""
    if not figures or not figures.get("reserved"):
        return figures
    return dict(figures, fragmentation_percent=round(100.0 * figures.get("inactive_split", 0) / figures["reserved"], 2))
