"""How many samples and tokens a batch has, where its first tensor tells."""
from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

_INTEGERS = frozenset(("torch.int64", "torch.int32", "torch.int16"))
_DEPTH = 4
_MOST_PARTS = 64

Size = Tuple[int, Optional[int]]


def size_of(batch: Any, depth: int = 0) -> Optional[Size]:
    """Samples, and tokens where the first tensor is made of numbered tokens; None: the batch does not tell."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return _size(shape, getattr(batch, "dtype", ""))
    if depth >= _DEPTH:
        return None
    if isinstance(batch, Mapping):
        named = batch.get("input_ids")
        values = [named] if named is not None else batch.values()
        return next((size for size in (size_of(value, depth + 1) for value in values) if size is not None), None)
    if isinstance(batch, (list, tuple)):
        return size_of(batch[0], depth + 1) if batch else None
    return None


def spec_of(batch: Any, depth: int = 0) -> Any:
    """The shape and type of each tensor of a batch, in dicts and lists as they are there; of anything else nothing is kept but numbers."""
    shape = getattr(batch, "shape", None)
    if shape is not None and hasattr(batch, "dtype"):
        return (tuple(shape), batch.dtype)
    if depth < _DEPTH and isinstance(batch, Mapping) and len(batch) <= _MOST_PARTS:
        return {name: spec_of(value, depth + 1) for name, value in batch.items()}
    if depth < _DEPTH and isinstance(batch, (list, tuple)) and len(batch) <= _MOST_PARTS:
        return [spec_of(value, depth + 1) for value in batch]
    return batch if isinstance(batch, (int, float, bool)) else None


def size_of_spec(spec: Any) -> Optional[Size]:
    if isinstance(spec, dict):
        named = spec.get("input_ids")
        values = [named] if named is not None else list(spec.values())
        return next((size for size in (size_of_spec(value) for value in values) if size is not None), None)
    if isinstance(spec, list):
        return size_of_spec(spec[0]) if spec else None
    return _size(*spec) if isinstance(spec, tuple) else None


def _size(shape: Any, dtype: Any) -> Optional[Size]:
    if len(shape) == 0:
        return None
    tokens = int(shape[0] * shape[1]) if len(shape) == 2 and str(dtype) in _INTEGERS else None
    return int(shape[0]), tokens
