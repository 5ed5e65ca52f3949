"""`GPUMonitor` and `TrainingMonitorCallback`."""
from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional

from ..agent_link import AgentLink, Unreachable
from ..agent_process import started_pid
from ..gpu_metrics import GPUMetrics, read_gpus
from ..training_run import Run
from ..settings import Settings, settings_for
from ..agent_watch import Monitoring, Watch

log = logging.getLogger("gpuwarden")


#: So long the agent goes on after the last request.
_PACE_SECONDS = 15.0


class GPUMonitor(Monitoring):
    """Follows a GPU through the agent, which is started if `gpuwarden` is on the PATH and none is running.

    `log_dir`, `enable_prometheus` and `prometheus_port` apply to an agent that is started here; a running one has its own settings.
    """

    def __init__(
        self,
        gpu_index: int = 0,
        sample_interval: float = 1.0,
        history_size: int = 300,
        log_dir: Optional[str] = None,
        enable_prometheus: bool = False,
        prometheus_port: Optional[int] = None,
        correlation_id: Optional[str] = None,
        run_name: Optional[str] = None,
        url: Optional[str] = None,
        on_sample: Optional[Callable[[GPUMetrics], None]] = None,
    ) -> None:
        if sample_interval <= 0:
            raise ValueError("sample_interval: expected seconds above 0, got %r" % (sample_interval,))
        self.gpu_index = gpu_index
        self.sample_interval = max(0.1, float(sample_interval))
        self.run_name = run_name
        self.correlation_id = correlation_id
        self.settings: Settings = settings_for(url)
        self._on_sample = on_sample
        self._kept: Deque[GPUMetrics] = deque(maxlen=history_size)
        flags = ["--interval", str(self.sample_interval)]
        if log_dir:
            flags += ["--log-dir", log_dir]
        if prometheus_port is not None or enable_prometheus:
            flags += ["--prometheus-port", str(9090 if prometheus_port is None else prometheus_port)]
        self._for_new_agent = " ".join(flags[2:])
        self._watch = Watch(self.settings, self.sample_interval, self._look, flags, self._last_look)
        self._pace_at: Optional[float] = 0.0
        self._samples = 0
        self._sums: Dict[str, float] = {}
        self._peaks: Dict[str, float] = {}
        self._counts: Dict[str, int] = {}

    start = Monitoring.start_monitoring
    stop = Monitoring.stop_monitoring

    def wait_for_sample(self, seconds: float = 10.0) -> Optional[GPUMetrics]:
        deadline = time.monotonic() + seconds
        while not self._kept and time.monotonic() < deadline and self._watch.is_running:
            time.sleep(0.02)
        return self.get_current_metrics()

    def get_current_metrics(self) -> Optional[GPUMetrics]:
        """The latest reading; None before the first."""
        return self._kept[-1] if self._kept else None

    def get_history(self) -> List[GPUMetrics]:
        return list(self._kept)

    def get_summary(self) -> Dict[str, Any]:
        """Mean and maximum of each reading since the start."""
        figures = {
            name: {"mean": self._sums[name] / self._counts[name], "max": self._peaks[name]} for name in sorted(self._counts) if self._counts[name]
        }
        latest = self.get_current_metrics()
        return {
            "gpu_index": self.gpu_index,
            "simulated": None if latest is None else latest.simulated,
            "samples": self._samples,
            "figures": figures,
            "reason": self.reason,
        }

    def __enter__(self) -> "GPUMonitor":
        self.start_monitoring()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop_monitoring()

    def _look(self, link: AgentLink) -> None:
        self._set_pace(link)
        all_gpus = read_gpus(link)
        if self._for_new_agent and started_pid() is None:
            log.warning("gpuwarden: an agent is already running at %s with its own settings; ignored: %s", self.settings.url, self._for_new_agent)
        self._for_new_agent = ""
        mine = [gpu for gpu in all_gpus if gpu.gpu_index == self.gpu_index]
        if not mine:
            raise Unreachable("there is no GPU %d; there are %s" % (self.gpu_index, [gpu.gpu_index for gpu in all_gpus]), sent=True, answered=True)
        metrics = mine[0]
        if not metrics.live or (self._kept and self._kept[-1].at_ms == metrics.at_ms):
            return
        self._kept.append(metrics)
        self._samples += 1
        for name in ("utilization_percent", "memory_used_mb", "memory_percent", "temperature_celsius", "power_draw_watts"):
            value = getattr(metrics, name)
            if value is not None:
                self._sums[name] = self._sums.get(name, 0.0) + value
                self._counts[name] = self._counts.get(name, 0) + 1
                self._peaks[name] = max(self._peaks.get(name, value), value)
        if self._on_sample is not None:
            self._on_sample(metrics)


    def _set_pace(self, link: AgentLink) -> None:
        """Where the agent reads the GPUs more rarely than we want to see them, it is asked for more, again and again while this runs."""
        if self._pace_at is None or time.monotonic() < self._pace_at:
            return
        answer = link.post_json("/api/v1/sampling", self._pace(_PACE_SECONDS))
        own = answer.body.get("own_interval_seconds") if answer.ok and isinstance(answer.body, dict) else None
        # An older agent cannot, one that is fast enough need not.
        self._pace_at = None if own is None or own <= self.sample_interval else time.monotonic() + _PACE_SECONDS / 3

    def _last_look(self, link: AgentLink) -> None:
        if self._pace_at is not None:
            link.post_json("/api/v1/sampling", self._pace(0.0))
        self._pace_at = 0.0

    def _pace(self, seconds: float) -> Dict[str, Any]:
        asker = "%s:%d:%d" % (socket.gethostname()[:60], os.getpid(), id(self))
        return {"asker": asker, "interval_seconds": min(3600.0, self.sample_interval), "for_seconds": seconds}


def learning_rate(optimizer: Any) -> Optional[float]:
    try:
        rate = optimizer.param_groups[0]["lr"]
    except (AttributeError, KeyError, IndexError, TypeError):
        return None
    return rate if isinstance(rate, float) else None


def run_beside(
    monitor: Optional[GPUMonitor], name: Optional[str], framework: Optional[str], total_steps: Optional[int], end_is_told_by: str, config: Any = None
) -> Run:
    """A run on the GPU that is followed, where one is."""
    return Run(
        name,
        framework=framework,
        correlation_id=monitor.correlation_id if monitor else None,
        gpu_hint=monitor.gpu_index if monitor else None,
        total_steps=total_steps,
        config=config,
        settings=monitor.settings if monitor else None,
        end_is_told_by=end_is_told_by,
    )


class TrainingMonitorCallback:
    """For your own training loops: begin, step begin, step end, end."""

    def __init__(self, monitor: Optional[GPUMonitor] = None, run_name: Optional[str] = None, framework: Optional[str] = None, config: Any = None) -> None:
        self.monitor = monitor
        self.run: Optional[Run] = None
        self._run_name = run_name or (monitor.run_name if monitor else None)
        self._framework = framework
        self._config = config
        self._began = 0.0
        self._ended = 0.0
        self._begin_lock = threading.Lock()

    def on_train_begin(self, total_steps: Optional[int] = None, **_: Any) -> None:
        with self._begin_lock:
            if self.run is not None and self.run.is_active:
                self.run.plan(total_steps)
                return
            monitor = self.monitor
            if monitor is not None:
                monitor.start_monitoring()
            self.run = run_beside(monitor, self._run_name, self._framework, total_steps, "on_train_end was called", self._config)
        self._ended = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = time.perf_counter()

    def on_step_end(
        self,
        step: int,
        epoch: Optional[float] = None,
        loss: Any = None,
        lr: Any = None,
        grad_norm: Any = None,
        throughput: Any = None,
        *,
        step_seconds: Optional[float] = None,
        phases: Optional[Mapping[str, float]] = None,
        **custom: Any,
    ) -> None:
        """`step_seconds` and `phases` where you measure them yourself; else they are taken from the calls."""
        run = self.run
        if run is None:
            self.on_train_begin()
            run = self.run
        if run is None:
            return
        now = time.perf_counter()
        if self._began:
            seconds = now - self._began
            waited = self._began - self._ended if self._ended and self._began > self._ended else 0.0
            if waited and phases is None:
                # From the end of one step to the start of the next: mostly waiting for data.
                phases = {"data": waited, "step": seconds}
            if step_seconds is None:
                step_seconds = seconds + waited
        self._ended = now
        self._began = 0.0
        run.log(step, epoch, loss, lr, grad_norm, throughput, step_seconds, phases, **custom)

    def on_train_end(self, outcome: str = "success", **_: Any) -> None:
        if self.run is not None:
            self.run.finish(outcome)
        if self.monitor is not None:
            self.monitor.stop_monitoring()
