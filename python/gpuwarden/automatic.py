"""Training that is followed without a line of code: every optimizer step is a step of a run that begins with the first one.

Where the program has a run of its own, by `gpuwarden.run` or a callback, that one gets what was measured, and there is no second one.
"""
from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any, Dict, Iterator, Optional

from . import hyperparameters, lifecycle, model_watch, trackers
from .settings import read_settings
from .step_meter import Measured, StepMeter

log = logging.getLogger("gpuwarden")

_meter: Optional[StepMeter] = None
_run: Any = None
_framework = "pytorch"
#: What the program logged elsewhere since the last step.
_logged: Dict[str, Any] = {}
_MOST_LOGGED = 64
#: Hyperparameters that the program gave elsewhere before the run began.
_config: Dict[str, Any] = {}


def begin(meter: StepMeter) -> None:
    """PyTorch is hooked from now on."""
    global _meter
    if _meter is None and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)
    _meter = meter
    meter.on_step = _on_step
    every = model_watch.wanted_by_environment()
    if every:
        from . import optimizer_hooks

        optimizer_hooks.watchers.append(model_watch.WatchLater(every))


def measured() -> Optional[Measured]:
    """What the hooks saw since the last call, for whoever logs the step; None without hooks."""
    return None if _meter is None else _meter.take()


def is_hooked() -> bool:
    return _meter is not None


def meter_in_use() -> Optional[StepMeter]:
    """What measures the steps; None without hooks."""
    return _meter


def phase() -> Optional[str]:
    """What the hooks see the program do now; None: not known."""
    return None if _meter is None else _meter.phase


def use_framework(name: str) -> None:
    """What the run is called to be made with."""
    global _framework
    _framework = name


def also_log(values: Any) -> None:
    """Figures that the program logs elsewhere go with its next step."""
    for name, value in values.items():
        if isinstance(value, (int, float)) and len(_logged) < _MOST_LOGGED:
            _logged[str(name)] = value


def also_configure(values: Any) -> None:
    """Hyperparameters that the program gives elsewhere are kept with its run."""
    added = hyperparameters.flat(values)
    run = lifecycle.latest()
    if run is not None:
        run.configure(added)
    else:
        _config.update(added)


def before_tracker_ends() -> None:
    """The program ends its run at a tracker: what was seen until now goes with it."""
    run = lifecycle.latest()
    if run is not None:
        run.tell_trackers()


def attach(model: Any = None, optimizer: Any = None, loader: Any = None, *, grad_norm: bool = False, watch: int = 0) -> "Attached":
    """Follows a training loop without further calls: loss, learning rate, gradient norm, samples and phases of every optimizer step.

    Under `gpuwarden run` all of it happens without this call. `model` makes the forward exact, `optimizer` says whose steps count where there
    are several, and iterating over the returned `loader` counts as waiting for data where it is no DataLoader. With `grad_norm` the norm is
    computed where the program does not clip gradients. `watch=100` looks at the layers of `model` every 100 steps, as `gpuwarden.watch` does.
    """
    watch: Any = sys.modules.get("_gpuwarden_import_watch") or importlib.import_module("gpuwarden.import_watch")
    watch.install()
    if "torch" not in sys.modules:
        return Attached(loader)
    from . import optimizer_hooks
    from .backward_hooks import follow_forward
    from .batch_hooks import TimedLoader

    if optimizer is not None:
        optimizer_hooks.choose(optimizer)
    if grad_norm:
        optimizer_hooks.wants_grad_norm = True
    if model is not None:
        follow_forward(model)
        if watch:
            model_watch.watch(model, watch)
    is_known = loader is None or isinstance(loader, sys.modules["torch"].utils.data.DataLoader)
    return Attached(loader if is_known else TimedLoader(loader))


class Attached:
    """What `attach` returns."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self.loader)


def _on_step(meter: StepMeter) -> None:
    global _run
    latest = lifecycle.latest()
    if latest is not None and latest is not _run:
        if _run is not None:
            # The program has begun a run of its own.
            _run.hand_over()
            _run = None
        return
    if _run is None:
        from .training_run import Run

        if read_settings().disabled:
            meter.on_step = None
            return
        _run = Run(framework=_framework, config={**trackers.config(), **_config})
    custom = dict(_logged)
    _logged.clear()
    _run.log(meter.steps, **{_free(name): value for name, value in custom.items()})


def _free(name: str) -> str:
    taken = ("self", "step", "epoch", "loss", "lr", "grad_norm", "throughput", "step_seconds", "phases")
    return name + "_" if name in taken else name


def _in_child() -> None:
    """A worker of a loader takes no optimizer steps; a rank that was forked begins its own run with its first."""
    global _run
    _run = None
    _logged.clear()
    if _meter is not None:
        _meter.steps = 0
        _meter.reset()
