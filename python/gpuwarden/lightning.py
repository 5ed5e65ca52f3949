"""For Lightning: `Trainer(callbacks=[GPUWardenCallback()])`, with `lightning` as well as with `pytorch_lightning`."""
from __future__ import annotations

import sys
import time
from typing import Any, Dict, Optional

from . import automatic, callback_hooks, hyperparameters
from .batch_size import size_of, spec_of
from .gpu_monitor import GPUMonitor, learning_rate, run_beside
from .gradient_norm import norm_of_gradients
from .training_run import Run

# Each package has its own Callback and does not accept the other's: the one already in use is meant.
if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback  # type: ignore[import-not-found,unused-ignore]
else:
    try:
        from lightning.pytorch import Callback  # type: ignore[import-not-found,no-redef,assignment,unused-ignore]
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[import-not-found,no-redef,unused-ignore]

#: Lightning collects the logged metrics anew for every caller, which costs more than all the rest of a step.
_METRICS_SECONDS = 0.25
#: Names under which modules commonly log what has its own field.
_GRAD_NORM = ("grad_norm", "grad_norm_total", "grad_2.0_norm_total")


_TRAINER = ("max_epochs", "max_steps", "precision", "accumulate_grad_batches", "gradient_clip_val", "num_devices", "num_nodes")


class GPUWardenCallback(Callback):  # type: ignore[misc,unused-ignore]
    """Every batch is a step. The loss is on the GPU: it is fetched without waiting for it.

    The gradient norm is the one that clipping computes; `grad_norm` computes it where nothing is clipped.
    """

    def __init__(
        self, monitor: Optional[GPUMonitor] = None, run_name: Optional[str] = None, log_metrics: bool = True, grad_norm: bool = False
    ) -> None:
        self.monitor = monitor
        self.run: Optional[Run] = None
        self._run_name = run_name
        self._log_metrics = log_metrics
        self._wants_norm = grad_norm
        self._norm: Any = None
        self._knows_batch = False
        self._began = self._backward_at = self._after_backward_at = self._ended = 0.0
        self._metrics_at = 0.0
        self._step = self._batches = 0
        self._optimizer: Any = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        monitor = self.monitor
        if monitor is not None:
            monitor.start_monitoring()
        total_steps = _total_batches(trainer)
        if self.run is not None and self.run.is_active:
            self.run.plan(total_steps)
        else:
            name = self._run_name or (monitor.run_name if monitor else None) or type(pl_module).__name__
            self.run = run_beside(monitor, name, "lightning", total_steps, "the Trainer came to its end", _settings(trainer, pl_module))
        callback_hooks.watch_clipping()
        self._ended = 0.0
        self._knows_batch = False
        self._step = int(trainer.global_step)
        self._batches = 0
        self._optimizer = next(iter(getattr(trainer, "optimizers", ())), None)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if not self._knows_batch and self.run is not None:
            self._knows_batch = True
            self.run.follow_model(pl_module, getattr(trainer, "precision", None), spec_of(batch))
        self._began = time.perf_counter()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        # Before anything is clipped.
        if self._wants_norm:
            self._norm = norm_of_gradients(optimizer)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._backward_at = time.perf_counter()

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._after_backward_at = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        run = self.run
        if run is None:
            return
        now = time.perf_counter()
        began = self._began or now
        phases = {}
        if self._ended:
            phases["data"] = max(0.0, began - self._ended)
        if began <= self._backward_at <= self._after_backward_at <= now:
            phases["forward"] = self._backward_at - began
            phases["backward"] = self._after_backward_at - self._backward_at
            phases["optimizer"] = now - self._after_backward_at
        step_seconds = now - began + phases.get("data", 0.0)
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        seen = automatic.measured()
        # With accumulated gradients a step of the optimizer is several batches, and every batch is a step here.
        figures = seen.figures() if seen is not None and trainer.accumulate_grad_batches == 1 else {}
        metrics = self._metrics(trainer, now)
        grad_norm = next((metrics.pop(name) for name in _GRAD_NORM if name in metrics), None) if metrics else None
        if grad_norm is None:
            grad_norm = self._taken_norm(None if seen is None else seen.grad_norm)
        seconds = figures.get("step_seconds", step_seconds)
        throughput = figures.get("throughput")
        tokens = figures.get("tokens_per_second")
        if throughput is None:
            throughput, tokens = _pace(batch, seconds)
        if tokens is not None:
            metrics["tokens_per_second"] = tokens
        self._step += 1
        if batch_idx == 0 or self._batches == 0:
            self._batches = _batches(trainer)
        run.log(
            self._step,
            float(trainer.current_epoch) + (batch_idx + 1) / self._batches,
            loss,
            learning_rate(self._optimizer),
            grad_norm,
            throughput,
            seconds,
            figures.get("phases", phases),
            **metrics,
        )
        self._ended = now

    def _taken_norm(self, seen: Any) -> Any:
        computed, self._norm = self._norm, None
        clipped = callback_hooks.take_norm()
        return next((norm for norm in (seen, clipped, computed) if norm is not None), None)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        # Validation is not waiting for data.
        self._ended = 0.0

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.run is not None:
            self.run.fail(exception)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.run is not None:
            self.run.finish("killed" if getattr(trainer, "interrupted", False) else "success")
        if self.monitor is not None:
            self.monitor.stop_monitoring()

    def _metrics(self, trainer: Any, now: float) -> Dict[str, Any]:
        """What the module logged itself, other than the loss: four times a second at most."""
        if not self._log_metrics or now - self._metrics_at < _METRICS_SECONDS:
            return {}
        self._metrics_at = now
        logged = getattr(trainer, "logged_metrics", {})
        return {_free(name): value for name, value in logged.items() if name not in ("loss", "epoch")}


def _settings(trainer: Any, pl_module: Any) -> Dict[str, Any]:
    """`save_hyperparameters()` of the module and its data, and what the Trainer was given."""
    settings: Dict[str, Any] = {}
    for owner in (getattr(trainer, "datamodule", None), pl_module):
        settings.update(hyperparameters.flat(getattr(owner, "hparams", None)))
    settings["trainer"] = {name: getattr(trainer, name, None) for name in _TRAINER if getattr(trainer, name, None) is not None}
    return settings


def _pace(batch: Any, seconds: float) -> "tuple[Optional[float], Optional[float]]":
    """Samples and tokens a second, as far as the batch shows them."""
    size = size_of(batch)
    if size is None or seconds <= 0:
        return None, None
    return size[0] / seconds, None if size[1] is None else size[1] / seconds


def _free(name: str) -> str:
    return name + "_" if name in ("self", "step", "lr", "throughput", "step_seconds", "phases") else name


def _total_batches(trainer: Any) -> Optional[int]:
    """Lightning plans optimizer steps; every batch is a step here. None for training without an end."""
    try:
        total = trainer.estimated_stepping_batches * max(1, trainer.accumulate_grad_batches)
    except Exception:  # It may set up data loaders for this: an error there is not ours to raise.
        return None
    return int(total) if 0 < total < 1e15 else None


def _batches(trainer: Any) -> int:
    count = getattr(trainer, "num_training_batches", 0)
    return int(count) if isinstance(count, (int, float)) and 0 < count < 1e15 else 1
