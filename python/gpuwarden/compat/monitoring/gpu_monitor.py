"""`gpuwarden.gpu_monitor` under its older name. `python -m monitoring.gpu_monitor …` is `gpuwarden monitor …`."""
from gpuwarden.gpu_metrics import GPUMetrics
from gpuwarden.gpu_monitor import GPUMonitor, TrainingMonitorCallback

__all__ = ["GPUMetrics", "GPUMonitor", "TrainingMonitorCallback"]

if __name__ == "__main__":
    from gpuwarden.program import replace_with_program

    replace_with_program(["monitor"])
