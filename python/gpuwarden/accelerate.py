"""For Accelerate: `Accelerator(log_with=GPUWardenTracker("my-run"))`, then `accelerator.log({...}, step=…)` as usual."""
from __future__ import annotations

from typing import Any, Dict, Optional

from accelerate.tracking import GeneralTracker  # type: ignore[import-not-found,import-untyped,unused-ignore]

from .training_run import Run

_NAMES = {
    "loss": "loss",
    "train_loss": "loss",
    "lr": "lr",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "epoch": "epoch",
    "throughput": "throughput",
}


class GPUWardenTracker(GeneralTracker):  # type: ignore[misc,unused-ignore]
    name = "gpuwarden"
    requires_logging_directory = False
    #: Every rank reports its own GPU.
    main_process_only = False

    def __init__(self, run_name: Optional[str] = None, run: Optional[Run] = None, total_steps: Optional[int] = None) -> None:
        super().__init__()
        self.run = run if run is not None else Run(
            run_name, framework="accelerate", total_steps=total_steps, end_is_told_by="end_training was called"
        )

    @property
    def tracker(self) -> Run:
        return self.run

    def start(self) -> None:
        """The run begins with the object; Accelerate calls this later."""

    def store_init_configuration(self, values: Dict[str, Any]) -> None:
        """Keeps the hyperparameters with the run."""
        self.run.configure(values)

    def log(self, values: Dict[str, Any], step: Optional[int] = None, **kwargs: Any) -> None:
        known: Dict[str, Any] = {}
        custom: Dict[str, Any] = {}
        for name, value in values.items():
            place = _NAMES.get(name)
            if place is not None and place not in known:
                known[place] = value
            else:
                custom[name + "_" if name in ("self", "step", "step_seconds", "phases") or name in _NAMES else name] = value
        self.run.log(step, **{**custom, **known})

    def finish(self) -> None:
        self.run.finish("success")
