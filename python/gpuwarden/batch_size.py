"""How many samples and tokens a batch has, where its first tensor tells."""
from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

_INTEGERS = frozenset(("torch.int64", "torch.int32", "torch.int16"))
_DEPTH = 4


def size_of(batch: Any, depth: int = 0) -> Optional[Tuple[int, Optional[int]]]:
    """Samples, and tokens where the first tensor is made of numbered tokens; None: the batch does not tell."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        if len(shape) == 0:
            return None
        tokens = shape[0] * shape[1] if len(shape) == 2 and str(getattr(batch, "dtype", "")) in _INTEGERS else None
        return int(shape[0]), tokens
    if depth >= _DEPTH:
        return None
    if isinstance(batch, Mapping):
        named = batch.get("input_ids")
        values = [named] if named is not None else batch.values()
        return next((size for size in (size_of(value, depth + 1) for value in values) if size is not None), None)
    if isinstance(batch, (list, tuple)):
        return size_of(batch[0], depth + 1) if batch else None
    return None
