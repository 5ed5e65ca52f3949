"""`MemoryProfiler` and `MemoryDebugger`. `python -m gpuwarden.memory profile …` is `gpuwarden profile …`."""
from __future__ import annotations

import datetime
import json
import logging
import os
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import allocator, snapshots
from .agent_link import AgentLink
from .gpu_metrics import GPUMetrics, MIB, read_findings, read_gpus
from .oom_detector import OOMDetector, OOMPrediction, RiskLevel
from .python_memory import PythonMemory
from .snapshot_verdict import analyze_snapshot
from .settings import settings_for
from .agent_watch import Monitoring, Watch

log = logging.getLogger("gpuwarden")

__all__ = ["MemoryDebugger", "MemoryProfiler", "OOMDetector", "OOMPrediction", "RiskLevel", "analyze_snapshot"]

#: Half an hour at ten a second; then every second sample is dropped.
_TIMELINE_LIMIT = 18_000


class _Point(NamedTuple):
    at_ms: int
    used_bytes: int
    total_bytes: int


class _Device:
    """What is kept of one GPU: running figures, and a timeline that halves its resolution when it is full."""

    def __init__(self) -> None:
        self.points: List[_Point] = []
        self.stride = 1
        self.samples = 0
        self.sum = 0.0
        self.peak = 0.0
        self.last: Optional[GPUMetrics] = None

    def add(self, gpu: GPUMetrics) -> None:
        if gpu.memory_used_mb is None or gpu.memory_total_mb is None or (self.last and self.last.at_ms == gpu.at_ms):
            return
        self.last = gpu
        percent = gpu.memory_percent or 0.0
        self.sum += percent
        self.peak = max(self.peak, percent)
        if self.samples % self.stride == 0:
            self.points.append(_Point(gpu.at_ms, round(gpu.memory_used_mb * MIB), round(gpu.memory_total_mb * MIB)))
            if len(self.points) >= _TIMELINE_LIMIT:
                self.points = self.points[::2]
                self.stride *= 2
        self.samples += 1


class MemoryProfiler(Monitoring):
    """Follows the memory of the GPUs through the agent. Faster than the agent itself samples, it sees nothing new."""

    def __init__(self, sampling_interval: float = 0.1, devices: Optional[Sequence[int]] = None, url: Optional[str] = None) -> None:
        if sampling_interval <= 0:
            raise ValueError("sampling_interval: expected seconds above 0, got %r" % (sampling_interval,))
        self.sampling_interval = float(sampling_interval)
        self._wanted = None if devices is None else set(devices)
        self._devices: Dict[int, _Device] = {}
        self._lock = threading.Lock()
        flags = ["--interval", str(max(0.1, self.sampling_interval))]
        self._watch = Watch(settings_for(url), self.sampling_interval, self._look, flags)

    def get_status_report(self) -> Dict[str, Any]:
        """Each device with its memory use now and since the start, and all of them together. A device without readings is left out."""
        devices: Dict[str, Any] = {}
        used_all = total_all = 0
        with self._lock:
            for index, device in sorted(self._devices.items()):
                if not device.points or device.last is None:
                    continue
                used, total = round((device.last.memory_used_mb or 0) * MIB), round((device.last.memory_total_mb or 0) * MIB)
                used_all += used
                total_all += total
                devices[str(index)] = {
                    "name": device.last.name,
                    "simulated": device.last.simulated,
                    "current_usage": {
                        "allocated": used,
                        "free": total - used,
                        "total": total,
                        "utilization_percent": round(100.0 * used / total, 1) if total else None,
                    },
                    "statistics": {
                        "avg_utilization": round(device.sum / device.samples, 1),
                        "max_utilization": round(device.peak, 1),
                        "samples_count": device.samples,
                    },
                }
        return {
            "timestamp": datetime.datetime.now().replace(microsecond=0).isoformat(),
            "devices": devices,
            "summary": {
                "total_devices": len(devices),
                "total_memory_gb": round(total_all / 1024.0**3, 1),
                "overall_utilization": round(100.0 * used_all / total_all, 1) if total_all else None,
                "simulated": any(device["simulated"] for device in devices.values()),
            },
            "reason": self.reason,
        }

    def generate_report(self, path: Optional[str] = None) -> Dict[str, Any]:
        """The status report with a timeline of each device; also written to `path`, whole or not at all."""
        report = self.get_status_report()
        with self._lock:
            for index, device in self._devices.items():
                if str(index) in report["devices"]:
                    report["devices"][str(index)]["timeline"] = {
                        "at": [point.at_ms for point in device.points],
                        "used_bytes": [point.used_bytes for point in device.points],
                    }
        report["allocator"] = allocator.figures()
        if path is not None:
            draft = "%s.%d.part" % (path, os.getpid())
            with open(draft, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=2)
                file.write("\n")
            os.replace(draft, path)
        return report

    def _look(self, link: AgentLink) -> None:
        gpus = read_gpus(link)
        with self._lock:
            for gpu in gpus:
                if gpu.live and (self._wanted is None or gpu.gpu_index in self._wanted):
                    self._devices.setdefault(gpu.gpu_index, _Device()).add(gpu)


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
        url: Optional[str] = None,
    ) -> None:
        self.profiler = MemoryProfiler(sampling_interval, devices, url)
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
        report["findings"] = [one for one in self._findings if one.get("detector") != "leak"]
        report["allocator"] = _with_fragmentation(allocator.figures())
        report["memory_by_line"], report["fragmentation"] = _from_segments()
        if self.python_memory is not None:
            report["python_memory"] = self.python_memory.report()
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


if __name__ == "__main__":
    from .program import replace_with_program

    replace_with_program([])
