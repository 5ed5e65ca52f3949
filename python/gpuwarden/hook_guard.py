"""How PyTorch is hooked: what is hooked is called exactly once, whatever happens to our own part. `torch.compile` sees the original functions."""
from __future__ import annotations

import functools
import logging
from typing import Any, Callable

from .step_meter import StepMeter

log = logging.getLogger("gpuwarden")

meter = StepMeter()
#: Hooks that failed this often are broken, and stay out of the way.
_MOST_FAULTS = 10

is_off = False
_faults = 0
is_compiling: Callable[[], bool] = lambda: False  # noqa: E731


def fault(error: BaseException) -> None:
    """An error of ours never reaches the program."""
    global _faults, is_off
    _faults += 1
    if _faults == 1:
        log.debug("gpuwarden: a hook failed: %s: %s", type(error).__name__, error, exc_info=True)
    if _faults >= _MOST_FAULTS:
        is_off = True


def scope(original: Any, phase: str) -> Any:
    """`original`, with its time counted as `phase`."""

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or is_off:
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


def then(original: Any, after: Callable[[Any], None]) -> Any:
    """A method, followed by `after(self)`."""

    @functools.wraps(original)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not is_off:
            try:
                after(self)
            except Exception as error:
                fault(error)
        return result

    return hooked
