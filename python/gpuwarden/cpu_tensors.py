"""Memory that PyTorch's tensors hold on the CPU, by the line that made them. tracemalloc sees their Python objects only, not their memory.

All objects of Python are gone through, which holds the interpreter for about 0.2 s per million of them: it is for looks that are asked for.
"""
from __future__ import annotations

import ctypes
import gc
import sys
import tracemalloc
from typing import Any, Callable, Dict, List, Optional, Tuple

#: With more objects a look would take too long.
MOST_OBJECTS = 20_000_000

Frames = Tuple[Tuple[str, int], ...]


def cpu_tensors() -> Optional[List[Tuple[int, Frames]]]:
    """The size of each piece of memory, and where it came from: innermost frame first, empty where that was not traced. None: too much to look at."""
    torch = sys.modules.get("torch")
    base = getattr(torch, "Tensor", None)
    if base is None:
        return []
    objects = gc.get_objects()
    if len(objects) > MOST_OBJECTS:
        return None
    kinds = {kind for kind in set(map(type, objects)) if base in getattr(kind, "__mro__", ())}
    found: Dict[int, Tuple[int, Frames]] = {}
    for one in objects:
        if type(one) not in kinds:
            continue
        try:
            if one.device.type != "cpu":
                continue
            storage = one.untyped_storage()
            # What cannot be resized belongs to somebody else: numpy, a mapped file, shared memory.
            if not storage.resizable():
                continue
            address, size = storage.data_ptr(), storage.nbytes()
        except Exception:  # A tensor without memory of its own, in whatever state the program is.
            continue
        if size and address not in found:
            found[address] = (size, _frames_of(one))
    return list(found.values())


def _frames_of(tensor: Any) -> Frames:
    if _by_address is not None:
        trace = _by_address(0, id(tensor) - _before_object(type(tensor)))
        return tuple(trace) if trace else ()
    traced = tracemalloc.get_object_traceback(tensor)
    return tuple((frame.filename, frame.lineno) for frame in reversed(traced)) if traced else ()


def _before_object(kind: type) -> int:
    """What Python 3.11 puts in front of an object: that of the garbage collector, and a dictionary and weak references where it manages them."""
    return 2 * _POINTER + (2 * _POINTER if kind.__flags__ & (1 << 4) else 0)


_POINTER = ctypes.sizeof(ctypes.c_void_p)
_by_address: Optional[Callable[[int, int], Any]] = None
if sys.version_info[:2] == (3, 11):
    # There `get_object_traceback` looks for such objects at a wrong address.
    try:
        _by_address = ctypes.pythonapi._PyTraceMalloc_GetTraceback
        _by_address.argtypes = [ctypes.c_uint, ctypes.c_size_t]  # type: ignore[attr-defined]
        _by_address.restype = ctypes.py_object  # type: ignore[attr-defined]
    except AttributeError:
        _by_address = None
