"""`gpuwarden.transformers` under its older name."""
from gpuwarden.transformers import GPUMonitoringCallback

__all__ = ["GPUMonitoringCallback"]
