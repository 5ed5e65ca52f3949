"""The runs of this program: starting one, and what goes to the latest."""
from __future__ import annotations

from typing import Any, List, Optional, Union

from . import lifecycle
from .recording import Recording
from .training_run import Run

_last_run: "Optional[Run]" = None


def run(
    name: Optional[str] = None,
    *,
    run_id: Optional[str] = None,
    framework: Optional[str] = None,
    correlation_id: Optional[str] = None,
    gpus: Optional[List[Union[int, str]]] = None,
    total_steps: Optional[int] = None,
    config: Any = None,
) -> Run:
    """Starts a run. Use it with `with`, or call `finish()`; a program that just ends is fine too.

    With `total_steps` gpuwarden can show the remaining time. `config` are the hyperparameters: a map, a dataclass or a namespace; secrets
    among them are masked.
    """
    global _last_run
    _last_run = Run(name, run_id=run_id, framework=framework, correlation_id=correlation_id, gpus=gpus, total_steps=total_steps, config=config)
    return _last_run


#: Under the name that other trackers have for it.
start_run = run


def log_step(step: Optional[int] = None, **values: Any) -> None:
    """Logs to the latest run; starts one if there is none."""
    current = _last_run if _last_run is not None and _last_run.is_active else run()
    current.log(step, **values)


def snapshot(steps: int = 20, host: bool = False) -> Recording:
    """Records the next steps of the latest run, also of a callback's; starts one if there is none. See `Run.snapshot`."""
    return (lifecycle.latest() or run()).snapshot(steps, host)
