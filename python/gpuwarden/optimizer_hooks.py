"""Hooks of optimizers: a step of the training is a step of one of them. Clipping tells the norm of the gradients."""
from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Dict, List

from . import hook_guard as guard
from . import step_meter as phases
from .gpu_monitor import learning_rate
from .gradient_norm import norm_of_gradients
from .hook_guard import meter
from .non_finite import search

#: An optimizer that took this many steps while the one that counts took none counts from then on.
_HANDOVER_STEPS = 16


def clipping(original: Any) -> Any:
    timed = guard.scope(original, phases.OPTIMIZER)

    @functools.wraps(original)
    def clip_grad_norm_(*args: Any, **kwargs: Any) -> Any:
        norm = timed(*args, **kwargs)
        if not guard.is_compiling():
            meter.grad_norm = norm
        return norm

    return clip_grad_norm_


class _Pacemaker:
    """Whose steps are the steps of the training, where there are several optimizers: the first that takes one, while it goes on."""

    def __init__(self) -> None:
        self.id = 0
        self.chosen = False
        self.others: Dict[int, int] = {}
        self.has_seen_backward = False
        self.calls = 0

    def is_step(self, optimizer: Any) -> bool:
        me = id(optimizer)
        if self.id == 0:
            self.take(optimizer)
        elif me != self.id:
            count = self.others.get(me, 0) + 1
            self.others[me] = count
            if self.chosen or count < _HANDOVER_STEPS:
                return False
            self.take(optimizer)
        if self.others:
            self.others.clear()
        if meter.backwards:
            self.has_seen_backward = True
        elif self.has_seen_backward:
            # Another part of the same step: some optimizers take one per group of parameters.
            return False
        return True

    def take(self, optimizer: Any) -> None:
        self.id = id(optimizer)
        meter.optimizer = weakref.ref(optimizer)


pacemaker = _Pacemaker()
#: Measures the gradient norm where the program does not.
wants_grad_norm = os.environ.get("GPUWARDEN_GRAD_NORM", "").strip().lower() in ("1", "true", "yes", "on")


#: Told of optimizer steps: `before_step(optimizer, gradient norm)`, and `after_step(optimizer)` for a step of the training.
watchers: List[Any] = [search]


def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    if guard.is_compiling() or guard.is_off:
        return
    try:
        if meter.is_elsewhere():
            meter.reset()
        meter.before_optimizer(len(args) > 1 and args[1] is not None or kwargs.get("closure") is not None)
        if wants_grad_norm and meter.grad_norm is None:
            meter.grad_norm = norm_of_gradients(optimizer)
        for watcher in watchers[:]:
            watcher.before_step(optimizer, meter.grad_norm)
    except Exception as error:
        guard.fault(error)


def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    if guard.is_compiling() or guard.is_off:
        return
    try:
        pacemaker.calls += 1
        meter.after_optimizer()
        if pacemaker.is_step(optimizer):
            for watcher in watchers[:]:
                watcher.after_step(optimizer)
            meter.end_step(learning_rate(optimizer))
    except Exception as error:
        guard.fault(error)


def choose(optimizer: Any) -> None:
    """The steps of this one are the steps of the training."""
    pacemaker.take(optimizer)
    pacemaker.chosen = True


def hook_scaled_step(scaler: Any) -> None:
    """A step that the scaler leaves out because of a gradient that is not finite is one all the same."""
    step = scaler.step

    @functools.wraps(step)
    def hooked_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        calls = pacemaker.calls
        result = step(self, optimizer, *args, **kwargs)
        if calls == pacemaker.calls and not guard.is_off:
            after_step(optimizer, args, kwargs)
        return result

    scaler.step = hooked_step
