"""What callbacks learn of PyTorch where it is not followed as a whole: the size of batches, and the norm that clipping computed."""
from __future__ import annotations

import functools
import sys
from typing import Any, Optional, Set, Tuple

from . import automatic
from .batch_size import size_of, spec_of
from .hook_guard import fault

_norm: Any = None
_dataset = 0
_samples: Optional[int] = None
_tokens: Optional[int] = None
_spec: Any = None
_hooked: Set[str] = set()


def watch_clipping() -> None:
    """From now on `take_norm` has what `clip_grad_norm_` returned."""
    torch = sys.modules.get("torch")
    if torch is None or automatic.is_hooked() or "clip" in _hooked:
        return
    _hooked.add("clip")
    original = torch.nn.utils.clip_grad_norm_
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)

    @functools.wraps(original)
    def clip_grad_norm_(*args: Any, **kwargs: Any) -> Any:
        global _norm
        norm = original(*args, **kwargs)
        if not is_compiling():
            _norm = norm
        return norm

    torch.nn.utils.clip_grad_norm_ = clip_grad_norm_
    sys.modules["torch.nn.utils.clip_grad"].clip_grad_norm_ = clip_grad_norm_  # type: ignore[attr-defined]


def take_norm() -> Any:
    """Of the gradients that were clipped since the last call; None: none were."""
    global _norm
    norm, _norm = _norm, None
    return norm


def watch_batches(loader: Any) -> None:
    """From now on `take_size` has what the loaders of the same dataset gave."""
    global _dataset
    module: Any = sys.modules.get("torch.utils.data.dataloader")
    if module is None or automatic.is_hooked():
        return
    _dataset = id(getattr(loader, "dataset", None))
    if "batches" in _hooked:
        return
    _hooked.add("batches")
    base = module._BaseDataLoaderIter
    original = base.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        batch = original(self)
        try:
            if id(self._dataset) == _dataset:
                _count(batch)
        except Exception as error:
            fault(error)
        return batch

    base.__next__ = __next__


def take_size() -> Tuple[Optional[int], Optional[int]]:
    """Samples and tokens since the last call."""
    global _samples, _tokens
    size = (_samples, _tokens)
    _samples = _tokens = None
    return size


def first_batch() -> Any:
    """As batch_size.spec_of describes it; None: none was seen."""
    return _spec


def _count(batch: Any) -> None:
    global _samples, _tokens, _spec
    size = size_of(batch)
    if size is None:
        return
    if _spec is None:
        _spec = spec_of(batch)
    _samples = (_samples or 0) + size[0]
    if size[1] is not None:
        _tokens = (_tokens or 0) + size[1]
