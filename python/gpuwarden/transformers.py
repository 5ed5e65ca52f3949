"""For Hugging Face's Trainer: `Trainer(…, callbacks=[GPUMonitoringCallback(monitor)])`."""
from __future__ import annotations

import logging
import time
from typing import Any, Dict, Optional

from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]

from . import automatic, callback_hooks, hyperparameters
from .formats import NOT_AVAILABLE, format_bytes, format_percent
from .gpu_metrics import MIB
from .gpu_monitor import GPUMonitor, learning_rate, run_beside
from .training_run import Run

log = logging.getLogger("gpuwarden")

_NAMES = {"loss": "loss", "grad_norm": "grad_norm", "learning_rate": "lr", "epoch": "epoch"}
#: Totals that the trainer reports at the end: they belong to no step.
_TOTALS = frozenset(("train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss"))


#: Of interest also where they are as they are by default.
_ALWAYS = (
    "learning_rate", "per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "max_steps", "lr_scheduler_type",
    "weight_decay", "max_grad_norm", "optim", "bf16", "fp16", "gradient_checkpointing", "dataloader_num_workers", "seed",
)  # fmt: skip
_MODEL = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


class GPUMonitoringCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Sends every step, with the loss where the Trainer logs it (`logging_steps`); `log_interval` is for the lines of the log.

    The loss comes after the end of its step, so a step is held until the next one begins.
    """

    def __init__(self, monitor: Optional[GPUMonitor] = None, log_interval: int = 10, run_name: Optional[str] = None) -> None:
        self.monitor = monitor
        self.log_interval = max(1, int(log_interval))
        self.run: Optional[Run] = None
        self._run_name = run_name
        self._held: Optional[Dict[str, Any]] = None
        self._custom: Dict[str, float] = {}
        self._knows_model = False
        self._began = self._optimizer_at = self._optimized_at = self._ended = self._aside = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        monitor = self.monitor
        if monitor is not None:
            monitor.start_monitoring()
        total_steps = getattr(state, "max_steps", None)
        if self.run is not None and self.run.is_active:
            self.run.plan(total_steps)
        else:
            name = self._run_name or (monitor.run_name if monitor else None) or getattr(args, "run_name", None)
            self.run = run_beside(monitor, name, "transformers", total_steps, "the Trainer came to its end", _settings(args, kwargs.get("model")))
        callback_hooks.watch_clipping()
        callback_hooks.watch_batches(kwargs.get("train_dataloader"))
        self._ended = 0.0
        self._knows_model = False

    def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        self._release()
        if not self._knows_model and model is not None and self.run is not None:
            self._knows_model = True
            precision = "bf16" if getattr(args, "bf16", False) else "fp16" if getattr(args, "fp16", False) else None
            self.run.follow_model(model, precision, callback_hooks.first_batch())
        self._began = time.perf_counter()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._optimizer_at = time.perf_counter()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._optimized_at = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, optimizer: Any = None, **kwargs: Any) -> None:
        self._release()
        now = time.perf_counter()
        began = self._began or now
        seen = automatic.measured()
        if seen is not None:
            self._held = {"step": state.global_step, "epoch": state.epoch, "lr": learning_rate(optimizer)}
            self._held.update(seen.figures())
            return
        phases = {}
        if self._ended:
            # The batch is fetched before the step begins; logging, saving and evaluating happen in the same gap and are not waiting.
            phases["data"] = max(0.0, began - self._ended - self._aside)
        if began <= self._optimizer_at <= now:
            phases["forward_backward"] = self._optimizer_at - began
            if self._optimizer_at <= self._optimized_at <= now:
                phases["optimizer"] = self._optimized_at - self._optimizer_at
        self._held = {
            "step": state.global_step,
            "epoch": state.epoch,
            "lr": learning_rate(optimizer),
            "grad_norm": callback_hooks.take_norm(),
            "step_seconds": now - began + phases.get("data", 0.0),
            "phases": phases,
        }
        self._held.update(_pace(self._held["step_seconds"]))
        self._ended, self._aside = now, 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        held = self._held
        for name, value in (logs or {}).items():
            if name in _TOTALS or not isinstance(value, (int, float)):
                continue
            if held is not None and name in _NAMES:
                # The Trainer's loss is the mean since its last line; where hooks saw the loss of this step, that one is meant.
                if name != "loss" or held.get("loss") is None:
                    held[_NAMES[name]] = value
            elif name not in _NAMES:
                self._custom[name] = value
        self._note_aside()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._note_aside()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._note_aside()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._release()
        if self.run is not None:
            self.run.finish("success")
        if self.monitor is not None:
            self.monitor.stop_monitoring()

    def _note_aside(self) -> None:
        """Between two steps: what happened until here was not waiting for data."""
        if self._ended:
            self._aside = time.perf_counter() - self._ended

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is None or self.run is None:
            return
        custom, self._custom = self._custom, {}
        self.run.log(**{**{_free(name): value for name, value in custom.items()}, **held})
        if held["step"] % self.log_interval == 0:
            self._tell(held)

    def _tell(self, held: Dict[str, Any]) -> None:
        gpu = self.monitor.get_current_metrics() if self.monitor is not None else None
        if gpu is not None and log.isEnabledFor(logging.INFO):
            log.info(
                "step %d: loss %s, GPU %d%s at %s, %s of %s, %s °C, %s W",
                held["step"],
                held.get("loss"),
                gpu.gpu_index,
                " (SIMULATED)" if gpu.simulated else "",
                format_percent(None if gpu.utilization_percent is None else gpu.utilization_percent / 100.0),
                _megabytes(gpu.memory_used_mb),
                _megabytes(gpu.memory_total_mb),
                _whole(gpu.temperature_celsius),
                _whole(gpu.power_draw_watts),
            )


def _settings(args: Any, model: Any) -> Dict[str, Any]:
    """What of the arguments is not as it is by default, and what model it is."""
    settings: Dict[str, Any] = {}
    try:
        settings.update(hyperparameters.changed_fields(args, _ALWAYS))
        config = getattr(model, "config", None)
        settings["model"] = {name: getattr(config, name) for name in _MODEL if getattr(config, name, None) is not None}
        settings["model"]["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    except Exception as error:  # Arguments and models of others.
        log.debug("gpuwarden: not all hyperparameters could be read: %s: %s", type(error).__name__, error)
    return settings


def _pace(seconds: float) -> Dict[str, float]:
    """Samples and tokens a second, as far as the batches since the last step show them."""
    samples, tokens = callback_hooks.take_size()
    counted = {"throughput": samples, "tokens_per_second": tokens}
    return {name: count / seconds for name, count in counted.items() if count is not None and seconds > 0}


def _free(name: str) -> str:
    """A user's metric may have the name of one of ours."""
    return name + "_" if name in ("self", "step", "throughput", "step_seconds", "phases", "lr") else name


def _megabytes(value: Optional[float]) -> str:
    return NOT_AVAILABLE if value is None else format_bytes(value * MIB)


def _whole(value: Optional[float]) -> str:
    return NOT_AVAILABLE if value is None else "%.0f" % value
