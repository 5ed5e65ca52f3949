"""Hooks in PyTorch itself: loader, copies, backward, optimizer, gradient clipping, loss scaling, collectives, saving.

Every hook calls what it hooks exactly once, whatever happens to our own part. `torch.compile` sees the original functions only.
"""
from __future__ import annotations

import functools
import logging
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import loader_facts
from . import step_meter as phases
from .batch_size import size_of
from .device_clock import DeviceClock
from .gpu_monitor import learning_rate
from .step_meter import StepMeter

log = logging.getLogger("gpuwarden")

meter = StepMeter()
_COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "barrier", "broadcast", "broadcast_object_list",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single",
)  # fmt: skip
#: Hooks that failed this often are broken, and stay out of the way.
_MOST_FAULTS = 10
#: An optimizer that took this many steps while the one that counts took none counts from then on.
_HANDOVER_STEPS = 16

_is_off = False
_faults = 0
_is_compiling: Callable[[], bool] = lambda: False  # noqa: E731


def attach(name: str, module: Any) -> None:
    if name == "torch":
        _attach_to_torch(module)
    elif name == "torch.utils.data.dataloader":
        base = module._BaseDataLoaderIter
        base.__next__ = _fetching(base.__next__)
        base.__init__ = _then(base.__init__, loader_facts.note)
    elif name == "torch.nn.parallel.distributed":
        cls = module.DistributedDataParallel
        cls.__init__ = _then(cls.__init__, _follow_gradients)


def _attach_to_torch(torch: Any) -> None:
    global _is_compiling
    from . import automatic

    _is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or _is_compiling
    version = getattr(torch, "version", None)
    if getattr(version, "cuda", None) or getattr(version, "hip", None):
        meter.device = DeviceClock(torch)
        for method in ("to", "cuda"):
            setattr(torch.Tensor, method, _copying(getattr(torch.Tensor, method), torch))
    torch.autograd.backward = _backward(torch.autograd.backward, torch)
    optimizer = sys.modules["torch.optim.optimizer"]
    optimizer.register_optimizer_step_pre_hook(_before_step)
    optimizer.register_optimizer_step_post_hook(_after_step)
    clip = _clipping(torch.nn.utils.clip_grad_norm_)
    torch.nn.utils.clip_grad_norm_ = clip
    sys.modules["torch.nn.utils.clip_grad"].clip_grad_norm_ = clip  # type: ignore[attr-defined]
    torch.save = scope(torch.save, phases.CHECKPOINT)
    for scaler in {getattr(torch.amp, "GradScaler", None), torch.cuda.amp.GradScaler} - {None}:
        _attach_to_scaler(scaler)
    distributed = getattr(torch, "distributed", None)
    for collective in _COLLECTIVES:
        function = getattr(distributed, collective, None)
        if function is not None:
            setattr(distributed, collective, scope(function, phases.SYNC))
    automatic.begin(meter)


# --- how to hook


def fault(error: BaseException) -> None:
    """An error of ours never reaches the program."""
    global _faults, _is_off
    _faults += 1
    if _faults == 1:
        log.debug("gpuwarden: a hook failed: %s: %s", type(error).__name__, error, exc_info=True)
    if _faults >= _MOST_FAULTS:
        _is_off = True


def scope(original: Any, phase: str) -> Any:
    """`original`, with its time counted as `phase`."""

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or _is_off:
            return original(*args, **kwargs)
        before: Any = None
        entered = False
        try:
            before = meter.enter(phase)
            entered = True
        except Exception as error:
            fault(error)
        try:
            return original(*args, **kwargs)
        finally:
            if entered:
                try:
                    meter.leave(before)
                except Exception as error:
                    fault(error)

    return hooked


def _then(original: Any, after: Callable[[Any], None]) -> Any:
    """A method, followed by `after(self)`."""

    @functools.wraps(original)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not _is_off:
            try:
                after(self)
            except Exception as error:
                fault(error)
        return result

    return hooked


# --- the hooks


def _fetching(original: Any, known_source: int = 0) -> Any:
    is_grad_enabled = sys.modules["torch"].is_grad_enabled

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if _is_off:
            return original(self)
        source = 0
        try:
            source = known_source or id(self._dataset)
            meter.before_data(source, is_grad_enabled())
        except Exception as error:
            fault(error)
        try:
            batch = original(self)
        except BaseException:
            try:
                meter.no_more_data()
            except Exception as error:
                fault(error)
            raise
        try:
            meter.after_data(source, size_of(batch))
        except Exception as error:
            fault(error)
        return batch

    return __next__


def _copying(original: Any, torch: Any) -> Any:
    timed = scope(original, phases.COPY)
    device_type, tensor_type = torch.device, torch.Tensor
    always = original.__name__ == "cuda"

    @functools.wraps(original)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Only what leaves the host; everything else is part of the phase it happens in.
        if _is_compiling() or self.is_cuda or meter.phase is phases.BACKWARD:
            return original(self, *args, **kwargs)
        target = args[0] if args else kwargs.get("device")
        if isinstance(target, device_type):
            leaves = target.type != "cpu"
        elif isinstance(target, tensor_type):
            leaves = target.is_cuda
        else:
            leaves = isinstance(target, (str, int)) and target != "cpu"
        return (timed if leaves or always else original)(self, *args, **kwargs)

    return hooked


def _backward(original: Any, torch: Any) -> Any:
    tensor_type = torch.Tensor

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or _is_off:
            return original(tensors, *args, **kwargs)
        loss: Any = None
        is_ours = False
        try:
            is_ours = meter.before_backward()
            if is_ours:
                given = tensors[0] if isinstance(tensors, (tuple, list)) and tensors else tensors
                if isinstance(given, tensor_type) and given.numel() == 1:
                    loss = _unscaled(given)
        except Exception as error:
            fault(error)
        try:
            return original(tensors, *args, **kwargs)
        finally:
            if is_ours:
                try:
                    meter.after_backward(loss)
                except Exception as error:
                    fault(error)

    return backward


def _clipping(original: Any) -> Any:
    timed = scope(original, phases.OPTIMIZER)

    @functools.wraps(original)
    def clip_grad_norm_(*args: Any, **kwargs: Any) -> Any:
        norm = timed(*args, **kwargs)
        if not _is_compiling():
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
            self.id = me
        elif me != self.id:
            count = self.others.get(me, 0) + 1
            self.others[me] = count
            if self.chosen or count < _HANDOVER_STEPS:
                return False
            self.id = me
        if self.others:
            self.others.clear()
        if meter.backwards:
            self.has_seen_backward = True
        elif self.has_seen_backward:
            # Another part of the same step: some optimizers take one per group of parameters.
            return False
        return True


pacemaker = _Pacemaker()
#: Measures the gradient norm where the program does not.
wants_grad_norm = os.environ.get("GPUWARDEN_GRAD_NORM", "").strip().lower() in ("1", "true", "yes", "on")


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    if _is_compiling() or _is_off:
        return
    try:
        if meter.is_elsewhere():
            meter.reset()
        meter.before_optimizer(len(args) > 1 and args[1] is not None or kwargs.get("closure") is not None)
        if wants_grad_norm and meter.grad_norm is None:
            meter.grad_norm = _norm_of_gradients(optimizer)
    except Exception as error:
        fault(error)


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    if _is_compiling() or _is_off:
        return
    try:
        pacemaker.calls += 1
        meter.after_optimizer()
        if pacemaker.is_step(optimizer):
            meter.end_step(learning_rate(optimizer))
    except Exception as error:
        fault(error)


def choose(optimizer: Any) -> None:
    """The steps of this one are the steps of the training."""
    pacemaker.id = id(optimizer)
    pacemaker.chosen = True


def follow_forward(model: Any) -> None:
    """Times the forward of this module, instead of all that happens between a batch and its backward."""

    def before(*_: Any) -> None:
        if not (_is_compiling() or _is_off):
            try:
                entered.append(meter.enter(phases.FORWARD))
            except Exception as error:
                fault(error)

    def after(*_: Any) -> None:
        if entered and not (_is_compiling() or _is_off):
            try:
                meter.leave(entered.pop())
            except Exception as error:
                fault(error)

    entered: List[Any] = []
    model.register_forward_pre_hook(before)
    model.register_forward_hook(after)
    meter.knows_model = True


class TimedLoader:
    """An iterable whose `next` is waiting for data."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __iter__(self) -> "Iterator[Any]":
        return _TimedIterator(iter(self._loader), id(self._loader))

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _TimedIterator:
    def __init__(self, iterator: Any, source: int) -> None:
        self._fetch = _fetching(lambda _: next(iterator), source)

    def __iter__(self) -> "Iterator[Any]":
        return self

    def __next__(self) -> Any:
        return self._fetch(self)


def _norm_of_gradients(optimizer: Any) -> Any:
    torch = sys.modules["torch"]
    gradients = [p.grad.detach() for group in optimizer.param_groups for p in group["params"] if p.grad is not None and not p.grad.is_sparse]
    if not gradients:
        return None
    with torch.no_grad():
        return torch.linalg.vector_norm(torch.stack([norm.float() for norm in torch._foreach_norm(gradients)]))


# --- scaled losses

_scaled: Optional[Tuple[Any, Any]] = None


def _attach_to_scaler(scaler: Any) -> None:
    if "step" not in vars(scaler):
        return  # It inherits both from the other one.
    scale, step = scaler.scale, scaler.step

    @functools.wraps(scale)
    def hooked_scale(self: Any, outputs: Any) -> Any:
        global _scaled
        scaled = scale(self, outputs)
        try:
            _scaled = None
            if not _is_off and scaled is not outputs and getattr(outputs, "numel", int)() == 1:
                _scaled = (scaled, outputs.detach())
        except Exception as error:
            fault(error)
        return scaled

    @functools.wraps(step)
    def hooked_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        calls = pacemaker.calls
        result = step(self, optimizer, *args, **kwargs)
        # The scaler left the step out because of a gradient that is not finite: the iteration is over all the same.
        if calls == pacemaker.calls and not _is_off:
            _after_step(optimizer, args, kwargs)
        return result

    scaler.scale = hooked_scale
    scaler.step = hooked_step


def _unscaled(loss: Any) -> Any:
    global _scaled
    known, _scaled = _scaled, None
    return known[1] if known is not None and known[0] is loss else loss.detach()


# --- gradient synchronization of DistributedDataParallel


def _follow_gradients(ddp: Any) -> None:
    """Gradients are exchanged while the backward computes. What is left of it after the last gradient, the first layer's, is waiting."""
    first = next((parameter for parameter in ddp.module.parameters() if parameter.requires_grad), None)
    register = getattr(first, "register_post_accumulate_grad_hook", None)
    if register is not None:
        register(_on_last_gradient)


def _on_last_gradient(_: Any) -> None:
    if _is_compiling() or _is_off:
        return
    try:
        meter.gradients_done()
    except Exception as error:
        fault(error)
