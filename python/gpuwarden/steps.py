"""A step on its way to the agent: a plain tuple on the training thread, a line of JSON on the sender's."""
from __future__ import annotations

import json
import math
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from .deferred import Deferred, defer, is_on_device

#: The agent's own limit; it would refuse anything above.
CUSTOM_LIMIT = 64
NAME_LIMIT = 100
#: Called when a loss that came from the GPU is not finite; on the sender's thread.
on_broken_loss: Callable[[], None] = lambda: None  # noqa: E731


class Step(NamedTuple):
    seq: int
    step: int
    at_ms: int
    epoch: Any
    loss: Any
    lr: Any
    grad_norm: Any
    throughput: Any
    step_seconds: Any
    phases: Optional[Mapping[str, Any]]
    alloc: Optional[Mapping[str, int]]
    custom: Optional[Mapping[str, Any]]
    #: A `LayerNews`.
    layers: Any = None


def whole_steps(count: Any) -> Optional[int]:
    """A planned number of steps as a whole number; None for anything else: infinity, zero, -1, nonsense."""
    try:
        whole = int(count)
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if 0 < whole < 2**53 else None


def scalar(value: Any) -> Any:
    """A float, None, or a Deferred for a number that is still on the GPU. Nothing here waits for the device."""
    kind = type(value)
    if kind is float or kind is int or value is None:
        return value
    if kind is bool:
        return int(value)
    if isinstance(value, Deferred):
        return value
    try:
        if getattr(value, "is_cuda", False):
            return defer(value)
        if is_on_device(value):
            return None  # Another accelerator: there is no known way to read it without waiting.
        detach = getattr(value, "detach", None)
        return float(value if detach is None else detach())
    except (TypeError, ValueError, RuntimeError):
        return None


def scalars(values: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    kept: Dict[str, Any] = {}
    for name, value in values.items():
        number = value if type(value) is float else scalar(value)
        if number is not None:
            kept[str(name)[:NAME_LIMIT]] = number
            if len(kept) == CUSTOM_LIMIT:
                break
    return kept or None


def is_ready(step: Step) -> bool:
    """Whether all of its numbers have come."""
    for values in (step, (step.custom or {}).values(), (step.phases or {}).values()):
        for value in values:
            if isinstance(value, Deferred) and not value.has_come():
                return False
    return step.layers is None or bool(step.layers.has_come())


def encode(step: Step, fixed: Mapping[str, int]) -> bytes:
    """One line. `fixed` is what all steps of this process share: rank, local rank, world size, pid."""
    line: Dict[str, Any] = {"seq": step.seq, "step": step.step, "t": step.at_ms}
    line.update(fixed)
    for name, value in (
        ("epoch", step.epoch),
        ("loss", step.loss),
        ("lr", step.lr),
        ("grad_norm", step.grad_norm),
        ("throughput", step.throughput),
        ("step_seconds", step.step_seconds),
    ):
        number = _read(value)
        if number is not None:
            line[name] = number
    for name, mapping in (("phases", step.phases), ("alloc", step.alloc), ("custom", step.custom)):
        numbers = _read_all(mapping) if mapping else None
        if numbers:
            line[name] = {key: round(value, 7) for key, value in numbers.items()} if name == "phases" else numbers
    if isinstance(step.loss, Deferred) and not math.isfinite(line.get("loss", 0.0)):
        on_broken_loss()
    if step.layers is not None and step.layers.has_come():
        line.update(step.layers.encoded())
    return json.dumps(line, separators=(",", ":")).encode("utf-8") + b"\n"


def _read_all(values: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: number for name, number in ((name, _read(value)) for name, value in values.items()) if number is not None}


def _read(value: Any) -> Any:
    if not isinstance(value, Deferred):
        return value
    return value.value if value.has_come() else None
