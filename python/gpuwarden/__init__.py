"""gpuwarden: shows training next to the readings of its GPUs.

    import gpuwarden

    with gpuwarden.run("my-training") as run:
        for step in range(1000):
            run.log(step=step, loss=train_step())
"""
from ._version import __version__
from .automatic import attach
from .gpu_metrics import GPUMetrics
from .gpu_monitor import GPUMonitor, TrainingMonitorCallback
from .latest_run import log_step, run, snapshot, start_run
from .leak_detector import FragmentationAnalyzer, LeakDetector, LeakVerdict
from .memory import MemoryDebugger, MemoryProfiler
from .model_watch import watch
from .oom_detector import OOMDetector, OOMPrediction, RiskLevel
from .recording import Recording
from .training_run import Run

__all__ = [
    "FragmentationAnalyzer",
    "GPUMetrics",
    "GPUMonitor",
    "LeakDetector",
    "LeakVerdict",
    "MemoryDebugger",
    "MemoryProfiler",
    "OOMDetector",
    "OOMPrediction",
    "Recording",
    "RiskLevel",
    "Run",
    "TrainingMonitorCallback",
    "__version__",
    "attach",
    "log_step",
    "run",
    "snapshot",
    "start_run",
    "watch",
]
