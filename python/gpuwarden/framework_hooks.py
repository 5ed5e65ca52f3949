"""Hooks in what is built on PyTorch: our callback in every Trainer, once, and what evaluation, checkpoints and logging take."""
from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, Tuple

from . import automatic
from . import step_meter as phases
from .hook_guard import fault, scope

#: Functions and methods whose time is a phase, by module.
_SCOPES: Dict[str, Tuple[Tuple[str, str], ...]] = {
    "torch.utils.tensorboard.writer": tuple(
        ("SummaryWriter." + name, phases.LOGGING)
        for name in ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_text", "flush")
    ),
    "tensorboardX.writer": (("SummaryWriter.add_scalar", phases.LOGGING), ("SummaryWriter.add_histogram", phases.LOGGING)),
    "torch.distributed.checkpoint.state_dict_saver": (("save", phases.CHECKPOINT),),
    "safetensors.torch": (("save_file", phases.CHECKPOINT), ("save_model", phases.CHECKPOINT)),
    "wandb.sdk.wandb_run": (("Run.log", phases.LOGGING),),
    "mlflow.tracking.fluent": (("log_metric", phases.LOGGING), ("log_metrics", phases.LOGGING)),
    "transformers.trainer": (
        ("Trainer.evaluate", phases.EVALUATION),
        ("Trainer.predict", phases.EVALUATION),
        ("Trainer._save_checkpoint", phases.CHECKPOINT),
        ("Trainer.log", phases.LOGGING),
    ),
    "lightning.pytorch.trainer.trainer": (("Trainer.save_checkpoint", phases.CHECKPOINT),),
    "lightning.pytorch.loops.evaluation_loop": (("_EvaluationLoop.run", phases.EVALUATION),),
    "accelerate.accelerator": (("Accelerator.save_state", phases.CHECKPOINT), ("Accelerator.log", phases.LOGGING)),
}
_SCOPES["pytorch_lightning.trainer.trainer"] = _SCOPES["lightning.pytorch.trainer.trainer"]
_SCOPES["pytorch_lightning.loops.evaluation_loop"] = _SCOPES["lightning.pytorch.loops.evaluation_loop"]


def attach(name: str, module: Any) -> None:
    for path, phase in _SCOPES[name]:
        owner: Any = module
        *parts, last = path.split(".")
        for part in parts:
            owner = getattr(owner, part, None)
        original = getattr(owner, last, None)
        if original is not None:
            setattr(owner, last, scope(original, phase))
    if name == "transformers.trainer":
        module.Trainer.train = _first(module.Trainer.train, _follow_transformers)
    elif name.endswith("trainer.trainer"):
        module.Trainer.fit = _first(module.Trainer.fit, _follow_lightning)
    elif name == "wandb.sdk.wandb_run":
        module.Run.finish = _first(module.Run.finish, lambda *_, **__: automatic.before_tracker_ends())
    elif name == "mlflow.tracking.fluent":
        _follow_mlflow(module)
    elif name == "accelerate.accelerator":
        accelerator = module.Accelerator
        accelerator.__init__ = _first(accelerator.__init__, lambda *_, **__: automatic.use_framework("accelerate"))
        accelerator.init_trackers = _first(accelerator.init_trackers, lambda _, name=None, config=None, *rest, **named: automatic.also_configure(config))
        accelerator.log = _first(accelerator.log, lambda _, values=None, *rest, **named: automatic.also_log(values or {}))


def _follow_mlflow(module: Any) -> None:
    _before(module, "log_params", lambda params=None, *_, **__: automatic.also_configure(params))
    _before(module, "log_param", lambda key=None, value=None, *_, **__: automatic.also_configure({key: value}))


def _before(module: Any, name: str, before: Callable[..., Any]) -> None:
    original = getattr(module, name, None)
    if original is None:
        return
    setattr(module, name, _first(original, before))
    # Imported before the hooks came, the package has a name of its own for it.
    package = sys.modules.get(module.__name__.split(".")[0])
    if getattr(package, name, None) is original:
        setattr(package, name, getattr(module, name))


def _first(original: Any, before: Callable[..., Any]) -> Any:
    """A method, preceded by `before` with the same arguments."""

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        try:
            before(*args, **kwargs)
        except Exception as error:
            fault(error)
        return original(*args, **kwargs)

    return hooked


def _follow_transformers(trainer: Any, *_: Any, **__: Any) -> None:
    from .transformers import GPUMonitoringCallback

    if not any(isinstance(callback, GPUMonitoringCallback) for callback in trainer.callback_handler.callbacks):
        trainer.add_callback(GPUMonitoringCallback())


def _follow_lightning(trainer: Any, *_: Any, **__: Any) -> None:
    from .lightning import GPUWardenCallback

    if not any(isinstance(callback, GPUWardenCallback) for callback in trainer.callbacks):
        # In front: those that save checkpoints have to stay the last.
        trainer.callbacks.insert(0, GPUWardenCallback())
