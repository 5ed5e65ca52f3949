"""Where the time of a step goes: one clock that is always in one phase, so that phases never count a moment twice.

A step lasts from the end of one optimizer step to the end of the next. What no hook saw belongs to no phase.
"""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from .device_clock import DEVICE_SUFFIX, DeviceClock

DATA = "data"
COPY = "copy"
FORWARD = "forward"
BACKWARD = "backward"
OPTIMIZER = "optimizer"
SYNC = "sync"
LOGGING = "logging"
EVALUATION = "evaluation"
CHECKPOINT = "checkpoint"
#: After a backward: the forward of the next micro-batch if another backward follows, else of no phase.
_AFTER_BACKWARD = "after backward"
#: Within these, loading data and copying it is part of them.
_WHOLE = frozenset((LOGGING, EVALUATION, CHECKPOINT))
_INSIDE = object()


class Measured(NamedTuple):
    """One or more steps; seconds are per step."""

    steps: int
    seconds: Optional[float]
    phases: Dict[str, Any]
    loss: Any
    lr: Any
    grad_norm: Any
    samples_per_second: Optional[float]
    tokens_per_second: Optional[float]

    def figures(self) -> Dict[str, Any]:
        """As `Run.log` takes them, without those that are not known."""
        named = {
            "step_seconds": self.seconds,
            "phases": self.phases,
            "loss": self.loss,
            "lr": self.lr,
            "grad_norm": self.grad_norm,
            "throughput": self.samples_per_second,
            "tokens_per_second": self.tokens_per_second,
        }
        return {name: value for name, value in named.items() if value is not None}


class StepMeter:
    def __init__(self, device: Optional[DeviceClock] = None) -> None:
        self.device = device
        self.on_step: Optional[Callable[["StepMeter"], None]] = None
        #: The thread that trains; 0: not known yet. Loaders and autograd have threads of their own.
        self.thread = 0
        #: The user named the model, so that its forward is measured exactly.
        self.knows_model = False
        #: A weak reference to the optimizer whose steps count.
        self.optimizer: Any = None
        #: Shapes of the first batch of the training, see batch_size.spec_of.
        self.first_batch: Any = None
        #: What the first loss was computed in; empty: it does not show.
        self.compute_type: Optional[str] = None
        self.steps = 0
        self._training_sets: Set[int] = set()
        self._forget()
        self._total: Optional[List[Any]] = None

    def _forget(self) -> None:
        self.phase: Optional[str] = None
        #: Logging, evaluation or checkpoint, for as long as the call lasts.
        self._scope: Optional[str] = None
        self._mark = time.perf_counter()
        self._began: Optional[float] = self._mark
        self._seconds: Dict[str, float] = {}
        self._source = 0
        self.backwards = 0
        self.loss: Any = None
        self._loss_is_spent = False
        self._is_in_optimizer = False
        self.grad_norm: Any = None
        self._samples: Optional[int] = None
        self._tokens: Optional[int] = None

    def reset(self) -> None:
        """In the child of a fork, and where another thread goes on training."""
        self.thread = 0
        self._total = None
        self._forget()
        if self.device is not None:
            self.device.forget()

    # --- the clock

    def switch(self, phase: Optional[str]) -> Optional[str]:
        """Enters a phase (None: none) and returns the one it was in."""
        before = self.phase
        if phase is before:
            return before
        now = time.perf_counter()
        if before is not None:
            seconds = self._seconds
            seconds[before] = seconds.get(before, 0.0) + now - self._mark
        self._mark = now
        self.phase = phase
        device = self.device
        if device is not None:
            device.mark(phase)
        return before

    def is_elsewhere(self) -> bool:
        """Another thread than the one that trains."""
        thread = self.thread
        return thread != 0 and thread != threading.get_ident()

    def enter(self, phase: str) -> Any:
        """For a phase that ends with `leave(what this returns)`."""
        if self._scope is not None or self.is_elsewhere():
            return _INSIDE
        if phase in _WHOLE:
            self._scope = phase
        elif self.phase is EVALUATION or self.phase is phase:
            return _INSIDE
        return self.switch(phase)

    def leave(self, before: Any) -> None:
        if before is not _INSIDE:
            self._scope = None
            self.switch(before)

    # --- what hooks tell

    def before_data(self, source: int, has_gradients: bool) -> None:
        if self._scope is not None or self.is_elsewhere():
            return
        evaluates = not has_gradients or (bool(self._training_sets) and source not in self._training_sets)
        if self.steps == 0 and self.backwards == 0 and self._source == 0 and not evaluates:
            self._forget()
        self.switch(EVALUATION if evaluates else DATA)

    def after_data(self, source: int, size: "Optional[tuple[int, Optional[int]]]") -> None:
        if self.phase is not DATA or self.is_elsewhere():
            return
        self._source = source
        if size is not None:
            self._samples = (self._samples or 0) + size[0]
            if size[1] is not None:
                self._tokens = (self._tokens or 0) + size[1]
        self.switch(None if self.knows_model else FORWARD)

    def no_more_data(self) -> None:
        if self._scope is None and (self.phase is DATA or self.phase is EVALUATION) and not self.is_elsewhere():
            self.switch(None)

    def before_backward(self) -> bool:
        """False: part of something else, as the backward within a backward that recomputes activations."""
        if self.thread == 0:
            self.thread = threading.get_ident()
        if self._scope is not None or self.phase is BACKWARD or self.is_elsewhere():
            return False
        if self.steps == 0 and self.backwards == 0 and self._source == 0:
            # Nobody saw this first step begin.
            self._forget()
            self._began = None
        # A loader whose batches gradients are computed for is one of the training.
        self._training_sets.add(self._source)
        self.switch(BACKWARD)
        after = self._seconds.pop(_AFTER_BACKWARD, None)
        if after is not None and not self.knows_model:
            self._seconds[FORWARD] = self._seconds.get(FORWARD, 0.0) + after
            if self.device is not None:
                self.device.rename(_AFTER_BACKWARD, FORWARD)
        return True

    def gradients_done(self) -> None:
        """On a thread of autograd's, while the one that trains waits for it."""
        if self.phase is BACKWARD:
            self.switch(SYNC)

    def after_backward(self, loss: Any) -> None:
        self.backwards += 1
        if loss is not None:
            # Several backward passes before an optimizer's step, as with accumulated gradients, are parts of one loss.
            self.loss = loss if self.loss is None or self._loss_is_spent else self.loss + loss
            self._loss_is_spent = False
        self.switch(OPTIMIZER if self._is_in_optimizer else _AFTER_BACKWARD)

    def before_optimizer(self, has_closure: bool) -> None:
        """With a closure the optimizer computes forward and backward itself; its own part comes after them."""
        # Some programs step inside the backward, to free each gradient at once.
        if self.phase is BACKWARD or self._scope is not None:
            return
        self._is_in_optimizer = has_closure
        if not has_closure:
            self.switch(OPTIMIZER)
            self._seconds.pop(_AFTER_BACKWARD, None)

    def after_optimizer(self) -> None:
        self._is_in_optimizer = False
        self._loss_is_spent = True
        if self._scope is None and self.phase is not BACKWARD and self.phase is not SYNC:
            self.switch(None)

    def end_step(self, lr: Any = None) -> None:
        now = time.perf_counter()
        phase = self.phase
        if phase is not None:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._mark
        seconds = self._seconds
        seconds.pop(_AFTER_BACKWARD, None)
        step_seconds = None if self._began is None else now - self._began
        device = None if self.device is None else self.device.end_step(phase, self.steps + 2, step_seconds)
        loss, grad_norm, samples, tokens = self.loss, self.grad_norm, self._samples, self._tokens
        self._forget()
        self.phase = phase
        self._mark = self._began = now
        self.steps += 1
        total = self._total
        if total is None:
            self._total = [1, step_seconds, seconds, loss, lr, grad_norm, samples, tokens, device]
        else:
            total[0] += 1
            total[1] = None if total[1] is None or step_seconds is None else total[1] + step_seconds
            for name, value in seconds.items():
                total[2][name] = total[2].get(name, 0.0) + value
            total[3], total[4] = loss, lr
            total[5] = grad_norm if grad_norm is not None else total[5]
            total[6] = None if samples is None or total[6] is None else total[6] + samples
            total[7] = None if tokens is None or total[7] is None else total[7] + tokens
            total[8] = device if device is not None else total[8]
        if self.on_step is not None:
            self.on_step(self)

    def take(self) -> Optional[Measured]:
        """All steps since the last call; None: there was none."""
        total, self._total = self._total, None
        if total is None:
            return None
        steps, seconds, phases, loss, lr, grad_norm, samples, tokens, device = total
        if steps > 1:
            phases = {name: value / steps for name, value in phases.items()}
        if device is not None:
            for name, value in device.items():
                phases[name + DEVICE_SUFFIX] = value
        per_second = 1.0 / seconds if seconds else None
        return Measured(
            steps,
            None if seconds is None else seconds / steps,
            phases,
            loss,
            lr,
            grad_norm,
            None if samples is None or per_second is None else samples * per_second,
            None if tokens is None or per_second is None else tokens * per_second,
        )
