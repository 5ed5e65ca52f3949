"""Hooks where data comes from: loaders, and copies to the GPU."""
from __future__ import annotations

import functools
import sys
from typing import Any, Iterator

from . import hook_guard as guard
from . import step_meter as phases
from .batch_size import size_of, spec_of
from .hook_guard import meter


def fetching(original: Any, known_source: int = 0) -> Any:
    is_grad_enabled = sys.modules["torch"].is_grad_enabled

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if guard.is_off:
            return original(self)
        source = 0
        try:
            source = known_source or id(self._dataset)
            meter.before_data(source, is_grad_enabled())
        except Exception as error:
            guard.fault(error)
        try:
            batch = original(self)
        except BaseException:
            try:
                meter.no_more_data()
            except Exception as error:
                guard.fault(error)
            raise
        try:
            size = size_of(batch)
            meter.after_data(source, size)
            if meter.first_batch is None and size is not None and meter.phase is not phases.EVALUATION:
                meter.first_batch = spec_of(batch)
        except Exception as error:
            guard.fault(error)
        return batch

    return __next__


def copying(original: Any, torch: Any) -> Any:
    timed = guard.scope(original, phases.COPY)
    device_type, tensor_type = torch.device, torch.Tensor
    always = original.__name__ == "cuda"

    @functools.wraps(original)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Only what leaves the host; everything else is part of the phase it happens in.
        if guard.is_compiling() or self.is_cuda or meter.phase is phases.BACKWARD:
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
        self._fetch = fetching(lambda _: next(iterator), source)

    def __iter__(self) -> "Iterator[Any]":
        return self

    def __next__(self) -> Any:
        return self._fetch(self)
