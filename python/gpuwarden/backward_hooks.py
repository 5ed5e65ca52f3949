"""Hooks around forward and backward: the loss, what it was scaled by, and gradients that are exchanged."""
from __future__ import annotations

import functools
from typing import Any, List, Optional, Tuple

from . import hook_guard as guard
from . import step_meter as phases
from .compute_type import of_loss
from .hook_guard import meter
from .non_finite import search


def backward(original: Any, torch: Any) -> Any:
    tensor_type = torch.Tensor

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if guard.is_compiling() or guard.is_off:
            return original(tensors, *args, **kwargs)
        loss: Any = None
        is_ours = False
        try:
            is_ours = meter.before_backward()
            if is_ours:
                given = tensors[0] if isinstance(tensors, (tuple, list)) and tensors else tensors
                if isinstance(given, tensor_type) and given.numel() == 1:
                    loss = _unscaled(given)
                    search.on_loss(loss, given)
                    if meter.compute_type is None:
                        meter.compute_type = of_loss(torch, given)
        except Exception as error:
            guard.fault(error)
        try:
            return original(tensors, *args, **kwargs)
        finally:
            if is_ours:
                try:
                    meter.after_backward(loss)
                except Exception as error:
                    guard.fault(error)

    return backward


def follow_forward(model: Any) -> None:
    """Times the forward of this module, instead of all that happens between a batch and its backward."""

    def before(*_: Any) -> None:
        if not (guard.is_compiling() or guard.is_off):
            try:
                entered.append(meter.enter(phases.FORWARD))
            except Exception as error:
                guard.fault(error)

    def after(*_: Any) -> None:
        if entered and not (guard.is_compiling() or guard.is_off):
            try:
                meter.leave(entered.pop())
            except Exception as error:
                guard.fault(error)

    entered: List[Any] = []
    model.register_forward_pre_hook(before)
    model.register_forward_hook(after)
    meter.knows_model = True


_scaled: Optional[Tuple[Any, Any]] = None


def hook_scale(scaler: Any) -> None:
    """The loss that is shown is the one before it was scaled."""
    scale = scaler.scale

    @functools.wraps(scale)
    def hooked_scale(self: Any, outputs: Any) -> Any:
        global _scaled
        scaled = scale(self, outputs)
        try:
            _scaled = None
            if not guard.is_off and scaled is not outputs and getattr(outputs, "numel", int)() == 1:
                _scaled = (scaled, outputs.detach())
        except Exception as error:
            guard.fault(error)
        return scaled

    scaler.scale = hooked_scale


def _unscaled(loss: Any) -> Any:
    global _scaled
    known, _scaled = _scaled, None
    return known[1] if known is not None and known[0] is loss else loss.detach()


def follow_gradients(ddp: Any) -> None:
    """Gradients are exchanged while the backward computes. What is left of it after the last gradient, the first layer's, is waiting."""
    first = next((parameter for parameter in ddp.module.parameters() if parameter.requires_grad), None)
    register = getattr(first, "register_post_accumulate_grad_hook", None)
    if register is not None:
        register(_on_last_gradient)


def _on_last_gradient(_: Any) -> None:
    if guard.is_compiling() or guard.is_off:
        return
    try:
        meter.gradients_done()
    except Exception as error:
        guard.fault(error)
