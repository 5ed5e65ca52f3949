"""Numbers on the GPU, read without making anybody wait.

The number is copied to pinned host memory behind the queued work; `float(tensor)` would stop the training thread until then.
The memory itself shows whether it has arrived: before the copy a cell holds a pattern that no calculation gives. So reading
needs no CUDA call, works on any thread, and disturbs no graph capture.
"""
from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

#: Numbers under way at a time. One that finds no free cell is not fetched.
SLOTS = 512
#: A signaling NaN: arithmetic makes quiet ones only.
_EMPTY = 0x7FA5A5A5


class Deferred:
    """A number that will come. Its cell stays taken until then: a late copy must not be read as the next number."""

    __slots__ = ("value", "_ring", "_slot")

    def __init__(self, ring: "Optional[_Ring]", slot: int) -> None:
        self.value: Optional[float] = None
        self._ring = ring
        self._slot = slot

    def has_come(self) -> bool:
        """True also for one that never will; its value stays None."""
        ring = self._ring
        if ring is None:
            return True
        with ring.lock:
            if self._ring is not None:
                if ring.bits[self._slot] == _EMPTY:
                    return False
                self.value = ring.floats[self._slot]
                self._ring = None
        return True


class _Ring:
    def __init__(self, torch: Any) -> None:
        # Made where it is needed first; it must work everywhere.
        with torch.inference_mode(False):
            memory = torch.zeros(SLOTS, dtype=torch.float32, device="cpu", pin_memory=True)
            self._cells: List[Any] = list(memory.unbind())
        self._address = memory.data_ptr()
        self.bits = (ctypes.c_uint32 * SLOTS).from_address(self._address)
        self.floats = (ctypes.c_float * SLOTS).from_address(self._address)
        self.lock = threading.Lock()
        self._latest: List[Optional[Deferred]] = [None] * SLOTS
        self._next = 0
        self._is_capturing = torch.cuda.is_current_stream_capturing
        self._copy_directly = _direct_copy(torch)

    def put(self, value: Any) -> Deferred:
        slot = self._next
        before = self._latest[slot]
        if self._is_capturing() or (before is not None and not before.has_come()):
            return Deferred(None, 0)
        self._next = (slot + 1) % SLOTS
        self.bits[slot] = _EMPTY
        deferred = self._latest[slot] = Deferred(self, slot)
        if self._copy_directly is None or not self._copy_directly(value, self._address + 4 * slot):
            self._cells[slot].copy_(value.detach() if value.dim() == 0 else value.detach().reshape(()), non_blocking=True)
        return deferred


def _direct_copy(torch: Any) -> "Optional[Callable[[Any, int], bool]]":
    """A copy by the driver itself, on PyTorch's current stream: going through PyTorch takes nearly twice as long.

    It returns False for a value that it cannot copy: another type, or another device than the current one.
    """
    if getattr(getattr(torch, "version", None), "cuda", None) is None:
        return None
    try:
        copy = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoHAsync_v2
        stream_of, current_device = torch._C._cuda_getCurrentRawStream, torch._C._cuda_getDevice
    except (OSError, AttributeError):
        return None
    copy.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
    copy.restype = ctypes.c_int
    plain, float32 = torch.Tensor, torch.float32

    def copied(value: Any, address: int) -> bool:
        # A subclass may keep its number elsewhere, and a lazily negated view has the wrong sign in memory.
        if type(value) is not plain or value.dtype is not float32 or value.is_neg():
            return False
        device = value.get_device()
        if device != current_device():
            return False
        try:
            source = value.data_ptr()
        except RuntimeError:  # A tensor without its own memory, as while a function is transformed.
            return False
        return bool(copy(address, source, 4, stream_of(device)) == 0)

    return copied


_ring: Optional[_Ring] = None


def is_on_device(value: Any) -> bool:
    device = getattr(value, "device", None)
    return getattr(device, "type", "cpu") != "cpu"


def defer(value: Any) -> Optional[Deferred]:
    """For a tensor on a CUDA device. None for one that is not a single number, or while a graph is captured for the first time."""
    global _ring
    if value.numel() != 1:
        return None
    if _ring is None:
        torch = sys.modules.get("torch")
        if torch is None or torch.cuda.is_current_stream_capturing():
            return None
        _ring = _Ring(torch)
    return _ring.put(value)


class DeferredNumbers:
    """Many numbers that will come together."""

    __slots__ = ("values", "_page")

    def __init__(self, values: List[float], page: "Optional[_Page]" = None) -> None:
        #: Empty until they have come.
        self.values = values
        self._page = page

    def has_come(self) -> bool:
        page = self._page
        if page is not None:
            values = page.read()
            if values is None:
                return False
            self.values, self._page = values, None
        return True


class _Page:
    """Pinned memory for the numbers of one device, used again once they have come."""

    def __init__(self, torch: Any, size: int) -> None:
        with torch.inference_mode(False):
            self._memory = torch.zeros(size, dtype=torch.float32, device="cpu", pin_memory=True)
            self._empty = self._memory.view(torch.int32)
        self._bits = (ctypes.c_uint32 * size).from_address(self._memory.data_ptr())
        self._floats = (ctypes.c_float * size).from_address(self._memory.data_ptr())
        self.size = size
        self._used = 0

    def put(self, numbers: Any) -> Optional[DeferredNumbers]:
        if self._used:
            return None
        self._used = numbers.numel()
        self._empty.fill_(_EMPTY)
        self._memory[: self._used].copy_(numbers, non_blocking=True)
        return DeferredNumbers([], self)

    def read(self) -> Optional[List[float]]:
        used = self._used
        # They need not come in order.
        if self._bits[used - 1] == _EMPTY or _EMPTY in self._bits[:used]:
            return None
        values = self._floats[:used]
        self._used = 0
        return values


_pages: Dict[Any, _Page] = {}


def defer_numbers(numbers: Any) -> Optional[DeferredNumbers]:
    """For a flat tensor in single precision. None: on a device that cannot be read without waiting, or the last ones have not come."""
    device = numbers.device
    if device.type == "cpu":
        return DeferredNumbers(numbers.tolist())
    torch = sys.modules.get("torch")
    if torch is None or device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return None
    page = _pages.get(device)
    if page is None or page.size < numbers.numel():
        page = _pages[device] = _Page(torch, numbers.numel())
    return page.put(numbers)


def forget_after_fork() -> None:
    global _ring
    _ring = None
    _pages.clear()
