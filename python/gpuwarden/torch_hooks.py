"""Where PyTorch is hooked: loader, copies, backward, optimizer, gradient clipping, loss scaling, collectives, saving."""
from __future__ import annotations

import sys
from typing import Any

from . import collectives
from . import hook_guard as guard
from . import loader_facts
from . import step_meter as phases
from .backward_hooks import backward, follow_gradients, hook_scale
from .batch_hooks import copying, fetching
from .device_clock import DeviceClock
from .hook_guard import meter, scope, then
from .optimizer_hooks import after_step, before_step, clipping, hook_scaled_step

_COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "barrier", "broadcast", "broadcast_object_list",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single",
)  # fmt: skip


def attach(name: str, module: Any) -> None:
    if name == "torch":
        _attach_to_torch(module)
    elif name == "torch.utils.data.dataloader":
        base = module._BaseDataLoaderIter
        base.__next__ = fetching(base.__next__)
        base.__init__ = then(base.__init__, loader_facts.note)
    elif name == "torch.nn.parallel.distributed":
        cls = module.DistributedDataParallel
        cls.__init__ = then(cls.__init__, follow_gradients)


def _attach_to_torch(torch: Any) -> None:
    from . import automatic

    guard.is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or guard.is_compiling
    version = getattr(torch, "version", None)
    if getattr(version, "cuda", None) or getattr(version, "hip", None):
        meter.device = DeviceClock(torch)
        for method in ("to", "cuda"):
            setattr(torch.Tensor, method, copying(getattr(torch.Tensor, method), torch))
    torch.autograd.backward = backward(torch.autograd.backward, torch)
    optimizer = sys.modules["torch.optim.optimizer"]
    optimizer.register_optimizer_step_pre_hook(before_step)
    optimizer.register_optimizer_step_post_hook(after_step)
    clip = clipping(torch.nn.utils.clip_grad_norm_)
    torch.nn.utils.clip_grad_norm_ = clip
    sys.modules["torch.nn.utils.clip_grad"].clip_grad_norm_ = clip  # type: ignore[attr-defined]
    torch.save = scope(torch.save, phases.CHECKPOINT)
    for scaler in {getattr(torch.amp, "GradScaler", None), torch.cuda.amp.GradScaler} - {None}:
        if "step" in vars(scaler):  # Else it inherits both from the other one.
            hook_scale(scaler)
            hook_scaled_step(scaler)
    distributed = getattr(torch, "distributed", None)
    for collective in _COLLECTIVES:
        function = getattr(distributed, collective, None)
        if function is not None:
            setattr(distributed, collective, collectives.counted(scope(function, phases.SYNC), collective))
    collectives.is_compiling = guard.is_compiling
    collectives.prepare(str(getattr(torch, "__version__", "")))
    automatic.begin(meter)
