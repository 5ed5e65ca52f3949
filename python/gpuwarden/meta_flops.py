"""Counts the operations of a forward pass without computing it: on a copy of the model whose tensors are on the meta device.

The copy shares no tensor and no container with the model, needs no memory, and draws no random number.
"""
from __future__ import annotations

import importlib
import time
from typing import Any, Callable, Dict, Optional

_MOST_SECONDS = 10.0


class _Stopped(Exception):
    pass


def count_forward(torch: Any, model: Any, spec: Any, is_wanted: Callable[[], bool]) -> Optional[float]:
    """None: the model cannot do without values, or it takes too long. `spec`: of a batch, see batch_size.spec_of."""
    counter_type = importlib.import_module("torch.utils.flop_counter").FlopCounterMode
    mode_type: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    deadline = time.monotonic() + _MOST_SECONDS

    class Gentle(mode_type):  # type: ignore[misc]
        """Gives the interpreter to the training after each operation."""

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not is_wanted() or time.monotonic() > deadline:
                raise _Stopped()
            began = time.perf_counter()
            result = function(*args, **(kwargs or {}))
            time.sleep(min(0.01, time.perf_counter() - began))
            return result

    copied = _copy(torch, model, {})
    copied.train(False)
    for arguments, named in _calls(torch, spec):
        counter = counter_type(display=False)
        try:
            with torch.no_grad(), torch.device("meta"), counter, Gentle():
                copied(*arguments, **named)
        except _Stopped:
            return None
        except Exception:  # Not how this model is called, or it asks for values.
            continue
        flops = counter.get_total_flops()
        if flops > 0:
            return float(flops)
    return None


def _calls(torch: Any, spec: Any) -> Any:
    """How the model may be called with such a batch."""
    batch = _tensors(torch, spec)
    if isinstance(batch, dict):
        yield (), batch
        first = next(iter(batch.values()), None)
        yield (first,), {}
    elif isinstance(batch, (list, tuple)) and batch:
        if isinstance(batch[0], dict):
            yield (), batch[0]
        yield (batch[0],), {}
        yield tuple(batch), {}
    else:
        yield (batch,), {}


def _tensors(torch: Any, spec: Any) -> Any:
    if isinstance(spec, dict):
        return {name: _tensors(torch, value) for name, value in spec.items()}
    if isinstance(spec, list):
        return [_tensors(torch, value) for value in spec]
    if isinstance(spec, tuple):
        shape, dtype = spec
        return torch.empty(shape, dtype=dtype, device="meta")
    return spec


def _copy(torch: Any, module: Any, memo: Dict[int, Any]) -> Any:
    if id(module) in memo:
        return memo[id(module)]
    copied = module.__class__.__new__(module.__class__)
    memo[id(module)] = copied
    state = dict(module.__dict__)
    for name, value in state.items():
        if name == "_modules":
            state[name] = {key: None if child is None else _copy(torch, child, memo) for key, child in value.items()}
        elif name.endswith("_hooks") or "_hooks_" in name:
            state[name] = type(value)() if isinstance(value, dict) else value
        else:
            state[name] = _without_data(torch, value)
    copied.__dict__.update(state)
    return copied


def _without_data(torch: Any, value: Any) -> Any:
    """One level deep: what a module changes in its forward is then its copy's."""
    if isinstance(value, torch.Tensor):
        empty = torch.empty_like(value, device="meta")
        return torch.nn.Parameter(empty, value.requires_grad) if isinstance(value, torch.nn.Parameter) else empty
    if isinstance(value, torch.nn.Module):
        return None
    if isinstance(value, dict):
        return {key: _without_data(torch, one) if isinstance(one, torch.Tensor) else one for key, one in value.items()}
    if type(value) in (list, set):
        return type(value)(value)
    return value
